//! Named pipes that are written: opening one waits for its reader, and writing to it waits until the reader has made
//! room. Both wait in short steps, and check the stop of a [`Wait`] between them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use floatgate_workload::file::Stop;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// Wait for the reader of a pipe: its report to the user, and the request that ends it. The default reports nothing and
/// waits forever.
#[derive(Clone, Debug)]
pub struct Wait {
    stop: Stop,
    report: fn(&str),
}

impl Default for Wait {
    fn default() -> Wait {
        Wait::new(Stop::default(), |_| {})
    }
}

impl Wait {
    /// Waits until `stop` is requested, and calls `report` with a message when that takes long.
    pub fn new(stop: Stop, report: fn(&str)) -> Wait {
        Wait { stop, report }
    }
}

/// Longest wait between two checks of the stop.
const STEP: Duration = Duration::from_millis(50);

/// Steps before a message reports that an output waits. A reader that is started together with the command is faster.
const SILENT_STEPS: u32 = 10;

/// Steps without room that end a write after a stop is requested: a reader that is alive gets the rest of an output.
const LAST_STEPS: u32 = 20;

/// Returns `true` if the path leads to a pipe.
pub fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.file_type().is_fifo())
}

/// Opens a device node or a pipe for writing. Waits for the reader of a pipe.
pub fn open(path: &Path, wait: &Wait) -> io::Result<File> {
    if !is_pipe(path) {
        return OpenOptions::new().write(true).open(path);
    }
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
    let mut steps = 0;
    loop {
        match options.open(path) {
            // It has no reader.
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => wait.stop.check()?,
            opened => return opened,
        }
        if steps == SILENT_STEPS {
            (wait.report)(&format!(
                "waiting for a program that reads the pipe {}; Ctrl-C ends the wait",
                path.display()
            ));
        }
        steps += 1;
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "waits for the reader of a pipe")]
fn pause() {
    std::thread::sleep(STEP);
}

/// Writes bytes to a file. Waits for room in a pipe; after a stop is requested, only while its reader makes some.
pub fn write(mut file: &File, bytes: &[u8], wait: &Wait) -> io::Result<usize> {
    let mut steps = 0;
    loop {
        match file.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            written => return written,
        }
        if wait.stop.is_requested() {
            steps += 1;
            if steps > LAST_STEPS {
                return Err(io::Error::other("stopped, because its reader takes nothing"));
            }
        }
        let step = Timespec { tv_sec: 0, tv_nsec: STEP.as_nanos() as _ };
        match poll(&mut [PollFd::new(file, PollFlags::OUT)], Some(&step)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
