//! Dynamic allocation: any idle plane.

use super::{AllocationPolicy, LevelOrder, Order, PlaneSet};
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::sim::id::PlaneId;

/// Options of dynamic allocation.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DynamicConfig {
    /// The priority order of the levels; consecutive writes differ in the first one first.
    pub order: LevelOrder,
}

/// Takes the first idle plane behind the one taken last, in the priority order and going round (Hu et al. 2013,
/// Sections 2.5 and 4.3). With all planes idle, that is the least recently used one, so writes stripe.
#[derive(Clone, Debug)]
pub struct Dynamic {
    order: Order,
    next: u32,
}

impl Policy for Dynamic {
    type Config = DynamicConfig;
    fn new(options: &DynamicConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(Dynamic { order: Order::new(device, options.order), next: 0 })
    }
}

impl AllocationPolicy for Dynamic {
    fn home(&self, _: u32) -> Option<PlaneId> {
        None
    }

    fn choose(&mut self, candidates: &PlaneSet) -> Option<PlaneId> {
        let position = candidates.next_from(self.next)?;
        self.next = (position + 1) % self.order.len();
        Some(self.order.plane(position))
    }

    fn order(&self) -> &Order {
        &self.order
    }
}
