//! Writes that any plane of a pool may take (dynamic allocation), and which planes could.

use crate::config::DeviceConfig;
use crate::ftl::allocation::{Allocation, PlaneSet};
use crate::nand::array::Array;
use crate::sim::id::{LunId, PlaneId};
use crate::sim::table::Table;
use crate::work::Fifo;

/// Distance in the order between what is queued for LUNs during a hold and the writes of a pool that are queued with
/// it. Each LUN serves the former first, because only the latter can go elsewhere.
pub(crate) const AFTER_HELD: u64 = 1 << 24;

/// The pools, with sets of planes by their position in the allocation's order.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// By pool of the allocation: writes without a plane, oldest first.
    pub(crate) lines: Vec<Fifo>,
    /// Planes of idle LUNs.
    pub(crate) idle: PlaneSet,
    /// Planes of each channel.
    pub(crate) of_channel: Vec<PlaneSet>,
    /// Planes of each pool.
    pub(crate) of_pool: Vec<PlaneSet>,
    /// By plane: when it took a write last, counted in writes.
    pub(crate) used: Table<PlaneId, u64>,
    pub(crate) uses: u64,
    /// By LUN: how far the planes that take what is dealt lie from those that the order names, in units and in planes.
    pub(crate) shifts: Vec<(u32, u32)>,
    /// Room to work in.
    pub(crate) candidates: PlaneSet,
    pub(crate) dealt: Vec<PlaneId>,
    /// LUNs that line up for their channels: the erases that count, when they took a write last, and their position in
    /// the order.
    pub(crate) lining_up: Vec<(u32, u64, u32, LunId)>,
}

impl Pool {
    /// Creates empty pools, with all LUNs idle. `allocation` is `None` if it is not dynamic.
    pub(crate) fn new(config: &DeviceConfig, allocation: Option<&Allocation>, array: &Array) -> Pool {
        let planes = config.total_planes();
        let mut idle = PlaneSet::new(planes);
        (0..planes).for_each(|position| idle.set(position, true));
        let empty = PlaneSet::new(planes);
        let pools = allocation.map_or(1, |allocation| allocation.pools()) as usize;
        let mut of_channel = vec![empty.clone(); config.geometry.channels as usize];
        let mut of_pool = vec![empty.clone(); pools];
        if let Some(allocation) = allocation {
            for plane in (0..planes).map(PlaneId) {
                let position = allocation.order().position(plane);
                of_channel[array.channel_of(array.lun_of(plane)).index()].set(position, true);
                of_pool[allocation.pool_of(plane) as usize].set(position, true);
            }
        }
        Pool {
            lines: vec![Fifo::default(); pools],
            idle,
            of_channel,
            of_pool,
            used: Table::new(planes, 0),
            uses: 0,
            shifts: vec![(0, 0); planes as usize],
            candidates: empty,
            dealt: Vec::with_capacity(planes as usize),
            lining_up: Vec::with_capacity(planes as usize),
        }
    }
}
