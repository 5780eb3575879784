//! A client's ring, from which requests are taken and to which replies are added.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use virtio_queue::{Queue, QueueOwnedT, QueueT};
use vm_memory::GuestAddress;

use super::Memory;
use super::chain::Table;

/// Maximum number of descriptors of a ring.
pub const LARGEST: u16 = 1024;

/// Error: the ring is outside the memory, or its contents are invalid.
#[derive(Debug)]
pub struct Lost;

/// A ring.
#[derive(Debug)]
pub struct Ring {
    /// Addresses of the ring, and current indices.
    pub queue: Queue,
    kick: Option<File>,
    call: Option<File>,
    /// True if the client has enabled the ring.
    pub enabled: bool,
    /// Outstanding requests of the ring.
    pub in_flight: u16,
    /// Requests of an earlier server that have to be repeated.
    again: VecDeque<u16>,
    /// True if the client notifies the server about new requests.
    armed: bool,
    /// True if replies were added without notifying the client.
    answered: bool,
    /// True if the client did not request a notification for the last replies.
    awake: bool,
}

impl Ring {
    /// Creates a ring that the client has not set up yet.
    pub fn new() -> Ring {
        Ring {
            queue: Queue::new(LARGEST).unwrap_or_default(),
            kick: None,
            call: None,
            enabled: false,
            in_flight: 0,
            again: VecDeque::new(),
            armed: false,
            answered: false,
            awake: false,
        }
    }

    /// Resets the ring to its initial state.
    pub fn reset(&mut self) {
        *self = Ring::new();
    }

    /// Returns the kick eventfd, by which the client notifies the server.
    pub fn kick(&self) -> Option<&File> {
        self.kick.as_ref().filter(|_| self.is_running())
    }

    /// Starts the ring if it is valid. Repeats the requests in `again`, which an earlier server has left.
    pub fn start(&mut self, memory: &Memory, kick: File, again: Vec<u16>) -> Result<(), Lost> {
        make_patient(&kick)?;
        self.kick = Some(kick);
        self.armed = false;
        if self.queue.ready() {
            return Ok(());
        }
        self.queue.set_ready(true);
        let is_whole = self.queue.size().is_power_of_two() && self.queue.avail_ring() != 0;
        if !is_whole || !self.queue.is_valid(memory) {
            self.queue.set_ready(false);
            return Err(Lost);
        }
        self.queue.set_next_used(self.used(memory)?);
        if !again.is_empty() {
            // These requests, and all before them, were already taken from the available ring.
            self.queue.set_next_avail(self.queue.next_used().wrapping_add(again.len() as u16));
        }
        self.again = again.into();
        Ok(())
    }

    /// Stops the ring. Returns the index of the next available entry.
    pub fn stop(&mut self) -> u16 {
        self.queue.set_ready(false);
        (self.kick, self.call) = (None, None);
        // The requests to be repeated have not been taken from this ring.
        self.queue.next_avail().wrapping_sub(self.again.len() as u16)
    }

    /// Sets the call eventfd, by which the server notifies the client.
    pub fn set_call(&mut self, call: Option<File>) {
        self.call = call;
    }

    /// Returns the index of the used ring in the client's memory.
    pub fn used(&self, memory: &Memory) -> Result<u16, Lost> {
        self.queue.used_idx(memory, Ordering::Acquire).map(|index| index.0).map_err(|_| Lost)
    }

    /// Returns `true` if requests are taken from the ring.
    pub fn is_running(&self) -> bool {
        self.enabled && self.queue.ready()
    }

    /// Returns `true` if another request may be taken. A correct client never has more requests outstanding than
    /// descriptors.
    pub fn has_room(&self) -> bool {
        self.in_flight < self.queue.size()
    }

    /// Returns `true` if there is a request to take.
    pub fn has_requests(&self, memory: &Memory) -> bool {
        let is_ahead = || match self.queue.avail_idx(memory, Ordering::Acquire) {
            Ok(index) => index.0 != self.queue.next_avail(),
            // The ring cannot be read. Taking the request returns the error.
            Err(_) => true,
        };
        self.is_running() && self.has_room() && (!self.again.is_empty() || is_ahead())
    }

    /// Takes a request. Returns the head of its chain.
    pub fn take(&mut self, memory: &Memory) -> Result<Option<u16>, Lost> {
        if !self.is_running() || !self.has_room() {
            return Ok(None);
        }
        let head = match self.again.pop_front() {
            Some(head) => head,
            None if !self.has_requests(memory) => return Ok(None),
            None => self.queue.iter(memory).map_err(|_| Lost)?.next().ok_or(Lost)?.head_index(),
        };
        self.in_flight += 1;
        Ok(Some(head))
    }

    /// Returns the descriptor table.
    pub fn table(&self) -> Table {
        Table { at: GuestAddress(self.queue.desc_table()), size: self.queue.size() }
    }

    /// Adds a reply to the used ring. `bytes` is the number of bytes written into the client's memory.
    pub fn answer(&mut self, memory: &Memory, head: u16, bytes: u32) -> Result<(), Lost> {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.answered = true;
        self.queue.add_used(memory, head, bytes).map_err(|_| Lost)
    }

    /// Notifies the client about its replies, if it has requested that.
    pub fn notify(&mut self, memory: &Memory) -> Result<(), Lost> {
        if !std::mem::take(&mut self.answered) {
            return Ok(());
        }
        self.awake = !self.queue.needs_notification(memory).map_err(|_| Lost)?;
        if self.awake {
            return Ok(());
        }
        if let Some(call) = &self.call {
            // The event belongs to the client, which may rely on blocking reads, so it cannot be set to non-blocking.
            // Check instead that writing would not block. It would block only if the client has not read the event for
            // a very long time, in which case the client is notified already.
            let mut fds = [PollFd::new(call, PollFlags::OUT)];
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            if poll(&mut fds, Some(&at_once)).is_ok_and(|ready| ready > 0) {
                let _ = rustix::io::write(call, &1u64.to_ne_bytes());
            }
        }
        Ok(())
    }

    /// Returns `true` if the client polls for replies, judged by its last request for a notification.
    pub fn is_awake(&self) -> bool {
        self.awake
    }

    /// Makes the client notify the server about new requests. Returns `true` if there already is a request.
    pub fn arm(&mut self, memory: &Memory) -> Result<bool, Lost> {
        if !self.is_running() || !self.has_room() {
            return Ok(false);
        }
        self.armed = true;
        Ok(self.queue.enable_notification(memory).map_err(|_| Lost)? || !self.again.is_empty())
    }

    /// Stops the client from notifying the server.
    pub fn disarm(&mut self, memory: &Memory) -> Result<(), Lost> {
        if std::mem::take(&mut self.armed) && self.is_running() {
            self.queue.disable_notification(memory).map_err(|_| Lost)?;
        }
        Ok(())
    }

    /// Reads the kick eventfd after a notification. Fails if it is not an eventfd, because it might then stay ready
    /// forever.
    pub fn silence(&mut self) -> Result<(), Lost> {
        let Some(kick) = &self.kick else { return Ok(()) };
        match rustix::io::read(kick, &mut [0; 8]) {
            Ok(8) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
            Ok(_) | Err(_) => Err(Lost),
        }
    }
}

/// Makes reading an event non-blocking. The client only writes it, so this does not affect the client.
fn make_patient(event: &File) -> Result<(), Lost> {
    let flags = fcntl_getfl(event).map_err(|_| Lost)?;
    fcntl_setfl(event, flags | OFlags::NONBLOCK).map_err(|_| Lost)
}
