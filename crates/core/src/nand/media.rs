//! Contents of flash for verification: a version for each sector, under the rules of flash.

use std::collections::BTreeMap;

use crate::config::DeviceConfig;
use crate::sim::id::{BlockId, Ppn};
use crate::state::{Reader, StateError, Writer};

/// The version of a sector that was never written.
pub const BLANK: u32 = 0;
/// Version of the sectors of an uncorrectable unit, which no write has.
pub const LOST: u32 = u32::MAX - 1;

/// Contents of every physical unit: a version number for each sector.
///
/// The rules of flash are checked here independently of the FTL, to detect its bugs: a unit is programmed once between
/// erases, and in order within its block.
#[derive(Clone, Debug)]
pub struct Media {
    versions: Vec<u32>,
    /// Next unit to be programmed, indexed by block.
    next: Vec<u32>,
    /// Sources of copies whose programs have not ended, by their new addresses.
    copies: BTreeMap<Ppn, Ppn>,
    sectors: usize,
    units_per_block: u32,
}

impl Media {
    /// Creates the contents of erased flash.
    pub fn new(device: &DeviceConfig) -> Media {
        let units = device.total_blocks() as usize * device.units_per_block() as usize;
        let sectors = device.sectors_per_unit() as usize;
        Media {
            versions: vec![BLANK; units * sectors],
            next: vec![0; device.total_blocks() as usize],
            copies: BTreeMap::new(),
            sectors,
            units_per_block: device.units_per_block(),
        }
    }

    /// Writes all contents for a saved state.
    pub fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.next.iter().try_for_each(|&next| out.u32(next))?;
        self.versions.iter().try_for_each(|&version| out.u32(version))
    }

    /// Reads the data that [`Media::save`] wrote.
    pub fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        for next in &mut self.next {
            *next = input.below(self.units_per_block + 1, "unit")?;
        }
        for version in &mut self.versions {
            *version = input.u32()?;
        }
        Ok(())
    }

    /// Returns the contents of a unit.
    pub fn read(&self, ppn: Ppn) -> &[u32] {
        let start = ppn.index() * self.sectors;
        &self.versions[start..start + self.sectors]
    }

    fn check_order(&mut self, ppn: Ppn) {
        let (block, offset) = (ppn.0 / self.units_per_block, ppn.0 % self.units_per_block);
        let next = &mut self.next[block as usize];
        assert!(offset >= *next, "unit {} is programmed twice between erases, or out of order", ppn.0);
        *next = offset + 1;
    }

    /// Programs a unit with `contents`.
    pub fn program(&mut self, ppn: Ppn, contents: &[u32]) {
        self.check_order(ppn);
        let start = ppn.index() * self.sectors;
        self.versions[start..start + self.sectors].copy_from_slice(contents);
    }

    /// Programs a unit with the contents of `from`, and sets a range of sectors to a version.
    pub fn write(&mut self, ppn: Ppn, from: Option<Ppn>, range: Option<(u32, u32, u32)>) {
        let mut contents = from.map_or_else(|| vec![BLANK; self.sectors], |from| self.read(from).to_vec());
        let (first, end, version) = range.unwrap_or((0, self.sectors as u32, BLANK));
        contents[first as usize..end as usize].fill(version);
        self.program(ppn, &contents);
    }

    /// Programs a unit with the contents of another one.
    pub fn copy(&mut self, from: Ppn, to: Ppn) {
        let contents = self.read(from).to_vec();
        self.program(to, &contents);
    }

    /// Notes that a unit will be copied to an address when its program ends.
    pub fn begin_copy(&mut self, from: Ppn, to: Ppn) {
        self.copies.insert(to, from);
    }

    /// Programs a unit with the contents that [`Media::begin_copy`] has named, if any.
    pub fn end_copy(&mut self, to: Ppn) {
        if let Some(from) = self.copies.remove(&to) {
            self.copy(from, to);
        }
    }

    /// Makes a unit uncorrectable.
    pub fn spoil(&mut self, ppn: Ppn) {
        let start = ppn.index() * self.sectors;
        self.versions[start..start + self.sectors].fill(LOST);
    }

    /// Erases a block.
    pub fn erase(&mut self, block: BlockId) {
        let units = self.units_per_block as usize;
        let start = block.index() * units * self.sectors;
        self.versions[start..start + units * self.sectors].fill(BLANK);
        self.next[block.index()] = 0;
    }
}
