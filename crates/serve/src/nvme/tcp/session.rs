//! Session of a connection, without its socket: consumes PDUs, and produces commands and replies.
//!
//! All input is bounded: the PDUs of a host have a maximum length, and a transfer starts only when there is memory for
//! it. A violation of the protocol ends the session with a termination PDU.

use std::collections::VecDeque;

use super::pdu::{self, COMMON, Common, DIGEST, Fatal, HEADER, INITIALIZE, flag, kind};
use crate::nvme::target::Queue;
use crate::nvme::wire::{self, Command, DataLocation, Direction, Status, get, put};
use crate::nvme::{CAPSULE_DATA, LONGEST_TRANSFER};

/// Maximum bytes of data in a PDU of the host.
pub const LONGEST_DATA: u32 = 128 << 10;

/// Maximum bytes of a PDU of the host.
pub const LONGEST_PDU: usize = LONGEST_DATA as usize + (1 << 10);

/// Result of processing input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken<'a> {
    /// This number of bytes was consumed, and replied to if necessary. Call again with the following input.
    Bytes(usize),
    /// The input has to have at least this number of bytes.
    Needs(usize),
    /// This number of bytes contained a command, or the last data of one.
    Command(usize, Request<'a>),
    /// The session is over.
    End,
}

/// A command, and its data.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The command.
    pub command: Command,
    /// Number of bytes that its descriptor names.
    pub length: u32,
    /// Data of the command.
    pub payload: Payload<'a>,
}

impl PartialEq for Request<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.command.0, self.length, &self.payload) == (other.command.0, other.length, &other.payload)
    }
}

impl Eq for Request<'_> {}

/// Data of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// The command has no data, or returns some.
    None,
    /// The data is in the capsule.
    Capsule(&'a [u8]),
    /// The data has to be transferred: see [`Session::transfer`].
    Missing,
    /// The data was transferred.
    Transferred(Vec<u8>),
    /// The data was transferred, but a digest of it is wrong.
    Damaged(Vec<u8>),
    /// The data is invalid.
    Invalid(Status),
}

/// A transfer from the host.
#[derive(Debug)]
struct Transfer {
    command: Command,
    length: u32,
    data: Vec<u8>,
    /// True if a digest was wrong. The command fails when all its data has arrived.
    is_damaged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Expecting the request to initialize.
    Greeting,
    Open,
    Ended,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    state: State,
    header_digest: bool,
    data_digest: bool,
    /// Alignment of data to the host in bytes.
    align: usize,
    /// The queue of this connection.
    pub queue: Queue,
    /// Commands that wait for memory.
    pub deferred: VecDeque<(Command, u32)>,
    /// Transfers, indexed by tag.
    transfers: Vec<Option<Transfer>>,
}

impl Session {
    /// Creates a session.
    pub fn new(queue: Queue) -> Session {
        let (header_digest, data_digest, align) = (false, false, 4);
        let (transfers, deferred) = Default::default();
        Session { state: State::Greeting, header_digest, data_digest, align, queue, deferred, transfers }
    }

    /// Returns `true` if the host has connected its queue.
    pub fn is_connected(&self) -> bool {
        self.queue.link.is_some()
    }

    /// Returns `true` if the host still has to send data.
    pub fn is_transferring(&self) -> bool {
        self.transfers.iter().any(Option::is_some)
    }

