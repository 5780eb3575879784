//! Translation: parks operations of the host until the controller has their map entries.

use super::Device;
use crate::ftl::mapping::{Ended, LookUp, Step, call};
use crate::ftl::space::Role;
use crate::host::requests::Part;
use crate::metrics::attribution::Part as TimePart;
use crate::nand::array::Spot;
use crate::sim::id::{Ppn, RequestId, TransactionId};
use crate::work::{Fifo, Kind, Task, Transaction};

impl Device {
    /// Parks a part of a read until its map entry arrives.
    pub(super) fn wait_to_read(&mut self, request: RequestId, part: Part) {
        let wait = Transaction::waiting(Kind::Translate, request, part.lpn, [part.first, part.end, part.offset]);
        let wait = self.transactions.insert(wait);
        self.observe_read(wait, part, Ppn(0), TransactionId::NONE);
        call::look_up(self, part.lpn, LookUp::Await(wait));
    }

    /// Resumes operations whose map entries have arrived. Runs the tasks of each one before the next. `open` is a flash
    /// read that is not queued yet and may take more units, or `NONE`.
    pub(super) fn translate_rest(&mut self, mut arrived: Fifo, mut open: TransactionId) {
        while !arrived.is_empty() {
            let node = arrived.pop(&mut self.transactions);
            let lpn = self.transactions[node].lpn;
            call::look_up(self, lpn, LookUp::Arrived);
            open = self.translated(node, open);
            if self.tasks.any_new() {
                return self.tasks.push(Task::Translate(arrived, open));
            }
        }
        if open.is_some() {
            self.enqueue(open);
        }
    }

    /// Resumes an operation whose entry has arrived: continues a write, or reads a unit. Returns the flash read that is
    /// open afterwards.
    fn translated(&mut self, node: TransactionId, open: TransactionId) -> TransactionId {
        self.observe_spent(node, TimePart::MapFetch);
        if self.transactions[node].kind == Kind::Write {
            self.place_write(node);
            return open;
        }
        let wait = self.transactions.remove(node);
        let owner = wait.request();
        let (first, end, offset) = (u32::from(wait.first), u32::from(wait.end), wait.offset());
        let part = Part { lpn: wait.lpn, first, end, offset };
        let mut open = open;
        if open.is_some() && self.transactions[open].request() != owner {
            self.enqueue(open);
            open = TransactionId::NONE;
        }
        // Data that the buffer has accepted in the meantime are newer.
        self.observe_buffer_read(owner, part);
        self.read_unit(owner, part, open, node)
    }

    /// Continues a write whose map entry is known. A partial write first reads the data that it keeps.
    fn place_write(&mut self, id: TransactionId) {
        let write = self.transactions[id];
        if write.complete {
            self.observe_spent(id, TimePart::Order);
            return self.queue_write(id);
        }
        match write.source.get() {
            Some(ppn) => self.read_for(id, ppn),
            // The unit was trimmed in the meantime: there is nothing to keep.
            None => {
                self.observe_completed(id, TransactionId::NONE);
                self.contents_complete(id);
                self.queue_write(id);
            }
        }
    }

    /// Starts a read of a translation page, or of one flash page of it.
    pub(super) fn start_map_read(&mut self, id: TransactionId, at: Spot) -> bool {
        let read = self.transactions[id];
        self.ftl.note_map_read(&read);
        self.put(at, self.read(&read, u32::from(read.units), self.array.timing().page_out, u64::MAX));
        self.set_cell_times(at);
        true
    }

    /// Ends a program of a translation page.
    pub(super) fn finish_map_write(&mut self, id: TransactionId) {
        let ppn = self.transactions[id].ppn;
        let group = self.ftl.blocks.size(Role::Map).program_units;
        if self.ftl.program_fails(ppn, group) {
            self.program_failed(ppn, group, group);
            _ = call::ended(self, Ended::MapWriteFailed(id));
            return;
        }
        self.observe_programmed(ppn, group);
        call::ended(self, Ended::MapWrite(id));
    }

    /// Ends the program of a translation page, after the operations that waited for it have been resumed.
    pub(super) fn map_programmed(&mut self, page: u32, ppn: Ppn) {
        call::step(self, Step::MapProgrammed(page, ppn));
        self.program_ended(ppn, Role::Map);
        self.collect_map(self.ftl.blocks.plane_of(self.ftl.blocks.block_of(ppn)));
        // A victim that waited for this update may now wait only for the journal.
        self.journal_for_resting();
    }
}
