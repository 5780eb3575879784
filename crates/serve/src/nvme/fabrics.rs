//! Commands of fabrics: Connect, Disconnect, and the properties of a controller.

use super::controller::Controller;
use super::features::keep_alive;
use super::target::{Queue, Reply, Target};
use super::wire::{Command, DISCOVERY_NQN, Kind, NQN, NQN_FIELD, Status, fabrics, get, text};
use super::{MAX_ENTRIES, MAX_QUEUES};
use crate::clock::Wall;

/// Bytes of the data of a Connect.
pub const CONNECT_DATA: usize = 1024;

/// Offsets in the data of a Connect.
const HOST_ID: usize = 0;
const CONTROLLER: usize = 16;
const SUBSYSTEM: usize = 256;
const HOST: usize = 512;

/// Offsets of invalid parameters in the command.
const QUEUE_NUMBER: u16 = 42;
const QUEUE_SIZE: u16 = 44;

/// Returns the reply to a Connect with an invalid parameter, at an offset of its command or its data.
fn invalid(offset: u16, is_data: bool) -> Reply {
    Reply::Done(Status::CONNECT_INVALID, u64::from(offset) | u64::from(is_data) << 16)
}

impl Target {
    /// Connects a queue.
    pub(super) fn connect(&mut self, queue: &mut Queue, command: &Command, data: &[u8], now: Wall) -> Reply {
        if command.dword(10) as u16 != 0 {
            return Reply::Done(Status::CONNECT_FORMAT, 0);
        }
        if data.len() != CONNECT_DATA {
            return Reply::Done(Status::DATA_LENGTH, 0);
        }
        let (number, size) = ((command.dword(10) >> 16) as u16, command.dword(11) as u16);
        let name = |at: usize| text(&data[at..at + NQN_FIELD]).filter(|name| (1..=NQN).contains(&name.len()));
        let Some(subsystem) = name(SUBSYSTEM) else { return invalid(SUBSYSTEM as u16, true) };
        let kind = match subsystem {
            DISCOVERY_NQN => Kind::Discovery,
            name if name == self.drive.nqn => Kind::Drive,
            _ => return invalid(SUBSYSTEM as u16, true),
        };
        let Some(host) = name(HOST) else { return invalid(HOST as u16, true) };
        if kind == Kind::Drive && !self.allows(host) {
            return Reply::Done(Status::CONNECT_HOST, 0);
        }
        if size == 0 || size >= MAX_ENTRIES {
            return invalid(QUEUE_SIZE, false);
        }
        let wanted = u16::from_le_bytes(get(data, CONTROLLER));
        let host_id = get(data, HOST_ID);
        let connected = match number {
            0 if wanted != u16::MAX => return invalid(CONTROLLER as u16, true),
            0 => keep_alive(command.dword(12))
                .and_then(|ms| self.add(Controller::new(kind, host, host_id, ms, now)).ok_or(Status::CONNECT_BUSY)),
            _ => {
                if number > MAX_QUEUES || kind == Kind::Discovery {
                    return invalid(QUEUE_NUMBER, false);
                }
                let found = self.controllers.get_mut(&wanted);
                let Some(controller) = found.filter(|c| c.kind == kind && c.host == host && c.host_id == host_id)
                else {
                    return invalid(CONTROLLER as u16, true);
                };
                if number > controller.features.queues {
                    return invalid(QUEUE_NUMBER, false);
                }
                controller.add_queue(number).map(|()| wanted)
            }
        };
        match connected {
            Ok(id) => {
                queue.connect(id, number, size + 1, command.dword(11) >> 16 & 1 << 2 != 0);
                Reply::Done(Status::OK, u64::from(id))
            }
            Err(status) => Reply::Done(status, 0),
        }
    }

    /// Executes another command of fabrics, on a connected queue of the controller `id`.
    pub(super) fn fabrics(&mut self, queue: &mut Queue, id: u16, command: &Command) -> Reply {
        let is_admin = queue.number() == 0;
        let Some(controller) = self.controllers.get_mut(&id) else { return Reply::Done(Status::SEQUENCE, 0) };
        let (is_long, offset) = (command.dword(10) & 0b111 == 1, command.dword(11));
        let result = match command.fabrics_type() {
            fabrics::PROPERTY_GET if is_admin => controller.property(offset, is_long),
            fabrics::PROPERTY_SET if is_admin => {
                controller.set_property(offset, is_long, command.qword(12)).map(|effects| {
                    controller.queues &= if effects.ends_queues { 0 } else { u128::MAX };
                    self.has_changed |= effects.ends_queues;
                    self.flushes.extend(effects.flushes.then_some(id));
                    0
                })
            }
            fabrics::DISCONNECT if is_admin => Err(Status::DISCONNECT_QUEUE),
            fabrics::DISCONNECT => {
                queue.is_ending = true;
                Ok(0)
            }
            _ => Err(Status::INVALID_FIELD),
        };
        result.map_or_else(|status| Reply::Done(status, 0), |value| Reply::Done(Status::OK, value))
    }
}

impl Controller {
    /// Adds an I/O queue.
    fn add_queue(&mut self, number: u16) -> Result<(), Status> {
        if !self.is_ready() {
            return Err(Status::SEQUENCE);
        }
        if self.queues >> number & 1 != 0 {
            return Err(Status::CONNECT_BUSY);
        }
        self.queues |= 1 << number;
        Ok(())
    }
}
