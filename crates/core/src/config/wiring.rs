//! Wiring: numbers of channels and buses, and sizes of pages, which follow from the gangs of a device.

use super::check::MAX_PAGE;
use super::gang::GangMode;
use super::units::Bytes;
use super::{Concurrency, DeviceConfig};
use crate::ftl::allocation::AllocationConfig;

impl DeviceConfig {
    /// Returns the width of the gangs if they have one of the modes, and 1 otherwise.
    fn width_if(&self, modes: &[GangMode]) -> u32 {
        self.gang.filter(|gang| modes.contains(&gang.mode)).map_or(1, |gang| gang.width.max(1))
    }

    /// Returns the number of packages that work as one: their pages form one flash page.
    pub fn packages_per_page(&self) -> u32 {
        self.width_if(&[GangMode::Synchronous])
    }

    /// Returns the number of channels that the FTL sees: those of `geometry`, or the synchronous gangs.
    pub fn channels(&self) -> u32 {
        self.geometry.channels / self.packages_per_page()
    }

    /// Returns the number of buses. A bus carries one transfer at a time.
    pub fn buses(&self) -> u32 {
        self.channels() / self.width_if(&[GangMode::Serial, GangMode::Interleaved])
    }

    /// Returns the number of channels that the FTL sees in a LUN; 1 if a LUN is at most a channel.
    pub fn channels_per_lun(&self) -> u32 {
        self.width_if(&[GangMode::Serial])
    }

    /// Returns the number of buses that share control lines: those of an asynchronous gang, or 1.
    pub fn buses_per_control(&self) -> u32 {
        self.width_if(&[GangMode::Asynchronous])
    }

    /// Returns the number of gangs; 0 without gangs.
    pub fn gangs(&self) -> u32 {
        self.gang.map_or(0, |gang| self.geometry.channels / gang.width.max(1))
    }

    /// Returns the bytes of a flash page, in all packages that work as one.
    pub fn page_bytes(&self) -> u64 {
        self.geometry.page_size.0 * u64::from(self.packages_per_page())
    }

    /// Returns the spare bytes of a flash page, in all packages that work as one.
    pub fn spare_bytes(&self) -> u64 {
        self.geometry.spare_size.0 * u64::from(self.packages_per_page())
    }

    /// Returns the problem of gangs or pairs of planes, if there is one: its key, the value, and what is wrong with it.
    pub(super) fn wiring_problem(&self) -> Option<(&'static str, String, String)> {
        let g = &self.geometry;
        if self.nand.concurrency == Concurrency::PlanePair && !g.planes.is_multiple_of(2) {
            let what = format!("requires an even number of planes; with geometry.planes = {}, use plane", g.planes);
            return Some(("nand.concurrency", "plane-pair".to_owned(), what));
        }
        let gang = self.gang?;
        let width = gang.width;
        if width == 0 || !g.channels.is_multiple_of(width) {
            let most = (1..=width.min(g.channels)).rev().find(|width| g.channels.is_multiple_of(*width)).unwrap_or(1);
            let what = format!("must divide geometry.channels = {}; use {most}", g.channels);
            return Some(("gang.width", width.to_string(), what));
        }
        if self.page_bytes() > MAX_PAGE {
            let most =
                (1..width).rev().find(|&w| g.channels.is_multiple_of(w) && g.page_size.0 * u64::from(w) <= MAX_PAGE);
            let what =
                format!("gives pages of {}, at most 16 MiB; use {}", Bytes(self.page_bytes()), most.unwrap_or(1));
            return Some(("gang.width", width.to_string(), what));
        }
        if gang.mode != GangMode::Serial || width == 1 {
            return None;
        }
        if self.nand.concurrency != Concurrency::Chip {
            let what =
                "with gang.mode = \"serial\" a package executes one operation at a time; use \"chip\"".to_owned();
            let level = format!("{:?}", self.nand.concurrency).to_lowercase();
            return Some(("nand.concurrency", level, what));
        }
        if g.chips_per_package != g.chips {
            let what =
                format!("with gang.mode = \"serial\" a channel has one package; use geometry.chips = {}", g.chips);
            return Some(("geometry.chips_per_package", g.chips_per_package.to_string(), what));
        }
        let AllocationConfig::Dynamic(options) = &self.allocation else { return None };
        let per_channel = self.total_planes() / self.channels().max(1);
        let (of_pool, of_gang) = (options.planes_per_pool(self), per_channel * width);
        if of_pool.is_multiple_of(of_gang) || of_gang.is_multiple_of(of_pool) {
            return None;
        }
        let what = format!(
            "with gang.mode = \"serial\" pools consist of whole gangs, or gangs of whole pools; use {{ channels = {width} }}"
        );
        Some(("allocation.dynamic.scope", format!("{{ channels = {} }}", of_pool / per_channel), what))
    }
}
