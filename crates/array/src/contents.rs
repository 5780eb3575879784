//! Contents of all sectors, and the parity that follows from them.
//!
//! In verification mode, a sector holds a tag of four bytes: the tag of the request that wrote it. A member returns the
//! version of each sector, which is the serial number of a write, and the array remembers the tags that each write
//! stored. With a payload, a sector holds its bytes, and the program that serves the array stores them. Parity is
//! computed from what the array has read, in both cases by the same code.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;

use floatgate_core::flash::Outbox;
use floatgate_core::sim::request::SECTOR;
use floatgate_core::simulation::Device;

/// Storage of the payload of the members, which are durable devices.
pub trait MemberPayload: Any + Send + Sync {
    /// Stores the payload of a write that will be submitted to a member.
    fn stage_payload(&mut self, member: u32, tag: u64, bytes: &[u8]);

    /// Applies flash events of a member, in order.
    fn apply(&mut self, member: u32, events: &Outbox);

    /// Drops the payload of a write that a member has completed.
    fn settle(&mut self, member: u32, tag: u64);

    /// Reads sectors of a member. Returns `false` if they cannot be read.
    fn read(&mut self, member: u32, device: &Device, lba: u64, into: &mut [u8]) -> bool;
}

/// Bytes of a tag.
const TAG: usize = 4;

/// Contents of the members' sectors.
#[derive(Clone, Debug)]
enum Stored {
    /// Tags that each write stored, by its serial number: the first sector, and their bytes.
    Tags(BTreeMap<u32, (u64, Vec<u8>)>),
    Payload(Attached),
}

/// Storage of the payload. A clone has none: it simulates time only.
struct Attached(Option<Box<dyn MemberPayload>>);

impl Clone for Attached {
    fn clone(&self) -> Self {
        Attached(None)
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_tuple("Attached").field(&self.0.is_some()).finish()
    }
}

/// Contents of an array.
#[derive(Clone, Debug)]
pub struct Contents {
    stored: Stored,
    /// Data of writes of the host, by the tag of the request.
    writes: BTreeMap<u64, Vec<u8>>,
    /// Data that stripe operations have read, by operation and member.
    reads: BTreeMap<(u32, u32), Vec<u8>>,
    /// Replies to reads, by request.
    replies: BTreeMap<u32, Vec<u8>>,
    /// Replies to completed reads, with the tags of their requests.
    done: Vec<(u64, Vec<u8>)>,
    /// Events of a member, for reuse.
    events: Outbox,
}

impl Contents {
    fn new(stored: Stored) -> Contents {
        let (writes, reads, replies) = Default::default();
        Contents { stored, writes, reads, replies, done: Vec::new(), events: Outbox::default() }
    }

    /// Creates the contents of an array in verification mode.
    pub fn tags() -> Contents {
        Contents::new(Stored::Tags(BTreeMap::new()))
    }

    /// Creates the contents of an array with a payload.
    pub fn payload(payload: Box<dyn MemberPayload>) -> Contents {
        Contents::new(Stored::Payload(Attached(Some(payload))))
    }

    /// Returns the payload.
    pub fn attached(&mut self) -> Option<&mut dyn MemberPayload> {
        match &mut self.stored {
            Stored::Tags(_) => None,
            Stored::Payload(Attached(payload)) => Some(payload.as_deref_mut()?),
        }
    }

    /// Returns `true` if sectors hold bytes.
    pub fn has_payload(&self) -> bool {
        matches!(self.stored, Stored::Payload(_))
    }

    /// Returns the payload.
    pub fn attached_ref(&self) -> Option<&dyn MemberPayload> {
        match &self.stored {
            Stored::Tags(_) => None,
            Stored::Payload(Attached(payload)) => payload.as_deref(),
        }
    }

    /// Returns the payload with its type.
    pub fn take_attached(self) -> Option<Box<dyn MemberPayload>> {
        match self.stored {
            Stored::Tags(_) => None,
            Stored::Payload(Attached(payload)) => payload,
        }
    }

    /// Returns the bytes of a number of sectors.
    pub fn bytes(&self, sectors: u32) -> usize {
        sectors as usize * if matches!(self.stored, Stored::Tags(_)) { TAG } else { SECTOR as usize }
    }

