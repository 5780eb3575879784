//! Durability of data and trims across power cuts: the journal of trims, the checkpoint, the flash log, and recovery.
//! See docs/model/durability.md.
//!
//! This component decides which mapping units of the device itself have to be written. The router writes them like
//! units of the host.

pub mod account;
pub mod checkpoint;
pub mod events;
pub mod flash;
pub mod journal;
pub mod log;
pub mod memory;
pub mod own;
mod recovery;
mod recovery_time;
mod start;
mod trims;

pub use recovery::{Rebuild, RecoverError, Recovery, Scan, restore_buffer};
pub use recovery_time::time_of;
pub use start::start_log;

use crate::config::DeviceConfig;
use crate::ftl::Ftl;
use crate::ftl::space::Space;
use crate::sim::id::{BlockId, Lpn, Ppn, TransactionId};
use crate::state::{Reader, StateError, Writer};
use checkpoint::Checkpointing;
use journal::Journal;
use log::FlashLog;

/// Journal and checkpoint of a device that has either, or that was recovered.
#[derive(Clone, Debug, Default)]
pub struct Durability {
    /// Journal of trims, if the device has one.
    pub journal: Option<Journal>,
    /// Checkpoint, if the device has one.
    pub checkpoint: Option<Checkpointing>,
    /// True if the device was recovered and no request has been submitted since.
    pub is_recovered: bool,
    /// Test hook: a deliberate bug, by which trims are not recorded.
    pub forgets_trims: bool,
}

impl Durability {
    /// Creates the journal and the checkpoint of an empty device. Returns `None` if it has neither.
    pub fn new(config: &DeviceConfig) -> Option<Durability> {
        let (journal, checkpoint) = (Journal::new(config), Checkpointing::new(config));
        let is_any = journal.is_some() || checkpoint.is_some();
        is_any.then_some(Durability { journal, checkpoint, ..Durability::default() })
    }

    /// Records the trim of a mapping unit, whose invalid copy is at `invalid`. The block of the copy is not erased
    /// before the record is in flash. Returns `true` if the journal has to be written.
    pub fn trimmed(&mut self, lpn: Lpn, sequence: u64, invalid: Option<Ppn>, blocks: &mut Space) -> bool {
        let Some(journal) = self.journal.as_mut().filter(|_| !self.forgets_trims) else { return false };
        let block = invalid.map_or(BlockId::NONE, |ppn| blocks.block_of(ppn));
        if journal.trim(lpn, sequence, block)
            && let Some(ppn) = invalid
        {
            blocks.depend(ppn);
        }
        journal.is_due()
    }

    /// Returns `true` if a block that garbage collection wants to erase waits for records.
    pub fn is_held_before_erase(&self, blocks: &Space) -> bool {
        self.journal.as_ref().is_some_and(|journal| blocks.awaiting_erase().any(|block| journal.holds(block)))
    }

    /// Returns `true` if a block that is to be erased waits for records, and no unit of the journal is being written.
    pub fn awaits_journal(&self, blocks: &Space) -> bool {
        self.journal.as_ref().is_some_and(|journal| !journal.is_writing()) && self.is_held_before_erase(blocks)
    }

