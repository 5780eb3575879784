//! Log pages of a drive.

use std::collections::VecDeque;

use super::ERRORS;
use super::health::{Health, SPARE_THRESHOLD};
use super::supported::{self, Effect, Row};
use super::wire::{Command, Status, put, put_text};

/// Bytes of an entry in the error log.
const ERROR: usize = 64;

/// Temperature that is reported, in kelvin: 25 degrees Celsius. The model has none.
const TEMPERATURE: u16 = 298;

/// The newest commands that failed.
#[derive(Clone, Debug, Default)]
pub struct Errors {
    entries: VecDeque<[u8; ERROR]>,
    count: u64,
}

impl Errors {
    /// Adds a command that failed.
    pub fn note(&mut self, queue: u16, command: &Command, status: Status, lba: u64) {
        self.count += 1;
        let mut entry = [0; ERROR];
        put(&mut entry, 0, self.count.to_le_bytes());
        put(&mut entry, 8, queue.to_le_bytes());
        put(&mut entry, 10, command.id().to_le_bytes());
        put(&mut entry, 12, status.bits().to_le_bytes());
        // The location of an invalid parameter is not reported.
        put(&mut entry, 14, u16::MAX.to_le_bytes());
        put(&mut entry, 16, lba.to_le_bytes());
        put(&mut entry, 24, command.namespace().to_le_bytes());
        // The transport: TCP.
        entry[29] = 3;
        entry[31] = command.opcode();
        self.entries.truncate(ERRORS - 1);
        self.entries.push_front(entry);
    }

    /// Returns the number of commands that failed.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the log page.
    pub fn page(&self) -> Vec<u8> {
        let mut page: Vec<u8> = self.entries.iter().flatten().copied().collect();
        page.resize(ERRORS * ERROR, 0);
        page
    }
}

/// Returns the SMART log page.
pub fn health(health: &Health, errors: u64) -> Vec<u8> {
    let mut page = vec![0; 512];
    page[0] = health.warning;
    put(&mut page, 1, TEMPERATURE.to_le_bytes());
    page[3..6].copy_from_slice(&[health.spare, SPARE_THRESHOLD, health.used]);
    let [read, written] = health.units;
    let [reads, writes] = health.commands;
    let values = [(32, read), (48, written), (64, reads), (80, writes), (112, health.power_cycles)];
    let more = [(128, health.hours), (144, health.unsafe_shutdowns), (160, health.media_errors), (176, errors)];
    values.into_iter().chain(more).for_each(|(at, value)| put(&mut page, at, u128::from(value).to_le_bytes()));
    page
}

/// Returns the log page of firmware slots: one slot, which is active.
pub fn firmware() -> Vec<u8> {
    let mut page = vec![0; 512];
    page[0] = 1;
    put_text(&mut page, 8, 8, super::identify::FIRMWARE, b' ');
    page
}

/// Returns the log page of changed namespaces.
pub fn changed_namespaces(has_changed: bool) -> Vec<u8> {
    let mut page = vec![0; 4096];
    page[0] = u8::from(has_changed);
    page
}

/// Returns the log page of commands and their effects. Fabrics commands are not in it.
pub fn effects() -> Vec<u8> {
    let mut page = vec![0; 4096];
    fill(&mut page, 0, &supported::ADMIN);
    fill(&mut page, 1024, &supported::IO);
    page
}

/// Returns the log page of features and their effects. `has_cache` is true if there is a volatile write cache.
pub fn features(has_cache: bool) -> Vec<u8> {
    let mut page = vec![0; 1024];
    let has = |row: &&Row| row.0 != super::wire::feature::WRITE_CACHE || has_cache;
    let rows: Vec<Row> = supported::FEATURES.iter().filter(has).copied().collect();
    fill(&mut page, 0, &rows);
    page
}

/// Returns the log page of supported log pages.
pub fn supported(numbers: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut page = vec![0; 1024];
    numbers.for_each(|number| put(&mut page, 4 * usize::from(number), Effect::None.bits().to_le_bytes()));
    page
}

fn fill(page: &mut [u8], at: usize, rows: &[Row]) {
    for (number, _, effect) in rows {
        put(page, at + 4 * usize::from(*number), effect.bits().to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvme::wire::{COMMAND, get};

    #[test]
    fn the_error_log_keeps_the_newest_entries() {
        let mut errors = Errors::default();
        let mut command = Command([0; COMMAND]);
        for id in 0..100_u16 {
            put(&mut command.0, 2, id.to_le_bytes());
            errors.note(1, &command, Status::LBA_RANGE, 7);
        }
        let page = errors.page();
        assert_eq!((errors.count(), page.len()), (100, 4096));
        assert_eq!(u64::from_le_bytes(get(&page, 0)), 100);
        assert_eq!(u16::from_le_bytes(get(&page, 63 * ERROR + 10)), 36);
    }

    #[test]
    fn health_is_in_its_fields() {
        let found = Health { warning: 8, spare: 99, used: 3, units: [5, 6], media_errors: 9, ..Health::default() };
        let page = health(&found, 4);
        assert_eq!(page[..6], [8, 42, 1, 99, 10, 3]);
        let at = |at| u128::from_le_bytes(get(&page, at));
        assert_eq!([at(32), at(48), at(160), at(176)], [5, 6, 9, 4]);
    }

    #[test]
    fn effects_name_the_commands_that_change_contents() {
        let page = effects();
        let of = |at: usize| u32::from_le_bytes(get(&page, at));
        assert_eq!([of(4 * 6), of(1024 + 4), of(1024 + 8), of(1024 + 4 * 0x80)], [1, 3, 1, 0]);
    }
}
