//! The interface between dispatch and the rest of the device.

use super::Dispatch;
use crate::cache::Buffer;
use crate::ftl::Ftl;
use crate::ftl::gc::collector::Collector;
use crate::host::interface::HostInterface;
use crate::nand::array::{Array, Spot};
use crate::sim::id::{LunId, TransactionId};
use crate::sim::time::Time;
use crate::work::{Tasks, Transactions};

/// Parts of the device that dispatch uses.
pub(crate) struct Parts<'a> {
    pub(crate) dispatch: &'a mut Dispatch,
    pub(crate) transactions: &'a mut Transactions,
    pub(crate) array: &'a mut Array,
    pub(crate) tasks: &'a mut Tasks,
    pub(crate) ftl: &'a mut Ftl,
    pub(crate) interface: &'a HostInterface,
    pub(crate) now: Time,
}

/// Shared references to the parts that dispatch uses.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) dispatch: &'a Dispatch,
    pub(crate) transactions: &'a Transactions,
    pub(crate) array: &'a Array,
    pub(crate) ftl: &'a Ftl,
    pub(crate) jobs: &'a Collector,
    pub(crate) interface: &'a HostInterface,
    pub(crate) buffer: Option<&'a Buffer>,
    pub(crate) now: Time,
}

/// The device, as dispatch sees it.
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

    /// Reports to observers that a transaction has been queued for a LUN.
    fn show_queued(&mut self, id: TransactionId, lun: LunId);
}
