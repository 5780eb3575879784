//! The interface between dispatch and the rest of the device.

use super::Dispatch;
use crate::config::cells::CellMode;
use crate::ftl::allocation::PlaneSet;
use crate::nand::array::{self, Array, Operation, Spot};
use crate::sim::id::{LunId, PlaneId, Ppn, TransactionId};
use crate::sim::time::Time;
use crate::work::{Tasks, Transactions};

/// Address within a plane: the block, and the page within the block. Planes that share a command must agree in the
/// page, and with `nand.advanced.strict` in the block too.
pub(crate) type Address = (u32, u32);

/// Address of a transaction if it was bound now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The page at this address, or the block that is erased.
    At(Address),
    /// The first page of a block that is not open yet, and the number of this block within the plane if it is known.
    Opens(Option<u32>),
    /// An operation that cannot share a command.
    Alone,
}

/// Parts of the device that dispatch uses.
pub(crate) struct Parts<'a> {
    pub(crate) dispatch: &'a mut Dispatch,
    pub(crate) transactions: &'a mut Transactions,
    pub(crate) array: &'a mut Array,
    pub(crate) tasks: &'a mut Tasks,
    pub(crate) now: Time,
}

/// Shared references to the parts that dispatch uses.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) dispatch: &'a Dispatch,
    pub(crate) transactions: &'a Transactions,
    pub(crate) array: &'a Array,
    pub(crate) now: Time,
}

/// The FTL and the observers, as dispatch sees them.
///
/// Binding removes the writes that fill a program from the queues. It may also queue operations of garbage collection
/// at once, which may join the command that is being built. A binder therefore owns dispatch and the parts that
/// dispatch uses, and lends them. Binding pushes a task for anything else.
pub(crate) trait Binder {
    /// Returns the parts that dispatch uses, read-only.
    fn view(&self) -> View<'_>;

    /// Returns the parts that dispatch uses.
    fn parts(&mut self) -> Parts<'_>;

    /// Binds a transaction that was removed from its queue, and drafts its operation `at` a spot of the array. Returns
    /// `false` if it cannot start or needs no operation.
    fn bind(&mut self, id: TransactionId, rank: u8, at: Spot) -> bool;

    /// Returns `true` if `plane` has room for a transaction that waits for it. `NONE` means a write of the pool.
    fn takes(&self, plane: PlaneId, id: TransactionId) -> bool;

    /// Returns the address of a transaction that waits for `plane` if it was bound now.
    fn target(&self, plane: PlaneId, id: TransactionId) -> Target;

    /// Returns the cell mode of the block of a waiting transaction. `NONE` means a write of the pool.
    fn cells(&self, id: TransactionId) -> CellMode;

    /// Returns the cell mode of an operation of `kind` at a physical address. An erase is the same in all modes.
    fn cells_at(&self, ppn: Ppn, kind: array::Kind) -> CellMode;

    /// Returns the address of an operation of `kind` at a physical address. For an erase, `ppn` is the number of a
    /// block.
    fn address_of(&self, ppn: Ppn, kind: array::Kind) -> Address;

    /// Returns the address of the next page to be moved by copy-back in a plane, if there is one.
    fn source_of(&self, plane: PlaneId) -> Option<Address>;

    /// Returns the address of the next host write of a temperature class in a plane, if its block is open.
    fn next_write(&self, plane: PlaneId, class: u8) -> Option<Address>;

    /// Returns the number, within the plane, of the block that is opened next for host writes of a class, if it is
    /// known.
    fn next_opened(&self, plane: PlaneId, class: u8) -> Option<u32>;

    /// Skips the pages before `page` in the open block for host writes of a class.
    fn skip_to(&mut self, plane: PlaneId, class: u8, page: u32);

    /// Returns the set of planes that take writes of pools, by position in the order of the allocation.
    fn ready(&self) -> &PlaneSet;

    /// Chooses a plane for the oldest write of a pool, among [`Dispatch::candidates`].
    fn choose(&mut self, pool: u32) -> Option<PlaneId>;

    /// Records that a plane has taken a write of its pool, other than by [`Binder::choose`].
    fn took(&mut self, plane: PlaneId);

    /// Returns the erases of the next free block of a plane if dynamic allocation considers them, and 0 otherwise.
    fn erases_that_count(&self, plane: PlaneId) -> u32;

    /// Returns the tag and the stream of the request that waits for a transaction, if there is one.
    fn request_of(&self, id: TransactionId) -> Option<(u64, u16)>;

    /// Reports to observers that a transaction has been queued for a LUN.
    fn show_queued(&mut self, id: TransactionId, lun: LunId);

    /// Reports to observers that `first` and the transactions that share its command have started.
    fn show_started(&mut self, first: TransactionId, operation: &Operation);
}
