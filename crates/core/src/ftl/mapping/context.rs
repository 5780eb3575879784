//! Interface of the device for mapping schemes.

use crate::ftl::Ftl;
use crate::ftl::mover::copy::Copy;
use crate::sim::id::{BlockId, PlaneId, Ppn, TransactionId};
use crate::work::{Tasks, Transaction, Transactions};

/// Cause of the waits in a queue of a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitCause {
    /// A merge, or a block that is not free yet.
    Merge,
    /// A program of earlier writes in a block of this plane.
    Program(PlaneId),
    /// The cause of the waits in another queue.
    AsIn(u32),
}

/// Wait of a host write for a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The write starts to wait.
    Begins(TransactionId),
    /// The write waits in this queue from now on.
    In(TransactionId, u32),
    /// The waits in this queue have this cause from now on.
    Cause(u32, WaitCause),
}

/// Interface of the device for mapping schemes. No function calls the scheme back.
pub trait Context {
    /// Returns the interface for an external scheme.
    fn as_dyn(&mut self) -> &mut dyn Context;

    /// Returns the FTL without the scheme, the outstanding operations, and the queue of tasks.
    fn parts(&mut self) -> (&mut Ftl, &mut Transactions, &mut Tasks);

    /// Returns the FTL, without the scheme.
    #[inline]
    fn ftl(&mut self) -> &mut Ftl {
        self.parts().0
    }

    /// Returns the outstanding operations.
    #[inline]
    fn ops(&mut self) -> &mut Transactions {
        self.parts().1
    }

    /// Returns the FTL and the outstanding operations, to read them together.
    #[inline]
    fn ftl_and_ops(&mut self) -> (&Ftl, &Transactions) {
        let (ftl, ops, _) = self.parts();
        (ftl, ops)
    }

    /// Returns the queue of tasks.
    #[inline]
    fn tasks(&mut self) -> &mut Tasks {
        self.parts().2
    }

    /// Queues a new operation for its plane.
    #[inline]
    fn queue(&mut self, operation: Transaction) {
        let id = self.ops().insert(operation);
        self.enqueue(id);
    }

    /// Queues an operation for its plane: a host write that the scheme has delayed, or an operation of the scheme.
    fn enqueue(&mut self, id: TransactionId);

    /// Returns `true` unless the device is in functional mode, in which operations end at once.
    fn has_time(&self) -> bool {
        true
    }

    /// Notes that a translation page has been programmed in functional mode.
    fn map_written(&mut self, _page: u32, _ppn: Ppn) {}

    /// Notes that a call of the scheme has ended.
    fn note_called(&mut self) {}

    /// Returns the number of mapping units of the host request that a write belongs to, or 1 if it has none.
    fn request_units(&self, id: TransactionId) -> u32;

    /// Returns `true` if the power may be cut, so that a recovery may need a free block.
    fn is_durable(&self) -> bool {
        false
    }

    /// Notes a wait of a host write for the scheme, for observers.
    fn note(&mut self, _wait: Wait) {}

    /// Notes that a host write waits for the scheme, until it is queued for its plane or bound.
    fn note_waiting(&mut self, id: TransactionId) {
        self.note(Wait::Begins(id));
    }

    /// Notes that a host write, which waits for the scheme, waits in this queue from now on. Queues are numbered by the
    /// scheme.
    fn note_queued(&mut self, id: TransactionId, queue: u32) {
        self.note(Wait::In(id, queue));
    }

    /// Sets the cause of the waits in a queue, from now on. At first, it is a merge.
    fn note_cause(&mut self, queue: u32, cause: WaitCause) {
        self.note(Wait::Cause(queue, cause));
    }

    /// Binds a host write to an address. The data that it replaces is invalid from now on.
    fn bind(&mut self, id: TransactionId, ppn: Ppn);

    /// Continues a host write that waits for `older`, an older write of its unit, which will not be programmed.
    fn take_over(&mut self, older: TransactionId, newer: TransactionId);

    /// Ends a host write that was trimmed before it was bound.
    fn drop_write(&mut self, id: TransactionId);

    /// Ends a host write that will not be programmed, because the device is read-only.
    fn refuse_write(&mut self, id: TransactionId);

    /// Ends a copy: maps its unit to it, unless the unit was overwritten or trimmed in the meantime.
    fn end_copy(&mut self, copy: &Copy);

    /// Ends a program of a data block. Queues the summary of the block if that was its last program.
    fn program_ended(&mut self, ppn: Ppn);

    /// Returns `true` if garbage collection of a plane still moves units of a block.
    fn is_moving(&self, plane: PlaneId, block: BlockId) -> bool;

    /// Ends the dependency of an operation on a block. A block that holds no valid data and has no dependents is
    /// erased.
    fn release(&mut self, block: BlockId);

    /// Queues the erase of a block that has no dependents.
    fn erase(&mut self, block: BlockId);
}
