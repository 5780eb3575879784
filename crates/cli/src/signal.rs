//! The signal that ends this process, and its exit status.

use std::sync::atomic::{AtomicI32, Ordering};

use signal_hook::consts::SIGINT;

/// Returns the exit status that shells have for the signal that ended this, Ctrl-C if none did.
pub fn status() -> u8 {
    match FIRST.load(Ordering::Relaxed) {
        0 => status_of(SIGINT),
        signal => status_of(signal),
    }
}

pub fn status_of(signal: i32) -> u8 {
    (128 + signal) as u8
}

/// The first signal that asked this process to end; 0 if there was none. Signals are the process's, and so is this.
pub static FIRST: AtomicI32 = AtomicI32::new(0);
