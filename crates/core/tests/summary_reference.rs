//! The reference of results in `docs/reference` matches the code. `FLOATGATE_BLESS=1` writes it again.

#[path = "../../workload/tests/common/page.rs"]
mod page;

use floatgate_core::config::Listing;
use floatgate_core::lifetime::Lifetime;
use floatgate_core::metrics::summary::Summary;
use page::{check, page};

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
