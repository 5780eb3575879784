//! A small NVMe/TCP client, for calibration, tests and load generation (`examples/nvme_load.rs`).

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::CAPSULE_DATA;
use super::fabrics::CONNECT_DATA;
use super::tcp::pdu::{self, COMMON, Common, DIGEST, HEADER, INITIALIZE, flag, kind};
use super::wire::{self, Command, DISCOVERY_NQN, Status, admin, fabrics, get, io as commands, property, put, put_text};
use crate::client::broken;

/// NQN of the client as a host.
pub const HOST_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:f10a79a7-e000-4000-8000-000000000001";

/// Options of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// True for digests of headers and data.
    pub digests: bool,
    /// True to request queues without flow control.
    pub no_flow_control: bool,
    /// Keep alive timeout in ms. 0: none.
    pub keep_alive_ms: u32,
    /// Alignment of data from the controller, in units of 4 bytes, minus 1.
    pub align: u8,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Identifier of the command.
    pub id: u16,
    /// Status.
    pub status: Status,
    /// Result.
    pub result: u64,
    /// Data.
    pub data: Vec<u8>,
}

/// Returns a command with an opcode.
pub fn command(opcode: u8) -> Command {
    let mut command = Command([0; wire::COMMAND]);
    command.0[0] = opcode;
    command.0[1] = 1 << 6;
    command
}

/// Returns an I/O command for a range of logical blocks.
pub fn on_blocks(opcode: u8, first: u64, blocks: u32) -> Command {
    let mut command = command(opcode);
    put(&mut command.0, 4, 1_u32.to_le_bytes());
    put(&mut command.0, 40, first.to_le_bytes());
    put(&mut command.0, 48, (blocks as u16).wrapping_sub(1).to_le_bytes());
    command
}

/// A queue, which has a connection of its own.
pub struct Queue {
    stream: BufReader<TcpStream>,
    digests: bool,
    next_id: u16,
    scratch: Vec<u8>,
    /// Data of outstanding commands that the controller has not requested yet.
    waiting: BTreeMap<u16, Vec<u8>>,
    /// Data of outstanding commands that has arrived.
    arrived: BTreeMap<u16, Vec<u8>>,
}

impl Queue {
    /// Opens a connection. The queue is not connected yet.
    pub fn open(stream: TcpStream, shape: Shape) -> io::Result<Queue> {
        stream.set_nodelay(true)?;
        let stream = BufReader::with_capacity(256 << 10, stream);
        let (scratch, waiting, arrived) = Default::default();
        let mut queue = Queue { stream, digests: false, next_id: 0, scratch, waiting, arrived };
        let mut request = [0; INITIALIZE];
        let length = INITIALIZE as u32;
        let common = Common { kind: kind::INITIALIZE_REQUEST, flags: 0, header: length as u8, data: 0, length };
        common.write(&mut request);
        request[10..12].copy_from_slice(&[shape.align, if shape.digests { 3 } else { 0 }]);
        queue.stream.get_mut().write_all(&request)?;
        let mut response = [0; INITIALIZE];
        queue.stream.read_exact(&mut response)?;
        if response[0] != kind::INITIALIZE_RESPONSE || response[11] != request[11] {
            return Err(broken("not the response to an initialize request"));
        }
        queue.digests = shape.digests;
        Ok(queue)
    }

    /// Queues a command for [`Queue::send`]. `room` is the number of bytes of a reply with data. Returns its
    /// identifier.
    pub fn queue_command(&mut self, mut command: Command, data: &[u8], room: u32) -> u16 {
        self.next_id = self.next_id.wrapping_add(1) & 0x7fff;
        put(&mut command.0, 2, self.next_id.to_le_bytes());
        let is_inside = !data.is_empty() && data.len() <= CAPSULE_DATA;
        let length = if data.is_empty() { room } else { data.len() as u32 };
        put(&mut command.0, 32, length.to_le_bytes());
        command.0[39] = if is_inside { 0x01 } else { 0x5a };
        let digest = if self.digests { DIGEST } else { 0 };
        let header = pdu::COMMAND + digest;
        let inside = if is_inside { data } else { &[] };
        let total = header + inside.len() + if is_inside { digest } else { 0 };
        let flags = u8::from(self.digests) | u8::from(self.digests && is_inside) << 1;
        let start = self.scratch.len();
        self.scratch.resize(start + pdu::COMMAND, 0);
        let data_at = if is_inside { header as u8 } else { 0 };
        let header = pdu::COMMAND as u8;
        let common = Common { kind: kind::COMMAND, flags, header, data: data_at, length: total as u32 };
        common.write(&mut self.scratch[start..]);
        put(&mut self.scratch[start..], COMMON, command.0);
        self.digest_from(start);
        let at = self.scratch.len();
        self.scratch.extend_from_slice(inside);
        if is_inside {
            self.digest_from(at);
        } else if !data.is_empty() {
            self.waiting.insert(self.next_id, data.to_vec());
        }
        self.next_id
    }

