//! Devices on fewer blocks: the same parallelism, times and spare ratio, so that a steady state is reached sooner.
//!
//! [`RULES`] classes each option of a device file, and [`DeviceConfig::scaled`] applies it. The rates and latencies of
//! a device depend on its channels, dies and planes, which remain. Its write amplification depends on the ratio of the
//! space that holds data to the capacity of the host, which remains as well.

use std::fmt::{self, Display, Formatter};

use serde_json::Value;

use super::error::{ConfigError, Problem};
pub use super::fraction::Scale;
use super::path::covers;
use super::units::{BlockCount, Bytes};
use super::{Capacity, DeviceConfig, GcPace};
use crate::ftl::mapping::MappingConfig;

/// Way in which an option scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// In proportion.
    Proportional,
    /// In proportion, but the first `KEPT_BLOCKS` blocks remain.
    Reserve,
    /// In proportion to the blocks that hold data.
    Capacity,
    /// Not at all, because the value is a share, or a number for each unit.
    Relative,
    /// Not at all, because the effect does not depend on the number of blocks.
    Kept,
}

/// Options that scale in the same way, for the same reason.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Way in which the options scale.
    pub scaling: Scaling,
    /// Paths of keys or of tables. The longest path that covers an option decides.
    pub options: &'static [&'static str],
    /// Reason.
    pub why: &'static str,
}

/// Number of blocks of a threshold that remain at any scale, because garbage collection needs them to work, whatever
/// the size of a plane.
pub const KEPT_BLOCKS: u32 = 4;

/// Minimum number of blocks of each plane that hold data. With fewer, the choice of a victim is so small that the write
/// amplification differs.
pub const MIN_BLOCKS: u32 = 8;

/// Rules of all options.
pub const RULES: &[Rule] = &[
    Rule {
        scaling: Scaling::Proportional,
        options: &["geometry.blocks", "faults.factory_bad"],
        why: "the planes remain, with fewer blocks",
    },
    Rule {
        scaling: Scaling::Capacity,
        options: &["capacity"],
        why: "the write amplification depends on the ratio of the space that holds data to the capacity",
    },
    Rule {
        scaling: Scaling::Reserve,
        options: &[
            "gc.soft_threshold",
            "gc.hard_threshold",
            "gc.background.until",
            "gc.throttle.below",
            "slc_cache.blocks",
        ],
        why: "a few free blocks keep garbage collection going, and the others are a share of the flash",
    },
    Rule {
        scaling: Scaling::Proportional,
        options: MappingConfig::PROPORTIONAL,
        why: "the effect depends on the share of the data that is cached or logged",
    },
    Rule {
        scaling: Scaling::Relative,
        options: &[
            "temperature",
            "gc.trigger",
            "gc.background.gain",
            "slc_cache.high_water",
            "slc_cache.low_water",
            "faults.program_rate",
            "faults.erase_rate",
            "faults.read_rate",
        ],
        why: "the value is a share, or a number for each unit",
    },
    Rule {
        scaling: Scaling::Relative,
        options: MappingConfig::SHARES,
        why: "the value is a share of the blocks or the cache",
    },
    Rule {
        scaling: Scaling::Kept,
        options: &[
            "geometry.channels",
            "geometry.chips",
            "geometry.chips_per_package",
            "geometry.dies",
            "geometry.planes",
            "gang",
            "allocation",
        ],
        why: "the parallel units determine rates and latencies",
    },
    Rule {
        scaling: Scaling::Kept,
        options: &[
            "geometry.pages",
            "geometry.block_size",
            "geometry.page_size",
            "geometry.spare_size",
            "geometry.mapping_unit",
            "geometry.logical_page",
            "geometry.pages_per_program",
            "mapping.block_summary",
        ],
        why: "blocks, pages and map entries remain",
    },
    Rule {
        scaling: Scaling::Kept,
        options: &[
            "nand",
            "bus",
            "controller",
            "host",
            "energy",
            "gc.background.idle",
            "gc.throttle.delay",
            "slc_cache.idle",
        ],
        why: "times, rates and queues belong to the parallel units",
    },
    Rule {
        scaling: Scaling::Kept,
        options: &["buffer"],
        why: "the buffer absorbs bursts, and drains at the rate of the flash, which remains",
    },
    Rule {
        scaling: Scaling::Kept,
        options: &["gc.wear", "faults.wear_out"],
        why: "numbers of erases of a block remain: the same drive writes wear it out",
    },
    Rule {
        scaling: Scaling::Kept,
        options: &["gc.pace.burst"],
        why: "the amount and the parallel units determine how long a burst stops writes",
    },
    Rule { scaling: Scaling::Kept, options: &["durability"], why: "the share of host writes that is recorded remains" },
    Rule { scaling: Scaling::Kept, options: &["errors"], why: "errors of a page, and the time of a read, remain" },
    Rule { scaling: Scaling::Kept, options: &["faults.inject"], why: "a fault has a place, which must still exist" },
    Rule {
        scaling: Scaling::Kept,
        options: &[
            "gc.victim",
            "gc.scope",
            "gc.destination",
            "gc.frontiers",
            "gc.pace",
            "gc.background.preempt",
            "scheduler",
            "mapping.scheme",
            "slc_cache.when_full",
            "superblock",
        ],
        why: "policies remain; options of external ones are not scaled",
    },
];

