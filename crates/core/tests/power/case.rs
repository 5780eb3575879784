//! Random small devices.

use floatgate_core::device_file::{DeviceConfig, from_toml};
use floatgate_core::policies::Externals;
use floatgate_core::sim::rng::Rng;

use crate::common::cached::with_cache;
use crate::common::picking::{Picks, picking};
use crate::common::{BASE, device_config};

/// Number of mapping units of the host.
pub const UNITS: u64 = 96;

/// A device and its workload.
#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    pub overrides: Vec<String>,
    /// Number of outstanding requests.
    pub depth: usize,
    /// Average number of requests per flush.
    pub flushes: u64,
    /// Average number of requests per trim.
    pub trims: u64,
    /// Number of units that are written.
    pub hot: u64,
    /// True if some trims and zeroes have FUA.
    pub lasting_trims: bool,
    /// True if the mapping scheme merges blocks.
    pub merges: bool,
    pub picks: Picks,
}

fn one_in(rng: &mut Rng, n: u64) -> bool {
    rng.below(n) == 0
}

impl Case {
    /// Draws devices until one is accepted.
    pub fn new(seed: u64) -> Case {
        let rng = &mut Rng::new(seed, "power");
        let accepted = |case: &Case| from_toml(BASE, "test.toml", &case.overrides).is_ok();
        (0..100).map(|_| Case::draw(seed, rng)).find(accepted).expect("most are accepted")
    }

    /// Returns the device without `gc.background` and `gc.throttle`, which cases that once failed did not have.
    pub fn on_demand(mut self) -> Case {
        self.overrides.retain(|text| !text.starts_with("gc.background=") && !text.starts_with("gc.throttle="));
        self
    }

    /// Draws a device with logical pages, a gang, pairs of planes, stripes, fused partial writes, copy-back without
    /// parity, and hints, as far as it accepts them.
    pub fn grouped(seed: u64) -> Case {
        let mut case = Case::new(seed);
        let rng = &mut Rng::new(seed, "power/grouped");
        let all = |case: &Case, more: &[String]| [&case.overrides[..], more].concat();
        let accepted = |overrides: &[String]| from_toml(BASE, "test.toml", overrides).is_ok();
        case.overrides.retain(|text| !text.starts_with("buffer."));
        let unit = device_config(&case.overrides).unit_bytes();
        let page = all(&case, &[format!("geometry.logical_page={}B", unit * (2 + rng.below(4)))]);
        if !one_in(rng, 3) && accepted(&page) {
            case.overrides = page;
        }
        let mode = ["serial", "interleaved", "asynchronous", "synchronous"][rng.below(4) as usize];
        let mut gang = vec!["geometry.channels=2".to_owned(), format!("gang={{ width = 2, mode = \"{mode}\" }}")];
        if matches!(mode, "serial" | "asynchronous") {
            gang.push("nand.concurrency=chip".to_owned());
            gang.push(format!("geometry.chips_per_package={}", device_config(&case.overrides).geometry.chips));
        }
        if mode == "synchronous" {
            gang.push(format!("capacity={{ logical = \"{}B\" }}", 2 * UNITS * unit));
        }
        let stripe = format!("allocation={{ static = {{ stripe = \"{}KiB\" }} }}", 16 << rng.below(2));
        let hints = "temperature={ hints = { by = \"stream\", classes = [1, 0] } }";
        let options: [&[String]; 6] = [
            &gang,
            &["nand.concurrency=plane-pair", "geometry.planes=4"].map(str::to_owned),
            &[stripe],
            &["nand.advanced.copy_back_modify=true".to_owned()],
            &["nand.advanced.copy_back=wise", "nand.advanced.copy_back_parity=false"].map(str::to_owned),
            &[hints.to_owned()],
        ];
        for option in options {
            let with = all(&case, option);
            if one_in(rng, 2) && accepted(&with) {
                case.overrides = with;
            }
        }
        case
    }

    /// Draws a device with logical pages and a write-back buffer.
    pub fn paged(seed: u64) -> Case {
        let mut case = Case::new(seed);
        let rng = &mut Rng::new(seed, "power/paged");
        let config = device_config(&case.overrides);
        if config.active_buffer().is_none() {
            case.overrides.push(format!("buffer.capacity={}KiB", 32 + rng.below(160)));
        }
        case.overrides.push(format!("geometry.logical_page={}B", config.unit_bytes() * (2 + rng.below(6))));
        case
    }

