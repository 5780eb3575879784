//! Clients of a frontend with sockets: its listeners, its connections, and the wait for all of them.

use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};

use crate::clock::Wall;
use crate::idle::{Slot, free_idlest};
use crate::listen::Listener;
use crate::pacing::{Pacing, timeout};
use crate::roster::{Roster, Seat};
use crate::stream::Stream;
use crate::threads::Bell;

/// Time for which a client may hold memory that other clients need, if it neither collects its replies nor sends its
/// data.
const STALL: Wall = Wall(10_000_000_000);

/// Interval at which clients with a time limit are checked if no socket is ready.
pub const SOON: Wall = Wall(1_000_000_000);

/// Time limit for a client to complete its handshake.
const HANDSHAKE: Wall = Wall(30_000_000_000);

/// Pause after the system could not accept a client for lack of resources.
const PAUSE: Wall = Wall(100_000_000);

/// Connection of a client: the interface for [`Clients`].
pub trait Connection: AsFd {
    /// Returns `true` if the loop should wait for input.
    fn wants_input(&self) -> bool;

    /// Returns `true` if the loop should wait until the client accepts output.
    fn wants_output(&self) -> bool;

    /// Returns `true` if the client has completed its handshake.
    fn is_serving(&self) -> bool;

    /// Returns `true` if a request that has arrived waits for memory.
    fn is_held(&self) -> bool;

    /// Returns `true` if the connection is finished and can be dropped.
    fn is_over(&self) -> bool;

    /// Returns how long the client has held memory beyond its share without collecting replies or sending its data.
    fn stalls_for(&self, now: Wall) -> Wall;

    /// Returns the time at which the client connected.
    fn since(&self) -> Wall;

    /// Sets the entry in the roster, which the connection keeps up to date.
    fn enter(&mut self, seat: Seat);

    /// Reads the available input.
    fn receive(&mut self, now: Wall);

    /// Sends as much as the socket accepts. Returns `true` if anything was sent.
    fn send(&mut self, now: Wall) -> bool;

    /// Stops reading. Outstanding requests still get their replies.
    fn end(&mut self);

    /// Marks the connection as lost. Nothing more can be sent.
    fn mark_broken(&mut self);
}

/// The clients of a frontend.
pub struct Clients<C> {
    /// Name of the frontend.
    name: &'static str,
    /// The connections.
    pub slots: Vec<Slot<C>>,
    listeners: Vec<Listener>,
    bell: Arc<Bell>,
    generations: u64,
    /// Readiness for input of the bell, the listeners and the connections, after a wait that a socket has ended.
    ready: Vec<bool>,
    accept_after: Wall,
    roster: Option<Roster>,
}

impl<C: Connection> Clients<C> {
    /// Creates the clients of the frontend `name`, which connect to `listeners`. `bell` ends a wait.
    pub fn new(name: &'static str, listeners: Vec<Listener>, bell: Arc<Bell>) -> Clients<C> {
        let (slots, ready, generations, accept_after) = Default::default();
        Clients { name, slots, listeners, bell, generations, ready, accept_after, roster: None }
    }

    /// Starts to add clients to a roster.
    pub fn enter(&mut self, roster: Roster) {
        self.roster = Some(roster);
    }

    /// Returns the connections.
    pub fn iter(&self) -> impl Iterator<Item = &C> {
        self.slots.iter().flatten().map(|(_, client)| client)
    }

