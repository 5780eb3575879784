//! Tables in Parquet files, with columns of integers, numbers, texts and lists of numbers.
//!
//! Tables are written and read one row group at a time. Definition levels encode whether a value is present, and
//! repetition levels whether it starts a list:
//! <https://parquet.apache.org/docs/file-format/nestedencoding/>.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::column::writer::{get_column_writer, get_typed_column_writer_mut};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterPropertiesPtr};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnDescPtr, ColumnPath, Type, TypePtr};

use super::pages::Pages;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Unsigned 64-bit integers.
    Whole,
    /// Optional unsigned 64-bit integers.
    MaybeWhole,
    /// Texts with few distinct values.
    Text,
    /// Optional numbers.
    MaybeNumber,
    /// Lists of numbers.
    Numbers,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the column.
    pub name: String,
    /// Type of the column.
    pub kind: Kind,
}

impl Field {
    fn parquet(&self) -> Result<TypePtr, ParquetError> {
        let leaf = |name: &str, physical, logical, repetition| {
            let builder = Type::primitive_type_builder(name, physical).with_logical_type(logical);
            builder.with_repetition(repetition).build()
        };
        let whole = || Some(LogicalType::integer(64, false));
        let built = match self.kind {
            Kind::Whole => leaf(&self.name, Physical::INT64, whole(), Repetition::REQUIRED),
            Kind::MaybeWhole => leaf(&self.name, Physical::INT64, whole(), Repetition::OPTIONAL),
            Kind::Text => leaf(&self.name, Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
            Kind::MaybeNumber => leaf(&self.name, Physical::DOUBLE, None, Repetition::OPTIONAL),
            Kind::Numbers => {
                let element = Arc::new(leaf("element", Physical::DOUBLE, None, Repetition::REQUIRED)?);
                let list = Type::group_type_builder("list").with_repetition(Repetition::REPEATED);
                let list = Arc::new(list.with_fields(vec![element]).build()?);
                let outer = Type::group_type_builder(&self.name).with_repetition(Repetition::REQUIRED);
                outer.with_logical_type(Some(LogicalType::List)).with_fields(vec![list]).build()
            }
        };
        built.map(Arc::new)
    }
}

/// Destination of a table, such as a file or memory. It receives one row group at a time.
pub trait Table: Sized {
    /// Result of writing the table.
    type Whole;

    /// Adds a row group. `write` is called once and writes all columns in order.
    fn group(&mut self, write: &mut dyn FnMut(&mut dyn Columns) -> io::Result<()>) -> io::Result<()>;

    /// Completes the table. `metadata` is added to the metadata given at the start.
    fn finish(self, metadata: Vec<(String, String)>) -> io::Result<Self::Whole>;
}

/// Columns of a row group that is being written. Each call writes the next column.
pub trait Columns {
    /// Writes required integers.
    fn whole(&mut self, values: &[i64]) -> io::Result<()>;
    /// Writes optional integers. `present` is 1 for each row that has a value, otherwise 0.
    fn maybe_whole(&mut self, values: &[i64], present: &[i16]) -> io::Result<()>;
    /// Writes texts. `rows` are indices into `texts`.
    fn text(&mut self, texts: &[String], rows: &mut dyn ExactSizeIterator<Item = usize>) -> io::Result<()>;
    /// Writes optional numbers. `present` is 1 for each row that has a value, otherwise 0.
    fn maybe_number(&mut self, values: &[f64], present: &[i16]) -> io::Result<()>;
    /// Writes lists of numbers.
    fn numbers(&mut self, rows: &[Vec<f64>]) -> io::Result<()>;
}

/// Source of the columns of a row group, by name.
pub trait Rows {
    /// Returns the number of rows.
    fn rows(&self) -> usize;
    /// Returns a column of required integers.
    fn whole(&self, name: &str) -> Result<Vec<u64>>;
    /// Returns a column of optional numbers.
    fn maybe_number(&self, name: &str) -> Result<Vec<Option<f64>>>;
    /// Returns a column of lists of numbers.
    fn numbers(&self, name: &str) -> Result<Vec<Vec<f64>>>;
}

/// Converts a Parquet error to an I/O error, and unwraps an underlying I/O error.
pub fn plain(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    }
}

