//! External wear policy: supplied by the program that runs the device.

use super::{Needs, WearPolicy};
use crate::config::DeviceConfig;
pub use crate::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{ExternalWear, Fault, Guard, Wanted};
use crate::ftl::space::RegionView;
use crate::sim::id::BlockId;
use crate::state::{StateError, Writer};

/// Calls an external policy, and checks its choices. After a failure, wear is not leveled.
#[derive(Clone, Debug)]
pub struct External {
    guard: Guard<dyn ExternalWear>,
}

impl External {
    /// Builds the policy.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64) -> Result<External, String> {
        let wanted = Wanted { path: "gc.wear", config, seed };
        let made = device.makers.provider(wanted)?.wear(wanted);
        Ok(External { guard: Guard::new(wanted, made) })
    }
}

impl WearPolicy for External {
    fn pick_free(&mut self, view: &RegionView, first: &[BlockId]) -> usize {
        let chosen = self.guard.ask(|policy| policy.pick_free(view, first));
        chosen.and_then(|chosen| self.guard.position(chosen, first.len(), "free blocks")).unwrap_or(0)
    }

    fn allows(&mut self, view: &RegionView, victim: BlockId) -> bool {
        self.guard.ask(|policy| policy.allows(view, victim)).unwrap_or(true)
    }

    fn erased(&mut self, view: &RegionView, block: BlockId) -> Option<BlockId> {
        let chosen = self.guard.ask(|policy| policy.erased(view, block)).flatten()?;
        if view.closed_blocks().any(|closed| closed == chosen) {
            return Some(chosen);
        }
        self.guard.refuse(format!("chose block {} to migrate, which is not a closed block of the region", chosen.0));
        None
    }

    fn needs(&self) -> Needs {
        Needs { picks: true, ages: true, ..Needs::default() }
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        Err(StateError::Policy(self.guard.not_saved()))
    }

    fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }
}
