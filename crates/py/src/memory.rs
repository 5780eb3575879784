//! Requests in memory: Arrow tables and iterables of Python as traces, without a file in between.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_pyarrow::{PyArrowType, Table as PyTable};
use arrow_schema::{DataType, TimeUnit as ArrowUnit};
use floatgate_core::sim::request::{Operation, SECTOR};
use floatgate_core::sim::time::Time;
use floatgate_workload::trace::{Table, TimeUnit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Requests in memory.
#[pyclass(frozen, module = "floatgate._floatgate")]
pub struct Requests {
    /// The requests, sorted by arrival.
    pub table: Arc<Table>,
}

#[pymethods]
impl Requests {
    /// Reads an Arrow table. `time_unit` is the unit of arrivals that are numbers.
    #[staticmethod]
    #[pyo3(signature = (table, time_unit))]
    fn from_arrow(table: PyArrowType<PyTable>, time_unit: Option<String>) -> PyResult<Requests> {
        let batches = table.0.record_batches();
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        let mut requests = Table::with_capacity(rows);
        let mut before = 0;
        for batch in batches {
            Columns::of(batch, unit(time_unit.as_deref())?)?.read(&mut requests, before)?;
            before += batch.num_rows();
        }
        requests.sort();
        Ok(Requests { table: Arc::new(requests) })
    }

    /// Reads an iterable of tuples: arrival, operation, offset in bytes, size in bytes.
    #[staticmethod]
    #[pyo3(signature = (rows, time_unit))]
    fn from_rows(rows: &Bound<'_, PyAny>, time_unit: Option<String>) -> PyResult<Requests> {
        let unit = unit(time_unit.as_deref())?;
        let mut requests = Table::with_capacity(rows.len().unwrap_or(0));
        for (row, item) in rows.try_iter()?.enumerate() {
            let (arrival, name, offset, size): (Bound<'_, PyAny>, PyBackedName, u64, u64) = item?.extract()?;
            let arrival = match arrival.extract::<u64>() {
                Ok(whole) => whole_time(whole, unit.unwrap_or(TimeUnit::Ns)),
                Err(_) => fraction_time(arrival.extract()?, unit.unwrap_or(TimeUnit::S)),
            };
            add(&mut requests, row, arrival, operation(&name), offset, size)?;
        }
        requests.sort();
        Ok(Requests { table: Arc::new(requests) })
    }

    fn __len__(&self) -> usize {
        self.table.len()
    }
}

/// Name of an operation, without a copy.
type PyBackedName = pyo3::pybacked::PyBackedStr;

fn invalid(why: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(why.to_string())
}

fn unit(text: Option<&str>) -> PyResult<Option<TimeUnit>> {
    text.map(|text| text.parse().map_err(|why| invalid(format!("time_unit: {why}")))).transpose()
}

/// Returns the time of a whole number. `None` if it is too large.
fn whole_time(value: u64, unit: TimeUnit) -> Option<Time> {
    value.checked_mul(10u64.pow(unit.exponent())).map(Time)
}

/// Returns the time of a decimal number, rounded to the nearest picosecond. `None` if it is negative or too large.
fn fraction_time(value: f64, unit: TimeUnit) -> Option<Time> {
    let ps = value * 10u64.pow(unit.exponent()) as f64;
    // A cast of a value below 2^63 is exact.
    (0.0..9.2e18).contains(&ps).then_some(Time((ps + 0.5) as u64))
}

/// Returns the operation of a name, in the words of results, of traces and of fio.
fn operation(name: &str) -> Option<Operation> {
    Some(match name {
        "read" | "R" | "r" | "Read" | "READ" => Operation::Read,
        "write" | "W" | "w" | "Write" | "WRITE" => Operation::Write,
        "trim" | "T" | "D" | "discard" | "Trim" | "TRIM" => Operation::Trim,
        "flush" | "F" | "sync" | "Flush" | "FLUSH" => Operation::Flush,
        "write_zeroes" | "Z" => Operation::WriteZeroes,
        _ => return None,
    })
}

/// Adds a request.
#[inline]
fn add(
    requests: &mut Table,
    row: usize,
    arrival: Option<Time>,
    operation: Option<Operation>,
    offset: u64,
    bytes: u64,
) -> PyResult<()> {
    let expected = match (arrival, operation) {
        (None, _) => "an arrival from 0 to 213 days",
        (_, None) => "an operation: read, write, trim, flush or write_zeroes",
        (Some(arrival), Some(operation)) => match requests.push(arrival, operation, offset, bytes) {
            Ok(()) => return Ok(()),
            Err(expected) => expected,
        },
    };
    Err(invalid(format!("row {row}: expected {expected}")))
}

/// Columns of a batch.
struct Columns {
    arrivals: Option<Arrivals>,
    operations: Operations,
    /// Offsets, and the number of bytes of their unit.
    offsets: (Vec<u64>, u64),
    /// Sizes, and the number of bytes of their unit.
    sizes: (Vec<u64>, u64),
}

/// Arrivals in a unit.
enum Arrivals {
    Whole(Vec<u64>, TimeUnit),
    Fraction(Vec<f64>, TimeUnit),
}

/// Operations of the rows.
enum Operations {
    /// An operation for each row.
    Each(Vec<Option<Operation>>),
    /// The index of an operation for each row.
    Dictionary(Vec<Option<Operation>>, Vec<u64>),
}

/// Returns the values of a column of whole numbers.
fn whole(name: &str, array: &ArrayRef) -> PyResult<Vec<u64>> {
    use arrow_array::types::{Int8Type, Int16Type, Int32Type, UInt8Type, UInt16Type, UInt32Type};
    if array.null_count() > 0 {
        return Err(invalid(format!(
            "column `{name}`: expected a value in every row, but {} are missing",
            array.null_count()
        )));
    }
    let signed = |values: &mut dyn Iterator<Item = i64>| -> PyResult<Vec<u64>> {
        let negative = || invalid(format!("column `{name}`: expected numbers from 0"));
        values.map(|value| u64::try_from(value).map_err(|_| negative())).collect()
    };
    match array.data_type() {
        DataType::UInt64 => Ok(array.as_primitive::<UInt64Type>().values().to_vec()),
        DataType::UInt32 => Ok(array.as_primitive::<UInt32Type>().values().iter().map(|v| u64::from(*v)).collect()),
        DataType::UInt16 => Ok(array.as_primitive::<UInt16Type>().values().iter().map(|v| u64::from(*v)).collect()),
        DataType::UInt8 => Ok(array.as_primitive::<UInt8Type>().values().iter().map(|v| u64::from(*v)).collect()),
        DataType::Int64 => signed(&mut array.as_primitive::<Int64Type>().values().iter().copied()),
        DataType::Int32 => signed(&mut array.as_primitive::<Int32Type>().values().iter().map(|v| i64::from(*v))),
        DataType::Int16 => signed(&mut array.as_primitive::<Int16Type>().values().iter().map(|v| i64::from(*v))),
        DataType::Int8 => signed(&mut array.as_primitive::<Int8Type>().values().iter().map(|v| i64::from(*v))),
        other => Err(invalid(format!("column `{name}`: expected whole numbers, not {other}"))),
    }
}

/// Returns the operations of a column of texts or dictionaries.
fn operations(array: &ArrayRef) -> PyResult<Operations> {
    let texts = |array: &ArrayRef| -> Option<Vec<Option<Operation>>> {
        let of = |text: Option<&str>| text.and_then(operation);
        Some(match array.data_type() {
            DataType::Utf8 => array.as_string::<i32>().iter().map(of).collect(),
            DataType::LargeUtf8 => array.as_string::<i64>().iter().map(of).collect(),
            DataType::Utf8View => array.as_string_view().iter().map(of).collect(),
            _ => return None,
        })
    };
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        let values = texts(dictionary.values());
        let keys = arrow_array::make_array(dictionary.keys().to_data());
        if let Some(values) = values {
            return Ok(Operations::Dictionary(values, whole("operation", &keys)?));
        }
    }
    let each = texts(array).map(Operations::Each);
    each.ok_or_else(|| invalid(format!("column `operation`: expected texts, not {}", array.data_type())))
}

/// Returns the arrivals of a column. Columns of times and durations have their own unit.
fn arrivals(name: &str, array: &ArrayRef, unit: Option<TimeUnit>) -> PyResult<Arrivals> {
    let of_arrow = |unit: ArrowUnit| match unit {
        ArrowUnit::Second => TimeUnit::S,
        ArrowUnit::Millisecond => TimeUnit::Ms,
        ArrowUnit::Microsecond => TimeUnit::Us,
        ArrowUnit::Nanosecond => TimeUnit::Ns,
    };
    let stored = match array.data_type() {
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().values().to_vec();
            return Ok(Arrivals::Fraction(values, unit.unwrap_or(TimeUnit::S)));
        }
        DataType::Timestamp(stored, _) | DataType::Duration(stored) => Some(of_arrow(*stored)),
        _ => None,
    };
    let Some(stored) = stored else {
        let default = if name == "arrival_ps" { TimeUnit::Ps } else { TimeUnit::Ns };
        return Ok(Arrivals::Whole(whole(name, array)?, unit.unwrap_or(default)));
    };
    // Times and durations are stored as 64-bit numbers.
    let data = array.to_data().into_builder().data_type(DataType::Int64).build().map_err(invalid)?;
    Ok(Arrivals::Whole(whole(name, &arrow_array::make_array(data))?, stored))
}

