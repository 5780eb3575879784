//! Contents of a screen in characters: text, frames and bars, clipped at the edges.

/// Parameters of the terminal sequence that selects the look of a character (ECMA-48, SGR). Empty for normal text.
pub type Style = &'static str;

/// Normal text.
pub const PLAIN: Style = "";
pub const BOLD: Style = "1";
pub const REVERSED: Style = "7";

/// Bars of 1/8 to 8/8 of a line.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Rectangle of a screen, in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Area {
    pub left: usize,
    pub top: usize,
    pub width: usize,
    pub height: usize,
}

impl Area {
    /// Cuts rows off the top.
    pub fn cut_rows(&mut self, rows: usize) -> Area {
        let height = rows.min(self.height);
        let cut = Area { height, ..*self };
        (self.top, self.height) = (self.top + height, self.height - height);
        cut
    }

    /// Cuts columns off the left.
    pub fn cut_columns(&mut self, columns: usize) -> Area {
        let width = columns.min(self.width);
        let cut = Area { width, ..*self };
        (self.left, self.width) = (self.left + width, self.width - width);
        cut
    }
}

/// Characters of a screen with their styles.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    width: usize,
    height: usize,
    cells: Vec<(char, Style)>,
}

impl Screen {
    /// Creates an empty screen.
    pub fn new(width: usize, height: usize) -> Screen {
        Screen { width, height, cells: vec![(' ', PLAIN); width * height] }
    }

    /// Returns the area of the whole screen.
    pub fn area(&self) -> Area {
        Area { left: 0, top: 0, width: self.width, height: self.height }
    }

    /// Returns the rows from top to bottom.
    pub fn rows(&self) -> impl Iterator<Item = &[(char, Style)]> {
        self.cells.chunks(self.width.max(1))
    }

    /// Writes a character at a position in an area. Does nothing outside.
    pub fn put(&mut self, area: Area, row: usize, column: usize, cell: (char, Style)) {
        if row < area.height && column < area.width {
            self.cells[(area.top + row) * self.width + area.left + column] = cell;
        }
    }

    /// Writes lines of text. The style applies to the whole area.
    pub fn text(&mut self, area: Area, lines: &[String], style: Style) {
        for row in 0..area.height {
            let text = lines.get(row).map_or("", String::as_str).chars().chain(std::iter::repeat(' '));
            text.take(area.width).enumerate().for_each(|(column, symbol)| self.put(area, row, column, (symbol, style)));
        }
    }

    /// Draws a frame with a title, and returns the area inside. A low area only gets the upper edge.
    pub fn frame(&mut self, area: Area, title: &str) -> Area {
        let Area { left, top, width, height } = area;
        let (last_row, last_column) = (height.saturating_sub(1), width.saturating_sub(1));
        let closed = height >= 5;
        for column in 0..width {
            self.put(area, 0, column, ('─', PLAIN));
            if closed {
                self.put(area, last_row, column, ('─', PLAIN));
            }
        }
        let edge = usize::from(closed);
        if closed {
            for row in 0..height {
                self.put(area, row, 0, ('│', PLAIN));
                self.put(area, row, last_column, ('│', PLAIN));
            }
            for (row, column, corner) in
                [(0, 0, '┌'), (0, last_column, '┐'), (last_row, 0, '└'), (last_row, last_column, '┘')]
            {
                self.put(area, row, column, (corner, PLAIN));
            }
        }
        let room = width.saturating_sub(2 * edge);
        title.chars().take(room).enumerate().for_each(|(at, symbol)| self.put(area, 0, edge + at, (symbol, PLAIN)));
        Area { left: left + edge, top: top + 1, width: room, height: height.saturating_sub(1 + edge) }
    }

    /// Draws a bar in each column. A bar of `most` has the height of the area.
    pub fn bars(&mut self, area: Area, values: impl Iterator<Item = f64>, most: f64) {
        for (column, value) in values.take(area.width).enumerate() {
            let eighths = if most > 0.0 { (value / most * (8 * area.height) as f64) as usize } else { 0 };
            for row in 0..area.height {
                let below = 8 * (area.height - 1 - row);
                if let Some(step) = eighths.saturating_sub(below).min(8).checked_sub(1) {
                    self.put(area, row, column, (BARS[step], PLAIN));
                }
            }
        }
    }
}
