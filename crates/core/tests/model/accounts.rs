//! Invariants of an idle device, and of the recorded phases.

use std::collections::BTreeMap;

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::flash::{Block, BlockState, Role};
use floatgate_core::internals::{
    BoundWork as Work, ChannelTime, DieTime, GcPace, GcScope, Job, MappingScheme, RESERVE,
};
use floatgate_core::results::{Counters, ProgramCause, Sample};
use floatgate_core::sim::id::{BlockId, Lpn, PlaneId, Ppn};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Ssd};
use floatgate_core::timeline::{Kind, Lane, Phase, Probe, Slice};

/// Checks that every block of an idle device is free, open or closed, no garbage collection is due, and the programs
/// add up.
///
/// Functional mode collects garbage before it takes a block, so it may leave a plane with one free block less.
pub fn check_blocks(device: &Device, functional: bool) -> Result<(), String> {
    let (config, ftl) = (device.config(), device.ftl());
    if config.merges_blocks() {
        return check_logical_blocks(device);
    }
    let per_plane = config.geometry.blocks as usize;
    // At or below this number, garbage collection runs: the soft threshold, or a level that overrides other triggers.
    let least = if config.gc.trigger.is_default() {
        config.soft_threshold()
    } else {
        config.hard_threshold().max(RESERVE + u32::from(config.faults.is_some()))
    };
    let data = config.data_units_per_block();
    let (mut pool_hidden, mut pool_invalid) = (0, 0);
    for plane in 0..config.total_planes() {
        let blocks = &ftl.blocks.all()[plane as usize * per_plane..][..per_plane];
        let in_state = |state| blocks.iter().filter(|b| b.state == state).count();
        let [free, open, closed] = [BlockState::Free, BlockState::Open, BlockState::Closed].map(in_state);
        let frontiers = config.frontiers_per_plane() as usize + usize::from(config.map_pages() > 0);
        let frontiers = frontiers + usize::from(config.slc_cache.is_some());
        // A plane of a pool may be too full to empty a failed block. The other planes continue.
        let full = if ftl.home(Lpn(0)).is_none() { in_state(BlockState::Failed) } else { 0 };
        let bad = in_state(BlockState::Bad) + full;
        if bad != blocks.iter().filter(|b| b.failed).count() {
            return Err(format!("plane {plane}: {bad} bad blocks differ from the number of failed ones"));
        }
        // A victim may wait for the next burst.
        let paused = in_state(BlockState::Victim).min(usize::from(config.programs_of_burst().is_some()));
        if free + open + closed + bad + paused != per_plane || open > frontiers {
            return Err(format!("plane {plane}: {free} blocks free, {open} open, {closed} closed of {per_plane}"));
        }
        let is_data = |b: &&Block| b.state == BlockState::Closed && b.role == Role::Data;
        // A block with fewer invalid units than a program has nothing to reclaim.
        let hidden = blocks.iter().filter(is_data).count() as u32 * (config.units_per_program() - 1);
        let invalid: u32 = blocks.iter().filter(is_data).map(|b| data - u32::from(b.valid)).sum();
        if let Some(planes) = config.planes_per_collection() {
            pool_hidden += hidden;
            pool_invalid += invalid;
            let free = ftl.blocks.free_together(PlaneId(plane));
            if (plane + 1) % planes == 0 {
                let is_due = free + u32::from(functional) <= min_of_pool(config, planes);
                if is_due && pool_invalid > pool_hidden {
                    return Err(format!("pool of plane {plane}: no garbage collection with {free} free blocks"));
                }
                (pool_hidden, pool_invalid) = (0, 0);
            }
            continue;
        }
        let is_due = match config.gc.pace {
            GcPace::Queued | GcPace::Exclusive => {
                ftl.blocks.free_blocks(PlaneId(plane), Role::Data) + u32::from(functional) <= least
            }
            GcPace::Proportional => is_behind(device, PlaneId(plane), functional),
            GcPace::Burst(_) => !functional && !ftl.blocks.takes_host_write(PlaneId(plane)),
        };
        // Copies may have filled the plane since its last block was opened.
        let is_filled = functional && config.gc.destination == GcScope::Pool;
        if is_due && !is_filled && invalid > hidden {
            return Err(format!("plane {plane}: no garbage collection with {free} free blocks, threshold {least}"));
        }
    }
    check_erases(device)?;
    check_small_blocks(device)?;
    check_programs(device)
}

