//! The cases: random devices and random requests.

use floatgate_core::device_file::{DeviceConfig, from_toml};
use floatgate_core::internals::{AllocationConfig, BusProtocol, Waste};
use floatgate_core::policies::Externals;
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;

use crate::common::cached::with_cache;
use crate::common::picking::{Picks, picking};
use crate::common::{BASE, device_config};

/// Triggers that start garbage collection as early as possible, later, or only when it is required.
const TRIGGERS: [&str; 4] = ["threshold", "threshold", "lazy", "{ lazy = { invalid = 1.0 } }"];

/// Classifiers: hot at the second write, a few counters that are halved often, and lists of different lengths.
const TEMPERATURES: [&str; 4] = [
    "{ multi-hash = { hot = 2 } }",
    "{ multi-hash = { counters = 0.1, hashes = 1, halve_after = 0.1, hot = 3 } }",
    "two-level-lru",
    "{ two-level-lru = { hot = 0.5, candidates = 1.0 } }",
];

/// Sizes of flash pages and mapping units, and pages per program.
const UNITS: [(&str, &str, u32); 7] = [
    ("4KiB", "4KiB", 1),
    ("16KiB", "4KiB", 1),
    ("2KiB", "4KiB", 1),
    ("4KiB", "4KiB", 3),
    ("8KiB", "4KiB", 3),
    ("64KiB", "64KiB", 1),
    ("8KiB", "2KiB", 1),
];
/// Units of 160 sectors. A bit of their masks represents three sectors.
const LARGE_UNITS: (&str, &str, u32) = ("80KiB", "80KiB", 1);

const VICTIMS: [&str; 7] = [
    "greedy",
    "fifo",
    "random",
    "cost-benefit",
    "{ d-choices = { d = 1 } }",
    "{ d-choices = { d = 2 } }",
    "{ d-choices = { d = 10 } }",
];
/// Wear policies that migrate data and refuse victims as often as possible.
const WEAR: [&str; 7] = [
    "least-erased",
    "{ static-threshold = { threshold = 1 } }",
    "{ dual-pool = { threshold = 1 } }",
    "{ agrawal = { migration = false, age_variance = 1.0 } }",
    "{ agrawal = { retirement_age = 1.0, age_variance = 0.99, cold_age = 0.05, cold_life = 0.5 } }",
    "{ agrawal = { retirement_age = 1.0, cold = \"temperature\", cold_life = 0.0, cold_valid = 0.5 } }",
    "{ agrawal = { rate_limiting = false, retirement_age = 1.0, cold_age = 0.0, cold_life = 0.9 } }",
];
const ORDERS: [&str; 6] = ["s1", "s2", "s4", "s6", "plane-die-chip-channel", "die-channel-plane-chip"];

/// Mapping scheme of a case.
#[derive(Clone, Copy, Debug)]
enum Scheme {
    Page,
    Dftl,
    Block,
    Logs,
}

impl Scheme {
    /// Returns `true` if the scheme has blocks of its own.
    fn has_blocks(self) -> bool {
        matches!(self, Scheme::Block | Scheme::Logs)
    }
}
const EVICTIONS: [&str; 9] = [
    "lru",
    "fifo",
    "clock",
    "cflru",
    "{ cflru = { window = 1.0 } }",
    "bplru",
    "{ bplru = { padding = false } }",
    "{ bplru = { compensation = false } }",
    "fab",
];

/// Function that draws more options of a case.
type More = fn(&mut Rng, &mut Vec<String>);

/// A random case.
#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    pub overrides: Vec<String>,
    pub picks: Picks,
    pub load: Load,
}

/// Requests of the host.
#[derive(Clone, Debug)]
pub struct Load {
    /// Weight of each operation, in the order of [`Operation::ALL`].
    weights: [u64; 5],
    /// Number of outstanding requests.
    pub depth: usize,
    /// Size of the longest request in units.
    longest: u64,
    /// Percent of requests that are whole units.
    aligned: u64,
    /// Percent of requests that go to the first `hot_units` units.
    hot: u64,
    hot_units: u64,
    /// Longest pause between requests, in microseconds.
    pub pause: u64,
    /// True if all units are written first, in functional mode.
    pub fill: bool,
    /// Number of operations in functional mode, before the timed ones.
    pub functional: u64,
    pub timed: u64,
    /// True if the phases of the array are recorded and checked.
    pub watch: bool,
}

pub fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.below(from.len() as u64) as usize]
}

fn between(rng: &mut Rng, least: u64, most: u64) -> u64 {
    least + rng.below(most - least + 1)
}

/// Returns `true` with a probability of 1 in `n`.
pub fn one_in(rng: &mut Rng, n: u64) -> bool {
    rng.below(n) == 0
}

impl Case {
    pub fn new(seed: u64) -> Case {
        Case::with_capacity(seed, false, Scheme::Page)
    }

    /// Draws a device with its map in flash.
    pub fn dftl(seed: u64) -> Case {
        Case::with_capacity(seed, false, Scheme::Dftl)
    }

    /// Draws a device with its map in flash and the highest capacity that is accepted.
    pub fn full_dftl(seed: u64) -> Case {
        Case::with_capacity(seed, true, Scheme::Dftl)
    }

    /// Draws a device with block mapping.
    pub fn block(seed: u64) -> Case {
        Case::with_capacity(seed, false, Scheme::Block)
    }

    /// Draws a device with block mapping and the highest capacity that is accepted.
    pub fn full_block(seed: u64) -> Case {
        Case::with_capacity(seed, true, Scheme::Block)
    }

    /// Draws a device with log blocks.
    pub fn logs(seed: u64) -> Case {
        Case::with_capacity(seed, false, Scheme::Logs)
    }

    /// Draws a device with log blocks and the highest capacity that is accepted.
    pub fn full_logs(seed: u64) -> Case {
        Case::with_capacity(seed, true, Scheme::Logs)
    }

    /// Draws a device with log blocks whose channels give blocks in turn; half of them have the highest capacity that
    /// is accepted.
    pub fn logs_by_channel(seed: u64) -> Case {
        let mut case = Case::with_capacity(seed, seed.is_multiple_of(2), Scheme::Logs);
        let config = case.config();
        let scheme = config.mapping.scheme.name();
        case.overrides.push(format!("mapping.scheme.{scheme}.free_blocks=by-channel"));
        case.overrides.push("gc.wear=least-erased".to_owned());
        case
    }

    /// Draws a device with the highest capacity that is accepted.
    pub fn full(seed: u64) -> Case {
        Case::with_capacity(seed, true, Scheme::Page)
    }

    /// Draws a device with failures of blocks, programs, erases and reads.
    pub fn faulty(seed: u64) -> Case {
        let scheme = if seed.is_multiple_of(3) { Scheme::Dftl } else { Scheme::Page };
        Case::draw(seed, seed.is_multiple_of(5), scheme, &[faults])
    }

