//! A run over time, one row per window: `series.parquet`.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use floatgate_core::device_file::DeviceConfig;
use floatgate_core::results::{Answered, Part, Statistics, Value, Window};
use floatgate_core::sim::request::Operation;

use super::table::{Columns, Field, Kind, Rows, Table, TableReader, TableWriter};
use super::{Origin, of_run};

/// Schema of the file.
const SCHEMA: &str = "floatgate-series-3";

/// Requests of one operation that completed in a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationRow {
    /// Number of requests.
    pub count: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Number of requests that failed.
    pub errors: u64,
    /// Requests per second.
    pub iops: Option<f64>,
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
    /// Mean latency, in microseconds.
    pub mean_us: Option<f64>,
    /// Median latency in microseconds, within 2%.
    pub p50_us: Option<f64>,
    /// 99th percentile of the latency in microseconds, within 2%.
    pub p99_us: Option<f64>,
    /// Maximum latency, in microseconds.
    pub max_us: Option<f64>,
}

/// A window. Shares are relative to its length, and undefined values are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Start of the window in picoseconds of simulated time, exclusive.
    pub start_ps: u64,
    /// End of the window in picoseconds of simulated time, inclusive.
    pub end_ps: u64,
    /// Indexed by [`Operation::index`].
    pub operations: [OperationRow; 5],
    /// Mean number of outstanding requests over the window.
    pub outstanding: Option<f64>,
    /// Share of time that the channel transfers data. Indexed by channel.
    pub channel_data: Vec<f64>,
    /// Share of time that the channel is busy with commands or bus turnarounds. Indexed by channel.
    pub channel_command: Vec<f64>,
    /// Share of time that the cells of the die are busy, indexed by die. Planes that operate independently add up.
    pub die_cell: Vec<f64>,
    /// Share of time that the die is held but its cells are idle. Indexed by die.
    pub die_held: Vec<f64>,
    /// Statistics of the device.
    pub statistics: Statistics,
    /// Requests with a latency breakdown.
    pub attributed: u64,
    /// Sums of the parts of their latencies in microseconds, indexed like [`Part::ALL`]; `None` without such requests.
    pub parts_us: [Option<f64>; Part::COUNT],
}

fn ratio(count: f64, of: f64) -> Option<f64> {
    (of > 0.0).then(|| count / of)
}

impl OperationRow {
    fn new(answered: &Answered, seconds: f64) -> OperationRow {
        OperationRow {
            count: answered.count,
            bytes: answered.bytes,
            errors: answered.errors,
            iops: ratio(answered.count as f64, seconds),
            bytes_per_s: ratio(answered.bytes as f64, seconds),
            mean_us: answered.mean_us(),
            p50_us: answered.quantile_us(0.5),
            p99_us: answered.quantile_us(0.99),
            max_us: (answered.count > 0).then(|| answered.latency_max.as_us()),
        }
    }

    fn visit(&mut self, operation: &str, visitor: &mut dyn Visitor) -> Result<()> {
        visitor.whole(&[operation, "_count"], &mut self.count)?;
        visitor.whole(&[operation, "_bytes"], &mut self.bytes)?;
        visitor.whole(&[operation, "_errors"], &mut self.errors)?;
        visitor.number(&[operation, "_iops"], &mut self.iops)?;
        visitor.number(&[operation, "_bytes_per_s"], &mut self.bytes_per_s)?;
        visitor.number(&[operation, "_mean_us"], &mut self.mean_us)?;
        visitor.number(&[operation, "_p50_us"], &mut self.p50_us)?;
        visitor.number(&[operation, "_p99_us"], &mut self.p99_us)?;
        visitor.number(&[operation, "_max_us"], &mut self.max_us)
    }
}

impl Row {
    /// Builds the row of a window.
    pub fn new(window: &Window, config: &DeviceConfig) -> Row {
        let width = window.width().ps() as f64;
        let seconds = window.width().as_s();
        let share = |times: &[[i64; 2]], which: usize| -> Vec<f64> {
            times.iter().map(|time| ratio(time[which] as f64, width).unwrap_or(0.0)).collect()
        };
        let of = |operation| window.of(operation).map_or_else(Default::default, |o| OperationRow::new(o, seconds));
        Row {
            start_ps: window.start.ps(),
            end_ps: window.end.ps(),
            operations: Operation::ALL.map(of),
            outstanding: ratio(window.outstanding as f64, width),
            channel_data: share(&window.channels, 0),
            channel_command: share(&window.channels, 1),
            die_cell: share(&window.dies, 0),
            die_held: share(&window.dies, 1),
            statistics: window.statistics(config),
            attributed: window.attributed,
            parts_us: window.parts.map(|part| (window.attributed > 0).then_some(part as f64 / 1e6)),
        }
    }

