//! The file below an image: bytes at places, holes, and nothing else.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, FlockOperation, MemfdFlags, fallocate, fdatasync, flock, memfd_create};
use rustix::io::Errno;

use crate::clock::Wall;

/// A file of fixed size, sparse: what was never written, or was punched, reads as zeros and takes no room.
pub trait Disk: Send {
    /// Fills `into` with the bytes at `offset`.
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes at `offset`. Where it fails, part of it may have been written.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes a hole.
    fn punch(&mut self, offset: u64, length: u64) -> io::Result<()>;

    /// Has the kernel bring all that was written to the medium.
    fn sync(&mut self) -> io::Result<()>;

    /// Bytes that the file takes on its medium.
    fn allocated(&self) -> io::Result<u64>;

    /// Bytes from the start to the end.
    fn size(&self) -> io::Result<u64>;

    /// Gives it a size.
    fn resize(&mut self, bytes: u64) -> io::Result<()>;
}

/// A file of the system.
#[derive(Debug)]
pub struct SystemFile {
    file: File,
    /// Its file system makes no holes.
    solid: bool,
}

impl SystemFile {
    /// Opens a file, or makes one that only its owner can use, and locks it: two servers cannot have it at once.
    /// `None` where another has it.
    pub fn open(path: &Path) -> io::Result<Option<SystemFile>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(SystemFile { file, solid: false })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A file in memory, without a name, that goes with the program.
    pub fn in_memory() -> io::Result<SystemFile> {
        let file = memfd_create("floatgate-image", MemfdFlags::CLOEXEC)?;
        Ok(SystemFile { file: file.into(), solid: false })
    }
}

impl Disk for SystemFile {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn punch(&mut self, offset: u64, length: u64) -> io::Result<()> {
        if !self.solid {
            match fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, length) {
                Ok(()) => return Ok(()),
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.solid = true,
                Err(Errno::INTR) => return self.punch(offset, length),
                Err(error) => return Err(error.into()),
            }
        }
        // Zeros in place of a hole: they take room, and mean the same.
        const PIECE: u64 = 1 << 20;
        let zeros = vec![0; length.min(PIECE) as usize];
        let mut done = 0;
        while done < length {
            let now = (length - done).min(PIECE);
            self.file.write_all_at(&zeros[..now as usize], offset + done)?;
            done += now;
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(fdatasync(&self.file)?)
    }

    fn allocated(&self) -> io::Result<u64> {
        /// `stat` counts in it, whatever the file system's own blocks are.
        const STAT_BLOCK: u64 = 512;
        Ok(self.file.metadata()?.blocks() * STAT_BLOCK)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn resize(&mut self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }
}

/// A file, and how long it keeps who uses it: in the page cache, or for the medium behind that.
pub struct Clocked {
    disk: Box<dyn Disk>,
    spent: Cell<Wall>,
}

impl Clocked {
    /// That file, which has kept nobody yet.
    pub fn new(disk: Box<dyn Disk>) -> Clocked {
        Clocked { disk, spent: Cell::default() }
    }

    /// How long it has taken since this was asked last.
    pub fn take_spent(&mut self) -> Wall {
        self.spent.take()
    }
}

/// Does something with a file, and adds the time that it takes.
fn clocked<T>(spent: &Cell<Wall>, call: impl FnOnce() -> T) -> T {
    let start = Wall::now();
    let done = call();
    spent.set(spent.get().later(Wall::now().since(start)));
    done
}

impl Disk for Clocked {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        clocked(&self.spent, || self.disk.read(offset, into))
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        clocked(&self.spent, || self.disk.write(offset, bytes))
    }

    fn punch(&mut self, offset: u64, length: u64) -> io::Result<()> {
        clocked(&self.spent, || self.disk.punch(offset, length))
    }

    fn sync(&mut self) -> io::Result<()> {
        clocked(&self.spent, || self.disk.sync())
    }

    fn allocated(&self) -> io::Result<u64> {
        self.disk.allocated()
    }

    fn size(&self) -> io::Result<u64> {
        self.disk.size()
    }

    fn resize(&mut self, bytes: u64) -> io::Result<()> {
        self.disk.resize(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_file_is_taken() {
        let mut disk = Clocked::new(Box::new(SystemFile::in_memory().unwrap()));
        disk.resize(1 << 20).unwrap();
        assert_eq!(disk.take_spent(), Wall(0), "only what moves bytes, or waits for them, counts");
        let start = Wall::now();
        let mut bytes = [0; 4096];
        disk.write(0, &[7; 4096]).unwrap();
        disk.read(0, &mut bytes).unwrap();
        disk.punch(0, 4096).unwrap();
        disk.sync().unwrap();
        let (spent, all) = (disk.take_spent(), Wall::now().since(start));
        assert!(Wall(0) < spent && spent <= all, "{spent:?} of {all:?}");
        assert_eq!((disk.take_spent(), bytes[0]), (Wall(0), 7));
    }

    #[test]
    fn holes_take_no_room_and_read_as_zeros() {
        let folder = tempfile::tempdir().unwrap();
        let named = SystemFile::open(&folder.path().join("disk")).unwrap().unwrap();
        for mut disk in [named, SystemFile::in_memory().unwrap()] {
            disk.resize(1 << 40).unwrap();
            disk.write(1 << 30, &[7; 1 << 20]).unwrap();
            disk.sync().unwrap();
            assert!((1 << 20..1 << 21).contains(&disk.allocated().unwrap()), "{}", disk.allocated().unwrap());
            disk.punch(1 << 30, (1 << 20) - 4096).unwrap();
            assert!(disk.allocated().unwrap() <= 64 << 10, "{}", disk.allocated().unwrap());
            let mut bytes = [1; 8192];
            disk.read((1 << 30) + (1 << 20) - 8192, &mut bytes).unwrap();
            assert!(bytes[..4096].iter().all(|byte| *byte == 0) && bytes[4096..].iter().all(|byte| *byte == 7));
            assert_eq!(disk.size().unwrap(), 1 << 40);
        }
    }

    #[test]
    fn zeros_stand_in_for_holes() {
        let mut disk = SystemFile { solid: true, ..SystemFile::in_memory().unwrap() };
        disk.resize(4 << 20).unwrap();
        disk.write(0, &[7; 3 << 20]).unwrap();
        disk.punch(4096, (2 << 20) + 512).unwrap();
        let mut bytes = vec![1; 3 << 20];
        disk.read(0, &mut bytes).unwrap();
        let hole = 4096..4096 + (2 << 20) + 512;
        assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == if hole.contains(&at) { 0 } else { 7 }));
    }

    #[test]
    fn one_has_it_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let first = SystemFile::open(&path).unwrap();
        assert!(first.is_some());
        assert!(SystemFile::open(&path).unwrap().is_none());
        drop(first);
        assert!(SystemFile::open(&path).unwrap().is_some());
        assert!(SystemFile::open(folder.path()).is_err());
    }
}
