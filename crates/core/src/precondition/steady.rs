//! Steady state of uniform random writes: reaches it in functional mode, and estimates its range in timed runs.
//!
//! Functional mode collects garbage at once, so each plane always has more free blocks than `gc.soft_threshold`. In a
//! timed run, host writes continue between the two thresholds. The more they outpace garbage collection, the closer the
//! number of free blocks gets to `gc.hard_threshold`. Blocks that are not kept free hold invalid units, so write
//! amplification falls.

use super::{OnProgress, PROGRESS_EVERY, Reached, amplification, fill, report_progress};
use crate::config::units::{BlockCount, Bytes};
use crate::config::{Capacity, DeviceConfig};
use crate::external::Externals;
use crate::ftl::Ftl;
use crate::ftl::space::RESERVE;
use crate::sim::id::Lpn;
use crate::sim::rng::Rng;

/// Minimum and maximum number of drive writes in random order.
const DRIVE_WRITES: std::ops::RangeInclusive<u32> = 3..=20;

/// Overwrites the device uniformly at random until the write amplification of two consecutive drive writes differs by
/// less than 1 %. Returns that of the last drive write, and whether it converged.
pub(super) fn overwrite(ftl: &mut Ftl, seed: u64, on_progress: OnProgress) -> Result<(f64, bool), String> {
    let mut rng = Rng::new(seed, "precondition");
    let mut last = None;
    for round in 1..=*DRIVE_WRITES.end() {
        let before = ftl.counters;
        random_drive_write(ftl, &mut rng, &mut |share| {
            let expected = f64::from(*DRIVE_WRITES.start());
            on_progress((0.25 + 0.75 * (f64::from(round - 1) + share) / expected).min(0.99))
        })?;
        let now = amplification(&ftl.counters.since(&before), ftl.shape());
        let previous = last.replace(now);
        let still = previous.is_some_and(|previous| (now / previous - 1.0).abs() < 0.01);
        if round >= *DRIVE_WRITES.start() && still {
            return Ok((now, true));
        }
    }
    Ok((last.unwrap_or(1.0), false))
}

/// Number of writes in a batch. While one batch is written, the processor prefetches the data of the next two.
const BATCH: usize = 32;

fn random_drive_write(ftl: &mut Ftl, rng: &mut Rng, on_progress: OnProgress) -> Result<(), String> {
    let units = ftl.map.len();
    let mut draw = |ftl: &Ftl| {
        let batch: [Lpn; BATCH] = std::array::from_fn(|_| Lpn(rng.below(u64::from(units)) as u32));
        batch.iter().for_each(|&lpn| ftl.map.prefetch(lpn));
        batch
    };
    let mut next = draw(ftl);
    let mut after = draw(ftl);
    let mut written = 0;
    while written < units {
        let batch = std::mem::replace(&mut next, after);
        if units - written > BATCH as u32 {
            after = draw(ftl);
        }
        next.iter().for_each(|&lpn| ftl.prefetch(lpn));
        batch.iter().for_each(|&lpn| ftl.prefetch_candidate(lpn));
        let count = (units - written).min(BATCH as u32);
        batch[..count as usize].iter().for_each(|&lpn| ftl.write_whole(lpn));
        if u64::from(written) / PROGRESS_EVERY != u64::from(written + count) / PROGRESS_EVERY {
            report_progress(ftl, f64::from(written) / f64::from(units), on_progress)?;
        }
        written += count;
    }
    Ok(())
}

/// Maximum number of blocks between the thresholds for which the state hardly depends on the load. Garbage collection
/// itself changes the number of free blocks of a plane by one or two.
const NARROW: u32 = 2;

/// Minimum ratio of two write amplifications for which both are reported.
const APART: f64 = 1.1;

/// Returns the write amplification of these writes while each plane keeps only `gc.hard_threshold` free blocks. It is
/// measured on a device with one plane and its share of the data. Returns `None` if the thresholds are too close to
/// matter.
pub(super) fn at_hard_threshold(
    config: &DeviceConfig,
    seed: u64,
    on_progress: OnProgress,
) -> Result<Option<f64>, String> {
    let hard = config.hard_threshold().max(RESERVE);
    let spare = |free: u32| {
        let blocks = config.geometry.blocks - config.frontiers_per_plane() - config.map_blocks() - free;
        1.0 - config.units_to_hold() as f64 / (f64::from(blocks) * f64::from(config.data_units_per_block()))
    };
    let soft = config.soft_threshold();
    let is_paced = config.keeps_level(); // The free space does not depend on the load.
    let is_narrow = soft <= hard + NARROW || spare(hard) < APART * spare(soft);
    if is_paced || is_narrow || !config.externals().is_empty() {
        return Ok(None);
    }
    let mut plane = config.clone();
    let geometry = &mut plane.geometry;
    // A plane of a synchronous gang has the pages of all its packages.
    (geometry.page_size, geometry.mapping_unit) = (Bytes(config.page_bytes()), Some(Bytes(config.unit_bytes())));
    plane.gang = None;
    (geometry.channels, geometry.chips, geometry.dies, geometry.planes) = (1, 1, 1, config.planes_together());
    plane.capacity = Capacity::Logical(Bytes(config.units_to_hold() * config.unit_bytes()));
    plane.gc.soft_threshold = BlockCount::Blocks(hard);
    plane.gc.hard_threshold = BlockCount::Blocks(hard);
    plane.allocation = Default::default();
    (plane.durability, plane.faults) = (Default::default(), None);
    let mut ftl = Ftl::new(&plane, seed, false, &Externals::default())?;
    fill(&mut ftl, &mut |share| on_progress(share / 4.0))?;
    overwrite(&mut ftl, seed, on_progress).map(|(amplification, _)| Some(amplification))
}

/// Removes the write amplification at the hard threshold if it hardly differs from the one that was reached.
pub(super) fn drop_if_close(reached: &mut Reached) {
    let soft = reached.write_amplification.unwrap_or_default();
    reached.write_amplification_at_hard = reached.write_amplification_at_hard.filter(|hard| soft > APART * hard);
}
