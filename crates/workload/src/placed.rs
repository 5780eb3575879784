//! A workload with an address offset and a start time, so that several workloads can run on one device.

use std::ops::Range;

use crate::quantity::readable;
use crate::sim::request::{Operation, Request, SECTOR};
use crate::sim::source::{ObjectCounts, Pace, Source, SourceError};
use crate::sim::time::Time;

/// Placement of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Number of sectors added to all addresses.
    pub offset: u64,
    /// Time added to all arrivals, to the end, and to the start of the measurement. In a closed loop, no request is
    /// issued before this time.
    pub start: Time,
    /// Name of the stream. If there are several streams, a prefix of their names, followed by a dot. `None` keeps the
    /// names.
    pub name: Option<String>,
    /// Text appended to errors of the source, if the source sees only a part of the device.
    pub space: Option<String>,
}

/// A source with a placement.
pub struct Placed {
    source: Box<dyn Source>,
    place: Place,
}

impl Placed {
    /// Places a source. The source must fit into the part of the device after the offset.
    pub fn new(source: Box<dyn Source>, place: Place) -> Placed {
        Placed { source, place }
    }

    /// Appends a description of the source's part of the device to an error.
    pub fn explain(space: Option<&str>, error: SourceError) -> SourceError {
        match space {
            Some(space) => SourceError(format!("{error} ({space})")),
            None => error,
        }
    }

    fn moved(&self, mut request: Request) -> Result<Request, SourceError> {
        // A flush has no address.
        if request.operation != Operation::Flush {
            request.lba += self.place.offset;
        }
        let arrival = request.arrival.ps().checked_add(self.place.start.ps());
        request.arrival = Time(arrival.ok_or_else(|| {
            SourceError(format!(
                "{}: a request, moved by the start of {} s, arrives after the 213 days that simulated time holds",
                self.streams().join(", "),
                self.place.start.as_s()
            ))
        })?);
        Ok(request)
    }
}

impl Source for Placed {
    #[inline]
    fn next_request(&mut self) -> Result<Option<Request>, SourceError> {
        let next = self.source.next_request();
        match next.map_err(|error| Placed::explain(self.place.space.as_deref(), error))? {
            Some(request) => self.moved(request).map(Some),
            None => Ok(None),
        }
    }

    fn pace(&self) -> Pace {
        self.source.pace()
    }

    fn stop_at(&self) -> Option<Time> {
        self.source.stop_at().map(|at| Time(at.ps().saturating_add(self.place.start.ps())))
    }

    fn measure_from(&self) -> Time {
        match self.source.measure_from() {
            // The whole run is measured, including the time before the start, in which other sources may run.
            Time::ZERO => Time::ZERO,
            from => Time(from.ps().saturating_add(self.place.start.ps())),
        }
    }

    fn waits_for(&self) -> Range<usize> {
        self.source.waits_for()
    }

    fn shift_positions(&mut self, others: usize) {
        self.source.shift_positions(others);
    }

    fn start_delay(&self) -> Time {
        self.source.start_delay()
    }

    fn issued(&mut self, request: &Request) -> Result<(), SourceError> {
        self.source.issued(request)
    }

    fn out_of_time(&self) -> bool {
        self.source.out_of_time()
    }

    fn streams(&self) -> Vec<String> {
        let streams = self.source.streams();
        match (&self.place.name, &streams[..]) {
            (None, _) => streams,
            (Some(name), [_]) => vec![name.clone()],
            (Some(name), _) => streams.iter().map(|stream| format!("{name}.{stream}")).collect(),
        }
    }

    fn progress(&self) -> Option<f64> {
        self.source.progress()
    }

    fn description(&self) -> String {
        let mut text = match &self.place.name {
            Some(name) => format!("{name}: {}", self.source.description()),
            None => self.source.description(),
        };
        if self.place.offset > 0 {
            text += &format!(", from {} on", readable(u128::from(self.place.offset) * u128::from(SECTOR)));
        }
        if self.place.start > Time::ZERO {
            text += &format!(", starting at {} s", self.place.start.as_s());
        }
        text
    }

    fn digest(&self) -> Option<u64> {
        self.source.digest()
    }

    fn objects(&self) -> Option<ObjectCounts> {
        self.source.objects()
    }

    fn warnings(&self) -> Vec<String> {
        self.source.warnings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn addresses_and_times_move_together() {
        let job = "rw=write bs=4k number_ios=3 rate_iops=1000 runtime=9 ramp_time=1 name=log";
        let job = synthetic::parse(job, 1 << 20, 1).unwrap().remove(0);
        let place = Place { offset: 2048, start: Time(5_000), name: Some("db".to_owned()), space: None };
        let mut placed = Placed::new(job.source, place);
        let requests: Vec<_> = std::iter::from_fn(|| placed.next_request().unwrap()).collect();
        let found: Vec<_> = requests.iter().map(|request| (request.arrival.ps(), request.lba)).collect();
        assert_eq!(found, [(5_000, 2048), (1_000_005_000, 2056), (2_000_005_000, 2064)]);
        assert_eq!(placed.streams(), ["db"]);
        assert_eq!(placed.measure_from(), Time(1_000_000_005_000));
        assert_eq!(placed.stop_at(), Some(Time(10_000_000_005_000)));
        assert!(placed.description().starts_with("db: log: ") && placed.description().contains("from 1 MiB on"));
    }

    #[test]
    fn beyond_the_end_of_time_is_an_error() {
        let job = synthetic::parse("rw=write bs=4k number_ios=3 rate_iops=1000", 1 << 20, 1).unwrap().remove(0);
        let mut placed = Placed::new(job.source, Place { start: Time(u64::MAX), ..Place::default() });
        assert!(placed.next_request().is_ok());
        let error = placed.next_request().unwrap_err().0;
        assert!(error.contains("job1") && error.contains("213 days"), "{error}");
    }
}
