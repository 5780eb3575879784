//! What can no longer change though it lies ahead: for a server that has to send an answer before its time has come.

use super::Device;
use crate::sim::id::{ExecUnitId, RequestId, TransactionId};
use crate::sim::time::Time;
use crate::work::Kind;

impl Device {
    /// Tells of requests whose completion is certain, by tag and finish: of all that is left of them the last data are
    /// leaving flash, or the programs work and cannot be suspended. Each is told again until it has completed. Changes
    /// nothing; `settled` is room to work in.
    ///
    /// Nothing is told of writes of a durable device, nor where what comes behind the flash takes time, for that is
    /// told by completions that lie ahead, or can still change.
    pub fn committed_completions(&self, settled: &mut Vec<(RequestId, Time)>, mut found: impl FnMut(u64, Time)) {
        settled.clear();
        if self.interface.has_link() || self.answering_takes_time() {
            return;
        }
        // A durable device answers a write when it has told that the program has ended; a program may fail then.
        let writes = !self.dispatch.overlaps() && !self.is_durable() && self.ftl.faults.is_none();
        let reads = self.ftl.faults.as_ref().is_none_or(|faults| faults.reads_are_sure());
        for unit in (0..self.array.units()).map(ExecUnitId) {
            let first = self.dispatch.at_work(unit);
            let Some(end) = self.array.settled_end(unit).filter(|_| first.is_some()) else { continue };
            match self.transactions[first].kind {
                Kind::HostRead if reads => settled.push((self.transactions[first].request(), end)),
                Kind::Write if writes => self.settle_writes(first, end, settled),
                _ => {}
            }
        }
        settled.sort_unstable();
        for parts in settled.chunk_by(|(one, _), (other, _)| one == other) {
            let [.., (request, end)] = *parts else { continue };
            let pending = &self.interface.requests[request];
            if pending.remaining as usize == parts.len() {
                found(pending.request.tag, end.max(pending.finish));
            }
        }
    }

    /// The parts of requests that a program command ends.
    fn settle_writes(&self, first: TransactionId, end: Time, settled: &mut Vec<(RequestId, Time)>) {
        let next = |id: &TransactionId| self.transactions[*id].next.get();
        let owners = std::iter::successors(Some(first), next).map(|id| self.transactions[id].request());
        settled.extend(owners.filter(|&owner| owner.is_some()).map(|owner| (owner, end)));
    }
}
