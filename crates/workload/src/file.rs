//! Files that are read until a stop is requested.
//!
//! Opening a pipe waits for its writer, and reading it waits for its data. A [`Stoppable`] waits in short steps, and
//! checks its [`Stop`] between them.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop reading or writing, which another thread may make. Clones share it. The default is never
/// requested.
#[derive(Clone, Default)]
pub struct Stop(Arc<State>);

/// State of a [`Stop`].
#[derive(Default)]
struct State {
    requested: AtomicBool,
    /// Function that every check calls, if there is one.
    poll: Option<Box<dyn Fn() -> bool + Send + Sync>>,
}

impl Stop {
    /// Creates a stop that is also requested once `poll` returns `true`, for interpreters that handle signals only when
    /// the thread that waits asks them to. Each check calls it until the stop is requested.
    pub fn polled(poll: impl Fn() -> bool + Send + Sync + 'static) -> Stop {
        Stop(Arc::new(State { requested: AtomicBool::new(false), poll: Some(Box::new(poll)) }))
    }

    /// Requests the stop, and returns `true` if it had been requested before.
    pub fn request(&self) -> bool {
        self.0.requested.swap(true, Ordering::Relaxed)
    }

    /// Returns `true` if a stop is requested.
    pub fn is_requested(&self) -> bool {
        if !self.0.requested.load(Ordering::Relaxed) && self.0.poll.as_ref().is_some_and(|poll| poll()) {
            self.request();
        }
        self.0.requested.load(Ordering::Relaxed)
    }

    /// Fails if a stop is requested.
    pub fn check(&self) -> io::Result<()> {
        if self.is_requested() { Err(io::Error::other("stopped before its end")) } else { Ok(()) }
    }
}

impl PartialEq for Stop {
    fn eq(&self, other: &Stop) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_tuple("Stop").field(&self.0.requested).finish()
    }
}

/// A file that is read until a stop is requested.
#[derive(Debug)]
pub struct Stoppable {
    file: File,
    stop: Stop,
    /// False for a regular file, which never waits.
    waits: bool,
}

impl Stoppable {
    /// Opens a file, without waiting for the writer of a pipe.
    pub fn open(path: &Path, stop: &Stop) -> io::Result<Stoppable> {
        let waits = !path.metadata()?.is_file();
        let file = if waits { open_waiting(path)? } else { File::open(path)? };
        Ok(Stoppable { file, stop: stop.clone(), waits })
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Read for Stoppable {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.stop.check()?;
            if self.waits && !is_readable(&self.file)? {
                continue;
            }
            match self.file.read(buffer) {
                // Another process has read the data first.
                Err(error) if self.waits && error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn open_waiting(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    File::options().read(true).custom_flags(flags).open(path)
}

/// Waits up to a tenth of a second for data or the end of the file. Returns `true` if there is either.
#[cfg(target_os = "linux")]
pub fn is_readable(file: &impl std::os::fd::AsFd) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    const STEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&STEP)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_waiting(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Returns `true`: on this system, a read waits by itself.
#[cfg(not(target_os = "linux"))]
pub fn is_readable<T>(_: &T) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_stop_that_is_polled_stays_requested() {
        use std::sync::atomic::AtomicU32;
        let polls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&polls);
        let stop = Stop::polled(move || counted.fetch_add(1, Ordering::Relaxed) == 1);
        assert!(stop.check().is_ok());
        assert!(stop.clone().check().is_err());
        assert!(stop.is_requested());
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    /// A pipe without a writer, whose open would wait, and one whose writer is silent.
    #[test]
    #[cfg(target_os = "linux")]
    fn waiting_for_a_pipe_ends_with_the_stop() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let stop = Stop::default();
        let mut reader = Stoppable::open(&pipe, &stop).unwrap();
        assert!(!is_readable(reader.file()).unwrap());
        let mut writer = File::options().write(true).open(&pipe).unwrap();
        writer.write_all(b"ab").unwrap();
        let mut buffer = [0; 9];
        assert_eq!(reader.read(&mut buffer).unwrap(), 2);
        assert!(!is_readable(reader.file()).unwrap());
        assert!(!stop.request());
        assert!(reader.read(&mut buffer).unwrap_err().to_string().contains("stopped"));
        let mut whole = Stoppable::open(&pipe, &Stop::default()).unwrap();
        writer.write_all(b"c").unwrap();
        drop(writer);
        let mut rest = Vec::new();
        whole.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"c");
    }
}