/// Checks that every victim was erased, except for those that wait for the next burst.
fn check_erases(device: &Device) -> Result<(), String> {
    let ftl = device.ftl();
    let paused = ftl.blocks.all().iter().filter(|block| block.state == BlockState::Victim).count() as u64;
    let erases: u64 = ftl.blocks.all().iter().map(|b| u64::from(b.erases)).sum();
    let counters = &ftl.counters;
    let is_parity = |&(id, _): &(u32, _)| ftl.blocks.is_parity(BlockId(id));
    let of_parity: u64 = (0..).zip(ftl.blocks.all()).filter(is_parity).map(|(_, b)| u64::from(b.erases)).sum();
    let reclaimed = counters.victims
        + counters.map.victims
        + counters.migrations
        + counters.slc.folded
        + counters.errors.refreshed
        + of_parity;
    // A failed superblock has blocks of parity whose erase fails, and victims that are not erased.
    let is_retired = |&(id, block): &(u32, &Block)| block.failed && ftl.blocks.erased_with(BlockId(id)).count() > 1;
    let slack = (0..).zip(ftl.blocks.all()).filter(is_retired).count() as u64;
    let ended = erases + counters.faults.erases_failed + paused;
    if erases != counters.blocks_erased || ended.abs_diff(reclaimed) > slack {
        let counted = counters.blocks_erased;
        return Err(format!("{erases} erases, {counted} counted, {reclaimed} victims and cold blocks"));
    }
    Ok(())
}

/// Checks that no unit is valid beyond the pages that a block of translation pages or of the SLC cache has in its mode.
fn check_small_blocks(device: &Device) -> Result<(), String> {
    let (config, blocks) = (device.config(), &device.ftl().blocks);
    for (number, block) in (0..).zip(blocks.all()).filter(|(_, block)| block.role != Role::Data) {
        let is_native = block.role == Role::Map && config.map_cells().is_native();
        let bits = if is_native { 1 } else { config.nand.cell.bits() };
        let held = config.pages_per_block() / bits / config.pages_per_unit() * config.units_per_page();
        let first = blocks.first_unit(BlockId(number)).0;
        if let Some(ppn) = (first + held..first + blocks.units_per_block()).find(|&ppn| blocks.is_valid(Ppn(ppn))) {
            return Err(format!("unit {ppn} is valid, beyond the {held} units of block {number}"));
        }
    }
    Ok(())
}

/// Checks, for a scheme with blocks of its own, that every block is free or used by the scheme. With block mapping,
/// enough blocks are free.
fn check_logical_blocks(device: &Device) -> Result<(), String> {
    let (config, ftl) = (device.config(), device.ftl());
    let mut owned = 0;
    ftl.scheme().blocks(ftl, &mut |_| owned += 1);
    let in_state = |state| ftl.blocks.all().iter().filter(|block| block.state == state).count();
    let (free, taken) = (in_state(BlockState::Free), in_state(BlockState::Logical));
    let bad = in_state(BlockState::Bad);
    if owned != taken || free + taken + bad != ftl.blocks.all().len() {
        return Err(format!("{free} blocks are free, {taken} are used, {bad} are bad, and logical blocks own {owned}"));
    }
    if let MappingScheme::Block(scheme) = ftl.scheme() {
        for plane in 0..config.total_planes() {
            let free = ftl.blocks.free_blocks(PlaneId(plane), Role::Data);
            let pairs = scheme.map.pairs_of(PlaneId(plane));
            if free + 1 < config.gc.soft_threshold.of(config.geometry.blocks) && pairs > 0 {
                return Err(format!("plane {plane}: {free} free blocks, {pairs} merges due"));
            }
        }
    }
    check_programs(device)
}