    /// Returns the connections.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut C> {
        self.slots.iter_mut().flatten().map(|(_, client)| client)
    }

    /// Returns the connection in a slot, unless another client has taken the slot since.
    pub fn get_mut(&mut self, (index, generation): (usize, u64)) -> Option<&mut C> {
        let slot = self.slots.get_mut(index)?.as_mut().filter(|(of, _)| *of == generation)?;
        Some(&mut slot.1)
    }

    /// Returns `true` if a request of a client waits for memory.
    pub fn any_held(&self) -> bool {
        self.iter().any(Connection::is_held)
    }

    /// Waits until a socket is ready, until `until`, or until `limit`. Returns `true` if a socket is ready.
    pub fn wait(&mut self, pacing: &mut Pacing, until: Wall, limit: Wall) -> bool {
        let now = Wall::now();
        let sleep = pacing.sleep(now, until, limit);
        let accepts = now >= self.accept_after;
        let mut fds = Vec::with_capacity(self.slots.len() + self.listeners.len() + 1);
        fds.push(PollFd::new(&*self.bell, PollFlags::IN));
        for listener in &self.listeners {
            fds.push(PollFd::new(listener, if accepts { PollFlags::IN } else { PollFlags::empty() }));
        }
        for client in self.slots.iter().flatten().map(|(_, client)| client) {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, client.wants_input());
            flags.set(PollFlags::OUT, client.wants_output());
            fds.push(PollFd::new(client, flags));
        }
        let sleep = if accepts { sleep } else { Some(sleep.map_or(PAUSE, |sleep| sleep.min(PAUSE))) };
        let called = poll(&mut fds, sleep.map(timeout).as_ref()).unwrap_or(0);
        if sleep != Some(Wall(0)) {
            pacing.slept_since(now);
        }
        self.ready.clear();
        if called > 0 {
            let readable = PollFlags::IN | PollFlags::ERR | PollFlags::HUP;
            self.ready.extend(fds.iter().map(|fd| fd.revents().intersects(readable)));
        }
        called > 0
    }

    /// Reads from the connections that are ready. Returns `true` if a listener is ready.
    pub fn receive(&mut self, now: Wall) -> bool {
        let Clients { slots, ready, listeners, bell, .. } = self;
        if ready.first().is_some_and(|rang| *rang) {
            bell.silence();
        }
        let connections = ready.iter().skip(1 + listeners.len());
        for ((_, client), readable) in slots.iter_mut().flatten().zip(connections) {
            if *readable && client.wants_input() {
                client.receive(now);
            } else if *readable {
                client.mark_broken();
            }
        }
        ready.iter().skip(1).take(listeners.len()).any(|called| *called)
    }

    /// Accepts the clients that have connected, at most `most` at a time. If all slots are taken, a new client replaces
    /// the oldest one that has not completed its handshake, or else is refused. `open` creates the connection.
    pub fn accept(&mut self, now: Wall, most: usize, mut open: impl FnMut(Stream) -> C) {
        for index in 0..self.listeners.len() {
            if !self.ready.get(1 + index).is_some_and(|called| *called) {
                continue;
            }
            loop {
                match self.listeners[index].accept() {
                    // Without a free slot, the stream is closed immediately.
                    Ok(Some(stream)) => {
                        if self.has_room(most, now) {
                            let seat = self.roster.as_ref().map(|roster| roster.enter(self.name, stream.peer(), now));
                            let mut client = open(stream);
                            if let Some(seat) = seat {
                                client.enter(seat);
                            }
                            self.add(client);
                        }
                    }
                    Ok(None) => break,
                    Err(_) => {
                        self.accept_after = now.later(PAUSE);
                        break;
                    }
                }
            }
        }
    }

    fn has_room(&mut self, most: usize, now: Wall) -> bool {
        self.iter().count() < most
            || free_idlest(
                &mut self.slots,
                SOON,
                |client| {
                    if client.is_serving() { Wall(0) } else { now.since(client.since()) }
                },
            )
    }

    /// Adds a connection.
    pub fn add(&mut self, client: C) {
        let client = Some((self.generations, client));
        self.generations += 1;
        match self.slots.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => *slot = client,
            None => self.slots.push(client),
        }
    }

    /// Sends as much as the sockets accept. Returns `true` if anything was sent.
    pub fn send(&mut self, now: Wall) -> bool {
        let mut any = false;
        self.iter_mut().for_each(|client| any |= client.send(now));
        any
    }

    /// Drops clients that have disconnected, do not complete their handshake in time, or hold memory that other clients
    /// need. Calls `dropped` for each. Returns `true` if a client was dropped.
    pub fn drop_closed(&mut self, now: Wall, mut dropped: impl FnMut(C)) -> bool {
        let is_short = self.any_held();
        let mut any = false;
        for slot in &mut self.slots {
            let is_over = |(_, client): &mut (u64, C)| {
                client.is_over()
                    || (!client.is_serving() && now.since(client.since()) > HANDSHAKE)
                    || (is_short && client.stalls_for(now) > STALL)
            };
            if let Some((_, client)) = slot.take_if(is_over) {
                dropped(client);
                any = true;
            }
        }
        any
    }

    /// Closes the listeners, and stops to read from clients.
    pub fn end(&mut self) {
        self.listeners.clear();
        self.iter_mut().for_each(Connection::end);
    }
}
