//! Bytes of a trace file, decompressed.

use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::merged::{self, Merged};
use crate::file::{Stop, Stoppable};
use crate::sim::source::SourceError;

/// Number of bytes to read from the file at a time.
const BLOCK: usize = 128 << 10;

/// Compression format. For an input file it is detected from the first bytes, never from the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// No compression.
    Plain,
    /// `.gz`
    Gzip,
    /// `.xz`
    Xz,
    /// `.zst`
    Zstd,
    /// `.bz2`
    Bzip2,
}

impl Packing {
    fn of(head: &[u8]) -> Packing {
        match head {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Packing::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Packing::Bzip2,
            _ => Packing::Plain,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Packing::Plain => "plain",
            Packing::Gzip => "gzip",
            Packing::Xz => "xz",
            Packing::Zstd => "zstd",
            Packing::Bzip2 => "bzip2",
        }
    }
}

/// A file that is being read and decompressed.
pub(crate) struct Input {
    /// Name of the file in messages.
    name: String,
    packing: Packing,
    /// Length of the file, if it is a regular file.
    size: Option<u64>,
    consumed: Arc<AtomicU64>,
    stream: Box<dyn Read + Send>,
    stop: Stop,
    /// True if any byte has been read.
    has_begun: bool,
    /// True if the compressed data are truncated, for example because the writing program was killed.
    is_cut: bool,
}

impl Input {
    /// Opens a file, which messages call `name`. Reads all compressed streams in it. If `stop` is requested, reading
    /// ends with an error, even while it waits for a pipe.
    pub(crate) fn open(path: &Path, name: String, stop: &Stop) -> Result<Input, SourceError> {
        let error = |error: io::Error| SourceError(format!("{name}: cannot open the trace: {error}"));
        let parts = merged::parts(path);
        if !parts.is_empty() {
            let (merged, size) = Merged::open(&parts, stop).map_err(error)?;
            let consumed = Arc::new(AtomicU64::new(0));
            let stream = Box::new(Counted { inner: merged, count: Arc::clone(&consumed) });
            let (packing, size, stop) = (Packing::Plain, Some(size), stop.clone());
            return Ok(Input { name, packing, size, consumed, stream, stop, has_begun: false, is_cut: false });
        }
        let file = Stoppable::open(path, stop).map_err(error)?;
        let metadata = file.file().metadata().map_err(error)?;
        if metadata.is_dir() {
            return Err(SourceError(format!("{name}: cannot open the trace: it is a directory")));
        }
        let size = metadata.is_file().then_some(metadata.len());
        let consumed = Arc::new(AtomicU64::new(0));
        let counted = Counted { inner: file, count: Arc::clone(&consumed) };
        let (packing, stream) = unpack(counted).map_err(error)?;
        let stop = stop.clone();
        Ok(Input { name, packing, size, consumed, stream, stop, has_begun: false, is_cut: false })
    }

    /// Returns the name of the file in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns `true` if the file can be opened again with the same contents.
    pub(super) fn is_file(&self) -> bool {
        self.size.is_some()
    }

    /// Returns the share of the file that has been read.
    pub(crate) fn progress(&self) -> Option<f64> {
        let size = self.size.filter(|size| *size > 0)?;
        Some((self.consumed.load(Ordering::Relaxed) as f64 / size as f64).min(1.0))
    }

    /// Returns `true` if the compressed data are truncated. The data before the cut were read.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns a warning if the file is truncated.
    pub(crate) fn warning(&self) -> Option<String> {
        let packing = self.packing.name();
        self.is_cut.then(|| format!("the {packing} data is cut off; the requests before the cut are read"))
    }

    /// Reads into `buffer`. Returns 0 at the end, and at the cut in truncated data, except at their very start.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, SourceError> {
        while !self.is_cut {
            // Check here as well, because a block of a compressed file may expand to very many reads.
            self.stop.check().map_err(|error| SourceError(format!("{}: {error}", self.name)))?;
            match self.stream.read(buffer) {
                Ok(length) => {
                    self.has_begun |= length > 0;
                    return Ok(length);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if self.has_begun && self.ends_early(&error) => self.is_cut = true,
                Err(error) => return Err(self.error(&error)),
            }
        }
        Ok(0)
    }

    /// Returns `true` if the file ends within compressed data, which decoders report as an unexpected end of file.
    fn ends_early(&self, error: &io::Error) -> bool {
        self.packing != Packing::Plain && error.kind() == io::ErrorKind::UnexpectedEof
    }

