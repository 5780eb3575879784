//! A connection: its socket, the buffers for PDUs, and the execution of its commands.

use std::borrow::Cow;
use std::os::fd::{AsFd, BorrowedFd};

use super::pdu::COMMON;
use super::session::{LONGEST_PDU, Payload, Request, Session, Taken};
use crate::budget::{Budget, SHARE};
use crate::clients;
use crate::clock::Wall;
use crate::engine::{Answer, Engine, Port};
use crate::input::{INPUT, Input};
use crate::lateness::Requesting;
use crate::nvme::LONGEST_TRANSFER;
use crate::nvme::in_flight::{InFlight, Origin, Outstanding, Submission};
use crate::nvme::io::verified;
use crate::nvme::target::{Finished, Queue, Reply, Target};
use crate::nvme::wire::{Command, Direction, Status, io};
use crate::roster::Seat;
use crate::stream::{Output, Stream};
use crate::turnaround::Turnaround;

const _: () = assert!(LONGEST_PDU <= INPUT);

/// Maximum bytes of data of a connection, for outstanding commands and for replies that were not read.
const MAX_PROMISED: usize = 64 << 20;

/// Buffers for data of hosts, kept for reuse.
#[derive(Debug, Default)]
pub struct Buffers(Vec<Vec<u8>>);

impl Buffers {
    /// Maximum number of buffers, and their maximum capacity.
    const MOST: usize = 64;
    const LARGEST: usize = 128 << 10;

    /// Returns an empty buffer with room for `length` bytes.
    fn take(&mut self, length: usize) -> Vec<u8> {
        let mut buffer = self.0.pop().unwrap_or_default();
        buffer.reserve_exact(length);
        buffer
    }

    /// Keeps a buffer.
    fn keep(&mut self, mut buffer: Vec<u8>) {
        if self.0.len() < Buffers::MOST && (1..=Buffers::LARGEST).contains(&buffer.capacity()) {
            buffer.clear();
            self.0.push(buffer);
        }
    }
}

/// Shared state for executing commands.
pub struct Services<'a> {
    /// The controllers.
    pub target: &'a mut Target,
    /// The engine.
    pub engine: &'a mut Engine,
    /// Commands in the device.
    pub in_flight: &'a mut InFlight,
    /// Buffers for data.
    pub buffers: &'a mut Buffers,
    /// Port of the frontend.
    pub port: Port,
    /// Time at which the commands were read.
    pub now: Wall,
}

/// A queue of a host: its session, the outstanding commands, and the replies to send.
#[derive(Debug)]
pub struct QueueState {
    /// State of the protocol.
    pub session: Session,
    /// Replies to send.
    pub output: Output,
    /// True if a command is waiting for memory.
    pub is_held: bool,
    /// True if no more commands are read, and the connection closes when everything is sent.
    pub ending: bool,
    /// True if the session has ended, by a termination PDU. Outstanding commands get no reply.
    is_terminated: bool,
    /// Bytes of data of outstanding commands.
    promised: usize,
    turnaround: Turnaround,
}

impl QueueState {
    /// Creates the state of a new connection.
    pub fn new(queue: Queue) -> QueueState {
        QueueState {
            session: Session::new(queue),
            output: Output::default(),
            is_held: false,
            ending: false,
            is_terminated: false,
            promised: 0,
            turnaround: Turnaround::default(),
        }
    }

    /// Returns the bytes of memory that commands and replies take or may take.
    pub fn used(&self) -> usize {
        self.promised + self.output.waiting()
    }

    /// Returns the number of outstanding commands, without those that wait for events.
    pub fn outstanding(&self) -> u32 {
        self.session.queue.outstanding
    }

    /// Takes memory for a command. Returns `false` if it has to wait.
    fn reserve(&self, needed: usize, budget: &mut Budget) -> bool {
        needed == 0 || (self.used() + needed <= MAX_PROMISED && budget.take(self.used(), needed))
    }

    /// Continues a command that has waited for memory, if there is memory for it. Returns `true` if it did.
    pub fn resume(&mut self, client: (usize, u64), services: &mut Services, budget: &mut Budget) -> bool {
        let Some(&(command, length)) = self.session.deferred.front() else { return false };
        if !self.reserve(self.memory(&command, length, services.target), budget) {
            self.is_held = true;
            return false;
        }
        self.session.deferred.pop_front();
        self.proceed(client, services, command, length);
        true
    }

