//! Options and limits of a diagram.

use floatgate_core::sim::time::Time;

/// Options of a diagram.
#[derive(Clone, Debug)]
pub struct Requested {
    /// Span of simulated time to draw. A start of [`Time::ZERO`] is moved to the first phase, and an end of
    /// [`Time::NEVER`] to the end of the last.
    pub span: (Time, Time),
    /// Title, or `None` for the device and the span.
    pub title: Option<String>,
}

/// Maximum number of phases in a diagram. With more, boxes are too narrow to distinguish.
pub const MAX_PHASES: usize = 300;

/// Maximum number of planes in a diagram.
pub const MAX_PLANES: usize = 48;

/// Maximum number of requests in a diagram, and maximum number of rows for them.
pub(super) const MAX_REQUESTS: usize = 64;
pub(super) const MAX_REQUEST_ROWS: usize = 8;
