//! Reading a state.

use std::io::{BufReader, ErrorKind, Read};

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::{CHUNK, LONGEST_HEAD, MAGIC, MOST, StateError, VERSION, WINDOW_LOG};
use crate::sim::rng::Rng;

/// Fills `bytes`, of the part of the file that is called `section`.
fn fill(input: &mut dyn Read, bytes: &mut [u8], section: &str) -> Result<(), StateError> {
    input.read_exact(bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => StateError::Ends(section.to_owned()),
        // What zstd finds wrong with what it is given has no kind of its own, and no number of the system.
        ErrorKind::Other if error.raw_os_error().is_none() && error.get_ref().is_some() => {
            StateError::Damaged { section: section.to_owned(), what: error.to_string() }
        }
        _ => StateError::Io(error),
    })
}

/// Reads what comes before the body.
pub fn read_head(input: &mut dyn Read) -> Result<String, StateError> {
    const NAME: &str = "head";
    let mut bytes = vec![0; MAGIC.len()];
    match fill(input, &mut bytes, NAME) {
        Ok(()) if bytes == MAGIC => {}
        Ok(()) | Err(StateError::Ends(_)) => return Err(StateError::NoState),
        Err(error) => return Err(error),
    }
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
        return Err(damaged("its length"));
    }
    let start = bytes.len();
    bytes.resize(start + length as usize, 0);
    fill(input, &mut bytes[start..], NAME)?;
    let mut digest = [0; 8];
    fill(input, &mut digest, NAME)?;
    if u64::from_le_bytes(digest) != xxh3_64(&bytes) {
        return Err(damaged("its digest is another one"));
    }
    String::from_utf8(bytes.split_off(start)).map_err(|_| damaged("its text"))
}

/// Reads the sections of a state.
pub struct Reader<'a> {
    input: zstd::Decoder<'static, BufReader<&'a mut dyn Read>>,
    section: String,
    chunk: Vec<u8>,
    at: usize,
    digest: Xxh3Default,
    bytes: u64,
}

impl<'a> Reader<'a> {
    /// At the first section.
    pub fn new(input: &'a mut dyn Read) -> Result<Reader<'a>, StateError> {
        let mut input = zstd::Decoder::new(input)?;
        input.window_log_max(WINDOW_LOG)?;
        let chunk = Vec::with_capacity(CHUNK);
        Ok(Reader { input, section: "body".to_owned(), chunk, at: 0, digest: Xxh3Default::new(), bytes: 0 })
    }

    /// Reads a section, which must be the next one and be read to its end.
    pub fn section<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        let found = self.begin()?;
        if found != name {
            let what = format!("the section `{found}` where this one should be");
            return Err(StateError::Damaged { section: name.to_owned(), what });
        }
        let value = read(self)?;
        if self.at < self.chunk.len() || self.next_chunk()? {
            return Err(self.damaged("more than there should be"));
        }
        self.end()?;
        Ok(value)
    }

    /// Begins the next section; its name is empty behind the last one.
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

    /// The end of a section of which all chunks are read.
    fn end(&mut self) -> Result<u64, StateError> {
        let mut digest = [0; 8];
        fill(&mut self.input, &mut digest, &self.section)?;
        match u64::from_le_bytes(digest) == self.digest.digest() {
            true => Ok(u64::from_le_bytes(digest)),
            false => Err(self.damaged("its digest is another one")),
        }
    }

    /// Behind the last section, where nothing else may be.
    pub fn finish(mut self) -> Result<(), StateError> {
        let found = self.begin()?;
        self.section = "the end".to_owned();
        if !found.is_empty() {
            return Err(self.damaged(format!("the section `{found}`")));
        }
        self.finish_at_end()
    }

    /// As [`Reader::finish`], where the mark of the end has been read.
    fn finish_at_end(mut self) -> Result<(), StateError> {
        self.section = "the end".to_owned();
        let mut more = [0];
        match fill(&mut self.input, &mut more, "the end") {
            Err(StateError::Ends(_)) => Ok(()),
            Ok(()) => Err(self.damaged("more bytes")),
            Err(error) => Err(error),
        }
    }

    /// Reads the next chunk of the section; whether there is one.
    fn next_chunk(&mut self) -> Result<bool, StateError> {
        let mut length = [0; 4];
        fill(&mut self.input, &mut length, &self.section)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > CHUNK {
            return Err(self.damaged("the length of a piece"));
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
                return Err(self.damaged("less than there should be"));
            }
            *byte = self.chunk[self.at];
            self.at += 1;
        }
        Ok(bytes)
    }

    /// The next byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, StateError> {
        Ok(self.take::<1>()?[0])
    }

    /// The next number.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, StateError> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    /// The next number.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, StateError> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    /// The next number, which must be below `bound`; `what` it is.
    #[inline]
    pub fn below(&mut self, bound: u32, what: &str) -> Result<u32, StateError> {
        let value = self.u32()?;
        if value < bound { Ok(value) } else { Err(self.damaged(format!("{what} {value} of {bound}"))) }
    }

    /// A stream of random numbers that goes on where it was.
    pub fn rng(&mut self) -> Result<Rng, StateError> {
        let words = [self.u64()?, self.u64()?, self.u64()?, self.u64()?];
        Rng::from_words(words).ok_or_else(|| self.damaged("a random stream without numbers"))
    }

    /// The next number, a count of what has happened.
    pub fn count(&mut self, what: &str) -> Result<u64, StateError> {
        let value = self.u64()?;
        if value < MOST { Ok(value) } else { Err(self.damaged(format!("{value} {what}"))) }
    }

    /// The error for something wrong in this section.
    #[cold]
    pub fn damaged(&self, what: impl Into<String>) -> StateError {
        StateError::Damaged { section: self.section.clone(), what: what.into() }
    }
}

/// What a file holds, by section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Its length before compression.
    pub bytes: u64,
    /// Its digest, XXH3 of 64 bits.
    pub digest: u64,
}

/// Reads the body through, and checks every digest, and every name: `known` are all that there are, in their order. The
/// digest of a section does not cover its name.
pub fn sections(input: &mut dyn Read, known: &[&str]) -> Result<Vec<Section>, StateError> {
    let mut left = known.iter();
    let mut reader = Reader::new(input)?;
    let mut sections = Vec::new();
    loop {
        let name = reader.begin()?;
        if name.is_empty() {
            return reader.finish_at_end().map(|()| sections);
        }
        if !left.any(|known| *known == name) {
            return Err(reader.damaged("no section of this name can be here"));
        }
        while reader.next_chunk()? {}
        let digest = reader.end()?;
        sections.push(Section { name, bytes: reader.bytes, digest });
    }
}
