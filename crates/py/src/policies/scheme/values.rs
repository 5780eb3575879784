//! Values that a mapping scheme in Python gets and returns, with the names that they have in Rust.

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::sim::id::{BlockId, Lpn, PlaneId, Ppn};
use floatgate_core::{flash, mapping, policies, results};
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
    Kind = mapping::Kind {
        HostRead, SlotRead, RmwRead, Write, GcRead, GcWrite, CopyBack, Erase, Summary, Translate, MapRead, MapWrite,
        MergeRead, MergeWrite, MapHold, ReadAhead, RebuildRead,
    }
    /// Reason for an operation of garbage collection, for observers.
    Purpose = policies::Purpose { OfClass, Wear, Merge, SwitchMerge, PartialMerge, FullMerge, Fold, Rebuild, Refresh }
    /// Contents of a block.
    Role = flash::Role { Data, Map, Cache, Parity }
    /// State of a block in its life cycle.
    BlockState = flash::BlockState { Free, Open, Closed, Victim, AwaitingErase, Logical, Failed, Bad, WornOut }
    /// Cause of a program.
    ProgramCause = results::ProgramCause {
        Host, Gc, Wear, Summary, Padding, WasteCopyback, WasteAlignment, Map, Merge, Journal, Checkpoint, Fold,
        Parity, Rebuild, Refresh,
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

impl From<mapping::LookUp> for LookUp {
    fn from(of: mapping::LookUp) -> LookUp {
        match of {
            mapping::LookUp::Read => LookUp::Read {},
            mapping::LookUp::Write => LookUp::Write {},
            mapping::LookUp::Await(id) => LookUp::Await { id: id.0 },
            mapping::LookUp::Arrived => LookUp::Arrived {},
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

impl From<mapping::Change> for Change {
    fn from(of: mapping::Change) -> Change {
        match of {
            mapping::Change::Entry => Change::Entry {},
            mapping::Change::Moved(ppn) => Change::Moved { ppn: ppn.0 },
            mapping::Change::Trimmed => Change::Trimmed {},
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

impl From<mapping::Program> for Program {
    fn from(of: mapping::Program) -> Program {
        match of {
            mapping::Program::Write(lpn) => Program::Write { lpn: lpn.0 },
            mapping::Program::Copies(number) => Program::Copies { number },
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

impl From<mapping::Ended<'_>> for Ended {
    fn from(of: mapping::Ended) -> Ended {
        match of {
            mapping::Ended::CopyRead(number) => Ended::CopyRead { number },
            mapping::Ended::MapRead(id) => Ended::MapRead { id: id.0 },
            mapping::Ended::Writes(lpn, ppn) => Ended::Writes { lpn: lpn.0, ppn: ppn.0 },
            mapping::Ended::Copies(number, ppn) => Ended::Copies { number, ppn: ppn.0 },
            mapping::Ended::MapWrite(id) => Ended::MapWrite { id: id.0 },
            mapping::Ended::MapWriteFailed(id) => Ended::MapWriteFailed { id: id.0 },
            mapping::Ended::ProgramFailed(writes, number, ppn) => {
                Ended::ProgramFailed { writes: writes.iter().map(|id| id.0).collect(), number, ppn: ppn.0 }
            }
            mapping::Ended::Erase(plane) => Ended::Erase { plane: plane.0 },
            mapping::Ended::EraseFailed(plane) => Ended::EraseFailed { plane: plane.0 },
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

impl From<mapping::Step> for Step {
    fn from(of: mapping::Step) -> Step {
        match of {
            mapping::Step::Call(call) => Step::Call { number: call.number, step: call.step },
            mapping::Step::MapProgrammed(page, ppn) => Step::MapProgrammed { page, ppn: ppn.0 },
            mapping::Step::Collected(plane) => Step::Collected { plane: plane.0 },
            mapping::Step::ReadOnly => Step::ReadOnly {},
            mapping::Step::Seal => Step::Seal {},
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

impl From<mapping::Location> for Location {
    fn from(of: mapping::Location) -> Location {
        match of {
            mapping::Location::Unmapped => Location::Unmapped {},
            mapping::Location::Flash(ppn) => Location::Flash { ppn: ppn.0 },
            mapping::Location::Slot(id) => Location::Slot { id: id.0 },
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

impl From<WaitCause> for mapping::WaitCause {
    fn from(of: WaitCause) -> mapping::WaitCause {
        match of {
            WaitCause::Merge {} => mapping::WaitCause::Merge,
            WaitCause::Program { plane } => mapping::WaitCause::Program(PlaneId(plane)),
            WaitCause::AsIn { queue } => mapping::WaitCause::AsIn(queue),
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

impl From<Place> for mapping::Place {
    fn from(of: Place) -> mapping::Place {
        match of {
            Place::Frontier {} => mapping::Place::Frontier,
            Place::At { ppn } => mapping::Place::At(Ppn(ppn)),
            Place::Unknown {} => mapping::Place::Unknown,
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

impl From<Target> for mapping::Target {
    fn from(of: Target) -> mapping::Target {
        mapping::Target { plane: of.plane.map(PlaneId), place: of.place.into() }
    }
}

impl Bound {
    /// Returns the program for the simulator.
    pub fn checked(&self, ftl: &mapping::Ftl) -> PyResult<mapping::Bound> {
        let Bound { class_, plane, ppn } = *self;
        let class = policies::Class::ALL.get(usize::from(class_)).copied();
        let class = class.ok_or_else(|| PyValueError::new_err(format!("bind returned class {class_}, of 9")))?;
        let units = ftl.blocks.all().len() as u32 * ftl.blocks.units_per_block();
        if ppn >= units || ftl.blocks.plane_of(ftl.blocks.block_of(Ppn(ppn))).0 != plane {
            return Err(PyValueError::new_err(format!("bind returned unit {ppn}, which is not in plane {plane}")));
        }
        Ok(mapping::Bound { class, plane: PlaneId(plane), ppn: Ppn(ppn) })
    }
}

impl From<&KeptBlock> for mapping::KeptBlock {
    fn from(of: &KeptBlock) -> mapping::KeptBlock {
        mapping::KeptBlock { block: BlockId(of.block), units: of.units, is_filled: of.is_filled, kind: of.kind }
    }
}

impl From<SchemeReport> for mapping::SchemeReport {
    fn from(of: SchemeReport) -> mapping::SchemeReport {
        mapping::SchemeReport {
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

impl From<mapping::FoundBlock> for FoundBlock {
    fn from(of: mapping::FoundBlock) -> FoundBlock {
        FoundBlock { block: of.block.0, end: of.end }
    }
}

impl From<FoundMerge> for mapping::FoundMerge {
    fn from(of: FoundMerge) -> mapping::FoundMerge {
        mapping::FoundMerge {
            units: of.units.into_iter().map(|lpn| lpn.map(Lpn)).collect(),
            planes: of.planes.into_iter().map(PlaneId).collect(),
        }
    }
}

impl From<&mapping::UnitCopy> for Copy {
    fn from(of: &mapping::UnitCopy) -> Copy {
        Copy { lpn: of.lpn, from_: of.from.0, to: of.to.get().map(|to| to.0) }
    }
}

impl From<Copy> for mapping::UnitCopy {
    fn from(of: Copy) -> mapping::UnitCopy {
        mapping::UnitCopy { lpn: of.lpn, from: Ppn(of.from_), to: of.to.map_or(Ppn::NONE, Ppn) }
    }
}

impl From<mapping::InHand> for InHand {
    fn from(of: mapping::InHand) -> InHand {
        let mapping::InHand { units, read, waste, awaiting_erase, coming } = of;
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

impl From<&flash::Block> for Block {
    fn from(of: &flash::Block) -> Block {
        let &flash::Block { valid, dependents, erases, written, state, role, failed, .. } = of;
        Block { valid, dependents, erases, written, state: state.into(), role: role.into(), failed }
    }
}

/// Parameters of the device that policies often need.
#[pyclass(frozen, get_all, skip_from_py_object, module = "floatgate.policies")]
#[derive(Clone)]
pub struct Shape {
    planes: u32,
    data_units: u32,
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

impl Shape {
    /// Creates the object for a policy of a device.
    pub fn of_device(device: &DeviceConfig) -> Shape {
        Shape::new(&mapping::Shape::new(device), device.data_units_per_block())
    }

    /// Creates the object for a device whose blocks have `data_units` units of data.
    pub fn new(of: &mapping::Shape, data_units: u32) -> Shape {
        Shape {
            planes: of.planes,
            data_units,
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
