//! The part of the device that a mapping scheme may use.

use crate::ftl::Ftl;
use crate::ftl::mover::copy::Copy;
use crate::sim::id::{BlockId, PlaneId, Ppn, TransactionId};
use crate::work::{Tasks, Transaction, Transactions};

/// The part of the device that a mapping scheme may use. None of it calls the scheme back.
pub trait Context {
    /// Returns the FTL, without the scheme.
    fn ftl(&mut self) -> &mut Ftl;

    /// Returns the operations in progress.
    fn ops(&mut self) -> &mut Transactions;

    /// Returns the tasks.
    fn tasks(&mut self) -> &mut Tasks;

    /// Queues a new operation for its plane.
    fn queue(&mut self, operation: Transaction);

    /// Queues an operation for its plane: a host write that a scheme has kept waiting, or one of the scheme's own.
    fn enqueue(&mut self, id: TransactionId);

    /// Notes that a host write waits for the scheme.
    fn note_waiting(&mut self, id: TransactionId);

    /// Notes that a host write has waited for the scheme until now.
    fn note_resumed(&mut self, id: TransactionId);

    /// Gives a host write its place. The data that it replaces are invalid from now on.
    fn bind(&mut self, id: TransactionId, ppn: Ppn);

    /// Has a host write that waits for an older one of its unit continue: `older` will not be programmed.
    fn take_over(&mut self, older: TransactionId, newer: TransactionId);

    /// Ends a host write that was trimmed before it was bound.
    fn drop_write(&mut self, id: TransactionId);

    /// Ends a copy: the map moves to it, unless its unit was overwritten or trimmed in the meantime.
    fn end_copy(&mut self, copy: &Copy);

    /// A program of a data block has ended: queues the summary of the block if that was its last program.
    fn program_ended(&mut self, ppn: Ppn);

    /// Returns `true` if garbage collection of a plane still moves units of a block.
    fn is_moving(&self, plane: PlaneId, block: BlockId) -> bool;

    /// Ends the dependency of an operation on a block. A block that holds no valid data and has no dependants is
    /// erased.
    fn release(&mut self, block: BlockId);

    /// Queues the erase of a block that has no dependants.
    fn erase(&mut self, block: BlockId);
}
