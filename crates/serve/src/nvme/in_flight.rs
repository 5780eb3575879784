//! Commands that the device executes: their requests, and their status when all of these have completed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use floatgate_core::sim::request::{Operation, Status as DeviceStatus};
use floatgate_core::sim::slab::Slab;

use super::LONGEST_TRIM;
use super::io::{Io, Use};
use super::wire::{Command, Status};
use crate::clock::Wall;
use crate::engine::{Answer, Engine, Order, Port};
use crate::lateness::Requesting;
use crate::payload::PayloadError;

/// Maximum number of outstanding requests of a command. The remaining ones are submitted when these complete, so that
/// one command cannot occupy the engine.
const AT_ONCE: u32 = 4;

/// Origin of a command in the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A host: slot and generation of its connection.
    Host(usize, u64),
    /// Shutdown of this controller.
    Shutdown(u16),
}

/// A command in the device.
#[derive(Clone, Copy, Debug)]
pub struct Outstanding {
    /// Origin of the command.
    pub origin: Origin,
    /// The command.
    pub command: Command,
    /// Size of its reply, or of its data, in bytes.
    pub promised: usize,
    /// Status: the first error.
    pub status: Status,
    uses: Use,
    /// Number of outstanding requests.
    requests: u32,
}

/// Further state of a command that compares or deallocates.
#[derive(Debug)]
enum More {
    /// Expected data.
    Compare(Vec<u8>),
    /// Sectors to deallocate, the next ones last: the first sector, and their number.
    Trim(Vec<(u64, u64)>),
}

/// Commands in the device.
#[derive(Debug, Default)]
pub struct InFlight {
    commands: Slab<u32, Outstanding>,
    more: BTreeMap<u32, More>,
}

/// Arguments for submitting requests.
pub struct Submission<'a> {
    /// The engine.
    pub engine: &'a mut Engine,
    /// Port of the frontend.
    pub port: Port,
    /// Time at which the command was read.
    pub now: Wall,
    /// Information about the client.
    pub requesting: Requesting,
    /// Bytes to reserve before the data of a read.
    pub headroom: usize,
}

impl Submission<'_> {
    fn submit(&mut self, order: &Order) -> Result<(), Status> {
        let submitted = self.engine.submit(self.port, self.now, order);
        submitted.map_err(|error| status_of_payload(error, order.operation))
    }
}

impl InFlight {
    /// Returns `true` if no command is in the device.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Drops all commands, after a power cut.
    pub fn clear(&mut self) {
        *self = InFlight::default();
    }

    /// Submits a command. Takes `data` if the command needs it until it completes. Returns the status if the command
    /// has completed.
    pub fn start(
        &mut self,
        submission: &mut Submission,
        io: Io,
        data: &mut Cow<[u8]>,
        origin: Origin,
        command: &Command,
    ) -> Option<Status> {
        let (uses, promised) = (io.uses, io.memory());
        let outstanding = Outstanding { origin, command: *command, promised, status: Status::OK, uses, requests: 0 };
        let token = self.commands.insert(outstanding);
        if io.operation == Operation::Trim {
            let mut ranges = io.trims;
            ranges.reverse();
            self.more.insert(token, More::Trim(ranges));
            self.trim(submission, token);
        } else {
            let order = Order {
                token: u64::from(token),
                fua: io.fua,
                data: Some(&**data).filter(|_| io.has_data),
                headroom: if uses == Use::Return { submission.headroom } else { 0 },
                requesting: std::mem::take(&mut submission.requesting),
                ..Order::of(io.operation, io.range.0, io.range.1)
            };
            let outstanding = &mut self.commands[token];
            match submission.submit(&order) {
                Ok(()) => outstanding.requests = 1,
                Err(status) => outstanding.status = status,
            }
            if uses == Use::Compare {
                self.more.insert(token, More::Compare(std::mem::take(data).into_owned()));
            }
        }
        self.take_if_complete(token).map(|outstanding| outstanding.status)
    }