/// Returns the rule of the option at `path`; `None` if there is none.
pub fn rule_of(path: &str) -> Option<&'static Rule> {
    let of_rule = |rule: &'static Rule| rule.options.iter().map(move |option| (*option, rule));
    let covering = RULES.iter().flat_map(of_rule).filter(|(option, _)| covers(option, path));
    covering.max_by_key(|(option, _)| option.len()).map(|(_, rule)| rule)
}

/// Option that scaling has changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Path of the key.
    pub path: String,
    /// Value in the unscaled device, as device files write it; `None` if it has another choice.
    pub before: Option<Value>,
    /// Value in the scaled device.
    pub after: Value,
}

impl Display for Change {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.path, plain(&self.after))?;
        self.before.iter().try_for_each(|before| write!(f, " (was {})", plain(before)))
    }
}

/// Device on fewer blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaled {
    /// The device, with sources that name the scale.
    pub device: DeviceConfig,
    /// Options that differ.
    pub changes: Vec<Change>,
    /// Effects that do not scale, in sentences.
    pub notes: Vec<String>,
}

impl Scaled {
    /// Returns the rules of the options that remain on a device with fewer blocks.
    pub fn kept() -> impl Iterator<Item = &'static Rule> {
        RULES.iter().filter(|rule| matches!(rule.scaling, Scaling::Relative | Scaling::Kept))
    }

    /// Returns the overrides that turn the unscaled device into the scaled one.
    pub fn overrides(&self) -> Vec<String> {
        self.changes.iter().map(|change| format!("{}={}", change.path, plain(&change.after))).collect()
    }
}

