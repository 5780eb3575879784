//! What is written in a job: each key's value, as it was read, before it meets a device.

use std::collections::BTreeSet;

use super::arrival::Process;
use super::base::Base;

/// What a job does, by fio's names of `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The value of `rw`.
    pub name: &'static str,
    /// Which operations.
    pub kind: Kind,
    /// At random addresses.
    pub random: bool,
}

/// The operations of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Trims only.
    Trim,
    /// Reads and writes, drawn for each request.
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

/// The value of `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rw {
    /// What is done.
    pub pattern: Pattern,
    /// What stands behind the colon.
    pub modifier: Modifier,
}

/// What a number behind the colon of `rw` does to the addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Modifier {
    /// There is none.
    #[default]
    None,
    /// Random: a new random address only every so many requests.
    Run(u32),
    /// Sequential: so many bytes between a request's end and the next one's start; negative for going back.
    Skip(i64),
}

/// fio's `rw_sequencer`: what the requests between two random addresses do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sequencer {
    /// Each starts where the last one ended.
    #[default]
    Sequential,
    /// All are at the same address.
    Identical,
}

/// A number of bytes, given as such or as a share of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many bytes.
    Bytes(u64),
    /// The first of these out of the second: `12.5%` is 125 out of 1000.
    Share(u64, u64),
}

impl Amount {
    /// In bytes, a share of `whole` rounded down; `None` beyond 64 bits.
    pub fn of(self, whole: u64) -> Option<u64> {
        match self {
            Amount::Bytes(bytes) => Some(bytes),
            Amount::Share(parts, of) => u64::try_from(u128::from(whole) * u128::from(parts) / u128::from(of)).ok(),
        }
    }
}

/// fio's `random_distribution`.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// `random`: all blocks alike.
    Uniform,
    /// `zipf:theta`, and where in the region the hottest block is, in parts of one.
    Zipf(f64, Option<f64>),
    /// `pareto:h`, and where in the region the hottest block is.
    Pareto(f64, Option<f64>),
    /// `normal:deviation`, in percent of the region, and where in the region the mean is.
    Normal(f64, Option<f64>),
    /// `zoned`: by direction.
    Zoned(ByDirection<Vec<ZoneShare>>),
}

/// One zone of `zoned` and `zoned_abs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneShare {
    /// Percent of the requests.
    pub access: u32,
    /// How much of the region.
    pub range: Amount,
}

/// fio's `zonemode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneMode {
    /// No zones.
    None,
    /// `zonesize` bytes in one zone, then on to the next.
    Strided,
}

/// A value for each direction: reads, writes, trims.
pub type ByDirection<T> = [Option<T>; 3];

/// Sizes in bytes and their weights.
pub type SizeShares = Vec<(u64, u32)>;

/// One job as written, each field by the name of its key; what is not given is `None`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What is done.
    pub rw: Option<Rw>,
    /// What the requests between two random addresses do.
    pub rw_sequencer: Option<Sequencer>,
    /// Block sizes in bytes.
    pub bs: Option<ByDirection<u64>>,
    /// Smallest and largest block size in bytes.
    pub bsrange: Option<ByDirection<(u64, u64)>>,
    /// Block sizes with their weights.
    pub bssplit: Option<ByDirection<SizeShares>>,
    /// What random addresses are multiples of, in bytes.
    pub blockalign: Option<ByDirection<u64>>,
    /// Percent of reads in a mix; also from `rwmixwrite`.
    pub rwmixread: Option<u32>,
    /// How random addresses are distributed.
    pub random_distribution: Option<Distribution>,
    /// Percent of the requests of a random job that are at random addresses.
    pub percentage_random: Option<ByDirection<u32>>,
    /// Whether random addresses may repeat at any time.
    pub norandommap: bool,
    /// Start of the region; a share is one of the device.
    pub offset: Option<Amount>,
    /// Each clone's region starts so much later; a share is one of the device.
    pub offset_increment: Option<Amount>,
    /// The area that the job works on.
    pub filename: Option<String>,
    /// How large that area is, in bytes.
    pub filesize: Option<u64>,
    /// Size of the region; a share is one of the device.
    pub size: Option<Amount>,
    /// How much to transfer; a share is one of the region.
    pub io_size: Option<Amount>,
    /// How many requests to make.
    pub number_ios: Option<u64>,
    /// How often all of it is done.
    pub loops: Option<u32>,
    /// How long to run, in picoseconds.
    pub runtime: Option<u64>,
    /// Whether only `runtime` ends the job.
    pub time_based: bool,
    /// How long to run before measuring, in picoseconds.
    pub ramp_time: Option<u64>,
    /// Requests outstanding.
    pub iodepth: Option<u32>,
    /// From a completion to the next request, in picoseconds.
    pub thinktime: Option<u64>,
    /// Requests between two think times.
    pub thinktime_blocks: Option<u32>,
    /// Time between two think times, in picoseconds.
    pub thinktime_iotime: Option<u64>,
    /// Bytes per second.
    pub rate: Option<ByDirection<u64>>,
    /// Requests per second.
    pub rate_iops: Option<ByDirection<u64>>,
    /// How the requests of `rate_iops` are spaced.
    pub rate_process: Option<Process>,
    /// How the job moves over its region.
    pub zonemode: Option<ZoneMode>,
    /// Bytes to transfer in a zone.
    pub zonesize: Option<u64>,
    /// Bytes in a zone.
    pub zonerange: Option<u64>,
    /// Bytes between zones.
    pub zoneskip: Option<u64>,
    /// Seed of the job's random numbers.
    pub randseed: Option<u64>,
    /// Name of the stream.
    pub name: Option<String>,
    /// A sentence of the user's.
    pub description: Option<String>,
    /// A flush after so many writes; 0 for never.
    pub fsync: Option<u32>,
    /// The same.
    pub fdatasync: Option<u32>,
    /// A flush at the end.
    pub end_fsync: bool,
    /// Whether a write completes only when it is durable.
    pub sync: Option<bool>,
    /// How many alike run at once.
    pub numjobs: Option<u32>,
    /// Whether all jobs before this one end before it starts.
    pub stonewall: bool,
    /// The job that ends before this one starts.
    pub wait_for: Option<String>,
    /// How long to wait before the start, in picoseconds.
    pub startdelay: Option<u64>,
    /// Where the requests that were issued are written.
    pub write_iolog: Option<String>,
    /// The trace that is replayed.
    pub read_iolog: Option<String>,
    /// In percent, how fast.
    pub replay_time_scale: Option<u64>,
    /// Whether the trace's times are passed over.
    pub replay_no_stall: bool,
    /// Whether all of the trace's devices are one.
    pub replay_redirect: bool,
    /// What suffixes mean.
    pub kb_base: Option<Base>,
    /// Keys that were given, by their first names.
    pub given: BTreeSet<&'static str>,
    /// Keys that were given and say nothing to a simulated device.
    pub without_meaning: BTreeSet<&'static str>,
}
