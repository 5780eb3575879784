//! Temporary directories that do not outlive their process for long.
//!
//! A program that is killed cannot remove its directories. So each has a file that the program locks as long as it
//! lives, and whoever makes the next one removes those whose lock nobody holds.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use crate::GuestError;

/// Prefix of the temporary directories of machines.
pub const PREFIX: &str = "floatgate-vm-";

/// The name of the file that is locked.
const LOCK: &str = "lock";

/// A temporary directory that is removed with this value, or by the next `Scratch` if this process is killed.
#[derive(Debug)]
pub struct Scratch {
    // Removed before the lock is released.
    directory: TempDir,
    _lock: File,
}

impl Scratch {
    /// Creates a directory whose name begins with `prefix` among temporary files, and removes those of dead processes.
    pub fn new(prefix: &str) -> Result<Scratch, GuestError> {
        Scratch::below(&std::env::temp_dir(), prefix)
    }

    /// Creates a directory below `place`, and removes those of dead processes.
    pub fn below(place: &Path, prefix: &str) -> Result<Scratch, GuestError> {
        sweep(place, prefix);
        loop {
            let directory = tempfile::Builder::new().prefix(prefix).tempdir_in(place).map_err(GuestError::at(place))?;
            let path = directory.path().join(LOCK);
            let lock = File::create(&path).map_err(GuestError::at(&path))?;
            flock(&lock, FlockOperation::LockExclusive).map_err(io::Error::from).map_err(GuestError::at(&path))?;
            // Another process may have taken it for dead before it was locked.
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

/// Removes the directories that processes which were killed have left. Directories without a lock are not ours.
fn sweep(place: &Path, prefix: &str) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    for directory in ours.map(|entry| entry.path()) {
        // Directories of other users cannot be removed, and stay.
        let _ = remove_if_dead(&directory);
    }
}

fn remove_if_dead(directory: &PathBuf) -> io::Result<()> {
    // A link may lead to a directory of somebody else.
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
    fn directories_of_dead_processes_go_and_those_of_live_ones_stay() {
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
