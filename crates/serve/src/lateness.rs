//! Lateness of replies, and its causes.

use floatgate_core::results::Latency;
use floatgate_core::summary::{LateCauses, Live, LiveFrontend};

use crate::clock::Wall;
use crate::cost::Cost;

/// Share of its own latency by which a reply may exceed its due time without counting as late.
pub const TOLERANCE: f64 = 0.05;

/// Delay that never counts as late: the time for polling the clock and the sockets once.
pub const MIN_TOLERANCE: Wall = Wall(2000);

/// Share of late replies above which a run is not faithful to its device.
pub const LIMIT: f64 = 0.01;

/// The main reason why a reply was not sent in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The device decided the completion too late for the frontend to send the reply in time.
    LeadTime,
    /// The host woke the server late, or gave the processor to another task.
    Host,
    /// Another thread held the device's lock.
    Lock,
    /// The flash image's file: the kernel's page cache, or the disk.
    Disk,
    /// The server was processing other requests.
    Busy,
}

/// Due time of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Time at which the reply should be sent. Before the arrival of the request if its latency is below the frontend's
    /// cost.
    pub target: Wall,
    /// Earliest possible time: when the device decided the completion.
    pub possible: Wall,
    /// Latency of the request in real time.
    pub latency: Wall,
    /// Cost of receiving the request and sending the reply, as measured by the self-test.
    pub cost: Wall,
    /// Part of the cost that is deducted, adjusted to this client and the current load.
    pub deducted: Wall,
    /// True if the request moves no data and its latency is below the frontend's cost. Such a reply cannot be sent in
    /// time by any server, and no specification of a device covers it, so it is not judged.
    pub not_judged: bool,
}

/// Information about the client that sent a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Requesting {
    /// Cost of the frontend for this client, as a multiple of its measured [`Cost`].
    pub scale: f32,
    /// True if the client sent its request late after its last reply. `None` if unknown.
    pub is_late: Option<bool>,
}

impl Default for Requesting {
    fn default() -> Requesting {
        Requesting { scale: 1.0, is_late: None }
    }
}

/// Counts of client turnarounds: the time from sending a reply to reading the client's next request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientTurns {
    /// Turnarounds that were compared with the client's usual one.
    pub judged: u64,
    /// Turnarounds that took longer than usual.
    pub late: u64,
}

impl ClientTurns {
    /// Counts a turnaround. `is_late` has the same meaning as in [`Requesting`].
    pub fn note(&mut self, is_late: Option<bool>) {
        self.judged += u64::from(is_late.is_some());
        self.late += u64::from(is_late == Some(true));
    }

    /// Returns the share of late turnarounds. `None` if no turnaround was judged.
    pub fn share(&self) -> Option<f64> {
        (self.judged > 0).then(|| self.late as f64 / self.judged as f64)
    }
}

/// Times of a loop iteration that explain a delay between the due time of a reply and its sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Time at which the iteration started to check for due replies.
    pub awake: Wall,
    /// True if the loop had been waiting before the iteration. False if it had been working.
    pub waited: bool,
    /// Time without the processor since then.
    pub preempted: Wall,
    /// Delay by the host in the earlier iterations since the loop last waited. The weight of an iteration halves with
    /// each later iteration, because the backlog that it caused shrinks.
    pub preempted_before: Wall,
    /// Time spent waiting for the device's lock since then.
    pub locked: Wall,
    /// Time spent in calls for the flash image's file in this iteration. If the previous iteration followed without a
    /// wait, plus the time spent in that one.
    pub disk: Wall,
    /// Time at which the replies were sent.
    pub sent: Wall,
}

impl Due {
    /// Returns the delay of a reply that was sent at `sent`.
    pub fn late_by(&self, sent: Wall) -> Wall {
        sent.since(self.target)
    }

    /// Returns the earliest time at which the reply can be sent.
    pub fn at_best(&self) -> Wall {
        self.target.max(self.possible)
    }

