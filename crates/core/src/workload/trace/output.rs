//! Writing a file packed.

use std::io::{self, Write};
use std::path::Path;

use super::input::Packing;

impl Packing {
    /// The packing that the end of a file's name asks for.
    pub fn of_name(path: &Path) -> Packing {
        match path.extension().and_then(|end| end.to_str()) {
            Some("gz") => Packing::Gzip,
            Some("xz") => Packing::Xz,
            Some("zst") => Packing::Zstd,
            Some("bz2") => Packing::Bzip2,
            _ => Packing::Plain,
        }
    }

    /// Packs what is written, and hands it on to `inner`.
    pub fn writer<W: Write>(self, inner: W) -> io::Result<Packed<W>> {
        Ok(match self {
            Packing::Plain => Packed::Plain(inner),
            Packing::Gzip => Packed::Gzip(flate2::write::GzEncoder::new(inner, flate2::Compression::default())),
            // The default of `xz`.
            Packing::Xz => Packed::Xz(liblzma::write::XzEncoder::new(inner, 6)),
            // 0 is the default of `zstd`.
            Packing::Zstd => Packed::Zstd(zstd::stream::write::Encoder::new(inner, 0)?),
            Packing::Bzip2 => Packed::Bzip2(bzip2::write::BzEncoder::new(inner, bzip2::Compression::default())),
        })
    }
}

/// Packs what is written.
pub enum Packed<W: Write> {
    /// Not at all.
    Plain(W),
    /// As `gzip` does.
    Gzip(flate2::write::GzEncoder<W>),
    /// As `xz` does.
    Xz(liblzma::write::XzEncoder<W>),
    /// As `zstd` does.
    Zstd(zstd::stream::write::Encoder<'static, W>),
    /// As `bzip2` does.
    Bzip2(bzip2::write::BzEncoder<W>),
}

impl<W: Write> Packed<W> {
    /// Writes what is still held back; without this the file is cut off.
    pub fn finish(self) -> io::Result<W> {
        match self {
            Packed::Plain(inner) => Ok(inner),
            Packed::Gzip(encoder) => encoder.finish(),
            Packed::Xz(encoder) => encoder.finish(),
            Packed::Zstd(encoder) => encoder.finish(),
            Packed::Bzip2(encoder) => encoder.finish(),
        }
    }

    fn inner(&mut self) -> &mut dyn Write {
        match self {
            Packed::Plain(inner) => inner,
            Packed::Gzip(encoder) => encoder,
            Packed::Xz(encoder) => encoder,
            Packed::Zstd(encoder) => encoder,
            Packed::Bzip2(encoder) => encoder,
        }
    }
}

impl<W: Write> Write for Packed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::input::Input;
    use super::*;

    #[test]
    fn what_is_packed_reads_back() {
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
            let mut input = Input::open(&path, "trace".to_owned(), &Default::default()).unwrap();
            let (mut read, mut buffer) = (Vec::new(), vec![0; 4096]);
            loop {
                match input.read(&mut buffer).unwrap() {
                    0 => break,
                    length => read.extend_from_slice(&buffer[..length]),
                }
            }
            assert!(read == text, "{name}");
        }
    }
}
