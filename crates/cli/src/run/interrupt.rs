//! Handling of Ctrl-C, SIGTERM and SIGHUP: the first signal requests an orderly end, the second exits at once.

use std::sync::atomic::Ordering;

use floatgate_run::output::Wait;
use floatgate_workload::file::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{Failure, say};
use crate::signal::{FIRST, status_of};

/// Request of the user to end.
#[derive(Clone, Debug)]
pub struct Interrupt(Stop);

impl Interrupt {
    /// Starts to handle signals, with the message of a run.
    pub fn install() -> Result<Interrupt, Failure> {
        Interrupt::with_message("\nending: outstanding requests complete; press Ctrl-C again to stop at once")
    }

    /// Starts to handle signals. The first one prints `message`.
    #[expect(clippy::disallowed_methods, reason = "waits for signals while the simulation runs")]
    pub fn with_message(message: &'static str) -> Result<Interrupt, Failure> {
        let cannot = |error| Failure::fault(format!("cannot handle signals: {error}"));
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

    /// Returns `true` if the user has requested the end.
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