/// Columns of a row group of a Parquet file that is being written. Each call writes values of the next column.
pub(super) trait Encoder {
    /// Writes values of a column. The levels encode which rows have values.
    fn column<T: DataType>(
        &mut self,
        values: &[T::T],
        defined: Option<&[i16]>,
        repeated: Option<&[i16]>,
    ) -> io::Result<()>;
}

impl<E: Encoder> Columns for E {
    fn whole(&mut self, values: &[i64]) -> io::Result<()> {
        self.column::<Int64Type>(values, None, None)
    }

    fn maybe_whole(&mut self, values: &[i64], present: &[i16]) -> io::Result<()> {
        self.column::<Int64Type>(values, Some(present), None)
    }

    fn text(&mut self, texts: &[String], rows: &mut dyn ExactSizeIterator<Item = usize>) -> io::Result<()> {
        let texts: Vec<ByteArray> = texts.iter().map(|text| ByteArray::from(text.as_str())).collect();
        let values: Vec<ByteArray> = rows.map(|row| texts[row].clone()).collect();
        self.column::<ByteArrayType>(&values, None, None)
    }

    fn maybe_number(&mut self, values: &[f64], present: &[i16]) -> io::Result<()> {
        self.column::<DoubleType>(values, Some(present), None)
    }

    fn numbers(&mut self, rows: &[Vec<f64>]) -> io::Result<()> {
        let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            values.extend_from_slice(row);
            defined.resize(defined.len() + row.len().max(1), i16::from(!row.is_empty()));
            repeated.push(0);
            repeated.resize(defined.len(), 1);
        }
        self.column::<DoubleType>(&values, Some(&defined), Some(&repeated))
    }
}

/// Starts a file with these columns. `adapt` may change its properties.
pub(super) fn begin<W: Write + Send>(
    out: W,
    fields: &[Field],
    metadata: Vec<(String, String)>,
    adapt: impl FnOnce(WriterPropertiesBuilder) -> WriterPropertiesBuilder,
) -> io::Result<SerializedFileWriter<W>> {
    let columns: Result<Vec<TypePtr>, ParquetError> = fields.iter().map(Field::parquet).collect();
    let root = columns.and_then(|columns| Type::group_type_builder("floatgate").with_fields(columns).build());
    let root = Arc::new(root.map_err(plain)?);
    let metadata = metadata.into_iter().map(|(key, value)| KeyValue { key, value: Some(value) }).collect();
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("floatgate version {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(metadata))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    // Most times differ from row to row. Their differences take less space than a dictionary.
    for field in fields.iter().filter(|field| matches!(field.kind, Kind::Whole | Kind::MaybeWhole)) {
        let path = ColumnPath::from(field.name.as_str());
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    SerializedFileWriter::new(out, root, Arc::new(adapt(properties).build())).map_err(plain)
}

/// Returns the next column, or an error if the table has no more.
pub(super) fn next<C>(column: Option<C>) -> io::Result<C> {
    column.ok_or_else(|| io::Error::other("more columns than the table has"))
}

/// Completes a file.
pub(super) fn end<W: Write + Send>(
    mut writer: SerializedFileWriter<W>,
    metadata: Vec<(String, String)>,
) -> io::Result<W> {
    for (key, value) in metadata {
        writer.append_key_value_metadata(KeyValue { key, value: Some(value) });
    }
    writer.into_inner().map_err(plain)
}

/// Returns the value of a metadata key of a file.
pub(super) fn run_in(path: &Path, key: &str) -> Result<Option<String>> {
    let reported = || format!("cannot read {}", path.display());
    let file = std::fs::File::open(path).with_context(reported)?;
    Ok(TableReader { reader: SerializedFileReader::new(file).with_context(reported)? }.metadata(key))
}

/// Writes a file one complete row group at a time.
pub struct TableWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    /// Pages of the current column, in an unnamed file that is deleted when it is closed.
    spool: File,
    /// Directory of the unnamed file, for error messages.
    folder: PathBuf,
}

impl<W: Write + Send> TableWriter<W> {
    /// Creates a file with these columns. Pages wait for the end of their column in `folder`.
    pub fn new(out: W, folder: &Path, fields: &[Field], metadata: Vec<(String, String)>) -> io::Result<TableWriter<W>> {
        let writer = begin(out, fields, metadata, |properties| properties)?;
        Ok(TableWriter { writer, spool: tempfile::tempfile_in(folder)?, folder: folder.to_owned() })
    }
}

impl<W: Write + Send> Table for TableWriter<W> {
    type Whole = W;

    fn group(&mut self, write: &mut dyn FnMut(&mut dyn Columns) -> io::Result<()>) -> io::Result<()> {
        let columns = self.writer.schema_descr().columns().to_vec().into_iter();
        let properties = Arc::clone(self.writer.properties());
        let group = self.writer.next_row_group().map_err(plain)?;
        let mut group = GroupWriter { group, columns, properties, spool: &mut self.spool, folder: &self.folder };
        write(&mut group)?;
        group.group.close().map(|_| ()).map_err(plain)
    }

    fn finish(self, metadata: Vec<(String, String)>) -> io::Result<W> {
        end(self.writer, metadata)
    }
}

/// A row group that is being written.
struct GroupWriter<'a, W: Write + Send> {
    group: SerializedRowGroupWriter<'a, W>,
    /// Columns that have not been written yet.
    columns: std::vec::IntoIter<ColumnDescPtr>,
    properties: WriterPropertiesPtr,
    spool: &'a mut File,
    folder: &'a Path,
}

