//! Named pipes as outputs: opening a pipe waits for its reader, and writing waits until the reader has made room. Both
//! wait in short steps, and check the stop of a [`Wait`] after each step.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use floatgate_workload::file::Stop;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// Wait for the reader of a pipe: the message to the user, and the stop that ends the wait. The default reports nothing
/// and waits forever.
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
    /// Creates a wait that ends when `stop` is requested. After half a second without a reader, `report` gets a
    /// message.
    pub fn new(stop: Stop, report: fn(&str)) -> Wait {
        Wait { stop, report }
    }
}

/// Longest wait between two checks of the stop.
const STEP: Duration = Duration::from_millis(50);

/// Number of steps before the message. A reader that is started together with the command opens the pipe sooner.
const SILENT_STEPS: u32 = 10;

/// Number of steps without room after which a write fails if the stop is requested. A reader that is active gets the
/// rest of the output.
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
            // The pipe has no reader yet.
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

/// Writes bytes to a file. Waits for room in a pipe. After the stop is requested, it waits only for [`LAST_STEPS`]
/// steps.
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
                return Err(io::Error::other("stopped, because the reader of the pipe does not read"));
            }
        }
        let step = Timespec { tv_sec: 0, tv_nsec: STEP.as_nanos() as _ };
        match poll(&mut [PollFd::new(file, PollFlags::OUT)], Some(&step)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
