//! Splits an input into frames, which are lines or binary records, without copying them.

use std::ops::Range;

use super::fields::Expected;
use super::format::Parser;
use super::input::Input;
use crate::sim::source::SourceError;

/// Bytes in the buffer: large enough to make system calls rare, small enough for the second-level cache.
const BLOCK: usize = 256 << 10;
/// Maximum length of a line, which bounds the memory. No format has longer lines.
const LONGEST: usize = 64 << 10;
/// Maximum number of bytes of a line in messages.
const SHOWN: usize = 120;
/// Maximum number of bytes of a binary record in messages.
const SHOWN_BYTES: usize = 48;
/// Number of bytes that distinguish text from binary records.
const FIRST: usize = 32;
const TOO_LONG: Expected = Expected("a line of at most 64 KiB");
const CUT_OFF: Expected = Expected("a whole record, but the file ends in it");

/// Lines or binary records of a file, in order.
pub(super) struct Frames {
    input: Input,
    buffer: Vec<u8>,
    /// Range of the buffer that is filled and not yet consumed.
    filled: Range<usize>,
    ended: bool,
    number: u64,
}

/// A line or record. [`Frames::bytes`] returns its bytes until the next one is read.
pub(super) struct Frame {
    /// Number, starting at 1.
    pub(super) number: u64,
    /// Error of the whole frame: it is too long, or the file ends in it. Its bytes are truncated.
    pub(super) fault: Option<Expected>,
    range: Range<usize>,
}

impl Frames {
    /// Creates the frames of `input`. Skips a byte-order mark before text.
    pub(super) fn new(input: Input) -> Result<Frames, SourceError> {
        let mut frames = Frames { input, buffer: vec![0; BLOCK], filled: 0..0, ended: false, number: 0 };
        while !frames.ended && frames.filled.len() < LONGEST {
            frames.refill()?;
        }
        // Text contains no zeros, and the first record of each binary format does.
        let is_text = !frames.head().iter().take(FIRST).any(|byte| *byte == 0);
        if is_text && frames.head().starts_with(b"\xef\xbb\xbf") {
            frames.filled.start += 3;
        }
        Ok(frames)
    }

    /// Returns the first bytes of the file: all of them, or at least 64 KiB. Must be called before any frame is read.
    pub(super) fn head(&self) -> &[u8] {
        &self.buffer[self.filled.clone()]
    }

    /// Returns the input.
    pub(super) fn input(&self) -> &Input {
        &self.input
    }

    /// Returns `true` if no data follow the buffered ones.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns at most `max` buffered records from the start of the file, as a parser splits them. Everything after
    /// the first error is one record.
    pub(super) fn sample_records(&self, max: usize, parser: &mut dyn Parser) -> Vec<&[u8]> {
        let mut records = Vec::new();
        let mut rest = self.head();
        while !rest.is_empty() && records.len() < max {
            match parser.cut(rest) {
                Ok(length) if length <= rest.len() => {
                    let (record, behind) = rest.split_at(length);
                    records.push(record);
                    rest = behind;
                }
                Ok(_) if !self.ended => break,
                _ => {
                    records.push(rest);
                    break;
                }
            }
        }
        records
    }

    /// Returns at most `max` buffered lines from the start of the file. Must be called before any frame is read.
    pub(super) fn sample_lines(&self, max: usize) -> Vec<&[u8]> {
        let mut lines: Vec<&[u8]> = self.head().split(|byte| *byte == b'\n').take(max.saturating_add(1)).collect();
        // The last line may be incomplete, or be the empty rest after the last line ending.
        let is_cut = lines.len() > max || !self.ended || self.input.is_cut();
        if lines.len() > 1 && (is_cut || lines.last().is_some_and(|line| line.is_empty())) {
            lines.pop();
        }
        lines.into_iter().map(without_return).collect()
    }

    /// Returns `true` if this frame is the last line of the file, and has no line ending.
    pub(super) fn is_unterminated(&self, frame: &Frame) -> bool {
        self.ended && frame.range.end == self.filled.end
    }

