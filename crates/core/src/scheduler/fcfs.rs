//! First come, first served.

use super::SchedulerPolicy;
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::work::Class;

/// FCFS has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FcfsConfig {}

/// A single queue for all operations. Only summary pages and urgent garbage collection overtake others: a block is not
/// closed without its summary, and host writes need the blocks that garbage collection frees.
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
            Class::HostRead | Class::RmwRead | Class::HostProgram | Class::Gc | Class::BackgroundGc => 1,
            Class::MapRead | Class::MapProgram | Class::ReadAhead => 1,
        }
    }
}
