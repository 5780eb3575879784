//! report.html: what a result says, on one page.

mod amplification;
mod attribution;
mod bottleneck;
mod configuration;
mod head;
mod latency;
mod over_time;
mod requests;
mod utilization;
mod wear;

pub(crate) use attribution::{bars as attribution_bars, groups as attribution_groups, label as bar_label};
pub(crate) use configuration::shown;
pub(crate) use latency::{Curve, curves};
pub use over_time::SeriesPoint;

use floatgate_core::metrics::summary::Summary;
use serde_json::Value;

use crate::page::Page;

/// The report of a result as one HTML file. `series` is how it went over time; empty where that is not known.
pub fn report(summary: &Summary, series: &[SeriesPoint]) -> String {
    // Parts of a result that not every version has are looked up by name, and left out where they are not there.
    let json = serde_json::to_value(summary).unwrap_or(Value::Null);
    let mut page = Page::default();
    head::key_figures(&mut page, summary);
    latency::section(&mut page, summary);
    attribution::section(&mut page, &json["attribution"]);
    over_time::section(&mut page, series);
    amplification::section(&mut page, summary);
    requests::section(&mut page, summary);
    utilization::section(&mut page, summary);
    bottleneck::section(&mut page, &json["bottleneck"]);
    wear::section(&mut page, summary);
    configuration::section(&mut page, summary);
    configuration::reproduce(&mut page, summary);
    page.finish(&head::title(summary), &head::head(summary))
}
