//! What of a device shapes the state that it comes into: two devices that are alike in it may have each other's.

use serde_json::{Map, Value, json};

use super::path::covers;
use super::{BlockSummary, DeviceConfig};
use crate::state::Difference;

/// Options that shape no state: they say how long something takes, or how the host is served. Others do.
/// `crates/core/tests/state.rs` shows of each that the state is the same to the byte.
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
    "bus",
    "scheduler",
    "controller",
    "buffer",
    "host",
];

/// What of the rest shapes what is in flash; the other options choose the policies that go on with it.
const MEDIA: &[&str] = &["geometry", "capacity", "nand", "mapping.block_summary", "faults"];

/// The options that shape a state.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Those that shape what is in flash.
    pub media: Value,
    /// Those that shape what the policies know.
    pub policy: Value,
}

impl Shape {
    /// The digests of both: 128 bits as hexadecimal digits (XXH3).
    pub fn digests(&self) -> [String; 2] {
        [&self.media, &self.policy]
            .map(|value| format!("{:032x}", xxhash_rust::xxh3::xxh3_128(value.to_string().as_bytes())))
    }

    /// What is not as in `requested`.
    pub fn differences(&self, requested: &Shape) -> Vec<Difference> {
        let mut found = Vec::new();
        compare(&self.media, &requested.media, "", &mut found);
        compare(&self.policy, &requested.policy, "", &mut found);
        found
    }
}

impl DeviceConfig {
    /// The options that shape a state of this device: see docs/reference/state.md.
    pub fn shape(&self) -> Shape {
        let mut figures = serde_json::to_value(self.resolved()).unwrap_or_default();
        // What can be written in several ways, as what it comes to.
        if let Some(figures) = figures.as_object_mut() {
            figures.insert("capacity".to_owned(), json!({ "logical": self.logical_bytes() }));
        }
        figures["gc"]["soft_threshold"] = self.gc.soft_threshold.of(self.geometry.blocks).into();
        figures["mapping"]["block_summary"] = (self.mapping.block_summary != BlockSummary::None).into();
        let mut shape = Shape { media: Value::Object(Map::new()), policy: Value::Object(Map::new()) };
        sort_out(&figures, "", &mut shape);
        if !self.map_cells().is_native() {
            // How many pages a block in SLC mode has.
            shape.media["nand.cell"] = figures["nand"]["cell"].clone();
        }
        shape
    }

    /// A name for all options that shape a state: devices with the same come into the same state by the same writes.
    pub fn state_digest(&self) -> String {
        let [media, policy] = self.shape().digests();
        format!("{:032x}", xxhash_rust::xxh3::xxh3_128(format!("{media} {policy}").as_bytes()))
    }
}

/// Whether the option `path` shapes the state that a device comes into.
pub fn shapes_state(path: &str) -> bool {
    !SHAPELESS.iter().any(|of| covers(of, path))
}

/// Tables that are no policy with its options, and are looked into.
fn is_opened(path: &str) -> bool {
    ["geometry", "capacity", "nand", "nand.advanced", "mapping", "gc"].contains(&path)
}

/// Puts what shapes a state where it belongs, in alphabetical order.
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

/// Adds what differs: an option of a policy by itself where both have that policy.
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
