//! Recordings of the requests of a live device, written by `floatgate serve --record`: CSV,
//! `arrival_ps,operation,lba,sectors,fua,latency_ps`.
//!
//! No value is rounded or omitted, so that a replay on the same device in the same state gives the same latencies.
//! Each line contains the latency that the live device gave, which a replay does not use.

use std::io::Write;

use super::digest::Digest;
use super::fields::Expected;
use super::fields::{Decimal, Fields};
use super::format::{Format, Framing};
use super::record::Record;
use super::time_unit::TimeUnit;
use crate::sim::request::{Completion, Operation, Request};
use crate::sim::time::Time;

pub(super) static FORMAT: Format = Format {
    name: "floatgate",
    title: "a recording of floatgate serve",
    columns: "arrival,read|write|trim|write_zeroes|flush,LBA,sectors,FUA,latency",
    unit: TimeUnit::Ps,
    framing: Framing::Lines,
    has_events: false,
    looks: |_| true,
    parser: |_| Box::new(parse),
    writer: None,
};

fn parse(line: &[u8]) -> Result<Option<Record>, Expected> {
    let mut fields = Fields(line);
    fields.blanks();
    let stamp = Decimal::whole(fields.integer("the arrival in ps, a whole number")?);
    fields.comma()?;
    let name = fields.word();
    let operation = Operation::ALL.into_iter().find(|operation| operation.name().as_bytes() == name);
    let operation = operation.ok_or(Expected("the operation: read, write, trim, write_zeroes or flush"))?;
    fields.comma()?;
    let lba = fields.integer("the first sector, a whole number")?;
    fields.comma()?;
    let sectors = fields.integer("the number of sectors")?;
    fields.comma()?;
    let fua = match fields.integer("FUA, 0 or 1")? {
        0 => false,
        1 => true,
        _ => return Err(Expected("FUA, 0 or 1")),
    };
    fields.comma()?;
    fields.integer("the latency in ps, a whole number")?;
    fields.end()?;
    Ok(Some(Record { fua, ..Record::in_sectors(stamp, 0, operation, lba, sectors)? }))
}

/// A request of a live device with its latency: a line of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    request: Request,
    latency: Time,
}

impl RecordedRequest {
    /// Header line.
    pub const HEADER: &'static str = "arrival_ps,operation,lba,sectors,fua,latency_ps\n";

    /// Creates the line of a completion.
    pub fn of(completion: &Completion) -> RecordedRequest {
        let Completion { request, finish, .. } = *completion;
        RecordedRequest { request, latency: finish.since(request.arrival) }
    }

    /// Appends the line to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let RecordedRequest { request, latency } = self;
        let (arrival, operation, fua) = (request.arrival.ps(), request.operation.name(), u8::from(request.fua));
        let line = writeln!(out, "{arrival},{operation},{},{},{fua},{}", request.lba, request.sectors, latency.ps());
        debug_assert!(line.is_ok(), "memory takes every line");
    }
}

/// Digest of requests, equal to the digest of a trace that recorded them.
#[derive(Clone, Debug)]
pub struct RequestDigest {
    digest: Digest,
    first: Option<Time>,
}

impl Default for RequestDigest {
    fn default() -> Self {
        RequestDigest { digest: Digest::new(), first: None }
    }
}

impl RequestDigest {
    /// Adds a request.
    pub fn add(&mut self, request: &Request) {
        let Request { arrival, operation, lba, sectors, fua, .. } = *request;
        let since = arrival.since(*self.first.get_or_insert(arrival)).ps();
        let record = Record { stamp: Decimal::whole(since), device: 0, operation, lba, sectors, widened: false, fua };
        self.digest.add(since, &record);
    }

    /// Returns the digest of the requests so far.
    pub fn value(&self) -> u64 {
        self.digest.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::request::Status;

    #[test]
    fn written_traces_read_back() {
        for (operation, lba, sectors, fua) in [
            (Operation::Read, 8, 1, false),
            (Operation::Write, 0, 2048, true),
            (Operation::Trim, 1 << 40, 8, false),
            (Operation::WriteZeroes, 16, 8, true),
            (Operation::Flush, 0, 0, false),
        ] {
            let request = Request { fua, ..Request::new(Time(1_234_567_890_123), operation, lba, sectors) };
            let (start, finish) = (request.arrival, request.arrival + Time(60_000_001));
            let mut line = Vec::new();
            RecordedRequest::of(&Completion { request, status: Status::Ok, start, finish }).write(&mut line);
            assert!(line.ends_with(b",60000001\n"));
            let read = parse(line.trim_ascii_end()).unwrap().unwrap();
            assert_eq!(read.stamp.scaled(0), 1_234_567_890_123);
            assert_eq!((read.operation, read.lba, read.sectors, read.fua), (operation, lba, sectors, fua));
        }
    }

    #[test]
    fn errors_state_what_was_expected() {
        let expected = |line: &str| parse(line.as_bytes()).unwrap_err().0;
        assert!(expected("1,R,0,8,0,1").contains("read, write, trim"));
        assert!(expected("1,read,0,8,2,1").contains("0 or 1"));
        assert!(expected("1,read,0,8,0").contains("comma"));
        assert!(expected("1,read,0,0,0,1").contains("at least one byte"));
    }
}
