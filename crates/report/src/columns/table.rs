//! Tables in Parquet files: columns of whole numbers, numbers, texts and lists of numbers, a group of rows at a time.
//!
//! The levels of a value say whether it is there, and whether it begins a list:
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

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers without sign, of 64 bits.
    Whole,
    /// The same, or nothing.
    MaybeWhole,
    /// Texts of which there are few different ones.
    Text,
    /// Numbers, or nothing.
    MaybeNumber,
    /// Lists of numbers.
    Numbers,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What it holds.
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

/// Where a table goes, a group of rows at a time: a file, or memory.
pub trait Table: Sized {
    /// What there is of it at the end.
    type Whole;

    /// Adds a group of rows: `write` is called once, and writes all columns in their order.
    fn group(&mut self, write: &mut dyn FnMut(&mut dyn Columns) -> io::Result<()>) -> io::Result<()>;

    /// Completes it, with these keys and values beside those that it was begun with.
    fn finish(self, metadata: Vec<(String, String)>) -> io::Result<Self::Whole>;
}

/// The columns of a group of rows in the making: each call writes the next one.
pub trait Columns {
    /// Whole numbers, all there.
    fn whole(&mut self, values: &[i64]) -> io::Result<()>;
    /// Whole numbers; `present` says with 1 and 0 which rows have one.
    fn maybe_whole(&mut self, values: &[i64], present: &[i16]) -> io::Result<()>;
    /// Texts: by row, which of `texts`.
    fn text(&mut self, texts: &[String], rows: &mut dyn ExactSizeIterator<Item = usize>) -> io::Result<()>;
    /// Numbers; `present` says with 1 and 0 which rows have one.
    fn maybe_number(&mut self, values: &[f64], present: &[i16]) -> io::Result<()>;
    /// Lists of numbers.
    fn numbers(&mut self, rows: &[Vec<f64>]) -> io::Result<()>;
}

/// Where the columns of a group of rows are read from, by name. Rows have a value or not as the kind of column says.
pub trait Rows {
    /// How many rows there are.
    fn rows(&self) -> usize;
    /// A column of whole numbers.
    fn whole(&self, name: &str) -> Result<Vec<u64>>;
    /// A column of numbers, some of which may not be there.
    fn maybe_number(&self, name: &str) -> Result<Vec<Option<f64>>>;
    /// A column of lists of numbers.
    fn numbers(&self, name: &str) -> Result<Vec<Vec<f64>>>;
}

/// A Parquet error as one of input and output, with what the system said at its bottom.
pub fn plain(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    }
}

/// Columns of a group of a Parquet file in the making, of which each call writes some values of the next one.
pub(super) trait Encoder {
    /// Writes values of a column; the levels say which rows have some.
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

/// Begins a file with these columns, whose properties `adapt` completes.
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
    // Most times differ from row to row: what they differ by takes less room than a dictionary.
    for field in fields.iter().filter(|field| matches!(field.kind, Kind::Whole | Kind::MaybeWhole)) {
        let path = ColumnPath::from(field.name.as_str());
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    SerializedFileWriter::new(out, root, Arc::new(adapt(properties).build())).map_err(plain)
}

/// The next of the columns that a table has.
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

/// Returns a value that a file keeps beside its rows.
pub(super) fn run_in(path: &Path, key: &str) -> Result<Option<String>> {
    let told = || format!("cannot read {}", path.display());
    let file = std::fs::File::open(path).with_context(told)?;
    Ok(TableReader { reader: SerializedFileReader::new(file).with_context(told)? }.metadata(key))
}

/// A file in the making, each of whose groups is handed over whole.
pub struct TableWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    /// The pages of the column that is being written, in a file that goes with its last handle.
    spool: File,
    /// Where that is.
    folder: PathBuf,
}

