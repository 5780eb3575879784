//! Reads before writes, as in SSDsim.

use super::SchedulerPolicy;
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::work::Class;

/// Reads-before-writes has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadsBeforeWritesConfig {}

/// Reads take priority over writes, at the LUN and at the channel, and so do reads for partial writes. Garbage
/// collection starts when no host operation waits. Urgent garbage collection goes first.
///
/// Source: SSDsim, `process()` and `gc()`: for each channel, read commands, then data, then writes. A LUN that waits
/// for its channel to write is idle until then. It starts a read that arrives, unless operations of the LUN may
/// overlap.
#[derive(Clone, Debug)]
pub struct ReadsBeforeWrites;

impl Policy for ReadsBeforeWrites {
    type Config = ReadsBeforeWritesConfig;
    fn new(_: &ReadsBeforeWritesConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(ReadsBeforeWrites)
    }
}

impl SchedulerPolicy for ReadsBeforeWrites {
    fn rank(&self, class: Class) -> u8 {
        match class {
            Class::UrgentGc | Class::Summary => 0,
            // Host operations may wait for a translation page.
            Class::HostRead | Class::RmwRead | Class::MapRead | Class::ReadAhead => 1,
            Class::HostProgram | Class::MapProgram => 2,
            Class::Gc | Class::BackgroundGc => 3,
        }
    }

    fn reconsiders(&self) -> bool {
        true
    }
}
