//! Commands that the device executes: their requests, and their status when all of these have completed.

use std::collections::BTreeMap;

use floatgate_core::sim::request::{Operation, SECTOR, Status as DeviceStatus};
use floatgate_core::sim::slab::Slab;

use super::io::{Io, Use};
use super::wire::{Command, Status};
use crate::clock::Wall;
use crate::engine::{Answer, Engine, Order, Port};
use crate::lateness::Requesting;
use crate::payload::PayloadError;

/// Maximum number of sectors of a request: those of 1 GiB. Longer ranges are several requests.
const LONGEST: u32 = 1 << 21;

/// A command in the device.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Index and generation of the client.
    pub client: (usize, u64),
    /// The command.
    pub command: Command,
    /// Size of its reply, or of its data, in bytes.
    pub promised: usize,
    /// Status: the first error.
    pub status: Status,
    uses: Use,
    /// Number of outstanding requests.
    outstanding: u32,
}

/// Commands in the device.
#[derive(Debug, Default)]
pub struct Works {
    works: Slab<u32, Work>,
    /// Data of Compare commands.
    expected: BTreeMap<u32, Vec<u8>>,
}

/// What is needed to submit requests.
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

impl Works {
    /// Returns `true` if no command is in the device.
    pub fn is_empty(&self) -> bool {
        self.works.is_empty()
    }

    /// Drops all commands, after a power cut.
    pub fn clear(&mut self) {
        *self = Works::default();
    }

    /// Submits the requests of a command. Returns its status if it has completed.
    pub fn start(
        &mut self,
        submission: &mut Submission,
        io: &Io,
        data: &[u8],
        client: (usize, u64),
        command: &Command,
        promised: usize,
    ) -> Option<Status> {
        let Io { operation, uses, .. } = *io;
        let work = Work { client, command: *command, promised, status: Status::OK, uses, outstanding: 0 };
        let token = self.works.insert(work);
        let (mut outstanding, mut status) = (0, Status::OK);
        for &(first, sectors) in std::iter::once(&io.range).chain(&io.more) {
            let mut done = 0;
            loop {
                let count = (sectors - done).min(LONGEST);
                let order = Order {
                    token: u64::from(token),
                    fua: io.fua,
                    data: Some(data).filter(|_| io.has_data),
                    headroom: if uses == Use::Return { submission.headroom } else { 0 },
                    requesting: std::mem::take(&mut submission.requesting),
                    ..Order::of(operation, first + u64::from(done), count)
                };
                match submission.engine.submit(submission.port, submission.now, &order) {
                    Ok(()) => outstanding += 1,
                    Err(error) => status = status_of_payload(error, operation),
                }
                done += count;
                if done == sectors {
                    break;
                }
            }
        }
        if outstanding == 0 {
            self.works.remove(token);
            return Some(status);
        }
        (self.works[token].outstanding, self.works[token].status) = (outstanding, status);
        if uses == Use::Compare {
            self.expected.insert(token, data.to_vec());
        }
        None
    }

    /// Records a completed request. Returns the command if it was the last one of it. The data of the answer are those
    /// for the host then.
    pub fn complete(&mut self, answer: &mut Answer) -> Option<Work> {
        let token = answer.token as u32;
        let work = &mut self.works[token];
        work.outstanding -= 1;
        let read = matches!(work.uses, Use::Return | Use::Compare | Use::Verify);
        if work.status == Status::OK {
            work.status = status_of(answer, read);
        }
        if work.outstanding > 0 {
            return None;
        }
        let mut work = self.works.remove(token);
        if let Some(expected) = self.expected.remove(&token)
            && work.status == Status::OK
            && expected != answer.bytes
        {
            work.status = Status::COMPARE_FAILURE;
        }
        if work.status != Status::OK || work.uses != Use::Return {
            answer.bytes.clear();
        }
        Some(work)
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

const _: () = assert!(LONGEST as u64 * SECTOR == 1 << 30);
