//! List of the values of a device: each key with its value and its source.

use serde_json::Value;

use super::path::{ABOUT, covers, join};
use super::units::{Bytes, Duration};
use super::{BusProtocol, DeviceConfig, page};

/// Key of a device, with its value and its source.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure<'a> {
    /// Path of the key, such as `gc.soft_threshold`.
    pub path: String,
    /// Value, as device files write it.
    pub value: Value,
    /// Source of the value; `None` for a default, or if the file names no source.
    pub source: Option<&'a str>,
}

impl DeviceConfig {
    /// Returns the device with the defaults that follow from other values filled in.
    pub fn resolved(&self) -> DeviceConfig {
        let mut resolved = self.clone();
        resolved.geometry.mapping_unit = Some(Bytes(self.unit_bytes() / u64::from(self.packages_per_page())));
        resolved.nand.endurance = Some(self.endurance());
        resolved.bus.command_cycle = Some(Duration(self.command_time(1).ps()));
        if let BusProtocol::Sdr(cycle) = &mut resolved.bus.protocol {
            // The cycle of the protocol is that of writes, and `read_cycle` remains if it differs.
            let read = self.bus.read_cycle.unwrap_or(*cycle);
            *cycle = resolved.bus.write_cycle.take().unwrap_or(*cycle);
            resolved.bus.read_cycle = Some(read).filter(|read| read != cycle);
        }
        // Here, a value equal to the default is removed instead. Thus a device has one form, and older digests stay
        // valid.
        resolved.bus.channel_switch_read = self.bus.channel_switch_read.filter(|time| *time != self.bus.channel_switch);
        resolved
    }

    /// Returns all values of the resolved device in the order of the reference, without name and description.
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let json = serde_json::to_value(self.resolved()).unwrap_or_default();
        let mut figures = Vec::new();
        for (key, value) in json.as_object().into_iter().flatten() {
            if !ABOUT.contains(&key.as_str()) {
                collect(value, key, &mut figures);
            }
        }
        let source = |path: &str| self.sources.get(path).map(String::as_str);
        figures.into_iter().map(|(path, value)| Figure { source: source(&path), path, value }).collect()
    }

    /// Gives each key that was written its own source, and drops the sources of tables. The source of a table would
    /// seem to be that of its defaults, too.
    pub(super) fn spread_sources(&mut self, written: &[String]) {
        let given = std::mem::take(&mut self.sources);
        // The longest key that covers a path is the nearest.
        let source = |path: &str| given.iter().filter(|(key, _)| covers(key, path)).max_by_key(|(key, _)| key.len());
        let figures: Vec<String> = self.figures().into_iter().map(|figure| figure.path).collect();
        for path in written {
            // A policy with default options is stored as its name, which may be shorter than the path that was written.
            let resolved = page::resolved(path);
            let figure = figures.iter().find(|figure| covers(figure, resolved) || covers(resolved, figure));
            if let (Some(figure), Some((_, source))) = (figure, source(path)) {
                self.sources.insert(figure.clone(), source.clone());
            }
        }
    }
}

fn collect(value: &Value, path: &str, figures: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().for_each(|(key, value)| collect(value, &join(path, key), figures));
        }
        _ => figures.push((path.to_owned(), value.clone())),
    }
}
