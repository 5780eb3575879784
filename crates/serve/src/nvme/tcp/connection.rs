//! A connection: its socket, the buffers for PDUs, and the execution of its commands.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::session::{LONGEST_PDU, Payload, Request, Session, Taken};
use crate::budget::{Budget, SHARE};
use crate::clock::Wall;
use crate::engine::{Answer, Engine, Port};
use crate::nvme::LONGEST_TRANSFER;
use crate::nvme::io::verified;
use crate::nvme::target::{Finished, Queue, Reply, Target};
use crate::nvme::wire::{Command, Direction, Status};
use crate::nvme::work::{Submission, Work, Works};
use crate::roster::Seat;
use crate::stream::{Output, Stream};
use crate::turnaround::Turnaround;

/// Size of the input buffer. It holds the longest PDU.
const INPUT: usize = 256 << 10;

const _: () = assert!(LONGEST_PDU <= INPUT);

/// Maximum number of reply bytes of a connection, for outstanding commands and for replies that were not read.
const MAX_PROMISED: usize = 64 << 20;

/// What the execution of commands needs.
pub struct Services<'a> {
    /// The controllers.
    pub target: &'a mut Target,
    /// The engine.
    pub engine: &'a mut Engine,
    /// Commands in the device.
    pub works: &'a mut Works,
    /// Port of the frontend.
    pub port: Port,
    /// Time at which the commands were read.
    pub now: Wall,
}

/// A queue of a host: its session, the commands in progress, and the replies to send.
#[derive(Debug)]
pub struct Exchange {
    /// State of the protocol.
    pub session: Session,
    /// Replies to send.
    pub output: Output,
    /// True if a command is waiting for memory.
    pub is_held: bool,
    /// True if no more commands are read, and the connection closes when everything is sent.
    pub ending: bool,
    /// Number of outstanding commands, without those that wait for events.
    pub in_flight: u32,
    /// Bytes of their data.
    promised: usize,
    turnaround: Turnaround,
}

impl Exchange {
    /// Creates the state of a new connection.
    pub fn new(queue: Queue) -> Exchange {
        Exchange {
            session: Session::new(queue),
            output: Output::default(),
            is_held: false,
            ending: false,
            in_flight: 0,
            promised: 0,
            turnaround: Turnaround::default(),
        }
    }

    /// Returns the bytes of memory that commands and replies take or may take.
    pub fn used(&self) -> usize {
        self.promised + self.output.waiting()
    }

    /// Returns `true` if another command may be read.
    fn has_room(&self) -> bool {
        self.in_flight <= u32::from(self.session.queue.entries) && self.used() < MAX_PROMISED
    }

    /// Continues a command that has waited for memory, if there is memory for it. Returns `true` if it did.
    pub fn resume(&mut self, client: (usize, u64), services: &mut Services, budget: &mut Budget) -> bool {
        let Some(&(command, length)) = self.session.deferred.front() else { return false };
        if !budget.take(self.used(), memory(&command, length, services.target)) {
            self.is_held = true;
            return false;
        }
        self.session.deferred.pop_front();
        self.proceed(client, services, command, length);
        true
    }

    /// Processes the PDU at the front of `input`. Returns the number of bytes that were consumed, or an error with the
    /// number of bytes that are needed to continue.
    pub fn take(
        &mut self,
        client: (usize, u64),
        input: &[u8],
        services: &mut Services,
        budget: &mut Budget,
    ) -> Result<usize, usize> {
        if self.ending || !self.has_room() {
            self.is_held |= !self.ending && !input.is_empty();
            return Err(1);
        }
        let Exchange { session, output, .. } = self;
        match output.append(|out| session.take(input, out)) {
            Taken::Bytes(count) => Ok(count),
            Taken::Needs(count) => Err(count),
            Taken::End => {
                self.ending = true;
                Err(1)
            }
            Taken::Command(count, request) => {
                self.request(client, services, budget, request);
                Ok(count)
            }
        }
    }