    /// Draws devices until one is accepted whose planes are programmed together and read independently.
    pub fn plane_reads(seed: u64) -> Case {
        let rng = &mut Rng::new(seed, "power/planes");
        let refused = ["copy_back", "multi_plane", "strict", "plane_pairs", "interleave", "cache_read"];
        let drawn = |_| {
            let mut case = Case::draw(seed, rng);
            case.overrides.retain(|text| {
                let advanced = text.strip_prefix("nand.advanced.");
                !advanced.is_some_and(|of| refused.iter().any(|option| of.starts_with(option)))
            });
            case.overrides.push(format!("geometry.planes={}", 2 + rng.below(2)));
            case.overrides.push("nand.concurrency=plane-reads".to_owned());
            if one_in(rng, 2) {
                let suspend = "{ program = true, erase = true, latency = \"5us\" }";
                case.overrides.push(format!("nand.advanced.suspend={suspend}"));
            }
            case
        };
        let accepted = |case: &Case| from_toml(BASE, "test.toml", &case.overrides).is_ok();
        (0..100).map(drawn).find(accepted).expect("some are accepted")
    }

    /// Draws a device with an SLC cache.
    pub fn cached(seed: u64) -> Case {
        let mut case = Case::new(seed);
        case.overrides = with_cache(&mut Rng::new(seed, "power/cache"), &case.overrides);
        case
    }

    /// Draws devices until one is accepted whose blocks are refreshed after a few reads. All data are corrected.
    pub fn refreshed(seed: u64) -> Case {
        let rng = &mut Rng::new(seed, "power/refreshed");
        let drawn = |_| {
            let mut case = Case::draw(seed, rng);
            case.overrides.push("faults.read_rate=0.0".to_owned());
            case.overrides.push(
                "errors={ rate = { base = 0.005, disturb = 0.2, disturb_reads = 1.0 }, retry = { factor = 0.25, steps = \
                 4 }, refresh = { retries = 1 } }"
                    .to_owned(),
            );
            case
        };
        let accepted = |case: &Case| from_toml(BASE, "test.toml", &case.overrides).is_ok();
        (0..100).map(drawn).find(accepted).expect("some are accepted")
    }

    /// Draws devices until one is accepted whose worn-out blocks keep their data.
    pub fn worn(seed: u64) -> Case {
        let rng = &mut Rng::new(seed, "power/worn");
        let drawn = |_| {
            let mut case = Case::draw(seed, rng);
            case.overrides.retain(|text| !text.starts_with("mapping.scheme=") && !text.starts_with("nand.endurance="));
            case.overrides.push("faults.wear_out=exclude".to_owned());
            case.overrides.push(format!("nand.endurance={}", 2 + rng.below(8)));
            case
        };
        let accepted = |case: &Case| from_toml(BASE, "test.toml", &case.overrides).is_ok();
        (0..1000).map(drawn).find(accepted).expect("some are accepted")
    }

    /// Draws devices until one is accepted that has errors of read data.
    pub fn erring(seed: u64) -> Case {
        let rng = &mut Rng::new(seed, "power/erring");
        let drawn = |_| {
            let mut case = Case::draw(seed, rng);
            if !case.overrides.iter().any(|text| text.starts_with("faults.")) {
                Case::fault_rates(rng, &mut case.overrides);
            }
            Case::errors(rng, &mut case.overrides);
            case
        };
        let accepted = |case: &Case| from_toml(BASE, "test.toml", &case.overrides).is_ok();
        (0..1000).map(drawn).find(accepted).expect("some are accepted")
    }

