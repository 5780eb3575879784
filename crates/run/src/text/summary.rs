//! Text of a result: the main values, on one screen.

use std::path::PathBuf;

use floatgate_core::device_file::{Concurrency, DeviceConfig};
use floatgate_core::summary::{
    ArrayUse, BufferUse, EnergyCauses, Live, LogBlocks, MapPages, Merges, Operations, ParallelCommands, Requests,
    Share, Summary,
};
use floatgate_report::live::clients;
use floatgate_report::number::grouped;
use floatgate_workload::quantity::readable;
use floatgate_workload::synthetic::looks_like_job;

use super::{Page, Table, decimals, latency, leading_zeros, plural, rate, short};
use crate::warnings::{INTERRUPTED, used_up_share};

/// Data about a run that its result does not have.
pub struct Around<'a> {
    /// Descriptions of the workloads.
    pub descriptions: &'a [String],
    /// Real time of preconditioning and prewriting, in seconds; `None` if there was none.
    pub prepared_s: Option<f64>,
    /// Files of the result.
    pub written: &'a [PathBuf],
    /// True if warnings are shown; otherwise only their number is.
    pub with_warnings: bool,
    /// True if all values are shown; otherwise only the main ones, in at most [`LINES`] lines.
    pub with_details: bool,
}

/// Maximum number of lines of a result without details.
pub const LINES: usize = 20;

/// Formats a result as text.
pub fn text(summary: &Summary, around: &Around) -> String {
    if !around.with_details {
        return brief(summary, around);
    }
    let mut page = Page::default();
    head(&mut page, summary, around.descriptions);
    measured(&mut page, summary);
    page.gap();
    requests(&mut page, summary, true);
    objects(&mut page, summary);
    page.gap();
    reasons(&mut page, summary);
    array(&mut page, summary);
    amplification(&mut page, summary);
    map_cache(&mut page, summary);
    gc(&mut page, summary, true);
    controller(&mut page, summary);
    busy(&mut page, summary);
    energy(&mut page, summary);
    wear(&mut page, summary);
    live(&mut page, summary);
    if let Some(prepared_s) = around.prepared_s {
        page.line("preparation", format!("{} of real time", seconds(prepared_s)));
    }
    speed(&mut page, summary);
    warnings(&mut page, summary, around.with_warnings);
    files(&mut page, around.written);
    page.text
}

/// Formats the main values of a result in at most [`LINES`] lines: what was simulated, the requests, where the time
/// went, the write amplification, the garbage collection, and the warnings.
fn brief(summary: &Summary, around: &Around) -> String {
    let of_streams = |with_streams: bool| {
        let mut page = Page::default();
        head(&mut page, summary, &workloads(around.descriptions, with_streams));
        measured(&mut page, summary);
        page.gap();
        requests(&mut page, summary, with_streams);
        objects(&mut page, summary);
        page.gap();
        let merges = summary.config.merges_blocks();
        labeled(&mut page, "time spent on", latency::main_parts(&summary.requests, merges));
        labeled(&mut page, "limited by", latency::bottleneck(&summary.bottleneck, merges));
        labeled(&mut page, "amplification", amplification_by_cause(summary));
        if summary.gc.victims > 0 || merges {
            gc(&mut page, summary, false);
        }
        faults(&mut page, summary);
        summary.array.iter().for_each(|array| array_state(&mut page, array));
        page
    };
    let mut end = Page::default();
    written(&mut end, around.written);
    let last = end.text.lines().count();
    let kept = last + usize::from(!summary.warnings.is_empty());
    let mut page = of_streams(true);
    if page.text.lines().count() + kept > LINES {
        page = of_streams(false);
    }
    // Long names may leave no space for the last lines.
    page.text = page.text.lines().take(LINES - kept).map(|line| format!("{line}\n")).collect();
    let mut warned = Page::default();
    warnings(&mut warned, summary, around.with_warnings);
    let space = LINES.saturating_sub(page.text.lines().count() + last);
    if warned.text.lines().count() > space {
        let count = summary.warnings.len() as u64;
        warned = Page::default();
        warned.line("warnings", format!("{count}; --details shows {}", if count == 1 { "it" } else { "them" }));
    }
    page.text + &warned.text + &end.text
}

/// Returns the descriptions of the workloads: all of them, or the first and the number of the others.
fn workloads(descriptions: &[String], all: bool) -> Vec<String> {
    match descriptions {
        [first, others @ ..] if !all && !others.is_empty() => {
            let count = others.len() as u64;
            vec![format!("{first}, and {count} {}; --details shows all", plural(count, "other"))]
        }
        all => all.to_vec(),
    }
}

