//! Head of a report: the run, its warnings, and the key figures.

use floatgate_core::summary::{Operations, Requests, Summary};
use floatgate_workload::synthetic::looks_like_job;
use maud::{Markup, html};

use crate::number::{bytes, grouped, or_dash, percent, short, time};
use crate::page::Page;
use crate::words::words;

/// Returns the title of the page.
pub fn title(summary: &Summary) -> String {
    format!("{} on {}", workload(summary), summary.device.name)
}

/// Returns the name of the workload: the text of a job, or the file name of a trace.
fn workload(summary: &Summary) -> &str {
    let name = summary.workload.name.as_str();
    if looks_like_job(name) { name } else { name.rsplit(['/', '\\']).next().unwrap_or(name) }
}

/// Returns the description and the warnings of the run.
pub fn head(summary: &Summary) -> Markup {
    let Summary { config, precondition, .. } = summary;
    let g = &config.geometry;
    let levels = [(g.channels, "channel"), (g.chips, "chip"), (g.dies, "die"), (g.planes, "plane")];
    let levels = levels.map(|(count, name)| format!("{count} {name}{}", if count == 1 { "" } else { "s" }));
    let reached = &precondition.reached;
    html! {
        h1 { (title(summary)) }
        p.soft {
            (levels.join(" x ")) "; "
            (bytes(config.logical_bytes())) " visible of " (bytes(config.physical_bytes())) " (over-provisioning "
            (percent(Some(config.spare()))) " of the flash). Before the run: " (precondition.requested) ", "
            (short(reached.drive_writes)) " drive writes, " (percent(Some(reached.mapped))) " mapped."
            " Measured: " (time(summary.measured_s * 1e6)) " of simulated time, " (grouped(summary.requests.all.count))
            " requests, seed " (summary.seed) ". Floatgate " (summary.version) "."
        }
        @if !summary.complete {
            div.warning { b { "Interrupted. " } "The results cover only part of the workload." }
        }
        @for warning in &summary.warnings { div.warning { b { "Warning: " } (warning) } }
    }
}

/// Adds the section of key figures, with the table of operations.
pub fn key_figures(page: &mut Page, summary: &Summary) {
    page.section("key-figures", "Key figures");
    let all = &summary.requests.all;
    let latency = &all.latency_us;
    let reclaim = match &summary.gc.log_blocks {
        Some(logs) => ("logical blocks per log block at merges", or_dash(logs.associativity)),
        None => ("cleaning efficiency", percent(summary.gc.efficiency)),
    };
    let tiles = [
        ("requests per second (IOPS)", or_dash(all.iops)),
        ("MiB per second", or_dash(all.mib_per_s)),
        ("mean latency", time_or_dash(latency.mean)),
        ("p99 latency", time_or_dash(latency.p99)),
        ("p99.9 latency", time_or_dash(latency.p99_9)),
        ("write amplification", or_dash(summary.write_amplification)),
        reclaim,
        ("channels carry data", percent(summary.utilization.channels.data.mean)),
        ("dies: cells busy", percent(summary.utilization.dies.cell.mean)),
        ("endurance used", percent(summary.wear.life_used)),
    ];
    page.add(&html! {
        div.tiles { @for (name, value) in &tiles { div.tile { b { (value) } span { (name) } } } }
        (operations(summary))
    });
}

/// Returns a time in microseconds, in a suitable unit.
fn time_or_dash(us: Option<f64>) -> String {
    us.map_or_else(|| "-".to_owned(), time)
}

/// Columns of the table of requests: counts and rates, and then times.
const COLUMNS: [&str; 13] =
    ["requests", "IOPS", "MiB/s", "mean", "min", "p50", "p90", "p99", "p99.9", "p99.99", "max", "waiting", "service"];

/// Returns the table of requests by operation, and by stream if there are several.
fn operations(summary: &Summary) -> Markup {
    // The number of streams is unlimited; more than this do not fit on a page.
    const STREAMS: usize = 32;
    let several = summary.streams.len() > 1;
    html! {
        table.requests {
            caption {
                "Latency from arrival to completion. Half of the requests took p50 or less; one in a thousand took "
                "longer than p99.9. Waiting: mean time until service starts; service: the rest."
            }
            tr { th {} @for name in COLUMNS { th { (name) } } }
            (rows("", &summary.requests))
            @if several {
                @for stream in summary.streams.iter().take(STREAMS) { (rows(&stream.name, &stream.requests)) }
            }
        }
        @if several && summary.streams.len() > STREAMS {
            p.note { (summary.streams.len() - STREAMS) " more streams are in summary.json." }
        }
    }
}

fn rows(stream: &str, requests: &Requests) -> Markup {
    let there: Vec<_> = requests.by_operation().into_iter().filter(|(_, of)| of.count > 0).collect();
    html! {
        @for (name, of) in &there { (row(stream, name, of)) }
        @if there.len() != 1 { (row(stream, "all", &requests.all)) }
    }
}

fn row(stream: &str, name: &str, of: &Operations) -> Markup {
    let l = &of.latency_us;
    let times = [l.mean, l.min, l.p50, l.p90, l.p99, l.p99_9, l.p99_99, l.max, of.waiting_us.mean, of.service_us.mean];
    html! {
        tr {
            td { @if !stream.is_empty() { (stream) ": " } (words(name)) }
            td data-name=(COLUMNS[0]) { (grouped(of.count)) @if of.errors > 0 { " (" (grouped(of.errors)) " failed)" } }
            @for (name, number) in COLUMNS[1..].iter().zip([of.iops, of.mib_per_s]) {
                td data-name=(name) { (or_dash(number)) }
            }
            @for (name, time) in COLUMNS[3..].iter().zip(times) { td.time data-name=(name) { (time_or_dash(time)) } }
        }
    }
}
