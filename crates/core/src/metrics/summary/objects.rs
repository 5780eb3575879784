//! Accesses of a workload to objects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metrics::counters::ratio;
use crate::sim::source::ObjectCounts;

/// Accesses to objects of an object trace (`docs/reference/objects.md`), over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectUse {
    /// Name of the stream.
    pub stream: String,
    /// Reads of objects.
    pub gets: u64,
    /// Reads of objects that were on the device.
    pub hits: u64,
    /// Hits per read of an object; null without reads.
    pub hit_ratio: Option<f64>,
    /// Bytes that hits returned, per byte of all objects that were read; null without reads.
    pub byte_hit_ratio: Option<f64>,
    /// Objects written, also after a miss.
    pub sets: u64,
    /// Bytes of the objects written.
    pub set_bytes: u64,
    /// Removals of objects that were on the device.
    pub deletes: u64,
    /// Objects that were evicted.
    pub evictions: u64,
    /// Writes of objects that are too large for the placement, which are left out.
    pub too_large: u64,
    /// Accesses to other tiers, which are left out.
    pub other_tiers: u64,
    /// Objects on the device at the end.
    pub objects: u64,
    /// Bytes of the objects on the device at the end.
    pub bytes: u64,
}

impl ObjectUse {
    /// Creates the counters of a stream.
    pub fn new(stream: String, counts: ObjectCounts) -> ObjectUse {
        ObjectUse {
            stream,
            gets: counts.gets,
            hits: counts.hits,
            hit_ratio: ratio(counts.hits, counts.gets),
            byte_hit_ratio: ratio(counts.hit_bytes, counts.get_bytes),
            sets: counts.sets,
            set_bytes: counts.set_bytes,
            deletes: counts.deletes,
            evictions: counts.evictions,
            too_large: counts.too_large,
            other_tiers: counts.other_tiers,
            objects: counts.objects,
            bytes: counts.bytes,
        }
    }
}
