//! Signal that ends this process, and its exit status.

use std::sync::atomic::{AtomicI32, Ordering};

use signal_hook::consts::SIGINT;

/// Returns the exit status, as in shells, for the first signal. Without a signal, it is that of Ctrl-C.
pub fn status() -> u8 {
    match FIRST.load(Ordering::Relaxed) {
        0 => status_of(SIGINT),
        signal => status_of(signal),
    }
}

pub fn status_of(signal: i32) -> u8 {
    (128 + signal) as u8
}

/// Lets writes beyond the limit for the size of files fail (`ulimit -f`). Without a handler, SIGXFSZ would end the
/// process without a message.
pub fn survive_file_limits() {
    #[cfg(unix)]
    // If the handler cannot be registered, only the message is missing.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
}

/// First signal that requested the end of this process, or 0. It is global because signals belong to the process.
pub static FIRST: AtomicI32 = AtomicI32::new(0);