    /// Processes the PDU at the front of `input`. Returns the number of bytes that were consumed, or an error with the
    /// number of bytes that are needed to continue.
    ///
    /// A command that has to wait for memory does not stop the processing of PDUs, because data of other commands
    /// follows it. The number of entries of the queue limits the commands that wait.
    pub fn take(
        &mut self,
        client: (usize, u64),
        input: &[u8],
        services: &mut Services,
        budget: &mut Budget,
    ) -> Result<usize, usize> {
        if self.ending {
            return Err(1);
        }
        // Without input, no buffer for replies is needed.
        if input.len() < COMMON {
            return Err(COMMON);
        }
        let QueueState { session, output, .. } = self;
        match output.append(|out| session.take(input, out)) {
            Taken::Bytes(count) => {
                services.target.note_activity(&self.session.queue, services.now);
                Ok(count)
            }
            Taken::Needs(count) => Err(count),
            Taken::End => {
                self.session.abandon();
                (self.ending, self.is_terminated) = (true, true);
                (self.session.queue.outstanding, self.promised) = (0, 0);
                Err(1)
            }
            Taken::Command(count, request) => {
                services.target.note_activity(&self.session.queue, services.now);
                self.request(client, services, budget, request);
                Ok(count)
            }
        }
    }

    fn request(&mut self, client: (usize, u64), services: &mut Services, budget: &mut Budget, request: Request) {
        let Request { command, length, payload } = request;
        match payload {
            Payload::Capsule(data) => self.execute(client, services, &command, Cow::Borrowed(data), length),
            Payload::Transferred(data) => {
                self.promised -= self.memory(&command, length, services.target);
                self.execute(client, services, &command, Cow::Owned(data), length);
            }
            Payload::Damaged(data) => {
                self.promised -= self.memory(&command, length, services.target);
                services.buffers.keep(data);
                self.refuse(services, &command, Status::TRANSPORT);
            }
            Payload::Invalid(status) => self.refuse(services, &command, status),
            Payload::None | Payload::Missing => {
                let needed = self.memory(&command, length, services.target);
                if needed > 0 && (!self.session.deferred.is_empty() || !self.reserve(needed, budget)) {
                    self.session.deferred.push_back((command, length));
                    self.is_held = true;
                } else {
                    self.proceed(client, services, command, length);
                }
            }
        }
    }

    /// Executes a command for which there is memory, or requests its data.
    fn proceed(&mut self, client: (usize, u64), services: &mut Services, command: Command, length: u32) {
        if command.direction() == Direction::FromHost {
            self.promised += self.memory(&command, length, services.target);
            let data = services.buffers.take(length as usize);
            let QueueState { session, output, .. } = self;
            return output.append(|out| session.transfer(command, length, data, out));
        }
        self.execute(client, services, &command, Cow::default(), length);
    }

    fn execute(
        &mut self,
        (index, generation): (usize, u64),
        services: &mut Services,
        command: &Command,
        mut data: Cow<[u8]>,
        length: u32,
    ) {
        let Services { target, engine, in_flight, buffers, port, now } = services;
        let (port, now) = (*port, *now);
        match target.execute(&mut self.session.queue, command, &data, length, engine, now) {
            Reply::Done(status, result) => self.respond(command, status, result),
            Reply::Data(data) => {
                self.session.queue.outstanding -= 1;
                let QueueState { session, output, .. } = self;
                output.append(|out| session.reply(out, command.id(), &data));
            }
            Reply::Held => self.session.queue.outstanding -= 1,
            Reply::Device(io) => {
                let requesting = self.turnaround.note_request(|| now, self.outstanding() - 1);
                let (promised, headroom) = (io.memory(), self.session.headroom());
                let mut submission = Submission { engine, port, now, requesting, headroom };
                match in_flight.start(&mut submission, io, &mut data, Origin::Host(index, generation), command) {
                    Some(status) => {
                        if status != Status::OK {
                            target.note_error(&self.session.queue, command, status);
                        }
                        self.respond(command, status, 0);
                    }
                    None => self.promised += promised,
                }
            }
        }
        if let Cow::Owned(data) = data {
            buffers.keep(data);
        }
        for controller in target.take_flushes() {
            let mut submission = Submission { engine, port, now, requesting: Requesting::default(), headroom: 0 };
            if !in_flight.flush(&mut submission, controller) {
                target.end_shutdown(controller);
            }
        }
        self.ending |= self.session.queue.is_ending;
    }

    /// Completes a command that was not executed.
    fn refuse(&mut self, services: &mut Services, command: &Command, status: Status) {
        services.target.note_error(&self.session.queue, command, status);
        self.respond(command, status, 0);
    }

    fn respond(&mut self, command: &Command, status: Status, result: u64) {
        self.session.queue.outstanding -= 1;
        let QueueState { session, output, .. } = self;
        output.append(|out| session.complete(out, command.id(), status, result));
    }

    /// Replies to a command that waited for an event.
    pub fn finish(&mut self, finished: &Finished) {
        if self.is_terminated {
            return;
        }
        let QueueState { session, output, .. } = self;
        output.append(|out| session.complete(out, finished.id, finished.status, finished.result));
    }

