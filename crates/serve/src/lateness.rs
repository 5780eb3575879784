//! How late answers were, and why.

use floatgate_core::metrics::latency::Latency;
use floatgate_core::metrics::summary::{LateCauses, Live, LiveFront};

use crate::clock::Wall;
use crate::cost::Cost;

/// An answer counts as late when it was sent later than its time by more than this share of its own latency.
pub const TOLERANCE: f64 = 0.05;

/// What no answer is late by: what it takes to look at the clock and the sockets once.
pub const LEAST: Wall = Wall(2000);

/// The share of late answers beyond which a run is not faithful to its device.
pub const LIMIT: f64 = 0.01;

/// What an answer waited for longest when it should have been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The device decided it later than the front end needs to send it in time.
    Phase,
    /// The host: it woke the server late, or gave the processor to something else.
    Host,
    /// Another thread was at the device.
    Lock,
    /// The file of the flash image: the kernel's page cache, or the disk behind it.
    Disk,
    /// The server was at work on other requests.
    Work,
}

/// When an answer was due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// When it should be sent; before its request has come where that takes less than the sending.
    pub target: Wall,
    /// The earliest time at which it could be: when the device had decided it.
    pub possible: Wall,
    /// The request's latency, in real time.
    pub latency: Wall,
    /// What receiving and sending take by the self-test.
    pub cost: Wall,
    /// What of that is deducted, as it is for this client and at this load.
    pub deducted: Wall,
    /// It moves no data, and takes less than receiving and sending: nobody could be in time, and no figure of a device
    /// is about it.
    pub too_short: bool,
}

/// A request as the client's side tells of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asking {
    /// What the front end takes for the client, in times of its own [`Cost`].
    pub scale: f32,
    /// True if the client came back late after its last answer. `None` if that is not known.
    pub is_late: Option<bool>,
}

impl Default for Asking {
    fn default() -> Asking {
        Asking { scale: 1.0, is_late: None }
    }
}

/// Counts of turns of clients: from the sending of an answer until the client's next request is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientTurns {
    /// Turns that were compared with the client's usual turn.
    pub judged: u64,
    /// Turns that took longer than is usual.
    pub late: u64,
}

impl ClientTurns {
    /// Counts a turn: `is_late` as in [`Asking`].
    pub fn note(&mut self, is_late: Option<bool>) {
        self.judged += u64::from(is_late.is_some());
        self.late += u64::from(is_late == Some(true));
    }

    /// Returns the share of late turns. `None` if no turn was judged.
    pub fn share(&self) -> Option<f64> {
        (self.judged > 0).then(|| self.late as f64 / self.judged as f64)
    }
}

/// What kept the server between an answer's time and its sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// When it began to look at what is due.
    pub awake: Wall,
    /// Whether it had waited for that, or had been at work.
    pub waited: bool,
    /// Of the time since then, without the processor.
    pub preempted: Wall,
    /// Delay by the host in the earlier turns since the loop last waited. The weight of a turn halves with each later
    /// turn, because the backlog that it caused has been worked off by then.
    pub preempted_before: Wall,
    /// Of the time since then, for the lock of the device.
    pub locked: Wall,
    /// In calls for the file of the flash image: since then, and in the turn before where this one followed at once.
    pub disk: Wall,
    /// When the answers were sent.
    pub sent: Wall,
}

impl Due {
    /// How late it was sent.
    pub fn late_by(&self, sent: Wall) -> Wall {
        sent.since(self.target)
    }

    /// When it can be sent at best.
    pub fn at_best(&self) -> Wall {
        self.target.max(self.possible)
    }

    /// Returns the delay up to which an answer is not late.
    pub fn tolerance(&self) -> Wall {
        Wall((self.latency.0 as f64 * TOLERANCE) as u64).max(LEAST)
    }

    /// Whether that is later than is tolerated.
    pub fn is_late(&self, sent: Wall) -> bool {
        self.late_by(sent) > self.tolerance()
    }

