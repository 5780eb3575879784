//! The part of the device that dispatch uses.

use super::Dispatch;
use crate::config::cells::CellMode;
use crate::ftl::allocation::PlaneSet;
use crate::nand::array::{self, Array, Operation, Spot};
use crate::sim::id::{LunId, PlaneId, Ppn, TransactionId};
use crate::sim::time::Time;
use crate::work::{Tasks, Transactions};

/// Address within a plane: the block, and the page within the block. Planes that work together share the page, and with
/// `nand.advanced.strict` the block.
pub(crate) type Address = (u32, u32);

/// Where a transaction would go if it was bound now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The page at this address, or the block that is erased.
    At(Address),
    /// The first page of a block that is not open yet, with its number within the plane if that is known.
    Opens(Option<u32>),
    /// Nowhere together with others.
    Alone,
}

/// The parts of the device that dispatch works with.
pub(crate) struct Parts<'a> {
    pub(crate) dispatch: &'a mut Dispatch,
    pub(crate) transactions: &'a mut Transactions,
    pub(crate) array: &'a mut Array,
    pub(crate) tasks: &'a mut Tasks,
    pub(crate) now: Time,
}

/// Shared references to the parts that dispatch works on.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) dispatch: &'a Dispatch,
    pub(crate) transactions: &'a Transactions,
    pub(crate) array: &'a Array,
    pub(crate) now: Time,
}

/// The FTL and the observers, as dispatch sees them.
///
/// Binding takes the writes that fill a program out of the queues, and may queue operations of garbage collection at
/// once: those may join the command that is being put together. So a binder holds dispatch and the parts that it works
/// with, and hands them out. Whatever else binding sets off is a task.
pub(crate) trait Binder {
    /// Returns the parts that dispatch works with, to read.
    fn view(&self) -> View<'_>;

    /// Returns the parts that dispatch works with.
    fn parts(&mut self) -> Parts<'_>;

    /// Binds a transaction that has left its queue, and drafts its operation `at` a spot of the array. Returns `false`
    /// if it cannot start, or turned out to need no operation.
    fn bind(&mut self, id: TransactionId, rank: u8, at: Spot) -> bool;

    /// Returns `true` if `plane` has room for a transaction that waits for it. `NONE` is a write of the pool.
    fn takes(&self, plane: PlaneId, id: TransactionId) -> bool;

    /// Returns where a transaction that waits for `plane` would go now.
    fn target(&self, plane: PlaneId, id: TransactionId) -> Target;

    /// Returns the cell mode of the block that a waiting transaction works in. `NONE` is a write of the pool.
    fn cells(&self, id: TransactionId) -> CellMode;

    /// Returns the cell mode of the block at a physical address, where an operation of `kind` works. An erase is the
    /// same in all modes.
    fn cells_at(&self, ppn: Ppn, kind: array::Kind) -> CellMode;

    /// Returns the address of an operation of `kind` at a physical address. That of an erase is the number of a block.
    fn address_of(&self, ppn: Ppn, kind: array::Kind) -> Address;

    /// Returns the address of the page that is moved within a plane next, if there is one.
    fn source_of(&self, plane: PlaneId) -> Option<Address>;

    /// Returns where the next host write of a temperature class goes in a plane, if its block is open.
    fn next_write(&self, plane: PlaneId, class: u8) -> Option<Address>;

    /// Returns the number within the plane of the block that is opened next for host writes of a class, if it is known.
    fn next_opened(&self, plane: PlaneId, class: u8) -> Option<u32>;

    /// Leaves out the pages before `page` in the open block for host writes of a class.
    fn skip_to(&mut self, plane: PlaneId, class: u8, page: u32);

    /// Returns the planes that take writes of pools, by their position in the order of the allocation.
    fn ready(&self) -> &PlaneSet;

    /// Chooses a plane for the oldest write of a pool, among [`Dispatch::candidates`].
    fn choose(&mut self, pool: u32) -> Option<PlaneId>;

    /// Notes that a plane that was not chosen has taken a write of its pool.
    fn took(&mut self, plane: PlaneId);

    /// Returns the erases of the next free block of a plane if dynamic allocation goes by them, and 0 otherwise.
    fn erases_that_count(&self, plane: PlaneId) -> u32;

    /// Returns the tag and the stream of the request that waits for a transaction, if there is one.
    fn request_of(&self, id: TransactionId) -> Option<(u64, u16)>;

    /// Shows observers that a transaction has been queued for a LUN.
    fn show_queued(&mut self, id: TransactionId, lun: LunId);

    /// Shows observers that `first` and the transactions that share its command have started.
    fn show_started(&mut self, first: TransactionId, operation: &Operation);
}
