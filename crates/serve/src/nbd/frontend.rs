//! The loop that serves all NBD clients. Its thread reads requests, advances the device, and sends replies.
//!
//! There is only one thread, so that a request never passes from one thread to another: waking a second thread costs as
//! much as a fast reply takes in total (`docs/decisions/0015-live.md`). The loop waits for its sockets and for the next
//! event of the engine. It busy-waits at the end of a wait, because sleeping ends too late.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use floatgate_core::sim::request::{Operation, SECTOR, Status};
use floatgate_core::sim::slab::Slab;
use rustix::event::{PollFd, PollFlags, poll};

use super::connection::{Begun, Connection};
use super::session::{Command, Export, Kind, Session};
use super::unaligned::{self, Job, Jobs, Step};
use super::wire::{self, Errno};
use crate::budget::Budget;
use crate::clock::{Wall, set_timer_slack};
use crate::engine::{Answer, Engine, Order, Port};
use crate::idle::{Slot, free_idlest};
use crate::lateness::Requesting;
use crate::listen::Listener;
use crate::pacing::{Pacing, Shutdown, lock, timeout};
use crate::payload::PayloadError;
use crate::roster::Roster;
use crate::stream::Stream;
use crate::threads::Bell;

/// Name of this frontend in results.
pub(crate) const NBD: &str = "nbd";

/// Maximum number of clients. A further client replaces one that is idle, or is refused.
const MAX_CLIENTS: usize = 64;

/// Number of further connections that may negotiate, so that a refused client can be told the reason.
const MAX_ASKING: usize = 8;

/// Time for which a client may hold memory that other clients need, if it neither collects its replies nor sends the
/// rest of its request.
const STALL: Wall = Wall(10_000_000_000);

/// Interval at which clients with a time limit are checked if no socket is ready.
const SOON: Wall = Wall(1_000_000_000);

/// Time limit for a client to choose its export.
const HANDSHAKE: Wall = Wall(30_000_000_000);

/// Pause after the system could not accept a client for lack of resources.
const PAUSE: Wall = Wall(100_000_000);

/// An outstanding request.
#[derive(Clone, Copy, Debug)]
struct Pending {
    client: usize,
    generation: u64,
    cookie: u64,
    offset: u64,
    promised: usize,
    /// Range of the bytes that the request changes, in whole sectors. Empty if it changes none.
    changes: (u64, u64),
    /// Bytes before the requested ones in the reply to a read, and the number of requested bytes. The rest is not sent.
    part: (usize, usize),
    /// Job that the request is an order of, and the offset of the order.
    job: Option<(u64, u64)>,
}

/// A reply to be queued, with the index of the answer that completes it.
enum Ready {
    Request(Pending, usize),
    Job(Job, Option<usize>),
}

/// The loop and its state.
pub struct Frontend {
    engine: Arc<Mutex<Engine>>,
    port: Port,
    export: Export,
    listeners: Vec<Listener>,
    bell: Arc<Bell>,
    stop: Arc<AtomicBool>,
    pacing: Pacing,
    idle_limit: Wall,
    clients: Vec<Slot<Connection>>,
    generations: u64,
    pending: Slab<u32, Pending>,
    /// Changes that are not one request of the device.
    jobs: Jobs,
    ready: Vec<(bool, bool)>,
    answers: Vec<Answer>,
    accept_after: Wall,
    /// True if a client has a time limit.
    is_timed: bool,
    /// Power cuts of the device when it was last checked.
    power_cuts: u64,
    roster: Option<Roster>,
}

/// Parts of a loop.
pub struct Parts {
    /// The engine, which all frontends share.
    pub engine: Arc<Mutex<Engine>>,
    /// Port of this frontend.
    pub port: Port,
    /// The NBD export.
    pub export: Export,
    /// Sockets for clients.
    pub listeners: Vec<Listener>,
    /// Bell that wakes the loop.
    pub bell: Arc<Bell>,
    /// Set when the server stops.
    pub stop: Arc<AtomicBool>,
    /// Time to busy-wait at the end of a wait.
    pub spin: Wall,
    /// Idle time after which a client may lose its slot to a new one if all slots are taken.
    pub idle_limit: Wall,
}

impl Frontend {
    /// Creates a loop, to be run in its own thread.
    pub fn new(parts: Parts) -> Frontend {
        let Parts { engine, port, export, listeners, bell, stop, spin, idle_limit } = parts;
        Frontend {
            engine,
            port,
            export,
            listeners,
            bell,
            stop,
            pacing: Pacing::new(spin),
            idle_limit,
            clients: Vec::new(),
            generations: 0,
            pending: Slab::default(),
            jobs: Jobs::default(),
            ready: Vec::new(),
            answers: Vec::new(),
            accept_after: Wall(0),
            is_timed: false,
            power_cuts: 0,
            roster: None,
        }
    }

