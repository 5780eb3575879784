//! `requests.csv`: one line per request. Times are decimal numbers, exact to the picosecond.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::rc::Rc;

use anyhow::{Context, Result};
use floatgate_core::results::{Breakdown, Part};
use floatgate_core::sim::request::{Completion, Request};
use floatgate_core::sim::time::Time;

use super::record::{Record, operation_of, status_name, status_of};

/// The columns before those of the parts.
const COLUMNS: &str = "number,stream,operation,status,lba,sectors,arrival_ns,start_ns,finish_ns,waiting_us,service_us,\
                       latency_us,channels";

fn header() -> String {
    Part::ALL.iter().fold(COLUMNS.to_owned(), |header, part| format!("{header},{}_us", part.name()))
}

/// Decimal places that hold picoseconds exactly, in nanoseconds and in microseconds.
const PS_IN_NS: usize = 3;
const PS_IN_US: usize = 6;

/// Writes `requests.csv`.
#[derive(Debug)]
pub struct CsvRequests<W: Write> {
    out: csv::Writer<W>,
    streams: Vec<String>,
    number: Vec<u8>,
}

impl<W: Write> CsvRequests<W> {
    /// Writes the header of the file. `streams` are the names of the streams.
    pub fn new(out: W, streams: &[String]) -> io::Result<CsvRequests<W>> {
        let mut out = csv::Writer::from_writer(out);
        out.write_record(header().split(','))?;
        Ok(CsvRequests { out, streams: streams.to_vec(), number: Vec::new() })
    }

    /// Adds a request.
    pub fn write(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) -> io::Result<()> {
        let Completion { request, status, start, finish } = *completion;
        let Request { tag, stream, operation, lba, sectors, arrival, .. } = request;
        self.number(tag, 0)?;
        for text in [&self.streams[usize::from(stream)], operation.name(), status_name(status)] {
            self.out.write_field(text)?;
        }
        self.number(lba, 0)?;
        self.number(u64::from(sectors), 0)?;
        [arrival, start, finish].iter().try_for_each(|time| self.number(time.ps(), PS_IN_NS))?;
        let spans: [Time; 3] = [start.since(arrival), finish.since(start), finish.since(arrival)];
        spans.iter().try_for_each(|span| self.number(span.ps(), PS_IN_US))?;
        match breakdown {
            Some(breakdown) => {
                self.number(u64::from(breakdown.channels), 0)?;
                breakdown.parts.iter().try_for_each(|part| self.number(part.ps(), PS_IN_US))?;
            }
            None => (0..1 + Part::COUNT).try_for_each(|_| self.out.write_field(""))?,
        }
        // Ends the row.
        Ok(self.out.write_record(None::<&[u8]>)?)
    }

    fn number(&mut self, value: u64, digits: usize) -> csv::Result<()> {
        self.number.clear();
        push_decimal(&mut self.number, value, digits);
        self.out.write_field(&self.number)
    }

    /// Returns the underlying writer.
    pub fn finish(self) -> io::Result<W> {
        self.out.into_inner().map_err(csv::IntoInnerError::into_error)
    }
}

/// Writes `value` / 10^`digits`. This is faster than formatting, and each request has twenty of these numbers.
fn push_decimal(line: &mut Vec<u8>, value: u64, digits: usize) {
    // 20 digits of a `u64`, and the decimal point.
    let mut text = [b'0'; 21];
    let mut at = text.len();
    let mut rest = value;
    let mut written = 0;
    while rest > 0 || written <= digits {
        if written == digits && digits > 0 {
            at -= 1;
            text[at] = b'.';
        }
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        written += 1;
    }
    line.extend_from_slice(&text[at..]);
}

/// Reads a number that [`push_decimal`] wrote.
fn decimal(text: &str) -> Result<u64> {
    let digits: String = text.chars().filter(|c| *c != '.').collect();
    digits.parse().with_context(|| format!("not a number: `{text}`"))
}

/// Maximum length of a row, in bytes. No name of a stream is nearly as long.
const LONGEST: u64 = 1 << 20;

/// Input that fails if a row is too long, so that no file exhausts the memory.
struct Bounded<R> {
    input: R,
    /// Number of bytes that may still be read for the current row.
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        let left = self.left.get().checked_sub(read as u64);
        self.left.set(left.ok_or_else(|| io::Error::other("it has a row that is longer than 1 MiB"))?);
        Ok(read)
    }
}

