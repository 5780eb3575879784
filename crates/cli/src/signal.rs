//! Signal that ends this process, and its exit status.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

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
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// Signals that request the end of a command that looks for them in its loop.
#[derive(Debug)]
pub struct Ending(Arc<AtomicUsize>);

impl Ending {
    /// Starts to note SIGTERM and SIGHUP, which then no longer end the process.
    pub fn note() -> io::Result<Ending> {
        let noted = Arc::default();
        for signal in [SIGTERM, SIGHUP] {
            signal_hook::flag::register_usize(signal, Arc::clone(&noted), signal as usize)?;
        }
        Ok(Ending(noted))
    }

    /// Returns `true` if a signal has requested the end, which then determines the exit status.
    pub fn is_requested(&self) -> bool {
        let signal = self.0.load(Ordering::Relaxed) as i32;
        if signal != 0 {
            FIRST.store(signal, Ordering::Relaxed);
        }
        signal != 0
    }
}

/// First signal that requested the end of this process, or 0. It is global because signals belong to the process.
pub static FIRST: AtomicI32 = AtomicI32::new(0);
