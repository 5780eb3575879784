//! Source around another one: changes its requests, or is notified when they are issued.

use std::ops::Range;

use floatgate_core::sim::request::Request;
use floatgate_core::sim::source::{Control, ObjectCounts, Pace, Source, SourceError};
use floatgate_core::sim::time::Time;

/// Effect of a wrapped source on the requests.
pub trait Wrapper: 'static {
    /// Returns the request to issue.
    fn change(&mut self, request: Request) -> Request {
        request
    }

    /// Notes that a request was issued.
    ///
    /// # Errors
    ///
    /// The run cannot continue.
    fn issued(&mut self, _request: &Request) -> Result<(), SourceError> {
        Ok(())
    }

    /// Returns a warning about the requests so far.
    fn warning(&self) -> Option<String> {
        None
    }
}

/// Wraps a source.
pub fn wrap(source: &mut Box<dyn Source>, with: impl Wrapper) {
    let inner = std::mem::replace(source, Box::new(Nothing));
    *source = Box::new(Wrapped { inner, with });
}

/// Placeholder for a source while it is wrapped.
struct Nothing;

impl Source for Nothing {
    fn next_request(&mut self) -> Result<Option<Request>, SourceError> {
        Ok(None)
    }
    fn pace(&self) -> Pace {
        Pace::Timed { depth: None }
    }
}

struct Wrapped<W> {
    inner: Box<dyn Source>,
    with: W,
}

impl<W: Wrapper> Source for Wrapped<W> {
    fn next_request(&mut self) -> Result<Option<Request>, SourceError> {
        let request = self.inner.next_request()?;
        Ok(request.map(|request| self.with.change(request)))
    }
    fn issued(&mut self, request: &Request) -> Result<(), SourceError> {
        self.inner.issued(request)?;
        self.with.issued(request)
    }
    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.inner.warnings();
        warnings.extend(self.with.warning().map(|warning| format!("{}: {warning}", self.inner.description())));
        warnings
    }
    fn pace(&self) -> Pace {
        self.inner.pace()
    }
    fn waits_for(&self) -> Range<usize> {
        self.inner.waits_for()
    }
    fn shift_positions(&mut self, others: usize) {
        self.inner.shift_positions(others);
    }
    fn start_delay(&self) -> Time {
        self.inner.start_delay()
    }
    fn stop_at(&self) -> Option<Time> {
        self.inner.stop_at()
    }
    fn out_of_time(&self) -> bool {
        self.inner.out_of_time()
    }
    fn measure_from(&self) -> Time {
        self.inner.measure_from()
    }
    fn control(&self) -> Control {
        self.inner.control()
    }
    fn controlled(&mut self, outcome: String) {
        self.inner.controlled(outcome);
    }
    fn streams(&self) -> Vec<String> {
        self.inner.streams()
    }
    fn progress(&self) -> Option<f64> {
        self.inner.progress()
    }
    fn description(&self) -> String {
        self.inner.description()
    }
    fn digest(&self) -> Option<u64> {
        self.inner.digest()
    }
    fn objects(&self) -> Option<ObjectCounts> {
        self.inner.objects()
    }
}
