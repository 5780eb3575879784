//! Identify data structures, which describe the drive, its controllers and its namespace.

use floatgate_core::device_file::DeviceConfig;
use xxhash_rust::xxh3::xxh3_128;

use super::controller::{Kind, MAX_ENTRIES};
use super::features::KEEP_ALIVE_UNIT_MS;
use super::logs::ERRORS;
use super::wire::{DISCOVERY_NQN, PAGE, VERSION, put, put_text};
use super::{CAPSULE_DATA, LONGEST_TRANSFER, events};
use crate::address::Address;

/// Revision of the firmware.
pub const FIRMWARE: &str = env!("CARGO_PKG_VERSION");

/// The drive: an NVM subsystem with one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drive {
    /// NQN of the subsystem.
    pub nqn: String,
    /// Name of the device.
    pub name: String,
    /// Serial number.
    pub serial: String,
    /// Globally unique identifier of the namespace.
    pub id: [u8; 16],
    /// Bytes of a logical block.
    pub block: u32,
    /// Number of logical blocks.
    pub blocks: u64,
    /// Bytes of a mapping unit.
    pub unit: u32,
    /// True if data are lost without power before they are flushed.
    pub has_cache: bool,
}

impl Drive {
    /// Creates the drive of a device. `place` distinguishes it from other drives: hosts take drives with the same NQN
    /// for one.
    pub fn new(config: &DeviceConfig, place: &str) -> Drive {
        let hash = xxh3_128(format!("{place} {} {}", config.name, config.logical_bytes()).as_bytes());
        let serial = format!("{:016X}", hash as u64);
        let block = config.host.sector_size.0 as u32;
        let name: String = config.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        Drive {
            nqn: format!("nqn.2026-01.example.floatgate:{name}:{}", serial.to_ascii_lowercase()),
            name,
            serial,
            id: hash.to_be_bytes(),
            block,
            blocks: config.logical_bytes() / u64::from(block),
            unit: u32::try_from(config.unit_bytes()).unwrap_or(u32::MAX),
            has_cache: config.buffer.as_ref().is_some_and(|buffer| !buffer.power_loss_protection),
        }
    }

    /// Creates the drive of a device that is served at these addresses of this machine. Drives of other machines and
    /// addresses have other names.
    pub fn at(config: &DeviceConfig, addresses: &[Address]) -> Drive {
        let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let address = addresses.first().map(ToString::to_string).unwrap_or_default();
        Drive::new(config, &format!("{} {address}", machine.trim()))
    }

    /// Returns the data structure of a controller.
    pub fn controller(&self, id: u16, kind: Kind) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        let text = [(4, 20, &self.serial[..]), (24, 40, &format!("Floatgate {}", self.name)), (64, 8, FIRMWARE)];
        text.into_iter().for_each(|(at, length, text)| put_text(&mut page, at, length, text, b' '));
        page[77] = (LONGEST_TRANSFER / PAGE).ilog2() as u8;
        put(&mut page, 78, id.to_le_bytes());
        put(&mut page, 80, VERSION.to_le_bytes());
        // A 128-bit host identifier, and commands as a sign of life.
        put(&mut page, 96, (1_u32 | 1 << 6).to_le_bytes());
        page[111] = if kind == Kind::Drive { 1 } else { 2 };
        page[259] = events::LIMIT as u8 - 1;
        // Log pages can be read in parts.
        page[261] = 1 << 2;
        page[262] = ERRORS as u8 - 1;
        put(&mut page, 320, ((KEEP_ALIVE_UNIT_MS / 100) as u16).to_le_bytes());
        put(&mut page, 514, MAX_ENTRIES.to_le_bytes());
        // Data blocks, with an offset in capsules.
        put(&mut page, 536, (1_u32 | 1 << 20).to_le_bytes());
        let nqn = if kind == Kind::Drive { &self.nqn } else { DISCOVERY_NQN };
        put_text(&mut page, 768, 256, nqn, 0);
        if kind == Kind::Drive {
            self.describe_drive(&mut page);
        }
        page
    }

    /// Sets the fields of controllers with a namespace.
    fn describe_drive(&self, page: &mut [u8]) {
        // Several ports and controllers have the same namespace.
        page[76] = 0b11;
        put(page, 92, events::NAMESPACE_NOTICE.to_le_bytes());
        page[258] = 3;
        // One firmware slot, which is read-only.
        page[260] = 1 | 1 << 1;
        // The log page of effects.
        page[261] |= 1 << 1;
        // Temperatures of warnings in kelvin, which the model does not reach.
        put(page, 266, 343_u16.to_le_bytes());
        put(page, 268, 353_u16.to_le_bytes());
        let bytes = u128::from(self.blocks) * u128::from(self.block);
        put(page, 280, bytes.to_le_bytes());
        page[512..514].copy_from_slice(&[0x66, 0x44]);
        put(page, 516, 1_u32.to_le_bytes());
        // Compare, Dataset Management, Write Zeroes, selectable features, Verify.
        put(page, 520, (1_u16 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 7).to_le_bytes());
        // A flush of all namespaces is supported.
        page[525] = u8::from(self.has_cache) | 0b11 << 1;
        put(page, 540, 1_u32.to_le_bytes());
        put(page, 1792, ((super::wire::COMMAND + CAPSULE_DATA) as u32 / 16).to_le_bytes());
        put(page, 1796, 1_u32.to_le_bytes());
        // One descriptor per command, and Disconnect of I/O queues.
        page[1803] = 1;
        put(page, 1804, 1_u16.to_le_bytes());
    }

    /// Returns the data structure of the namespace.
    pub fn namespace(&self, read_only: bool) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        [0, 8, 16].into_iter().for_each(|at| put(&mut page, at, self.blocks.to_le_bytes()));
        // Preferred sizes are valid: a mapping unit for writes and deallocation.
        page[24] = 1 << 4;
        // Several controllers have the namespace.
        page[30] = 1;
        // Deallocated blocks read as zeros, also those of Write Zeroes.
        page[33] = 0b1001;
        put(&mut page, 48, (u128::from(self.blocks) * u128::from(self.block)).to_le_bytes());
        let preferred = (self.unit / self.block).clamp(1, 1 << 16) as u16 - 1;
        [64, 66, 68, 70, 72].into_iter().for_each(|at| put(&mut page, at, preferred.to_le_bytes()));
        page[99] = u8::from(read_only);
        put(&mut page, 104, self.id);
        // Format 0: no metadata, and the size of a block.
        page[130] = self.block.ilog2() as u8;
        page
    }

    /// Returns the namespace's descriptors: its identifiers and its command set.
    pub fn descriptors(&self) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        page[..2].copy_from_slice(&[2, 16]);
        put(&mut page, 4, self.id);
        page[20..22].copy_from_slice(&[4, 1]);
        page
    }

    /// Returns the part of the namespace's data structure that does not depend on its command set.
    pub fn independent_namespace(&self, read_only: bool) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        page[1] = 1;
        page[8] = u8::from(read_only);
        // Ready.
        page[14] = 1;
        page
    }
}

