//! SLC caches of random devices.

use floatgate_core::device_file::from_toml;
use floatgate_core::sim::rng::Rng;

use super::{BASE, device_config};

/// Options that do not go with an SLC cache, and those that it replaces.
const REPLACED: [&str; 16] = [
    "temperature",
    "gc.frontiers=",
    "gc.wear=",
    "gc.scope=",
    "gc.destination=",
    "allocation.dynamic.active_blocks=",
    "nand.advanced.copy_back",
    "nand.advanced.multi_plane_program=",
    "nand.advanced.interleave=",
    "nand.advanced.strict=",
    "gang",
    "nand.cell=",
    "nand.slc_mode=",
    "geometry.pages=",
    "geometry.blocks=",
    "capacity",
];

/// Gives a device an SLC cache of two to five blocks in each plane. The host sees the same number of units.
pub fn with_cache(rng: &mut Rng, overrides: &[String]) -> Vec<String> {
    let config = device_config(overrides);
    let kept = overrides.iter().filter(|text| !REPLACED.iter().any(|option| text.starts_with(option)));
    let mut all: Vec<String> = kept.cloned().collect();
    let wordline = config.geometry.pages_per_program;
    let (cell, bits) = [("mlc", 2), ("tlc", 3), ("qlc", 4)][if wordline > 1 { 1 } else { rng.below(3) as usize }];
    let step = bits * wordline.max(config.pages_per_unit());
    let pages = config.geometry.pages.max(2 * step).next_multiple_of(step);
    let cached = 2 + rng.below(4) as u32;
    all.push(format!("nand.cell={cell}"));
    all.push(format!("geometry.pages={pages}"));
    all.push(format!("nand.slc_mode={{ read = \"{}us\", program = \"{}us\" }}", 1 + rng.below(30), 1 + rng.below(200)));
    all.push(format!("capacity.logical={}B", config.logical_bytes()));
    let (high, low) = [("1.0", "0.9"), ("0.9", "0.0"), ("0.5", "0.2")][rng.below(3) as usize];
    let when_full = ["direct", "wait"][rng.below(2) as usize];
    let idle = ["", ", idle = \"0us\"", ", idle = \"300us\""][rng.below(3) as usize];
    all.push(format!(
        "slc_cache={{ blocks = {cached}, when_full = \"{when_full}\", high_water = {high}, low_water = {low}{idle} }}"
    ));
    let accepted = |all: &[String]| {
        (0..60).find_map(|more| {
            let blocks = format!("geometry.blocks={}", config.geometry.blocks + cached + more);
            let with = [all, &[blocks]].concat();
            from_toml(BASE, "test.toml", &with).is_ok().then_some(with)
        })
    };
    // The reserve of folding raises the soft threshold, which `until` has to exceed.
    let on_demand: Vec<String> = all.iter().filter(|text| !text.starts_with("gc.background=")).cloned().collect();
    let accepted = accepted(&all).or_else(|| accepted(&on_demand));
    accepted.unwrap_or_else(|| panic!("no device is accepted: {:?}", from_toml(BASE, "test.toml", &all)))
}