    /// Draws devices until one is accepted that has superblocks, most of them with parity, and in some cases failures
    /// or errors of read data.
    pub fn superblocks(seed: u64) -> Case {
        let rng = &mut Rng::new(seed, "power/superblocks");
        let drawn = |_| {
            let mut case = Case::draw(seed, rng);
            let refused = [
                "allocation",
                "durability.",
                "faults.",
                "gc.",
                "geometry.planes",
                "geometry.chips",
                "mapping.",
                "nand.endurance",
                "nand.advanced.copy_back",
                "nand.advanced.multi_plane",
                "nand.cell",
                "nand.slc_mode",
            ];
            case.overrides.retain(|text| !refused.iter().any(|option| text.starts_with(option)));
            let scope = ["channel", "device"][rng.below(2) as usize];
            case.overrides.push(format!("allocation={{ dynamic = {{ scope = \"{scope}\" }} }}"));
            case.overrides.push(format!("geometry.chips={}", [2, 4][rng.below(2) as usize]));
            case.overrides.push(format!("geometry.blocks={}", 12 + rng.below(10)));
            case.overrides.push("gc.scope=pool".to_owned());
            case.overrides.push(
                ["superblock.parity=2", "superblock.parity=4", "superblock={}"][rng.below(3) as usize].to_owned(),
            );
            if !one_in(rng, 3) {
                Case::fault_rates(rng, &mut case.overrides);
                if one_in(rng, 2) {
                    Case::errors(rng, &mut case.overrides);
                }
            }
            // Superblocks have no journal.
            case.trims = u64::MAX;
            case
        };
        let accepted = |case: &Case| from_toml(BASE, "test.toml", &case.overrides).is_ok();
        (0..1000).map(drawn).find(accepted).expect("some are accepted")
    }

    /// Draws error rates with which some reads are repeated, or are uncorrectable.
    fn errors(rng: &mut Rng, overrides: &mut Vec<String>) {
        let base = ["0.002", "0.008", "0.01", "0.012"][rng.below(4) as usize];
        overrides.push(format!("errors.rate={{ base = {base}, disturb = 1e-5 }}"));
        overrides.push(format!("errors.retry.steps={}", [1, 4, 8][rng.below(3) as usize]));
        let decode = [0, 3, 40][rng.below(3) as usize];
        overrides.push(format!("errors.ecc={{ codeword = \"512B\", corrects = 36, decode = \"{decode}us\" }}"));
    }

    /// Draws devices until one is accepted whose mapping scheme merges blocks.
    pub fn merging(seed: u64) -> Case {
        Case::merging_with(&mut Rng::new(seed, "power/merging"), seed, |_, _| {})
    }

    /// Draws devices until one is accepted whose mapping scheme merges blocks that may fail.
    pub fn merging_faulty(seed: u64) -> Case {
        Case::merging_with(&mut Rng::new(seed, "power/merging-faulty"), seed, Case::fault_rates)
    }

    fn merging_with(rng: &mut Rng, seed: u64, more: fn(&mut Rng, &mut Vec<String>)) -> Case {
        let drawn = |_| {
            let mut case = Case::draw(seed, rng);
            let refused = [
                "mapping.scheme",
                "allocation",
                "faults",
                "gc.",
                "geometry.blocks",
                "nand.advanced.copy_back",
                "nand.advanced.cache_program",
                "nand.cell",
                "nand.slc_mode",
                "controller.fill_timeout",
            ];
            case.overrides.retain(|text| !refused.iter().any(|option| text.starts_with(option)));
            case.overrides.push("gc.soft_threshold=2".to_owned());
            case.overrides.push(format!("geometry.blocks={}", 8 + rng.below(10)));
            let scheme = Case::scheme(rng);
            case.overrides.push(format!("mapping.scheme={scheme}"));
            let of_logs = scheme.strip_prefix("{ ").and_then(|scheme| scheme.split_once(" = "));
            if let Some((name, _)) = of_logs.filter(|_| seed.is_multiple_of(3)) {
                case.overrides.push(format!("mapping.scheme.{name}.first_writes=log"));
            }
            more(rng, &mut case.overrides);
            case.merges = true;
            case.lasting_trims = one_in(rng, 3);
            case
        };
        let accepted = |case: &Case| {
            let config = from_toml(BASE, "test.toml", &case.overrides);
            config.is_ok_and(|config| config.mapping.scheme.needs(&config).no_power_loss.is_none())
        };
        (0..1000).map(drawn).find(accepted).expect("some are accepted")
    }

