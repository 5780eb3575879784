//! Static allocation: the plane follows from the address.

use super::{AllocationPolicy, LevelOrder, Order, PlaneSet};
use crate::config::DeviceConfig;
use crate::config::units::Bytes;
use crate::policy::Policy;
use crate::sim::id::PlaneId;

/// Options of static allocation.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StaticConfig {
    /// The order of the levels; consecutive pages differ in the first one first.
    pub order: LevelOrder,
    /// Size of a stripe: consecutive bytes of the host in the same plane. Whole flash pages and mapping units; by
    /// default the larger of both.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Bytes")]
    pub stripe: Option<Bytes>,
}

/// Assigns each logical page a plane by its number (Hu et al. 2013, Section 4.2).
#[derive(Clone, Debug)]
pub struct Static {
    order: Order,
}

impl Policy for Static {
    type Config = StaticConfig;
    fn new(options: &StaticConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(Static { order: Order::new(device, options.order) })
    }
}

impl AllocationPolicy for Static {
    fn home(&self, stripe: u32) -> Option<PlaneId> {
        Some(self.order.plane(stripe))
    }

    fn choose(&mut self, _: u32, candidates: &PlaneSet) -> Option<PlaneId> {
        candidates.next_from(0).map(|position| self.order.plane(position))
    }

    fn order(&self) -> &Order {
        &self.order
    }
}
