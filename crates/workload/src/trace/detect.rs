//! Detection of the format of a trace from its first lines or records.

use std::fmt;
use std::ops::Range;

use super::FORMATS;
use super::biosnoop;
use super::blank::holds_nothing;
use super::format::{Format, Framing};
use super::frames::{Frames, shown, shown_bytes};
use super::options::TraceOptions;
use crate::sim::source::SourceError;

/// Number of records, or of lines that should contain a request, to check.
const SAMPLE: usize = 200;

/// Formats that are never detected, because other formats read their lines as well, with other units. They are reported
/// as alternatives.
const LOOK_ALIKES: [&Format; 1] = [&super::flashsim::FORMAT];

/// Confidence in the format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// The user selected the format.
    Given,
    /// Only this format reads the first lines, and it reads all of them.
    Certain,
    /// The format reads more of the first lines than any other, but not all.
    Likely,
    /// Other formats read the first lines as well.
    Ambiguous,
    /// No other format reads the first lines, but a unit seems to be wrong.
    Doubtful,
}

/// The format of a trace, and how it was detected.
#[derive(Clone, Debug, PartialEq)]
pub struct Detected {
    /// The format.
    pub format: &'static Format,
    /// Confidence in the format.
    pub confidence: Confidence,
    /// Other formats that read the first lines as well. They may use other time units.
    pub alternatives: Vec<&'static Format>,
}

impl Detected {
    /// Returns the result with less confidence if `is_odd`, because a unit seems to be wrong.
    pub(super) fn in_doubt(self, is_odd: bool) -> Detected {
        match self.confidence {
            Confidence::Certain | Confidence::Likely if is_odd => Detected { confidence: Confidence::Doubtful, ..self },
            _ => self,
        }
    }
}

impl fmt::Display for Detected {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = self.format.name;
        match self.confidence {
            Confidence::Given => write!(f, "{name} (given)"),
            Confidence::Certain => write!(f, "{name} (certain: no other format fits)"),
            Confidence::Likely => write!(f, "{name} (likely: not all of its beginning fits)"),
            Confidence::Doubtful => write!(f, "{name} (doubtful: what is read so is implausible, as a warning says)"),
            Confidence::Ambiguous => {
                let others: Vec<String> =
                    self.alternatives.iter().map(|other| format!("{} in {}", other.name, other.unit)).collect();
                write!(f, "{name} (ambiguous: {} would fit as well; --format chooses)", others.join(", "))
            }
        }
    }
}

/// Checks that the options apply to the format.
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

