//! Flash operations of the request to explain.

use floatgate_core::sim::time::Time;
use serde_json::Value;

/// A span of time in picoseconds.
pub(super) type Span = (u64, u64);

pub(super) fn us(ps: u64) -> f64 {
    ps as f64 / 1e6
}

/// Returns a time before which all operations have started that may matter at `at`. `before` is longer than most
/// operations last, and suspensions make some of them longer.
pub(super) fn earlier(at: u64, before: Time) -> u64 {
    at.saturating_sub(before.ps().saturating_mul(4))
}

/// Returns a time by which all operations have ended that had started at `at`: see [`earlier`].
pub(super) fn later(at: u64, before: Time) -> u64 {
    at.saturating_add(before.ps().saturating_mul(4))
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