    fn request(&mut self, client: (usize, u64), services: &mut Services, budget: &mut Budget, request: Request) {
        let Request { command, length, payload } = request;
        self.in_flight += u32::from(!matches!(payload, Payload::Transferred(_) | Payload::Damaged));
        match payload {
            Payload::Capsule(data) => self.execute(client, services, &command, data, length),
            Payload::Transferred(data) => {
                self.promised -= data.len();
                self.execute(client, services, &command, &data, length);
                self.session.recycle(data);
            }
            Payload::Damaged => {
                self.promised -= length as usize;
                services.target.note_error(&self.session.queue, &command, Status::TRANSPORT);
                self.complete(&command, Status::TRANSPORT, 0);
            }
            Payload::Invalid(status) => {
                services.target.note_error(&self.session.queue, &command, status);
                self.complete(&command, status, 0);
            }
            Payload::None | Payload::Missing => {
                let needed = memory(&command, length, services.target);
                let waits = !self.session.deferred.is_empty() || !budget.take(self.used(), needed);
                if needed > 0 && waits {
                    self.session.deferred.push_back((command, length));
                    self.is_held = true;
                } else {
                    self.proceed(client, services, command, length);
                }
            }
        }
    }

    /// Executes a command for which there is memory, or asks for its data.
    fn proceed(&mut self, client: (usize, u64), services: &mut Services, command: Command, length: u32) {
        if command.direction() == Direction::FromHost {
            self.promised += length as usize;
            let Exchange { session, output, .. } = self;
            return output.append(|out| session.transfer(command, length, out));
        }
        self.execute(client, services, &command, &[], length);
    }

    fn execute(&mut self, client: (usize, u64), services: &mut Services, command: &Command, data: &[u8], length: u32) {
        let Services { target, engine, works, port, now } = services;
        let (port, now) = (*port, *now);
        match target.execute(&mut self.session.queue, command, data, length, engine, now) {
            Reply::Done(status, result) => self.complete(command, status, result),
            Reply::Data(data) => {
                self.in_flight -= 1;
                let Exchange { session, output, .. } = self;
                output.append(|out| session.reply(out, command.id(), &data));
            }
            Reply::Held => self.in_flight -= 1,
            Reply::Device(io) => {
                let requesting = self.turnaround.note_request(|| now, self.in_flight - 1);
                let promised = io.memory();
                let headroom = self.session.headroom();
                let mut submission = Submission { engine, port, now, requesting, headroom };
                match works.start(&mut submission, &io, data, client, command, promised) {
                    Some(status) => {
                        if status != Status::OK {
                            target.note_error(&self.session.queue, command, status);
                        }
                        self.complete(command, status, 0);
                    }
                    None => self.promised += promised,
                }
            }
        }
        self.ending |= self.session.queue.is_ending;
    }

    fn complete(&mut self, command: &Command, status: Status, result: u64) {
        self.in_flight -= 1;
        let Exchange { session, output, .. } = self;
        output.append(|out| session.complete(out, command.id(), status, result));
    }

    /// Replies to a command that waited for an event.
    pub fn finish(&mut self, finished: &Finished) {
        let Exchange { session, output, .. } = self;
        output.append(|out| session.complete(out, finished.id, finished.status, finished.result));
    }

    /// Replies to a command that the device has executed.
    pub fn answer(&mut self, target: &mut Target, work: &Work, answer: &mut Answer) {
        self.turnaround.note_answer(&answer.due, Wall::now);
        self.promised -= work.promised;
        let Exchange { session, output, .. } = self;
        if answer.bytes.is_empty() {
            if work.status != Status::OK {
                target.note_error(&session.queue, &work.command, work.status);
            }
            return self.complete(&work.command, work.status, 0);
        }
        self.in_flight -= 1;
        let (id, bytes, head) = (work.command.id(), &mut answer.bytes, session.headroom());
        let digest = session.digest(&bytes[head..]);
        let length = (bytes.len() - head) as u32;
        session.write_data_header(&mut bytes[..head], id, length);
        session.end_data(bytes, id, digest);
        output.push(bytes);
    }
}

/// Returns the bytes of memory that a command takes: for data that are not in its capsule.
fn memory(command: &Command, length: u32, target: &Target) -> usize {
    match command.direction() {
        Direction::None => verified(command, target.drive()).min(LONGEST_TRANSFER as u64) as usize,
        _ => length as usize,
    }
}

