//! Dynamic allocation: any idle plane of a pool. The pool follows from the address, and the whole device may be one.

use super::{AllocationPolicy, LevelOrder, Order, PlaneSet};
use crate::config::{DeviceConfig, Frontiers};
use crate::policy::Policy;
use crate::sim::id::PlaneId;
use crate::state::{Reader, StateError, Writer};

/// Options of dynamic allocation.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DynamicConfig {
    /// Priority order of the levels. Consecutive writes differ in the first level first.
    pub order: LevelOrder,
    /// Pool of planes that a write may go to. The address selects the pool.
    pub scope: Scope,
    /// Choice among several idle planes.
    #[serde(skip_serializing_if = "Tie::is_default")]
    pub tie: Tie,
    /// Number of active blocks of a pool, which host writes go to, at most one in each plane. The next one is opened in
    /// the plane with the most free blocks. Default: one in each plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub active_blocks: Option<u32>,
}

impl Tie {
    /// Returns `true` for the default, which a device file need not name.
    pub fn is_default(&self) -> bool {
        *self == Tie::default()
    }
}

impl DynamicConfig {
    /// Returns the number of pools on a device. A pool is a set of planes, and the address selects the pool.
    pub fn pools(&self, device: &DeviceConfig) -> u32 {
        device.total_planes() / self.planes_per_pool(device)
    }

    /// Returns an error if the number of active blocks is invalid.
    fn check_active_blocks(&self, device: &DeviceConfig) -> Result<(), String> {
        let Some(blocks) = self.active_blocks else { return Ok(()) };
        let planes = self.planes_per_pool(device);
        let refused = |what: &str| Err(format!("invalid `active_blocks` {blocks}: {what}"));
        if !(1..=planes).contains(&blocks) {
            return refused(&format!("a pool of {planes} planes has 1 to {planes}; use {planes}"));
        }
        if device.faults.is_some() {
            return refused("planes with failed blocks need each other's room for writes; leave out the table faults");
        }
        if device.temperature.classes() > 1 {
            return refused("each data class has blocks of its own; set temperature to \"none\"");
        }
        if device.gc.frontiers == Frontiers::Single {
            return refused("moved units open blocks for host writes; set gc.frontiers to \"separate\"");
        }
        if device.keeps_level() {
            return refused(
                "the free space that it keeps includes an open block of each plane; set gc.pace to \"queued\"",
            );
        }
        Ok(())
    }

    /// Returns the number of planes of a pool. These are consecutive.
    pub fn planes_per_pool(&self, device: &DeviceConfig) -> u32 {
        let g = &device.geometry;
        let chip = g.dies * device.planes_per_die();
        let planes = match self.scope {
            Scope::Plane => 1,
            Scope::Die => device.planes_per_die(),
            Scope::Chip => chip,
            Scope::Package => g.chips_per_package * chip,
            Scope::Channel => g.chips * chip,
            Scope::Channels(count) => count.saturating_mul(g.chips * chip),
            Scope::Device => device.total_planes(),
        };
        // Other numbers of channels are refused later.
        planes.clamp(1, device.total_planes().max(1))
    }
}

/// Size of a pool: the planes that dynamic allocation may choose from (Agrawal et al. 2008, Section 3.1, "allocation
/// pool"). Consecutive pages go to the pools in turn, in the order of the levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// All planes.
    #[default]
    Device,
    /// The planes of a number of neighboring channels. The number divides `geometry.channels`.
    Channels(u32),
    /// The planes of a channel.
    Channel,
    /// The planes of a package.
    Package,
    /// The planes of a chip.
    Chip,
    /// The planes of a die.
    Die,
    /// A single plane: the address selects it, as with static allocation.
    Plane,
}

/// Choice among several idle planes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tie {
    /// The next plane in turn, by the priority order.
    #[default]
    Turn,
    /// The plane whose next free block has the fewest erases (Hu et al. 2011, Sections 2.3 and 4.2, "erasure count of
    /// blocks"). Planes with equally many take turns.
    Erases,
}

/// Chooses idle planes in turn (Hu et al. 2013, Sections 2.5 and 4.3). The values of the first level take turns. Each
/// value continues after the plane that it took last, in the order of the other levels. Planes that are not idle are
/// skipped.
///
/// If all planes are idle, the least recently used one is chosen, so writes stripe. If some are busy, the values of the
/// first level still get equal shares.
///
/// A write that waits for a busy channel goes to the LUN that requested the channel first. LUNs that request it
/// together do so in least recently used order (`dispatch/offer.rs`). The turns continue after a plane that was taken
/// in this way.
///
/// The planes are those of a pool that follows from the address (Agrawal et al. 2008, Section 3.1; Hu et al. 2011,
/// Section 2.3, for the pools of channels).
#[derive(Clone, Debug)]
pub struct Dynamic {
    order: Order,
    /// Pools in the order in which consecutive pages go to them.
    stripes: Vec<u32>,
    pools: Vec<Pool>,
    planes_per_pool: u32,
    tie: Tie,
}

