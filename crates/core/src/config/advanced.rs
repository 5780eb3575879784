//! Advanced commands: what a flash part can do at once, and how the controller makes use of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units::Duration;

/// Commands beyond the basic read, program and erase. All are off by default.
///
/// Hu et al. 2011, Sections 2.2 and 4.3, with restrictions *b* (copy-back keeps plane and page parity) and *c*
/// (multi-plane needs equal page addresses); where the paper is silent, ONFI decides. See docs/model/commands.md.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Advanced {
    /// Cleaning moves a page within its plane without the channel. `wise`: only where page parities match and all of
    /// the page is valid, else through the controller; `blind`: a page is wasted where they do not match.
    pub copy_back: Waste,
    /// Planes of a die are programmed together. `wise`: those whose next pages have equal addresses; `blind`: pages
    /// are wasted until they have.
    pub multi_plane_program: Waste,
    /// Planes of a die are read together, where the pages have equal addresses.
    pub multi_plane_read: Wise,
    /// Blocks in the planes of a die are erased together.
    pub multi_plane_erase: Wise,
    /// Multi-plane commands need equal block addresses too, as the papers say; blocks are then opened by equal
    /// addresses where they can be.
    pub strict: bool,
    /// Planes work together in pairs only, 0 with 1 and 2 with 3 (Agrawal et al. 2008, Section 2).
    pub plane_pairs: bool,
    /// The dies of a chip work together in one interleaved command; for `nand.concurrency = "command"` and `"chip"`.
    pub interleave: bool,
    /// The cells of a plane read the next page while the data of the last one leave (ONFI: read cache).
    pub cache_read: bool,
    /// The data of the next page of a block go in while the cells program the last one (ONFI: page cache program).
    pub cache_program: bool,
    /// A host read interrupts a program or an erase of its die.
    pub suspend: Suspend,
}

impl Advanced {
    /// Whether planes or dies may work together.
    pub fn merges(&self) -> bool {
        self.interleave
            || self.multi_plane_program != Waste::Off
            || self.multi_plane_read != Wise::Off
            || self.multi_plane_erase != Wise::Off
    }

    /// Whether operations of one die may overlap.
    pub fn overlaps(&self) -> bool {
        self.cache_read || self.cache_program || self.suspend.program || self.suspend.erase
    }
}

/// How a command is used that may cost pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Waste {
    /// Not at all.
    #[default]
    Off,
    /// Where no page is wasted for it.
    Wise,
    /// Also where pages are wasted for it.
    Blind,
}

/// Whether a command is used that never costs pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wise {
    /// Not at all.
    #[default]
    Off,
    /// Where the addresses allow it.
    Wise,
}

/// Suspending what the cells do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Suspend {
    /// Programs are suspended.
    pub program: bool,
    /// Erases are suspended.
    pub erase: bool,
    /// From the suspend command until the die takes a read.
    pub latency: Duration,
    /// From the resume command until the cells go on where they were.
    pub resume: Duration,
    /// How many read commands hold one operation back at most, be it suspended once or again.
    #[schemars(range(min = 1))]
    pub limit: u32,
}

impl Default for Suspend {
    fn default() -> Self {
        Suspend { program: false, erase: false, latency: Duration::default(), resume: Duration::default(), limit: 4 }
    }
}
