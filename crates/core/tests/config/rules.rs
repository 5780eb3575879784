//! Checks across several keys.

use serde_json::json;

use super::*;

/// Overrides of `tiny`, and part of the error that each gives.
const REFUSED: &[(&[&str], &str)] = &[
    (&["geometry.dies=0"], "geometry.dies = 0: must be from 1 to"),
    (&["geometry.chips_per_package=3"], "geometry.chips_per_package = 3: must divide geometry.chips = 2"),
    (&["geometry.page_size=1000B"], "geometry.page_size = 1000B: must be whole sectors of 512 B"),
    (&["geometry.page_size=0B", "controller.fill_timeout=1us"], "geometry.page_size = 0B: must be whole sectors"),
    (&["geometry.mapping_unit=0B", "controller.fill_timeout=1us"], "geometry.mapping_unit = 0B: must be whole sectors"),
    (&["geometry.page_size=32MiB"], "geometry.page_size = 32MiB: must be whole sectors of 512 B, up to 16 MiB"),
    (&["geometry.spare_size=8KiB"], "geometry.spare_size = 8KiB: must be at most geometry.page_size = 4KiB"),
    (&["geometry.mapping_unit=0B"], "geometry.mapping_unit = 0B: must be whole sectors"),
    (&["geometry.mapping_unit=1536B"], "geometry.mapping_unit = 1536B: must divide geometry.page_size = 4KiB"),
    (&["geometry.mapping_unit=6KiB"], "geometry.mapping_unit = 6KiB: must be a multiple of geometry.page_size"),
    (&["geometry.mapping_unit=12KiB"], "geometry.mapping_unit = 12KiB: spans 3 pages, which must divide"),
    (&["geometry.mapping_unit=8KiB", "geometry.pages_per_program=2"], "geometry.pages_per_program = 2: must be 1 if"),
    (&["geometry.pages_per_program=3"], "geometry.pages_per_program = 3: must divide geometry.pages = 64"),
    (&["geometry.pages=65536"], "geometry.pages = 65536: gives blocks of 65536 mapping units, and at most 65535"),
    (
        &["geometry.blocks=4192256"],
        "geometry.blocks = 4192256: gives a device of 2146435072 mapping units, and ids of 31 bits allow fewer",
    ),
    (
        &["geometry.channels=2000000000", "geometry.chips=2000000000"],
        "geometry.blocks = 32: gives a device of 16384000000000000000000",
    ),
    (
        &["geometry.page_size=16KiB", "geometry.mapping_unit=512B", "geometry.pages_per_program=4"],
        "geometry.pages_per_program = 4: gives programs of 128 mapping units, at most 64",
    ),
    (
        &["nand.read=[\"1us\", \"2us\"]"],
        "nand.read = [1us, 2us]: must be one time, or a list of 1: one for each page type of SLC",
    ),
    (
        &["nand.cell=tlc", "nand.program=[\"1us\", \"2us\"]"],
        "nand.program = [1us, 2us]: must be one time, or a list of 3: one for each page type of TLC",
    ),
    (
        &["nand.cell=mlc", "geometry.pages_per_program=2", "nand.program=[\"1us\", \"2us\"]"],
        "nand.program = [1us, 2us]: with geometry.pages_per_program above 1",
    ),
    (&["nand.read=[]"], "nand.read = []: must be one time"),
    (
        &["nand.slc_mode={ read = \"20us\", program = \"75us\" }"],
        "nand.slc_mode = a table: with nand.cell = slc all blocks hold one bit per cell; leave the table out",
    ),
    (
        &["nand.cell=tlc", "nand.slc_mode={ read = \"20us\", program = \"75us\" }"],
        "geometry.pages = 64: must be a multiple of 3: with nand.slc_mode, a block of TLC cells may hold one page of",
    ),
    (
        &["nand.cell=mlc", "nand.slc_mode={ read = \"20us\", program = \"1000s\" }"],
        "nand.slc_mode.program = 1000s: must be from 0ps to 100s",
    ),
    (
        &[
            "nand.cell=tlc",
            "geometry.pages=66",
            "geometry.pages_per_program=2",
            "nand.slc_mode={ read = \"20us\", program = \"75us\" }",
        ],
        "geometry.pages_per_program = 2: must be 1 or a multiple of 3: with nand.slc_mode",
    ),
    (
        &[
            "nand.cell=mlc",
            "geometry.pages=2",
            "mapping.block_summary.last_page=1KiB",
            "nand.slc_mode={ read = \"20us\", program = \"75us\" }",
        ],
        "geometry.pages = 2: the summary of mapping.block_summary leaves no page for data in SLC mode",
    ),
    (
        &["mapping.scheme.dftl.cells=slc", "capacity.spare=0.5"],
        "mapping.scheme.dftl: cells = slc: needs nand.slc_mode, with the times of such blocks",
    ),
    (
        &["energy.slc_read=5uJ"],
        "energy.slc_read = 5uJ: needs nand.slc_mode: without it no block is in SLC mode; leave it out",
    ),
    (&["energy.read=2J"], "energy.read = 2J: must be from 0fJ to 1J"),
    (&["energy.die=2000W"], "energy.die = 2000W: must be from 0nW to 1000W"),
    (
        &["bus.protocol.sdr=25ns", "bus.read_cycle=30ns", "energy.transfer=100pJ"],
        "energy.transfer = 100pJ: needs equal bus.read_cycle and bus.write_cycle",
    ),
    (&["nand.erase=1000s"], "nand.erase = 1000s: must be from 0ps to 100s"),
    (&["nand.cell=mlc", "nand.read=['25us', '101s']"], "nand.read = 101s: must be from 0ps to 100s"),
    (&["gc.throttle={ below = 10, delay = '0us' }"], "gc.throttle.delay = 0ps: must be from 1ps to 100s"),
    (&["bus.width=12"], "bus.width = 12: must be 8 or 16"),
    (&["bus.protocol.sdr=0ns"], "bus.protocol.sdr = 0ps: must be from 1ps to"),
    (&["bus.protocol.nv-ddr=0MT/s"], "bus.protocol.nv-ddr = 0T/s: must be from 100kT/s to"),
    (&["bus.read_cycle=30ns"], "bus.read_cycle = 30ns: needs an SDR bus: NV-DDR has one rate for both directions"),
    (&["bus.protocol.sdr=25ns", "bus.write_cycle=0ns"], "bus.write_cycle = 0ps: must be from 1ps to"),
    (&["bus.command_cycle=1s"], "bus.command_cycle = 1s: must be from 0ps to 10us"),
    (&["bus.command_cycles.read=1001"], "bus.command_cycles.read = 1001: must be from 0 to 1000"),
    (&["mapping.block_summary.last_page=0B"], "mapping.block_summary.last_page = 0B: must be from 1B to 4KiB"),
    (&["mapping.block_summary.last_page=5KiB"], "mapping.block_summary.last_page = 5KiB: must be from 1B to 4KiB"),
    (&["mapping.block_summary.last_page=1KiB", "geometry.pages=1"], "geometry.pages = 1: the summary"),
    (&["capacity.spare=1.0"], "capacity.spare = 1: must be from 0 to below 1"),
    (&["capacity.spare=-0.1"], "capacity.spare = -0.1: must be"),
    (&["capacity.spare=nan"], "capacity.spare = NaN: must be"),
    (&["capacity.spare=0.99999"], "capacity.spare = 0.99999: leaves no capacity for the host"),
    (&["capacity.logical=1KiB"], "capacity.logical = 1KiB: must be from 4KiB to 64MiB"),
    (&["capacity.logical=65MiB"], "capacity.logical = 65MiB: must be from 4KiB to 64MiB"),
    (&["gc.soft_threshold=0", "gc.hard_threshold=0"], "gc.soft_threshold = 0: must be 1 block or more"),
    (&["durability.checkpoint=2KiB"], "durability.checkpoint = 2KiB: must be from 4KiB to "),
    (
        &[
            "durability.map=saved",
            "mapping.scheme=block",
            "capacity={ logical = \"62MiB\" }",
            "gc.soft_threshold=1",
            "gc.hard_threshold=1",
        ],
        "durability.map = saved: a recovery needs one more free block in each plane",
    ),
    (
        &[
            "durability.map=saved",
            "mapping.scheme={ bast = { logs = 7 } }",
            "capacity={ logical = \"62MiB\" }",
            "gc.soft_threshold=1",
            "gc.hard_threshold=1",
        ],
        "durability.map = saved: a recovery needs one more block",
    ),
    // Blocks that fail need one more.
    (
        &[
            "durability.map=saved",
            "faults={}",
            "mapping.scheme=block",
            "capacity={ logical = \"62MiB\" }",
            "gc.soft_threshold=2",
            "gc.hard_threshold=1",
        ],
        "durability.map = saved: a recovery needs one more free block in each plane",
    ),
    (
        &[
            "durability.map=saved",
            "faults={}",
            "mapping.scheme={ bast = { logs = 6 } }",
            "capacity={ logical = \"62MiB\" }",
            "gc.soft_threshold=1",
            "gc.hard_threshold=1",
        ],
        "durability.map = saved: a recovery needs one more block",
    ),
    (
        &["durability.map=non-volatile", "mapping.scheme=dftl", "capacity.spare=0.3"],
        "durability.map = non-volatile: the mapping scheme keeps the map in flash: choose mapping.scheme = \"page\"",
    ),
    (
        &["durability.map=saved", "durability.checkpoint=1MiB"],
        "durability.map = saved: no recovery reads a checkpoint then: remove durability.checkpoint",
    ),
    (&["durability.checkpoint=1MiB", "geometry.blocks=3"], "; durability.checkpoint takes "),
    (&["gc.hard_threshold=3"], "gc.hard_threshold = 3: 3 blocks, must be at most gc.soft_threshold = 2 blocks"),
    (&["gc.victim.d-choices.d=1001"], "gc.victim.d-choices.d = 1001: must be from 1 to 1000"),
    (&["gc.victim.d-choices.d=0"], "gc.victim.d-choices.d = 0: must be from 1 to 1000"),
    (&["controller.write_slots=0"], "controller.write_slots = 0: must be from 1 to 1048576"),
    (&["geometry.page_size=16KiB", "controller.write_slots=3"], "controller.write_slots = 3: must be from 4 to"),
    (&["host.queue_depth=0"], "host.queue_depth = 0: must be at least 1"),
    (&["host.sector_size=2KiB"], "host.sector_size = 2KiB: must be 512B or 4KiB"),
    (&["host.link_bandwidth=0GB/s"], "host.link_bandwidth = 0B/s: must be from 1KB/s to"),
];

