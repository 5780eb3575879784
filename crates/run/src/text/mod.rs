//! Text of results, for terminals and for Python: pages, tables, numbers and bars. Control characters in names are
//! escaped.

pub mod explanation;
mod latency;
pub mod profile;
pub mod seeds;
pub mod summary;

use floatgate_core::sim::text::escaped;
use floatgate_report::number::grouped;
use serde_json::Value;

/// Width of a label in characters.
const LABEL: usize = 15;
/// Width of a page in characters.
const WIDTH: usize = 100;

/// Text of lines with a label on the left.
#[derive(Debug, Default)]
pub struct Page {
    /// Text written so far.
    pub text: String,
}

impl Page {
    /// Writes a line with a label. Breaks it between words if it is too long, but not between a number and its unit.
    pub fn line(&mut self, label: &str, what: impl AsRef<str>) {
        let mut line = format!("{label:<LABEL$}");
        let mut empty = true;
        for word in words(what.as_ref()) {
            if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.push(&line);
                line = " ".repeat(LABEL);
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(&word);
            empty = false;
        }
        self.push(&line);
    }

    /// Writes an empty line.
    pub fn gap(&mut self) {
        self.text.push('\n');
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(&escaped(line.trim_end()));
        self.text.push('\n');
    }
}

/// Escapes the control characters in all strings of a value that another program sent.
pub fn harmless(value: Value) -> Value {
    match value {
        Value::String(text) => escaped(&text).into(),
        Value::Array(values) => values.into_iter().map(harmless).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (escaped(&name).into_owned(), harmless(value))).collect()
        }
        value => value,
    }
}

/// Returns the words of a text. A number and its unit are one word.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            Some(last) if is_number(last) => *last += &format!(" {word}"),
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Returns `true` for numbers such as `1,448` and `(10.0`.
fn is_number(word: &str) -> bool {
    let digits = word.trim_start_matches('(');
    digits.ends_with(|end: char| end.is_ascii_digit())
        && digits.chars().all(|digit| digit.is_ascii_digit() || matches!(digit, '.' | ','))
}

