//! Block events of Linux's tracing as text: `trace` and `trace_pipe` of ftrace, `trace-cmd report`, atrace and
//! systrace, and `perf script`.
//!
//! `task-pid [cpu] flags time: block_rq_issue: major,minor RWBS bytes (command) sector + sectors [process]`, with time
//! in seconds (`include/trace/events/block.h` in Linux). `perf script` writes `block:` before the name of the event.
//! A single event per request is used: `block_rq_issue` (D), or else `block_bio_queue` (Q), `block_rq_insert` (I) or
//! `block_rq_complete` (C). Other events contain no requests.

use super::blkparse::{MINOR_BITS, device_name};
use super::events::{Action, Events, Requested};
use super::fields::{Decimal, Expected, Fields};
use super::format::{Format, Framing, Parser};
use super::options::TraceOptions;
use super::record::{DeviceName, Record};
use super::time_unit::TimeUnit;
use crate::sim::request::Operation;

pub(super) static FORMAT: Format = Format {
    name: "ftrace",
    title: "block events of ftrace, atrace and perf script",
    columns: "task-pid [cpu] flags time: block_rq_issue: major,minor RWBS bytes (command) sector + sectors [process]",
    unit: TimeUnit::S,
    framing: Framing::Lines,
    has_events: true,
    looks: |line| find(line, b": ").is_some(),
    parser: |options| Box::new(Ftrace::new(options)),
    writer: None,
};

/// Events that may represent a request.
const EVENTS: [(&[u8], Action); 4] = [
    (b"block_rq_issue:", Action::Issue),
    (b"block_rq_insert:", Action::Insert),
    (b"block_rq_complete:", Action::Complete),
    (b"block_bio_queue:", Action::Queue),
];

/// Number of requests that may be recorded before an earlier one, because each processor has a buffer of its own.
const SORT_WINDOW: u32 = 1000;

/// Returns the position of a text in a line.
fn find(line: &[u8], text: &[u8]) -> Option<usize> {
    line.windows(text.len()).position(|window| window == text)
}

/// An event that may represent a request.
struct Event<'a> {
    stamp: Decimal,
    action: Action,
    rest: Fields<'a>,
}

/// Returns the event of a line. `None` for other events.
fn event(line: &[u8]) -> Result<Option<Event<'_>>, Expected> {
    const WHAT: &str = "an event: task-pid [cpu] flags time: name: fields";
    let found = EVENTS.iter().find_map(|(name, action)| Some((find(line, name)?, name.len(), *action)));
    let Some((at, length, action)) = found else {
        // Events of other kinds have the same start.
        return if find(line, b": ").is_some() { Ok(None) } else { Err(Expected(WHAT)) };
    };
    let before = line[..at].strip_suffix(b"block:").unwrap_or(&line[..at]).trim_ascii_end();
    let before = before.strip_suffix(b":").ok_or(Expected(WHAT))?;
    let start = before.iter().rposition(|byte| matches!(byte, b' ' | b'\t')).map_or(0, |at| at + 1);
    let stamp = super::biosnoop::decimal(&before[start..], "the time in s before a colon, a decimal number")?;
    Ok(Some(Event { stamp, action, rest: Fields(&line[at + length..]) }))
}

/// Parser for the lines of a trace.
struct Ftrace {
    events: Events,
}

impl Ftrace {
    fn new(options: &TraceOptions) -> Ftrace {
        Ftrace { events: Events::new(options.action) }
    }
}

