//! External trigger: supplied by the program that runs the device.

use super::TriggerPolicy;
use crate::config::DeviceConfig;
pub use crate::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{ExternalTrigger, Fault, Guard, Wanted};
use crate::ftl::space::RegionView;
use crate::state::{StateError, Writer};

/// Calls an external policy. After a failure, it acts like `threshold`.
#[derive(Clone, Debug)]
pub struct External {
    guard: Guard<dyn ExternalTrigger>,
}

impl External {
    /// Builds the policy.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64) -> Result<External, String> {
        let wanted = Wanted { path: "gc.trigger", config, seed };
        let made = device.makers.provider(wanted)?.trigger(wanted);
        Ok(External { guard: Guard::new(wanted, made) })
    }
}

impl TriggerPolicy for External {
    fn wants(&mut self, view: &RegionView) -> bool {
        self.guard.ask(|policy| policy.wants(view)).unwrap_or(true)
    }

    fn has_ages(&self) -> bool {
        true
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        Err(StateError::Policy(self.guard.not_saved()))
    }

    fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }
}
