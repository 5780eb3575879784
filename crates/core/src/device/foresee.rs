//! What can no longer change though it lies ahead: for a server that has to send an answer before its time has come.

use super::Device;
use super::transaction::Kind;
use crate::scheduler::lines::NONE;
use crate::sim::id::UnitId;
use crate::sim::time::Time;

impl Device {
    /// Tells of requests whose completion is certain, by tag and finish: their last data are leaving flash, or their
    /// last program works and cannot be suspended. Each is told again until it has completed. Changes nothing.
    ///
    /// Nothing is told of writes of a durable device, nor where what comes behind the flash takes time, for that is
    /// told by completions that lie ahead, or can still change.
    pub fn foresee(&self, mut found: impl FnMut(u64, Time)) {
        if self.link.is_some() || self.answering_takes_time() {
            return;
        }
        for unit in (0..self.array.units()).map(UnitId) {
            let first = self.running[unit.index()];
            let Some(end) = self.array.settled_end(unit).filter(|_| first != NONE) else { continue };
            // A durable device answers a write when it has told that the program has ended; a program may fail then.
            let writes = !self.overlapping.any && !self.is_durable() && self.ftl.faults.is_none();
            let reads = self.ftl.faults.as_ref().is_none_or(|faults| faults.reads_are_sure());
            match self.transactions[first].kind {
                Kind::HostRead if reads => self.foresee_request(self.transactions[first].owner, 1, end, &mut found),
                Kind::Write if writes => self.foresee_writes(first, end, &mut found),
                _ => {}
            }
        }
    }

    fn foresee_request(&self, request: u32, ending: u32, end: Time, found: &mut impl FnMut(u64, Time)) {
        let pending = &self.requests[request];
        if pending.remaining == ending {
            found(pending.request.tag, end.max(pending.finish));
        }
    }

    /// The requests whose writes a program command ends.
    fn foresee_writes(&self, first: u32, end: Time, found: &mut impl FnMut(u64, Time)) {
        let next = |id: &u32| Some(self.transactions[*id].next).filter(|next| *next != NONE);
        let owners = || std::iter::successors(Some(first), next).map(|id| self.transactions[id].owner);
        for (index, owner) in owners().enumerate() {
            let is_first = !owners().take(index).any(|earlier| earlier == owner);
            if owner != NONE && is_first {
                let ending = owners().filter(|other| *other == owner).count() as u32;
                self.foresee_request(owner, ending, end, found);
            }
        }
    }
}
