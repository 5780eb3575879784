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

use super::connection::{Begun, Connection};
use super::session::{Command, Export, Kind, Session};
use super::unaligned::{self, Job, Jobs, Step};
use super::wire::{self, Errno};
use crate::budget::Budget;
use crate::clients::{Clients, Connection as _, SOON};
use crate::clock::{Wall, set_timer_slack};
use crate::engine::{Answer, Engine, Order, Port};
use crate::idle::free_idlest;
use crate::lateness::Requesting;
use crate::listen::Listener;
use crate::pacing::{Pacing, Shutdown, lock};
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
    stop: Arc<AtomicBool>,
    pacing: Pacing,
    idle_limit: Wall,
    clients: Clients<Connection>,
    pending: Slab<u32, Pending>,
    /// Changes that are not one request of the device.
    jobs: Jobs,
    answers: Vec<Answer>,
    /// True if a client has a time limit.
    is_timed: bool,
    /// Power cuts of the device when it was last checked.
    power_cuts: u64,
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
            stop,
            pacing: Pacing::new(spin),
            idle_limit,
            clients: Clients::new(NBD, listeners, bell),
            pending: Slab::default(),
            jobs: Jobs::default(),
            answers: Vec::new(),
            is_timed: false,
            power_cuts: 0,
        }
    }

    /// Starts to add clients to a roster.
    pub fn enter_clients(&mut self, roster: Roster) {
        self.clients.enter(roster);
    }

    /// Adds a client that is already connected, for example over a socket pair.
    pub fn add(&mut self, stream: std::os::unix::net::UnixStream) -> std::io::Result<()> {
        stream.set_nonblocking(true)?;
        self.clients.add(Connection::new(Stream::Unix(stream), self.export.clone(), Wall::now()));
        Ok(())
    }

    /// Serves clients until the server stops and the outstanding requests have been replied to.
    pub fn run(mut self) {
        set_timer_slack();
        self.clients.send(Wall::now());
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
            } else if !(called || now >= next || shutdown.has_begun() || (self.is_timed && self.drop_closed(now))) {
                continue;
            }
            // A request arrives at the time at which it has been read.
            let now = if called { Wall::now() } else { now };
            if shutdown.is_over(now) {
                break;
            }
            next = self.serve(now, shutdown.hurries);
            let has_sent = self.clients.send(now);
            if (self.drop_closed(now) || has_sent) && self.clients.any_held() {
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
        self.pending.is_empty() && self.jobs.is_empty() && self.clients.iter().all(|client| !client.wants_output())
    }

    /// Waits until a socket is ready or until `until`. Returns `true` if a socket is ready.
    fn wait(&mut self, until: Wall) -> bool {
        self.is_timed = self.clients.iter().any(|client| !client.is_serving() || client.is_held());
        let limit = if self.is_timed { Wall::now().later(SOON) } else { Wall::NEVER };
        self.clients.wait(&mut self.pacing, until, limit)
    }

    /// Reads from the sockets that are ready, and accepts new clients.
    fn receive(&mut self, now: Wall) {
        let is_called = self.clients.receive(now);
        // Drop disconnected clients first, to make room for new ones. After a power cut, drop the old clients before
        // accepting new ones, because a power cut drops all current clients.
        if is_called {
            let Frontend { engine, power_cuts, pending, jobs, clients, export, .. } = self;
            let (engine, _) = lock(engine);
            drop_after_power_cut(&engine, power_cuts, (pending, jobs), clients);
            export.read_only = engine.is_read_only();
        }
        self.drop_closed(now);
        let Frontend { clients, export, .. } = self;
        clients.accept(now, MAX_CLIENTS + MAX_ASKING, |stream| Connection::new(stream, export.clone(), now));
        self.share_places(now);
    }

    /// If all slots are taken and another client requests one, disconnects the client that has been idle longest. If no
    /// client has been idle long enough, the new one is refused.
    fn share_places(&mut self, now: Wall) {
        let clients = self.clients.iter().count();
        let mut serving = self.clients.iter().filter(|client| client.is_serving()).count();
        if serving == clients {
            return;
        }
        if serving >= MAX_CLIENTS {
            let has_room = free_idlest(&mut self.clients.slots, self.idle_limit, |client| client.idle_for(now));
            serving -= usize::from(has_room);
        }
        let requesting = self.clients.iter_mut().filter(|client| !client.is_serving());
        requesting.for_each(|client| client.session.set_full(serving >= MAX_CLIENTS));
    }

    /// Submits the requests that have been read, advances the device, and takes the replies that are due. If `hurries`
    /// is set, takes all replies. Returns the time for the next iteration.
    fn serve(&mut self, now: Wall, hurries: bool) -> Wall {
        let begun = self.pacing.begin(now);
        let Frontend { engine, port, clients, pending, jobs, answers, pacing, power_cuts, .. } = self;
        let (mut engine, locked) = lock(engine);
        drop_after_power_cut(&engine, power_cuts, (pending, jobs), clients);
        engine.sent(*port, answers, &pacing.turn);
        engine.awake(*port);
        let mut budget = Budget::beside(clients.iter().map(Connection::used));
        for (index, slot) in clients.slots.iter_mut().enumerate() {
            let Some((generation, client)) = slot else { continue };
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
            let client = match ready {
                Ready::Request(requested, _) => (requested.client, requested.generation),
                Ready::Job(job, _) => job.client,
            };
            let Some(client) = clients.get_mut(client) else { continue };
            match ready {
                Ready::Request(requested, answer) => reply(client, requested, &mut answers[*answer]),
                Ready::Job(job, answer) => reply_to_job(client, job, answer.map(|answer| &answers[answer])),
            }
        }
        pacing.end(begun, !answers.is_empty(), locked, disk);
        next
    }

    /// Drops clients that have disconnected, do not choose an export in time, or hold memory that other clients need.
    /// Returns `true` if a client was dropped.
    fn drop_closed(&mut self, now: Wall) -> bool {
        self.clients.drop_closed(now, drop)
    }
}

/// Drops all clients after a power cut, because their outstanding requests will not be replied to.
fn drop_after_power_cut(
    engine: &Engine,
    known: &mut u64,
    (pending, jobs): (&mut Slab<u32, Pending>, &mut Jobs),
    clients: &mut Clients<Connection>,
) {
    if engine.power_cuts() != *known {
        *known = engine.power_cuts();
        *pending = Slab::default();
        jobs.clear();
        clients.iter_mut().for_each(|client| client.mark_broken());
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
