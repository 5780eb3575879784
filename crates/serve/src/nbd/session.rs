//! One client's conversation, without its socket: bytes go in, answers and requests come out.
//!
//! What a client may say is bounded here: options and names have a longest length, payload has one, and what is longer
//! is passed over without being kept. A message that breaks the protocol ends the conversation; one that only asks for
//! what cannot be is answered with the protocol's error.

use super::wire::{self, Errno, Reader, allocation, command, export, flag, handshake, info, option, reply};
use crate::payload::Extent;

/// The longest payload of a request, which clients are told: 32 MiB, as the protocol has it where nothing is said.
pub const LONGEST_PAYLOAD: u32 = 32 << 20;

/// The longest data of an option: a name has at most 4096 bytes, and queries are short.
const LONGEST_OPTION: u32 = 16 << 10;

/// Options that a client may ask for before it chooses an export.
const MOST_OPTIONS: u32 = 256;

/// Extents in one answer to a request for block status.
const MOST_EXTENTS: usize = 1024;

/// The number of the one kind of block status.
const ALLOCATION_ID: u32 = 1;

/// Its name.
const ALLOCATION: &str = "base:allocation";

/// Bytes of a sector: requests are of whole ones.
const SECTOR: u64 = 512;

/// What is exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name. The empty name means it, too.
    pub name: String,
    /// Words for people.
    pub description: String,
    /// Its size.
    pub bytes: u64,
    /// Bytes of a mapping unit: requests of whole ones are the fastest.
    pub unit: u32,
    /// The device takes no writes any more.
    pub read_only: bool,
}

/// A request of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// The client's mark.
    pub cookie: u64,
    /// What to do.
    pub kind: Kind<'a>,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// Force unit access.
    pub fua: bool,
}

/// What a request does. Ranges lie within the export, and are of whole sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// Read.
    Read,
    /// Write these bytes.
    Write(&'a [u8]),
    /// Flush.
    Flush,
    /// Trim.
    Trim,
    /// Write zeroes, which may leave a hole.
    Zero,
    /// Write zeroes that stay allocated.
    ZeroAllocated,
    /// Tell what is allocated, of the first extent only or of as many as there are.
    Status {
        /// Of the first only.
        one: bool,
    },
}

/// What came of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken<'a> {
    /// So many bytes were taken, and answered if that was needed. Call again with what follows.
    Bytes(usize),
    /// So many bytes were a request.
    Command(usize, Command<'a>),
    /// There have to be so many bytes before something can be taken.
    Needs(usize),
    /// The conversation is over.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The client's flags are to come.
    Greeting,
    /// Options are haggled over.
    Options,
    /// So many bytes of an option or a payload are passed over; then the next state follows.
    Skipping(u64, After),
    /// Requests are served.
    Serving,
    /// It is over.
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Option(u32),
    Request(u64, Errno),
}

/// A conversation.
#[derive(Clone, Debug)]
pub struct Session {
    export: Export,
    state: State,
    options: u32,
    no_zeroes: bool,
    structured: bool,
    allocation: bool,
    /// No more clients are served now.
    is_full: bool,
}

/// The answer to a client for which there is no place.
const FULL: &str = "64 clients are connected, and none of them has been idle for 30 s: disconnect one, or try again";

impl Session {
    /// Begins a conversation, with what the server says first.
    pub fn new(export: Export, out: &mut Vec<u8>) -> Session {
        out.extend_from_slice(&wire::GREETING.to_be_bytes());
        out.extend_from_slice(&wire::OPTION.to_be_bytes());
        out.extend_from_slice(&(handshake::FIXED | handshake::NO_ZEROES).to_be_bytes());
        let (state, options) = (State::Greeting, 0);
        Session { export, state, options, no_zeroes: false, structured: false, allocation: false, is_full: false }
    }

    /// Refuses to serve a client that has not chosen its export yet, or no longer does.
    pub fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// Whether requests are served: the export is chosen.
    pub fn is_serving(&self) -> bool {
        self.state == State::Serving || matches!(self.state, State::Skipping(_, After::Request(..)))
    }

    /// Whether replies are structured.
    pub fn is_structured(&self) -> bool {
        self.structured
    }

    /// The export.
    pub fn export(&self) -> &Export {
        &self.export
    }

