//! Pages of a column: writes them to a file, each with a checksum (`crc` in the page header). The library reads
//! checksums but does not write them
//! (<https://github.com/apache/parquet-format/blob/master/README.md#checksumming>).

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use flate2::Crc;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};

/// Writes the pages of a column.
pub(super) struct Pages {
    out: TrackedWrite<File>,
    /// Directory of the unnamed file, for error messages.
    folder: PathBuf,
}

impl Pages {
    /// Starts a column in `spool`, a file in `folder`, and discards its previous content.
    pub(super) fn new(spool: &mut File, folder: &Path) -> io::Result<Pages> {
        spool.set_len(0)?;
        spool.rewind()?;
        Ok(Pages { out: TrackedWrite::new(spool.try_clone()?), folder: folder.to_owned() })
    }

    /// Returns the error with the name of the directory.
    fn named(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.folder.display()))
    }
}

impl PageWriter for Pages {
    fn write_page(&mut self, page: CompressedPage) -> ParquetResult<PageWriteSpec> {
        let mut crc = Crc::new();
        crc.update(page.data());
        let (uncompressed, compressed) = (page.uncompressed_size(), page.compressed_size());
        let mut plain = TrackedWrite::new(Vec::new());
        let mut spec = SerializedPageWriter::new(&mut plain).write_page(page)?;
        let plain = plain.into_inner()?;
        let (header, data) = plain.split_at(plain.len() - compressed);
        let header = with_crc(header, crc.sum()).ok_or_else(|| {
            ParquetError::General("unexpected page header: not the layout of this version of the library".to_owned())
        })?;
        spec.offset = self.out.bytes_written() as u64;
        spec.bytes_written = (header.len() + data.len()) as u64;
        spec.uncompressed_size = uncompressed + header.len();
        spec.compressed_size = compressed + header.len();
        self.out.write_all(&header).and_then(|()| self.out.write_all(data)).map_err(|error| self.named(error))?;
        Ok(spec)
    }

    fn close(&mut self) -> ParquetResult<()> {
        Ok(self.out.flush().map_err(|error| self.named(error))?)
    }
}

/// Thrift compact-protocol header of an `i32` field whose id is one greater than the id of the field before it.
const NEXT_I32: u8 = 0x15;

/// Returns a page header with a checksum as its fourth field. Returns `None` if the header does not start with the
/// three `i32` fields that precede the checksum, followed by a later field.
fn with_crc(header: &[u8], crc: u32) -> Option<Vec<u8>> {
    let mut at = 0;
    for _ in 0..3 {
        if *header.get(at)? != NEXT_I32 {
            return None;
        }
        at += 1 + header[at + 1..].iter().position(|byte| byte & 0x80 == 0)? + 1;
    }
    let next = *header.get(at).filter(|next| **next >> 4 > 1)?;
    let mut made = header[..at].to_vec();
    made.push(NEXT_I32);
    let signed = crc as i32;
    let mut left = ((signed << 1) ^ (signed >> 31)) as u32;
    while left >= 0x80 {
        made.push(left as u8 | 0x80);
        left >>= 7;
    }
    made.push(left as u8);
    made.push(next - 0x10);
    made.extend_from_slice(&header[at + 1..]);
    Some(made)
}
