//! The closed blocks of each role, and the policy that chooses among them.

use super::closed::ClosedBlocks;
use crate::config::DeviceConfig;
use crate::external::{Externals, Fault};
use crate::ftl::gc::victim::Victim;
use crate::sim::id::{BlockId, PlaneId};

/// A victim policy, and what the space maintains for it.
#[derive(Clone, Debug)]
pub(super) struct Victims {
    pub(super) policy: Victim,
    pub(super) closed: ClosedBlocks,
}

impl Victims {
    /// Builds the policy of a device, for blocks that hold `units` units of data, which it chooses among those of
    /// `planes` planes. `has_ages` is true if another policy reads the blocks and their ages.
    pub(super) fn new(
        device: &DeviceConfig,
        seed: u64,
        units: u32,
        has_ages: bool,
        planes: u32,
        externals: &Externals,
    ) -> Result<Victims, String> {
        let policy = device.gc.victim.build(device, seed, externals).map_err(|e| format!("gc.victim: {e}"))?;
        let index = if has_ages { policy.index().for_reading() } else { policy.index() };
        let closed = ClosedBlocks::new(device, units, index, has_ages || policy.has_ages(), planes);
        Ok(Victims { policy, closed })
    }

    /// Notes that a unit of a closed block has become invalid.
    #[inline]
    pub(super) fn update(&mut self, plane: PlaneId, block: BlockId, valid: u32, clock: u64) {
        self.closed.update(plane, block, valid, clock);
    }

    /// Returns the fault of a policy that came with another program.
    pub(super) fn fault(&self) -> Option<&Fault> {
        self.policy.fault()
    }
}