/// Writes lines with one label.
fn labeled(page: &mut Page, label: &str, lines: impl IntoIterator<Item = String>) {
    let mut label = label;
    for line in lines {
        page.line(label, line);
        label = "";
    }
}

/// Writes the simulated time and the seed.
fn measured(page: &mut Page, summary: &Summary) {
    let end = if summary.complete { "" } else { ", INTERRUPTED: only a part of the workload" };
    page.line("measured", format!("{} simulated, seed {}{end}", seconds(summary.measured_s), summary.seed));
}

/// Writes the first file of a result, and the number of the others in its directory.
fn written(page: &mut Page, written: &[PathBuf]) {
    let Some(first) = written.first() else { return };
    let more = match written.len() {
        1 => String::new(),
        count => format!(", with {} {} next to it", count - 1, plural(count as u64 - 1, "file")),
    };
    page.line("written to", format!("{}{more}", first.display()));
}

/// Lists the files of a result.
pub fn files(page: &mut Page, written: &[PathBuf]) {
    let mut label = "written to";
    for path in written {
        page.line(label, path.display().to_string());
        label = "";
    }
}

/// Writes the device, the workload and the state before the run.
pub fn head(page: &mut Page, summary: &Summary, descriptions: &[String]) {
    let changed = changes(summary).map(|changes| format!(" ({changes})")).unwrap_or_default();
    page.line("device", format!("{}{changed}: {}", summary.device.name, shape(&summary.config)));
    let mut label = "workload";
    // The description is enough for a job. The file of a trace is shown, too.
    if !looks_like_job(&summary.workload.name) || descriptions.is_empty() {
        page.line(label, &summary.workload.name);
        label = "";
    }
    for description in descriptions {
        page.line(label, description);
        label = "";
    }
    page.line("precondition", precondition(summary));
}

/// Maximum number of changed parameters in the text of a result.
const MAX_CHANGES: usize = 2;

/// Names the parameters in which the device differs from its file or from the built-in device of its name.
fn changes(summary: &Summary) -> Option<String> {
    if summary.config_digest == summary.device.digest {
        return None;
    }
    let paths: Vec<&str> =
        summary.changes.iter().flat_map(|changes| &changes.figures).map(|figure| figure.path.as_str()).collect();
    let (shown, more) = paths.split_at(paths.len().min(MAX_CHANGES));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    Some(if shown.is_empty() { "changed".to_owned() } else { format!("changed: {}{more}", shown.join(", ")) })
}

/// Formats the geometry and the capacity.
fn shape(config: &DeviceConfig) -> String {
    let g = &config.geometry;
    let levels = [(g.channels, "channel"), (g.chips, "chip"), (g.dies, "die"), (g.planes, "plane")];
    let levels = levels.map(|(count, name)| format!("{count} {name}{}", if count == 1 { "" } else { "s" }));
    format!(
        "{}; {} of {} visible ({:.1} % spare)",
        levels.join(" x "),
        size(config.logical_bytes()),
        size(config.physical_bytes()),
        config.spare() * 100.0
    )
}

fn size(bytes: u64) -> String {
    readable(u128::from(bytes))
}

fn seconds(s: f64) -> String {
    match s {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.3} us", s * 1e6),
    }
}

fn precondition(summary: &Summary) -> String {
    let state = &summary.precondition;
    let reached = &state.reached;
    let amplified = reached.write_amplification.map(|wa| format!(", write amplification {wa:.3}")).unwrap_or_default();
    let steady = match reached.converged {
        Some(true) => ", steady",
        Some(false) => ", NOT steady",
        None => "",
    };
    let writes = reached.drive_writes;
    let mapped = reached.mapped * 100.0;
    let collected = if summary.config.merges_blocks() { None } else { Some(summary.gc.victims) };
    let since = collected.filter(|_| reached.converged.is_some()).map(collected_since).unwrap_or_default();
    format!("{}: {writes:.2} drive writes, {mapped:.1} % mapped{amplified}{steady}{since}", state.requested)
}

/// Returns how many blocks a run has collected since its steady state. The write amplification of a run that has
/// collected few scatters (docs/model/preconditioning.md).
fn collected_since(victims: u64) -> String {
    format!("; {} {} collected since", grouped(victims), plural(victims, "block"))
}

/// Writes the table of requests, with a line for each operation, of each stream if `with_streams`.
fn requests(page: &mut Page, summary: &Summary, with_streams: bool) {
    let mut table = RequestTable::new(summary);
    table.add("", &summary.requests);
    if summary.streams.len() > 1 && with_streams {
        for stream in &summary.streams {
            table.add(&stream.name, &stream.requests);
        }
    }
    page.text.push_str(&table.table.text());
    if summary.requests.all.errors > 0 {
        let errors = summary.requests.all.errors;
        let verb = if errors == 1 { "request was" } else { "requests were" };
        page.line("", format!("{} {verb} not served", grouped(errors)));
    }
}