/// Returns a value of a device file without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl DeviceConfig {
    /// Returns the device with a share of its blocks, and all other options as `RULES` state.
    ///
    /// # Errors
    ///
    /// Too few blocks would remain. The message has the least scale.
    pub fn scaled(&self, scale: Scale) -> Result<Scaled, ConfigError> {
        let mut device = self.with_blocks(scale);
        if !device.is_large_enough() {
            let path = "geometry.blocks";
            let least = (1..=self.geometry.blocks / MIN_BLOCKS)
                .rev()
                .map(Scale::one_of)
                .find(|least| self.with_blocks(*least).is_large_enough());
            let advice = match least {
                least if least.is_none_or(Scale::is_whole) => "this device has too few blocks to be scaled".to_owned(),
                least => format!(
                    "the least scale of this device is {}",
                    least.map_or_else(String::new, |least| least.to_string())
                ),
            };
            let message = format!(
                "scale {scale}: too few of the {} blocks of each plane remain, {}: at least {MIN_BLOCKS} have to hold \
                 data, and others be free; {advice}",
                self.geometry.blocks, device.geometry.blocks
            );
            return Err(ConfigError::Refused(vec![Problem::new(path, message)]));
        }
        let changes = self.changes_to(&device);
        for change in &changes {
            let before = change.before.as_ref().map_or(String::new(), |before| format!(" from {}", plain(before)));
            let source = self.sources.get(&change.path).map_or(String::new(), |source| format!("; {source}"));
            device.sources.insert(change.path.clone(), format!("scaled by {scale}{before}{source}"));
        }
        if matches!(device.capacity, Capacity::Logical(_)) {
            device.sources.remove("capacity.spare");
        }
        let notes = self.notes_on(&device);
        Ok(Scaled { device, changes, notes })
    }

    /// Returns the device with a share of its blocks, unchecked.
    fn with_blocks(&self, scale: Scale) -> DeviceConfig {
        let mut device = self.clone();
        let all = self.geometry.blocks;
        let blocks = scale.of_blocks(all);
        if blocks == all {
            return device;
        }
        device.geometry.blocks = blocks;
        let reserve = |count: BlockCount| reserve(count, [all, blocks], scale);
        device.gc.soft_threshold = reserve(self.gc.soft_threshold);
        device.gc.hard_threshold = reserve(self.gc.hard_threshold);
        if let Some(background) = &mut device.gc.background {
            background.until = above(self.gc.soft_threshold, background.until, [all, blocks], scale);
        }
        if let Some(throttle) = &mut device.gc.throttle {
            throttle.below = above(self.gc.hard_threshold, throttle.below, [all, blocks], scale);
        }
        if let Some(cache) = &mut device.slc_cache {
            cache.blocks = reserve(cache.blocks);
        }
        if let Some(faults) = &mut device.faults
            && let BlockCount::Blocks(bad) = faults.factory_bad
        {
            faults.factory_bad = BlockCount::Blocks(scale.of_blocks(bad));
        }
        device.mapping.scheme.scale(scale);
        // The number of translation pages depends on the capacity, which is first set approximately.
        device.capacity = Capacity::Logical(Bytes(scale.of(self.logical_bytes())));
        let share = device.data_blocks().max(0.0) / self.data_blocks();
        let units = (self.logical_units() as f64 * share) as u64;
        device.capacity = Capacity::Logical(Bytes(units * self.unit_bytes()));
        device
    }

    /// Returns `true` if enough blocks hold data, and the device is valid.
    fn is_large_enough(&self) -> bool {
        self.geometry.blocks >= MIN_BLOCKS && self.data_blocks() >= f64::from(MIN_BLOCKS) && self.check().is_ok()
    }

    /// Returns the mean number of blocks of each plane whose space holds data in the steady state, valid or invalid.
    fn data_blocks(&self) -> f64 {
        let good = f64::from(self.good_blocks());
        if let Some(whole) = self.mapping.scheme.needs(self).whole_blocks {
            return good - f64::from(whole.kept) / f64::from(whole.planes);
        }
        // docs/model/gc.md: `proportional` and `burst` count the free space of open blocks. Otherwise they are half
        // full on average. Under load, free blocks are between the hard threshold and the soft one, or the block that
        // garbage collection frees at the hard threshold.
        let (soft, hard) = (f64::from(self.soft_threshold()), f64::from(self.hard_threshold()));
        let open = f64::from(self.frontiers_per_plane()) / 2.0;
        let free = match self.gc.pace {
            GcPace::Proportional | GcPace::Burst(_) => soft + 0.5,
            GcPace::Queued => (hard + soft.max(hard + 1.0)) / 2.0 + open,
            GcPace::Exclusive => soft + 0.5 + open,
        };
        good - free - f64::from(self.map_blocks()) - f64::from(self.cache_blocks())
    }

    /// Returns the options that differ in another device.
    fn changes_to(&self, other: &DeviceConfig) -> Vec<Change> {
        let before = self.figures();
        let of = |path: &str| before.iter().find(|figure| figure.path == path).map(|figure| figure.value.clone());
        let changes = other.figures().into_iter().map(|figure| {
            let before = of(&figure.path);
            Change { path: figure.path, before, after: figure.value }
        });
        let is_default = |change: &Change| {
            // A scheme with default options is its name alone, and has a key for each option if one of them differs.
            let scaling = rule_of(&change.path).map(|rule| rule.scaling);
            change.before.is_none()
                && change.path.starts_with("mapping.scheme.")
                && scaling != Some(Scaling::Proportional)
        };
        changes.filter(|change| change.before.as_ref() != Some(&change.after) && !is_default(change)).collect()
    }

    /// Returns the effects that do not scale.
    fn notes_on(&self, scaled: &DeviceConfig) -> Vec<String> {
        let Some(buffer) = &self.buffer else { return Vec::new() };
        let [before, after] = [self, scaled].map(|device| buffer.capacity.0 as f64 / device.logical_bytes() as f64);
        if after < NOTED_SHARE || after == before {
            return Vec::new();
        }
        vec![format!(
            "the buffer of {} is {:.1}% of the capacity, instead of {:.1}%: random requests hit it more often",
            buffer.capacity,
            100.0 * after,
            100.0 * before
        )]
    }
}

