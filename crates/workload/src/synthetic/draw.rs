//! Distributions of the addresses and sizes of a job.

use super::SECTOR;
use super::address::choice::{Choice, Zone};
use super::address::map::Map;
use super::address::permutation::{Passes, Scatter};
use super::address::sprandom::{Shape, Sprandom};
use super::address::zipf::Zipf;
use super::address::{Follow, Grid, Order, Run, Window};
use super::directions::{DEFAULT_BLOCK, READ, TRIM, WRITE};
use super::options::{Amount, Distribution, Modifier, Options, Pattern, Sequencer, ZoneShare};
use super::region::Region;
use super::size::Sizes;
use super::texts::{bytes_text, two_texts};
use crate::sim::rng::Rng;

/// Returns the number of sectors that a sequential job skips between two requests.
pub(super) fn skip(modifier: Modifier) -> i64 {
    match modifier {
        Modifier::Skip(bytes) => bytes / SECTOR as i64,
        Modifier::None | Modifier::Run(_) => 0,
    }
}

/// Returns the start of a sequential job. As in fio, a backward job with an offset starts `offset` before the end of
/// the region.
pub(super) fn run(sizes: &[Sizes; 3], window: &Window, region: &Region, skip: i64) -> Run {
    let fixed = [READ, WRITE, TRIM].map(|d| sizes[d].min() == sizes[d].max());
    let first = match region.size.checked_sub(region.offset) {
        _ if skip >= 0 || region.offset == 0 => 0,
        Some(start) if start > 0 => (start / SECTOR).min(window.range),
        _ => window.range,
    };
    Run { ends: [first; 3], skip, fixed, first }
}

/// Returns the state for non-random requests of a random job. `None` if all addresses are random.
pub(super) fn follow(options: &Options, modifier: Modifier, rng: Rng) -> Option<Follow> {
    let run = if let Modifier::Run(run) = modifier { run } else { 1 };
    let given = options.percentage_random.unwrap_or_default();
    let percent = given.map(|percent| percent.unwrap_or(100));
    let identical = options.rw_sequencer == Some(Sequencer::Identical);
    (run > 1 || percent != [100; 3]).then(|| Follow::new(run, identical, percent, rng))
}

/// Returns the sizes by direction, from `bssplit`, or else `bsrange`, or else `bs`.
pub(super) fn sizes(options: &Options) -> Result<[Sizes; 3], String> {
    let sectors = |bytes: u64| {
        u32::try_from(bytes / SECTOR)
            .map_err(|_| format!("a block of {} is too large; at most 1 TiB", bytes_text(bytes)))
    };
    let of = |direction: usize| -> Result<Sizes, String> {
        if let Some(split) = options.bssplit.as_ref().and_then(|split| split[direction].as_ref()) {
            let weighted: Result<Vec<_>, String> =
                split.iter().map(|&(bytes, weight)| Ok((sectors(bytes)?, weight))).collect();
            return Ok(Sizes::split(&weighted?));
        }
        if let Some((min, max)) = options.bsrange.and_then(|range| range[direction]) {
            return Ok(Sizes::range(sectors(min)?, sectors(max)?));
        }
        let bytes = options.bs.and_then(|bs| bs[direction]).unwrap_or(DEFAULT_BLOCK);
        sectors(bytes).map(Sizes::Fixed)
    };
    Ok([of(READ)?, of(WRITE)?, of(TRIM)?])
}

/// Returns the order of a random job with several sizes and fio's random map. `None` for other jobs. The blocks of
/// fio's map have the smallest size, so that all directions must have it.
pub(super) fn mapped_order(
    options: &Options,
    directions: &[usize],
    sizes: &[Sizes; 3],
    window: &Window,
) -> Option<Order> {
    let align = u64::from(sizes[directions[0]].min());
    let several = directions.iter().any(|&d| sizes[d].min() != sizes[d].max());
    let alike = directions.iter().all(|&d| u64::from(sizes[d].min()) == align);
    let uniform = matches!(options.random_distribution, None | Some(Distribution::Uniform));
    let aligned = |bytes: Option<u64>| bytes.is_none_or(|bytes| bytes / SECTOR == align);
    let blockalign = options.blockalign.unwrap_or_default();
    let has_map = uniform && !options.norandommap && directions.iter().all(|&d| aligned(blockalign[d]));
    let blocks = window.range / align;
    let fits = (1..=Map::MAX_BLOCKS).contains(&blocks);
    (several && alike && has_map && fits).then(|| Order::Mapped { map: Map::new(blocks), blocks, align })
}

/// Creates the grids of a random job. Directions with equal grids share one, like the random map in fio: a block that
/// was read is not written in the same pass.
pub(super) fn random_order(
    options: &Options,
    directions: &[usize],
    sizes: &[Sizes; 3],
    window: &Window,
    rng: &mut Rng,
) -> Result<Order, String> {
    let mut grids = Vec::new();
    let mut alike: Vec<(u64, u64, Option<&Vec<ZoneShare>>)> = Vec::new();
    let mut by_direction = [0; 3];
    for &direction in directions {
        let block = u64::from(sizes[direction].min());
        let align = options.blockalign.and_then(|align| align[direction]).map_or(block, |bytes| bytes / SECTOR);
        // The smallest block fits at the last position, as in fio's `last_block`.
        let positions = (window.range - block.saturating_sub(align).min(window.range)) / align;
        if positions == 0 {
            return Err(format!("`blockalign` of {} leaves no place for a block", bytes_text(align * SECTOR)));
        }
        let zones = match &options.random_distribution {
            Some(Distribution::Zoned(zones)) => zones[direction].as_ref(),
            _ => None,
        };
        let key = (align, positions, zones);
        by_direction[direction] = match alike.iter().position(|other| *other == key) {
            Some(index) => index,
            None => {
                let aligned = align == block;
                grids.push(Grid { align, positions, choice: choice(options, &key, window, aligned, rng)? });
                alike.push(key);
                grids.len() - 1
            }
        };
    }
    Ok(Order::Random(grids, by_direction))
}

