//! State of a controller: its properties, features, events and errors.

use super::events::Events;
use super::features::Features;
use super::logs::Errors;
use super::wire::{Command, Status, VERSION, property};
use crate::clock::Wall;

/// Maximum number of I/O queues of a controller.
pub const MAX_QUEUES: u16 = 64;

/// Maximum number of entries of a queue.
pub const MAX_ENTRIES: u16 = 128;

/// Kind of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It lists the drive.
    Discovery,
    /// It has the namespace of the drive.
    Drive,
}

/// A controller, which exists from the Connect of its admin queue until that queue ends.
#[derive(Clone, Debug)]
pub struct Controller {
    /// Kind of the controller.
    pub kind: Kind,
    /// NQN of the host.
    pub host: String,
    /// Identifier of the host.
    pub host_id: [u8; 16],
    /// Connected I/O queues: bit *n* for queue *n*.
    pub queues: u128,
    /// Features.
    pub features: Features,
    /// Asynchronous events.
    pub events: Events,
    /// Commands that failed.
    pub errors: Errors,
    configuration: u32,
    has_shut_down: bool,
    /// Time of the last command.
    pub heard: Wall,
}

/// Bit of the configuration: enable.
const ENABLE: u32 = 1;

impl Controller {
    /// Creates a controller that is not enabled.
    pub fn new(kind: Kind, host: &str, host_id: [u8; 16], keep_alive_ms: u32, now: Wall) -> Controller {
        Controller {
            kind,
            host: host.to_owned(),
            host_id,
            queues: 0,
            features: Features::new(keep_alive_ms),
            events: Events::default(),
            errors: Errors::default(),
            configuration: 0,
            has_shut_down: false,
            heard: now,
        }
    }

    /// Returns `true` if the controller is enabled and ready.
    pub fn is_ready(&self) -> bool {
        self.configuration & ENABLE != 0
    }

    /// Returns the time at which the host is considered lost. [`Wall::NEVER`] without a keep alive timeout.
    pub fn deadline(&self) -> Wall {
        match self.features.keep_alive_ms {
            0 => Wall::NEVER,
            ms => self.heard.later(Wall(u64::from(ms) * 1_000_000)),
        }
    }

    /// Returns the value of a property of `size` bytes.
    pub fn property(&self, offset: u32, is_long: bool) -> Result<u64, Status> {
        let value = match (offset, is_long) {
            (property::CAPABILITIES, true) => capabilities(),
            (property::VERSION, false) => u64::from(VERSION),
            (property::CONFIGURATION, false) => u64::from(self.configuration),
            (property::STATUS, false) => u64::from(self.status()),
            (property::SUBSYSTEM_RESET, false) => 0,
            _ => return Err(Status::INVALID_FIELD),
        };
        Ok(value)
    }

    /// Returns the status: ready, and shutdown complete.
    fn status(&self) -> u32 {
        u32::from(self.is_ready()) | if self.has_shut_down { 2 << 2 } else { 0 }
    }

    /// Sets a property. Returns `true` if the controller was reset or shut down, which ends its I/O queues.
    pub fn set_property(&mut self, offset: u32, is_long: bool, value: u64) -> Result<bool, Status> {
        if offset != property::CONFIGURATION || is_long {
            return Err(Status::INVALID_FIELD);
        }
        let (before, after) = (self.configuration, value as u32);
        // Fields that count only when the controller is enabled: command set, page size, arbitration, entry sizes.
        let selects = after >> 4 & 0b111;
        let entries = after >> 16 & 0xff;
        let is_valid = (selects == 0 || selects == 0b110) && after >> 7 & 0xf == 0 && after >> 11 & 0b111 == 0;
        let is_valid = is_valid && (self.kind == Kind::Discovery || entries == 0x46);
        if after & ENABLE != 0 && before & ENABLE == 0 && !is_valid {
            return Err(Status::INVALID_FIELD);
        }
        self.configuration = after;
        let (was_shut_down, shuts_down) = (self.has_shut_down, after >> 14 & 0b11 != 0);
        let resets = before & ENABLE != 0 && after & ENABLE == 0;
        if resets {
            (self.events, self.has_shut_down) = (Events::default(), false);
            self.features = Features::new(self.features.keep_alive_ms);
        }
        self.has_shut_down |= shuts_down;
        Ok(resets || (shuts_down && !was_shut_down))
    }

    /// Records a command that failed. `queue` is the number of its queue.
    pub fn note_error(&mut self, queue: u16, command: &Command, status: Status, lba: u64) {
        self.errors.note(queue, command, status, lba);
    }
}

/// Returns the capabilities: entries per queue, contiguous queues, time limit of enabling in units of 500 ms, and the
/// NVM command set, also as one of several (CSI).
fn capabilities() -> u64 {
    u64::from(MAX_ENTRIES - 1) | 1 << 16 | 10 << 24 | 1 << 37 | 1 << 43
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_enabled_reset_and_shut_down() {
        let mut controller = Controller::new(Kind::Drive, "host", [0; 16], 0, Wall(0));
        let enable = 0x46_0001;
        assert_eq!(controller.property(property::STATUS, false), Ok(0));
        for invalid in [0x45_0001, 0x46_0081, 0x46_0801, 0x46_0011] {
            let result = controller.set_property(property::CONFIGURATION, false, invalid);
            assert_eq!(result, Err(Status::INVALID_FIELD), "{invalid:x}");
        }
        assert_eq!(controller.set_property(property::CONFIGURATION, false, enable), Ok(false));
        assert_eq!(controller.property(property::STATUS, false), Ok(1));
        assert_eq!(controller.set_property(property::CONFIGURATION, false, enable | 1 << 14), Ok(true));
        assert_eq!(controller.property(property::STATUS, false), Ok(1 | 2 << 2));
        assert_eq!(controller.set_property(property::CONFIGURATION, false, 0x46_0000), Ok(true));
        assert_eq!(controller.property(property::STATUS, false), Ok(0));
        assert_eq!(controller.set_property(property::CAPABILITIES, true, 0), Err(Status::INVALID_FIELD));
        assert_eq!(controller.property(property::CAPABILITIES, false), Err(Status::INVALID_FIELD));
        assert_eq!(controller.property(property::CAPABILITIES, true), Ok(0x0820_0a01_007f));
    }

    #[test]
    fn a_host_without_keep_alive_is_never_lost() {
        let mut controller = Controller::new(Kind::Drive, "host", [0; 16], 0, Wall(5));
        assert_eq!(controller.deadline(), Wall::NEVER);
        controller.features.keep_alive_ms = 100;
        assert_eq!(controller.deadline(), Wall(100_000_005));
    }
}