    /// Processes the PDU at the front of `input`, if it is complete. Appends immediate replies to `out`.
    pub fn take<'a>(&mut self, input: &'a [u8], out: &mut Vec<u8>) -> Taken<'a> {
        if self.state == State::Ended {
            return Taken::End;
        }
        if input.len() < COMMON {
            return Taken::Needs(COMMON);
        }
        let common = Common::of(input);
        let checked = self.check(&common).and_then(|()| match input.get(..common.length as usize) {
            None => Ok(Taken::Needs(common.length as usize)),
            Some(pdu) => self.process(&common, pdu, out),
        });
        checked.unwrap_or_else(|fatal| {
            self.state = State::Ended;
            let header = input.len().min(common.length.max(COMMON as u32) as usize).min(INITIALIZE);
            pdu::terminate(out, fatal, &input[..header]);
            Taken::End
        })
    }

    /// Checks a header. The PDU may not have arrived yet.
    fn check(&self, common: &Common) -> Result<(), Fatal> {
        let (header, is_expected, most) = match common.kind {
            kind::INITIALIZE_REQUEST => (INITIALIZE, self.state == State::Greeting, INITIALIZE),
            kind::COMMAND => (pdu::COMMAND, self.state == State::Open, LONGEST_PDU),
            kind::FROM_HOST => (HEADER, self.state == State::Open, LONGEST_PDU),
            kind::HOST_TERMINATES => (HEADER, true, HEADER + INITIALIZE),
            _ => return Err(Fatal::Header(0)),
        };
        if !is_expected {
            return Err(Fatal::Sequence);
        }
        if usize::from(common.header) != header {
            return Err(Fatal::Header(2));
        }
        let has_digests = matches!(common.kind, kind::COMMAND | kind::FROM_HOST);
        let digest = common.flags & flag::HEADER_DIGEST != 0;
        if has_digests && digest != self.header_digest {
            return Err(Fatal::Header(1));
        }
        let least = header + if has_digests && digest { DIGEST } else { 0 };
        if (common.length as usize) < least || common.length as usize > most {
            return Err(Fatal::Header(4));
        }
        Ok(())
    }

    fn process<'a>(&mut self, common: &Common, pdu: &'a [u8], out: &mut Vec<u8>) -> Result<Taken<'a>, Fatal> {
        let header = usize::from(common.header);
        if common.kind == kind::HOST_TERMINATES {
            self.state = State::Ended;
            return Ok(Taken::End);
        }
        if common.kind == kind::INITIALIZE_REQUEST {
            self.initialize(pdu)?;
            let digests = u8::from(self.header_digest) | u8::from(self.data_digest) << 1;
            out.extend_from_slice(&pdu::initialize(digests, LONGEST_DATA));
            return Ok(Taken::Bytes(pdu.len()));
        }
        if self.header_digest {
            let found = u32::from_le_bytes(get(pdu, header));
            if crc32c::crc32c(&pdu[..header]) != found {
                return Err(Fatal::Digest(found));
            }
        }
        let (data, is_damaged) = self.data(common, pdu)?;
        match common.kind {
            kind::COMMAND => Ok(Taken::Command(pdu.len(), self.command(pdu, data, is_damaged)?)),
            _ => Ok(match self.receive(common, pdu, data, is_damaged)? {
                Some(request) => Taken::Command(pdu.len(), request),
                None => Taken::Bytes(pdu.len()),
            }),
        }
    }

    fn initialize(&mut self, pdu: &[u8]) -> Result<(), Fatal> {
        if get(pdu, 8) != [0, 0] {
            return Err(Fatal::Unsupported(8));
        }
        if pdu[10] > 31 {
            return Err(Fatal::Unsupported(10));
        }
        self.align = 4 * (usize::from(pdu[10]) + 1);
        (self.header_digest, self.data_digest) = (pdu[11] & 1 != 0, pdu[11] & 2 != 0);
        self.state = State::Open;
        Ok(())
    }

    /// Returns the data of a PDU, and whether its digest is wrong.
    fn data<'a>(&self, common: &Common, pdu: &'a [u8]) -> Result<(&'a [u8], bool), Fatal> {
        let least = usize::from(common.header) + if self.header_digest { DIGEST } else { 0 };
        if common.data == 0 && pdu.len() == least {
            return Ok((&[], false));
        }
        let start = usize::from(common.data);
        if start < least || !start.is_multiple_of(4) {
            return Err(Fatal::Header(3));
        }
        let has_digest = common.flags & flag::DATA_DIGEST != 0;
        if has_digest != self.data_digest {
            return Err(Fatal::Header(1));
        }
        let end = pdu.len().checked_sub(if has_digest { DIGEST } else { 0 }).filter(|end| *end >= start);
        let data = &pdu[start..end.ok_or(Fatal::Header(4))?];
        let is_damaged = has_digest && crc32c::crc32c(data).to_le_bytes() != pdu[pdu.len() - DIGEST..];
        Ok((data, is_damaged))
    }

    /// Returns the command of a capsule.
    fn command<'a>(&mut self, pdu: &[u8], data: &'a [u8], is_damaged: bool) -> Result<Request<'a>, Fatal> {
        if data.len() > CAPSULE_DATA {
            return Err(Fatal::Limit);
        }
        if !self.queue.advance() {
            return Err(Fatal::Sequence);
        }
        let command = Command(get(pdu, COMMON));
        let (location, length) = command.data();
        let payload = match (command.direction(), location) {
            (Direction::None, _) => Payload::None,
            (Direction::FromHost, _) if is_damaged => Payload::Invalid(Status::TRANSPORT),
            (_, DataLocation::Unsupported) => Payload::Invalid(Status::DESCRIPTOR_TYPE),
            (Direction::ToHost, DataLocation::Capsule(_)) => Payload::Invalid(Status::DESCRIPTOR_TYPE),
            _ if length as usize > LONGEST_TRANSFER => Payload::Invalid(Status::INVALID_FIELD),
            (Direction::ToHost, DataLocation::Host) => Payload::None,
            (Direction::FromHost, DataLocation::Capsule(offset)) => {
                let end = offset.checked_add(u64::from(length)).filter(|end| *end <= data.len() as u64);
                match end {
                    Some(end) => Payload::Capsule(&data[offset as usize..end as usize]),
                    None => Payload::Invalid(Status::DATA_OFFSET),
                }
            }
            (Direction::FromHost, DataLocation::Host) if length == 0 => Payload::Capsule(&[]),
            (Direction::FromHost, DataLocation::Host) => Payload::Missing,
        };
        Ok(Request { command, length, payload })
    }

    /// Requests the data of a command from the host, and collects it in `data`, which is empty.
    pub fn transfer(&mut self, command: Command, length: u32, data: Vec<u8>, out: &mut Vec<u8>) {
        let transfer = Some(Transfer { command, length, data, is_damaged: false });
        let tag = match self.transfers.iter().position(Option::is_none) {
            Some(tag) => {
                self.transfers[tag] = transfer;
                tag
            }
            None => {
                self.transfers.push(transfer);
                self.transfers.len() - 1
            }
        };
        pdu::ready(out, command.id(), tag as u16, length, self.header_digest);
    }

    /// Drops the commands that wait for data or for memory.
    pub fn abandon(&mut self) {
        self.transfers.clear();
        self.deferred.clear();
    }

    /// Drops the commands that wait for memory. Returns their number.
    pub fn drop_deferred(&mut self) -> u32 {
        self.deferred.drain(..).count() as u32
    }

    /// Drops the commands that wait for data. Returns them, and the lengths of their data.
    pub fn drop_transfers(&mut self) -> Vec<(Command, u32)> {
        self.transfers.drain(..).flatten().map(|Transfer { command, length, .. }| (command, length)).collect()
    }

    /// Adds data of the host to its transfer. Returns the command if it is the last data.
    fn receive(
        &mut self,
        common: &Common,
        pdu: &[u8],
        data: &[u8],
        is_damaged: bool,
    ) -> Result<Option<Request<'static>>, Fatal> {
        let [id, tag] = [8, 10].map(|at| u16::from_le_bytes(get(pdu, at)));
        let [offset, length] = [12, 16].map(|at| u32::from_le_bytes(get(pdu, at)));
        let slot = self.transfers.get_mut(usize::from(tag)).ok_or(Fatal::Header(10))?;
        let transfer = slot.as_mut().filter(|transfer| transfer.command.id() == id).ok_or(Fatal::Header(8))?;
        if length as usize != data.len() || length == 0 {
            return Err(Fatal::Header(16));
        }
        if length > LONGEST_DATA {
            return Err(Fatal::Limit);
        }
        let end = u64::from(offset) + u64::from(length);
        if offset as usize != transfer.data.len() || end > u64::from(transfer.length) {
            return Err(Fatal::Range);
        }
        let is_last = end == u64::from(transfer.length);
        if is_last != (common.flags & flag::LAST != 0) {
            return Err(Fatal::Header(1));
        }
        transfer.data.extend_from_slice(data);
        transfer.is_damaged |= is_damaged;
        Ok(slot.take_if(|_| is_last).map(|Transfer { command, length, data, is_damaged }| {
            let payload = if is_damaged { Payload::Damaged(data) } else { Payload::Transferred(data) };
            Request { command, length, payload }
        }))
    }

    /// Returns the number of bytes before the data of a reply.
    pub fn headroom(&self) -> usize {
        (HEADER + if self.header_digest { DIGEST } else { 0 }).next_multiple_of(self.align)
    }

    /// Appends the completion of a command that waited for an event, or that completes after its data.
    pub fn complete(&self, out: &mut Vec<u8>, id: u16, status: Status, result: u64) {
        let completion = wire::completion(id, status, result, self.queue.head(), self.queue.number());
        pdu::response(out, completion, self.header_digest);
    }

    /// Writes the header of `length` bytes of data, in the headroom before them.
    pub fn write_data_header(&self, headroom: &mut [u8], id: u16, length: u32) {
        let digest = |is_used: bool, flag: u8| if is_used { flag } else { 0 };
        let flags = digest(self.header_digest, flag::HEADER_DIGEST) | digest(self.data_digest, flag::DATA_DIGEST);
        let flags = flags | flag::LAST | digest(self.queue.no_flow_control, flag::SUCCESS);
        let data = headroom.len() as u8;
        let total = headroom.len() as u32 + length + if self.data_digest { DIGEST as u32 } else { 0 };
        headroom.fill(0);
        Common { kind: kind::TO_HOST, flags, header: HEADER as u8, data, length: total }.write(headroom);
        put(headroom, 8, id.to_le_bytes());
        put(headroom, 16, length.to_le_bytes());
        if self.header_digest {
            let digest = crc32c::crc32c(&headroom[..HEADER]);
            put(headroom, HEADER, digest.to_le_bytes());
        }
    }

    /// Appends the data digest, and the completion if flow control is on.
    pub fn end_data(&self, out: &mut Vec<u8>, id: u16, digest: Option<u32>) {
        if let Some(digest) = digest {
            out.extend_from_slice(&digest.to_le_bytes());
        }
        if !self.queue.no_flow_control {
            self.complete(out, id, Status::OK, 0);
        }
    }

    /// Returns the digest of data for the host, if digests are used.
    pub fn digest(&self, data: &[u8]) -> Option<u32> {
        self.data_digest.then(|| crc32c::crc32c(data))
    }

    /// Appends a reply with data.
    pub fn reply(&self, out: &mut Vec<u8>, id: u16, data: &[u8]) {
        let (start, headroom) = (out.len(), self.headroom());
        out.resize(start + headroom, 0);
        self.write_data_header(&mut out[start..], id, data.len() as u32);
        out.extend_from_slice(data);
        self.end_data(out, id, self.digest(data));
    }
}
