//! Host reads before all other operations.

use super::SchedulerPolicy;
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::work::Class;

/// Read-first has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFirstConfig {}

/// Host reads take priority over all other operations, at the LUN and at the channel. All others are ranked as in
/// `fcfs`, except that reads ahead precede writes.
#[derive(Clone, Debug)]
pub struct ReadFirst;

impl Policy for ReadFirst {
    type Config = ReadFirstConfig;
    fn new(_: &ReadFirstConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(ReadFirst)
    }
}

impl SchedulerPolicy for ReadFirst {
    fn rank(&self, class: Class) -> u8 {
        match class {
            // A host read may wait for a translation page.
            Class::HostRead | Class::MapRead => 0,
            Class::UrgentGc | Class::Summary | Class::ReadAhead => 1,
            Class::RmwRead | Class::HostProgram | Class::Gc | Class::BackgroundGc | Class::MapProgram => 2,
        }
    }
}
