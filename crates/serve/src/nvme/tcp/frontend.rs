//! The loop that serves all NVMe connections. Its thread reads commands, advances the device, and sends replies.
//!
//! This loop resembles that of NBD ([`crate::nbd::frontend`]). In addition, it ends the queues of hosts that are lost,
//! and reports events.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};

use super::connection::{Connection, Services};
use crate::budget::Budget;
use crate::clock::{Wall, set_timer_slack};
use crate::engine::{Answer, Engine, Port};
use crate::idle::{Slot, free_idlest};
use crate::listen::Listener;
use crate::nvme::target::Target;
use crate::nvme::work::{Work, Works};
use crate::pacing::{Pacing, Shutdown, lock, timeout};
use crate::roster::Roster;
use crate::stream::Stream;
use crate::threads::Bell;

/// Name of this frontend in results.
pub(crate) const NVME_TCP: &str = "nvme-tcp";

/// Maximum number of connections: each queue has one.
const MAX_CONNECTIONS: usize = 256;

/// Time for which a host may hold memory that other hosts need, if it neither collects its replies nor sends its data.
const STALL: Wall = Wall(10_000_000_000);

/// Interval at which connections and the condition of the device are checked.
const SOON: Wall = Wall(1_000_000_000);

/// Time limit for a host to connect its queue.
const HANDSHAKE: Wall = Wall(30_000_000_000);

/// Pause after the system could not accept a connection for lack of resources.
const PAUSE: Wall = Wall(100_000_000);

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
    listeners: Vec<Listener>,
    bell: Arc<Bell>,
    stop: Arc<AtomicBool>,
    pacing: Pacing,
    clients: Vec<Slot<Connection>>,
    generations: u64,
    works: Works,
    ready: Vec<(bool, bool)>,
    answers: Vec<Answer>,
    accept_after: Wall,
    /// Time of the next check of connections and of the device.
    check_at: Wall,
    /// Power cuts of the device when it was last checked.
    power_cuts: u64,
    roster: Option<Roster>,
}

impl Frontend {
    /// Creates a loop, to be run in its own thread.
    pub fn new(parts: Parts) -> Frontend {
        let Parts { engine, port, target, listeners, bell, stop, spin } = parts;
        Frontend {
            engine,
            port,
            target,
            listeners,
            bell,
            stop,
            pacing: Pacing::new(spin),
            clients: Vec::new(),
            generations: 0,
            works: Works::default(),
            ready: Vec::new(),
            answers: Vec::new(),
            accept_after: Wall(0),
            check_at: Wall(0),
            power_cuts: 0,
            roster: None,
        }
    }

    /// Starts to add clients to a roster.
    pub fn enter_clients(&mut self, roster: Roster) {
        self.roster = Some(roster);
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
                self.listeners.clear();
                self.clients.iter_mut().flatten().for_each(|(_, client)| client.end());
            } else if !called && now < next.min(self.check_at) && !shutdown.has_begun() {
                continue;
            }
            // A command arrives at the time at which it has been read.
            let now = if called { Wall::now() } else { now };
            if shutdown.is_over(now) {
                break;
            }
            next = self.serve(now, shutdown.hurries);
            let has_sent = self.send(now);
            if (self.part(now) || has_sent) && self.clients.iter().flatten().any(|(_, client)| client.is_held()) {
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
        self.works.is_empty() && self.clients.iter().flatten().all(|(_, client)| !client.wants_output())
    }