    /// What most of it went into.
    pub fn cause(&self, turn: &Turn) -> Cause {
        let best = self.at_best();
        let overslept = if turn.waited { turn.awake.since(best) } else { Wall(0) };
        let host = overslept.later(turn.preempted).later(turn.preempted_before.min(turn.awake.since(best)));
        let all = turn.sent.since(best);
        let disk = turn.disk.min(all);
        let work = all.since(host).since(turn.locked).since(disk);
        let parts = [
            (self.possible.since(self.target), Cause::Phase),
            (host.min(all), Cause::Host),
            (turn.locked.min(all), Cause::Lock),
            (disk, Cause::Disk),
            (work, Cause::Work),
        ];
        parts.into_iter().max_by_key(|part| part.0).map_or(Cause::Work, |part| part.1)
    }
}

/// How many answers were late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Answers that are judged.
    pub answers: u64,
    /// Others, to requests without data, faster than any can be sent.
    pub too_short: u64,
    /// Answers that were late.
    pub late: u64,
    /// Those, by what kept them.
    pub causes: LateCauses,
    /// Turns of clients.
    pub turns: ClientTurns,
}

/// Counts of answers.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    all: Latency,
    too_short: u64,
    late: u64,
    causes: [u64; 5],
    /// Of all answers that are counted.
    deducted: u64,
    turns: ClientTurns,
}

impl Lateness {
    /// An answer has been sent.
    pub fn record(&mut self, due: &Due, turn: &Turn) {
        if due.too_short {
            self.too_short += 1;
            return;
        }
        self.deducted += due.deducted.0;
        self.all.record(due.late_by(turn.sent).as_time());
        if due.is_late(turn.sent) {
            self.late += 1;
            self.causes[due.cause(turn) as usize] += 1;
        }
    }

    /// Counts a turn of a client, before it asks.
    pub fn note_turn(&mut self, asking: &Asking) {
        self.turns.note(asking.is_late);
    }

    /// How many there are of each sort.
    pub fn counts(&self) -> Counts {
        let (too_short, late, turns) = (self.too_short, self.late, self.turns);
        Counts { answers: self.answers(), too_short, late, causes: self.causes(), turns }
    }

    /// Answers counted.
    pub fn answers(&self) -> u64 {
        self.all.count()
    }

    /// Share of them that were late.
    pub fn share(&self) -> Option<f64> {
        (self.answers() > 0).then(|| self.late as f64 / self.answers() as f64)
    }

    /// Whether so few were late that the host saw the device's time.
    pub fn is_faithful(&self) -> Option<bool> {
        self.share().map(|share| share <= LIMIT)
    }

    /// What was deducted on average, in microseconds.
    fn deducted_mean_us(&self) -> Option<f64> {
        (self.answers() > 0).then(|| self.deducted as f64 / self.answers() as f64 / 1e3)
    }

    fn causes(&self) -> LateCauses {
        let [phase, host, lock, disk, work] = self.causes;
        LateCauses { phase, host, lock, disk, work }
    }

    /// That of a front end, from whose answers so much was deducted.
    pub fn front(&self, name: &str, cost: &Cost) -> LiveFront {
        let ([deducted_read_us, deducted_write_us], waking_us) = (cost.us(), cost.waking_us());
        let (name, too_short, late, late_share) = (name.to_owned(), self.too_short, self.late, self.share());
        let about =
            LiveFront { name, deducted_read_us, deducted_write_us, waking_us, too_short, late, ..LiveFront::default() };
        let deducted_mean_us = self.deducted_mean_us();
        let ClientTurns { judged: client_turns, late: client_late } = self.turns;
        let about = LiveFront { client_turns, client_late, client_late_share: self.turns.share(), ..about };
        LiveFront::new(&self.all, LiveFront { deducted_mean_us, late_share, causes: self.causes(), ..about })
    }

