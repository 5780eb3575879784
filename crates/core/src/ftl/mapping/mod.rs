//! Mapping schemes: they find the address of a logical unit, and decide where a write goes and what is copied for it.
//!
//! The simulator always has the whole map in memory ([`PageMap`]). A scheme decides which part of it the controller
//! holds, and which blocks a unit may be in. No other file of the project names a scheme, except the tests of one.

pub mod call;
mod context;
pub mod external;
mod instant;
mod log_blocks;
mod map;
mod needs;
mod outstanding;
mod own_blocks;
pub mod replacement;
mod scheme;
#[cfg(test)]
mod stub;

use crate::config::DeviceConfig;
use crate::policy_family;
pub use context::{Context, Wait, WaitCause};
pub use map::{Location, PADDING, PageMap, TRANSLATION};
pub use needs::{Needs, SchemeOptions, Translation, WholeBlocks, check_places};
pub use outstanding::{Contents, Outstanding};
pub use scheme::*;

/// Deliberate bugs of merges with log blocks, for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum MergeDefect {
    /// A merge copies the unit of the data block instead of a newer one.
    OldCopy,
    /// A log block becomes the data block before the rest has been copied into it.
    EarlySwitch,
    /// A merge copies units that were trimmed, and maps them again.
    ForgottenTrim,
}

policy_family! {
    /// Mapping scheme: finds the address of a logical unit.
    MappingScheme / MappingConfig: dyn Mapping<dyn Context>, or external {
        /// A full map of units in the controller's memory.
        page::Page = "page",
        /// The map is in flash, in translation pages; the controller caches some of its entries (Gupta et al. 2009).
        dftl::Dftl = "dftl",
        /// A map of logical blocks, whose units keep their offsets (Gal and Toledo 2005).
        block::Block = "block",
        /// Log blocks, each for one logical block (Kim et al. 2002).
        bast::Bast = "bast",
        /// Log blocks for any logical block, and some for sequential writes (Lee et al. 2007).
        fast::Fast = "fast",
        /// Log blocks for sequential, hot and cold writes (Lee et al. 2008).
        last::Last = "last",
    }
}

impl Default for MappingConfig {
    fn default() -> Self {
        MappingConfig::Page(Default::default())
    }
}

impl MappingScheme {
    /// Returns the scheme for a context.
    #[inline]
    fn of<C: Context + ?Sized>(&mut self) -> &mut dyn Mapping<C> {
        match self {
            MappingScheme::Page(scheme) => scheme,
            MappingScheme::Dftl(scheme) => scheme,
            MappingScheme::Block(scheme) => scheme,
            MappingScheme::Bast(scheme) => scheme,
            MappingScheme::Fast(scheme) => scheme,
            MappingScheme::Last(scheme) => scheme,
            MappingScheme::External(scheme) => &mut **scheme,
        }
    }
}

impl MappingConfig {
    fn options(&self) -> &dyn SchemeOptions {
        match self {
            MappingConfig::Page(options) => options,
            MappingConfig::Dftl(options) => options,
            MappingConfig::Block(options) => options,
            MappingConfig::Bast(options) => options,
            MappingConfig::Fast(options) => options,
            MappingConfig::Last(options) => options,
            MappingConfig::External(options) => options,
        }
    }

    /// Returns the requirements of the scheme on a device.
    pub fn needs(&self, device: &DeviceConfig) -> Needs {
        self.options().needs(device)
    }

    /// Returns the size of the scheme's tables in bytes, without the page map.
    pub fn bytes(&self, device: &DeviceConfig) -> u64 {
        self.options().bytes(device)
    }
}