    /// Draws a mapping scheme that merges blocks.
    fn scheme(rng: &mut Rng) -> String {
        let scope = ["plane", "chip", "channel", "device"][rng.below(4) as usize];
        let [sequential, random, cold] = [2, 3, 2].map(|most| 1 + rng.below(most));
        let rule = ["\"block-start\"", "\"after-last\"", "{ min-pages = 2 }"][rng.below(3) as usize];
        let merges = if scope == "device" { 1 + rng.below(2) } else { 1 };
        let reclaim = ["one", "one", "all"][rng.below(3) as usize];
        let both = format!("scope = \"{scope}\", sequential = {rule}, reclaim = \"{reclaim}\", merges = {merges}");
        let (data, of_random) = (1 + rng.below(2), 1 + rng.below(random));
        let runs = data == 2 && scope == "device" && rng.below(2) == 0;
        let of_log = if runs { ", sequential = 1" } else { "" };
        match rng.below(4) {
            0 => "\"block\"".to_owned(),
            1 => format!("{{ bast = {{ logs = {random}, scope = \"{scope}\", stripe = {data} }} }}"),
            2 => format!(
                "{{ fast = {{ logs = {{ sequential = {sequential}, random = {random} }}, {both}, \
                 stripe = {{ data = {data}{of_log}, random = {of_random} }} }} }}"
            ),
            _ => format!(
                "{{ last = {{ logs = {{ sequential = {sequential}, hot = {random}, cold = {cold} }}, {both}, \
                 hot_window = 16, stripe = {{ data = {data}{of_log}, hot = {of_random}, cold = 1 }} }} }}"
            ),
        }
    }

    /// Draws devices until one is accepted whose pools have few active blocks.
    pub fn active(seed: u64) -> Case {
        let rng = &mut Rng::new(seed, "power/active");
        let limited = |_| {
            let mut case = Case::draw(seed, rng);
            let refused = ["gc.pace=proportional", "gc.frontiers=single"];
            case.overrides.retain(|text| !refused.contains(&text.as_str()) && !text.starts_with("faults"));
            let scope = ["device", "channel", "chip"][rng.below(3) as usize];
            let blocks = 1 + rng.below(2);
            let options = format!("scope = \"{scope}\", active_blocks = {blocks}");
            case.overrides.push(format!("allocation={{ dynamic = {{ {options} }} }}"));
            case
        };
        let accepted = |case: &Case| from_toml(BASE, "test.toml", &case.overrides).is_ok();
        (0..100).map(limited).find(accepted).expect("most are accepted")
    }

    /// Draws devices that collect garbage in bursts until one is accepted.
    pub fn bursts(seed: u64) -> Case {
        let rng = &mut Rng::new(seed, "power/bursts");
        let bursting = |_| {
            let mut case = Case::draw(seed, rng);
            let replaced = ["gc.pace=", "gc.background=", "gc.scope=", "gc.destination=", "faults."];
            case.overrides.retain(|text| !replaced.iter().any(|option| text.starts_with(option)));
            let (stripes, share) = ([1, 4, 30][rng.below(3) as usize], ["", ", share = 0.4"][rng.below(2) as usize]);
            case.overrides.push(format!("gc.pace={{ burst = {{ amount = {{ stripes = {stripes} }}{share} }} }}"));
            case
        };
        let accepted = |case: &Case| from_toml(BASE, "test.toml", &case.overrides).is_ok();
        (0..100).map(bursting).find(accepted).expect("most are accepted")
    }

