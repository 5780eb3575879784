//! Which format a trace has, told by its first lines or records.

use std::fmt;

use super::frames::{Frames, shown, shown_bytes};
use super::records::holds_nothing;
use super::{FORMATS, Format, Framing, TraceOptions};
use crate::workload::SourceError;

/// Lines or records that are looked at.
const SAMPLE: usize = 200;

/// How sure the format of a trace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// The user named it.
    Given,
    /// It alone reads the first lines, all of them.
    Certain,
    /// It reads more of the first lines than any other format, but not all.
    Likely,
    /// Other formats read the first lines as well.
    Ambiguous,
}

/// The format of a trace, and how it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Detected {
    /// The format that is used.
    pub format: &'static Format,
    /// How sure it is.
    pub confidence: Confidence,
    /// The other formats that read the first lines as well, with what they would take the times for.
    pub alternatives: Vec<&'static Format>,
}

impl fmt::Display for Detected {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = self.format.name;
        match self.confidence {
            Confidence::Given => write!(f, "{name} (given)"),
            Confidence::Certain => write!(f, "{name} (certain: no other format fits)"),
            Confidence::Likely => write!(f, "{name} (likely: not all of its beginning fits)"),
            Confidence::Ambiguous => {
                let others: Vec<String> =
                    self.alternatives.iter().map(|other| format!("{} in {}", other.name, other.unit)).collect();
                write!(f, "{name} (ambiguous: {} would fit as well; --format chooses)", others.join(", "))
            }
        }
    }
}

/// Options must be of use for the format.
pub(super) fn check(format: &'static Format, options: &TraceOptions) -> Result<(), String> {
    if options.action.is_some() && !format.has_events {
        let names: Vec<&str> = FORMATS.iter().filter(|format| format.has_events).map(|format| format.name).collect();
        return Err(format!(
            "`--action` is for traces of events ({}), and not for `{}`",
            names.join(", "),
            format.name
        ));
    }
    super::delimited::check(format, options)
}

