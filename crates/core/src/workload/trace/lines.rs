//! The lines of an input, found in place in a block of it.

use std::ops::Range;

use super::input::Input;
use crate::workload::SourceError;

/// Bytes held at a time: large enough that system calls do not count, small enough for the second-level cache.
const BLOCK: usize = 256 << 10;
/// Longer lines are not read: the memory must not grow with the line, and no format has such lines.
const LONGEST: usize = 64 << 10;
/// Bytes of a line that messages show.
const SHOWN: usize = 120;

/// The lines of a file, one after the other.
pub(super) struct Lines {
    input: Input,
    buffer: Vec<u8>,
    /// What of the buffer has been filled and not yet given out.
    filled: Range<usize>,
    ended: bool,
    number: u64,
}

/// Where a line lies; [`Lines::text`] has its bytes until the next line is asked for.
pub(super) struct Line {
    /// Counted from 1.
    pub(super) number: u64,
    /// Longer than can be read; its text is cut off.
    pub(super) too_long: bool,
    range: Range<usize>,
}

impl Lines {
    /// The lines of `input`; a byte-order mark in front is passed over.
    pub(super) fn new(input: Input) -> Result<Lines, SourceError> {
        let mut lines = Lines { input, buffer: vec![0; BLOCK], filled: 0..0, ended: false, number: 0 };
        while !lines.ended && lines.filled.len() < LONGEST {
            lines.refill()?;
        }
        if lines.buffer[lines.filled.clone()].starts_with(b"\xef\xbb\xbf") {
            lines.filled.start += 3;
        }
        Ok(lines)
    }

    /// Where the lines come from.
    pub(super) fn input(&self) -> &Input {
        &self.input
    }

    /// Lines from the start of the file, before any has been given out: as many as are at hand, at most `most`.
    pub(super) fn sample(&self, most: usize) -> Vec<&[u8]> {
        let bytes = &self.buffer[self.filled.clone()];
        let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').take(most + 1).collect();
        // The last one may be cut off, or be the nothing behind the last line's end.
        if lines.len() > 1 && (lines.len() > most || !self.ended || lines.last().is_some_and(|line| line.is_empty())) {
            lines.pop();
        }
        lines.into_iter().map(without_return).collect()
    }

