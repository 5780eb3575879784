//! Standard output, and whether it was closed before the program started.
//!
//! The runtime of Rust opens `/dev/null` in place of a closed standard output, and ignores that writes to it fail, so a
//! result would be lost without an error. Only the loader's initialization runs early enough to see that it is closed.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

/// True if standard output was closed when this code was loaded.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Returns `true` if standard output was closed when the program started.
pub fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Prints to standard output.
pub fn print(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_ref()).and_then(|()| stdout.flush()).map_err(Failure::of_stdout)
}

#[cfg(target_os = "linux")]
extern "C" fn check() {
    use std::os::fd::BorrowedFd;
    // SAFETY: the descriptor is only asked for its flags, and an invalid one is what the call reports.
    #[expect(unsafe_code, reason = "a descriptor that may be closed has no safe type")]
    let stdout = unsafe { BorrowedFd::borrow_raw(1) };
    CLOSED.store(rustix::io::fcntl_getfd(stdout).is_err(), Ordering::Relaxed);
}

// SAFETY: the loader calls the functions of this section with the C calling convention, before `main` or when it loads
// the library. `check` needs nothing that is initialized later.
#[cfg(target_os = "linux")]
#[used]
#[expect(unsafe_code, reason = "there is no safe way to run before the runtime of Rust")]
#[unsafe(link_section = ".init_array")]
static CHECK: extern "C" fn() = check;