/// Turns of a pool.
#[derive(Clone, Debug)]
struct Pool {
    /// Indexed by value of the first level.
    values: Vec<Round>,
    /// Value that is next.
    turn: usize,
}

/// Planes of one value of the first level.
#[derive(Clone, Debug)]
struct Round {
    planes: PlaneSet,
    /// Position after the plane that was chosen last.
    next: u32,
}

impl Policy for Dynamic {
    type Config = DynamicConfig;
    fn new(options: &DynamicConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        let order = Order::new(device, options.order);
        let (count, planes_per_pool) = (options.pools(device), options.planes_per_pool(device));
        let mut stripes = Vec::with_capacity(count as usize);
        let mut listed = PlaneSet::new(count);
        for pool in (0..order.len()).map(|position| order.plane(position).0 / planes_per_pool) {
            if !listed.contains(pool) {
                listed.set(pool, true);
                stripes.push(pool);
            }
        }
        let values = order.first_level();
        let pools = (0..count).map(|pool| {
            let mut rounds = vec![Round { planes: PlaneSet::new(order.len()), next: 0 }; values as usize];
            for plane in pool * planes_per_pool..(pool + 1) * planes_per_pool {
                let position = order.position(PlaneId(plane));
                rounds[(position % values) as usize].planes.set(position, true);
            }
            Pool { values: rounds, turn: 0 }
        });
        Ok(Dynamic { pools: pools.collect(), stripes, planes_per_pool, order, tie: options.tie })
    }

    fn check(options: &DynamicConfig, device: &DeviceConfig) -> Result<(), String> {
        let channels = device.geometry.channels;
        match options.scope {
            Scope::Channels(count) if count == 0 || !channels.is_multiple_of(count) => {
                let fits = (1..=count.min(channels)).rev().find(|count| channels.is_multiple_of(*count)).unwrap_or(1);
                Err(format!(
                    "invalid `scope` {{ channels = {count} }}: a pool must have a divisor of the {channels} channels, \
                     such as {fits}"
                ))
            }
            _ => options.check_active_blocks(device),
        }
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
        self.stripes[(stripe % self.stripes.len() as u32) as usize]
    }

    fn pool_of(&self, plane: PlaneId) -> u32 {
        plane.0 / self.planes_per_pool
    }

    fn choose(&mut self, pool: u32, candidates: &PlaneSet) -> Option<PlaneId> {
        let Pool { values, turn } = &mut self.pools[pool as usize];
        let from = *turn;
        for value in (from..values.len()).chain(0..from) {
            let round = &mut values[value];
            if let Some(position) = candidates.next_common(&round.planes, round.next) {
                round.next = (position + 1) % self.order.len();
                *turn = (value + 1) % values.len();
                return Some(self.order.plane(position));
            }
        }
        None
    }

    fn took(&mut self, plane: PlaneId) {
        let position = self.order.position(plane);
        let Pool { values, turn } = &mut self.pools[(plane.0 / self.planes_per_pool) as usize];
        let value = position as usize % values.len();
        values[value].next = (position + 1) % self.order.len();
        *turn = (value + 1) % values.len();
    }

    fn by_erases(&self) -> bool {
        self.tie == Tie::Erases
    }