/// Detects the format of a trace: the requested one, or a binary format that matches most of the first records, or the
/// text format that reads most of the first lines. If there are several, returns the first in [`FORMATS`].
pub(super) fn detect(frames: &Frames, options: &TraceOptions) -> Result<Detected, SourceError> {
    let name = frames.input().name();
    let requested = options.format.or_else(|| options.columns.as_ref().map(|_| &super::delimited::FORMAT));
    let is_binary = requested.is_some_and(|format| format.framing == Framing::Records);
    let may_be_biosnoop = requested.is_none_or(|format| format.name == biosnoop::FORMAT.name);
    if may_be_biosnoop && frames.sample_lines(usize::MAX).into_iter().any(biosnoop::is_header_of_bpftrace) {
        return Err(of_bpftrace(name));
    }
    let lines = content(frames);
    let is_named_and_long = requested.is_some() && !frames.has_ended();
    if frames.head().is_empty() || (lines.is_empty() && !is_binary && !is_named_and_long) {
        return Err(nothing_in(frames));
    }
    if let Some(format) = requested {
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
            let mut alternatives: Vec<&'static Format> = equal.collect();
            let reads = |format: &&Format| parsed(format, &lines, frames.head(), options, |_| true) == best;
            alternatives.extend(LOOK_ALIKES.into_iter().filter(reads));
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

/// Returns the binary format that matches more than half of the first records, including the very first. Such records
/// have a magic number, or fields that never occur in a line of text, so no other format is possible.
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

/// Returns the first lines that should contain a request.
fn content(frames: &Frames) -> Vec<&[u8]> {
    let mut content: Vec<&[u8]> = Vec::new();
    for line in frames.sample_lines(usize::MAX) {
        if content.len() == SAMPLE {
            break;
        }
        if !holds_nothing(line, content.is_empty()) {
            content.push(line);
        }
    }
    content
}

/// Returns the number of lines that match the format.
fn readable(format: &Format, lines: &[&[u8]], head: &[u8], options: &TraceOptions) -> usize {
    parsed(format, lines, head, options, format.looks)
}

/// Returns the number of lines that pass `looks` and that the format can parse.
fn parsed(
    format: &Format,
    lines: &[&[u8]],
    head: &[u8],
    options: &TraceOptions,
    looks: impl Fn(&[u8]) -> bool,
) -> usize {
    let mut parser = format.parser(options);
    parser.begin(head);
    lines.iter().filter(|line| looks(line) && parser.parse(line).is_ok()).count()
}

/// Returns the error for a trace without requests: it is empty, or its only line was skipped as a header.
#[cold]
fn nothing_in(frames: &Frames) -> SourceError {
    let name = frames.input().name();
    let first = frames.sample_lines(usize::MAX).into_iter().find(|line| !holds_nothing(line, false));
    SourceError(match first {
        None if !frames.has_ended() => format!(
            "{name}: cannot detect the format: the first {} KiB are empty lines and comments; name it with `--format`",
            frames.head().len() >> 10
        ),
        _ if frames.head().is_empty() => format!("{name}: the trace holds no request: the file is empty"),
        None => format!("{name}: the trace holds no request: there are empty lines and comments only"),
        Some(line) => format!(
            "{name}: the trace holds no request: {} is all there is, and no field of it begins like a number, as in the \
             head of a table. If it is no trace, but a job, say what it does with rw=...",
            shown(line)
        ),
    })
}

/// Returns the error for the output of the biosnoop of bpftrace.
#[cold]
fn of_bpftrace(name: &str) -> SourceError {
    SourceError(format!(
        "{name}: the biosnoop of bpftrace prints neither addresses nor sizes, so its requests cannot be simulated; \
         record them with blktrace, or with the biosnoop of BCC or libbpf-tools"
    ))
}

/// Values of all kinds that a column may have.
const PROBES: [&[u8]; 6] = [b"0", b"1", b"8", b"R", b"Read", b"0.5"];
/// Maximum number of formats to suggest for a line that almost matches them.
const NEAREST: usize = 3;

/// A format that a line would match, except for one field.
struct Near<'a> {
    format: &'static Format,
    /// Position of the field, starting at 1, and its value.
    column: usize,
    value: &'a [u8],
    expected: &'static str,
}

/// Returns the invalid field of the line in this format, if there is exactly one.
fn near<'a>(format: &'static Format, line: &'a [u8], options: &TraceOptions) -> Option<Near<'a>> {
    let reads = |line: &[u8]| (format.looks)(line) && format.parser(options).parse(line).is_ok();
    let expected = format.parser(options).parse(line).err()?.0;
    let separators: &[u8] = if line.contains(&b',') { b"," } else { b" \t" };
    let mut fields = Vec::new();
    let mut start = 0;
    for end in (0..=line.len()).filter(|end| line.get(*end).is_none_or(|byte| separators.contains(byte))) {
        if end > start || separators == b"," {
            fields.push(start..end);
        }
        start = end + 1;
    }
    // A line with few fields may match anything if one is changed. No format has as many fields as the upper limit.
    if !(4..=32).contains(&fields.len()) {
        return None;
    }
    let repaired = |field: &Range<usize>, probe: &[u8]| [&line[..field.start], probe, &line[field.end..]].concat();
    let column = fields.iter().position(|field| PROBES.iter().any(|probe| reads(&repaired(field, probe))))?;
    Some(Near { format, column: column + 1, value: &line[fields[column].clone()], expected })
}

#[cold]
fn none_fits(name: &str, first: &[u8], options: &TraceOptions) -> SourceError {
    let is_text = first.iter().all(|byte| !byte.is_ascii_control() || *byte == b'\t');
    let first_line = if is_text { shown(first) } else { shown_bytes(first) };
    let candidates = || FORMATS.iter().copied().filter(|format| format.name != super::delimited::FORMAT.name);
    let lines = candidates().filter(|format| format.framing == Framing::Lines && is_text);
    let nearest: Vec<Near<'_>> = lines.filter_map(|format| near(format, first, options)).take(NEAREST).collect();
    let mut text = format!("{name}: no known trace format fits. The first line with anything in it is {first_line}");
    for Near { format, column, value, expected } in &nearest {
        let value = shown(value);
        text.push_str(&format!(
            "\n  {} ({}) would fit but for column {column}, {value}: expected {expected}",
            format.name, format.columns
        ));
    }
    if nearest.is_empty() {
        let names: Vec<&str> = candidates().map(|format| format.name).collect();
        text.push_str(&format!(
            "\ntried {}; `--format NAME` says what one of them expects, and docs/reference/traces.md has their columns",
            names.join(", ")
        ));
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
        let frames = Frames::new(Input::open(file.path(), "trace".to_owned(), &Default::default()).unwrap()).unwrap();
        detect(&frames, &TraceOptions::default()).map(|detected| detected.to_string()).map_err(|error| error.0)
    }

    #[test]
    fn comments_before_the_first_request_do_not_hide_the_format() {
        let trace = "0,0,4096,R,0\n".repeat(3);
        for lines in [200, 1000] {
            let found = detected(&("#\n".repeat(lines) + &trace));
            assert!(found.as_ref().is_ok_and(|found| found.starts_with("spc")), "{lines}: {found:?}");
        }
        let error = detected(&("# nothing\n".repeat(40_000) + &trace)).unwrap_err();
        assert!(error.contains("name it with `--format`"), "{error}");
    }

    #[test]
    fn formats_are_distinguished() {
        let certain = |text: &str| detected(text).unwrap().split(" (certain").next().unwrap().to_owned();
        assert_eq!(certain("0,20941264,8192,W,0.551706\n"), "spc");
        assert_eq!(certain("128166372003061629,hm,1,Read,383496192,32768,413\n"), "msr");
        assert_eq!(certain("5265.313 0 6357144 8 1b\n"), "disksim");
        assert_eq!(certain("13\t30\t0\t5\t1e\n"), "disksim");
        assert_eq!(certain("\r\n# a comment\r\nAsu,Lba,Size,Opcode,Time\r\n0,1,512,r,1"), "spc");
    }

    #[test]
    fn ambiguity_is_reported() {
        let text = detected("0 0 303567 7 0\n0 1 55590 6 1\n").unwrap();
        assert!(text.starts_with("ssdsim (ambiguous: mqsim in ns, disksim in ms, flashsim in us would fit"), "{text}");
        let text = detected("0 0 303567 7 0\n0 1 55590 6 5\n").unwrap();
        assert!(text.starts_with("mqsim (ambiguous: disksim in ms"), "{text}");
        let text = detected("0,1,512,R,0\n0,1,512,R,1\n?\n").unwrap();
        assert!(text.starts_with("spc (likely"), "{text}");
        // Blocks of 512 B or pages of 4 KiB: the file does not show it.
        for text in ["5265.313 0 6357144 8 0\n", "13\t30\t0\t5\t1\n"] {
            let text = detected(text).unwrap();
            assert!(text.starts_with("disksim (ambiguous: flashsim in us would fit as well"), "{text}");
        }
    }

    #[test]
    fn failure_lists_what_was_tried() {
        let error = detected("hello, world 1\n").unwrap_err();
        assert!(error.contains("`hello, world 1`") && error.contains("tried spc, msr, "), "{error}");
        assert!(error.lines().count() == 3 && error.contains("--format NAME"), "{error}");
        for (empty, why) in [("", "file is empty"), ("\n\n", "comments only"), ("# nothing\n", "comments only")] {
            let error = detected(empty).unwrap_err();
            assert!(error.contains("holds no request") && error.contains(why), "{error}");
        }
        let error = detected("\ngarbage\n").unwrap_err();
        assert!(error.contains("holds no request: `garbage` is all there is"), "{error}");
    }

    #[test]
    fn the_biosnoop_of_bpftrace_is_refused() {
        let outputs = [
            "Attaching 3 probes...\nTIME(ms)     COMM             PID    LAT(ms)\n\
             611          bash             4179        10\n",
            "TIME(ms)     DISK    COMM             PID    LAT(ms)\n\
             2966         nvme0n1 jbd2/nvme0n1-8   615          0\n",
            "Attached 4 probes\nTIME(ms)     DISK ID        COMM             PID    LAT(ms)\n             MAJOR MINOR\n\
             611          259   0        my program       4179        10\n",
        ];
        for output in outputs {
            let error = detected(output).unwrap_err();
            assert!(error.contains("neither addresses nor sizes") && error.contains("blktrace"), "{error}");
        }
        // A line like its header is a header of other columns, too.
        assert!(detected("TIME(ms) COMM PID LAT(ms) SECTOR\n0,1,512,R,1\n").unwrap().starts_with("spc"));
    }

    #[test]
    fn the_nearest_format_is_suggested_with_the_column() {
        let error = detected("128166372003061629,hm,1,Raed,383496192,32768,413\n").unwrap_err();
        assert!(error.contains("\n  msr (time,host,disk"), "{error}");
        assert!(error.contains("would fit but for column 4, `Raed`: expected the operation, Read or Write"), "{error}");
        assert_eq!(error.lines().count(), 3, "{error}");
        let error = detected("0,20941264,0,W,0.551706\n").unwrap_err();
        assert!(error.contains("\n  spc (") && error.contains("but for column 3, `0`: expected a length"), "{error}");
        let error = detected("5265.313 0 6357144 eight 0\n").unwrap_err();
        assert!(error.contains("\n  disksim (") && error.contains("but for column 4, `eight`"), "{error}");
    }
}
