//! What a mapping scheme needs of a device, and what it rules out.

use crate::config::DeviceConfig;

/// A map in flash.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Translation {
    /// Entries of a translation page.
    pub entries_per_page: u32,
    /// Spare share of the blocks that are kept for translation pages, beyond the least that works.
    pub spare: f64,
}

/// What a mapping scheme needs of a device, and what it rules out. The reasons are parts of error messages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Needs {
    /// The map in flash, if there is one.
    pub translation: Option<Translation>,
    /// True if each logical block keeps an erase block.
    pub whole_blocks: bool,
    /// True if the scheme merges blocks, so that there is something to count.
    pub merges: bool,
    /// Why power loss is ruled out.
    pub no_power_loss: Option<&'static str>,
    /// Why failures are ruled out.
    pub no_faults: Option<&'static str>,
    /// Why temperature classes are ruled out.
    pub no_classes: Option<&'static str>,
}

/// The options of a scheme.
pub trait SchemeOptions {
    /// Returns what the scheme needs of a device, and what it rules out.
    fn needs(&self, _device: &DeviceConfig) -> Needs {
        Needs::default()
    }

    /// Returns the bytes of the scheme's tables, without the page map.
    fn bytes(&self, _device: &DeviceConfig) -> u64 {
        0
    }
}