    /// Keeps the data of a write of the host until it completes.
    pub fn stage_payload(&mut self, tag: u64, data: Vec<u8>) {
        self.writes.insert(tag, data);
    }

    /// Accepts a write of the host. In verification mode, its data are its tag.
    pub fn accept(&mut self, tag: u64, sectors: u32) {
        if matches!(self.stored, Stored::Tags(_)) {
            self.writes.insert(tag, (tag as u32).to_le_bytes().repeat(sectors as usize));
        }
    }

    /// Returns sectors of the data of a write of the host, counted from its first sector. A write without data writes
    /// zeros.
    pub fn data(&self, tag: u64, from: u32, sectors: u32) -> Vec<u8> {
        let range = self.bytes(from)..self.bytes(from) + self.bytes(sectors);
        self.writes.get(&tag).map_or_else(|| vec![0; range.len()], |data| data[range.clone()].to_vec())
    }

    /// Stores the data of a write to a member.
    pub fn store(&mut self, member: u32, tag: u64, lba: u64, bytes: Vec<u8>) {
        match &mut self.stored {
            Stored::Tags(written) => {
                written.insert(tag as u32, (lba, bytes));
            }
            Stored::Payload(Attached(payload)) => {
                payload.iter_mut().for_each(|payload| payload.stage_payload(member, tag, &bytes));
            }
        }
    }

    /// Returns the tags of sectors whose versions a member has returned.
    pub fn tags_of(&self, lba: u64, versions: &[u32]) -> Vec<u8> {
        let Stored::Tags(written) = &self.stored else { return Vec::new() };
        let tag = |(version, lba): (&u32, u64)| match *version {
            0 => [0; TAG],
            version => {
                let (first, tags) = &written[&version];
                let at = (lba - first) as usize * TAG;
                std::array::from_fn(|byte| tags[at + byte])
            }
        };
        versions.iter().zip(lba..).flat_map(tag).collect()
    }

    /// Applies the new flash events of a member to the payload.
    pub fn apply(&mut self, member: u32, device: &mut Device) {
        let Stored::Payload(Attached(Some(payload))) = &mut self.stored else { return };
        device.take_flash(&mut self.events);
        if !self.events.events.is_empty() {
            payload.apply(member, &self.events);
        }
        self.events.clear();
    }

    /// Notes the first sector of a read of a member, in verification mode.
    pub fn note_read(&mut self, serial: u32, lba: u64) {
        if let Stored::Tags(written) = &mut self.stored {
            written.insert(serial, (lba, Vec::new()));
        }
    }

    /// Returns the first sector of the request to a member with this serial number.
    pub fn lba_of(&self, serial: u32) -> u64 {
        match &self.stored {
            Stored::Tags(written) => written.get(&serial).map_or(0, |(lba, _)| *lba),
            Stored::Payload(_) => 0,
        }
    }

    /// Keeps what a stripe operation has read from a member.
    pub fn keep(&mut self, operation: u32, member: u32, bytes: Vec<u8>) {
        self.reads.insert((operation, member), bytes);
    }

    /// Returns what a stripe operation has read from a member.
    pub fn read(&self, operation: u32, member: u32) -> Option<&[u8]> {
        self.reads.get(&(operation, member)).map(Vec::as_slice)
    }

    /// Drops what a stripe operation has read.
    pub fn forget(&mut self, operation: u32) {
        self.reads.retain(|(other, _), _| *other != operation);
    }

    /// Starts the reply to a read.
    pub fn enter(&mut self, request: u32, sectors: u32) {
        self.replies.insert(request, vec![0; self.bytes(sectors)]);
    }

    /// Adds a part to the reply to a read, from its sector `from` on.
    pub fn fill(&mut self, request: u32, from: u32, bytes: &[u8]) {
        let at = self.bytes(from);
        if let Some(reply) = self.replies.get_mut(&request) {
            reply[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    /// Completes a request of the host.
    pub fn complete(&mut self, request: u32, tag: u64) {
        self.done.extend(self.replies.remove(&request).map(|reply| (tag, reply)));
        self.writes.remove(&tag);
    }

    /// Removes and returns the replies to completed reads.
    pub fn take_done(&mut self) -> Vec<(u64, Vec<u8>)> {
        std::mem::take(&mut self.done)
    }
}
