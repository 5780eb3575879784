//! A client and its socket: bytes on their way in and out.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use super::budget::{Budget, SHARE};
use super::session::{Command, Export, Kind, Session, Taken};
use crate::clock::Wall;
use crate::lateness::{Asking, Due};
use crate::roster::{Peer, Seat};
use crate::turnaround::Turnaround;

/// A socket.
#[derive(Debug)]
pub enum Stream {
    /// On this machine.
    Unix(UnixStream),
    /// TCP.
    Tcp(TcpStream),
}

impl Stream {
    /// Returns who is at the other end.
    pub fn peer(&self) -> Peer {
        match self {
            Stream::Unix(stream) => Peer::of_unix(stream),
            Stream::Tcp(stream) => Peer::of_tcp(stream.peer_addr().ok()),
        }
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(into),
            Stream::Tcp(stream) => stream.read(into),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write_vectored(slices),
            Stream::Tcp(stream) => stream.write_vectored(slices),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// Bytes that are read at once; the room for input where no single request needs more.
const INPUT: usize = 256 << 10;

/// Replies up to this size are put together and sent at once; longer ones are sent from where they are.
const SMALL: usize = 32 << 10;

/// Bytes of replies that are put together.
const TOGETHER: usize = 128 << 10;

/// Requests of a client that may be in progress.
const MOST_IN_FLIGHT: u32 = 1024;

/// Bytes of replies that may be on their way to a client, in progress or waiting for it to read.
const MOST_PROMISED: usize = 64 << 20;

/// A client.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    /// What was said so far.
    pub session: Session,
    /// When it connected.
    pub since: Wall,
    /// Its entry in the list of clients. `None` if nobody lists them.
    pub seat: Option<Seat>,
    input: Vec<u8>,
    /// Of `input`: bytes that were taken, and bytes that are there.
    taken: usize,
    filled: usize,
    /// Bytes from `taken` on that it needs to go on.
    needs: usize,
    /// Bytes of `needs` that the budget has granted; 0 where it needs no more than [`INPUT`].
    granted: usize,
    output: VecDeque<Vec<u8>>,
    /// Bytes of the first of them that were sent, and of all that were not.
    sent: usize,
    waiting: usize,
    /// Requests in progress, and bytes that they will be answered with.
    in_flight: u32,
    promised: usize,
    turnaround: Turnaround,
    /// When bytes last went in or out.
    active: Wall,
    /// True if a request that has arrived waits for memory for it or its reply.
    is_held: bool,
    /// Nothing more is read; it is closed when all is sent.
    ending: bool,
    broken: bool,
}

impl Connection {
    /// A client that has just connected.
    pub fn new(stream: Stream, export: Export, now: Wall) -> Connection {
        let mut greeting = Vec::with_capacity(TOGETHER);
        let session = Session::new(export, &mut greeting);
        Connection {
            stream,
            session,
            since: now,
            seat: None,
            input: vec![0; INPUT],
            taken: 0,
            filled: 0,
            needs: 1,
            granted: 0,
            waiting: greeting.len(),
            output: VecDeque::from([greeting]),
            sent: 0,
            in_flight: 0,
            promised: 0,
            turnaround: Turnaround::default(),
            active: now,
            is_held: false,
            ending: false,
            broken: false,
        }
    }

    /// Whether more may be asked for: its answers fit into what it is given.
    fn has_room(&self) -> bool {
        self.in_flight < MOST_IN_FLIGHT && self.promised + self.waiting < MOST_PROMISED
    }

    /// Returns the bytes of memory that its requests and replies take, or may come to take.
    pub fn used(&self) -> usize {
        self.input.len().max(self.granted).saturating_sub(INPUT) + self.promised + self.waiting
    }

    /// Returns `true` if a request that has arrived waits for memory.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Returns how long the client has been idle; 0 while a request is outstanding or a reply is not collected, and
    /// before it is served.
    pub fn idle_for(&self, now: Wall) -> Wall {
        let is_idle = self.session.is_serving() && self.in_flight == 0 && self.waiting == 0;
        if is_idle { now.since(self.active) } else { Wall(0) }
    }

    /// Returns how long the client has held memory beyond its share without collecting replies or sending the rest of a
    /// request.
    pub fn stalls_for(&self, now: Wall) -> Wall {
        let is_slow = self.waiting > 0 || self.granted > 0;
        if is_slow && self.used() > SHARE { now.since(self.active) } else { Wall(0) }
    }

    /// Whether to wait for its bytes.
    pub fn wants_input(&self) -> bool {
        !self.ending && self.has_room() && self.needs <= INPUT.max(self.granted)
    }

    /// Whether to wait until it takes bytes.
    pub fn wants_output(&self) -> bool {
        self.waiting > 0 && !self.broken
    }

    /// Whether there is nothing left to do with it.
    pub fn is_over(&self) -> bool {
        self.broken || (self.ending && self.waiting == 0 && self.in_flight == 0)
    }

    /// Reads no more; what is in progress is answered.
    pub fn end(&mut self) {
        self.ending = true;
    }

    /// The client is gone, and nothing more can be sent.
    pub fn lose(&mut self) {
        self.broken = true;
    }

    /// Reads what has come.
    pub fn receive(&mut self, now: Wall) {
        self.make_room();
        self.active = now;
        match self.stream.read(&mut self.input[self.filled..]) {
            Ok(0) => {
                // Who has left does not want answers; who has only stopped asking gets them.
                self.ending = true;
            }
            Ok(count) => self.filled += count,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.broken = true,
        }
    }

