//! How a front end's loop spends its time: waits that end in looking, and what kept an answer.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use rustix::event::Timespec;

use crate::clock::{Wall, thread_time};
use crate::engine::Engine;
use crate::lateness::Turn;

/// How long the next request is looked for after an answer, where a processor is to be spared: a client needs as long
/// to wake, on another processor of a virtual machine, and to ask.
const LINGER: Wall = Wall::from_us(100);

/// How long what is in progress may take when the server ends, and how long clients have to take their last answers.
const FAREWELL: Wall = Wall(5_000_000_000);

/// The end of a loop. What is in progress has its time; then it is done ahead of it, for a device that is slowed down
/// may take minutes, and nobody waits for that.
#[derive(Clone, Copy, Debug)]
pub struct Farewell {
    /// [`Wall::NEVER`] until it begins.
    pub until: Wall,
    /// What is in progress need not take its time any more.
    pub hurries: bool,
}

impl Farewell {
    /// Not begun.
    pub fn new() -> Farewell {
        Farewell { until: Wall::NEVER, hurries: false }
    }

    /// The server ends.
    pub fn begin(&mut self, now: Wall) {
        self.until = now.later(FAREWELL);
    }

    /// Whether the server is about to end.
    pub fn has_begun(&self) -> bool {
        self.until < Wall::NEVER
    }

    /// Whether clients have had all the time that they get. Before that comes the time that the device has.
    pub fn is_over(&mut self, now: Wall) -> bool {
        if now <= self.until || self.hurries {
            return now > self.until;
        }
        (self.until, self.hurries) = (now.later(FAREWELL), true);
        false
    }
}

/// The times of a loop.
#[derive(Debug)]
pub struct Rhythm {
    /// How long before its time a wait ends and looking begins; none where no processor is to be spared for that.
    spin: Wall,
    /// Until when to look for the next request, which often comes as soon as an answer has gone.
    linger: Wall,
    /// What is known of the present turn, or of the last one.
    pub turn: Turn,
    /// When the last turn ended: by the clock, and in the thread's processor time; and what was slept since.
    ended: (Wall, Wall),
    slept: Wall,
    /// How long the last turn was in calls for the file of the flash image.
    disk: Wall,
    /// Time at which the last wait was to end.
    due: Wall,
    /// Delay of the last turn by the host: late wake-up, and time without the processor.
    kept: Wall,
}

/// A turn that has begun.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    now: Wall,
    cpu: Wall,
    taken_away: Wall,
}

impl Rhythm {
    /// Of a loop that has not begun.
    pub fn new(spin: Wall) -> Rhythm {
        Rhythm {
            spin,
            linger: Wall(0),
            turn: Turn::default(),
            ended: (Wall::NEVER, Wall(0)),
            slept: Wall(0),
            disk: Wall(0),
            due: Wall::NEVER,
            kept: Wall(0),
        }
    }

    /// How long to sleep of a wait until something is due, or until a limit; `None` for as long as nobody calls.
    pub fn sleep(&mut self, now: Wall, due: Wall, limit: Wall) -> Option<Wall> {
        (self.turn.waited, self.due) = (due > now, due);
        if now < self.linger {
            return Some(Wall(0));
        }
        let until = due.min(limit);
        (until < Wall::NEVER).then(|| until.since(now).since(self.spin))
    }

    /// It has slept since then.
    pub fn slept_since(&mut self, then: Wall) {
        self.slept = self.slept.later(Wall::now().since(then));
    }

    /// A turn begins.
    pub fn begin(&mut self, now: Wall) -> Begun {
        let cpu = thread_time();
        let taken_away = now.since(self.ended.0).since(cpu.since(self.ended.1)).since(self.slept);
        self.slept = Wall(0);
        Begun { now, cpu, taken_away }
    }

    /// A turn ends, in which answers were sent or not, and which has waited so long for the device, and for the file of
    /// its image.
    pub fn end(&mut self, begun: Begun, answered: bool, locked: Wall, disk: Wall) {
        let sent = Wall::now();
        if answered && self.spin > Wall(0) {
            self.linger = sent.later(LINGER);
        }
        self.ended = (sent, thread_time());
        // Looking at the clocks takes a moment, too.
        let in_turn =
            sent.since(begun.now).since(self.ended.1.since(begun.cpu)).since(locked).since(disk).since(Wall(1000));
        let preempted = begun.taken_away.later(in_turn);
        let Turn { waited, preempted_before: earlier, .. } = self.turn;
        let (disk_before, preempted_before) =
            if waited { Default::default() } else { (self.disk, self.kept.later(Wall(earlier.0 / 2))) };
        let overslept = if waited { begun.now.since(self.due) } else { Wall(0) };
        (self.disk, self.kept) = (disk, preempted.later(overslept));
        let disk = disk.later(disk_before);
        self.turn = Turn { awake: begun.now, waited, locked, disk, sent, preempted, preempted_before };
    }
}

/// A span as the system takes it.
pub fn timeout(span: Wall) -> Timespec {
    Timespec { tv_sec: (span.0 / 1_000_000_000) as i64, tv_nsec: (span.0 % 1_000_000_000) as i64 }
}

/// Locks the engine; tells how long that took where another had it.
pub fn lock(engine: &Mutex<Engine>) -> (MutexGuard<'_, Engine>, Wall) {
    match engine.try_lock() {
        Ok(engine) => (engine, Wall(0)),
        Err(TryLockError::Poisoned(poisoned)) => (poisoned.into_inner(), Wall(0)),
        Err(TryLockError::WouldBlock) => {
            let before = Wall::now();
            let engine = engine.lock().unwrap_or_else(PoisonError::into_inner);
            (engine, Wall::now().since(before))
        }
    }
}
