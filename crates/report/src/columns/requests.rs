//! Per-request tables, one row per request: `requests.parquet` and `requests.csv`, which have the same columns.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;

use anyhow::{Context, Result};
use floatgate_core::results::{Breakdown, Part};
use floatgate_core::sim::request::{Completion, Operation};
use floatgate_core::sim::time::Time;

pub use super::csv::CsvRequests;
use super::csv::read_csv;
pub use super::record::{Record, operation_of, status_name};
use super::record::{STATUSES, status_of};
use super::spool::SpoolingWriter;
use super::table::{Batch, Columns, Field, Kind, Rows, Table, TableReader};
use super::{Origin, of_run};

/// Schema of the file.
const SCHEMA: &str = "floatgate-requests-2";

/// Number of rows buffered in memory before they are encoded.
const TOGETHER: usize = 1 << 10;

/// A column with an integer for every request, as (name, value).
type Whole = (&'static str, fn(&Completion) -> u64);

const BEFORE_TEXT: [Whole; 1] = [("number", |c| c.request.tag)];

const NUMBERS: [Whole; 8] = [
    ("lba", |c| c.request.lba),
    ("sectors", |c| u64::from(c.request.sectors)),
    ("arrival_ps", |c| c.request.arrival.ps()),
    ("start_ps", |c| c.start.ps()),
    ("finish_ps", |c| c.finish.ps()),
    ("waiting_ps", |c| c.start.since(c.request.arrival).ps()),
    ("service_ps", |c| c.finish.since(c.start).ps()),
    ("latency_ps", |c| c.finish.since(c.request.arrival).ps()),
];

fn part_column(part: Part) -> String {
    format!("{}_ps", part.name())
}

/// Returns the columns.
pub fn fields() -> Vec<Field> {
    let field = |name: &str, kind| Field { name: name.to_owned(), kind };
    let mut fields: Vec<Field> = BEFORE_TEXT.iter().map(|(name, _)| field(name, Kind::Whole)).collect();
    fields.extend(["stream", "operation", "status"].map(|name| field(name, Kind::Text)));
    fields.extend(NUMBERS.iter().map(|(name, _)| field(name, Kind::Whole)));
    fields.push(field("channels", Kind::MaybeWhole));
    fields.extend(Part::ALL.iter().map(|part| field(&part_column(*part), Kind::MaybeWhole)));
    fields
}

/// Writes requests to a table. The latest rows are buffered in memory.
pub struct RequestsWriter<T> {
    table: T,
    streams: Vec<String>,
    operations: Vec<String>,
    statuses: Vec<String>,
    rows: Vec<(Completion, Option<Breakdown>)>,
    together: usize,
}

/// Writes `requests.parquet`. Memory use does not grow with the number of requests.
pub type ParquetRequests<W> = RequestsWriter<SpoolingWriter<W>>;

impl<W: Write + Send> ParquetRequests<W> {
    /// Creates the file. `streams` are the names of the streams. Encoded pages wait for the end of their row group in
    /// unnamed temporary files in `folder`.
    pub fn new(out: W, folder: &Path, streams: &[String], origin: &Origin) -> io::Result<ParquetRequests<W>> {
        let table = SpoolingWriter::new(out, folder, &fields(), metadata(origin))?;
        Ok(RequestsWriter::to(table, streams, TOGETHER))
    }
}

/// Returns the key-value metadata of the table.
pub fn metadata(origin: &Origin) -> Vec<(String, String)> {
    origin.metadata(SCHEMA)
}

impl<T: Table> RequestsWriter<T> {
    /// Creates a writer to a table with these [`fields`]. `streams` are the names of the streams, and `together` is the
    /// number of rows that are buffered.
    pub fn to(table: T, streams: &[String], together: usize) -> RequestsWriter<T> {
        let streams = streams.to_vec();
        let rows = Vec::new();
        let operations = Operation::ALL.map(|operation| operation.name().to_owned()).to_vec();
        let statuses = STATUSES.map(|status| status_name(status).to_owned()).to_vec();
        RequestsWriter { table, streams, operations, statuses, rows, together }
    }

    /// Adds a request.
    pub fn write(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) -> io::Result<()> {
        self.rows.push((*completion, breakdown.copied()));
        if self.rows.len() == self.together { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let RequestsWriter { table, streams, operations, statuses, rows, .. } = self;
        table.group(&mut |group| write_group(group, rows, [streams, operations, statuses]))?;
        rows.clear();
        Ok(())
    }

    /// Completes the table. `run` is the digest of the run.
    pub fn finish(mut self, run: Option<&str>) -> io::Result<T::Whole> {
        self.flush()?;
        self.table.finish(of_run(run))
    }
}

/// Writes rows. The arrays hold the names of streams, operations and statuses.
fn write_group(
    group: &mut dyn Columns,
    rows: &[(Completion, Option<Breakdown>)],
    [streams, operations, statuses]: [&[String]; 3],
) -> io::Result<()> {
    let mut values: Vec<i64> = Vec::with_capacity(rows.len());
    let mut whole = |group: &mut dyn Columns, (_, of): &Whole| {
        values.clear();
        values.extend(rows.iter().map(|(completion, _)| of(completion) as i64));
        group.whole(&values)
    };
    BEFORE_TEXT.iter().try_for_each(|column| whole(group, column))?;
    group.text(streams, &mut rows.iter().map(|(c, _)| usize::from(c.request.stream)))?;
    group.text(operations, &mut rows.iter().map(|(c, _)| c.request.operation.index()))?;
    group.text(statuses, &mut rows.iter().map(|(c, _)| c.status as usize))?;
    NUMBERS.iter().try_for_each(|column| whole(group, column))?;
    let present: Vec<i16> = rows.iter().map(|(_, breakdown)| i16::from(breakdown.is_some())).collect();
    let mut maybe = |of: &dyn Fn(&Breakdown) -> u64| {
        values.clear();
        values.extend(rows.iter().filter_map(|(_, breakdown)| Some(of(breakdown.as_ref()?) as i64)));
        group.maybe_whole(&values, &present)
    };
    maybe(&|breakdown| u64::from(breakdown.channels))?;
    Part::ALL.iter().try_for_each(|part| maybe(&|breakdown| breakdown.of(*part).ps()))
}

fn is_csv(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "csv")
}

/// Calls `each` for the request with this number, if the file contains it.
pub fn find_request(path: &Path, number: u64, each: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
    let mut only = |record: &Record| if record.number == number { each(record) } else { Ok(()) };
    if is_csv(path) {
        return read_requests(path, &mut only);
    }
    let table = TableReader::open(path, SCHEMA)?;
    for group in table.groups() {
        for batch in group?.batches() {
            if batch.whole("number")?.contains(&number) {
                return read_batch(&batch, &mut only).with_context(|| format!("cannot read {}", path.display()));
            }
        }
    }
    Ok(())
}

/// Calls `each` with the number, operation and latency of every request. This is faster than reading all columns.
pub fn read_latencies(path: &Path, each: &mut dyn FnMut(u64, Operation, Time)) -> Result<()> {
    if is_csv(path) {
        return read_requests(path, &mut |record| {
            each(record.number, record.operation, record.latency());
            Ok(())
        });
    }
    let table = TableReader::open(path, SCHEMA)?;
    for group in table.groups() {
        for batch in group?.batches() {
            let (numbers, latencies) = (batch.whole("number")?, batch.whole("latency_ps")?);
            for (row, operation) in batch.text("operation")?.iter().enumerate() {
                each(numbers[row], operation_of(operation.as_utf8()?)?, Time(latencies[row]));
            }
        }
    }
    Ok(())
}

/// Calls `each` for every request in `requests.parquet` or `requests.csv`, in file order.
pub fn read_requests(path: &Path, each: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
    if is_csv(path) {
        let reported = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(reported)?;
        return read_csv(BufReader::with_capacity(1 << 18, file), each).with_context(reported);
    }
    let table = TableReader::open(path, SCHEMA)?;
    for group in table.groups() {
        let reported = || format!("cannot read {}", path.display());
        group?.batches().try_for_each(|batch| read_batch(&batch, each)).with_context(reported)?;
    }
    Ok(())
}

fn read_batch(batch: &Batch, each: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
    let whole = |name| batch.whole(name);
    let (numbers, lba, sectors) = (whole("number")?, whole("lba")?, whole("sectors")?);
    let (arrival, start, finish) = (whole("arrival_ps")?, whole("start_ps")?, whole("finish_ps")?);
    let (streams, operations, statuses) = (batch.text("stream")?, batch.text("operation")?, batch.text("status")?);
    let channels = batch.maybe_whole("channels")?;
    let parts = Part::ALL.map(|part| batch.maybe_whole(&part_column(part)));
    let parts: Vec<Vec<Option<u64>>> = parts.into_iter().collect::<Result<_>>()?;
    for row in 0..batch.rows() {
        let breakdown = channels[row].map(|channels| Breakdown {
            parts: std::array::from_fn(|part| Time(parts[part][row].unwrap_or(0))),
            channels: channels as u32,
        });
        each(&Record {
            number: numbers[row],
            stream: streams[row].as_utf8()?,
            operation: operation_of(operations[row].as_utf8()?)?,
            lba: lba[row],
            sectors: sectors[row],
            status: status_of(statuses[row].as_utf8()?)?,
            arrival: Time(arrival[row]),
            start: Time(start[row]),
            finish: Time(finish[row]),
            breakdown,
        })?;
    }
    Ok(())
}
