//! Rebuilds: reads the other pages of a stripe if the read of a page is uncorrectable, and then ends that read.
//! `ftl/rebuild.rs` knows the stripe, and moves the units of the page. See docs/model/superblocks.md.

use super::Device;
use crate::ftl::mapping::Context;
use crate::sim::id::TransactionId;
use crate::work::{Kind, Task};

/// Rebuild of a page.
#[derive(Clone, Copy, Debug)]
struct Rebuild {
    /// Read of the page, which waits.
    read: TransactionId,
    /// Number of pages of the stripe that have not been read.
    left: usize,
    /// True if one of them is uncorrectable, too.
    failed: bool,
}

/// Pages that are being rebuilt. They are few.
#[derive(Clone, Debug, Default)]
pub(super) struct Rebuilds {
    active: Vec<Rebuild>,
}

impl Device {
    /// Ends the read of a page whose data have arrived and were decoded. Starts to rebuild an uncorrectable page.
    #[inline(never)]
    pub(super) fn end_page_read(&mut self, id: TransactionId) {
        if self.rebuilds.is_none() {
            return self.finish_read_or_other(id);
        }
        let read = self.transactions[id];
        let fails = self.ftl.draw_read(read.ppn, read.units.into());
        if read.kind == Kind::RebuildRead {
            self.transactions.remove(id);
            self.end_rebuild_read(read.rebuilt(), fails);
        } else if !fails || !self.start_rebuild(id) {
            self.end_drawn(id, fails);
        }
    }

    /// Ends the read of a page that has failed or not.
    fn end_drawn(&mut self, id: TransactionId, fails: bool) {
        self.ftl.set_drawn(fails);
        self.finish_read_or_other(id);
    }

    /// Reads the other pages of the stripe of a page. Returns `false` if they cannot rebuild it.
    fn start_rebuild(&mut self, id: TransactionId) -> bool {
        let Some(reads) = self.ftl.rebuild_reads(&self.transactions[id]) else { return false };
        let rebuild = Rebuild { read: id, left: reads.len(), failed: false };
        if rebuild.left == 0 {
            self.end_rebuild(rebuild);
            return true;
        }
        self.rebuilds.iter_mut().for_each(|rebuilds| rebuilds.active.push(rebuild));
        reads.into_iter().for_each(|read| self.queue(read.of_rebuilt(id)));
        true
    }

    /// Notes that a page of the stripe of `id` was read.
    fn end_rebuild_read(&mut self, id: TransactionId, fails: bool) {
        let Some(rebuilds) = &mut self.rebuilds else { return };
        let Some(index) = rebuilds.active.iter().position(|rebuild| rebuild.read == id) else { return };
        let rebuild = &mut rebuilds.active[index];
        (rebuild.left, rebuild.failed) = (rebuild.left - 1, rebuild.failed || fails);
        if rebuild.left == 0 {
            let rebuild = rebuilds.active.swap_remove(index);
            self.end_rebuild(rebuild);
        }
    }

    /// Ends a rebuild, and the read that has waited for it. The units of the page are moved.
    fn end_rebuild(&mut self, Rebuild { read: id, failed, .. }: Rebuild) {
        self.observe(move |observers, view| observers.rebuilt(view, id));
        let ppn = self.transactions[id].ppn;
        if !failed {
            self.ftl.note_rebuilt(ppn);
        }
        self.end_drawn(id, failed);
        self.tasks.push(Task::Clean(self.ftl.blocks.plane_of(self.ftl.blocks.block_of(ppn))));
    }
}