    /// As a section of a result.
    pub fn section(&self, pace: &str, speed: f64, fronts: Vec<LiveFront>) -> Live {
        Live::new(
            &self.all,
            Live {
                pace: pace.to_owned(),
                speed,
                too_short: self.too_short,
                late: self.late,
                late_share: self.share(),
                late_limit: LIMIT,
                faithful: self.is_faithful(),
                causes: self.causes(),
                fronts,
                ..Live::default()
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(target_us: u64, possible_us: u64) -> Due {
        let [target, possible, latency] = [target_us, possible_us, 100].map(Wall::from_us);
        Due { target, possible, latency, ..Due::default() }
    }

    #[test]
    fn an_answer_is_late_beyond_its_tolerance() {
        let due = due(1000, 900);
        assert!(!due.is_late(Wall::from_us(999)) && !due.is_late(Wall::from_us(1005)));
        assert!(due.is_late(Wall(1_005_001)));
        let short = Due { latency: Wall::from_us(10), ..due };
        assert!(!short.is_late(Wall::from_us(1002)) && short.is_late(Wall(1_002_001)));
    }

    #[test]
    fn a_late_answer_has_a_cause() {
        let us = Wall::from_us;
        let turn = |awake, waited, preempted, locked, sent| Turn {
            awake: us(awake),
            waited,
            preempted: us(preempted),
            locked: us(locked),
            sent: us(sent),
            ..Turn::default()
        };
        // Decided 10 us after it should have been sent, and sent at once.
        assert_eq!(due(1000, 1010).cause(&turn(1010, true, 0, 0, 1011)), Cause::Phase);
        // Awake 30 us after its time, after a wait.
        assert_eq!(due(1000, 900).cause(&turn(1030, true, 0, 0, 1032)), Cause::Host);
        // Awake as late, but from other work.
        assert_eq!(due(1000, 900).cause(&turn(1030, false, 0, 0, 1032)), Cause::Work);
        // Awake in time, and then not on the processor.
        assert_eq!(due(1000, 900).cause(&turn(1000, true, 4000, 0, 5000)), Cause::Host);
        // Awake late from a turn in which the processor was taken away, for most of that time or for little of it.
        let taken_before = |us| Turn { preempted_before: Wall::from_us(us), ..turn(1030, false, 0, 0, 1032) };
        assert_eq!(due(1000, 900).cause(&taken_before(4000)), Cause::Host);
        assert_eq!(due(1000, 900).cause(&taken_before(12)), Cause::Work);
        // It was taken away before the answer was due.
        assert_eq!(due(1030, 900).cause(&Turn { sent: us(1050), ..taken_before(4000) }), Cause::Work);
        assert_eq!(due(1000, 900).cause(&turn(1000, true, 0, 40, 1050)), Cause::Lock);
        assert_eq!(due(1000, 900).cause(&turn(1000, true, 0, 0, 1050)), Cause::Work);
        // Awake late from other work, most of which was a flush of the image's file; then, less of it was.
        let from_disk = |disk| Turn { disk: us(disk), ..turn(1030, false, 0, 0, 1032) };
        assert_eq!(due(1000, 900).cause(&from_disk(5000)), Cause::Disk);
        assert_eq!(due(1000, 900).cause(&from_disk(20)), Cause::Disk);
        assert_eq!(due(1000, 900).cause(&from_disk(12)), Cause::Work);
    }

    #[test]
    fn a_run_is_faithful_up_to_the_limit() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.is_faithful(), None);
        let turn = |sent| Turn { awake: Wall::from_us(1000), sent: Wall::from_us(sent), ..Turn::default() };
        for _ in 0..99 {
            lateness.record(&due(1000, 900), &turn(1001));
        }
        lateness.record(&due(1000, 900), &turn(1500));
        assert_eq!((lateness.share(), lateness.is_faithful()), (Some(0.01), Some(true)));
        lateness.record(&due(1000, 900), &turn(1500));
        assert_eq!(lateness.is_faithful(), Some(false));
        lateness.record(&Due { too_short: true, ..due(1000, 900) }, &turn(1500));
        let cost = Cost { read: (5000.0, 0.0), write: (6000.0, 0.0), ..Cost::default() };
        assert_eq!(lateness.front("nbd", &cost).client_late_share, None);
        for is_late in [None, Some(false), Some(true), Some(false), Some(false)] {
            lateness.note_turn(&Asking { is_late, ..Asking::default() });
        }
        let front = lateness.front("nbd", &cost);
        assert_eq!((front.client_turns, front.client_late, front.client_late_share), (4, 1, Some(0.25)));
        assert_eq!((front.deducted_write_us, front.late_share), (6.0, lateness.share()));
        let section = lateness.section("timed", 1.0, vec![front]);
        assert_eq!((section.answers, section.too_short, section.late, section.causes.work), (101, 1, 2, 2));
        assert_eq!(section.lateness_us.max, Some(500.0));
    }
}
