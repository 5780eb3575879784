//! Python, waiting for a run.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use floatgate_cli::run::session;
use floatgate_core::run::Progress;
use pyo3::prelude::*;

/// Python's lock is taken so often at most, to ask for signals and to tell how far a run has come.
const EVERY: Duration = Duration::from_millis(50);

/// Ends a run at Ctrl-C, and tells how far it is.
pub struct Front {
    progress: Option<Py<PyAny>>,
    part: Cell<&'static str>,
    share: Cell<Option<f64>>,
    asked: Cell<Instant>,
    /// What a signal, or `progress`, has raised.
    error: RefCell<Option<PyErr>>,
}

#[expect(clippy::disallowed_methods, reason = "how often Python is asked goes into no result")]
fn now() -> Instant {
    Instant::now()
}

impl Front {
    /// With a function to call with the name of the part and its share.
    pub fn new(progress: Option<Py<PyAny>>) -> Front {
        Front {
            progress,
            part: Cell::new(""),
            share: Cell::new(None),
            asked: Cell::new(now()),
            error: RefCell::default(),
        }
    }

    /// What has been raised.
    pub fn into_error(self) -> Option<PyErr> {
        self.error.into_inner()
    }

    /// Asks for signals, and tells how far it is; what either raises ends the run.
    fn ask(&self) {
        if self.error.borrow().is_some() {
            return;
        }
        let asked = Python::attach(|py| {
            py.check_signals()?;
            match &self.progress {
                Some(progress) => progress.call1(py, (self.part.get(), self.share.get())).map(|_| ()),
                None => Ok(()),
            }
        });
        if let Err(error) = asked {
            *self.error.borrow_mut() = Some(error);
        }
    }
}

impl session::Front for Front {
    fn begin(&self, what: &'static str) {
        self.part.set(what);
        self.share.set(None);
        if self.progress.is_some() {
            self.ask();
        }
    }

    fn share(&self, share: f64) {
        self.share.set(Some(share));
    }

    fn progress(&self, _: &Progress, share: Option<f64>) {
        self.share.set(share);
    }

    fn end(&self) {}

    // The result says them, and the package warns when it has it.
    fn warn(&self, _: &str) {}

    fn wants_end(&self) -> bool {
        let now = now();
        if now.duration_since(self.asked.get()) >= EVERY {
            self.asked.set(now);
            self.ask();
        }
        self.error.borrow().is_some()
    }
}
