//! Admin commands.

use super::controller::Controller;
use super::health::Health;
use super::target::{Finished, Queue, Reply, Target};
use super::wire::{ALL_NAMESPACES, Command, Kind, PAGE, Status, admin, feature, log};
use super::{discovery, identify, logs, supported};
use crate::clock::Wall;
use crate::engine::Engine;

/// Log pages of a discovery controller.
const OF_DISCOVERY: [u8; 3] = [log::SUPPORTED, log::ERRORS, log::DISCOVERY];

impl Target {
    /// Executes an admin command of the controller `id`. `length` is the number of bytes of room for a reply.
    pub(super) fn admin(
        &mut self,
        queue: &Queue,
        id: u16,
        command: &Command,
        length: u32,
        engine: &Engine,
        now: Wall,
    ) -> Reply {
        let has_cache = self.drive.has_cache;
        let Some(controller) = self.controllers.get_mut(&id) else { return Reply::Done(Status::SEQUENCE, 0) };
        let is_known = controller.kind == Kind::Drive
            || [feature::EVENTS, feature::KEEP_ALIVE].contains(&(command.dword(10) as u8));
        let result = match command.opcode() {
            admin::IDENTIFY => return self.identify(id, command, length, engine),
            admin::GET_LOG_PAGE => return self.log_page(queue, id, command, length, engine, now),
            admin::SET_FEATURES if is_known => {
                let has_queues = controller.queues != 0;
                controller.features.set(command, has_cache, has_queues).map(u64::from)
            }
            admin::GET_FEATURES if is_known => controller.features.get(command, has_cache).map(u64::from),
            admin::SET_FEATURES | admin::GET_FEATURES => Err(Status::INVALID_FIELD),
            admin::KEEP_ALIVE => Ok(0),
            admin::ASYNC_EVENT => match controller.events.hold(command.id()) {
                Ok(()) => return Reply::Held,
                Err(status) => Err(status),
            },
            admin::ABORT => return self.abort(id, command),
            _ => Err(Status::INVALID_OPCODE),
        };
        result.map_or_else(|status| Reply::Done(status, 0), |value| Reply::Done(Status::OK, value))
    }

    /// Aborts a request for an event. Other commands complete, and the result is then 1.
    fn abort(&mut self, id: u16, command: &Command) -> Reply {
        let (queue, request) = (command.dword(10) as u16, (command.dword(10) >> 16) as u16);
        let held = self.controllers.get_mut(&id).filter(|_| queue == 0);
        let is_aborted = held.is_some_and(|controller| controller.events.abort(request));
        if !is_aborted {
            return Reply::Done(Status::OK, 1);
        }
        // The aborted command completes first.
        self.finished.push(Finished { controller: id, id: request, status: Status::ABORTED, result: 0 });
        self.finished.push(Finished { controller: id, id: command.id(), status: Status::OK, result: 0 });
        Reply::Held
    }

    fn identify(&self, id: u16, command: &Command, length: u32, engine: &Engine) -> Reply {
        let Some(controller) = self.controllers.get(&id) else { return Reply::Done(Status::SEQUENCE, 0) };
        if length as usize != PAGE {
            return Reply::Done(Status::DATA_LENGTH, 0);
        }
        let (structure, set) = (command.dword(10) as u8, (command.dword(11) >> 24) as u8);
        let namespace = command.namespace();
        let is_drive = controller.kind == Kind::Drive;
        let (is_own, read_only) = (namespace == 1, engine.is_read_only());
        let page = match structure {
            0x01 => Ok(self.drive.controller(id, controller.kind)),
            _ if !is_drive => Err(Status::INVALID_FIELD),
            0x05..=0x07 if set != 0 => Err(Status::COMMAND_SET),
            0x00 if is_own => Ok(self.drive.namespace(read_only)),
            0x02 | 0x07 if namespace < ALL_NAMESPACES - 1 => Ok(identify::namespaces(namespace)),
            0x03 if is_own => Ok(self.drive.descriptors()),
            // The namespace has no further properties in the NVM command set.
            0x05 if is_own => Ok(vec![0; PAGE]),
            0x06 => Ok(identify::limits(&self.drive)),
            0x08 if is_own => Ok(self.drive.independent_namespace(read_only)),
            0x1c => Ok(identify::command_sets()),
            0x00 | 0x02 | 0x03 | 0x05 | 0x07 | 0x08 => Err(Status::INVALID_NAMESPACE),
            _ => Err(Status::INVALID_FIELD),
        };
        page.map_or_else(|status| Reply::Done(status, 0), Reply::Data)
    }

    fn log_page(
        &mut self,
        queue: &Queue,
        id: u16,
        command: &Command,
        length: u32,
        engine: &Engine,
        now: Wall,
    ) -> Reply {
        let (number, keeps) = (command.dword(10) as u8, command.dword(10) >> 15 & 1 != 0);
        let dwords = u64::from(command.dword(10) >> 16) | u64::from(command.dword(11) as u16) << 16;
        let (bytes, offset) = (4 * (dwords + 1), command.qword(12));
        if bytes != u64::from(length) {
            return Reply::Done(Status::DATA_LENGTH, 0);
        }
        let used = if number == log::HEALTH { self.used(engine, now) } else { 0 };
        let Some(controller) = self.controllers.get(&id) else { return Reply::Done(Status::SEQUENCE, 0) };
        let Controller { errors, events, kind, host, .. } = controller;
        let is_known = *kind == Kind::Drive || OF_DISCOVERY.contains(&number);
        let is_device = [0, 1, ALL_NAMESPACES].contains(&command.namespace());
        let page = match number {
            _ if !is_known => return Reply::Done(Status::INVALID_LOG, 0),
            log::SUPPORTED if *kind == Kind::Drive => logs::supported(supported::LOGS.iter().map(|row| row.0)),
            log::SUPPORTED => logs::supported(OF_DISCOVERY.into_iter()),
            log::ERRORS => errors.page(),
            log::HEALTH if !is_device => return Reply::Done(Status::INVALID_NAMESPACE, 0),
            log::HEALTH => logs::health(&Health::of(engine, used), errors.count()),
            log::FIRMWARE => logs::firmware(),
            log::CHANGED_NAMESPACES => logs::changed_namespaces(events.has_changed_namespace),
            log::EFFECTS => logs::effects(),
            log::FEATURES => logs::features(self.drive.has_cache),
            log::DISCOVERY if *kind == Kind::Discovery => discovery::page(&self.drive, queue.local, self.allows(host)),
            _ => return Reply::Done(Status::INVALID_LOG, 0),
        };
        if !offset.is_multiple_of(4) || offset > page.len() as u64 || bytes > super::LONGEST_TRANSFER as u64 {
            return Reply::Done(Status::INVALID_FIELD, 0);
        }
        let mut data = page[offset as usize..].to_vec();
        // Bytes beyond the end of a page are zero.
        data.resize(bytes as usize, 0);
        if let Some(controller) = self.controllers.get_mut(&id).filter(|_| !keeps) {
            controller.events.clear(number);
        }
        Reply::Data(data)
    }
}
