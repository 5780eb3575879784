//! External wear policy: supplied by the program that runs the device.

use super::{Needs, WearPolicy};
use crate::config::DeviceConfig;
pub use crate::config::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{Externals, Fault, Guard, Wanted, outside_policies};
use crate::ftl::space::RegionView;
use crate::sim::id::BlockId;
use crate::state::{StateError, Writer};

outside_policies!(WearPolicy);

/// Calls an external policy, and checks its choices. After a failure, wear is not leveled.
#[derive(Clone, Debug)]
pub struct External {
    guard: Guard<dyn WearPolicy>,
}

impl External {
    /// Builds the policy.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64, externals: &Externals) -> Result<External, String> {
        Ok(External { guard: Guard::new(externals, Wanted { path: "gc.wear", config, device, seed })? })
    }

    /// Returns the fault of the policy.
    pub fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }
}

impl WearPolicy for External {
    fn needs(&self) -> Needs {
        self.guard.policy().map(|policy| policy.needs()).unwrap_or_default()
    }

    fn pick_free(&mut self, view: &RegionView, first: &[BlockId]) -> usize {
        let chosen = self.guard.ask(|policy| policy.pick_free(view, first)).unwrap_or(0);
        self.guard.position(chosen as i64, first.len(), "free blocks").unwrap_or(0)
    }

    fn allows(&mut self, view: &RegionView, victim: BlockId) -> bool {
        self.guard.ask(|policy| policy.allows(view, victim)).unwrap_or(true)
    }

    fn note_erased(&mut self, view: &RegionView, block: BlockId) {
        self.guard.ask(|policy| policy.note_erased(view, block));
    }

    fn erased(&mut self, view: &RegionView, block: BlockId) -> Option<BlockId> {
        let chosen = self.guard.ask(|policy| policy.erased(view, block)).flatten()?;
        if view.is_closed(chosen) {
            return Some(chosen);
        }
        self.guard.refuse(format!("chose block {} to migrate, which is not a closed block of the region", chosen.0));
        None
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        self.guard.save()
    }
}
