//! Ctrl-C, SIGTERM and SIGHUP: once to end in order, twice to stop at once.

use std::sync::atomic::Ordering;

use floatgate_run::output::Wait;
use floatgate_workload::file::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{Failure, say};
use crate::signal::{FIRST, status_of};

/// Whether the user has asked to end.
#[derive(Clone, Debug)]
pub struct Interrupt(Stop);

impl Interrupt {
    /// Listens from now on.
    pub fn install() -> Result<Interrupt, Failure> {
        Interrupt::with_message("\nending: what has been issued is completed; Ctrl-C again stops at once")
    }

    /// Starts to handle signals, and prints `message` at the first one.
    #[expect(clippy::disallowed_methods, reason = "waits for signals while the simulation runs")]
    pub fn with_message(message: &'static str) -> Result<Interrupt, Failure> {
        let cannot = |error| Failure::fault(format!("cannot listen for Ctrl-C: {error}"));
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(cannot)?;
        let interrupt = Interrupt(Stop::default());
        let stop = interrupt.stop();
        let listen = move || {
            for signal in signals.forever() {
                if FIRST.swap(signal, Ordering::Relaxed) != 0 {
                    std::process::exit(i32::from(status_of(signal)));
                }
                stop.request();
                say(message);
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(cannot)?;
        Ok(interrupt)
    }

    /// Whether to end.
    pub fn requested(&self) -> bool {
        self.0.is_requested()
    }

    /// Returns the flag that stops readers of files when the user asks to end.
    pub fn stop(&self) -> Stop {
        self.0.clone()
    }

    /// Returns a wait for the readers of pipes that is reported on the terminal, and ends when the user asks to end.
    pub fn wait(&self) -> Wait {
        Wait::new(self.stop(), say)
    }
}
