//! What the host takes for one client, found out while it is served.
//!
//! A client that waits for each of its answers asks again as soon as it has one. From when that was to be sent, or
//! could be at best, until the next request is read, the answer is received, the client wakes, and asks: all that a
//! front end takes, and what the client does in between. The self-test ([`crate::calibrate`]) found the same for a
//! client of its own; but what it takes to wake a thread differs from one to the next by a fifth, so that of the one
//! that is served is deducted.

use crate::clock::Wall;
use crate::lateness::Due;

/// Turns of which the median counts.
const TURNS: usize = 32;

/// Times of the self-test's cost up to which a turn is taken for the front end's. A client that needs longer does
/// something of its own in between, and how much of that it is cannot be known.
const MOST: f32 = 1.25;

/// The turns of a client.
#[derive(Clone, Debug)]
pub struct Turnaround {
    /// No other request was in progress together with the last one.
    is_alone: bool,
    /// When the answer to that was to be sent, or could be at best, and what the front end takes by the self-test.
    answered: Option<(Wall, Wall)>,
    /// How long turns were, in times of the latter.
    turns: [f32; TURNS],
    count: usize,
    scale: f32,
}

impl Default for Turnaround {
    fn default() -> Turnaround {
        Turnaround { is_alone: false, answered: None, turns: [0.0; TURNS], count: 0, scale: 1.0 }
    }
}

impl Turnaround {
    /// The client asks while others of its requests are in progress, or none. Returns in times of the self-test's cost
    /// what the front end takes for it.
    pub fn asks(&mut self, at: impl FnOnce() -> Wall, in_progress: u32) -> f32 {
        self.is_alone = in_progress == 0;
        if let Some((answered, cost)) = self.answered.take().filter(|_| self.is_alone) {
            self.turns[self.count] = at().since(answered).0 as f32 / cost.0 as f32;
            self.count += 1;
        }
        if self.count == TURNS {
            self.count = 0;
            self.turns.sort_unstable_by(f32::total_cmp);
            let median = self.turns[TURNS / 2];
            self.scale = if median > MOST { 1.0 } else { median };
        }
        self.scale
    }

    /// The client is answered.
    pub fn note_answer(&mut self, due: &Due) {
        self.answered = (self.is_alone && due.cost > Wall(0)).then_some((due.at_best(), due.cost));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that asks `turns` times, each so many us after it was answered; what is to be deducted then.
    fn after(client: &mut Turnaround, turns: usize, us: u64, in_progress: u32) -> f32 {
        let mut scale = 0.0;
        for turn in 0..=turns as u64 {
            let asked = Wall::from_us(1000 * turn + us);
            scale = client.asks(|| asked, in_progress);
            let target = Wall::from_us(1000 * (turn + 1));
            client.note_answer(&Due { target, cost: Wall::from_us(40), ..Due::default() });
        }
        scale
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
            client.note_answer(&Due { target, possible, cost: Wall::from_us(40), ..Due::default() });
        }
        assert_eq!(client.asks(|| Wall(0), 1), 0.75);
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
            assert_eq!(client.asks(|| at, 1), 1.0);
            let due = Due { target: at, cost: Wall::from_us(40), ..Due::default() };
            client.note_answer(&due);
            client.note_answer(&due);
        }
    }
}
