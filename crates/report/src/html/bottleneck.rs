//! Bottleneck section: the bounds of the resources, and how close the run came to each of them (Williams et al. 2009,
//! "Roofline").

use floatgate_core::summary::{Bound, Summary};
use maud::html;
use serde_json::json;

use crate::figure::{Figure, Style, axis, plain, trace};
use crate::number::{or_dash, percent, time};
use crate::page::Page;
use crate::words;

/// Adds the section, unless the device received no requests.
pub fn section(page: &mut Page, summary: &Summary) {
    let bottleneck = &summary.bottleneck;
    let Some(limited_by) = &bottleneck.limited_by else { return };
    let reclaim = words::reclaim(summary.config.merges_blocks());
    page.section("bottleneck", "Bottleneck");
    page.add(&html! {
        @if limited_by == "load" {
            p { "No resource was busy for half of the time: " b { "the load" } " limits the throughput." }
        } @else {
            p { "The throughput is limited by: " b { (if limited_by == "gc" { reclaim.to_owned() } else { words::resource(limited_by) }) } "." }
        }
        table.stack {
            tr {
                th.text { "resource" } th { "units" } th { "busy, each" } th { "of that, " (reclaim) }
                th { "bound, IOPS" } th { "reached" }
            }
            @for resource in &bottleneck.resources {
                tr {
                    td { (words::resource(&resource.resource)) }
                    td data-name="units" { (resource.units) }
                    td data-name="busy, each" { (time(resource.demand_s * 1e6)) }
                    td data-name={ "of that, " (reclaim) } { (percent(Some(resource.gc))) }
                    td data-name="bound, IOPS" { (or_dash(resource.bound_iops)) }
                    td data-name="reached" { (percent(Some(resource.reached))) }
                }
            }
        }
    });
    page.figures(vec![bars(&bottleneck.resources, reclaim)]);
}

fn bars(resources: &[Bound], reclaim: &str) -> Figure {
    let names: Vec<String> = resources.iter().map(|resource| plain(&words::resource(&resource.resource))).collect();
    let bar = |index: usize, name: &str, of: &dyn Fn(&Bound) -> f64| {
        let x: Vec<f64> = resources.iter().map(of).collect();
        let more = json!({ "x": x, "y": names, "orientation": "h", "hovertemplate": "%{x:.1%} of the bound" });
        trace(name, Style::of(index).bars(), more)
    };
    let traces = vec![
        bar(0, "for the host", &|bound| bound.reached * (1.0 - bound.gc)),
        bar(1, &format!("for {reclaim}"), &|bound| bound.reached * bound.gc),
    ];
    let mut x = axis("share of the bound that was reached");
    x["tickformat"] = ".0%".into();
    x["range"] = json!([0, 1]);
    let y = json!({ "autorange": "reversed", "type": "category" });
    let layout = json!({ "barmode": "stack", "showlegend": true, "xaxis": x, "yaxis": y });
    let caption = html! {
        "For each resource, the throughput of the run as a share of the throughput at which the resource would be busy "
        "all the time: a roofline (Williams et al. 2009). The share used by " (reclaim) " is shown separately. "
        "The resource nearest to 100% is the bottleneck. If none is near, a greater load, such as a greater queue "
        "depth, would raise the throughput."
    };
    Figure::new("roofline", "Throughput relative to each bound", caption, traces, layout).high(240)
}
