//! What a monitor shows: one shape for the page, the terminal, the control socket and the metrics.
//!
//! `docs/reference/control.md` has every field. Latencies, rates and shares are of simulated time, in which the device
//! works; how late answers were is of real time, in which the host waits.

use std::collections::BTreeMap;
use std::path::Path;

use floatgate_core::config::DeviceConfig;
use floatgate_core::metrics::counters::{Counters, MergeKind, ProgramCause};
use floatgate_core::metrics::series::Answered;
use floatgate_core::metrics::summary::units_programmed;
use floatgate_core::sim::request::{Operation, SECTOR};
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::clock::Wall;
use crate::engine::{Look, Totals};
use crate::lateness::LIMIT;
use crate::roster;

/// The shape of [`Info`] and [`Frame`]; it changes when a field goes or comes to mean something else.
pub const SCHEMA: &str = "floatgate-monitor-1";

/// Dies, and channels, that are told one by one. Of more, neighbours are taken together.
const MOST_BARS: usize = 256;

/// What does not change while a device is served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// [`SCHEMA`].
    pub schema: String,
    /// Of Floatgate.
    pub version: String,
    /// The device's name.
    pub device: String,
    /// The digest of its configuration.
    pub config_digest: String,
    /// What clients see.
    pub logical_bytes: u64,
    /// What there is.
    pub physical_bytes: u64,
    /// Channels.
    pub channels: u32,
    /// Dies of all channels.
    pub dies: u32,
    /// Planes of all dies.
    pub planes: u32,
    /// Blocks of a plane.
    pub blocks_per_plane: u32,
    /// Erases that a block endures.
    pub endurance: u32,
    /// Where NBD clients connect.
    pub addresses: Vec<String>,
    /// The socket at which vhost-user clients connect.
    pub vhost_user: Option<String>,
    /// True if the device comes back after a power cut: it has an image, in a file or in memory.
    #[serde(default)]
    pub power_cut: bool,
    /// True if operations can be made to fail: the device has a table `[faults]`.
    #[serde(default)]
    pub faults: bool,
}

/// A connected client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Client {
    /// Front end: `nbd` or `vhost-user`.
    pub front: String,
    /// `unix`, or the address of a TCP client.
    pub address: String,
    /// Process at the other end of a Unix socket.
    pub pid: Option<u32>,
    /// Name of that process.
    pub process: Option<String>,
    /// Real seconds since it connected.
    pub connected_s: f64,
    /// Requests in progress.
    pub in_progress: u32,
    /// Turns that were compared with the client's usual turn: see [`crate::lateness::ClientTurns`].
    #[serde(default)]
    pub turns: u64,
    /// Those that took longer than is usual.
    #[serde(default)]
    pub late_turns: u64,
}

/// Preparation of a server before the device is served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Preparing {
    /// The work, such as "filling the device".
    pub what: String,
    /// Share of it that is done, from 0 to 1. `None` if that is not known.
    pub share: Option<f64>,
}

impl std::fmt::Display for Preparing {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self.share {
            Some(share) => write!(f, "{}, {:.0} %", self.what, (share * 100.0).floor()),
            None => write!(f, "{}", self.what),
        }
    }
}

/// Requests of an operation: all of them, and what those of the frame's window were like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// All so far.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their sectors, of 512 B.
    pub sectors: u64,
    /// Those that did not end well.
    pub errors: u64,
    /// In the window: answered a second.
    pub iops: f64,
    /// In the window: MiB a second.
    pub mib_per_s: f64,
    /// In the window: the mean latency; none without requests.
    pub mean_us: Option<f64>,
    /// In the window: half took no longer.
    pub p50_us: Option<f64>,
    /// In the window: one in a hundred took longer.
    pub p99_us: Option<f64>,
    /// In the window: one in a thousand took longer.
    pub p99_9_us: Option<f64>,
    /// In the window: the longest.
    pub max_us: Option<f64>,
}

