//! Text from outside: reads it up to a limit, and quotes it safely in messages.
//!
//! A path may name an endless file, and a text may contain control characters that affect a terminal. Therefore a file
//! that is read into memory as a whole has a size limit, and messages quote text through [`shown`] or [`escaped`].

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;

/// Maximum number of characters that a message quotes.
pub const SHOWN: usize = 60;

/// Returns a text for quoting in a message: in one line, without control characters, truncated after [`SHOWN`]
/// characters.
pub fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        None => escaped(text),
        Some((end, _)) => Cow::Owned(format!("{}...", escaped(&text[..end]))),
    }
}

/// Shortens a message of a library, which may quote input of any length, by removing its middle.
pub fn shortened(message: &str) -> Cow<'_, str> {
    /// Number of characters kept at the start and at the end.
    const START: usize = 240;
    const END: usize = 160;
    let count = message.chars().count();
    if count <= START + END {
        return Cow::Borrowed(message);
    }
    let [start, end]: [String; 2] =
        [message.chars().take(START).collect(), message.chars().skip(count - END).collect()];
    Cow::Owned(format!("{start} ... {end}"))
}

/// Escapes control characters as in Rust, including those that change the direction of text.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escaped_except(text, &[])
}

/// Escapes control characters like [`escaped`], except line feeds and tabs.
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    escaped_except(text, &['\n', '\t'])
}

fn escaped_except<'t>(text: &'t str, kept: &[char]) -> Cow<'t, str> {
    let turns = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let acts = |c: char| (c.is_control() || turns(c)) && !kept.contains(&c);
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if acts(c) { escaped.extend(c.escape_default()) } else { escaped.push(c) }
    }
    Cow::Owned(escaped)
}

/// Reads a whole text file. Returns an error with the limit if the file has more than `max_bytes`.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(too_long("it", max_bytes));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8"))
}

/// Appends a line with its line ending to `line`, like [`BufRead::read_line`]. Returns an error with the limit if the
/// line has more than `max_bytes`.
pub fn read_line(input: &mut impl BufRead, line: &mut String, max_bytes: u64) -> io::Result<usize> {
    let length = input.take(max_bytes + 1).read_line(line)?;
    if length as u64 > max_bytes { Err(too_long("a line", max_bytes)) } else { Ok(length) }
}

fn too_long(what: &str, max_bytes: u64) -> io::Error {
    let limit = if max_bytes.is_multiple_of(1 << 20) {
        format!("{} MiB", max_bytes >> 20)
    } else {
        format!("{max_bytes} bytes")
    };
    io::Error::new(io::ErrorKind::FileTooLarge, format!("{what} is longer than {limit}, the most that is read"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_text_beyond_the_limit_is_refused() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"12345").unwrap();
        assert_eq!(read_text(file.path(), 5).unwrap(), "12345");
        let error = read_text(file.path(), 4).unwrap_err().to_string();
        assert!(error.contains("longer than 4 bytes"), "{error}");
        file.write_all(b"\xff").unwrap();
        assert!(read_text(file.path(), 9).unwrap_err().to_string().contains("UTF-8"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_endless_file_is_refused() {
        let error = read_text(Path::new("/dev/zero"), 1 << 20).unwrap_err().to_string();
        assert!(error.contains("longer than 1 MiB"), "{error}");
    }

    #[test]
    fn a_line_beyond_the_limit_is_refused() {
        let mut line = String::new();
        assert_eq!(read_line(&mut &b"1234\n5"[..], &mut line, 5).unwrap(), 5);
        assert_eq!(line, "1234\n");
        let error = read_line(&mut io::BufReader::new(io::repeat(b'x')), &mut line, 1 << 20).unwrap_err().to_string();
        assert!(error.contains("a line is longer than 1 MiB"), "{error}");
    }

    #[test]
    fn quotations_are_short_and_harmless() {
        assert_eq!(shown("gc.victim"), "gc.victim");
        assert_eq!(shown("a\u{1b}[31mb\n\u{9b}\u{202e}"), "a\\u{1b}[31mb\\n\\u{9b}\\u{202e}");
        let long = "\u{e4}".repeat(SHOWN + 1);
        assert_eq!(shown(&long), format!("{}...", "\u{e4}".repeat(SHOWN)));
        assert_eq!(shown(&long[2..]), long[2..]);
        assert_eq!(escaped_lines("a\nb\tc\r\n"), "a\nb\tc\\r\n");
        assert!(matches!(escaped_lines("a\nb\n"), Cow::Borrowed(_)));
    }
}
