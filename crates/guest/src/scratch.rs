//! Temporary directories: removed by the next process if their own process was killed.
//!
//! A killed program cannot remove its directories. So each directory has a file that the program keeps locked. The next
//! program that creates a directory removes those whose file is not locked.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use crate::GuestError;

/// Prefix of the temporary directories of machines.
pub const PREFIX: &str = "floatgate-vm-";

/// Name of the locked file.
const LOCK: &str = "lock";

/// Temporary directory. It is removed with this value, or by the next `Scratch` if this process is killed.
#[derive(Debug)]
pub struct Scratch {
    // Removed before the lock is released.
    directory: TempDir,
    _lock: File,
}

impl Scratch {
    /// Creates a temporary directory whose name begins with `prefix`, and removes such directories of dead processes.
    pub fn new(prefix: &str) -> Result<Scratch, GuestError> {
        Scratch::below(&std::env::temp_dir(), prefix)
    }

    /// Creates such a directory in `place`, and removes those of dead processes.
    pub fn below(place: &Path, prefix: &str) -> Result<Scratch, GuestError> {
        sweep(place, prefix);
        loop {
            let directory = tempfile::Builder::new().prefix(prefix).tempdir_in(place).map_err(GuestError::at(place))?;
            let path = directory.path().join(LOCK);
            let lock = File::create(&path).map_err(GuestError::at(&path))?;
            flock(&lock, FlockOperation::LockExclusive).map_err(io::Error::from).map_err(GuestError::at(&path))?;
            // Another process may have removed the directory before the file was locked.
            if is_at(&lock, &path) {
                return Ok(Scratch { directory, _lock: lock });
            }
        }
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Returns `true` if the open file is the one at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    let same = || -> io::Result<bool> {
        let (ours, found) = (file.metadata()?, fs::metadata(path)?);
        Ok((ours.dev(), ours.ino()) == (found.dev(), found.ino()))
    };
    same().unwrap_or(false)
}

/// Removes the directories of killed processes. Directories without a lock file belong to other programs.
fn sweep(place: &Path, prefix: &str) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    for directory in ours.map(|entry| entry.path()) {
        // Directories of other users cannot be removed, and stay.
        let _ = remove_if_dead(&directory);
    }
}

fn remove_if_dead(directory: &PathBuf) -> io::Result<()> {
    // A link could lead to a directory of another program.
    if !fs::symlink_metadata(directory)?.is_dir() {
        return Ok(());
    }
    let path = directory.join(LOCK);
    let lock = File::open(&path)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    if is_at(&lock, &path) { fs::remove_dir_all(directory) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_dead_processes_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let live = Scratch::below(place.path(), "vm-").unwrap();
        fs::create_dir_all(at("vm-dead/inside")).unwrap();
        fs::write(at("vm-dead/lock"), "").unwrap();
        fs::create_dir(at("vm-without-lock")).unwrap();
        fs::create_dir(at("others")).unwrap();
        fs::write(at("others/lock"), "").unwrap();
        let second = Scratch::below(place.path(), "vm-").unwrap();
        assert!(!at("vm-dead").exists());
        assert!(live.path().exists() && at("vm-without-lock").exists() && at("others/lock").exists());
        let path = second.path().to_owned();
        drop(second);
        assert!(!path.exists());
    }
}