/// The format of a trace: the one asked for, or a binary one that most of the first records are of, or the text format
/// that reads the most of the first lines; of several such, the first in [`FORMATS`].
pub(super) fn detect(frames: &Frames, options: &TraceOptions) -> Result<Detected, SourceError> {
    let name = frames.input().name();
    let asked = options.format.or_else(|| options.columns.as_ref().map(|_| &super::delimited::FORMAT));
    let is_binary = asked.is_some_and(|format| format.framing == Framing::Records);
    let lines = content(frames);
    if frames.head().is_empty() || (lines.is_empty() && !is_binary) {
        return Err(SourceError(format!("{name}: the trace holds no request")));
    }
    if let Some(format) = asked {
        return Ok(Detected { format, confidence: Confidence::Given, alternatives: Vec::new() });
    }
    if let Some(binary) = detect_binary(frames, options) {
        return Ok(binary);
    }
    let text = FORMATS.iter().filter(|format| format.framing == Framing::Lines);
    let fits: Vec<(&'static Format, usize)> =
        text.map(|format| (*format, readable(format, &lines, frames.head(), options))).collect();
    let best = fits.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let mut equal = fits.iter().filter(|(_, count)| *count == best).map(|(format, _)| *format);
    match equal.next() {
        Some(format) if best > 0 => {
            let alternatives: Vec<&'static Format> = equal.collect();
            let confidence = match (alternatives.is_empty(), best == lines.len()) {
                (false, _) => Confidence::Ambiguous,
                (true, false) => Confidence::Likely,
                (true, true) => Confidence::Certain,
            };
            Ok(Detected { format, confidence, alternatives })
        }
        _ => Err(none_fits(name, lines[0], options)),
    }
}

/// The binary format that more than half of the first records are of, the very first among them. Such a record has a
/// magic number, or fields that are never those of a line of text, so no other format comes into question.
fn detect_binary(frames: &Frames, options: &TraceOptions) -> Option<Detected> {
    let binary = FORMATS.iter().filter(|format| format.framing == Framing::Records);
    for format in binary {
        let mut parser = format.parser(options);
        parser.begin(frames.head());
        let records = frames.sample_records(SAMPLE, &mut *parser);
        let fits: Vec<bool> = records.iter().map(|record| parser.parse(record).is_ok()).collect();
        let count = fits.iter().filter(|fits| **fits).count();
        if fits.first() == Some(&true) && 2 * count > fits.len() {
            let confidence = if count == fits.len() { Confidence::Certain } else { Confidence::Likely };
            return Some(Detected { format, confidence, alternatives: Vec::new() });
        }
    }
    None
}

/// The first lines that should hold a request.
fn content(frames: &Frames) -> Vec<&[u8]> {
    let mut content: Vec<&[u8]> = Vec::new();
    for line in frames.sample_lines(SAMPLE) {
        if !holds_nothing(line, content.is_empty()) {
            content.push(line);
        }
    }
    content
}

/// How many of the lines the format reads.
fn readable(format: &Format, lines: &[&[u8]], head: &[u8], options: &TraceOptions) -> usize {
    let mut parser = format.parser(options);
    parser.begin(head);
    lines.iter().filter(|line| (format.looks)(line) && parser.parse(line).is_ok()).count()
}

#[cold]
fn none_fits(name: &str, first: &[u8], options: &TraceOptions) -> SourceError {
    let is_text = first.iter().all(|byte| !byte.is_ascii_control() || *byte == b'\t');
    let first_line = if is_text { shown(first) } else { shown_bytes(first) };
    let mut text = format!("{name}: no known trace format fits. The first line is {first_line}; tried:");
    for format in FORMATS.iter().filter(|format| format.name != super::delimited::FORMAT.name) {
        let mut parser = format.parser(options);
        let expected = match format.framing {
            Framing::Lines => parser.parse(first).err(),
            Framing::Records => parser.cut(first).err().or_else(|| parser.parse(first).err()),
        };
        let expected = expected.map_or("another layout", |expected| expected.0);
        text.push_str(&format!("\n  {} ({}): expected {expected}", format.name, format.columns));
    }
    text.push_str("\n`--format delimited:...` or `--columns FILE` describes the columns of any other text format");
    SourceError(text)
}

#[cfg(test)]
mod tests {
    use super::super::input::Input;
    use super::*;
    use std::io::Write;

    fn detected(text: &str) -> Result<String, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let frames = Frames::new(Input::open(file.path()).unwrap()).unwrap();
        detect(&frames, &TraceOptions::default()).map(|detected| detected.to_string()).map_err(|error| error.0)
    }

    #[test]
    fn formats_are_told_apart() {
        let certain = |text: &str| detected(text).unwrap().split(" (certain").next().unwrap().to_owned();
        assert_eq!(certain("0,20941264,8192,W,0.551706\n"), "spc");
        assert_eq!(certain("128166372003061629,hm,1,Read,383496192,32768,413\n"), "msr");
        assert_eq!(certain("5265.313 0 6357144 8 0\n"), "disksim");
        assert_eq!(certain("13\t30\t0\t5\t1\n"), "disksim");
        assert_eq!(certain("\r\n# a comment\r\nAsu,Lba,Size,Opcode,Time\r\n0,1,512,r,1"), "spc");
    }

    #[test]
    fn ambiguity_is_said() {
        let text = detected("0 0 303567 7 0\n0 1 55590 6 1\n").unwrap();
        assert!(text.starts_with("ssdsim (ambiguous: mqsim in ns, disksim in ms would fit"), "{text}");
        let text = detected("0 0 303567 7 0\n0 1 55590 6 5\n").unwrap();
        assert!(text.starts_with("mqsim (ambiguous: disksim in ms"), "{text}");
        let text = detected("0,1,512,R,0\n0,1,512,R,1\n?\n").unwrap();
        assert!(text.starts_with("spc (likely"), "{text}");
    }

    #[test]
    fn failure_lists_what_was_tried() {
        let error = detected("hello, world 1\n").unwrap_err();
        for format in FORMATS.iter().filter(|format| format.name != "delimited") {
            assert!(error.contains(&format!("\n  {} (", format.name)), "{error}");
        }
        assert!(error.contains("`hello, world 1`"), "{error}");
        for empty in ["", "\n\n", "# nothing\n"] {
            assert!(detected(empty).unwrap_err().contains("holds no request"));
        }
    }
}
