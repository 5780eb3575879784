//! The built-in devices.

use floatgate_core::internals::AllocationConfig;
use floatgate_core::policies::Order;

use super::*;

#[test]
fn all_files_are_listed_and_load() {
    let files: BTreeSet<String> = std::fs::read_dir(repository().join("crates/core/devices"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().trim_end_matches(".toml").to_owned())
        .collect();
    let names: Vec<&str> = Builtin::ALL.iter().map(|builtin| builtin.name).collect();
    assert_eq!(names, files.iter().collect::<Vec<_>>(), "a device file is not in the table, or out of order");
    for name in names {
        let device = load(name, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(device.name, name);
        assert!(!device.description.is_empty(), "{name} has no description");
    }
}

#[test]
fn all_survive_toml_and_json() {
    for builtin in Builtin::ALL {
        let device = load(builtin.name, &[]).unwrap();
        for device in [&device, &device.resolved()] {
            let text = toml::to_string(device).unwrap();
            assert_eq!(&from_toml(&text, "again.toml", &[]).unwrap(), device);
            // The reader is not generic, so that it is compiled once.
            let json: toml::Table = serde_json::from_str(&serde_json::to_string(device).unwrap()).unwrap();
            assert_eq!(&from_toml(&json.to_string(), "again.json", &[]).unwrap(), device);
        }
        assert_eq!(device.resolved().digest(), device.digest());
    }
}

#[test]
fn every_parameter_has_a_source_and_every_source_a_parameter() {
    for builtin in Builtin::ALL {
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
            assert!(paths.iter().any(|path| covers(key, path)), "{name}: {key} has a source but no value");
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
fn benchmarks_have_a_fifth_to_spare_beyond_the_free_blocks() {
    for name in ["bench-32g", "bench-1t"] {
        let device = load(name, &[]).unwrap();
        let per_plane = device.physical_bytes() / u64::from(device.total_planes());
        let block = per_plane / u64::from(device.geometry.blocks);
        let free_blocks = block * u64::from(device.soft_threshold()) * u64::from(device.total_planes());
        let usable = device.physical_bytes() - free_blocks;
        let exact = u128::from(usable) * 4 / 5 / u128::from(device.unit_bytes());
        assert_eq!(u128::from(device.logical_units()), exact, "{name}");
    }
    assert_eq!(load("bench-1t", &[]).unwrap().physical_bytes(), 1 << 40);
    assert_eq!(load("bench-32g", &[]).unwrap().physical_bytes(), 32 << 30);
}

#[test]
fn sizes_match_the_sources() {
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

/// Yoo et al. 2013, Figure 11: random writes of 4 KByte use one channel. Section III-E: blocks are taken from the
/// channels in turn.
#[test]
fn writes_of_4_kib_use_one_chip_of_the_devices_of_vssim_and_the_channels_take_turns() {
    for name in ["vssim-a", "vssim-b", "vssim-c", "vssim-d", "vssim-e"] {
        let device = load(name, &[]).unwrap();
        let AllocationConfig::Static(options) = &device.allocation else { panic!("{name} has static allocation") };
        let order = Order::new(&device, options.order);
        let g = &device.geometry;
        let per_chip = g.dies * g.planes;
        let pages = 4096 / device.page_bytes() as u32;
        let chips: Vec<u32> = (0..order.len()).map(|position| order.plane(position).0 / per_chip).collect();
        let is_one_chip = |chips: &[u32]| chips.iter().all(|chip| *chip == chips[0]);
        assert!(chips.chunks(pages as usize).all(is_one_chip), "{name}: {chips:?}");
        let channels: Vec<u32> = chips.iter().step_by(2).map(|chip| chip / g.chips).collect();
        assert!((0..).zip(&channels).all(|(turn, channel)| *channel == turn % g.channels), "{name}: {channels:?}");
        assert!((device.spare() - 0.02).abs() < 1e-4 && device.soft_threshold() > device.sure_threshold(), "{name}");
    }
}