impl<W: Write + Send> Encoder for GroupWriter<'_, W> {
    fn column<T: DataType>(
        &mut self,
        values: &[T::T],
        defined: Option<&[i16]>,
        repeated: Option<&[i16]>,
    ) -> io::Result<()> {
        let pages = Box::new(Pages::new(self.spool, self.folder)?);
        let mut column = get_column_writer(next(self.columns.next())?, Arc::clone(&self.properties), pages);
        let typed = get_typed_column_writer_mut::<T>(&mut column);
        typed.write_batch(values, defined, repeated).map_err(plain)?;
        column.close().and_then(|closed| self.group.append_column(self.spool, closed)).map_err(plain)
    }
}

/// A Parquet file that is open for reading.
pub struct TableReader {
    reader: SerializedFileReader<std::fs::File>,
}

impl TableReader {
    /// Opens a file with this schema.
    pub fn open(path: &Path, schema: &str) -> Result<TableReader> {
        let reported = || format!("cannot read {}", path.display());
        let file = std::fs::File::open(path).with_context(reported)?;
        let reader = SerializedFileReader::new(file).with_context(reported)?;
        let table = TableReader { reader };
        let found = table.metadata("floatgate.schema");
        match found.as_deref() {
            Some(found) if found == schema => Ok(table),
            Some(found) => anyhow::bail!(
                "{} has schema {found}, but this version of floatgate reads {schema}; run the simulation again",
                path.display()
            ),
            None => anyhow::bail!("{} was not written by floatgate", path.display()),
        }
    }

    /// Returns the value of a metadata key.
    pub fn metadata(&self, key: &str) -> Option<String> {
        let pairs = self.reader.metadata().file_metadata().key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.clone()
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.reader.metadata().file_metadata().num_rows().max(0) as usize
    }

    /// Returns the row groups, in order.
    pub fn groups(&self) -> impl Iterator<Item = Result<Group<'_>>> {
        let group = |index| Ok(Group { group: self.reader.get_row_group(index)?, columns: RefCell::default() });
        (0..self.reader.num_row_groups()).map(group)
    }
}

/// Rows per batch.
const BATCH: usize = 1 << 16;

/// A row group, and the read position in each of its columns.
pub struct Group<'a> {
    group: Box<dyn RowGroupReader + 'a>,
    columns: RefCell<BTreeMap<usize, Reading>>,
}