    /// Draws a device with errors of read data, including uncorrectable ones.
    pub fn erroneous(seed: u64) -> Case {
        let scheme = *pick(&mut Rng::new(seed, "model/erroneous"), &[Scheme::Page, Scheme::Dftl, Scheme::Logs]);
        Case::draw(seed, seed.is_multiple_of(5), scheme, &[faults, errors, power])
    }

    /// Draws a device with block mapping or log blocks, and with failures of blocks, programs, erases and reads.
    pub fn faulty_blocks(seed: u64) -> Case {
        let scheme = if seed.is_multiple_of(3) { Scheme::Block } else { Scheme::Logs };
        Case::draw(seed, seed.is_multiple_of(5), scheme, &[faults])
    }

    /// Draws a device that levels wear, in half of the cases with failures.
    pub fn worn(seed: u64) -> Case {
        let scheme = if seed.is_multiple_of(3) { Scheme::Dftl } else { Scheme::Page };
        let more: &[More] = if seed.is_multiple_of(2) { &[faults, wear] } else { &[wear] };
        Case::draw(seed, seed.is_multiple_of(5), scheme, more)
    }

    /// Draws a device that levels wear, with the highest capacity that is accepted.
    pub fn full_worn(seed: u64) -> Case {
        Case::draw(seed, true, Scheme::Page, &[wear])
    }

    /// Draws a device with pools of planes, in some cases with failures or wear leveling.
    pub fn pooled(seed: u64) -> Case {
        let scheme = if seed.is_multiple_of(3) { Scheme::Dftl } else { Scheme::Page };
        let more: &[More] = match seed % 4 {
            0 => &[faults, pools],
            1 => &[wear, pools],
            _ => &[pools],
        };
        Case::draw(seed, seed.is_multiple_of(5), scheme, more)
    }

    /// Draws a device with superblocks, most of them with parity.
    pub fn superblocks(seed: u64) -> Case {
        let mut case = Case::draw(seed, seed.is_multiple_of(3), Scheme::Page, &[superblocks]);
        case.overrides.retain(|text| !text.starts_with("gc.background="));
        case
    }

    /// Draws a device with superblocks that may fail, in half of the cases with errors of read data.
    pub fn faulty_superblocks(seed: u64) -> Case {
        let more: &[More] =
            if seed.is_multiple_of(2) { &[faults, superblocks] } else { &[faults, superblocks, errors] };
        let mut case = Case::draw(seed, seed.is_multiple_of(3), Scheme::Page, more);
        case.overrides.retain(|text| !text.starts_with("gc.background="));
        case
    }

    /// Draws a device whose planes are programmed together and read independently, with most of the other options.
    pub fn plane_reads(seed: u64) -> Case {
        let (scheme, more): (Scheme, &[More]) = match seed % 8 {
            0 => (Scheme::Page, &[faults, planes]),
            1 => (Scheme::Dftl, &[planes]),
            2 => (Scheme::Page, &[planes, superblocks]),
            3 => (Scheme::Page, &[faults, planes, superblocks, errors]),
            4 => (Scheme::Block, &[planes]),
            5 => (Scheme::Page, &[wear, planes, power]),
            6 => (Scheme::Page, &[faults, planes, errors]),
            _ => (Scheme::Page, &[planes, pools]),
        };
        let mut case = Case::draw(seed, seed.is_multiple_of(3), scheme, more);
        if matches!(seed % 8, 2 | 3) {
            case.overrides.retain(|text| !text.starts_with("gc.background="));
        }
        if seed % 16 == 6 {
            case.overrides.retain(|text| !text.starts_with("nand.read=["));
            case.overrides = with_cache(&mut Rng::new(seed, "model/cache"), &case.overrides);
        }
        case
    }

    /// Draws a device with pools of planes and the highest capacity that is accepted.
    pub fn full_pooled(seed: u64) -> Case {
        let scheme = if seed.is_multiple_of(4) { Scheme::Dftl } else { Scheme::Page };
        Case::draw(seed, true, scheme, &[pools])
    }

    /// Draws a device with pools of planes and a limit of their active blocks, in half of the cases with wear leveling.
    pub fn active(seed: u64) -> Case {
        let scheme = if seed.is_multiple_of(3) { Scheme::Dftl } else { Scheme::Page };
        let more: &[More] = if seed.is_multiple_of(2) { &[wear, pools, active] } else { &[pools, active] };
        Case::draw(seed, seed.is_multiple_of(5), scheme, more)
    }

    /// Draws a device with a limit of the active blocks of pools, and the highest capacity that is accepted.
    pub fn full_active(seed: u64) -> Case {
        let scheme = if seed.is_multiple_of(4) { Scheme::Dftl } else { Scheme::Page };
        Case::draw(seed, true, scheme, &[pools, active])
    }

    /// Draws a device with logical pages and a buffer; half of them have failures.
    pub fn paged(seed: u64) -> Case {
        let scheme = if seed.is_multiple_of(3) { Scheme::Dftl } else { Scheme::Page };
        let more: &[More] = if seed.is_multiple_of(2) { &[faults] } else { &[] };
        let mut case = Case::draw(seed, seed.is_multiple_of(5), scheme, more);
        let rng = &mut Rng::new(seed, "model/paged");
        case.overrides.retain(|text| !text.starts_with("nand.advanced.copy_back_modify="));
        let config = case.config();
        if config.active_buffer().is_none() {
            let units = between(rng, 1, config.logical_units().min(64));
            case.overrides.push(format!("buffer.capacity={}B", units * config.unit_bytes()));
            case.overrides.push(format!("buffer.read={}", one_in(rng, 2)));
        }
        case.overrides.push(format!("geometry.logical_page={}B", between(rng, 2, 9) * config.unit_bytes()));
        case
    }

    /// Draws a device that reads ahead, with reads that often continue each other; half of the devices with a page map
    /// or a map in flash have failures.
    pub fn ahead(seed: u64) -> Case {
        let (scheme, more): (Scheme, &[More]) = match seed % 6 {
            0 => (Scheme::Page, &[faults]),
            1 => (Scheme::Dftl, &[faults]),
            2 => (Scheme::Dftl, &[]),
            3 => (Scheme::Block, &[]),
            4 => (Scheme::Logs, &[]),
            _ => (Scheme::Page, &[]),
        };
        let mut case = Case::draw(seed, seed.is_multiple_of(5), scheme, more);
        let rng = &mut Rng::new(seed, "model/ahead");
        case.overrides.retain(|text| !text.starts_with("nand.advanced.copy_back_modify="));
        let config = case.config();
        if config.active_buffer().is_none() {
            let units = between(rng, 1, config.logical_units().min(64));
            case.overrides.push(format!("buffer.capacity={}B", units * config.unit_bytes()));
            case.overrides.push(format!("buffer.read={}", one_in(rng, 2)));
        }
        let units = u64::from(case.config().buffer_units());
        let streams = between(rng, 1, units.min(8));
        let size = between(rng, 1, (units / streams).min(16)) * config.unit_bytes();
        let after = between(rng, 2, 3);
        let options = format!("{{ size = \"{size}B\", streams = {streams}, after = {after} }}");
        case.overrides.push(format!("buffer.read_ahead={options}"));
        case.load.weights[Operation::Read.index()] += 20;
        (case.load.hot, case.load.longest) = (95, *pick(rng, &[1, 2]));
        case
    }

