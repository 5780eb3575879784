//! Reader of saved states.

use std::io::{BufRead, ErrorKind, Read};

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::{CHUNK, COUNT_LIMIT, Kind, LONGEST_HEAD, StateError, VERSION, WINDOW_LOG};
use crate::sim::rng::Rng;

/// Fills `bytes` from the part of the file that is called `section`.
fn fill(input: &mut dyn Read, bytes: &mut [u8], section: &str) -> Result<(), StateError> {
    input.read_exact(bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => StateError::Ends(section.to_owned()),
        // An error that zstd finds in the data has the kind `Other`, and no error number of the system.
        ErrorKind::Other if error.raw_os_error().is_none() && error.get_ref().is_some() => {
            StateError::Damaged { section: section.to_owned(), what: error.to_string() }
        }
        _ => StateError::Io(error),
    })
}

impl Kind {
    /// Reads the header of a file of this kind.
    pub fn read_head(self, input: &mut dyn Read) -> Result<String, StateError> {
        let (found, text) = Kind::read_any_head(input)?;
        if found == self { Ok(text) } else { Err(StateError::OtherKind(found)) }
    }

    /// Reads the header of a file of any kind.
    pub fn read_any_head(input: &mut dyn Read) -> Result<(Kind, String), StateError> {
        const NAME: &str = "head";
        let mut bytes = vec![0; Kind::Device.magic().len()];
        match fill(input, &mut bytes, NAME) {
            Ok(()) => {}
            Err(StateError::Ends(_)) => return Err(StateError::NoState),
            Err(error) => return Err(error),
        }
        let kind = Kind::ALL.into_iter().find(|kind| bytes == kind.magic()).ok_or(StateError::NoState)?;
        let mut number = [0; 4];
        fill(input, &mut number, NAME)?;
        bytes.extend(number);
        if u32::from_le_bytes(number) != VERSION {
            return Err(StateError::Version(u32::from_le_bytes(number)));
        }
        fill(input, &mut number, NAME)?;
        bytes.extend(number);
        let damaged = |what: &str| StateError::Damaged { section: NAME.to_owned(), what: what.to_owned() };
        let length = u32::from_le_bytes(number);
        if length > LONGEST_HEAD {
            return Err(damaged("invalid length"));
        }
        let start = bytes.len();
        bytes.resize(start + length as usize, 0);
        fill(input, &mut bytes[start..], NAME)?;
        let mut digest = [0; 8];
        fill(input, &mut digest, NAME)?;
        if u64::from_le_bytes(digest) != xxh3_64(&bytes) {
            return Err(damaged("wrong digest"));
        }
        let text = String::from_utf8(bytes.split_off(start)).map_err(|_| damaged("text that is not UTF-8"))?;
        Ok((kind, text))
    }
}

/// Reader of the sections of a state.
pub struct Reader<'a> {
    input: zstd::Decoder<'static, &'a mut dyn BufRead>,
    section: String,
    chunk: Vec<u8>,
    at: usize,
    digest: Xxh3Default,
    bytes: u64,
}

impl Reader<'_> {
    /// Checks that nothing follows the last state of a file.
    pub fn check_end(input: &mut dyn Read) -> Result<(), StateError> {
        const NAME: &str = "the end";
        match fill(input, &mut [0], NAME) {
            Err(StateError::Ends(_)) => Ok(()),
            Ok(()) => Err(StateError::Damaged { section: NAME.to_owned(), what: "unexpected bytes".to_owned() }),
            Err(error) => Err(error),
        }
    }
}

impl<'a> Reader<'a> {
    /// Creates a reader at the first section. The input may continue after the last one.
    pub fn new(input: &'a mut dyn BufRead) -> Result<Reader<'a>, StateError> {
        let mut input = zstd::Decoder::with_buffer(input)?.single_frame();
        input.window_log_max(WINDOW_LOG)?;
        let chunk = Vec::with_capacity(CHUNK);
        Ok(Reader { input, section: "body".to_owned(), chunk, at: 0, digest: Xxh3Default::new(), bytes: 0 })
    }

    /// Reads a section, which must be the next one and must be read to its end.
    pub fn section<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        let found = self.begin()?;
        if found != name {
            let what = format!("unexpected section `{found}`");
            return Err(StateError::Damaged { section: name.to_owned(), what });
        }
        let value = read(self)?;
        if self.at < self.chunk.len() || self.next_chunk()? {
            return Err(self.damaged("too much data"));
        }
        self.end()?;
        Ok(value)
    }