/// Commands that made several planes or dies work together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Merged {
    /// `read`, `program`, `erase` or `copy_back`.
    pub kind: String,
    /// Dies of a command.
    pub dies: u32,
    /// Planes of a command.
    pub planes: u32,
    /// How many commands.
    pub commands: u64,
}

/// What flash did since the first request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flash {
    /// Mapping units programmed for each that the host wrote; none without writes.
    pub write_amplification: Option<f64>,
    /// The same in the window.
    pub write_amplification_now: Option<f64>,
    /// Victims that cleaning has chosen.
    pub cleanings: u64,
    /// Blocks erased.
    pub blocks_erased: u64,
    /// Valid units moved by cleaning.
    pub units_moved: u64,
    /// Units that the host trimmed.
    pub units_trimmed: u64,
    /// Pages read.
    pub pages_read: u64,
    /// Pages programmed.
    pub pages_programmed: u64,
    /// Those, by cause.
    pub programs: BTreeMap<String, u64>,
    /// Pages moved within their plane.
    pub copy_backs: u64,
    /// Logical blocks whose two blocks became one, by kind; empty if the mapping scheme does not merge.
    #[serde(default)]
    pub merges: BTreeMap<String, u64>,
    /// Commands of several planes or dies, by kind.
    pub merged: Vec<Merged>,
    /// The least number of free blocks of a plane.
    pub free_blocks_min: u32,
    /// Free blocks of all planes.
    pub free_blocks: u64,
    /// Entries of the map found in its cache; 0 where the map is in memory.
    pub map_hits: u64,
    /// Entries that were fetched.
    pub map_misses: u64,
    /// Programs that failed.
    #[serde(default)]
    pub programs_failed: u64,
    /// Erases that failed.
    #[serde(default)]
    pub erases_failed: u64,
    /// Reads of pages that could not be corrected, of the host and of others.
    #[serde(default)]
    pub uncorrectable_reads: u64,
    /// Bad blocks.
    #[serde(default)]
    pub bad_blocks: u64,
    /// Whether the device takes no writes any more.
    #[serde(default)]
    pub read_only: bool,
}

/// The controller's buffer; all 0 without one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// Units in it.
    pub units: u64,
    /// Those that flash does not have in full.
    pub dirty: u64,
    /// Units of reads that were found in full.
    pub read_hits: u64,
    /// Units of writes that found their unit there.
    pub write_hits: u64,
}

/// How late answers were, in real time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Late {
    /// Answers judged so far.
    pub answers: u64,
    /// Further ones, to requests without data, that are faster than any can be sent.
    pub too_short: u64,
    /// Answers that were late.
    pub late: u64,
    /// Their share; none without answers.
    pub share: Option<f64>,
    /// Whether so few were late that the host saw the device's time; none without answers.
    pub faithful: Option<bool>,
    /// What the late ones waited for longest: `phase`, `host`, `lock` and `work`.
    pub causes: BTreeMap<String, u64>,
    /// Since the frame before, half were sent at most so late.
    pub p50_us: Option<f64>,
    /// And all but one in a hundred.
    pub p99_us: Option<f64>,
    /// And all.
    pub max_us: Option<f64>,
    /// Of all clients so far, turns that were compared with the client's usual turn.
    #[serde(default)]
    pub client_turns: u64,
    /// Those that took longer than is usual.
    #[serde(default)]
    pub client_late: u64,
    /// Their share; none without such turns.
    #[serde(default)]
    pub client_late_share: Option<f64>,
}