    /// Draws a device with gangs of packages, or pairs of planes that work independently; every fifth with failures.
    pub fn ganged(seed: u64) -> Case {
        let scheme = [Scheme::Page, Scheme::Page, Scheme::Dftl, Scheme::Block][(seed % 4) as usize];
        let more: &[More] = if seed.is_multiple_of(5) { &[gang, faults] } else { &[gang] };
        Case::draw(seed, seed.is_multiple_of(7), scheme, more)
    }

    /// Draws a device with log blocks, and with gangs of two packages if the device can have them.
    pub fn ganged_logs(seed: u64) -> Case {
        let mut case = Case::with_capacity(seed, seed.is_multiple_of(2), Scheme::Logs);
        let mode = *pick(&mut Rng::new(seed, "model/gang"), &["serial", "interleaved", "asynchronous", "synchronous"]);
        let more = ["geometry.channels=2".to_owned(), format!("gang={{ width = 2, mode = \"{mode}\" }}")];
        let all = [&case.overrides[..], &more].concat();
        if from_toml(BASE, "test.toml", &all).is_ok() {
            case.overrides = all;
        }
        case
    }

    /// Draws a device with gangs of packages and pools of planes; every third with failures.
    pub fn ganged_pools(seed: u64) -> Case {
        let scheme = if seed.is_multiple_of(4) { Scheme::Dftl } else { Scheme::Page };
        let more: &[More] =
            if seed.is_multiple_of(3) { &[gang, unfused, faults, pools] } else { &[gang, unfused, pools] };
        Case::draw(seed, seed.is_multiple_of(7), scheme, more)
    }

    /// Draws a device that delays writes while few blocks are free; with a page map, half of them use hints.
    pub fn throttled(seed: u64) -> Case {
        let scheme = [Scheme::Page, Scheme::Logs, Scheme::Dftl, Scheme::Block][(seed % 4) as usize];
        let takes_hints = !scheme.has_blocks() && seed % 8 < 4;
        let mut case = Case::draw(seed, seed.is_multiple_of(5), scheme, &[]);
        let rng = &mut Rng::new(seed, "model/throttle");
        let config = case.config();
        let below = between(rng, u64::from(config.hard_threshold()) + 1, u64::from(config.geometry.blocks));
        let delay = pick(rng, &[1, 30, 400]);
        case.overrides.push(format!("gc.throttle={{ below = {below}, delay = \"{delay}us\" }}"));
        if takes_hints && case.overrides.iter().any(|text| text.starts_with("temperature=")) {
            case.overrides.push("temperature={ hints = { by = \"stream\", classes = [1, 0, 1] } }".to_owned());
        }
        case
    }

    /// Draws a device with a soft threshold that it cannot keep when it is full, the highest capacity that is accepted,
    /// and different cycles of reads and writes.
    pub fn lazy(seed: u64) -> Case {
        Case::lazy_with(seed, &[])
    }

    /// Draws such a device with failures of blocks, programs, erases and reads.
    pub fn lazy_faulty(seed: u64) -> Case {
        Case::lazy_with(seed, &[faults])
    }

    fn lazy_with(seed: u64, more: &[More]) -> Case {
        let scheme = if seed.is_multiple_of(3) { Scheme::Dftl } else { Scheme::Page };
        let mut case = Case::draw(seed, true, scheme, more);
        let rng = &mut Rng::new(seed, "model/lazy");
        case.overrides.retain(|text| !text.starts_with("gc.pace=") && !text.starts_with("gc.background="));
        let invalid = pick(rng, &["0.0", "0.02", "0.3"]);
        case.overrides.push(format!("gc.trigger={{ lazy = {{ invalid = {invalid} }} }}"));
        case.overrides.push(format!("gc.soft_threshold={}", pick(rng, &["60%", "90%"])));
        let config = case.config();
        case.overrides.push(format!("capacity.logical={}B", config.max_logical_units() * config.unit_bytes()));
        if matches!(config.bus.protocol, BusProtocol::Sdr(_)) {
            case.overrides.push(format!("bus.read_cycle={}ns", between(rng, 10, 60)));
            case.overrides.push(format!("bus.write_cycle={}ns", between(rng, 10, 60)));
        }
        case
    }

    /// A device with its map in flash that soon becomes read-only, because 3 to 25 % of its programs fail.
    pub fn failing_map(seed: u64) -> Case {
        let mut case = Case::draw(seed, seed.is_multiple_of(5), Scheme::Dftl, &[faults]);
        let rng = &mut Rng::new(seed, "model/failing");
        case.overrides.push(format!("faults.program_rate={}", pick(rng, &["0.03", "0.06", "0.12", "0.25"])));
        case
    }

    /// Draws a full device with the highest capacity that is accepted, the lowest thresholds, and any combination of
    /// claims on its reserve: own units, faults, migrations, pools, and blind copies.
    pub fn edge(seed: u64) -> Case {
        let scheme = [Scheme::Dftl, Scheme::Page, Scheme::Dftl, Scheme::Logs, Scheme::Page, Scheme::Block];
        let scheme = scheme[(seed % 6) as usize];
        let own: &[More] = if (seed / 6).is_multiple_of(3) { &[] } else { &[few_faults] };
        let more = match seed / 18 % 4 {
            0 if !scheme.has_blocks() => [&[wear as More], own].concat(),
            1 if !scheme.has_blocks() => [&[pools as More], own].concat(),
            _ => own.to_vec(),
        };
        let mut case = Case::draw(seed, false, scheme, &more);
        let rng = &mut Rng::new(seed, "model/edge");
        case.overrides.retain(|text| !text.starts_with("gc.background="));
        if one_in(rng, 2) {
            case.overrides.extend(["gc.soft_threshold=1", "gc.hard_threshold=0"].map(str::to_owned));
        }
        let own = own_units(rng, &case.overrides);
        case.overrides = (0..=own.len()).find_map(|dropped| full_with(&case.overrides, &own[dropped..])).unwrap();
        let trims = *pick(rng, &[1, 5, 20]);
        case.load = Load {
            weights: Operation::ALL.map(|operation| match operation {
                Operation::Write => 10,
                Operation::Trim => trims,
                Operation::Flush => u64::from(trims == 1),
                _ => 1,
            }),
            fill: true,
            functional: if one_in(rng, 2) { 0 } else { between(rng, 1, 2000) },
            ..case.load
        };
        case
    }

