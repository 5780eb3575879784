//! A trace as a source of requests.

use std::path::Path;

use super::detect::Detected;
use super::digest::Digest;
use super::gaps::{ADVICE, Gaps, span};
use super::options::{Devices, Replay, TimeScale, TraceOptions};
use super::place::Placement;
use super::rate::RateCheck;
use super::records::{Entry, Records};
use super::time_unit::TimeUnit;
use crate::sim::request::Request;
use crate::sim::source::{Pace, Source, SourceError};
use crate::sim::time::Time;

/// A trace that is being replayed.
///
/// The first request arrives at 0, whatever its time in the trace. Memory is independent of the length of the trace,
/// except with [`Fit::Compact`](super::Fit::Compact), which takes memory for the touched address range.
pub struct Trace {
    records: Records,
    placement: Placement,
    rate: RateCheck,
    gaps: Gaps,
    digest: Digest,
    replay: Replay,
    scale: TimeScale,
    merge: bool,
    /// Time of the first request in the trace.
    base: Option<u128>,
    count: u64,
}

impl Trace {
    /// Opens a trace file, compressed or not, for a device of `device_sectors`.
    ///
    /// Reads the whole trace first if this is necessary to place its requests: for several devices side by side, and
    /// for [`Fit::Compact`](super::Fit::Compact). Errors in its lines are then reported here.
    pub fn open(path: &Path, options: &TraceOptions, device_sectors: u64) -> Result<Trace, SourceError> {
        if let Some(what) = idle(options) {
            return Err(SourceError(format!(
                "{}: {what}",
                options.called.clone().unwrap_or_else(|| path.display().to_string())
            )));
        }
        let records = Records::open(path, options)?;
        let placement = if Placement::needs_survey(options) {
            if !records.input().is_file() {
                return Err(SourceError(format!(
                    "{}: must be read twice, but is not a regular file; use `--devices merge` without `--fit compact`, \
                     or pass it as standard input, `-`, which is stored in a file",
                    records.name()
                )));
            }
            Placement::survey(Records::open(path, options)?, options, device_sectors)?
        } else {
            Placement::as_is(options, device_sectors)
        };
        Ok(Trace {
            records,
            placement,
            rate: RateCheck::new(),
            gaps: Gaps::new(options.max_gap),
            digest: Digest::new(),
            replay: options.replay,
            scale: options.time_scale,
            merge: options.devices == Devices::Merge,
            base: None,
            count: 0,
        })
    }

    /// Returns the format, and how it was detected.
    pub fn detected(&self) -> Detected {
        self.records.detected().in_doubt(self.rate().is_some())
    }

    /// Returns a warning if the rate of the requests so far is implausible.
    fn rate(&self) -> Option<String> {
        self.rate.warning(self.records.unit(), self.gaps.jump().is_some())
    }

    /// Returns the unit of the trace's times.
    pub fn unit(&self) -> TimeUnit {
        self.records.unit()
    }

    /// Returns the number of requests returned so far.
    pub fn requests(&self) -> u64 {
        self.count
    }

    /// Returns a digest of the requests so far, with the values in the trace: time since the first request, device,
    /// operation, address and length, before scaling and placement. It is therefore independent of the compression of
    /// the trace, of the device and of the pace.
    pub fn digest(&self) -> u64 {
        self.digest.0
    }

    /// Returns the format, its confidence, the unit of time, and the number of requests read.
    pub fn description(&self) -> String {
        let (detected, unit) = (self.detected(), self.records.unit());
        let requests = if self.count == 1 { "request" } else { "requests" };
        format!("format {detected}, times in {unit}, {} {requests} read", self.count)
    }

    /// Returns the arrival of a request since the first one, scaled.
    #[inline]
    fn arrival(&mut self, entry: &Entry, base: u128) -> Result<Time, SourceError> {
        if self.replay != Replay::Timed {
            return Ok(Time::ZERO);
        }
        // Records are in order, so none is earlier than the first.
        let since = self.gaps.shorten(entry.ps.saturating_sub(base), entry.line);
        self.scale.apply(since).map(Time).ok_or_else(|| self.too_late(entry.line, since))
    }

    #[cold]
    fn too_late(&self, line: u64, since: u128) -> SourceError {
        if let Some(jump) = self.gaps.jump() {
            let gap = span(jump.ps);
            let before = jump.before(self.records.frame_word());
            let what = format!("simulated time holds 213 days, and there is a gap of {gap} {before}: {ADVICE}");
            return self.records.error(line, &what);
        }
        let unit = self.records.unit();
        let days = since / (86_400 * 10_u128.pow(12));
        let scale = self.scale;
        let what = format!(
            "{} ({days} days) after the first request, times {scale}, is longer than the 213 days that simulated time \
             holds; `--time-unit` changes the unit ({unit}), `--time-scale` the speed",
            unit.write(since)
        );
        self.records.error(line, &what)
    }
}

impl Source for Trace {
    fn next_request(&mut self) -> Result<Option<Request>, SourceError> {
        let Some(entry) = self.records.next()? else {
            return Ok(None);
        };
        let base = *self.base.get_or_insert(entry.ps);
        let arrival = self.arrival(&entry, base)?;
        let lba = self
            .placement
            .place(&entry.record, self.merge)
            .map_err(|what| self.records.misplaced(entry.line, &what))?;
        let request = Request::new(arrival, entry.record.operation, lba, entry.record.sectors);
        let request = Request { fua: entry.record.fua, ..request };
        self.rate.note(entry.line, arrival, request.bytes());
        self.digest.add(entry.ps.wrapping_sub(base) as u64, &entry.record);
        self.count += 1;
        Ok(Some(request))
    }

    fn pace(&self) -> Pace {
        match self.replay {
            Replay::Timed => Pace::Timed { depth: None },
            Replay::Asap => Pace::Depth { depth: u32::MAX, think: Time::ZERO },
            Replay::Depth(depth) => Pace::Depth { depth, think: Time::ZERO },
        }
    }

    fn description(&self) -> String {
        Trace::description(self)
    }

    fn digest(&self) -> Option<u64> {
        Some(Trace::digest(self))
    }

    fn progress(&self) -> Option<f64> {
        self.records.input().progress()
    }

    fn warnings(&self) -> Vec<String> {
        let name = self.records.name();
        let mut warnings = self.records.warnings();
        let rate = self.rate();
        let gaps = self.gaps.warning(self.records.frame_word());
        warnings.extend(rate.into_iter().chain(gaps).map(|warning| format!("{name}: {warning}")));
        let wrapped = self.placement.wrapped();
        if wrapped > 0 {
            let count = self.count;
            let requests = if count == 1 { "request" } else { "requests" };
            let were = if wrapped == 1 { "was" } else { "were" };
            warnings.push(format!(
                "{name}: {wrapped} of {count} {requests} lay behind the device and {were} wrapped into it"
            ));
        }
        warnings
    }
}

/// Returns an error text if an option has no effect.
fn idle(options: &TraceOptions) -> Option<String> {
    (options.max_gap.is_some() && options.replay != Replay::Timed).then(|| {
        format!(
            "`--max-gap` is for a timed replay, and `--replay {}` leaves the times out; leave one out",
            options.replay
        )
    })
}

#[cfg(test)]
mod tests;
