//! Metrics of a frame, in the text format of Prometheus.
//!
//! Source: Prometheus documentation, "Exposition formats", text format 0.0.4. Each metric consists of a help line and a
//! type line, followed by all its samples. In label values, backslash, quote and line feed are escaped.

use std::fmt::Write;

use super::frame::{Frame, Info, LogBlocks, Member};

/// The text of the metrics, while it is being built.
struct Metrics {
    text: String,
}

impl Metrics {
    /// Starts the samples of a metric.
    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        debug_assert!(!help.contains(['\\', '\n']), "help is one plain line");
        let _ = write!(self.text, "# HELP floatgate_{name} {help}\n# TYPE floatgate_{name} {kind}\n");
    }

    /// Adds a sample. Does nothing if the value is unknown.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: Option<f64>) {
        let Some(value) = value else { return };
        let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "floatgate_{name}{labels} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: Option<f64>) {
        self.begin(name, kind, help);
        self.sample(name, &[], value);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Returns all metrics.
pub fn text(info: &Info, frame: &Frame) -> String {
    let mut metrics = Metrics { text: String::new() };
    device(&mut metrics, info, frame);
    requests(&mut metrics, frame);
    flash(&mut metrics, frame);
    members(&mut metrics, frame);
    busy(&mut metrics, frame);
    lateness(&mut metrics, frame);
    metrics.text
}

fn device(metrics: &mut Metrics, info: &Info, frame: &Frame) {
    metrics.begin("info", "gauge", "Version and device of the server. Always 1.");
    let labels = [("device", info.device.as_str()), ("version", &info.version), ("config", &info.config_digest)];
    metrics.sample("info", &labels, Some(1.0));
    metrics.one("uptime_seconds", "gauge", "Real time since the monitor started.", Some(frame.wall_s));
    let help = "1 once the device is served; 0 while it is filled or recovered.";
    metrics.one("ready", "gauge", help, Some(f64::from(u8::from(frame.preparing.is_none()))));
    metrics.one("clients", "gauge", "Connected clients.", Some(frame.clients.len() as f64));
    metrics.one("simulated_seconds_total", "counter", "Simulated time.", Some(frame.simulated_s));
    let help = "Simulated time per real time. Absent with --no-delay.";
    metrics.one("speed", "gauge", help, frame.speed);
    metrics.one("outstanding_requests", "gauge", "Outstanding requests.", Some(frame.outstanding as f64));
    metrics.one("payload_bytes", "gauge", "Bytes of stored payload.", Some(frame.payload_bytes as f64));
    let help = "Requests that failed because their payload could not be stored or read.";
    metrics.one("payload_errors_total", "counter", help, Some(frame.payload_errors as f64));
    let help = "Problems of the running server, such as a full disk. The control socket describes them.";
    metrics.one("warnings", "gauge", help, Some(frame.warnings.len() as f64));
    metrics.one("buffer_units", "gauge", "Mapping units in the write buffer.", Some(frame.buffer.units as f64));
    let help = "Dirty mapping units in the write buffer.";
    metrics.one("buffer_dirty_units", "gauge", help, Some(frame.buffer.dirty as f64));
}

