//! Structure of a profile, which is also its JSON format.

use schemars::JsonSchema;
use serde::Serialize;

use super::moments;

/// Value of `schema` in profiles of this version. The number is raised when a field is removed or changes its meaning.
pub const SCHEMA: &str = "floatgate-profile-1";

/// Profile of a trace. Values that are not defined, such as a mean without requests, are null. One KiB is 2^10 bytes, a
/// sector has 512 B, a page 4 KiB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Profile {
    /// Format version: `floatgate-profile-1`.
    pub schema: String,
    /// Version of Floatgate.
    pub version: String,
    /// Origin of the requests. Null for generated requests.
    pub trace: Option<Origin>,
    /// Warnings about implausible or notable properties of the trace.
    pub warnings: Vec<String>,
    /// Number of requests.
    pub requests: u64,
    /// Total size in bytes.
    pub bytes: u64,
    /// Time from the earliest to the latest request, in seconds.
    pub duration_s: f64,
    /// Requests per second. Null for a single request, or if all arrive at the same time.
    pub rate: Option<f64>,
    /// MiB per second. Null in the same cases as `rate`.
    pub mib_per_s: Option<f64>,
    /// Profiles by operation, without operations that do not occur.
    pub operations: Vec<OperationProfile>,
    /// Arrivals of the requests.
    pub arrivals: Arrivals,
    /// Pages that the requests touch.
    pub footprint: Footprint,
    /// Sequentiality of the addresses, over all operations.
    pub sequentiality: Sequentiality,
    /// Profiles by device, in order of their names.
    pub devices: Vec<DeviceProfile>,
    /// Order of the trace.
    pub order: Order,
}

/// Origin of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Origin {
    /// File.
    pub file: String,
    /// Format.
    pub format: String,
    /// Confidence in the format: `given`, `certain`, `likely` (not all of the first lines match), `ambiguous` (other
    /// formats match too) or `doubtful` (the unit of times, addresses or lengths seems to be wrong).
    pub confidence: String,
    /// Other formats that match equally well.
    pub alternatives: Vec<String>,
    /// Unit of the times.
    pub time_unit: String,
}

/// Profile of the requests of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct OperationProfile {
    /// `read`, `write`, `trim`, `write_zeroes` or `flush`.
    pub operation: String,
    /// Number of requests.
    pub requests: u64,
    /// Share of all requests.
    pub share: f64,
    /// Total size in bytes.
    pub bytes: u64,
    /// Sizes in KiB.
    pub size_kib: Moments,
    /// Number of requests of each size. More than 4096 sizes are rounded up to eighths of an octave.
    pub sizes: Vec<SizeCount>,
    /// Share that starts at the end of the last request of the same device and operation.
    pub sequential: f64,
    /// Mean number of requests in a sequential run; 1 for a single request.
    pub run_mean: Option<f64>,
    /// Number of requests in the longest run.
    pub run_longest: u64,
    /// Share that starts at a page boundary.
    pub aligned: f64,
    /// Share that starts at a page boundary, among the requests that continue no other.
    pub aligned_starts: Option<f64>,
    /// Share that starts and ends at a page boundary.
    pub whole_pages: f64,
    /// Distribution of the accesses over the touched pages; only for reads and writes.
    pub hot: Option<HotShares>,
}

/// Moments of a distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Moments {
    /// Mean.
    pub mean: Option<f64>,
    /// Standard deviation.
    pub deviation: Option<f64>,
    /// Coefficient of variation: standard deviation over mean.
    pub variation: Option<f64>,
    /// Minimum.
    pub min: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
}

/// Number of requests of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SizeCount {
    /// Size in sectors.
    pub sectors: u32,
    /// Number of requests.
    pub requests: u64,
}

/// Arrivals of requests. The gap of a request is the time since the one before it; a request that follows a later one
/// has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Arrivals {
    /// Gaps in microseconds.
    pub gap_us: Moments,
    /// Median gap, with a precision of an eighth of an octave.
    pub median_us: Option<f64>,
    /// 99th percentile of the gaps, with the same precision.
    pub p99_us: Option<f64>,
    /// Share of the gaps that are 0.
    pub zero: Option<f64>,
    /// Correlation of a gap with the previous one, from -1 to 1. Above 0, short gaps occur in bursts.
    pub correlation: Option<f64>,
    /// Resolution in nanoseconds: all times, counted from the first one, are multiples of it.
    pub resolution_ns: Option<f64>,
    /// Burstiness in windows of different lengths.
    pub bursts: Vec<Burst>,
    /// Gaps in classes of an eighth of an octave.
    pub histogram: Vec<GapClass>,
    /// Frequencies with which a gap of one octave is followed by a gap of another: from, to, count. Octave 0 is no gap,
    /// octave n is from 2^(n-1) ps to 2^n ps.
    pub transitions: Vec<(u8, u8, u64)>,
}

