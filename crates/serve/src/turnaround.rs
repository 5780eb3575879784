//! Turnaround of a client: measures the host's overhead for one client while it is served.
//!
//! A client that waits for each reply sends its next request as soon as it has the reply. The turnaround starts when
//! the reply was due, or at the earliest possible time if that was later. It ends when the next request is read. In
//! between, the reply is received, and the client wakes up and sends its request. The turnaround therefore consists of
//! the full cost of the frontend and of the client's own work. The self-test ([`crate::calibrate`]) measures the same
//! for its own client. But the time to wake a thread differs by a fifth between threads, so the cost measured for the
//! actual client is deducted.
//!
//! A turnaround that is much longer than the client's usual one is late: the client received its reply late, did
//! something else first, or the server read the request late. The server's own lateness ([`crate::lateness`]) does not
//! include this.

use crate::clock::Wall;
use crate::lateness::{ClientTurns, Due, Requesting};

/// Number of turnarounds from which the median is taken.
const TURNS: usize = 32;

/// Largest turnaround, as a multiple of the self-test's cost, that is attributed to the frontend. A client that needs
/// longer does work of its own in between, of unknown length. A turnaround longer than this multiple of the usual one
/// is late.
const MAX_RATIO: f32 = 1.25;

/// Turnarounds of one client.
#[derive(Clone, Debug)]
pub struct Turnaround {
    /// True if the last request was the only outstanding one.
    is_alone: bool,
    /// Reply to the last request.
    answered: Option<Answered>,
    /// Turnarounds, as multiples of the frontend's cost according to the self-test.
    turns: [f32; TURNS],
    count: usize,
    scale: f32,
    /// Median of the last [`TURNS`] turnarounds in the same unit, of any length. `None` until there are [`TURNS`] of
    /// them.
    usual: Option<f32>,
    counts: ClientTurns,
}

/// A reply, after which the client sends its next request.
#[derive(Clone, Copy, Debug)]
struct Answered {
    due: Due,
    sent: Wall,
}

impl Answered {
    /// Returns `true` if the turnaround of a client that sends its next request at `at` is late.
    ///
    /// The limit is [`MAX_RATIO`] times the client's usual turnaround. In addition, as for replies, an excess within
    /// the tolerance of the request's latency does not count.
    fn is_late(&self, at: Wall, usual: f32) -> bool {
        let turn = at.since(self.due.at_best().max(self.sent));
        let usual = |times: f32| Wall((self.due.cost.0 as f32 * usual * times) as u64);
        turn > usual(MAX_RATIO) && turn.since(usual(1.0)) > self.due.tolerance()
    }
}

impl Default for Turnaround {
    fn default() -> Turnaround {
        Turnaround {
            is_alone: false,
            answered: None,
            turns: [0.0; TURNS],
            count: 0,
            scale: 1.0,
            usual: None,
            counts: ClientTurns::default(),
        }
    }
}

impl Turnaround {
    /// Records a request of the client, which has `in_progress` other requests outstanding.
    pub fn note_request(&mut self, at: impl FnOnce() -> Wall, in_progress: u32) -> Requesting {
        self.is_alone = in_progress == 0;
        let answered = self.answered.take().filter(|_| self.is_alone);
        let is_late = answered.and_then(|answered| self.note_turn(&answered, at()));
        Requesting { scale: self.scale, is_late }
    }

    /// Counts a turnaround. Returns `true` if it was late, `None` if the usual turnaround is not known yet.
    fn note_turn(&mut self, answered: &Answered, at: Wall) -> Option<bool> {
        let is_late = self.usual.map(|usual| answered.is_late(at, usual));
        self.counts.note(is_late);
        let Due { cost, .. } = answered.due;
        self.turns[self.count] = at.since(answered.due.at_best()).0 as f32 / cost.0 as f32;
        self.count += 1;
        if self.count == TURNS {
            self.count = 0;
            self.turns.sort_unstable_by(f32::total_cmp);
            let median = self.turns[TURNS / 2];
            self.scale = if median > MAX_RATIO { 1.0 } else { median };
            self.usual = Some(median);
        }
        is_late
    }

    /// Records a reply to the client. `sent` returns the time at which it was sent, and is called only if this is
    /// needed.
    pub fn note_answer(&mut self, due: &Due, sent: impl FnOnce() -> Wall) {
        let is_known = self.is_alone && due.cost > Wall(0);
        self.answered = is_known.then(|| Answered { due: *due, sent: sent() });
    }

