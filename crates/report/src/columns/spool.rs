//! A table writer that encodes rows as they arrive and keeps the current row group on disk.
//!
//! The columns of a row group follow one another in a Parquet file. Therefore each column must be complete before the
//! next one is written.

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

/// Minimum number of rows in a row group, except the last.
const SMALLEST: u64 = 1 << 20;

/// If this fraction of all previous rows is larger, it is the minimum instead. The index of row groups stays in memory
/// until the end, and so grows only with the logarithm of the number of rows.
const PART: u64 = 8;

/// Rows per page. A page is encoded in memory.
const PAGE: usize = 1 << 12;

/// Rows per page in text columns. Such pages wait in memory for their dictionary, and take a few bits per row.
const TEXT_PAGE: usize = 1 << 14;

/// Writes a file. Memory use hardly depends on the number of rows.
pub struct SpoolingWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    /// Encoded pages of each column of the row group, in unnamed files that are deleted when they are closed.
    spools: Vec<File>,
    /// Directory of the temporary files.
    folder: PathBuf,
    /// Writers of these files.
    columns: Vec<ColumnWriter<'static>>,
    /// Rows in this row group, and in all groups before it.
    rows: u64,
    rows_before: u64,
}

impl<W: Write + Send> SpoolingWriter<W> {
    /// Creates a file with these columns. Pages wait for the end of their row group in `folder`.
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

    /// Starts the columns of a row group.
    fn open(&mut self) -> io::Result<()> {
        for (spool, description) in self.spools.iter_mut().zip(self.writer.schema_descr().columns()) {
            let pages = Box::new(Pages::new(spool, &self.folder)?);
            self.columns.push(get_column_writer(description.clone(), self.writer.properties().clone(), pages));
        }
        Ok(())
    }

    /// Copies the columns of the row group into the file.
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

/// Columns of a row group that have not received the current rows yet.
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