    fn draw(seed: u64, rng: &mut Rng) -> Case {
        let (page, unit, per_program) =
            [(4, 4, 1), (8, 4, 1), (16, 4, 1), (4, 4, 3), (4, 8, 1), (2, 2, 1)][rng.below(6) as usize];
        let journal = !one_in(rng, 8);
        let mut overrides = vec![
            format!("geometry.channels={}", 1 + rng.below(2)),
            format!("geometry.blocks={}", 7 + rng.below(8)),
            "geometry.pages=12".to_owned(),
            "gc.soft_threshold=2".to_owned(),
            format!("geometry.page_size={page}KiB"),
            format!("geometry.mapping_unit={unit}KiB"),
            format!("geometry.pages_per_program={per_program}"),
            format!("capacity={{ logical = \"{}KiB\" }}", UNITS * unit),
            format!("controller.write_slots={}", 6 + rng.below(20)),
            format!("durability.trim_journal={journal}"),
            format!("gc.victim={}", ["greedy", "fifo", "random", "cost-benefit"][rng.below(4) as usize]),
        ];
        if one_in(rng, 2) {
            overrides.push("mapping.block_summary={ last_page = \"512B\" }".to_owned());
        }
        if one_in(rng, 4) {
            overrides.push("gc.frontiers=single".to_owned());
        }
        Case::buffer(rng, &mut overrides);
        Case::advanced(rng, &mut overrides);
        if one_in(rng, 3) {
            overrides.push("mapping.scheme={ dftl = { cache = \"64B\", entry = \"64B\" } }".to_owned());
            overrides.push(format!("geometry.blocks={}", 14 + rng.below(10)));
            Case::map_cells(seed, per_program, &mut overrides);
        }
        if one_in(rng, 3) {
            overrides.push("allocation={ dynamic = {} }".to_owned());
        }
        if one_in(&mut Rng::new(seed, "power/pace"), 3) {
            overrides.push("gc.pace=proportional".to_owned());
            if (page, per_program) != (unit, 1) && page >= unit {
                overrides.push("controller.fill_timeout=300us".to_owned());
            }
        }
        Case::checkpoint(seed, unit, &mut overrides);
        Case::faults(&mut Rng::new(seed, "power/faults"), &mut overrides);
        Case::wear(&mut Rng::new(seed, "power/wear"), &mut overrides);
        Case::pools(&mut Rng::new(seed, "power/pools"), &mut overrides);
        Case::background(&mut Rng::new(seed, "power/background"), &mut overrides);
        Case::throttle(&mut Rng::new(seed, "power/throttle"), &mut overrides);
        Case {
            seed,
            overrides,
            depth: [1, 4, 8, 32][rng.below(4) as usize],
            flushes: [3, 10, 40][rng.below(3) as usize],
            // Without a journal, trims may be lost.
            trims: if journal { [4, 12, 50][rng.below(3) as usize] } else { u64::MAX },
            hot: 8 + rng.below(UNITS - 7),
            lasting_trims: false,
            merges: false,
            picks: Picks::No,
        }
    }

    /// Levels wear in one of four cases, if the device has room for one more open block.
    fn wear(rng: &mut Rng, overrides: &mut Vec<String>) {
        let policies = [
            "least-erased",
            "{ static-threshold = { threshold = 1 } }",
            "{ dual-pool = { threshold = 1 } }",
            "{ agrawal = { retirement_age = 1.0, cold = \"temperature\", cold_life = 0.0 } }",
        ];
        let policy = format!("gc.wear={}", policies[rng.below(4) as usize]);
        let with = [&overrides[..], &[policy, "nand.endurance=1000".to_owned()]].concat();
        if one_in(rng, 4) && from_toml(BASE, "test.toml", &with).is_ok() {
            *overrides = with;
        }
    }

    /// Divides a device with dynamic allocation into pools, in two of three cases. Garbage collection works by plane or
    /// by pool, unless it is paced by plane.
    fn pools(rng: &mut Rng, overrides: &mut Vec<String>) {
        let has = |option: &str| overrides.iter().any(|text| text == option);
        if !has("allocation={ dynamic = {} }") || one_in(rng, 3) {
            return;
        }
        let is_paced = has("gc.pace=proportional");
        let scope = ["device", "channel", "package", "chip", "die", "plane"][rng.below(6) as usize];
        overrides.push(format!("allocation.dynamic.scope={scope}"));
        for option in ["gc.scope", "gc.destination"] {
            if !is_paced && one_in(rng, 2) {
                overrides.push(format!("{option}=pool"));
            }
        }
    }

    /// Collects garbage in idle time in one of three cases.
    fn background(rng: &mut Rng, overrides: &mut Vec<String>) {
        if !one_in(rng, 3) {
            return;
        }
        let Ok(config) = from_toml(BASE, "test.toml", overrides) else { return };
        let least = u64::from(config.soft_threshold()) + 2;
        let until = least + rng.below(u64::from(config.geometry.blocks) + 1 - least);
        let idle = ["0us", "20us", "500us"][rng.below(3) as usize];
        let preempt = one_in(rng, 2);
        let gain = ["0.0", "0.3"][rng.below(2) as usize];
        overrides.push(format!(
            "gc.background={{ idle = \"{idle}\", until = {until}, preempt = {preempt}, gain = {gain} }}"
        ));
    }

    /// Delays writes while few blocks are free in one of four cases.
    fn throttle(rng: &mut Rng, overrides: &mut Vec<String>) {
        if !one_in(rng, 4) {
            return;
        }
        let Ok(config) = from_toml(BASE, "test.toml", overrides) else { return };
        let least = u64::from(config.hard_threshold()) + 1;
        let below = least + rng.below(u64::from(config.geometry.blocks) + 1 - least);
        let delay = ["1us", "30us", "400us"][rng.below(3) as usize];
        overrides.push(format!("gc.throttle={{ below = {below}, delay = \"{delay}\" }}"));
    }

