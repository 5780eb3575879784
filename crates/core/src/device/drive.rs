//! The device as an SSD that programs drive in simulated time.

use super::Device;
use crate::cache::Buffer;
use crate::cache::traffic::keeps_write;
use crate::external::Fault;
use crate::ftl::space::Role;
use crate::metrics::attribution::Breakdown;
use crate::metrics::series::Sample;
use crate::metrics::summary::FaultState;
use crate::sim::id::{ExecUnitId, PlaneId};
use crate::sim::request::{Completion, Request};
use crate::sim::time::Time;
use crate::ssd::{Room, Ssd, TakeProbed};
use crate::work::{Kind, Task, chain};

impl Ssd for Device {
    #[inline]
    fn now(&self) -> Time {
        self.now
    }

    #[inline]
    fn submit(&mut self, now: Time, request: Request) {
        debug_assert!(now >= self.now, "`now` is before the clock");
        self.now = self.now.max(now);
        self.dispatch.set_now(self.now);
        self.quiet.end();
        if self.durability.as_mut().is_some_and(|durability| std::mem::take(&mut durability.is_recovered)) {
            // The recovery has not collected garbage in planes with few free blocks.
            (0..self.ftl.shape().planes).for_each(|plane| self.tasks.push(Task::Clean(PlaneId(plane))));
            self.run_tasks();
        }
        if self.dispatch.remembers_host_reads() && self.is_idle() {
            self.dispatch.forget_host_reads();
        }
        if self.interface.enters_at_once() {
            self.enter(now, request);
            self.run_tasks();
        } else {
            self.interface.wait(request);
        }
        if self.interface.waiting() > 0 {
            self.admit_waiting();
        }
    }

    #[inline]
    fn outstanding(&self) -> usize {
        self.interface.outstanding()
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.interface.has_room()
    }

    #[inline]
    fn next_room(&self) -> Option<Time> {
        self.interface.next_return().filter(|_| !self.has_room())
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        self.array.next_event()
    }

    fn advance(&mut self, until: Time) {
        while let Some((at, resource)) = self.array.events().pop(until) {
            self.handle_any(at, resource);
        }
        self.now = self.now.max(until);
    }

    fn run_to_completion(&mut self, until: Time) -> Time {
        loop {
            if let Some(reached) = self.run_some(until, u32::MAX) {
                return reached;
            }
        }
    }

    #[inline]
    fn run_some(&mut self, until: Time, events: u32) -> Option<Time> {
        let mut until = until;
        for _ in 0..events {
            let Some((at, resource)) = self.array.events().pop(until) else { return Some(until) };
            self.handle(at, resource);
            if self.interface.has_completions() {
                until = at;
            }
        }
        self.end_instant()
    }