    /// Draws a device with an SLC cache; every third with failures, and every fourth with its map in flash. Every fifth
    /// has the highest capacity that its blocks allow, less those of the cache.
    pub fn cached(seed: u64) -> Case {
        let scheme = if seed.is_multiple_of(4) { Scheme::Dftl } else { Scheme::Page };
        let more: &[More] = if seed.is_multiple_of(3) { &[faults] } else { &[] };
        let mut case = Case::draw(seed, seed.is_multiple_of(5), scheme, more);
        case.overrides = with_cache(&mut Rng::new(seed, "model/cache"), &case.overrides);
        case
    }

    /// Draws a device whose garbage collection holds channels.
    pub fn exclusive(seed: u64) -> Case {
        let more: &[More] = if seed.is_multiple_of(3) { &[faults] } else { &[] };
        let mut case = Case::draw(seed, seed.is_multiple_of(5), Scheme::Page, more);
        let pools = ["gc.pace=", "gc.scope=", "gc.destination="];
        case.overrides.retain(|text| !pools.iter().any(|option| text.starts_with(option)));
        case.overrides.push("gc.pace=exclusive".to_owned());
        case
    }

    /// Draws a device that collects garbage in bursts; some with wear leveling or gangs.
    pub fn bursts(seed: u64) -> Case {
        let more: &[More] = match seed % 5 {
            0 | 1 => &[wear],
            2 => &[gang],
            _ => &[],
        };
        let mut case = Case::draw(seed, seed.is_multiple_of(3), Scheme::Page, more);
        let replaced = ["gc.pace=", "gc.background="];
        case.overrides.retain(|text| !replaced.iter().any(|option| text.starts_with(option)));
        let rng = &mut Rng::new(seed, "model/bursts");
        let amount = pick(rng, &["stripes = 1", "stripes = 3", "stripes = 50", "units = 40"]);
        // The others stop the host.
        let share = if seed % 4 == 3 { pick(rng, &[", share = 0.3", ", share = 0.6, rest = \"2ms\""]) } else { "" };
        case.overrides.push(format!("gc.pace={{ burst = {{ amount = {{ {amount} }}{share} }} }}"));
        case
    }

    fn with_capacity(seed: u64, full: bool, scheme: Scheme) -> Case {
        Case::draw(seed, full, scheme, &[])
    }

    fn draw(seed: u64, full: bool, scheme: Scheme, more: &[More]) -> Case {
        let rng = &mut Rng::new(seed, "model");
        let mut overrides = geometry(rng, one_in(&mut Rng::new(seed, "model/large"), 12));
        let two = overrides.iter().any(|text| text == "geometry.planes=2");
        if two && one_in(&mut Rng::new(seed, "model/planes"), 4) {
            overrides.push("geometry.planes=4".to_owned());
        }
        overrides.extend(policies(rng));
        if one_in(rng, 2) {
            advanced(rng, &mut overrides);
            overlapping(&mut Rng::new(seed, "model/overlapping"), &mut overrides);
            overrides
                .push(format!("nand.advanced.copy_back_parity={}", !one_in(&mut Rng::new(seed, "model/parity"), 3)));
        }
        overrides.extend(times(rng));
        overrides.push(format!("bus.order={}", pick(&mut Rng::new(seed, "model/bus"), &["fcfs", "commands-first"])));
        match scheme {
            Scheme::Page => {}
            Scheme::Dftl => {
                overrides.extend(map_in_flash(rng));
                map_cells(&mut Rng::new(seed, "model/modes"), &mut overrides);
            }
            Scheme::Block => {
                overrides.push("mapping.scheme=block".to_owned());
                overrides.push(format!("allocation.static.order={}", pick(rng, &ORDERS)));
                overrides.extend(["copy_back=off", "cache_program=false"].map(|o| format!("nand.advanced.{o}")));
            }
            Scheme::Logs => log_blocks(&mut Rng::new(seed, "model/logs"), &mut overrides),
        }
        if !scheme.has_blocks() {
            temperature(&mut Rng::new(seed, "model/temperature"), &mut overrides);
        }
        more.iter().for_each(|draw| draw(&mut Rng::new(seed, "model/faults"), &mut overrides));
        limits(rng, &mut overrides, full);
        controller(&mut Rng::new(seed, "model/controller"), &mut overrides);
        let unbuffered = ["geometry.logical_page=", "nand.advanced.copy_back_modify="];
        if overrides.iter().any(|text| unbuffered.iter().any(|option| text.starts_with(option))) {
            overrides.retain(|text| !text.starts_with("buffer."));
        }
        overrides.push(format!("gc.trigger={}", pick(&mut Rng::new(seed, "model/trigger"), &TRIGGERS)));
        let together = overrides.iter().any(|text| text == "gc.scope=pool" || text == "gc.destination=pool");
        let active = overrides.iter().any(|text| text.starts_with("allocation.dynamic.active_blocks="));
        if !together && !active && one_in(&mut Rng::new(seed, "model/pace"), 3) {
            overrides.push("gc.pace=proportional".to_owned());
        }
        if !scheme.has_blocks() {
            background(&mut Rng::new(seed, "model/background"), &mut overrides);
        }
        Case { seed, overrides, picks: Picks::No, load: Load::new(rng) }
    }

    pub fn config(&self) -> DeviceConfig {
        self.with_externals().0
    }

    /// Returns the device, and the program with its scheduler.
    pub fn with_externals(&self) -> (DeviceConfig, Externals) {
        picking(device_config(&self.overrides), self.picks)
    }
}

impl Load {
    pub fn new(rng: &mut Rng) -> Load {
        let mut weights = [0; 5];
        for weight in &mut weights {
            *weight = if one_in(rng, 3) { 0 } else { between(rng, 1, 20) };
        }
        weights[Operation::Read.index()] += 5;
        weights[Operation::Write.index()] += 5;
        Load {
            weights,
            depth: *pick(rng, &[1, 2, 5, 16, 64]),
            longest: *pick(rng, &[1, 2, 8]),
            aligned: *pick(rng, &[0, 50, 100]),
            hot: *pick(rng, &[0, 50, 95]),
            hot_units: between(rng, 1, 12),
            pause: *pick(rng, &[0, 0, 50, 2000]),
            fill: false,
            functional: if one_in(rng, 3) { 0 } else { between(rng, 1, 4000) },
            timed: between(rng, 200, 2500),
            watch: one_in(rng, 8),
        }
    }

