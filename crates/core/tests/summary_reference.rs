//! The reference of results in `docs/reference` matches the code. `FLOATGATE_BLESS=1` writes it again.

#[path = "../../workload/tests/common/page.rs"]
mod page;

use std::collections::BTreeSet;
use std::fmt::Write;

use floatgate_core::device_file::Listing;
use floatgate_core::endurance::Lifetime;
use floatgate_core::internals::{BufferCounts, Count};
use floatgate_core::results::{Counters, StatisticKind as Kind, Statistics, Value};
use floatgate_core::sim::request::Operation;
use floatgate_core::summary::Summary;
use page::{check, page};

use crate::common::history::summary_of;
use crate::common::{Load, device, units};

#[test]
fn the_schema_of_results_is_up_to_date() {
    let schema = serde_json::to_string_pretty(&Summary::json_schema()).unwrap() + "\n";
    check("summary.schema.json", &schema);
}

#[test]
fn the_page_on_results_is_up_to_date() {
    check("summary.md", &page(SUMMARY, &Summary::json_schema()));
}

#[test]
fn the_reference_of_lifetimes_is_up_to_date() {
    let schema = serde_json::to_value(schemars::schema_for!(Lifetime)).unwrap();
    check("lifetime.schema.json", &(serde_json::to_string_pretty(&schema).unwrap() + "\n"));
    check("lifetime.md", &page(LIFETIME, &schema));
}

#[test]
fn the_reference_of_the_list_of_devices_is_up_to_date() {
    let schema = serde_json::to_value(schemars::schema_for!(Listing)).unwrap();
    check("devices.schema.json", &(serde_json::to_string_pretty(&schema).unwrap() + "\n"));
    check("devices.md", &page(DEVICES, &schema));
}

#[test]
fn the_page_on_statistics_is_up_to_date() {
    let mut page = STATISTICS.to_owned();
    for (statistic, value) in Statistics::default().list() {
        let (kind, column) = (statistic.kind, statistic.column.unwrap_or_default());
        let columns = match &value {
            Value::Each(_, names) => {
                names.iter().map(|name| format!("`{column}_{name}`")).collect::<Vec<_>>().join(", ")
            }
            _ if column.is_empty() => String::new(),
            _ => format!("`{column}`"),
        };
        let metric = statistic.metric.map_or(String::new(), |name| format!("`{name}`"));
        let kind = if kind == Kind::Counter { "counter" } else { "gauge" };
        let type_of = if matches!(value, Value::Number(_)) { "number" } else { "integer" };
        writeln!(page, "| {columns} | {metric} | {kind} | {type_of} | {} |", statistic.meaning).unwrap();
    }
    check("statistics.md", &page);
}

/// Counters that no result shows. Tests and policies use them.
const INTERNAL: [&str; 8] = [
    "map.reads[4]",
    "map.programs[4]",
    "map.units_invalidated",
    "units_invalidated",
    "slot_reads",
    "open_units_at_choice",
    "faults.blocks_grown_bad",
    "buffer.writes_back",
];

