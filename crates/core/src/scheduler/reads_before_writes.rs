//! Reads before writes, as in SSDsim.

use super::SchedulerPolicy;
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::work::Class;

/// Reads-before-writes has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadsBeforeWritesConfig {}

/// All that the host waits for is read before anything is written, at the die and at the channel; reads for partial
/// writes are reads like those of the host. Garbage collection starts when nothing of the host waits, and goes first
/// below the hard threshold (SSDsim, `process()` and `gc()`: read commands, then data, then writes of each channel). A
/// die that waits for its channel to write is idle until then, and reads, unless operations of the die may overlap.
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
            Class::HostRead | Class::RmwRead | Class::MapRead => 1,
            Class::HostProgram | Class::MapProgram => 2,
            Class::Gc => 3,
        }
    }

    fn reconsiders(&self) -> bool {
        true
    }
}
