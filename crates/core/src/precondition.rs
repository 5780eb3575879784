//! Preconditioning: bringing the device into a state before the measured part, in functional mode.

mod layout;

use crate::device::Device;
use crate::external::Written;
use crate::ftl::{Ftl, Shape};
use crate::metrics::counters::Counters;
pub use crate::metrics::summary::Reached;
use crate::sim::id::{Lpn, PlaneId};
use crate::sim::rng::Rng;
use crate::workload::request::{Operation, Request};
use crate::workload::{Pace, Source, SourceError};

pub use layout::{Layout, lay_out};

/// The state that a device is brought into.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Precondition {
    /// As it left the factory.
    None,
    /// Each unit written once, in order.
    Fill,
    /// Filled so that this share of each block is superseded.
    Aged(f64),
    /// Empty, but with this share of its pages written and stale.
    Stale(f64),
    /// Overwritten in random order until write amplification stands still.
    Steady,
}

impl std::str::FromStr for Precondition {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Precondition::None),
            "fill" => Ok(Precondition::Fill),
            "steady" => Ok(Precondition::Steady),
            _ => {
                let share = |name| {
                    let share = text.strip_prefix(name)?.parse::<f64>().ok()?;
                    (0.0..1.0).contains(&share).then_some(share)
                };
                match (share("aged="), share("stale=")) {
                    (Some(share), _) => Ok(Precondition::Aged(share)),
                    (_, Some(share)) => Ok(Precondition::Stale(share)),
                    _ => Err(format!(
                        "`{text}` is no precondition: none, fill, steady, aged=V or stale=V with V from 0 to below 1, \
                         or a workload"
                    )),
                }
            }
        }
    }
}

/// Told how far preconditioning has come, in parts of one; whether to go on.
pub type OnProgress<'a> = &'a mut dyn FnMut(f64) -> bool;

/// Units between two calls for progress.
const PROGRESS_EVERY: u32 = 1 << 18;

/// Brings `device` into a state; fails where the device cannot be in it, or when told not to go on.
pub fn precondition(
    device: &mut Device,
    to: Precondition,
    seed: u64,
    on_progress: OnProgress,
) -> Result<Reached, String> {
    let ftl = device.ftl_mut();
    let before = ftl.counters;
    let mut reached = Reached::default();
    match to {
        Precondition::None => {}
        Precondition::Fill => fill(ftl, on_progress)?,
        Precondition::Aged(share) => age(ftl, share, on_progress)?,
        Precondition::Stale(share) => wear_in(ftl, share, on_progress)?,
        Precondition::Steady => {
            fill(ftl, &mut |share| on_progress(share / 4.0))?;
            reached.converged = Some(overwrite(ftl, seed, &mut reached.write_amplification, on_progress)?);
        }
    }
    ftl.seal();
    finish(ftl, &before, &mut reached);
    ftl.fault().map_or(Ok(reached), |fault| Err(fault.to_string()))
}

/// Fills in what a state is described by.
fn finish(ftl: &Ftl, before: &Counters, reached: &mut Reached) {
    let counted = ftl.counters.since(before);
    let units = f64::from(ftl.map.len());
    reached.mapped = ftl.blocks.valid_data() as f64 / units;
    reached.drive_writes = counted.host_units as f64 / units;
    if reached.write_amplification.is_none() && counted.host_units > 0 {
        reached.write_amplification = Some(amplification(&counted));
    }
}

/// Units programmed for each unit that the host wrote.
fn amplification(counted: &Counters) -> f64 {
    counted.units_programmed as f64 / counted.host_units as f64
}

const STOPPED: &str = "preconditioning was stopped";

/// Tells how far it has come; fails when that is the end, or a policy has failed.
fn go_on(ftl: &Ftl, share: f64, on_progress: OnProgress) -> Result<(), String> {
    match ftl.fault() {
        Some(fault) => Err(fault.to_string()),
        None if on_progress(share) => Ok(()),
        None => Err(STOPPED.to_owned()),
    }
}