    pub fn request(&self, rng: &mut Rng, config: &DeviceConfig, tag: u64) -> Request {
        let mut draw = rng.below(self.weights.iter().sum());
        let mut operation = Operation::Read;
        for (candidate, weight) in Operation::ALL.into_iter().zip(self.weights) {
            if draw < weight {
                operation = candidate;
                break;
            }
            draw -= weight;
        }
        let (unit, units) = (u64::from(config.sectors_per_unit()), config.logical_units());
        let span = if rng.below(100) < self.hot { units.min(self.hot_units) } else { units };
        let first = rng.below(span);
        let most = self.longest.min(units - first);
        let (lba, sectors) = if rng.below(100) < self.aligned {
            (first * unit, between(rng, 1, most) * unit)
        } else {
            let skip = rng.below(unit);
            (first * unit + skip, between(rng, 1, most * unit - skip))
        };
        let sectors = if operation == Operation::Flush { 0 } else { sectors as u32 };
        let fua = tag.is_multiple_of(8);
        Request { tag, fua, ..Request::new(Time::ZERO, operation, lba, sectors) }
    }
}

fn geometry(rng: &mut Rng, large: bool) -> Vec<String> {
    let drawn = *pick(rng, &UNITS);
    let (page, unit, per_program) = if large { LARGE_UNITS } else { drawn };
    let chips = between(rng, 1, 2);
    vec![
        format!("geometry.channels={}", between(rng, 1, 3)),
        format!("geometry.chips={chips}"),
        format!("geometry.chips_per_package={}", between(rng, 1, chips)),
        format!("geometry.dies={}", between(rng, 1, 2)),
        format!("geometry.planes={}", between(rng, 1, 2)),
        format!("geometry.blocks={}", between(rng, 8, 24)),
        format!("geometry.pages={}", pick(rng, &[6, 12, 24])),
        format!("geometry.page_size={page}"),
        format!("geometry.mapping_unit={unit}"),
        format!("capacity.logical={unit}"),
        format!("geometry.pages_per_program={per_program}"),
        format!("nand.concurrency={}", pick(rng, &["chip", "command", "die", "plane"])),
    ]
}

fn policies(rng: &mut Rng) -> Vec<String> {
    let scheme = pick(rng, &["static", "dynamic"]);
    let scope = if *scheme == "dynamic" { *pick(rng, &["", ", scope = \"channel\""]) } else { "" };
    let mut overrides = vec![
        format!("allocation={{ {scheme} = {{ order = \"{}\"{scope} }} }}", pick(rng, &ORDERS)),
        format!("gc.victim={}", pick(rng, &VICTIMS)),
        format!("gc.frontiers={}", pick(rng, &["separate", "single"])),
        format!("scheduler={}", pick(rng, &["fcfs", "read-first"])),
    ];
    if one_in(rng, 3) {
        overrides.push("mapping.block_summary={ last_page = \"528B\" }".to_owned());
    }
    overrides
}

/// Draws gangs, or pairs of planes. Drops the advanced commands if they do not fit.
fn gang(rng: &mut Rng, overrides: &mut Vec<String>) {
    let value = |name: &str| {
        let of = |text: &String| text.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')).map(str::to_owned);
        overrides.iter().rev().find_map(of).expect("every case draws it")
    };
    let (width, gangs) = (between(rng, 1, 3), between(rng, 1, 2));
    let mode = *pick(rng, &["serial", "interleaved", "asynchronous", "asynchronous", "synchronous", "pairs"]);
    let mut options = vec![format!("geometry.channels={}", width * gangs)];
    match mode {
        "pairs" => {
            options.push(format!("geometry.planes={}", pick(rng, &[2, 4])));
            options.push("nand.concurrency=plane-pair".to_owned());
        }
        _ => options.push(format!("gang={{ width = {width}, mode = \"{mode}\" }}")),
    }
    if matches!(mode, "serial" | "asynchronous") {
        options.push("nand.concurrency=chip".to_owned());
        options.push(format!("geometry.chips_per_package={}", value("geometry.chips")));
    }
    let is_page_map = !overrides.iter().any(|text| text == "mapping.scheme=block");
    if matches!(mode, "serial" | "asynchronous") && is_page_map && value("allocation").contains("scope") {
        options.push("allocation.dynamic.scope=device".to_owned());
    }
    let kib = |name| -> u64 { value(name).trim_end_matches("KiB").parse().expect("all are in KiB") };
    let joined = if mode == "synchronous" { width } else { 1 };
    let (page, unit) = (kib("geometry.page_size") * joined, kib("geometry.mapping_unit") * joined);
    if mode == "synchronous" {
        options.push(format!("capacity.logical={unit}KiB"));
    }
    if is_page_map && one_in(rng, 3) {
        options.push(format!("geometry.logical_page={}KiB", unit * between(rng, 2, 5)));
    }
    if is_page_map && value("allocation").contains("static") && one_in(rng, 3) {
        options.push(format!("allocation.static.stripe={}KiB", page.max(unit) * between(rng, 2, 3)));
    }
    let all = [&overrides[..], &options].concat();
    let fused = "nand.advanced.copy_back_modify=true".to_owned();
    let plain =
        all.iter().filter(|text| !text.starts_with("nand.advanced.")).cloned().chain([fused]).collect::<Vec<_>>();
    if one_in(rng, 3) && from_toml(BASE, "test.toml", &plain).is_ok() {
        *overrides = plain;
        return;
    }
    let basic: Vec<String> = all.iter().filter(|text| !text.starts_with("nand.advanced.")).cloned().collect();
    *overrides = if from_toml(BASE, "test.toml", &all).is_ok() { all } else { basic };
}

/// Drops fused partial writes, which dynamic allocation does not support.
fn unfused(_: &mut Rng, overrides: &mut Vec<String>) {
    overrides.retain(|text| !text.starts_with("nand.advanced.copy_back_modify="));
}

/// Draws advanced commands that the device supports.
fn advanced(rng: &mut Rng, overrides: &mut Vec<String>) {
    let has = |option: &str| overrides.iter().any(|text| text == option);
    let spans = has("geometry.page_size=2KiB");
    let wordlines = has("geometry.pages_per_program=3");
    let independent = has("nand.concurrency=plane");
    let mut options = Vec::new();
    if !wordlines {
        options.push(format!("copy_back={}", pick(rng, &["off", "wise", "blind"])));
    }
    if has("geometry.planes=2") && !independent && !spans {
        options.push(format!("multi_plane_program={}", pick(rng, &["off", "wise", "blind"])));
        options.push(format!("multi_plane_read={}", pick(rng, &["false", "true"])));
        options.push(format!("multi_plane_erase={}", pick(rng, &["false", "true"])));
        options.push(format!("strict={}", one_in(rng, 2)));
        options.push(format!("plane_pairs={}", one_in(rng, 2)));
    }
    if has("geometry.dies=2") && (has("nand.concurrency=command") || has("nand.concurrency=chip")) {
        options.push(format!("interleave={}", one_in(rng, 2)));
    }
    if (independent || has("nand.concurrency=die")) && !spans {
        options.extend(overlaps(rng));
    }
    overrides.extend(options.iter().map(|option| format!("nand.advanced.{option}")));
}

