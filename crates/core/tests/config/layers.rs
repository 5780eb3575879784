//! Layers of a device: base, file and overrides.

use super::*;

#[test]
fn overrides_take_names_numbers_and_toml() {
    let device = tiny(&[
        "gc.victim=fifo",
        "geometry.channels = 8",
        "nand.read=30us",
        r#"nand.program="300us""#,
        "capacity={ spare = 0.25 }",
        "gc.soft_threshold=5%",
        "allocation.dynamic.order=s4",
        "bus.command_cycles={ read = 7 }",
        "bus.command_cycles.erase=5",
        "host.link_bandwidth=3.5GB/s",
    ])
    .unwrap();
    assert_eq!((device.gc.victim.name(), device.geometry.channels), ("fifo", 8));
    assert_eq!(device.figures().iter().find(|f| f.path == "nand.read").unwrap().value, "30us");
    assert_eq!((device.allocation.name(), device.soft_threshold()), ("dynamic", 2));
    assert_eq!((device.bus.command_cycles.read, device.bus.command_cycles.erase), (7, 5));
}

#[test]
fn another_choice_replaces_the_whole_table() {
    for overrides in [
        &["gc.victim.d-choices.d=4"][..],
        &["gc.victim=fifo", "gc.victim.d-choices.d=4"],
        &["gc.victim={ fifo = {} }", "gc.victim={ d-choices = { d = 4 } }"],
        &["gc.victim=d-choices", "gc.victim.d-choices.d=4"],
    ] {
        let device = tiny(overrides).unwrap();
        assert_eq!(serde_json::to_value(&device.gc.victim).unwrap(), serde_json::json!({ "d-choices": { "d": 4 } }));
    }
    assert_eq!(tiny(&["gc.victim.d-choices.d=4", "gc.victim=greedy"]).unwrap().gc.victim.name(), "greedy");
    assert_eq!(tiny(&["capacity.logical=40MiB"]).unwrap().logical_bytes(), 40 << 20);
    assert!(tiny(&["bus.protocol.sdr=25ns"]).is_ok());
}

#[test]
fn a_file_lists_only_what_differs_from_its_base() {
    let text =
        "base = 'hu2011'\n[geometry]\nchannels = 8\n[capacity]\nlogical = '20GiB'\n[sources]\ncapacity = 'mine'\n";
    let device = from_toml(text, "dir/wide.toml", &set(&["nand.erase=2ms"])).unwrap();
    assert_eq!((device.name.as_str(), device.geometry.channels, device.geometry.chips), ("wide", 8, 4));
    let source = |path: &str| device.sources.get(path).map(String::as_str);
    assert_eq!(source("geometry.channels"), Some("dir/wide.toml"));
    assert!(source("geometry.chips").unwrap().starts_with("Hu et al. 2011"));
    assert_eq!((source("capacity.logical"), source("capacity.spare")), (Some("mine"), None));
    assert_eq!((source("nand.erase"), source("host.queue_depth")), (Some("--set"), None));
    let mut whole = load("hu2011", &set(&["geometry.channels=8", "capacity.logical=20GiB", "nand.erase=2ms"])).unwrap();
    assert_eq!(device.digest(), whole.digest());
    (whole.name, whole.description, whole.sources) =
        (device.name.clone(), device.description.clone(), device.sources.clone());
    assert_eq!(device, whole);
}

/// `hu2011` gives a block size and a mapping unit of one page. Both change with the page size.
#[test]
fn values_that_follow_from_the_page_size_have_its_source() {
    let device = load("hu2011", &["geometry.page_size=16KiB".to_owned()]).unwrap();
    let source = |path: &str| device.sources.get(path).map(String::as_str);
    assert_eq!((device.geometry.pages, device.unit_bytes()), (8, 16 << 10));
    for path in ["geometry.page_size", "geometry.pages", "geometry.mapping_unit"] {
        assert_eq!(source(path), Some("--set"), "{path}");
    }
    assert!(source("geometry.blocks").unwrap().starts_with("Hu et al. 2011"));
    let other = load("hu2011", &["geometry.page_size=16KiB".to_owned(), "geometry.mapping_unit=4KiB".to_owned()]);
    assert_eq!(other.unwrap().unit_bytes(), 4 << 10);
}

#[test]
fn files_are_read_by_their_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, "base = 'tiny'\n").unwrap();
    assert_eq!(load(path.to_str().unwrap(), &[]).unwrap().name, "mine");
}

