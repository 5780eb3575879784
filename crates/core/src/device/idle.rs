//! Idle time of a device, and whether garbage collection may use it.

use crate::sim::time::Time;

/// Idle time of a device, and whether garbage collection may use it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    /// Time at which the last idle time starts or has started. [`Time::NEVER`] before the first request.
    pub from: Time,
    /// True if garbage collection waits until a plane is at the hard threshold: see `Device::hold_gc`.
    pub is_held: bool,
    /// True if garbage collection in this idle time waits for the end of a hold.
    pub waits: bool,
    /// True if idle time starts garbage collection or folding.
    pub is_used: bool,
}

impl Idle {
    pub(super) const NONE: Idle = Idle { from: Time::NEVER, is_held: false, waits: false, is_used: false };
}