    /// Starts to add clients to a roster.
    pub fn enter_clients(&mut self, roster: Roster) {
        self.roster = Some(roster);
    }

    /// Adds a client that is already connected, for example over a socket pair.
    pub fn add(&mut self, stream: std::os::unix::net::UnixStream) -> std::io::Result<()> {
        stream.set_nonblocking(true)?;
        self.add_client(Stream::Unix(stream), Wall::now());
        Ok(())
    }

    /// Serves clients until the server stops and the outstanding requests have been replied to.
    pub fn run(mut self) {
        set_timer_slack();
        self.send(Wall::now());
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
            } else if !called && now < next && !shutdown.has_begun() {
                let has_parted = self.is_timed && self.part(now);
                if !has_parted {
                    continue;
                }
            }
            // A request arrives at the time at which it has been read.
            let now = if called { Wall::now() } else { now };
            if shutdown.is_over(now) {
                break;
            }
            next = self.serve(now, shutdown.hurries);
            let has_sent = self.send(now);
            if (self.part(now) || has_sent) && self.clients.iter().flatten().any(|(_, client)| client.is_held()) {
                // A client's waiting request may fit now.
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
        self.pending.is_empty()
            && self.jobs.is_empty()
            && self.clients.iter().flatten().all(|(_, client)| !client.wants_output())
    }

    /// Waits until a socket is ready or until `until`. Returns `true` if a socket is ready.
    fn wait(&mut self, until: Wall) -> bool {
        let now = Wall::now();
        let is_timed = |client: &Connection| !client.session.is_serving() || client.is_held();
        self.is_timed = self.clients.iter().flatten().any(|(_, client)| is_timed(client));
        let limit = if self.is_timed { now.later(SOON) } else { Wall::NEVER };
        let sleep = self.pacing.sleep(now, until, limit);
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

    /// Reads from the sockets that are ready, and accepts new clients.
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
        // Drop disconnected clients first, to make room for new ones. After a power cut, drop the old clients before
        // accepting new ones, because all clients present then are disconnected.
        if listeners.contains(&true) {
            let (engine, _) = lock(&self.engine);
            part_after_cut(&engine, &mut self.power_cuts, (&mut self.pending, &mut self.jobs), &mut self.clients);
            self.export.read_only = engine.is_read_only();
        }
        self.part(now);
        for index in (0..listeners.len()).filter(|index| listeners[*index]) {
            self.accept(index, now);
        }
        self.share_places(now);
    }

