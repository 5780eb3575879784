//! Differences between a device and the built-in device that it is based on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::{self, DeviceConfig};

/// Differences from a built-in device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// Built-in device that the device is, or is based on.
    pub base: String,
    /// Values that differ, in the order of `config`.
    pub figures: Vec<Change>,
}

/// Value that differs from that of the built-in device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Path of the key, such as `gc.soft_threshold`.
    pub path: String,
    /// Value in the device; null if the device has no such key.
    pub value: Value,
    /// Value in the built-in device; null if that has no such key.
    pub base: Value,
}

impl Changes {
    /// Returns the changes from the built-in device `base`, or `None` if there is no such device.
    pub(super) fn new(base: String, device: &DeviceConfig) -> Option<Changes> {
        config::Builtin::named(&base)?;
        let built_in = config::load(&base, &[]).ok()?;
        let (figures, base_figures) = (device.figures(), built_in.figures());
        let mut changed = Vec::new();
        for figure in &figures {
            let before = base_figures.iter().find(|before| before.path == figure.path);
            let before = before.map_or(Value::Null, |before| before.value.clone());
            if before != figure.value {
                changed.push(Change { path: figure.path.clone(), value: figure.value.clone(), base: before });
            }
        }
        for before in base_figures.into_iter().filter(|before| !figures.iter().any(|f| f.path == before.path)) {
            changed.push(Change { path: before.path, value: Value::Null, base: before.value });
        }
        Some(Changes { base, figures: changed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_the_differing_values() {
        let of = |overrides: &[&str]| {
            let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
            Changes::new("tiny".to_owned(), &config::load("tiny", &overrides).unwrap()).unwrap().figures
        };
        assert_eq!(of(&[]), []);
        let victim = Change { path: "gc.victim".to_owned(), value: "fifo".into(), base: "greedy".into() };
        assert_eq!(of(&["gc.victim=fifo"]), [victim]);
        // A policy with options has the keys of its options instead of its name.
        let paths: Vec<String> = of(&["gc.victim.d-choices.d=4"]).into_iter().map(|change| change.path).collect();
        assert_eq!(paths, ["gc.victim.d-choices.d", "gc.victim"]);
        let tiny = config::load("tiny", &[]).unwrap();
        assert_eq!(Changes::new("no-such-device".to_owned(), &tiny), None);
    }
}
