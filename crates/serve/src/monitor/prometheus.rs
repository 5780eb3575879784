//! Metrics for Prometheus, in the text format of OpenMetrics 1.0:
//! <https://prometheus.io/docs/specs/om/open_metrics_spec/>.

use std::fmt;
use std::sync::Arc;

use floatgate_core::results::{self, Value};

use super::frame::{Frame, Info, LogBlocks, Member};
use super::latencies::Latencies;

const GAUGE: Kind = Kind::Gauge;
const COUNTER: Kind = Kind::Counter;

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// A value of a metric.
#[derive(Clone, Copy)]
enum Number {
    Whole(u64),
    Real(f64),
}

impl From<u64> for Number {
    fn from(value: u64) -> Number {
        Number::Whole(value)
    }
}

impl From<u32> for Number {
    fn from(value: u32) -> Number {
        Number::Whole(u64::from(value))
    }
}

impl From<usize> for Number {
    fn from(value: usize) -> Number {
        Number::Whole(value as u64)
    }
}

impl From<bool> for Number {
    fn from(value: bool) -> Number {
        Number::Whole(u64::from(value))
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Number {
        Number::Real(value)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match *self {
            Number::Whole(value) => write!(f, "{value}"),
            Number::Real(f64::INFINITY) => write!(f, "+Inf"),
            // A real number has a decimal point, so that the bounds of histograms are canonical.
            Number::Real(value) if value.fract() == 0.0 => write!(f, "{value:.1}"),
            Number::Real(value) => write!(f, "{value}"),
        }
    }
}

/// Labels of a sample.
type Labels<'a> = Vec<(&'a str, String)>;

/// Writer of metrics.
#[derive(Default)]
struct Metrics {
    text: String,
}

impl Metrics {
    /// Writes a metric without labels. Without a value, it has no sample.
    fn one(&mut self, name: &str, kind: Kind, help: &str, value: Option<impl Into<Number>>) {
        self.family(name, kind, help, value.map(|value| (Vec::new(), value.into())));
    }

    /// Writes a metric with a sample for each set of labels. Names of counters end in `_total`.
    fn family<'l>(
        &mut self,
        name: &str,
        kind: Kind,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l>, Number)>,
    ) {
        self.describe(name.strip_suffix("_total").unwrap_or(name), kind, help);
        for (labels, value) in samples {
            self.sample(name, &labels, value);
        }
    }

    /// Writes the help and the type of a metric.
    fn describe(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.text += &format!("# HELP floatgate_{name} {help}\n# TYPE floatgate_{name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &Labels, value: Number) {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.text += &format!("floatgate_{name}{labels} {value}\n");
    }
}

/// Returns the value of a label with escapes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Returns all metrics.
pub fn text(info: &Info, frame: &Arc<Frame>, of_requests: &Latencies) -> String {
    let mut metrics = Metrics::default();
    device(&mut metrics, info, frame);
    requests(&mut metrics, frame);
    latencies(&mut metrics, of_requests);
    flash(&mut metrics, frame);
    members(&mut metrics, frame);
    busy(&mut metrics, frame);
    lateness(&mut metrics, frame);
    metrics.text + "# EOF\n"
}

/// Writes a histogram for each operation. Histograms of several servers can be added.
fn latencies(metrics: &mut Metrics, latencies: &Latencies) {
    const NAME: &str = "request_latency_seconds";
    metrics.describe(NAME, Kind::Histogram, "Latency of completed requests, in simulated time.");
    for (operation, histogram) in latencies.operations() {
        let labels = labeled("operation", operation);
        metrics.sample(&format!("{NAME}_sum"), &labels, histogram.sum_s().into());
        metrics.sample(&format!("{NAME}_count"), &labels, histogram.count.into());
        let mut below = 0;
        for (bound, count) in histogram.buckets() {
            below += count;
            let labels = vec![("le", Number::Real(bound).to_string()), ("operation", operation.to_owned())];
            metrics.sample(&format!("{NAME}_bucket"), &labels, below.into());
        }
    }
}