    /// Returns the delay up to which a reply is not late.
    pub fn tolerance(&self) -> Wall {
        Wall((self.latency.0 as f64 * TOLERANCE) as u64).max(MIN_TOLERANCE)
    }

    /// Returns `true` if a reply that was sent at `sent` is late.
    pub fn is_late(&self, sent: Wall) -> bool {
        self.late_by(sent) > self.tolerance()
    }

    /// Returns the cause of the largest part of the delay.
    pub fn cause(&self, turn: &Turn) -> Cause {
        let best = self.at_best();
        let overslept = if turn.waited { turn.awake.since(best) } else { Wall(0) };
        let host = overslept.later(turn.preempted).later(turn.preempted_before.min(turn.awake.since(best)));
        let all = turn.sent.since(best);
        let disk = turn.disk.min(all);
        let busy = all.since(host).since(turn.locked).since(disk);
        let parts = [
            (self.possible.since(self.target), Cause::LeadTime),
            (host.min(all), Cause::Host),
            (turn.locked.min(all), Cause::Lock),
            (disk, Cause::Disk),
            (busy, Cause::Busy),
        ];
        parts.into_iter().max_by_key(|part| part.0).map_or(Cause::Busy, |part| part.1)
    }
}

/// Numbers of replies by lateness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Judged replies.
    pub replies: u64,
    /// Replies that are not judged: the request moved no data and was faster than any reply can be.
    pub not_judged: u64,
    /// Late replies.
    pub late: u64,
    /// Late replies by cause.
    pub causes: LateCauses,
    /// Turnarounds of clients.
    pub turns: ClientTurns,
}

/// Lateness statistics of replies.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    all: Latency,
    not_judged: u64,
    late: u64,
    causes: [u64; 5],
    /// Sum of the deductions of all judged replies, in ns.
    deducted: u64,
    turns: ClientTurns,
}

impl Lateness {
    /// Records a reply that was sent.
    pub fn record(&mut self, due: &Due, turn: &Turn) {
        if due.not_judged {
            self.not_judged += 1;
            return;
        }
        self.deducted += due.deducted.0;
        self.all.record(due.late_by(turn.sent).as_time());
        if due.is_late(turn.sent) {
            self.late += 1;
            self.causes[due.cause(turn) as usize] += 1;
        }
    }

    /// Counts the turnaround of a client before its request is submitted.
    pub fn note_turn(&mut self, requesting: &Requesting) {
        self.turns.note(requesting.is_late);
    }

    /// Returns the counts of replies.
    pub fn counts(&self) -> Counts {
        let (not_judged, late, turns) = (self.not_judged, self.late, self.turns);
        Counts { replies: self.replies(), not_judged, late, causes: self.causes(), turns }
    }

    /// Returns the number of judged replies.
    pub fn replies(&self) -> u64 {
        self.all.count()
    }

    /// Returns the share of late replies. `None` if no reply was judged.
    pub fn share(&self) -> Option<f64> {
        (self.replies() > 0).then(|| self.late as f64 / self.replies() as f64)
    }

    /// Returns `true` if few enough replies were late for the host to see the device's timing.
    pub fn is_faithful(&self) -> Option<bool> {
        self.share().map(|share| share <= LIMIT)
    }

    /// Returns the mean deduction in microseconds.
    fn deducted_mean_us(&self) -> Option<f64> {
        (self.replies() > 0).then(|| self.deducted as f64 / self.replies() as f64 / 1e3)
    }

    fn causes(&self) -> LateCauses {
        let [lead_time, host, lock, disk, busy] = self.causes;
        LateCauses { lead_time, host, lock, disk, busy }
    }