impl Columns {
    /// Finds the columns of a batch by their names.
    fn of(batch: &RecordBatch, unit: Option<TimeUnit>) -> PyResult<Columns> {
        let find = |names: &[(&'static str, u64)]| {
            names.iter().find_map(|(name, bytes)| Some((*name, *bytes, batch.column_by_name(name)?)))
        };
        let missing = |what: &str| {
            let schema = batch.schema();
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            invalid(format!("no column {what}; the table has {}", names.join(", ")))
        };
        let arrival = find(&[("arrival", 0), ("time", 0), ("arrival_ps", 0)]);
        let arrivals = arrival.map(|(name, _, array)| arrivals(name, array, unit)).transpose()?;
        let (_, _, kinds) = find(&[("operation", 0), ("op", 0)]).ok_or_else(|| missing("`operation`"))?;
        let (offset_name, offset_bytes, offsets) =
            find(&[("offset", 1), ("lba", SECTOR)]).ok_or_else(|| missing("`offset` or `lba`"))?;
        let (size_name, size_bytes, sizes) = find(&[("size", 1), ("bytes", 1), ("length", 1), ("sectors", SECTOR)])
            .ok_or_else(|| missing("`size` or `sectors`"))?;
        Ok(Columns {
            arrivals,
            operations: operations(kinds)?,
            offsets: (whole(offset_name, offsets)?, offset_bytes),
            sizes: (whole(size_name, sizes)?, size_bytes),
        })
    }

    /// Adds the requests to a table. `before` is the number of rows in earlier batches.
    fn read(&self, requests: &mut Table, before: usize) -> PyResult<()> {
        let (offsets, offset_bytes) = &self.offsets;
        let (sizes, size_bytes) = &self.sizes;
        for row in 0..offsets.len() {
            let arrival = match &self.arrivals {
                None => Some(Time::ZERO),
                Some(Arrivals::Whole(values, unit)) => whole_time(values[row], *unit),
                Some(Arrivals::Fraction(values, unit)) => fraction_time(values[row], *unit),
            };
            let operation = match &self.operations {
                Operations::Each(all) => all[row],
                Operations::Dictionary(values, keys) => values.get(keys[row] as usize).copied().flatten(),
            };
            let offset = offsets[row].saturating_mul(*offset_bytes);
            add(requests, before + row, arrival, operation, offset, sizes[row].saturating_mul(*size_bytes))?;
        }
        Ok(())
    }
}
