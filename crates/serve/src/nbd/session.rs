//! Session of an NBD client, without its socket: consumes bytes, and produces replies and requests.
//!
//! All input is bounded: options, names and payload have maximum lengths, and longer input is skipped without storing
//! it. A violation of the protocol ends the session. A request that cannot be performed gets an error reply.

use floatgate_core::sim::request::SECTOR;

use super::wire::{self, Errno, Reader, allocation, command, export, flag, handshake, info, option, reply};
use crate::payload::Extent;

/// Maximum payload of a request. Clients are told this limit: 32 MiB, which is also the default of the protocol.
pub const LONGEST_PAYLOAD: u32 = 32 << 20;

/// Maximum length of an option's data. A name has at most 4096 bytes, and queries are short.
const LONGEST_OPTION: u32 = 16 << 10;

/// Maximum number of options that a client may negotiate.
const MAX_OPTIONS: u32 = 256;

/// Maximum number of extents in one block status reply.
const MAX_EXTENTS: usize = 1024;

/// ID of the only metadata context.
const ALLOCATION_ID: u32 = 1;

/// Name of the only metadata context.
const ALLOCATION: &str = "base:allocation";

/// The exported device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Name of the export. The empty name stands for it as well.
    pub name: String,
    /// Description for people.
    pub description: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes of a logical block. The server completes requests that do not consist of whole logical blocks by reading
    /// the rest.
    pub sector: u32,
    /// Bytes of a mapping unit. Requests of whole mapping units are the fastest.
    pub unit: u32,
    /// True if the device no longer accepts writes.
    pub read_only: bool,
}

/// A request of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// The client's identifier of the request.
    pub cookie: u64,
    /// Operation.
    pub kind: Kind<'a>,
    /// First byte of the range.
    pub offset: u64,
    /// Length of the range in bytes.
    pub length: u32,
    /// Force unit access.
    pub fua: bool,
}

/// Operation of a request. Its range lies within the export.
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
    /// Query the allocation status.
    Status {
        /// True to report only the first extent.
        one: bool,
    },
}

/// Result of processing input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken<'a> {
    /// This number of bytes was consumed, and replied to if necessary. Call again with the following input.
    Bytes(usize),
    /// This number of bytes contained a request.
    Command(usize, Command<'a>),
    /// The input has to have at least this number of bytes.
    Needs(usize),
    /// The session is over.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Expecting the client's flags.
    Greeting,
    /// Negotiating options.
    Options,
    /// Skipping this number of bytes of an option or a payload, before the following state.
    Skipping(u64, After),
    /// Serving requests.
    Serving,
    /// The session is over.
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Option(u32),
    Request(u64, Errno),
}

/// A session.
#[derive(Clone, Debug)]
pub struct Session {
    export: Export,
    state: State,
    options: u32,
    no_zeroes: bool,
    structured: bool,
    allocation: bool,
    /// True if no more clients can be served.
    is_full: bool,
}

/// Message for a client for which there is no free slot.
const FULL: &str = "64 clients are connected, and none has been idle for 30 s; disconnect one, or try again";

impl Session {
    /// Starts a session, and appends the server's greeting to `out`.
    pub fn new(export: Export, out: &mut Vec<u8>) -> Session {
        out.extend_from_slice(&wire::GREETING.to_be_bytes());
        out.extend_from_slice(&wire::OPTION.to_be_bytes());
        out.extend_from_slice(&(handshake::FIXED | handshake::NO_ZEROES).to_be_bytes());
        let state = State::Greeting;
        let options = 0;
        Session { export, state, options, no_zeroes: false, structured: false, allocation: false, is_full: false }
    }

    /// Sets whether the session refuses to be served. Affects only a client that has not chosen its export.
    pub fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// Returns `true` if the client has chosen its export.
    pub fn is_serving(&self) -> bool {
        self.state == State::Serving || matches!(self.state, State::Skipping(_, After::Request(..)))
    }

    /// Returns `true` if replies are structured.
    pub fn is_structured(&self) -> bool {
        self.structured
    }

    /// Returns the export.
    pub fn export(&self) -> &Export {
        &self.export
    }

    /// Processes one message at the front of `input`, if it is complete. Appends immediate replies to `out`.
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
        // Without fixed newstyle, the client could not receive errors. All clients in use support it.
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
        if magic != wire::OPTION || self.options > MAX_OPTIONS {
            return self.end();
        }
        if length > LONGEST_OPTION {
            self.state = State::Skipping(u64::from(length), After::Option(option));
            // The obsolete way to choose an export has no error reply.
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

    /// Chooses the export, the obsolete way. Returns `false` if there is no such export.
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
            option::STARTTLS => Err((reply::ERR_UNSUP, "encryption is not supported")),
            _ => Err((reply::ERR_UNSUP, "unknown option")),
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
        // All connections reach one device, whose flush covers all requests.
        let always = always | export::MULTI_CONN | export::FAST_ZERO;
        let always = if self.export.read_only { always | export::READ_ONLY } else { always };
        if self.structured { always | export::DF } else { always }
    }

