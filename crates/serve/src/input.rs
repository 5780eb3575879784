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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    use super::*;

    /// Largest number of bytes in a step, and number of steps.
    const LARGEST: usize = 3 * INPUT;
    const STEPS: usize = 40;

    /// Passes random steps to a buffer: bytes that the client sends, numbers of needed bytes, and numbers of processed
    /// bytes. The bytes arrive complete and in order, and there is always room for the needed ones.
    fn run(steps: &[(u8, usize)], pattern: &[u8]) {
        let (mut client, server) = UnixStream::pair().unwrap();
        client.set_nonblocking(true).unwrap();
        server.set_nonblocking(true).unwrap();
        let (mut stream, mut input) = (Stream::Unix(server), Input::new());
        let (mut sent, mut received, mut taken, mut most) = (0, 0, 0, 2 * INPUT);
        for &(kind, size) in steps {
            match kind % 3 {
                0 => sent += client.write(&pattern[sent..][..size]).unwrap_or(0),
                1 => {
                    input.require(size);
                    most = most.max(size);
                }
                _ => {
                    let count = size.min(received - taken);
                    input.consume(count);
                    taken += count;
                }
            }
            // As the loops do: the input of a client that has enough stays in its socket.
            while input.unread().len() < INPUT.max(input.needs())
                && let Some(count) = input.receive(&mut stream).unwrap()
            {
                assert!(count > 0 && input.capacity() >= input.needs());
                received += count;
            }
            assert!(*input.unread() == pattern[taken..received], "{taken}..{received}");
            assert!(received == sent || received - taken >= INPUT.max(input.needs()));
            assert!(input.capacity() <= most);
        }
    }

    #[test]
    fn bytes_arrive_complete_and_in_order() {
        let pattern: Vec<u8> = (0..STEPS * LARGEST).map(|at| (at % 251) as u8).collect();
        // Many small messages, and some that are larger than the buffer.
        let size = prop_oneof![0..100_usize, 0..=INPUT, 0..=LARGEST];
        TestRunner::new(Config { cases: 64, ..Config::default() })
            .run(&vec((any::<u8>(), size), 1..=STEPS), |steps| {
                run(&steps, &pattern);
                Ok(())
            })
            .unwrap();
    }
}