#[test]
fn every_rule_names_key_value_and_reason() {
    for (overrides, expected) in REFUSED {
        let result = tiny(overrides);
        assert!(matches!(result, Err(ConfigError::Refused(_))), "{overrides:?}: {result:?}");
        let message = error(result);
        assert!(message.contains(expected), "{overrides:?} gave\n{message}\nwithout\n{expected}");
    }
}

/// Options that an SLC cache excludes, or that contradict it, and part of the error that each gives.
const NOT_WITH_CACHE: &[(&[&str], &str)] = &[
    (&["slc_cache.blocks=1"], "slc_cache.blocks = 1: 1 blocks, must be from 2 to 31: one is open while another is"),
    (&["slc_cache.blocks=32"], "slc_cache.blocks = 32: 32 blocks, must be from 2 to 31"),
    (&["slc_cache.blocks=20"], "32 blocks cannot be kept free on a full device"),
    (&["slc_cache.low_water=0.95"], "slc_cache.low_water = 0.95: must be below slc_cache.high_water = 0.9"),
    (&["slc_cache.high_water=1.5"], "slc_cache.high_water = 1.5: must be from 0 to 1"),
    (&["slc_cache.idle=200s"], "slc_cache.idle = 200s: must be from 0ps to 100s"),
    (
        &["mapping.scheme=block"],
        "mapping.scheme = block: chooses the blocks of host writes itself, so slc_cache has no",
    ),
    (&["mapping.scheme=fast"], "mapping.scheme = fast: chooses the blocks of host writes itself"),
    (&["temperature=multi-hash"], "temperature = multi-hash: with slc_cache, all classes share a block of the cache"),
    (&["gc.frontiers=single"], "gc.frontiers = single: with slc_cache, folded units need blocks that host writes"),
    (&["gc.wear=least-erased"], "gc.wear = least-erased: levels the wear of native blocks only"),
    (&["allocation=dynamic", "gc.scope=pool"], "gc.scope = pool: with slc_cache, each plane folds its own cache"),
    (&["allocation=dynamic", "gc.destination=pool"], "gc.destination = pool: with slc_cache, each plane folds its own"),
    (&["allocation.dynamic.active_blocks=1"], "allocation.dynamic.active_blocks = 1: with slc_cache, a plane has open"),
    (&["nand.advanced.copy_back=wise"], "nand.advanced.copy_back = wise or blind: with slc_cache, folded pages change"),
    (&["nand.advanced.copy_back_modify=true"], "nand.advanced.copy_back_modify = true: with slc_cache, a write may go"),
    (&["nand.advanced.multi_plane_program=wise"], "nand.advanced.multi_plane_program = wise or blind: with slc_cache"),
];