    /// Returns the next line, or `None` at the end. Omits the line in which compressed data are truncated.
    #[inline]
    pub(super) fn next_line(&mut self) -> Result<Option<Frame>, SourceError> {
        loop {
            let Range { start, end } = self.filled;
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[start..end]) {
                self.filled.start += length + 1;
                return Ok(Some(self.line(start..start + length)));
            }
            if self.ended {
                self.filled.start = end;
                return Ok((start < end && !self.input.is_cut()).then(|| self.line(start..end)));
            }
            if end - start > LONGEST {
                return self.pass_over_long_line().map(Some);
            }
            self.refill()?;
        }
    }

    /// Returns the next binary record, or `None` at the end. Reading ends at an invalid record, because the start of
    /// the next one is unknown.
    #[inline]
    pub(super) fn next_record(&mut self, parser: &mut dyn Parser) -> Result<Option<Frame>, SourceError> {
        loop {
            let Range { start, end } = self.filled;
            if start == end && self.ended {
                return Ok(None);
            }
            let length = match parser.cut(&self.buffer[start..end]) {
                Ok(length) => length.max(1),
                Err(expected) => return Err(self.uncut(expected)),
            };
            let fault = (self.ended && length > end - start).then_some(CUT_OFF);
            if fault.is_some() && self.input.is_cut() {
                return Ok(None);
            }
            if length <= end - start || fault.is_some() {
                let range = start..end.min(start + length);
                self.filled.start = range.end;
                self.number += 1;
                return Ok(Some(Frame { number: self.number, fault, range }));
            }
            assert!(length <= BLOCK, "no format has records that do not fit into a block");
            self.refill()?;
        }
    }

    #[cold]
    fn uncut(&self, expected: Expected) -> SourceError {
        let (name, number) = (self.input.name(), self.number + 1);
        let bytes = shown_bytes(&self.buffer[self.filled.clone()]);
        let what = format!("{bytes}: expected {}; where the next record begins cannot be told", expected.0);
        SourceError(format!("{name}: record {number}: {what}"))
    }

    /// Returns the bytes of the last frame.
    #[inline]
    pub(super) fn bytes(&self, frame: &Frame) -> &[u8] {
        &self.buffer[frame.range.clone()]
    }

    fn line(&mut self, range: Range<usize>) -> Frame {
        self.number += 1;
        let fault = (range.len() > LONGEST).then_some(TOO_LONG);
        let return_length = usize::from(!range.is_empty() && self.buffer[range.end - 1] == b'\r');
        Frame { number: self.number, fault, range: range.start..range.end - return_length }
    }

    /// Moves the rest of the data to the front of the buffer, and reads more.
    fn refill(&mut self) -> Result<(), SourceError> {
        self.buffer.copy_within(self.filled.clone(), 0);
        self.filled = 0..self.filled.len();
        let length = self.input.read(&mut self.buffer[self.filled.end..])?;
        self.filled.end += length;
        self.ended = length == 0;
        Ok(())
    }

    /// Keeps the start of a line that is too long, and skips to its end.
    #[cold]
    fn pass_over_long_line(&mut self) -> Result<Frame, SourceError> {
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

/// Formats a line for messages: truncated, and as printable text in one line.
pub(super) fn shown(line: &[u8]) -> String {
    let cut = &line[..line.len().min(SHOWN)];
    let mut text = String::new();
    for c in String::from_utf8_lossy(cut).chars() {
        if c.is_control() && c != '\t' { text.extend(c.escape_default()) } else { text.push(c) }
    }
    if cut.len() < line.len() { format!("`{text}...`") } else { format!("`{text}`") }
}

/// Formats a binary record for messages: in hexadecimal, truncated.
pub(super) fn shown_bytes(record: &[u8]) -> String {
    let words: Vec<String> = record.iter().take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect();
    let more = if record.len() > SHOWN_BYTES { " ..." } else { "" };
    format!("`{}{more}`", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn lines_of(bytes: &[u8]) -> Frames {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        Frames::new(Input::open(file.path(), "trace".to_owned(), &Default::default()).unwrap()).unwrap()
    }

    fn all(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut lines = lines_of(bytes);
        let mut all = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            all.push((line.number, lines.bytes(&line).to_vec()));
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
    fn block_boundaries_do_not_matter() {
        let text: Vec<u8> = (0..200_000_u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let read = all(&text);
        assert_eq!(read.len(), 200_000);
        assert!(read.iter().enumerate().all(|(n, (_, line))| *line == n.to_string().into_bytes()));
    }

    #[test]
    fn long_lines_are_skipped_in_constant_memory() {
        for length in [LONGEST + 1, BLOCK, 3 * BLOCK, 3 * BLOCK + 17] {
            for end in ["\n", "\nafter\n"] {
                let mut lines = lines_of(format!("before\n{}{end}", "x".repeat(length)).as_bytes());
                assert!(lines.next_line().unwrap().unwrap().fault.is_none());
                let long = lines.next_line().unwrap().unwrap();
                assert!(long.fault.is_some() && lines.bytes(&long).starts_with(b"xxx"), "{length}");
                let after = lines.next_line().unwrap().map(|line| lines.bytes(&line).to_vec());
                assert_eq!(after, (end.len() > 1).then(|| b"after".to_vec()), "{length}");
                assert_eq!(lines.buffer.len(), BLOCK);
            }
        }
        let mut longest = lines_of(&vec![b'x'; LONGEST]);
        assert!(longest.next_line().unwrap().unwrap().fault.is_none());
    }

    #[test]
    fn samples_hold_whole_lines_only() {
        assert_eq!(lines_of(b"a\nb\r\nc").sample_lines(9), [b"a", b"b", b"c"]);
        assert_eq!(lines_of(b"a\nb\nc\n").sample_lines(9), [b"a", b"b", b"c"]);
        assert_eq!(lines_of(b"a\nb\nc\n").sample_lines(2), [b"a", b"b"]);
        assert_eq!(lines_of(b"a").sample_lines(2), [b"a"]);
        let many = lines_of(&b"0123456789\n".repeat(BLOCK));
        assert!(many.sample_lines(BLOCK).iter().all(|line| line == b"0123456789"));
    }

    #[test]
    fn messages_show_any_bytes() {
        assert_eq!(shown(b"a,b"), "`a,b`");
        assert_eq!(shown(b"\xff\x00\n"), "`\u{fffd}\\u{0}\\n`");
        let long = shown("é".repeat(100).as_bytes());
        assert!(long.ends_with("...`") && long.len() < 200);
    }

    /// Records with a length byte followed by that number of bytes. A length of 0 is invalid.
    struct Counted;

    impl Parser for Counted {
        fn cut(&mut self, bytes: &[u8]) -> Result<usize, Expected> {
            match bytes.first() {
                Some(0) => Err(Expected("a length")),
                Some(length) => Ok(1 + usize::from(*length)),
                None => Ok(1),
            }
        }

        fn parse(&mut self, _: &[u8]) -> Result<Option<super::super::record::Record>, Expected> {
            Ok(None)
        }
    }

    #[test]
    fn records_are_cut_across_blocks() {
        let bytes = [3, 1, 2, 3, 1, 9].repeat(BLOCK / 4);
        let mut frames = lines_of(&bytes);
        assert_eq!(frames.sample_records(3, &mut Counted), [&[3, 1, 2, 3][..], &[1, 9], &[3, 1, 2, 3]]);
        let mut lengths = [0, 0];
        while let Some(frame) = frames.next_record(&mut Counted).unwrap() {
            lengths[usize::from(frames.bytes(&frame).len() == 4)] += 1;
            assert!(frame.fault.is_none());
        }
        assert_eq!(lengths, [BLOCK / 4, BLOCK / 4]);
    }

    #[test]
    fn records_may_begin_like_a_byte_order_mark() {
        assert_eq!(lines_of(b"\xef\xbb\xbfa,1").head(), b"a,1");
        assert_eq!(lines_of(b"\xef\xbb\xbf\0\0\x02").head(), b"\xef\xbb\xbf\0\0\x02");
    }

    #[test]
    fn truncated_and_invalid_records_are_reported() {
        let mut frames = lines_of(&[1, 9, 4, 1]);
        assert!(frames.next_record(&mut Counted).unwrap().unwrap().fault.is_none());
        let last = frames.next_record(&mut Counted).unwrap().unwrap();
        assert_eq!((last.number, last.fault, frames.bytes(&last)), (2, Some(CUT_OFF), &[4, 1][..]));
        assert!(frames.next_record(&mut Counted).unwrap().is_none());
        let error = lines_of(&[0, 7]).next_record(&mut Counted).err().unwrap().0;
        assert!(error.contains("record 1: `00 07`: expected a length"), "{error}");
        let long = shown_bytes(&[255; 100]);
        assert!(long.starts_with("`ff ff") && long.ends_with("ff ...`"), "{long}");
    }
}
