//! Files of blktrace, one per processor, merged in the order of their times.
//!
//! `blktrace` writes `NAME.blktrace.0`, `NAME.blktrace.1`, and so on. As with `blkparse -i NAME`, the path
//! `NAME.blktrace` reads all of them.

use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::file::{Stop, Stoppable};

/// Bytes of a record without the data after it.
const RECORD: usize = 48;

/// Maximum number of processors.
const MAX_PARTS: usize = 8192;

/// Magic number of a record, without the version.
const MAGIC: u32 = 0x6561_7400;

/// Returns the files of a path that ends in `.blktrace`, if it does not exist itself.
pub(super) fn parts(path: &Path) -> Vec<PathBuf> {
    let is_base = path.extension().is_some_and(|extension| extension == "blktrace");
    if !is_base || path.exists() {
        return Vec::new();
    }
    let part = |number: usize| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    // A processor without events may have no file, so gaps in the numbers are skipped.
    (0..MAX_PARTS).map(part).filter(|part| part.is_file()).collect()
}

/// The records of one file.
struct Part {
    file: BufReader<Stoppable>,
    /// Next record. Empty at the end of the file.
    record: Vec<u8>,
}

impl Part {
    /// Reads the next record. Anything that is not a record is passed on, because the parser reports it.
    fn advance(&mut self) -> io::Result<()> {
        self.record.clear();
        self.file.by_ref().take(RECORD as u64).read_to_end(&mut self.record)?;
        if self.record.len() < RECORD {
            return Ok(());
        }
        let data = match self.number(0, 4) as u32 {
            magic if magic & !0xff == MAGIC => self.number(46, 2),
            _ => u64::from(self.number(46, 2) as u16),
        };
        self.file.by_ref().take(data).read_to_end(&mut self.record)?;
        Ok(())
    }

    /// Returns a number of the record in the byte order of its magic number.
    fn number(&self, at: usize, length: usize) -> u64 {
        let field = |at: usize, length: usize| self.record.get(at..at + length).unwrap_or_default().iter();
        let little = field(0, 4).rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte)) as u32;
        match little & !0xff == MAGIC {
            true => field(at, length).rev().fold(0, |value, byte| value << 8 | u64::from(*byte)),
            false => field(at, length).fold(0, |value, byte| value << 8 | u64::from(*byte)),
        }
    }

    /// Returns the time of the next record. A damaged record has none, and comes first.
    fn time(&self) -> u64 {
        if self.record.len() < RECORD { 0 } else { self.number(8, 8) }
    }
}

/// Bytes of several files, record by record in the order of their times.
pub(super) struct Merged {
    parts: Vec<Part>,
    /// Record that is being read, and the number of bytes read of it.
    current: Vec<u8>,
    done: usize,
}

impl Merged {
    /// Opens the files. Also returns their total size.
    pub(super) fn open(paths: &[PathBuf], stop: &Stop) -> io::Result<(Merged, u64)> {
        let mut parts = Vec::with_capacity(paths.len());
        let mut size = 0;
        for path in paths {
            let file = Stoppable::open(path, stop)?;
            size += file.file().metadata()?.len();
            let mut part = Part { file: BufReader::new(file), record: Vec::new() };
            part.advance()?;
            parts.push(part);
        }
        Ok((Merged { parts, current: Vec::new(), done: 0 }, size))
    }

    /// Takes the earliest record of all files.
    fn next(&mut self) -> io::Result<()> {
        self.done = 0;
        self.current.clear();
        let open = self.parts.iter_mut().filter(|part| !part.record.is_empty());
        if let Some(part) = open.min_by_key(|part| part.time()) {
            self.current.extend_from_slice(&part.record);
            part.advance()?;
        }
        Ok(())
    }
}

impl Read for Merged {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.done == self.current.len() {
            self.next()?;
        }
        let count = buffer.len().min(self.current.len() - self.done);
        buffer[..count].copy_from_slice(&self.current[self.done..self.done + count]);
        self.done += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a record of a time, with data of some length.
    fn record(time: u64, data: u16) -> Vec<u8> {
        let mut record = vec![0; RECORD + usize::from(data)];
        record[..4].copy_from_slice(&(MAGIC | 7).to_le_bytes());
        record[8..16].copy_from_slice(&time.to_le_bytes());
        record[46..48].copy_from_slice(&data.to_le_bytes());
        record
    }

    #[test]
    fn records_are_merged_by_time() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("sda.blktrace");
        let files = [(0, vec![record(1, 0), record(5, 8)]), (2, vec![record(2, 16), record(3, 0), record(9, 0)])];
        for (number, records) in &files {
            std::fs::write(folder.path().join(format!("sda.blktrace.{number}")), records.concat()).unwrap();
        }
        let paths = parts(&base);
        assert_eq!(paths.len(), 2);
        let (mut merged, size) = Merged::open(&paths, &Stop::default()).unwrap();
        let mut all = Vec::new();
        merged.read_to_end(&mut all).unwrap();
        let expected = [record(1, 0), record(2, 16), record(3, 0), record(5, 8), record(9, 0)].concat();
        assert_eq!((all.len() as u64, all), (size, expected));
        std::fs::write(&base, "x").unwrap();
        assert!(parts(&base).is_empty());
    }
}
