//! Ctrl-C: once to end in order, twice to stop at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::{Failure, say};

/// Whether the user has asked to end.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on.
    pub fn install() -> Result<Interrupt, Failure> {
        Interrupt::with_message("\nending: what has been issued is completed; Ctrl-C again stops at once")
    }

    /// Listens from now on, and says so much at the first Ctrl-C.
    pub fn with_message(message: &'static str) -> Result<Interrupt, Failure> {
        let requested = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&requested);
        let handler = move || {
            if heard.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
            say(message);
        };
        ctrlc::set_handler(handler).map_err(|error| Failure::fault(format!("cannot listen for Ctrl-C: {error}")))?;
        Ok(Interrupt(requested))
    }

    /// Whether to end.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
