//! External victim policy: supplied by the program that runs the device.

use super::{Index, VictimPolicy};
use crate::config::DeviceConfig;
pub use crate::config::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{Externals, Fault, Guard, Wanted, outside_policies};
use crate::ftl::space::RegionView;
use crate::sim::id::BlockId;
use crate::state::{StateError, Writer};

outside_policies!(VictimPolicy);

/// Calls an external policy, and checks its choice. After a failure, it chooses like `greedy`.
#[derive(Clone, Debug)]
pub struct External {
    guard: Guard<dyn VictimPolicy>,
    index: Index,
    has_ages: bool,
    /// Number of consecutive victims that freed nothing. Indexed by plane.
    in_vain: Vec<u32>,
    max_wasted: u32,
}

impl External {
    /// Builds the policy.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64, externals: &Externals) -> Result<External, String> {
        let guard = Guard::<dyn VictimPolicy>::new(externals, Wanted { path: "gc.victim", config, device, seed })?;
        Ok(External {
            index: guard.policy().map_or(Index::Valid, |policy| policy.index()).for_reading(),
            has_ages: guard.policy().is_some_and(|policy| policy.has_ages()),
            guard,
            in_vain: vec![0; device.total_planes() as usize],
            max_wasted: device.geometry.blocks.saturating_mul(64),
        })
    }

    /// Returns the fault of the policy.
    pub fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }

    /// Returns the chosen block if it may be chosen.
    fn checked(&mut self, view: &RegionView, chosen: Option<BlockId>) -> Option<BlockId> {
        let plane = view.plane();
        let Some(victim) = chosen else {
            if greediest(view).is_some() {
                self.guard.refuse(format!("chose no block of plane {}, though some would free space", plane.0));
            }
            return None;
        };
        if !view.is_closed(victim) {
            self.guard.refuse(format!("chose block {}, which is not a closed block of plane {}", victim.0, plane.0));
            return None;
        }
        let in_vain = &mut self.in_vain[plane.index()];
        let gains = view.units() - view.valid(victim) >= view.min_reclaim();
        *in_vain = if gains { 0 } else { *in_vain + 1 };
        if *in_vain > self.max_wasted {
            let what = format!(
                "chose {in_vain} blocks of plane {} in succession that gain nothing, though others would",
                plane.0
            );
            self.guard.refuse(what);
        }
        Some(victim)
    }
}

/// Returns the block that `greedy` would choose, for any order of the closed blocks.
fn greediest(view: &RegionView) -> Option<BlockId> {
    let partial = || view.closed_blocks().filter(|&block| view.valid(block) < view.units());
    view.greediest().or_else(|| partial().min_by_key(|&block| view.valid(block)))
}

impl VictimPolicy for External {
    fn index(&self) -> Index {
        self.index
    }

    fn has_ages(&self) -> bool {
        self.has_ages
    }

    fn choose(&mut self, view: &RegionView) -> Option<BlockId> {
        if view.closed_count() == 0 {
            return None;
        }
        let chosen = self.guard.ask(|policy| policy.choose(view));
        chosen.and_then(|chosen| self.checked(view, chosen)).or_else(|| greediest(view))
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        self.guard.save()
    }
}
