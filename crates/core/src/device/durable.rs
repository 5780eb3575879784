//! A device whose flash outlives a power cut: it tells of everything that changes flash, before anything is answered
//! that depends on it. See docs/model/durability.md.

use super::Device;
use crate::durability::flash::{FlashEvent, Keep, Outbox, Place};
use crate::durability::log::FlashLog;
use crate::durability::memory::MemoryFlash;
use crate::ftl::mapping::Location;
use crate::sim::id::{BlockId, Lpn};

impl Device {
    /// From now on all that changes flash is told. What is there already, such as what preconditioning has left, is
    /// told first. The device must be at rest.
    pub fn make_durable(&mut self, keep: Keep) -> Result<(), String> {
        self.begin_to_tell(keep)?;
        (0..self.config.total_blocks()).for_each(|block| self.tell_block(BlockId(block)));
        Ok(())
    }

    fn tell_block(&mut self, block: BlockId) {
        let journal = self.durability.as_ref().and_then(|durability| durability.journal.as_ref());
        if let Some(log) = self.observers.as_mut().and_then(|observers| observers.log.as_mut()) {
            log.tell_block(&mut self.ftl, block, |lpn| journal.and_then(|journal| journal.page(lpn)));
        }
    }

    fn begin_to_tell(&mut self, keep: Keep) -> Result<(), String> {
        if let Some(why) = self.config.mapping.scheme.needs(&self.config).no_power_loss {
            return Err(why.to_owned());
        }
        if !self.is_idle() || self.buffer().is_some_and(|buffer| !buffer.is_clean()) {
            return Err("a device is made durable at rest: advance until nothing is in progress".to_owned());
        }
        self.observers.get_or_insert_default().log = Some(Box::new(FlashLog::new(&self.config, keep)));
        if let Some(checkpoint) = self.durability.as_mut().and_then(|durability| durability.checkpoint.as_mut()) {
            // What there is of it was not made of numbers.
            checkpoint.forget();
        }
        Ok(())
    }

    /// As [`Device::make_durable`] with [`Keep::Outbox`], where what preconditioning has left is told one by one.
    pub fn make_durable_with(&mut self, mut told: impl FnMut(&FlashEvent, &[u8])) -> Result<(), String> {
        self.begin_to_tell(Keep::Outbox)?;
        let mut outbox = Outbox::default();
        for block in 0..self.config.total_blocks() {
            self.tell_block(BlockId(block));
            self.take_flash(&mut outbox);
            outbox.events.iter().for_each(|event| told(event, &outbox.own));
            outbox.clear();
        }
        Ok(())
    }

    /// Returns the flash log of a durable device.
    #[inline]
    pub(super) fn log(&self) -> Option<&FlashLog> {
        self.observers.as_deref()?.log.as_deref()
    }

    /// Returns the flash log of a durable device.
    #[inline]
    pub(super) fn log_mut(&mut self) -> Option<&mut FlashLog> {
        self.observers.as_deref_mut()?.log.as_deref_mut()
    }

    /// Whether it tells of what changes flash.
    #[inline]
    pub fn is_durable(&self) -> bool {
        self.log().is_some()
    }

    /// What was told since the last call, behind what is in `into`. It must be applied before any completion that was
    /// decided by now is told to the host.
    pub fn take_flash(&mut self, into: &mut Outbox) {
        if let Some(log) = self.log_mut() {
            log.take(into);
        }
    }

    /// The flash of a device that keeps it in memory.
    pub fn flash(&self) -> Option<&MemoryFlash> {
        self.log()?.memory()
    }

    /// Cuts the power of a device that keeps its flash in memory: all that is left of it. `None` where it does not.
    pub fn power_cut(mut self, seed: u64) -> Option<MemoryFlash> {
        let mut flash = self.log_mut()?.take_memory()?;
        flash.power_cut(seed);
        Some(flash)
    }

    /// Where the newest version of a unit is. What is pending was told as accepted.
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