fn fill(ftl: &mut Ftl, on_progress: OnProgress) -> Result<(), String> {
    let units = ftl.map.len();
    for lpn in 0..units {
        if lpn % PROGRESS_EVERY == 0 {
            go_on(ftl, f64::from(lpn) / f64::from(units), on_progress)?;
        }
        ftl.write_whole(Lpn(lpn));
    }
    Ok(())
}

/// Fills the device so that a share of each block is superseded: as often as the share asks for, a unit is written
/// twice in a row, and both copies land in the same plane.
fn age(ftl: &mut Ftl, share: f64, on_progress: OnProgress) -> Result<(), String> {
    if ftl.block_map.is_some() {
        return Err(format!(
            "aged={share}: with block mapping a unit has one place in its block, so that it cannot be written twice in a \
             row there; take steady, stale=V or a workload"
        ));
    }
    let units = ftl.map.len();
    let shape = *ftl.shape();
    let blocks: u32 = (0..shape.planes).map(|plane| ftl.blocks.good(PlaneId(plane)).saturating_sub(kept(&shape))).sum();
    let room = u64::from(blocks) * u64::from(ftl.blocks.data_units());
    let needed = f64::from(units) / (1.0 - share);
    if needed > room as f64 {
        let most = (1.0 - f64::from(units) / room as f64).max(0.0);
        return Err(format!(
            "aged={share}: with all its data, this device holds at most {:.3} of superseded units without cleaning; \
             give at most aged={:.3}, or a device with more spare",
            most,
            (most * 1000.0).floor() / 1000.0,
        ));
    }
    // Extra copies per unit in 2^32 parts, spread over the units of each plane alike.
    let extra = (share / (1.0 - share) * 4_294_967_296.0) as u64;
    let mut owed = vec![0u64; shape.planes as usize];
    for lpn in 0..units {
        if lpn % PROGRESS_EVERY == 0 {
            go_on(ftl, f64::from(lpn) / f64::from(units), on_progress)?;
        }
        let plane = ftl.home(Lpn(lpn)).map_or(lpn % shape.planes, |plane| plane.0);
        let due = &mut owed[plane as usize];
        *due += extra;
        while *due >= 1 << 32 {
            *due -= 1 << 32;
            ftl.write_whole(Lpn(lpn));
        }
        ftl.write_whole(Lpn(lpn));
    }
    Ok(())
}

/// Writes a share of the pages of each plane and makes all of them stale: the device is empty, and cleaning near.
fn wear_in(ftl: &mut Ftl, share: f64, on_progress: OnProgress) -> Result<(), String> {
    if ftl.block_map.is_some() {
        return wear_in_blocks(ftl, share, on_progress);
    }
    let shape = *ftl.shape();
    let good = (0..shape.planes).map(|plane| ftl.blocks.good(PlaneId(plane))).min().unwrap_or(0);
    let room = u64::from(good.saturating_sub(kept(&shape))) * u64::from(ftl.blocks.data_units());
    let wanted = whole_programs(ftl, share);
    if wanted > room {
        let most = most_of(ftl, room);
        return Err(format!(
            "stale={share}: {} blocks of each plane are kept free or open, or for translation pages; give at most \
             stale={most:.3}",
            kept(&shape)
        ));
    }
    let mut lpn = 0;
    for plane in 0..shape.planes {
        go_on(ftl, f64::from(plane) / f64::from(shape.planes), on_progress)?;
        for _ in 0..wanted {
            ftl.write_to(PlaneId(plane), Lpn(lpn));
            ftl.trim(Lpn(lpn));
            lpn = (lpn + 1) % ftl.map.len();
        }
    }
    Ok(())
}

/// Returns the blocks of a plane that cannot be full of invalid data before a run: those that are free when garbage
/// collection stops, open ones, and those of translation pages.
fn kept(shape: &Shape) -> u32 {
    shape.soft + 1 + shape.classes + shape.map_blocks
}