    /// Describes the export, for `INFO` and `GO`.
    fn describe(&self, option: u32, data: &[u8], out: &mut Vec<u8>) -> Result<(), (u32, &'static str)> {
        let wrong = (reply::ERR_INVALID, "malformed option data");
        let mut reader = Reader(data);
        let (name, count) = (reader.text().ok_or(wrong)?, reader.u16().ok_or(wrong)?);
        if reader.0.len() != 2 * usize::from(count) {
            return Err(wrong);
        }
        if !self.is_named(name) {
            return Err((reply::ERR_UNKNOWN, "unknown export; the empty name selects the device"));
        }
        let mut requested = [false; 4];
        while let Some(kind) = reader.u16() {
            if let Some(requested) = requested.get_mut(usize::from(kind)) {
                *requested = true;
            }
        }
        let mut reported = |kind: u16, data: &[u8]| {
            wire::option_reply(out, option, reply::INFO, &[&kind.to_be_bytes(), data].concat());
        };
        reported(info::EXPORT, &[&self.export.bytes.to_be_bytes()[..], &self.flags().to_be_bytes()].concat());
        if requested[usize::from(info::NAME)] {
            reported(info::NAME, self.export.name.as_bytes());
        }
        if requested[usize::from(info::DESCRIPTION)] {
            reported(info::DESCRIPTION, self.export.description.as_bytes());
        }
        // Sent even if not requested, because clients ignore information that they do not know.
        let Export { sector, unit, .. } = self.export;
        // Requests have any alignment. Larger logical blocks are an option of the device, for clients to see.
        let least = if u64::from(sector) == SECTOR { 1 } else { sector };
        let sizes = [least, unit.next_power_of_two().clamp(sector, LONGEST_PAYLOAD), LONGEST_PAYLOAD];
        reported(info::BLOCK_SIZE, &sizes.map(u32::to_be_bytes).concat());
        Ok(())
    }

    /// Lists or chooses metadata contexts.
    fn contexts(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) -> Result<(), (u32, &'static str)> {
        let wrong = (reply::ERR_INVALID, "malformed option data");
        if !self.structured {
            return Err((reply::ERR_INVALID, "block status requires structured replies; negotiate them first"));
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
            return Err((reply::ERR_UNKNOWN, "unknown export; the empty name selects the device"));
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
                    // A flush covers the whole device, regardless of the range in the request.
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
                let kind = Kind::Write(data);
                let fua = flags & flag::FUA != 0;
                Taken::Command(wire::REQUEST_HEAD + data.len(), Command { cookie, kind, offset, length, fua })
            }
            None => Taken::Needs(wire::REQUEST_HEAD + length as usize),
        }
    }

    /// Checks that a request is valid. The payload of a write may not have arrived yet.
    fn check(&self, kind: u16, flags: u16, offset: u64, length: u32) -> Result<Kind<'static>, Errno> {
        // Some clients set FUA on requests that write nothing.
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
        if length == 0 || (has_payload && length > LONGEST_PAYLOAD) {
            return Err(Errno::Invalid);
        }
        if flags & flag::FAST_ZERO != 0 && !self.zeroes_fast(what, offset, length) {
            return Err(Errno::NotSupported);
        }
        Ok(what)
    }

    /// Returns `true` if the device performs this zeroing by unmapping units, without programming any.
    fn zeroes_fast(&self, what: Kind, offset: u64, length: u32) -> bool {
        let unit = u64::from(self.export.unit);
        what == Kind::Zero && offset.is_multiple_of(unit) && u64::from(length).is_multiple_of(unit)
    }

    /// Appends the reply to a block status request. `extent` returns the kind of payload at the start of a range.
    pub fn status(
        &self,
        command: &Command,
        one: bool,
        extent: impl Fn(std::ops::Range<u64>) -> (Extent, u64),
        out: &mut Vec<u8>,
    ) {
        let end = command.offset + u64::from(command.length);
        let sector = u64::from(self.export.sector);
        let most = if one { 1 } else { MAX_EXTENTS };
        let mut data = ALLOCATION_ID.to_be_bytes().to_vec();
        let mut at = command.offset;
        while at < end && data.len() < 4 + 8 * most {
            let (what, until) = extent(at / sector * sector..end.next_multiple_of(sector));
            let until = until.min(end);
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
