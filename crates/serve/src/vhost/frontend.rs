//! The loop that serves all vhost-user clients. Its thread polls their rings, advances the device, and sends replies.
//!
//! This loop resembles that of NBD ([`crate::nbd::frontend`]), with rings in place of sockets. Polling a ring takes no
//! system call. Clients wake the loop by an event only when it sleeps.

use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use floatgate_core::sim::request::{Operation, Status};
use floatgate_core::sim::slab::Slab;
use rustix::event::{PollFd, PollFlags, poll};
use virtio_bindings::virtio_blk::{VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_OK};
use vm_memory::{Bytes, GuestAddress};

use super::blk::{self, Disk, Kind, Request, Requested};
use super::chain::{Chain, Piece, part, scatter};
use super::connection::Connection;
use super::session::Session;
use crate::clock::{Wall, set_timer_slack};
use crate::engine::{Answer, Engine, Order, Port};
use crate::idle::{Slot, free_idlest};
use crate::lateness::{Due, Requesting};
use crate::listen::Listener;
use crate::pacing::{Pacing, Shutdown, lock, timeout};
use crate::roster::{Peer, Roster};
use crate::stream::Stream;
use crate::threads::Bell;

/// Name of this frontend in results.
pub(crate) const VHOST_USER: &str = "vhost-user";

/// Maximum number of clients. A further client replaces one that is idle, or is refused.
const MAX_CLIENTS: usize = 8;

/// Pause after the system could not accept a client for lack of resources.
const PAUSE: Wall = Wall(100_000_000);

/// Interval of polling the sockets while there are requests in the rings.
const SOCKETS: Wall = Wall::from_us(50);

/// Interval of polling the sockets while busy-waiting.
const GLANCE: Wall = Wall::from_us(5);

/// Capacity of the payload buffer that is kept between loop iterations.
const PAYLOAD: usize = 1 << 20;

/// An outstanding request.
#[derive(Clone, Copy, Debug)]
struct Pending {
    client: usize,
    generation: u64,
    ring: u16,
    head: u16,
    status: GuestAddress,
    promised: usize,
}

/// A request that was taken from its ring and has not been submitted yet.
#[derive(Debug)]
struct Taken {
    token: u32,
    request: Request,
    /// Payload of a write, as a range of the payload buffer.
    payload: Range<usize>,
    /// True if the client polls for replies.
    is_awake: bool,
    /// Information about the client.
    requesting: Requesting,
}

/// Owner of a polled file descriptor.
#[derive(Clone, Copy, Debug)]
enum Place {
    Bell,
    Listener,
    /// Socket of a client, and whether it was disconnected.
    Socket(usize, bool),
    Kick(usize, usize),
}

/// Parts of a loop.
pub struct Parts {
    /// The engine, which all frontends share.
    pub engine: Arc<Mutex<Engine>>,
    /// Port of this frontend.
    pub port: Port,
    /// The virtio block device.
    pub disk: Disk,
    /// Socket for clients.
    pub listener: Option<Listener>,
    /// Bell that wakes the loop.
    pub bell: Arc<Bell>,
    /// Set when the server stops.
    pub stop: Arc<AtomicBool>,
    /// Time to busy-wait at the end of a wait.
    pub spin: Wall,
    /// Idle time after which a client may lose its slot to a new one if all slots are taken.
    pub idle_limit: Wall,
}

/// The loop and its state.
pub struct Frontend {
    engine: Arc<Mutex<Engine>>,
    port: Port,
    disk: Disk,
    listener: Option<Listener>,
    bell: Arc<Bell>,
    stop: Arc<AtomicBool>,
    pacing: Pacing,
    idle_limit: Wall,
    clients: Vec<Slot<Connection>>,
    generations: u64,
    pending: Slab<u32, Pending>,
    /// Destinations of reads. Indexed by the token of the request.
    pieces: Vec<Vec<Piece>>,
    taken: Vec<Taken>,
    payload: Vec<u8>,
    chain: Chain,
    ready: Vec<Place>,
    answers: Vec<Answer>,
    accept_after: Wall,
    /// Time at which the sockets were last polled.
    requested: Wall,
    /// Power cuts of the device when it was last checked.
    power_cuts: u64,
    roster: Option<Roster>,
}

