//! Data that a monitor shows, in one format for the page, the terminal, the control socket and the metrics.
//!
//! `docs/reference/control.md` documents every field. Latencies, rates and shares refer to simulated time, because the
//! device works in simulated time. Lateness refers to real time, because the host waits in real time.

use std::collections::BTreeMap;
use std::path::Path;

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::results::{Answered, Counters, Interval, MergeKind, ProgramCause, Sample, Statistics};
use floatgate_core::sim::request::{Operation, SECTOR};
use serde::{Deserialize, Serialize};

use super::blocks;
use crate::clock::Wall;
use crate::engine::{MemberSnapshot, Snapshot, Totals};
use crate::lateness::LIMIT;
use crate::roster;
use crate::sockets::SocketAddresses;

/// Version of the format of [`Info`] and [`Frame`]. It changes when a field is removed or changes its meaning.
pub const SCHEMA: &str = "floatgate-monitor-2";

/// Maximum number of dies, or channels, in a frame. If there are more, neighbors are averaged.
const MAX_BARS: usize = 256;

/// Properties that do not change while a device is served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of Floatgate.
    pub version: String,
    /// Name of the device.
    pub device: String,
    /// Digest of the device's configuration.
    pub config_digest: String,
    /// Capacity visible to clients.
    pub logical_bytes: u64,
    /// Physical capacity.
    pub physical_bytes: u64,
    /// Number of channels.
    pub channels: u32,
    /// Number of dies of all channels.
    pub dies: u32,
    /// Number of planes of all dies.
    pub planes: u32,
    /// Number of blocks per plane.
    pub blocks_per_plane: u32,
    /// Erase cycles that a block endures.
    pub endurance: u32,
    /// Kinds of blocks in the block map. Empty if the mapping scheme has no log blocks.
    #[serde(default)]
    pub block_kinds: Vec<String>,
    /// Addresses for NBD clients.
    pub addresses: Vec<String>,
    /// Path of the socket for vhost-user clients.
    pub vhost_user: Option<String>,
    /// TCP addresses for NVMe hosts.
    #[serde(default)]
    pub nvme: Vec<String>,
    /// NQN of the drive for NVMe hosts.
    #[serde(default)]
    pub nqn: Option<String>,
    /// True if the device can recover from a power cut, because it has an image in a file or in memory.
    #[serde(default)]
    pub power_cut: bool,
    /// True if operations can be made to fail: the device has a table `[faults]`.
    #[serde(default)]
    pub faults: bool,
}

/// A connected client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Client {
    /// Frontend: `nbd`, `vhost-user` or `nvme-tcp`.
    pub frontend: String,
    /// `unix`, or the address of a TCP client.
    pub address: String,
    /// Process at the other end of a Unix socket.
    pub pid: Option<u32>,
    /// Name of the process.
    pub process: Option<String>,
    /// Real time since the client connected, in seconds.
    pub connected_s: f64,
    /// Outstanding requests.
    pub in_progress: u32,
    /// Turnarounds that were compared with the client's usual one: see [`crate::lateness::ClientTurns`].
    #[serde(default)]
    pub turns: u64,
    /// Turnarounds that took longer than usual.
    #[serde(default)]
    pub late_turns: u64,
}

/// Preparation of a server before the device is served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Preparing {
    /// The work, such as "filling the device".
    pub what: String,
    /// Completed share, from 0 to 1. `None` if unknown.
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

/// Requests of an operation: totals, and rates and latencies in the frame's window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// Requests so far.
    pub count: u64,
    /// Bytes of these requests.
    pub bytes: u64,
    /// Sectors of 512 B of these requests.
    pub sectors: u64,
    /// Failed requests.
    pub errors: u64,
    /// Completions per second in the window.
    pub iops: f64,
    /// MiB per second in the window.
    pub mib_per_s: f64,
    /// Mean latency in the window. `None` without requests.
    pub mean_us: Option<f64>,
    /// Median latency in the window.
    pub p50_us: Option<f64>,
    /// 99th percentile of the latency in the window.
    pub p99_us: Option<f64>,
    /// 99.9th percentile of the latency in the window.
    pub p99_9_us: Option<f64>,
    /// Maximum latency in the window.
    pub max_us: Option<f64>,
}

