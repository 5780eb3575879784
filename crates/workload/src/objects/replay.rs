//! An object trace as a source of requests.

use std::collections::VecDeque;
use std::hash::Hasher;

use xxhash_rust::xxh3::Xxh3;

use super::access::{Access, BLOCK, Effects, Kind, Placement, Step};
use super::formats::Reader;
use super::generate::Generator;
use crate::sim::request::{Request, SECTOR};
use crate::sim::source::{ObjectCounts, Pace, Source, SourceError};
use crate::sim::time::Time;
use crate::trace::{Replay, TimeScale};

/// Sectors of a block.
const SECTORS: u64 = BLOCK / SECTOR;

/// Options of the replay.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the stream.
    pub name: String,
    /// First sector of the capacity.
    pub start: u64,
    /// Maximum number of blocks of a request.
    pub largest: u64,
    /// True to write objects after a miss.
    pub admit: bool,
    /// Pace.
    pub replay: Replay,
    /// Factor on the times.
    pub time_scale: TimeScale,
    /// Number of accesses after which the trace ends.
    pub limit: u64,
}

/// Origin of the accesses.
pub enum Origin {
    /// A trace.
    Trace(Box<Reader>),
    /// A generator.
    Generated(Box<Generator>),
}

impl Origin {
    /// Returns the next access. Times never decrease, and start at 0.
    pub fn next(&mut self) -> Result<Option<Access>, SourceError> {
        match self {
            Origin::Trace(reader) => reader.next(),
            Origin::Generated(generator) => Ok(generator.next()),
        }
    }

    /// Returns the share of the accesses that have been returned.
    fn progress(&self) -> Option<f64> {
        match self {
            Origin::Trace(reader) => reader.progress(),
            Origin::Generated(generator) => Some(generator.progress()),
        }
    }

    /// Returns the number of accesses to other tiers.
    fn other_tiers(&self) -> u64 {
        match self {
            Origin::Trace(reader) => reader.other_tiers,
            Origin::Generated(_) => 0,
        }
    }

    /// Returns `true` if the accesses contain the sizes of objects.
    pub fn has_sizes(&self) -> bool {
        !matches!(self, Origin::Trace(reader) if !reader.format().has_sizes())
    }

    fn described(&self) -> String {
        match self {
            Origin::Trace(reader) => format!("object trace in format {}", reader.format().name()),
            Origin::Generated(_) => "generated accesses to a key-value cache".to_owned(),
        }
    }
}

/// An object trace that generates its requests on demand.
pub struct Objects {
    origin: Origin,
    placement: Box<dyn Placement + Send>,
    settings: Settings,
    effects: Effects,
    requests: VecDeque<Request>,
    accesses: u64,
    digest: Xxh3,
}

impl Objects {
    /// Creates the source.
    pub fn new(origin: Origin, placement: Box<dyn Placement + Send>, settings: Settings) -> Objects {
        let (effects, requests) = (Effects::default(), VecDeque::new());
        Objects { origin, placement, settings, effects, requests, accesses: 0, digest: Xxh3::new() }
    }

    /// Performs an access.
    fn access(&mut self, access: Access) -> Result<(), SourceError> {
        let Access { kind, key, size, .. } = access;
        let writes = match kind {
            Kind::Get => {
                let found = self.placement.get(key, &mut self.effects);
                let counts = &mut self.effects.counts;
                counts.gets += 1;
                counts.hits += u64::from(found.is_some());
                counts.get_bytes += found.unwrap_or(size);
                counts.hit_bytes += found.unwrap_or(0);
                found.is_none() && self.settings.admit
            }
            Kind::Set => true,
            Kind::Delete => {
                self.effects.counts.deletes += u64::from(self.placement.delete(key, &mut self.effects));
                false
            }
        };
        if writes && size > 0 {
            let placed = self.placement.set(key, size, &mut self.effects);
            let counts = &mut self.effects.counts;
            if placed {
                counts.sets += 1;
                counts.set_bytes += size;
            } else {
                counts.too_large += 1;
            }
        }
        let arrival = match self.settings.replay {
            Replay::Timed => {
                let scaled = self.settings.time_scale.apply(u128::from(access.at.ps()));
                let late = || SourceError(format!("{}: times exceed 213 days", self.settings.name));
                Time(scaled.ok_or_else(late)?)
            }
            Replay::Asap | Replay::Depth(_) => Time::ZERO,
        };
        let Settings { start, largest, .. } = self.settings;
        for Step { operation, start: first, blocks } in self.effects.steps.drain(..) {
            let mut done = 0;
            while done < blocks {
                let count = (blocks - done).min(largest);
                let lba = start + (first + done) * SECTORS;
                self.requests.push_back(Request::new(arrival, operation, lba, (count * SECTORS) as u32));
                done += count;
            }
        }
        Ok(())
    }
}

impl Source for Objects {
    fn next_request(&mut self) -> Result<Option<Request>, SourceError> {
        loop {
            if let Some(request) = self.requests.pop_front() {
                self.digest.write_u64(request.arrival.ps());
                self.digest.write_u64(request.lba);
                self.digest.write_u32(request.sectors);
                self.digest.write_u8(request.operation.index() as u8);
                return Ok(Some(request));
            }
            if self.accesses >= self.settings.limit {
                return Ok(None);
            }
            let Some(access) = self.origin.next()? else { return Ok(None) };
            self.accesses += 1;
            self.access(access)?;
        }
    }

    fn pace(&self) -> Pace {
        match self.settings.replay {
            Replay::Depth(depth) => Pace::Depth { depth, think: Time::ZERO },
            _ => Pace::Timed { depth: None },
        }
    }

    fn streams(&self) -> Vec<String> {
        vec![self.settings.name.clone()]
    }

    fn progress(&self) -> Option<f64> {
        self.origin.progress()
    }

    fn description(&self) -> String {
        format!("{}: {}", self.settings.name, self.origin.described())
    }

    fn digest(&self) -> Option<u64> {
        Some(self.digest.finish())
    }

    fn warnings(&self) -> Vec<String> {
        let too_large = self.effects.counts.too_large;
        let warning = format!(
            "{}: {too_large} writes of objects that are too large for the placement are left out; \
             docs/reference/objects.md gives its limits",
            self.settings.name
        );
        let truncated = match &self.origin {
            Origin::Trace(reader) => reader.warning(),
            Origin::Generated(_) => None,
        };
        truncated.into_iter().chain((too_large > 0).then_some(warning)).collect()
    }

    fn objects(&self) -> Option<ObjectCounts> {
        let (objects, bytes) = self.placement.stored();
        Some(ObjectCounts { objects, bytes, other_tiers: self.origin.other_tiers(), ..self.effects.counts })
    }
}