    /// Takes one message from the front of `input`, as far as it is there, and appends what is said at once to `out`.
    pub fn take<'a>(&mut self, input: &'a [u8], out: &mut Vec<u8>) -> Taken<'a> {
        match self.state {
            State::Greeting => self.greeting(input),
            State::Options => self.option(input, out),
            State::Skipping(rest, after) => self.skip(input, rest, after, out),
            State::Serving => self.request(input, out),
            State::Ended => Taken::End,
        }
    }

    fn end<'a>(&mut self) -> Taken<'a> {
        self.state = State::Ended;
        Taken::End
    }

    fn greeting<'a>(&mut self, input: &'a [u8]) -> Taken<'a> {
        let Some(flags) = Reader(input).u32() else { return Taken::Needs(4) };
        let known = u32::from(handshake::FIXED | handshake::NO_ZEROES);
        // Without fixed newstyle a client could not be told of an error; there is none left that lacks it.
        if flags & !known != 0 || flags & u32::from(handshake::FIXED) == 0 {
            return self.end();
        }
        self.no_zeroes = flags & u32::from(handshake::NO_ZEROES) != 0;
        self.state = State::Options;
        Taken::Bytes(4)
    }

    fn skip<'a>(&mut self, input: &'a [u8], rest: u64, after: After, out: &mut Vec<u8>) -> Taken<'a> {
        let now = (input.len() as u64).min(rest);
        if now == 0 && rest > 0 {
            return Taken::Needs(1);
        }
        self.state = State::Skipping(rest - now, after);
        if rest == now {
            self.state = match after {
                After::Option(option) => {
                    wire::option_reply(out, option, reply::ERR_TOO_BIG, b"the data of this option are too long");
                    State::Options
                }
                After::Request(cookie, error) => {
                    wire::error_reply(out, self.structured, error, cookie);
                    State::Serving
                }
            };
        }
        Taken::Bytes(now as usize)
    }

    fn option<'a>(&mut self, input: &'a [u8], out: &mut Vec<u8>) -> Taken<'a> {
        let mut reader = Reader(input);
        let (Some(magic), Some(option), Some(length)) = (reader.u64(), reader.u32(), reader.u32()) else {
            return Taken::Needs(wire::OPTION_HEAD);
        };
        self.options += 1;
        if magic != wire::OPTION || self.options > MOST_OPTIONS {
            return self.end();
        }
        if length > LONGEST_OPTION {
            self.state = State::Skipping(u64::from(length), After::Option(option));
            // The old way to choose an export has no errors.
            return if option == option::EXPORT_NAME { self.end() } else { Taken::Bytes(wire::OPTION_HEAD) };
        }
        let whole = wire::OPTION_HEAD + length as usize;
        let Some(data) = reader.bytes(length as usize) else {
            self.options -= 1;
            return Taken::Needs(whole);
        };
        let goes_on = match option {
            option::EXPORT_NAME => self.export_name(data, out),
            option::ABORT => {
                wire::option_reply(out, option, reply::ACK, &[]);
                false
            }
            _ => {
                self.answer_option(option, data, out);
                true
            }
        };
        if goes_on { Taken::Bytes(whole) } else { self.end() }
    }

    /// The old way to choose the export; false where there is no such one.
    fn export_name(&mut self, data: &[u8], out: &mut Vec<u8>) -> bool {
        if self.is_full || !std::str::from_utf8(data).is_ok_and(|name| self.is_named(name)) {
            return false;
        }
        out.extend_from_slice(&self.export.bytes.to_be_bytes());
        out.extend_from_slice(&self.flags().to_be_bytes());
        if !self.no_zeroes {
            out.extend_from_slice(&[0; 124]);
        }
        self.state = State::Serving;
        true
    }

    fn answer_option(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) {
        let done = match option {
            option::LIST if data.is_empty() => {
                let mut server = Vec::new();
                push_text(&mut server, &self.export.name);
                server.extend_from_slice(self.export.description.as_bytes());
                wire::option_reply(out, option, reply::SERVER, &server);
                Ok(())
            }
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.structured = true;
                Ok(())
            }
            option::GO if self.is_full => Err((reply::ERR_POLICY, FULL)),
            option::INFO | option::GO => self.describe(option, data, out),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(option, data, out),
            option::LIST | option::STRUCTURED_REPLY => Err((reply::ERR_INVALID, "this option has no data")),
            option::STARTTLS => Err((reply::ERR_UNSUP, "there is no encryption here")),
            _ => Err((reply::ERR_UNSUP, "this option is not known here")),
        };
        match done {
            Ok(()) => {
                wire::option_reply(out, option, reply::ACK, &[]);
                if option == option::GO {
                    self.state = State::Serving;
                }
            }
            Err((kind, message)) => wire::option_reply(out, option, kind, message.as_bytes()),
        }
    }

    fn is_named(&self, name: &str) -> bool {
        name.is_empty() || name == self.export.name
    }

    fn flags(&self) -> u16 {
        let always = export::HAS_FLAGS | export::FLUSH | export::FUA | export::TRIM | export::WRITE_ZEROES;
        // All connections reach one device, whose flush knows of no connection.
        let always = always | export::MULTI_CONN | export::FAST_ZERO;
        let always = if self.export.read_only { always | export::READ_ONLY } else { always };
        if self.structured { always | export::DF } else { always }
    }

    /// Describes the export, as `INFO` and `GO` ask for.
    fn describe(&self, option: u32, data: &[u8], out: &mut Vec<u8>) -> Result<(), (u32, &'static str)> {
        let wrong = (reply::ERR_INVALID, "the data of this option make no sense");
        let mut reader = Reader(data);
        let (name, count) = (reader.text().ok_or(wrong)?, reader.u16().ok_or(wrong)?);
        if reader.0.len() != 2 * usize::from(count) {
            return Err(wrong);
        }
        if !self.is_named(name) {
            return Err((reply::ERR_UNKNOWN, "there is no export of this name; the empty name is the device"));
        }
        let mut asked = [false; 4];
        while let Some(kind) = reader.u16() {
            if let Some(asked) = asked.get_mut(usize::from(kind)) {
                *asked = true;
            }
        }
        let mut told = |kind: u16, data: &[u8]| {
            wire::option_reply(out, option, reply::INFO, &[&kind.to_be_bytes(), data].concat());
        };
        told(info::EXPORT, &[&self.export.bytes.to_be_bytes()[..], &self.flags().to_be_bytes()].concat());
        if asked[usize::from(info::NAME)] {
            told(info::NAME, self.export.name.as_bytes());
        }
        if asked[usize::from(info::DESCRIPTION)] {
            told(info::DESCRIPTION, self.export.description.as_bytes());
        }
        // Told unasked, too: a client that does not know it passes over it.
        let sizes = [SECTOR as u32, self.export.unit.next_power_of_two().clamp(512, LONGEST_PAYLOAD), LONGEST_PAYLOAD];
        told(info::BLOCK_SIZE, &sizes.map(u32::to_be_bytes).concat());
        Ok(())
    }

    /// Names or chooses kinds of block status.
    fn contexts(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) -> Result<(), (u32, &'static str)> {
        let wrong = (reply::ERR_INVALID, "the data of this option make no sense");
        if !self.structured {
            return Err((reply::ERR_INVALID, "block status needs structured replies; ask for them first"));
        }
        let mut reader = Reader(data);
        let (name, count) = (reader.text().ok_or(wrong)?, reader.u32().ok_or(wrong)?);
        let lists = option == option::LIST_META_CONTEXT;
        let mut wanted = lists && count == 0;
        for _ in 0..count {
            let query = reader.text().ok_or(wrong)?;
            wanted |= query == ALLOCATION || (lists && query == "base:");
        }
        if !reader.0.is_empty() {
            return Err(wrong);
        }
        if !self.is_named(name) {
            return Err((reply::ERR_UNKNOWN, "there is no export of this name; the empty name is the device"));
        }
        if !lists {
            self.allocation = wanted;
        }
        if wanted {
            let id = if lists { 0 } else { ALLOCATION_ID };
            let context = [&id.to_be_bytes()[..], ALLOCATION.as_bytes()].concat();
            wire::option_reply(out, option, reply::META_CONTEXT, &context);
        }
        Ok(())
    }

    fn request<'a>(&mut self, input: &'a [u8], out: &mut Vec<u8>) -> Taken<'a> {
        let mut reader = Reader(input);
        let head = (reader.u32(), reader.u16(), reader.u16(), reader.u64(), reader.u64(), reader.u32());
        let (Some(magic), Some(flags), Some(kind), Some(cookie), Some(offset), Some(length)) = head else {
            return Taken::Needs(wire::REQUEST_HEAD);
        };
        if magic != wire::REQUEST || kind == command::DISCONNECT {
            return self.end();
        }
        let checked = self.check(kind, flags, offset, length);
        if kind != command::WRITE || length == 0 {
            return match checked {
                Ok(kind) => {
                    // A flush is of all, whatever range came with it.
                    let (offset, length) = if kind == Kind::Flush { (0, 0) } else { (offset, length) };
                    let fua = flags & flag::FUA != 0;
                    Taken::Command(wire::REQUEST_HEAD, Command { cookie, kind, offset, length, fua })
                }
                Err(error) => {
                    wire::error_reply(out, self.structured, error, cookie);
                    Taken::Bytes(wire::REQUEST_HEAD)
                }
            };
        }
        if let Err(error) = checked {
            self.state = State::Skipping(u64::from(length), After::Request(cookie, error));
            return Taken::Bytes(wire::REQUEST_HEAD);
        }
        match reader.bytes(length as usize) {
            Some(data) => {
                let (kind, fua) = (Kind::Write(data), flags & flag::FUA != 0);
                Taken::Command(wire::REQUEST_HEAD + data.len(), Command { cookie, kind, offset, length, fua })
            }
            None => Taken::Needs(wire::REQUEST_HEAD + length as usize),
        }
    }

    /// Whether a request can be done at all; of a write the payload is still to come.
    fn check(&self, kind: u16, flags: u16, offset: u64, length: u32) -> Result<Kind<'static>, Errno> {
        // Clients are known to set FUA on requests that write nothing.
        let (what, allowed) = match kind {
            command::READ => (Kind::Read, if self.structured { flag::DF } else { 0 }),
            command::WRITE => (Kind::Write(&[]), 0),
            command::FLUSH => (Kind::Flush, 0),
            command::TRIM => (Kind::Trim, 0),
            command::WRITE_ZEROES => {
                let kind = if flags & flag::NO_HOLE == 0 { Kind::Zero } else { Kind::ZeroAllocated };
                (kind, flag::NO_HOLE | flag::FAST_ZERO)
            }
            command::BLOCK_STATUS if self.allocation => {
                (Kind::Status { one: flags & flag::REQ_ONE != 0 }, flag::REQ_ONE)
            }
            _ => return Err(Errno::Invalid),
        };
        if flags & !(allowed | flag::FUA) != 0 {
            return Err(Errno::Invalid);
        }
        if what == Kind::Flush {
            return Ok(what);
        }
        let end = offset.checked_add(u64::from(length)).filter(|end| *end <= self.export.bytes);
        let grows = matches!(what, Kind::Write(_) | Kind::Zero | Kind::ZeroAllocated);
        if end.is_none() {
            return Err(if grows { Errno::NoSpace } else { Errno::Invalid });
        }
        let has_payload = matches!(what, Kind::Read | Kind::Write(_));
        let is_whole = offset.is_multiple_of(SECTOR) && u64::from(length).is_multiple_of(SECTOR);
        if length == 0 || !is_whole || (has_payload && length > LONGEST_PAYLOAD) {
            return Err(Errno::Invalid);
        }
        if flags & flag::FAST_ZERO != 0 && !self.zeroes_fast(what, offset, length) {
            return Err(Errno::NotSupported);
        }
        Ok(what)
    }

    /// Whether the device writes these zeroes by forgetting units, and not by programming any.
    fn zeroes_fast(&self, what: Kind, offset: u64, length: u32) -> bool {
        let unit = u64::from(self.export.unit);
        what == Kind::Zero && offset.is_multiple_of(unit) && u64::from(length).is_multiple_of(unit)
    }

    /// Appends the answer to a request for block status, of which `extent` tells what is at the start of a range.
    pub fn status(
        &self,
        command: &Command,
        one: bool,
        extent: impl Fn(std::ops::Range<u64>) -> (Extent, u64),
        out: &mut Vec<u8>,
    ) {
        let end = command.offset + u64::from(command.length);
        let most = if one { 1 } else { MOST_EXTENTS };
        let mut data = ALLOCATION_ID.to_be_bytes().to_vec();
        let mut at = command.offset;
        while at < end && data.len() < 4 + 8 * most {
            let (what, until) = extent(at..end);
            let flags = if what == Extent::Hole { allocation::HOLE | allocation::ZERO } else { 0 };
            data.extend_from_slice(&((until - at) as u32).to_be_bytes());
            data.extend_from_slice(&flags.to_be_bytes());
            at = until;
        }
        out.extend_from_slice(&wire::chunk_head(wire::chunk::BLOCK_STATUS, command.cookie, data.len() as u32));
        out.extend_from_slice(&data);
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}
