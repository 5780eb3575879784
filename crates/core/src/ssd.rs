//! SSDs in simulated time: the interface between a device and what drives it.
//!
//! Replay, servers and step-by-step simulators call an [`Ssd`]; [`Device`] is one. Replay is generic over it, and
//! `Box<dyn Ssd>` is one, too. At one instant events of the SSD come first, then completions, then what is submitted.

use crate::device::Device;
use crate::external::Fault;
use crate::metrics::attribution::Breakdown;
use crate::metrics::series::Sample;
use crate::nand::probe::{CoreWork, Slice};
use crate::sim::id::RequestId;
use crate::sim::request::{Completion, Request};
use crate::sim::time::Time;

/// SSD in simulated time.
///
/// Its clock moves only when it is advanced. Methods with a body are for what an SSD may have beyond requests and
/// completions: without them it has none of it.
pub trait Ssd {
    /// Returns the clock: everything up to here has happened.
    fn now(&self) -> Time;

    /// Takes a request at `now`, which is not before the clock. Requests beyond the queue depth wait.
    fn submit(&mut self, now: Time, request: Request);

    /// Returns the number of requests that were submitted and have not completed.
    fn outstanding(&self) -> usize;

    /// Returns `true` if the next request would not wait for room in the queue.
    fn has_room(&self) -> bool;

    /// Returns when the queue has room again. `None` if it has room, or if that depends on a later event.
    fn next_room(&self) -> Option<Time> {
        None
    }

    /// Returns the time of the next event. `None` if nothing happens without another request.
    fn next_event(&self) -> Option<Time>;

    /// Processes all events up to and at `until`, and sets the clock to `until`.
    fn advance(&mut self, until: Time);

    /// Processes events up to and at `until`, or to the end of the first instant with a completion. Leaves the clock at
    /// the last event, so that a pause changes nothing. Returns the time up to which everything has happened.
    fn run_to_completion(&mut self, until: Time) -> Time;

    /// Calls [`Ssd::run_to_completion`], and sets the clock to the time that it returns, if that is not
    /// [`Time::NEVER`].
    fn advance_to_completion(&mut self, until: Time) {
        let until = self.run_to_completion(until);
        if until < Time::NEVER {
            self.advance(until);
        }
    }

    /// Returns `true` if there are completions to take.
    fn has_completions(&self) -> bool;

    /// Appends the completions since the last call, in the order in which they were decided.
    fn take_completions(&mut self, into: &mut Vec<Completion>);

    /// Returns `true` if latencies are divided into their parts.
    fn attributes(&self) -> bool {
        false
    }

    /// Appends the latency breakdowns of the completions since the last call, in their order, if there are any.
    fn take_breakdowns(&mut self, _: &mut Vec<Breakdown>) {}

    /// Calls `found` with tag and time of each request whose completion is certain, although it is later than the
    /// clock. A request is found at each call until it completes. Changes nothing.
    fn committed_completions(&self, _: &mut Room, _found: &mut dyn FnMut(u64, Time)) {}

    /// Writes the counters and times at `at` into a sample. Everything up to `at` has happened, and nothing later.
    fn sample(&self, at: Time, into: &mut Sample);

    /// Starts a measurement: times in samples count from now on.
    fn reset_times(&mut self) {}

    /// Hands the operations that were seen by a probe to `take`, and forgets them; but for those that may change after
    /// `now`.
    fn drain_probe(&mut self, _now: Time, _take: TakeProbed<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Prefetches the mapping of a request of the near future.
    fn prefetch(&self, _: &Request) {}

    /// Prefetches the state of the physical address of a request whose mapping was prefetched before.
    fn prefetch_place(&self, _: &Request) {}

    /// Returns the fault of a policy of another program. What happened since then is not valid.
    fn fault(&self) -> Option<&Fault> {
        None
    }

    /// Describes why requests do not complete although there is no event. Only for a report of a defect.
    fn explain_stall(&self) -> String {
        format!("{} requests are outstanding", self.outstanding())
    }
}

/// Function that takes operations of the flash array and of the controller's cores.
pub type TakeProbed<'a> = &'a mut dyn FnMut(&[Slice], &[CoreWork]) -> Result<(), String>;

/// Room for [`Ssd::committed_completions`] to work in. Callers keep it, so that nothing is allocated for a call.
#[derive(Debug, Default)]
pub struct Room(Vec<(RequestId, Time)>);

impl Ssd for Device {
    #[inline]
    fn now(&self) -> Time {
        self.now()
    }

