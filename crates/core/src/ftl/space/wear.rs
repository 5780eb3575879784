//! The wear policy, the candidates that it needs, and its migrations.

use super::cold::ColdBlocks;
use crate::config::DeviceConfig;
use crate::external::Externals;
use crate::ftl::gc::wear::{Needs, Wear};
use crate::sim::id::{BlockId, PlaneId};

/// Migration of cold data in a plane into worn blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Migration {
    /// Closed block whose data are to be moved. `None` if none is, or if its data are being moved.
    pub(super) due: Option<BlockId>,
    /// Erased block that the frontier of migrated units opens next. It is in [`BlockState::Open`](super::BlockState).
    pub(super) set_aside: Option<BlockId>,
}

impl Migration {
    /// Returns `true` if the migration has not ended.
    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        self.due.is_some() || self.set_aside.is_some()
    }
}

/// A wear policy, and what the space maintains for it.
#[derive(Clone, Debug)]
pub(super) struct Leveling {
    pub(super) policy: Wear,
    pub(super) needs: Needs,
    /// `None` if the policy does not look for cold data.
    pub(super) cold: Option<ColdBlocks>,
    /// Indexed by plane.
    pub(super) migrations: Vec<Migration>,
}

impl Leveling {
    /// Builds the policy of a device. Returns `None` if wear is not leveled.
    pub(super) fn new(
        device: &DeviceConfig,
        seed: u64,
        externals: &Externals,
    ) -> Result<Option<Box<Leveling>>, String> {
        if device.gc.wear.is_default() {
            return Ok(None);
        }
        let policy = device.gc.wear.build(device, seed, externals).map_err(|e| format!("gc.wear: {e}"))?;
        let needs = policy.needs();
        let cold = needs.cold.map(|order| ColdBlocks::new(device, order));
        let migrations = vec![Migration::default(); device.total_planes() as usize];
        Ok(Some(Box::new(Leveling { policy, needs, cold, migrations })))
    }

    /// Returns a plane with a migration that has not ended. A device with such a plane is not at rest.
    pub(super) fn first_migration(&self) -> Option<PlaneId> {
        self.migrations.iter().position(Migration::is_pending).map(|plane| PlaneId(plane as u32))
    }
}
