//! Digest of a device.

use serde_json::Value;

use super::DeviceConfig;

impl DeviceConfig {
    /// Returns a digest of the device: 128 bits as hexadecimal digits (XXH3), the same on every machine. Devices with
    /// equal resolved values have equal digests, regardless of name, description, sources, base and overrides.
    pub fn digest(&self) -> String {
        format!("{:032x}", xxhash_rust::xxh3::xxh3_128(self.canonical_json().as_bytes()))
    }

    /// Returns the resolved values as JSON without spaces, with keys in alphabetical order.
    fn canonical_json(&self) -> String {
        // A default that follows from other values is the same as that value written out.
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
