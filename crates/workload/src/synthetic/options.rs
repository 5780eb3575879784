//! Options of a job: the parsed value of each key, independent of the device.

use std::collections::BTreeSet;

use super::arrival::Process;
use super::base::Base;
use super::engines::Engine;
use crate::sim::source::Measure;

/// Access pattern of a job, with fio's names of `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Value of `rw`.
    pub name: &'static str,
    /// Operations.
    pub kind: Kind,
    /// True if the addresses are random.
    pub random: bool,
}

/// Operations of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only reads.
    Read,
    /// Only writes.
    Write,
    /// Only trims.
    Trim,
    /// Reads and writes, chosen at random for each request.
    Mixed,
    /// Pairs of a trim and a write of the same blocks.
    TrimWrite,
}

/// All values of `rw`.
pub const PATTERNS: &[Pattern] = &[
    Pattern { name: "read", kind: Kind::Read, random: false },
    Pattern { name: "write", kind: Kind::Write, random: false },
    Pattern { name: "randread", kind: Kind::Read, random: true },
    Pattern { name: "randwrite", kind: Kind::Write, random: true },
    Pattern { name: "rw", kind: Kind::Mixed, random: false },
    Pattern { name: "readwrite", kind: Kind::Mixed, random: false },
    Pattern { name: "randrw", kind: Kind::Mixed, random: true },
    Pattern { name: "trim", kind: Kind::Trim, random: false },
    Pattern { name: "randtrim", kind: Kind::Trim, random: true },
    Pattern { name: "trimwrite", kind: Kind::TrimWrite, random: false },
    Pattern { name: "randtrimwrite", kind: Kind::TrimWrite, random: true },
];

/// Parsed value of `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rw {
    /// Access pattern.
    pub pattern: Pattern,
    /// Modifier after the colon.
    pub modifier: Modifier,
}

/// Effect of the number after the colon of `rw` on the addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Modifier {
    /// No modifier.
    #[default]
    None,
    /// Number of requests per random address, for random jobs.
    Run(u32),
    /// Distance in bytes between the end of a request and the start of the next, for sequential jobs. Negative for
    /// backward jobs.
    Skip(i64),
}

/// Addresses of the requests between two random ones, fio's `rw_sequencer`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sequencer {
    /// Each request starts at the end of the last one.
    #[default]
    Sequential,
    /// All requests have the same address.
    Identical,
}

/// A number of bytes, absolute or relative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Number of bytes.
    Bytes(u64),
    /// Numerator and denominator of a share: `12.5%` is 125 out of 1000.
    Share(u64, u64),
}

impl Amount {
    /// Returns the number of bytes. A share of `whole` is rounded down. `None` if the result exceeds 64 bits.
    pub fn of(self, whole: u64) -> Option<u64> {
        match self {
            Amount::Bytes(bytes) => Some(bytes),
            Amount::Share(parts, of) => u64::try_from(u128::from(whole) * u128::from(parts) / u128::from(of)).ok(),
        }
    }
}

/// Value of fio's `random_distribution`.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// `random`: uniform.
    Uniform,
    /// `zipf:theta`, and the position of the hottest block in the region, from 0 to 1.
    Zipf(f64, Option<f64>),
    /// `pareto:h`, and the position of the hottest block in the region, from 0 to 1.
    Pareto(f64, Option<f64>),
    /// `normal:deviation` in percent of the region, and the position of the mean in the region, from 0 to 1.
    Normal(f64, Option<f64>),
    /// `zoned` or `zoned_abs`, by direction.
    Zoned(ByDirection<Vec<ZoneShare>>),
    /// `sequence`: blocks in this order.
    Sequence(Vec<u64>),
}

/// Choice of the file of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileService {
    /// Order of the files.
    pub order: FileOrder,
    /// Number of requests to a file before the next one is chosen, at least 1.
    pub requests: u32,
}

/// Order of the files of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOrder {
    /// In turn.
    RoundRobin,
    /// Each until its end.
    Sequential,
    /// At random.
    Random,
}

/// Command of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// Write.
    Write,
    /// Write zeroes, without data.
    Zeroes,
}

/// A zone of `zoned` or `zoned_abs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneShare {
    /// Percentage of the requests.
    pub access: u32,
    /// Size of the zone.
    pub range: Amount,
}

/// Value of fio's `zonemode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneMode {
    /// No zones.
    None,
    /// `zonesize` bytes are transferred in each zone before the next one.
    Strided,
}

