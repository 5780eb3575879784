//! Which format a trace has, told by its first lines.

use std::fmt;

use super::lines::{Lines, shown};
use super::records::holds_nothing;
use super::{FORMATS, Format};
use crate::workload::SourceError;

/// Lines that are looked at.
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
            Confidence::Likely => write!(f, "{name} (likely: not all of the first lines fit)"),
            Confidence::Ambiguous => {
                let others: Vec<String> =
                    self.alternatives.iter().map(|other| format!("{} in {}", other.name, other.unit)).collect();
                write!(f, "{name} (ambiguous: {} would fit as well; --format chooses)", others.join(", "))
            }
        }
    }
}

/// The format of a trace: the one asked for, or the one that reads the most of the first lines; of several such, the
/// first in [`FORMATS`].
pub(super) fn detect(lines: &Lines, asked: Option<&'static Format>) -> Result<Detected, SourceError> {
    let name = lines.input().name();
    let sample = content(lines);
    if sample.is_empty() {
        return Err(SourceError(format!("{name}: the trace holds no request")));
    }
    if let Some(format) = asked {
        return Ok(Detected { format, confidence: Confidence::Given, alternatives: Vec::new() });
    }
    let fits: Vec<(&'static Format, usize)> =
        FORMATS.iter().map(|format| (*format, readable(format, &sample))).collect();
    let best = fits.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let mut equal = fits.iter().filter(|(_, count)| *count == best).map(|(format, _)| *format);
    match equal.next() {
        Some(format) if best > 0 => {
            let alternatives: Vec<&'static Format> = equal.collect();
            let confidence = match (alternatives.is_empty(), best == sample.len()) {
                (false, _) => Confidence::Ambiguous,
                (true, false) => Confidence::Likely,
                (true, true) => Confidence::Certain,
            };
            Ok(Detected { format, confidence, alternatives })
        }
        _ => Err(none_fits(name, sample[0])),
    }
}

/// The first lines that should hold a request.
fn content(lines: &Lines) -> Vec<&[u8]> {
    let mut content: Vec<&[u8]> = Vec::new();
    for line in lines.sample(SAMPLE) {
        if !holds_nothing(line, content.is_empty()) {
            content.push(line);
        }
    }
    content
}

/// How many of the lines the format reads.
fn readable(format: &Format, sample: &[&[u8]]) -> usize {
    let mut parser = (format.parser)();
    sample.iter().filter(|line| (format.looks)(line) && parser.parse(line).is_ok()).count()
}

#[cold]
fn none_fits(name: &str, first: &[u8]) -> SourceError {
    let mut text = format!("{name}: no known trace format fits. The first line is {}; tried:", shown(first));
    for format in FORMATS {
        let expected = (format.parser)().parse(first).err().map_or("another layout", |expected| expected.0);
        text.push_str(&format!("\n  {} ({}): expected {expected}", format.name, format.columns));
    }
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
        let lines = Lines::new(Input::open(file.path()).unwrap()).unwrap();
        detect(&lines, None).map(|detected| detected.to_string()).map_err(|error| error.0)
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
        for format in FORMATS {
            assert!(error.contains(&format!("\n  {} (", format.name)), "{error}");
        }
        assert!(error.contains("`hello, world 1`"), "{error}");
        for empty in ["", "\n\n", "# nothing\n"] {
            assert!(detected(empty).unwrap_err().contains("holds no request"));
        }
    }
}
