//! Compiled policies: functions with the C calling convention, by their address.
//!
//! The functions come from numba or another compiler. `docs/policies.md` has their signatures, which
//! `floatgate.policies` checks before it passes an address. They are called without Python's lock.
#![allow(unsafe_code)] // Calls a function by its address.

use std::sync::Arc;

use floatgate_core::policies::{
    AllocationPolicy, Candidates, Cause, Class, Index, LunQueue, Order, PlaneSet, RegionView, SchedulerPolicy,
    VictimPolicy, position,
};
use floatgate_core::sim::id::{BlockId, PlaneId, TransactionId};
use floatgate_core::sim::time::Time;
use pyo3::prelude::*;

use super::call::{Called, closed_at, missing};
use super::queue::{Queue, Ranks, queued_at};

/// Chooses among closed blocks: plane, clock, number of blocks, and the columns.
type ChooseVictim =
    unsafe extern "C" fn(u32, i64, u32, *const u32, *const u16, *const u32, *const i64, *const i64, *const u64) -> i64;

/// Chooses among planes: their number, and the planes.
type ChoosePlane = unsafe extern "C" fn(u32, *const u32) -> i64;

/// Chooses among waiting operations: the time, their number, and the columns.
type Pick = unsafe extern "C" fn(
    i64,
    u32,
    *const i64,
    *const i64,
    *const u32,
    *const i32,
    *const i32,
    *const u8,
    *const u8,
) -> i64;

/// A compiled function, and the policy in Python that has it and keeps its code in memory.
#[derive(Clone)]
pub struct Compiled {
    /// The policy.
    pub called: Called,
    address: usize,
}

impl Compiled {
    /// Returns the compiled function of a policy, if it has one.
    pub fn of(py: Python<'_>, policy: &Py<PyAny>) -> PyResult<Option<Compiled>> {
        let called = Called::new(py, policy.clone_ref(py), "_address")?;
        let address: Option<usize> = called.method.call0(py)?.extract(py)?;
        Ok(address.map(|address| Compiled { called, address }))
    }

    fn function(&self) -> *const () {
        std::ptr::with_exposed_provenance(self.address)
    }
}

/// Compiled victim policy.
#[derive(Clone)]
pub struct Victim(pub Compiled);

impl Victim {
    fn call(&self, view: &RegionView) -> Result<i64, Cause> {
        let Candidates { columns, first, count } = view.candidates().ok_or_else(missing)?;
        let at = first..first + count;
        let [block, erases] = [&columns.block, &columns.erases].map(|c| c[at.clone()].as_ptr());
        let [closed, changed, order] =
            [&columns.closed, &columns.changed, &columns.order].map(|c| c[at.clone()].as_ptr());
        // SAFETY: the package has checked that the address is that of a function with this signature. The columns have
        // `count` rows, nothing else writes to them during the call, and atomics have the layout of their numbers.
        let chosen = unsafe {
            let choose = std::mem::transmute::<*const (), ChooseVictim>(self.0.function());
            choose(
                view.plane().0,
                view.clock() as i64,
                count as u32,
                block.cast(),
                columns.valid[at].as_ptr().cast(),
                erases.cast(),
                closed.cast(),
                changed.cast(),
                order.cast(),
            )
        };
        Ok(chosen)
    }
}

impl VictimPolicy for Victim {
    fn index(&self) -> Index {
        Index::Columns
    }

    fn has_ages(&self) -> bool {
        true
    }

    fn choose(&mut self, view: &RegionView) -> Option<BlockId> {
        let chosen = self.call(view).and_then(|chosen| closed_at(view, chosen));
        self.0.called.keep(chosen)
    }

    fn error(&self) -> Option<&Cause> {
        self.0.called.error()
    }
}

/// Compiled allocation.
#[derive(Clone)]
pub struct Allocation {
    compiled: Compiled,
    order: Order,
    /// Planes of the latest call.
    planes: Vec<u32>,
}

impl Allocation {
    /// Creates an allocation, whose order of planes is that of their numbers.
    pub fn new(compiled: Compiled, order: Order) -> Allocation {
        Allocation { compiled, planes: Vec::with_capacity(order.len() as usize), order }
    }
}

impl AllocationPolicy for Allocation {
    fn home(&self, _: u32) -> Option<PlaneId> {
        None
    }

    fn choose(&mut self, _: u32, candidates: &PlaneSet) -> Option<PlaneId> {
        self.planes.clear();
        self.planes.extend(candidates.iter());
        let planes = &self.planes;
        // SAFETY: as for victims. The function gets the length of the slice.
        let chosen = unsafe {
            let choose = std::mem::transmute::<*const (), ChoosePlane>(self.compiled.function());
            choose(planes.len() as u32, planes.as_ptr())
        };
        let plane = position(chosen, planes.len(), "planes").map(|position| Some(PlaneId(planes[position])));
        self.compiled.called.keep(plane)
    }

    fn order(&self) -> &Order {
        &self.order
    }

    fn error(&self) -> Option<&Cause> {
        self.compiled.called.error()
    }
}

/// Scheduler with a compiled `pick`. Its ranks are in Python.
pub struct Scheduler {
    pick: Compiled,
    ranks: Ranks,
    /// The waiting operations in columns.
    queue: Arc<Queue>,
}

impl Scheduler {
    /// Creates a scheduler.
    pub fn new(pick: Compiled, ranks: Ranks) -> Scheduler {
        Scheduler { pick, ranks, queue: Arc::new(Queue::new(64)) }
    }
}

impl Clone for Scheduler {
    fn clone(&self) -> Scheduler {
        Scheduler::new(self.pick.clone(), self.ranks.clone())
    }
}

impl SchedulerPolicy for Scheduler {
    fn rank(&self, class: Class) -> u8 {
        self.ranks.ranks[class as usize]
    }

    fn reconsiders(&self) -> bool {
        self.ranks.reconsiders
    }

    fn picks(&self) -> bool {
        true
    }

    fn pick(&mut self, queue: &LunQueue, now: Time) -> Option<TransactionId> {
        if queue.len() > self.queue.capacity() {
            self.queue = Arc::new(Queue::new(queue.len().next_power_of_two()));
        }
        self.queue.fill(queue);
        let Queue { since, request, lun, plane, stream, class, rank } = &*self.queue;
        // SAFETY: as for victims. The columns have room for all operations of the queue.
        let chosen = unsafe {
            let pick = std::mem::transmute::<*const (), Pick>(self.pick.function());
            pick(
                now.0 as i64,
                queue.len() as u32,
                since.as_ptr().cast(),
                request.as_ptr().cast(),
                lun.as_ptr().cast(),
                plane.as_ptr().cast(),
                stream.as_ptr().cast(),
                class.as_ptr().cast(),
                rank.as_ptr().cast(),
            )
        };
        let chosen = (chosen >= 0).then(|| queued_at(queue, chosen)).transpose();
        self.pick.called.keep(chosen)
    }

    fn error(&self) -> Option<&Cause> {
        self.pick.called.error()
    }
}