/// Returns the list of namespaces above `after`.
pub fn namespaces(after: u32) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    page[0] = u8::from(after == 0);
    page
}

/// Returns the limits of the NVM command set: a Verify covers as much as a command transfers.
pub fn limits() -> Vec<u8> {
    let mut page = vec![0; PAGE];
    page[0] = (LONGEST_TRANSFER / PAGE).ilog2() as u8;
    page
}

/// Returns the combinations of command sets: the NVM command set alone.
pub fn command_sets() -> Vec<u8> {
    let mut page = vec![0; PAGE];
    page[0] = 1;
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvme::wire::get;
    use floatgate_core::device_file;

    #[test]
    fn the_namespace_has_the_size_and_the_blocks_of_the_device() {
        for (option, bits) in [("host.sector_size=512B", 9), ("host.sector_size=4KiB", 12)] {
            let config = device_file::load("tiny", &[option.to_owned()]).unwrap();
            let page = Drive::new(&config, "here").namespace(false);
            assert_eq!(u64::from_le_bytes(get(&page, 0)) << bits, config.logical_bytes());
            assert_eq!((page[25], page[26], page[130]), (0, 0, bits));
            assert_eq!(u32::from(u16::from_le_bytes(get(&page, 64))), (4096 >> bits) - 1);
        }
    }

    #[test]
    fn drives_in_different_places_have_different_names() {
        let config = device_file::load("tiny", &[]).unwrap();
        let [one, other] = ["here", "there"].map(|place| Drive::new(&config, place));
        assert_eq!(one, Drive::new(&config, "here"));
        assert!(one.nqn != other.nqn && one.serial != other.serial && one.id != other.id);
        assert!(one.nqn.starts_with("nqn.2026-01.example.floatgate:tiny:") && one.nqn.len() <= super::super::wire::NQN);
    }

    #[test]
    fn the_two_kinds_of_controllers_are_described() {
        let drive = Drive::new(&device_file::load("tiny", &[]).unwrap(), "here");
        let page = drive.controller(3, Kind::Drive);
        assert_eq!(page[24..40], *b"Floatgate tiny  ");
        assert_eq!((page[77], page[111], u16::from_le_bytes(get(&page, 78))), (8, 1, 3));
        assert_eq!((page[512], page[513], u32::from_le_bytes(get(&page, 1792))), (0x66, 0x44, 516));
        let page = drive.controller(4, Kind::Discovery);
        assert_eq!((page[111], u32::from_le_bytes(get(&page, 516))), (2, 0));
        assert!(page[768..].starts_with(DISCOVERY_NQN.as_bytes()));
    }
}
