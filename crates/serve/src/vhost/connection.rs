//! A client's connection, which carries the messages that set up the rings.
//!
//! The `vhost` crate reads a message with a blocking call, and replies with another one. A message is therefore read
//! only when it has arrived completely and the socket has space for a reply, so that the loop never waits for a client.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};
use vhost::vhost_user::BackendReqHandler;
use vhost::vhost_user::message::{FrontendReq, MAX_MSG_SIZE};

use super::blk::Disk;
use super::ring::Ring;
use super::session::Session;
use crate::clock::Wall;
use crate::lateness::{Due, Requesting};
use crate::roster::Seat;
use crate::turnaround::Turnaround;

/// Bytes of a message header: request, flags, size.
const HEAD: usize = 12;

/// Maximum number of messages read per loop iteration.
const MESSAGES: usize = 64;

/// Time limit for a client to send its first message.
const FIRST_WORD: Wall = Wall(30_000_000_000);

/// Time limit for the rest of a message that has arrived in part.
const WHOLE: Wall = Wall(1_000_000_000);

/// Maximum number of outstanding requests of a client.
const MAX_IN_FLIGHT: u32 = 4096;

/// Maximum payload in bytes of a client's outstanding requests.
const MAX_PROMISED: usize = 64 << 20;

/// Messages that change what outstanding requests depend on. They are delayed until no request is outstanding.
const QUIET: [FrontendReq; 11] = [
    FrontendReq::RESET_OWNER,
    FrontendReq::RESET_DEVICE,
    FrontendReq::SET_FEATURES,
    FrontendReq::SET_MEM_TABLE,
    FrontendReq::ADD_MEM_REG,
    FrontendReq::REM_MEM_REG,
    FrontendReq::SET_VRING_NUM,
    FrontendReq::SET_VRING_ADDR,
    FrontendReq::SET_VRING_BASE,
    FrontendReq::GET_VRING_BASE,
    FrontendReq::SET_INFLIGHT_FD,
];

/// Reason why the next message is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// No message has arrived.
    No,
    /// Only a part of the message has arrived. The time is that of its first part.
    Partial(Wall),
    /// Requests are outstanding.
    Busy,
    /// The client does not read the replies to its messages.
    Clogged,
}

/// A connected client.
pub struct Connection {
    socket: UnixStream,
    handler: BackendReqHandler<Mutex<Session>>,
    session: Arc<Mutex<Session>>,
    since: Wall,
    /// Time of the last message.
    active: Wall,
    /// Entry in the roster. `None` if there is no roster.
    pub seat: Option<Seat>,
    has_spoken: bool,
    held: Held,
    in_flight: u32,
    promised: usize,
    turnaround: Turnaround,
    broken: bool,
}

impl Connection {
    /// Creates the connection of a new client.
    pub fn new(socket: UnixStream, disk: Disk, now: Wall) -> io::Result<Connection> {
        socket.set_nonblocking(false)?;
        let session = Arc::new(Mutex::new(Session::new(disk)));
        let handler = BackendReqHandler::from_stream(socket.try_clone()?, Arc::clone(&session));
        Ok(Connection {
            socket,
            handler,
            session,
            since: now,
            active: now,
            seat: None,
            has_spoken: false,
            held: Held::No,
            in_flight: 0,
            promised: 0,
            turnaround: Turnaround::default(),
            broken: false,
        })
    }

    /// Updates the client's entry in the roster.
    pub fn publish(&self) {
        if let Some(seat) = &self.seat {
            seat.note(self.in_flight, self.turnaround.counts());
        }
    }

    /// Returns the state of the protocol.
    pub fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the connection as lost.
    pub fn lose(&mut self) {
        self.broken = true;
    }

    /// Returns `true` if the connection is finished and can be dropped.
    pub fn is_over(&self, now: Wall) -> bool {
        let too_slow = match self.held {
            Held::Partial(since) => now.since(since) > WHOLE,
            _ => !self.has_spoken && now.since(self.since) > FIRST_WORD,
        };
        self.broken || too_slow
    }

