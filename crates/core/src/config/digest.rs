//! Digest of a device.

use serde_json::Value;

use super::DeviceConfig;

impl DeviceConfig {
    /// Returns a digest of the device: 128 bits as hexadecimal digits (XXH3), the same on every machine. Devices with
    /// equal resolved values have equal digests, regardless of name, description, sources, base and overrides.
    pub fn digest(&self) -> String {
        // A default that follows from other values is the same as that value written out.
        DeviceConfig::digest_of(serde_json::to_value(self.resolved()).unwrap_or_default())
    }

    /// Returns the digest of the values of a file, without its name, description and sources. The order of keys does
    /// not matter.
    pub fn digest_of(mut file: Value) -> String {
        if let Some(keys) = file.as_object_mut() {
            for key in ["name", "description", "sources"] {
                keys.remove(key);
            }
        }
        sort(&mut file);
        format!("{:032x}", xxhash_rust::xxh3::xxh3_128(file.to_string().as_bytes()))
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
