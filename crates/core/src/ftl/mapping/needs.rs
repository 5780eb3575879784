//! Requirements of a mapping scheme on a device.

use crate::config::DeviceConfig;
use crate::config::advanced::Waste;
use crate::config::cells::CellMode;
use crate::config::units::Duration;
use crate::ftl::allocation::AllocationConfig;

/// Map in flash.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Translation {
    /// Number of entries of a translation page.
    pub entries_per_page: u32,
    /// Spare share of the blocks for translation pages, beyond the least that works.
    pub spare: f64,
    /// Cell mode of these blocks.
    pub cells: CellMode,
}

/// Blocks of a scheme that merges blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WholeBlocks {
    /// Number of planes whose blocks the logical blocks of these planes may be in.
    pub planes: u32,
    /// Number of logical blocks over which consecutive pages are striped. All of them exist if one does.
    pub stripe: u32,
    /// Number of blocks of these planes that are kept in addition to those of the logical blocks.
    pub kept: u32,
    /// Kinds of log blocks among them; none if these are the free blocks of `gc.soft_threshold`.
    pub logs: &'static [&'static str],
}

impl WholeBlocks {
    /// The requirements of a scheme whose logical blocks stay in their planes.
    pub fn of_planes(device: &DeviceConfig) -> WholeBlocks {
        let kept = device.soft_threshold() + device.own_blocks(1);
        WholeBlocks { planes: 1, stripe: 1, kept, logs: &[] }
    }
}

/// Requirements of a mapping scheme on a device. The reasons are parts of error messages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Needs {
    /// The map in flash, if there is one.
    pub translation: Option<Translation>,
    /// Blocks of the scheme, if each logical block keeps a block, so that the scheme merges blocks.
    pub whole_blocks: Option<WholeBlocks>,
    /// True if pages of kept blocks may be left out, also the first one, so that a recovery looks at all of them.
    pub leaves_out_pages: bool,
    /// Reason for which power loss is ruled out, if it is.
    pub no_power_loss: Option<&'static str>,
    /// Reason for which units of the device itself (trim journal, checkpoint) are ruled out, if they are.
    pub no_own_units: Option<&'static str>,
    /// Reason for which failures are ruled out, if they are.
    pub no_faults: Option<&'static str>,
    /// Reason for which temperature classes are ruled out, if they are.
    pub no_classes: Option<&'static str>,
}

/// Options of a scheme.
pub trait SchemeOptions {
    /// Returns the requirements of the scheme on a device.
    fn needs(&self, _device: &DeviceConfig) -> Needs {
        Needs::default()
    }

    /// Returns the size of the scheme's tables in bytes, without the page map.
    fn bytes(&self, _device: &DeviceConfig) -> u64 {
        0
    }
}

/// Checks the options that a scheme with blocks of its own depends on.
///
/// # Errors
///
/// The option that is not supported, and the reason.
pub fn check_places(device: &DeviceConfig) -> Result<(), String> {
    let advanced = &device.nand.advanced;
    let problem = if !matches!(device.allocation, AllocationConfig::Static(_)) {
        "the plane of a logical block is fixed: it needs allocation = \"static\""
    } else if advanced.copy_back != Waste::Off {
        "merges copy through the controller: it needs nand.advanced.copy_back = \"off\""
    } else if advanced.cache_program {
        "a logical block is programmed step by step: it needs nand.advanced.cache_program = false"
    } else if device.controller.fill_timeout > Duration(0) {
        "the contents of a program follow from its offset: it needs controller.fill_timeout = \"0s\""
    } else if device.gc.wear.migrates() {
        "the scheme moves the data of its blocks itself: it needs gc.wear = \"least-erased\" or \"none\""
    } else {
        return Ok(());
    };
    Err(problem.to_owned())
}