    /// Returns the statistics of a frontend with this cost.
    pub fn frontend(&self, name: &str, cost: &Cost) -> LiveFrontend {
        let ([deducted_read_us, deducted_write_us], waking_us) = (cost.us(), cost.waking_us());
        let (name, not_judged, late, late_share) = (name.to_owned(), self.not_judged, self.late, self.share());
        let about = LiveFrontend {
            name,
            deducted_read_us,
            deducted_write_us,
            waking_us,
            not_judged,
            late,
            ..LiveFrontend::default()
        };
        let deducted_mean_us = self.deducted_mean_us();
        let ClientTurns { judged: client_turns, late: client_late } = self.turns;
        let about = LiveFrontend { client_turns, client_late, client_late_share: self.turns.share(), ..about };
        LiveFrontend::new(&self.all, LiveFrontend { deducted_mean_us, late_share, causes: self.causes(), ..about })
    }

    /// Returns the section of the results.
    pub fn section(&self, pace: &str, speed: f64, frontends: Vec<LiveFrontend>) -> Live {
        Live::new(
            &self.all,
            Live {
                pace: pace.to_owned(),
                speed,
                not_judged: self.not_judged,
                late: self.late,
                late_share: self.share(),
                late_limit: LIMIT,
                faithful: self.is_faithful(),
                causes: self.causes(),
                frontends,
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
    fn a_reply_is_late_beyond_its_tolerance() {
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
        // Decided 10 us after its due time, and sent immediately.
        assert_eq!(due(1000, 1010).cause(&turn(1010, true, 0, 0, 1011)), Cause::LeadTime);
        // Awake 30 us after the due time, after a wait.
        assert_eq!(due(1000, 900).cause(&turn(1030, true, 0, 0, 1032)), Cause::Host);
        // Awake just as late, but because of other work.
        assert_eq!(due(1000, 900).cause(&turn(1030, false, 0, 0, 1032)), Cause::Busy);
        // Awake in time, then preempted.
        assert_eq!(due(1000, 900).cause(&turn(1000, true, 4000, 0, 5000)), Cause::Host);
        // Awake late after an iteration that was preempted, for most of that time or for a small part of it.
        let taken_before = |us| Turn { preempted_before: Wall::from_us(us), ..turn(1030, false, 0, 0, 1032) };
        assert_eq!(due(1000, 900).cause(&taken_before(4000)), Cause::Host);
        assert_eq!(due(1000, 900).cause(&taken_before(12)), Cause::Busy);
        // Preempted before the reply was due.
        assert_eq!(due(1030, 900).cause(&Turn { sent: us(1050), ..taken_before(4000) }), Cause::Busy);
        assert_eq!(due(1000, 900).cause(&turn(1000, true, 0, 40, 1050)), Cause::Lock);
        assert_eq!(due(1000, 900).cause(&turn(1000, true, 0, 0, 1050)), Cause::Busy);
        // Awake late because of other work, most of which was a flush of the image's file. Then a smaller part of it.
        let from_disk = |disk| Turn { disk: us(disk), ..turn(1030, false, 0, 0, 1032) };
        assert_eq!(due(1000, 900).cause(&from_disk(5000)), Cause::Disk);
        assert_eq!(due(1000, 900).cause(&from_disk(20)), Cause::Disk);
        assert_eq!(due(1000, 900).cause(&from_disk(12)), Cause::Busy);
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
        lateness.record(&Due { not_judged: true, ..due(1000, 900) }, &turn(1500));
        let cost = Cost { read: (5000.0, 0.0), write: (6000.0, 0.0), ..Cost::default() };
        assert_eq!(lateness.frontend("nbd", &cost).client_late_share, None);
        for is_late in [None, Some(false), Some(true), Some(false), Some(false)] {
            lateness.note_turn(&Requesting { is_late, ..Requesting::default() });
        }
        let frontend = lateness.frontend("nbd", &cost);
        assert_eq!((frontend.client_turns, frontend.client_late, frontend.client_late_share), (4, 1, Some(0.25)));
        assert_eq!((frontend.deducted_write_us, frontend.late_share), (6.0, lateness.share()));
        let section = lateness.section("timed", 1.0, vec![frontend]);
        assert_eq!((section.replies, section.not_judged, section.late, section.causes.busy), (101, 1, 2, 2));
        assert_eq!(section.lateness_us.max, Some(500.0));
    }
}
