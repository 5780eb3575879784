//! Sequential streams of reads, and the units that are read ahead of them.

use crate::config::DeviceConfig;
use crate::sim::id::{Lpn, TransactionId};
use crate::sim::request::Request;

/// Sequential stream of reads.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// Sector after the last request.
    next: u64,
    /// Number of consecutive requests, at most `ReadAhead::after`; 0 if there is no stream.
    requests: u32,
    /// First unit that was not read ahead.
    reached: u32,
    /// Unit after the last one to read ahead.
    until: u32,
    /// Number of the last request among all reads.
    used: u64,
}

/// State of the entry of a unit that is read ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// The unit was not read ahead.
    #[default]
    Other,
    /// The read is queued or in flight.
    Reading(TransactionId),
    /// The entry holds the unit.
    Held,
}

/// Streams, and the entries of units that are read ahead.
#[derive(Clone, Debug)]
pub(super) struct ReadAhead {
    streams: Vec<Stream>,
    /// Number of reads so far.
    reads: u64,
    /// Number of consecutive requests that make a stream.
    after: u32,
    /// Number of units that are read ahead of a request.
    size: u32,
    /// Number of units that the host sees.
    units: u32,
    pub(super) sectors_per_unit: u32,
    /// Indexed by entry.
    pub(super) states: Vec<State>,
}

impl ReadAhead {
    /// Creates the state of an idle device. Returns `None` if the device does not read ahead.
    pub(super) fn new(device: &DeviceConfig) -> Option<ReadAhead> {
        let config = device.active_buffer()?.read_ahead.as_ref()?;
        Some(ReadAhead {
            streams: vec![Stream::default(); config.streams as usize],
            reads: 0,
            after: config.after,
            size: config.size.0.div_ceil(device.unit_bytes()) as u32,
            units: device.logical_units() as u32,
            sectors_per_unit: device.sectors_per_unit(),
            states: vec![State::Other; device.buffer_units() as usize],
        })
    }

    /// Marks an entry as one of another unit.
    #[inline]
    pub(super) fn reset(&mut self, entry: u32) {
        self.states[entry as usize] = State::Other;
    }

    /// Returns `true` if an entry holds a unit that was read ahead.
    #[inline]
    pub(super) fn holds(&self, entry: u32) -> bool {
        self.states[entry as usize] == State::Held
    }

    /// Returns `true` if the read of the unit in an entry has not ended.
    pub(super) fn is_reading(&self, entry: u32) -> bool {
        matches!(self.states[entry as usize], State::Reading(_))
    }

    /// Adds a read to the stream that it continues, or starts a stream with it. Returns the stream if units are to be
    /// read ahead of it.
    pub(super) fn follow(&mut self, request: &Request) -> Option<u32> {
        self.reads += 1;
        let continued = self.streams.iter().position(|stream| stream.requests > 0 && stream.next == request.lba);
        let oldest = || self.streams.iter().enumerate().min_by_key(|(_, stream)| stream.used).map(|(index, _)| index);
        let index = continued.or_else(oldest)?;
        let stream = &mut self.streams[index];
        if continued.is_none() {
            *stream = Stream::default();
        }
        stream.next = request.lba + u64::from(request.sectors);
        stream.requests = (stream.requests + 1).min(self.after);
        stream.used = self.reads;
        if stream.requests < self.after {
            return None;
        }
        let at = (stream.next / u64::from(self.sectors_per_unit)) as u32;
        stream.reached = stream.reached.max(at);
        if u64::from(stream.reached - at) * 2 > u64::from(self.size) {
            return None;
        }
        stream.until = at.saturating_add(self.size).min(self.units);
        (stream.reached < stream.until).then_some(index as u32)
    }

    /// Returns the next unit to read ahead of a stream, if there is one. After the last one, returns those that
    /// `shares` a flash page with the unit before.
    pub(super) fn next(&mut self, stream: u32, shares: impl FnOnce(Lpn) -> bool) -> Option<Lpn> {
        let stream = &mut self.streams[stream as usize];
        let next = Lpn(stream.reached);
        let is_due = stream.reached < stream.until || (stream.reached < self.units && shares(next));
        is_due.then(|| {
            stream.reached += 1;
            next
        })
    }

    /// Leaves the units of a stream from the last one of [`ReadAhead::next`] on to a later request.
    pub(super) fn stop(&mut self, stream: u32) {
        let stream = &mut self.streams[stream as usize];
        stream.reached -= 1;
        stream.until = stream.reached;
    }
}
