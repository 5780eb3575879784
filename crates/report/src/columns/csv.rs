//! `requests.csv`: one line per request. Times are decimal numbers, exact to the picosecond.

use std::io::{self, BufRead, Write};

use anyhow::{Context, Result};
use floatgate_core::metrics::attribution::{Breakdown, Part};
use floatgate_core::sim::request::{Completion, Request};
use floatgate_core::sim::text;
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
    out: W,
    /// Names of the streams, quoted for CSV.
    streams: Vec<String>,
    line: Vec<u8>,
}

impl<W: Write> CsvRequests<W> {
    /// Writes the header of the file. `streams` are the names of the streams.
    pub fn new(mut out: W, streams: &[String]) -> io::Result<CsvRequests<W>> {
        writeln!(out, "{}", header())?;
        Ok(CsvRequests { out, streams: streams.iter().map(|name| quoted(name)).collect(), line: Vec::new() })
    }

    /// Adds a request.
    pub fn write(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) -> io::Result<()> {
        let Completion { request, status, start, finish } = *completion;
        let Request { tag, stream, operation, lba, sectors, arrival, .. } = request;
        let line = &mut self.line;
        line.clear();
        push_decimal(line, tag, 0);
        for text in [&self.streams[usize::from(stream)], operation.name(), status_name(status)] {
            line.push(b',');
            line.extend_from_slice(text.as_bytes());
        }
        let mut number = |value, digits| {
            line.push(b',');
            push_decimal(line, value, digits);
        };
        number(lba, 0);
        number(u64::from(sectors), 0);
        [arrival, start, finish].iter().for_each(|time| number(time.ps(), PS_IN_NS));
        let spans: [Time; 3] = [start.since(arrival), finish.since(start), finish.since(arrival)];
        spans.iter().for_each(|span| number(span.ps(), PS_IN_US));
        match breakdown {
            Some(breakdown) => {
                number(u64::from(breakdown.channels), 0);
                breakdown.parts.iter().for_each(|part| number(part.ps(), PS_IN_US));
            }
            None => line.resize(line.len() + 1 + Part::COUNT, b','),
        }
        line.push(b'\n');
        self.out.write_all(&self.line)
    }

    /// Returns the underlying writer.
    pub fn finish(self) -> W {
        self.out
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

/// Returns `text` as a field of a CSV file.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Maximum length of a row, in bytes. No name of a stream is nearly as long.
const LONGEST: u64 = 1 << 20;

/// Calls `each` for every request in a file written by [`CsvRequests`].
pub fn read_csv(mut input: impl BufRead, each: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
    let (mut line, mut number) = (String::new(), 1);
    text::read_line(&mut input, &mut line, LONGEST)?;
    anyhow::ensure!(line.trim_end() == header(), "its columns are not those of this version of floatgate: run again");
    loop {
        line.clear();
        // A name in quotes may hold line feeds.
        while text::read_line(&mut input, &mut line, LONGEST)? > 0 && line.matches('"').count() % 2 == 1 {
            anyhow::ensure!(line.len() as u64 <= LONGEST, "row {}: it is longer than 1 MiB", number + 1);
        }
        if line.is_empty() {
            return Ok(());
        }
        number += 1;
        read_line(line.trim_end_matches('\n'), each).with_context(|| format!("row {number}"))?;
    }
}

fn read_line(line: &str, each: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
    let (number, rest) = line.split_once(',').context("the line ends early")?;
    // Only the name of the stream may contain commas. Splitting from the end leaves it whole.
    let columns = COLUMNS.matches(',').count() + Part::COUNT;
    let mut fields: Vec<&str> = rest.rsplitn(columns, ',').collect();
    anyhow::ensure!(fields.len() == columns, "the line ends early");
    fields.reverse();
    let stream = match fields[0].strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(name) => name.replace("\"\"", "\""),
        None => fields[0].to_owned(),
    };
    let breakdown = match fields[11] {
        "" => None,
        channels => {
            let mut parts = [Time::ZERO; Part::COUNT];
            for (part, text) in parts.iter_mut().zip(&fields[12..]) {
                *part = Time(decimal(text)?);
            }
            Some(Breakdown { parts, channels: channels.parse()? })
        }
    };
    each(&Record {
        number: decimal(number)?,
        stream: &stream,
        operation: operation_of(fields[1])?,
        status: status_of(fields[2])?,
        lba: decimal(fields[3])?,
        sectors: decimal(fields[4])?,
        arrival: Time(decimal(fields[5])?),
        start: Time(decimal(fields[6])?),
        finish: Time(decimal(fields[7])?),
        breakdown,
    })
}

#[cfg(test)]
mod tests {
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
    fn fields_with_commas_are_quoted() {
        assert_eq!(quoted("job1"), "job1");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