/// Drops all clients after a power cut, because their outstanding requests will not be replied to. Clients reconnect
/// and repeat them.
fn part_after_cut(
    engine: &Engine,
    known: &mut u64,
    pending: &mut Slab<u32, Pending>,
    taken: &mut Vec<Taken>,
    clients: &mut [Slot<Connection>],
) {
    if engine.power_cuts() != *known {
        *known = engine.power_cuts();
        *pending = Slab::default();
        taken.clear();
        clients.iter_mut().flatten().for_each(|(_, client)| client.lose());
    }
}

impl Frontend {
    /// Creates a loop, to be run in its own thread.
    pub fn new(parts: Parts) -> Frontend {
        let Parts { engine, port, disk, listener, bell, stop, spin, idle_limit } = parts;
        Frontend {
            engine,
            port,
            disk,
            listener,
            bell,
            stop,
            pacing: Pacing::new(spin),
            idle_limit,
            clients: Vec::new(),
            generations: 0,
            pending: Slab::default(),
            pieces: Vec::new(),
            taken: Vec::new(),
            payload: Vec::new(),
            chain: Chain::default(),
            ready: Vec::new(),
            answers: Vec::new(),
            accept_after: Wall(0),
            requested: Wall(0),
            power_cuts: 0,
            roster: None,
        }
    }

    /// Starts to add clients to a roster.
    pub fn enter_clients(&mut self, roster: Roster) {
        self.roster = Some(roster);
    }