#[test]
fn an_slc_cache_names_what_it_excludes() {
    let cached = ["nand.cell=mlc", "nand.slc_mode={ read = \"20us\", program = \"75us\" }", "slc_cache.blocks=4"];
    tiny(&[&cached[..], &["capacity.spare=0.5"]].concat()).unwrap();
    for (overrides, expected) in NOT_WITH_CACHE {
        let result = tiny(&[&cached[..], &["capacity.spare=0.5"], overrides].concat());
        assert!(matches!(result, Err(ConfigError::Refused(_))), "{overrides:?}: {result:?}");
        let message = error(result);
        assert!(message.contains(expected), "{overrides:?} gave\n{message}\nwithout\n{expected}");
    }
    let message = error(tiny(&["nand.cell=mlc", "slc_cache.blocks=4"]));
    assert!(message.contains("slc_cache.blocks = 4: needs nand.slc_mode"), "{message}");
}

/// Each number with a range is refused just outside it, and the schema has the same range.
#[test]
fn ranges_of_numbers_are_those_of_the_schema() {
    let schema = floatgate_core::device_file::DeviceConfig::json_schema(&[]);
    for (set, table, key, limits) in [
        ("controller.firmware.cores=1025", "Firmware", "cores", json!({ "minimum": 1, "maximum": 1024 })),
        (
            "buffer={ capacity = \"1MiB\", high_water = nan }",
            "BufferConfig",
            "high_water",
            json!({ "minimum": 0.0, "maximum": 1.0 }),
        ),
        (
            "mapping.scheme={ dftl = { protected = 1.0 } }",
            "DftlConfig",
            "protected",
            json!({ "minimum": 0.0, "exclusiveMaximum": 1.0 }),
        ),
        (
            "temperature={ multi-hash = { counters = 0.0 } }",
            "MultiHashConfig",
            "counters",
            json!({ "exclusiveMinimum": 0.0, "maximum": 16.0 }),
        ),
    ] {
        let node = &schema["$defs"][table]["properties"][key];
        assert!(limits.as_object().unwrap().iter().all(|(name, limit)| node[name] == *limit), "{set}: {node}");
        let error = tiny(&[set]).expect_err(set).to_string();
        assert!(error.contains(&format!(".{key} = ")) && error.contains("must be "), "{error}");
    }
}

