//! Values that a mapping scheme in Python gets and returns, with the names that they have in Rust.

use floatgate_core::ftl::mapping as core;
use floatgate_core::ftl::mover::copy;
use floatgate_core::ftl::{self, space};
use floatgate_core::metrics::counters;
use floatgate_core::sim::id::{BlockId, Lpn, PlaneId, Ppn};
use floatgate_core::work;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Declares enums of Python with the variants of enums of the simulator.
macro_rules! mirrors {
    ($($(#[$doc:meta])* $name:ident = $of:ty { $($variant:ident),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[pyclass(eq, hash, frozen, from_py_object, module = "floatgate.policies")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[allow(missing_docs)] $variant),+
        }

        #[pymethods]
        impl $name {
            /// Returns the same object, which never changes.
            fn __deepcopy__(slf: Py<Self>, _memo: &pyo3::Bound<'_, PyAny>) -> Py<Self> {
                slf
            }
        }

        impl From<$of> for $name {
            fn from(of: $of) -> $name {
                match of {
                    $(<$of>::$variant => $name::$variant),+
                }
            }
        }

        impl From<$name> for $of {
            fn from(of: $name) -> $of {
                match of {
                    $($name::$variant => <$of>::$variant),+
                }
            }
        }
    )+};
}

mirrors! {
    /// Kind of an operation.
    Kind = work::Kind {
        HostRead, SlotRead, RmwRead, Write, GcRead, GcWrite, CopyBack, Erase, Summary, Translate, MapRead, MapWrite,
        MergeRead, MergeWrite, MapHold,
    }
    /// Reason for an operation of garbage collection, for observers.
    Purpose = work::Purpose { OfClass, Wear, Merge, SwitchMerge, PartialMerge, FullMerge, Fold }
    /// Contents of a block.
    Role = space::Role { Data, Map, Cache }
    /// State of a block in its life cycle.
    BlockState = space::BlockState { Free, Open, Closed, Victim, AwaitingErase, Logical, Failed, Bad, WornOut }
    /// Cause of a program.
    ProgramCause = counters::ProgramCause {
        Host, Gc, Wear, Summary, Padding, WasteCopyback, WasteAlignment, Map, Merge, Journal, Checkpoint, Fold,
    }
}

/// Lets schemes that hold such values be copied.
macro_rules! unchanging {
    ($($name:ident),+) => {$(
        #[pymethods]
        impl $name {
            /// Returns the same object, which never changes.
            fn __deepcopy__(slf: Py<Self>, _memo: &pyo3::Bound<'_, PyAny>) -> Py<Self> {
                slf
            }
        }
    )+};
}

unchanging!(LookUp, Change, Program, Ended, Step, Location, WaitCause, Place);

/// Reason for which a map entry is looked up.
#[pyclass(frozen, eq, skip_from_py_object, module = "floatgate.policies")]
#[derive(Clone, PartialEq)]
pub enum LookUp {
    /// A read needs it, unless the controller has the unit itself.
    Read {},
    /// A write needs it.
    Write {},
    /// The operation needs it, and has not found it: it waits.
    Await { id: u32 },
    /// An operation that has waited for it continues.
    Arrived {},
}

impl From<core::LookUp> for LookUp {
    fn from(of: core::LookUp) -> LookUp {
        match of {
            core::LookUp::Read => LookUp::Read {},
            core::LookUp::Write => LookUp::Write {},
            core::LookUp::Await(id) => LookUp::Await { id: id.0 },
            core::LookUp::Arrived => LookUp::Arrived {},
        }
    }
}

/// Change of the location of a unit.
#[pyclass(frozen, eq, skip_from_py_object, module = "floatgate.policies")]
#[derive(Clone, PartialEq)]
pub enum Change {
    /// A write has been programmed, or a trim has removed the unit from the map.
    Entry {},
    /// Garbage collection has moved the unit from this address.
    Moved { ppn: u32 },
    /// A trim has made the copy in flash invalid.
    Trimmed {},
}

impl From<core::Change> for Change {
    fn from(of: core::Change) -> Change {
        match of {
            core::Change::Entry => Change::Entry {},
            core::Change::Moved(ppn) => Change::Moved { ppn: ppn.0 },
            core::Change::Trimmed => Change::Trimmed {},
        }
    }
}

