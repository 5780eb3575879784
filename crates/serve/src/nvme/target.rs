//! The command engine: executes the commands of all queues of a drive, without sockets.
//!
//! A transport calls [`Target::execute`] with a command and its data. Admin commands complete at once, except for
//! requests for events, which complete through [`Target::take_finished`]. I/O commands are returned, to be submitted to
//! the device ([`super::in_flight`]).

use std::collections::BTreeMap;
use std::net::SocketAddr;

use floatgate_core::sim::request::Operation;

use super::controller::Controller;
use super::events::{Event, NAMESPACE_NOTICE};
use super::health;
use super::identify::Drive;
use super::io::{self, Io};
use super::wire::{Command, Kind, Status, admin, fabrics};
use crate::clock::Wall;
use crate::engine::Engine;

/// Maximum number of controllers.
pub const MAX_CONTROLLERS: usize = 32;

/// Highest number of a controller.
const MAX_ID: u16 = 0xffef;

/// State of a queue, which its connection holds.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// Controller, and number of the queue. `None` before Connect.
    pub link: Option<(u16, u16)>,
    /// Number of entries.
    pub entries: u16,
    /// True if the host does not need the head of the queue.
    pub no_flow_control: bool,
    /// Address at which the host has reached the server.
    pub local: Option<SocketAddr>,
    /// True if the queue ends after its last reply.
    pub is_ending: bool,
    /// Number of outstanding commands, without those that wait for events.
    pub outstanding: u32,
    head: u16,
}

impl Queue {
    /// Creates a queue that is not connected. `local` is the address at which the host has reached the server.
    pub fn new(local: Option<SocketAddr>) -> Queue {
        Queue { local, ..Queue::default() }
    }

    /// Takes an entry off the queue. Returns `false` if more commands are outstanding than the queue has entries.
    pub fn advance(&mut self) -> bool {
        self.head = (self.head + 1) % self.entries.max(1);
        self.outstanding += 1;
        self.outstanding <= u32::from(self.entries.max(1))
    }

    /// Returns the head of the queue, for a completion. FFFFh in the reply to a Connect tells the host that flow
    /// control is disabled.
    pub fn head(&self) -> u16 {
        if self.no_flow_control { u16::MAX } else { self.head }
    }

    /// Sets the parameters of a queue that was connected by the command that is in its first entry.
    pub fn connect(&mut self, controller: u16, number: u16, entries: u16, no_flow_control: bool) {
        (self.link, self.entries) = (Some((controller, number)), entries);
        (self.no_flow_control, self.head) = (no_flow_control, 1 % entries);
    }

    /// Returns the number of the queue.
    pub fn number(&self) -> u16 {
        self.link.map_or(0, |(_, number)| number)
    }
}

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The command has completed.
    Done(Status, u64),
    /// The command has completed, with data for the host.
    Data(Vec<u8>),
    /// The command completes later.
    Held,
    /// The command has to be submitted to the device.
    Device(Io),
}

/// A command that was held, and has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Controller, on whose admin queue the command is.
    pub controller: u16,
    /// Identifier of the command.
    pub id: u16,
    /// Status.
    pub status: Status,
    /// Result.
    pub result: u64,
}

/// A drive and its controllers.
pub struct Target {
    pub(super) drive: Drive,
    pub(super) controllers: BTreeMap<u16, Controller>,
    pub(super) finished: Vec<Finished>,
    /// NQNs of the hosts that may connect. Empty: all.
    hosts: Vec<String>,
    last_id: u16,
    /// Controllers whose shutdown waits for a flush that has to be submitted.
    pub(super) flushes: Vec<u16>,
    /// Percentage used of the device, and the time at which it was determined.
    used: Option<(Wall, u8)>,
    /// Critical warnings when they were last checked.
    warning: u8,
    /// True if queues may have ended since [`Target::take_changed`].
    pub(super) has_changed: bool,
}

impl Target {
    /// Creates a target for a drive. `hosts` are the NQNs of the hosts that may connect; if it is empty, all may.
    pub fn new(drive: Drive, hosts: Vec<String>) -> Target {
        Target {
            drive,
            controllers: BTreeMap::new(),
            finished: Vec::new(),
            hosts,
            last_id: 0,
            flushes: Vec::new(),
            used: None,
            warning: 0,
            has_changed: false,
        }
    }

    /// Returns the drive.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Returns the percentage used of the device, at most a second old, because all blocks have to be read.
    pub(super) fn used(&mut self, engine: &Engine, now: Wall) -> u8 {
        /// Interval between two determinations.
        const INTERVAL: Wall = Wall(1_000_000_000);
        match self.used {
            Some((at, used)) if now.since(at) < INTERVAL => used,
            _ => {
                let used = health::used(engine.device());
                self.used = Some((now, used));
                used
            }
        }
    }

