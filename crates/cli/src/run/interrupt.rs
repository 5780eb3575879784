//! Handling of Ctrl-C, SIGTERM and SIGHUP: the first signal requests an orderly end, the second exits at once. A run
//! has five seconds for its orderly end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use floatgate_run::output::Wait;
use floatgate_workload::file::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{Failure, say};
use crate::signal::{FIRST, status, status_of};

/// Time after the first signal for which a run waits for its outstanding requests.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time after that in which the run writes what it has. The process ends after both.
const LAST: Duration = Duration::from_millis(2_500);

/// Request of the user to end.
#[derive(Clone, Debug)]
pub struct Interrupt {
    stop: Stop,
    /// True if outstanding requests have had their time.
    overdue: Arc<AtomicBool>,
}

impl Interrupt {
    /// Starts to handle signals, with the message and the deadline of a run.
    pub fn install() -> Result<Interrupt, Failure> {
        let message = "\nending: outstanding requests complete; press Ctrl-C again to stop at once";
        Interrupt::handle(message, true)
    }

    /// Starts to handle signals. The first one prints `message`.
    pub fn with_message(message: &'static str) -> Result<Interrupt, Failure> {
        Interrupt::handle(message, false)
    }

    /// Creates an interrupt by another program, which handles signals itself.
    #[cfg(feature = "live")]
    pub fn by(stop: Stop) -> Interrupt {
        Interrupt { stop, overdue: Arc::default() }
    }

    #[expect(clippy::disallowed_methods, reason = "waits for signals while the simulation runs")]
    fn handle(message: &'static str, has_deadline: bool) -> Result<Interrupt, Failure> {
        let cannot = |error| Failure::fault(format!("cannot handle signals: {error}"));
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(cannot)?;
        let interrupt = Interrupt { stop: Stop::default(), overdue: Arc::default() };
        let (stop, overdue) = (interrupt.stop(), interrupt.overdue.clone());
        let listen = move || {
            for signal in signals.forever() {
                if FIRST.swap(signal, Ordering::Relaxed) != 0 {
                    std::process::exit(i32::from(status_of(signal)));
                }
                stop.request();
                say(message);
                if has_deadline {
                    let overdue = overdue.clone();
                    // Without the thread, the run still ends when its requests complete, or at the second signal.
                    let _ = std::thread::Builder::new().name("deadline".to_owned()).spawn(|| end_late(overdue));
                }
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(cannot)?;
        Ok(interrupt)
    }

    /// Returns `true` if the user has requested the end.
    pub fn requested(&self) -> bool {
        self.stop.is_requested()
    }

    /// Returns `true` if the run must not wait for its outstanding requests any longer.
    pub fn is_overdue(&self) -> bool {
        self.overdue.load(Ordering::Relaxed)
    }

    /// Returns the flag that stops readers of files when the user asks to end.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Returns a wait for the readers of pipes that is reported on the terminal, and ends when the user asks to end.
    pub fn wait(&self) -> Wait {
        Wait::new(self.stop(), say)
    }
}

/// Ends the wait for outstanding requests, and then the process, if it does not end by itself.
#[expect(clippy::disallowed_methods, reason = "the deadline is in real time")]
fn end_late(overdue: Arc<AtomicBool>) {
    std::thread::sleep(PATIENCE);
    overdue.store(true, Ordering::Relaxed);
    std::thread::sleep(LAST);
    say("interrupted: the run did not end by itself in time, so its files are incomplete (*.partial)");
    std::process::exit(i32::from(status()));
}