    /// Room for what is needed next. The longest request and its payload is the most that there will be.
    fn make_room(&mut self) {
        if self.taken == self.filled {
            (self.taken, self.filled) = (0, 0);
        }
        if self.taken + self.needs > self.input.len() || self.filled == self.input.len() {
            self.input.copy_within(self.taken..self.filled, 0);
            (self.taken, self.filled) = (0, self.filled - self.taken);
        }
        if self.needs.max(self.filled + 1) > self.input.len() {
            // Memory that nothing is written to takes no room: a client may never send the rest.
            let mut larger = vec![0; self.needs.max(2 * INPUT)];
            larger[..self.filled].copy_from_slice(&self.input[..self.filled]);
            self.input = larger;
        }
    }

    /// Gives back the room of a long request that was taken.
    fn shrink(&mut self) {
        if self.input.len() > INPUT && self.taken == self.filled && self.granted == 0 {
            (self.taken, self.filled) = (0, 0);
            self.input = vec![0; INPUT];
        }
    }

    /// Takes the next request that is there, with what is known of the client. Returns `true` if one was whole.
    pub fn next_request(
        &mut self,
        now: Wall,
        budget: &mut Budget,
        request: impl FnOnce(&Session, &Command, Asking, &mut Vec<u8>) -> Begun,
    ) -> bool {
        self.is_held = !self.has_room() && self.taken < self.filled;
        if self.ending || self.broken || !self.has_room() {
            return false;
        }
        let used = self.used();
        let Connection {
            session, input, taken, filled, needs, granted, output, waiting, in_flight, turnaround, ..
        } = self;
        let out = place(output);
        let before = out.len();
        let (length, begun) = match session.take(&input[*taken..*filled], out) {
            Taken::Bytes(count) => (count, Begun::Answered),
            Taken::Command(_, command @ Command { kind: Kind::Read, .. })
                if !budget.take(used, command.length as usize) =>
            {
                self.is_held = true;
                return false;
            }
            Taken::Command(count, command) => {
                let asking = turnaround.asks(|| now, *in_flight);
                (count, request(session, &command, asking, out))
            }
            Taken::Needs(count) => {
                *needs = count;
                if count > INPUT && *granted == 0 {
                    let is_granted = budget.take(used, count - INPUT);
                    (*granted, self.is_held) = (if is_granted { count } else { 0 }, !is_granted);
                }
                return false;
            }
            Taken::End => {
                *waiting += out.len() - before;
                self.ending = true;
                return false;
            }
        };
        *waiting += out.len() - before;
        *taken += length;
        (*needs, *granted) = (1, 0);
        if let Begun::InProgress(promised) = begun {
            self.in_flight += 1;
            self.promised += promised;
        }
        self.shrink();
        true
    }

    /// A request in progress has an answer that is to be sent then.
    pub fn note_answer(&mut self, due: &Due) {
        self.turnaround.note_answer(due, Wall::now);
    }

    /// A request that was in progress is answered by `head`, and by `bytes` where there are more.
    pub fn answer(&mut self, promised: usize, write: impl FnOnce(&mut Vec<u8>)) {
        self.in_flight -= 1;
        self.promised -= promised;
        let out = place(&mut self.output);
        let before = out.len();
        write(out);
        self.waiting += out.len() - before;
    }

    /// The same by bytes that are complete; they are taken where they are many.
    pub fn answer_with(&mut self, promised: usize, bytes: &mut Vec<u8>) {
        if bytes.len() <= SMALL {
            return self.answer(promised, |out| out.extend_from_slice(bytes));
        }
        self.in_flight -= 1;
        self.promised -= promised;
        self.waiting += bytes.len();
        self.output.push_back(std::mem::take(bytes));
    }

    /// Sends what the socket takes. Returns `true` if that was anything.
    pub fn send(&mut self, now: Wall) -> bool {
        if let Some(seat) = &self.seat {
            seat.note(self.in_flight, self.turnaround.counts());
        }
        let before = self.waiting;
        while self.waiting > 0 && !self.broken {
            const SLICES: usize = 32;
            let mut slices = [IoSlice::new(&[]); SLICES];
            let mut count = 0;
            for (place, bytes) in slices.iter_mut().zip(&self.output) {
                let skipped = if count == 0 { self.sent } else { 0 };
                *place = IoSlice::new(&bytes[skipped..]);
                count += 1;
            }
            match self.stream.write_vectored(&slices[..count]) {
                Ok(count) => self.note_sent(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.broken = true,
            }
        }
        let has_sent = self.waiting < before;
        if has_sent {
            self.active = now;
        }
        has_sent
    }

    fn note_sent(&mut self, count: usize) {
        self.waiting -= count;
        self.sent += count;
        let mut left = self.output.len();
        while let Some(first) = self.output.front_mut().filter(|first| self.sent >= first.len()) {
            self.sent -= first.len();
            left -= 1;
            if left == 0 && first.capacity() <= 2 * TOGETHER {
                first.clear(); // To be used again.
                break;
            }
            self.output.pop_front();
        }
    }
}

/// What became of a request that was taken.
pub enum Begun {
    /// It is answered already.
    Answered,
    /// It is in progress, and will be answered by about so many bytes.
    InProgress(usize),
}

/// Where small replies are put together.
fn place(output: &mut VecDeque<Vec<u8>>) -> &mut Vec<u8> {
    let has_room = output.back().is_some_and(|last| last.capacity() >= TOGETHER && last.len() + SMALL < TOGETHER);
    if !has_room {
        output.push_back(Vec::with_capacity(TOGETHER));
    }
    let last = output.len() - 1;
    &mut output[last]
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
