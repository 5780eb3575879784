//! Committed completions: completions in the future that can no longer change, for a server that must reply in time.

use super::Device;
use crate::sim::id::{ExecUnitId, RequestId, TransactionId};
use crate::sim::time::Time;
use crate::work::Kind;

impl Device {
    /// Passes the tag and finish of each request with a committed completion to `found`. Such a request waits only for
    /// the last data of reads to leave flash, or for programs that cannot be suspended.
    ///
    /// Each one is reported again until it has completed. The device does not change; `settled` is scratch space.
    /// Reports nothing if the host link or the completion's firmware work takes time after the flash operation. Those
    /// completions are known early anyway, or can still change. Writes of a durable device are not reported.
    pub fn committed_completions(&self, settled: &mut Vec<(RequestId, Time)>, mut found: impl FnMut(u64, Time)) {
        settled.clear();
        if self.interface.has_link() || self.answering_takes_time() {
            return;
        }
        // A durable device completes a write after it has reported the end of the program. With faults, a program may
        // fail.
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

    /// Adds the parts of requests that the program of `first` ends to `settled`.
    fn settle_writes(&self, first: TransactionId, end: Time, settled: &mut Vec<(RequestId, Time)>) {
        let next = |id: &TransactionId| self.transactions[*id].next.get();
        let owners = std::iter::successors(Some(first), next).map(|id| self.transactions[id].request());
        settled.extend(owners.filter(|&owner| owner.is_some()).map(|owner| (owner, end)));
    }
}
