//! Operations of execution units, and the spots where they are built.

use crate::nand::busy_time::OperationTimes;
use crate::sim::id::{ExecUnitId, PlaneId};
use crate::sim::time::Time;
use crate::work::{self, Class, Purpose, Transaction};

/// Kind of an operation of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Cell to register, then register to controller.
    Read,
    /// Controller to register, then register to cell.
    Program,
    /// Erase of a block.
    Erase,
    /// Cell to register, then to another page of the plane.
    CopyBack,
}

impl Kind {
    /// Number of kinds.
    pub const COUNT: usize = 4;
    /// All kinds.
    pub const ALL: [Kind; Kind::COUNT] = [Kind::Read, Kind::Program, Kind::Erase, Kind::CopyBack];

    /// Returns the name of the kind in results.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Program => "program",
            Kind::Erase => "erase",
            Kind::CopyBack => "copy-back",
        }
    }
}

impl From<work::Kind> for Kind {
    #[inline]
    fn from(kind: work::Kind) -> Kind {
        use work::Kind as Of;
        match kind {
            Of::HostRead | Of::SlotRead | Of::RmwRead | Of::GcRead | Of::Translate => Kind::Read,
            Of::MapRead | Of::MergeRead | Of::ReadAhead | Of::RebuildRead => Kind::Read,
            Of::Write | Of::GcWrite | Of::Summary | Of::MapWrite | Of::MapHold | Of::MergeWrite => Kind::Program,
            Of::CopyBack => Kind::CopyBack,
            Of::Erase => Kind::Erase,
        }
    }
}

/// Operation of one execution unit for a command, with the times of its phases.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Kind of operation.
    pub kind: Kind,
    /// Purpose of the operation.
    pub class: Class,
    /// Rank of the data transfer when it is queued for the channel separately.
    pub rank: u8,
    /// Plane of the operation, or the plane whose data move now.
    pub plane: PlaneId,
    /// Number of planes whose data have not moved yet, this one included ([`super::Array::set_member`]).
    pub members: u32,
    /// Number of pages left, this one included. More than 1 only if a mapping unit spans pages.
    pub pages: u32,
    /// Time of the command and address cycles of each plane on the channel.
    pub command: Time,
    /// Time of the data of a page of each plane on the channel.
    pub data: Time,
    /// Time in the cells. For a copy-back, that of the read.
    pub cell: Time,
    /// Time in the cells of the program of a copy-back.
    pub program: Time,
    /// Tag of the host request, or `u64::MAX`. For observers.
    pub tag: u64,
    /// Physical page, or block of an erase. For observers.
    pub ppn: u32,
    /// Reason for the operation. For observers.
    pub purpose: Purpose,
}

impl Operation {
    /// Returns the operation of a transaction, without its times. `tag` is that of its host request.
    #[inline(always)]
    pub fn of(transaction: &Transaction, rank: u8, tag: u64) -> Operation {
        let Transaction { class, plane, ppn, .. } = *transaction;
        Operation { class, rank, plane, members: 1, pages: 1, tag, ppn: ppn.0, ..Operation::default() }
    }
}

/// An empty operation.
impl Default for Operation {
    #[inline]
    fn default() -> Operation {
        Operation {
            kind: Kind::Read,
            class: Class::HostRead,
            rank: 0,
            plane: PlaneId(0),
            members: 0,
            pages: 0,
            command: Time::ZERO,
            data: Time::ZERO,
            cell: Time::ZERO,
            program: Time::ZERO,
            tag: u64::MAX,
            ppn: 0,
            purpose: Purpose::OfClass,
        }
    }
}

/// Spot where an operation is built. It stays there, because copying a structure that has just been written field by
/// field is slow.
#[derive(Clone, Copy, Debug)]
pub enum Spot {
    /// An idle execution unit, which will start the operation.
    Unit(ExecUnitId),
    /// An execution unit that works, for its second operation.
    Ahead(ExecUnitId),
    /// A plane that joins the multi-plane operation of another one.
    Member,
}

/// Plane of a multi-plane operation.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// The plane.
    pub plane: PlaneId,
    /// Time of its data on the channel.
    pub data: Time,
    /// Tag of the host request, or `u64::MAX`. For observers.
    pub tag: u64,
    /// Physical page, or block of an erase. For observers.
    pub ppn: u32,
}

/// Second operation of a unit: at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    Nothing,
    /// The next operation has started.
    Ahead,
    /// A suspended operation waits until the current one has ended.
    Suspended,
    /// The unit waits for its channel to transfer the data of the next program.
    Requests,
}

/// State of overlapping operations in a unit, according to [`Beside`].
#[derive(Clone, Debug, Default)]
pub(super) struct Overlap {
    /// Second operation of this unit: pipelined after the current one, or suspended by it.
    pub(super) other: Operation,
    /// Times of the second operation so far, with busy-time accounting.
    pub(super) other_turn: Option<OperationTimes>,
    /// Progress of the pipelined operation.
    pub(super) ahead: Option<Ahead>,
    pub(super) suspended: Option<Suspended>,
    /// Number of suspensions of the current operation, unless it was held back for no read.
    pub(super) suspensions: u32,
    /// Times of the current operation before it held the unit, or before it was suspended. With busy-time accounting.
    pub(super) head: Option<OperationTimes>,
}

/// An operation that has started while the previous one holds the unit.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    pub(super) start: Time,
    /// Time at which its command, and the data of a program, have been transferred.
    pub(super) moved: Time,
}

/// A suspended operation.
#[derive(Clone, Debug)]
pub(super) struct Suspended {
    /// Time that the cells still have to work.
    pub(super) left: Time,
    pub(super) since: Time,
}
