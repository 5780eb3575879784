//! The loop that serves all NVMe connections. Its thread reads commands, advances the device, and sends replies.
//!
//! Unlike the loop of NBD ([`crate::nbd::frontend`]), this one ends the queues of hosts that are lost, and reports
//! events.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::connection::{Buffers, Connection, Services};
use crate::budget::Budget;
use crate::clients::{Clients, Connection as _, SOON};
use crate::clock::{Wall, set_timer_slack};
use crate::engine::{Answer, Engine, Port};
use crate::lateness::Requesting;
use crate::listen::Listener;
use crate::nvme::in_flight::{InFlight, Origin, Outstanding, Submission};
use crate::nvme::target::Target;
use crate::pacing::{Pacing, Shutdown, lock};
use crate::roster::Roster;
use crate::threads::Bell;

/// Name of this frontend in results.
pub(crate) const NVME_TCP: &str = "nvme-tcp";

/// Maximum number of connections: each queue has one.
pub const MAX_CONNECTIONS: usize = 256;

/// Parts of a loop.
pub struct Parts {
    /// The engine, which all frontends share.
    pub engine: Arc<Mutex<Engine>>,
    /// Port of this frontend.
    pub port: Port,
    /// The drive and its controllers.
    pub target: Target,
    /// Sockets for hosts.
    pub listeners: Vec<Listener>,
    /// Bell that wakes the loop.
    pub bell: Arc<Bell>,
    /// Set when the server stops.
    pub stop: Arc<AtomicBool>,
    /// Time to busy-wait at the end of a wait.
    pub spin: Wall,
}

/// The loop and its state.
pub struct Frontend {
    engine: Arc<Mutex<Engine>>,
    port: Port,
    target: Target,
    stop: Arc<AtomicBool>,
    pacing: Pacing,
    clients: Clients<Connection>,
    in_flight: InFlight,
    buffers: Buffers,
    answers: Vec<Answer>,
    /// Slot of the connection that is served first. It changes, so that each gets memory when memory is short.
    first: usize,
    /// Commands that have completed, with the indices of their answers.
    completed: Vec<(Outstanding, usize)>,
    /// Time of the next check of connections and of the device.
    check_at: Wall,
    /// Power cuts of the device when it was last checked.
    power_cuts: u64,
}

impl Frontend {
    /// Creates a loop, to be run in its own thread.
    pub fn new(parts: Parts) -> Frontend {
        let Parts { engine, port, target, listeners, bell, stop, spin } = parts;
        Frontend {
            engine,
            port,
            target,
            stop,
            pacing: Pacing::new(spin),
            clients: Clients::new(NVME_TCP, listeners, bell),
            in_flight: InFlight::default(),
            buffers: Buffers::default(),
            answers: Vec::new(),
            first: 0,
            completed: Vec::new(),
            check_at: Wall(0),
            power_cuts: 0,
        }
    }

    /// Starts to add clients to a roster.
    pub fn enter_clients(&mut self, roster: Roster) {
        self.clients.enter(roster);
    }

    /// Serves hosts until the server stops and the outstanding commands have been replied to.
    pub fn run(mut self) {
        set_timer_slack();
        let mut next = Wall::NEVER;
        let mut shutdown = Shutdown::new();
        loop {
            let called = self.wait(next.min(shutdown.until));
            let now = Wall::now();
            if called {
                self.receive(now);
            }
            if !shutdown.has_begun() && self.stop.load(Ordering::Acquire) {
                shutdown.begin(now);
                self.clients.end();
            } else if !called && now < next.min(self.check_at) && !shutdown.has_begun() {
                continue;
            }
            // A command arrives at the time at which it has been read.
            let now = if called { Wall::now() } else { now };
            if shutdown.is_over(now) {
                break;
            }
            next = self.serve(now, shutdown.hurries);
            let has_sent = self.clients.send(now);
            if (self.drop_closed(now) || has_sent) && self.clients.any_held() {
                // A command that waits may fit now.
                next = Wall(0);
            }
            if shutdown.has_begun() && self.is_done() {
                break;
            }
        }
        let Frontend { engine, port, mut answers, pacing, .. } = self;
        engine.lock().unwrap_or_else(PoisonError::into_inner).sent(port, &mut answers, &pacing.turn);
    }

    fn is_done(&self) -> bool {
        self.in_flight.is_empty() && self.clients.iter().all(|client| !client.wants_output())
    }