    /// Returns the time for which the client has been idle: without a running ring, and without messages. 0 while a
    /// ring runs, because its machine uses the device, even if rarely.
    pub fn idle_for(&self, now: Wall) -> Wall {
        let is_used = self.session().rings.iter().any(Ring::is_running);
        if is_used { Wall(0) } else { now.since(self.active) }
    }

    /// Returns the time at which to check the connection again, because of a time limit or a partial message.
    pub fn looks_at(&self, now: Wall) -> Wall {
        match self.held {
            Held::Partial(_) => now.later(Wall::from_us(1000)),
            Held::Busy if self.in_flight == 0 => now,
            _ if !self.has_spoken => now.later(Wall(1_000_000_000)),
            _ => Wall::NEVER,
        }
    }

    /// Returns the events to wait for at the socket.
    pub fn wants(&self) -> PollFlags {
        match self.held {
            Held::No => PollFlags::IN,
            Held::Clogged => PollFlags::OUT,
            Held::Partial(_) | Held::Busy => PollFlags::empty(),
        }
    }

    /// Returns `true` if requests may be taken from the rings.
    pub fn takes_requests(&self) -> bool {
        let has_room = self.in_flight < MAX_IN_FLIGHT && self.promised < MAX_PROMISED;
        has_room && !self.broken && self.held != Held::Busy
    }

    /// Adds an outstanding request with `promised` bytes of payload. Returns information about the client.
    pub fn begin(&mut self, promised: usize) -> Requesting {
        let requesting = self.turnaround.note_request(Wall::now, self.in_flight);
        self.in_flight += 1;
        self.promised += promised;
        requesting
    }

    /// Removes an outstanding request after its reply.
    pub fn end(&mut self, due: &Due, promised: usize) {
        self.turnaround.note_answer(due, Wall::now);
        self.in_flight -= 1;
        self.promised -= promised;
    }

    /// Returns `true` if the reason for not reading the next message may have ended.
    pub fn is_held(&self) -> bool {
        matches!(self.held, Held::Partial(_)) || (self.held == Held::Busy && self.in_flight == 0)
    }

    /// Reads the messages that have arrived.
    pub fn receive(&mut self, now: Wall) {
        for _ in 0..MESSAGES {
            match self.next_message(now) {
                Ok(Some(held)) => {
                    self.held = held;
                    return;
                }
                Ok(None) if self.handler.handle_request().is_ok() => (self.has_spoken, self.active) = (true, now),
                Ok(None) | Err(()) => {
                    self.broken = true;
                    return;
                }
            }
        }
        self.held = Held::No;
    }

    /// Returns the reason why the next message cannot be read, `None` if it can, or an error if the connection has
    /// ended.
    fn next_message(&self, now: Wall) -> Result<Option<Held>, ()> {
        let mut head = [0; HEAD];
        let seen = match recv(&self.socket, &mut head[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(()),
            Ok((seen, _)) => seen,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(Some(Held::No)),
            Err(_) => return Err(()),
        };
        let since = if let Held::Partial(since) = self.held { since } else { now };
        let number = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (code, size) = (number(0), number(8) as usize);
        if seen < HEAD {
            return Ok(Some(Held::Partial(since)));
        }
        if size > MAX_MSG_SIZE {
            return Err(());
        }
        if rustix::io::ioctl_fionread(&self.socket).map_err(drop)? < (HEAD + size) as u64 {
            return Ok(Some(Held::Partial(since)));
        }
        if self.in_flight > 0 && FrontendReq::try_from(code).is_ok_and(|code| QUIET.contains(&code)) {
            return Ok(Some(Held::Busy));
        }
        // A writable socket has a quarter of its buffer free, which is enough for the longest reply.
        let mut fds = [PollFd::new(&self.socket, PollFlags::OUT)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_free = poll(&mut fds, Some(&at_once)).is_ok_and(|ready| ready > 0);
        Ok(if is_free { None } else { Some(Held::Clogged) })
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
