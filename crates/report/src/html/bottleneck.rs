//! What limits the throughput: the bounds of the resources, and how near the run came to each (Williams et al. 2009,
//! "Roofline").

use maud::html;
use serde_json::{Value, json};

use crate::figure::{Figure, Look, axis, plain, trace, words};
use crate::number::{percent, short};
use crate::page::Page;

/// A resource.
struct Resource<'a> {
    name: &'a str,
    bound_iops: Option<f64>,
    share_reached: Option<f64>,
}

/// The section; none where the result has no bounds.
pub fn section(page: &mut Page, bottleneck: &Value) {
    let lists = bottleneck.as_array().into_iter();
    let inside = bottleneck.as_object().into_iter().flat_map(|map| map.values().filter_map(Value::as_array));
    let resources: Vec<Resource> = lists.chain(inside).flatten().filter_map(resource).collect();
    if resources.is_empty() {
        return;
    }
    page.section("bottleneck", "Bottleneck");
    let named = ["named", "name", "bottleneck", "resource"].iter().find_map(|key| bottleneck[*key].as_str());
    page.add(&html! {
        @if let Some(named) = named { p { "The run was limited by: " b { (words(named)) } "." } }
        table {
            tr { th.text { "resource" } th { "bound, IOPS" } th { "reached" } }
            @for resource in &resources {
                tr {
                    td { (words(resource.name)) }
                    td { (resource.bound_iops.map_or("-".to_owned(), short)) }
                    td { (percent(resource.share_reached)) }
                }
            }
        }
    });
    let names: Vec<String> = resources.iter().map(|resource| plain(&words(resource.name))).collect();
    let shares: Vec<Option<f64>> = resources.iter().map(|resource| resource.share_reached).collect();
    let more = json!({ "x": shares, "y": names, "orientation": "h", "hovertemplate": "%{x:.1%} of the bound" });
    let mut x = axis("share of the bound that was reached");
    x["tickformat"] = ".0%".into();
    x["rangemode"] = "tozero".into();
    let layout = json!({ "xaxis": x, "yaxis": { "autorange": "reversed", "type": "category" } });
    let caption = html! {
        "For each resource, the throughput of the run as a share of the throughput at which that resource would be busy "
        "all the time (a roofline, Williams et al. 2009). The resource nearest to 100 % is the bottleneck; where none is "
        "near, latency limits the run, and a greater queue depth would raise the throughput."
    };
    let bars = vec![trace("reached", Look::of(0).bars(), more)];
    page.figures(vec![Figure::new("roofline", "How near to each bound", caption, bars, layout)]);
}

fn resource(value: &Value) -> Option<Resource<'_>> {
    let name = value["name"].as_str()?;
    let (bound_iops, share_reached) = (value["bound_iops"].as_f64(), value["share_reached"].as_f64());
    (bound_iops.is_some() || share_reached.is_some()).then_some(Resource { name, bound_iops, share_reached })
}
