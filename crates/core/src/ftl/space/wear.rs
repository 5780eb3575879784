//! The wear policy, and the migrations that it has requested.

use crate::config::DeviceConfig;
use crate::ftl::gc::wear::Wear;
use crate::sim::id::BlockId;

/// A wear policy, and the migrations that it has requested.
#[derive(Clone, Debug)]
pub(super) struct Leveling {
    pub(super) policy: Wear,
    /// Blocks to migrate.
    pub(super) due: Vec<BlockId>,
    /// Blocks that are being migrated.
    pub(super) migrating: Vec<BlockId>,
}

impl Leveling {
    /// Builds the policy of a device. Returns `None` if wear is not leveled.
    pub(super) fn new(device: &DeviceConfig, seed: u64) -> Result<Option<Box<Leveling>>, String> {
        if device.gc.wear.is_default() {
            return Ok(None);
        }
        let policy = device.gc.wear.build(device, seed).map_err(|e| format!("gc.wear: {e}"))?;
        Ok(Some(Box::new(Leveling { policy, due: Vec::new(), migrating: Vec::new() })))
    }
}
