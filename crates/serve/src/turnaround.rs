//! What the host takes for one client, found out while it is served.
//!
//! A client that waits for each of its answers asks again as soon as it has one. From when that was to be sent, or
//! could be at best, until the next request is read, the answer is received, the client wakes, and asks: all that a
//! front end takes, and what the client does in between. The self-test ([`crate::calibrate`]) found the same for a
//! client of its own; but what it takes to wake a thread differs from one to the next by a fifth, so that of the one
//! that is served is deducted.
//!
//! A turn that is much longer than the client's usual one is late: the client collected its answer late, did something
//! else first, or the server read the request late. The server's own lateness ([`crate::lateness`]) has none of that.

use crate::clock::Wall;
use crate::lateness::{Asking, ClientTurns, Due};

/// Turns of which the median counts.
const TURNS: usize = 32;

/// Times of the self-test's cost up to which a turn is taken for the front end's. A client that needs longer does
/// something of its own in between, and how much of that it is cannot be known. A turn that takes longer than so many
/// times the usual one is late.
const MOST: f32 = 1.25;

/// The turns of a client.
#[derive(Clone, Debug)]
pub struct Turnaround {
    /// No other request was in progress together with the last one.
    is_alone: bool,
    /// The answer to that.
    answered: Option<Answered>,
    /// How long turns were, in times of what the front end takes by the self-test.
    turns: [f32; TURNS],
    count: usize,
    scale: f32,
    /// Median of the last [`TURNS`] turns in the same unit, however long they were. `None` before there were as many.
    usual: Option<f32>,
    counts: ClientTurns,
}

/// An answer, after which the client asks again.
#[derive(Clone, Copy, Debug)]
struct Answered {
    due: Due,
    sent: Wall,
}

