//! Planes of a die that are programmed and erased together, and read independently (`nand.concurrency`).

use super::advanced::Waste;
use super::check::Check;
use super::{Concurrency, DeviceConfig};

impl DeviceConfig {
    /// Returns the number of planes of a die that are programmed and erased together. The FTL sees them as one plane:
    /// consecutive pages of its blocks are in consecutive planes.
    pub fn planes_together(&self) -> u32 {
        if self.nand.concurrency == Concurrency::PlaneReads { self.geometry.planes.max(1) } else { 1 }
    }

    /// Returns the number of planes of a die that the FTL sees.
    pub fn planes_per_die(&self) -> u32 {
        self.geometry.planes / self.planes_together()
    }

    /// Returns the number of pages of a block, in all planes that are erased together.
    pub fn pages_per_block(&self) -> u32 {
        self.geometry.pages.saturating_mul(self.planes_together())
    }

    /// Returns the number of pages that one program command fills, in all planes that are programmed together.
    pub fn pages_per_program(&self) -> u32 {
        self.geometry.pages_per_program.saturating_mul(self.planes_together())
    }

    /// Returns the number of planes in the device, each counted by itself. It is the number of rows of a timeline.
    pub fn physical_planes(&self) -> u32 {
        self.total_planes() * self.planes_together()
    }

    /// Returns `true` if operations of one die may overlap.
    pub fn overlaps(&self) -> bool {
        self.nand.advanced.overlaps() || self.planes_together() > 1
    }
}

impl Check<'_> {
    /// Checks planes that are programmed together against the other options.
    pub(super) fn planes_together(&mut self, device: &DeviceConfig) {
        if device.planes_together() == 1 {
            return;
        }
        let advanced = &device.nand.advanced;
        let refused = [
            ("copy_back", advanced.copy_back != Waste::Off, "the planes are programmed together"),
            ("multi_plane_program", advanced.multi_plane_program != Waste::Off, "the planes are programmed together"),
            ("multi_plane_erase", advanced.multi_plane_erase, "the planes are erased together"),
            ("multi_plane_read", advanced.multi_plane_read, "the planes are read independently"),
            ("plane_pairs", advanced.plane_pairs, "the planes are programmed together"),
            ("strict", advanced.strict, "there are no multi-plane commands"),
            ("cache_read", advanced.cache_read, "each plane reads one page at a time"),
        ];
        for (name, _, why) in refused.into_iter().filter(|(_, is_set, _)| *is_set) {
            let what = format!("with nand.concurrency = \"plane-reads\" {why}; leave it out");
            self.refuse(&format!("nand.advanced.{name}"), "on", &what);
        }
        let g = &device.geometry;
        if let Some(unit) = g.mapping_unit.filter(|unit| *unit > g.page_size) {
            let what = "is at most a page with nand.concurrency = \"plane-reads\", so that it is in one plane";
            self.refuse("geometry.mapping_unit", unit, what);
        }
    }
}