/// Burstiness: numbers of requests in consecutive windows of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Burst {
    /// Length of the windows in seconds.
    pub window_s: f64,
    /// Number of windows.
    pub windows: u64,
    /// Index of dispersion: variance of the numbers divided by their mean. 1 for a Poisson process, 0 for equal gaps.
    pub dispersion: f64,
    /// Maximum number divided by the mean.
    pub peak_to_mean: f64,
}

/// Gaps of similar length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct GapClass {
    /// Lower end of the class, in ps.
    pub from_ps: u64,
    /// Upper end of the class, exclusive, in ps.
    pub to_ps: u64,
    /// Number of gaps.
    pub count: u64,
    /// Mean of the gaps in ps.
    pub mean_ps: f64,
}

/// Pages touched by reads and writes (including `write_zeroes`). Each page of a request is one access.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Footprint {
    /// Pages touched.
    pub pages: f64,
    /// Pages read.
    pub read_pages: f64,
    /// Pages written.
    pub written_pages: f64,
    /// Pages both read and written.
    pub both_pages: f64,
    /// Share of the 256 KiB regions of the address space that were counted. Below 1, numbers of pages are estimates.
    pub sampled: f64,
    /// Relative standard error of the estimates. 0 if all pages were counted.
    pub relative_error: f64,
    /// Distance from the first to the last touched sector, in bytes; of several devices, the largest.
    pub span_bytes: u64,
    /// Accesses per touched page.
    pub accesses_per_page: Option<f64>,
    /// Distribution of the accesses over the pages.
    pub hot: Option<HotShares>,
    /// Share of the page writes that go to a page written before.
    pub overwrites: Option<f64>,
    /// Share of the page writes that go to a page read or written before.
    pub updates: Option<f64>,
    /// Share of the page reads that go to a page not written before.
    pub reads_of_unwritten: Option<f64>,
}

/// Shares of the accesses to the hottest touched pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct HotShares {
    /// Share of the hottest 1% of the pages.
    pub of_1_percent: f64,
    /// Share of the hottest 5% of the pages.
    pub of_5_percent: f64,
    /// Share of the hottest 10% of the pages.
    pub of_10_percent: f64,
    /// Share of the hottest 20% of the pages.
    pub of_20_percent: f64,
}

/// Sequentiality of addresses, without flushes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Sequentiality {
    /// Share of the requests that start at the end of the last one of the same device.
    pub after_last: Option<f64>,
    /// Share of the requests that start at the end of one of the last 32 streams of the same device.
    pub after_stream: Option<f64>,
}

/// Profile of the requests of one device in a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct DeviceProfile {
    /// Name in the trace.
    pub name: String,
    /// Number of requests.
    pub requests: u64,
    /// Share of reads.
    pub reads: f64,
    /// Total size in bytes.
    pub bytes: u64,
    /// Number of touched pages.
    pub pages: f64,
    /// First sector.
    pub first_sector: u64,
    /// End of the last sector.
    pub end_sector: u64,
}

/// Deviation of the requests from timestamp order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Order {
    /// Number of requests that follow a later one.
    pub late: u64,
    /// Smallest `--sort-window` that restores the order. 0 if the requests are in order.
    pub sort_window: u64,
    /// True if `sort_window` is only a lower bound.
    pub beyond: bool,
}

impl Profile {
    /// Returns the profile as JSON, followed by a line feed.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Returns the JSON schema of profiles.
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Profile).to_value()
    }

    /// Returns the profile of an operation, if it occurs.
    pub fn operation(&self, name: &str) -> Option<&OperationProfile> {
        self.operations.iter().find(|one| one.operation == name)
    }
}

/// Converts moments for the report.
pub(super) fn said(moments: &moments::Moments) -> Moments {
    Moments {
        mean: moments.mean(),
        deviation: moments.variance().map(|variance| variance.max(0.0).sqrt()),
        variation: moments.variation(),
        min: moments.ends().map(|(least, _)| least),
        max: moments.ends().map(|(_, greatest)| greatest),
    }
}
