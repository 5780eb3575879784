//! Results of an array: the part of a summary about its controller.

use floatgate_core::simulation::Ssd;
use floatgate_core::summary::{ArrayUse, RebuildUse};

use crate::array::SsdArray;

impl SsdArray {
    /// Returns the work of the controller, from the start of the measured part to the last completion.
    pub fn usage(&self) -> ArrayUse {
        let counts = if self.outstanding() > 0 { &self.counts } else { &self.counted };
        let failed = self.failed_members();
        let failures = self.config.options.failed.len() as u64;
        let state = match (&failed[..], self.rebuilding) {
            ([], _) => "optimal",
            (_, Some(rebuilding)) if rebuilding.finished.is_none() => "rebuilding",
            _ => "degraded",
        };
        ArrayUse {
            config: self.config.to_json(),
            state: state.to_owned(),
            failed,
            writes: counts.writes,
            reconstructed_reads: counts.reconstructed_reads,
            member_operations: counts.operations,
            write_amplification: (counts.host_bytes > 0).then(|| counts.member_bytes as f64 / counts.host_bytes as f64),
            stripe_waits: counts.stripe_waits,
            stripe_wait_us: counts.stripe_wait as f64 / 1e6,
            trims_dropped: counts.trims_dropped,
            repairs: counts.repairs,
            stripes_corrected: counts.resynced,
            xor_s: counts.xor.as_s(),
            rebuild: self.rebuilding.map(|rebuilding| RebuildUse {
                stripes: failures * self.layout.rows(),
                stripes_done: rebuilding.done,
                finished_s: rebuilding.finished.map(|at| at.as_s()),
            }),
        }
    }
}
