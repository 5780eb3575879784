//! The reference of results in `docs/reference` matches the code. `FLOATGATE_BLESS=1` writes it again.

#[path = "../../workload/tests/common/page.rs"]
mod page;

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

const SUMMARY: &str = "# Results\n\n\
    `floatgate run ... --json` prints this, and `--out DIR` writes it to `DIR/summary.json`. The JSON schema is\n\
    [summary.schema.json](summary.schema.json). With `--requests csv`, every request is written to another file:\n\
    [requests.md](requests.md).\n\n";
