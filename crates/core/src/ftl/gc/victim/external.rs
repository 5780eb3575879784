//! External victim policy: supplied by the program that runs the device.

use super::{Index, VictimPolicy};
use crate::config::DeviceConfig;
pub use crate::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{ExternalVictim, Fault, Guard, Wanted};
use crate::ftl::space::RegionView;
use crate::sim::id::BlockId;
use crate::state::{StateError, Writer};

/// Shows a region to an external policy, and checks its choice. After a failure, it chooses like `greedy`.
#[derive(Clone, Debug)]
pub struct External {
    guard: Guard<dyn ExternalVictim>,
    index: Index,
    /// Number of consecutive victims that freed nothing. Indexed by plane.
    in_vain: Vec<u32>,
    max_wasted: u32,
}

impl External {
    /// Builds the policy.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64) -> Result<External, String> {
        let wanted = Wanted { path: "gc.victim", config, seed };
        let made = device.makers.provider(wanted)?.victim(wanted);
        let reads_columns = made.as_ref().is_ok_and(|policy| policy.reads_columns());
        Ok(External {
            guard: Guard::new(wanted, made),
            index: if reads_columns { Index::Columns } else { Index::Valid.for_reading() },
            in_vain: vec![0; device.total_planes() as usize],
            max_wasted: device.geometry.blocks.saturating_mul(64),
        })
    }

    fn ask(&mut self, view: &RegionView) -> Option<BlockId> {
        if view.closed_count() == 0 {
            return None;
        }
        let chosen = self.guard.ask(|policy| policy.choose(view))?;
        let position = self.guard.position(chosen, view.closed_count() as usize, "candidates")?;
        let victim = match self.index {
            Index::Columns => view.closed_at(position)?,
            _ => view.closed_blocks().nth(position)?,
        };
        let plane = view.plane();
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

impl VictimPolicy for External {
    fn index(&self) -> Index {
        self.index
    }

    fn has_ages(&self) -> bool {
        true
    }

    fn choose(&mut self, view: &RegionView) -> Option<BlockId> {
        self.ask(view).or_else(|| view.greediest())
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        Err(StateError::Policy(self.guard.not_saved()))
    }

    fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }
}