impl Group<'_> {
    /// Returns the rows in order, in batches, because row groups of a large file do not fit into memory.
    pub fn batches(&self) -> impl Iterator<Item = Batch<'_>> {
        let rows = self.group.metadata().num_rows().max(0) as usize;
        (0..rows).step_by(BATCH).map(move |from| Batch { group: self, from, rows: BATCH.min(rows - from) })
    }
}

/// A column that is read from start to end.
struct Reading {
    /// A [`ColumnReaderImpl`]. The column determines its type parameter.
    reader: Box<dyn Any>,
    /// Index of the next row.
    at: usize,
}

/// Some rows of a group.
pub struct Batch<'a> {
    group: &'a Group<'a>,
    from: usize,
    rows: usize,
}

/// Values of a column, with their definition and repetition levels.
type Leveled<T> = (Vec<T>, Vec<i16>, Vec<i16>);

impl Batch<'_> {
    fn read<T: DataType>(&self, name: &str) -> Result<Leveled<T::T>> {
        let group = &self.group.group;
        let columns = group.metadata().columns();
        let index = columns.iter().position(|column| column.column_path().parts().first().is_some_and(|p| p == name));
        let index = index.with_context(|| format!("the file has no column {name}"))?;
        anyhow::ensure!(columns[index].column_type() == T::get_physical_type(), "the column {name} has another type");
        let mut columns = self.group.columns.borrow_mut();
        // Column readers only move forward. To go back, read again from the start.
        let column = columns.remove(&index).filter(|column| column.at <= self.from);
        let Reading { mut reader, at } = match column {
            Some(column) => column,
            None => {
                let reader: ColumnReaderImpl<T> = get_typed_column_reader(group.get_column_reader(index)?);
                Reading { reader: Box::new(reader), at: 0 }
            }
        };
        let typed = reader.downcast_mut::<ColumnReaderImpl<T>>().context("a column has one type")?;
        if at < self.from {
            typed.skip_records(self.from - at)?;
        }
        let (mut values, mut defined, mut repeated, mut rows) = (Vec::new(), Vec::new(), Vec::new(), 0);
        while rows < self.rows {
            let left = self.rows - rows;
            let read = typed.read_records(left, Some(&mut defined), Some(&mut repeated), &mut values)?.0;
            anyhow::ensure!(read > 0, "the column {name} ends before the others");
            rows += read;
        }
        columns.insert(index, Reading { reader, at: self.from + self.rows });
        Ok((values, defined, repeated))
    }

    /// Returns a column of optional integers.
    pub fn maybe_whole(&self, name: &str) -> Result<Vec<Option<u64>>> {
        let (values, defined, _) = self.read::<Int64Type>(name)?;
        Ok(spread(values.into_iter().map(|value| value as u64), &defined))
    }

    /// Returns a column of texts.
    pub fn text(&self, name: &str) -> Result<Vec<ByteArray>> {
        Ok(self.read::<ByteArrayType>(name)?.0)
    }
}

impl Rows for Batch<'_> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn whole(&self, name: &str) -> Result<Vec<u64>> {
        Ok(self.read::<Int64Type>(name)?.0.into_iter().map(|value| value as u64).collect())
    }

    fn maybe_number(&self, name: &str) -> Result<Vec<Option<f64>>> {
        let (values, defined, _) = self.read::<DoubleType>(name)?;
        Ok(spread(values.into_iter(), &defined))
    }

    fn numbers(&self, name: &str) -> Result<Vec<Vec<f64>>> {
        let (values, defined, repeated) = self.read::<DoubleType>(name)?;
        let mut values = values.into_iter();
        let mut rows: Vec<Vec<f64>> = Vec::with_capacity(self.rows());
        for (defined, repeated) in defined.iter().zip(repeated) {
            if repeated == 0 {
                rows.push(Vec::new());
            }
            if let (1, Some(row)) = (defined, rows.last_mut()) {
                row.extend(values.next());
            }
        }
        Ok(rows)
    }
}

/// Returns one element per row: a value, or `None` if the row has none.
fn spread<T>(mut values: impl Iterator<Item = T>, defined: &[i16]) -> Vec<Option<T>> {
    defined.iter().map(|defined| if *defined > 0 { values.next() } else { None }).collect()
}
