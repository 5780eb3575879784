//! Idle time of a device, and whether garbage collection may use it.

use crate::config::units::BlockCount;
use crate::config::{Background, DeviceConfig};
use crate::ftl::Ftl;
use crate::sim::time::Time;

/// Work that idle time starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleWork {
    /// Garbage collection (`gc.background`).
    Collect,
    /// Folding of the SLC cache (`slc_cache.idle`).
    Fold,
}

/// Idle time of a device, and whether garbage collection may use it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    /// Time at which the last idle time starts or has started. [`Time::NEVER`] before the first request.
    from: Time,
    /// True if garbage collection waits until a plane is at the hard threshold.
    pub(super) is_held: bool,
    /// True if garbage collection in this idle time waits for the end of a hold.
    pub(super) waits: bool,
    /// True if idle time starts garbage collection or folding.
    pub(super) is_used: bool,
}

impl Idle {
    pub(super) fn new(device: &DeviceConfig) -> Idle {
        Idle { from: Time::NEVER, is_held: false, waits: false, is_used: device.times_idle() }
    }

    /// Notes that idle time starts. Returns the times at which it starts garbage collection and folding.
    pub(super) fn start(&mut self, ftl: &Ftl, device: &DeviceConfig, now: Time) -> [(IdleWork, Option<Time>); 2] {
        if let Some(background) = &device.gc.background {
            (self.from, self.waits) = (now.later(background.idle.time()), false);
        }
        let collects = device.gc.background.as_ref().map(|_| self.from);
        let folds = ftl.folding.as_ref().and_then(|folding| folding.idle).filter(|_| ftl.has_full_cache());
        [(IdleWork::Collect, collects), (IdleWork::Fold, folds.map(|idle| now.later(idle)))]
    }

    /// Starts work in idle time. Returns `false` if it waits for the end of a hold.
    pub(super) fn allow(&mut self, ftl: &mut Ftl, device: &DeviceConfig, work: IdleWork) -> bool {
        match work {
            IdleWork::Collect => {
                self.waits = self.is_held;
                if let Some(background) = device.gc.background.as_ref().filter(|_| !self.waits) {
                    ftl.collect_below(device, background.until);
                }
                !self.waits
            }
            IdleWork::Fold => {
                ftl.folding.iter_mut().for_each(|folding| folding.is_idle = true);
                true
            }
        }
    }

    /// Ends the work of idle time, because a request has arrived.
    #[cold]
    pub(super) fn end(&self, ftl: &mut Ftl, device: &DeviceConfig) {
        ftl.folding.iter_mut().for_each(|folding| folding.is_idle = false);
        if ftl.shape().until > 0 {
            ftl.collect_below(device, BlockCount::Blocks(0));
        }
    }

    /// Starts or ends a hold, at a time when the host is idle or not, and returns the work of idle time that resumes.
    pub(super) fn hold<'a>(
        &mut self,
        device: &'a DeviceConfig,
        is_held: bool,
        is_idle_at: Option<Time>,
        is_collecting: bool,
    ) -> Option<&'a Background> {
        let is_idle = is_idle_at.is_some_and(|now| self.from <= now);
        let resumes = !is_held && is_idle && self.waits;
        (self.is_held, self.waits) = (is_held, is_held && is_idle && is_collecting);
        // If it has come to rest in an earlier turn, it would find the same blocks again.
        device.gc.background.as_ref().filter(|_| resumes)
    }
}
