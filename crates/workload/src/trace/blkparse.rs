//! Default text output of `blkparse`.
//!
//! `major,minor cpu sequence seconds.ns pid action RWBS sector + sectors [process]` (`blkparse_fmt.c`,
//! `process_default`, and the manual page of blkparse). One event per request is used: see [`Action`]. Other events,
//! messages and the summary at the end contain no requests. Output that was changed by `-f`, `-t` or `-q` is not
//! supported.

use super::events::{Action, Events, Requested};
use super::fields::Expected;
use super::fields::Fields;
use super::format::{Format, Framing, Parser};
use super::options::TraceOptions;
use super::record::{DeviceName, Record};
use super::time_unit::TimeUnit;
use super::writer::{Outgoing, WriteRequest, Writer};
use crate::sim::request::Operation;

pub(super) static FORMAT: Format = Format {
    name: "blkparse",
    title: "blkparse text",
    columns: "major,minor cpu sequence time pid action RWBS sector + sectors [process]",
    unit: TimeUnit::S,
    framing: Framing::Lines,
    has_events: true,
    looks: |_| true,
    parser: |options| Box::new(Blkparse::new(options)),
    writer: Some(Writer {
        operations: &[Operation::Read, Operation::Write, Operation::Trim, Operation::Flush],
        resolution: TimeUnit::Ns,
        ..Writer::of(|| Box::<Numbered>::default())
    }),
};

/// Starts of the lines of the summary, after blanks (`show_stats` in blkparse.c).
const SUMMARY: [&[u8]; 14] = [
    b"CPU",
    b"Total (",
    b"Throughput (",
    b"Events (",
    b"Skips:",
    b"Reads ",
    b"Writes ",
    b"Read ",
    b"Write ",
    b"IO unplugs:",
    b"PC ",
    b"Input file ",
    b"Trace started at ",
    b"Discards ",
];

/// Number of bits for the minor number in a Linux device number.
pub(super) const MINOR_BITS: u32 = 20;

/// Returns the name of a device for its Linux device number.
pub(super) fn device_name(device: u32) -> DeviceName {
    DeviceName::MajorMinor(device >> MINOR_BITS, device & ((1 << MINOR_BITS) - 1))
}

struct Blkparse {
    events: Events,
}

/// The part of an event that does not depend on its kind.
struct Event<'a> {
    record: Record,
    action: &'a [u8],
    requested: Requested,
    rest: Fields<'a>,
}

fn event(line: &[u8]) -> Result<Event<'_>, Expected> {
    const COLUMNS: &str = "an event: major,minor cpu sequence time pid action RWBS";
    let number = |fields: &mut Fields| fields.integer(COLUMNS);
    let mut fields = Fields(line);
    fields.blanks();
    let major = number(&mut fields)?;
    fields.comma()?;
    let minor = number(&mut fields)?;
    if major >= 1 << (32 - MINOR_BITS) || minor >= 1 << MINOR_BITS {
        return Err(Expected("a major number below 4096 and a minor number below 1048576"));
    }
    fields.space(COLUMNS)?;
    number(&mut fields)?;
    fields.space(COLUMNS)?;
    number(&mut fields)?;
    fields.space(COLUMNS)?;
    let stamp = fields.decimal("the time, a decimal number")?;
    fields.space(COLUMNS)?;
    number(&mut fields)?;
    fields.space(COLUMNS)?;
    let action = fields.word();
    if !(1..=2).contains(&action.len()) || !action.iter().all(u8::is_ascii_alphabetic) {
        return Err(Expected("the action, a letter or two"));
    }
    fields.space(COLUMNS)?;
    let requested =
        Requested::of_letters(fields.word()).ok_or(Expected("what is asked for, RWBS letters like R, WS or FN"))?;
    let device = (major << MINOR_BITS | minor) as u32;
    let record = Record::in_sectors(stamp, device, Operation::Flush, 0, 0)?;
    Ok(Event { record, action, requested, rest: fields })
}

impl Blkparse {
    fn new(options: &TraceOptions) -> Blkparse {
        Blkparse { events: Events::new(options.action) }
    }
}

