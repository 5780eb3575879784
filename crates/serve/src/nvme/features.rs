//! Features of a controller, which Set Features changes and Get Features returns.

use super::controller::MAX_QUEUES;
use super::events::NAMESPACE_NOTICE;
use super::wire::{Command, Status, feature};

/// Unit of the keep alive timer in ms.
pub const KEEP_ALIVE_UNIT_MS: u32 = 100;

/// Longest keep alive timeout: a day.
const LONGEST_KEEP_ALIVE_MS: u32 = 24 * 3600 * 1000;

/// Events that can be enabled: all health warnings, and changes of the namespace.
const EVENTS: u32 = 0xff | NAMESPACE_NOTICE;

/// Current values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// Keep alive timeout in ms. 0: none.
    pub keep_alive_ms: u32,
    /// True if writes may complete before they are durable.
    pub write_cache: bool,
    /// Enabled events.
    pub events: u32,
    arbitration: u32,
    temperature: u32,
    error_recovery: u32,
    atomicity: u32,
}

impl Features {
    /// Creates the default values, with a keep alive timeout.
    pub fn new(keep_alive_ms: u32) -> Features {
        Features {
            keep_alive_ms,
            write_cache: true,
            events: 0,
            arbitration: 0,
            temperature: 0xffff,
            error_recovery: 0,
            atomicity: 0,
        }
    }

    /// Returns the value of a feature. `has_cache` is true if the device has a volatile cache.
    pub fn value(&self, of: u8, has_cache: bool) -> Result<u32, Status> {
        Ok(match of {
            feature::ARBITRATION => self.arbitration,
            feature::POWER => 0,
            feature::TEMPERATURE => self.temperature,
            feature::ERROR_RECOVERY => self.error_recovery,
            feature::WRITE_CACHE if has_cache => u32::from(self.write_cache),
            feature::QUEUES => u32::from(MAX_QUEUES - 1) * 0x1_0001,
            feature::ATOMICITY => self.atomicity,
            feature::EVENTS => self.events,
            feature::KEEP_ALIVE => self.keep_alive_ms,
            _ => return Err(Status::INVALID_FIELD),
        })
    }

    /// Executes Get Features, and returns its result.
    pub fn get(&self, command: &Command, has_cache: bool) -> Result<u32, Status> {
        let of = command.dword(10) as u8;
        match command.dword(10) >> 8 & 0b111 {
            0b000 => self.value(of, has_cache),
            // The default, which is also what is saved.
            0b001 | 0b010 => Features::new(0).value(of, has_cache),
            // Changeable, without saving.
            0b011 => self.value(of, has_cache).map(|_| 0b100),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// Executes Set Features, and returns its result.
    pub fn set(&mut self, command: &Command, has_cache: bool) -> Result<u32, Status> {
        let (of, value) = (command.dword(10) as u8, command.dword(11));
        self.value(of, has_cache)?;
        if command.dword(10) >> 31 != 0 {
            return Err(Status::NOT_SAVEABLE);
        }
        match of {
            feature::ARBITRATION => self.arbitration = value,
            feature::POWER if value & 0x1f == 0 => {}
            feature::TEMPERATURE => self.temperature = value,
            feature::ERROR_RECOVERY if value >> 16 == 0 => self.error_recovery = value,
            feature::WRITE_CACHE => self.write_cache = value & 1 != 0,
            // The highest number is invalid. Fewer queues than available may be asked for.
            feature::QUEUES if value as u16 != u16::MAX && value >> 16 != 0xffff => {
                let granted = |asked: u32| asked.min(u32::from(MAX_QUEUES - 1));
                return Ok(granted(value & 0xffff) | granted(value >> 16) << 16);
            }
            feature::ATOMICITY => self.atomicity = value & 1,
            feature::EVENTS if value & !EVENTS == 0 => self.events = value,
            feature::KEEP_ALIVE => self.keep_alive_ms = keep_alive(value)?,
            _ => return Err(Status::INVALID_FIELD),
        }
        Ok(0)
    }
}

/// Returns a keep alive timeout in whole units.
pub fn keep_alive(ms: u32) -> Result<u32, Status> {
    if ms > LONGEST_KEEP_ALIVE_MS {
        return Err(Status::KEEP_ALIVE_INVALID);
    }
    Ok(ms.next_multiple_of(KEEP_ALIVE_UNIT_MS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvme::wire::{COMMAND, put};

    fn command(of: u32, value: u32) -> Command {
        let mut command = Command([0; COMMAND]);
        put(&mut command.0, 40, of.to_le_bytes());
        put(&mut command.0, 44, value.to_le_bytes());
        command
    }

    #[test]
    fn features_are_set_read_and_refused() {
        let mut features = Features::new(250);
        let mut set = |of, value| features.set(&command(of, value), true);
        assert_eq!(set(u32::from(feature::QUEUES), 0x0003_00ff), Ok(0x0003_003f));
        assert_eq!(set(u32::from(feature::QUEUES), 0x0003_ffff), Err(Status::INVALID_FIELD));
        assert_eq!(set(u32::from(feature::POWER), 1), Err(Status::INVALID_FIELD));
        assert_eq!(set(u32::from(feature::WRITE_CACHE) | 1 << 31, 0), Err(Status::NOT_SAVEABLE));
        assert_eq!(set(u32::from(feature::WRITE_CACHE), 0), Ok(0));
        assert_eq!(set(u32::from(feature::EVENTS), 1 << 31), Err(Status::INVALID_FIELD));
        assert_eq!(set(u32::from(feature::KEEP_ALIVE), 1001), Ok(0));
        assert_eq!(set(u32::from(feature::KEEP_ALIVE), u32::MAX), Err(Status::KEEP_ALIVE_INVALID));
        assert_eq!(set(0x7e, 0), Err(Status::INVALID_FIELD));
        let get = |of: u8, select: u32, cache| features.get(&command(u32::from(of) | select << 8, 0), cache);
        assert_eq!([0, 1, 3].map(|select| get(feature::WRITE_CACHE, select, true)), [Ok(0), Ok(1), Ok(0b100)]);
        assert_eq!(get(feature::WRITE_CACHE, 0, false), Err(Status::INVALID_FIELD));
        assert_eq!(get(feature::KEEP_ALIVE, 0, true), Ok(1100));
    }
}
