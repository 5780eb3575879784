//! Features of a controller, which Set Features changes and Get Features returns.

use super::events::NAMESPACE_NOTICE;
use super::wire::{Command, Status, feature};
use super::{KEEP_ALIVE_UNIT_MS, MAX_QUEUES, WARNING_TEMPERATURE};

/// Longest keep alive timeout: a day.
const LONGEST_KEEP_ALIVE_MS: u32 = 24 * 3600 * 1000;

/// Events that can be enabled: all health warnings, and changes of the namespace.
const EVENTS: u32 = 0xff | NAMESPACE_NOTICE;

/// Default threshold of over temperature in kelvin, which is the warning temperature of the controller.
const OVER_TEMPERATURE: u16 = WARNING_TEMPERATURE;

/// Current values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// Keep alive timeout in ms. 0: none.
    pub keep_alive_ms: u32,
    /// True if writes may complete before they are durable.
    pub write_cache: bool,
    /// Enabled events.
    pub events: u32,
    /// Number of I/O queues that the host may connect.
    pub queues: u16,
    arbitration: u32,
    /// Thresholds of over and under temperature in kelvin.
    temperatures: [u16; 2],
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
            queues: MAX_QUEUES,
            arbitration: 0,
            temperatures: [OVER_TEMPERATURE, 0],
            error_recovery: 0,
            atomicity: 0,
        }
    }

    /// Returns the value of a feature. `selection` is the double word that selects one of several values, and
    /// `has_cache` is true if the device has a volatile cache.
    fn value(&self, of: u8, selection: u32, has_cache: bool) -> Result<u32, Status> {
        Ok(match of {
            feature::ARBITRATION => self.arbitration,
            feature::POWER => 0,
            feature::TEMPERATURE => u32::from(self.temperatures[threshold(selection, false)?]),
            feature::ERROR_RECOVERY => self.error_recovery,
            feature::WRITE_CACHE if has_cache => u32::from(self.write_cache),
            feature::QUEUES => u32::from(self.queues - 1) * 0x1_0001,
            feature::ATOMICITY => self.atomicity,
            feature::EVENTS => self.events,
            feature::KEEP_ALIVE => self.keep_alive_ms,
            _ => return Err(Status::INVALID_FIELD),
        })
    }

    /// Executes Get Features, and returns its result.
    pub fn get(&self, command: &Command, has_cache: bool) -> Result<u32, Status> {
        let (of, selection) = (command.dword(10) as u8, command.dword(11));
        match command.dword(10) >> 8 & 0b111 {
            0b000 => self.value(of, selection, has_cache),
            // The default, which is also the saved value.
            0b001 | 0b010 => Features::new(0).value(of, selection, has_cache),
            // Changeable, without saving.
            0b011 => self.value(of, selection, has_cache).map(|_| 0b100),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// Executes Set Features, and returns its result. `has_queues` is true if the controller has I/O queues.
    pub fn set(&mut self, command: &Command, has_cache: bool, has_queues: bool) -> Result<u32, Status> {
        let (of, value) = (command.dword(10) as u8, command.dword(11));
        // Is the feature known?
        self.value(of, 0, has_cache)?;
        if command.dword(10) >> 31 != 0 {
            return Err(Status::NOT_SAVEABLE);
        }
        match of {
            feature::ARBITRATION => self.arbitration = value,
            feature::POWER if value & 0x1f == 0 => {}
            feature::TEMPERATURE => self.temperatures[threshold(value, true)?] = value as u16,
            feature::ERROR_RECOVERY if value >> 16 == 0 => self.error_recovery = value,
            feature::WRITE_CACHE => self.write_cache = value & 1 != 0,
            feature::QUEUES if has_queues => return Err(Status::SEQUENCE),
            // The highest number is invalid. Fewer queues than available may be requested. A queue has both halves.
            feature::QUEUES if value as u16 != u16::MAX && value >> 16 != 0xffff => {
                self.queues = (value as u16).min((value >> 16) as u16).min(MAX_QUEUES - 1) + 1;
                return self.value(of, 0, has_cache);
            }
            feature::ATOMICITY => self.atomicity = value & 1,
            feature::EVENTS if value & !EVENTS == 0 => self.events = value,
            feature::KEEP_ALIVE => self.keep_alive_ms = keep_alive(value)?,
            _ => return Err(Status::INVALID_FIELD),
        }
        Ok(0)
    }
}

/// Returns the index of the temperature threshold that a command selects: over or under. The only sensor is the
/// composite temperature. If `is_set` is true, all sensors can be selected as well.
fn threshold(selection: u32, is_set: bool) -> Result<usize, Status> {
    match (selection >> 16 & 0xf, selection >> 20 & 0b11) {
        (0, kind @ (0 | 1)) => Ok(kind as usize),
        (0xf, kind @ (0 | 1)) if is_set => Ok(kind as usize),
        _ => Err(Status::INVALID_FIELD),
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
        assert_eq!(
            features.set(&command(u32::from(feature::QUEUES), 0), true, true),
            Err(Status::SEQUENCE),
            "a controller with queues"
        );
        let mut set = |of, value| features.set(&command(of, value), true, false);
        assert_eq!(set(u32::from(feature::QUEUES), 0x00ff_00ff), Ok(0x003f_003f));
        assert_eq!(set(u32::from(feature::QUEUES), 0x0003_00ff), Ok(0x0003_0003));
        assert_eq!(set(u32::from(feature::TEMPERATURE), 1 << 20 | 280), Ok(0));
        assert_eq!(set(u32::from(feature::TEMPERATURE), 0xf << 16 | 350), Ok(0));
        assert_eq!(set(u32::from(feature::TEMPERATURE), 1 << 16), Err(Status::INVALID_FIELD));
        assert_eq!(set(u32::from(feature::QUEUES), 0x0003_ffff), Err(Status::INVALID_FIELD));
        assert_eq!(set(u32::from(feature::POWER), 1), Err(Status::INVALID_FIELD));
        assert_eq!(set(u32::from(feature::WRITE_CACHE) | 1 << 31, 0), Err(Status::NOT_SAVEABLE));
        assert_eq!(set(u32::from(feature::WRITE_CACHE), 0), Ok(0));
        assert_eq!(set(u32::from(feature::EVENTS), 1 << 31), Err(Status::INVALID_FIELD));
        assert_eq!(set(u32::from(feature::KEEP_ALIVE), 1001), Ok(0));
        assert_eq!(set(u32::from(feature::KEEP_ALIVE), u32::MAX), Err(Status::KEEP_ALIVE_INVALID));
        assert_eq!(set(0x7e, 0), Err(Status::INVALID_FIELD));
        let temperature = |kind: u32, select: u32| {
            features.get(&command(u32::from(feature::TEMPERATURE) | select << 8, kind << 20), true)
        };
        assert_eq!(
            [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(kind, select)| temperature(kind, select)),
            [350, 280, 343, 0].map(Ok)
        );
        assert_eq!(temperature(2, 0), Err(Status::INVALID_FIELD));
        let get = |of: u8, select: u32, cache| features.get(&command(u32::from(of) | select << 8, 0), cache);
        assert_eq!(get(feature::QUEUES, 0, true), Ok(0x0003_0003));
        assert_eq!([0, 1, 3].map(|select| get(feature::WRITE_CACHE, select, true)), [Ok(0), Ok(1), Ok(0b100)]);
        assert_eq!(get(feature::WRITE_CACHE, 0, false), Err(Status::INVALID_FIELD));
        assert_eq!(get(feature::KEEP_ALIVE, 0, true), Ok(1100));
    }
}