/// Program whose target is asked for.
#[pyclass(frozen, eq, skip_from_py_object, module = "floatgate.policies")]
#[derive(Clone, PartialEq)]
pub enum Program {
    /// A write of a unit.
    Write { lpn: u32 },
    /// Copies, by the number of their operation.
    Copies { number: u32 },
}

impl From<core::Program> for Program {
    fn from(of: core::Program) -> Program {
        match of {
            core::Program::Write(lpn) => Program::Write { lpn: lpn.0 },
            core::Program::Copies(number) => Program::Copies { number },
        }
    }
}

/// End of an operation on kept blocks.
#[pyclass(frozen, eq, skip_from_py_object, module = "floatgate.policies")]
#[derive(Clone, PartialEq)]
pub enum Ended {
    /// A read of units that are to be copied, with the number of the copies.
    CopyRead { number: u32 },
    /// A read of a translation page.
    MapRead { id: u32 },
    /// A program that held a host write of a unit, with the first address of the program.
    Writes { lpn: u32, ppn: u32 },
    /// A program of copies, with their number and the first address of the program.
    Copies { number: u32, ppn: u32 },
    /// A program of a translation page.
    MapWrite { id: u32 },
    /// A failed program of a translation page, whose block is retired.
    MapWriteFailed { id: u32 },
    /// A failed program of host writes, or of copies alone with their number.
    ProgramFailed { writes: Vec<u32>, number: Option<u32>, ppn: u32 },
    /// An erase of a block in this plane.
    Erase { plane: u32 },
    /// A failed erase of a block in this plane, which is bad now.
    EraseFailed { plane: u32 },
}

impl From<core::Ended<'_>> for Ended {
    fn from(of: core::Ended) -> Ended {
        match of {
            core::Ended::CopyRead(number) => Ended::CopyRead { number },
            core::Ended::MapRead(id) => Ended::MapRead { id: id.0 },
            core::Ended::Writes(lpn, ppn) => Ended::Writes { lpn: lpn.0, ppn: ppn.0 },
            core::Ended::Copies(number, ppn) => Ended::Copies { number, ppn: ppn.0 },
            core::Ended::MapWrite(id) => Ended::MapWrite { id: id.0 },
            core::Ended::MapWriteFailed(id) => Ended::MapWriteFailed { id: id.0 },
            core::Ended::ProgramFailed(writes, number, ppn) => {
                Ended::ProgramFailed { writes: writes.iter().map(|id| id.0).collect(), number, ppn: ppn.0 }
            }
            core::Ended::Erase(plane) => Ended::Erase { plane: plane.0 },
            core::Ended::EraseFailed(plane) => Ended::EraseFailed { plane: plane.0 },
        }
    }
}

/// Step of a scheme.
#[pyclass(frozen, eq, skip_from_py_object, module = "floatgate.policies")]
#[derive(Clone, PartialEq)]
pub enum Step {
    /// A task of the scheme.
    Call { number: u32, step: u8 },
    /// The operations that waited for the program of a translation page have been resumed.
    MapProgrammed { page: u32, ppn: u32 },
    /// Garbage collection of a plane has chosen its next step.
    Collected { plane: u32 },
    /// The device has become read-only: all updates and writes without an address end.
    ReadOnly {},
    /// Functional mode ends.
    Seal {},
}

impl From<core::Step> for Step {
    fn from(of: core::Step) -> Step {
        match of {
            core::Step::Call(call) => Step::Call { number: call.number, step: call.step },
            core::Step::MapProgrammed(page, ppn) => Step::MapProgrammed { page, ppn: ppn.0 },
            core::Step::Collected(plane) => Step::Collected { plane: plane.0 },
            core::Step::ReadOnly => Step::ReadOnly {},
            core::Step::Seal => Step::Seal {},
        }
    }
}

/// Location of a logical unit.
#[pyclass(frozen, eq, skip_from_py_object, module = "floatgate.policies")]
#[derive(Clone, PartialEq)]
pub enum Location {
    /// Unmapped: the unit was never written, or was trimmed.
    Unmapped {},
    /// Flash, at this address.
    Flash { ppn: u32 },
    /// Write slot of the controller: the write has not ended.
    Slot { id: u32 },
}