/// Multi-plane and multi-die commands of one shape.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ParallelCommands {
    /// `read`, `program`, `erase` or `copy_back`.
    pub kind: String,
    /// Dies per command.
    pub dies: u32,
    /// Planes per command.
    pub planes: u32,
    /// Number of commands.
    pub commands: u64,
}

/// Activity of flash since the first request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flash {
    /// Statistics of the device that have a metric.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// Write amplification in the window.
    pub write_amplification_now: Option<f64>,
    /// Pages programmed.
    pub pages_programmed: u64,
    /// Pages programmed by cause.
    pub programs: BTreeMap<String, u64>,
    /// Merges of blocks, by kind. Empty if the mapping scheme does not merge.
    #[serde(default)]
    pub merges: BTreeMap<String, u64>,
    /// Merges per second in the window, by kind. Empty if the mapping scheme does not merge.
    #[serde(default)]
    pub merges_per_s: BTreeMap<String, f64>,
    /// Log blocks. `None` if the mapping scheme has none.
    #[serde(default)]
    pub log_blocks: Option<LogBlocks>,
    /// Commands on several planes or dies, by kind.
    pub parallel: Vec<ParallelCommands>,
    /// True if the device no longer accepts writes.
    #[serde(default)]
    pub read_only: bool,
}

/// Log blocks since the first request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogBlocks {
    /// Mapping units that the host wrote, by kind of log block.
    pub writes: BTreeMap<String, u64>,
    /// Log blocks that merges reclaimed.
    pub reclaimed: u64,
    /// Mean number of logical blocks with valid units in a log block when it was reclaimed. `None` if none was.
    pub associativity: Option<f64>,
    /// Associativity in the window.
    pub associativity_now: Option<f64>,
    /// Trimmed units that no merge has skipped yet.
    pub trim_list: u64,
    /// Units that merges did not copy because they were trimmed.
    pub copies_saved: u64,
}

impl LogBlocks {
    fn new(config: &DeviceConfig, snapshot: &Snapshot, counters: &Counters) -> Option<LogBlocks> {
        let (kinds, counts) = (config.log_kinds(), &counters.log_blocks);
        let writes = kinds.iter().zip(&counts.units).map(|(kind, units)| ((*kind).to_owned(), *units));
        (!kinds.is_empty()).then(|| LogBlocks {
            writes: writes.collect(),
            reclaimed: counts.reclaimed,
            associativity: counts.associativity(),
            associativity_now: snapshot.window.as_ref().and_then(|window| window.counters.log_blocks.associativity()),
            trim_list: snapshot.sample.trim_list,
            copies_saved: counts.copies_saved,
        })
    }
}

/// Reads and writes together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// Reads as a share of the requests so far. `None` without requests.
    pub read_share: Option<f64>,
    /// Reads as a share of the requests of the window.
    pub read_share_now: Option<f64>,
    /// Mean size of the requests so far in bytes.
    pub mean_bytes: Option<f64>,
    /// Mean size of the requests of the window in bytes.
    pub mean_bytes_now: Option<f64>,
}

impl Mix {
    fn new(snapshot: &Snapshot) -> Mix {
        let ratio = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        let [read, write] = [Operation::Read, Operation::Write];
        let of = |operation: Operation| {
            let totals = &snapshot.totals[operation.index()];
            let now = snapshot.window.as_ref().and_then(|window| window.of(operation));
            [[totals.count, totals.bytes], now.map_or([0; 2], |now| [now.count, now.bytes])]
        };
        let ([all_reads, reads], [all_writes, writes]) = (of(read), of(write));
        let share = |reads: [u64; 2], writes: [u64; 2]| ratio(reads[0], reads[0] + writes[0]);
        let size = |reads: [u64; 2], writes: [u64; 2]| ratio(reads[1] + writes[1], reads[0] + writes[0]);
        Mix {
            read_share: share(all_reads, all_writes),
            read_share_now: share(reads, writes),
            mean_bytes: size(all_reads, all_writes),
            mean_bytes_now: size(reads, writes),
        }
    }
}

