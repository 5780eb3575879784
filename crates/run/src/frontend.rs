//! Interfaces of a run: the frontend, which shows its progress, and the observer, which keeps its details.

use std::io;

use floatgate_core::results::{Breakdown, Sample};
use floatgate_core::sim::request::Completion;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::Progress;
use floatgate_core::timeline::{CoreWork, Probe, Slice};
use floatgate_workload::file::Stop;

use crate::failure::Failure;
use crate::output::Wait;

/// Frontend of a run: shows its progress and its warnings, and may end it.
pub trait Frontend {
    /// Reports that a part of the work starts.
    fn begin(&self, what: &'static str);
    /// Reports the progress of this part, from 0 to 1.
    fn share(&self, share: f64);
    /// Reports the progress of the workload, and its share of the whole if that is known.
    fn progress(&self, progress: &Progress, share: Option<f64>);
    /// Reports that this part has ended.
    fn end(&self);
    /// Warns the user.
    fn warn(&self, text: &str);
    /// Returns `true` if the run should end.
    fn wants_end(&self) -> bool;
    /// Returns `true` if a run that should end must not wait for its outstanding requests any longer.
    fn is_overdue(&self) -> bool {
        false
    }
    /// Returns the stop that ends waiting for the writers of pipes.
    fn stop(&self) -> Stop;
    /// Returns the wait for the readers of pipes: its report, and the stop that ends it.
    fn wait(&self) -> Wait;
}

/// Frontend that shows nothing and never ends a run.
#[derive(Clone, Copy, Debug)]
pub struct Quiet;

impl Frontend for Quiet {
    fn begin(&self, _: &'static str) {}

    fn share(&self, _: f64) {}

    fn progress(&self, _: &Progress, _: Option<f64>) {}

    fn end(&self) {}

    fn warn(&self, _: &str) {}

    fn wants_end(&self) -> bool {
        false
    }

    fn stop(&self) -> Stop {
        Stop::default()
    }

    fn wait(&self) -> Wait {
        Wait::default()
    }
}

/// Observer of a run, which keeps more data than the summary.
pub trait Observer {
    /// Returns the probe for the device, if one is needed.
    fn probe(&self) -> Option<Probe> {
        None
    }
    /// Handles a completed request.
    fn completed(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) -> io::Result<()>;
    /// Returns the end of the current window.
    fn next_sample(&self) -> Time;
    /// Handles the sample at the end of a window.
    fn record(&mut self, sample: &Sample) -> io::Result<()>;
    /// Handles the sample at the end of the run.
    fn record_last(&mut self, sample: &Sample) -> io::Result<()>;
    /// Returns `true` if the observer needs the operations of channels and planes.
    fn wants_slices(&self) -> bool {
        false
    }
    /// Handles operations of channels and planes.
    fn slices(&mut self, _: &[Slice]) -> io::Result<()> {
        Ok(())
    }
    /// Handles work of the controller cores.
    fn works(&mut self, _: &[CoreWork]) -> io::Result<()> {
        Ok(())
    }
    /// Returns warnings about the data that was kept. `elapsed` is the length of the run.
    fn warnings(&self, elapsed: Time) -> Vec<String>;
}

/// Subject of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The options.
    Options,
    /// The device.
    Device,
    /// A workload that is not a trace.
    Workload,
    /// A trace.
    Trace,
    /// The state before the run.
    Precondition,
    /// The run itself.
    Run,
    /// The files of the result.
    Output,
    /// A result of another run.
    Result,
}

impl Subject {
    /// Creates a failure about this subject.
    pub fn stopped(self, failure: Failure) -> Stopped {
        Stopped { subject: self, failure }
    }

    /// Returns a function that creates failures about this subject.
    pub fn stop(self) -> impl Fn(Failure) -> Stopped {
        move |failure| self.stopped(failure)
    }
}

/// Failure that leaves a run without a result.
#[derive(Debug, thiserror::Error)]
#[error("{failure}")]
pub struct Stopped {
    /// Subject of the failure.
    pub subject: Subject,
    /// The failure.
    pub failure: Failure,
}

impl Stopped {
    /// Returns `true` if the user has ended the run.
    pub fn is_interrupted(&self) -> bool {
        matches!(self.failure, Failure::Interrupted(_))
    }
}

/// Returns the failure to open a workload, or [`Failure::Interrupted`] if the user ended the run, because that also
/// makes reading fail.
pub fn unless_ended(failure: Failure, frontend: &dyn Frontend) -> Failure {
    if frontend.wants_end() {
        Failure::Interrupted("the workload was not opened, so there is no result")
    } else {
        failure
    }
}

/// Returns the failure to write, or [`Failure::Interrupted`] if the user ended the run, because that also ends waiting
/// for the reader of a pipe.
pub fn unless_stopped(error: anyhow::Error, frontend: &dyn Frontend) -> Failure {
    if frontend.wants_end() {
        Failure::Interrupted("the output was not written to its end, so there is no result")
    } else {
        Failure::Fault(error)
    }
}