    /// Visits all columns in file order. This is the only list of the columns.
    fn visit(&mut self, visitor: &mut dyn Visitor) -> Result<()> {
        visitor.whole(&["start_ps"], &mut self.start_ps)?;
        visitor.whole(&["end_ps"], &mut self.end_ps)?;
        for (row, operation) in self.operations.iter_mut().zip(Operation::ALL) {
            row.visit(operation.name(), visitor)?;
        }
        visitor.number(&["outstanding"], &mut self.outstanding)?;
        visitor.numbers("channel_data", &mut self.channel_data)?;
        visitor.numbers("channel_command", &mut self.channel_command)?;
        visitor.numbers("die_cell", &mut self.die_cell)?;
        visitor.numbers("die_held", &mut self.die_held)?;
        visitor.whole(&["attributed"], &mut self.attributed)?;
        for (part, value) in Part::ALL.iter().zip(&mut self.parts_us) {
            visitor.number(&[part.name(), "_us"], value)?;
        }
        for (statistic, value) in self.statistics.list() {
            let Some(column) = statistic.column else { continue };
            match value {
                Value::Whole(count) => visitor.whole(&[column], count)?,
                Value::Number(number) => visitor.number(&[column], number)?,
                Value::Each(counts, names) => {
                    names
                        .iter()
                        .zip(counts)
                        .try_for_each(|(name, count)| visitor.whole(&[column, "_", name], count))?;
                }
            }
        }
        Ok(())
    }
}

/// An action on every column of a row: describing, writing or reading it. Names are passed in pieces.
trait Visitor {
    fn whole(&mut self, name: &[&str], value: &mut u64) -> Result<()>;
    fn number(&mut self, name: &[&str], value: &mut Option<f64>) -> Result<()>;
    fn numbers(&mut self, name: &str, value: &mut Vec<f64>) -> Result<()>;
}

/// Lists the columns.
impl Visitor for Vec<Field> {
    fn whole(&mut self, name: &[&str], _: &mut u64) -> Result<()> {
        self.push(Field { name: name.concat(), kind: Kind::Whole });
        Ok(())
    }
    fn number(&mut self, name: &[&str], _: &mut Option<f64>) -> Result<()> {
        self.push(Field { name: name.concat(), kind: Kind::MaybeNumber });
        Ok(())
    }
    fn numbers(&mut self, name: &str, _: &mut Vec<f64>) -> Result<()> {
        self.push(Field { name: name.to_owned(), kind: Kind::Numbers });
        Ok(())
    }
}

/// Values of a column in a row group.
#[derive(Debug)]
enum Column {
    Whole(Vec<i64>),
    Number(Vec<Option<f64>>),
    Numbers(Vec<Vec<f64>>),
}

impl Column {
    fn write(&self, group: &mut dyn Columns) -> io::Result<()> {
        match self {
            Column::Whole(values) => group.whole(values),
            Column::Number(values) => {
                let present: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
                let values: Vec<f64> = values.iter().filter_map(|value| *value).collect();
                group.maybe_number(&values, &present)
            }
            Column::Numbers(rows) => group.numbers(rows),
        }
    }
}

/// Rows transposed into columns.
#[derive(Debug, Default)]
struct Turn {
    columns: Vec<Column>,
    next: usize,
}

impl Turn {
    fn column(&mut self, empty: fn() -> Column) -> &mut Column {
        if self.columns.len() == self.next {
            self.columns.push(empty());
        }
        self.next += 1;
        &mut self.columns[self.next - 1]
    }
}

impl Visitor for Turn {
    fn whole(&mut self, _: &[&str], value: &mut u64) -> Result<()> {
        if let Column::Whole(column) = self.column(|| Column::Whole(Vec::new())) {
            column.push(*value as i64);
        }
        Ok(())
    }
    fn number(&mut self, _: &[&str], value: &mut Option<f64>) -> Result<()> {
        if let Column::Number(column) = self.column(|| Column::Number(Vec::new())) {
            column.push(*value);
        }
        Ok(())
    }
    fn numbers(&mut self, _: &str, value: &mut Vec<f64>) -> Result<()> {
        if let Column::Numbers(column) = self.column(|| Column::Numbers(Vec::new())) {
            column.push(std::mem::take(value));
        }
        Ok(())
    }
}

/// Writes windows to a table.
pub struct RowsWriter<T> {
    table: T,
    /// Rows that have not been written yet.
    turn: Turn,
    rows: usize,
}

/// Writes `series.parquet`.
pub type SeriesWriter<W> = RowsWriter<TableWriter<W>>;

/// Numbers buffered in memory and written together as a row group, because rows of a large device are long.
const GROUP: usize = 1 << 20;

impl<W: Write + Send> SeriesWriter<W> {
    /// Creates the file. Pages wait for the end of their column in an unnamed temporary file in `folder`.
    pub fn new(out: W, folder: &Path, origin: &Origin) -> io::Result<SeriesWriter<W>> {
        Ok(RowsWriter::to(TableWriter::new(out, folder, &fields(), metadata(origin))?))
    }
}

/// Returns the columns.
pub fn fields() -> Vec<Field> {
    let mut fields: Vec<Field> = Vec::new();
    let listed = Row::default().visit(&mut fields);
    listed.unwrap_or_else(|error| unreachable!("listing columns cannot fail: {error}"));
    fields
}

/// Returns the key-value metadata of the table.
pub fn metadata(origin: &Origin) -> Vec<(String, String)> {
    origin.metadata(SCHEMA)
}

