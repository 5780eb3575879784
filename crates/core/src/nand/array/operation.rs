//! What a unit does, and where that is put together.

use crate::sim::id::{ExecUnitId, PlaneId};
use crate::sim::time::Time;
use crate::work::{self, Class};

/// What the array does for one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Cell to register, register to controller.
    Read,
    /// Controller to register, register to cell.
    Program,
    /// Erase of a block.
    Erase,
    /// Cell to register, and from there to another page of the plane.
    CopyBack,
}

impl Kind {
    /// How many kinds there are.
    pub const COUNT: usize = 4;
    /// All kinds.
    pub const ALL: [Kind; Kind::COUNT] = [Kind::Read, Kind::Program, Kind::Erase, Kind::CopyBack];

    /// The name that results have for it.
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
            Of::HostRead | Of::SlotRead | Of::RmwRead | Of::GcRead | Of::Translate | Of::MapRead | Of::MergeRead => {
                Kind::Read
            }
            Of::Write | Of::GcWrite | Of::Summary | Of::MapWrite | Of::MapHold | Of::MergeWrite => Kind::Program,
            Of::CopyBack => Kind::CopyBack,
            Of::Erase => Kind::Erase,
        }
    }
}

/// What one unit does for a command, with the times of its phases.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// What it does.
    pub kind: Kind,
    /// What it is for.
    pub class: Class,
    /// Rank of its data transfer where that waits for the channel by itself.
    pub rank: u8,
    /// The plane it works on, or the one whose data move.
    pub plane: PlaneId,
    /// Planes that work together and have still to be served, this one included ([`super::Array::set_member`]).
    pub members: u32,
    /// Pages still to go, this one included; above 1 where a mapping unit spans pages.
    pub pages: u32,
    /// Time on the channel for command and address cycles, of each plane.
    pub command: Time,
    /// Time on the channel for the data of a page, of each plane.
    pub data: Time,
    /// Time in the cells; of a copy-back, that of the read.
    pub cell: Time,
    /// Of a copy-back, the time in the cells of the program.
    pub program: Time,
    /// The host request it is for, or `u64::MAX`; for observers.
    pub tag: u64,
    /// The physical page; for observers.
    pub ppn: u32,
}

/// None: nothing to do, for nobody.
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
        }
    }
}

/// Where an operation is put together: where it stays, since what has just been written in parts is slow to be copied
/// as a whole.
#[derive(Clone, Copy, Debug)]
pub enum Spot {
    /// At a unit, which does nothing and starts it.
    Unit(ExecUnitId),
    /// Beside the operation that a unit is at.
    Ahead(ExecUnitId),
    /// Of a plane that works together with those of another operation.
    Member,
}

/// A plane that works together with others of its unit on one operation.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// The plane.
    pub plane: PlaneId,
    /// Time on the channel for its data.
    pub data: Time,
    /// The host request it is for, or `u64::MAX`; for observers.
    pub tag: u64,
    /// The physical page; for observers.
    pub ppn: u32,
}