/// A look at the device, and what has happened since the one before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// Counts frames, from 1.
    pub number: u64,
    /// Real seconds since the monitor began.
    pub wall_s: f64,
    /// Real seconds since the frame before.
    pub wall_span_s: f64,
    /// Time of day: seconds since 1970, UTC.
    #[serde(default)]
    pub unix_s: f64,
    /// Simulated time, in seconds.
    pub simulated_s: f64,
    /// Simulated seconds since the frame before: the window.
    pub span_s: f64,
    /// Simulated time that passes in a unit of real time; none where it is as fast as it can be.
    pub speed: Option<f64>,
    /// Requests by operation: `read`, `write`, `trim`, `write_zeroes` and `flush`.
    pub requests: BTreeMap<String, Requests>,
    /// Requests in progress now.
    pub outstanding: u64,
    /// Their mean number in the window.
    pub queue_mean: f64,
    /// What flash did.
    pub flash: Flash,
    /// The controller's buffer.
    pub buffer: Buffer,
    /// In the window, by channel: shares of time with data, and with commands.
    pub channels: Vec<[f32; 2]>,
    /// In the window, by die: shares of time in which cells work, and in which it is held otherwise.
    pub dies: Vec<[f32; 2]>,
    /// How late answers were.
    pub lateness: Late,
    /// Bytes of payload that are held.
    pub payload_bytes: u64,
    /// Requests that failed because their payload could not be kept or fetched: memory or the disk of the image is
    /// full, or broken.
    #[serde(default)]
    pub payload_errors: u64,
    /// Why the server cannot go on, if that is so.
    pub trouble: Option<String>,
    /// What is wrong although it can.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Preparation in progress. `None` once the device is served.
    #[serde(default)]
    pub preparing: Option<Preparing>,
    /// Connected clients.
    #[serde(default)]
    pub clients: Vec<Client>,
}

impl Info {
    /// Of a device that clients reach there; `power_cut` if it comes back after one.
    pub fn new(config: &DeviceConfig, addresses: &[Address], vhost_user: Option<&Path>, power_cut: bool) -> Info {
        let geometry = &config.geometry;
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Info {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            device: config.name.clone(),
            config_digest: config.digest(),
            logical_bytes: config.logical_bytes(),
            physical_bytes: config.physical_bytes(),
            channels: geometry.channels,
            dies: config.total_planes() / geometry.planes,
            planes: config.total_planes(),
            blocks_per_plane: geometry.blocks,
            endurance: config.endurance(),
            addresses: addresses.iter().map(|address| address.absolute().to_string()).collect(),
            vhost_user: vhost_user.map(|path| absolute(path).to_string_lossy().into_owned()),
            power_cut,
            faults: config.faults.is_some(),
        }
    }
}

impl Frame {
    /// Of a look. `began` is when the monitor did, `before` when it looked last.
    pub fn new(config: &DeviceConfig, look: &Look, number: u64, began: Wall, before: Wall) -> Frame {
        let seconds = |span: Wall| span.0 as f64 / 1e9;
        let span_s = look.window.as_ref().map_or(0.0, |window| window.width().as_s());
        let counters = look.sample.counters.since(&look.first);
        let operations = Operation::ALL.iter().map(|operation| {
            let window = look.window.as_ref().and_then(|window| window.of(*operation));
            (name_of(*operation).to_owned(), Requests::new(&look.totals[operation.index()], window, span_s))
        });
        let window = look.window.as_ref();
        Frame {
            number,
            wall_s: seconds(look.now.since(began)),
            wall_span_s: seconds(look.now.since(before)),
            unix_s: time_of_day(),
            simulated_s: look.sample.at.as_s(),
            span_s,
            speed: look.speed.map(crate::clock::Speed::as_f64),
            requests: operations.collect(),
            outstanding: look.outstanding,
            queue_mean: if span_s > 0.0 { window.map_or(0.0, |w| w.outstanding as f64 / 1e12 / span_s) } else { 0.0 },
            flash: Flash::new(config, look, &counters),
            buffer: Buffer {
                units: look.sample.buffer_units[0],
                dirty: look.sample.buffer_units[1],
                read_hits: look.sample.buffer.reads_hit,
                write_hits: look.sample.buffer.writes_hit,
            },
            // Without a window nothing worked: shares of no time are 0.
            channels: shares(window.map_or(&look.sample.channels, |window| &window.channels), span_s),
            dies: shares(window.map_or(&look.sample.dies, |window| &window.dies), span_s),
            lateness: Late::new(look),
            payload_bytes: look.payload_bytes,
            payload_errors: look.payload_errors,
            trouble: look.trouble.clone(),
            warnings: look.warnings.clone(),
            preparing: None,
            clients: Vec::new(),
        }
    }

