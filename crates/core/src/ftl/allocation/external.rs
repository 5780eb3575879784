//! External allocation: supplied by the program that runs the device.

use std::sync::Arc;

use super::{AllocationPolicy, Order, PlaneSet};
use crate::config::DeviceConfig;
pub use crate::config::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{Externals, Fault, Guard, Wanted, outside_policies};
use crate::sim::id::PlaneId;
use crate::state::{Reader, StateError, Writer};

outside_policies!(AllocationPolicy);

/// Takes planes from a table of the fixed planes of an external policy, or from its choices among idle planes. After a
/// failure, planes take turns in the policy's order.
#[derive(Clone, Debug)]
pub struct External {
    guard: Guard<dyn AllocationPolicy>,
    /// Fixed planes. Indexed by stripe.
    table: Option<Arc<[u32]>>,
    order: Order,
    by_erases: bool,
    turn: u32,
}

impl External {
    /// Builds the policy.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64, externals: &Externals) -> Result<External, String> {
        let wanted = Wanted { path: "allocation", config, device, seed };
        let mut guard = Guard::<dyn AllocationPolicy>::new(externals, wanted)?;
        let (mut table, mut problem) = (None, None);
        if let Some(policy) = guard.policy() {
            if policy.pools() != 1 {
                problem = Some(format!("has {} pools: an external allocation has one", policy.pools()));
            } else if policy.home(0).is_some() {
                let stripes = device.stripes();
                let checked = homes(policy, device, stripes);
                problem = checked.as_ref().err().cloned();
                let instead = || (0..stripes).map(|stripe| stripe % device.total_planes()).collect();
                table = Some(checked.unwrap_or_else(|_| instead()));
            }
        }
        let order = guard.policy().map(|policy| policy.order().clone());
        let by_erases = guard.policy().is_some_and(|policy| policy.by_erases());
        match problem {
            Some(what) => guard.refuse(what),
            None if table.is_some() => guard.release(),
            None => {}
        }
        let order = order.unwrap_or_else(|| Order::by_number(device));
        Ok(External { guard, table: table.map(Arc::from), order, by_erases, turn: 0 })
    }

    /// Returns the fault of the policy.
    pub fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }

    /// Returns the chosen plane if it may be chosen.
    fn checked(&mut self, chosen: Option<PlaneId>, candidates: &PlaneSet) -> Option<PlaneId> {
        let is_candidate =
            |plane: &PlaneId| plane.0 < self.order.len() && candidates.contains(self.order.position(*plane));
        let plane = chosen.filter(is_candidate);
        if plane.is_none() {
            let chosen = chosen.map_or_else(|| "no plane".to_owned(), |plane| format!("plane {}", plane.0));
            self.guard.refuse(format!("chose {chosen}: expected one of {} idle planes", candidates.iter().count()));
        }
        plane
    }
}

/// Returns the planes of all stripes, each of which must have one that can hold it.
fn homes(policy: &dyn AllocationPolicy, device: &DeviceConfig, stripes: u32) -> Result<Vec<u32>, String> {
    let planes = device.total_planes();
    let mut held = vec![0u64; planes as usize];
    let home = |page| {
        let Some(PlaneId(plane)) = policy.home(page) else { return Err(format!("gave page {page} no plane")) };
        let Some(held) = held.get_mut(plane as usize) else {
            return Err(format!("gave page {page} to plane {plane}: there are {planes}, counted from 0"));
        };
        *held += u64::from(device.units_per_page());
        Ok(plane)
    };
    let table = (0..stripes).map(home).collect::<Result<Vec<u32>, String>>()?;
    let most = device.units_of_a_plane();
    match held.iter().position(|held| *held > most) {
        Some(plane) => Err(format!(
            "gave plane {plane} {} mapping units, of which it can hold {most} and keep its free blocks: spread pages \
             evenly, or increase the over-provisioning",
            held[plane]
        )),
        None => Ok(table),
    }
}

impl AllocationPolicy for External {
    fn home(&self, stripe: u32) -> Option<PlaneId> {
        self.table.as_ref().map(|table| PlaneId(table[stripe as usize]))
    }

    fn choose(&mut self, pool: u32, candidates: &PlaneSet) -> Option<PlaneId> {
        let next = candidates.next_from(self.turn)?;
        let chosen = self.guard.ask(|policy| policy.choose(pool, candidates));
        let plane = chosen.and_then(|chosen| self.checked(chosen, candidates));
        let plane = plane.unwrap_or_else(|| self.order.plane(next));
        self.turn = (self.order.position(plane) + 1) % self.order.len();
        Some(plane)
    }

    fn took(&mut self, plane: PlaneId) {
        self.guard.ask(|policy| policy.took(plane));
    }

    fn by_erases(&self) -> bool {
        self.by_erases
    }

    fn order(&self) -> &Order {
        &self.order
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        self.guard.save()
    }

    fn load(&mut self, _: &mut Reader) -> Result<(), StateError> {
        self.guard.save()
    }
}