/// Share of the capacity in the buffer from which on its hits are noted.
const NOTED_SHARE: f64 = 0.01;

/// Returns a number of free blocks in a plane of `[before, after]` blocks. The first ones remain. A share
/// remains a share if it is enough.
fn reserve(count: BlockCount, [before, after]: [u32; 2], scale: Scale) -> BlockCount {
    let least = count.of(before).min(KEPT_BLOCKS);
    match count {
        BlockCount::Blocks(blocks) => BlockCount::Blocks(scale.of_blocks(blocks).max(least)),
        share if share.of(after) >= least => share,
        _ => BlockCount::Blocks(least),
    }
}

/// Returns a number of free blocks that is above another one. The distance scales like a reserve.
fn above(lower: BlockCount, count: BlockCount, blocks: [u32; 2], scale: Scale) -> BlockCount {
    let [before, after] = blocks;
    let margin = BlockCount::Blocks(count.of(before).saturating_sub(lower.of(before)));
    BlockCount::Blocks(reserve(lower, blocks, scale).of(after) + reserve(margin, blocks, scale).of(after))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::{from_toml, load, options};

    fn scale(text: &str) -> Scale {
        text.parse().unwrap()
    }

    /// Base of devices whose mapping scheme merges blocks.
    const SMALL: &str = "[geometry]\nchannels = 2\nchips = 1\ndies = 1\nplanes = 1\nblocks = 1024\npages = 64\n\
                         page_size = \"4KiB\"\n[capacity]\nspare = 0.4\n[nand]\nread = \"25us\"\n\
                         program = \"200us\"\nerase = \"2ms\"\n[bus]\nprotocol = { sdr = \"25ns\" }\n";

    /// Devices that have all options that scale.
    fn devices() -> Vec<DeviceConfig> {
        let of = |text: &str, overrides: &[&str]| {
            let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
            from_toml(text, "device.toml", &overrides).unwrap_or_else(|error| panic!("{overrides:?}: {error}"))
        };
        let all_blocks = [
            "capacity.logical=700GB",
            "nand.slc_mode={ read = \"20us\", program = \"200us\" }",
            "slc_cache.blocks=64",
            "gc.background={ idle = \"1ms\", until = 40 }",
            "gc.throttle={ below = 40, delay = \"10us\" }",
            "gc.soft_threshold=20",
            "gc.hard_threshold=10",
        ];
        [of("base = \"tlc-direct\"", &all_blocks), of(SMALL, &["faults.factory_bad=32"])]
            .into_iter()
            .chain(MappingConfig::EXAMPLES.iter().map(|example| of(SMALL, &[*example])))
            .collect()
    }

    #[test]
    fn each_option_has_a_rule() {
        let options = options();
        let missing: Vec<&String> = options.iter().filter(|path| rule_of(path).is_none()).collect();
        assert!(missing.is_empty(), "add these options to RULES in config/scale.rs: {missing:?}");
        for option in RULES.iter().flat_map(|rule| rule.options) {
            assert!(options.iter().any(|path| covers(option, path)), "{option} is not an option");
        }
        let all: Vec<&str> = RULES.iter().flat_map(|rule| rule.options).copied().collect();
        assert_eq!(all.len(), all.iter().collect::<BTreeSet<_>>().len(), "an option has two rules");
    }

    /// The options that scaling changes are those that scale by their rule.
    #[test]
    fn scaling_follows_the_rules() {
        let mut changed = BTreeSet::new();
        for device in devices() {
            let scaled = device.scaled(scale("1/8")).unwrap_or_else(|error| panic!("{}: {error}", device.name));
            changed.extend(scaled.changes.into_iter().map(|change| change.path));
        }
        let scales = |rule: &&Rule| !matches!(rule.scaling, Scaling::Relative | Scaling::Kept);
        for path in &changed {
            assert!(rule_of(path).as_ref().is_some_and(scales), "{path} has changed");
        }
        for option in RULES.iter().filter(scales).flat_map(|rule| rule.options) {
            assert!(changed.iter().any(|path| covers(option, path)), "{option} has not changed");
        }
    }

    #[test]
    fn overrides_make_the_scaled_device() {
        let mut cases: Vec<(&str, Option<&str>)> =
            ["tlc-direct", "hu2011", "agrawal2008", "bench-1t"].map(|name| (name, None)).to_vec();
        cases.extend(MappingConfig::EXAMPLES.iter().map(|example| (SMALL, Some(*example))));
        cases.extend(MappingConfig::DEFAULTS.iter().map(|scheme| (SMALL, Some(*scheme))));
        for (name, option) in cases {
            let load = |more: Vec<String>| {
                let overrides: Vec<String> = option.map(str::to_owned).into_iter().chain(more).collect();
                let text = if name == SMALL { SMALL.to_owned() } else { format!("base = \"{name}\"") };
                from_toml(&text, "device.toml", &overrides).unwrap_or_else(|error| panic!("{overrides:?}: {error}"))
            };
            let scaled = load(Vec::new()).scaled(scale("1/8")).unwrap();
            let loaded = load(scaled.overrides());
            assert_eq!(loaded.digest(), scaled.device.digest(), "{name} {option:?}");
            let file = toml::to_string(&scaled.device.resolved()).unwrap();
            assert_eq!(from_toml(&file, "scaled.toml", &[]).unwrap().digest(), loaded.digest(), "{name}");
        }
    }

    #[test]
    fn a_whole_device_does_not_change() {
        for device in devices() {
            let scaled = device.scaled(scale("1/1")).unwrap();
            assert_eq!((scaled.device.digest(), scaled.changes), (device.digest(), Vec::new()));
        }
    }

    /// The capacity scales with the blocks that hold data: as calculated by hand in docs/own-drive.md.
    #[test]
    fn the_capacity_scales_with_the_blocks_that_hold_data() {
        let device = load("tlc-direct", &[]).unwrap();
        let scaled = device.scaled(scale("1/16")).unwrap().device;
        assert_eq!(scaled.geometry.blocks, 57);
        let expected = device.logical_bytes() as f64 * (57.0 - 3.5) / (910.0 - 3.5);
        assert!((scaled.logical_bytes() as f64 / expected - 1.0).abs() < 1e-6);
        assert!(scaled.spare() > device.spare() + 0.02, "the reserve does not shrink");
    }

    #[test]
    fn too_few_blocks_are_refused_with_the_least_scale() {
        let device = load("tlc-direct", &[]).unwrap();
        let error = device.scaled(scale("1/500")).unwrap_err().to_string();
        let least = error.rsplit(' ').next().unwrap();
        device.scaled(scale(least)).unwrap_or_else(|error| panic!("{least}: {error}"));
        let below = format!("1/{}", least[2..].parse::<u32>().unwrap() + 1);
        assert!(device.scaled(scale(&below)).is_err(), "{below}");
        let tiny = load("tiny", &["geometry.blocks=16", "capacity.spare=0.5"].map(str::to_owned)).unwrap();
        let error = tiny.scaled(scale("1/2")).unwrap_err().to_string();
        assert!(error.ends_with("this device has too few blocks to be scaled"), "{error}");
    }

    #[test]
    fn other_fractions_are_refused() {
        for text in ["16", "0.5", "2/1", "0/4", "1/0", "1/x", "1/-2", ""] {
            let error = text.parse::<Scale>().unwrap_err();
            assert_eq!(error, format!("invalid scale `{text}`: expected a fraction of at most 1, such as 1/16"));
        }
        assert_eq!(scale(" 3 / 4 ").to_string(), "3/4");
    }

    #[test]
    fn a_large_buffer_is_noted() {
        let device = load("tlc-direct", &["buffer.capacity=1GiB".to_owned()]).unwrap();
        let scaled = device.scaled(scale("1/16")).unwrap();
        assert!(
            scaled.notes[0].starts_with("the buffer of 1GiB is 1.8% of the capacity, instead of 0.1%"),
            "{:?}",
            scaled.notes
        );
        assert!(load("tlc-direct", &[]).unwrap().scaled(scale("1/16")).unwrap().notes.is_empty());
    }
}
