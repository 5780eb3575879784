//! Frontend of runs in Python: reports progress, and ends a run at Ctrl-C.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use floatgate_core::sim::text::escaped_lines;
use floatgate_core::simulation::Progress;
use floatgate_run::frontend;
use floatgate_run::output::Wait;
use floatgate_workload::file::Stop;
use pyo3::prelude::*;

/// Minimum time between two polls of Python, which check for signals and report progress.
const EVERY: Duration = Duration::from_millis(50);

/// Frontend that ends a run at Ctrl-C and reports its progress.
pub struct Frontend(Arc<Shared>);

/// State that a [`Frontend`] shares with the readers and writers of files, which poll for signals while they wait.
struct Shared {
    progress: Option<Py<PyAny>>,
    state: Mutex<State>,
}

/// Progress of a run.
struct State {
    part: &'static str,
    share: Option<f64>,
    requested: Instant,
    /// Exception that a signal or `progress` raised.
    error: Option<PyErr>,
}

#[expect(clippy::disallowed_methods, reason = "the time of polls does not affect results")]
fn now() -> Instant {
    Instant::now()
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks for signals and reports progress. An exception ends the run.
    fn ask(&self) {
        let (part, share) = {
            let state = self.state();
            if state.error.is_some() {
                return;
            }
            (state.part, state.share)
        };
        let requested = Python::attach(|py| {
            // Lets other threads run, if the run keeps Python's lock.
            py.detach(std::thread::yield_now);
            py.check_signals()?;
            match &self.progress {
                Some(progress) => progress.call1(py, (part, share)).map(|_| ()),
                None => Ok(()),
            }
        });
        if let Err(error) = requested {
            self.state().error = Some(error);
        }
    }

    fn wants_end(&self) -> bool {
        let now = now();
        let mut state = self.state();
        if state.error.is_some() || now.duration_since(state.requested) < EVERY {
            return state.error.is_some();
        }
        state.requested = now;
        drop(state);
        self.ask();
        self.state().error.is_some()
    }
}

impl Frontend {
    /// Creates the frontend. `progress` is called with the name of the part and its completed share.
    pub fn new(progress: Option<Py<PyAny>>) -> Frontend {
        let state = State { part: "", share: None, requested: now(), error: None };
        Frontend(Arc::new(Shared { progress, state: Mutex::new(state) }))
    }

    /// Returns the exception that ended the run, if there is one.
    pub fn into_error(self) -> Option<PyErr> {
        self.0.state().error.take()
    }
}

/// Prints a message to standard error, if it is open.
fn report(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", escaped_lines(text));
}

impl frontend::Frontend for Frontend {
    fn begin(&self, what: &'static str) {
        let mut state = self.0.state();
        (state.part, state.share) = (what, None);
        drop(state);
        if self.0.progress.is_some() {
            self.0.ask();
        }
    }

    fn share(&self, share: f64) {
        self.0.state().share = Some(share);
    }

    fn progress(&self, _: &Progress, share: Option<f64>) {
        self.0.state().share = share;
    }

    fn end(&self) {}

    // Warnings are in the result, and the package issues them.
    fn warn(&self, _: &str) {}

    fn wants_end(&self) -> bool {
        self.0.wants_end()
    }

    fn stop(&self) -> Stop {
        let shared = Arc::clone(&self.0);
        Stop::polled(move || shared.wants_end())
    }

    fn wait(&self) -> Wait {
        Wait::new(self.stop(), report)
    }
}
