//! Cell modes: the number of bits that the cells of a block hold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits;
use super::units::Duration;

/// Bits per cell of a block, from its opening to its erase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CellMode {
    /// All bits of each cell (`nand.cell`).
    #[default]
    Native,
    /// A single bit of each cell (`nand.slc_mode`), with fewer pages and shorter times.
    Slc,
}

impl CellMode {
    /// Returns `true` for the default mode of blocks.
    pub fn is_native(&self) -> bool {
        *self == CellMode::Native
    }
}

/// Times of blocks in SLC mode, which hold one page of each wordline. Options of the mapping scheme select these
/// blocks. Their erase time and endurance are those of other blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlcMode {
    /// Time from cell to register (tR).
    #[schemars(extend("x-range" = limits::TIME))]
    pub read: Duration,
    /// Time from register to cell (tPROG), for all pages that one program command fills.
    #[schemars(extend("x-range" = limits::TIME))]
    pub program: Duration,
}

/// Capacity of a block and of a program in a cell mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize {
    /// Number of mapping units in a block, including its summary.
    pub units: u32,
    /// Number of mapping units of data in a block.
    pub data_units: u32,
    /// Number of mapping units that one program command fills; 1 if a unit takes several commands.
    pub program_units: u32,
    /// Number of flash pages of these units.
    pub program_pages: u32,
}