    /// Returns `true` if a block waits for records.
    pub fn holds(&self, block: BlockId) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.holds(block))
    }

    /// Describes the journal and the checkpoint, for the report of a stall.
    pub fn describe(&self) -> String {
        let journal = match &self.journal {
            Some(journal) if journal.stalled.is_some() => "a unit of the journal waits for a free block",
            Some(journal) if journal.is_writing() => "a unit of the journal is being written",
            Some(_) => "no unit of the journal is being written",
            None => "no journal",
        };
        let parts = self.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.stalled.len());
        format!("{journal}; {parts} parts of the checkpoint wait for a free block")
    }

    /// Returns `true` if records of trims are not in flash yet.
    pub fn has_waiting_trims(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.has_waiting())
    }

    /// Returns the write of a journal unit that found no room, if a block waits for it. Adds records to the unit that
    /// were queued since.
    pub fn stalled_for_block(&mut self, ftl: &Ftl) -> Option<TransactionId> {
        let id = self.journal.as_ref()?.stalled?;
        if !self.is_held_before_erase(&ftl.blocks) {
            return None;
        }
        self.add_to_journal(ftl);
        Some(id)
    }

    /// Adds waiting records to the journal unit that waits for room, because a block may wait for them.
    pub fn add_to_journal(&mut self, ftl: &Ftl) {
        if let Some(journal) = &mut self.journal {
            journal.add(ftl.sequence, ftl.blocks.awaiting_erase(), |lpn, block| is_home(ftl, lpn, block));
        }
    }

    /// Records the planes of the journal units that were found in flash.
    pub fn find_guests(&mut self, ftl: &Ftl) {
        let Some(journal) = &mut self.journal else { return };
        for lpn in journal.units() {
            if let Some(ppn) = ftl.ppn_in_flash(lpn) {
                let plane = ftl.blocks.plane_of(ftl.blocks.block_of(ppn));
                journal.note_guest(lpn, plane, ftl.home(lpn).is_some_and(|home| home != plane));
            }
        }
    }

    /// Returns the contents of a unit of the device itself, as it is to be written. Returns `None` for other units.
    pub fn page(&self, lpn: u32, ftl: &Ftl, log: &FlashLog) -> Option<Vec<u8>> {
        let layout = self.checkpoint.as_ref().map(|checkpoint| checkpoint.layout);
        match layout.and_then(|layout| Some((layout, layout.part(Lpn(lpn))?))) {
            Some((layout, part)) => Some(layout.page(part, ftl, log)),
            None => self.journal.as_ref()?.page(lpn),
        }
    }

    /// Writes the journal and the checkpoint to a saved state. `sequence` is the number of the last write or trim.
    pub fn save(&self, sequence: u64, writer: &mut Writer) -> Result<(), StateError> {
        if let Some(journal) = &self.journal {
            writer.section("media/journal", |out| journal.save(sequence, out))?;
        }
        if let Some(checkpoint) = &self.checkpoint {
            writer.section("media/checkpoint", |out| checkpoint.save(out))?;
        }
        Ok(())
    }

    /// Reads the data that [`Durability::save`] wrote.
    pub fn load(&mut self, ftl: &mut Ftl, reader: &mut Reader) -> Result<(), StateError> {
        if let Some(journal) = &mut self.journal {
            ftl.sequence = reader.section("media/journal", |input| journal.load(&ftl.map, input))?;
        }
        if let Some(checkpoint) = &mut self.checkpoint {
            reader.section("media/checkpoint", |input| checkpoint.load(input))?;
        }
        self.find_guests(ftl);
        Ok(())
    }
}

/// Returns `true` if a unit may be written to the plane of a block without being a guest there.
pub fn is_home(ftl: &Ftl, lpn: Lpn, block: BlockId) -> bool {
    ftl.home(lpn).is_none_or(|home| home == ftl.blocks.plane_of(block))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftl::mapping::Location;
    use crate::sim::id::RequestId;

    fn device(option: &str) -> (Durability, Ftl) {
        let config = crate::config::load("tiny", &[option.to_owned()]).unwrap();
        (Durability::new(&config).unwrap(), Ftl::new(&config, 1, false, &Default::default()).unwrap())
    }

    #[test]
    fn a_block_waits_for_the_records_of_its_trimmed_units() {
        let (mut durability, mut ftl) = device("durability.trim_journal=true");
        ftl.write(Lpn(0), 0, 8, 1);
        let Location::Flash(ppn) = ftl.map.get(Lpn(0)) else { panic!("not in flash") };
        let block = ftl.blocks.block_of(ppn);
        assert!(!durability.trimmed(Lpn(0), 1, Some(ppn), &mut ftl.blocks), "one record is not half a unit");
        assert!(durability.holds(block) && durability.has_waiting_trims());
        assert_eq!(ftl.blocks.block(block).dependents, 1);

        let journal = durability.journal.as_mut().unwrap();
        assert!(journal.flush(RequestId(0), 1));
        let unit = journal.take(1, ftl.blocks.awaiting_erase(), |_, _| true);
        assert_eq!(unit, journal.units().next());
        let page = journal.page(unit.unwrap().0).unwrap();
        assert_eq!(Journal::records(&page), Some(vec![(0, 1)]));
        assert_eq!(journal.end_write(), Some((vec![block], 1)));
        assert_eq!(journal.end_flushes(1), [RequestId(0)]);
        assert!(!durability.holds(block) && !durability.has_waiting_trims());
    }

    #[test]
    fn checkpoint_parts_are_due_at_intervals_and_concern_closed_blocks() {
        let (mut durability, mut ftl) = device("durability.checkpoint=64KiB");
        let checkpoint = durability.checkpoint.as_mut().unwrap();
        let interval = 64 / (ftl.shape().sectors_per_unit / 2);
        assert_eq!((1..=interval).filter(|_| checkpoint.count()).count(), 1);
        assert!(checkpoint.begin(&ftl).is_empty(), "no block is closed");
        (0..ftl.host_units).for_each(|lpn| ftl.write(Lpn(lpn), 0, 8, 1));
        let parts = checkpoint.begin(&ftl);
        assert!(!parts.is_empty());
        assert!(
            checkpoint.begin(&ftl).iter().all(|part| !parts.contains(part)),
            "a part that is being written is selected again"
        );
    }
}
