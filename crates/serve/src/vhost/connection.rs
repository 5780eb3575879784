//! A client and its socket. The rings need no socket; it carries messages that lay them out.
//!
//! The `vhost` crate reads a message as a blocking call, and answers it as another. A message is therefore only read
//! when all of it is there, and when there is room for an answer: the loop never waits for a client.

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
use crate::lateness::{Asking, Due};
use crate::roster::Seat;
use crate::turnaround::Turnaround;

/// Bytes of the head of a message: what, how, and how many bytes follow.
const HEAD: usize = 12;

/// Messages that are read in one turn.
const MESSAGES: usize = 64;

/// A client has to have said something by then.
const FIRST_WORD: Wall = Wall(30_000_000_000);

/// A message that has begun has to be whole by then.
const WHOLE: Wall = Wall(1_000_000_000);

/// Requests of a client that may be in progress.
const MOST_IN_FLIGHT: u32 = 4096;

/// Bytes of payload of a client that may be in progress.
const MOST_PROMISED: usize = 64 << 20;

/// Messages that change what requests in progress stand on; they wait until there are none.
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

/// What keeps the next message from being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// Nothing but that there is none.
    No,
    /// The rest of it is not there, since then.
    Partial(Wall),
    /// Requests are in progress.
    Busy,
    /// The client does not read our answers.
    Clogged,
}

/// A client.
pub struct Connection {
    socket: UnixStream,
    handler: BackendReqHandler<Mutex<Session>>,
    session: Arc<Mutex<Session>>,
    since: Wall,
    /// When it last said something.
    active: Wall,
    /// Its entry in the list of clients. `None` if nobody lists them.
    pub seat: Option<Seat>,
    has_spoken: bool,
    held: Held,
    in_flight: u32,
    promised: usize,
    turnaround: Turnaround,
    broken: bool,
}

impl Connection {
    /// A client that has just connected.
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

    /// Publishes how many requests are in progress, and how many turns were late.
    pub fn publish(&self) {
        if let Some(seat) = &self.seat {
            seat.note(self.in_flight, self.turnaround.counts());
        }
    }

    /// What was said so far.
    pub fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client is gone, or has to go.
    pub fn lose(&mut self) {
        self.broken = true;
    }

    /// Whether there is nothing left to do with it.
    pub fn is_over(&self, now: Wall) -> bool {
        let too_slow = match self.held {
            Held::Partial(since) => now.since(since) > WHOLE,
            _ => !self.has_spoken && now.since(self.since) > FIRST_WORD,
        };
        self.broken || too_slow
    }

    /// Returns how long the client has been idle: without a running ring and silent. 0 while a ring runs, because the
    /// machine that it belongs to uses the disk, however rarely.
    pub fn idle_for(&self, now: Wall) -> Wall {
        let is_used = self.session().rings.iter().any(Ring::is_running);
        if is_used { Wall(0) } else { now.since(self.active) }
    }

    /// Whether time alone may end it, or bring more of a message; then how soon to look.
    pub fn looks_at(&self, now: Wall) -> Wall {
        match self.held {
            Held::Partial(_) => now.later(Wall::from_us(1000)),
            Held::Busy if self.in_flight == 0 => now,
            _ if !self.has_spoken => now.later(Wall(1_000_000_000)),
            _ => Wall::NEVER,
        }
    }

    /// What to wait for at its socket.
    pub fn wants(&self) -> PollFlags {
        match self.held {
            Held::No => PollFlags::IN,
            Held::Clogged => PollFlags::OUT,
            Held::Partial(_) | Held::Busy => PollFlags::empty(),
        }
    }

    /// Whether requests are taken from its rings.
    pub fn takes_requests(&self) -> bool {
        let has_room = self.in_flight < MOST_IN_FLIGHT && self.promised < MOST_PROMISED;
        has_room && !self.broken && self.held != Held::Busy
    }

    /// A request is in progress, with so many bytes of payload. Returns what is known of the client.
    pub fn begin(&mut self, promised: usize) -> Asking {
        let asking = self.turnaround.asks(Wall::now, self.in_flight);
        self.in_flight += 1;
        self.promised += promised;
        asking
    }

    /// It is answered.
    pub fn end(&mut self, due: &Due, promised: usize) {
        self.turnaround.note_answer(due, Wall::now);
        self.in_flight -= 1;
        self.promised -= promised;
    }

    /// Whether something keeps a message that may have passed.
    pub fn is_held(&self) -> bool {
        matches!(self.held, Held::Partial(_)) || (self.held == Held::Busy && self.in_flight == 0)
    }

    /// Reads the messages that are there.
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

    /// What keeps the next message from being read, or nothing; an error where there will be none.
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
        // A quarter of the buffer is free then, which the longest answer fits into.
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
