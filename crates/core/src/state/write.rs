//! Writer of saved states.

use std::io::Write;

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::{CHUNK, Kind, StateError, VERSION};
use crate::sim::rng::Rng;

/// Compression level. Most of a state is physical addresses in random order, which no level compresses much.
const LEVEL: i32 = 1;

impl Kind {
    /// Writes the header of a file of this kind.
    pub fn write_head(self, out: &mut dyn Write, head: &str) -> Result<(), StateError> {
        let mut bytes = Vec::with_capacity(head.len() + 32);
        bytes.extend(self.magic());
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((head.len() as u32).to_le_bytes());
        bytes.extend(head.as_bytes());
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        Ok(out.write_all(&bytes)?)
    }
}

/// Writer of the sections of a state.
pub struct Writer<'a> {
    out: zstd::Encoder<'static, &'a mut dyn Write>,
    chunk: Vec<u8>,
    digest: Xxh3Default,
}

impl<'a> Writer<'a> {
    /// Creates a writer before the first section.
    pub fn new(out: &'a mut dyn Write) -> Result<Writer<'a>, StateError> {
        let out = zstd::Encoder::new(out, LEVEL)?;
        Ok(Writer { out, chunk: Vec::with_capacity(CHUNK), digest: Xxh3Default::new() })
    }

    /// Writes a section.
    pub fn section(
        &mut self,
        name: &'static str,
        write: impl FnOnce(&mut Writer<'a>) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        self.name(name)?;
        self.digest.reset();
        write(self)?;
        self.flush()?;
        self.out.write_all(&0u32.to_le_bytes())?;
        let digest = self.digest.digest();
        Ok(self.out.write_all(&digest.to_le_bytes())?)
    }

    fn name(&mut self, name: &str) -> Result<(), StateError> {
        self.out.write_all(&[name.len() as u8])?;
        Ok(self.out.write_all(name.as_bytes())?)
    }

    /// Writes the end mark after the last section.
    pub fn finish(mut self) -> Result<(), StateError> {
        self.name("")?;
        self.out.finish()?.flush()?;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StateError> {
        if !self.chunk.is_empty() {
            self.digest.update(&self.chunk);
            self.out.write_all(&(self.chunk.len() as u32).to_le_bytes())?;
            self.out.write_all(&self.chunk)?;
            self.chunk.clear();
        }
        Ok(())
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        if self.chunk.len() + bytes.len() > CHUNK {
            self.flush()?;
        }
        self.chunk.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes a byte.
    #[inline]
    pub fn u8(&mut self, value: u8) -> Result<(), StateError> {
        self.put(&[value])
    }

    /// Writes a number of 32 bits.
    #[inline]
    pub fn u32(&mut self, value: u32) -> Result<(), StateError> {
        self.put(&value.to_le_bytes())
    }

    /// Writes the state of a random number stream.
    pub fn rng(&mut self, rng: &Rng) -> Result<(), StateError> {
        rng.words().into_iter().try_for_each(|word| self.u64(word))
    }

    /// Writes a number of 64 bits.
    #[inline]
    pub fn u64(&mut self, value: u64) -> Result<(), StateError> {
        self.put(&value.to_le_bytes())
    }
}