#[test]
fn all_problems_are_found_at_once() {
    let all = ["geometry.dies=0", "nand.erase=1000s", "bus.width=12", "host.queue_depth=0"];
    let error = tiny(&all).unwrap_err();
    let paths: Vec<&str> = error.problems().iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, ["bus.width", "geometry.dies", "nand.erase", "host.queue_depth"]);
}

#[test]
fn capacities_are_whole_logical_blocks() {
    let set = ["geometry.page_size=2KiB", "geometry.mapping_unit=2KiB", "capacity.logical=2050KiB"];
    let bytes = |more: &[&str]| tiny(&[&set, more].concat()).unwrap().logical_bytes();
    assert_eq!(bytes(&[]), 2050 << 10);
    assert_eq!(bytes(&["host.sector_size=4KiB"]), 2048 << 10);
    let message = error(tiny(&[set[0], set[1], "capacity.logical=2KiB", "host.sector_size=4KiB"]));
    assert!(message.contains("capacity.logical = 2KiB: "), "{message}");
}

#[test]
fn cycles_of_reads_and_writes_have_one_form() {
    let digest = |set: &[&str]| tiny(set).unwrap().digest();
    let plain = digest(&["bus.protocol.sdr=25ns"]);
    assert_eq!(digest(&["bus.protocol.sdr=25ns", "bus.read_cycle=25ns", "bus.write_cycle=25ns"]), plain);
    assert_eq!(digest(&["bus.protocol.sdr=30ns", "bus.read_cycle=25ns", "bus.write_cycle=25ns"]), plain);
    let both = digest(&["bus.protocol.sdr=30ns", "bus.write_cycle=25ns"]);
    assert_eq!(digest(&["bus.protocol.sdr=25ns", "bus.read_cycle=30ns"]), both);
    assert_ne!(both, plain);
}