fn members(metrics: &mut Metrics, frame: &Frame) {
    if frame.members.is_empty() {
        return;
    }
    type Family = (&'static str, &'static str, &'static str, fn(&Member) -> f64);
    let families: [Family; 8] = [
        ("member_in_sync", "gauge", "1 if the member of the array is in sync.", |m| {
            f64::from(u8::from(m.state == "in sync"))
        }),
        ("member_outstanding_requests", "gauge", "Outstanding requests to the member.", |m| m.outstanding as f64),
        ("member_busy", "gauge", "Mean share of the window in which dies work or are held.", |m| m.busy),
        ("member_pages_read_total", "counter", "Pages read by the member.", |m| m.pages_read as f64),
        ("member_pages_programmed_total", "counter", "Pages programmed by the member.", |m| m.pages_programmed as f64),
        ("member_gc_victims_total", "counter", "Victims of the member's garbage collection.", |m| m.gc_victims as f64),
        ("member_free_blocks_min", "gauge", "Free blocks of the member's plane with the fewest.", |m| {
            f64::from(m.free_blocks_min)
        }),
        ("member_bad_blocks", "gauge", "Bad blocks of the member.", |m| m.bad_blocks as f64),
    ];
    for (name, kind, help, of) in families {
        metrics.begin(name, kind, help);
        for (number, member) in frame.members.iter().enumerate() {
            metrics.sample(name, &[("member", &number.to_string())], Some(of(member)));
        }
    }
}

fn requests(metrics: &mut Metrics, frame: &Frame) {
    type Of = fn(&super::frame::Requests) -> f64;
    let counters: [(&str, &str, Of); 3] = [
        ("requests_total", "Completed requests.", |requests| requests.count as f64),
        ("request_bytes_total", "Bytes of completed requests.", |requests| requests.bytes as f64),
        ("request_errors_total", "Requests that failed.", |requests| requests.errors as f64),
    ];
    for (name, help, of) in counters {
        metrics.begin(name, "counter", help);
        for (operation, requests) in &frame.requests {
            metrics.sample(name, &[("operation", operation)], Some(of(requests)));
        }
    }
    let name = "window_latency_seconds";
    metrics.begin(name, "gauge", "Latency of the requests of the last half second, in simulated time.");
    for (operation, requests) in &frame.requests {
        let quantiles =
            [("0.5", requests.p50_us), ("0.99", requests.p99_us), ("0.999", requests.p99_9_us), ("1", requests.max_us)];
        for (quantile, us) in quantiles {
            metrics.sample(name, &[("operation", operation), ("quantile", quantile)], us.map(|us| us / 1e6));
        }
    }
}

fn log_blocks(metrics: &mut Metrics, logs: &LogBlocks) {
    metrics.begin("log_units_written_total", "counter", "Mapping units written to log blocks, by kind of log block.");
    for (kind, units) in &logs.writes {
        metrics.sample("log_units_written_total", &[("kind", kind)], Some(*units as f64));
    }
    let help = "Log blocks reclaimed by merges.";
    metrics.one("log_blocks_reclaimed_total", "counter", help, Some(logs.reclaimed as f64));
    let help = "Logical blocks with valid units per reclaimed log block.";
    metrics.one("log_associativity", "gauge", help, logs.associativity);
    let help = "Mapping units that merges did not copy because they were trimmed.";
    metrics.one("log_copies_saved_total", "counter", help, Some(logs.copies_saved as f64));
    let help = "Trimmed mapping units that no merge has skipped yet.";
    metrics.one("log_trim_list_units", "gauge", help, Some(logs.trim_list as f64));
}

fn flash(metrics: &mut Metrics, frame: &Frame) {
    let flash = &frame.flash;
    let help = "Mapping units programmed per mapping unit that the host wrote.";
    metrics.one("write_amplification", "gauge", help, flash.write_amplification);
    let counters = [
        ("gc_victims_total", "Victims of garbage collection.", flash.gc_victims),
        ("blocks_erased_total", "Blocks erased.", flash.blocks_erased),
        ("units_moved_total", "Valid mapping units moved by garbage collection.", flash.units_moved),
        ("units_trimmed_total", "Mapping units that the host trimmed.", flash.units_trimmed),
        ("pages_read_total", "Flash pages read.", flash.pages_read),
        ("copy_backs_total", "Pages moved within their plane.", flash.copy_backs),
        ("map_hits_total", "Map entries found in the cache.", flash.map_hits),
        ("programs_failed_total", "Programs that failed.", flash.programs_failed),
        ("erases_failed_total", "Erases that failed.", flash.erases_failed),
        ("uncorrectable_reads_total", "Uncorrectable page reads.", flash.uncorrectable_reads),
        ("map_misses_total", "Map entries loaded from flash.", flash.map_misses),
    ];
    for (name, help, value) in counters {
        metrics.one(name, "counter", help, Some(value as f64));
    }
    metrics.begin("merges_total", "counter", "Merges of logical blocks, by kind.");
    for (kind, count) in &flash.merges {
        metrics.sample("merges_total", &[("kind", kind)], Some(*count as f64));
    }
    if let Some(logs) = &flash.log_blocks {
        log_blocks(metrics, logs);
    }
    metrics.begin("pages_programmed_total", "counter", "Flash pages programmed, by cause.");
    for (cause, pages) in &flash.programs {
        metrics.sample("pages_programmed_total", &[("cause", cause)], Some(*pages as f64));
    }
    metrics.begin("parallel_commands_total", "counter", "Multi-plane and interleaved commands.");
    for parallel in &flash.parallel {
        let (dies, planes) = (parallel.dies.to_string(), parallel.planes.to_string());
        let labels = [("kind", parallel.kind.as_str()), ("dies", &dies), ("planes", &planes)];
        metrics.sample("parallel_commands_total", &labels, Some(parallel.commands as f64));
    }
    metrics.one("free_blocks", "gauge", "Free blocks of all planes.", Some(flash.free_blocks as f64));
    metrics.one("bad_blocks", "gauge", "Bad blocks of all planes.", Some(flash.bad_blocks as f64));
    let help = "1 if the device is read-only.";
    metrics.one("read_only", "gauge", help, Some(f64::from(u8::from(flash.read_only))));
    let help = "Minimum number of free blocks of a plane.";
    metrics.one("free_blocks_min", "gauge", help, Some(f64::from(flash.free_blocks_min)));
}

fn busy(metrics: &mut Metrics, frame: &Frame) {
    let groups = [
        (
            "channel_busy",
            "channel",
            "Busy share of each channel in the last half second.",
            ["data", "command"],
            &frame.channels,
        ),
        ("die_busy", "die", "Busy share of each die in the last half second.", ["cell", "held"], &frame.dies),
    ];
    for (name, label, help, states, bars) in groups {
        metrics.begin(name, "gauge", help);
        for (index, shares) in bars.iter().enumerate() {
            for (state, share) in states.iter().zip(shares) {
                metrics.sample(name, &[(label, &index.to_string()), ("state", state)], Some(f64::from(*share)));
            }
        }
    }
}

fn lateness(metrics: &mut Metrics, frame: &Frame) {
    let late = &frame.lateness;
    metrics.one("replies_total", "counter", "Replies whose lateness was checked.", Some(late.replies as f64));
    metrics.begin("late_replies_total", "counter", "Late replies, by main cause.");
    for (cause, count) in &late.causes {
        metrics.sample("late_replies_total", &[("cause", cause)], Some(*count as f64));
    }
    metrics.begin("window_lateness_seconds", "gauge", "Lateness of the replies in the last half second.");
    for (quantile, us) in [("0.5", late.p50_us), ("0.99", late.p99_us), ("1", late.max_us)] {
        metrics.sample("window_lateness_seconds", &[("quantile", quantile)], us.map(|us| us / 1e6));
    }
    let help = "Client turnarounds that were compared with the client's usual turnaround.";
    metrics.one("client_turns_total", "counter", help, Some(late.client_turns as f64));
    let help = "Client turnarounds that took longer than usual.";
    metrics.one("client_late_turns_total", "counter", help, Some(late.client_late as f64));
    let help = "1 if few enough replies were late that hosts observed the latencies of the model.";
    metrics.one("faithful", "gauge", help, late.faithful.map(|faithful| f64::from(u8::from(faithful))));
}
