//! Cell modes: how many bits the cells of a block hold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units::Duration;

/// Bits per cell of a block, from its opening to its erase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CellMode {
    /// All bits of a cell (`nand.cell`).
    #[default]
    Native,
    /// One bit of a cell (`nand.slc_mode`): fewer pages, and shorter times.
    Slc,
}

impl CellMode {
    /// Returns `true` for the mode that blocks are in by default.
    pub fn is_native(&self) -> bool {
        *self == CellMode::Native
    }
}

/// Times of blocks whose cells hold one bit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlcMode {
    /// Cell to register (tR).
    pub read: Duration,
    /// Register to cell (tPROG) of the pages that one program command fills.
    pub program: Duration,
}

/// Capacity of a block, and of a program, in a cell mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize {
    /// Mapping units of a block, its summary included.
    pub units: u32,
    /// Mapping units of data in a block.
    pub data_units: u32,
    /// Mapping units that one program command fills, or the one unit that several of them do.
    pub program_units: u32,
    /// Flash pages of these units.
    pub program_pages: u32,
}