fn device(metrics: &mut Metrics, info: &Info, frame: &Frame) {
    let labels = vec![
        ("device", info.device.clone()),
        ("version", info.version.clone()),
        ("config", info.config_digest.clone()),
    ];
    metrics.family("info", GAUGE, "Version and device of the server. Always 1.", [(labels, 1u64.into())]);
    metrics.one("uptime_seconds", GAUGE, "Real time since the monitor started.", Some(frame.wall_s));
    let help = "1 once the device is served; 0 while it is filled or recovered.";
    metrics.one("ready", GAUGE, help, Some(frame.preparing.is_none()));
    metrics.one("clients", GAUGE, "Connected clients.", Some(frame.clients.len()));
    metrics.one("simulated_seconds_total", COUNTER, "Simulated time.", Some(frame.simulated_s));
    let help = "Simulated time per real time. Absent with --no-delay.";
    metrics.one("speed", GAUGE, help, frame.speed);
    metrics.one("outstanding_requests", GAUGE, "Outstanding requests.", Some(frame.outstanding));
    metrics.one("payload_bytes", GAUGE, "Bytes of stored payload.", Some(frame.payload_bytes));
    let help = "Requests that failed because their payload could not be stored or read.";
    metrics.one("payload_errors_total", COUNTER, help, Some(frame.payload_errors));
    let help = "Requests of NBD clients that are not whole sectors.";
    metrics.one("unaligned_requests_total", COUNTER, help, Some(frame.unaligned_requests));
    let help = "Sectors that the server read to complete such requests.";
    metrics.one("unaligned_reads_total", COUNTER, help, Some(frame.unaligned_reads));
    let help = "Problems of the running server, such as a full disk. The control socket describes them.";
    metrics.one("warnings", GAUGE, help, Some(frame.warnings.len()));
    metrics.one("buffer_units", GAUGE, "Mapping units in the write buffer.", Some(frame.buffer.units));
    let help = "Dirty mapping units in the write buffer.";
    metrics.one("buffer_dirty_units", GAUGE, help, Some(frame.buffer.dirty));
}

fn members(metrics: &mut Metrics, frame: &Frame) {
    if frame.members.is_empty() {
        return;
    }
    type Family = (&'static str, Kind, &'static str, fn(&Member) -> Number);
    let families: [Family; 8] = [
        ("member_in_sync", GAUGE, "1 if the member of the array is in sync.", |m| (m.state == "in sync").into()),
        ("member_outstanding_requests", GAUGE, "Outstanding requests to the member.", |m| m.outstanding.into()),
        ("member_busy", GAUGE, "Mean share of the window in which dies work or are held.", |m| m.busy.into()),
        ("member_pages_read_total", COUNTER, "Pages read by the member.", |m| m.pages_read.into()),
        ("member_pages_programmed_total", COUNTER, "Pages programmed by the member.", |m| m.pages_programmed.into()),
        ("member_gc_victims_total", COUNTER, "Victims of the member's garbage collection.", |m| m.gc_victims.into()),
        ("member_free_blocks_min", GAUGE, "Free blocks of the member's plane with the fewest.", |m| {
            m.free_blocks_min.into()
        }),
        ("member_bad_blocks", GAUGE, "Bad blocks of the member.", |m| m.bad_blocks.into()),
    ];
    for (name, kind, help, of) in families {
        let sample = |(number, member): (usize, &Member)| (vec![("member", number.to_string())], of(member));
        metrics.family(name, kind, help, frame.members.iter().enumerate().map(sample));
    }
}

fn requests(metrics: &mut Metrics, frame: &Frame) {
    type Of = fn(&super::frame::Requests) -> u64;
    let counters: [(&str, &str, Of); 3] = [
        ("requests_total", "Completed requests.", |requests| requests.count),
        ("request_bytes_total", "Bytes of completed requests.", |requests| requests.bytes),
        ("request_errors_total", "Requests that failed.", |requests| requests.errors),
    ];
    for (name, help, of) in counters {
        let samples =
            frame.requests.iter().map(|(operation, requests)| (labeled("operation", operation), of(requests).into()));
        metrics.family(name, COUNTER, help, samples);
    }
    let samples = frame.requests.iter().flat_map(|(operation, requests)| {
        let quantiles =
            [("0.5", requests.p50_us), ("0.99", requests.p99_us), ("0.999", requests.p99_9_us), ("1", requests.max_us)];
        quantiles.into_iter().filter_map(move |(quantile, us)| {
            Some((vec![("operation", operation.clone()), ("quantile", quantile.to_owned())], (us? / 1e6).into()))
        })
    });
    let help = "Latency of the requests of the last half second, in simulated time.";
    metrics.family("window_latency_seconds", GAUGE, help, samples);
}

fn labeled<'a>(label: &'a str, value: &str) -> Labels<'a> {
    vec![(label, value.to_owned())]
}

fn log_blocks(metrics: &mut Metrics, logs: &LogBlocks) {
    let samples = logs.writes.iter().map(|(kind, units)| (labeled("kind", kind), (*units).into()));
    let help = "Mapping units written to log blocks, by kind of log block.";
    metrics.family("log_units_written_total", COUNTER, help, samples);
    let help = "Log blocks reclaimed by merges.";
    metrics.one("log_blocks_reclaimed_total", COUNTER, help, Some(logs.reclaimed));
    let help = "Logical blocks with valid units per reclaimed log block.";
    metrics.one("log_associativity", GAUGE, help, logs.associativity);
    let help = "Mapping units that merges did not copy because they were trimmed.";
    metrics.one("log_copies_saved_total", COUNTER, help, Some(logs.copies_saved));
    let help = "Trimmed mapping units that no merge has skipped yet.";
    metrics.one("log_trim_list_units", GAUGE, help, Some(logs.trim_list));
}