    /// Replies to a command that the device has executed.
    pub fn complete(&mut self, target: &mut Target, outstanding: &Outstanding, answer: &mut Answer, now: Wall) {
        if self.is_terminated {
            return;
        }
        let Outstanding { command, status, promised, .. } = outstanding;
        self.turnaround.note_answer(&answer.due, Wall::now);
        self.promised -= promised;
        target.note_activity(&self.session.queue, now);
        if answer.bytes.is_empty() {
            if *status != Status::OK {
                target.note_error(&self.session.queue, command, *status);
            }
            return self.respond(command, *status, 0);
        }
        self.session.queue.outstanding -= 1;
        let QueueState { session, output, .. } = self;
        let (id, bytes, head) = (command.id(), &mut answer.bytes, session.headroom());
        let digest = session.digest(&bytes[head..]);
        let length = (bytes.len() - head) as u32;
        session.write_data_header(&mut bytes[..head], id, length);
        session.end_data(bytes, id, digest);
        output.push(bytes);
    }

    /// Stops reading. Commands in the device still get their replies. Those that wait for data or for memory are
    /// dropped without a reply.
    pub fn end(&mut self, target: &Target) {
        self.ending = true;
        let transfers = self.session.drop_transfers();
        let freed = transfers.iter().map(|(command, length)| self.memory(command, *length, target)).sum::<usize>();
        self.promised -= freed;
        let dropped = self.session.drop_deferred() + transfers.len() as u32;
        self.session.queue.outstanding -= dropped;
    }

    /// Returns the bytes of memory that a command takes: for data that is not in its capsule.
    pub(super) fn memory(&self, command: &Command, length: u32, target: &Target) -> usize {
        match command.direction() {
            // Admin commands have other meanings of the same opcodes.
            Direction::None if self.session.queue.number() == 0 => 0,
            Direction::None => verified(command, target.drive()).min(LONGEST_TRANSFER as u64) as usize,
            // The data of the host and that of the device.
            Direction::FromHost if command.opcode() == io::COMPARE => 2 * length as usize,
            _ => length as usize,
        }
    }
}

/// A connection of a host.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    /// Queue of the connection.
    pub queue: QueueState,
    since: Wall,
    /// Entry in the roster. `None` if there is no roster.
    seat: Option<Seat>,
    input: Input,
    /// Time of the last transfer in either direction.
    active: Wall,
    broken: bool,
}

impl Connection {
    /// Creates the connection of a new host.
    pub fn new(stream: Stream, now: Wall) -> Connection {
        let queue = QueueState::new(Queue::new(stream.local()));
        Connection { stream, queue, since: now, seat: None, input: Input::new(), active: now, broken: false }
    }

    /// Processes the commands that wait for memory, and the PDUs that have arrived.
    pub fn serve(&mut self, client: (usize, u64), services: &mut Services, budget: &mut Budget) {
        self.queue.is_held = false;
        if self.broken {
            return;
        }
        while !self.queue.ending && self.queue.resume(client, services, budget) {}
        loop {
            match self.queue.take(client, self.input.unread(), services, budget) {
                Ok(count) => self.input.consume(count),
                Err(needs) => {
                    self.input.require(needs);
                    break;
                }
            }
        }
        // The data of a write has left memory of the connection for the device.
        while !self.queue.ending && self.queue.resume(client, services, budget) {}
        if self.queue.ending {
            self.queue.end(services.target);
        }
    }
}

impl clients::Connection for Connection {
    fn wants_input(&self) -> bool {
        // Replies that were not sent stop the reading. Deferred commands do not, because data of other commands follows
        // them.
        !self.queue.ending && self.queue.output.waiting() < MAX_PROMISED && self.input.unread().len() < INPUT
    }

    fn wants_output(&self) -> bool {
        self.queue.output.waiting() > 0 && !self.broken
    }

    fn is_serving(&self) -> bool {
        self.queue.session.is_connected()
    }

    fn is_held(&self) -> bool {
        self.queue.is_held
    }

    fn is_over(&self) -> bool {
        let QueueState { ending, output, .. } = &self.queue;
        self.broken || (*ending && output.waiting() == 0 && self.queue.outstanding() == 0)
    }

    fn stalls_for(&self, now: Wall) -> Wall {
        let is_slow = self.queue.output.waiting() > 0 || self.queue.session.is_transferring();
        if is_slow && self.queue.used() > SHARE { now.since(self.active) } else { Wall(0) }
    }

    fn since(&self) -> Wall {
        self.since
    }

    fn enter(&mut self, seat: Seat) {
        self.seat = Some(seat);
    }

    fn receive(&mut self, now: Wall) {
        self.active = now;
        // Every host closes both directions at once.
        if matches!(self.input.receive(&mut self.stream), Ok(Some(0)) | Err(_)) {
            self.broken = true;
        }
    }

    fn send(&mut self, now: Wall) -> bool {
        if let Some(seat) = &self.seat {
            seat.note(self.queue.outstanding(), self.queue.turnaround.counts());
        }
        if self.broken {
            return false;
        }
        let (has_sent, result) = self.queue.output.send(&mut self.stream);
        self.broken = result.is_err();
        if has_sent {
            self.active = now;
        }
        has_sent
    }

    fn end(&mut self) {
        self.queue.ending = true;
    }

    fn mark_broken(&mut self) {
        self.broken = true;
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