    /// Starts the next section, and returns its name, which is empty after the last one.
    fn begin(&mut self) -> Result<String, StateError> {
        let mut length = [0];
        fill(&mut self.input, &mut length, &self.section)?;
        let mut name = vec![0; usize::from(length[0])];
        fill(&mut self.input, &mut name, &self.section)?;
        self.section = String::from_utf8_lossy(&name).into_owned();
        self.digest.reset();
        (self.at, self.bytes) = (0, 0);
        self.chunk.clear();
        Ok(self.section.clone())
    }

    /// Checks the digest of a section whose chunks have all been read, and returns it.
    fn end(&mut self) -> Result<u64, StateError> {
        let mut digest = [0; 8];
        fill(&mut self.input, &mut digest, &self.section)?;
        if u64::from_le_bytes(digest) == self.digest.digest() {
            Ok(u64::from_le_bytes(digest))
        } else {
            Err(self.damaged("wrong digest"))
        }
    }

    /// Checks that the last section has been read and that the body has no more bytes.
    pub fn finish(mut self) -> Result<(), StateError> {
        let found = self.begin()?;
        self.section = "the end".to_owned();
        if found.is_empty() {
            Reader::check_end(&mut self.input)
        } else {
            Err(self.damaged(format!("unexpected section `{found}`")))
        }
    }

    /// Reads the next chunk of the section. Returns `false` if there is none.
    fn next_chunk(&mut self) -> Result<bool, StateError> {
        let mut length = [0; 4];
        fill(&mut self.input, &mut length, &self.section)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > CHUNK {
            return Err(self.damaged("invalid length of a chunk"));
        }
        self.chunk.resize(length, 0);
        self.at = 0;
        fill(&mut self.input, &mut self.chunk, &self.section)?;
        self.digest.update(&self.chunk);
        self.bytes += length as u64;
        Ok(length > 0)
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], StateError> {
        if let Some(bytes) = self.chunk[self.at..].first_chunk::<N>() {
            self.at += N;
            return Ok(*bytes);
        }
        self.take_over_the_end()
    }

    #[cold]
    fn take_over_the_end<const N: usize>(&mut self) -> Result<[u8; N], StateError> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            if self.at == self.chunk.len() && !self.next_chunk()? {
                return Err(self.damaged("too little data"));
            }
            *byte = self.chunk[self.at];
            self.at += 1;
        }
        Ok(bytes)
    }

    /// Reads the next byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, StateError> {
        Ok(self.take::<1>()?[0])
    }

    /// Reads the next number, of 32 bits.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, StateError> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    /// Reads the next number, of 64 bits.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, StateError> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    /// Reads the next number, which must be below `bound`. Errors call it `what`.
    #[inline]
    pub fn below(&mut self, bound: u32, what: &str) -> Result<u32, StateError> {
        let value = self.u32()?;
        if value < bound { Ok(value) } else { Err(self.damaged(format!("{what} {value} of {bound}"))) }
    }

    /// Reads the state of a random number stream.
    pub fn rng(&mut self) -> Result<Rng, StateError> {
        let words = [self.u64()?, self.u64()?, self.u64()?, self.u64()?];
        Rng::from_words(words).ok_or_else(|| self.damaged("invalid state of a random number stream"))
    }

    /// Reads the next number, which is a count of events. Errors call it `what`.
    pub fn count(&mut self, what: &str) -> Result<u64, StateError> {
        let value = self.u64()?;
        if value < COUNT_LIMIT { Ok(value) } else { Err(self.damaged(format!("{value} {what}"))) }
    }

    /// Returns the error for damage in this section.
    #[cold]
    pub fn damaged(&self, what: impl Into<String>) -> StateError {
        StateError::Damaged { section: self.section.clone(), what: what.into() }
    }
}

/// Description of a section in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Name of the section.
    pub name: String,
    /// Length before compression.
    pub bytes: u64,
    /// Digest (XXH3, 64 bits).
    pub digest: u64,
}

/// Reads the whole body and checks all digests and names. `known` are all valid names in their order. Names are checked
/// because the digest of a section does not cover its name.
pub fn sections(input: &mut dyn BufRead, known: &[&str]) -> Result<Vec<Section>, StateError> {
    let mut left = known.iter();
    let mut reader = Reader::new(input)?;
    let mut sections = Vec::new();
    loop {
        let name = reader.begin()?;
        if name.is_empty() {
            return Reader::check_end(&mut reader.input).map(|()| sections);
        }
        if !left.any(|known| *known == name) {
            return Err(reader.damaged("unexpected section name"));
        }
        while reader.next_chunk()? {}
        let digest = reader.end()?;
        sections.push(Section { name, bytes: reader.bytes, digest });
    }
}