impl<W: Write + Send> TableWriter<W> {
    /// Begins a file with these columns, whose pages wait in `folder`.
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

/// A group of rows in the making.
struct GroupWriter<'a, W: Write + Send> {
    group: SerializedRowGroupWriter<'a, W>,
    /// The columns that are not written yet.
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

/// A file to read.
pub struct TableReader {
    reader: SerializedFileReader<std::fs::File>,
}

impl TableReader {
    /// Opens a file of the form `schema`.
    pub fn open(path: &Path, schema: &str) -> Result<TableReader> {
        let told = || format!("cannot read {}", path.display());
        let file = std::fs::File::open(path).with_context(told)?;
        let reader = SerializedFileReader::new(file).with_context(told)?;
        let table = TableReader { reader };
        let found = table.metadata("floatgate.schema");
        match found.as_deref() {
            Some(found) if found == schema => Ok(table),
            Some(found) => anyhow::bail!(
                "{} has the form {found}, and this version of floatgate reads {schema}: run again",
                path.display()
            ),
            None => anyhow::bail!("{} was not written by floatgate", path.display()),
        }
    }

    /// A value that the file keeps beside its rows.
    pub fn metadata(&self, key: &str) -> Option<String> {
        let pairs = self.reader.metadata().file_metadata().key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.clone()
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.reader.metadata().file_metadata().num_rows().max(0) as usize
    }

    /// The groups of rows, in order.
    pub fn groups(&self) -> impl Iterator<Item = Result<Group<'_>>> {
        let group = |index| Ok(Group { group: self.reader.get_row_group(index)?, columns: RefCell::default() });
        (0..self.reader.num_row_groups()).map(group)
    }
}

/// Rows that are read together.
const BATCH: usize = 1 << 16;

/// A group of rows, and how far each of its columns was read.
pub struct Group<'a> {
    group: Box<dyn RowGroupReader + 'a>,
    columns: RefCell<BTreeMap<usize, Reading>>,
}

impl Group<'_> {
    /// Its rows in order, some at a time: groups of a large file do not fit into memory.
    pub fn batches(&self) -> impl Iterator<Item = Batch<'_>> {
        let rows = self.group.metadata().num_rows().max(0) as usize;
        (0..rows).step_by(BATCH).map(move |from| Batch { group: self, from, rows: BATCH.min(rows - from) })
    }
}

/// A column that is read from its beginning on.
struct Reading {
    /// Its [`ColumnReaderImpl`], whose type the column knows.
    reader: Box<dyn Any>,
    /// The row that comes next.
    at: usize,
}

/// Some rows of a group.
pub struct Batch<'a> {
    group: &'a Group<'a>,
    from: usize,
    rows: usize,
}

/// Values of a column, which rows have one, and which begin a row.
type Leveled<T> = (Vec<T>, Vec<i16>, Vec<i16>);

impl Batch<'_> {
    fn read<T: DataType>(&self, name: &str) -> Result<Leveled<T::T>> {
        let group = &self.group.group;
        let columns = group.metadata().columns();
        let index = columns.iter().position(|column| column.column_path().parts().first().is_some_and(|p| p == name));
        let index = index.with_context(|| format!("the file has no column {name}"))?;
        anyhow::ensure!(columns[index].column_type() == T::get_physical_type(), "the column {name} has another type");
        let mut columns = self.group.columns.borrow_mut();
        // Columns are read forward only: a second time from the beginning.
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

    /// A column of whole numbers, some of which may not be there.
    pub fn maybe_whole(&self, name: &str) -> Result<Vec<Option<u64>>> {
        let (values, defined, _) = self.read::<Int64Type>(name)?;
        Ok(spread(values.into_iter().map(|value| value as u64), &defined))
    }

    /// A column of texts.
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

/// Values, with gaps where there is none.
fn spread<T>(mut values: impl Iterator<Item = T>, defined: &[i16]) -> Vec<Option<T>> {
    defined.iter().map(|defined| if *defined > 0 { values.next() } else { None }).collect()
}