fn flash(metrics: &mut Metrics, frame: &Frame) {
    let flash = &frame.flash;
    for (statistic, value) in { flash.statistics }.list() {
        let Some(name) = statistic.metric else { continue };
        let (name, kind) = match statistic.kind {
            results::StatisticKind::Counter => (format!("{name}_total"), COUNTER),
            results::StatisticKind::Gauge => (name.to_owned(), GAUGE),
        };
        let samples: Vec<(Labels, Number)> = match value {
            Value::Whole(count) => vec![(Vec::new(), (*count).into())],
            Value::Number(number) => number.iter().map(|number| (Vec::new(), (*number).into())).collect(),
            Value::Each(counts, causes) => {
                causes.iter().zip(counts).map(|(cause, count)| (labeled("cause", cause), (*count).into())).collect()
            }
        };
        metrics.family(&name, kind, statistic.meaning, samples);
    }
    let merges = flash.merges.iter().map(|(kind, count)| (labeled("kind", kind), (*count).into()));
    metrics.family("merges_total", COUNTER, "Merges of logical blocks, by kind.", merges);
    if let Some(logs) = &flash.log_blocks {
        log_blocks(metrics, logs);
    }
    let programs = flash.programs.iter().map(|(cause, pages)| (labeled("cause", cause), (*pages).into()));
    metrics.family("pages_programmed_total", COUNTER, "Flash pages programmed, by cause.", programs);
    let parallel = flash.parallel.iter().map(|parallel| {
        let (dies, planes) = (parallel.dies.to_string(), parallel.planes.to_string());
        (vec![("kind", parallel.kind.clone()), ("dies", dies), ("planes", planes)], parallel.commands.into())
    });
    metrics.family("parallel_commands_total", COUNTER, "Multi-plane and interleaved commands.", parallel);
    let help = "1 if the device is read-only.";
    metrics.one("read_only", GAUGE, help, Some(flash.read_only));
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
        let samples = bars.iter().enumerate().flat_map(|(index, shares)| {
            let one = move |(state, share): (&str, &f32)| {
                (vec![(label, index.to_string()), ("state", state.to_owned())], f64::from(*share).into())
            };
            states.into_iter().zip(shares).map(one)
        });
        metrics.family(name, GAUGE, help, samples);
    }
}

fn lateness(metrics: &mut Metrics, frame: &Frame) {
    let late = &frame.lateness;
    metrics.one("replies_total", COUNTER, "Replies whose lateness was checked.", Some(late.replies));
    let causes = late.causes.iter().map(|(cause, count)| (labeled("cause", cause), (*count).into()));
    metrics.family("late_replies_total", COUNTER, "Late replies, by main cause.", causes);
    let quantiles = [("0.5", late.p50_us), ("0.99", late.p99_us), ("1", late.max_us)];
    let samples =
        quantiles.into_iter().filter_map(|(quantile, us)| Some((labeled("quantile", quantile), (us? / 1e6).into())));
    let help = "Lateness of the replies in the last half second.";
    metrics.family("window_lateness_seconds", GAUGE, help, samples);
    let help = "Client turnarounds that were compared with the client's usual turnaround.";
    metrics.one("client_turns_total", COUNTER, help, Some(late.client_turns));
    let help = "Client turnarounds that took longer than usual.";
    metrics.one("client_late_turns_total", COUNTER, help, Some(late.client_late));
    let help = "1 if few enough replies were late that hosts observed the latencies of the model.";
    metrics.one("faithful", GAUGE, help, late.faithful);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_numbers_are_canonical() {
        let mut metrics = Metrics::default();
        metrics.one("speed", GAUGE, "Speed.", Some(1.0));
        metrics.family("a_total", COUNTER, "A.", [(labeled("name", "a\"b\\c\nd"), 7u64.into())]);
        let text = "# HELP floatgate_speed Speed.\n# TYPE floatgate_speed gauge\nfloatgate_speed 1.0\n\
                    # HELP floatgate_a A.\n# TYPE floatgate_a counter\n\
                    floatgate_a_total{name=\"a\\\"b\\\\c\\nd\"} 7\n";
        assert_eq!(metrics.text, text);
        for (number, text) in [(1.024e-6, "0.000001024"), (0.5, "0.5"), (f64::INFINITY, "+Inf"), (f64::NAN, "NaN")] {
            assert_eq!(Number::from(number).to_string(), text);
        }
    }
}
