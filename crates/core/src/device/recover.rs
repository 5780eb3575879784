//! A device made of the flash of one whose power was cut.

use std::collections::BTreeMap;

use super::{Device, Options};
use crate::config::DeviceConfig;
use crate::durability::journal::Journal;
use crate::ftl::durable::Durable;
use crate::ftl::flash::{FlashImage, Keep, Saved};
use crate::ftl::mapping::Location;
use crate::ftl::memory::MemoryFlash;
use crate::ftl::{RecoverError, Recovery, Scan};
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn};
use crate::sim::time::Time;
use crate::work::Task;

/// Bytes that are read of a page for its out-of-band record, where the device file has no spare bytes: what an MLC part
/// of 4 KiB pages has beside them (assumed).
const SPARE: u64 = 128;

impl Device {
    /// A durable device with what is in `flash`, which is told of what it does there ([`Device::take_flash`]).
    pub fn recover(
        config: DeviceConfig,
        options: Options,
        flash: &mut dyn FlashImage,
    ) -> Result<(Device, Recovery), RecoverError> {
        let mut device = Device::new(config, options).map_err(RecoverError::Device)?;
        if let Some(why) = device.config.mapping.scheme.needs(&device.config).no_power_loss {
            return Err(RecoverError::Device(why.to_owned()));
        }
        device.ftl.durable = Some(Box::new(Durable::new(&device.config, Keep::Outbox)));
        let report = device.rebuild(flash)?;
        Ok((device, report))
    }

    /// The same, of flash that a device kept in memory, as the one that is made of it does. Where the power goes once
    /// more after so many things that the recovery has done to flash, there is no device yet, and what is left is
    /// returned.
    pub fn recover_in_memory(
        config: DeviceConfig,
        options: Options,
        mut flash: MemoryFlash,
        cut: Option<(usize, u64)>,
    ) -> Result<Result<(Device, Recovery), MemoryFlash>, RecoverError> {
        let (mut device, report) = Device::recover(config, options, &mut flash)?;
        let mut outbox = crate::ftl::flash::Outbox::default();
        device.take_flash(&mut outbox);
        if let Some((events, seed)) = cut.filter(|cut| cut.0 < outbox.events.len()) {
            outbox.events[..events].iter().for_each(|event| flash.apply(event, &outbox.own));
            flash.power_cut(seed);
            return Ok(Err(flash));
        }
        outbox.events.iter().for_each(|event| flash.apply(event, &outbox.own));
        if let Some(durable) = &mut device.ftl.durable {
            durable.adopt(flash);
        }
        Ok(Ok((device, report)))
    }

    fn rebuild(&mut self, flash: &mut dyn FlashImage) -> Result<Recovery, RecoverError> {
        let mut report = Recovery::default();
        let mut scan = self.ftl.scan(flash, &mut report)?;
        self.read_journal(flash, &mut scan, &mut report)?;
        let writes = self.take_saved(flash, &mut scan, &mut report)?;
        self.ftl.settle(&mut scan, &mut report)?;
        if let Some(durability) = &mut self.durability {
            durability.find_guests(&self.ftl);
        }
        self.check_spare_at_start();
        self.fill_contents(flash);
        self.restore_buffer(flash, writes, &mut report);
        report.map_pages_written = self.ftl.write_map_anew();
        self.adopt_checkpoint(flash, &scan)?;
        self.durability.get_or_insert_default().is_recovered = true;
        report.time_ps = self.time_of(&scan, report.map_pages_written).0;
        Ok(report)
    }