impl Parser for Blkparse {
    fn begin(&mut self, head: &[u8]) {
        let lines = head.split(|byte| *byte == b'\n');
        let actions = lines.filter_map(|line| event(line).ok()).filter_map(|event| Action::of_letter(event.action));
        self.events.settle(&actions.collect::<Vec<Action>>());
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, Expected> {
        let Event { record, action, requested, rest: mut fields } = match event(line) {
            Ok(event) => event,
            Err(_) if SUMMARY.iter().any(|start| line.trim_ascii_start().starts_with(start)) => return Ok(None),
            Err(expected) => return Err(expected),
        };
        if !Action::of_letter(action).is_some_and(|action| self.events.wants(action)) {
            return Ok(None);
        }
        fields.blanks();
        let (mut lba, mut sectors) = (0, 0);
        if fields.0.first().is_some_and(u8::is_ascii_digit) {
            lba = fields.integer("the first sector, a whole number")?;
            fields.blanks();
            let Some((b'+', rest)) = fields.0.split_first() else {
                self.events.leave_out_passthrough();
                return Ok(None);
            };
            fields.0 = rest;
            fields.blanks();
            sectors = fields.integer("the length in sectors, a whole number")?;
        }
        if !matches!(fields.0.first(), None | Some(b' ' | b'\t' | b'[' | b'(')) {
            return Err(Expected("sector + sectors [process]"));
        }
        let Some(operation) = self.events.operation(requested, sectors) else { return Ok(None) };
        let (lba, sectors) = if operation == Operation::Flush { (0, 0) } else { (lba, sectors) };
        Record::in_sectors(record.stamp, record.device, operation, lba, sectors).map(Some)
    }

    fn device(&self, device: u32) -> DeviceName {
        device_name(device)
    }

    fn warnings(&self) -> Vec<String> {
        self.events.warnings()
    }
}

/// Writes the issue event of each request. Devices without a major number get 8, the major number of SCSI disks.
#[derive(Default)]
struct Numbered {
    sequence: u64,
}

impl WriteRequest for Numbered {
    fn write(&mut self, out: &mut Vec<u8>, request: &Outgoing) {
        self.sequence += 1;
        let (major, minor) = match request.name {
            DeviceName::MajorMinor(major, minor) => (*major, u64::from(*minor)),
            _ => (8, request.number),
        };
        let letters = match request.operation {
            Operation::Read => "R",
            Operation::Trim => "D",
            Operation::Flush => "FN",
            Operation::Write | Operation::WriteZeroes => "W",
        };
        let sequence = self.sequence;
        let time = request.seconds();
        let range = match request.operation {
            Operation::Flush => String::new(),
            _ => format!("{} + {} ", request.lba, request.sectors),
        };
        let line = format!("{major:3},{minor:<3} 0 {sequence:8} {time:>14} 1 D {letters:>3} {range}[floatgate]\n");
        out.extend_from_slice(line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parser(action: Option<Action>) -> Blkparse {
        Blkparse::new(&TraceOptions { action, ..TraceOptions::default() })
    }

    #[test]
    fn reads_the_events_of_one_action() {
        let mut parser = parser(None);
        let record = parser.parse(b"  8,16   3        5     0.000026421  3645  D   R 4938888 + 256 [java]");
        let record = record.unwrap().unwrap();
        assert_eq!((record.lba, record.sectors, record.operation), (4_938_888, 256, Operation::Read));
        assert_eq!(record.stamp.scaled(12), 26_421_000);
        assert_eq!(parser.device(record.device).to_string(), "8:16");
        for other in [
            "  8,16   3        4     0.000011950  3645  I   R 4938888 + 256 [java]",
            "  8,0    3        1     0.000000000   697  P   N [kjournald]",
            "  8,0    3        1     0.000000000   697 UT   N [kjournald] 1",
            "  8,0    0        0     0.000000000     0  m   N cfq3611 insert_request",
            "  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,3) 61",
            "CPU0 (8,16):",
            " Reads Queued:           0,        0KiB\t Writes Queued:           0,        0KiB",
            "Throughput (R/W): 0KiB/s / 0KiB/s",
        ] {
            assert_eq!(parser.parse(other.as_bytes()), Ok(None), "{other}");
        }
        assert_eq!(parser.warnings(), Vec::<String>::new());
    }

    #[test]
    fn flushes_discards_and_commands_are_distinguished() {
        let mut parser = parser(None);
        let mut operation = |rest: &str| {
            let record = parser.parse(format!("8,0 1 1 1.5 9 D {rest}").as_bytes()).unwrap()?;
            Some((record.operation, record.lba, record.sectors))
        };
        assert_eq!(operation("DS 64 + 8 [fstrim]"), Some((Operation::Trim, 64, 8)));
        assert_eq!(operation("FN [kworker]"), Some((Operation::Flush, 0, 0)));
        assert_eq!(operation("FWS 0 + 0 [jbd2]"), Some((Operation::Flush, 0, 0)));
        assert_eq!(operation("WFS 64 + 8 [jbd2]"), Some((Operation::Write, 64, 8)));
        assert_eq!(operation("R 36 (12 00 00) [smartd]"), None);
        assert_eq!(operation("N 64 + 8 [x]"), None);
        let warnings = parser.warnings().join("\n");
        for part in ["passed a command through", "neither read nor wrote", "FUA"] {
            assert!(warnings.contains(part), "{warnings}");
        }
    }

    #[test]
    fn queue_events_are_used_without_issue_events() {
        let mut by_itself = parser(None);
        by_itself.begin(b"8,0 1 1 1.5 9 Q R 64 + 8 [x]\n8,0 1 1 1.5 9 C R 64 + 8 [0]\n");
        assert!(by_itself.parse(b"8,0 1 1 1.5 9 Q R 64 + 8 [x]").unwrap().is_some());
        let mut requested = parser(Some(Action::Complete));
        requested.begin(b"8,0 1 1 1.5 9 Q R 64 + 8 [x]\n");
        assert_eq!(requested.parse(b"8,0 1 1 1.5 9 Q R 64 + 8 [x]"), Ok(None));
        assert!(requested.parse(b"8,0 1 1 1.5 9 C R 64 + 8 [0]").unwrap().is_some());
    }

    #[test]
    fn errors_state_what_was_expected() {
        let expected = |line: &str| parser(None).parse(line.as_bytes()).unwrap_err().0;
        assert!(expected("8,0 1 1 1.5 9 D x 64 + 8").contains("RWBS"));
        assert!(expected("8,0 1 1 x 9 D R 64 + 8").contains("time"));
        assert!(expected("8 0 1 1 1.5 9 D R 64 + 8").contains("comma"));
        assert!(expected("8,0 1 1 1.5 9 D R 64 + x").contains("length"));
        assert!(expected("8,1048576 1 1 1.5 9 D R 64 + 8").contains("minor"));
    }
}
