//! Identify data structures, which describe the drive, its controllers and its namespace.

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::sim::request::SECTOR;
use xxhash_rust::xxh3::xxh3_128;

use super::wire::{DISCOVERY_NQN, Kind, PAGE, VERSION, put, put_text};
use super::{
    CAPSULE_DATA, ERRORS, KEEP_ALIVE_UNIT_MS, LONGEST_TRANSFER, LONGEST_TRIM, LONGEST_ZEROES, MAX_ENTRIES,
    WARNING_TEMPERATURE, events,
};

/// Maximum length of the name of the device in its NQN.
const LONGEST_NAME: usize = 64;

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
    /// Granularity and alignment of deallocation in bytes.
    pub trim: u32,
    /// True if data that was not flushed is lost without power.
    pub has_cache: bool,
}

impl Drive {
    /// Creates the drive of a device. `identity` distinguishes it from other drives: hosts treat drives with the same
    /// NQN as one drive. `nqn` replaces the NQN that contains the identity.
    pub fn new(config: &DeviceConfig, identity: u128, nqn: Option<&str>) -> Drive {
        // A drive under another NQN is another drive, because identifiers of namespaces are unique among subsystems.
        let id = nqn.map_or(identity, |nqn| xxh3_128(format!("{identity:032x} {nqn}").as_bytes()));
        let block = config.host.sector_size.0 as u32;
        let name = config.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        let name: String = name.take(LONGEST_NAME).collect();
        Drive {
            nqn: nqn.map_or_else(|| format!("nqn.2026-01.example.floatgate:{name}:{id:032x}"), ToOwned::to_owned),
            name,
            serial: format!("{:016X}", (id >> 64) as u64),
            id: id.to_be_bytes(),
            block,
            blocks: config.logical_bytes() / u64::from(block),
            unit: u32::try_from(config.unit_bytes()).unwrap_or(u32::MAX),
            trim: u32::try_from(config.unit_bytes()).unwrap_or(u32::MAX),
            has_cache: config.writes_back()
                && config.active_buffer().is_some_and(|buffer| !buffer.power_loss_protection),
        }
    }