    /// Goes on with the checkpoint that was found. Parts that are elsewhere now, as of several copies, are told.
    fn adopt_checkpoint(&mut self, flash: &mut dyn FlashImage, scan: &Scan) -> Result<(), RecoverError> {
        let Some(layout) = self.ftl.checkpoint else { return Ok(()) };
        for part in 0..layout.parts.count() {
            let lpn = layout.unit(part);
            let place = self.ftl.place_in_flash(lpn);
            if let Some(place) = place
                && flash.anchor(part).map_err(RecoverError::Flash)? != Some(place)
            {
                self.anchor(lpn, place);
            }
        }
        if let Some(checkpoint) = self.durability.as_mut().and_then(|durability| durability.checkpoint.as_mut()) {
            checkpoint.adopt(&scan.accounted, &self.ftl);
        }
        Ok(())
    }

    /// The first request has come: planes in which few blocks are free are cleaned, as nobody has done since the cut.
    pub(super) fn clean_recovered(&mut self) {
        let is_recovered = self.durability.as_mut().map(|durability| &mut durability.is_recovered);
        if is_recovered.is_some_and(std::mem::take) {
            (0..self.ftl.shape().planes).for_each(|plane| self.tasks.push(Task::Clean(PlaneId(plane))));
            self.run_tasks();
        }
    }

    fn read_journal(
        &mut self,
        flash: &mut dyn FlashImage,
        scan: &mut Scan,
        report: &mut Recovery,
    ) -> Result<(), RecoverError> {
        let first = self.ftl.host_units;
        let all = self.ftl.checkpoint.map_or(self.ftl.map.all(), |checkpoint| checkpoint.first);
        let mut pages = Vec::new();
        for lpn in first..all {
            let Location::Flash(place) = self.ftl.map.get(Lpn(lpn)) else { continue };
            let mut bytes = Vec::new();
            flash.own(place, &mut bytes).map_err(RecoverError::Flash)?;
            let records = Journal::records(&bytes);
            let records = records.filter(|records| records.iter().all(|&(lpn, _)| lpn < first));
            let broken = || RecoverError::Foreign(format!("unit {} of the journal holds no records", lpn - first));
            pages.push((lpn - first, records.ok_or_else(broken)?));
        }
        for &(lpn, sequence) in pages.iter().flat_map(|(_, records)| records) {
            report.journal_records += 1;
            report.units_trimmed += u64::from(self.ftl.recover_trim(Lpn(lpn), sequence, scan));
        }
        let journal = self.durability.as_mut().and_then(|durability| durability.journal.as_mut());
        let Some(journal) = journal else { return Ok(()) };
        for (slot, records) in pages {
            // A record matters while no newer version is in flash.
            journal.adopt(slot, records, |lpn, _| self.ftl.map.get(Lpn(lpn)) == Location::Unmapped);
        }
        Ok(())
    }

    /// What memory held that survived: trims are applied, writes are returned, the newest of each unit.
    fn take_saved(
        &mut self,
        flash: &mut dyn FlashImage,
        scan: &mut Scan,
        report: &mut Recovery,
    ) -> Result<BTreeMap<u32, u64>, RecoverError> {
        let mut writes: BTreeMap<u32, u64> = BTreeMap::new();
        let mut trims: BTreeMap<u32, u64> = BTreeMap::new();
        for saved in flash.saved().map_err(RecoverError::Flash)? {
            let (of, lpn, sequence) = match saved {
                Saved::Write { lpn, sequence } => (&mut writes, lpn, sequence),
                Saved::Trim { lpn, sequence } => (&mut trims, lpn, sequence),
            };
            if lpn.0 >= self.ftl.host_units {
                return Err(RecoverError::Foreign("memory held units beyond the end of the device".to_owned()));
            }
            let newest = of.entry(lpn.0).or_default();
            *newest = sequence.max(*newest);
            self.ftl.sequence = self.ftl.sequence.max(sequence);
        }
        for (&lpn, &sequence) in &trims {
            report.units_trimmed += u64::from(self.ftl.recover_trim(Lpn(lpn), sequence, scan));
            writes.retain(|written, number| *written != lpn || *number > sequence);
            let journal = self.durability.as_mut().and_then(|durability| durability.journal.as_mut());
            if let Some(journal) = journal.filter(|_| self.ftl.map.get(Lpn(lpn)) == Location::Unmapped) {
                journal.adopt_waiting(Lpn(lpn), sequence);
            }
        }
        Ok(writes)
    }