    /// Adds a client that is already connected, for example over a socket pair.
    pub fn add(&mut self, socket: UnixStream) -> std::io::Result<()> {
        let now = Wall::now();
        let seat = self.roster.as_ref().map(|roster| roster.enter(VHOST_USER, Peer::of_unix(&socket), now));
        let mut client = Connection::new(socket, self.disk.clone(), now)?;
        client.seat = seat;
        let client = Some((self.generations, client));
        self.generations += 1;
        match self.clients.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = client,
            None => self.clients.push(client),
        }
        Ok(())
    }

    /// Serves clients until the server stops and the outstanding requests have been replied to.
    pub fn run(mut self) {
        set_timer_slack();
        let mut next = Wall::NEVER;
        let mut shutdown = Shutdown::new();
        loop {
            let called = self.wait(next.min(shutdown.until));
            let now = Wall::now();
            self.receive(now);
            if !shutdown.has_begun() && self.stop.load(Ordering::Acquire) {
                shutdown.begin(now);
                self.listener = None;
            } else if !called && now < next && !shutdown.has_begun() {
                continue;
            }
            if !shutdown.has_begun() {
                self.take();
            }
            // A request arrives at the time at which it has been read.
            let now = if self.taken.is_empty() { now } else { Wall::now() };
            if shutdown.is_over(now) {
                break;
            }
            next = self.serve(now, shutdown.hurries);
            self.notify();
            self.part(now);
            if shutdown.has_begun() && self.pending.is_empty() {
                break;
            }
        }
        let Frontend { engine, port, mut answers, pacing, .. } = self;
        engine.lock().unwrap_or_else(PoisonError::into_inner).sent(port, &mut answers, &pacing.turn);
    }

    /// Returns `true` if a ring has a request to take.
    fn has_requests(&self) -> bool {
        self.clients.iter().flatten().any(|(_, client)| {
            let ready =
                |session: MutexGuard<Session>| session.rings.iter().any(|ring| ring.has_requests(&session.memory));
            client.takes_requests() && ready(client.session())
        })
    }

    /// Enables or disables the clients' events for new requests. Returns `true` if there already is a request.
    fn arm(&mut self, on: bool) -> bool {
        let mut found = false;
        for (_, client) in self.clients.iter_mut().flatten() {
            let takes = client.takes_requests();
            let mut session = client.session();
            let Session { rings, memory, .. } = &mut *session;
            let mut is_lost = false;
            for ring in rings {
                let there = match (on, takes) {
                    (true, true) => ring.arm(memory),
                    (true, false) => Ok(false),
                    (false, _) => ring.disarm(memory).map(|()| false),
                };
                found |= there.as_ref().is_ok_and(|there| *there);
                is_lost |= there.is_err();
            }
            drop(session);
            if is_lost {
                client.lose();
                found = true;
            }
        }
        found
    }

    /// Waits until there is an event or a request, or until `until`. Returns `true` if there is an event or a request.
    fn wait(&mut self, until: Wall) -> bool {
        let now = Wall::now();
        self.ready.clear();
        let limit = self.clients.iter().flatten().map(|(_, client)| client.looks_at(now)).min().unwrap_or(Wall::NEVER);
        let sleep = self.pacing.sleep(now, until, limit);
        let has_requests = self.has_requests();
        let patience = match (has_requests, sleep) {
            (true, _) => SOCKETS,
            (false, Some(Wall(0))) => GLANCE,
            (false, _) => Wall(0),
        };
        self.pacing.turn.waited &= !has_requests;
        if now.since(self.requested) < patience {
            return has_requests;
        }
        self.requested = now;
        let sleeps = !has_requests && sleep != Some(Wall(0));
        let is_armed = sleeps && !self.arm(true);
        let sleep = if is_armed { sleep } else { Some(Wall(0)) };
        let accepts = now >= self.accept_after;
        let sleep = if accepts { sleep } else { Some(sleep.map_or(PAUSE, |sleep| sleep.min(PAUSE))) };
        let called = self.poll(accepts, sleep);
        if is_armed {
            self.pacing.slept_since(now);
        }
        if sleeps {
            self.arm(false);
        }
        called || has_requests || (sleeps && !is_armed)
    }

    /// Polls all file descriptors, and stores the owners of the ready ones in `ready`.
    fn poll(&mut self, accepts: bool, sleep: Option<Wall>) -> bool {
        let sessions: Vec<MutexGuard<Session>> =
            self.clients.iter().flatten().map(|(_, client)| client.session()).collect();
        let mut places = Vec::with_capacity(2 + 3 * sessions.len());
        let mut fds = Vec::with_capacity(places.capacity());
        places.push(Place::Bell);
        fds.push(PollFd::new(&*self.bell, PollFlags::IN));
        if let Some(listener) = &self.listener {
            places.push(Place::Listener);
            fds.push(PollFd::new(listener, if accepts { PollFlags::IN } else { PollFlags::empty() }));
        }
        let mut held = sessions.iter();
        for (index, place) in self.clients.iter().enumerate() {
            let Some((_, client)) = place else { continue };
            places.push(Place::Socket(index, false));
            fds.push(PollFd::new(client, client.wants()));
            let Some(session) = held.next().filter(|_| client.takes_requests()) else { continue };
            for (number, ring) in session.rings.iter().enumerate() {
                if let Some(kick) = ring.kick().filter(|_| ring.has_room()) {
                    places.push(Place::Kick(index, number));
                    fds.push(PollFd::from_borrowed_fd(kick.as_fd(), PollFlags::IN));
                }
            }
        }
        let called = poll(&mut fds, sleep.map(timeout).as_ref()).unwrap_or(0);
        if called > 0 {
            let called = fds.iter().zip(&places).filter(|(fd, _)| !fd.revents().is_empty());
            self.ready.extend(called.map(|(fd, place)| match place {
                Place::Socket(client, _) => {
                    Place::Socket(*client, fd.revents().intersects(PollFlags::HUP | PollFlags::ERR))
                }
                other => *other,
            }));
        }
        called > 0
    }

    /// Processes the events that are ready: notifications, messages and new clients.
    fn receive(&mut self, now: Wall) {
        let mut accepts = false;
        for place in std::mem::take(&mut self.ready) {
            match place {
                Place::Bell => self.bell.silence(),
                Place::Listener => accepts = true,
                Place::Socket(client, is_gone) => match &mut self.clients[client] {
                    Some((_, client)) if is_gone => client.lose(),
                    Some((_, client)) => client.receive(now),
                    None => {}
                },
                Place::Kick(client, ring) => {
                    let Some((_, client)) = &mut self.clients[client] else { continue };
                    let received = client.session().rings.get_mut(ring).map_or(Ok(()), |ring| ring.silence());
                    if received.is_err() {
                        client.lose();
                    }
                }
            }
        }
        for (_, client) in self.clients.iter_mut().flatten().filter(|(_, client)| client.is_held()) {
            client.receive(now);
        }
        // Drop disconnected clients first, to make room for new ones. After a power cut, drop the old clients before
        // accepting new ones, because all clients present then are disconnected.
        if accepts {
            let Frontend { engine, power_cuts, pending, taken, clients, .. } = self;
            part_after_cut(&lock(engine).0, power_cuts, pending, taken, clients);
        }
        self.part(now);
        if accepts {
            self.accept(now);
        }
    }

    fn accept(&mut self, now: Wall) {
        self.disk.read_only = lock(&self.engine).0.is_read_only();
        while let Some(listener) = &self.listener {
            let accepted = match listener.accept() {
                Ok(Some(Stream::Unix(socket))) if has_place(&mut self.clients, self.idle_limit, now) => {
                    self.add(socket)
                }
                Ok(Some(_)) => {
                    // The connection is closed without a message, because the protocol has none for a refusal.
                    lock(&self.engine).0.warn_of_refusal(&refusal(self.idle_limit));
                    Ok(())
                }
                Ok(None) => return,
                Err(error) => Err(error),
            };
            if accepted.is_err() {
                self.accept_after = now.later(PAUSE);
                return;
            }
        }
    }

    /// Takes the requests from all rings, without locking the engine.
    fn take(&mut self) {
        if self.payload.capacity() > PAYLOAD {
            self.payload = Vec::new();
        }
        self.payload.clear();
        for index in 0..self.clients.len() {
            let Some((generation, mut client)) = self.clients[index].take() else { continue };
            if self.take_of(index, generation, &mut client).is_err() {
                client.lose();
            }
            self.clients[index] = Some((generation, client));
        }
    }

    /// Takes the requests from the rings of a client. Returns an error if one cannot be parsed.
    fn take_of(&mut self, client: usize, generation: u64, connection: &mut Connection) -> Result<(), ()> {
        let rings = connection.session().rings.len();
        for ring in 0..rings {
            while connection.takes_requests() {
                let mut session = connection.session();
                let Some(head) = session.take(ring as u16).map_err(drop)? else { break };
                let memory = &session.memory;
                let table = session.rings[ring].table();
                self.chain.read(memory, table, head).map_err(drop)?;
                let requested = blk::request(memory, &self.disk, &mut self.chain, &mut self.payload).map_err(drop)?;
                drop(session);
                self.begin(client, generation, connection, (ring as u16, head), requested)?;
            }
        }
        Ok(())
    }

    /// Prepares a request for submission, or replies to it if it does not involve the device.
    fn begin(
        &mut self,
        client: usize,
        generation: u64,
        connection: &mut Connection,
        (ring, head): (u16, u16),
        requested: Requested,
    ) -> Result<(), ()> {
        let mut session = connection.session();
        let (status, bytes) = match requested.what {
            Err(refused) => (refused as u32, 0),
            Ok(Request { kind: Kind::Id(id), .. }) => {
                let pieces: Vec<Piece> = part(&self.chain.writable, 0, id.len() as u64).collect();
                let written = scatter(&session.memory, &pieces, &id);
                if written { (VIRTIO_BLK_S_OK, id.len() as u32) } else { (VIRTIO_BLK_S_IOERR, 0) }
            }
            Ok(request) => {
                drop(session);
                self.submit_later(client, generation, connection, (ring, head), request, requested.status);
                return Ok(());
            }
        };
        end(&mut session, (ring, head), requested.status, status, bytes)
    }

    fn submit_later(
        &mut self,
        client: usize,
        generation: u64,
        connection: &mut Connection,
        (ring, head): (u16, u16),
        request: Request,
        status: GuestAddress,
    ) {
        let bytes = match request.kind {
            Kind::Read | Kind::Write => request.sectors as usize * 512,
            _ => 0,
        };
        let end = self.payload.len();
        let payload = if request.kind == Kind::Write { end - bytes..end } else { 0..0 };
        let requesting = connection.begin(bytes);
        let is_awake = connection.session().rings[usize::from(ring)].is_awake();
        let token = self.pending.insert(Pending { client, generation, ring, head, status, promised: bytes });
        self.pieces.resize_with(self.pieces.len().max(token as usize + 1), Vec::new);
        let pieces = &mut self.pieces[token as usize];
        pieces.clear();
        if request.kind == Kind::Read {
            pieces.extend_from_slice(&self.chain.writable);
        }
        self.taken.push(Taken { token, request, payload, is_awake, requesting });
    }

    /// Submits the requests that were taken, advances the device, and replies to those that are due. If `hurries` is
    /// set, replies to all. Returns the time for the next iteration.
    fn serve(&mut self, now: Wall, hurries: bool) -> Wall {
        let begun = self.pacing.begin(now);
        let Frontend { engine, port, taken, payload, answers, pacing, clients, pending, power_cuts, .. } = self;
        let (mut engine, locked) = lock(engine);
        part_after_cut(&engine, power_cuts, pending, taken, clients);
        engine.sent(*port, answers, &pacing.turn);
        engine.awake(*port);
        // Keep the requests whose payload could not be stored.
        taken.retain(|taken| {
            let order = order(taken, payload);
            engine.submit(*port, now, &order).is_err()
        });
        engine.take(*port, now, hurries, answers);
        let next = engine.next_poll(*port);
        let disk = engine.take_disk_time();
        drop(engine);
        while let Some(taken) = self.taken.pop() {
            self.answer(taken.token, &Due::default(), Status::Uncorrectable, &[]);
        }
        let answers = std::mem::take(&mut self.answers);
        for answer in &answers {
            self.answer(answer.token as u32, &answer.due, answer.status, &answer.bytes);
        }
        self.pacing.end(begun, !answers.is_empty(), locked, disk);
        self.answers = answers;
        next
    }

    /// Replies to a request if its client is still connected.
    fn answer(&mut self, token: u32, due: &Due, status: Status, bytes: &[u8]) {
        let requested = self.pending.remove(token);
        let pieces = &self.pieces[token as usize];
        let client = self.clients.get_mut(requested.client).and_then(Option::as_mut);
        if let Some((_, client)) = client.filter(|(generation, _)| *generation == requested.generation) {
            client.end(due, requested.promised);
            let mut session = client.session();
            let is_well = status == Status::Ok && (bytes.is_empty() || scatter(&session.memory, pieces, bytes));
            let (status, bytes) = if is_well { (VIRTIO_BLK_S_OK, bytes.len()) } else { (VIRTIO_BLK_S_IOERR, 0) };
            let ended = end(&mut session, (requested.ring, requested.head), requested.status, status, bytes as u32);
            drop(session);
            if ended.is_err() {
                client.lose();
            }
        }
    }

    /// Notifies clients about their replies.
    fn notify(&mut self) {
        for (_, client) in self.clients.iter_mut().flatten() {
            client.publish();
            let mut session = client.session();
            let Session { rings, memory, .. } = &mut *session;
            let notified = rings.iter_mut().try_for_each(|ring| ring.notify(memory));
            drop(session);
            if notified.is_err() {
                client.lose();
            }
        }
    }

    /// Drops clients that have disconnected or must be disconnected.
    fn part(&mut self, now: Wall) {
        for place in &mut self.clients {
            if place.as_ref().is_some_and(|(_, client)| client.is_over(now)) {
                *place = None;
            }
        }
    }
}

