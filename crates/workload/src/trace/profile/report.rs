//! What a profile says: one struct with one JSON form.

use schemars::JsonSchema;
use serde::Serialize;

use super::moments;

/// The value of `schema` in profiles of this form; the number is raised when a field changes its meaning or goes.
pub const SCHEMA: &str = "floatgate-profile-1";

/// What a trace is like. What cannot be said, such as a mean without requests, is null. One KiB is 2^10 bytes; a sector
/// has 512 B, a page 4 KiB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Profile {
    /// Which form this is: `floatgate-profile-1`.
    pub schema: String,
    /// Version of Floatgate.
    pub version: String,
    /// Where the requests come from; null where they are made up.
    pub trace: Option<Origin>,
    /// What is implausible, or should be known of the trace.
    pub warnings: Vec<String>,
    /// Requests.
    pub requests: u64,
    /// Bytes that they ask for.
    pub bytes: u64,
    /// From the earliest request to the latest, in seconds.
    pub duration_s: f64,
    /// Requests per second; null for a single one, or where all come at once.
    pub rate: Option<f64>,
    /// MiB per second, likewise.
    pub mib_per_s: Option<f64>,
    /// By operation; those that do not occur are left out.
    pub operations: Vec<OperationProfile>,
    /// When requests come.
    pub arrivals: Arrivals,
    /// Which pages they touch.
    pub footprint: Footprint,
    /// How the addresses follow one another, all operations together.
    pub sequentiality: Sequentiality,
    /// By device, in order of their names.
    pub devices: Vec<DeviceProfile>,
    /// The order of the trace.
    pub order: Order,
}

/// Where requests come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Origin {
    /// The file.
    pub file: String,
    /// Its format.
    pub format: String,
    /// How sure that is: `given`, `certain`, `likely` (not all of the first lines fit), `ambiguous` (others fit
    /// too) or `doubtful` (no other fits, but the unit of times, addresses or lengths seems to be another).
    pub confidence: String,
    /// The formats that fit as well.
    pub alternatives: Vec<String>,
    /// The unit in which times are read.
    pub time_unit: String,
}

/// The requests of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct OperationProfile {
    /// `read`, `write`, `trim`, `write_zeroes` or `flush`.
    pub operation: String,
    /// Requests.
    pub requests: u64,
    /// Their share of all requests.
    pub share: f64,
    /// Bytes that they ask for.
    pub bytes: u64,
    /// Sizes in KiB.
    pub size_kib: Moments,
    /// How many have each size. More than 4096 different sizes are rounded up to eighths of an octave.
    pub sizes: Vec<SizeCount>,
    /// Share of those that start where the last one of the same device and operation ended.
    pub sequential: f64,
    /// Requests in a run of such, on average; one that continues nothing and is not continued is a run of one.
    pub run_mean: Option<f64>,
    /// Requests in the longest run.
    pub run_longest: u64,
    /// Share of those that start at a page.
    pub aligned: f64,
    /// Of those that continue no other, the share that start at a page; null where there are none.
    pub aligned_starts: Option<f64>,
    /// Share of those that start and end at a page.
    pub whole_pages: f64,
    /// How its accesses are spread over the pages that it touches; null but for reads and writes.
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
    /// Least value.
    pub min: Option<f64>,
    /// Greatest value.
    pub max: Option<f64>,
}

/// Requests of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SizeCount {
    /// The size in sectors.
    pub sectors: u32,
    /// How many have it.
    pub requests: u64,
}

/// When requests come. The gap of a request is the time since the one before it; a request that stands behind a later
/// one has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Arrivals {
    /// Gaps in microseconds.
    pub gap_us: Moments,
    /// The gap that half of the gaps do not exceed, to an eighth of an octave.
    pub median_us: Option<f64>,
    /// The gap that 99 % of the gaps do not exceed, likewise.
    pub p99_us: Option<f64>,
    /// Share of the gaps that are 0.
    pub zero: Option<f64>,
    /// Correlation of a gap with the one before it, from -1 to 1; above 0, short ones come together.
    pub correlation: Option<f64>,
    /// All times are multiples of this many nanoseconds, counted from the first one.
    pub resolution_ns: Option<f64>,
    /// How uneven the numbers of requests in windows of time are.
    pub bursts: Vec<Burst>,
    /// The gaps, in classes of an eighth of an octave.
    pub histogram: Vec<GapClass>,
    /// How often a gap of one octave is followed by one of another: from, to, count. Octave 0 is no gap, octave n is
    /// from 2^(n-1) ps to 2^n ps.
    pub transitions: Vec<(u8, u8, u64)>,
}