    /// With verification: the contents of flash.
    fn fill_contents(&mut self, flash: &mut dyn FlashImage) {
        let Some(media) = &mut self.ftl.media else { return };
        for block in (0..self.ftl.blocks.all().len() as u32).map(BlockId) {
            let first = self.ftl.blocks.first_unit(block).0;
            for place in (first..first + self.ftl.blocks.data_units()).map(Ppn) {
                if self.ftl.blocks.is_valid(place)
                    && let Some(versions) = flash.versions(place)
                {
                    media.program(place, &versions);
                }
            }
        }
    }

    /// Units that survived in the buffer are dirty in it again, where flash has no newer version.
    fn restore_buffer(&mut self, flash: &mut dyn FlashImage, writes: BTreeMap<u32, u64>, report: &mut Recovery) {
        if !self.writes_back() {
            return;
        }
        let sectors = self.ftl.shape().sectors_per_unit;
        for (lpn, sequence) in writes {
            let lpn = Lpn(lpn);
            let newer = self.ftl.place_in_flash(lpn).is_some_and(|place| {
                self.ftl.durable.as_ref().is_some_and(|durable| durable.sequence(place) >= sequence)
            });
            let list = self.list_of(lpn);
            let Some(buffer) = self.buffer.as_mut().filter(|_| !newer) else { continue };
            let versions = flash.saved_versions(lpn, sequence);
            let Some(entry) = buffer.restore(lpn, sectors, list, versions.as_deref()) else { continue };
            report.units_saved += 1;
            if let Some(durable) = &mut self.ftl.durable {
                durable.set_coming(sequence, true);
                durable.note_in_buffer(entry);
            }
        }
    }

    /// How long it took: each die reads its pages one after the other and erases what it has to, and the channels carry
    /// the out-of-band records; all at the same time.
    fn time_of(&self, scan: &Scan, map_pages: u64) -> Time {
        let timing = self.array.timing();
        let spare = self.config.geometry.spare_size.0;
        let out = self.config.raw_data_time(if spare > 0 { spare } else { SPARE });
        let mut luns = vec![0u64; self.array.luns() as usize];
        let mut channels = vec![0u64; self.config.geometry.channels as usize];
        let mut add = |plane: PlaneId, cells: Time, bus: Time| {
            let lun = self.array.lun_of(plane);
            luns[lun.index()] += cells.0 + bus.0;
            channels[self.array.channel_of(lun).index()] += bus.0;
        };
        for (block, &pages) in scan.pages.iter().enumerate() {
            let plane = self.ftl.blocks.plane_of(BlockId(block as u32));
            let each = |time: Time| Time(time.0 * u64::from(pages));
            add(plane, each(timing.mean_read()), each(Time(timing.read_command.0 + out.0)));
        }
        let whole = self.config.raw_data_time(self.config.unit_bytes() / u64::from(self.ftl.shape().pages_per_unit));
        for &place in &scan.wholes {
            let each = |time: Time| Time(time.0 * u64::from(self.ftl.shape().pages_per_unit));
            let bus = each(Time(timing.read_command.0 + whole.0));
            add(self.ftl.blocks.plane_of(self.ftl.blocks.block_of(place)), each(timing.mean_read()), bus);
        }
        for &block in &scan.erased {
            add(self.ftl.blocks.plane_of(block), timing.erase, timing.erase_command);
        }
        for page in 0..map_pages {
            let bus = Time(timing.program_command.0 + timing.program_in.0);
            add(self.ftl.map_home(page as u32), timing.mean_program(), bus);
        }
        Time(luns.into_iter().chain(channels).max().unwrap_or(0))
    }
}