/// Member of an array.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// `in sync`, `failed` or `rebuilding`, or `comparing` while the array compares its stripes after a power cut.
    pub state: String,
    /// Outstanding requests of the array to the member.
    pub outstanding: u64,
    /// Pages read per second in the window.
    pub pages_read_per_s: f64,
    /// Pages programmed per second in the window.
    pub pages_programmed_per_s: f64,
    /// Mean share of the window in which the dies work or are held.
    pub busy: f64,
    /// Pages read since the first request.
    pub pages_read: u64,
    /// Pages programmed since the first request.
    pub pages_programmed: u64,
    /// Victims that garbage collection has chosen since the first request.
    pub gc_victims: u64,
    /// Blocks erased since the first request.
    pub blocks_erased: u64,
    /// Smallest number of free blocks of any plane.
    pub free_blocks_min: u32,
    /// Bad blocks.
    pub bad_blocks: u64,
    /// True if the member no longer accepts writes.
    pub read_only: bool,
}

impl Member {
    fn new(member: &MemberSnapshot) -> Member {
        let [last, before] = &member.samples;
        let counters = last.counters.since(&member.first);
        let span_s = last.at.since(before.at).as_s();
        // The counters restart with a power cut.
        let rate = |of: fn(&Counters) -> u64| {
            let pages = of(&last.counters).saturating_sub(of(&before.counters));
            if span_s > 0.0 { pages as f64 / span_s } else { 0.0 }
        };
        let busy: i64 = last.dies.iter().zip(&before.dies).map(|(now, then)| now[0] + now[1] - then[0] - then[1]).sum();
        let all = span_s * 1e12 * last.dies.len() as f64;
        Member {
            state: member.state.to_owned(),
            outstanding: member.outstanding,
            pages_read_per_s: rate(Counters::pages_read_total),
            pages_programmed_per_s: rate(Counters::pages_programmed_total),
            busy: if all > 0.0 { (busy as f64 / all).clamp(0.0, 1.0) } else { 0.0 },
            pages_read: counters.pages_read_total(),
            pages_programmed: counters.pages_programmed_total(),
            gc_victims: counters.victims,
            blocks_erased: counters.blocks_erased,
            free_blocks_min: last.free_blocks_min,
            bad_blocks: last.bad_blocks,
            read_only: last.read_only,
        }
    }
}

/// The controller's buffer. All fields are 0 without a buffer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// Mapping units in the buffer.
    pub units: u64,
    /// Dirty mapping units.
    pub dirty: u64,
    /// Mapping units of reads that were completely in the buffer.
    pub read_hits: u64,
    /// Mapping units of writes that were already in the buffer.
    pub write_hits: u64,
}

/// Lateness of replies, in real time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Late {
    /// Judged replies so far.
    pub replies: u64,
    /// Replies that are not judged: the request moved no data and was faster than any reply can be.
    pub not_judged: u64,
    /// Late replies.
    pub late: u64,
    /// Share of late replies. `None` without replies.
    pub share: Option<f64>,
    /// True if few enough replies were late for the host to see the device's timing. `None` without replies.
    pub faithful: Option<bool>,
    /// Late replies by main cause: `phase`, `host`, `lock`, `disk` and `work`.
    pub causes: BTreeMap<String, u64>,
    /// Median lateness since the last frame.
    pub p50_us: Option<f64>,
    /// 99th percentile of the lateness since the last frame.
    pub p99_us: Option<f64>,
    /// Maximum lateness since the last frame.
    pub max_us: Option<f64>,
    /// Turnarounds of all clients so far that were compared with the client's usual one.
    #[serde(default)]
    pub client_turns: u64,
    /// Turnarounds that took longer than usual.
    #[serde(default)]
    pub client_late: u64,
    /// Share of late turnarounds. `None` if no turnaround was judged.
    #[serde(default)]
    pub client_late_share: Option<f64>,
}

