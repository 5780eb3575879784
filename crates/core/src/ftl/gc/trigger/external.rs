//! A trigger that the program which runs the device brings along.

use super::TriggerPolicy;
use crate::config::DeviceConfig;
pub use crate::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{ExternalTrigger, Fault, Guard, PlaneState, Wanted};
use crate::state::{Reader, StateError, Writer};

/// Asks an external policy. When it fails, planes are cleaned as by `threshold`.
#[derive(Clone, Debug)]
pub struct External {
    guard: Guard<dyn ExternalTrigger>,
}

impl External {
    /// Makes the policy.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64) -> Result<External, String> {
        let wanted = Wanted { path: "gc.trigger", config, seed };
        let made = device.makers.provider(wanted)?.trigger(wanted);
        Ok(External { guard: Guard::new(wanted, made) })
    }
}

impl TriggerPolicy for External {
    fn wants(&mut self, state: PlaneState) -> bool {
        self.guard.ask(|policy| policy.wants(state)).unwrap_or(true)
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        Err(StateError::Policy(self.guard.not_saved()))
    }

    fn load(&mut self, _: &mut Reader) -> Result<(), StateError> {
        Err(StateError::Policy(self.guard.not_saved()))
    }

    fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }
}