/// Table whose first column is aligned left and whose other columns are aligned right.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with this header.
    pub fn new(head: &[&str]) -> Table {
        Table { rows: vec![head.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    /// Adds a row. It must have as many cells as the header.
    pub fn row(&mut self, cells: &[String]) {
        self.rows.push(cells.iter().map(|cell| escaped(cell).into_owned()).collect());
    }

    /// Formats the table.
    pub fn text(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = format!("{:<1$}", row[0], widths[0].max(LABEL - 2));
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                line += &format!("  {cell:>width$}");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Draws a bar for a share of `width` columns, in eighths of a column.
pub fn bar(share: f64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "\u{258f}", "\u{258e}", "\u{258d}", "\u{258c}", "\u{258b}", "\u{258a}", "\u{2589}"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    // A share above 0 is always visible.
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    format!("{}{}", "\u{2588}".repeat(eighths / 8), PARTS[eighths % 8])
}

/// Formats a number with up to three digits, or with all its digits before the decimal point.
pub fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if !value.is_finite() => "-".to_owned(),
        0.0 => "0".to_owned(),
        s if s >= 99.95 => {
            let sign = if value < 0.0 { "-" } else { "" };
            format!("{sign}{}", grouped(s.round() as u64))
        }
        s if s >= 9.995 => format!("{value:.1}"),
        s if s >= 0.9995 => format!("{value:.2}"),
        s if s >= 0.0001 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

/// Formats a rate. Rates from 100 on have no decimals.
pub fn rate(value: f64) -> String {
    if value >= 100.0 { grouped(value.round() as u64) } else { decimals(value) }
}

/// Formats a number with at least two significant digits: without decimals from 1000 on, with one decimal from 10 on.
pub fn decimals(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 1000.0 => return grouped(value.round() as u64),
        v if v >= 10.0 => 1,
        v => leading_zeros(v) + 2,
    };
    format!("{value:.digits$}")
}

/// Returns the number of zeros between the decimal point and the first other digit, at most 9. Returns 0 for 0.
pub fn leading_zeros(value: f64) -> usize {
    let limits = std::iter::successors(Some(0.1), |limit| Some(limit / 10.0)).take(9);
    limits.take_while(|limit| value > 0.0 && value < *limit).count()
}

/// Formats a share in percent, or returns a dash if there is none.
pub fn percent(share: Option<f64>) -> String {
    match share.map(|share| share * 100.0) {
        None => "-".to_owned(),
        Some(percent) if percent > 0.0 && percent < 0.05 => format!("{percent:.2} %"),
        Some(percent) => format!("{percent:.1} %"),
    }
}

/// Formats a time with a suitable unit.
pub fn seconds(s: f64) -> String {
    match s {
        s if s >= 86_400.0 * 2.0 => format!("{} days", number(s / 86_400.0)),
        s if s >= 7_200.0 => format!("{} h", number(s / 3_600.0)),
        s if s >= 1.0 => format!("{} s", number(s)),
        s if s >= 0.999e-3 => format!("{} ms", number(s * 1e3)),
        s if s >= 0.999e-6 => format!("{} us", number(s * 1e6)),
        s if s >= 0.999e-9 => format!("{} ns", number(s * 1e9)),
        s => format!("{} ps", number(s * 1e12)),
    }
}

/// Formats a number with three digits, as `1.23 M`.
pub fn short(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v >= 1e9 => (v / 1e9, " G"),
        v if v >= 1e6 => (v / 1e6, " M"),
        v if v >= 1e3 => (v / 1e3, " k"),
        v => (v, ""),
    };
    let digits = if scaled >= 100.0 { 0 } else { usize::from(scaled < 10.0) + 1 };
    format!("{scaled:.digits$}{unit}")
}

/// Returns the singular or the plural of a noun for this count.
pub fn plural(count: u64, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let texts = [0.0, 0.001, 0.1234, 1.0, 12.34, 123.4, 1_234_567.0, -3.0, -1234.0].map(number);
        assert_eq!(texts, ["0", "0.001", "0.123", "1.00", "12.3", "123", "1,234,567", "-3.00", "-1,234"]);
        assert_eq!(
            [1e-12, 1e-9, 2.5e-6, 1e-3, 1.5, 90.0, 86_400.0, 700_000.0].map(seconds),
            ["1.00 ps", "1.00 ns", "2.50 us", "1.00 ms", "1.50 s", "90.0 s", "24.0 h", "8.10 days"]
        );
        assert_eq!([Some(0.5), Some(0.0), Some(0.0002), None].map(percent), ["50.0 %", "0.0 %", "0.02 %", "-"]);
    }

    #[test]
    fn bars_are_proportional_and_show_the_smallest_share() {
        assert_eq!(
            [0.0, 1e-9, 0.5, 1.0].map(|share| bar(share, 3)),
            ["", "\u{258f}", "\u{2588}\u{258c}", "\u{2588}\u{2588}\u{2588}"]
        );
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let mut page = Page::default();
        page.line("warning", "word ".repeat(40));
        assert!(page.text.lines().count() == 3 && page.text.lines().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn a_number_and_its_unit_stay_on_one_line() {
        assert_eq!(
            words("at (10.0 % spare) 2282, 1,448 requests/s x 2"),
            ["at", "(10.0 %", "spare)", "2282,", "1,448 requests/s", "x", "2"]
        );
        for before in 60..100 {
            let mut page = Page::default();
            page.line("limited by", format!("{} 23.4 % of their bound", "x".repeat(before)));
            assert!(page.text.contains("23.4 %"), "{}", page.text);
        }
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 9.5, 42.0, 999.0, 1_234.0, 45_600.0, 1_230_000.0, 2e9].map(short);
        assert_eq!(texts, ["0.00", "9.50", "42.0", "999", "1.23 k", "45.6 k", "1.23 M", "2.00 G"]);
    }
}
