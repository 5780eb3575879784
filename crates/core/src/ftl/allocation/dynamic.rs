//! Dynamic allocation: any idle plane, of the device or of a channel that the address fixes.

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
    /// Which planes a write may go to.
    pub scope: Scope,
}

impl DynamicConfig {
    /// Sets of planes that the address tells apart.
    pub fn pools(&self, device: &DeviceConfig) -> u32 {
        match self.scope {
            Scope::Device => 1,
            Scope::Channel => device.geometry.channels,
        }
    }
}

/// What dynamic allocation is free to choose from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// All planes.
    #[default]
    Device,
    /// The planes of a channel that follows from the address: consecutive pages go round the channels.
    Channel,
}

/// Takes the first idle plane behind the one taken last, in the priority order and going round (Hu et al. 2013,
/// Sections 2.5 and 4.3). With all planes idle, that is the least recently used one, so writes stripe. The planes are
/// those of the whole device or of a channel that the address fixes (Hu et al. 2011, Section 2.3).
#[derive(Clone, Debug)]
pub struct Dynamic {
    order: Order,
    pools: Vec<PoolOfPlanes>,
    planes_per_pool: u32,
}

/// The planes that the writes of a pool may go to.
#[derive(Clone, Debug)]
struct PoolOfPlanes {
    planes: PlaneSet,
    next: u32,
}

impl Policy for Dynamic {
    type Config = DynamicConfig;
    fn new(options: &DynamicConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        let order = Order::new(device, options.order);
        let count = options.pools(device);
        let planes_per_pool = order.len() / count;
        let pools = (0..count).map(|pool| {
            let mut planes = PlaneSet::new(order.len());
            let own = pool * planes_per_pool..(pool + 1) * planes_per_pool;
            own.for_each(|plane| planes.set(order.position(PlaneId(plane)), true));
            PoolOfPlanes { planes, next: 0 }
        });
        Ok(Dynamic { pools: pools.collect(), planes_per_pool, order })
    }
}

impl AllocationPolicy for Dynamic {
    fn home(&self, _: u32) -> Option<PlaneId> {
        None
    }

    fn pools(&self) -> u32 {
        self.pools.len() as u32
    }

    fn pool(&self, stripe: u32) -> u32 {
        stripe % self.pools.len() as u32
    }

    fn pool_of(&self, plane: PlaneId) -> u32 {
        plane.0 / self.planes_per_pool
    }

    fn choose(&mut self, pool: u32, candidates: &PlaneSet) -> Option<PlaneId> {
        let pool = &mut self.pools[pool as usize];
        let position = candidates.next_common(&pool.planes, pool.next)?;
        pool.next = (position + 1) % self.order.len();
        Some(self.order.plane(position))
    }

    fn order(&self) -> &Order {
        &self.order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_goes_round_the_planes_of_its_channel() {
        let device = crate::config::load("tiny", &[]).unwrap();
        let options = DynamicConfig { order: "s1".parse().unwrap(), scope: Scope::Channel };
        let mut dynamic = Dynamic::new(&options, &device, 1).unwrap();
        let per_channel = dynamic.planes_per_pool;
        assert_eq!(dynamic.pools(), device.geometry.channels);
        assert!(dynamic.pools() > 1 && per_channel > 1, "a device on which something can go wrong");
        let mut all = PlaneSet::new(dynamic.order.len());
        (0..dynamic.order.len()).for_each(|position| all.set(position, true));
        for stripe in 0..2 * dynamic.pools() {
            let pool = dynamic.pool(stripe);
            assert_eq!(pool, stripe % device.geometry.channels);
            let mut taken: Vec<u32> = (0..per_channel).map(|_| dynamic.choose(pool, &all).unwrap().0).collect();
            assert!(taken.iter().all(|&plane| dynamic.pool_of(PlaneId(plane)) == pool));
            taken.sort_unstable();
            assert_eq!(taken, (pool * per_channel..(pool + 1) * per_channel).collect::<Vec<_>>());
        }
    }
}
