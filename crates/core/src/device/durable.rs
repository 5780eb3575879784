//! Durable devices: emits an event for every change of flash, before any completion that depends on it. See
//! docs/model/durability.md.

use super::Device;
use crate::durability::flash::{FlashEvent, Keep, Outbox, Place};
use crate::durability::log::FlashLog;
use crate::durability::memory::MemoryFlash;
use crate::ftl::mapping::Location;
use crate::sim::id::{BlockId, Lpn};

impl Device {
    /// Starts to emit an event for every change of flash. Emits events for the present contents first, such as those of
    /// preconditioning. The device must be idle.
    pub fn make_durable(&mut self, keep: Keep) -> Result<(), String> {
        let written = self.start_log(keep)?;
        (0..).map(BlockId).zip(written).for_each(|(block, written)| self.emit_block(block, written));
        Ok(())
    }

    fn emit_block(&mut self, block: BlockId, written: u32) {
        let journal = self.durability.as_ref().and_then(|durability| durability.journal.as_ref());
        if let Some(log) = self.observers.as_mut().and_then(|observers| observers.log.as_mut()) {
            log.emit_block(&mut self.ftl, block, written, |lpn| journal.and_then(|journal| journal.page(lpn)));
        }
    }

    /// Starts to emit events. Returns the number of programmed units, indexed by block.
    fn start_log(&mut self, keep: Keep) -> Result<Vec<u32>, String> {
        if let Some(why) = self.config.mapping.scheme.needs(&self.config).no_power_loss {
            return Err(why.to_owned());
        }
        if !self.is_idle() || self.buffer().is_some_and(|buffer| !buffer.is_clean()) {
            return Err("cannot make the device durable: it is not idle; advance it until it is".to_owned());
        }
        if !self.ftl.keep_for_recovery() {
            return Err("cannot make the device durable: after failures, no block is left for a recovery; raise \
                        capacity.spare"
                .to_owned());
        }
        self.observers.get_or_insert_default().log = Some(Box::new(FlashLog::new(&self.config, keep)));
        if let Some(checkpoint) = self.durability.as_mut().and_then(|durability| durability.checkpoint.as_mut()) {
            // The accounts of the checkpoint so far have no sequence numbers.
            checkpoint.forget();
        }
        let blocks = (0..self.config.total_blocks()).map(BlockId);
        let mut written: Vec<u32> = blocks.map(|block| self.ftl.blocks.written_of(block)).collect();
        self.ftl.scheme().blocks(&self.ftl, &mut |kept| written[kept.block.index()] = kept.units);
        Ok(written)
    }

    /// Does the same as [`Device::make_durable`] with [`Keep::Outbox`], but passes the events for the present contents
    /// to `reported`, one by one.
    pub fn make_durable_with(&mut self, mut reported: impl FnMut(&FlashEvent, &[u8])) -> Result<(), String> {
        let written = self.start_log(Keep::Outbox)?;
        let mut outbox = Outbox::default();
        for (block, written) in (0..).map(BlockId).zip(written) {
            self.emit_block(block, written);
            self.take_flash(&mut outbox);
            outbox.events.iter().for_each(|event| reported(event, &outbox.own));
            outbox.clear();
        }
        Ok(())
    }

    /// Returns the flash log, if the device is durable.
    #[inline]
    pub(super) fn log(&self) -> Option<&FlashLog> {
        self.observers.as_deref()?.log.as_deref()
    }

    /// Returns a mutable reference to the flash log, if the device is durable.
    #[inline]
    pub(super) fn log_mut(&mut self) -> Option<&mut FlashLog> {
        self.observers.as_deref_mut()?.log.as_deref_mut()
    }

    /// Returns `true` if the device emits an event for every change of flash.
    #[inline]
    pub fn is_durable(&self) -> bool {
        self.log().is_some()
    }

    /// Appends the events since the last call to `into`. The caller must apply them before it reports to the host any
    /// completion that has been decided by now.
    pub fn take_flash(&mut self, into: &mut Outbox) {
        if let Some(log) = self.log_mut() {
            log.take(into);
        }
    }

    /// Returns the flash contents of a device that keeps them in memory.
    pub fn flash(&self) -> Option<&MemoryFlash> {
        self.log()?.memory()
    }

    /// Cuts the power of a device that keeps its flash in memory, and returns what is left. Returns `None` for other
    /// devices.
    pub fn power_cut(mut self, seed: u64) -> Option<MemoryFlash> {
        let mut flash = self.log_mut()?.take_memory()?;
        flash.power_cut(seed);
        Some(flash)
    }

    /// Returns the location of the newest version of a unit. An `Accepted` event was emitted for each pending version.
    pub fn place_of(&self, lpn: Lpn) -> Place {
        if self.buffer().is_some_and(|buffer| buffer.is_pending(lpn)) {
            return Place::Pending;
        }
        match self.ftl.map.get(lpn) {
            Location::Unmapped => Place::Nothing,
            Location::Flash(ppn) => Place::Flash(ppn),
            Location::Slot(_) => Place::Pending,
        }
    }
}