impl Answered {
    /// Returns `true` if a client that asks at `at` comes back late.
    ///
    /// It is late beyond [`MOST`] times its usual turn. In addition, as for an answer, what is small beside the
    /// request's latency does not count.
    fn is_late(&self, at: Wall, usual: f32) -> bool {
        let turn = at.since(self.due.at_best().max(self.sent));
        let usual = |times: f32| Wall((self.due.cost.0 as f32 * usual * times) as u64);
        turn > usual(MOST) && turn.since(usual(1.0)) > self.due.tolerance()
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
    /// The client asks while others of its requests are in progress, or none.
    pub fn asks(&mut self, at: impl FnOnce() -> Wall, in_progress: u32) -> Asking {
        self.is_alone = in_progress == 0;
        let answered = self.answered.take().filter(|_| self.is_alone);
        let is_late = answered.and_then(|answered| self.note_turn(&answered, at()));
        Asking { scale: self.scale, is_late }
    }

    /// Counts a turn. Returns `true` if it was late, `None` if no turn is usual yet.
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
            self.scale = if median > MOST { 1.0 } else { median };
            self.usual = Some(median);
        }
        is_late
    }

    /// The client is answered, at a time that is asked for only if it counts.
    pub fn note_answer(&mut self, due: &Due, sent: impl FnOnce() -> Wall) {
        let is_known = self.is_alone && due.cost > Wall(0);
        self.answered = is_known.then(|| Answered { due: *due, sent: sent() });
    }

    /// Returns how many turns were judged, and how many of them were late.
    pub fn counts(&self) -> ClientTurns {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that asks `turns` times, each so many us after it was answered; what is to be deducted then.
    fn after(client: &mut Turnaround, turns: usize, us: u64, in_progress: u32) -> f32 {
        let mut asking = Asking::default();
        for turn in 0..=turns as u64 {
            let asked = Wall::from_us(1000 * turn + us);
            asking = client.asks(|| asked, in_progress);
            let target = Wall::from_us(1000 * (turn + 1));
            client.note_answer(&Due { target, cost: Wall::from_us(40), ..Due::default() }, || target);
        }
        asking.scale
    }

    #[test]
    fn what_the_front_end_takes_for_a_client_is_the_median_of_its_turns() {
        let client = &mut Turnaround::default();
        assert_eq!(after(client, TURNS - 1, 30, 0), 1.0);
        assert_eq!(after(&mut Turnaround::default(), TURNS, 30, 0), 0.75);
        assert_eq!(after(&mut Turnaround::default(), TURNS, 46, 0), 1.15);
    }

    #[test]
    fn what_could_not_be_sent_in_time_was_sent_when_it_could() {
        let mut client = Turnaround::default();
        for turn in 0..=TURNS as u64 {
            client.asks(|| Wall::from_us(1000 * turn + 30), 0);
            let (target, possible) = (Wall::from_us(1000 * turn + 970), Wall::from_us(1000 * (turn + 1)));
            client.note_answer(&Due { target, possible, cost: Wall::from_us(40), ..Due::default() }, || possible);
        }
        assert_eq!(client.asks(|| Wall(0), 1).scale, 0.75);
    }

    #[test]
    fn a_client_that_does_something_else_is_taken_for_the_self_tests() {
        let client = &mut Turnaround::default();
        assert_eq!(after(client, TURNS, 30, 0), 0.75);
        assert_eq!(after(client, TURNS, 90, 0), 1.0);
    }

    #[test]
    fn requests_beside_others_tell_nothing() {
        let client = &mut Turnaround::default();
        assert_eq!(after(client, 3 * TURNS, 5, 1), 1.0);
        // The first of two is alone until the second comes.
        for turn in 0..3 * TURNS as u64 {
            let at = Wall::from_us(1000 * turn);
            client.asks(|| at, 0);
            assert_eq!(client.asks(|| at, 1), Asking::default());
            let due = Due { target: at, cost: Wall::from_us(40), ..Due::default() };
            client.note_answer(&due, || at);
            client.note_answer(&due, || at);
        }
        assert_eq!(client.counts(), ClientTurns::default());
    }

    /// A request with this latency that is answered `late` us too late, and after which the client asks `us` later;
    /// the client's usual turn takes 40 us times `usual`.
    fn is_late(usual: f32, latency: u64, late: u64, us: u64) -> Option<bool> {
        let mut client = Turnaround { usual: Some(usual), is_alone: true, ..Turnaround::default() };
        let [target, latency, cost, sent] = [1000, latency, 40, 1000 + late].map(Wall::from_us);
        client.note_answer(&Due { target, latency, cost, ..Due::default() }, || sent);
        client.asks(|| sent.later(Wall::from_us(us)), 0).is_late
    }

    #[test]
    fn a_client_is_late_beyond_its_usual_turn() {
        assert_eq!([49, 50, 51, 5000].map(|us| is_late(1.0, 60, 0, us).unwrap()), [false, false, true, true]);
        // A client that needs longer as a rule, and one that needs less.
        assert_eq!([51, 100, 101].map(|us| is_late(2.0, 60, 0, us).unwrap()), [false, false, true]);
        assert_eq!([25, 26].map(|us| is_late(0.5, 60, 0, us).unwrap()), [false, true]);
        // 5 % of the latency are tolerated, as of an answer.
        assert_eq!([140, 141].map(|us| is_late(1.0, 2000, 0, us).unwrap()), [false, true]);
        // The server's own lateness is not the client's.
        assert_eq!([50, 51].map(|us| is_late(1.0, 60, 300, us).unwrap()), [false, true]);
    }

    #[test]
    fn turns_are_judged_as_soon_as_one_is_usual() {
        // The client works for 360 us before each request, and once for longer.
        let mut client = Turnaround::default();
        let is_late = (0..2 * TURNS as u64).map(|turn| {
            let at = Wall::from_us(1000 * turn);
            client.asks(|| Wall(0), 0);
            client.note_answer(&Due { target: at, cost: Wall::from_us(40), ..Due::default() }, || at);
            client.asks(|| at.later(Wall::from_us(if turn == 40 { 600 } else { 400 })), 0).is_late
        });
        let is_late: Vec<Option<bool>> = is_late.collect();
        assert!(is_late[..TURNS].iter().all(Option::is_none), "{is_late:?}");
        assert!((TURNS..2 * TURNS).all(|turn| is_late[turn] == Some(turn == 40)), "{is_late:?}");
        assert_eq!(client.counts(), ClientTurns { judged: TURNS as u64, late: 1 });
    }
}
