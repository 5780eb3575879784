//! A ring of a client: where its requests come from and its answers go.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use virtio_queue::{Queue, QueueOwnedT, QueueT};
use vm_memory::GuestAddress;

use super::Memory;
use super::chain::Table;

/// Descriptors of a ring, at most.
pub const LARGEST: u16 = 1024;

/// A ring cannot be used any more: it lies outside of the memory, or makes no sense.
#[derive(Debug)]
pub struct Lost;

/// A ring.
#[derive(Debug)]
pub struct Ring {
    /// Its place in memory, and how far it has come.
    pub queue: Queue,
    kick: Option<File>,
    call: Option<File>,
    /// The client lets it be used.
    pub enabled: bool,
    /// Requests of it in progress.
    pub in_flight: u16,
    /// Requests to do again, that an earlier server has left.
    again: VecDeque<u16>,
    /// The client wakes us for what it adds.
    armed: bool,
    /// Answers were added that the client has not been woken for.
    answered: bool,
    /// The client did not want to be woken for the last ones.
    awake: bool,
}

impl Ring {
    /// A ring that the client has not yet laid out.
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

    /// As at the start.
    pub fn reset(&mut self) {
        *self = Ring::new();
    }

    /// The event that the client wakes us by.
    pub fn kick(&self) -> Option<&File> {
        self.kick.as_ref().filter(|_| self.is_running())
    }

    /// Begins, if it makes sense and lies in memory; goes on with what an earlier server has left.
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
            // Those were taken from the ring already, and so was all before them.
            self.queue.set_next_avail(self.queue.next_used().wrapping_add(again.len() as u16));
        }
        self.again = again.into();
        Ok(())
    }

    /// Ends, and says where to go on.
    pub fn stop(&mut self) -> u16 {
        self.queue.set_ready(false);
        (self.kick, self.call) = (None, None);
        // What was to be done again has not been taken from here.
        self.queue.next_avail().wrapping_sub(self.again.len() as u16)
    }

    /// Who is woken by answers, if anybody wants to be.
    pub fn set_call(&mut self, call: Option<File>) {
        self.call = call;
    }

    /// Answers there are by the client's memory.
    pub fn used(&self, memory: &Memory) -> Result<u16, Lost> {
        self.queue.used_idx(memory, Ordering::Acquire).map(|index| index.0).map_err(|_| Lost)
    }

    /// Whether requests are taken from it.
    pub fn is_running(&self) -> bool {
        self.enabled && self.queue.ready()
    }

    /// Whether one more may be taken. An honest client has no more in progress than its ring has room for.
    pub fn has_room(&self) -> bool {
        self.in_flight < self.queue.size()
    }

    /// Whether there is a request to take.
    pub fn has_requests(&self, memory: &Memory) -> bool {
        let is_ahead = || match self.queue.avail_idx(memory, Ordering::Acquire) {
            Ok(index) => index.0 != self.queue.next_avail(),
            // The ring is gone, which is found out when it is asked.
            Err(_) => true,
        };
        self.is_running() && self.has_room() && (!self.again.is_empty() || is_ahead())
    }

    /// Takes a request: the head of its chain.
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

    /// The table of its descriptors.
    pub fn table(&self) -> Table {
        Table { at: GuestAddress(self.queue.desc_table()), size: self.queue.size() }
    }

    /// Adds an answer, of which `bytes` were written into the client's memory.
    pub fn answer(&mut self, memory: &Memory, head: u16, bytes: u32) -> Result<(), Lost> {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.answered = true;
        self.queue.add_used(memory, head, bytes).map_err(|_| Lost)
    }

    /// Wakes the client for its answers, if it wants to be woken.
    pub fn notify(&mut self, memory: &Memory) -> Result<(), Lost> {
        if !std::mem::take(&mut self.answered) {
            return Ok(());
        }
        self.awake = !self.queue.needs_notification(memory).map_err(|_| Lost)?;
        if self.awake {
            return Ok(());
        }
        if let Some(call) = &self.call {
            // The event stays the client's, who may want to wait at it: we look whether writing waits. It does where
            // the client has not looked at it for ages, or is awake already.
            let mut fds = [PollFd::new(call, PollFlags::OUT)];
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            if poll(&mut fds, Some(&at_once)).is_ok_and(|ready| ready > 0) {
                let _ = rustix::io::write(call, &1u64.to_ne_bytes());
            }
        }
        Ok(())
    }

    /// Whether the client looks for its answers, by what it wanted last.
    pub fn is_awake(&self) -> bool {
        self.awake
    }

    /// Has the client wake us for what it adds from now on; whether there is something already.
    pub fn arm(&mut self, memory: &Memory) -> Result<bool, Lost> {
        if !self.is_running() || !self.has_room() {
            return Ok(false);
        }
        self.armed = true;
        Ok(self.queue.enable_notification(memory).map_err(|_| Lost)? || !self.again.is_empty())
    }

    /// We look by ourselves.
    pub fn disarm(&mut self, memory: &Memory) -> Result<(), Lost> {
        if std::mem::take(&mut self.armed) && self.is_running() {
            self.queue.disable_notification(memory).map_err(|_| Lost)?;
        }
        Ok(())
    }

    /// The client has woken us. What it woke us by has to be an event, or it would wake us for ever.
    pub fn silence(&mut self) -> Result<(), Lost> {
        let Some(kick) = &self.kick else { return Ok(()) };
        match rustix::io::read(kick, &mut [0; 8]) {
            Ok(8) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
            Ok(_) | Err(_) => Err(Lost),
        }
    }
}

/// Reading an event must not wait for the client, who only writes it.
fn make_patient(event: &File) -> Result<(), Lost> {
    let flags = fcntl_getfl(event).map_err(|_| Lost)?;
    fcntl_setfl(event, flags | OFlags::NONBLOCK).map_err(|_| Lost)
}