#[test]
fn the_digest_is_the_same_everywhere() {
    // If this fails because `tiny` or the structure of a device was changed on purpose, update the digest.
    assert_eq!(tiny(&[]).unwrap().digest(), "2ffe223691e08a65f6e47cc772145c3b");
    let same =
        tiny(&["name=other", "description=other", "sources.nand=y", "geometry.mapping_unit=4KiB", "bus.width=8"]);
    assert_eq!(same.unwrap().digest(), tiny(&[]).unwrap().digest());
    assert_eq!(tiny(&["gc.victim={ greedy = {} }"]).unwrap().digest(), tiny(&[]).unwrap().digest());
}

/// Overrides that change each parameter of a device.
const CHANGES: &[&str] = &[
    "geometry.channels=4",
    "geometry.chips=4",
    "geometry.chips_per_package=2",
    "geometry.dies=2",
    "geometry.planes=4",
    "geometry.blocks=64",
    "geometry.pages=128",
    "geometry.page_size=8KiB",
    "geometry.spare_size=128B",
    "geometry.mapping_unit=2KiB",
    "geometry.pages_per_program=2",
    "capacity.spare=0.21",
    "nand.cell=mlc",
    "nand.read=26us",
    "nand.program=201us",
    "nand.erase=1.6ms",
    "nand.endurance=1000",
    "nand.concurrency=plane",
    "nand.advanced.copy_back=wise",
    "nand.advanced.multi_plane_program=wise",
    "nand.advanced.multi_plane_read=true",
    "nand.advanced.multi_plane_erase=true",
    "nand.advanced.strict=true",
    "nand.advanced.plane_pairs=true",
    "nand.advanced.interleave=true",
    "nand.advanced.cache_read=true",
    "nand.advanced.cache_program=true",
    "nand.advanced.suspend.program=true",
    "nand.advanced.suspend.erase=true",
    "nand.advanced.suspend.latency=1us",
    "nand.advanced.suspend.resume=1us",
    "nand.advanced.suspend.limit=2",
    "bus.protocol.nv-ddr=400MT/s",
    "bus.read_cycle=30ns",
    "bus.write_cycle=30ns",
    "bus.width=16",
    "bus.command_cycle=25ns",
    "bus.command_cycles.read=7",
    "bus.command_cycles.program=7",
    "bus.command_cycles.erase=5",
    "bus.order=commands-first",
    "bus.transfer_spare=true",
    "bus.partial_transfer=true",
    "bus.way_switch=1us",
    "bus.channel_switch=1us",
    "bus.channel_switch_read=2us",
    "bus.channel_switch_scope=controller",
    "allocation=dynamic",
    "mapping.scheme=dftl",
    "mapping.block_summary.last_page=512B",
    "gc.soft_threshold=3",
    "gc.hard_threshold=2",
    "gc.victim=fifo",
    "gc.frontiers=single",
    "scheduler=read-first",
    "controller.write_slots=4097",
    "controller.fill_timeout=50us",
    "durability.trim_journal=true",
    "durability.checkpoint=1MiB",
    "durability.map=non-volatile",
    "faults={}",
    "faults.factory_bad=1",
    "faults.program_rate=0.1",
    "faults.erase_rate=0.1",
    "faults.read_rate=0.1",
    "faults.inject=[\"erase 0/1\"]",
    "host.queue_depth=32",
    "host.sector_size=4KiB",
    "host.link_latency=1us",
];

#[test]
fn every_parameter_changes_the_digest() {
    let device = tiny(&[]).unwrap();
    let mut digests = BTreeSet::from([device.digest()]);
    for &change in CHANGES {
        let other = match change {
            "bus.read_cycle=30ns" | "bus.write_cycle=30ns" => tiny(&[change, "bus.protocol.sdr=25ns"]),
            "gc.hard_threshold=2" => tiny(&[change, "gc.soft_threshold=4"]),
            "mapping.scheme=dftl" => tiny(&[change, "capacity.spare=0.3"]),
            "controller.fill_timeout=50us" => tiny(&[change, "geometry.mapping_unit=2KiB"]),
            "nand.advanced.interleave=true" => tiny(&[change, "geometry.dies=2", "nand.concurrency=command"]),
            multi if multi.contains("multi_plane") || multi.contains("pairs") => {
                tiny(&[change, "geometry.planes=2", "nand.concurrency=die"])
            }
            _ => tiny(&[change]),
        };
        assert!(digests.insert(other.unwrap().digest()), "{change} does not change the digest");
    }
    for figure in device.figures() {
        let changed = CHANGES.iter().filter_map(|change| change.split('=').next());
        assert!(changed.into_iter().any(|path| covers(&figure.path, path)), "{} is not in CHANGES", figure.path);
    }
}