    fn accept(&mut self, listener: usize, now: Wall) {
        loop {
            match self.listeners[listener].accept() {
                // Without a free slot, the stream is closed immediately.
                Ok(Some(stream)) => {
                    if self.has_place(now) {
                        self.add_client(stream, now);
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

    /// Makes room for another connection, if necessary by closing the oldest one that has not chosen its export.
    /// Returns `false` if there is no room.
    fn has_place(&mut self, now: Wall) -> bool {
        if self.clients.iter().flatten().count() < MAX_CLIENTS + MAX_ASKING {
            return true;
        }
        free_idlest(&mut self.clients, SOON, |client| {
            if client.session.is_serving() { Wall(0) } else { now.since(client.since) }
        })
    }

    /// If all slots are taken and another client requests one, disconnects the client that has been idle longest. If no
    /// client has been idle long enough, the new one is refused.
    fn share_places(&mut self, now: Wall) {
        let clients = self.clients.iter().flatten().count();
        let mut serving = self.clients.iter().flatten().filter(|(_, client)| client.session.is_serving()).count();
        if serving == clients {
            return;
        }
        if serving >= MAX_CLIENTS {
            let has_room = free_idlest(&mut self.clients, self.idle_limit, |client| client.idle_for(now));
            serving -= usize::from(has_room);
        }
        let requesting = self.clients.iter_mut().flatten().filter(|(_, client)| !client.session.is_serving());
        requesting.for_each(|(_, client)| client.session.set_full(serving >= MAX_CLIENTS));
    }

    fn add_client(&mut self, stream: Stream, now: Wall) {
        let seat = self.roster.as_ref().map(|roster| roster.enter(NBD, stream.peer(), now));
        let mut client = Connection::new(stream, self.export.clone(), now);
        client.seat = seat;
        let client = Some((self.generations, client));
        self.generations += 1;
        match self.clients.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = client,
            None => self.clients.push(client),
        }
    }

    /// Submits the requests that have been read, advances the device, and takes the replies that are due. If `hurries`
    /// is set, takes all replies. Returns the time for the next iteration.
    fn serve(&mut self, now: Wall, hurries: bool) -> Wall {
        let begun = self.pacing.begin(now);
        let Frontend { engine, port, clients, pending, jobs, answers, pacing, power_cuts, .. } = self;
        let (mut engine, locked) = lock(engine);
        part_after_cut(&engine, power_cuts, (pending, jobs), clients);
        engine.sent(*port, answers, &pacing.turn);
        engine.awake(*port);
        let mut budget = Budget::beside(clients.iter().flatten().map(|(_, client)| client.used()));
        for (index, place) in clients.iter_mut().enumerate() {
            let Some((generation, client)) = place else { continue };
            let mut request = |client: &mut Connection| {
                client.next_request(now, &mut budget, |session, command, requesting, out| {
                    let token = Pending { client: index, generation: *generation, ..Pending::of(session, command) };
                    begin(&mut engine, *port, now, requesting, session, command, token, pending, jobs, out)
                })
            };
            while request(client) {}
        }
        let mut ready = Vec::new();
        start_jobs(&mut engine, *port, now, pending, jobs, &mut ready);
        engine.take(*port, now, hurries, answers);
        complete(&mut engine, *port, now, pending, jobs, answers, &mut ready);
        let next = engine.next_poll(*port);
        let disk = engine.take_disk_time();
        drop(engine);
        for ready in &ready {
            let (index, generation) = match ready {
                Ready::Request(requested, _) => (requested.client, requested.generation),
                Ready::Job(job, _) => job.client,
            };
            let Some((_, client)) = clients[index].as_mut().filter(|(of, _)| *of == generation) else { continue };
            match ready {
                Ready::Request(requested, answer) => reply(client, requested, &mut answers[*answer]),
                Ready::Job(job, answer) => reply_to_job(client, job, answer.map(|answer| &answers[answer])),
            }
        }
        pacing.end(begun, !answers.is_empty(), locked, disk);
        next
    }

    /// Sends as much as the sockets accept. Returns `true` if anything was sent.
    fn send(&mut self, now: Wall) -> bool {
        self.clients.iter_mut().flatten().fold(false, |any, (_, client)| client.send(now) || any)
    }

    /// Drops clients that have disconnected, do not choose an export in time, or hold memory that other clients need.
    /// Returns `true` if a client was dropped.
    fn part(&mut self, now: Wall) -> bool {
        let is_short = self.clients.iter().flatten().any(|(_, client)| client.is_held());
        let mut any = false;
        for place in &mut self.clients {
            let over = |(_, client): &(u64, Connection)| {
                client.is_over()
                    || (!client.session.is_serving() && now.since(client.since) > HANDSHAKE)
                    || (is_short && client.stalls_for(now) > STALL)
            };
            if place.as_ref().is_some_and(over) {
                *place = None;
                any = true;
            }
        }
        any
    }
}

/// Drops all clients after a power cut, because their outstanding requests will not be replied to.
fn part_after_cut(
    engine: &Engine,
    known: &mut u64,
    (pending, jobs): (&mut Slab<u32, Pending>, &mut Jobs),
    clients: &mut [Slot<Connection>],
) {
    if engine.power_cuts() != *known {
        *known = engine.power_cuts();
        *pending = Slab::default();
        jobs.clear();
        clients.iter_mut().flatten().for_each(|(_, client)| client.lose());
    }
}

impl Pending {
    fn of(session: &Session, command: &Command) -> Pending {
        // The payload of a write takes memory, too, until it has been received.
        let has_payload = matches!(command.kind, Kind::Read | Kind::Write(_));
        let payload = if has_payload { command.length as usize } else { 0 };
        let promised = payload + headroom(session);
        let sector = u64::from(session.export().sector);
        let changes = unaligned::changed(command, sector).map_or((0, 0), |range| (range.start, range.end));
        let part = ((command.offset % sector) as usize, command.length as usize);
        let Command { cookie, offset, .. } = *command;
        Pending { client: 0, generation: 0, cookie, offset, promised, changes, part, job: None }
    }

    /// Returns the order of a job at an offset.
    fn of_job(job: u64, offset: u64) -> Pending {
        let (cookie, promised, changes, part) = (0, 0, (0, 0), (0, 0));
        Pending { client: 0, generation: 0, cookie, offset, promised, changes, part, job: Some((job, offset)) }
    }
}

/// Returns the number of bytes before the payload of a read.
fn headroom(session: &Session) -> usize {
    if session.is_structured() { wire::DATA_HEAD } else { wire::SIMPLE_HEAD }
}

/// Submits a request, or replies to it if it does not involve the device.
#[expect(clippy::too_many_arguments, reason = "what a request needs, borrowed one by one from the loop")]
fn begin(
    engine: &mut Engine,
    port: Port,
    now: Wall,
    requesting: Requesting,
    session: &Session,
    command: &Command,
    requested: Pending,
    pending: &mut Slab<u32, Pending>,
    jobs: &mut Jobs,
    out: &mut Vec<u8>,
) -> Begun {
    let sector = u64::from(session.export().sector);
    let length = u64::from(command.length);
    let is_whole = command.offset.is_multiple_of(sector) && length.is_multiple_of(sector);
    let range = match command.kind {
        Kind::Trim => unaligned::inner(command.offset, length, sector),
        _ => unaligned::outer(command.offset, length, sector),
    };
    let has_range = !matches!(command.kind, Kind::Flush | Kind::Status { .. });
    if !is_whole && has_range {
        engine.note_unaligned();
    }
    if has_range && range.is_empty() {
        wire::simple_reply(out, 0, command.cookie);
        return Begun::Answered;
    }
    let is_change = has_range && command.kind != Kind::Read;
    if is_change && ((!is_whole && command.kind != Kind::Trim) || jobs.block(&range)) {
        return add_job(jobs, command, &range, sector, &requested, requesting);
    }
    let (operation, data) = match command.kind {
        Kind::Read => (Operation::Read, None),
        Kind::Write(data) => (Operation::Write, Some(data)),
        Kind::Flush => (Operation::Flush, None),
        Kind::Trim => (Operation::Trim, None),
        Kind::Zero => (Operation::WriteZeroes, None),
        Kind::ZeroAllocated => (Operation::Write, None),
        Kind::Status { one } => {
            session.status(command, one, |range| engine.extent(range), out);
            return Begun::Answered;
        }
    };
    let token = pending.insert(requested);
    let order = Order {
        token: u64::from(token),
        operation,
        lba: range.start / SECTOR,
        sectors: ((range.end - range.start) / SECTOR) as u32,
        fua: command.fua,
        data,
        headroom: headroom(session),
        is_awake: false,
        requesting,
    };
    match engine.submit(port, now, &order) {
        Ok(()) => Begun::InProgress(requested.promised),
        Err(error) => {
            pending.remove(token);
            wire::error_reply(out, session.is_structured(), errno_of(error), command.cookie);
            Begun::Answered
        }
    }
}

/// Adds a job for a change. `range` are its whole sectors.
fn add_job(
    jobs: &mut Jobs,
    command: &Command,
    range: &Range<u64>,
    sector: u64,
    requested: &Pending,
    requesting: Requesting,
) -> Begun {
    let whole = Command { offset: range.start, length: (range.end - range.start) as u32, ..*command };
    let command = if command.kind == Kind::Trim { &whole } else { command };
    let client = (requested.client, requested.generation);
    let mut job = Job::new(jobs.next_id(), command, sector, client, requested.promised);
    job.requesting = requesting;
    jobs.push(job);
    Begun::InProgress(requested.promised)
}

/// Starts the jobs whose sectors no earlier change has.
fn start_jobs(
    engine: &mut Engine,
    port: Port,
    now: Wall,
    pending: &mut Slab<u32, Pending>,
    jobs: &mut Jobs,
    ready: &mut Vec<Ready>,
) {
    while !jobs.is_empty() {
        let changes = pending.values().into_iter().map(|request| request.changes.0..request.changes.1);
        let changes: Vec<_> = changes.filter(|range| !range.is_empty()).collect();
        let Some(job) = jobs.next_ready(&changes).and_then(|id| jobs.get_mut(id)) else { return };
        let (id, steps) = (job.id, job.start());
        if submit_steps(engine, port, now, pending, job, &steps) {
            ready.extend(jobs.remove(id).map(|job| Ready::Job(job, None)));
        }
    }
}

/// Submits orders of a job. Returns `true` if the job is done, because none was accepted.
fn submit_steps(
    engine: &mut Engine,
    port: Port,
    now: Wall,
    pending: &mut Slab<u32, Pending>,
    job: &mut Job,
    steps: &[Step],
) -> bool {
    let mut is_done = false;
    for step in steps {
        let (operation, range, data) = match step {
            Step::Read(range) => (Operation::Read, range.clone(), None),
            Step::Write(at, bytes) => (Operation::Write, *at..*at + bytes.len() as u64, Some(&bytes[..])),
            Step::Zero(range) => (Operation::WriteZeroes, range.clone(), None),
            Step::ZeroAllocated(range) => (Operation::Write, range.clone(), None),
            Step::Trim(range) => (Operation::Trim, range.clone(), None),
        };
        let token = pending.insert(Pending::of_job(job.id, range.start));
        let sectors = ((range.end - range.start) / SECTOR) as u32;
        let order = Order {
            token: u64::from(token),
            fua: job.fua && operation != Operation::Read,
            data,
            requesting: std::mem::take(&mut job.requesting),
            ..Order::of(operation, range.start / SECTOR, sectors)
        };
        if operation == Operation::Read {
            engine.note_completing_read();
        }
        if let Err(error) = engine.submit(port, now, &order) {
            pending.remove(token);
            is_done = job.refused(errno_of(error));
        }
    }
    is_done
}

/// Completes requests, and continues or completes the jobs whose orders were completed.
fn complete(
    engine: &mut Engine,
    port: Port,
    now: Wall,
    pending: &mut Slab<u32, Pending>,
    jobs: &mut Jobs,
    answers: &mut [Answer],
    ready: &mut Vec<Ready>,
) {
    for (index, answer) in answers.iter_mut().enumerate() {
        let requested = pending.remove(answer.token as u32);
        let Some((id, offset)) = requested.job else {
            ready.push(Ready::Request(requested, index));
            continue;
        };
        let Some(job) = jobs.get_mut(id) else { continue };
        let error = error_of(answer);
        let read = (error.is_none() && !answer.bytes.is_empty()).then(|| (offset, answer.bytes.clone()));
        let is_done = match job.completed(read, error) {
            Some(steps) => submit_steps(engine, port, now, pending, job, &steps),
            None => true,
        };
        if is_done {
            ready.extend(jobs.remove(id).map(|job| Ready::Job(job, Some(index))));
        }
    }
    start_jobs(engine, port, now, pending, jobs, ready);
}

/// Returns the error that an answer reports.
fn error_of(answer: &Answer) -> Option<Errno> {
    match (answer.failed, answer.status) {
        (Some(failed), _) => Some(errno_of(failed)),
        (None, Status::Ok) => None,
        (None, Status::OutOfRange) => Some(Errno::Invalid),
        (None, Status::ReadOnly) => Some(Errno::Perm),
        (None, Status::Uncorrectable) => Some(Errno::Io),
    }
}

/// Queues the reply to the request of a job.
fn reply_to_job(client: &mut Connection, job: &Job, answer: Option<&Answer>) {
    if let Some(answer) = answer {
        client.note_answer(&answer.due);
    }
    let structured = client.session.is_structured();
    client.answer(job.promised, |out| match job.error {
        Some(error) => wire::error_reply(out, structured, error, job.cookie),
        None => wire::simple_reply(out, 0, job.cookie),
    });
}

fn errno_of(error: PayloadError) -> Errno {
    match error {
        PayloadError::NoRoom => Errno::NoSpace,
        PayloadError::Failed | PayloadError::Damaged => Errno::Io,
    }
}

/// Queues the reply to a request.
fn reply(client: &mut Connection, requested: &Pending, answer: &mut Answer) {
    client.note_answer(&answer.due);
    let structured = client.session.is_structured();
    if let Some(error) = error_of(answer) {
        return client.answer(requested.promised, |out| wire::error_reply(out, structured, error, requested.cookie));
    }
    if answer.bytes.is_empty() {
        return client.answer(requested.promised, |out| wire::simple_reply(out, 0, requested.cookie));
    }
    // The requested bytes of the sectors that were read.
    let (head, (skip, length)) = (headroom(&client.session), requested.part);
    answer.bytes.truncate(head + skip + length);
    answer.bytes.drain(head..head + skip);
    if structured {
        let payload = answer.bytes.len() - wire::DATA_HEAD;
        let head = wire::data_head(requested.cookie, requested.offset, payload as u32);
        answer.bytes[..wire::DATA_HEAD].copy_from_slice(&head);
    } else {
        answer.bytes[..wire::SIMPLE_HEAD].copy_from_slice(&wire::simple_head(0, requested.cookie));
    }
    client.answer_with(requested.promised, &mut answer.bytes);
}
