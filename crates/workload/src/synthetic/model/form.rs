//! Parts of a model, as its JSON has them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sectors of a page.
pub(super) const PAGE: u64 = 8;

/// The requests of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationModel {
    /// `read`, `write`, `trim`, `write_zeroes` or `flush`.
    pub operation: String,
    /// Weight among the operations.
    pub weight: u64,
    /// Sizes in sectors, each with its weight.
    pub sizes: Vec<(u32, u64)>,
    /// Probability that a request starts where the last one of its operation ended.
    pub sequential: f64,
    /// Of the others, the probability of starting at a page; the rest start at any other sector of one.
    pub aligned: f64,
    /// The others fill chunks of so many pages, one request behind the other, up to 256 chunks at a time in random
    /// order; in a small zone, chunks are a 16th of it.
    pub chunk_pages: u64,
    /// Where the operation works: first page, pages. The extents follow one another in the numbering of the zones, the
    /// hottest pages being in the first. Without any, it works on the whole device.
    pub extents: Vec<(u64, u64)>,
    /// Consecutive parts of the extents, from the hottest on; in each, all pages are used once before any is used
    /// again.
    pub zones: Vec<Zone>,
}

/// A part of the pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Its part of the pages; the parts of all zones add up to 1.
    pub part: f64,
    /// Its weight among the zones.
    pub weight: f64,
}

/// When requests come; the first at 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrivalModel {
    /// Classes of gaps between requests; an octave has up to eight of them.
    pub gaps: Vec<Gap>,
    /// How often a gap of one octave follows one of another: from, to, weight. Octave 0 is no gap, octave n is from
    /// 2^(n-1) ps to 2^n ps. Where there are none, gaps are drawn independently.
    pub transitions: Vec<(u8, u8, u64)>,
}

/// A class of gaps, uniform about the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// The least of them, in ps.
    pub from_ps: u64,
    /// Above the greatest of them, in ps.
    pub to_ps: u64,
    /// Their mean in ps.
    pub mean_ps: f64,
    /// Weight.
    pub weight: f64,
}
