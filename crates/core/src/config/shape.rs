//! Shape of a device: the options that affect saved states. A device can load the states of devices with the same
//! shape.

use serde_json::{Map, Value, json};

use super::path::covers;
use super::{BlockSummary, DeviceConfig};
use crate::state::Difference;

/// Options that do not affect saved states: they set times, or how the host is served. All other options do.
/// `crates/core/tests/state.rs` shows for each that the state is the same, byte for byte.
const SHAPELESS: &[&str] = &[
    "name",
    "version",
    "description",
    "sources",
    "geometry.chips_per_package",
    "geometry.spare_size",
    "nand.cell",
    "nand.read",
    "nand.program",
    "nand.erase",
    "nand.endurance",
    "nand.slc_mode",
    "nand.concurrency",
    "nand.advanced.copy_back",
    "nand.advanced.multi_plane_read",
    "nand.advanced.multi_plane_erase",
    "nand.advanced.interleave",
    "nand.advanced.cache_read",
    "nand.advanced.cache_program",
    "nand.advanced.suspend",
    "nand.advanced.copy_back_modify",
    "bus",
    "scheduler",
    "controller",
    "buffer",
    "host",
    "energy",
    "errors",
    "gc.background",
    "gc.throttle",
];

/// Options that affect the contents of flash. All other options that affect saved states select policies.
const MEDIA: &[&str] =
    &["geometry", "gang", "capacity", "nand", "mapping.block_summary", "faults", "slc_cache.blocks", "superblock"];

/// Options that affect saved states.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Options that affect the contents of flash.
    pub media: Value,
    /// Options that affect the state of policies.
    pub policy: Value,
}

impl Shape {
    /// Returns the digests of both, each of 128 bits as hexadecimal digits (XXH3).
    pub fn digests(&self) -> [String; 2] {
        [&self.media, &self.policy]
            .map(|value| format!("{:032x}", xxhash_rust::xxh3::xxh3_128(value.to_string().as_bytes())))
    }

    /// Returns the options that differ from those of `requested`.
    pub fn differences(&self, requested: &Shape) -> Vec<Difference> {
        let mut found = Vec::new();
        compare(&self.media, &requested.media, "", &mut found);
        compare(&self.policy, &requested.policy, "", &mut found);
        found
    }
}

impl DeviceConfig {
    /// Returns the options that affect a state of this device: see docs/reference/state.md.
    pub fn shape(&self) -> Shape {
        let mut figures = serde_json::to_value(self.resolved()).unwrap_or_default();
        // Options that can be written in several ways are compared by their effective values.
        if let Some(figures) = figures.as_object_mut() {
            figures.insert("capacity".to_owned(), json!({ "logical": self.logical_bytes() }));
        }
        figures["gc"]["soft_threshold"] = self.gc.soft_threshold.of(self.geometry.blocks).into();
        if self.slc_cache.is_some() {
            figures["slc_cache"]["blocks"] = self.cache_blocks().into();
        }
        figures["mapping"]["block_summary"] = (self.mapping.block_summary != BlockSummary::None).into();
        if self.packages_per_page() == 1 {
            // Other gangs do not change the addresses of data.
            figures.as_object_mut().map(|figures| figures.remove("gang"));
        }
        let mut shape = Shape { media: Value::Object(Map::new()), policy: Value::Object(Map::new()) };
        sort_out(&figures, "", &mut shape);
        if self.planes_together() > 1 {
            // Other levels do not change the addresses of data.
            shape.media["nand.concurrency"] = figures["nand"]["concurrency"].clone();
        }
        if !self.map_cells().is_native() || self.slc_cache.is_some() {
            // The number of pages of a block in SLC mode depends on the bits per cell.
            shape.media["nand.cell"] = figures["nand"]["cell"].clone();
        }
        shape
    }

    /// Returns a digest of all options that affect saved states. The same writes bring devices with equal digests into
    /// the same state.
    pub fn state_digest(&self) -> String {
        let [media, policy] = self.shape().digests();
        format!("{:032x}", xxhash_rust::xxh3::xxh3_128(format!("{media} {policy}").as_bytes()))
    }
}

/// Returns `true` if the option `path` affects saved states.
pub fn shapes_state(path: &str) -> bool {
    !SHAPELESS.iter().any(|of| covers(of, path))
}

/// Returns `true` for tables whose keys are compared one by one. Other tables are policies with their options.
fn is_opened(path: &str) -> bool {
    ["geometry", "capacity", "nand", "nand.advanced", "mapping", "gc", "slc_cache"].contains(&path)
}

/// Adds the options that affect saved states to their part of `shape`, in alphabetical order.
fn sort_out(value: &Value, path: &str, shape: &mut Shape) {
    if SHAPELESS.contains(&path) {
        return;
    }
    match value {
        Value::Object(map) if path.is_empty() || is_opened(path) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            for key in keys {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                sort_out(&map[key], &below, shape);
            }
        }
        _ => {
            let media = MEDIA.iter().any(|of| covers(of, path));
            let of = if media { &mut shape.media } else { &mut shape.policy };
            of[path] = sorted(value);
        }
    }
}

fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    super::digest::sort(&mut value);
    value
}

/// Adds the differences. Options of a policy are listed one by one if both devices have that policy.
fn compare(saved: &Value, requested: &Value, path: &str, found: &mut Vec<Difference>) {
    match (saved, requested) {
        _ if saved == requested => {}
        (Value::Object(a), Value::Object(b)) if path.is_empty() || a.keys().eq(b.keys()) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null), &below, found);
            }
        }
        _ => found.push(Difference { path: path.to_owned(), saved: shown(saved), requested: shown(requested) }),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "not given".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