    /// Returns the counts of judged and late turnarounds.
    pub fn counts(&self) -> ClientTurns {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a client that sends `turns` requests, each `us` microseconds after its last reply. Returns the
    /// resulting scale.
    fn after(client: &mut Turnaround, turns: usize, us: u64, in_progress: u32) -> f32 {
        let mut requesting = Requesting::default();
        for turn in 0..=turns as u64 {
            let requested = Wall::from_us(1000 * turn + us);
            requesting = client.note_request(|| requested, in_progress);
            let target = Wall::from_us(1000 * (turn + 1));
            client.note_answer(&Due { target, cost: Wall::from_us(40), ..Due::default() }, || target);
        }
        requesting.scale
    }

    #[test]
    fn the_cost_of_a_client_is_its_median_turnaround() {
        let client = &mut Turnaround::default();
        assert_eq!(after(client, TURNS - 1, 30, 0), 1.0);
        assert_eq!(after(&mut Turnaround::default(), TURNS, 30, 0), 0.75);
        assert_eq!(after(&mut Turnaround::default(), TURNS, 46, 0), 1.15);
    }

    #[test]
    fn turnarounds_start_at_the_earliest_possible_reply() {
        let mut client = Turnaround::default();
        for turn in 0..=TURNS as u64 {
            client.note_request(|| Wall::from_us(1000 * turn + 30), 0);
            let (target, possible) = (Wall::from_us(1000 * turn + 970), Wall::from_us(1000 * (turn + 1)));
            client.note_answer(&Due { target, possible, cost: Wall::from_us(40), ..Due::default() }, || possible);
        }
        assert_eq!(client.note_request(|| Wall(0), 1).scale, 0.75);
    }

    #[test]
    fn a_slow_client_gets_the_self_tests_cost() {
        let client = &mut Turnaround::default();
        assert_eq!(after(client, TURNS, 30, 0), 0.75);
        assert_eq!(after(client, TURNS, 90, 0), 1.0);
    }

    #[test]
    fn concurrent_requests_are_not_judged() {
        let client = &mut Turnaround::default();
        assert_eq!(after(client, 3 * TURNS, 5, 1), 1.0);
        // The first of two requests is the only outstanding one until the second arrives.
        for turn in 0..3 * TURNS as u64 {
            let at = Wall::from_us(1000 * turn);
            client.note_request(|| at, 0);
            assert_eq!(client.note_request(|| at, 1), Requesting::default());
            let due = Due { target: at, cost: Wall::from_us(40), ..Due::default() };
            client.note_answer(&due, || at);
            client.note_answer(&due, || at);
        }
        assert_eq!(client.counts(), ClientTurns::default());
    }

    /// Returns whether the client is late with a request that it sends `us` us after a reply. That reply had this
    /// latency and was sent `late` us after its due time. The client's usual turnaround takes 40 us times `usual`.
    fn is_late(usual: f32, latency: u64, late: u64, us: u64) -> Option<bool> {
        let mut client = Turnaround { usual: Some(usual), is_alone: true, ..Turnaround::default() };
        let [target, latency, cost, sent] = [1000, latency, 40, 1000 + late].map(Wall::from_us);
        client.note_answer(&Due { target, latency, cost, ..Due::default() }, || sent);
        client.note_request(|| sent.later(Wall::from_us(us)), 0).is_late
    }

    #[test]
    fn a_client_is_late_beyond_its_usual_turn() {
        assert_eq!([49, 50, 51, 5000].map(|us| is_late(1.0, 60, 0, us).unwrap()), [false, false, true, true]);
        // A client that usually needs longer, and one that needs less.
        assert_eq!([51, 100, 101].map(|us| is_late(2.0, 60, 0, us).unwrap()), [false, false, true]);
        assert_eq!([25, 26].map(|us| is_late(0.5, 60, 0, us).unwrap()), [false, true]);
        // 5% of the latency are tolerated, as for a reply.
        assert_eq!([140, 141].map(|us| is_late(1.0, 2000, 0, us).unwrap()), [false, true]);
        // The server's own lateness is not attributed to the client.
        assert_eq!([50, 51].map(|us| is_late(1.0, 60, 300, us).unwrap()), [false, true]);
    }

    #[test]
    fn turnarounds_are_judged_once_a_usual_one_is_known() {
        // The client works for 360 us before each request, and once for longer.
        let mut client = Turnaround::default();
        let is_late = (0..2 * TURNS as u64).map(|turn| {
            let at = Wall::from_us(1000 * turn);
            client.note_request(|| Wall(0), 0);
            client.note_answer(&Due { target: at, cost: Wall::from_us(40), ..Due::default() }, || at);
            client.note_request(|| at.later(Wall::from_us(if turn == 40 { 600 } else { 400 })), 0).is_late
        });
        let is_late: Vec<Option<bool>> = is_late.collect();
        assert!(is_late[..TURNS].iter().all(Option::is_none), "{is_late:?}");
        assert!((TURNS..2 * TURNS).all(|turn| is_late[turn] == Some(turn == 40)), "{is_late:?}");
        assert_eq!(client.counts(), ClientTurns { judged: TURNS as u64, late: 1 });
    }
}