/// State of the device, and activity since the last frame.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// Number of the frame, starting at 1.
    pub number: u64,
    /// Real time since the monitor started, in seconds.
    pub wall_s: f64,
    /// Real time since the last frame, in seconds.
    pub wall_span_s: f64,
    /// Time of day: seconds since 1970, UTC.
    #[serde(default)]
    pub unix_s: f64,
    /// Simulated time, in seconds.
    pub simulated_s: f64,
    /// Simulated time since the last frame, in seconds: the window.
    pub span_s: f64,
    /// Simulated time per unit of real time. `None` if the server runs as fast as possible.
    pub speed: Option<f64>,
    /// Requests by operation: `read`, `write`, `trim`, `write_zeroes` and `flush`.
    pub requests: BTreeMap<String, Requests>,
    /// Reads and writes together.
    #[serde(default)]
    pub mix: Mix,
    /// Outstanding requests.
    pub outstanding: u64,
    /// Mean number of outstanding requests in the window.
    pub queue_mean: f64,
    /// Activity of flash.
    pub flash: Flash,
    /// The controller's buffer.
    pub buffer: Buffer,
    /// Shares of the window in which data and commands are transferred. Indexed by channel.
    pub channels: Vec<[f32; 2]>,
    /// Shares of the window in which cells work, and in which the die is held for another reason. Indexed by die.
    pub dies: Vec<[f32; 2]>,
    /// Members, if the device is an array.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
    /// Lateness of replies.
    pub lateness: Late,
    /// Bytes of payload held.
    pub payload_bytes: u64,
    /// Requests that failed because their payload could not be stored or fetched: memory or the disk of the image is
    /// full or defective.
    #[serde(default)]
    pub payload_errors: u64,
    /// Requests of NBD clients that are not whole sectors.
    #[serde(default)]
    pub unaligned_requests: u64,
    /// Sectors that the server read to complete such requests.
    #[serde(default)]
    pub unaligned_reads: u64,
    /// Reason why the server cannot continue. `None` if it can.
    pub fatal_error: Option<String>,
    /// Problems that do not stop the server.
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
    /// Creates the properties of a device. `power_cut` is true if it can recover from a power cut. The NQN is not known
    /// before the server starts.
    pub fn new(config: &DeviceConfig, addresses: &SocketAddresses, power_cut: bool) -> Info {
        let SocketAddresses { nbd, vhost_user, nvme, .. } = addresses;
        let geometry = &config.geometry;
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Info {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            device: config.name.clone(),
            config_digest: config.digest(),
            logical_bytes: config.logical_bytes(),
            physical_bytes: config.physical_bytes(),
            channels: config.buses(),
            dies: config.total_planes() / config.planes_per_die(),
            planes: config.total_planes(),
            blocks_per_plane: geometry.blocks,
            endurance: config.endurance(),
            block_kinds: blocks::kinds(config.log_kinds()),
            addresses: nbd.iter().map(|address| address.absolute().to_string()).collect(),
            vhost_user: vhost_user.as_deref().map(|path| absolute(path).to_string_lossy().into_owned()),
            nvme: nvme.iter().map(ToString::to_string).collect(),
            nqn: None,
            power_cut,
            faults: config.faults.is_some(),
        }
    }
}

