//! Waits of operations: reports to a probe how long the transactions of an operation have waited.

use super::{Binder, Parts};
use crate::nand::array::{self, Operation};
use crate::nand::probe::{Lane, Phase, Slice};
use crate::sim::id::TransactionId;
use crate::work::{Kind, chain};

/// Reports to the probe the waits of the transactions whose operation starts now: the writes of a program, or a single
/// transaction.
#[inline(never)]
pub(super) fn report_waits(b: &mut impl Binder, first: TransactionId, operation: &Operation) {
    let Parts { dispatch, transactions, array, ftl, interface, now, .. } = b.parts();
    let together = dispatch.first_plane_of(array, &transactions[first]);
    let Some(probe) = array.probe_mut() else { return };
    for id in chain(transactions, first) {
        let transaction = transactions[id];
        // Each plane of a multi-plane operation has a transaction of its own.
        let plane = together.unwrap_or(transaction.plane.0);
        let mut slice = Slice { plane, ..Slice::of(Lane::Plane(plane), Phase::Wait, now, now, operation) };
        slice.lpn = match transaction.kind {
            Kind::Erase | Kind::Summary | Kind::SlotRead | Kind::MapRead | Kind::MapWrite | Kind::MergeWrite => {
                u32::MAX
            }
            _ => ftl.map.owner(transaction.ppn),
        };
        match transaction.kind {
            Kind::Write | Kind::HostRead => slice.tag = interface.tag_of(transaction.request()),
            Kind::RmwRead => slice.tag = interface.tag_of(transactions[transaction.write()].request()),
            _ => {}
        }
        if array::Kind::from(transaction.kind) == array::Kind::Read
            || matches!(transaction.kind, Kind::Write | Kind::Erase)
        {
            slice.ppn = transaction.ppn.0;
        }
        probe.granted(id, slice);
    }
}
