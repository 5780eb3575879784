//! Sockets of connected clients, and the buffers of their output.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use crate::roster::Peer;

/// A socket.
#[derive(Debug)]
pub enum Stream {
    /// A Unix socket.
    Unix(UnixStream),
    /// TCP.
    Tcp(TcpStream),
}

impl Stream {
    /// Returns information about the other end.
    pub fn peer(&self) -> Peer {
        match self {
            Stream::Unix(stream) => Peer::of_unix(stream),
            Stream::Tcp(stream) => Peer::of_tcp(stream.peer_addr().ok()),
        }
    }

    /// Returns the address at which a TCP client has reached this server.
    pub fn local(&self) -> Option<SocketAddr> {
        match self {
            Stream::Unix(_) => None,
            Stream::Tcp(stream) => stream.local_addr().ok(),
        }
    }

    /// Reads the available bytes.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
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

/// Replies up to this size are collected and sent together. Longer ones are sent from their own buffer.
const SMALL: usize = 32 << 10;

/// Maximum number of collected bytes.
const TOGETHER: usize = 128 << 10;

/// Bytes that a client has not received yet.
#[derive(Debug, Default)]
pub struct Output {
    buffers: VecDeque<Vec<u8>>,
    /// Number of sent bytes of the first buffer, and number of unsent bytes in all buffers.
    sent: usize,
    waiting: usize,
}

impl Output {
    /// Returns the number of unsent bytes.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Adds the bytes that `write` appends.
    pub fn append<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let out = place(&mut self.buffers);
        let before = out.len();
        let result = write(out);
        self.waiting += out.len() - before;
        result
    }

    /// Adds a reply. If it is long, takes the buffer instead of copying.
    pub fn push(&mut self, bytes: &mut Vec<u8>) {
        if bytes.len() <= SMALL {
            return self.append(|out| out.extend_from_slice(bytes));
        }
        self.waiting += bytes.len();
        self.buffers.push_back(std::mem::take(bytes));
    }

    /// Takes all unsent bytes.
    #[cfg(test)]
    pub fn take(&mut self) -> Vec<u8> {
        let bytes: Vec<u8> = self.buffers.iter().flatten().skip(self.sent).copied().collect();
        *self = Output::default();
        bytes
    }

    /// Sends as much as the socket accepts. Returns `true` if anything was sent, and an error if the connection is
    /// broken.
    pub fn send(&mut self, stream: &mut Stream) -> (bool, io::Result<()>) {
        let before = self.waiting;
        let mut result = Ok(());
        while self.waiting > 0 {
            const SLICES: usize = 32;
            let mut slices = [IoSlice::new(&[]); SLICES];
            let mut count = 0;
            for (place, bytes) in slices.iter_mut().zip(&self.buffers) {
                let skipped = if count == 0 { self.sent } else { 0 };
                *place = IoSlice::new(&bytes[skipped..]);
                count += 1;
            }
            match stream.write_vectored(&slices[..count]) {
                Ok(count) => self.note_sent(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        (self.waiting < before, result)
    }

    fn note_sent(&mut self, count: usize) {
        self.waiting -= count;
        self.sent += count;
        let mut left = self.buffers.len();
        while let Some(first) = self.buffers.front_mut().filter(|first| self.sent >= first.len()) {
            self.sent -= first.len();
            left -= 1;
            if left == 0 && first.capacity() <= 2 * TOGETHER {
                first.clear(); // Reuse the buffer.
                break;
            }
            self.buffers.pop_front();
        }
    }
}

/// Returns the buffer in which short replies are collected.
fn place(buffers: &mut VecDeque<Vec<u8>>) -> &mut Vec<u8> {
    let has_room = buffers.back().is_some_and(|last| last.capacity() >= TOGETHER && last.len() + SMALL < TOGETHER);
    if !has_room {
        buffers.push_back(Vec::with_capacity(TOGETHER));
    }
    let last = buffers.len() - 1;
    &mut buffers[last]
}