    /// Appends the digest of the bytes that were queued from `start` on.
    fn digest_from(&mut self, start: usize) {
        if self.digests {
            let digest = crc32c::crc32c(&self.scratch[start..]);
            self.scratch.extend_from_slice(&digest.to_le_bytes());
        }
    }

    /// Sends the queued commands.
    pub fn send(&mut self) -> io::Result<()> {
        self.stream.get_mut().write_all(&self.scratch)?;
        self.scratch.clear();
        Ok(())
    }

    /// Returns `true` if part of a reply has arrived, so that reading it does not have to wait.
    pub fn has_reply(&self) -> bool {
        !self.stream.buffer().is_empty()
    }

    /// Receives the next reply. Sends the data that the controller requests in the meantime.
    pub fn reply(&mut self) -> io::Result<Reply> {
        loop {
            let mut header = [0; HEADER];
            self.stream.read_exact(&mut header)?;
            let common = Common::of(&header);
            let mut rest = vec![0; (common.length as usize).saturating_sub(HEADER)];
            self.stream.read_exact(&mut rest)?;
            if self.digests && crc32c::crc32c(&header).to_le_bytes() != rest[..DIGEST] {
                return Err(broken("a wrong digest of a header"));
            }
            let id = u16::from_le_bytes(get(&header, 8));
            match common.kind {
                kind::RESPONSE => {
                    let [result, _] = [8, 16].map(|at| u64::from_le_bytes(get(&header, at)));
                    let [id, status] = [20, 22].map(|at| u16::from_le_bytes(get(&header, at)));
                    self.waiting.remove(&id);
                    let data = self.arrived.remove(&id).unwrap_or_default();
                    return Ok(Reply { id, status: Status::of_bits(status), result, data });
                }
                kind::TO_HOST => {
                    let data = self.data_of(&common, rest)?;
                    if common.flags & flag::SUCCESS != 0 {
                        return Ok(Reply { id, status: Status::OK, result: 0, data });
                    }
                    self.arrived.insert(id, data);
                }
                kind::READY => {
                    let tag = u16::from_le_bytes(get(&header, 10));
                    let data =
                        self.waiting.remove(&id).ok_or_else(|| broken("a request for the data of no command"))?;
                    self.transfer(id, tag, &data)?;
                }
                other => return Err(broken(format!("a PDU of type {other}, with {:?}", &header[8..14]))),
            }
        }
    }

    /// Returns the data of a PDU, without the rest of its header and without digest.
    fn data_of(&self, common: &Common, mut rest: Vec<u8>) -> io::Result<Vec<u8>> {
        rest.drain(..usize::from(common.data) - HEADER);
        if self.digests {
            let digest = rest.split_off(rest.len() - DIGEST);
            if crc32c::crc32c(&rest).to_le_bytes() != digest[..] {
                return Err(broken("a wrong digest of data"));
            }
        }
        Ok(rest)
    }

    /// Sends the data that the controller has requested.
    fn transfer(&mut self, id: u16, tag: u16, data: &[u8]) -> io::Result<()> {
        const PART: usize = 64 << 10;
        let digest = if self.digests { DIGEST } else { 0 };
        for (index, part) in data.chunks(PART).enumerate() {
            let is_last = index * PART + part.len() == data.len();
            let start = self.scratch.len();
            self.scratch.resize(start + HEADER, 0);
            let flags = if self.digests { 3 } else { 0 } | if is_last { flag::LAST } else { 0 };
            let at = HEADER + digest;
            let length = (at + part.len() + digest) as u32;
            let common = Common { kind: kind::FROM_HOST, flags, header: HEADER as u8, data: at as u8, length };
            let header = &mut self.scratch[start..];
            common.write(header);
            put(header, 8, id.to_le_bytes());
            put(header, 10, tag.to_le_bytes());
            put(header, 12, ((index * PART) as u32).to_le_bytes());
            put(header, 16, (part.len() as u32).to_le_bytes());
            self.digest_from(start);
            let start = self.scratch.len();
            self.scratch.extend_from_slice(part);
            self.digest_from(start);
        }
        self.send()
    }

    /// Sends a command, and waits for its reply.
    pub fn call(&mut self, command: Command, data: &[u8], room: u32) -> io::Result<Reply> {
        let id = self.queue_command(command, data, room);
        self.send()?;
        let reply = self.reply()?;
        if reply.id == id { Ok(reply) } else { Err(broken("the reply to another command")) }
    }

    /// Connects the queue. Returns the controller.
    pub fn connect(&mut self, number: u16, controller: u16, subsystem: &str, shape: Shape) -> io::Result<u16> {
        let mut connect = command(admin::FABRICS);
        connect.0[4] = fabrics::CONNECT;
        put(&mut connect.0, 42, number.to_le_bytes());
        put(&mut connect.0, 44, 127_u16.to_le_bytes());
        connect.0[46] = u8::from(shape.no_flow_control) << 2;
        put(&mut connect.0, 48, shape.keep_alive_ms.to_le_bytes());
        let mut data = [0; CONNECT_DATA];
        data[..16].fill(7);
        put(&mut data, 16, controller.to_le_bytes());
        put_text(&mut data, 256, 256, subsystem, 0);
        put_text(&mut data, 512, 256, HOST_NQN, 0);
        let reply = self.call(connect, &data, 0)?;
        done(&reply).map(|()| reply.result as u16)
    }
}