    #[inline]
    fn submit(&mut self, now: Time, request: Request) {
        self.submit(now, request);
    }

    #[inline]
    fn outstanding(&self) -> usize {
        self.outstanding()
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.has_room()
    }

    #[inline]
    fn next_room(&self) -> Option<Time> {
        self.next_room()
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        self.next_event_time()
    }

    #[inline]
    fn advance(&mut self, until: Time) {
        self.advance_to(until);
    }

    #[inline]
    fn run_to_completion(&mut self, until: Time) -> Time {
        self.run_to_completion(until)
    }

    #[inline]
    fn advance_to_completion(&mut self, until: Time) {
        self.advance_to_completion(until);
    }

    #[inline]
    fn has_completions(&self) -> bool {
        self.has_completions()
    }

    #[inline]
    fn take_completions(&mut self, into: &mut Vec<Completion>) {
        self.take_completions(into);
    }

    #[inline]
    fn attributes(&self) -> bool {
        self.attributes()
    }

    #[inline]
    fn take_breakdowns(&mut self, into: &mut Vec<Breakdown>) {
        self.take_breakdowns(into);
    }

    #[inline]
    fn committed_completions(&self, room: &mut Room, found: &mut dyn FnMut(u64, Time)) {
        self.committed_completions(&mut room.0, found);
    }

    #[inline]
    fn sample(&self, at: Time, into: &mut Sample) {
        self.sample(at, into);
    }

    fn reset_times(&mut self) {
        self.array_mut().reset_times();
    }

    fn drain_probe(&mut self, now: Time, take: TakeProbed<'_>) -> Result<(), String> {
        let suspend = &self.config().nand.advanced.suspend;
        let may_change = suspend.program || suspend.erase;
        let Some(probe) = self.array_mut().probe_mut() else { return Ok(()) };
        if may_change {
            probe.hold_back(now);
        }
        take(probe.slices(), probe.works())?;
        probe.clear();
        Ok(())
    }

    #[inline]
    fn prefetch(&self, request: &Request) {
        self.prefetch(request);
    }

    #[inline]
    fn prefetch_place(&self, request: &Request) {
        self.prefetch_place(request);
    }

    #[inline]
    fn fault(&self) -> Option<&Fault> {
        self.fault()
    }

    fn explain_stall(&self) -> String {
        self.explain_stall()
    }
}

impl<S: Ssd + ?Sized> Ssd for Box<S> {
    fn now(&self) -> Time {
        (**self).now()
    }

    fn submit(&mut self, now: Time, request: Request) {
        (**self).submit(now, request);
    }

    fn outstanding(&self) -> usize {
        (**self).outstanding()
    }

    fn has_room(&self) -> bool {
        (**self).has_room()
    }

    fn next_room(&self) -> Option<Time> {
        (**self).next_room()
    }

    fn next_event(&self) -> Option<Time> {
        (**self).next_event()
    }

    fn advance(&mut self, until: Time) {
        (**self).advance(until);
    }

    fn run_to_completion(&mut self, until: Time) -> Time {
        (**self).run_to_completion(until)
    }

    fn advance_to_completion(&mut self, until: Time) {
        (**self).advance_to_completion(until);
    }

    fn has_completions(&self) -> bool {
        (**self).has_completions()
    }

    fn take_completions(&mut self, into: &mut Vec<Completion>) {
        (**self).take_completions(into);
    }

    fn attributes(&self) -> bool {
        (**self).attributes()
    }

    fn take_breakdowns(&mut self, into: &mut Vec<Breakdown>) {
        (**self).take_breakdowns(into);
    }

    fn committed_completions(&self, room: &mut Room, found: &mut dyn FnMut(u64, Time)) {
        (**self).committed_completions(room, found);
    }

    fn sample(&self, at: Time, into: &mut Sample) {
        (**self).sample(at, into);
    }

    fn reset_times(&mut self) {
        (**self).reset_times();
    }

    fn drain_probe(&mut self, now: Time, take: TakeProbed<'_>) -> Result<(), String> {
        (**self).drain_probe(now, take)
    }

    fn prefetch(&self, request: &Request) {
        (**self).prefetch(request);
    }

    fn prefetch_place(&self, request: &Request) {
        (**self).prefetch_place(request);
    }

    fn fault(&self) -> Option<&Fault> {
        (**self).fault()
    }

    fn explain_stall(&self) -> String {
        (**self).explain_stall()
    }
}
