//! External allocation: supplied by the program that runs the device.

use std::sync::Arc;

use super::{AllocationPolicy, Level, LevelOrder, Order, PlaneSet};
use crate::config::DeviceConfig;
pub use crate::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{ExternalAllocation, Fault, Guard, Placing, Wanted};
use crate::sim::id::PlaneId;
use crate::state::{Reader, StateError, Writer};

/// Takes planes from a table that an external policy has built once, or from its choices among idle planes. After a
/// failure, planes take turns in the order of their numbers.
#[derive(Clone, Debug)]
pub struct External {
    guard: Guard<dyn ExternalAllocation>,
    table: Option<Arc<[u32]>>,
    /// Order in which the position of a plane is its number.
    order: Order,
    seen: Vec<u32>,
    turn: u32,
}

impl External {
    /// Builds the policy.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64) -> Result<External, String> {
        let wanted = Wanted { path: "allocation", config, seed };
        let pages = device.logical_units().div_ceil(u64::from(device.units_per_page())) as u32;
        let (made, table) = match device.makers.provider(wanted)?.allocation(wanted, pages) {
            Ok(Placing::Choice(policy)) => (Some(Ok(policy)), None),
            Ok(Placing::Table(table)) => (None, Some(table)),
            Err(cause) => (Some(Err(cause)), None),
        };
        let mut guard = made.map_or_else(|| Guard::none(wanted), |made| Guard::new(wanted, made));
        let planes = device.total_planes();
        let table = table.map(|table| match check(&table, device, pages) {
            Ok(()) => table,
            Err(what) => {
                guard.refuse(what);
                (0..pages).map(|page| page % planes).collect()
            }
        });
        Ok(External {
            guard,
            table: table.map(Arc::from),
            order: Order::new(device, LevelOrder([Level::Plane, Level::Die, Level::Chip, Level::Channel])),
            seen: Vec::with_capacity(planes as usize),
            turn: 0,
        })
    }
}

/// Checks that a table has a plane for each page, and that each plane can hold its pages.
fn check(table: &[u32], device: &DeviceConfig, pages: u32) -> Result<(), String> {
    let planes = device.total_planes();
    if table.len() != pages as usize {
        return Err(format!("gave {} planes for {pages} pages", table.len()));
    }
    let mut held = vec![0u64; planes as usize];
    for (page, &plane) in table.iter().enumerate() {
        let Some(held) = held.get_mut(plane as usize) else {
            return Err(format!("gave page {page} to plane {plane}: there are {planes}, counted from 0"));
        };
        *held += u64::from(device.units_per_page());
    }
    let most = device.units_of_a_plane();
    match held.iter().position(|held| *held > most) {
        Some(plane) => Err(format!(
            "gave plane {plane} {} mapping units, of which it can hold {most} and keep its free blocks: spread pages \
             evenly, or increase the over-provisioning",
            held[plane]
        )),
        None => Ok(()),
    }
}

impl AllocationPolicy for External {
    fn home(&self, stripe: u32) -> Option<PlaneId> {
        self.table.as_ref().map(|table| PlaneId(table[stripe as usize]))
    }

    fn choose(&mut self, _: u32, candidates: &PlaneSet) -> Option<PlaneId> {
        self.seen.clear();
        self.seen.extend(candidates.iter());
        if self.seen.is_empty() {
            return None;
        }
        let seen = &self.seen;
        let chosen = self.guard.ask(|policy| policy.choose(seen));
        let chosen = chosen.and_then(|chosen| self.guard.position(chosen, self.seen.len(), "planes"));
        let plane = chosen.map(|position| self.seen[position]).or_else(|| candidates.next_from(self.turn))?;
        self.turn = (plane + 1) % self.order.len();
        Some(PlaneId(plane))
    }

    fn order(&self) -> &Order {
        &self.order
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        Err(StateError::Policy(self.guard.not_saved()))
    }

    fn load(&mut self, _: &mut Reader) -> Result<(), StateError> {
        Err(StateError::Policy(self.guard.not_saved()))
    }

    fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }
}
