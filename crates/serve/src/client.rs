//! A small NBD client, for calibration, tests and load generation (`examples/nbd_load.rs`).

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use crate::address::Address;
use crate::nbd::wire::{self, Reader, chunk, command, flag, handshake, option, reply};

/// A connected client.
pub struct Client {
    from: BufReader<Box<dyn Read + Send>>,
    to: Box<dyn Write + Send>,
    structured: bool,
    bytes: u64,
    flags: u16,
    cookie: u64,
    scratch: Vec<u8>,
}

/// A reply from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Cookie of the request.
    pub cookie: u64,
    /// Error number, 0 for success.
    pub error: u32,
    /// Data of a read, or block status.
    pub data: Vec<u8>,
}

/// Returns the error of a server that violates its protocol.
pub(crate) fn broken(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

impl Client {
    /// Connects, with structured replies and block status.
    pub fn connect(address: &Address) -> io::Result<Client> {
        match address {
            Address::Unix(path) => Client::over(UnixStream::connect(path)?),
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Client::greet(Box::new(stream.try_clone()?), Box::new(stream), true)
            }
        }
    }

    /// Connects, with simple replies.
    pub fn connect_simple(address: &Address) -> io::Result<Client> {
        let Address::Unix(path) = address else { return Err(broken("simple replies are tested over a Unix socket")) };
        let stream = UnixStream::connect(path)?;
        Client::greet(Box::new(stream.try_clone()?), Box::new(stream), false)
    }

    /// Starts a session over a connected socket.
    pub fn over(stream: UnixStream) -> io::Result<Client> {
        Client::greet(Box::new(stream.try_clone()?), Box::new(stream), true)
    }

    fn greet(from: Box<dyn Read + Send>, to: Box<dyn Write + Send>, structured: bool) -> io::Result<Client> {
        let from = BufReader::with_capacity(256 << 10, from);
        let scratch = Vec::with_capacity(256 << 10);
        let mut client = Client { from, to, structured, bytes: 0, flags: 0, cookie: 0, scratch };
        let head: [u8; 18] = client.receive()?;
        let mut reader = Reader(&head);
        if (reader.u64(), reader.u64()) != (Some(wire::GREETING), Some(wire::OPTION)) {
            return Err(broken("not a newstyle NBD server"));
        }
        client.to.write_all(&u32::from(handshake::FIXED | handshake::NO_ZEROES).to_be_bytes())?;
        if structured {
            client.option(option::STRUCTURED_REPLY, &[])?;
            let query = [&0u32.to_be_bytes()[..], &1u32.to_be_bytes(), &15u32.to_be_bytes(), b"base:allocation"];
            client.option(option::SET_META_CONTEXT, &query.concat())?;
        }
        for info in client.option(option::GO, &[0; 6])? {
            let mut reader = Reader(&info);
            if let (Some(0), Some(bytes), Some(flags)) = (reader.u16(), reader.u64(), reader.u16()) {
                (client.bytes, client.flags) = (bytes, flags);
            }
        }
        Ok(client)
    }

    fn receive<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Negotiates an option. Returns the data of all replies except the last, or the server's error.
    pub fn option(&mut self, option: u32, data: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let head = [&wire::OPTION.to_be_bytes()[..], &option.to_be_bytes(), &(data.len() as u32).to_be_bytes(), data];
        self.to.write_all(&head.concat())?;
        let mut answers = Vec::new();
        loop {
            let head: [u8; wire::OPTION_REPLY_HEAD] = self.receive()?;
            let mut reader = Reader(&head);
            let (magic, of, kind, length) = (reader.u64(), reader.u32(), reader.u32(), reader.u32());
            if (magic, of) != (Some(wire::OPTION_REPLY), Some(option)) {
                return Err(broken("not a reply to the option"));
            }
            let mut data = vec![0; length.unwrap_or(0) as usize];
            self.from.read_exact(&mut data)?;
            match kind {
                Some(reply::ACK) => return Ok(answers),
                Some(kind) if kind >> 31 == 1 => {
                    return Err(broken(format!("option {option}: {}", String::from_utf8_lossy(&data))));
                }
                _ => answers.push(data),
            }
        }
    }

    /// Returns the size of the export in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the transmission flags of the export.
    pub fn flags(&self) -> u16 {
        self.flags
    }

    /// Queues a request for [`Client::send`]. Returns its cookie.
    pub fn ask(&mut self, kind: u16, flags: u16, offset: u64, length: u32, data: &[u8]) -> u64 {
        self.cookie += 1;
        let out = &mut self.scratch;
        out.extend_from_slice(&wire::REQUEST.to_be_bytes());
        out.extend_from_slice(&flags.to_be_bytes());
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&self.cookie.to_be_bytes());
        out.extend_from_slice(&offset.to_be_bytes());
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(data);
        self.cookie
    }

    /// Sends the queued requests.
    pub fn send(&mut self) -> io::Result<()> {
        self.to.write_all(&self.scratch)?;
        self.scratch.clear();
        Ok(())
    }

    /// Returns `true` if part of a reply has arrived, so that reading it does not have to wait.
    pub fn has_reply(&self) -> bool {
        !self.from.buffer().is_empty()
    }

    /// Receives the next reply. `bytes` returns the length of the data in a simple reply to the request with a cookie.
    pub fn reply(&mut self, bytes: impl Fn(u64) -> usize) -> io::Result<Reply> {
        let magic = u32::from_be_bytes(self.receive()?);
        if magic == wire::SIMPLE_REPLY {
            let (error, cookie) = (u32::from_be_bytes(self.receive()?), u64::from_be_bytes(self.receive()?));
            let mut data = vec![0; if error == 0 { bytes(cookie) } else { 0 }];
            self.from.read_exact(&mut data)?;
            return Ok(Reply { cookie, error, data });
        }
        if magic != wire::STRUCTURED_REPLY {
            return Err(broken("not a reply"));
        }
        let head: [u8; 16] = self.receive()?;
        let mut reader = Reader(&head);
        let (flags, kind, cookie) = (reader.u16(), reader.u16(), reader.u64().unwrap_or(0));
        let mut data = vec![0; reader.u32().unwrap_or(0) as usize];
        self.from.read_exact(&mut data)?;
        if flags != Some(chunk::DONE) {
            return Err(broken("a reply in several chunks"));
        }
        let mut error = 0;
        match kind {
            Some(chunk::OFFSET_DATA) => drop(data.drain(..8)),
            Some(chunk::BLOCK_STATUS | chunk::NONE) => {}
            Some(chunk::ERROR) => error = Reader(&data).u32().unwrap_or(u32::MAX),
            _ => return Err(broken("an unknown chunk")),
        }
        Ok(Reply { cookie, error, data })
    }

    /// Sends a request, and waits for its reply.
    pub fn call(&mut self, kind: u16, flags: u16, offset: u64, length: u32, data: &[u8]) -> io::Result<Reply> {
        let cookie = self.ask(kind, flags, offset, length, data);
        self.send()?;
        let reads = if kind == command::READ && !self.structured { length as usize } else { 0 };
        let reply = self.reply(|_| reads)?;
        if reply.cookie != cookie {
            return Err(broken("the reply to another request"));
        }
        Ok(reply)
    }

    fn done(reply: Reply) -> io::Result<Vec<u8>> {
        match reply.error {
            0 => Ok(reply.data),
            error => Err(io::Error::from_raw_os_error(error as i32)),
        }
    }

    /// Reads a range.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let reply = self.call(command::READ, 0, offset, into.len() as u32, &[])?;
        into.copy_from_slice(&Client::done(reply)?);
        Ok(())
    }

    /// Writes a range.
    pub fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        let flags = if fua { flag::FUA } else { 0 };
        Client::done(self.call(command::WRITE, flags, offset, data.len() as u32, data)?).map(drop)
    }

    /// Trims a range.
    pub fn trim(&mut self, offset: u64, length: u32) -> io::Result<()> {
        Client::done(self.call(command::TRIM, 0, offset, length, &[])?).map(drop)
    }

    /// Writes zeroes to a range.
    pub fn write_zeroes(&mut self, offset: u64, length: u32, flags: u16) -> io::Result<()> {
        Client::done(self.call(command::WRITE_ZEROES, flags, offset, length, &[])?).map(drop)
    }

    /// Flushes the device.
    pub fn flush(&mut self) -> io::Result<()> {
        Client::done(self.call(command::FLUSH, 0, 0, 0, &[])?).map(drop)
    }

    /// Returns the lengths and flags of the extents in a range.
    pub fn status(&mut self, offset: u64, length: u32, one: bool) -> io::Result<Vec<(u32, u32)>> {
        let flags = if one { flag::REQ_ONE } else { 0 };
        let data = Client::done(self.call(command::BLOCK_STATUS, flags, offset, length, &[])?)?;
        let mut reader = Reader(data.get(4..).unwrap_or_default());
        Ok(std::iter::from_fn(|| Some((reader.u32()?, reader.u32()?))).collect())
    }

    /// Disconnects.
    pub fn disconnect(mut self) -> io::Result<()> {
        self.ask(command::DISCONNECT, 0, 0, 0, &[]);
        self.send()
    }
}
