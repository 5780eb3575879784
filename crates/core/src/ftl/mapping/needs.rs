//! What a mapping scheme needs of a device, and what it rules out.

use crate::config::DeviceConfig;
use crate::config::advanced::Waste;
use crate::config::cells::CellMode;
use crate::config::units::Duration;
use crate::ftl::allocation::AllocationConfig;

/// A map in flash.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Translation {
    /// Entries of a translation page.
    pub entries_per_page: u32,
    /// Spare share of the blocks that are kept for translation pages, beyond the least that works.
    pub spare: f64,
    /// Cell mode of these blocks.
    pub cells: CellMode,
}

/// What a mapping scheme needs of a device, and what it rules out. The reasons are parts of error messages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Needs {
    /// The map in flash, if there is one.
    pub translation: Option<Translation>,
    /// True if each logical block keeps an erase block. The scheme merges blocks then.
    pub whole_blocks: bool,
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

/// Checks the options that a scheme with blocks of its own depends on.
///
/// # Errors
///
/// The option that cannot be, and why.
pub fn check_places(device: &DeviceConfig) -> Result<(), String> {
    let advanced = &device.nand.advanced;
    let problem = if !matches!(device.allocation, AllocationConfig::Static(_)) {
        "the plane of a logical block is fixed: it needs allocation = \"static\""
    } else if advanced.copy_back != Waste::Off {
        "merges copy through the controller: it needs nand.advanced.copy_back = \"off\""
    } else if advanced.cache_program {
        "a logical block is programmed step by step: it needs nand.advanced.cache_program = false"
    } else if device.controller.fill_timeout > Duration(0) {
        "what fills a program follows from its offset: it needs controller.fill_timeout = \"0s\""
    } else {
        return Ok(());
    };
    Err(problem.to_owned())
}
