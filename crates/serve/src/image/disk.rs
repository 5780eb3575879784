//! The file that stores an image: reads, writes, and holes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    FallocateFlags, FlockOperation, MemfdFlags, SeekFrom, fallocate, fdatasync, flock, memfd_create, seek,
};
use rustix::io::Errno;
use tempfile::TempPath;

use crate::clock::Wall;

/// A sparse file. Ranges that were never written, or were punched, read as zeros and take no space.
pub trait Disk: Send + Sync {
    /// Fills `into` with the bytes at `offset`.
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes at `offset`. On failure, a part may have been written.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Returns the first offset at or after `offset` that may hold other bytes than zeros, or the end of the file.
    fn data_after(&self, offset: u64) -> io::Result<u64>;

    /// Deallocates a range.
    fn punch(&mut self, offset: u64, length: u64) -> io::Result<()>;

    /// Makes the kernel write all changes to the medium.
    fn sync(&mut self) -> io::Result<()>;

    /// Returns the number of bytes that the file takes on its medium.
    fn allocated(&self) -> io::Result<u64>;

    /// Returns the size of the file in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Sets the size of the file.
    fn resize(&mut self, bytes: u64) -> io::Result<()>;
}

/// A file of the operating system.
#[derive(Debug)]
pub struct SystemFile {
    file: File,
    /// True if the file system does not support holes.
    solid: bool,
}

impl SystemFile {
    /// Opens an existing file, and locks it against other servers. Returns `None` if another server has locked it.
    pub fn open(path: &Path) -> io::Result<Option<SystemFile>> {
        SystemFile::locked(OpenOptions::new().read(true).write(true).open(path)?)
    }

    /// Creates a file that only its owner can access, and locks it. It has another name than `path` until
    /// [`NewFile::publish`], so that an unfinished file is never mistaken for an image.
    pub fn create(path: &Path) -> io::Result<(SystemFile, NewFile)> {
        let folder = folder_of(path);
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(path.file_name().unwrap_or_default());
        prefix.push(".");
        let new = tempfile::Builder::new().prefix(&prefix).suffix(".partial").tempfile_in(folder)?;
        let (file, partial) = new.into_parts();
        let file = SystemFile::locked(file)?.ok_or(io::ErrorKind::AlreadyExists)?;
        Ok((file, NewFile { partial, path: path.to_owned() }))
    }

    fn locked(file: File) -> io::Result<Option<SystemFile>> {
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(SystemFile { file, solid: false })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates an anonymous file in memory, which exists until the program ends.
    pub fn in_memory() -> io::Result<SystemFile> {
        let file = memfd_create("floatgate-image", MemfdFlags::CLOEXEC)?;
        Ok(SystemFile { file: file.into(), solid: false })
    }
}

/// Returns the folder that contains a file.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes a change of the names in a folder permanent.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// A file that is being created. It is removed if it is dropped before it is published.
#[derive(Debug)]
pub struct NewFile {
    partial: TempPath,
    path: PathBuf,
}

impl NewFile {
    /// Gives the file its name. Fails if a file with this name exists.
    pub fn publish(self) -> io::Result<()> {
        self.partial.persist_noclobber(&self.path).map_err(|error| error.error)?;
        sync_folder(folder_of(&self.path))
    }
}

impl Disk for SystemFile {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn data_after(&self, offset: u64) -> io::Result<u64> {
        match seek(&self.file, SeekFrom::Data(offset)) {
            Ok(found) => Ok(found),
            Err(Errno::NXIO) => self.size(),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(offset),
            Err(error) => Err(error.into()),
        }
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
        // Write zeros in place of a hole. They have the same meaning, but take space.
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
        /// Unit of the block count of `stat`, regardless of the block size of the file system.
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

/// A file that measures the time its callers spend on it, in the page cache or waiting for the medium.
pub struct Clocked {
    disk: Box<dyn Disk>,
    /// Nanoseconds.
    spent: AtomicU64,
}

impl Clocked {
    /// Wraps a file, with a measured time of zero.
    pub fn new(disk: Box<dyn Disk>) -> Clocked {
        Clocked { disk, spent: AtomicU64::default() }
    }

    /// Returns the time spent since the last call of this function.
    pub fn take_spent(&mut self) -> Wall {
        Wall(std::mem::take(self.spent.get_mut()))
    }
}

/// Performs a call, and adds its duration to `spent`.
fn clocked<T>(spent: &AtomicU64, call: impl FnOnce() -> T) -> T {
    let start = Wall::now();
    let done = call();
    spent.fetch_add(Wall::now().since(start).0, Ordering::Relaxed);
    done
}

impl Disk for Clocked {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        clocked(&self.spent, || self.disk.read(offset, into))
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        clocked(&self.spent, || self.disk.write(offset, bytes))
    }

    fn data_after(&self, offset: u64) -> io::Result<u64> {
        self.disk.data_after(offset)
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
    fn the_time_of_file_calls_is_measured() {
        let mut disk = Clocked::new(Box::new(SystemFile::in_memory().unwrap()));
        disk.resize(1 << 20).unwrap();
        assert_eq!(disk.take_spent(), Wall(0), "only transfers and waits for them count");
        let start = Wall::now();
        let mut bytes = [0; 4096];
        disk.write(0, &[7; 4096]).unwrap();
        disk.read(0, &mut bytes).unwrap();
        disk.punch(0, 4096).unwrap();
        disk.sync().unwrap();
        let spent = disk.take_spent();
        let all = Wall::now().since(start);
        assert!(Wall(0) < spent && spent <= all, "{spent:?} of {all:?}");
        assert_eq!((disk.take_spent(), bytes[0]), (Wall(0), 7));
    }

    #[test]
    fn holes_take_no_room_and_read_as_zeros() {
        let folder = tempfile::tempdir().unwrap();
        let (named, new) = SystemFile::create(&folder.path().join("disk")).unwrap();
        new.publish().unwrap();
        for mut disk in [named, SystemFile::in_memory().unwrap()] {
            disk.resize(1 << 40).unwrap();
            disk.write(1 << 30, &[7; 1 << 20]).unwrap();
            disk.sync().unwrap();
            assert_eq!([0, 1 << 30].map(|from| disk.data_after(from).unwrap()), [1 << 30; 2]);
            assert_eq!(disk.data_after(1 << 35).unwrap(), 1 << 40);
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
    fn zeros_replace_holes_if_unsupported() {
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
    fn only_one_user_can_open_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        assert_eq!(SystemFile::open(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        let (first, new) = SystemFile::create(&path).unwrap();
        new.publish().unwrap();
        assert!(SystemFile::open(&path).unwrap().is_none());
        drop(first);
        assert!(SystemFile::open(&path).unwrap().is_some());
        assert!(SystemFile::open(folder.path()).is_err());
    }

    #[test]
    fn an_unfinished_file_has_another_name_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let (path, names) = (folder.path().join("disk"), || std::fs::read_dir(folder.path()).unwrap().count());
        let (file, new) = SystemFile::create(&path).unwrap();
        assert_eq!((path.exists(), names()), (false, 1));
        drop((file, new));
        assert_eq!(names(), 0);
        let (_, new) = SystemFile::create(&path).unwrap();
        std::fs::write(&path, "mine").unwrap();
        assert_eq!(new.publish().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), names()), ("mine", 1), "it is not overwritten");
    }
}
