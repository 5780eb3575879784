//! Observers: every phase of every operation, for those who want to look. Off, they cost one test per phase.

use super::array::{Kind, Operation};
use crate::sim::id::TransactionId;
use crate::sim::table::Table;
use crate::sim::time::Time;
use crate::work::Class;

/// Where a phase takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// On a channel, by its number.
    Channel(u32),
    /// In a plane, by its number.
    Plane(u32),
}

/// What a phase is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The controller turns to another chip or channel.
    Switch,
    /// Command and address cycles.
    Command,
    /// Data cycles.
    Data,
    /// The cells work.
    Cell,
    /// In line for the die and its channel, from when it asked for them until they were granted. One for each mapping
    /// unit that a host program command holds; lines are no resource, so these overlap. Only where asked for.
    Wait,
}

/// One phase of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Where.
    pub lane: Lane,
    /// What.
    pub phase: Phase,
    /// From when.
    pub start: Time,
    /// Until when.
    pub end: Time,
    /// Of which kind of operation.
    pub kind: Kind,
    /// What for.
    pub class: Class,
    /// The tag of the host request, or `u64::MAX`.
    pub tag: u64,
    /// The first physical page number of the operation.
    pub ppn: u32,
    /// The plane it works on.
    pub plane: u32,
    /// Of a wait: the logical page, or `u32::MAX` where there is none.
    pub lpn: u32,
}

impl Slice {
    /// A phase of `operation`.
    pub fn of(lane: Lane, phase: Phase, start: Time, end: Time, operation: &Operation) -> Slice {
        let Operation { kind, class, tag, ppn, plane, .. } = *operation;
        Slice { lane, phase, start, end, kind, class, tag, ppn, plane: plane.0, lpn: u32::MAX }
    }
}

/// What a core of the controller works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A request that has come is received.
    Receive,
    /// Units of a write meet the buffer, or are looked up and given places.
    Write,
    /// Units of a read are looked for in the buffer.
    Search,
    /// Units of a read are looked up in the map.
    LookUp,
    /// The units of a trim are looked up.
    Trim,
    /// Units from the buffer are given places.
    WriteOut,
    /// Cleaning chooses a block.
    Choose,
    /// A request is answered.
    Answer,
}

/// A piece of work of a core. Nothing interrupts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreWork {
    /// The number of the core.
    pub core: u32,
    /// What it does.
    pub task: Task,
    /// From when.
    pub start: Time,
    /// Until when.
    pub end: Time,
    /// How long that waited for a core.
    pub waited: Time,
    /// Mapping units that it is about; 0 where it is about the request as such.
    pub units: u32,
    /// The tag of the host request, or `u64::MAX`.
    pub tag: u64,
    /// The plane that is cleaned, or `u32::MAX`.
    pub plane: u32,
}

/// Keeps the phases of a span of time.
#[derive(Clone, Debug)]
pub struct Probe {
    from: Time,
    to: Time,
    slices: Vec<Slice>,
    works: Vec<CoreWork>,
    /// What is held back, see [`Probe::hold_back`].
    unsettled: Vec<Slice>,
    /// Where the phases of the operation begin that started last: its waits come before them.
    started: usize,
    /// By transaction, since when it is in line; `None` where nobody wants to know.
    in_line: Option<Table<TransactionId, Option<Time>>>,
}

impl Probe {
    /// Watches what starts from `from` on and before `to`.
    pub fn new(from: Time, to: Time) -> Probe {
        let (slices, works, unsettled) = Default::default();
        Probe { from, to, slices, works, unsettled, started: 0, in_line: None }
    }

    /// The same, with what was waited for: see [`Phase::Wait`]. A wait is kept when what was waited for is.
    pub fn with_waits(self) -> Probe {
        Probe { in_line: Some(Table::default()), ..self }
    }

    /// An operation starts.
    pub fn start(&mut self) {
        self.started = self.slices.len();
    }

    /// Notes a phase; empty ones are left out.
    pub fn record(&mut self, slice: Slice) {
        if slice.start < slice.end && slice.start >= self.from && slice.start < self.to {
            self.slices.push(slice);
        }
    }

    /// Notes a piece of work of a core.
    pub fn record_work(&mut self, work: CoreWork) {
        if work.start >= self.from && work.start < self.to {
            self.works.push(work);
        }
    }

    /// The cells that work in some planes rest from `now` on.
    pub fn cut(&mut self, planes: std::ops::Range<u32>, now: Time) {
        self.slices.retain_mut(|slice| {
            let works = slice.start <= now && slice.end > now && slice.phase == Phase::Cell;
            if works && planes.contains(&slice.plane) {
                slice.end = now;
            }
            // What is cut at its start has not been.
            slice.start < slice.end || slice.phase != Phase::Cell
        });
    }

    /// A transaction waits from now on.
    pub fn enqueued(&mut self, transaction: TransactionId, now: Time) {
        if let Some(in_line) = &mut self.in_line {
            *in_line.entry(transaction) = Some(now);
        }
    }

    /// What a transaction waited for is granted. An empty wait is kept: it tells whose operation this is.
    pub fn granted(&mut self, transaction: TransactionId, slice: Slice) {
        let Some(in_line) = &mut self.in_line else { return };
        // What was in line before the probe was there has no entry, and is taken not to have waited.
        let since = in_line.get_mut(transaction).and_then(Option::take).unwrap_or(Time::NEVER);
        if slice.end >= self.from && slice.end < self.to {
            self.slices.insert(self.started, Slice { start: since.min(slice.end), ..slice });
            self.started += 1;
        }
    }

    /// Whether waits are kept.
    pub fn keeps_waits(&self) -> bool {
        self.in_line.is_some()
    }

    /// What was seen, in the order in which it was booked.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// What cores did, in the order in which it was begun.
    pub fn works(&self) -> &[CoreWork] {
        &self.works
    }

    /// Holds back the work of cells that may still be suspended at `now`: it is among what was seen after the next
    /// [`Probe::clear`], and so handed over when it has ended.
    pub fn hold_back(&mut self, now: Time) {
        let may_be_cut = |slice: &Slice| slice.phase == Phase::Cell && slice.kind != Kind::Read && slice.end > now;
        self.unsettled.extend(self.slices.iter().filter(|slice| may_be_cut(slice)));
        self.slices.retain(|slice| !may_be_cut(slice));
    }

    /// Forgets what was seen so far, but for what was held back.
    pub fn clear(&mut self) {
        self.works.clear();
        self.slices.clear();
        self.slices.append(&mut self.unsettled);
        self.started = self.slices.len();
    }
}
