//! Data collected for a monitor between two samples.

use floatgate_core::results::{Answered, Breakdown, Sample, Series, Width};
use floatgate_core::sim::request::Completion;
use floatgate_core::sim::time::Time;

use crate::clock::Wall;

/// Width of a window that never closes by itself. Each sample closes it.
pub(super) const ENDLESS: Time = Time(1 << 62);

/// Data collected between two samples.
pub(super) struct Watch {
    pub(super) series: Series,
    pub(super) sample: Sample,
    /// Sum over all requests of their outstanding time in picoseconds, up to `counted_until`.
    pub(super) outstanding: u128,
    pub(super) counted_until: Time,
    pub(super) late: Answered,
}

impl Watch {
    pub(super) fn new() -> Watch {
        Watch {
            series: Series::new(Width::Fixed(ENDLESS)),
            sample: Sample::default(),
            outstanding: 0,
            counted_until: Time::ZERO,
            late: Answered::default(),
        }
    }

    /// Restarts with the current state of the device.
    pub(super) fn begin(&mut self, sample: &Sample) {
        self.series = Series::new(Width::Fixed(ENDLESS));
        self.series.record(sample);
        self.counted_until = sample.at;
        self.outstanding = sample.outstanding;
    }

    pub(super) fn completed(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) {
        self.series.completed(completion, breakdown);
    }

    pub(super) fn late_by(&mut self, span: Wall) {
        self.late.note(span.as_time());
    }
}