/// A connection of a host.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    /// Its queue.
    pub exchange: Exchange,
    /// Time at which the host connected.
    pub since: Wall,
    /// Entry in the roster. `None` if there is no roster.
    pub seat: Option<Seat>,
    input: Vec<u8>,
    /// Number of consumed bytes in `input`, and number of received bytes in it.
    taken: usize,
    filled: usize,
    /// Number of bytes from `taken` on that the session needs to continue.
    needs: usize,
    /// Time of the last transfer in either direction.
    active: Wall,
    broken: bool,
}

impl Connection {
    /// Creates the connection of a new host.
    pub fn new(stream: Stream, now: Wall) -> Connection {
        let queue = Queue::new(stream.local());
        Connection {
            stream,
            exchange: Exchange::new(queue),
            since: now,
            seat: None,
            input: vec![0; INPUT],
            taken: 0,
            filled: 0,
            needs: 1,
            active: now,
            broken: false,
        }
    }

    /// Returns `true` if a command waits for memory.
    pub fn is_held(&self) -> bool {
        self.exchange.is_held
    }

    /// Returns how long the host has held memory beyond its share without collecting replies or sending its data.
    pub fn stalls_for(&self, now: Wall) -> Wall {
        let is_slow = self.exchange.output.waiting() > 0 || self.exchange.session.is_transferring();
        if is_slow && self.exchange.used() > SHARE { now.since(self.active) } else { Wall(0) }
    }

    /// Returns `true` if the loop should wait for input.
    pub fn wants_input(&self) -> bool {
        !self.exchange.ending && self.exchange.has_room() && self.filled - self.taken < INPUT
    }

    /// Returns `true` if the loop should wait until the host accepts output.
    pub fn wants_output(&self) -> bool {
        self.exchange.output.waiting() > 0 && !self.broken
    }

    /// Returns `true` if the connection is finished and can be dropped.
    pub fn is_over(&self) -> bool {
        let Exchange { ending, output, in_flight, .. } = &self.exchange;
        self.broken || (*ending && output.waiting() == 0 && *in_flight == 0)
    }

    /// Stops reading. Outstanding commands still get their replies, unless their data are missing.
    pub fn end(&mut self) {
        let Exchange { ending, session, in_flight, .. } = &mut self.exchange;
        *ending = true;
        *in_flight -= session.drop_unstarted();
    }

    /// Marks the connection as lost. Nothing more can be sent.
    pub fn lose(&mut self) {
        self.broken = true;
    }

    /// Reads the available input.
    pub fn receive(&mut self, now: Wall) {
        if self.taken == self.filled {
            (self.taken, self.filled) = (0, 0);
        }
        if self.taken + self.needs > self.input.len() || self.filled == self.input.len() {
            self.input.copy_within(self.taken..self.filled, 0);
            (self.taken, self.filled) = (0, self.filled - self.taken);
        }
        self.active = now;
        match self.stream.read(&mut self.input[self.filled..]) {
            // Every host closes both directions at once.
            Ok(0) => self.broken = true,
            Ok(count) => self.filled += count,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.broken = true,
        }
    }

    /// Processes the commands that wait for memory, and the PDUs that have arrived.
    pub fn serve(&mut self, client: (usize, u64), services: &mut Services, budget: &mut Budget) {
        self.exchange.is_held = false;
        while !self.broken && !self.exchange.ending && self.exchange.resume(client, services, budget) {}
        while !self.broken {
            match self.exchange.take(client, &self.input[self.taken..self.filled], services, budget) {
                Ok(count) => (self.taken, self.needs) = (self.taken + count, 1),
                Err(needs) => {
                    self.needs = needs;
                    break;
                }
            }
        }
        if self.exchange.ending {
            self.end();
        }
    }

    /// Sends as much as the socket accepts. Returns `true` if anything was sent.
    pub fn send(&mut self, now: Wall) -> bool {
        if let Some(seat) = &self.seat {
            seat.note(self.exchange.in_flight, self.exchange.turnaround.counts());
        }
        if self.broken {
            return false;
        }
        let (has_sent, result) = self.exchange.output.send(&mut self.stream);
        self.broken = result.is_err();
        if has_sent {
            self.active = now;
        }
        has_sent
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
