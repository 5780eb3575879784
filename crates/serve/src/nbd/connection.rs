//! A client's connection: its socket, and the buffers for requests and replies.

use std::os::fd::{AsFd, BorrowedFd};

use super::session::{Command, Export, Kind, Session, Taken};
use crate::budget::{Budget, SHARE};
use crate::clients;
use crate::clock::Wall;
use crate::input::{INPUT, Input};
use crate::lateness::{Due, Requesting};
use crate::roster::Seat;
use crate::stream::{Output, Stream};
use crate::turnaround::Turnaround;

/// Maximum number of outstanding requests of a client.
const MAX_IN_FLIGHT: u32 = 1024;

/// Maximum number of reply bytes of a client, for outstanding requests and for replies that the client has not read.
const MAX_PROMISED: usize = 64 << 20;

/// A connected client.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    /// State of the protocol.
    pub session: Session,
    /// Time at which the client connected.
    since: Wall,
    /// Entry in the roster. `None` if there is no roster.
    seat: Option<Seat>,
    input: Input,
    /// Number of bytes of a request that the budget has granted. 0 if no more than [`INPUT`] is needed.
    granted: usize,
    output: Output,
    /// Number of outstanding requests, and number of bytes of their replies.
    in_flight: u32,
    promised: usize,
    turnaround: Turnaround,
    /// Time of the last transfer in either direction.
    active: Wall,
    /// True if a request that has arrived is waiting for memory.
    is_held: bool,
    /// True if no more requests are read, and the connection closes when everything is sent.
    ending: bool,
    broken: bool,
}

impl Connection {
    /// Creates the connection of a new client.
    pub fn new(stream: Stream, export: Export, now: Wall) -> Connection {
        let mut output = Output::default();
        let session = output.append(|greeting| Session::new(export, greeting));
        Connection {
            stream,
            session,
            since: now,
            seat: None,
            input: Input::new(),
            granted: 0,
            output,
            in_flight: 0,
            promised: 0,
            turnaround: Turnaround::default(),
            active: now,
            is_held: false,
            ending: false,
            broken: false,
        }
    }

    /// Returns `true` if the client may submit another request: its replies fit into the limits.
    fn has_room(&self) -> bool {
        self.in_flight < MAX_IN_FLIGHT && self.promised + self.output.waiting() < MAX_PROMISED
    }

    /// Returns the bytes of memory that the client's requests and replies take or may take.
    pub fn used(&self) -> usize {
        self.input.capacity().max(self.granted).saturating_sub(INPUT) + self.promised + self.output.waiting()
    }

    /// Returns the time for which the client has been idle. 0 while a request is outstanding or a reply is not
    /// collected, and before the client is served.
    pub fn idle_for(&self, now: Wall) -> Wall {
        let is_idle = self.session.is_serving() && self.in_flight == 0 && self.output.waiting() == 0;
        if is_idle { now.since(self.active) } else { Wall(0) }
    }

    /// Processes the next request that has arrived, if it is complete. Returns `true` if it was.
    pub fn next_request(
        &mut self,
        now: Wall,
        budget: &mut Budget,
        request: impl FnOnce(&Session, &Command, Requesting, &mut Vec<u8>) -> Begun,
    ) -> bool {
        self.is_held = !self.has_room() && !self.input.unread().is_empty();
        if self.ending || self.broken || !self.has_room() {
            return false;
        }
        let used = self.used();
        let Connection { session, input, granted, output, in_flight, turnaround, .. } = self;
        let (length, begun) = match output.append(|out| session.take(input.unread(), out)) {
            Taken::Bytes(count) => (count, Begun::Answered),
            Taken::Command(_, command @ Command { kind: Kind::Read, .. })
                if !budget.take(used, command.length as usize) =>
            {
                self.is_held = true;
                return false;
            }
            Taken::Command(count, command) => {
                let requesting = turnaround.note_request(|| now, *in_flight);
                (count, output.append(|out| request(session, &command, requesting, out)))
            }
            Taken::Needs(count) => {
                input.require(count);
                if count > INPUT && *granted == 0 {
                    let is_granted = budget.take(used, count - INPUT);
                    (*granted, self.is_held) = (if is_granted { count } else { 0 }, !is_granted);
                }
                return false;
            }
            Taken::End => {
                self.ending = true;
                return false;
            }
        };
        *granted = 0;
        input.consume(length);
        if let Begun::InProgress(promised) = begun {
            self.in_flight += 1;
            self.promised += promised;
        }
        true
    }

    /// Records the reply to a request, for the client's turnaround.
    pub fn note_answer(&mut self, due: &Due) {
        self.turnaround.note_answer(due, Wall::now);
    }

    /// Replies to an outstanding request with the bytes that `write` appends.
    pub fn answer(&mut self, promised: usize, write: impl FnOnce(&mut Vec<u8>)) {
        self.in_flight -= 1;
        self.promised -= promised;
        self.output.append(write);
    }

    /// Replies to an outstanding request with a complete reply. If it is long, takes the buffer instead of copying.
    pub fn answer_with(&mut self, promised: usize, bytes: &mut Vec<u8>) {
        self.in_flight -= 1;
        self.promised -= promised;
        self.output.push(bytes);
    }
}

impl clients::Connection for Connection {
    fn wants_input(&self) -> bool {
        !self.ending && self.has_room() && self.input.needs() <= INPUT.max(self.granted)
    }

    fn wants_output(&self) -> bool {
        self.output.waiting() > 0 && !self.broken
    }

    fn is_serving(&self) -> bool {
        self.session.is_serving()
    }

    fn is_held(&self) -> bool {
        self.is_held
    }

    fn is_over(&self) -> bool {
        self.broken || (self.ending && self.output.waiting() == 0 && self.in_flight == 0)
    }

    fn stalls_for(&self, now: Wall) -> Wall {
        let is_slow = self.output.waiting() > 0 || self.granted > 0;
        if is_slow && self.used() > SHARE { now.since(self.active) } else { Wall(0) }
    }

    fn since(&self) -> Wall {
        self.since
    }

    fn enter(&mut self, seat: Seat) {
        self.seat = Some(seat);
    }

    fn receive(&mut self, now: Wall) {
        self.active = now;
        match self.input.receive(&mut self.stream) {
            // The client has disconnected or closed its sending side. In the second case it still gets its replies.
            Ok(Some(0)) => self.ending = true,
            Ok(_) => {}
            Err(_) => self.broken = true,
        }
    }

    fn send(&mut self, now: Wall) -> bool {
        if let Some(seat) = &self.seat {
            seat.note(self.in_flight, self.turnaround.counts());
        }
        if self.broken {
            return false;
        }
        let (has_sent, result) = self.output.send(&mut self.stream);
        self.broken = result.is_err();
        if has_sent {
            self.active = now;
        }
        has_sent
    }

    fn end(&mut self) {
        self.ending = true;
    }

    fn mark_broken(&mut self) {
        self.broken = true;
    }
}

/// Result of processing a request.
pub enum Begun {
    /// The request was replied to.
    Answered,
    /// The request is outstanding. The number is the estimated size of its reply in bytes.
    InProgress(usize),
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
