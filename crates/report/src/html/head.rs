//! The top of a report: what was run, warnings, and the figures that one looks for first.

use floatgate_core::metrics::summary::{Operations, Requests, Summary};
use floatgate_workload::synthetic::looks_like_job;
use maud::{Markup, html};

use crate::number::{bytes, grouped, or_dash, percent, short, time};
use crate::page::Page;
use crate::words::words;

/// The title of the page.
pub fn title(summary: &Summary) -> String {
    format!("{} on {}", workload(summary), summary.device.name)
}

/// The workload: a job as it is written, of a trace the name of its file.
fn workload(summary: &Summary) -> &str {
    let name = summary.workload.name.as_str();
    match looks_like_job(name) {
        true => name,
        false => name.rsplit(['/', '\\']).next().unwrap_or(name),
    }
}

/// What was run, and what has to be known of it.
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
            (bytes(config.logical_bytes())) " visible of " (bytes(config.physical_bytes())) " ("
            (percent(Some(config.spare()))) " spare). Before the run: " (precondition.requested) ", "
            (short(reached.drive_writes)) " drive writes, " (percent(Some(reached.mapped))) " mapped."
            " Measured: " (time(summary.measured_s * 1e6)) " of simulated time, " (grouped(summary.requests.all.count))
            " requests, seed " (summary.seed) ". Floatgate " (summary.version) "."
        }
        @if !summary.complete {
            div.warning { b { "Interrupted. " } "The figures are those of a part of the workload." }
        }
        @for warning in &summary.warnings { div.warning { b { "Warning: " } (warning) } }
    }
}

/// The section of key figures, with the table of operations.
pub fn key_figures(page: &mut Page, summary: &Summary) {
    page.section("key-figures", "Key figures");
    let all = &summary.requests.all;
    let latency = &all.latency_us;
    let tiles = [
        ("requests per second (IOPS)", or_dash(all.iops)),
        ("MiB per second", or_dash(all.mib_per_s)),
        ("mean latency", time_or_dash(latency.mean)),
        ("p99 latency", time_or_dash(latency.p99)),
        ("p99.9 latency", time_or_dash(latency.p99_9)),
        ("write amplification", or_dash(summary.write_amplification)),
        ("cleaning efficiency", percent(summary.gc.efficiency)),
        ("channels carry data", percent(summary.utilization.channels.data.mean)),
        ("dies: cells work", percent(summary.utilization.dies.cell.mean)),
        ("endurance used", percent(summary.wear.life_used)),
    ];
    page.add(&html! {
        div.tiles { @for (name, value) in &tiles { div.tile { b { (value) } span { (name) } } } }
        div.scroll { (operations(summary)) }
    });
}

/// A time in microseconds, in the unit that suits it.
fn time_or_dash(us: Option<f64>) -> String {
    us.map_or_else(|| "-".to_owned(), time)
}

/// Requests by operation, and by stream where there are several.
fn operations(summary: &Summary) -> Markup {
    // Streams are without bound; more than these do not fit a page.
    const STREAMS: usize = 32;
    let several = summary.streams.len() > 1;
    let head = [
        "requests", "IOPS", "MiB/s", "mean", "min", "p50", "p90", "p99", "p99.9", "p99.99", "max", "waiting", "service",
    ];
    html! {
        table {
            caption {
                "Latency from arrival to completion: half of the requests took no longer than p50, one "
                "in a thousand longer than p99.9. Waiting: mean time until first served; service: the rest."
            }
            tr { th {} @for name in head { th { (name) } } }
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
            td { (grouped(of.count)) @if of.errors > 0 { " (" (grouped(of.errors)) " not served)" } }
            @for number in [of.iops, of.mib_per_s] { td { (or_dash(number)) } }
            @for time in times { td.time { (time_or_dash(time)) } }
        }
    }
}