/// How uneven the numbers of requests in windows of time are; windows are laid end to end from the first request on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Burst {
    /// Length of the windows in seconds.
    pub window_s: f64,
    /// How many there are.
    pub windows: u64,
    /// Index of dispersion: variance of the numbers over their mean. 1 for a Poisson process, 0 for equal gaps.
    pub dispersion: f64,
    /// The greatest number over the mean.
    pub peak_to_mean: f64,
}

/// Gaps of about the same length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct GapClass {
    /// The least gap of the class, in ps.
    pub from_ps: u64,
    /// The least gap above it.
    pub to_ps: u64,
    /// How many there are.
    pub count: u64,
    /// Their mean in ps.
    pub mean_ps: f64,
}

/// Which pages reads and writes (with `write_zeroes`) touch; each page of a request is an access.
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
    /// The share of the 256 KiB regions of the address space from which this was counted; below 1, the numbers of pages
    /// are estimates.
    pub sampled: f64,
    /// Standard error of an estimate, as a share of it; 0 where all was counted.
    pub relative_error: f64,
    /// From the first sector touched to the last, in bytes; with several devices, of the one where that is most.
    pub span_bytes: u64,
    /// Accesses per page touched.
    pub accesses_per_page: Option<f64>,
    /// How the accesses are spread over the pages.
    pub hot: Option<HotShares>,
    /// Share of the written pages' accesses that write a page written before.
    pub overwrites: Option<f64>,
    /// Share of them that write a page read or written before.
    pub updates: Option<f64>,
    /// Share of the read pages' accesses that read a page not written before.
    pub reads_of_unwritten: Option<f64>,
}

/// The share of the accesses that goes to the hottest of the touched pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct HotShares {
    /// To the hottest 1 %.
    pub of_1_percent: f64,
    /// To the hottest 5 %.
    pub of_5_percent: f64,
    /// To the hottest 10 %.
    pub of_10_percent: f64,
    /// To the hottest 20 %.
    pub of_20_percent: f64,
}

/// How addresses follow one another; flushes are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Sequentiality {
    /// Share of the requests that start where the last one of the same device ended, whatever it did.
    pub after_last: Option<f64>,
    /// Share of the requests that start where one of the last 32 streams of the same device ended.
    pub after_stream: Option<f64>,
}

/// The requests of one of a trace's devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct DeviceProfile {
    /// Its name in the trace.
    pub name: String,
    /// Requests.
    pub requests: u64,
    /// Share of reads among them.
    pub reads: f64,
    /// Bytes that they ask for.
    pub bytes: u64,
    /// Pages that they touch.
    pub pages: f64,
    /// First sector.
    pub first_sector: u64,
    /// Behind the last sector.
    pub end_sector: u64,
}

/// Whether requests stand in the order of their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Order {
    /// Requests that stand behind one that came later.
    pub late: u64,
    /// The least `--sort-window` that brings them in order; 0 where they are.
    pub sort_window: u64,
    /// They are so far out of order that the window is at least this, and may be more.
    pub beyond: bool,
}

impl Profile {
    /// The profile as JSON, with a line feed at the end.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The JSON schema of profiles.
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Profile).to_value()
    }

    /// The profile of an operation, if it occurs.
    pub fn operation(&self, name: &str) -> Option<&OperationProfile> {
        self.operations.iter().find(|one| one.operation == name)
    }
}

/// Moments as they are reported.
pub(super) fn said(moments: &moments::Moments) -> Moments {
    Moments {
        mean: moments.mean(),
        deviation: moments.variance().map(|variance| variance.max(0.0).sqrt()),
        variation: moments.variation(),
        min: moments.ends().map(|(least, _)| least),
        max: moments.ends().map(|(_, greatest)| greatest),
    }
}
