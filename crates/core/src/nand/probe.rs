//! The probe: records every phase of every operation. Without a probe, each phase costs one test.

use super::array::{Kind, Operation};
use crate::sim::id::TransactionId;
use crate::sim::table::Table;
use crate::sim::time::Time;
use crate::work::{Class, Purpose};

/// Lane of a phase: a channel or a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Channel with this number.
    Channel(u32),
    /// Plane with this number.
    Plane(u32),
}

/// Kind of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The controller switches to another chip or channel.
    Switch,
    /// Command and address cycles.
    Command,
    /// Data cycles.
    Data,
    /// The cells work.
    Cell,
    /// Wait for the die and its channel, from the request to the grant. A host program has one for each of its mapping
    /// units. Waits may overlap, because a queue is not a resource. Recorded only with [`Probe::with_waits`].
    Wait,
}

/// Phase of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Channel or plane of the phase.
    pub lane: Lane,
    /// Kind of the phase.
    pub phase: Phase,
    /// Time of its start.
    pub start: Time,
    /// Time of its end.
    pub end: Time,
    /// Kind of the operation.
    pub kind: Kind,
    /// Purpose of the operation.
    pub class: Class,
    /// Tag of the host request, or `u64::MAX`.
    pub tag: u64,
    /// First physical page number of the operation.
    pub ppn: u32,
    /// Plane of the operation.
    pub plane: u32,
    /// Logical page of a wait, or `u32::MAX` if there is none.
    pub lpn: u32,
    /// Reason for the operation.
    pub purpose: Purpose,
}

impl Slice {
    /// Creates a phase of `operation`.
    pub fn of(lane: Lane, phase: Phase, start: Time, end: Time, operation: &Operation) -> Slice {
        let Operation { kind, class, tag, ppn, plane, purpose, .. } = *operation;
        Slice { lane, phase, start, end, kind, class, tag, ppn, plane: plane.0, lpn: u32::MAX, purpose }
    }
}

/// Kind of a core's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Receives a request.
    Receive,
    /// Processes units of a write for the buffer, or looks them up and allocates space for them.
    Write,
    /// Searches the buffer for units of a read.
    Search,
    /// Looks up units of a read in the map.
    LookUp,
    /// Looks up the units of a trim.
    Trim,
    /// Allocates space for units from the buffer.
    WriteOut,
    /// Chooses a victim for garbage collection.
    Choose,
    /// Completes a request.
    Answer,
}

/// A piece of work of a core, which runs without interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreWork {
    /// Number of the core.
    pub core: u32,
    /// Kind of work.
    pub task: Task,
    /// Time of its start.
    pub start: Time,
    /// Time of its end.
    pub end: Time,
    /// Time for which the work waited for a core.
    pub waited: Time,
    /// Number of mapping units; 0 if the work is for the request as a whole.
    pub units: u32,
    /// Tag of the host request, or `u64::MAX`.
    pub tag: u64,
    /// Plane whose victim is chosen, or `u32::MAX`.
    pub plane: u32,
}

/// Recorder of the phases in a time window.
#[derive(Clone, Debug)]
pub struct Probe {
    from: Time,
    to: Time,
    slices: Vec<Slice>,
    works: Vec<CoreWork>,
    /// Phases that are held back, see [`Probe::hold_back`].
    unsettled: Vec<Slice>,
    /// Index of the first phase of the operation that started last. The waits for it are inserted there.
    started: usize,
    /// Time at which each transaction was queued. `None` if waits are not recorded.
    in_line: Option<Table<TransactionId, Option<Time>>>,
}

impl Probe {
    /// Creates a probe for phases that start at `from` or later and before `to`.
    pub fn new(from: Time, to: Time) -> Probe {
        let (slices, works, unsettled) = Default::default();
        Probe { from, to, slices, works, unsettled, started: 0, in_line: None }
    }

    /// Records waits too: see [`Phase::Wait`]. A wait is kept if its grant is in the time window.
    pub fn with_waits(self) -> Probe {
        Probe { in_line: Some(Table::default()), ..self }
    }

    /// Marks the start of an operation.
    pub fn start(&mut self) {
        self.started = self.slices.len();
    }

    /// Records a phase, unless it is empty or outside the time window.
    pub fn record(&mut self, slice: Slice) {
        if slice.start < slice.end && slice.start >= self.from && slice.start < self.to {
            self.slices.push(slice);
        }
    }

    /// Records a piece of work of a core, unless it is outside the time window.
    pub fn record_work(&mut self, work: CoreWork) {
        if work.start >= self.from && work.start < self.to {
            self.works.push(work);
        }
    }

    /// Ends the work of cells in some planes at `now`, because they are suspended.
    pub fn cut(&mut self, planes: std::ops::Range<u32>, now: Time) {
        self.slices.retain_mut(|slice| {
            let works = slice.start <= now && slice.end > now && slice.phase == Phase::Cell;
            if works && planes.contains(&slice.plane) {
                slice.end = now;
            }
            // Cells that are suspended when they start have not worked.
            slice.start < slice.end || slice.phase != Phase::Cell
        });
    }

    /// Records that a transaction waits from `now` on.
    pub fn enqueued(&mut self, transaction: TransactionId, now: Time) {
        if let Some(in_line) = &mut self.in_line {
            *in_line.entry(transaction) = Some(now);
        }
    }

    /// Records the wait of a transaction that is granted now. An empty wait is kept too, because it identifies the
    /// transaction.
    pub fn granted(&mut self, transaction: TransactionId, slice: Slice) {
        let Some(in_line) = &mut self.in_line else { return };
        // A transaction that was queued before the probe was set has no entry, and counts as not having waited.
        let since = in_line.get_mut(transaction).and_then(Option::take).unwrap_or(Time::NEVER);
        if slice.end >= self.from && slice.end < self.to {
            self.slices.insert(self.started, Slice { start: since.min(slice.end), ..slice });
            self.started += 1;
        }
    }

    /// Returns `true` if waits are recorded.
    pub fn keeps_waits(&self) -> bool {
        self.in_line.is_some()
    }

    /// Returns the phases in the order in which they were recorded.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// Returns the work of cores in the order of its start.
    pub fn works(&self) -> &[CoreWork] {
        &self.works
    }

    /// Holds back the work of cells that may still be suspended after `now`. The next [`Probe::clear`] returns these
    /// phases to the recorded ones.
    pub fn hold_back(&mut self, now: Time) {
        let may_be_cut = |slice: &Slice| slice.phase == Phase::Cell && slice.kind != Kind::Read && slice.end > now;
        self.unsettled.extend(self.slices.iter().filter(|slice| may_be_cut(slice)));
        self.slices.retain(|slice| !may_be_cut(slice));
    }

    /// Removes the recorded phases, except those that were held back.
    pub fn clear(&mut self) {
        self.works.clear();
        self.slices.clear();
        self.slices.append(&mut self.unsettled);
        self.started = self.slices.len();
    }
}
