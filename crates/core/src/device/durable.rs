//! Durable devices: write the units of the device itself, emit an event for every change of flash before any completion
//! that depends on it, and recover after a power cut. `durability/` decides. See docs/model/durability.md.

use super::{Device, Mutant, Options};
use crate::cache::Buffer;
use crate::cache::write_out::list_of;
use crate::config::{DeviceConfig, MapMemory};
use crate::dispatch;
use crate::durability::flash::{FlashEvent, FlashImage, Keep, Outbox, Place, Reported};
use crate::durability::log::FlashLog;
use crate::durability::memory::MemoryFlash;
use crate::durability::own::{Flush, JournalStep, OwnPlace};
use crate::durability::{Rebuild, RecoverError, Recovery, restore_buffer, start_log, time_of};
use crate::ftl::mapping::Location;
use crate::observe::Origin;
use crate::sim::id::{Lpn, PlaneId, RequestId, TransactionId};
use crate::sim::request::Status;
use crate::work::{Class, Kind, Task, Transaction};

impl Device {
    /// Starts to emit an event for every change of flash. Emits events for the present contents first, such as those of
    /// preconditioning. With `reported`, passes them to it one by one instead of keeping them. The device must be idle.
    pub fn make_durable(&mut self, keep: Keep, reported: Option<Reported<'_>>) -> Result<(), String> {
        let is_idle = self.is_idle() && self.buffer().is_none_or(|buffer| buffer.is_clean());
        let durability = self.durability.as_deref_mut();
        let log = start_log(&self.config, (&mut self.ftl, is_idle), durability, keep, reported)?;
        self.observers.get_or_insert_default().log = Some(Box::new(log));
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

    // Recovery.

    /// Builds a durable device from the contents of `flash`. [`Device::take_flash`] returns the changes that the
    /// recovery makes to flash.
    pub fn recover(
        config: DeviceConfig,
        options: Options,
        flash: &mut dyn FlashImage,
    ) -> Result<(Device, Recovery), RecoverError> {
        let mut device = Device::new(config, options).map_err(RecoverError::Device)?;
        if let Some(why) = device.config.mapping.scheme.needs(&device.config).no_power_loss {
            return Err(RecoverError::Device(why.to_owned()));
        }
        device.ftl.keep_for_recovery();
        let (mut log, mut report) = (FlashLog::new(&device.config, Keep::Outbox), Recovery::default());
        let (scan, writes) = device.rebuild_with(&mut log).read(flash, &mut report)?;
        if scan.is_stuck {
            device.become_read_only(); // Some blocks have no place.
        }
        if device.ftl.faults.is_some() {
            (0..device.ftl.shape().planes).for_each(|plane| device.check_spare(PlaneId(plane)));
        }
        if device.buffer().is_some_and(Buffer::writes_back) {
            let (filling, ftl) = (device.dispatch.filling.as_deref(), &device.ftl);
            let list = |lpn| list_of(filling, ftl, lpn);
            let writes = writes.into_iter().map(|(lpn, sequence)| (Lpn(lpn), sequence, list(Lpn(lpn)))).collect();
            let buffer = device.buffer.as_deref_mut();
            buffer
                .map_or(Ok(()), |buffer| restore_buffer(buffer, ftl, (&mut log, &mut *flash), writes, &mut report))?;
        }
        device.rebuild_with(&mut log).complete(flash, &scan, &mut report)?;
        device.observers.get_or_insert_default().log = Some(Box::new(log));
        if device.config.durability.map == MapMemory::Saved {
            report.pages_read += device.config.saved_map_units() * u64::from(device.ftl.shape().pages_per_unit);
        }
        let map_pages = report.map_pages_written;
        report.time_ps = time_of(&device.config, &device.ftl, &device.array, &scan, map_pages).0;
        Ok((device, report))
    }

    /// Builds a durable device from flash contents in memory, and keeps them in memory. `cut` cuts the power again
    /// after a number of changes by the recovery, with a seed. In that case there is no device, and the remaining flash
    /// contents are returned.
    pub fn recover_in_memory(
        config: DeviceConfig,
        options: Options,
        mut flash: MemoryFlash,
        cut: Option<(usize, u64)>,
    ) -> Result<Result<(Device, Recovery), MemoryFlash>, RecoverError> {
        let (mut device, report) = Device::recover(config, options, &mut flash)?;
        let mut outbox = Outbox::default();
        device.take_flash(&mut outbox);
        if let Some((events, seed)) = cut.filter(|cut| cut.0 < outbox.events.len()) {
            outbox.events[..events].iter().for_each(|event| flash.apply(event, &outbox.own));
            flash.power_cut(seed);
            return Ok(Err(flash));
        }
        outbox.events.iter().for_each(|event| flash.apply(event, &outbox.own));
        if let Some(log) = device.log_mut() {
            log.adopt(flash);
        }
        Ok(Ok((device, report)))
    }

    fn rebuild_with<'a>(&'a mut self, log: &'a mut FlashLog) -> Rebuild<'a> {
        let map = self.config.durability.map;
        let mutant = self.options.mutant;
        let (skips_trims, prefers_older) = (mutant == Mutant::SkipTrims, mutant == Mutant::OldBlockWins);
        let durability = self.durability.get_or_insert_default();
        Rebuild { ftl: &mut self.ftl, log, durability, map, skips_trims, prefers_older }
    }

    // Units of the device itself.

    /// Returns the number of trims whose records are not in flash, and `None` without a trim journal
    /// (`durability.trim_journal`). A power cut undoes these trims.
    pub fn trims_in_memory(&self) -> Option<u64> {
        self.durability.as_ref()?.trims_in_memory()
    }

    /// Updates the journal and the checkpoint after a mapping unit of the host was programmed.
    #[inline(never)]
    pub(super) fn record_written(&mut self, lpn: Lpn) {
        let Some(durability) = &mut self.durability else { return };
        if let Some(parts) = durability.written(&self.ftl, lpn) {
            // The parts are queued together, so that they fill programs.
            let holds = self.tasks.hold_unless_held();
            parts.into_iter().for_each(|part| self.write_own(part));
            self.dispatch.release_behind(&mut self.tasks, holds);
        }
    }

    /// Makes a flush wait for the records of all earlier trims. Returns `false` if there is nothing to wait for.
    pub(super) fn flush_journal(&mut self, id: RequestId) -> bool {
        let protected = self.buffer().is_some_and(|buffer| buffer.is_protected());
        let Some(durability) = self.durability.as_mut().filter(|_| !protected) else { return false };
        match durability.flush(&self.ftl, id) {
            Flush::Done => return false,
            Flush::ReadOnly => {
                self.interface.set_status(id, Status::ReadOnly);
                return false;
            }
            Flush::Waits => {}
        }
        self.interface.requests[id].remaining += 1;
        self.write_journal();
        true
    }

    /// Writes the journal if a block that awaits its erase is held by records that are not in flash.
    #[inline]
    pub(super) fn journal_before_erase(&mut self) {
        let durability = self.durability.as_ref();
        if durability.is_some_and(|durability| durability.is_held_before_erase(&self.ftl.blocks)) {
            self.write_journal();
        }
    }

    /// Retries a unit of the journal that found no room, if a block waits for it and it has room now. Called when
    /// garbage collection of a plane rests, or a read of a block or an update of the map has ended.
    #[inline]
    pub(super) fn journal_for_resting(&mut self) {
        if let Some(durability) = &mut self.durability
            && let Some(id) = durability.take_stalled_for_block(&self.ftl, &self.jobs, &self.transactions)
        {
            self.place_own(id);
        }
    }

    /// Writes the next unit of the journal, unless one is being written.
    pub(super) fn write_journal(&mut self) {
        let Some(durability) = &mut self.durability else { return };
        match durability.journal_step(&self.ftl) {
            JournalStep::Wait => {}
            JournalStep::Write(lpn) => self.write_own(lpn),
            JournalStep::End(flushes) => self.complete_flushes(flushes, Status::Ok),
        }
    }

    /// Writes a mapping unit of the device itself.
    fn write_own(&mut self, lpn: Lpn) {
        let sequence = self.ftl.next_sequence();
        let before = self.ftl.map.get(lpn);
        let mut write = Transaction::new(Kind::Write, Class::HostProgram);
        (write.lpn, write.complete) = (lpn, true);
        if let Location::Flash(ppn) = before {
            write.source = ppn;
        }
        let id = self.transactions.insert(write);
        self.observe(move |observers, view| observers.accepted(view, id, before, Origin::Own(sequence), 0));
        self.ftl.map.set_slot(lpn, id);
        self.place_own(id);
    }

    /// Queues a unit of the device itself on a plane that takes it, or parks it until there is one.
    pub(super) fn place_own(&mut self, id: TransactionId) {
        let Some(durability) = &mut self.durability else { return };
        match durability.place(&self.ftl, &self.jobs, id, self.transactions[id].lpn) {
            // The scheme may have ended the write that a flush has waited for.
            OwnPlace::OfScheme => self.tasks.push(Task::Place(id)),
            OwnPlace::In(plane) => {
                self.transactions[id].plane = plane;
                dispatch::enqueue(self, id);
            }
            OwnPlace::Waits(planes) => planes.into_iter().for_each(|plane| self.tasks.push(Task::Clean(plane))),
        }
    }

    /// Retries units of the device itself that found no room, after space was freed.
    #[inline]
    pub(super) fn unpark_own(&mut self) {
        if let Some(durability) = &mut self.durability {
            let (of_journal, of_checkpoint) = durability.take_stalled();
            of_journal.into_iter().chain(of_checkpoint).for_each(|id| self.place_own(id));
        }
    }

    /// Ends the write of a unit of the device itself, which has no request and no write slot.
    pub(super) fn finish_own(&mut self, id: TransactionId) {
        let write = self.transactions.remove(id);
        if write.dependency.is_some() {
            self.release(write.dependency);
            self.clean(self.ftl.blocks.plane_of(write.dependency));
        }
        self.observe(move |observers, view| observers.anchored(view, write.lpn, write.ppn));
        let Some(journalled) = self.durability.as_mut().and_then(|durability| durability.own_written(write.lpn)) else {
            return;
        };
        let sequence = journalled.sequence;
        self.observe(move |observers, _| observers.changed(FlashEvent::Journalled { sequence }));
        journalled.blocks.into_iter().for_each(|block| self.release(block));
        self.complete_flushes(journalled.flushes, Status::Ok);
        if self.durability.as_ref().is_some_and(|durability| durability.is_journal_due(&self.ftl)) {
            self.write_journal();
        }
    }
}