impl From<core::Location> for Location {
    fn from(of: core::Location) -> Location {
        match of {
            core::Location::Unmapped => Location::Unmapped {},
            core::Location::Flash(ppn) => Location::Flash { ppn: ppn.0 },
            core::Location::Slot(id) => Location::Slot { id: id.0 },
        }
    }
}

/// Cause of the waits in a queue of a scheme.
#[pyclass(frozen, eq, from_py_object, module = "floatgate.policies")]
#[derive(Clone, PartialEq)]
pub enum WaitCause {
    /// A merge, or a block that is not free yet.
    Merge {},
    /// A program of earlier writes in a block of this plane.
    Program { plane: u32 },
    /// The cause of the waits in another queue.
    AsIn { queue: u32 },
}

impl From<WaitCause> for core::WaitCause {
    fn from(of: WaitCause) -> core::WaitCause {
        match of {
            WaitCause::Merge {} => core::WaitCause::Merge,
            WaitCause::Program { plane } => core::WaitCause::Program(PlaneId(plane)),
            WaitCause::AsIn { queue } => core::WaitCause::AsIn(queue),
        }
    }
}

/// Address of a program that is not bound yet.
#[pyclass(frozen, eq, from_py_object, module = "floatgate.policies")]
#[derive(Clone, PartialEq)]
pub enum Place {
    /// The next address of the plane's frontier.
    Frontier {},
    /// This address, in a kept block.
    At { ppn: u32 },
    /// An address in a kept block that is not known yet.
    Unknown {},
}

impl From<Place> for core::Place {
    fn from(of: Place) -> core::Place {
        match of {
            Place::Frontier {} => core::Place::Frontier,
            Place::At { ppn } => core::Place::At(Ppn(ppn)),
            Place::Unknown {} => core::Place::Unknown,
        }
    }
}

/// Declares values: classes of Python with read-only fields, which may have defaults.
macro_rules! values {
    ($($(#[$doc:meta])* $name:ident($($field:ident: $type:ty $(= $default:expr)?),+);)+) => {$(
        $(#[$doc])*
        #[pyclass(frozen, eq, get_all, from_py_object, module = "floatgate.policies")]
        #[derive(Clone, PartialEq)]
        pub struct $name {
            $(#[allow(missing_docs)] pub $field: $type),+
        }

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = ($($field $(= $default)?),+))]
            fn new($($field: $type),+) -> $name {
                $name { $($field),+ }
            }

            /// Returns the same object, which never changes.
            fn __deepcopy__(slf: Py<Self>, _memo: &pyo3::Bound<'_, PyAny>) -> Py<Self> {
                slf
            }
        }
    )+};
}

values! {
    /// Target of a program that is not bound yet.
    Target(plane: Option<u32>, place: Place);
    /// Program that a scheme has bound to its address.
    Bound(class_: u8, plane: u32, ppn: u32);
    /// Kept block of data.
    KeptBlock(block: u32, units: u32, is_filled: bool, kind: u8 = 0);
    /// Figures of a mapping scheme, as of now.
    SchemeReport(
        unwritten: u64 = 0, listed_trims: u64 = 0, dropped: u64 = 0, replacing: u32 = 0,
        merging: [u32; 3] = [0; 3], loading: u32 = 0, outstanding: String = String::new()
    );
    /// Block with data that a recovery has found.
    FoundBlock(block: u32, end: u32);
    /// Merge that a recovery performs.
    FoundMerge(units: Vec<Option<u32>>, planes: Vec<u32>);
    /// A unit that is copied.
    Copy(lpn: u32, from_: u32, to: Option<u32> = None);
    /// Deferred call of a mapping scheme to itself.
    Call(number: u32, step: u8 = 0);
    /// Units that garbage collection of a plane still has to program, and blocks that it will free.
    InHand(units: u32, read: u32, waste: u32, awaiting_erase: u32, coming: u32);
}

impl From<Target> for core::Target {
    fn from(of: Target) -> core::Target {
        core::Target { plane: of.plane.map(PlaneId), place: of.place.into() }
    }
}