    /// Waits until a socket is ready or until `until`. Returns `true` if a socket is ready.
    fn wait(&mut self, until: Wall) -> bool {
        let is_idle = self.clients.slots.iter().all(Option::is_none);
        self.check_at = if is_idle { Wall::NEVER } else { self.check_at.min(Wall::now().later(SOON)) };
        self.clients.wait(&mut self.pacing, until, self.check_at)
    }

    /// Reads from the sockets that are ready, and accepts new connections.
    fn receive(&mut self, now: Wall) {
        if self.clients.receive(now) {
            // Old connections end before new ones are accepted, because a power cut drops all current connections.
            let Frontend { engine, power_cuts, in_flight, target, clients, .. } = self;
            drop_after_power_cut(&lock(engine).0, power_cuts, in_flight, target, clients);
        }
        self.drop_closed(now);
        self.clients.accept(now, MAX_CONNECTIONS, |stream| Connection::new(stream, now));
    }

    /// Executes the commands that have been read, advances the device, and takes the replies that are due. If `hurries`
    /// is set, takes all replies. Returns the time for the next iteration.
    fn serve(&mut self, now: Wall, hurries: bool) -> Wall {
        let begun = self.pacing.begin(now);
        let Frontend { engine, port, clients, in_flight, buffers, answers, completed, pacing, .. } = self;
        let Frontend { power_cuts, target, check_at, first, .. } = self;
        let (port, (mut engine, locked)) = (*port, lock(engine));
        drop_after_power_cut(&engine, power_cuts, in_flight, target, clients);
        engine.sent(port, answers, &pacing.turn);
        engine.awake(port);
        let mut budget = Budget::beside(clients.iter().map(|client| client.queue.used()));
        let slots = clients.slots.len();
        *first = if *first + 1 < slots { *first + 1 } else { 0 };
        for index in (*first..slots).chain(0..*first) {
            let Some((generation, client)) = &mut clients.slots[index] else { continue };
            let mut services = Services { target, engine: &mut engine, in_flight, buffers, port, now };
            client.serve((index, *generation), &mut services, &mut budget);
        }
        if now >= *check_at {
            target.expire(now);
            target.check(&engine);
            *check_at = now.later(SOON);
        }
        *check_at = target.deadline().min(*check_at);
        engine.take(port, now, hurries, answers);
        completed.clear();
        for (index, answer) in answers.iter_mut().enumerate() {
            let requesting = Requesting::default();
            let mut submission = Submission { engine: &mut engine, port, now, requesting, headroom: 0 };
            completed.extend(in_flight.complete(&mut submission, answer).map(|outstanding| (outstanding, index)));
        }
        let next = engine.next_poll(port);
        let disk = engine.take_disk_time();
        drop(engine);
        for (outstanding, index) in &*completed {
            match outstanding.origin {
                Origin::Shutdown(controller) => target.end_shutdown(controller),
                Origin::Host(slot, generation) => {
                    if let Some(client) = clients.get_mut((slot, generation)) {
                        client.queue.complete(target, outstanding, &mut answers[*index], now);
                    }
                }
            }
        }
        finish_held(target, clients);
        pacing.end(begun, !answers.is_empty(), locked, disk);
        next
    }

    /// Drops connections that have ended, whose controller is gone, that have no queue in time, or that hold memory
    /// that others need. Returns `true` if a connection was dropped.
    fn drop_closed(&mut self, now: Wall) -> bool {
        let Frontend { clients, target, .. } = self;
        let mut any = clients.drop_closed(now, |client| target.end(&client.queue.session.queue));
        if target.take_changed() {
            for slot in &mut clients.slots {
                any |= slot.take_if(|(_, client)| !target.has(&client.queue.session.queue)).is_some();
            }
        }
        any
    }
}

/// Replies to commands that waited for events.
fn finish_held(target: &mut Target, clients: &mut Clients<Connection>) {
    for finished in target.take_finished() {
        let link = Some((finished.controller, 0));
        if let Some(client) = clients.iter_mut().find(|client| client.queue.session.queue.link == link) {
            client.queue.finish(&finished);
        }
    }
}

/// Drops all connections and controllers after a power cut, because their outstanding commands will not be replied to.
fn drop_after_power_cut(
    engine: &Engine,
    known: &mut u64,
    in_flight: &mut InFlight,
    target: &mut Target,
    clients: &mut Clients<Connection>,
) {
    if engine.power_cuts() != *known {
        *known = engine.power_cuts();
        in_flight.clear();
        target.reset();
        clients.iter_mut().for_each(|client| client.mark_broken());
    }
}