    /// Waits until a socket is ready or until `until`. Returns `true` if a socket is ready.
    fn wait(&mut self, until: Wall) -> bool {
        let now = Wall::now();
        let is_idle = self.clients.iter().all(Option::is_none);
        self.check_at = if is_idle { Wall::NEVER } else { self.check_at.min(now.later(SOON)) };
        let sleep = self.pacing.sleep(now, until, self.check_at);
        let accepts = now >= self.accept_after;
        let mut fds = Vec::with_capacity(self.clients.len() + self.listeners.len() + 1);
        fds.push(PollFd::new(&*self.bell, PollFlags::IN));
        for listener in &self.listeners {
            fds.push(PollFd::new(listener, if accepts { PollFlags::IN } else { PollFlags::empty() }));
        }
        for (_, client) in self.clients.iter().flatten() {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, client.wants_input());
            flags.set(PollFlags::OUT, client.wants_output());
            fds.push(PollFd::new(client, flags));
        }
        let sleep = if accepts { sleep } else { Some(sleep.map_or(PAUSE, |sleep| sleep.min(PAUSE))) };
        let called = poll(&mut fds, sleep.map(timeout).as_ref()).unwrap_or(0);
        if sleep != Some(Wall(0)) {
            self.pacing.slept_since(now);
        }
        self.ready.clear();
        if called > 0 {
            let gone = PollFlags::ERR | PollFlags::HUP;
            let is = |fd: &PollFd, flags| fd.revents().intersects(flags);
            self.ready.extend(fds.iter().map(|fd| (is(fd, PollFlags::IN | gone), is(fd, PollFlags::OUT))));
        }
        called > 0
    }

    /// Reads from the sockets that are ready, and accepts new connections.
    fn receive(&mut self, now: Wall) {
        let mut ready = self.ready.iter().copied();
        if ready.next().is_some_and(|(rang, _)| rang) {
            self.bell.silence();
        }
        let listeners: Vec<bool> = ready.by_ref().take(self.listeners.len()).map(|(called, _)| called).collect();
        for ((_, client), (readable, _)) in self.clients.iter_mut().flatten().zip(ready) {
            if readable && client.wants_input() {
                client.receive(now);
            } else if readable {
                client.lose();
            }
        }
        if listeners.contains(&true) {
            // Old connections end before new ones are accepted, because all that are present then are dropped.
            let Frontend { engine, power_cuts, works, target, clients, .. } = self;
            part_after_cut(&lock(engine).0, power_cuts, works, target, clients);
        }
        self.part(now);
        for index in (0..listeners.len()).filter(|index| listeners[*index]) {
            self.accept(index, now);
        }
    }

    fn accept(&mut self, listener: usize, now: Wall) {
        loop {
            match self.listeners[listener].accept() {
                // Without room, the stream is closed immediately.
                Ok(Some(stream)) => {
                    if self.has_room(now) {
                        self.add(stream, now);
                    }
                }
                Ok(None) => return,
                Err(_) => {
                    self.accept_after = now.later(PAUSE);
                    return;
                }
            }
        }
    }

    /// Makes room for another connection, if necessary by closing the oldest one that has no queue. Returns `false` if
    /// there is no room.
    fn has_room(&mut self, now: Wall) -> bool {
        if self.clients.iter().flatten().count() < MAX_CONNECTIONS {
            return true;
        }
        free_idlest(&mut self.clients, SOON, |client| {
            if client.exchange.session.is_connected() { Wall(0) } else { now.since(client.since) }
        })
    }

    /// Adds a connection.
    fn add(&mut self, stream: Stream, now: Wall) {
        let seat = self.roster.as_ref().map(|roster| roster.enter(NVME_TCP, stream.peer(), now));
        let mut client = Connection::new(stream, now);
        client.seat = seat;
        let client = Some((self.generations, client));
        self.generations += 1;
        match self.clients.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = client,
            None => self.clients.push(client),
        }
    }

    /// Executes the commands that have been read, advances the device, and takes the replies that are due. If `hurries`
    /// is set, takes all replies. Returns the time for the next iteration.
    fn serve(&mut self, now: Wall, hurries: bool) -> Wall {
        let begun = self.pacing.begin(now);
        let Frontend { engine, port, clients, works, answers, pacing, power_cuts, target, check_at, .. } = self;
        let (port, (mut engine, locked)) = (*port, lock(engine));
        part_after_cut(&engine, power_cuts, works, target, clients);
        engine.sent(port, answers, &pacing.turn);
        engine.awake(port);
        let mut budget = Budget::beside(clients.iter().flatten().map(|(_, client)| client.exchange.used()));
        for (index, place) in clients.iter_mut().enumerate() {
            let Some((generation, client)) = place else { continue };
            let mut services = Services { target, engine: &mut engine, works, port, now };
            client.serve((index, *generation), &mut services, &mut budget);
        }
        if now >= *check_at {
            target.expire(now);
            target.check(&engine);
            *check_at = now.later(SOON);
        }
        *check_at = target.deadline().min(*check_at);
        engine.take(port, now, hurries, answers);
        let next = engine.next_poll(port);
        let disk = engine.take_disk_time();
        drop(engine);
        for answer in answers.iter_mut() {
            let Some(work) = works.complete(answer) else { continue };
            let Work { client: (index, generation), .. } = work;
            let Some((_, client)) = clients[index].as_mut().filter(|(of, _)| *of == generation) else { continue };
            client.exchange.answer(target, &work, answer);
        }
        finish_held(target, clients);
        pacing.end(begun, !answers.is_empty(), locked, disk);
        next
    }

    /// Sends as much as the sockets accept. Returns `true` if anything was sent.
    fn send(&mut self, now: Wall) -> bool {
        self.clients.iter_mut().flatten().fold(false, |any, (_, client)| client.send(now) || any)
    }

    /// Drops connections that have ended, whose controller is gone, that have no queue in time, or that hold memory
    /// that others need. Returns `true` if a connection was dropped.
    fn part(&mut self, now: Wall) -> bool {
        let Frontend { clients, target, .. } = self;
        let is_short = clients.iter().flatten().any(|(_, client)| client.is_held());
        let mut any = false;
        for place in clients.iter_mut() {
            let over = |(_, client): &(u64, Connection)| {
                client.is_over()
                    || (!client.exchange.session.is_connected() && now.since(client.since) > HANDSHAKE)
                    || (is_short && client.stalls_for(now) > STALL)
            };
            if let Some((_, client)) = place.take_if(|place| over(place)) {
                target.end(&client.exchange.session.queue);
                any = true;
            }
        }
        if target.take_changed() {
            for place in clients.iter_mut() {
                *place = place.take().filter(|(_, client)| target.has(&client.exchange.session.queue));
            }
            any = true;
        }
        any
    }
}

/// Replies to commands that waited for events.
fn finish_held(target: &mut Target, clients: &mut [Slot<Connection>]) {
    for finished in target.take_finished() {
        let is_admin =
            |(_, client): &&mut (u64, Connection)| client.exchange.session.queue.link == Some((finished.controller, 0));
        if let Some((_, client)) = clients.iter_mut().flatten().find(is_admin) {
            client.exchange.finish(&finished);
        }
    }
}

/// Drops all connections and controllers after a power cut, because their outstanding commands will not be replied to.
fn part_after_cut(
    engine: &Engine,
    known: &mut u64,
    works: &mut Works,
    target: &mut Target,
    clients: &mut [Slot<Connection>],
) {
    if engine.power_cuts() != *known {
        *known = engine.power_cuts();
        works.clear();
        target.reset();
        clients.iter_mut().flatten().for_each(|(_, client)| client.lose());
    }
}
