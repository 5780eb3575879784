//! Input of a connection: bytes that were received from its socket and not processed yet.

use std::io;

use crate::stream::Stream;

/// Size of the input buffer, unless a single message needs more.
pub const INPUT: usize = 256 << 10;

/// Bytes that were received and not processed yet.
#[derive(Debug)]
pub struct Input {
    bytes: Vec<u8>,
    /// Number of processed bytes in `bytes`, and number of received bytes in it.
    taken: usize,
    filled: usize,
    /// Number of unprocessed bytes that are needed to continue.
    needs: usize,
}

impl Input {
    /// Creates an empty buffer.
    pub fn new() -> Input {
        Input { bytes: vec![0; INPUT], taken: 0, filled: 0, needs: 1 }
    }

    /// Returns the unprocessed bytes.
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.taken..self.filled]
    }

    /// Returns the size of the buffer.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of unprocessed bytes that are needed to continue.
    pub fn needs(&self) -> usize {
        self.needs
    }

    /// Sets the number of unprocessed bytes that are needed to continue.
    pub fn require(&mut self, needs: usize) {
        self.needs = needs;
    }

    /// Removes processed bytes. Releases the buffer of a long message.
    pub fn consume(&mut self, count: usize) {
        (self.taken, self.needs) = (self.taken + count, 1);
        if self.bytes.len() > INPUT && self.taken == self.filled {
            *self = Input::new();
        }
    }

    /// Reads the available bytes. Returns their number, 0 at the end of the stream, or `None` if there are none yet.
    pub fn receive(&mut self, stream: &mut Stream) -> io::Result<Option<usize>> {
        self.make_room();
        match stream.read(&mut self.bytes[self.filled..]) {
            Ok(count) => {
                self.filled += count;
                Ok(Some(count))
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes room for what is needed next.
    fn make_room(&mut self) {
        if self.taken == self.filled {
            (self.taken, self.filled) = (0, 0);
        }
        if self.taken + self.needs > self.bytes.len() || self.filled == self.bytes.len() {
            self.bytes.copy_within(self.taken..self.filled, 0);
            (self.taken, self.filled) = (0, self.filled - self.taken);
        }
        if self.needs.max(self.filled + 1) > self.bytes.len() {
            // Untouched memory takes no space: a client may never send the rest of its message.
            let mut larger = vec![0; self.needs.max(2 * INPUT)];
            larger[..self.filled].copy_from_slice(&self.bytes[..self.filled]);
            self.bytes = larger;
        }
    }
}
