//! Tables of the supported commands, log pages and features. docs/nvme.md has the same lists.

use super::wire::{admin, feature, io, log};

/// A command, log page or feature: its number, its name, and its effect.
pub type Row = (u8, &'static str, Effect);

/// Effect of a command or feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// None.
    None,
    /// The contents of the namespace may change.
    Contents,
    /// The feature can be set.
    Settable,
}

impl Effect {
    /// Returns the entry of the log page of effects: supported, and whether contents change or the value can be set.
    pub fn bits(self) -> u32 {
        match self {
            Effect::None => 1,
            Effect::Contents => 1 | 1 << 1,
            // A changed value concerns this controller.
            Effect::Settable => 1 | 1 << 21,
        }
    }
}

/// Admin commands. Fabrics commands are not in the log page of effects.
pub const ADMIN: [Row; 7] = [
    (admin::GET_LOG_PAGE, "Get Log Page", Effect::None),
    (admin::IDENTIFY, "Identify", Effect::None),
    (admin::ABORT, "Abort", Effect::None),
    (admin::SET_FEATURES, "Set Features", Effect::None),
    (admin::GET_FEATURES, "Get Features", Effect::None),
    (admin::ASYNC_EVENT, "Asynchronous Event Request", Effect::None),
    (admin::KEEP_ALIVE, "Keep Alive", Effect::None),
];

/// I/O commands.
pub const IO: [Row; 7] = [
    (io::FLUSH, "Flush", Effect::None),
    (io::WRITE, "Write", Effect::Contents),
    (io::READ, "Read", Effect::None),
    (io::COMPARE, "Compare", Effect::None),
    (io::WRITE_ZEROES, "Write Zeroes", Effect::Contents),
    (io::DATASET_MANAGEMENT, "Dataset Management", Effect::Contents),
    (io::VERIFY, "Verify", Effect::None),
];

/// Log pages of a drive.
pub const LOGS: [Row; 7] = [
    (log::SUPPORTED, "Supported Log Pages", Effect::None),
    (log::ERRORS, "Error Information", Effect::None),
    (log::HEALTH, "SMART / Health Information", Effect::None),
    (log::FIRMWARE, "Firmware Slot Information", Effect::None),
    (log::CHANGED_NAMESPACES, "Changed Attached Namespace List", Effect::None),
    (log::EFFECTS, "Commands Supported and Effects", Effect::None),
    (log::FEATURES, "Feature Identifiers Supported and Effects", Effect::None),
];

/// Features of a drive.
pub const FEATURES: [Row; 9] = [
    (feature::ARBITRATION, "Arbitration", Effect::Settable),
    (feature::POWER, "Power Management", Effect::Settable),
    (feature::TEMPERATURE, "Temperature Threshold", Effect::Settable),
    (feature::ERROR_RECOVERY, "Error Recovery", Effect::Settable),
    (feature::WRITE_CACHE, "Volatile Write Cache", Effect::Settable),
    (feature::QUEUES, "Number of Queues", Effect::Settable),
    (feature::ATOMICITY, "Write Atomicity Normal", Effect::Settable),
    (feature::EVENTS, "Asynchronous Event Configuration", Effect::Settable),
    (feature::KEEP_ALIVE, "Keep Alive Timer", Effect::Settable),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_what_is_supported() {
        let page = include_str!("../../../../docs/nvme.md");
        for (number, name, _) in ADMIN.iter().chain(&IO).chain(&LOGS).chain(&FEATURES) {
            let row = format!("| {number:02X}h | {name} |");
            assert!(page.contains(&row), "docs/nvme.md lacks the row `{row}`");
        }
    }
}
