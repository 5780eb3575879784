//! Read-ahead: reads units into the buffer before a sequential stream of the host requests them. `cache/ahead.rs`
//! detects the streams.

use super::Device;
use crate::dispatch;
use crate::ftl::mapping::{Location, LookUp, call};
use crate::host::requests::Part;
use crate::sim::id::{Lpn, Ppn, RequestId, TransactionId};
use crate::sim::request::Status;
use crate::work::{Kind, Task, Transaction};

impl Device {
    /// Queues the reads ahead of a stream. Those of planes that are read together start together.
    pub(super) fn read_ahead(&mut self, stream: u32) {
        let holds = self.dispatch.merges() && self.tasks.hold_unless_held();
        self.read_ahead_rest(stream, TransactionId::NONE);
        self.dispatch.release_behind(&mut self.tasks, holds);
    }

    /// Queues the remaining reads ahead of a stream. Runs the tasks of each unit before the next one. `open` is a read
    /// that is not queued yet and may take more units, or `NONE`.
    pub(super) fn read_ahead_rest(&mut self, stream: u32, mut open: TransactionId) {
        while let Some(lpn) = self.next_ahead(stream, open) {
            if let Location::Flash(ppn) = self.ftl.map.get(lpn)
                && self.buffer().is_some_and(|buffer| buffer.entry_of(lpn).is_none())
            {
                // A unit whose map entry is in flash, or for which there is no room, is left to the host.
                let is_known = call::look_up(self, lpn, LookUp::Read);
                let entry = self.buffer.as_deref_mut().filter(|_| is_known).and_then(|buffer| buffer.reserve(lpn));
                let Some(entry) = entry else {
                    self.buffer.as_deref_mut().into_iter().for_each(|buffer| buffer.stop_ahead(stream));
                    break;
                };
                open = self.read_unit_ahead(lpn, ppn, entry, open);
            }
            if self.tasks.any_new() {
                return self.tasks.push(Task::ReadAhead(stream, open));
            }
        }
        if open.is_some() {
            dispatch::enqueue(self, open);
        }
        // Room for the units may need a write-back.
        self.admit();
    }

    /// Returns the next unit to read ahead of a stream, including those that share the flash page of `open`.
    fn next_ahead(&mut self, stream: u32, open: TransactionId) -> Option<Lpn> {
        let Device { buffer, transactions, ftl, .. } = self;
        let per_page = ftl.shape().units_per_page;
        buffer.as_deref_mut()?.next_ahead(stream, |lpn| {
            let page = |ppn: Ppn| per_page.divide(ppn.0);
            let Location::Flash(ppn) = ftl.map.get(lpn) else { return false };
            open.is_some() && page(ppn) == page(transactions[open].ppn)
        })
    }

    /// Reads a unit ahead into its entry. Returns the read that is open afterwards.
    fn read_unit_ahead(&mut self, lpn: Lpn, ppn: Ppn, entry: u32, open: TransactionId) -> TransactionId {
        let shape = *self.ftl.shape();
        let page = |ppn: Ppn| shape.units_per_page.divide(ppn.0);
        let joins = open.is_some() && page(self.transactions[open].ppn) == page(ppn);
        let read = if joins {
            self.transactions[open].units += 1;
            open
        } else {
            if open.is_some() {
                dispatch::enqueue(self, open);
            }
            let read = self.ftl.read_ahead(lpn, ppn);
            self.transactions.insert(read)
        };
        if let Some(buffer) = &mut self.buffer {
            buffer.note_read(read, ppn, &shape, !joins);
            buffer.begin_ahead(entry, read);
        }
        read
    }

    /// Has a part of a read wait for the read ahead that brings its unit. Returns `false` if there is none, or if the
    /// unit is elsewhere by now.
    pub(super) fn await_read_ahead(&mut self, id: RequestId, part: Part) -> bool {
        let read = self.buffer.as_deref().and_then(|buffer| buffer.ahead_of(part.lpn));
        let Some(read) = read else { return false };
        let per_page = self.ftl.shape().units_per_page;
        let Location::Flash(ppn) = self.ftl.map.get(part.lpn) else { return false };
        if per_page.divide(ppn.0) != per_page.divide(self.transactions[read].ppn.0) {
            return false;
        }
        let mut wait = Transaction::waiting(Kind::SlotRead, id, part.lpn, [part.first, part.end, part.offset]);
        wait.next = self.transactions[read].readers;
        let wait = self.transactions.insert(wait);
        self.transactions[read].readers = wait;
        self.observe(move |observers, view| observers.read_began(view, wait, part, ppn, TransactionId::NONE));
        if let Some(buffer) = &mut self.buffer {
            buffer.counts.ahead_used += 1;
        }
        true
    }

    /// Ends a read ahead: serves the reads of the host that wait for it, and keeps the rest in the buffer.
    pub(super) fn finish_read_ahead(&mut self, id: TransactionId) {
        let read = self.transactions[id];
        let fails = self.ftl.ahead_read_fails(&read);
        let mut next = read.readers;
        while next.is_some() {
            let (by, wait) = (next, self.transactions[next]);
            next = wait.next;
            if self.ftl.awaited_read_fails(&read, wait.lpn, fails) {
                self.interface.set_status(wait.request(), Status::Uncorrectable);
            }
            self.observe(move |observers, view| observers.awaited_read_ended(view, by));
            self.transactions.remove(by);
            if let Some(buffer) = &mut self.buffer {
                buffer.end_use(wait.lpn, u32::from(wait.end));
            }
            self.interface.serve(wait.request(), self.now);
            self.reply(wait.request(), u32::from(wait.end - wait.first), by);
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.end_ahead(id, &read, fails, &self.ftl, self.now);
        }
        self.transactions.remove(id);
        self.release(read.dependency);
        self.journal_for_resting();
        self.admit();
    }
}
