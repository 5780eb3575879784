//! Rebuilds: reads the other pages of a stripe if the read of a page is uncorrectable, and then ends that read.
//! `ftl/rebuild.rs` knows the stripe, and moves the units of the page. See docs/model/superblocks.md.

use super::Device;
use crate::ftl::mapping::Context;
use crate::sim::id::TransactionId;
use crate::work::{Kind, Task};

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
            let ended = self.rebuilds.as_mut().and_then(|rebuilds| rebuilds.end_read(read.rebuilt(), fails));
            ended.into_iter().for_each(|failed| self.end_rebuild(read.rebuilt(), failed));
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
        if reads.is_empty() {
            self.end_rebuild(id, false);
            return true;
        }
        self.rebuilds.iter_mut().for_each(|rebuilds| rebuilds.start(id, reads.len()));
        reads.into_iter().for_each(|read| self.queue(read.of_rebuilt(id)));
        true
    }

    /// Ends a rebuild, and the read that has waited for it. The units of the page are moved.
    fn end_rebuild(&mut self, id: TransactionId, failed: bool) {
        self.observe(move |observers, view| observers.rebuilt(view, id));
        let ppn = self.transactions[id].ppn;
        if !failed {
            self.ftl.note_rebuilt(ppn);
        }
        self.end_drawn(id, failed);
        self.tasks.push(Task::Clean(self.ftl.blocks.plane_of(self.ftl.blocks.block_of(ppn))));
    }
}
