//! SSD interface: the methods by which programs drive a device in simulated time.
//!
//! Replay, servers and step-by-step simulators call an [`Ssd`], which a device and an array implement. Replay is
//! generic over it, and `Box<dyn Ssd>` implements it, too. At one instant, events of the SSD are processed first, then
//! completions, then submissions.

use crate::external::Fault;
use crate::metrics::attribution::Breakdown;
use crate::metrics::series::Sample;
use crate::nand::probe::{CoreWork, Slice};
use crate::sim::id::RequestId;
use crate::sim::request::{Completion, Request};
use crate::sim::time::Time;

/// SSD in simulated time.
///
/// The clock moves only when the SSD is advanced. Methods with a body are for optional features. Their defaults are
/// those of an SSD without the feature.
pub trait Ssd {
    /// Returns the current time. Everything up to this time has happened.
    fn now(&self) -> Time;

    /// Submits a request at `now`, which is not before the clock. Requests beyond the queue depth wait.
    fn submit(&mut self, now: Time, request: Request);

    /// Returns the number of requests that were submitted and have not completed.
    fn outstanding(&self) -> usize;

    /// Returns `true` if the queue has room, so that the next request would not wait.
    fn has_room(&self) -> bool;

    /// Returns the time at which the queue has room again. `None` if it has room, or if the time depends on a later
    /// event.
    fn next_room(&self) -> Option<Time> {
        None
    }

    /// Returns the time of the next event. `None` if nothing happens without another request.
    fn next_event(&self) -> Option<Time>;

    /// Processes all events up to and at `until`, and sets the clock to `until`.
    fn advance(&mut self, until: Time);

    /// Processes events up to and at `until`, or to the end of the first instant with a completion. Leaves the clock at
    /// the last event, so that stopping here changes nothing. Returns the time up to which everything has happened.
    fn run_to_completion(&mut self, until: Time) -> Time;

    /// Does the same as [`Ssd::run_to_completion`], but returns `None` after about `events` events without a
    /// completion, so that the caller can check for progress before it continues with the same `until`.
    fn run_some(&mut self, until: Time, _events: u32) -> Option<Time> {
        Some(self.run_to_completion(until))
    }

    /// Sets the clock to a time that [`Ssd::run_some`] has returned.
    fn set_clock(&mut self, now: Time) {
        self.advance(now);
    }

    /// Returns the number of flash operations that were performed, for checks of progress.
    fn flash_operations(&self) -> u64 {
        0
    }

    /// Returns a time that no single operation, transfer or delay of a request of `sectors` sectors exceeds.
    /// [`Time::NEVER`] if that is unknown.
    fn longest_step(&self, _sectors: u32) -> Time {
        Time::NEVER
    }

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

    /// Appends the completions since the last call, in the order in which they were determined.
    fn take_completions(&mut self, into: &mut Vec<Completion>);

    /// Returns the number of completions since the last call, and keeps them for [`Ssd::take_completions`], although
    /// [`Ssd::has_completions`] no longer includes them. So a closed loop takes many completions together. `None` if
    /// this is not supported, or if completions reach the host later than the clock.
    fn count_completions(&mut self) -> Option<usize> {
        None
    }

    /// Returns `true` if latencies are divided into their parts.
    fn attributes(&self) -> bool {
        false
    }

    /// Appends the latency breakdowns of the completions since the last call, in their order, if there are any.
    fn take_breakdowns(&mut self, _: &mut Vec<Breakdown>) {}

    /// Calls `found` with the tag and completion time of each request whose completion is certain, although it is later
    /// than the clock. A request is reported by each call until it completes. Changes no state.
    fn committed_completions(&self, _: &mut Room, _found: &mut dyn FnMut(u64, Time)) {}

    /// Writes the counters and times at `at` to a sample. Everything up to `at` has happened, and nothing later.
    fn sample(&self, at: Time, into: &mut Sample);

    /// Starts a measurement: times in samples count from the current time.
    fn reset_times(&mut self) {}

    /// Passes the operations that the probe has recorded to `take`, and clears them, except for those that can change
    /// after `now`.
    fn drain_probe(&mut self, _now: Time, _take: TakeProbed<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Prefetches the map entry of a request that will be submitted soon.
    fn prefetch(&self, _: &Request) {}

    /// Prefetches the state of the physical address of a request whose map entry was prefetched before.
    fn prefetch_place(&self, _: &Request) {}

    /// Returns the fault of an external policy. Results after a fault are invalid.
    fn fault(&self) -> Option<&Fault> {
        None
    }

    /// Describes why requests do not complete although no event is pending, for the report of a defect.
    fn explain_stall(&self) -> String {
        format!("{} requests are outstanding", self.outstanding())
    }
}

/// Callback for operations of the flash array and of the controller's cores.
pub type TakeProbed<'a> = &'a mut dyn FnMut(&[Slice], &[CoreWork]) -> Result<(), String>;

/// Scratch buffer for [`Ssd::committed_completions`]. Callers keep it, so that calls do not allocate.
#[derive(Debug, Default)]
pub struct Room(pub(crate) Vec<(RequestId, Time)>);

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

    fn run_some(&mut self, until: Time, events: u32) -> Option<Time> {
        (**self).run_some(until, events)
    }

    fn set_clock(&mut self, now: Time) {
        (**self).set_clock(now);
    }

    fn flash_operations(&self) -> u64 {
        (**self).flash_operations()
    }

    fn longest_step(&self, sectors: u32) -> Time {
        (**self).longest_step(sectors)
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

    fn count_completions(&mut self) -> Option<usize> {
        (**self).count_completions()
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