/// Makes room for another client, if necessary by dropping the one that has been idle longest. Returns `false` if there
/// is no room.
fn has_place(clients: &mut [Slot<Connection>], idle_limit: Wall, now: Wall) -> bool {
    let is_full = clients.iter().flatten().count() >= MAX_CLIENTS;
    !is_full || free_idlest(clients, idle_limit, |client| client.idle_for(now))
}

/// Returns the warning that a client was refused.
fn refusal(idle_limit: Wall) -> String {
    let seconds = idle_limit.as_us() / 1e6;
    format!(
        "a {VHOST_USER} client was refused because {MAX_CLIENTS} others are connected; disconnect one, or retry when \
         one has had no running ring for {seconds:.0} s"
    )
}

/// Writes the status of a request, and adds it to the used ring.
fn end(session: &mut Session, (ring, head): (u16, u16), at: GuestAddress, status: u32, payload: u32) -> Result<(), ()> {
    session.memory.write_obj(status as u8, at).map_err(drop)?;
    session.answer(ring, head, payload + 1).map_err(drop)
}

/// Converts a request for the engine.
fn order<'a>(taken: &Taken, payload: &'a [u8]) -> Order<'a> {
    let (operation, data) = match taken.request.kind {
        Kind::Read | Kind::Id(_) => (Operation::Read, None),
        Kind::Write => (Operation::Write, Some(&payload[taken.payload.clone()])),
        Kind::Flush => (Operation::Flush, None),
        Kind::Discard => (Operation::Trim, None),
        Kind::Zero => (Operation::WriteZeroes, None),
        Kind::ZeroAllocated => (Operation::Write, None),
    };
    Order {
        token: u64::from(taken.token),
        operation,
        lba: taken.request.sector,
        sectors: taken.request.sectors,
        // Virtio block devices do not have FUA. Clients send a flush instead.
        fua: false,
        data,
        headroom: 0,
        is_awake: taken.is_awake,
        requesting: taken.requesting,
    }
}
