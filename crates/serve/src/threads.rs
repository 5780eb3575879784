//! Threads that wait for sockets, and their wake-up.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};

/// Wakes a thread that is waiting for sockets.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// Creates a bell that is not ringing.
    pub fn new() -> io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Wakes the thread, now or when it waits next.
    pub fn ring(&self) {
        // This can fail only if the bell is already ringing.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Stops the ringing.
    pub fn silence(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Starts a thread.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "sockets are served concurrently with the simulation, which one thread owns"
    )]
    std::thread::Builder::new().name(name.to_owned()).spawn(run)
}