impl Frame {
    /// Creates a frame from a sample. `began` is the start of the monitor, `before` the time of the last sample.
    pub fn new(config: &DeviceConfig, snapshot: &Snapshot, number: u64, began: Wall, before: Wall) -> Frame {
        let seconds = |span: Wall| span.0 as f64 / 1e9;
        let span_s = snapshot.window.as_ref().map_or(0.0, |window| window.width().as_s());
        let counters = snapshot.sample.counters.since(&snapshot.first);
        let operations = Operation::ALL.iter().map(|operation| {
            let window = snapshot.window.as_ref().and_then(|window| window.of(*operation));
            (name_of(*operation).to_owned(), Requests::new(&snapshot.totals[operation.index()], window, span_s))
        });
        let window = snapshot.window.as_ref();
        Frame {
            number,
            wall_s: seconds(snapshot.now.since(began)),
            wall_span_s: seconds(snapshot.now.since(before)),
            unix_s: time_of_day(),
            simulated_s: snapshot.sample.at.as_s(),
            span_s,
            speed: snapshot.speed.map(crate::clock::Speed::as_f64),
            requests: operations.collect(),
            mix: Mix::new(snapshot),
            outstanding: snapshot.outstanding,
            queue_mean: if span_s > 0.0 { window.map_or(0.0, |w| w.outstanding as f64 / 1e12 / span_s) } else { 0.0 },
            flash: Flash::new(config, snapshot, &counters, span_s),
            buffer: Buffer {
                units: snapshot.sample.buffer_units[0],
                dirty: snapshot.sample.buffer_units[1],
                read_hits: snapshot.sample.buffer.reads_hit,
                write_hits: snapshot.sample.buffer.writes_hit,
            },
            // Without a window there was no activity: all shares of an empty span are 0.
            channels: shares(window.map_or(&snapshot.sample.channels, |window| &window.channels), span_s),
            dies: shares(window.map_or(&snapshot.sample.dies, |window| &window.dies), span_s),
            members: snapshot.members.iter().map(Member::new).collect(),
            lateness: Late::new(snapshot),
            payload_bytes: snapshot.payload_bytes,
            payload_errors: snapshot.payload_errors,
            unaligned_requests: snapshot.unaligned.requests,
            unaligned_reads: snapshot.unaligned.reads,
            fatal_error: snapshot.fatal_error.clone(),
            warnings: snapshot.warnings.clone(),
            preparing: None,
            clients: Vec::new(),
        }
    }

    /// Creates the frame of a server that is still preparing.
    pub fn preparing(config: &DeviceConfig, what: Preparing, number: u64, began: Wall, now: Wall) -> Frame {
        let snapshot = Snapshot { now, ..Snapshot::default() };
        let frame = Frame::new(config, &snapshot, number, began, now);
        Frame { preparing: Some(what), speed: None, ..frame }
    }

    /// Adds the connected clients.
    pub fn with_clients(self, clients: &[roster::Client], now: Wall) -> Frame {
        Frame { clients: clients.iter().map(|client| Client::new(client, now)).collect(), ..self }
    }

    /// Returns the number of failed requests of all operations.
    pub fn errors(&self) -> u64 {
        self.requests.values().map(|requests| requests.errors).sum()
    }

    /// Returns the requests so far, and the requests per second in the window, over all operations, and the MiB per
    /// second of reads and writes.
    pub fn all(&self) -> (u64, f64, f64) {
        let moved = [Operation::Read, Operation::Write].iter().filter_map(|of| self.requests.get(of.name()));
        let all = || self.requests.values();
        (all().map(|r| r.count).sum(), all().map(|r| r.iops).sum(), moved.map(|r| r.mib_per_s).sum())
    }

    /// Returns the frame without the lists of channels, dies, multi-plane commands and clients, for the history.
    pub fn short(&self) -> Frame {
        let mut frame = self.clone();
        frame.channels.clear();
        frame.dies.clear();
        frame.flash.parallel.clear();
        frame.clients.clear();
        frame
    }
}

/// Returns the time of day, in seconds since 1970.
fn time_of_day() -> f64 {
    #[expect(clippy::disallowed_methods, reason = "only displayed, and not an input of the simulation")]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

impl Client {
    fn new(client: &roster::Client, now: Wall) -> Client {
        let address = client.peer.address.map_or("unix".to_owned(), |address| address.to_string());
        Client {
            frontend: client.frontend.to_owned(),
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
            Some(pid) if self.process.is_some() => write!(f, " (process {pid}) over {}", self.frontend),
            _ => write!(f, " over {}", self.frontend),
        }
    }
}

/// Returns the name of an operation in the results.
fn name_of(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Trim => "trim",
        Operation::WriteZeroes => "write_zeroes",
        Operation::Flush => "flush",
    }
}