/// Draws overlapping operations for a chip of one die, which also executes commands by itself.
fn overlapping(rng: &mut Rng, overrides: &mut Vec<String>) {
    let has = |option: &str| overrides.iter().any(|text| text == option);
    let one_chip = has("nand.concurrency=chip") && has("geometry.chips_per_package=1");
    if has("geometry.dies=1") && (one_chip || has("nand.concurrency=command")) && !has("geometry.page_size=2KiB") {
        overrides.extend(overlaps(rng).iter().map(|option| format!("nand.advanced.{option}")));
    }
}

/// Draws options of operations that overlap in a die.
fn overlaps(rng: &mut Rng) -> [String; 7] {
    [
        format!("cache_read={}", one_in(rng, 2)),
        format!("cache_program={}", one_in(rng, 2)),
        format!("suspend.program={}", one_in(rng, 2)),
        format!("suspend.erase={}", one_in(rng, 2)),
        format!("suspend.latency={}us", rng.below(20)),
        format!("suspend.resume={}us", rng.below(20)),
        format!("suspend.limit={}", between(rng, 1, 3)),
    ]
}

/// Draws a mapping with a few log blocks, in planes with enough blocks for them.
fn log_blocks(rng: &mut Rng, overrides: &mut Vec<String>) {
    overrides.push(format!("allocation.static.order={}", pick(rng, &ORDERS)));
    overrides.extend(["copy_back=off", "cache_program=false"].map(|option| format!("nand.advanced.{option}")));
    overrides.push(format!("geometry.blocks={}", between(rng, 18, 30)));
    let planes = device_config(overrides).total_planes();
    let scope = pick(rng, &["plane", "die", "chip", "package", "channel", "device", "device"]);
    let (data, merges) = (if one_in(rng, 3) { planes } else { 1 }, if one_in(rng, 3) { between(rng, 1, 3) } else { 1 });
    let merges = if *scope == "device" { merges.min(u64::from(planes)) } else { 1 };
    let [sequential, random, cold] = [3, 4, 3].map(|most| between(rng, 1, most));
    let [of_random, of_cold] = [random, cold].map(|logs| between(rng, 1, logs));
    let rule = pick(rng, &["\"block-start\"", "\"after-last\"", "{ min-pages = 1 }", "{ min-pages = 3 }"]);
    let (reclaim, window) = (pick(rng, &["one", "one", "all"]), pick(rng, &[1, 8, 100]));
    let runs = data > 1 && *scope == "device" && one_in(rng, 2);
    let data = if runs { format!("{data}, sequential = 1") } else { data.to_string() };
    let scope = format!("scope = \"{scope}\"");
    let both = format!("{scope}, merges = {merges}, sequential = {rule}, reclaim = \"{reclaim}\"");
    let scheme = match between(rng, 0, 2) {
        0 if !runs => format!("bast = {{ logs = {random}, stripe = {data}, {scope} }}"),
        0 | 1 => format!(
            "fast = {{ logs = {{ sequential = {sequential}, random = {random} }}, {both}, \
             stripe = {{ data = {data}, random = {of_random} }} }}"
        ),
        _ => format!(
            "last = {{ logs = {{ sequential = {sequential}, hot = {random}, cold = {cold} }}, {both}, \
             hot_window = {window}, stripe = {{ data = {data}, hot = {of_random}, cold = {of_cold} }} }}"
        ),
    };
    overrides.push(format!("mapping.scheme={{ {scheme} }}"));
    // The draws above stay the same.
    if let Some((name, _)) = scheme.split_once(" = ").filter(|_| one_in(rng, 3)) {
        overrides.push(format!("mapping.scheme.{name}.first_writes=log"));
    }
}

/// Draws DFTL with caches down to one entry and many small translation pages, in planes with enough blocks.
fn map_in_flash(rng: &mut Rng) -> Vec<String> {
    let scheme = format!(
        "mapping.scheme={{ dftl = {{ cache = \"{}B\", entry = \"{}B\", protected = {}, map_spare = {}, \
         batch_updates = {}, lazy_copies = {} }} }}",
        8 * pick(rng, &[1, 1, 2, 3, 8, 30, 200]),
        pick(rng, &[4, 64, 256, 1024]),
        pick(rng, &["0.0", "0.5", "0.9"]),
        pick(rng, &["0.0", "0.25", "0.6"]),
        !one_in(rng, 4),
        !one_in(rng, 4),
    );
    vec![scheme, format!("geometry.blocks={}", between(rng, 18, 30))]
}

/// Puts the blocks of the map into SLC mode in one of three cases, if the device supports that.
fn map_cells(rng: &mut Rng, overrides: &mut Vec<String>) {
    let drawn = one_in(rng, 3);
    let cell = *pick(rng, &["mlc", "tlc", "qlc"]);
    let slc_mode = format!("{{ read = \"{}us\", program = \"{}us\" }}", between(rng, 1, 30), between(rng, 1, 200));
    if !drawn {
        return;
    }
    let mode =
        [format!("nand.cell={cell}"), format!("nand.slc_mode={slc_mode}"), "mapping.scheme.dftl.cells=slc".to_owned()];
    let all = [&overrides[..], &mode].concat();
    if from_toml(BASE, "test.toml", &all).is_ok() {
        *overrides = all;
    }
}

fn times(rng: &mut Rng) -> Vec<String> {
    let mut overrides = vec![
        format!("nand.read={}us", between(rng, 1, 60)),
        format!("nand.program={}us", between(rng, 1, 700)),
        format!("nand.erase={}us", pick(rng, &[1, 1500, 6000])),
        (*pick(rng, &["bus.protocol={ sdr = \"25ns\" }", "bus.protocol={ nv-ddr = \"400MT/s\" }"])).to_owned(),
        format!("host.queue_depth={}", pick(rng, &[1, 2, 8, 1024])),
    ];
    if one_in(rng, 2) {
        overrides.push("bus.command_cycles={ read = 7, program = 7, erase = 5 }".to_owned());
    }
    if one_in(rng, 4) {
        overrides.push("bus.way_switch=300ns".to_owned());
        overrides.push("bus.channel_switch=700ns".to_owned());
        overrides.push("bus.channel_switch_read=300ns".to_owned());
        overrides.push(format!("bus.channel_switch_scope={}", pick(rng, &["channel", "controller"])));
    }
    if one_in(rng, 3) {
        overrides.push(format!("host.link_latency={}us", rng.below(20)));
        overrides.push(format!("host.link_bandwidth={}MB/s", between(rng, 50, 2000)));
    }
    overrides
}

