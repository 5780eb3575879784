//! Device files: what is accepted, what is refused, and what the refusal says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use floatgate_core::config::{
    BUILTINS, ConfigError, DeviceConfig, example, from_toml, json_schema, load, reference_page,
};
use proptest::prelude::*;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn set(overrides: &[&str]) -> Vec<String> {
    overrides.iter().map(|text| (*text).to_owned()).collect()
}

fn tiny(overrides: &[&str]) -> Result<DeviceConfig, ConfigError> {
    load("tiny", &set(overrides))
}

/// What loading says is wrong.
fn error(result: Result<DeviceConfig, ConfigError>) -> String {
    match result {
        Ok(device) => panic!("{} was accepted", device.name),
        Err(error) => error.to_string(),
    }
}

/// The paths of all values in a file.
fn leaves(value: &toml::Value, path: &str, paths: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) if !table.is_empty() => {
            for (key, value) in table {
                leaves(value, &if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, paths);
            }
        }
        _ => paths.push(path.to_owned()),
    }
}

fn covers(key: &str, path: &str) -> bool {
    path == key || path.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'))
}

mod builtin {
    use super::*;

    #[test]
    fn all_files_are_there_and_load() {
        let files: BTreeSet<String> = std::fs::read_dir(repository().join("devices"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().trim_end_matches(".toml").to_owned())
            .collect();
        let names: Vec<&str> = BUILTINS.iter().map(|builtin| builtin.name).collect();
        assert_eq!(names, files.iter().collect::<Vec<_>>(), "a file of devices/ is not in the table, or out of order");
        for name in names {
            let device = load(name, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(device.name, name);
            assert!(!device.description.is_empty(), "{name} has no description");
        }
    }

    #[test]
    fn all_survive_toml_and_json() {
        for builtin in BUILTINS {
            let device = load(builtin.name, &[]).unwrap();
            for device in [&device, &device.resolved()] {
                let text = toml::to_string(device).unwrap();
                assert_eq!(&toml::from_str::<DeviceConfig>(&text).unwrap(), device);
                assert_eq!(&from_toml(&text, "again.toml", &[]).unwrap(), device);
                let json = serde_json::to_string(device).unwrap();
                assert_eq!(&serde_json::from_str::<DeviceConfig>(&json).unwrap(), device);
            }
            assert_eq!(device.resolved().digest(), device.digest());
        }
    }

    #[test]
    fn every_figure_has_a_source_and_no_source_is_stale() {
        for builtin in BUILTINS {
            let name = builtin.name;
            let mut file: toml::Table = builtin.text.parse().unwrap();
            for key in ["base", "name", "version", "description"] {
                file.remove(key);
            }
            let sources = file.remove("sources").unwrap_or_else(|| panic!("{name} has no sources"));
            let mut paths = Vec::new();
            leaves(&toml::Value::Table(file), "", &mut paths);
            for (key, source) in sources.as_table().unwrap() {
                let source = source.as_str().unwrap().trim();
                assert!(!source.trim_start_matches("assumed:").is_empty(), "{name}: the source of {key} is empty");
                assert!(paths.iter().any(|path| covers(key, path)), "{name}: the source of {key} is one of nothing");
            }
            for path in &paths {
                let has = sources.as_table().unwrap().keys().any(|key| covers(key, path));
                assert!(has, "{name}: {path} has no source");
            }
            let device = load(name, &[]).unwrap();
            let figures = device.figures();
            assert!(device.sources.keys().all(|key| figures.iter().any(|figure| figure.path == *key)), "{name}");
        }
    }

    #[test]
    fn benchmarks_have_a_fifth_to_spare_beside_their_stock() {
        for name in ["bench-32g", "bench-1t"] {
            let device = load(name, &[]).unwrap();
            let per_plane = device.physical_bytes() / u64::from(device.total_planes());
            let block = per_plane / u64::from(device.geometry.blocks);
            let stock = block * u64::from(device.soft_threshold()) * u64::from(device.total_planes());
            let usable = device.physical_bytes() - stock;
            let exact = u128::from(usable) * 4 / 5 / u128::from(device.unit_bytes());
            assert_eq!(u128::from(device.logical_units()), exact, "{name}");
        }
        assert_eq!(load("bench-1t", &[]).unwrap().physical_bytes(), 1 << 40);
        assert_eq!(load("bench-32g", &[]).unwrap().physical_bytes(), 32 << 30);
    }

    #[test]
    fn sizes_are_those_of_the_sources() {
        let physical = |name: &str| load(name, &[]).unwrap().physical_bytes();
        assert_eq!(physical("hu2011"), 16 << 30);
        assert_eq!(physical("agrawal2008"), 32 << 30);
        for name in ["vssim-a", "vssim-b", "vssim-c", "vssim-d", "vssim-e"] {
            assert_eq!(physical(name), 16 << 30, "{name}");
        }
        assert_eq!(physical("x25m"), 80 << 30);
        assert_eq!(physical("mqsim-default"), 512 << 30);
        assert_eq!(physical("tiny"), 64 << 20);
        assert_eq!(load("tlc-nvme", &[]).unwrap().logical_bytes(), 1_000_204_886_016);
        assert_eq!(load("qlc-nvme", &[]).unwrap().logical_bytes(), 2_000_398_934_016);
    }
}

mod layers {
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
    fn another_choice_replaces_the_whole() {
        for overrides in [
            &["gc.victim.d-choices.d=4"][..],
            &["gc.victim=fifo", "gc.victim.d-choices.d=4"],
            &["gc.victim={ fifo = {} }", "gc.victim={ d-choices = { d = 4 } }"],
            &["gc.victim=d-choices", "gc.victim.d-choices.d=4"],
        ] {
            let device = tiny(overrides).unwrap();
            assert_eq!(
                serde_json::to_value(&device.gc.victim).unwrap(),
                serde_json::json!({ "d-choices": { "d": 4 } })
            );
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
        let mut whole =
            load("hu2011", &set(&["geometry.channels=8", "capacity.logical=20GiB", "nand.erase=2ms"])).unwrap();
        assert_eq!(device.digest(), whole.digest());
        (whole.name, whole.description, whole.sources) =
            (device.name.clone(), device.description.clone(), device.sources.clone());
        assert_eq!(device, whole);
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
        // If this fails because `tiny` or the form of a device has changed on purpose, write down the new one.
        assert_eq!(tiny(&[]).unwrap().digest(), "4f8369d7a832b74789c628184aae09da");
        let same =
            tiny(&["name=other", "description=other", "sources.x=y", "geometry.mapping_unit=4KiB", "bus.width=8"]);
        assert_eq!(same.unwrap().digest(), tiny(&[]).unwrap().digest());
        assert_eq!(tiny(&["gc.victim={ greedy = {} }"]).unwrap().digest(), tiny(&[]).unwrap().digest());
    }

    /// Each figure of a device, changed.
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
        "nand.advanced.multi_plane_read=wise",
        "nand.advanced.multi_plane_erase=wise",
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
        "bus.width=16",
        "bus.command_cycle=25ns",
        "bus.command_cycles.read=7",
        "bus.command_cycles.program=7",
        "bus.command_cycles.erase=5",
        "bus.transfer_spare=true",
        "bus.way_switch=1us",
        "bus.channel_switch=1us",
        "bus.channel_switch_scope=controller",
        "allocation=dynamic",
        "mapping.scheme=dftl",
        "mapping.block_summary.last_page=512B",
        "gc.soft_threshold=3",
        "gc.hard_threshold=2",
        "gc.victim=fifo",
        "gc.frontiers=single",
        "scheduler=read-first",
        "controller.slots=4097",
        "controller.fill_timeout=50us",
        "host.queue_depth=32",
        "host.link_latency=1us",
    ];

    #[test]
    fn the_digest_tells_every_figure() {
        let device = tiny(&[]).unwrap();
        let mut digests = BTreeSet::from([device.digest()]);
        for &change in CHANGES {
            let other = match change {
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
            assert!(changed.into_iter().any(|path| covers(&figure.path, path)), "{} is not tried here", figure.path);
        }
    }
}

mod errors {
    use super::*;

    #[test]
    fn point_to_the_place_in_the_file() {
        let text = "base = \"tiny\"\n\n[geometry]\nchanels = 4\n\tblocks = \"many\"\n[gc]\nvictim = { fifo = {} }\n";
        assert_eq!(
            error(from_toml(text, "mine.toml", &[])),
            "mine.toml:4:1: unknown key `geometry.chanels`, did you mean `channels`? `geometry` has channels, chips, \
             chips_per_package, dies, planes, blocks, pages, block_size, page_size, spare_size, mapping_unit, pages_per_program\n\
             4 | chanels = 4\n  | ^^^^^^^"
        );
        assert_eq!(
            error(from_toml(&text.replace("chanels", "channels"), "mine.toml", &[])),
            "mine.toml:5:11: `geometry.blocks`: invalid type: string \"many\", expected a whole number, 1 or more\n\
             5 | \tblocks = \"many\"\n  | \t         ^^^^^^"
        );
        assert_eq!(
            error(from_toml("base = \"tiny\"\n[geometry\n", "mine.toml", &[])),
            "mine.toml:2:10: unclosed table, expected `]`\n2 | [geometry\n  |          ^"
        );
        assert_eq!(
            error(from_toml("base = \"tiny\"\ngeometry.pages_per_program = 3\n", "mine.toml", &[])),
            "mine.toml:2:30: geometry.pages_per_program = 3: must divide geometry.pages = 64: a block is whole programs\n\
             2 | geometry.pages_per_program = 3\n  |                              ^"
        );
    }

    #[test]
    fn point_to_the_place_in_the_base() {
        let message = error(from_toml(
            "base = \"tiny\"\n[gc]\nsoft_threshold = 1\nhard_threshold = 1\n",
            "m.toml",
            &set(&["geometry.blocks=3"]),
        ));
        assert!(
            message.starts_with("--set geometry.blocks=3: gc.soft_threshold = 1: 1 of 3 blocks cannot be kept free")
                && message.contains("is that of m.toml:3:18"),
            "{message}"
        );
        let message = error(tiny(&["gc.soft_threshold=1", "geometry.blocks=2"]));
        assert!(message.starts_with("--set gc.soft_threshold=1: gc.soft_threshold = 1"), "{message}");
        let message = error(tiny(&["gc.hard_threshold=3"]));
        assert!(
            message.starts_with("--set gc.hard_threshold=3: gc.hard_threshold = 3: 3 blocks, at most"),
            "{message}"
        );
        let message = error(tiny(&["geometry.pages=63", "geometry.pages_per_program=1", "geometry.mapping_unit=8KiB"]));
        assert!(message.starts_with("--set geometry.mapping_unit=8KiB"), "{message}");
        let message = error(tiny(&["nand.cell=mlc", "geometry.blocks=4"]));
        assert!(message.starts_with("--set geometry.blocks=4: gc.soft_threshold = 2"), "{message}");
    }

    #[test]
    fn say_what_is_allowed_at_a_path() {
        for (over, expected) in [
            (
                "gc.victim=fifoo",
                "`gc.victim`: unknown name `fifoo`, did you mean `fifo`? one of greedy, fifo, random, d-choices, cost-benefit",
            ),
            ("gc.victim=zzzzzz", "`gc.victim`: unknown name `zzzzzz`: one of greedy, fifo"),
            ("gc.victim.lifo.x=1", "`gc.victim`: unknown name `lifo`, did you mean `fifo`?"),
            ("gc.victim.fifo.x=1", "unknown key `gc.victim.fifo.x`; `gc.victim.fifo` has no keys"),
            (
                "gc.victim.d-choices.e=1",
                "unknown key `gc.victim.d-choices.e`, did you mean `d`? `gc.victim.d-choices` has d",
            ),
            (
                "gc.victim=3",
                "`gc.victim`: one of greedy, fifo, random, d-choices, cost-benefit, or a table of one of them",
            ),
            ("gc.victim={ fifo = {}, greedy = {} }", "`gc.victim`: fifo and greedy: name exactly one of greedy, fifo"),
            ("gc.victim={}", "`gc.victim`: an empty table: name exactly one of greedy, fifo"),
            (
                "mapping.block_summary.none=1",
                "`mapping.block_summary`: `none` has no options: write mapping.block_summary = \"none\"",
            ),
            ("channels=8", "unknown key `channels`, did you mean `geometry.channels`? a device has name"),
            ("victim=fifo", "unknown key `victim`, did you mean `gc.victim`?"),
            ("gc=3", "`gc` is a table, with the keys soft_threshold, hard_threshold, victim, frontiers"),
            ("geometry.channels.x=3", "`geometry.channels` is one value, not a table"),
            (
                "geometry.channels=-1",
                "`geometry.channels`: invalid value: integer `-1`, expected a whole number, 1 or more",
            ),
            ("capacity=0.2", "`capacity`: write capacity.spare = ... or capacity.logical = ..."),
            ("capacity=spare", "`capacity`: `spare` needs a value: write capacity.spare = ..."),
            (
                "nand.read=25",
                "`nand.read`: invalid type: integer `25`, expected a value with its unit, like \"25us\", or a list of them",
            ),
            (
                "nand.read=25xs",
                "`nand.read`: `25xs` is no time: write a number with one of ps, ns, us, ms, s, like \"25us\"",
            ),
            ("nand.read=[\"25us\", \"1xs\"]", "`nand.read`: `1xs` is no time"),
            (
                "allocation.static.order=channel-dye",
                "`allocation.static.order`: `channel-dye` is no order: `dye` is no level, did you mean `die`?",
            ),
            (
                "nand.concurrency=dye",
                "`nand.concurrency`: unknown name `dye`, did you mean `die`? one of chip, command, die, plane",
            ),
        ] {
            let message = error(tiny(&[over]));
            let (_, said) = message.split_once(": ").unwrap();
            assert!(message.starts_with(&format!("--set {over}: ")), "{message}");
            assert!(said.starts_with(expected), "{over} said\n{said}\nnot\n{expected}");
            assert!(message.contains('^'), "{message}");
        }
    }

    #[test]
    fn say_how_an_override_is_written() {
        for (over, expected) in [
            ("gc.victim", "no `=`"),
            ("gc.victim=", "no value behind the `=`"),
            ("=fifo", "no path before the `=`"),
            ("gc.victim=fifo\ngc.x=1", "more than one line"),
        ] {
            let message = error(tiny(&[over]));
            assert!(message.contains(expected) && message.ends_with("write it like gc.victim=fifo"), "{message}");
        }
        for over in ["gc victim=fifo", "gc.[=fifo", "gc.victim=[", "gc.victim={ fifo", "a = 1 = 2", "gc..victim=fifo"] {
            assert!(matches!(tiny(&[over]), Err(ConfigError::Malformed(_))), "{over}");
        }
    }

    #[test]
    fn find_all_missing_and_unknown_keys() {
        let error = from_toml("[geometry]\nchannels = 1\nzzz = 1\n[bus]\nqqq = 1\n", "x.toml", &[]).unwrap_err();
        let paths: Vec<&str> = error.problems().iter().map(|problem| problem.path.as_str()).collect();
        for path in ["geometry.zzz", "geometry.chips", "geometry.page_size", "bus.qqq", "bus.protocol", "nand"] {
            assert!(paths.contains(&path), "{path} is not in {paths:?}");
        }
        assert!(error.to_string().contains("missing key `geometry.page_size`: Data bytes of a flash page"), "{error}");
    }

    #[test]
    fn tell_a_missing_file_from_an_unknown_name() {
        let message = error(load("tinny", &[]));
        assert!(message.starts_with("no built-in device is called `tinny`, did you mean `tiny`?\n"), "{message}");
        assert!(message.contains("hu2011") && message.contains("./tinny.toml"), "{message}");
        let message = error(load("no/such/file", &[]));
        assert!(message.starts_with("cannot read the device file no/such/file: "), "{message}");
        let message = error(load("./tiny.toml", &[]));
        assert!(message.ends_with("`tiny` is a built-in device: give its name alone"), "{message}");
        assert!(matches!(load("devices/", &[]), Err(ConfigError::Unreadable { .. })));
    }

    #[test]
    fn refuse_wrong_bases() {
        let message = error(from_toml("base = \"tinny\"\n", "x.toml", &[]));
        assert!(
            message.starts_with("x.toml:1:8: `base`: no built-in device is called `tinny`, did you mean `tiny`?"),
            "{message}"
        );
        let message = error(from_toml("base = 3\n", "x.toml", &[]));
        assert!(message.starts_with("x.toml:1:8: `base` is the name of a built-in device"), "{message}");
        assert!(error(tiny(&["base=hu2011"])).contains("unknown key `base`"));
    }
}

mod rules {
    use super::*;

    /// Overrides of `tiny`, and what is said of them.
    const REFUSED: &[(&[&str], &str)] = &[
        (&["geometry.dies=0"], "geometry.dies = 0: must be from 1 to"),
        (&["geometry.chips_per_package=3"], "geometry.chips_per_package = 3: must divide geometry.chips = 2"),
        (&["geometry.page_size=1000B"], "geometry.page_size = 1000B: must be whole sectors of 512 B"),
        (&["geometry.page_size=32MiB"], "geometry.page_size = 32MiB: must be whole sectors of 512 B, up to 16 MiB"),
        (&["geometry.spare_size=8KiB"], "geometry.spare_size = 8KiB: at most geometry.page_size = 4KiB"),
        (&["geometry.mapping_unit=0B"], "geometry.mapping_unit = 0B: must be whole sectors"),
        (&["geometry.mapping_unit=1536B"], "geometry.mapping_unit = 1536B: must divide geometry.page_size = 4KiB"),
        (&["geometry.mapping_unit=6KiB"], "geometry.mapping_unit = 6KiB: must be a multiple of geometry.page_size"),
        (&["geometry.mapping_unit=12KiB"], "geometry.mapping_unit = 12KiB: spans 3 pages, which must divide"),
        (
            &["geometry.mapping_unit=8KiB", "geometry.pages_per_program=2"],
            "geometry.pages_per_program = 2: must be 1 where",
        ),
        (&["geometry.pages_per_program=3"], "geometry.pages_per_program = 3: must divide geometry.pages = 64"),
        (&["geometry.pages=65536"], "geometry.pages = 65536: a block of 65536 mapping units, at most 65535"),
        (
            &["geometry.blocks=4192256"],
            "geometry.blocks = 4192256: a device of 2146435072 mapping units, fewer than 2146435072",
        ),
        (
            &["geometry.channels=2000000000", "geometry.chips=2000000000"],
            "geometry.blocks = 32: a device of 16384000000000000000000",
        ),
        (
            &["geometry.page_size=16KiB", "geometry.mapping_unit=512B", "geometry.pages_per_program=4"],
            "geometry.pages_per_program = 4: a program of 128 mapping units, at most 64",
        ),
        (&["nand.read=[\"1us\", \"2us\"]"], "nand.read = [1us, 2us]: one time, or 1: one for each page type of SLC"),
        (
            &["nand.cell=tlc", "nand.program=[\"1us\", \"2us\"]"],
            "nand.program = [1us, 2us]: one time, or 3: one for each page type of TLC",
        ),
        (
            &["nand.cell=mlc", "geometry.pages_per_program=2", "nand.program=[\"1us\", \"2us\"]"],
            "nand.program = [1us, 2us]: with geometry.pages_per_program above 1",
        ),
        (&["nand.read=[]"], "nand.read = []: one time"),
        (&["nand.erase=1000s"], "nand.erase = 1000s: must be from 0ps to 100s"),
        (&["bus.width=12"], "bus.width = 12: 8 or 16"),
        (&["bus.protocol.sdr=0ns"], "bus.protocol.sdr = 0ps: must be from 1ps to"),
        (&["bus.protocol.nv-ddr=0MT/s"], "bus.protocol.nv-ddr = 0T/s: must be from 100kT/s to"),
        (&["bus.command_cycle=1s"], "bus.command_cycle = 1s: must be from 0ps to 10us"),
        (&["bus.command_cycles.read=1001"], "bus.command_cycles.read = 1001: must be from 0 to 1000"),
        (&["mapping.block_summary.last_page=0B"], "mapping.block_summary.last_page = 0B: must be from 1B to 4KiB"),
        (&["mapping.block_summary.last_page=5KiB"], "mapping.block_summary.last_page = 5KiB: must be from 1B to 4KiB"),
        (&["mapping.block_summary.last_page=1KiB", "geometry.pages=1"], "geometry.pages = 1: the summary"),
        (&["capacity.spare=1.0"], "capacity.spare = 1: must be from 0 to below 1"),
        (&["capacity.spare=-0.1"], "capacity.spare = -0.1: must be"),
        (&["capacity.spare=nan"], "capacity.spare = NaN: must be"),
        (&["capacity.spare=0.99999"], "capacity.spare = 0.99999: leaves the host nothing"),
        (&["capacity.logical=1KiB"], "capacity.logical = 1KiB: must be from 4KiB to 64MiB"),
        (&["capacity.logical=65MiB"], "capacity.logical = 65MiB: must be from 4KiB to 64MiB"),
        (&["gc.soft_threshold=0", "gc.hard_threshold=0"], "gc.soft_threshold = 0: must be 1 block or more"),
        (&["gc.hard_threshold=3"], "gc.hard_threshold = 3: 3 blocks, at most gc.soft_threshold = 2 blocks"),
        (&["gc.victim.d-choices.d=0"], "gc.victim.d-choices: d = 0 draws no block: d must be 1 or more"),
        (&["controller.slots=0"], "controller.slots = 0: must be from 1 to 1048576"),
        (&["geometry.page_size=16KiB", "controller.slots=3"], "controller.slots = 3: must be from 4 to"),
        (&["host.queue_depth=0"], "host.queue_depth = 0: must be from 1"),
        (&["host.link_bandwidth=0GB/s"], "host.link_bandwidth = 0B/s: must be from 1KB/s to"),
    ];

    #[test]
    fn every_rule_names_key_value_and_reason() {
        for (overrides, expected) in REFUSED {
            let result = tiny(overrides);
            assert!(matches!(result, Err(ConfigError::Refused(_))), "{overrides:?}: {result:?}");
            let message = error(result);
            assert!(message.contains(expected), "{overrides:?} said\n{message}\nnot\n{expected}");
        }
    }

    #[test]
    fn all_problems_are_found_at_once() {
        let all = ["geometry.dies=0", "nand.erase=1000s", "bus.width=12", "host.queue_depth=0"];
        let error = tiny(&all).unwrap_err();
        let paths: Vec<&str> = error.problems().iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, ["nand.erase", "bus.width", "host.queue_depth", "geometry.dies"]);
    }

    #[test]
    fn the_largest_devices_are_accepted() {
        assert!(tiny(&["geometry.blocks=4192255"]).is_ok());
        assert!(tiny(&["geometry.pages=65535"]).is_ok());
    }

    #[test]
    fn the_refusal_says_what_would_do() {
        assert_eq!(
            error(load("hu2011", &set(&["gc.soft_threshold=30%"]))),
            "--set gc.soft_threshold=30%: gc.soft_threshold = 30%: 615 of 2048 blocks cannot be kept free on a full device: \
             capacity.spare must be at least 0.3008 (it is 0.1), or the threshold at most 203\n\
             \x20| gc.soft_threshold=30%\n\x20|                   ^^^"
        );
        let message = error(tiny(&["capacity.logical=57MiB"]));
        assert!(
            message
                .contains("capacity.logical must be at most 57312KiB, a spare of 0.1255, or the threshold at most 1"),
            "{message}"
        );
        let message = error(tiny(&["gc.soft_threshold=31"]));
        assert!(message.contains("no spare is enough, or the threshold at most 4"), "{message}");
        let message = error(tiny(&["geometry.blocks=3", "capacity.spare=0.1", "gc.soft_threshold=1"]));
        assert!(message.contains("no spare is enough, and no threshold is low enough"), "{message}");
    }

    /// The stated figures are the exact bounds: they are accepted, and one step further is refused.
    fn bounds_hold(device: &DeviceConfig) {
        let with = |soft: u32, capacity: &str| {
            let text = toml::to_string(device).unwrap();
            let overrides =
                [format!("gc.soft_threshold={soft}"), "gc.hard_threshold=0".to_owned(), capacity.to_owned()];
            from_toml(&text, "bound.toml", &overrides)
        };
        let now = serde_json::to_value(&device.capacity).unwrap();
        let now = now.as_object().unwrap().iter().map(|(k, v)| format!("capacity.{k}={v}")).next().unwrap();
        if let Some(most) = device.max_soft_threshold() {
            assert!(with(most, &now).is_ok(), "{most} of {device:?}");
            let refused = with(most + 1, &now).unwrap_err();
            assert_eq!(refused.problems().len(), 1, "{refused}");
            assert_eq!(refused.problems()[0].path, "gc.soft_threshold");
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

    #[test]
    fn bounds_of_the_builtins_hold() {
        BUILTINS.iter().for_each(|builtin| bounds_hold(&load(builtin.name, &[]).unwrap()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn bounds_of_any_device_hold(
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
}

mod reference {
    use super::*;

    /// Fails when a generated file is stale; with `FLOATGATE_BLESS=1` writes it instead.
    fn up_to_date(name: &str, text: &str) {
        let path = repository().join("docs/reference").join(name);
        if std::env::var_os("FLOATGATE_BLESS").is_some_and(|value| value == "1") {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            there == text,
            "{} is stale: run the tests with FLOATGATE_BLESS=1, and look at the difference",
            path.display()
        );
    }

    #[test]
    fn the_page_is_up_to_date() {
        up_to_date("config.md", &reference_page());
    }

    #[test]
    fn the_schema_is_up_to_date() {
        up_to_date("device.schema.json", &(serde_json::to_string_pretty(&json_schema()).unwrap() + "\n"));
    }

    #[test]
    fn the_example_is_up_to_date_and_loads() {
        up_to_date("device.example.toml", &example());
        let device = from_toml(&example(), "device.example.toml", &[]).unwrap();
        assert_eq!(device.digest(), tiny(&[]).unwrap().digest());
    }

    #[test]
    fn the_page_has_every_key() {
        let page = reference_page();
        for figure in tiny(&[]).unwrap().figures() {
            let key = figure.path.rsplit('.').next().unwrap().to_owned();
            assert!(page.contains(&format!("| `{key}` ")), "{key} is not in the reference");
        }
    }
}
