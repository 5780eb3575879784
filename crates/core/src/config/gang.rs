//! Gangs: packages that are connected to the controller together (Agrawal et al. 2008, Section 3.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::MAX_PAGE;
use super::units::Bytes;
use super::{Concurrency, DeviceConfig};
use crate::ftl::allocation::AllocationConfig;

/// Gangs of packages. `geometry` describes packages with a channel each. A gang connects a number of them, so that one
/// option turns a device into one with gangs. Results have values for each gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gang {
    /// Number of channels of `geometry` whose packages form a gang; 1: each channel is a gang by itself, and its
    /// packages work as without this table.
    #[schemars(range(min = 1))]
    pub width: u32,
    /// Connection of the packages, and the way in which they work together.
    #[serde(default)]
    pub mode: GangMode,
}

/// Connection of the packages of a gang, and the way in which they work together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GangMode {
    /// Shared bus, which carries one operation at a time: the gang takes its next command when the last one is done.
    #[default]
    Serial,
    /// Shared bus: the packages work independently of one another and share a channel.
    Interleaved,
    /// Shared control, and a data path for each package. The gang works in rounds: each package executes at most one
    /// operation, all of one kind, and the next round starts when all of them are done.
    Asynchronous,
    /// Shared control, and a data path for each package. All packages execute the same operation at the same addresses.
    /// The gang is a virtual package with the sum of the pages, spare bytes and mapping units of its packages.
    Synchronous,
}

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

    /// Returns the number of buses, each of which carries one transfer at a time.
    pub fn buses(&self) -> u32 {
        self.channels() / self.width_if(&[GangMode::Serial, GangMode::Interleaved])
    }

    /// Returns the number of channels that the FTL sees in a LUN; 1 if a LUN is at most a channel.
    pub fn channels_per_lun(&self) -> u32 {
        self.width_if(&[GangMode::Serial, GangMode::Asynchronous])
    }

    /// Returns the number of buses of a LUN, which transfer data at the same time: those of an asynchronous gang, or 1.
    pub fn buses_per_lun(&self) -> u32 {
        self.width_if(&[GangMode::Asynchronous])
    }

    /// Returns `true` if planes, dies or packages may work together in one command.
    pub fn merges(&self) -> bool {
        self.nand.advanced.merges() || self.buses_per_lun() > 1
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

    /// Returns the problem of the gangs, if there is one: its key, the value, and what is wrong with it.
    pub(super) fn gang_problem(&self) -> Option<(&'static str, String, String)> {
        let (Some(gang), g) = (self.gang, &self.geometry) else { return None };
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
        if !matches!(gang.mode, GangMode::Serial | GangMode::Asynchronous) || width == 1 {
            return None;
        }
        let mode = if gang.mode == GangMode::Serial { "serial" } else { "asynchronous" };
        if self.nand.concurrency != Concurrency::Chip {
            let what = format!("with gang.mode = \"{mode}\" a package executes one operation at a time; use \"chip\"");
            let level = format!("{:?}", self.nand.concurrency).to_lowercase();
            return Some(("nand.concurrency", level, what));
        }
        if g.chips_per_package != g.chips {
            let what =
                format!("with gang.mode = \"{mode}\" a channel has one package; use geometry.chips = {}", g.chips);
            return Some(("geometry.chips_per_package", g.chips_per_package.to_string(), what));
        }
        if self.nand.advanced.interleave && gang.mode == GangMode::Asynchronous {
            let what = "a package of an asynchronous gang executes one operation in each round; use false";
            return Some(("nand.advanced.interleave", "true".to_owned(), what.to_owned()));
        }
        match &self.allocation {
            AllocationConfig::Dynamic(options) if options.pools(self) > self.buses() / self.buses_per_lun() => {
                let what = format!("with gang.mode = \"{mode}\" a gang takes the writes of one pool; use \"device\"");
                Some(("allocation.dynamic.scope", "channel".to_owned(), what))
            }
            _ => None,
        }
    }
}