    /// Creates the frame of a server that is still preparing.
    pub fn preparing(config: &DeviceConfig, what: Preparing, number: u64, began: Wall, now: Wall) -> Frame {
        let look = Look { now, ..Look::default() };
        let frame = Frame::new(config, &look, number, began, now);
        Frame { preparing: Some(what), speed: None, ..frame }
    }

    /// Adds who is connected.
    pub fn with_clients(self, clients: &[roster::Client], now: Wall) -> Frame {
        Frame { clients: clients.iter().map(|client| Client::new(client, now)).collect(), ..self }
    }

    /// All requests that failed.
    pub fn errors(&self) -> u64 {
        self.requests.values().map(|requests| requests.errors).sum()
    }

    /// Of all operations: requests so far, and in the window requests and MiB a second.
    pub fn all(&self) -> (u64, f64, f64) {
        let sum = |of: fn(&Requests) -> f64| self.requests.values().map(of).sum::<f64>();
        (self.requests.values().map(|r| r.count).sum(), sum(|r| r.iops), sum(|r| r.mib_per_s))
    }

    /// The same without what is of each channel and die: for histories.
    pub fn short(&self) -> Frame {
        let mut frame = self.clone();
        frame.channels.clear();
        frame.dies.clear();
        frame.flash.merged.clear();
        frame.clients.clear();
        frame
    }
}

/// The time of day, in seconds since 1970.
fn time_of_day() -> f64 {
    #[expect(clippy::disallowed_methods, reason = "shown to people beside the figures, and no input of anything")]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

impl Client {
    fn new(client: &roster::Client, now: Wall) -> Client {
        let address = client.peer.address.map_or("unix".to_owned(), |address| address.to_string());
        Client {
            front: client.front.to_owned(),
            address,
            pid: client.peer.pid,
            process: client.peer.process.clone(),
            connected_s: now.since(client.since).0 as f64 / 1e9,
            in_progress: client.in_progress,
            turns: client.turns.judged,
            late_turns: client.turns.late,
        }
    }
}

impl std::fmt::Display for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}", self.process.as_deref().unwrap_or(&self.address))?;
        match self.pid {
            Some(pid) if self.process.is_some() => write!(f, " (process {pid}) over {}", self.front),
            _ => write!(f, " over {}", self.front),
        }
    }
}

/// The name of an operation, as results have it.
fn name_of(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Trim => "trim",
        Operation::WriteZeroes => "write_zeroes",
        Operation::Flush => "flush",
    }
}

/// Times as shares of a span; of many, means of neighbours.
fn shares(times: &[[i64; 2]], span_s: f64) -> Vec<[f32; 2]> {
    let group = times.len().div_ceil(MOST_BARS).max(1);
    let share = |times: &[[i64; 2]], which: usize| {
        let sum: i64 = times.iter().map(|time| time[which]).sum();
        let all = span_s * 1e12 * times.len() as f64;
        // What is booked ahead may be a little less or more than there is.
        if all > 0.0 { (sum as f64 / all).clamp(0.0, 1.0) as f32 } else { 0.0 }
    };
    times.chunks(group).map(|times| [share(times, 0), share(times, 1)]).collect()
}