    /// Draws the checkpoint and the memory of the map from separate random streams, so that the other options of a seed
    /// stay the same.
    fn checkpoint(seed: u64, unit: u64, overrides: &mut Vec<String>) {
        let rng = &mut Rng::new(seed, "power/checkpoint");
        if one_in(rng, 2) {
            overrides.push(format!("durability.checkpoint={}KiB", unit * (1 + rng.below(12))));
        }
        let map = ["volatile", "non-volatile", "saved"][Rng::new(seed, "power/map").below(3) as usize];
        let with = [&overrides[..], &[format!("durability.map={map}")]].concat();
        if from_toml(BASE, "test.toml", &with).is_ok() {
            *overrides = with;
        }
    }

    /// Puts the blocks of the map into SLC mode in one of three cases with a map in flash.
    fn map_cells(seed: u64, per_program: u64, overrides: &mut Vec<String>) {
        let rng = &mut Rng::new(seed, "power/modes");
        if one_in(rng, 3) {
            let cell = if per_program == 3 { "tlc" } else { ["mlc", "tlc", "qlc"][rng.below(3) as usize] };
            overrides.push(format!("nand.cell={cell}"));
            overrides.push(format!("nand.slc_mode={{ read = \"20us\", program = \"{}us\" }}", 50 + rng.below(100)));
            overrides.push("mapping.scheme.dftl.cells=slc".to_owned());
        }
    }

    fn buffer(rng: &mut Rng, overrides: &mut Vec<String>) {
        let policies = ["lru", "fifo", "clock", "cflru", "bplru", "fab"];
        if one_in(rng, 3) {
            return;
        }
        overrides.push(format!("buffer.capacity={}KiB", 32 + rng.below(160)));
        overrides.push(format!("buffer.eviction={}", policies[rng.below(6) as usize]));
        overrides.push(format!("buffer.power_loss_protection={}", one_in(rng, 4)));
        if one_in(rng, 6) {
            overrides.extend(["buffer.write=write-through", "buffer.read=true"].map(str::to_owned));
        } else {
            overrides.push(format!("buffer.read={}", one_in(rng, 2)));
        }
        if one_in(rng, 3) {
            overrides.push(format!("buffer.latency={}ns", rng.below(9000)));
            overrides.push("controller.firmware.allocation=3000".to_owned());
        }
    }

    /// Adds failures in one of three cases.
    fn faults(rng: &mut Rng, overrides: &mut Vec<String>) {
        if one_in(rng, 3) {
            Case::fault_rates(rng, overrides);
        }
    }

    /// Draws failures of blocks, programs, erases and reads.
    fn fault_rates(rng: &mut Rng, overrides: &mut Vec<String>) {
        overrides.push(format!("geometry.blocks={}", 14 + rng.below(16)));
        overrides.push(format!("faults.factory_bad={}", rng.below(2)));
        overrides.push(format!("faults.program_rate={}", ["0.0", "0.002", "0.01", "0.05"][rng.below(4) as usize]));
        overrides.push(format!("faults.erase_rate={}", ["0.0", "0.02"][rng.below(2) as usize]));
        overrides.push(format!("faults.read_rate={}", ["0.0", "0.002"][rng.below(2) as usize]));
    }

    fn advanced(rng: &mut Rng, overrides: &mut Vec<String>) {
        match rng.below(6) {
            0 => overrides.push("nand.advanced.copy_back=wise".to_owned()),
            1 => overrides.extend(
                [
                    "geometry.planes=2",
                    "nand.advanced.multi_plane_program=wise",
                    "nand.advanced.multi_plane_erase=true",
                    "geometry.chips=1",
                ]
                .map(str::to_owned),
            ),
            2 => overrides.push("nand.advanced.cache_program=true".to_owned()),
            3 => overrides.extend(
                ["scheduler=read-first", "nand.advanced.suspend.program=true", "nand.advanced.suspend.erase=true"]
                    .map(str::to_owned),
            ),
            _ => {}
        }
    }

    /// Returns the device, and the program with its scheduler.
    pub fn with_externals(&self) -> (DeviceConfig, Externals) {
        picking(device_config(&self.overrides), self.picks)
    }
}
