//! Recovery after a power cut: builds a device from the contents of its flash.

use std::collections::BTreeMap;

use super::{Device, Mutant, Options};
use crate::config::cells::CellMode;
use crate::config::{DeviceConfig, Direction, MapMemory};
use crate::durability::flash::{FlashImage, Keep, Outbox};
use crate::durability::log::FlashLog;
use crate::durability::memory::MemoryFlash;
use crate::durability::{Rebuild, RecoverError, Recovery, Scan};
use crate::ftl::space::Role;
use crate::sim::id::{BlockId, Lpn, PlaneId};
use crate::sim::time::Time;
use crate::work::Task;

/// Size of the out-of-band record of a page, in bytes, if the device file has no spare bytes: the spare area of an MLC
/// part with 4 KiB pages (assumed).
const SPARE: u64 = 128;

impl Device {
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
        let log = FlashLog::new(&device.config, Keep::Outbox);
        let report = device.rebuild(log, flash)?;
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

    /// Restores a new device and its log from the contents of flash. The log becomes that of the device.
    fn rebuild(&mut self, mut log: FlashLog, flash: &mut dyn FlashImage) -> Result<Recovery, RecoverError> {
        let mut report = Recovery::default();
        let (scan, writes) = self.rebuild_with(&mut log).read(flash, &mut report)?;
        if scan.is_stuck {
            self.become_read_only(); // Some blocks have no place.
        }
        if self.ftl.faults.is_some() {
            (0..self.ftl.shape().planes).for_each(|plane| self.check_spare(PlaneId(plane)));
        }
        self.restore_buffer(flash, writes, &mut log, &mut report)?;
        self.rebuild_with(&mut log).complete(flash, &scan, &mut report)?;
        self.observers.get_or_insert_default().log = Some(Box::new(log));
        if self.config.durability.map == MapMemory::Saved {
            report.pages_read += self.config.saved_map_units() * u64::from(self.ftl.shape().pages_per_unit);
        }
        report.time_ps = self.time_of(&scan, report.map_pages_written).0;
        Ok(report)
    }

    fn rebuild_with<'a>(&'a mut self, log: &'a mut FlashLog) -> Rebuild<'a> {
        let map = self.config.durability.map;
        let mutant = self.options.mutant;
        let (skips_trims, prefers_older) = (mutant == Mutant::SkipTrims, mutant == Mutant::OldBlockWins);
        let durability = self.durability.get_or_insert_default();
        Rebuild { ftl: &mut self.ftl, log, durability, map, skips_trims, prefers_older }
    }

    /// Starts garbage collection in planes with few free blocks at the first request after a recovery, since recovery
    /// starts none.
    pub(super) fn collect_recovered(&mut self) {
        let is_recovered = self.durability.as_mut().map(|durability| &mut durability.is_recovered);
        if is_recovered.is_some_and(std::mem::take) {
            (0..self.ftl.shape().planes).for_each(|plane| self.tasks.push(Task::Clean(PlaneId(plane))));
            self.run_tasks();
        }
    }

    /// Restores units that survived in the buffer as dirty, unless flash has a newer version.
    fn restore_buffer(
        &mut self,
        flash: &mut dyn FlashImage,
        writes: BTreeMap<u32, u64>,
        log: &mut FlashLog,
        report: &mut Recovery,
    ) -> Result<(), RecoverError> {
        if !self.writes_back() {
            return Ok(());
        }
        let sectors = self.ftl.shape().sectors_per_unit;
        for (lpn, sequence) in writes {
            let lpn = Lpn(lpn);
            let newer = self.ftl.ppn_in_flash(lpn).is_some_and(|ppn| log.sequence(ppn) >= sequence);
            let list = self.list_of(lpn);
            let Some(buffer) = self.buffer.as_mut().filter(|_| !newer) else { continue };
            let versions = flash.saved_versions(lpn, sequence);
            let foreign = || RecoverError::Foreign("memory holds more units than the buffer".to_owned());
            let entry = buffer.restore(lpn, sectors, list, versions.as_deref()).ok_or_else(foreign)?;
            report.units_saved += 1;
            log.set_coming(sequence, true);
            log.note_in_buffer(entry);
        }
        Ok(())
    }

    /// Returns the duration of a recovery. Each die reads its pages and performs its erases one after another, while
    /// the channels transfer the out-of-band records. All dies and channels work in parallel.
    fn time_of(&self, scan: &Scan, map_pages: u64) -> Time {
        let timing = self.array.timing();
        let spare = self.config.spare_bytes();
        let out = self.config.raw_data_time(if spare > 0 { spare } else { SPARE }, Direction::Out);
        let mut luns = vec![0u64; self.array.luns() as usize];
        let mut channels = vec![0u64; self.config.buses() as usize];
        let mut add = |plane: PlaneId, cells: Time, bus: Time| {
            let lun = self.array.lun_of(plane);
            luns[lun.index()] += cells.0 + bus.0;
            channels[self.array.channel_of(lun).index()] += bus.0;
        };
        for (block, &pages) in scan.pages.iter().enumerate() {
            let plane = self.ftl.blocks.plane_of(BlockId(block as u32));
            let each = |time: Time| Time(time.0 * u64::from(pages));
            let read = timing.of(scan.cells[block]).mean_read();
            add(plane, each(read), each(Time(timing.read_command.0 + out.0)));
        }
        let part = self.config.unit_bytes() / u64::from(self.ftl.shape().pages_per_unit);
        let whole = self.config.raw_data_time(part, Direction::Out);
        for &ppn in &scan.wholes {
            let each = |time: Time| Time(time.0 * u64::from(self.ftl.shape().pages_per_unit));
            let block = self.ftl.blocks.block_of(ppn);
            let bus = each(Time(timing.read_command.0 + whole.0));
            let read = timing.of(scan.cells[block.index()]).mean_read();
            add(self.ftl.blocks.plane_of(block), each(read), bus);
        }
        if self.config.durability.map == MapMemory::Saved {
            // Backup power spreads the map evenly over the planes.
            let planes = self.ftl.shape().planes;
            for unit in 0..self.config.saved_map_units() {
                let pages = u64::from(self.ftl.shape().pages_per_unit);
                let bus = Time((timing.read_command.0 + whole.0) * pages);
                let read = Time(timing.of(CellMode::Native).mean_read().0 * pages);
                add(PlaneId((unit % u64::from(planes)) as u32), read, bus);
            }
        }
        for &ppn in &scan.merged {
            let pages = u64::from(self.ftl.shape().pages_per_unit);
            let bus = Time((timing.read_command.0 + whole.0) * pages);
            let read = Time(timing.of(CellMode::Native).mean_read().0 * pages);
            add(self.ftl.blocks.plane_of(self.ftl.blocks.block_of(ppn)), read, bus);
        }
        for &ppn in &scan.programs {
            let times = timing.of(CellMode::Native);
            let bus = Time(timing.program_command.0 + times.program_in.0);
            add(self.ftl.blocks.plane_of(self.ftl.blocks.block_of(ppn)), times.mean_program(), bus);
        }
        for &block in &scan.erased {
            add(self.ftl.blocks.plane_of(block), timing.erase, timing.erase_command);
        }
        let times = timing.of(self.ftl.blocks.cells(Role::Map));
        for page in 0..map_pages {
            let bus = Time(timing.program_command.0 + times.program_in.0);
            add(self.ftl.map_home(page as u32), times.mean_program(), bus);
        }
        Time(luns.into_iter().chain(channels).max().unwrap_or(0))
    }
}