    /// The next line, `None` at the end.
    #[inline]
    pub(super) fn next_line(&mut self) -> Result<Option<Line>, SourceError> {
        loop {
            let Range { start, end } = self.filled;
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[start..end]) {
                self.filled.start += length + 1;
                return Ok(Some(self.line(start..start + length)));
            }
            if self.ended {
                self.filled.start = end;
                return Ok((start < end).then(|| self.line(start..end)));
            }
            if end - start > LONGEST {
                return self.pass_over_long_line().map(Some);
            }
            self.refill()?;
        }
    }

    /// The bytes of the line that was given out last.
    #[inline]
    pub(super) fn text(&self, line: &Line) -> &[u8] {
        without_return(&self.buffer[line.range.clone()])
    }

    fn line(&mut self, range: Range<usize>) -> Line {
        self.number += 1;
        Line { number: self.number, too_long: range.len() > LONGEST, range }
    }

    /// Moves what is left to the front of the buffer and reads more behind it.
    fn refill(&mut self) -> Result<(), SourceError> {
        self.buffer.copy_within(self.filled.clone(), 0);
        self.filled = 0..self.filled.len();
        let length = self.input.read(&mut self.buffer[self.filled.end..])?;
        self.filled.end += length;
        self.ended = length == 0;
        Ok(())
    }

    /// Keeps the start of a line that is too long, and reads on behind it until its end.
    #[cold]
    fn pass_over_long_line(&mut self) -> Result<Line, SourceError> {
        self.buffer.copy_within(self.filled.clone(), 0);
        self.filled = 0..self.filled.len();
        loop {
            self.filled.end = LONGEST + 1;
            let length = self.input.read(&mut self.buffer[LONGEST + 1..])?;
            let end = LONGEST + 1 + length;
            self.ended = length == 0;
            let found = memchr::memchr(b'\n', &self.buffer[LONGEST + 1..end]);
            if self.ended || found.is_some() {
                self.filled = found.map_or(end, |place| LONGEST + 1 + place + 1)..end;
                return Ok(self.line(0..LONGEST + 1));
            }
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A line as messages show it: cut off after a while, and whatever its bytes are, in one line of text.
pub(super) fn shown(line: &[u8]) -> String {
    let cut = &line[..line.len().min(SHOWN)];
    let mut text = String::new();
    for c in String::from_utf8_lossy(cut).chars() {
        if c.is_control() && c != '\t' { text.extend(c.escape_default()) } else { text.push(c) }
    }
    if cut.len() < line.len() { format!("`{text}...`") } else { format!("`{text}`") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn lines_of(bytes: &[u8]) -> Lines {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        Lines::new(Input::open(file.path()).unwrap()).unwrap()
    }

    fn all(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut lines = lines_of(bytes);
        let mut all = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            all.push((line.number, lines.text(&line).to_vec()));
        }
        all
    }

    #[test]
    fn lines_end_in_any_common_way() {
        let expected = vec![(1, b"a".to_vec()), (2, b"".to_vec()), (3, b"b".to_vec())];
        for text in ["a\n\nb", "a\n\nb\n", "a\r\n\r\nb\r\n", "\u{feff}a\n\nb"] {
            assert_eq!(all(text.as_bytes()), expected, "{text:?}");
        }
        assert_eq!(all(b""), vec![]);
    }

    #[test]
    fn blocks_do_not_show() {
        let text: Vec<u8> = (0..200_000_u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let read = all(&text);
        assert_eq!(read.len(), 200_000);
        assert!(read.iter().enumerate().all(|(n, (_, line))| *line == n.to_string().into_bytes()));
    }

    #[test]
    fn long_lines_are_passed_over_in_constant_memory() {
        for length in [LONGEST + 1, BLOCK, 3 * BLOCK, 3 * BLOCK + 17] {
            for end in ["\n", "\nafter\n"] {
                let mut lines = lines_of(format!("before\n{}{end}", "x".repeat(length)).as_bytes());
                assert!(!lines.next_line().unwrap().unwrap().too_long);
                let long = lines.next_line().unwrap().unwrap();
                assert!(long.too_long && lines.text(&long).starts_with(b"xxx"), "{length}");
                let after = lines.next_line().unwrap().map(|line| lines.text(&line).to_vec());
                assert_eq!(after, (end.len() > 1).then(|| b"after".to_vec()), "{length}");
                assert_eq!(lines.buffer.len(), BLOCK);
            }
        }
        let mut longest = lines_of(&vec![b'x'; LONGEST]);
        assert!(!longest.next_line().unwrap().unwrap().too_long);
    }

    #[test]
    fn samples_hold_whole_lines_only() {
        assert_eq!(lines_of(b"a\nb\r\nc").sample(9), [b"a", b"b", b"c"]);
        assert_eq!(lines_of(b"a\nb\nc\n").sample(9), [b"a", b"b", b"c"]);
        assert_eq!(lines_of(b"a\nb\nc\n").sample(2), [b"a", b"b"]);
        assert_eq!(lines_of(b"a").sample(2), [b"a"]);
        let many = lines_of(&b"0123456789\n".repeat(BLOCK));
        assert!(many.sample(BLOCK).iter().all(|line| line == b"0123456789"));
    }

    #[test]
    fn messages_show_any_bytes() {
        assert_eq!(shown(b"a,b"), "`a,b`");
        assert_eq!(shown(b"\xff\x00\n"), "`\u{fffd}\\u{0}\\n`");
        let long = shown("é".repeat(100).as_bytes());
        assert!(long.ends_with("...`") && long.len() < 200);
    }
}
