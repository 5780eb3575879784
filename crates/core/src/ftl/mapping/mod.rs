//! How the place of a logical unit is found: what of the map is in the controller's memory, and what has to be read.
//!
//! The simulator itself always has the whole map in memory ([`PageMap`]). A scheme that keeps a part of it in flash
//! models which entries the controller holds, which of them are newer than in flash, and the traffic that follows.

pub mod cmt;
mod functional;

use crate::policy_family;
pub use block::{BlockMap, LogicalBlock, NOWHERE};
pub use dftl::{DftlConfig, MapState};
pub use page::{Location, PADDING, PageMap, TRANSLATION};

/// Finds places.
pub trait MappingPolicy {
    /// What is known of the part of the map that is in flash, for schemes that keep it there.
    fn take_state(&mut self) -> Option<MapState> {
        None
    }

    /// The map of logical blocks, for schemes that map those.
    fn take_blocks(&mut self) -> Option<BlockMap> {
        None
    }
}

policy_family! {
    /// How the place of a logical unit is found.
    MappingScheme / MappingConfig: dyn MappingPolicy {
        /// A full map of units in the controller's memory.
        page::Page = "page",
        /// The map is in flash, in translation pages; the controller holds the entries in use (Gupta et al. 2009).
        dftl::Dftl = "dftl",
        /// A map of logical blocks, whose units keep their offsets (Gal and Toledo 2005).
        block::Block = "block",
    }
}

impl Default for MappingConfig {
    fn default() -> Self {
        MappingConfig::Page(Default::default())
    }
}
