//! Tables in memory: writes Arrow columns, which Python uses without a copy.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int32Array, ListArray, RecordBatch, StringArray, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_pyarrow::Table as PyTable;
use arrow_schema::{ArrowError, DataType, Field as ArrowField, Schema, SchemaRef};
use floatgate_report::columns::table::{Columns, Field, Kind, Rows, Table};

/// Number of rows per batch of requests.
pub const BATCH: usize = 1 << 17;

/// Table in memory. It has the columns of the corresponding file, with texts as dictionaries.
pub struct Batches {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Batches {
    /// Creates an empty table.
    pub fn new(fields: &[Field], metadata: Vec<(String, String)>) -> Batches {
        let fields: Vec<ArrowField> = fields.iter().map(field).collect();
        let schema = Schema::new(fields).with_metadata(metadata.into_iter().collect::<BTreeMap<String, String>>());
        Batches { schema: Arc::new(schema), batches: Vec::new() }
    }
}

/// Returns the field of the numbers in a list.
fn element() -> ArrowField {
    ArrowField::new("element", DataType::Float64, false)
}

fn field(field: &Field) -> ArrowField {
    let texts = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let (kind, nullable) = match field.kind {
        Kind::Whole => (DataType::UInt64, false),
        Kind::MaybeWhole => (DataType::UInt64, true),
        Kind::Text => (texts(), false),
        Kind::MaybeNumber => (DataType::Float64, true),
        Kind::Numbers => (DataType::List(Arc::new(element())), false),
    };
    ArrowField::new(&field.name, kind, nullable)
}

fn plain(error: ArrowError) -> io::Error {
    io::Error::other(error)
}

impl Table for Batches {
    type Whole = PyTable;

    fn group(&mut self, write: &mut dyn FnMut(&mut dyn Columns) -> io::Result<()>) -> io::Result<()> {
        let mut columns = Batch::default();
        write(&mut columns)?;
        self.batches.push(RecordBatch::try_new(Arc::clone(&self.schema), columns.0).map_err(plain)?);
        Ok(())
    }

    fn finish(self, metadata: Vec<(String, String)>) -> io::Result<PyTable> {
        let mut all = self.schema.metadata().clone();
        all.extend(metadata);
        let schema = Arc::new(Schema::clone(&self.schema).with_metadata(all));
        let adapted = self.batches.into_iter().map(|batch| batch.with_schema(Arc::clone(&schema)));
        let batches = adapted.collect::<Result<Vec<_>, _>>().map_err(plain)?;
        PyTable::try_new(batches, schema).map_err(plain)
    }
}

/// Columns of a group of rows.
#[derive(Default)]
struct Batch(Vec<ArrayRef>);

/// Returns the values with gaps filled in, and the positions of the gaps.
fn spread<T: Copy + Default>(values: impl Iterator<Item = T>, present: &[i16]) -> (Vec<T>, Option<NullBuffer>) {
    let mut values = values;
    let nulls = present.contains(&0).then(|| present.iter().map(|present| *present > 0).collect());
    let spread =
        present.iter().map(|present| if *present > 0 { values.next().unwrap_or_default() } else { T::default() });
    (spread.collect(), nulls)
}

impl Columns for Batch {
    fn whole(&mut self, values: &[i64]) -> io::Result<()> {
        let values: Vec<u64> = values.iter().map(|value| *value as u64).collect();
        self.0.push(Arc::new(UInt64Array::from(values)));
        Ok(())
    }

    fn maybe_whole(&mut self, values: &[i64], present: &[i16]) -> io::Result<()> {
        let (values, nulls) = spread(values.iter().map(|value| *value as u64), present);
        self.0.push(Arc::new(UInt64Array::try_new(values.into(), nulls).map_err(plain)?));
        Ok(())
    }

    fn text(&mut self, texts: &[String], rows: &mut dyn ExactSizeIterator<Item = usize>) -> io::Result<()> {
        let keys: Int32Array = rows.map(|row| row as i32).collect::<Vec<_>>().into();
        let texts: StringArray = texts.iter().map(Some).collect();
        self.0.push(Arc::new(DictionaryArray::try_new(keys, Arc::new(texts)).map_err(plain)?));
        Ok(())
    }

    fn maybe_number(&mut self, values: &[f64], present: &[i16]) -> io::Result<()> {
        let (values, nulls) = spread(values.iter().copied(), present);
        self.0.push(Arc::new(Float64Array::try_new(values.into(), nulls).map_err(plain)?));
        Ok(())
    }

    fn numbers(&mut self, rows: &[Vec<f64>]) -> io::Result<()> {
        let values = Float64Array::from(rows.concat());
        let offsets = OffsetBuffer::from_lengths(rows.iter().map(Vec::len));
        let lists = ListArray::try_new(Arc::new(element()), offsets, Arc::new(values), None);
        self.0.push(Arc::new(lists.map_err(plain)?));
        Ok(())
    }
}

/// Rows of a table from Python.
pub struct Read<'a>(pub &'a RecordBatch);

impl Read<'_> {
    fn column(&self, name: &str, kind: &DataType) -> Result<&ArrayRef> {
        let column = self.0.column_by_name(name).with_context(|| format!("the table has no column {name}"))?;
        let found = column.data_type();
        let wanted = kind;
        let is_list =
            matches!((found, wanted), (DataType::List(f), DataType::List(_)) if *f.data_type() == DataType::Float64);
        anyhow::ensure!(found == wanted || is_list, "the column {name} has the type {found}, not {wanted}");
        Ok(column)
    }
}

impl Rows for Read<'_> {
    fn rows(&self) -> usize {
        self.0.num_rows()
    }

    fn whole(&self, name: &str) -> Result<Vec<u64>> {
        Ok(self.column(name, &DataType::UInt64)?.as_primitive::<UInt64Type>().values().to_vec())
    }

    fn maybe_number(&self, name: &str) -> Result<Vec<Option<f64>>> {
        Ok(self.column(name, &DataType::Float64)?.as_primitive::<Float64Type>().iter().collect())
    }

    fn numbers(&self, name: &str) -> Result<Vec<Vec<f64>>> {
        let lists = self.column(name, &DataType::List(Arc::new(element())))?.as_list::<i32>();
        let row = |list: ArrayRef| list.as_primitive::<Float64Type>().values().to_vec();
        Ok(lists.iter().map(|list| list.map(row).unwrap_or_default()).collect())
    }
}
