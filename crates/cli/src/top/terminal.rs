//! The terminal: raw mode, keys, and output of a screen.

use std::io::{self, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::screen::{PLAIN, Screen};

/// Enters the alternate screen, hides the cursor, and keeps long lines from continuing on the next line.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";

/// Reverts [`ENTER`].
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Escape key.
pub const ESCAPE: char = '\x1b';

/// Ctrl-C, which is a key in raw mode.
pub const INTERRUPT: char = '\x03';

/// A terminal in raw mode. Restored when dropped.
pub struct Terminal {
    /// Modes to restore.
    modes: Termios,
    shown: Screen,
    has_color: bool,
}

impl Terminal {
    /// Takes over the terminal of standard input and output.
    pub fn open() -> io::Result<Terminal> {
        let modes = tcgetattr(io::stdin())?;
        let mut raw = modes.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        // The message of a panic would disappear with the alternate screen.
        let (hook, of_hook) = (std::panic::take_hook(), modes.clone());
        std::panic::set_hook(Box::new(move |panic| {
            restore(&of_hook);
            hook(panic);
        }));
        let has_color = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let terminal = Terminal { modes, shown: Screen::default(), has_color };
        send(ENTER)?;
        Ok(terminal)
    }

    /// Returns the keys that were pressed. Waits for one for at most `patience`.
    pub fn keys(&self, patience: Duration) -> io::Result<Vec<char>> {
        // Not through the buffer of the standard library, which could hold back keys.
        let stdin = io::stdin();
        let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; 256];
        let read = rustix::io::read(&stdin, &mut bytes)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(keys_of(&bytes[..read]))
    }

    /// Returns `true` if the size differs from that of the last screen.
    pub fn is_resized(&self) -> bool {
        let area = self.shown.area();
        size().is_ok_and(|size| size != (area.width, area.height))
    }

    /// Shows a screen. Sends only the rows that changed.
    pub fn show(&mut self, draw: impl FnOnce(&mut Screen)) -> io::Result<()> {
        let (width, height) = size()?;
        let mut screen = Screen::new(width, height);
        draw(&mut screen);
        let mut output = String::new();
        if screen.area() != self.shown.area() {
            output += "\x1b[2J";
            self.shown = Screen::new(width, height);
        }
        for (number, (row, shown)) in screen.rows().zip(self.shown.rows()).enumerate() {
            if row == shown {
                continue;
            }
            output += &format!("\x1b[{};1H", number + 1);
            let mut last = PLAIN;
            for (symbol, style) in row {
                if *style != last {
                    output += &self.sequence(style);
                    last = style;
                }
                output.push(*symbol);
            }
            output += "\x1b[0m";
        }
        self.shown = screen;
        send(&output)
    }

    /// Returns the sequence that selects a style. Colors, whose parameters have two digits, are omitted if the user
    /// does not want them (<https://no-color.org>).
    fn sequence(&self, style: &str) -> String {
        let parameters = style.split(';').filter(|parameter| self.has_color || parameter.len() < 2);
        format!("\x1b[0;{}m", parameters.collect::<Vec<_>>().join(";"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore(&self.modes);
    }
}

/// Restores the terminal. Failures are ignored, because there is no other terminal to report them to.
fn restore(modes: &Termios) {
    let _ = send(LEAVE);
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, modes);
}

fn send(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Returns the number of columns and rows.
fn size() -> io::Result<(usize, usize)> {
    let size = tcgetwinsize(io::stdout())?;
    Ok(match (size.ws_col, size.ws_row) {
        // A serial line has no size.
        (0, _) | (_, 0) => (80, 24),
        (columns, rows) => (columns.into(), rows.into()),
    })
}

/// Returns the keys in some input. Ignores keys that send sequences, such as arrows.
fn keys_of(bytes: &[u8]) -> Vec<char> {
    let mut keys = Vec::new();
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        match (byte, rest.as_slice()) {
            (b'\x1b', [b'[', ..]) => drop(rest.by_ref().skip(1).find(|byte| (0x40..=0x7e).contains(*byte))),
            (b'\x1b', [b'O', ..]) => drop(rest.by_ref().nth(1)),
            (b'\x1b', [_, ..]) => drop(rest.next()),
            (byte, _) if byte.is_ascii() => keys.push(char::from(*byte)),
            _ => {}
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_distinguished_from_sequences() {
        for (bytes, keys) in [
            ("q", "q"),
            ("bo\x03", "bo\x03"),
            ("\x1b", "\x1b"),
            ("\x1b[A\x1b[1;5Cp", "p"),
            ("\x1bOPb\x1bx", "b"),
            ("é\x1b[", ""),
        ] {
            assert_eq!(keys_of(bytes.as_bytes()).into_iter().collect::<String>(), keys, "{bytes:?}");
        }
    }
}
