//! Parts of a model, in the structure of its JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sectors per page.
pub(super) const PAGE: u64 = 8;

/// Requests of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationModel {
    /// `read`, `write`, `trim`, `write_zeroes` or `flush`.
    pub operation: String,
    /// Weight relative to the other operations.
    pub weight: u64,
    /// Sizes in sectors, each with its weight.
    pub sizes: Vec<(u32, u64)>,
    /// Probability that a request starts at the end of the last one of its operation.
    pub sequential: f64,
    /// Probability that a non-sequential request starts at a page boundary, and not at another sector of a page.
    pub aligned: f64,
    /// Pages per chunk. Non-sequential requests fill chunks, with up to 256 chunks in random order open at a time. In a
    /// small zone, a chunk is a 16th of the zone.
    pub chunk_pages: u64,
    /// Extents that the operation uses, as first page and number of pages. Zones number the pages of all extents in
    /// this order, so the hottest pages are in the first extent. If empty, the operation uses the whole device.
    pub extents: Vec<(u64, u64)>,
    /// Consecutive parts of the extents, hottest first. Within a zone, every page is used once before any is used
    /// again.
    pub zones: Vec<Zone>,
}

/// A part of the pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Share of the pages. The shares of all zones add up to 1.
    pub part: f64,
    /// Weight relative to the other zones.
    pub weight: f64,
}

/// Arrivals of requests. The first request arrives at 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrivalModel {
    /// Classes of gaps between requests, up to eight per octave.
    pub gaps: Vec<Gap>,
    /// Frequencies with which a gap of one octave follows a gap of another: from, to, weight. Octave 0 is no gap,
    /// octave n is from 2^(n-1) ps to 2^n ps. If empty, gaps are drawn independently.
    pub transitions: Vec<(u8, u8, u64)>,
}

/// A class of gaps, with a uniform distribution around the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// Lower end of the class, in ps.
    pub from_ps: u64,
    /// Upper end of the class, exclusive, in ps.
    pub to_ps: u64,
    /// Mean of the class, in ps.
    pub mean_ps: f64,
    /// Weight.
    pub weight: f64,
}