/// Separates hot and cold data in one of three cases, if the device supports that.
fn temperature(rng: &mut Rng, overrides: &mut Vec<String>) {
    if !one_in(rng, 3) {
        return;
    }
    let config = device_config(overrides);
    if config.units_per_program() > 1 || config.nand.advanced.copy_back != Waste::Off {
        overrides.push("gc.frontiers=separate".to_owned());
    }
    // Each class has its own open block.
    if config.geometry.blocks < 16 {
        overrides.push("geometry.blocks=16".to_owned());
    }
    overrides.push(format!("temperature={}", pick(rng, &TEMPERATURES)));
}

/// Collects garbage in idle time in one of three cases.
fn background(rng: &mut Rng, overrides: &mut Vec<String>) {
    if !one_in(rng, 3) {
        return;
    }
    let config = device_config(overrides);
    let least = config.soft_threshold() + 2;
    overrides.push(format!(
        "gc.background={{ idle = \"{}us\", until = {}, preempt = {}, gain = {} }}",
        pick(rng, &[0, 20, 500]),
        between(rng, u64::from(least), u64::from(config.geometry.blocks)),
        one_in(rng, 2),
        pick(rng, &["0.0", "0.1", "0.6"])
    ));
}

/// Draws a wear policy, for blocks that endure any number of erases that a test performs.
fn wear(rng: &mut Rng, overrides: &mut Vec<String>) {
    let policy = pick(rng, &WEAR);
    overrides.extend([format!("gc.wear={policy}"), "nand.endurance=1000".to_owned()]);
    let config = device_config(overrides);
    overrides.push(format!("geometry.blocks={}", config.geometry.blocks + 4));
}

/// Draws pools of planes.
fn pools(rng: &mut Rng, overrides: &mut Vec<String>) {
    let channels = device_config(overrides).geometry.channels;
    let all = format!("{{ channels = {channels} }}");
    let scopes =
        ["\"plane\"", "\"die\"", "\"chip\"", "\"package\"", "\"channel\"", "{ channels = 1 }", &all, "\"device\""];
    let (order, scope, tie) = (pick(rng, &ORDERS), pick(rng, &scopes), pick(rng, &["turn", "turn", "erases"]));
    overrides.push(format!("allocation={{ dynamic = {{ order = \"{order}\", scope = {scope}, tie = \"{tie}\" }} }}"));
    overrides.push(format!("gc.scope={}", pick(rng, &["plane", "pool", "pool"])));
    overrides.push(format!("gc.destination={}", pick(rng, &["plane", "plane", "pool"])));
}

/// Draws planes that are programmed together and read independently, and removes the options that they exclude.
fn planes(rng: &mut Rng, overrides: &mut Vec<String>) {
    let excluded = ["copy_back", "multi_plane_", "strict", "plane_pairs", "interleave", "cache_read", "suspend"];
    overrides.retain(|text| {
        !text.strip_prefix("nand.advanced.").is_some_and(|of| excluded.iter().any(|option| of.starts_with(option)))
    });
    overrides.push("nand.concurrency=plane-reads".to_owned());
    if overrides.iter().any(|text| text.starts_with("temperature=")) {
        overrides.push("gc.frontiers=separate".to_owned());
    }
    overrides.push(format!("geometry.planes={}", pick(rng, &[2, 2, 3, 4])));
    if overrides.iter().any(|text| text == "geometry.page_size=2KiB") {
        overrides.extend(["geometry.mapping_unit=2KiB", "capacity.logical=2KiB"].map(str::to_owned));
    }
    if one_in(rng, 2) {
        let merges = overrides.iter().any(|text| text == "mapping.scheme=block");
        let of_die = overlaps(rng).into_iter().skip(if merges { 2 } else { 1 });
        overrides.extend(of_die.map(|option| format!("nand.advanced.{option}")));
    }
    let geometry = device_config(overrides).geometry;
    if geometry.pages.is_multiple_of(3) && one_in(rng, 2) {
        overrides.extend(["nand.cell=tlc", "nand.read=[\"20us\", \"31us\", \"26us\"]"].map(str::to_owned));
    }
}

/// Draws superblocks of the planes of a pool, and removes the options that they exclude.
fn superblocks(rng: &mut Rng, overrides: &mut Vec<String>) {
    let excluded = [
        "temperature=",
        "gc.victim=",
        "gc.frontiers=",
        "gc.destination=",
        "mapping.block_summary",
        "nand.advanced.copy_back",
        "nand.advanced.multi_plane_program=",
        "nand.advanced.interleave=",
        "geometry.chips=",
    ];
    overrides.retain(|text| !excluded.iter().any(|option| text.starts_with(option)));
    overrides.push(format!("geometry.chips={}", pick(rng, &[2, 4])));
    let scope = pick(rng, &["channel", "device", "device"]);
    let order = pick(rng, &ORDERS);
    overrides.push(format!("allocation={{ dynamic = {{ order = \"{order}\", scope = \"{scope}\" }} }}"));
    overrides.extend(["gc.scope=pool", "gc.destination=plane"].map(str::to_owned));
    let config = device_config(overrides);
    overrides.push(format!("geometry.blocks={}", config.geometry.blocks + 4));
    let AllocationConfig::Dynamic(options) = &config.allocation else { return };
    let planes = options.planes_per_pool(&config);
    let stripes: Vec<u32> = (2..=planes).filter(|parity| planes.is_multiple_of(*parity)).collect();
    overrides.push(match one_in(rng, 4) {
        true => "superblock={}".to_owned(),
        false => format!("superblock.parity={}", pick(rng, &stripes)),
    });
}

/// Limits the active blocks of pools.
fn active(rng: &mut Rng, overrides: &mut Vec<String>) {
    overrides.retain(|text| !text.starts_with("temperature="));
    overrides.push("gc.frontiers=separate".to_owned());
    let config = device_config(overrides);
    if let AllocationConfig::Dynamic(options) = &config.allocation {
        let most = options.planes_per_pool(&config);
        let blocks = *pick(rng, &[1, most.div_ceil(2), most]);
        overrides.push(format!("allocation.dynamic.active_blocks={blocks}"));
    }
}

/// Draws failure rates: none, or few.
fn few_faults(rng: &mut Rng, overrides: &mut Vec<String>) {
    overrides.push(format!("faults.factory_bad={}", pick(rng, &["0", "0", "1"])));
    overrides.push(format!("faults.program_rate={}", pick(rng, &["0.0", "0.0", "0.0005", "0.003"])));
    overrides.push(format!("faults.erase_rate={}", pick(rng, &["0.0", "0.0", "0.01"])));
    let blocks = device_config(overrides).geometry.blocks;
    overrides.push(format!("geometry.blocks={}", blocks + 4));
}