impl Requests {
    fn new(totals: &Totals, window: Option<&Answered>, span_s: f64) -> Requests {
        let quantile = |share| window.and_then(|answered| answered.quantile_us(share));
        let rate = |amount: f64| if span_s > 0.0 { amount / span_s } else { 0.0 };
        Requests {
            count: totals.count,
            bytes: totals.bytes,
            sectors: totals.bytes / SECTOR,
            errors: totals.errors,
            iops: rate(window.map_or(0.0, |answered| answered.count as f64)),
            mib_per_s: rate(window.map_or(0.0, |answered| answered.bytes as f64 / 1_048_576.0)),
            mean_us: window.and_then(Answered::mean_us),
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            p99_9_us: quantile(0.999),
            max_us: window.filter(|answered| answered.count > 0).map(|answered| answered.latency_max.as_us()),
        }
    }
}

impl Flash {
    fn new(config: &DeviceConfig, look: &Look, counters: &Counters) -> Flash {
        let amplification = |counters: &Counters| {
            (counters.host_units > 0).then(|| units_programmed(config, counters) as f64 / counters.host_units as f64)
        };
        let merged = look.sample.merged.shapes().map(|shape| Merged {
            kind: shape.kind.name().to_owned(),
            dies: shape.dies,
            planes: shape.planes,
            commands: shape.commands,
        });
        let programs = ProgramCause::ALL.iter();
        let merges = MergeKind::ALL.iter().filter(|_| config.mapping.scheme.needs(config).whole_blocks);
        Flash {
            write_amplification: amplification(counters),
            write_amplification_now: look.window.as_ref().and_then(|window| amplification(&window.counters)),
            cleanings: counters.victims,
            blocks_erased: counters.blocks_erased,
            units_moved: counters.units_moved(),
            units_trimmed: counters.units_trimmed,
            pages_read: counters.pages_read_total(),
            pages_programmed: counters.pages_programmed_total(),
            programs: programs
                .map(|&(cause, name)| (name.to_owned(), counters.pages_programmed[cause as usize]))
                .collect(),
            copy_backs: counters.copy_backs,
            merges: merges.map(|&(kind, name)| (name.to_owned(), counters.merges[kind as usize])).collect(),
            merged: merged.collect(),
            free_blocks_min: look.sample.stock_min,
            free_blocks: look.sample.stock_sum,
            map_hits: counters.map.hits,
            map_misses: counters.map.misses,
            programs_failed: counters.faults.programs_failed,
            erases_failed: counters.faults.erases_failed,
            uncorrectable_reads: counters.faults.uncorrectable.iter().sum(),
            bad_blocks: look.sample.bad_blocks,
            read_only: look.sample.read_only,
        }
    }
}

impl Late {
    fn new(look: &Look) -> Late {
        let counts = &look.lateness;
        let share = (counts.answers > 0).then(|| counts.late as f64 / counts.answers as f64);
        let causes = counts.causes.named().into_iter().map(|(cause, count)| (cause.to_owned(), count));
        Late {
            answers: counts.answers,
            too_short: counts.too_short,
            late: counts.late,
            share,
            faithful: share.map(|share| share <= LIMIT),
            causes: causes.collect(),
            p50_us: look.late.quantile_us(0.5),
            p99_us: look.late.quantile_us(0.99),
            max_us: (look.late.count > 0).then(|| look.late.latency_max.as_us()),
            client_turns: counts.turns.judged,
            client_late: counts.turns.late,
            client_late_share: counts.turns.share(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_window_and_bounded() {
        // Two channels in a window of 1 us: 500 ns with data and 250 ns with commands; more than there is, and less.
        let times = [[500_000, 250_000], [1_100_000, -5]];
        assert_eq!(shares(&times, 1e-6), [[0.5, 0.25], [1.0, 0.0]]);
        assert_eq!(shares(&times, 0.0), [[0.0, 0.0], [0.0, 0.0]]);
        let many = shares(&vec![[500_000, 0]; 1000], 1e-6);
        assert_eq!((many.len(), many[0]), (250, [0.5, 0.0]));
    }
}
