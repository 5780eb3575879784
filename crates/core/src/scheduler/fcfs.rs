//! First come, first served.

use super::SchedulerPolicy;
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::work::Class;

/// FCFS has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FcfsConfig {}

/// All operations wait in one line. Only a summary, without which its block is not closed, and cleaning below the
/// hard threshold, without which nothing can be written any more, go before the line.
#[derive(Clone, Debug)]
pub struct Fcfs;

impl Policy for Fcfs {
    type Config = FcfsConfig;
    fn new(_: &FcfsConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(Fcfs)
    }
}

impl SchedulerPolicy for Fcfs {
    fn rank(&self, class: Class) -> u8 {
        match class {
            Class::UrgentGc | Class::Summary => 0,
            Class::HostRead | Class::RmwRead | Class::HostProgram | Class::Gc => 1,
            Class::MapRead | Class::MapProgram => 1,
        }
    }
}