/// Checks that the units programmed are the pages programmed, by cause.
fn check_programs(device: &Device) -> Result<(), String> {
    let (config, counters) = (device.config(), &device.ftl().counters);
    let without = [ProgramCause::Summary, ProgramCause::Parity].map(|cause| counters.pages_programmed[cause as usize]);
    let pages = counters.pages_programmed_total() - without.iter().sum::<u64>();
    let units = counters.units_programmed + counters.units_padded;
    let (have, want) = (pages * u64::from(config.units_per_page()), units * u64::from(config.pages_per_unit()));
    if have != want {
        return Err(format!("{pages} pages programmed without summaries and parity, but {units} units"));
    }
    // Units of the buffer are programmed each time they are written back.
    let buffer = device.buffer().map_or_else(Default::default, |buffer| buffer.counts);
    let written = counters.host_units + counters.units_rewritten - buffer.writes_back + buffer.written_back;
    let map_program = config.block_size(config.map_cells()).program_units;
    let of_map = counters.map.programs.iter().sum::<u64>() * u64::from(map_program);
    let dropped = device.ftl().scheme().report(device.ftl()).dropped;
    // Failed programs of a map in flash are counted with the others.
    let failed = counters.faults.units_failed;
    let slack = if device.config().map_pages() > 0 { failed } else { 0 };
    let wanted = written + counters.units_moved() + counters.wasted_copies + of_map + failed;
    let have = counters.units_programmed + dropped;
    if have > wanted || have + slack < wanted {
        return Err(format!("the units programmed are not the sum over their causes: {counters:?}"));
    }
    Ok(())
}

/// Checks that the units of all pools are those that were programmed since `earlier`, the start of the timed part.
pub fn check_pools(device: &Device, earlier: &Counters) -> Result<(), String> {
    let pools = &device.ftl().pool_units;
    if pools.is_empty() {
        return Ok(());
    }
    let config = device.config();
    let map_program = config.block_size(config.map_cells()).program_units;
    let done = device.ftl().counters.since(earlier);
    let of_data = done.units_programmed - done.map.programs.iter().sum::<u64>() * u64::from(map_program);
    let (written, moved) = pools.iter().fold((0, 0), |sums, pool| (sums.0 + pool.written, sums.1 + pool.moved));
    let copied = done.units_moved() + done.wasted_copies;
    // Failed programs of copies are repeated.
    if written + moved != of_data || moved < copied || config.faults.is_none() && moved > copied {
        return Err(format!("pools have {written} units written and {moved} moved of {of_data}, {copied} copied"));
    }
    Ok(())
}

/// Checks that a channel carries one transfer at a time, and that an execution unit performs one operation at a time.
/// Several of its planes may work together only if all perform the same. The pages of a block are programmed in order.
pub fn check_lanes(device: &Device, probe: &Probe) -> Result<(), String> {
    check_addresses(device, probe)?;
    let mut busy: BTreeMap<(bool, u32), (Time, Time, Kind, u32)> = BTreeMap::new();
    let mut programmed: BTreeMap<u32, u32> = BTreeMap::new();
    for slice in probe.slices() {
        let key = match slice.lane {
            Lane::Channel(channel) => (false, channel),
            // Planes that are programmed together are recorded one by one, and read independently.
            Lane::Plane(plane) if device.config().planes_together() > 1 => (true, plane),
            Lane::Plane(plane) => (true, device.array().unit_of(PlaneId(plane)).0),
        };
        let last = busy.insert(key, (slice.start, slice.end, slice.kind, slice.plane));
        if let Some((start, end, kind, plane)) = last
            && slice.start < end
            && (!key.0 || (slice.start, slice.end, slice.kind) != (start, end, kind) || slice.plane == plane)
        {
            return Err(format!("{slice:?} starts before {end:?}, the end of the previous phase: {last:?}"));
        }
        if slice.phase != Phase::Cell {
            continue;
        }
        let block = device.ftl().blocks.block_of(Ppn(slice.ppn)).0;
        match slice.kind {
            Kind::Read => {}
            Kind::Erase => drop(programmed.remove(&slice.ppn)),
            Kind::Program | Kind::CopyBack => match programmed.insert(block, slice.ppn) {
                // A unit that spans pages is programmed page by page under one address.
                Some(last) if last > slice.ppn => return Err(format!("{slice:?} follows address {last}")),
                _ => {}
            },
        }
    }
    Ok(())
}

/// Checks that no resource has been busy for longer than the elapsed time, nor any kind of resource as a whole.
pub fn check_bounds(device: &Device) -> Result<(), String> {
    let now = device.now();
    let mut sample = Sample::default();
    device.sample(now, &mut sample);
    let time = |ps: i64| Time(u64::try_from(ps).expect("nothing is measured before the first event"));
    let channels =
        sample.channels.iter().map(|&[data, command]| ChannelTime { data: time(data), command: time(command) });
    let dies = sample.dies.iter().map(|&[cell, held]| DieTime { cell: time(cell), register_held: time(held) });
    let work = Work {
        config: device.config(),
        counters: &sample.counters,
        channels: &channels.collect::<Vec<_>>(),
        dies: &dies.collect::<Vec<_>>(),
        luns: &sample.luns.iter().copied().map(time).collect::<Vec<_>>(),
        bytes: [0, 0],
        memory: sample.memory,
        cores: &sample.cores,
    };
    work.check(now).map_err(|error| error.to_string())?;
    for demand in work.demands() {
        let most = u128::from(now.0) * u128::from(demand.units);
        let gc = demand.gc;
        if demand.work > most || gc > demand.work {
            return Err(format!("{demand:?} within {now:?}"));
        }
    }
    Ok(())
}