/// Value of fio's `steadystate`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Measurement of each interval.
    pub measure: Measure,
    /// True for the slope, false for the largest deviation from the mean.
    pub is_slope: bool,
    /// True if the limit is a percentage of the mean.
    pub is_percent: bool,
    /// Limit.
    pub limit: f64,
}

/// Jobs that the end of another job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitWhat {
    /// The jobs of its group, from a `stonewall` or `new_group` to the next.
    Group,
    /// The jobs from a `stonewall` to the next.
    Stonewall,
    /// All.
    All,
}

/// A value for each direction: reads, writes, trims.
pub type ByDirection<T> = [Option<T>; 3];

/// Sizes in bytes and their weights.
pub type SizeShares = Vec<(u64, u32)>;

/// A parsed job. Each field is named after its key, and is `None` if the key is not given.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Access pattern.
    pub rw: Option<Rw>,
    /// Addresses of the requests between two random ones.
    pub rw_sequencer: Option<Sequencer>,
    /// Block sizes in bytes.
    pub bs: Option<ByDirection<u64>>,
    /// Minimum and maximum block size in bytes.
    pub bsrange: Option<ByDirection<(u64, u64)>>,
    /// Block sizes with weights.
    pub bssplit: Option<ByDirection<SizeShares>>,
    /// Alignment of random addresses in bytes.
    pub blockalign: Option<ByDirection<u64>>,
    /// Percentage of reads in a mix. Also set by `rwmixwrite`.
    pub rwmixread: Option<u32>,
    /// Distribution of random addresses.
    pub random_distribution: Option<Distribution>,
    /// Percentage of reads and writes with high priority.
    pub cmdprio_percentage: Option<ByDirection<u32>>,
    /// True if these requests have the class of real time, which is the one with priority. Default: true.
    pub cmdprio_class: Option<bool>,
    /// True if the whole job has the class of real time.
    pub prioclass: Option<bool>,
    /// Percentage of random requests in a random job.
    pub percentage_random: Option<ByDirection<u32>>,
    /// True to move the blocks of a sequence by their number after each round.
    pub random_sequence_stride: bool,
    /// True if random addresses may repeat at any time.
    pub norandommap: bool,
    /// True to write the physical space once, in an order that leaves the steady state of random writes.
    pub sprandom: bool,
    /// Number of regions of `sprandom`.
    pub spr_num_regions: Option<u32>,
    /// Over-provisioning of `sprandom`, as a share of the logical space.
    pub spr_op: Option<f64>,
    /// Cache of `sprandom` in bytes, other than 0.
    pub spr_cs: Option<u64>,
    /// Start of the region. A share refers to the device.
    pub offset: Option<Amount>,
    /// Distance between the regions of clones. A share refers to the device.
    pub offset_increment: Option<Amount>,
    /// True if other threads submit the requests.
    pub io_submit_mode: Option<bool>,
    /// Engine of fio.
    pub ioengine: Option<Engine>,
    /// Directories of the file, separated by colons.
    pub directory: Option<String>,
    /// Pattern for the names of files without `filename`.
    pub filename_format: Option<String>,
    /// Names of the areas that the job uses, separated by colons.
    pub filename: Option<String>,
    /// Number of files.
    pub nrfiles: Option<u32>,
    /// Choice of the file of a request.
    pub file_service_type: Option<FileService>,
    /// Multiple to which an offset in percent is rounded up, in bytes.
    pub offset_align: Option<u64>,
    /// Size of the area in bytes.
    pub filesize: Option<u64>,
    /// Size of the region. A share refers to the device.
    pub size: Option<Amount>,
    /// Amount to transfer. A share refers to the region.
    pub io_size: Option<Amount>,
    /// Number of requests.
    pub number_ios: Option<u64>,
    /// Number of repetitions.
    pub loops: Option<u32>,
    /// Duration in picoseconds.
    pub runtime: Option<u64>,
    /// True if only `runtime` ends the job.
    pub time_based: bool,
    /// Time before the measurement starts, in picoseconds.
    pub ramp_time: Option<u64>,
    /// Number of outstanding requests.
    pub iodepth: Option<u32>,
    /// Time from a completion to the next request, in picoseconds.
    pub thinktime: Option<u64>,
    /// Number of requests between two think times.
    pub thinktime_blocks: Option<u32>,
    /// Time between two think times, in picoseconds.
    pub thinktime_iotime: Option<u64>,
    /// Bytes per second.
    pub rate: Option<ByDirection<u64>>,
    /// Requests per second.
    pub rate_iops: Option<ByDirection<u64>>,
    /// Spacing of the requests of `rate_iops`.
    pub rate_process: Option<Process>,
    /// Movement of the job over its region.
    pub zonemode: Option<ZoneMode>,
    /// Bytes to transfer in each zone.
    pub zonesize: Option<u64>,
    /// Size of a zone in bytes.
    pub zonerange: Option<u64>,
    /// Bytes between two zones.
    pub zoneskip: Option<u64>,
    /// Seed of the job's random numbers.
    pub randseed: Option<u64>,
    /// Name of the stream.
    pub name: Option<String>,
    /// Description by the user.
    pub description: Option<String>,
    /// Number of writes after which to flush. 0 for never.
    pub fsync: Option<u32>,
    /// Number of writes after which to flush. 0 for never.
    pub fdatasync: Option<u32>,
    /// True to flush at the end.
    pub end_fsync: bool,
    /// True if a write completes only when it is durable.
    pub sync: Option<bool>,
    /// Command of writes.
    pub write_mode: Option<WriteMode>,
    /// True if what was written is read again.
    pub verify: Option<bool>,
    /// False to leave the reads of `verify` out.
    pub do_verify: Option<bool>,
    /// True to leave the writes of `verify` out.
    pub verify_only: bool,
    /// Number of writes after which they are read.
    pub verify_backlog: Option<u64>,
    /// Number of writes that are read at a time.
    pub verify_backlog_batch: Option<u64>,
    /// Placement hint of writes, numbered like the lifetimes of Linux.
    pub write_hint: Option<u16>,
    /// Number of equal jobs that run at once.
    pub numjobs: Option<u32>,
    /// True if all earlier jobs must end before this one starts.
    pub stonewall: bool,
    /// Name of the job that must end before this one starts.
    pub wait_for: Option<String>,
    /// Delay before the start, in picoseconds.
    pub startdelay: Option<u64>,
    /// Path of the log of issued requests.
    pub write_iolog: Option<String>,
    /// Path of the trace to replay.
    pub read_iolog: Option<String>,
    /// Speed of the replay in percent.
    pub replay_time_scale: Option<u64>,
    /// True to ignore the times of the trace.
    pub replay_no_stall: bool,
    /// True to treat all devices of the trace as one.
    pub replay_redirect: bool,
    /// Rate, criterion and limit of a steady state.
    pub steadystate: Option<Steady>,
    /// True if the steady state of a group of jobs is judged together.
    pub group_reporting: bool,
    /// Time over which a steady state is judged, in picoseconds.
    pub ss_dur: Option<u64>,
    /// Time before a steady state is judged, in picoseconds.
    pub ss_ramp: Option<u64>,
    /// Length of the intervals of a steady state, in picoseconds.
    pub ss_interval: Option<u64>,
    /// Maximum latency of a search for a depth, in picoseconds.
    pub latency_target: Option<u64>,
    /// Time for which a depth is tried, in picoseconds.
    pub latency_window: Option<u64>,
    /// Percentage of the requests that have to meet the target.
    pub latency_percentile: Option<f64>,
    /// True if the search for a depth continues until the job ends.
    pub latency_run: bool,
    /// Number of completions that are waited for when the depth is reached.
    pub batch_complete: Option<u32>,
    /// Number of outstanding requests down to which completions are waited for when the depth is reached.
    pub iodepth_low: Option<u32>,
    /// Weight of the job in its flow. 0 for none.
    pub flow: Option<u32>,
    /// Number of the flow.
    pub flow_id: Option<u32>,
    /// True if the end of a job ends others.
    pub exitall: bool,
    /// Jobs that the end of a job ends.
    pub exit_what: Option<ExitWhat>,
    /// True if the job starts a group, like `stonewall`, without waiting.
    pub new_group: bool,
    /// Base of suffixes.
    pub kb_base: Option<Base>,
    /// Given keys, by their first names.
    pub given: BTreeSet<&'static str>,
    /// Given keys without a meaning for a simulated device.
    pub without_meaning: BTreeSet<&'static str>,
    /// Keys that are ignored on request.
    pub ignored: BTreeSet<String>,
}

impl Options {
    /// Returns `true` if the steady state of two jobs is judged in the same way.
    pub fn is_judged_like(&self, other: &Options) -> bool {
        let of = |options: &Options| {
            let Options { group_reporting, steadystate, ss_dur, ss_ramp, ss_interval, .. } = *options;
            (group_reporting, steadystate, ss_dur, ss_ramp, ss_interval)
        };
        of(self) == of(other)
    }
}