/// Writes the latency breakdown and the bottleneck.
fn reasons(page: &mut Page, summary: &Summary) {
    let merges = summary.config.merges_blocks();
    labeled(page, "time spent on", latency::attribution(&summary.requests, merges));
    labeled(page, "limited by", latency::bottleneck(&summary.bottleneck, merges));
}

/// Writes the state of an array, and how far its rebuild has come.
fn array_state(page: &mut Page, array: &ArrayUse) {
    let failed: Vec<String> = array.failed.iter().map(u32::to_string).collect();
    let failed = if failed.is_empty() { String::new() } else { format!(", without member {}", failed.join(", ")) };
    page.line("array", format!("level {}, {}{failed}", array.config["level"], array.state));
    if let Some(rebuild) = &array.rebuild {
        let [done, all] = [rebuild.stripes_done, rebuild.stripes].map(grouped);
        let end = rebuild.finished_s.map_or_else(String::new, |s| format!(", complete at {}", seconds(s)));
        page.line("rebuild", format!("{done} of {all} stripes{end}"));
    }
}

/// Writes the work of the controller of an array, and a line for each member.
fn array(page: &mut Page, summary: &Summary) {
    let Some(array) = &summary.array else { return };
    array_state(page, array);
    let writes = &array.writes;
    let strategies = [
        ("full stripe", writes.full_stripe),
        ("reconstruct", writes.reconstruct),
        ("read-modify-write", writes.read_modify_write),
        ("without parity", writes.without_parity),
    ];
    let all = strategies.iter().map(|(_, count)| count).sum();
    if all > 0 {
        page.line("stripe writes", by_cause(all, &strategies));
    }
    let of = &array.member_operations;
    let operations = [
        ("host", of.host),
        ("parity reads", of.parity_reads),
        ("parity writes", of.parity_writes),
        ("journal", of.journal),
        ("rebuild", of.rebuild),
    ];
    page.line("member work", by_cause(operations.iter().map(|(_, count)| count).sum(), &operations));
    if array.stripe_waits > 0 {
        let (waits, mean) = (array.stripe_waits, array.stripe_wait_us / array.stripe_waits as f64);
        page.line("stripe waits", format!("{} of {} us on average", grouped(waits), decimals(mean)));
    }
    for (number, member) in summary.members.iter().enumerate() {
        let (all, latency) = (&member.requests.all, &member.requests.all.latency_us);
        let us = |value: Option<f64>| or_dash(value, decimals);
        let line = format!(
            "{} requests, {} us mean, {} us p99; write amplification {}, {} GC {}",
            grouped(all.count),
            us(latency.mean),
            us(latency.p99),
            or_dash(member.write_amplification, |value| format!("{value:.3}")),
            grouped(member.gc.victims),
            plural(member.gc.victims, "victim"),
        );
        page.line(&format!("member {number}"), line);
    }
}

/// Table of requests, with a line for each operation of each stream.
struct RequestTable {
    table: Table,
    /// Number of microseconds in the unit of latencies.
    unit: f64,
}

impl RequestTable {
    fn new(summary: &Summary) -> RequestTable {
        let in_ms = summary.requests.all.latency_us.mean.unwrap_or_default() >= 10_000.0;
        let (unit, name) = if in_ms { (1e3, "ms") } else { (1.0, "us") };
        let latencies = ["mean", "p50", "p99", "p99.9", "max"].map(|latency| format!("{latency} {name}"));
        let head: Vec<&str> =
            ["", "requests", "IOPS", "MiB/s"].into_iter().chain(latencies.iter().map(String::as_str)).collect();
        RequestTable { table: Table::new(&head), unit }
    }

    /// Adds the lines of a stream, or of all requests if `stream` is empty. The sum of a single operation is omitted.
    fn add(&mut self, stream: &str, requests: &Requests) {
        let there: Vec<_> = requests.by_operation().into_iter().filter(|(_, of)| of.count > 0).collect();
        for (name, operations) in &there {
            self.row(stream, name, operations);
        }
        if there.len() != 1 {
            self.row(stream, "all", &requests.all);
        }
    }

    fn row(&mut self, stream: &str, name: &str, of: &Operations) {
        let time = |us: Option<f64>| or_dash(us, |us| decimals(us / self.unit));
        let latency = &of.latency_us;
        let label = if stream.is_empty() { name.to_owned() } else { format!("  {stream} {name}") };
        self.table.row(&[
            label,
            grouped(of.count),
            or_dash(of.iops, rate),
            or_dash(of.mib_per_s, decimals),
            time(latency.mean),
            time(latency.p50),
            time(latency.p99),
            time(latency.p99_9),
            time(latency.max),
        ]);
    }
}

