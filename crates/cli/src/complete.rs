//! Completion of values on the command line: devices, paths of options with their values, formats and states.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use clap_complete::CompletionCandidate;
use clap_complete::engine::{PathCompleter, ValueCompleter};
use floatgate_core::device_file::{DeviceConfig, Listing};
use floatgate_workload::trace::FORMATS;
use serde_json::Value;

/// States that `--precondition` names.
const STATES: [(&str, &str); 5] = [
    ("fill", "all data written in order"),
    ("steady", "overwritten at random until write amplification is stable"),
    ("none", "a new device"),
    ("aged=", "filled, with this share of each block invalid"),
    ("invalid=", "empty, with this share of the pages written and invalid"),
];

/// Starts of workloads.
const WORKLOADS: [(&str, &str); 4] = [
    ("rw=randread ", "random reads, such as 'rw=randread bs=4k iodepth=32 number_ios=100k'"),
    ("rw=randwrite ", "random writes"),
    ("rw=randrw ", "random reads and writes"),
    ("trace=", "a trace with options, such as 'trace=PATH limit=1000'"),
];

/// Maximum depth of tables in a device file, because a schema can refer to itself.
const DEPTH: usize = 8;

/// Returns the candidates that start with the current text.
fn starting<'a>(current: &OsStr, all: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let candidates = all.into_iter().filter(|(value, _)| value.starts_with(&*current));
    candidates.map(|(value, help)| CompletionCandidate::new(value).help(Some(help.to_owned().into()))).collect()
}

/// Completes a built-in device, or the path of a device file.
pub fn devices(current: &OsStr) -> Vec<CompletionCandidate> {
    let listing = Listing::new().map(|listing| listing.devices).unwrap_or_default();
    let named = listing.iter().map(|device| (device.name.as_str(), device.description.as_str()));
    with_files(starting(current, named), current)
}

/// Completes a state before a run: its name, or the path of a trace.
pub fn preconditions(current: &OsStr) -> Vec<CompletionCandidate> {
    with_files(starting(current, STATES), current)
}

/// Completes a workload: the start of a job, or the path of a trace or a job file.
pub fn workloads(current: &OsStr) -> Vec<CompletionCandidate> {
    with_files(starting(current, WORKLOADS), current)
}

/// Completes a format of traces.
pub fn formats(current: &OsStr) -> Vec<CompletionCandidate> {
    let formats = FORMATS.iter().map(|format| (format.name, format.title)).filter(|(name, _)| *name != "delimited");
    starting(current, formats.chain([("delimited:", "columns of any other text")]))
}

fn with_files(mut candidates: Vec<CompletionCandidate>, current: &OsStr) -> Vec<CompletionCandidate> {
    candidates.extend(PathCompleter::any().complete(current));
    candidates
}

/// Completes `PATH=VALUE`: the path of an option, and then its value if it has named values.
pub fn overrides(current: &OsStr) -> Vec<CompletionCandidate> {
    let options = options(&DeviceConfig::json_schema(&[]));
    let text = current.to_string_lossy();
    if let Some((path, _)) = text.split_once('=') {
        let values = options.get(path).map(|option| option.values.as_slice()).unwrap_or_default();
        let values: Vec<String> = values.iter().map(|value| format!("{path}={value}")).collect();
        return starting(current, values.iter().map(|value| (value.as_str(), "")));
    }
    let paths: Vec<(String, &str)> =
        options.iter().map(|(path, option)| (format!("{path}="), option.help.as_str())).collect();
    starting(current, paths.iter().map(|(path, help)| (path.as_str(), *help)))
}

/// Option of a device.
#[derive(Debug, Default)]
struct Described {
    /// First sentence of its description.
    help: String,
    /// Values that have names.
    values: Vec<String>,
}

/// Returns the options of devices by path, from the schema of device files.
fn options(schema: &Value) -> BTreeMap<String, Described> {
    let mut found = BTreeMap::new();
    collect(schema, schema, "", DEPTH, &mut found);
    found
}

/// Adds the options of a part of a schema.
fn collect(root: &Value, part: &Value, path: &str, depth: usize, found: &mut BTreeMap<String, Described>) {
    let part = match part["$ref"].as_str().and_then(|name| root.pointer(name.trim_start_matches('#'))) {
        Some(named) => named,
        None => part,
    };
    if depth == 0 {
        return;
    }
    for (key, inner) in part["properties"].as_object().into_iter().flatten() {
        let inner_path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let help = inner["description"].as_str().unwrap_or_default();
        let help = help.split(". ").next().unwrap_or_default().to_owned();
        found.entry(inner_path.clone()).or_insert_with(|| Described { help, values: Vec::new() });
        collect(root, inner, &inner_path, depth - 1, found);
    }
    for alternative in ["anyOf", "oneOf", "allOf"].iter().flat_map(|key| part[*key].as_array()).flatten() {
        collect(root, alternative, path, depth - 1, found);
    }
    let Some(option) = found.get_mut(path) else { return };
    let names = part["enum"].as_array().into_iter().flatten().chain(part.get("const"));
    let names = names.filter_map(Value::as_str).map(str::to_owned);
    let truths = (part["type"] == "boolean").then_some(["true", "false"]).into_iter().flatten().map(str::to_owned);
    for value in names.chain(truths) {
        if !option.values.contains(&value) {
            option.values.push(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(candidates: &[CompletionCandidate]) -> Vec<String> {
        candidates.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn paths_and_values_of_options_are_complete() {
        let complete = |text: &str| values(&overrides(OsStr::new(text)));
        assert!(complete("geometry.ch").contains(&"geometry.channels=".to_owned()));
        assert_eq!(complete("gc.victim=gre"), ["gc.victim=greedy"]);
        assert!(complete("gc.victim=").len() > 3);
        assert!(complete("no.such.path=").is_empty());
    }

    #[test]
    fn devices_states_and_formats_are_complete() {
        assert!(values(&devices(OsStr::new("hu2"))).contains(&"hu2011".to_owned()));
        assert!(values(&preconditions(OsStr::new("st"))).contains(&"steady".to_owned()));
        assert!(values(&formats(OsStr::new("ms"))).contains(&"msr".to_owned()));
    }
}
