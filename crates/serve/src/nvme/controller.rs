//! State of a controller: its properties, features, events and errors.

use super::MAX_ENTRIES;
use super::events::Events;
use super::features::Features;
use super::logs::Errors;
use super::wire::{Command, Kind, Status, VERSION, property};
use crate::clock::Wall;

/// Keep alive timeout of a discovery controller whose host requests none: 120 s.
const DISCOVERY_KEEP_ALIVE_MS: u32 = 120_000;

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
    shutdown: Shutdown,
    /// Number of outstanding flushes: the one of the shutdown, and those of shutdowns that a reset has ended.
    flushes: u32,
    /// Time of the last message of the host, or of the last reply to it.
    pub last_activity: Wall,
}

/// Progress of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shutdown {
    None,
    /// The device is being flushed.
    InProgress,
    Complete,
}

/// Effects of a change of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// True if the I/O queues end, because of a reset or a shutdown.
    pub ends_queues: bool,
    /// True if the device has to be flushed before [`Controller::end_shutdown`].
    pub flushes: bool,
}

/// Bit of the configuration: enable.
const ENABLE: u32 = 1;

/// Value of the field for shutdown notifications in the configuration: a normal shutdown.
const NORMAL_SHUTDOWN: u32 = 1;

/// Time limit of enabling in units of 500 ms.
const READY_TIMEOUT: u64 = 10;

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
            shutdown: Shutdown::None,
            flushes: 0,
            last_activity: now,
        }
    }

    /// Returns `true` if the controller is enabled and ready.
    pub fn is_ready(&self) -> bool {
        self.configuration & ENABLE != 0
    }

    /// Returns the time at which the host is considered lost. [`Wall::NEVER`] without a keep alive timeout.
    pub fn deadline(&self) -> Wall {
        match (self.features.keep_alive_ms, self.kind) {
            (0, Kind::Drive) => Wall::NEVER,
            (0, Kind::Discovery) => self.last_activity.later(Wall(u64::from(DISCOVERY_KEEP_ALIVE_MS) * 1_000_000)),
            (ms, _) => self.last_activity.later(Wall(u64::from(ms) * 1_000_000)),
        }
    }

    /// Returns the value of a property. `is_long` is true if its size is 8 bytes, otherwise 4.
    pub fn property(&self, offset: u32, is_long: bool) -> Result<u64, Status> {
        let value = match (offset, is_long) {
            (property::CAPABILITIES, true) => capabilities(),
            (property::VERSION, false) => u64::from(VERSION),
            (property::CONFIGURATION, false) => u64::from(self.configuration),
            (property::STATUS, false) => u64::from(self.status()),
            (property::SUBSYSTEM_RESET, false) => 0,
            // With media, in units of 500 ms.
            (property::READY_TIMEOUTS, false) => READY_TIMEOUT,
            _ => return Err(Status::INVALID_FIELD),
        };
        Ok(value)
    }

    /// Returns the status: ready, and progress of the shutdown.
    fn status(&self) -> u32 {
        let shutdown = match self.shutdown {
            Shutdown::None => 0,
            Shutdown::InProgress => 1 << 2,
            Shutdown::Complete => 2 << 2,
        };
        u32::from(self.is_ready()) | shutdown
    }

    /// Completes a shutdown, after the device was flushed.
    pub fn end_shutdown(&mut self) {
        // The flush of an earlier controller with the same number is not one of this controller.
        self.flushes = self.flushes.saturating_sub(1);
        if self.flushes == 0 && self.shutdown == Shutdown::InProgress {
            self.shutdown = Shutdown::Complete;
        }
    }

    /// Sets a property. Returns the effects of the change.
    pub fn set_property(&mut self, offset: u32, is_long: bool, value: u64) -> Result<Effects, Status> {
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
        let resets = before & ENABLE != 0 && after & ENABLE == 0;
        if resets {
            self.events = Events::default();
            self.features = Features::new(self.features.keep_alive_ms);
        }
        if (before ^ after) & ENABLE != 0 {
            self.shutdown = Shutdown::None;
        }
        let notification = after >> 14 & 0b11;
        let shuts_down = notification != 0 && self.shutdown == Shutdown::None;
        // An abrupt shutdown does not write the cache.
        let flushes = shuts_down && notification == NORMAL_SHUTDOWN && self.kind == Kind::Drive && self.is_ready();
        if shuts_down {
            self.shutdown = if flushes { Shutdown::InProgress } else { Shutdown::Complete };
            self.flushes += u32::from(flushes);
        }
        Ok(Effects { ends_queues: resets || shuts_down, flushes })
    }

    /// Records a command that failed. `queue` is the number of its queue.
    pub fn note_error(&mut self, queue: u16, command: &Command, status: Status, lba: u64) {
        self.errors.note(queue, command, status, lba);
    }
}

/// Returns the capabilities: entries per queue, contiguous queues, time limit of enabling, the NVM command set, also as
/// one of several (CSI), and readiness with media.
fn capabilities() -> u64 {
    u64::from(MAX_ENTRIES - 1) | 1 << 16 | READY_TIMEOUT << 24 | 1 << 37 | 1 << 43 | 1 << 59
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
        let mut set = |value, ends_queues, flushes, status| {
            let effects = controller.set_property(property::CONFIGURATION, false, value);
            assert_eq!(effects, Ok(Effects { ends_queues, flushes }), "{value:x}");
            assert_eq!(controller.property(property::STATUS, false), Ok(status), "{value:x}");
            if flushes {
                controller.end_shutdown();
                assert_eq!(controller.property(property::STATUS, false), Ok(1 | 2 << 2));
            }
        };
        set(enable, false, false, 1);
        set(enable | 1 << 14, true, true, 1 | 1 << 2);
        set(enable | 1 << 14, false, false, 1 | 2 << 2);
        set(0x46_0000, true, false, 0);
        // An abrupt shutdown, and one of a controller that is not enabled.
        set(enable, false, false, 1);
        set(enable | 2 << 14, true, false, 1 | 2 << 2);
        set(0x46_0000, true, false, 0);
        set(0x46_0000 | 1 << 14, true, false, 2 << 2);
        set(enable, false, false, 1);
        controller.end_shutdown();
        assert_eq!(controller.property(property::STATUS, false), Ok(1), "no shutdown is in progress");
        // A reset ends a shutdown, but not its flush.
        for value in [enable | 1 << 14, 0x46_0000, enable, enable | 1 << 14] {
            controller.set_property(property::CONFIGURATION, false, value).unwrap();
        }
        for status in [1 | 1 << 2, 1 | 2 << 2] {
            controller.end_shutdown();
            assert_eq!(controller.property(property::STATUS, false), Ok(status));
        }
        assert_eq!(controller.set_property(property::CAPABILITIES, true, 0), Err(Status::INVALID_FIELD));
        assert_eq!(controller.property(property::CAPABILITIES, false), Err(Status::INVALID_FIELD));
        assert_eq!(controller.property(property::CAPABILITIES, true), Ok(0x0800_0820_0a01_007f));
    }

    #[test]
    fn only_hosts_of_the_drive_may_omit_keep_alive() {
        let mut controller = Controller::new(Kind::Drive, "host", [0; 16], 0, Wall(5));
        assert_eq!(controller.deadline(), Wall::NEVER);
        controller.features.keep_alive_ms = 100;
        assert_eq!(controller.deadline(), Wall(100_000_005));
        let discovery = Controller::new(Kind::Discovery, "host", [0; 16], 0, Wall(5));
        assert_eq!(discovery.deadline(), Wall(120_000_000_005));
    }
}