/// Returns a share of the units of a plane, in whole programs. Shares are decimal numbers of a few digits.
fn whole_programs(ftl: &Ftl, share: f64) -> u64 {
    let group = u64::from(ftl.shape().units_per_program);
    (share * units_of_a_plane(ftl) as f64 + 1e-6) as u64 / group * group
}

/// Returns `units` as a share of the units of a plane, rounded down to three digits.
fn most_of(ftl: &Ftl, units: u64) -> f64 {
    (units as f64 / units_of_a_plane(ftl) as f64 * 1000.0).floor() / 1000.0
}

fn units_of_a_plane(ftl: &Ftl) -> u64 {
    ftl.blocks.all().len() as u64 / u64::from(ftl.shape().planes) * u64::from(ftl.blocks.data_units())
}

/// Writes whole logical blocks of each plane in order of their numbers, and trims them, until a share of the plane is
/// invalid. With block mapping only a logical block can hold invalid pages, because a free block is an erased one.
fn wear_in_blocks(ftl: &mut Ftl, share: f64, on_progress: OnProgress) -> Result<(), String> {
    let (planes, units) = (ftl.shape().planes, ftl.map.len());
    let block = ftl.logical_blocks().units();
    let mut owned = vec![Vec::new(); planes as usize];
    for number in 0..units.div_ceil(block) {
        owned[ftl.block_home(number).index()].push(number * block..units.min((number + 1) * block));
    }
    let wanted = whole_programs(ftl, share);
    let room = owned.iter().map(|blocks| blocks.iter().map(|units| units.len() as u64).sum()).min().unwrap_or(0);
    if wanted > room {
        let most = most_of(ftl, room);
        return Err(format!(
            "stale={share}: with block mapping invalid pages are those of logical blocks, which have no more in each \
             plane; give at most stale={most:.3}"
        ));
    }
    for (plane, blocks) in owned.into_iter().enumerate() {
        go_on(ftl, plane as f64 / f64::from(planes), on_progress)?;
        let mut left = wanted as usize;
        for written in blocks {
            let written = written.start..written.end.min(written.start.saturating_add(left as u32));
            left -= written.len();
            written.clone().for_each(|lpn| ftl.write_whole(Lpn(lpn)));
            written.for_each(|lpn| ftl.trim(Lpn(lpn)));
        }
    }
    Ok(())
}

/// Writes of one drive size each, in random order, at least and at most.
const DRIVE_WRITES: std::ops::RangeInclusive<u32> = 3..=20;