/// The check of another option needs a product of both, which does not fit into 32 bits.
#[test]
fn sizes_that_overflow_are_refused() {
    for key in ["geometry.pages", "geometry.pages_per_program"] {
        let overrides = [format!("{key}=2147483648"), "geometry.mapping_unit=1KiB".to_owned()];
        let refused = load("tlc-direct", &overrides).expect_err(key).to_string();
        assert!(refused.contains(&format!("{key} = 2147483648: must")), "{refused}");
    }
}

#[test]
fn the_largest_devices_are_accepted() {
    assert!(tiny(&["geometry.blocks=4192255"]).is_ok());
    assert!(tiny(&["geometry.pages=65535"]).is_ok());
}

#[test]
fn errors_state_values_that_would_be_accepted() {
    assert_eq!(
        error(load("hu2011", &set(&["gc.soft_threshold=30%"]))),
        "--set gc.soft_threshold=30%: gc.soft_threshold = 30%: 615 of 2048 blocks cannot be kept free on a full device: \
             capacity.spare must be at least 0.3008 (it is 0.1), or gc.soft_threshold at most 203\n\
             \x20| gc.soft_threshold=30%\n\x20|                   ^^^"
    );
    let message = error(tiny(&["capacity.logical=57MiB"]));
    assert!(
        message.contains(
            "capacity.logical must be at most 57312KiB (capacity.spare = 0.1255), or gc.soft_threshold at most 1"
        ),
        "{message}"
    );
    let message = error(tiny(&["gc.soft_threshold=31"]));
    assert!(message.contains("no capacity.spare is enough, or gc.soft_threshold at most 4"), "{message}");
    // With a lazy trigger, a full device has to keep only the free blocks at which garbage collection always starts.
    let lazy = |spare: &str| tiny(&["gc.trigger=lazy", "gc.soft_threshold=31", "gc.hard_threshold=4", spare]);
    assert!(lazy("capacity.spare=0.19").is_ok());
    let message = error(lazy("capacity.spare=0.1"));
    assert!(
        message.contains("4 of 32 blocks cannot be kept free on a full device: capacity.spare must be at least")
            && message.contains("or gc.hard_threshold at most"),
        "{message}"
    );
    assert!(tiny(&["gc.trigger=lazy", "gc.soft_threshold=31", "gc.pace=proportional"]).is_err());
    let message = error(tiny(&["geometry.blocks=3", "capacity.spare=0.1", "gc.soft_threshold=1"]));
    assert!(message.contains("no capacity.spare is enough, and no gc.soft_threshold is low enough"), "{message}");
    let message = error(tiny(&["capacity.spare=0.001"]));
    assert!(
        message.contains("capacity.spare = 0.001: ") && message.contains("no gc.soft_threshold is low"),
        "{message}"
    );
}

/// Checks that the stated bounds are exact: they are accepted, and one step beyond is refused.
fn bounds_hold(device: &DeviceConfig) {
    let with = |soft: u32, capacity: &str| {
        let text = toml::to_string(device).unwrap();
        let overrides = [format!("gc.soft_threshold={soft}"), "gc.hard_threshold=0".to_owned(), capacity.to_owned()];
        from_toml(&text, "bound.toml", &overrides)
    };
    let now = serde_json::to_value(&device.capacity).unwrap();
    let now = now.as_object().unwrap().iter().map(|(k, v)| format!("capacity.{k}={v}")).next().unwrap();
    if let Some(most) = device.max_soft_threshold() {
        assert!(with(most, &now).is_ok(), "{most} of {device:?}");
        let beyond = with(most + 1, &now);
        if device.gc.trigger.name() == "lazy" {
            assert!(beyond.is_ok(), "{beyond:?}");
        } else {
            let refused = beyond.unwrap_err();
            assert_eq!(refused.problems().len(), 1, "{refused}");
            assert_eq!(refused.problems()[0].path, "gc.soft_threshold");
        }
    } else {
        assert!(with(1, &now).is_err());
    }
    let soft = device.soft_threshold();
    if let Some(least) = device.min_spare() {
        assert!(with(soft, &format!("capacity.spare={least:.4}")).is_ok(), "{least} of {device:?}");
        if least > 0.0 {
            assert!(with(soft, &format!("capacity.spare={:.4}", least - 0.0001)).is_err(), "{least} of {device:?}");
        }
        let most = device.max_logical_units() * device.unit_bytes();
        if most <= device.physical_bytes() {
            assert!(with(soft, &format!("capacity.logical={most}B")).is_ok(), "{most} B of {device:?}");
            let more = most + device.unit_bytes();
            assert!(with(soft, &format!("capacity.logical={more}B")).is_err(), "{more} B of {device:?}");
        }
    }
}