/// Calls `each` for every request in a file written by [`CsvRequests`].
pub fn read_csv(input: impl Read, each: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
    let left = Rc::new(Cell::new(LONGEST));
    let bounded = Bounded { input, left: Rc::clone(&left) };
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bounded);
    let mut row = csv::StringRecord::new();
    reader.read_record(&mut row)?;
    let expected = header();
    anyhow::ensure!(
        row.iter().eq(expected.split(',')),
        "its columns are not those of this version of floatgate: run again"
    );
    for number in 2.. {
        left.set(LONGEST);
        if !reader.read_record(&mut row).with_context(|| format!("row {number}"))? {
            break;
        }
        read_row(&row, each).with_context(|| format!("row {number}"))?;
    }
    Ok(())
}

fn read_row(row: &csv::StringRecord, each: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
    let columns = COLUMNS.matches(',').count() + 1;
    anyhow::ensure!(row.len() == columns + Part::COUNT, "it has {} fields", row.len());
    let breakdown = match &row[columns - 1] {
        "" => None,
        channels => {
            let mut parts = [Time::ZERO; Part::COUNT];
            for (part, text) in parts.iter_mut().zip(row.iter().skip(columns)) {
                *part = Time(decimal(text)?);
            }
            Some(Breakdown { parts, channels: channels.parse()? })
        }
    };
    each(&Record {
        number: decimal(&row[0])?,
        stream: &row[1],
        operation: operation_of(&row[2])?,
        status: status_of(&row[3])?,
        lba: decimal(&row[4])?,
        sectors: decimal(&row[5])?,
        arrival: Time(decimal(&row[6])?),
        start: Time(decimal(&row[7])?),
        finish: Time(decimal(&row[8])?),
        breakdown,
    })
}

#[cfg(test)]
mod tests {
    use floatgate_core::sim::request::{Operation, Status};

    use super::*;

    #[test]
    fn decimals_are_exact() {
        let decimal = |value, digits| {
            let mut line = Vec::new();
            push_decimal(&mut line, value, digits);
            String::from_utf8(line).unwrap()
        };
        assert_eq!(decimal(0, 0), "0");
        assert_eq!(decimal(0, 3), "0.000");
        assert_eq!(decimal(7, 3), "0.007");
        assert_eq!(decimal(12_345, 3), "12.345");
        assert_eq!(decimal(u64::MAX, 0), "18446744073709551615");
        assert_eq!(decimal(u64::MAX, 6), "18446744073709.551615");
    }

    #[test]
    fn names_of_streams_are_quoted() {
        let names = ["job1", "a,\"b\"", "two\nlines"].map(str::to_owned);
        let mut writer = CsvRequests::new(Vec::new(), &names).unwrap();
        for stream in 0..3 {
            let request = Request { stream, ..Request::new(Time(5), Operation::Read, 0, 8) };
            let completion = Completion { request, status: Status::Ok, start: Time(6), finish: Time(1_000_007) };
            writer.write(&completion, None).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let text = std::str::from_utf8(&bytes).unwrap();
        assert!(
            text.contains("0,\"a,\"\"b\"\"\",read,ok,0,8,0.005,0.006,1000.007,0.000001,1.000001,1.000002,,"),
            "{text}"
        );
        let mut read = Vec::new();
        read_csv(&bytes[..], &mut |record| {
            read.push((record.stream.to_owned(), record.finish));
            Ok(())
        })
        .unwrap();
        assert_eq!(read, names.map(|name| (name, Time(1_000_007))));
    }

    #[test]
    fn invalid_rows_are_refused() {
        let refused = |rows: &str| {
            let text = format!("{}\n{rows}", header());
            format!("{:#}", read_csv(text.as_bytes(), &mut |_| Ok(())).unwrap_err())
        };
        assert_eq!(refused("1,x,read\n"), "row 2: it has 3 fields");
        let endless = refused(&"1".repeat(2 << 20));
        assert!(endless.contains("row 2: ") && endless.contains("longer than 1 MiB"), "{endless}");
        let other = read_csv(&b"time,size\n"[..], &mut |_| Ok(())).unwrap_err();
        assert!(other.to_string().starts_with("its columns are not"), "{other}");
    }
}
