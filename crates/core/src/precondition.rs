//! Preconditioning: brings the device into a state before the measured part of a run, in functional mode.

mod jobs;
mod prewrite;
mod progress;
mod steady;

use std::ops::Range;

use crate::config::did_you_mean_or_colon;
use crate::device::Device;
use crate::ftl::mapping::WholeBlocks;
use crate::ftl::{Ftl, Shape};
use crate::metrics::counters::Counters;
pub use crate::metrics::summary::Reached;
use crate::sim::id::{Lpn, PlaneId};

pub use jobs::{Turns, precondition_with};
pub(crate) use jobs::{ends_by_time_alone, serve_all};
pub use prewrite::{Prewrite, UnitSet, prewrite};
pub use progress::{OnProgress, PROGRESS_EVERY, STOPPED};
use progress::{amplification, fill, report_progress};

/// State that a device is brought into.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Precondition {
    /// New: nothing was written.
    None,
    /// Full: each unit was written once, in order.
    Fill,
    /// Full, with this share of each block invalid.
    Aged(f64),
    /// Empty, but with this share of its pages programmed and invalid.
    Invalid(f64),
    /// Full, and overwritten in random order until write amplification is stable.
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
                match (share("aged="), share("invalid=")) {
                    (Some(share), _) => Ok(Precondition::Aged(share)),
                    (_, Some(share)) => Ok(Precondition::Invalid(share)),
                    _ if text.starts_with("stale=") => Err(format!("`{text}`: `stale=` is now `invalid=`")),
                    _ => {
                        let hint = did_you_mean_or_colon(text, &["none", "fill", "steady"]);
                        Err(format!(
                            "invalid precondition `{text}`{hint} expected none, fill, steady, aged=V or invalid=V \
                             (0 <= V < 1), or a workload"
                        ))
                    }
                }
            }
        }
    }
}

/// Brings `device` into a state. Fails if the device cannot be in this state, or if `on_progress` returns `false`.
pub fn precondition(
    device: &mut Device,
    to: Precondition,
    seed: u64,
    on_progress: OnProgress,
) -> Result<Reached, String> {
    let mut reached = Reached::default();
    let whole = device.config().mapping.scheme.needs(device.config()).whole_blocks;
    if to == Precondition::Steady && whole.is_none() {
        let on_progress = &mut |_| on_progress(0.0);
        reached.write_amplification_at_hard = steady::at_hard_threshold(device.config(), seed, on_progress)?;
    }
    let ftl = device.ftl_mut();
    let before = ftl.counters;
    match to {
        Precondition::None => {}
        Precondition::Fill => fill(ftl, on_progress)?,
        Precondition::Aged(share) => beside_cache(ftl, |ftl| age(ftl, share, whole, on_progress))?,
        Precondition::Invalid(share) => beside_cache(ftl, |ftl| wear_in(ftl, share, whole, on_progress))?,
        Precondition::Steady => {
            fill(ftl, &mut |share| on_progress(share / 4.0))?;
            let (amplification, converged) = steady::overwrite(ftl, seed, on_progress)?;
            (reached.write_amplification, reached.converged) = (Some(amplification), Some(converged));
            steady::drop_if_close(&mut reached);
        }
    }
    seal(ftl, &before, &mut reached);
    ftl.fault().map_or(Ok(reached), |fault| Err(fault.to_string()))
}

/// Ends the functional mode of a device, and describes the state that was reached. `before` are its counters at the
/// start.
pub fn sealed(device: &mut Device, before: &Counters) -> Reached {
    let mut reached = Reached::default();
    seal(device.ftl_mut(), before, &mut reached);
    reached
}

/// Ends functional mode, and describes the state that was reached.
fn seal(ftl: &mut Ftl, before: &Counters, reached: &mut Reached) {
    let padded = ftl.counters.since(before).units_padded;
    ftl.seal();
    // The padding of `seal` does not count as a cost of the writes.
    let counted = Counters { units_padded: padded, ..ftl.counters.since(before) };
    let units = f64::from(ftl.map.len());
    reached.mapped = ftl.blocks.valid_data() as f64 / units;
    reached.drive_writes = counted.host_units as f64 / units;
    if reached.write_amplification.is_none() && counted.host_units > 0 {
        reached.write_amplification = Some(amplification(&counted, ftl.shape()));
    }
}

/// Writes native blocks only, because the SLC cache would not keep invalid units.
fn beside_cache<T>(ftl: &mut Ftl, write: impl FnOnce(&mut Ftl) -> T) -> T {
    let set = |ftl: &mut Ftl, is_bypassed| {
        ftl.folding.iter_mut().for_each(|folding| folding.is_bypassed = is_bypassed);
    };
    set(ftl, true);
    let result = write(ftl);
    set(ftl, false);
    result
}

