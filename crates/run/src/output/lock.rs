//! Locks of directories for results: two runs into one would mix their files.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::draft::lock;

/// A directory that one run at a time may write to. The lock is on the directory itself, so that it leaves no file, and
/// the system releases it when the process ends, however that is.
#[derive(Debug)]
pub struct Lock {
    _directory: Option<File>,
}

impl Lock {
    /// Creates the directory if there is none, and locks it.
    pub fn of(path: &Path) -> Result<Lock> {
        if fs::metadata(path).is_ok_and(|found| !found.is_dir()) {
            bail!(
                "--out {0}: there is a file of that name, and results go into a directory: give another name, or remove \
                 the file",
                path.display()
            );
        }
        fs::create_dir_all(path).with_context(|| format!("cannot make the directory {}", path.display()))?;
        // Systems on which a directory is no file have no such locks.
        let directory = File::open(path).ok();
        if directory.as_ref().is_some_and(|directory| !lock(directory)) {
            bail!(
                "--out {}: another run writes its result there: wait until it has ended, or give another directory",
                path.display()
            );
        }
        Ok(Lock { _directory: directory })
    }
}