    /// Returns the data structure of a controller.
    pub fn controller(&self, id: u16, kind: Kind) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        let text = [(4, 20, &self.serial[..]), (24, 40, &format!("Floatgate {}", self.name)), (64, 8, FIRMWARE)];
        text.into_iter().for_each(|(at, length, text)| put_text(&mut page, at, length, text, b' '));
        page[77] = (LONGEST_TRANSFER / PAGE).ilog2() as u8;
        put(&mut page, 78, id.to_le_bytes());
        put(&mut page, 80, VERSION.to_le_bytes());
        // A 128-bit host identifier, and traffic-based keep alive.
        put(&mut page, 96, (1_u32 | 1 << 6).to_le_bytes());
        page[111] = if kind == Kind::Drive { 1 } else { 2 };
        page[259] = events::LIMIT as u8 - 1;
        // Log pages can be read in parts.
        page[261] = 1 << 2;
        page[262] = ERRORS as u8 - 1;
        put(&mut page, 320, ((KEEP_ALIVE_UNIT_MS / 100) as u16).to_le_bytes());
        put(&mut page, 514, MAX_ENTRIES.to_le_bytes());
        // Data blocks, with an offset in capsules, and data blocks of the transport.
        put(&mut page, 536, (1_u32 | 1 << 20 | 1 << 21).to_le_bytes());
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
        put(page, 266, WARNING_TEMPERATURE.to_le_bytes());
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
        let preferred = |bytes: u32| ((bytes / self.block).clamp(1, 1 << 16) - 1) as u16;
        [64, 66, 72].into_iter().for_each(|at| put(&mut page, at, preferred(self.unit).to_le_bytes()));
        [68, 70].into_iter().for_each(|at| put(&mut page, at, preferred(self.trim).to_le_bytes()));
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

/// Returns the limits of the NVM command set. Those of Dataset Management are recommendations: longer ranges are
/// deallocated in parts.
pub fn limits(drive: &Drive) -> Vec<u8> {
    /// Recommended number of ranges in a command.
    const RANGES: u8 = 64;
    let mut page = vec![0; PAGE];
    page[0] = (LONGEST_TRANSFER / PAGE).ilog2() as u8;
    page[1] = (LONGEST_ZEROES / PAGE as u64).ilog2() as u8;
    page[3] = RANGES;
    let blocks = LONGEST_TRIM * SECTOR / u64::from(drive.block);
    put(&mut page, 4, (blocks as u32).to_le_bytes());
    put(&mut page, 8, (blocks * u64::from(RANGES)).to_le_bytes());
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
            let page = Drive::new(&config, 1, None).namespace(false);
            assert_eq!(u64::from_le_bytes(get(&page, 0)) << bits, config.logical_bytes());
            assert_eq!((page[25], page[26], page[130]), (0, 0, bits));
            assert_eq!(u32::from(u16::from_le_bytes(get(&page, 64))), (4096 >> bits) - 1);
        }
    }

    #[test]
    fn the_identity_and_the_nqn_determine_the_drive() {
        let config = device_file::load("tiny", &[]).unwrap();
        let of = |identity, nqn| Drive::new(&config, identity, nqn);
        let one = of(0x0123_4567_89ab_cdef_0000_0000_0000_00ff, None);
        assert_eq!(one.nqn, "nqn.2026-01.example.floatgate:tiny:0123456789abcdef00000000000000ff");
        assert_eq!((&one.serial[..], one.id[15]), ("0123456789ABCDEF", 0xff));
        let named = of(1, Some("nqn.2026-01.example:a"));
        assert_eq!((&named.nqn[..], &named), ("nqn.2026-01.example:a", &of(1, Some("nqn.2026-01.example:a"))));
        let others =
            [of(2, None), of(1, None), of(2, Some("nqn.2026-01.example:a")), of(1, Some("nqn.2026-01.example:b"))];
        assert!(others.iter().all(|other| other.id != named.id && other.serial != named.serial));
        let long = floatgate_core::device_file::DeviceConfig { name: "x".repeat(1000), ..config };
        assert!(Drive::new(&long, u128::MAX, None).nqn.len() <= super::super::wire::NQN);
    }

    #[test]
    fn preferred_sizes_of_large_units_are_limited() {
        let drive = Drive::new(&device_file::load("tiny", &[]).unwrap(), 1, None);
        let page = Drive { unit: 32 << 20, trim: 64 << 10, ..drive }.namespace(false);
        assert_eq!([64, 68].map(|at| u16::from_le_bytes(get(&page, at))), [u16::MAX, 127]);
    }

    #[test]
    fn limits_are_in_their_units() {
        let drive = Drive::new(&device_file::load("tiny", &["host.sector_size=4KiB".to_owned()]).unwrap(), 1, None);
        // 1 MiB and 32 MiB in pages of 4 KiB as powers of two, and 1 GiB in blocks of 4 KiB.
        let expected = [8, 13, 0, 64, 0, 0, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        assert_eq!(limits(&drive)[..16], expected);
    }

    #[test]
    fn the_two_kinds_of_controllers_are_described() {
        let drive = Drive::new(&device_file::load("tiny", &[]).unwrap(), 1, None);
        let page = drive.controller(3, Kind::Drive);
        assert_eq!(page[24..40], *b"Floatgate tiny  ");
        assert_eq!((page[77], page[111], u16::from_le_bytes(get(&page, 78))), (8, 1, 3));
        assert_eq!((page[512], page[513], u32::from_le_bytes(get(&page, 1792))), (0x66, 0x44, 516));
        let page = drive.controller(4, Kind::Discovery);
        assert_eq!((page[111], u32::from_le_bytes(get(&page, 516))), (2, 0));
        assert!(page[768..].starts_with(DISCOVERY_NQN.as_bytes()));
    }
}