/// Draws a checkpoint, a journal of trims, or both.
fn own_units(rng: &mut Rng, overrides: &[String]) -> Vec<String> {
    let mut own = Vec::new();
    if one_in(rng, 2) {
        own.push(format!("durability.checkpoint={}B", between(rng, 1, 40) * device_config(overrides).unit_bytes()));
    }
    if !one_in(rng, 4) {
        own.push("durability.trim_journal=true".to_owned());
    }
    own
}

/// Returns the options of a device with these units of its own and the highest capacity that is accepted, or `None` if
/// it is refused.
fn full_with(overrides: &[String], own: &[String]) -> Option<Vec<String>> {
    let config = device_config(overrides);
    let mut all = [overrides, own].concat();
    let parse = |all: &[String], bytes: u64| {
        from_toml(BASE, "test.toml", &[all, &[format!("capacity.logical={bytes}B")]].concat())
    };
    let small = [config.logical_bytes() / 4, config.logical_bytes()].into_iter();
    let config = small.into_iter().find_map(|bytes| parse(&all, bytes).ok())?;
    // A recovery may need further blocks.
    let (most, block) = (config.max_logical_units(), u64::from(config.data_units_per_block()));
    let sizes = (0..32).map_while(|blocks| most.checked_sub(blocks * block)).map(|units| units * config.unit_bytes());
    let bytes = sizes.into_iter().find(|bytes| *bytes > 0 && parse(&all, *bytes).is_ok())?;
    all.push(format!("capacity.logical={bytes}B"));
    Some(all)
}

/// Draws failure rates: none, low ones, or such that the device soon becomes read-only.
fn faults(rng: &mut Rng, overrides: &mut Vec<String>) {
    overrides.push(format!("geometry.blocks={}", between(rng, 20, 34)));
    overrides.push(format!("faults.factory_bad={}", pick(rng, &["0", "1", "5%"])));
    overrides.push(format!("faults.program_rate={}", pick(rng, &["0.0", "0.001", "0.003", "0.02"])));
    overrides.push(format!("faults.erase_rate={}", pick(rng, &["0.0", "0.01", "0.1"])));
    overrides.push(format!("faults.read_rate={}", pick(rng, &["0.0", "0.001", "0.02"])));
}

/// Draws error rates with which some reads are repeated, or are uncorrectable.
fn errors(rng: &mut Rng, overrides: &mut Vec<String>) {
    let (base, steps) = (pick(rng, &["0.002", "0.008", "0.01", "0.015"]), pick(rng, &["1", "4", "8"]));
    overrides.push(format!("errors.rate={{ base = {base}, disturb = 1e-5 }}"));
    overrides.push(format!("errors.retry.steps={steps}"));
    overrides.push(format!(
        "errors.ecc={{ codeword = \"512B\", corrects = 36, decode = \"{}us\" }}",
        pick(rng, &[0, 3, 40])
    ));
    // Blocks that are often read.
    let merges = overrides.iter().any(|text| text.starts_with("mapping.scheme=") && !text.contains("dftl"));
    if !merges && one_in(rng, 2) {
        overrides.push("errors.rate.disturb=0.02".to_owned());
        overrides.push("errors.rate.disturb_reads=1.0".to_owned());
        if !overrides.iter().any(|text| text.starts_with("superblock")) {
            overrides.push("errors.refresh.retries=1".to_owned());
        }
    }
}

/// Draws a limit of programs and erases at the same time, if operations do not overlap.
fn power(rng: &mut Rng, overrides: &mut Vec<String>) {
    if one_in(rng, 2) && !device_config(overrides).nand.advanced.overlaps() {
        overrides.push(format!("controller.power_cap={}", between(rng, 1, 4)));
    }
}

/// Draws thresholds, write slots, and a capacity up to the highest that leaves the reserve of garbage collection.
fn limits(rng: &mut Rng, overrides: &mut Vec<String>, full: bool) {
    let soft = between(rng, 1, 3);
    overrides.push(format!("gc.soft_threshold={soft}"));
    overrides.push(format!("gc.hard_threshold={}", between(rng, 0, soft)));
    let config = device_config(overrides);
    let most = config.max_logical_units();
    let units = if full || one_in(rng, 3) { most } else { between(rng, most / 4, most).max(1) };
    overrides.push(format!("capacity.logical={}B", units * config.unit_bytes()));
    let program = u64::from(config.units_per_program());
    overrides.push(format!("controller.write_slots={}", pick(rng, &[program, program + 1, 24, 4096])));
    if program > 1 && config.mapping.scheme.needs(&config).whole_blocks.is_none() && one_in(rng, 3) {
        overrides.push(format!("controller.fill_timeout={}us", pick(rng, &[1, 50, 2000])));
    }
}

/// Draws a buffer of a few to all units, and firmware that takes time.
fn controller(rng: &mut Rng, overrides: &mut Vec<String>) {
    if one_in(rng, 2) {
        let config = device_config(overrides);
        let most = config.logical_units();
        let units = *pick(rng, &[1, 2, 5, 16, 64, most]);
        let through = one_in(rng, 3);
        overrides.push(format!("buffer.capacity={}B", units.clamp(1, most) * config.unit_bytes()));
        overrides.push(format!("buffer.write={}", if through { "write-through" } else { "write-back" }));
        overrides.push(format!("buffer.read={}", through || one_in(rng, 2)));
        overrides.push(format!("buffer.eviction={}", pick(rng, &EVICTIONS)));
        if one_in(rng, 3) {
            overrides.push(format!("buffer.low_water={}", pick(rng, &["0.0", "0.5"])));
            overrides.push(format!("buffer.high_water={}", pick(rng, &["0.5", "0.75"])));
        }
        if one_in(rng, 4) {
            overrides.push(format!("buffer.idle={}us", pick(rng, &[0, 100, 1500])));
        }
        if one_in(rng, 2) {
            overrides.push(format!("buffer.latency={}ns", rng.below(3000)));
            overrides.push(format!("buffer.bandwidth={}MB/s", between(rng, 20, 2000)));
        }
        overrides.push(format!("buffer.power_loss_protection={}", one_in(rng, 4)));
    }
    if one_in(rng, 3) {
        overrides.push(format!("controller.firmware.cores={}", between(rng, 1, 4)));
        for step in ["interrupt", "lookup", "allocation", "gc", "buffer"] {
            let cost = *pick(rng, &["0", "100", "\"3us\"", "2500"]);
            overrides.push(format!("controller.firmware.{step}={cost}"));
        }
    }
}