/// Returns an error if a command has failed.
pub fn done(reply: &Reply) -> io::Result<()> {
    if reply.status == Status::OK { Ok(()) } else { Err(broken(format!("status {:#06x}", reply.status.bits()))) }
}

/// A connected host: an admin queue and I/O queues.
pub struct Client {
    /// The admin queue.
    pub admin: Queue,
    /// The I/O queues.
    pub queues: Vec<Queue>,
    /// The controller.
    pub controller: u16,
    block: u32,
    blocks: u64,
}

/// Returns the Identify command for a data structure.
pub fn identify(structure: u8, namespace: u32) -> Command {
    let mut identify = command(admin::IDENTIFY);
    put(&mut identify.0, 4, namespace.to_le_bytes());
    identify.0[40] = structure;
    identify
}

/// Returns the command that reads `bytes` of a log page.
pub fn log_page(page: u8, bytes: u32) -> Command {
    let mut log = command(admin::GET_LOG_PAGE);
    log.0[40] = page;
    put(&mut log.0, 42, ((bytes / 4 - 1) as u16).to_le_bytes());
    log
}

/// Connects an admin queue, and enables its controller.
fn enabled(address: SocketAddr, subsystem: &str, shape: Shape) -> io::Result<(Queue, u16)> {
    let mut queue = Queue::open(TcpStream::connect(address)?, shape)?;
    let controller = queue.connect(0, u16::MAX, subsystem, shape)?;
    let mut enable = command(admin::FABRICS);
    enable.0[4] = fabrics::PROPERTY_SET;
    put(&mut enable.0, 44, property::CONFIGURATION.to_le_bytes());
    put(&mut enable.0, 48, 0x46_0001_u64.to_le_bytes());
    done(&queue.call(enable, &[], 0)?)?;
    Ok((queue, controller))
}

/// Returns the subsystems that the discovery controller at an address lists.
pub fn discover(address: SocketAddr) -> io::Result<Vec<String>> {
    let (mut queue, _) = enabled(address, DISCOVERY_NQN, Shape::default())?;
    let reply = queue.call(log_page(wire::log::DISCOVERY, 2048), &[], 2048)?;
    done(&reply)?;
    let name = wire::text(&reply.data[1024 + 256..1024 + 512]).unwrap_or_default().to_owned();
    Ok(Some(name).filter(|name| !name.is_empty()).into_iter().collect())
}

impl Client {
    /// Connects to the subsystem that the discovery controller at an address lists, with a number of I/O queues.
    pub fn connect(address: SocketAddr, queues: u16, shape: Shape) -> io::Result<Client> {
        let subsystem = discover(address)?.pop().ok_or_else(|| broken("no subsystem for this host"))?;
        Client::connect_to(address, &subsystem, queues, shape)
    }

    /// Connects to a subsystem.
    pub fn connect_to(address: SocketAddr, subsystem: &str, queues: u16, shape: Shape) -> io::Result<Client> {
        let (mut admin, controller) = enabled(address, subsystem, shape)?;
        let queue = |number| {
            let mut queue = Queue::open(TcpStream::connect(address)?, shape)?;
            queue.connect(number, controller, subsystem, shape)?;
            Ok(queue)
        };
        let queues = (1..=queues).map(queue).collect::<io::Result<_>>()?;
        let reply = admin.call(identify(0, 1), &[], wire::PAGE as u32)?;
        done(&reply)?;
        let (block, blocks) = (1 << reply.data[130], u64::from_le_bytes(get(&reply.data, 0)));
        Ok(Client { admin, queues, controller, block, blocks })
    }

    /// Returns the size of the namespace in bytes.
    pub fn bytes(&self) -> u64 {
        self.blocks * u64::from(self.block)
    }

    /// Returns the command for a range of bytes.
    pub fn on_range(&self, opcode: u8, offset: u64, bytes: u32) -> Command {
        on_blocks(opcode, offset / u64::from(self.block), bytes / self.block)
    }

    /// Reads a range of bytes.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let command = self.on_range(commands::READ, offset, into.len() as u32);
        let reply = self.queues[0].call(command, &[], into.len() as u32)?;
        done(&reply)?;
        into.copy_from_slice(&reply.data);
        Ok(())
    }

    /// Writes a range of bytes.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let command = self.on_range(commands::WRITE, offset, data.len() as u32);
        done(&self.queues[0].call(command, data, 0)?)
    }

    /// Flushes the namespace.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut flush = command(commands::FLUSH);
        put(&mut flush.0, 4, 1_u32.to_le_bytes());
        done(&self.queues[0].call(flush, &[], 0)?)
    }
}