#[test]
fn every_counter_is_in_results() {
    // Together, the devices have all parts of a result that depend on the device.
    let devices: [&[&str]; 5] = [
        &["mapping.scheme.dftl.cache=4KiB", "capacity.spare=0.3", "buffer.capacity=1MiB"],
        &[
            "gc.background.idle=1ms",
            "gc.background.until=8",
            "faults.erase_rate=1e-9",
            "errors={}",
            "mapping.block_summary.last_page=64B",
        ],
        &["mapping.scheme.last.stripe.cold=4", "geometry.pages=16"],
        &[
            "nand.cell=mlc",
            "nand.slc_mode={ read = \"20us\", program = \"75us\" }",
            "energy={ erase = \"1uJ\", slc_read = \"1uJ\", slc_program = \"1uJ\" }",
        ],
        &["nand.cell=mlc", "nand.slc_mode={ read = \"20us\", program = \"75us\" }", "slc_cache.blocks=4"],
    ];
    let named = |of: serde_json::Result<serde_json::Value>| names("", &of.unwrap());
    let (counters, buffer) =
        (named(serde_json::to_value(Counters::default())), named(serde_json::to_value(BufferCounts::default())));
    let all = [counters.clone(), buffer.iter().map(|name| format!("buffer.{name}")).collect()].concat();
    let mut missing: BTreeSet<&str> = all.iter().map(String::as_str).filter(|name| !INTERNAL.contains(name)).collect();
    for overrides in devices {
        let mut device = device(overrides);
        let request = units(&device, Operation::Read, 0, 1);
        let mut outcome = Load::closed(1, 1, move || request).run(&mut device);
        let mut result = |values: &[u64]| {
            outcome.counters = Counters::of_values(&values[..counters.len()]);
            outcome.controller.buffer = BufferCounts::of_values(&values[counters.len()..]);
            serde_json::to_value(summary_of(&outcome, &device)).unwrap()
        };
        let mut values: Vec<u64> = (0..all.len() as u64).map(|index| 10_000 - index).collect();
        let before = result(&values);
        for (index, name) in all.iter().enumerate() {
            values[index] += 1;
            if result(&values) != before {
                missing.remove(name.as_str());
            }
            values[index] -= 1;
        }
    }
    assert!(missing.is_empty(), "no result shows {missing:?}: add a field to a section of the summary");
}

/// Returns the names of all counters, in the order of [`Count::values`].
fn names(name: &str, counters: &serde_json::Value) -> Vec<String> {
    match counters {
        serde_json::Value::Object(fields) => {
            let separator = if name.is_empty() { "" } else { "." };
            fields.iter().flat_map(|(field, of)| names(&format!("{name}{separator}{field}"), of)).collect()
        }
        serde_json::Value::Array(counts) => (0..counts.len()).map(|index| format!("{name}[{index}]")).collect(),
        _ => vec![name.to_owned()],
    }
}

const STATISTICS: &str = "# Statistics of a device\n\n\
    Each statistic has a column in [series.parquet](series.md), or a key in the `flash` of a [frame](control.md#frame) of a\n\
    live device, or both. With the name of its key, it is a [metric](control.md#metrics): `floatgate_KEY`, with `_total` if\n\
    it is a counter. Counters are those of a window in the series, and those since the first request in frames and\n\
    metrics. Gauges are undefined (null) as their meaning says. [Results](summary.md) have the numbers of a whole run.\n\n\
    | column | key | kind | type | meaning |\n|---|---|---|---|---|\n";

const DEVICES: &str = "# List of devices\n\n\
    `floatgate device list --json` prints this. Its JSON schema is [devices.schema.json](devices.schema.json).\n\
    [config.md](config.md) describes device files.\n\n";

const LIFETIME: &str = "# Lifetimes\n\n\
    `floatgate run ... --until EVENT --json` prints this, and `--out DIR` writes it to `DIR/lifetime.json`. The file has\n\
    `schema`, `version` and `arguments`, the result of each seed in `runs`, and two statistics over the seeds:\n\
    `written_bytes` and `first_expiry_bytes`, each with `n`, `mean`, `deviation` and `half_width` of the 95 %\n\
    confidence interval of the mean. The keys below are those of one of the `runs`. Their JSON schema is\n\
    [lifetime.schema.json](lifetime.schema.json). [wear.md](../model/wear.md) describes lifetimes. A type with `?` may\n\
    be null.\n\n";

const SUMMARY: &str = "# Results\n\n\
    `floatgate run ... --json` prints this, and `--out DIR` writes it to `DIR/summary.json`. The JSON schema is\n\
    [summary.schema.json](summary.schema.json). With `--requests csv`, every request is written to another file:\n\
    [requests.md](requests.md). A type with `?` may be null.\n\n";