    #[inline]
    fn set_clock(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    fn flash_operations(&self) -> u64 {
        let counters = &self.ftl.counters;
        counters.pages_programmed_total() + counters.pages_read_total() + counters.copy_backs + counters.blocks_erased
    }

    fn longest_step(&self, sectors: u32) -> Time {
        self.config.longest_step(sectors)
    }

    fn advance_to_completion(&mut self, until: Time) {
        let until = self.run_to_completion(until);
        if until < Time::NEVER {
            self.now = self.now.max(until);
        }
    }

    #[inline]
    fn has_completions(&self) -> bool {
        self.interface.has_completions()
    }

    #[inline]
    fn take_completions(&mut self, into: &mut Vec<Completion>) {
        self.interface.take_completions(into);
    }

    #[inline]
    fn count_completions(&mut self) -> Option<usize> {
        self.interface.count_completions()
    }

    #[inline]
    fn attributes(&self) -> bool {
        self.options.attribution
    }

    fn take_breakdowns(&mut self, into: &mut Vec<Breakdown>) {
        if let Some(paths) = self.observers.as_mut().and_then(|observers| observers.paths.as_mut()) {
            paths.take_breakdowns(into);
        }
    }

    /// Finds requests that wait only for the last data of reads to leave flash, or for programs that cannot be
    /// suspended. Finds none if the host link or the completion's firmware work takes time after the flash operation:
    /// those completions are known early anyway, or can still change.
    fn committed_completions(&self, Room(settled): &mut Room, found: &mut dyn FnMut(u64, Time)) {
        settled.clear();
        if self.interface.has_link() || self.interface.answering_takes_time() {
            return;
        }
        // A durable device completes a write after it has reported the end of the program. With faults, a program may
        // fail.
        let writes = !self.dispatch.overlaps() && !self.is_durable() && self.ftl.faults.is_none();
        // With errors, reads end when their data are decoded.
        let reads = self.errors.is_none() && self.ftl.faults.as_ref().is_none_or(|faults| faults.reads_are_sure());
        for unit in (0..self.array.units()).map(ExecUnitId) {
            let first = self.dispatch.at_work(unit);
            let Some(end) = self.array.settled_end(unit).filter(|_| first.is_some()) else { continue };
            match self.transactions[first].kind {
                Kind::HostRead if reads => settled.push((self.transactions[first].request(), end)),
                Kind::Write if writes => {
                    let owners = chain(&self.transactions, first).map(|id| self.transactions[id].request());
                    settled.extend(owners.filter(|&owner| owner.is_some()).map(|owner| (owner, end)));
                }
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

    fn sample(&self, at: Time, into: &mut Sample) {
        let planes = self.config.total_planes();
        let free_blocks = |plane| self.ftl.blocks.free_blocks(PlaneId(plane), Role::Data);
        into.at = at;
        into.counters = self.ftl.counters;
        into.classes.clear();
        into.classes.extend(self.ftl.classes.iter().flat_map(|classes| classes.counts()));
        into.parallel.copy_from(&self.array.parallel);
        into.free_blocks_min = (0..planes).map(free_blocks).min().unwrap_or(0);
        into.free_blocks_sum = (0..planes).map(|plane| u64::from(free_blocks(plane))).sum();
        let has_logs = !self.config.log_kinds().is_empty();
        into.trim_list = if has_logs { self.ftl.scheme().report(&self.ftl).listed_trims } else { 0 };
        let bad = |faults: &FaultState| faults.bad.iter().map(|bad| u64::from(*bad)).sum();
        into.bad_blocks = self.ftl.fault_state().as_ref().map_or(0, bad);
        into.read_only = self.ftl.is_read_only();
        into.buffer = self.buffer().map_or_else(Default::default, |buffer| buffer.counts);
        into.buffer_units = self.buffer().map_or([0, 0], |buffer| buffer.occupancy());
        into.volatile_units = self.buffer().map_or((0, 0), |buffer| buffer.volatile_units());
        into.memory = self.buffer().map_or(Time::ZERO, |buffer| buffer.memory_time(at));
        into.cores = self.interface.core_times(at);
        self.array.time_until(at, &mut into.channels, &mut into.dies);
        self.array.busy_until(at, &mut into.luns);
        self.jobs.counts_until(at, &mut into.collections);
        self.dispatch.sample_queues(at, &mut into.queues);
        into.pools.clone_from(&self.ftl.pool_units);
    }

    fn reset_times(&mut self) {
        self.array.reset_times();
        self.dispatch.reset_queues();
    }

    fn drain_probe(&mut self, now: Time, take: TakeProbed<'_>) -> Result<(), String> {
        let suspend = &self.config.nand.advanced.suspend;
        let may_change = suspend.program || suspend.erase;
        let Some(probe) = self.array.probe_mut() else { return Ok(()) };
        if may_change {
            probe.hold_back(now);
        }
        take(probe.slices(), probe.works())?;
        probe.clear();
        Ok(())
    }

    #[inline]
    fn prefetch(&self, request: &Request) {
        let lpn = self.interface.first_unit(request);
        if let Some(buffer) = &self.buffer {
            buffer.prefetch(lpn);
        }
        if !keeps_write(self.buffer(), request) {
            self.ftl.map.prefetch(lpn);
        }
    }

    #[inline]
    fn prefetch_place(&self, request: &Request) {
        let lpn = self.interface.first_unit(request);
        if lpn.0 < self.ftl.map.len() && !keeps_write(self.buffer(), request) {
            self.ftl.prefetch(lpn);
        }
    }

    fn fault(&self) -> Option<&Fault> {
        self.ftl.fault().or_else(|| self.buffer.as_ref()?.fault()).or_else(|| self.dispatch.scheduler().fault())
    }

    fn explain_stall(&self) -> String {
        let stalled = (0..self.config.total_planes()).map(PlaneId).filter(|&plane| self.dispatch.has_parked(plane));
        let stalled: Vec<String> = stalled.map(|plane| self.jobs.describe(&self.ftl, plane)).collect();
        let holds = |block| self.durability.as_ref().is_some_and(|durability| durability.holds(block));
        format!(
            "{} requests in the device, {} at the host, {} waiting for write slots ({} free), writes waiting for a \
             free block in: {}; writes waiting for any plane: {}; units waiting for room in the buffer: {}; {}; {}; {}; {}",
            self.interface.in_progress(),
            self.interface.waiting(),
            self.interface.unadmitted.len(),
            self.slots_free,
            if stalled.is_empty() { "none".to_owned() } else { stalled.join(", ") },
            self.dispatch.has_pooled(),
            self.buffer().map_or(0, Buffer::waiting),
            self.ftl.blocks.describe_awaiting_erase(holds),
            self.ftl.scheme().report(&self.ftl).outstanding,
            self.durability.as_ref().map_or_else(|| "no journal".to_owned(), |durability| durability.describe()),
            if self.ftl.is_read_only() { "read-only" } else { "not read-only" },
        )
    }
}
