//! Locks of result directories, because two runs in the same directory would mix their files.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::draft::lock;

/// Lock of a directory that one run at a time may write to. The lock is on the directory itself and leaves no file. The
/// system releases it when the process ends.
#[derive(Debug)]
pub struct Lock {
    _directory: Option<File>,
}

impl Lock {
    /// Creates the directory if it does not exist, and locks it.
    pub fn of(path: &Path) -> Result<Lock> {
        if fs::metadata(path).is_ok_and(|found| !found.is_dir()) {
            bail!(
                "--out {0}: a file of that name exists, but results need a directory; give another name, or remove the \
                 file",
                path.display()
            );
        }
        fs::create_dir_all(path).with_context(|| format!("cannot create the directory {}", path.display()))?;
        // On systems where a directory cannot be opened as a file, it is not locked.
        let directory = File::open(path).ok();
        if directory.as_ref().is_some_and(|directory| !lock(directory)) {
            bail!(
                "--out {}: another run is writing its result there; wait until it ends, or give another directory",
                path.display()
            );
        }
        Ok(Lock { _directory: directory })
    }
}
