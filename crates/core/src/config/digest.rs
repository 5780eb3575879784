//! A name for what a device does.

use serde_json::Value;

use super::DeviceConfig;

impl DeviceConfig {
    /// 128 bits as hexadecimal digits that are equal for equal devices: of the resolved figures, whatever name,
    /// description, sources, base or overrides they came with, the same on every machine (XXH3).
    pub fn digest(&self) -> String {
        format!("{:032x}", xxhash_rust::xxh3::xxh3_128(self.canonical_json().as_bytes()))
    }

    /// The resolved figures as JSON without spaces, keys in alphabetical order.
    fn canonical_json(&self) -> String {
        // A default that follows from other figures is the same device as that figure written down.
        let mut json = serde_json::to_value(self.resolved()).unwrap_or_default();
        if let Some(keys) = json.as_object_mut() {
            for key in ["name", "description", "sources"] {
                keys.remove(key);
            }
        }
        sort(&mut json);
        json.to_string()
    }
}

pub(super) fn sort(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(sort);
            map.sort_keys();
        }
        Value::Array(items) => items.iter_mut().for_each(sort),
        _ => {}
    }
}