/// Formats a share in percent, with one decimal, or with as many as are needed for a digit other than 0.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    format!("{percent:.0$}", leading_zeros(percent) + 1)
}

/// Formats a value, or returns a dash if there is none.
fn or_dash(value: Option<f64>, text: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

/// Writes the errors of read data and the failures, if there were any.
fn faults(page: &mut Page, summary: &Summary) {
    if let Some(errors) = summary.errors.as_ref().filter(|errors| errors.retries > 0) {
        let mean = errors.retries_mean.unwrap_or_default();
        let most = errors.by_retries.len().saturating_sub(1).to_string();
        page.line("read retries", format!("{}, {mean:.3} per page read, at most {most}", grouped(errors.retries)));
    }
    let Some(faults) = &summary.faults else { return };
    let reads = &faults.uncorrectable;
    let failed = [
        ("programs", faults.programs_failed),
        ("erases", faults.erases_failed),
        ("uncorrectable host reads", reads.host),
        ("GC reads", reads.gc),
        ("read-modify-write reads", reads.rmw),
    ];
    let total = failed.iter().map(|(_, count)| count).sum();
    if total > 0 {
        page.line("failed", by_cause(total, &failed));
    }
    let bad = &faults.blocks_bad;
    if bad.factory + bad.grown > 0 {
        let [factory, grown, worst] = [bad.factory, bad.grown, bad.worst_plane].map(grouped);
        page.line("bad blocks", format!("{factory} from the factory, {grown} since; at most {worst} in a plane"));
    }
    if faults.rebuilt > 0 {
        page.line("rebuilt", format!("{} uncorrectable pages, from their stripes", grouped(faults.rebuilt)));
    }
    if faults.units_lost > 0 {
        page.line("units lost", grouped(faults.units_lost));
    }
    if let Some(since) = faults.read_only_since_s {
        page.line("read-only", format!("no writes accepted since {since:.6} s: too few good blocks are left"));
    }
}

fn amplification(page: &mut Page, summary: &Summary) {
    let (flash, causes) = (&summary.flash, &summary.flash.programs_by_cause);
    page.line("amplification", amplification_by_cause(summary).unwrap_or_else(|| "no writes".to_owned()));
    let programmed = [
        ("host", causes.host),
        ("GC", causes.gc),
        ("wear leveling", causes.wear),
        ("folding", causes.fold),
        ("refresh", causes.refresh),
        ("summary", causes.summary),
        ("parity", causes.parity),
        ("rebuilds", causes.rebuild),
        ("padding", causes.padding),
        ("wasted for copy-back", causes.waste_copyback),
        ("wasted for alignment", causes.waste_alignment),
        ("map", causes.map),
        ("merges", causes.merge),
        ("trim journal", causes.journal),
        ("checkpoint", causes.checkpoint),
    ];
    page.line("pages written", by_cause(flash.pages.programmed, &programmed));
    let causes = &flash.reads_by_cause;
    let read = [
        ("host", causes.host),
        ("GC", causes.gc),
        ("wear leveling", causes.wear),
        ("folding", causes.fold),
        ("rebuilds", causes.rebuild),
        ("refresh", causes.refresh),
        ("read-modify-write", causes.rmw),
        ("map", causes.map),
        ("merges", causes.merge),
    ];
    page.line("pages read", by_cause(flash.pages.read, &read));
    parallel_commands(page, summary);
    faults(page, summary);
    let updates = &summary.updates;
    if updates.covered + updates.uncovered + updates.first > 0 {
        let parts = [updates.covered, updates.uncovered, updates.first].map(grouped);
        let [covered, uncovered, first] = parts;
        page.line("updates", format!("{covered} covered, {uncovered} un-covered, {first} first writes"));
    }
    if summary.unmapped_reads > 0 {
        let count = grouped(summary.unmapped_reads);
        let (units, verb) = if summary.unmapped_reads == 1 { ("unit", "holds") } else { ("units", "hold") };
        page.line("unmapped reads", format!("{count} mapping {units} that {verb} no data, completed without flash"));
    }
    let trimmed = summary.flash.units.trimmed;
    if trimmed > 0 {
        let units = plural(trimmed, "unit");
        page.line("trimmed", format!("{} mapping {units} that were in flash", grouped(trimmed)));
    }
}

/// Formats the write amplification as a sum over its causes: host writes, moved data, padding and so on.
fn amplification_by_cause(summary: &Summary) -> Option<String> {
    let (total, in_bytes) = (summary.write_amplification?, summary.write_amplification_bytes?);
    let causes = summary.amplification_by_cause()?;
    let causes = causes.iter().filter(|(_, share)| *share >= 0.0005).map(|(name, share)| format!("{share:.3} {name}"));
    let causes: Vec<String> = causes.collect();
    let sum = if causes.is_empty() { String::new() } else { format!(" = {}", causes.join(" + ")) };
    Some(format!("{total:.3}{sum}; {in_bytes:.3} in bytes{}", saved(summary, total)))
}

/// Returns the reason for a write amplification below 1, as an addition to it.
fn saved(summary: &Summary, total: f64) -> String {
    if total >= 0.9995 {
        return String::new();
    }
    let units = summary.buffer.iter().flat_map(|buffer| {
        [
            (buffer.writes.hit, "overwritten in the buffer"),
            (buffer.dropped, "trimmed there"),
            (buffer.volatile_units_end, "still there at the end"),
        ]
    });
    let units = units.filter(|(count, _)| *count > 0).map(|(count, why)| format!("{} {why}", grouped(count)));
    let units = units.collect::<Vec<_>>().join(", ");
    match summary.buffer.as_ref().filter(|_| !units.is_empty()) {
        Some(BufferUse { writes, .. }) => {
            format!(" (below 1: of {} units written, {units})", grouped(writes.hit + writes.new))
        }
        None => " (below 1: when the run ended, writes were on their way to flash)".to_owned(),
    }
}

/// Writes the multi-plane and interleaved commands and the copy-backs, if there were any.
fn parallel_commands(page: &mut Page, summary: &Summary) {
    let commands = &summary.flash.commands;
    let shape = |m: &ParallelCommands| {
        format!(
            "{} {} of {} planes in {} {}",
            grouped(m.commands),
            m.kind,
            m.planes,
            m.dies,
            plural(m.dies.into(), "die")
        )
    };
    let shapes: Vec<String> = commands.parallel.iter().map(shape).collect();
    if !shapes.is_empty() {
        page.line("parallel", shapes.join(", "));
    }
    if commands.copy_back > 0 {
        page.line("copy-backs", grouped(commands.copy_back));
    }
}

/// Formats a total, and the share of each cause.
fn by_cause(total: u64, causes: &[(&str, u64)]) -> String {
    let share = |count: u64| percent(count as f64 / total as f64);
    let parts = causes.iter().filter(|(_, count)| *count > 0);
    let parts: Vec<String> = parts.map(|(name, count)| format!("{name} {} %", share(*count))).collect();
    if parts.is_empty() { "none".to_owned() } else { format!("{} ({})", grouped(total), parts.join(", ")) }
}

/// Writes the hit ratio of the map cache, and the flash traffic of the map.
fn map_cache(page: &mut Page, summary: &Summary) {
    let Some(cache) = &summary.map_cache else { return };
    let evicted =
        format!("{} clean and {} dirty evictions", grouped(cache.evictions_clean), grouped(cache.evictions_dirty));
    // Preconditioning takes no time, and leaves the cache empty.
    let filled = if cache.misses > 0 && cache.evictions_clean + cache.evictions_dirty == 0 {
        "; the misses filled a cache that has space left: leave them out with ramp_time"
    } else {
        ""
    };
    page.line(
        "map cache",
        format!(
            "hit ratio {} % ({} of {}), {evicted}{filled}",
            or_dash(cache.hit_ratio, percent),
            grouped(cache.hits),
            grouped(cache.hits + cache.misses)
        ),
    );
    let traffic = |pages: &MapPages| {
        let causes =
            [("misses", pages.miss), ("evictions", pages.eviction), ("GC", pages.gc), ("map GC", pages.map_gc)];
        by_cause(causes.iter().map(|(_, count)| count).sum(), &causes)
    };
    page.line("map read", traffic(&cache.reads));
    page.line("map written", traffic(&cache.programs));
}

/// Writes the garbage collection or the merges, and, if `with_details`, what log blocks have taken.
fn gc(page: &mut Page, summary: &Summary, with_details: bool) {
    let gc = &summary.gc;
    let Merges { switch, partial, full } = gc.merges;
    if summary.config.merges_blocks() {
        let [switch, partial, full] = [switch, partial, full].map(grouped);
        page.line("merges", format!("{switch} switch, {partial} partial, {full} full"));
        return gc.log_blocks.iter().filter(|_| with_details).for_each(|logs| log_blocks(page, logs));
    }
    if let Some(cache) = &gc.slc_cache {
        let (units, folded) = (plural(cache.units, "unit"), plural(cache.folded, "block"));
        let parts = [grouped(cache.units), grouped(cache.folded), grouped(cache.folded_idle)];
        let [written, blocks, idle] = parts;
        page.line("SLC cache", format!("{written} {units} written, {blocks} {folded} folded ({idle} in idle time)"));
    }
    let (Some(efficiency), Some(free_blocks)) = (gc.efficiency, gc.free_blocks) else {
        return page.line("GC", "none");
    };
    let (victims, moved) = (grouped(gc.victims), grouped(gc.pages_moved.round() as u64));
    let efficiency = percent(efficiency);
    let victim = plural(gc.victims, "victim");
    let page_moved = if moved == "1" { "page" } else { "pages" };
    let gained = match (gc.free_blocks_gained, used_up_share(summary)) {
        (gained, Some(share)) => {
            format!(" ({gained:+} in all planes since the start, {} % of the programs)", percent(share))
        }
        (0, _) => String::new(),
        (gained, _) if with_details => format!(" ({gained:+} in all planes since the start)"),
        _ => String::new(),
    };
    page.line(
        "GC",
        format!(
            "{victims} {victim}, {moved} {page_moved} moved, cleaning efficiency {efficiency} %, {free_blocks:.2} free \
             blocks{gained}"
        ),
    );
}

/// Writes what log blocks have taken, and what merges reclaimed.
fn log_blocks(page: &mut Page, logs: &LogBlocks) {
    let writes: Vec<(&str, u64)> = logs.writes.iter().map(|of| (&of.kind[..], of.units)).collect();
    let written = by_cause(writes.iter().map(|(_, units)| units).sum(), &writes);
    let mean = logs.associativity.map(|mean| format!(", of {mean:.2} logical blocks each"));
    page.line("log blocks", format!("{} reclaimed{}", grouped(logs.reclaimed), mean.unwrap_or_default()));
    page.line("units to them", written);
    if logs.trim_list + logs.copies_saved > 0 {
        let [listed, saved] = [logs.trim_list, logs.copies_saved].map(grouped);
        page.line("trims", format!("{saved} copies saved, {listed} units not merged yet"));
    }
}

/// Writes the lines of the buffer and the firmware, if the device models them.
fn controller(page: &mut Page, summary: &Summary) {
    if let Some(buffer) = &summary.buffer {
        let hits = |what: &str, ratio: Option<f64>| format!("{what} hit {} %", or_dash(ratio, percent));
        let parts = [
            hits("reads", buffer.reads.hit_ratio),
            hits("writes", buffer.writes.hit_ratio),
            format!("{} units written back", grouped(buffer.written_back)),
            format!("a power cut would lose up to {}", grouped(buffer.volatile_units_peak)),
        ];
        page.line("buffer", parts.join(", "));
    }
    if let Some(firmware) = &summary.firmware {
        let cores = firmware.cores.len();
        let share = firmware.share_of_all.map(|share| format!(", {} % of the response time", percent(share)));
        let busy = or_dash(firmware.utilization, percent);
        page.line(
            "firmware",
            format!("{cores} {}, {busy} % busy{}", plural(cores as u64, "core"), share.unwrap_or_default()),
        );
    }
}

fn busy(page: &mut Page, summary: &Summary) {
    let (channels, dies) = (&summary.utilization.channels, &summary.utilization.dies);
    let share = |name: &str, s: &Share| match (s.mean, s.min, s.max) {
        (Some(mean), Some(min), Some(max)) => {
            format!("{name} {} % ({} to {})", percent(mean), percent(min), percent(max))
        }
        _ => format!("{name} -"),
    };
    page.line("channels", [share("data", &channels.data), share("commands", &channels.command)].join(", "));
    page.line("dies", [share("cells", &dies.cell), share("held for transfers", &dies.register_held)].join(", "));
    if let Some(chips) = &summary.utilization.chips {
        let word = if summary.config.nand.concurrency == Concurrency::Chip { "packages" } else { "chips" };
        page.line(word, share("busy", &chips.busy));
    }
}

/// Writes the accesses to objects, if a workload is an object trace.
fn objects(page: &mut Page, summary: &Summary) {
    for one in &summary.objects {
        let ratio = |ratio: Option<f64>| or_dash(ratio, |ratio| format!("{} %", percent(ratio)));
        let hits =
            format!("{} hits of {} gets ({} of the bytes)", ratio(one.hit_ratio), one.gets, ratio(one.byte_hit_ratio));
        let line =
            format!("{}: {hits}, {} sets, {} evictions, {} stored", one.stream, one.sets, one.evictions, one.objects);
        page.line("objects", line);
    }
}

/// Writes the energy by operation, if the device states it.
fn energy(page: &mut Page, summary: &Summary) {
    let Some(energy) = &summary.energy else { return };
    let parts = [
        ("reads", energy.read_j),
        ("programs", energy.program_j),
        ("erases", energy.erase_j),
        ("transfers", energy.transfer_j),
        ("static", energy.static_j),
    ];
    let parts = parts.into_iter().filter(|(_, part)| *part > 0.0);
    let parts: Vec<String> = parts.map(|(name, part)| format!("{name} {} %", percent(part / energy.total_j))).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let power = or_dash(energy.mean_w, |power| in_prefixed(power, "W"));
    let per_byte = or_dash(energy.per_host_byte_j, |energy| in_prefixed(energy, "J"));
    let total = in_prefixed(energy.total_j, "J");
    let per_request = or_dash(energy.per_request_j, |energy| in_prefixed(energy, "J"));
    let per = format!("{per_byte} per host byte, {per_request} per request");
    page.line("energy", format!("{total}{parts}; {power} on average, {per}"));
    energy_by_cause(page, &energy.by_cause);
}

/// Writes the energy of reads, programs and erases by cause, if there are several causes.
fn energy_by_cause(page: &mut Page, causes: &EnergyCauses) {
    let causes = [
        ("host", causes.host_j),
        ("GC", causes.gc_j),
        ("wear leveling", causes.wear_j),
        ("merges", causes.merge_j),
        ("folding", causes.fold_j),
        ("refresh", causes.refresh_j),
        ("rebuilds", causes.rebuild_j),
        ("map", causes.map_j),
        ("records", causes.own_j),
        ("padding", causes.padding_j),
    ];
    let parts: Vec<String> = causes
        .iter()
        .filter(|(_, part)| *part > 0.0)
        .map(|(name, part)| format!("{name} {}", in_prefixed(*part, "J")))
        .collect();
    if parts.len() > 1 {
        page.line("energy of cells", parts.join(", "));
    }
}

/// Formats a value below or above 1 with the prefix of its unit.
fn in_prefixed(value: f64, unit: &str) -> String {
    let prefixes = [(1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"), (1e-12, "p")];
    let (scale, prefix) = prefixes.into_iter().find(|(scale, _)| value >= *scale).unwrap_or((1.0, ""));
    format!("{} {prefix}{unit}", decimals(value / scale))
}

fn wear(page: &mut Page, summary: &Summary) {
    let (blocks, planes) = (&summary.wear.blocks, &summary.wear.planes);
    let used = |used: f64| format!("; {} % of the endurance used", percent(used));
    let life = summary.wear.life_used.map(used).unwrap_or_default();
    page.line(
        "wear",
        format!(
            "{} erases per block since new (max {}, deviation {}), {} per plane (max {}); {} in this run{life}",
            decimals(blocks.mean),
            grouped(blocks.max),
            decimals(blocks.stddev),
            grouped(planes.mean.round() as u64),
            grouped(planes.max),
            grouped(summary.flash.blocks_erased)
        ),
    );
}

/// Writes the lateness of replies, for a live device.
fn live(page: &mut Page, summary: &Summary) {
    let Some(live) = &summary.live else { return };
    image(page, live);
    let (Some(p50), Some(p99), Some(max)) = (live.lateness_us.p50, live.lateness_us.p99, live.lateness_us.max) else {
        let what =
            if live.pace == "timed" { "no judged replies" } else { "none: replies were sent as soon as possible" };
        return page.line("lateness", what);
    };
    let faithful = if live.faithful == Some(true) { "faithful" } else { "NOT FAITHFUL" };
    page.line(
        "lateness",
        format!(
            "{faithful}: {} % of replies late (at most {} %); p50 {} us, p99 {} us, max {} us",
            percent(live.late_share.unwrap_or_default()),
            percent(live.late_limit),
            decimals(p50),
            decimals(p99),
            decimals(max)
        ),
    );
    let causes = live.causes.named();
    let causes: Vec<String> = causes
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {}", grouped(*count)))
        .collect();
    if !causes.is_empty() {
        page.line("", format!("late because of: {}", causes.join(", ")));
    }
    if live.not_judged > 0 {
        let (count, answers) = (grouped(live.not_judged), plural(live.not_judged, "request"));
        page.line("", format!("{count} {answers} without data not judged, because the host cannot reply that fast"));
    }
    for frontend in live.frontends.iter().filter(|_| live.frontends.len() > 1) {
        let (Some(share), Some(p50)) = (frontend.late_share, frontend.lateness_us.p50) else { continue };
        let name = &frontend.name;
        let late = percent(share);
        let p50 = decimals(p50);
        page.line("", format!("over {name}: {late} % of {} replies late, p50 {p50} us", grouped(frontend.replies)));
    }
    clients(live).for_each(|line| page.line("", line));
    if live.speed != 1.0 {
        page.line("", format!("simulated time ran at {} times real time", live.speed));
    }
}

/// Writes the state of the flash image, and its recovery.
fn image(page: &mut Page, live: &Live) {
    let Some(image) = &live.image else { return };
    let state = if image.complete { "complete" } else { "INCOMPLETE: the last accepted writes are missing" };
    page.line("image", format!("{} on disk, {state}", readable(u128::from(image.bytes))));
    if image.power_cuts > 0 {
        let (count, cuts) = (grouped(image.power_cuts), plural(image.power_cuts, "power cut"));
        page.line("", format!("{count} {cuts}; only the time since the last one is measured"));
    }
    if let Some(recovery) = &image.recovery {
        let (simulated, real) = (decimals(recovery.simulated_us / 1e3), decimals(recovery.real_us / 1e3));
        let (mapped, torn) = (grouped(recovery.units_mapped), grouped(recovery.torn_units));
        page.line("", format!("recovered in {simulated} ms ({real} ms real time): {mapped} units mapped, {torn} torn"));
    }
    if image.unreadable > 0 {
        page.line("", format!("{} {} could not be read", grouped(image.unreadable), plural(image.unreadable, "unit")));
    }
}

/// Formats the real time of preconditioning and of the simulation.
pub fn real_time(summary: &Summary, prepared_s: Option<f64>) -> String {
    let prepared = prepared_s.map(|s| format!("prepared in {}", seconds(s)));
    let simulated = summary.run.as_ref().map(|cost| format!("simulated in {}", seconds(cost.wall_s)));
    prepared.into_iter().chain(simulated).collect::<Vec<_>>().join(", ")
}

fn speed(page: &mut Page, summary: &Summary) {
    let Some(cost) = &summary.run else { return };
    let wall = seconds(cost.wall_s);
    let cpu = cost.cpu_s.map(|s| format!(", {} of CPU time", seconds(s))).unwrap_or_default();
    let rate = |name: &str, rate: Option<f64>| rate.map(|rate| format!("{} {name}/s", short(rate)));
    let rates = [rate("requests", cost.requests_per_cpu_s), rate("flash operations", cost.flash_ops_per_cpu_s)];
    let rates: Vec<String> = rates.into_iter().flatten().collect();
    let rates = if rates.is_empty() { String::new() } else { format!(" ({})", rates.join(", ")) };
    let memory = cost.peak_rss_bytes.map(|bytes| format!(", {} of memory", size(bytes))).unwrap_or_default();
    page.line("simulation", format!("{wall}{cpu}{rates}{memory}"));
}

fn warnings(page: &mut Page, summary: &Summary, in_full: bool) {
    let mut label = "warnings";
    // The line `measured` already reports the interruption.
    let warnings: Vec<&String> = summary.warnings.iter().filter(|warning| *warning != INTERRUPTED).collect();
    if !in_full && !warnings.is_empty() {
        page.line(label, format!("{}, above", warnings.len()));
        return;
    }
    for warning in warnings {
        page.line(label, warning);
        label = "";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        let texts = [0.0, 0.024, 0.5, 12.34, 1234.5].map(decimals);
        assert_eq!(texts, ["0.00", "0.024", "0.50", "12.3", "1,235"]);
        assert_eq!([0.024, 1.5, 99.0, 100.4, 12_345.0].map(rate), ["0.024", "1.50", "99.0", "100", "12,345"]);
        assert_eq!([0.0, 0.0004, 0.004, 0.5, 1.0].map(percent), ["0.0", "0.04", "0.4", "50.0", "100.0"]);
        assert_eq!([512, 4096, 1 << 30, (1 << 30) + (1 << 29)].map(size), ["512 B", "4 KiB", "1 GiB", "1.50 GiB"]);
        assert_eq!([2.5, 0.0025, 1e-6].map(seconds), ["2.500 s", "2.500 ms", "1.000 us"]);
    }

    #[test]
    fn steady_states_say_how_many_blocks_were_collected_since() {
        let texts = [0, 1, 1234].map(collected_since);
        let counts = ["0 blocks", "1 block", "1,234 blocks"];
        assert_eq!(texts, counts.map(|count| format!("; {count} collected since")));
    }

    #[test]
    fn causes_without_pages_are_left_out() {
        assert_eq!(by_cause(4, &[("host", 3), ("GC", 1), ("padding", 0)]), "4 (host 75.0 %, GC 25.0 %)");
        assert_eq!(by_cause(0, &[("host", 0)]), "none");
    }
}
