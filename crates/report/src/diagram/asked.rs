//! What a diagram shows, and what it has room for.

use floatgate_core::sim::time::Time;

/// What to draw.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What overlaps with this span of simulated time; from [`Time::ZERO`] the axis begins with the first of it, and
    /// to [`Time::NEVER`] it ends with the last.
    pub span: (Time, Time),
    /// What is written above it; without, the device and the span.
    pub title: Option<String>,
}

/// Phases that a diagram has at most: with more, boxes are too narrow to be told apart.
pub const MOST_PHASES: usize = 300;

/// Planes that a diagram has at most.
pub const MOST_PLANES: usize = 48;

/// Requests that a diagram shows at most, and rows that they may take.
pub(super) const MOST_REQUESTS: usize = 64;
pub(super) const MOST_REQUEST_ROWS: usize = 8;