/// Fills the device so that a share of each block is invalid. As many units as the share requires are written twice in
/// a row, so that both copies are in one plane.
fn age(ftl: &mut Ftl, share: f64, whole: Option<WholeBlocks>, on_progress: OnProgress) -> Result<(), String> {
    if whole.is_some() {
        return Err(format!(
            "aged={share}: with this mapping scheme, a unit cannot be written twice in a row to the same block; use \
             steady, invalid=V or a workload"
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
            "aged={share}: at most {:.3} of each block of this device can be invalid without garbage collection; \
             give at most aged={:.3}, or a device with more over-provisioning",
            most,
            (most * 1000.0).floor() / 1000.0,
        ));
    }
    // Extra copies per unit, in multiples of 2^-32, spread evenly over the units of each plane.
    let extra = (share / (1.0 - share) * 4_294_967_296.0) as u64;
    let mut owed = vec![0u64; shape.planes as usize];
    for lpn in 0..units {
        if u64::from(lpn).is_multiple_of(PROGRESS_EVERY) {
            report_progress(ftl, f64::from(lpn) / f64::from(units), on_progress)?;
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

/// Programs a share of the pages of each plane and invalidates all of them. The device is empty, but close to garbage
/// collection.
fn wear_in(ftl: &mut Ftl, share: f64, whole: Option<WholeBlocks>, on_progress: OnProgress) -> Result<(), String> {
    if let Some(whole) = whole {
        return wear_in_blocks(ftl, share, whole, on_progress);
    }
    if ftl.blocks.has_superblocks() {
        return Err(format!("invalid={share}: the planes of a superblock are filled together; use aged"));
    }
    let shape = *ftl.shape();
    let good = (0..shape.planes).map(|plane| ftl.blocks.good(PlaneId(plane))).min().unwrap_or(0);
    let room = u64::from(good.saturating_sub(kept(&shape))) * u64::from(ftl.blocks.data_units());
    let wanted = whole_programs(ftl, share);
    if wanted > room {
        let most = rounded_share(ftl, room);
        return Err(format!(
            "invalid={share}: {} blocks of each plane are free, open or reserved for translation pages; give at most \
             invalid={most:.3}",
            kept(&shape)
        ));
    }
    let mut lpn = 0;
    for plane in 0..shape.planes {
        for written in 0..wanted {
            if written.is_multiple_of(PROGRESS_EVERY) {
                let share = written as f64 / wanted as f64;
                report_progress(ftl, (f64::from(plane) + share) / f64::from(shape.planes), on_progress)?;
            }
            ftl.write_to(PlaneId(plane), Lpn(lpn));
            ftl.trim(Lpn(lpn));
            lpn = (lpn + 1) % ftl.map.len();
        }
    }
    Ok(())
}

/// Returns the number of blocks of a plane that cannot be full of invalid data before a run: those that are free when
/// garbage collection stops, open ones, and those of translation pages and of the SLC cache.
fn kept(shape: &Shape) -> u32 {
    shape.soft + 1 + shape.classes + shape.map_blocks + shape.cache_blocks
}

/// Returns the number of units in a share of a plane, rounded down to whole programs. Shares are decimal numbers of a
/// few digits.
fn whole_programs(ftl: &Ftl, share: f64) -> u64 {
    let group = u64::from(ftl.shape().units_per_program);
    (share * units_of_a_plane(ftl) as f64 + 1e-6) as u64 / group * group
}

/// Returns `units` as a share of the units of a plane, rounded down to three digits.
fn rounded_share(ftl: &Ftl, units: u64) -> f64 {
    (units as f64 / units_of_a_plane(ftl) as f64 * 1000.0).floor() / 1000.0
}

fn units_of_a_plane(ftl: &Ftl) -> u64 {
    ftl.blocks.all().len() as u64 / u64::from(ftl.shape().planes) * u64::from(ftl.blocks.data_units())
}

/// Writes whole logical blocks of each plane in ascending order, and trims them, until a share of the plane is invalid.
/// If the mapping scheme maps whole blocks, only logical blocks can hold invalid pages, because free blocks are erased.
fn wear_in_blocks(ftl: &mut Ftl, share: f64, whole: WholeBlocks, on_progress: OnProgress) -> Result<(), String> {
    let planes = ftl.shape().planes;
    let owned = stripes_by_plane(ftl, whole);
    let wanted = whole_programs(ftl, share);
    let room = owned.iter().map(|blocks| blocks.iter().map(|units| units.len() as u64).sum()).min().unwrap_or(0);
    if wanted > room {
        let most = rounded_share(ftl, room);
        return Err(format!(
            "invalid={share}: with this mapping scheme, only the pages of logical blocks can be invalid, and a plane has \
             no more of them; give at most invalid={most:.3}"
        ));
    }
    for (plane, blocks) in owned.into_iter().enumerate() {
        report_progress(ftl, plane as f64 / f64::from(planes), on_progress)?;
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

/// Returns the ranges of units whose logical blocks are striped, indexed by plane. If a scheme fixes no plane, the
/// ranges are dealt out in turn.
fn stripes_by_plane(ftl: &Ftl, whole: WholeBlocks) -> Vec<Vec<Range<u32>>> {
    let (units, stripe) = (ftl.map.len(), whole.stripe * ftl.blocks.data_units());
    let mut stripes = vec![Vec::new(); ftl.shape().planes as usize];
    for (number, first) in (0..units).step_by(stripe as usize).enumerate() {
        let plane = ftl.home(Lpn(first)).map_or(number % stripes.len(), PlaneId::index);
        stripes[plane].push(first..units.min(first + stripe));
    }
    stripes
}
