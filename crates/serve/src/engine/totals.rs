//! Totals of the requests of an operation.

use floatgate_core::sim::request::{Completion, Status};

/// Counts of the requests of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Completed requests.
    pub count: u64,
    /// Bytes of the completed requests.
    pub bytes: u64,
    /// Failed requests.
    pub errors: u64,
}

impl Totals {
    /// Counts a completed request.
    #[inline]
    pub(super) fn note(&mut self, completion: &Completion) {
        self.count += 1;
        match completion.status {
            Status::Ok => self.bytes += completion.request.bytes(),
            _ => self.errors += 1,
        }
    }
}