    fn order(&self) -> &Order {
        &self.order
    }

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        for pool in &self.pools {
            out.u32(pool.turn as u32)?;
            pool.values.iter().try_for_each(|round| out.u32(round.next))?;
        }
        Ok(())
    }

    fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        for pool in &mut self.pools {
            pool.turn = input.below(pool.values.len() as u32, "turn")? as usize;
            for round in &mut pool.values {
                round.next = input.below(self.order.len(), "plane")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options of a device of 4 channels with 4 chips each, 2 chips in a package, and 2 dies of 2 planes in a chip.
    const SHAPE: [&str; 5] = [
        "geometry.channels=4",
        "geometry.chips=4",
        "geometry.chips_per_package=2",
        "geometry.dies=2",
        "geometry.planes=2",
    ];

    fn dynamic(order: &str, scope: Scope) -> Dynamic {
        let device = crate::config::load("hu2011", &SHAPE.map(str::to_owned)).unwrap();
        let options = DynamicConfig { order: order.parse().unwrap(), scope, ..Default::default() };
        Dynamic::new(&options, &device, 1).unwrap()
    }

    #[test]
    fn consecutive_pages_go_to_the_pools_in_turn_and_each_pool_goes_round_its_planes() {
        // Number of planes of a pool, and pools of the first pages for two orders: S2 varies channel, chip, die and
        // plane, S1 chip, die, plane and channel.
        let scopes: [(Scope, u32, &[u32], &[u32]); 7] = [
            (Scope::Plane, 1, &[0, 16, 32, 48, 4, 20], &[0, 4, 8, 12, 2, 6]),
            (Scope::Die, 2, &[0, 8, 16, 24, 2, 10], &[0, 2, 4, 6, 1, 3]),
            (Scope::Chip, 4, &[0, 4, 8, 12, 1, 5], &[0, 1, 2, 3, 4, 5]),
            (Scope::Package, 8, &[0, 2, 4, 6, 1, 3], &[0, 1, 2, 3, 4, 5]),
            (Scope::Channel, 16, &[0, 1, 2, 3, 0, 1], &[0, 1, 2, 3, 0, 1]),
            (Scope::Channels(2), 32, &[0, 1, 0, 1, 0, 1], &[0, 1, 0, 1, 0, 1]),
            (Scope::Device, 64, &[0, 0, 0, 0, 0, 0], &[0, 0, 0, 0, 0, 0]),
        ];
        for (scope, planes, s2, s1) in scopes {
            for (order, expected) in [("s2", s2), ("s1", s1)] {
                let mut dynamic = dynamic(order, scope);
                let pools: Vec<u32> = (0..6).map(|stripe| dynamic.pool(stripe)).collect();
                assert_eq!(pools, expected, "{scope:?}, {order}");
                assert_eq!(dynamic.pools() * planes, 64, "{scope:?}");
                let mut all = PlaneSet::new(64);
                (0..64).for_each(|position| all.set(position, true));
                for stripe in 0..dynamic.pools() {
                    let pool = dynamic.pool(stripe);
                    let mut taken: Vec<u32> = (0..planes).map(|_| dynamic.choose(pool, &all).unwrap().0).collect();
                    assert!(taken.iter().all(|&plane| dynamic.pool_of(PlaneId(plane)) == pool));
                    taken.sort_unstable();
                    assert_eq!(taken, (pool * planes..(pool + 1) * planes).collect::<Vec<_>>(), "{scope:?}, {order}");
                }
            }
        }
    }

    #[test]
    fn idle_planes_whose_next_block_has_the_fewest_erases_take_turns() {
        let device =
            crate::config::load("hu2011", &["geometry.chips=2".to_owned(), "geometry.dies=1".to_owned()]).unwrap();
        let options = DynamicConfig { tie: Tie::Erases, ..Default::default() };
        let mut dynamic = Dynamic::new(&options, &device, 1).unwrap();
        assert!(dynamic.by_erases());
        // Indexed by position: 4 channels, 2 chips and 2 planes. The channel changes first.
        let mut erases = [3, 1, 2, 9, 1, 1, 2, 9, 3, 3, 1, 9, 3, 3, 3, 9];
        let mut idle = PlaneSet::new(dynamic.order.len());
        (0..16).for_each(|position| idle.set(position, true));
        let mut choose = |idle: &PlaneSet, erases: &[u32; 16]| {
            let mut least = idle.clone();
            least.keep_least(|_| true, |position| erases[position as usize]);
            dynamic.choose(0, &least).map(|plane| dynamic.order.position(plane))
        };
        // Four planes have one erase: one each on channels 0 and 2, two on channel 1. The channels take turns.
        let taken: Vec<_> = (0..6).map(|_| choose(&idle, &erases).unwrap()).collect();
        assert_eq!(taken, [4, 1, 10, 4, 5, 10]);
        // While these are busy, the planes with two erases are chosen.
        for position in [1, 4, 5, 10] {
            idle.set(position, false);
        }
        let taken: Vec<_> = (0..3).map(|_| choose(&idle, &erases).unwrap()).collect();
        assert_eq!(taken, [2, 6, 2]);
        // The count of a plane changes when its next block is taken.
        erases[3] = 0;
        assert_eq!(choose(&idle, &erases), Some(3));
        idle.clear();
        assert_eq!(choose(&idle, &erases), None);
    }

    #[test]
    fn busy_planes_do_not_cost_a_value_its_turn() {
        let device = crate::config::load("hu2011", &[]).unwrap();
        let options = DynamicConfig { order: "s6".parse().unwrap(), ..Default::default() };
        let mut dynamic = Dynamic::new(&options, &device, 1).unwrap();
        let mut idle = PlaneSet::new(64);
        let mut taken = [0; 4];
        // Five writes at a time, to one chip of each channel; the chips take turns. 4 channels of 4 chips of 4 planes.
        for request in 0..400u32 {
            idle.clear();
            for channel in 0..4 {
                (0..4).for_each(|plane| {
                    let id = PlaneId((channel * 4 + request % 4) * 4 + plane);
                    idle.set(dynamic.order.position(id), true);
                });
            }
            for _ in 0..5 {
                let plane = dynamic.choose(0, &idle).unwrap();
                idle.set(dynamic.order.position(plane), false);
                taken[plane.index() / 16] += 1;
            }
        }
        assert_eq!(taken, [500; 4], "each level takes turns by itself");
    }
}