    #[cold]
    fn error(&self, error: &io::Error) -> SourceError {
        let (name, packing) = (&self.name, self.packing.name());
        match self.packing {
            Packing::Plain => SourceError(format!("{name}: cannot read the trace: {error}")),
            _ => SourceError(format!("{name}: the {packing} data is damaged or cut off: {error}")),
        }
    }
}

/// Detects the compression from the first bytes, and adds the decoder.
fn unpack(mut file: impl Read + Send + 'static) -> io::Result<(Packing, Box<dyn Read + Send>)> {
    let mut head = Vec::with_capacity(6);
    file.by_ref().take(6).read_to_end(&mut head)?;
    let packing = Packing::of(&head);
    let whole = Cursor::new(head).chain(file);
    if packing == Packing::Plain {
        // The data are read in blocks anyway, so no buffer is needed.
        return Ok((packing, Box::new(whole)));
    }
    let buffered = BufReader::with_capacity(BLOCK, whole);
    let stream: Box<dyn Read + Send> = match packing {
        Packing::Plain => Box::new(buffered),
        Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(buffered)),
        Packing::Xz => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(buffered)),
        Packing::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(buffered)?),
        Packing::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(buffered)),
    };
    Ok((packing, stream))
}

/// Counts the bytes read, for progress reports.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.count.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn packed(packing: Packing, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match packing {
            Packing::Plain => out.extend_from_slice(bytes),
            Packing::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(&mut out, flate2::Compression::fast());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap();
            }
            Packing::Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(&mut out, 1);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap();
            }
            Packing::Zstd => out = zstd::encode_all(bytes, 1).unwrap(),
            Packing::Bzip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(&mut out, bzip2::Compression::fast());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap();
            }
        }
        out
    }

    fn read_all(bytes: &[u8]) -> Result<(Packing, Vec<u8>), SourceError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut input = Input::open(file.path(), "trace".to_owned(), &Stop::default())?;
        let mut all = Vec::new();
        let mut buffer = vec![0; 1000];
        loop {
            match input.read(&mut buffer)? {
                0 => break,
                length => all.extend_from_slice(&buffer[..length]),
            }
        }
        assert_eq!(input.progress(), if bytes.is_empty() { None } else { Some(1.0) });
        Ok((input.packing, all))
    }

    const ALL: [Packing; 5] = [Packing::Plain, Packing::Gzip, Packing::Xz, Packing::Zstd, Packing::Bzip2];

    #[test]
    fn compressed_streams_are_read_completely() {
        let text: Vec<u8> = (0..30_000_u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let (first, second) = text.split_at(text.len() / 3);
        for packing in ALL {
            let joined = [packed(packing, first), packed(packing, second)].concat();
            let (found, read) = read_all(&joined).unwrap();
            assert_eq!(found, packing);
            assert!(read == text, "{packing:?}");
        }
        assert_eq!(read_all(b"").unwrap(), (Packing::Plain, vec![]));
        assert_eq!(read_all(b"1").unwrap(), (Packing::Plain, b"1".to_vec()));
    }

    #[test]
    fn a_truncated_file_is_read_up_to_the_cut() {
        let text: Vec<u8> = (0..300_000_u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        for packing in ALL.into_iter().filter(|packing| *packing != Packing::Plain) {
            let bytes = packed(packing, &text);
            for kept in [bytes.len() / 2, bytes.len() - 1] {
                let (_, read) = read_all(&bytes[..kept]).unwrap();
                assert!(read.len() > text.len() / 4 && text.starts_with(&read), "{packing:?}: {}", read.len());
            }
            let error = read_all(&bytes[..bytes.len().min(8)]).map(|(_, read)| read.len()).expect_err(packing.name()).0;
            assert!(error.contains(packing.name()) && error.contains("cut off"), "{error}");
        }
    }

    #[test]
    fn damage_is_not_taken_for_a_cut() {
        let text: Vec<u8> = (0..300_000_u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        // These formats have checksums for all data.
        for packing in [Packing::Gzip, Packing::Xz, Packing::Bzip2] {
            let mut bytes = packed(packing, &text);
            let middle = bytes.len() / 2;
            bytes[middle..middle + 64].iter_mut().for_each(|byte| *byte ^= 0x55);
            let error = read_all(&bytes).map(|(_, read)| read.len()).expect_err(packing.name()).0;
            assert!(error.contains(packing.name()) && error.contains("damaged"), "{error}");
        }
    }

    #[test]
    fn files_that_cannot_be_opened_are_named() {
        for path in ["/nowhere/trace.spc", "/"] {
            let error = Input::open(Path::new(path), path.to_owned(), &Stop::default()).err().unwrap().0;
            assert!(error.starts_with(path) && error.contains("cannot open the trace"), "{error}");
        }
    }
}