/// Checks, if operations may overlap, that the busy time of each LUN is the time that its recorded phases cover.
pub fn check_busy(device: &Device, probe: &Probe) -> Result<(), String> {
    let mut booked = Vec::new();
    device.array().busy_until(device.now(), &mut booked);
    if booked.is_empty() {
        return Ok(());
    }
    let together = device.config().planes_together();
    let lun_of = |slice: &Slice| device.array().lun_of(PlaneId(slice.plane / together)).index();
    let mut slices: Vec<&Slice> = probe.slices().iter().collect();
    slices.sort_by_key(|slice| slice.start);
    let mut seen = vec![(0, Time::ZERO); booked.len()];
    for slice in slices {
        let (sum, until) = &mut seen[lun_of(slice)];
        *sum += slice.end.since(slice.start.max(*until)).0 as i64;
        *until = slice.end.max(*until);
    }
    match seen.iter().zip(&booked).position(|((sum, _), booked)| sum != booked) {
        Some(lun) => {
            Err(format!("LUN {lun} was counted busy for {} ps, but its phases cover {} ps", booked[lun], seen[lun].0))
        }
        None => Ok(()),
    }
}

/// Checks the addresses of planes that work together: they are at pages of the same number, with `strict` in blocks of
/// the same number, and with `plane_pairs` in pairs. Only the destination of a copy-back is known.
fn check_addresses(device: &Device, probe: &Probe) -> Result<(), String> {
    let (config, ftl) = (device.config(), device.ftl());
    if config.planes_together() > 1 {
        return Ok(());
    }
    let advanced = &config.nand.advanced;
    let address = |slice: &Slice| {
        let index = |block| ftl.blocks.index_in_plane(block);
        let (block, page) = match slice.kind {
            Kind::Erase => (index(BlockId(slice.ppn)), 0),
            _ => {
                let ppn = Ppn(slice.ppn);
                let page = ftl.blocks.offset_in_block(ppn) / config.units_per_page();
                (index(ftl.blocks.block_of(ppn)), page)
            }
        };
        let pair = if advanced.plane_pairs { slice.plane / 2 } else { 0 };
        (if advanced.strict { block } else { 0 }, page, pair)
    };
    let mut last: BTreeMap<u32, Slice> = BTreeMap::new();
    for slice in probe.slices().iter().filter(|slice| slice.phase == Phase::Cell) {
        let unit = device.array().unit_of(PlaneId(slice.plane)).0;
        if let Some(before) = last.insert(unit, *slice)
            && (before.start, before.end) == (slice.start, slice.end)
            && address(&before) != address(slice)
        {
            return Err(format!("{before:?} and {slice:?} are at different addresses"));
        }
    }
    Ok(())
}

/// Returns `true` if an idle plane has less free space than `gc.pace = "proportional"` keeps. Functional mode moves
/// whole victims, starts up to half a victim later, and frees space for the host when a write needs it.
fn is_behind(device: &Device, plane: PlaneId, functional: bool) -> bool {
    let (config, ftl) = (device.config(), device.ftl());
    let slack = if functional { ftl.blocks.data_units() } else { 0 };
    let is_low = Job::default().free_units(ftl, plane) + slack < ftl.pace_level();
    (!functional && !ftl.blocks.takes_host_write(plane)) || (config.gc.trigger.is_default() && is_low)
}

/// Returns the number of free blocks of a pool at or below which garbage collection must run.
fn min_of_pool(config: &DeviceConfig, planes: u32) -> u32 {
    let (soft, hard) = config.thresholds_of_pool(planes);
    let of_failures = u32::from(config.faults.is_some()) * (1 + u32::from(config.superblock.is_some()));
    let reserve = planes * (RESERVE + of_failures);
    if config.gc.trigger.is_default() { soft } else { hard.max(reserve) }
}
