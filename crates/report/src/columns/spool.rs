//! A table whose rows are encoded as they come, and wait for the end of their group on disk.
//!
//! The columns of a group follow each other in a Parquet file, so that each has to be complete before the next one.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use parquet::column::writer::{ColumnWriter, get_column_writer, get_typed_column_writer_mut};
use parquet::data_type::DataType;
use parquet::file::properties::WriterPropertiesBuilder;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use super::pages::Pages;
use super::table::{Columns, Encoder, Field, Kind, Table, begin, end, next, plain};

/// Rows of the smallest group but the last one.
const SMALLEST: u64 = 1 << 20;

/// A group has this part of the rows before it, if that is more: so the index of groups, which stays in memory up to
/// the end, grows with the logarithm of the rows.
const PART: u64 = 8;

/// Rows of a page, which is encoded in memory.
const PAGE: usize = 1 << 12;

/// The same of a column of texts, whose pages wait in memory for their dictionary; they have a few bits for each row.
const TEXT_PAGE: usize = 1 << 14;

/// A file in the making, in memory that hardly depends on its rows.
pub struct SpoolingWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    /// The encoded pages of each column of the group, in files that go with their last handle.
    spools: Vec<File>,
    /// Directory of the temporary files.
    folder: PathBuf,
    /// What writes to them.
    columns: Vec<ColumnWriter<'static>>,
    /// Rows of the group, and of all before it.
    rows: u64,
    rows_before: u64,
}

impl<W: Write + Send> SpoolingWriter<W> {
    /// Begins a file with these columns, whose pages wait in `folder`.
    pub fn new(
        out: W,
        folder: &Path,
        fields: &[Field],
        metadata: Vec<(String, String)>,
    ) -> io::Result<SpoolingWriter<W>> {
        let pages = |properties: WriterPropertiesBuilder| {
            let texts = fields.iter().filter(|field| field.kind == Kind::Text);
            texts.fold(properties.set_data_page_row_count_limit(PAGE), |properties, field| {
                let path = ColumnPath::from(field.name.as_str());
                properties.set_column_data_page_row_count_limit(path, TEXT_PAGE)
            })
        };
        let writer = begin(out, fields, metadata, pages)?;
        let spools: io::Result<Vec<File>> = fields.iter().map(|_| tempfile::tempfile_in(folder)).collect();
        Ok(SpoolingWriter {
            writer,
            spools: spools?,
            folder: folder.to_owned(),
            columns: Vec::new(),
            rows: 0,
            rows_before: 0,
        })
    }

    /// Begins the columns of a group.
    fn open(&mut self) -> io::Result<()> {
        for (spool, description) in self.spools.iter_mut().zip(self.writer.schema_descr().columns()) {
            let pages = Box::new(Pages::new(spool, &self.folder)?);
            self.columns.push(get_column_writer(description.clone(), self.writer.properties().clone(), pages));
        }
        Ok(())
    }

    /// Copies the columns of the group into the file.
    fn close(&mut self) -> io::Result<()> {
        let mut group = self.writer.next_row_group().map_err(plain)?;
        for (column, spool) in self.columns.drain(..).zip(&self.spools) {
            column.close().and_then(|closed| group.append_column(spool, closed)).map_err(plain)?;
        }
        group.close().map_err(plain)?;
        self.rows_before += std::mem::take(&mut self.rows);
        Ok(())
    }
}

impl<W: Write + Send> Table for SpoolingWriter<W> {
    type Whole = W;

    fn group(&mut self, write: &mut dyn FnMut(&mut dyn Columns) -> io::Result<()>) -> io::Result<()> {
        if self.columns.is_empty() {
            self.open()?;
        }
        write(&mut Group { columns: self.columns.iter_mut(), rows: &mut self.rows })?;
        if self.rows >= SMALLEST.max(self.rows_before / PART) { self.close() } else { Ok(()) }
    }

    fn finish(mut self, metadata: Vec<(String, String)>) -> io::Result<W> {
        if !self.columns.is_empty() {
            self.close()?;
        }
        end(self.writer, metadata)
    }
}

/// The columns of a group, those that have the rows already taken away.
struct Group<'a> {
    columns: std::slice::IterMut<'a, ColumnWriter<'static>>,
    rows: &'a mut u64,
}

impl Encoder for Group<'_> {
    fn column<T: DataType>(
        &mut self,
        values: &[T::T],
        defined: Option<&[i16]>,
        repeated: Option<&[i16]>,
    ) -> io::Result<()> {
        let column = get_typed_column_writer_mut::<T>(next(self.columns.next())?);
        column.write_batch(values, defined, repeated).map_err(plain)?;
        *self.rows = column.get_total_rows_written();
        Ok(())
    }
}
