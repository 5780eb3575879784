//! Faults of external policies.

use std::fmt;
use std::sync::Arc;

/// Error that an external policy raised, or that describes its invalid result.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Error: a result breaks the contract of the policy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Invalid(String);

/// Creates the error that a policy, or what it is built from, is invalid.
pub fn invalid(what: impl Into<String>) -> Cause {
    Arc::new(Invalid(what.into()))
}

/// Returns a position that a policy has chosen among `count` things. Fails if there is no such position.
pub fn position(chosen: i64, count: usize, of: &str) -> Result<usize, Cause> {
    usize::try_from(chosen)
        .ok()
        .filter(|position| *position < count)
        .ok_or_else(|| invalid(format!("chose number {chosen} of {count} {of}, which are counted from 0")))
}

/// Failure of an external policy: it raised an error, or returned an invalid result.
#[derive(Clone, Debug)]
pub struct Fault {
    who: String,
    cause: Cause,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.who, self.cause)
    }
}

impl std::error::Error for Fault {}

impl Fault {
    pub(super) fn new(who: String, cause: Cause) -> Fault {
        Fault { who, cause }
    }

    /// Returns the error that the policy raised, or the description of its invalid result.
    pub fn cause(&self) -> &(dyn std::error::Error + 'static) {
        self.cause.as_ref()
    }
}