/// Returns the choice of positions in a grid of `positions` positions at a distance of `align` sectors, with optional
/// zones.
fn choice(
    options: &Options,
    &(align, positions, zones): &(u64, u64, Option<&Vec<ZoneShare>>),
    window: &Window,
    aligned: bool,
    rng: &mut Rng,
) -> Result<Choice, String> {
    if let Some(shape) = sprandom(options) {
        return Ok(Choice::Sprandom(Box::new(Sprandom::new(shape, positions, rng))));
    }
    Ok(match options.random_distribution {
        // fio does not use a random map with `blockalign`.
        None | Some(Distribution::Uniform) if options.norandommap || !aligned => Choice::Uniform,
        None | Some(Distribution::Uniform) => Choice::Passes(Passes::new(positions, rng)),
        Some(Distribution::Zipf(theta, center)) => {
            Choice::Zipf(Zipf::new(positions, theta), Scatter::new(positions, center, rng))
        }
        Some(Distribution::Pareto(h, center)) => {
            Choice::Pareto { power: libm::log(h) / libm::log1p(-h), scatter: Scatter::new(positions, center, rng) }
        }
        Some(Distribution::Sequence(ref blocks)) => {
            if let Some(block) = blocks.iter().find(|block| **block >= positions) {
                return Err(format!("`random_distribution`: block {block} is beyond the region of {positions} blocks"));
            }
            Choice::Sequence { blocks: blocks.clone(), next: 0, stride: options.random_sequence_stride }
        }
        Some(Distribution::Normal(deviation, center)) => Choice::Normal {
            mean: center.unwrap_or(0.5) * positions as f64,
            deviation: deviation / 100.0 * positions as f64,
        },
        Some(Distribution::Zoned(_)) => match zones {
            None => Choice::Uniform,
            Some(shares) => Choice::Zoned(zone_table(shares, align, positions, window)?),
        },
    })
}

/// Returns the shape of `sprandom`, if the job has it. Defaults are those of fio.
pub(super) fn sprandom(options: &Options) -> Option<Shape> {
    options.sprandom.then(|| Shape {
        regions: options.spr_num_regions.unwrap_or(100),
        over_provisioning: options.spr_op.unwrap_or(0.15),
        defers: options.spr_cs.is_some(),
    })
}

/// Checks that a job with `sprandom` writes blocks of one size at random, and that the other options fit.
pub(super) fn check_sprandom(options: &Options, pattern: Pattern, sizes: &Sizes, size: u64) -> Result<(), String> {
    let Some(shape) = sprandom(options) else {
        let given = [
            ("spr_num_regions", options.spr_num_regions.is_some()),
            ("spr_op", options.spr_op.is_some()),
            ("spr_cs", options.spr_cs.is_some()),
        ];
        return match given.iter().find(|(_, given)| *given) {
            Some((key, _)) => Err(format!("`{key}` needs sprandom=1")),
            None => Ok(()),
        };
    };
    let other = [
        ("norandommap", options.norandommap),
        ("random_distribution", options.random_distribution.is_some()),
        ("blockalign", options.blockalign.is_some()),
        ("percentage_random", options.percentage_random.is_some()),
        ("zonesize", options.zonesize.is_some()),
        ("io_size", options.io_size.is_some()),
    ];
    if let Some((key, _)) = other.iter().find(|(_, given)| *given) {
        return Err(format!("`sprandom` determines the order and the amount of the writes; leave `{key}` out"));
    }
    if pattern.name != "randwrite" || sizes.min() != sizes.max() {
        return Err("`sprandom` needs rw=randwrite and blocks of one size".to_owned());
    }
    let region = shape.physical(size) / u64::from(shape.regions);
    if region < options.spr_cs.unwrap_or(0).max(u64::from(sizes.min()) * SECTOR) {
        let (size, region) = two_texts(size, region);
        return Err(format!(
            "`sprandom` divides {size} into regions of {region}, which must hold a block and the cache of `spr_cs`; \
             use a smaller spr_num_regions"
        ));
    }
    Ok(())
}

/// Converts the zones of `zoned` and `zoned_abs` to positions of a grid.
fn zone_table(shares: &[ZoneShare], align: u64, positions: u64, window: &Window) -> Result<Vec<Zone>, String> {
    let mut zones = Vec::with_capacity(shares.len());
    let (mut access, mut start, mut parts, mut bytes) = (0, 0, 0, 0u64);
    for (index, share) in shares.iter().enumerate() {
        // Compute the ends from sums, so that what is rounded off one zone is part of the next.
        let end = match share.range {
            Amount::Share(part, of) => {
                parts += part;
                Amount::Share(parts, of).of(positions).unwrap_or(positions)
            }
            Amount::Bytes(size) => {
                bytes = bytes.saturating_add(size);
                if bytes > window.range * SECTOR {
                    let range = bytes_text(window.range * SECTOR);
                    return Err(format!("`random_distribution`: zone {} ends beyond the region of {range}", index + 1));
                }
                (bytes / SECTOR / align).min(positions)
            }
        };
        if end == start && share.access > 0 {
            return Err(format!("`random_distribution`: zone {} is smaller than a block", index + 1));
        }
        access += share.access;
        zones.push(Zone { up_to: access, start, positions: end - start });
        start = end;
    }
    Ok(zones)
}
