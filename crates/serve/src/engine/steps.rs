//! Steps of an SSD: moves it from one instant with completions to the next, and takes what it has decided.

use floatgate_core::results::Breakdown;
use floatgate_core::sim::request::Completion;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Room, Ssd};

/// Steps of an SSD. The vectors are kept, so that a step does not allocate.
#[derive(Debug, Default)]
pub struct Steps {
    /// Time of the last change, at which everything that is certain now was decided.
    pub changed: Time,
    batch: Batch,
    room: Room,
    committed: Vec<(u64, Time)>,
}

/// Completions that an SSD has decided at one instant.
#[derive(Debug, Default)]
pub struct Batch {
    completions: Vec<Completion>,
    breakdowns: Vec<Breakdown>,
}

impl Batch {
    /// Returns the completions, each with its latency breakdown if the SSD records breakdowns.
    pub fn iter(&self) -> impl Iterator<Item = (&Completion, Option<&Breakdown>)> {
        self.completions.iter().enumerate().map(|(index, completion)| (completion, self.breakdowns.get(index)))
    }
}

impl Steps {
    /// Processes events up to and at `until`, or to the end of the first instant with a completion. Returns `false` if
    /// there was no event; the clock stays at the last one.
    pub fn next(&mut self, ssd: &mut (impl Ssd + ?Sized), until: Time) -> bool {
        let is_due = ssd.next_event().is_some_and(|at| at <= until);
        if is_due {
            ssd.run_to_completion(until);
            self.changed = ssd.now();
        }
        is_due
    }

    /// Takes the completions. Return the batch to [`Steps::reuse`].
    pub fn take(&mut self, ssd: &mut (impl Ssd + ?Sized)) -> Batch {
        let mut batch = std::mem::take(&mut self.batch);
        ssd.take_completions(&mut batch.completions);
        ssd.take_breakdowns(&mut batch.breakdowns);
        batch
    }

    /// Keeps the vectors of a batch for the next one.
    pub fn reuse(&mut self, mut batch: Batch) {
        batch.completions.clear();
        batch.breakdowns.clear();
        self.batch = batch;
    }

    /// Returns tag and completion time of the requests whose completion is certain but lies in the future. Return the
    /// vector to [`Steps::reuse_committed`].
    pub fn committed(&mut self, ssd: &(impl Ssd + ?Sized)) -> Vec<(u64, Time)> {
        let mut committed = std::mem::take(&mut self.committed);
        ssd.committed_completions(&mut self.room, &mut |tag, finish| committed.push((tag, finish)));
        committed
    }

    /// Keeps a vector for the next call of [`Steps::committed`].
    pub fn reuse_committed(&mut self, mut committed: Vec<(u64, Time)>) {
        committed.clear();
        self.committed = committed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::results::Sample;
    use floatgate_core::sim::request::{Operation, Request, Status};

    /// SSD that completes each request 10 us after it was submitted.
    #[derive(Default)]
    struct Fixed {
        now: Time,
        in_flight: Vec<Request>,
        completions: Vec<Completion>,
    }

    impl Fixed {
        const LATENCY: Time = Time::from_us(10);
    }

    impl Ssd for Fixed {
        fn now(&self) -> Time {
            self.now
        }

        fn submit(&mut self, now: Time, request: Request) {
            self.now = now;
            self.in_flight.push(request);
        }

        fn outstanding(&self) -> usize {
            self.in_flight.len()
        }

        fn has_room(&self) -> bool {
            true
        }

        fn next_event(&self) -> Option<Time> {
            self.in_flight.first().map(|request| request.arrival.later(Fixed::LATENCY))
        }

        fn advance(&mut self, until: Time) {
            while self.next_event().is_some_and(|at| at <= until) {
                self.run_to_completion(until);
            }
            self.now = self.now.max(until);
        }

        fn run_to_completion(&mut self, until: Time) -> Time {
            let Some(finish) = self.next_event().filter(|at| *at <= until) else { return until };
            self.now = finish;
            let request = self.in_flight.remove(0);
            self.completions.push(Completion { request, status: Status::Ok, start: request.arrival, finish });
            finish
        }

        fn has_completions(&self) -> bool {
            !self.completions.is_empty()
        }

        fn take_completions(&mut self, into: &mut Vec<Completion>) {
            into.append(&mut self.completions);
        }

        fn committed_completions(&self, _: &mut Room, found: &mut dyn FnMut(u64, Time)) {
            let of = |request: &Request| (request.tag, request.arrival.later(Fixed::LATENCY));
            self.in_flight.iter().map(of).for_each(|(tag, finish)| found(tag, finish));
        }

        fn sample(&self, at: Time, into: &mut Sample) {
            into.at = at;
        }
    }

    #[test]
    fn completions_are_taken_one_instant_at_a_time() {
        let mut ssd: Box<dyn Ssd> = Box::new(Fixed::default());
        let mut steps = Steps::default();
        for (tag, us) in [(0, 0), (1, 4)] {
            let at = Time::from_us(us);
            ssd.submit(at, Request { tag, ..Request::new(at, Operation::Read, 0, 8) });
        }
        let committed = steps.committed(&ssd);
        assert_eq!(committed, [(0, Time::from_us(10)), (1, Time::from_us(14))]);
        steps.reuse_committed(committed);
        let mut seen = Vec::new();
        while steps.next(&mut ssd, Time::from_us(20)) {
            let batch = steps.take(&mut ssd);
            seen.extend(batch.iter().map(|(completion, breakdown)| {
                assert!(breakdown.is_none());
                (completion.request.tag, completion.finish, steps.changed)
            }));
            steps.reuse(batch);
        }
        let [first, second] = [10, 14].map(Time::from_us);
        assert_eq!(seen, [(0, first, first), (1, second, second)]);
        // No event is left: the clock stays, and no completion is committed any more.
        assert_eq!((ssd.now(), ssd.outstanding(), steps.committed(&ssd).len()), (second, 0, 0));
    }
}