impl Parser for Ftrace {
    fn begin(&mut self, head: &[u8]) {
        let lines = head.split(|byte| *byte == b'\n');
        let actions = lines.filter_map(|line| event(line).ok().flatten()).map(|event| event.action);
        self.events.settle(&actions.collect::<Vec<Action>>());
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, Expected> {
        const FIELDS: &str = "major,minor RWBS bytes (command) sector + sectors";
        let Some(Event { stamp, action, rest: mut fields }) = event(line)? else { return Ok(None) };
        if !self.events.wants(action) {
            return Ok(None);
        }
        fields.space(FIELDS)?;
        let major = fields.integer(FIELDS)?;
        fields.comma()?;
        let minor = fields.integer(FIELDS)?;
        if major >= 1 << (32 - MINOR_BITS) || minor >= 1 << MINOR_BITS {
            return Err(Expected("a major number below 4096 and a minor number below 1048576"));
        }
        fields.space(FIELDS)?;
        let requested = Requested::of_letters(fields.word()).ok_or(Expected("RWBS letters like R, WS or FN"))?;
        fields.space(FIELDS)?;
        // The size in bytes and the command are missing in some events.
        if let Some(end) = find(fields.0, b") ").filter(|_| fields.0.contains(&b'(')) {
            fields.0 = &fields.0[end + 2..];
        }
        fields.blanks();
        let lba = fields.integer("the first sector, a whole number")?;
        fields.blanks();
        let Some((b'+', rest)) = fields.0.split_first() else { return Err(Expected(FIELDS)) };
        fields.0 = rest;
        fields.blanks();
        let sectors = fields.integer("the length in sectors, a whole number")?;
        if requested.operation.is_none() && sectors > 0 {
            self.events.leave_out_passthrough();
            return Ok(None);
        }
        let Some(operation) = self.events.operation(requested, sectors) else { return Ok(None) };
        let (lba, sectors) = if operation == Operation::Flush { (0, 0) } else { (lba, sectors) };
        Record::in_sectors(stamp, (major << MINOR_BITS | minor) as u32, operation, lba, sectors).map(Some)
    }

    fn device(&self, device: u32) -> DeviceName {
        device_name(device)
    }

    fn sort_window(&self) -> u32 {
        SORT_WINDOW
    }

    fn warnings(&self) -> Vec<String> {
        self.events.warnings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(u128, Operation, u64, u32)> {
        let mut parser = Ftrace::new(&TraceOptions::default());
        let record = parser.parse(line.as_bytes()).unwrap()?;
        assert_eq!(parser.device(record.device).to_string(), "259:3");
        Some((record.stamp.scaled(6), record.operation, record.lba, record.sectors))
    }

    #[test]
    fn issued_requests_are_read() {
        let read_8 = Some((900_250_000, Operation::Read, 6_916_480, 8));
        for line in [
            "  walwriter-546     [002] .....   900.250000: block_rq_issue: 259,3 R 4096 () 6916480 + 8 none,0,0 [walwriter]",
            "  <...>-546   (-----) [001] ...1   900.250000: block_rq_issue: 259,3 R 0 () 6916480 + 8 [kworker/2:1]",
            "my app   546 [002]   900.250000: block:block_rq_issue: 259,3 RM 4096 () 6916480 + 8 [my app]",
            "   app-546   [002]   900.250000: block_rq_issue:       259,3 RS 4096 () 6916480 + 8 [app]",
        ] {
            assert_eq!(read(line), read_8, "{line}");
        }
        let flush = "  a-1 [002] ..... 1.5: block_rq_issue: 259,3 FF 0 () 18446744073709551615 + 0 none,0,0 [a]";
        assert_eq!(read(flush), Some((1_500_000, Operation::Flush, 0, 0)));
        for other in [
            "  <idle>-0   [002] d.h1.   900.250720: block_rq_complete: 259,3 R () 6916480 + 8 none,0,0 [0]",
            "  <idle>-0   [002] d.h1.   900.250720: sched_switch: prev_comm=a ==> next_comm=b",
            "  a-1        [002] d.h1.   900.250720: block_plug: [a]",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
        let mut parser = Ftrace::new(&TraceOptions::default());
        assert!(parser.parse(b"a-1 [0] x: block_rq_issue: 259,3 R 4096 () 64 + 8 [a]").unwrap_err().0.contains("time"));
    }

    #[test]
    fn queued_requests_are_read_if_none_is_issued() {
        let line = "  a-1 [002] ..... 1.5: block_bio_queue: 259,3 WS 64 + 8 [a]";
        let mut parser = Ftrace::new(&TraceOptions::default());
        parser.begin(line.as_bytes());
        let record = parser.parse(line.as_bytes()).unwrap().unwrap();
        assert_eq!((record.operation, record.lba, record.sectors), (Operation::Write, 64, 8));
    }
}
