//! External trigger: supplied by the program that runs the device.

use super::TriggerPolicy;
use crate::config::DeviceConfig;
pub use crate::config::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{Externals, Fault, Guard, Wanted, outside_policies};
use crate::ftl::space::RegionView;
use crate::state::{StateError, Writer};

outside_policies!(TriggerPolicy);

/// Calls an external policy. After a failure, it acts like `threshold`.
#[derive(Clone, Debug)]
pub struct External {
    guard: Guard<dyn TriggerPolicy>,
}

impl External {
    /// Builds the policy.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64, externals: &Externals) -> Result<External, String> {
        Ok(External { guard: Guard::new(externals, Wanted { path: "gc.trigger", config, device, seed })? })
    }

    /// Returns the fault of the policy.
    pub fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }
}

impl TriggerPolicy for External {
    fn wants(&mut self, view: &RegionView) -> bool {
        self.guard.ask(|policy| policy.wants(view)).unwrap_or(true)
    }

    fn has_ages(&self) -> bool {
        self.guard.policy().is_some_and(|policy| policy.has_ages())
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        self.guard.save()
    }
}