/// Overwrites uniformly at random, a drive size at a time, until two have the same write amplification within 1 %.
fn overwrite(ftl: &mut Ftl, seed: u64, last: &mut Option<f64>, on_progress: OnProgress) -> Result<bool, String> {
    let mut rng = Rng::new(seed, "precondition");
    for round in 1..=*DRIVE_WRITES.end() {
        let before = ftl.counters;
        random_drive_write(ftl, &mut rng, &mut |share| {
            let expected = f64::from(*DRIVE_WRITES.start());
            on_progress((0.25 + 0.75 * (f64::from(round - 1) + share) / expected).min(0.99))
        })?;
        let now = amplification(&ftl.counters.since(&before));
        let previous = last.replace(now);
        let still = previous.is_some_and(|previous| (now / previous - 1.0).abs() < 0.01);
        if round >= *DRIVE_WRITES.start() && still {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes in a batch; the map entries of the next batch are asked for while this one is written.
const BATCH: usize = 32;

fn random_drive_write(ftl: &mut Ftl, rng: &mut Rng, on_progress: OnProgress) -> Result<(), String> {
    let units = ftl.map.len();
    let mut draw = |ftl: &Ftl| {
        let batch: [Lpn; BATCH] = std::array::from_fn(|_| Lpn(rng.below(u64::from(units)) as u32));
        batch.iter().for_each(|&lpn| ftl.map.prefetch(lpn));
        batch
    };
    let mut next = draw(ftl);
    let mut written = 0;
    while written < units {
        let batch = std::mem::replace(&mut next, draw(ftl));
        batch.iter().for_each(|&lpn| ftl.prefetch(lpn));
        let count = (units - written).min(BATCH as u32);
        batch[..count as usize].iter().for_each(|&lpn| ftl.write_whole(lpn));
        if written / PROGRESS_EVERY != (written + count) / PROGRESS_EVERY {
            go_on(ftl, f64::from(written) / f64::from(units), on_progress)?;
        }
        written += count;
    }
    Ok(())
}

/// Brings `device` into the state that a workload leaves behind, as fast as it can be worked out. The requests of
/// several sources take turns; times in them mean nothing here.
pub fn precondition_with(
    device: &mut Device,
    sources: &mut [Box<dyn Source>],
    on_progress: OnProgress,
) -> Result<Reached, SourceError> {
    let before = device.ftl().counters;
    if sources.iter().any(|source| ends_by_time_alone(source.as_ref())) {
        let what = "a workload to precondition with is served without time, so `runtime` cannot end it: give it size, \
                    io_size or number_ios";
        return Err(SourceError(what.to_owned()));
    }
    let mut ended = vec![false; sources.len()];
    let mut served = 0u64;
    while ended.contains(&false) {
        for (index, source) in sources.iter_mut().enumerate() {
            let others = source.waits_for();
            let others = others.start..others.end.min(index);
            if ended[index] || ended.get(others).is_some_and(|others| others.contains(&false)) {
                continue;
            }
            match source.next_request()? {
                Some(request) => {
                    device.serve_now(&request);
                }
                None => ended[index] = true,
            }
        }
        served += 1;
        let share = || sources.iter().find_map(|source| source.progress()).unwrap_or(0.0);
        if served.is_multiple_of(u64::from(PROGRESS_EVERY)) {
            go_on(device.ftl(), share(), on_progress).map_err(SourceError)?;
        }
    }
    let mut reached = Reached::default();
    device.ftl_mut().seal();
    finish(device.ftl(), &before, &mut reached);
    device.ftl().fault().map_or(Ok(reached), |fault| Err(SourceError(fault.to_string())))
}

/// Whether only simulated time would end a source.
fn ends_by_time_alone(source: &dyn Source) -> bool {
    !matches!(source.pace(), Pace::Timed { .. }) && source.stop_at().is_some() && source.progress().is_none()
}

impl Device {
    /// Serves a request at once, without time; for preconditioning with a workload and for tests. Nothing may be in
    /// progress. Returns what a read returns, with `verify`; `None` when the request lies outside the device.
    pub fn serve_now(&mut self, request: &Request) -> Option<Vec<u32>> {
        let per_unit = self.config().sectors_per_unit();
        let end = request.lba.checked_add(u64::from(request.sectors))?;
        if end > self.config().logical_sectors() {
            return None;
        }
        let Request { sectors, stream, placement, .. } = *request;
        let written = Written { sectors, stream, placement, ..Written::default() };
        let ftl = self.ftl_mut();
        let mut contents = Vec::new();
        let mut sector = request.lba;
        while sector < end {
            let unit = sector / u64::from(per_unit);
            let start = unit * u64::from(per_unit);
            let (first, stop) = ((sector - start) as u32, (end.min(start + u64::from(per_unit)) - start) as u32);
            let (lpn, whole) = (Lpn(unit as u32), stop - first == per_unit);
            match request.operation {
                Operation::Read if ftl.media.is_some() => contents.extend(ftl.read_contents(lpn, first, stop)),
                Operation::Read | Operation::Flush => {}
                Operation::Write => ftl.write_for(lpn, first, stop, request.tag as u32, written),
                Operation::Trim | Operation::WriteZeroes if whole => ftl.trim(lpn),
                Operation::Trim => {}
                Operation::WriteZeroes => ftl.write_for(lpn, first, stop, crate::nand::media::BLANK, written),
            }
            sector = start + u64::from(stop);
        }
        Some(contents)
    }
}