/// Options that mapping schemes with blocks of their own do not support: each with the values that the error advises,
/// and an option that works.
#[test]
fn schemes_with_blocks_of_their_own_refuse_options_with_what_works() {
    let cases = [
        ("allocation=dynamic", "allocation = \"static\"", "allocation=static"),
        ("gc.scope=pool", "set this to \"plane\"", "gc.scope=plane"),
        ("gc.destination=pool", "set this to \"plane\"", "gc.destination=plane"),
        ("gc.background={ idle = \"1ms\", until = 10 }", "leave it out", "gc.hard_threshold=1"),
        ("gc.wear=static-threshold", "gc.wear = \"least-erased\" or \"none\"", "gc.wear=least-erased"),
        ("gc.wear=dual-pool", "gc.wear = \"least-erased\" or \"none\"", "gc.wear=none"),
        ("temperature=multi-hash", "temperature = \"none\"", "temperature=none"),
        ("nand.advanced.copy_back=wise", "copy_back = \"off\"", "nand.advanced.copy_back=off"),
        ("nand.advanced.cache_program=true", "cache_program = false", "nand.advanced.cache_program=false"),
        ("nand.advanced.copy_back_modify=true", "set mapping.scheme to page", "nand.advanced.copy_back_modify=false"),
        ("geometry.logical_page=16KiB", "set mapping.scheme to page", "gc.hard_threshold=1"),
        ("allocation={ static = { stripe = \"8KiB\" } }", "leave it out", "allocation=static"),
    ];
    for scheme in ["block", "bast", "fast", "last"] {
        let load = |option: &str| {
            let scheme = format!("mapping.scheme={scheme}");
            let fits = ["capacity.spare=0.5", "geometry.mapping_unit=page", "nand.concurrency=die"];
            let all = [scheme.as_str(), option].into_iter().chain(fits).map(str::to_owned);
            load("tiny", &all.collect::<Vec<_>>())
        };
        for (option, advice, works) in cases {
            let error = load(option).expect_err(option).to_string();
            assert!(error.contains(advice), "{scheme}, {option}: {error}");
            load(works).unwrap_or_else(|error| panic!("{scheme}, {works}: {error}"));
        }
    }
}

#[test]
fn bounds_of_the_built_in_devices_are_exact() {
    Builtin::ALL.iter().for_each(|builtin| bounds_hold(&load(builtin.name, &[]).unwrap()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn bounds_of_any_device_are_exact(
        (channels, chips, planes) in (1u32..5, 1u32..4, 1u32..4),
        blocks in 8u32..300,
        pages in 1u32..9,
        (page, unit) in (0u32..4, 0u32..6),
        dynamic: bool, single: bool, summary: bool,
        soft in 1u32..5,
        spare in 0u32..10,
    ) {
        let mut overrides = vec![
            format!("geometry.channels={channels}"), format!("geometry.chips={chips}"),
            format!("geometry.planes={planes}"), format!("geometry.blocks={blocks}"),
            format!("geometry.pages={}", pages * 8), format!("geometry.page_size={}B", 2048 << page),
            format!("geometry.mapping_unit={}B", 1024 << unit),
            format!("gc.soft_threshold={soft}"), "gc.hard_threshold=0".to_owned(),
            format!("capacity.spare=0.{}", 90 + spare),
        ];
        overrides.extend(dynamic.then(|| "allocation=dynamic".to_owned()));
        overrides.extend(single.then(|| "gc.frontiers=single".to_owned()));
        overrides.extend(summary.then(|| "mapping.block_summary.last_page=1KiB".to_owned()));
        if let Ok(device) = load("tiny", &overrides) {
            bounds_hold(&device);
        }
    }
}