impl Bound {
    /// Returns the program for the simulator.
    pub fn checked(&self, ftl: &ftl::Ftl) -> PyResult<core::Bound> {
        let Bound { class_, plane, ppn } = *self;
        let class = work::Class::ALL.get(usize::from(class_)).copied();
        let class = class.ok_or_else(|| PyValueError::new_err(format!("bind returned class {class_}, of 9")))?;
        let units = ftl.blocks.all().len() as u32 * ftl.blocks.units_per_block();
        if ppn >= units || ftl.blocks.plane_of(ftl.blocks.block_of(Ppn(ppn))).0 != plane {
            return Err(PyValueError::new_err(format!("bind returned unit {ppn}, which is not in plane {plane}")));
        }
        Ok(core::Bound { class, plane: PlaneId(plane), ppn: Ppn(ppn) })
    }
}

impl From<&KeptBlock> for core::KeptBlock {
    fn from(of: &KeptBlock) -> core::KeptBlock {
        core::KeptBlock { block: BlockId(of.block), units: of.units, is_filled: of.is_filled, kind: of.kind }
    }
}

impl From<SchemeReport> for core::SchemeReport {
    fn from(of: SchemeReport) -> core::SchemeReport {
        core::SchemeReport {
            unwritten: of.unwritten,
            listed_trims: of.listed_trims,
            dropped: of.dropped,
            replacing: of.replacing,
            merging: of.merging,
            loading: of.loading,
            outstanding: of.outstanding,
        }
    }
}

impl From<core::FoundBlock> for FoundBlock {
    fn from(of: core::FoundBlock) -> FoundBlock {
        FoundBlock { block: of.block.0, end: of.end }
    }
}

impl From<FoundMerge> for core::FoundMerge {
    fn from(of: FoundMerge) -> core::FoundMerge {
        core::FoundMerge {
            units: of.units.into_iter().map(|lpn| lpn.map(Lpn)).collect(),
            planes: of.planes.into_iter().map(PlaneId).collect(),
        }
    }
}

impl From<&copy::Copy> for Copy {
    fn from(of: &copy::Copy) -> Copy {
        Copy { lpn: of.lpn, from_: of.from.0, to: of.to.get().map(|to| to.0) }
    }
}

impl From<Copy> for copy::Copy {
    fn from(of: Copy) -> copy::Copy {
        copy::Copy { lpn: of.lpn, from: Ppn(of.from_), to: of.to.map_or(Ppn::NONE, Ppn) }
    }
}

impl From<space::InHand> for InHand {
    fn from(of: space::InHand) -> InHand {
        let space::InHand { units, read, waste, awaiting_erase, coming } = of;
        InHand { units, read, waste, awaiting_erase, coming }
    }
}

/// State of a block.
#[pyclass(frozen, get_all, skip_from_py_object, module = "floatgate.policies")]
#[derive(Clone)]
pub struct Block {
    valid: u16,
    dependents: u16,
    erases: u32,
    written: u32,
    state: BlockState,
    role: Role,
    failed: bool,
}

impl From<&space::Block> for Block {
    fn from(of: &space::Block) -> Block {
        let &space::Block { valid, dependents, erases, written, state, role, failed, .. } = of;
        Block { valid, dependents, erases, written, state: state.into(), role: role.into(), failed }
    }
}

/// Parameters of the device that a scheme often needs.
#[pyclass(frozen, get_all, skip_from_py_object, module = "floatgate.policies")]
#[derive(Clone)]
pub struct Shape {
    planes: u32,
    soft: u32,
    hard: u32,
    sectors_per_unit: u32,
    units_per_page: u32,
    pages_per_unit: u32,
    units_per_program: u32,
    pages_per_program: u32,
    units_per_stripe: u32,
    summary: bool,
    leaves_out_pages: bool,
    map_pages: u32,
}

impl From<&ftl::Shape> for Shape {
    fn from(of: &ftl::Shape) -> Shape {
        Shape {
            planes: of.planes,
            soft: of.soft,
            hard: of.hard,
            sectors_per_unit: of.sectors_per_unit,
            units_per_page: of.units_per_page.divisor(),
            pages_per_unit: of.pages_per_unit,
            units_per_program: of.units_per_program,
            pages_per_program: of.pages_per_program,
            units_per_stripe: of.units_per_stripe.divisor(),
            summary: of.summary,
            leaves_out_pages: of.leaves_out_pages,
            map_pages: of.map_pages,
        }
    }
}
