//! Flash operations of the request to explain.

use serde_json::Value;

/// A span of time in picoseconds.
pub(super) type Span = (u64, u64);

pub(super) fn us(ps: u64) -> f64 {
    ps as f64 / 1e6
}

/// A phase of an operation, from the timeline.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub(super) name: String,
    pub(super) on_bus: bool,
    pub(super) span: Span,
}

/// An operation of the request.
#[derive(Clone, Debug)]
pub(super) struct Own {
    pub(super) what: String,
    pub(super) channel: u64,
    pub(super) place: Value,
    pub(super) requests: Vec<u64>,
    pub(super) wait: Span,
    pub(super) phases: Vec<Phase>,
    /// Logical page of the request's last mapping unit in this operation, and the time at which it was queued.
    pub(super) last_unit: (u64, u64),
}

impl Own {
    /// Returns the end of the last phase.
    pub(super) fn end(&self) -> u64 {
        self.phases.iter().map(|phase| phase.span.1).max().unwrap_or(self.wait.1)
    }
}
