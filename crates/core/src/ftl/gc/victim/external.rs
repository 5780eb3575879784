//! A victim policy that the program which runs the device brings along.

use super::buckets::Buckets;
use super::{Candidates, VictimPolicy};
use crate::config::DeviceConfig;
use crate::external::{Candidate, ExternalVictim, Fault, Guard, Wanted};
pub use crate::external::{EXTERNAL, ExternalConfig as Config};
use crate::sim::id::{BlockId, PlaneId};
use crate::state::{Reader, StateError, Writer};

/// Shows an external policy the candidates of a plane, and checks what it chooses. When it fails, blocks are chosen as
/// by `greedy`.
#[derive(Clone, Debug)]
pub struct External {
    guard: Guard<dyn ExternalVictim>,
    candidates: Buckets,
    /// By block: the candidate that it is, or was last.
    known: Vec<Candidate>,
    /// Those of a plane.
    seen: Vec<Candidate>,
    /// By plane: victims in succession that gained nothing.
    in_vain: Vec<u32>,
    most_in_vain: u32,
    /// Stale units without which a victim gains nothing.
    least_gain: u32,
}

impl External {
    /// Makes the policy.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64) -> Result<External, String> {
        let wanted = Wanted { path: "gc.victim", config, seed };
        let made = device.makers.provider(wanted)?.victim(wanted);
        let known = |block| Candidate { block, ..Candidate::default() };
        Ok(External {
            guard: Guard::new(wanted, made),
            candidates: Buckets::new(device),
            known: (0..device.total_blocks()).map(known).collect(),
            seen: Vec::with_capacity(device.geometry.blocks as usize),
            in_vain: vec![0; device.total_planes() as usize],
            most_in_vain: device.geometry.blocks.saturating_mul(64),
            least_gain: device.units_per_program(),
        })
    }

    fn choose(&mut self, plane: PlaneId, clock: u64) -> Option<BlockId> {
        self.seen.clear();
        self.seen.extend(self.candidates.all(plane).map(|block| self.known[block.index()]));
        if self.seen.is_empty() {
            return None;
        }
        let seen = &self.seen;
        let chosen = self.guard.ask(|policy| policy.choose(plane.0, seen, clock))?;
        let victim = self.seen[self.guard.position(chosen, self.seen.len(), "candidates")?];
        let in_vain = &mut self.in_vain[plane.index()];
        let gains = self.candidates.units() - victim.valid >= self.least_gain;
        *in_vain = if gains { 0 } else { *in_vain + 1 };
        if *in_vain > self.most_in_vain {
            let what = format!(
                "chose {in_vain} blocks of plane {} in succession that gain nothing, though others would",
                plane.0
            );
            self.guard.refuse(what);
        }
        Some(BlockId(victim.block))
    }
}

impl VictimPolicy for External {
    fn on_erases(&mut self, block: BlockId, erases: u32) {
        self.known[block.index()].erases = erases;
    }

    fn on_close(&mut self, block: BlockId, valid: u32, clock: u64) {
        let known = &mut self.known[block.index()];
        (known.valid, known.closed, known.changed) = (valid, clock, clock);
        self.candidates.insert(block, valid);
    }

    fn on_invalidate(&mut self, block: BlockId, valid: u32, clock: u64) {
        let known = &mut self.known[block.index()];
        (known.valid, known.changed) = (valid, clock);
        self.candidates.update(block, valid);
    }

    fn take(&mut self, plane: PlaneId, clock: u64) -> Option<BlockId> {
        let chosen = self.choose(plane, clock).or_else(|| {
            let valid = self.candidates.least(plane)?;
            self.candidates.oldest_with(plane, valid)
        })?;
        self.candidates.remove(chosen);
        Some(chosen)
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        Err(StateError::Policy(self.guard.not_saved()))
    }

    fn load(&mut self, _: &mut Reader, _: Candidates) -> Result<(), StateError> {
        Err(StateError::Policy(self.guard.not_saved()))
    }

    fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }
}