    /// Submits a flush for the shutdown of a controller. Returns `false` if it fails.
    pub fn flush(&mut self, submission: &mut Submission, controller: u16) -> bool {
        let io = Io::of(Operation::Flush, (0, 0));
        let origin = Origin::Shutdown(controller);
        self.start(submission, io, &mut Cow::default(), origin, &Command::default()).is_none()
    }

    /// Submits requests that deallocate, until [`AT_ONCE`] are outstanding.
    fn trim(&mut self, submission: &mut Submission, token: u32) {
        let Some(More::Trim(ranges)) = self.more.get_mut(&token) else { return };
        let outstanding = &mut self.commands[token];
        while outstanding.requests < AT_ONCE
            && outstanding.status == Status::OK
            && let Some((first, sectors)) = ranges.last_mut()
        {
            let count = (*sectors).min(LONGEST_TRIM);
            let order = Order {
                token: u64::from(token),
                requesting: std::mem::take(&mut submission.requesting),
                ..Order::of(Operation::Trim, *first, count as u32)
            };
            (*first, *sectors) = (*first + count, *sectors - count);
            if *sectors == 0 {
                ranges.pop();
            }
            match submission.submit(&order) {
                Ok(()) => outstanding.requests += 1,
                Err(status) => outstanding.status = status,
            }
        }
    }

    fn take_if_complete(&mut self, token: u32) -> Option<Outstanding> {
        let is_complete = self.commands[token].requests == 0;
        is_complete.then(|| {
            self.more.remove(&token);
            self.commands.remove(token)
        })
    }

    /// Records a completed request, and submits the next requests of its command. Returns the command if all its
    /// requests have completed. `answer` then holds the data for the host.
    pub fn complete(&mut self, submission: &mut Submission, answer: &mut Answer) -> Option<Outstanding> {
        // The command is in the device: a power cut clears the commands and the replies of the engine under one lock.
        let token = answer.token as u32;
        let outstanding = &mut self.commands[token];
        outstanding.requests -= 1;
        let is_read = matches!(outstanding.uses, Use::Return | Use::Compare | Use::Verify);
        if outstanding.status == Status::OK {
            outstanding.status = status_of(answer, is_read);
        }
        if let Some(More::Compare(expected)) = self.more.get(&token)
            && outstanding.status == Status::OK
            && *expected != answer.bytes
        {
            outstanding.status = Status::COMPARE_FAILURE;
        }
        self.trim(submission, token);
        let outstanding = self.take_if_complete(token)?;
        if outstanding.status != Status::OK || outstanding.uses != Use::Return {
            answer.bytes.clear();
        }
        Some(outstanding)
    }
}

/// Returns the status of a completed request.
fn status_of(answer: &Answer, is_read: bool) -> Status {
    let operation = if is_read { Operation::Read } else { Operation::Write };
    match (answer.failed, answer.status) {
        (Some(error), _) => status_of_payload(error, operation),
        (None, DeviceStatus::Ok) => Status::OK,
        (None, DeviceStatus::OutOfRange) => Status::LBA_RANGE,
        (None, DeviceStatus::ReadOnly) => Status::WRITE_PROTECTED,
        (None, DeviceStatus::Uncorrectable) if is_read => Status::UNRECOVERED_READ,
        (None, DeviceStatus::Uncorrectable) => Status::WRITE_FAULT,
    }
}

/// Returns the status of a request whose payload could not be stored or fetched.
fn status_of_payload(error: PayloadError, operation: Operation) -> Status {
    match error {
        PayloadError::NoRoom => Status::CAPACITY,
        PayloadError::Damaged => Status::UNRECOVERED_READ,
        PayloadError::Failed if operation == Operation::Read => Status::INTERNAL,
        PayloadError::Failed => Status::WRITE_FAULT,
    }
}
