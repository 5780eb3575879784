//! Compression of output files.

use std::io::{self, Write};
use std::path::Path;

use super::input::Packing;

impl Packing {
    /// Returns the compression format for the extension of a file name.
    pub fn of_name(path: &Path) -> Packing {
        match path.extension().and_then(|end| end.to_str()) {
            Some("gz") => Packing::Gzip,
            Some("xz") => Packing::Xz,
            Some("zst") => Packing::Zstd,
            Some("bz2") => Packing::Bzip2,
            _ => Packing::Plain,
        }
    }

    /// Wraps `inner` with a writer that compresses.
    pub fn writer<W: Write>(self, inner: W) -> io::Result<Packed<W>> {
        Ok(match self {
            Packing::Plain => Packed::Plain(inner),
            Packing::Gzip => Packed::Gzip(flate2::write::GzEncoder::new(inner, flate2::Compression::default())),
            // The default of `xz`, 6, takes ten times as long, so that most of a busy live device's recording would be
            // lost if the server was killed. Files are a third larger.
            Packing::Xz => Packed::Xz(liblzma::write::XzEncoder::new(inner, 1)),
            // 0 selects the default of `zstd`.
            Packing::Zstd => Packed::Zstd(zstd::stream::write::Encoder::new(inner, 0)?),
            Packing::Bzip2 => Packed::Bzip2(Some(bzip2_encoder(inner))),
        })
    }
}

fn bzip2_encoder<W: Write>(inner: W) -> bzip2::write::BzEncoder<W> {
    bzip2::write::BzEncoder::new(inner, bzip2::Compression::default())
}

/// A compressing writer.
pub enum Packed<W: Write> {
    /// No compression.
    Plain(W),
    /// gzip.
    Gzip(flate2::write::GzEncoder<W>),
    /// xz.
    Xz(liblzma::write::XzEncoder<W>),
    /// zstd.
    Zstd(zstd::stream::write::Encoder<'static, W>),
    /// bzip2. `None` if ending a stream failed.
    Bzip2(Option<bzip2::write::BzEncoder<W>>),
}

impl<W: Write> Packed<W> {
    /// Completes the file. Without this call, the file is truncated.
    pub fn finish(self) -> io::Result<W> {
        match self {
            Packed::Plain(inner) => Ok(inner),
            Packed::Gzip(encoder) => encoder.finish(),
            Packed::Xz(encoder) => encoder.finish(),
            Packed::Zstd(encoder) => encoder.finish(),
            Packed::Bzip2(encoder) => encoder.ok_or_else(ended)?.finish(),
        }
    }

    fn inner(&mut self) -> io::Result<&mut dyn Write> {
        Ok(match self {
            Packed::Plain(inner) => inner,
            Packed::Gzip(encoder) => encoder,
            Packed::Xz(encoder) => encoder,
            Packed::Zstd(encoder) => encoder,
            Packed::Bzip2(encoder) => encoder.as_mut().ok_or_else(ended)?,
        })
    }
}

/// Returns the error of writing after an earlier error.
fn ended() -> io::Error {
    io::Error::other("writing has failed before")
}

impl<W: Write> Write for Packed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner()?.write(bytes)
    }

    /// Writes all buffered data, so that a file that is truncated here can be read up to this point.
    fn flush(&mut self) -> io::Result<()> {
        // A bzip2 block may end within a byte. Only the end of a stream is at a byte boundary.
        if let Packed::Bzip2(encoder) = self
            && let Some(ending) = encoder.take_if(|encoder| encoder.total_in() > 0)
        {
            *encoder = Some(bzip2_encoder(ending.finish()?));
        }
        if let Packed::Xz(encoder) = self {
            // liblzma 0.4 keeps the end of the block in its buffer until the next call.
            encoder.flush()?;
        }
        self.inner()?.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::input::Input;
    use super::*;

    fn read_all(path: &Path) -> (Vec<u8>, bool) {
        let mut input = Input::open(path, "trace".to_owned(), &Default::default()).unwrap();
        let mut read = Vec::new();
        let mut buffer = vec![0; 4096];
        loop {
            match input.read(&mut buffer).unwrap() {
                0 => return (read, input.is_cut()),
                length => read.extend_from_slice(&buffer[..length]),
            }
        }
    }

    #[test]
    fn flushed_data_survive_the_writer() {
        let directory = tempfile::tempdir().unwrap();
        let text = b"0,1,512,R,0\n".repeat(1000);
        for name in ["t.spc", "t.gz", "t.xz", "t.zst", "t.bz2"] {
            let path = directory.path().join(name);
            let packing = Packing::of_name(&path);
            let mut packed = packing.writer(std::fs::File::create(&path).unwrap()).unwrap();
            for _ in 0..3 {
                packed.flush().unwrap();
                packed.write_all(&text).unwrap();
                packed.flush().unwrap();
            }
            packed.write_all(b"more").unwrap();
            // The writer is not finished, as if the program was killed.
            let (read, is_cut) = read_all(&path);
            assert!(read.starts_with(&text.repeat(3)), "{name}: {}", read.len());
            assert_eq!(is_cut, packing != Packing::Plain, "{name}");
            packed.finish().unwrap();
            assert_eq!(read_all(&path), ([text.repeat(3), b"more".to_vec()].concat(), false), "{name}");
        }
    }

    #[test]
    fn compressed_files_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let text = b"0,1,512,R,0\n".repeat(10_000);
        for name in ["t.spc", "t.gz", "t.xz", "t.zst", "t.bz2"] {
            let path = directory.path().join(name);
            let packing = Packing::of_name(&path);
            let mut packed = packing.writer(std::fs::File::create(&path).unwrap()).unwrap();
            packed.write_all(&text).unwrap();
            packed.finish().unwrap();
            let size = std::fs::metadata(&path).unwrap().len();
            assert_eq!(size < text.len() as u64, packing != Packing::Plain, "{name}");
            assert!(read_all(&path).0 == text, "{name}");
        }
    }
}