    /// Takes the controllers whose shutdown waits for a flush that has to be submitted.
    pub fn take_flushes(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.flushes)
    }

    /// Completes the shutdown of a controller, after a flush.
    pub fn end_shutdown(&mut self, id: u16) {
        if let Some(controller) = self.controllers.get_mut(&id) {
            controller.end_shutdown();
        }
    }

    /// Records a message of a host, or a reply to it, for its keep alive timer.
    pub fn note_activity(&mut self, queue: &Queue, now: Wall) {
        if let Some(controller) = queue.link.and_then(|(id, _)| self.controllers.get_mut(&id)) {
            controller.last_activity = controller.last_activity.max(now);
        }
    }

    /// Executes a command. `length` is the number of bytes that its descriptor names: `data` if the host has sent them,
    /// otherwise the room for a reply.
    pub fn execute(
        &mut self,
        queue: &mut Queue,
        command: &Command,
        data: &[u8],
        length: u32,
        engine: &Engine,
        now: Wall,
    ) -> Reply {
        let reply = self.dispatch(queue, command, data, length, engine, now);
        if let Reply::Done(status, _) = reply
            && status != Status::OK
        {
            self.note_error(queue, command, status);
        }
        reply
    }

    /// Records a command that failed, for the log page of errors.
    pub fn note_error(&mut self, queue: &Queue, command: &Command, status: Status) {
        let Some((id, number)) = queue.link else { return };
        let lba = if number > 0 { command.qword(10) } else { 0 };
        if let Some(controller) = self.controllers.get_mut(&id) {
            controller.note_error(number, command, status, lba);
        }
    }

    fn dispatch(
        &mut self,
        queue: &mut Queue,
        command: &Command,
        data: &[u8],
        length: u32,
        engine: &Engine,
        now: Wall,
    ) -> Reply {
        if command.has_unsupported_flags() {
            return Reply::Done(Status::INVALID_FIELD, 0);
        }
        let is_connect = command.opcode() == admin::FABRICS && command.fabrics_type() == fabrics::CONNECT;
        let Some((id, number)) = queue.link else {
            return if is_connect { self.connect(queue, command, data, now) } else { Reply::Done(Status::SEQUENCE, 0) };
        };
        let Some(controller) = self.controllers.get_mut(&id) else { return Reply::Done(Status::SEQUENCE, 0) };
        match (command.opcode(), number) {
            (admin::FABRICS, _) if is_connect => Reply::Done(Status::SEQUENCE, 0),
            (admin::FABRICS, _) => self.fabrics(queue, id, command),
            (_, _) if !controller.is_ready() => Reply::Done(Status::SEQUENCE, 0),
            (_, 0) => self.admin(queue, id, command, length, engine, now),
            _ => {
                let write_through = self.drive.has_cache && !controller.features.write_cache;
                match io::requests(command, data, length, &self.drive) {
                    Ok(Some(mut io)) => {
                        io.fua |= write_through && matches!(io.operation, Operation::Write | Operation::WriteZeroes);
                        Reply::Device(io)
                    }
                    Ok(None) => Reply::Done(Status::OK, 0),
                    Err(status) => Reply::Done(status, 0),
                }
            }
        }
    }

    /// Adds a controller, and returns its number. `None` if there is no room.
    pub(super) fn add(&mut self, controller: Controller) -> Option<u16> {
        if self.controllers.len() >= MAX_CONTROLLERS {
            return None;
        }
        loop {
            self.last_id = self.last_id % MAX_ID + 1;
            if !self.controllers.contains_key(&self.last_id) {
                self.controllers.insert(self.last_id, controller);
                return Some(self.last_id);
            }
        }
    }

    /// Returns `true` if a host may connect.
    pub(super) fn allows(&self, host: &str) -> bool {
        self.hosts.is_empty() || self.hosts.iter().any(|allowed| allowed == host)
    }

    /// Ends a queue, whose connection has ended. The end of an admin queue is the end of its controller.
    pub fn end(&mut self, queue: &Queue) {
        match queue.link {
            Some((id, 0)) => {
                self.controllers.remove(&id);
                self.has_changed = true;
            }
            Some((id, number)) => {
                if let Some(controller) = self.controllers.get_mut(&id) {
                    controller.queues &= !(1 << number);
                }
            }
            None => {}
        }
    }

    /// Returns `true` if the queue still exists. Its connection ends if its controller does not have it any more.
    pub fn has(&self, queue: &Queue) -> bool {
        queue.link.is_none_or(|(id, number)| {
            self.controllers.get(&id).is_some_and(|controller| number == 0 || controller.queues >> number & 1 != 0)
        })
    }

    /// Returns `true` if queues may have ended since the last call: see [`Target::has`].
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// Removes the controllers whose hosts are lost.
    pub fn expire(&mut self, now: Wall) {
        let before = self.controllers.len();
        self.controllers.retain(|_, controller| controller.deadline() > now);
        self.has_changed |= self.controllers.len() < before;
    }

    /// Returns the time at which the next host is lost unless it sends a command.
    pub fn deadline(&self) -> Wall {
        self.controllers.values().map(Controller::deadline).min().unwrap_or(Wall::NEVER)
    }

    /// Removes all controllers, after a power cut.
    pub fn reset(&mut self) {
        self.controllers.clear();
        self.finished.clear();
        self.flushes.clear();
    }

    /// Checks the condition of the device, and raises events if it has changed.
    pub fn check(&mut self, engine: &Engine) {
        let warning = health::warning(engine.device());
        let new = warning & !self.warning;
        self.warning = warning;
        for (id, controller) in &mut self.controllers {
            let Controller { features, events, kind, .. } = controller;
            if *kind == Kind::Drive && new != 0 {
                let enabled = new & features.events as u8;
                let degraded = health::READ_ONLY | health::DEGRADED;
                let kinds = [(health::SPARE_LOW, Event::Spare), (degraded, Event::Reliability)];
                kinds.into_iter().filter(|(bits, _)| enabled & bits != 0).for_each(|(_, event)| events.raise(event));
                if new & health::READ_ONLY != 0 {
                    events.has_changed_namespace = true;
                    if features.events & NAMESPACE_NOTICE != 0 {
                        events.raise(Event::Namespace);
                    }
                }
            }
            while let Some((request, event)) = events.deliver() {
                let (status, result) = (Status::OK, event.result());
                self.finished.push(Finished { controller: *id, id: request, status, result });
            }
        }
    }

    /// Takes the commands that were held and have completed.
    pub fn take_finished(&mut self) -> Vec<Finished> {
        std::mem::take(&mut self.finished)
    }
}
