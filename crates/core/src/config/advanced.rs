//! Advanced commands: the options of `nand.advanced`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits;
use super::units::Duration;

/// Commands beyond the basic read, program and erase. All are off by default.
///
/// The rules are those of Hu et al. 2011, Sections 2.2 and 4.3, with restrictions *b* (copy-back keeps plane and page
/// parity) and *c* (multi-plane needs equal page addresses). If the paper does not define a detail, ONFI applies. See
/// docs/model/commands.md.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Advanced {
    /// Copy-back: garbage collection moves a page within its plane without the channel, if the page parities match and
    /// the whole page is valid.
    pub copy_back: Waste,
    /// True if copy-back keeps the parity of page addresses (restriction *b*), unlike Agrawal et al. 2008. Default:
    /// true.
    #[serde(skip_serializing_if = "is_true")]
    pub copy_back_parity: bool,
    /// Multi-plane program: planes of a die are programmed together if their next pages have equal addresses.
    pub multi_plane_program: Waste,
    /// True with multi-plane reads: planes of a die are read together if the pages have equal addresses.
    pub multi_plane_read: bool,
    /// True with multi-plane erases: blocks in the planes of a die are erased together.
    pub multi_plane_erase: bool,
    /// True if multi-plane commands also require equal block addresses, as in the papers. Planes then open such blocks
    /// if possible.
    pub strict: bool,
    /// True if multi-plane commands join only planes 0 and 1, 2 and 3 (Agrawal et al. 2008, Section 2).
    pub plane_pairs: bool,
    /// True if the dies of a chip work together in an interleaved command. Requires `nand.concurrency = "command"` or
    /// `"chip"`.
    pub interleave: bool,
    /// True if the cells read the next page while data of the previous page leaves (ONFI: read cache).
    pub cache_read: bool,
    /// True if data of the next page of a block arrives while the cells program the previous page (ONFI: page cache
    /// program).
    pub cache_program: bool,
    /// True if a partial write whose old data is in the target plane is one operation: the page is read into the
    /// register, the new sectors are transferred, and the page is programmed (Agrawal et al. 2008, Section 4.3).
    /// Requires static allocation and mapping units of one page. Default: false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub copy_back_modify: bool,
    /// Suspension of programs and erases by host reads of the same die.
    pub suspend: Suspend,
}

fn is_true(value: &bool) -> bool {
    *value
}

impl Default for Advanced {
    fn default() -> Self {
        Advanced {
            copy_back: Waste::Off,
            copy_back_parity: true,
            copy_back_modify: false,
            multi_plane_program: Waste::Off,
            multi_plane_read: false,
            multi_plane_erase: false,
            strict: false,
            plane_pairs: false,
            interleave: false,
            cache_read: false,
            cache_program: false,
            suspend: Suspend::default(),
        }
    }
}

impl Advanced {
    /// Returns `true` if planes or dies of a chip may work together in one command.
    pub fn merges(&self) -> bool {
        self.interleave || self.multi_plane_program != Waste::Off || self.multi_plane_read || self.multi_plane_erase
    }

    /// Returns `true` if operations of one die may overlap.
    pub fn overlaps(&self) -> bool {
        self.cache_read || self.cache_program || self.suspend.program || self.suspend.erase
    }
}

/// Use of a command that may waste pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Waste {
    /// Never.
    #[default]
    Off,
    /// Only if no page is wasted.
    Wise,
    /// Also if pages are wasted.
    Blind,
}

/// Suspension of programs and erases by host reads of the same die.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Suspend {
    /// True if host reads suspend programs.
    pub program: bool,
    /// True if host reads suspend erases.
    pub erase: bool,
    /// Time from the suspend command until the die takes a read.
    #[schemars(extend("x-range" = limits::TIME))]
    pub latency: Duration,
    /// Time from the resume command until the cells continue.
    #[schemars(extend("x-range" = limits::TIME))]
    pub resume: Duration,
    /// Maximum number of read commands that delay one operation, over all its suspensions.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: u32,
    /// Maximum number of suspensions of one operation. Default: 1000.
    #[serde(skip_serializing_if = "is_unlimited")]
    #[schemars(range(min = 1, max = 1000))]
    pub most: u32,
    /// Share of their work after which the cells are no longer suspended. Default: 1.
    #[serde(skip_serializing_if = "is_whole")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub until: f64,
    /// Work of the cells that a suspension undoes, and which they repeat: at most what they have done since they
    /// started or resumed. Default: 0.
    #[serde(skip_serializing_if = "Duration::is_zero")]
    #[schemars(extend("x-range" = limits::TIME))]
    pub lost: Duration,
    /// True if nothing is suspended while host writes wait for room in the buffer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub writes_first: bool,
}

/// Largest values of the options of a suspension, which are their defaults.
const MOST_SUSPENSIONS: u32 = 1000;

fn is_unlimited(most: &u32) -> bool {
    *most == MOST_SUSPENSIONS
}

fn is_whole(share: &f64) -> bool {
    *share == 1.0
}

impl Default for Suspend {
    fn default() -> Self {
        Suspend {
            program: false,
            erase: false,
            latency: Duration::default(),
            resume: Duration::default(),
            limit: 4,
            most: MOST_SUSPENSIONS,
            until: 1.0,
            lost: Duration::default(),
            writes_first: false,
        }
    }
}