/// Converts times to shares of a span. If there are more than [`MAX_BARS`], averages neighbors.
fn shares(times: &[[i64; 2]], span_s: f64) -> Vec<[f32; 2]> {
    let group = times.len().div_ceil(MAX_BARS).max(1);
    let share = |times: &[[i64; 2]], which: usize| {
        let sum: i64 = times.iter().map(|time| time[which]).sum();
        let all = span_s * 1e12 * times.len() as f64;
        // Time accounted in advance can make the share slightly negative or larger than 1.
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
    fn new(config: &DeviceConfig, snapshot: &Snapshot, counters: &Counters, span_s: f64) -> Flash {
        let Sample { at, buffer, buffer_units, free_blocks_min, free_blocks_sum, bad_blocks, .. } = snapshot.sample;
        let interval = Interval {
            config,
            counters,
            channels: &snapshot.sample.channels,
            span: at,
            buffer: &buffer,
            buffer_units,
            free_blocks_min,
            free_blocks_sum,
            bad_blocks,
        };
        let now = snapshot.window.as_ref().map(|window| window.statistics(config)).unwrap_or_default();
        let parallel = snapshot.sample.parallel.shapes().map(|shape| ParallelCommands {
            kind: shape.kind.name().to_owned(),
            dies: shape.dies,
            planes: shape.planes,
            commands: shape.commands,
        });
        let named = |(name, count): (&&str, u64)| ((*name).to_owned(), count);
        let merges = || MergeKind::NAMES.iter().filter(|_| config.merges_blocks());
        let rate = |count: u64| if span_s > 0.0 { count as f64 / span_s } else { 0.0 };
        Flash {
            statistics: Statistics::new(&interval),
            write_amplification_now: now.derived.write_amplification,
            pages_programmed: counters.pages_programmed_total(),
            programs: ProgramCause::NAMES.iter().zip(counters.pages_programmed).map(named).collect(),
            merges: merges().zip(counters.merges).map(named).collect(),
            merges_per_s: merges().zip(now.counters.merges).map(|(name, n)| ((*name).to_owned(), rate(n))).collect(),
            log_blocks: LogBlocks::new(config, snapshot, counters),
            parallel: parallel.collect(),
            read_only: snapshot.sample.read_only,
        }
    }
}

impl Late {
    fn new(snapshot: &Snapshot) -> Late {
        let counts = &snapshot.lateness;
        let share = (counts.replies > 0).then(|| counts.late as f64 / counts.replies as f64);
        let causes = counts.causes.named().into_iter().map(|(cause, count)| (cause.to_owned(), count));
        Late {
            replies: counts.replies,
            not_judged: counts.not_judged,
            late: counts.late,
            share,
            faithful: share.map(|share| share <= LIMIT),
            causes: causes.collect(),
            p50_us: snapshot.late.quantile_us(0.5),
            p99_us: snapshot.late.quantile_us(0.99),
            max_us: (snapshot.late.count > 0).then(|| snapshot.late.latency_max.as_us()),
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
    fn shares_refer_to_the_window_and_are_bounded() {
        // Two channels in a window of 1 us: 500 ns with data and 250 ns with commands. Then values outside the window's
        // limits.
        let times = [[500_000, 250_000], [1_100_000, -5]];
        assert_eq!(shares(&times, 1e-6), [[0.5, 0.25], [1.0, 0.0]]);
        assert_eq!(shares(&times, 0.0), [[0.0, 0.0], [0.0, 0.0]]);
        let many = shares(&vec![[500_000, 0]; 1000], 1e-6);
        assert_eq!((many.len(), many[0]), (250, [0.5, 0.0]));
    }
}