impl<T: Table> RowsWriter<T> {
    /// Creates a writer to a table with these [`fields`].
    pub fn to(table: T) -> RowsWriter<T> {
        RowsWriter { table, turn: Turn::default(), rows: 0 }
    }

    /// Adds a window.
    pub fn write(&mut self, mut row: Row) -> io::Result<()> {
        let numbers = 2 * (row.channel_data.len() + row.die_cell.len()) + self.turn.columns.len();
        self.turn.next = 0;
        row.visit(&mut self.turn).map_err(io::Error::other)?;
        self.rows += 1;
        if self.rows * numbers >= GROUP { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.table.group(&mut |group| self.turn.columns.iter().try_for_each(|column| column.write(group)))?;
        (self.turn, self.rows) = (Turn::default(), 0);
        Ok(())
    }

    /// Completes the table. `run` is the digest of the run.
    pub fn finish(mut self, run: Option<&str>) -> io::Result<T::Whole> {
        self.flush()?;
        self.table.finish(of_run(run))
    }
}

/// Reads all rows of `series.parquet`, in order of time.
pub fn read_series(path: &Path) -> Result<Vec<Row>> {
    read_merged(path, usize::MAX, |rows| rows[0].clone())
}

/// Reads the rows of `series.parquet`, in order of time. If there are more than `max_rows`, `merged` combines runs of
/// adjacent rows of equal length, so that memory use does not grow with their number.
pub fn read_merged(path: &Path, max_rows: usize, merged: impl Fn(&[Row]) -> Row) -> Result<Vec<Row>> {
    let table = TableReader::open(path, SCHEMA)?;
    let together = table.rows().div_ceil(max_rows.max(1)).max(1);
    let (mut rows, mut some) = (Vec::new(), Vec::new());
    for group in table.groups() {
        let group = group?;
        let read = group.batches().map(|batch| read_rows(&batch)).collect::<Result<Vec<_>>>();
        for row in read.with_context(|| format!("cannot read {}", path.display()))?.into_iter().flatten() {
            match together {
                1 => rows.push(row),
                _ => some.push(row),
            }
            if some.len() == together {
                rows.push(merged(&some));
                some.clear();
            }
        }
    }
    if !some.is_empty() {
        rows.push(merged(&some));
    }
    Ok(rows)
}

/// Reads rows from a table with these [`fields`].
pub fn read_rows(group: &dyn Rows) -> Result<Vec<Row>> {
    let mut columns = Read { group, columns: Vec::new(), row: 0, next: 0 };
    let mut rows = vec![Row::default(); group.rows()];
    for (index, row) in rows.iter_mut().enumerate() {
        (columns.row, columns.next) = (index, 0);
        row.visit(&mut columns)?;
    }
    Ok(rows)
}

/// Columns transposed into rows. A column is read when the first row needs it.
struct Read<'a> {
    group: &'a dyn Rows,
    columns: Vec<Column>,
    row: usize,
    next: usize,
}

impl Read<'_> {
    fn column(&mut self, read: impl FnOnce(&dyn Rows) -> Result<Column>) -> Result<&mut Column> {
        if self.columns.len() == self.next {
            self.columns.push(read(self.group)?);
        }
        self.next += 1;
        Ok(&mut self.columns[self.next - 1])
    }
}

impl Visitor for Read<'_> {
    fn whole(&mut self, name: &[&str], value: &mut u64) -> Result<()> {
        let row = self.row;
        let read = |group: &dyn Rows| {
            let values = group.whole(&name.concat())?;
            Ok(Column::Whole(values.into_iter().map(|value| value as i64).collect()))
        };
        if let Column::Whole(column) = self.column(read)? {
            *value = column[row] as u64;
        }
        Ok(())
    }
    fn number(&mut self, name: &[&str], value: &mut Option<f64>) -> Result<()> {
        let row = self.row;
        if let Column::Number(column) =
            self.column(|group: &dyn Rows| Ok(Column::Number(group.maybe_number(&name.concat())?)))?
        {
            *value = column[row];
        }
        Ok(())
    }
    fn numbers(&mut self, name: &str, value: &mut Vec<f64>) -> Result<()> {
        let row = self.row;
        if let Column::Numbers(column) = self.column(|group: &dyn Rows| Ok(Column::Numbers(group.numbers(name)?)))? {
            *value = std::mem::take(&mut column[row]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_documented() {
        // The types of the Python package are generated from the pages of docs/reference on the columns.
        let types = include_str!("../../../../python/floatgate/columns.py");
        let types = types.split_once("class Series(").unwrap().1;
        let columns = fields();
        for Field { name, .. } in &columns {
            assert!(
                types.contains(&format!("    {name}: ")),
                "neither docs/reference nor Python has `{name}`: run make bless"
            );
        }
        assert_eq!(types.matches(": npt.").count(), columns.len());
        for (statistic, _) in Statistics::default().list() {
            let has = |column| columns.iter().any(|field| field.name.starts_with(column));
            assert!(statistic.column.is_none_or(has), "{statistic:?}");
        }
    }
}
