//! Timing of a frontend's loop: sleeps that end in busy-waiting, and the causes of late replies.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use rustix::event::Timespec;

use crate::clock::{Wall, thread_time};
use crate::engine::Engine;
use crate::lateness::Turn;

/// Time for which the loop busy-waits for the next request after a reply, if a processor can be spared. On another
/// processor of a virtual machine, a client needs about this long to wake up and send its next request.
const LINGER: Wall = Wall::from_us(100);

/// Time that outstanding requests have at shutdown, and then time that clients have to receive their last replies.
const SHUTDOWN: Wall = Wall(5_000_000_000);

/// Shutdown of a loop. Outstanding requests first get some time to complete normally. Then they complete immediately,
/// because a slowed-down device might take minutes.
#[derive(Clone, Copy, Debug)]
pub struct Shutdown {
    /// End of the current phase, [`Wall::NEVER`] before the shutdown begins.
    pub until: Wall,
    /// True if outstanding requests complete immediately, regardless of the clock.
    pub hurries: bool,
}

impl Shutdown {
    /// Creates the state before the shutdown.
    pub fn new() -> Shutdown {
        Shutdown { until: Wall::NEVER, hurries: false }
    }

    /// Starts the shutdown.
    pub fn begin(&mut self, now: Wall) {
        self.until = now.later(SHUTDOWN);
    }

    /// Returns `true` if the shutdown has begun.
    pub fn has_begun(&self) -> bool {
        self.until < Wall::NEVER
    }

    /// Returns `true` if the time for clients is over. If only the time for the device is over, starts the time for
    /// clients.
    pub fn is_over(&mut self, now: Wall) -> bool {
        if now <= self.until || self.hurries {
            return now > self.until;
        }
        (self.until, self.hurries) = (now.later(SHUTDOWN), true);
        false
    }
}

/// Timing state of a loop.
#[derive(Debug)]
pub struct Pacing {
    /// Time before the end of a wait at which to stop sleeping and busy-wait. 0 if no processor can be spared.
    spin: Wall,
    /// Time until which to busy-wait for the next request, which often follows a reply immediately.
    linger: Wall,
    /// Measurements of the current iteration, or of the last one.
    pub turn: Turn,
    /// End of the last iteration, in real time and in the thread's processor time. `slept` is the time slept since
    /// then.
    ended: (Wall, Wall),
    slept: Wall,
    /// Time that the last iteration spent in calls for the flash image's file.
    disk: Wall,
    /// Planned end of the last wait.
    due: Wall,
    /// Delay of the last iteration by the host: late wake-up, and time without the processor.
    kept: Wall,
}

/// Start of an iteration.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    now: Wall,
    cpu: Wall,
    taken_away: Wall,
}

impl Pacing {
    /// Creates the state of a loop that has not started.
    pub fn new(spin: Wall) -> Pacing {
        Pacing {
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

    /// Returns how long to sleep until something is due or until `limit`. `None` means until an event on a socket.
    pub fn sleep(&mut self, now: Wall, due: Wall, limit: Wall) -> Option<Wall> {
        (self.turn.waited, self.due) = (due > now, due);
        if now < self.linger {
            return Some(Wall(0));
        }
        let until = due.min(limit);
        (until < Wall::NEVER).then(|| until.since(now).since(self.spin))
    }

    /// Records that the loop has slept since `then`.
    pub fn slept_since(&mut self, then: Wall) {
        self.slept = self.slept.later(Wall::now().since(then));
    }

    /// Starts an iteration.
    pub fn begin(&mut self, now: Wall) -> Begun {
        let cpu = thread_time();
        let taken_away = now.since(self.ended.0).since(cpu.since(self.ended.1)).since(self.slept);
        self.slept = Wall(0);
        Begun { now, cpu, taken_away }
    }

    /// Ends an iteration. `answered` is true if replies were sent. `locked` and `disk` are the times spent waiting for
    /// the device's lock and for the image's file.
    pub fn end(&mut self, begun: Begun, answered: bool, locked: Wall, disk: Wall) {
        let sent = Wall::now();
        if answered && self.spin > Wall(0) {
            self.linger = sent.later(LINGER);
        }
        self.ended = (sent, thread_time());
        // Reading the clocks takes time as well, so 1 us is not counted.
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

/// Converts a span to the system's type.
pub fn timeout(span: Wall) -> Timespec {
    Timespec { tv_sec: (span.0 / 1_000_000_000) as i64, tv_nsec: (span.0 % 1_000_000_000) as i64 }
}

/// Locks the engine. Returns the time spent waiting if another thread held the lock.
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
