//! Compiled policies: functions with the C calling convention, by their address. Contains the only unsafe code of the
//! bindings.
//!
//! The functions come from numba or another compiler. `docs/policies.md` has their signatures, which
//! `floatgate.policies` checks before it passes an address. They are called without Python's lock.
#![allow(unsafe_code)] // Calls a function by its address.

use std::sync::Arc;

use floatgate_core::external::{Cause, ExternalAllocation, ExternalScheduler, ExternalVictim};
use floatgate_core::ftl::space::{Candidates, RegionView};
use floatgate_core::sim::time::Time;
use floatgate_core::work::{Class, LunQueue};
use pyo3::prelude::*;

use super::call::{fork, missing, python};
use super::queue::Queue;

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
pub struct Compiled {
    policy: Py<PyAny>,
    address: usize,
}

impl Compiled {
    /// Returns the compiled function of a policy, if it has one.
    pub fn of(py: Python<'_>, policy: &Py<PyAny>) -> PyResult<Option<Compiled>> {
        let address: Option<usize> = policy.call_method0(py, "_address")?.extract(py)?;
        Ok(address.map(|address| Compiled { policy: policy.clone_ref(py), address }))
    }

    fn forked(&self) -> Result<Compiled, Cause> {
        python(|py| Ok(Compiled { policy: fork(py, &self.policy)?, address: self.address }))
    }

    fn function(&self) -> *const () {
        std::ptr::with_exposed_provenance(self.address)
    }
}

/// Compiled victim policy.
pub struct Victim(pub Compiled);

impl ExternalVictim for Victim {
    fn reads_columns(&self) -> bool {
        true
    }

    fn choose(&mut self, view: &RegionView) -> Result<i64, Cause> {
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

    fn fork(&self) -> Result<Box<dyn ExternalVictim>, Cause> {
        Ok(Box::new(Victim(self.0.forked()?)))
    }
}

/// Compiled allocation.
pub struct Allocation(pub Compiled);

impl ExternalAllocation for Allocation {
    fn choose(&mut self, planes: &[u32]) -> Result<i64, Cause> {
        // SAFETY: as for victims. The function gets the length of the slice.
        let chosen = unsafe {
            let choose = std::mem::transmute::<*const (), ChoosePlane>(self.0.function());
            choose(planes.len() as u32, planes.as_ptr())
        };
        Ok(chosen)
    }

    fn fork(&self) -> Result<Box<dyn ExternalAllocation>, Cause> {
        Ok(Box::new(Allocation(self.0.forked()?)))
    }
}

/// Scheduler with a compiled `pick`. Its ranks are in Python.
pub struct Scheduler {
    /// The function.
    pub pick: Compiled,
    /// See [`ExternalScheduler::reconsiders`].
    pub reconsiders: bool,
    /// The waiting operations in columns.
    pub queue: Arc<Queue>,
}

impl ExternalScheduler for Scheduler {
    fn rank(&mut self, class: Class) -> Result<i64, Cause> {
        python(|py| self.pick.policy.call_method1(py, "_rank", (class as u8,))?.extract(py))
    }

    fn reconsiders(&self) -> bool {
        self.reconsiders
    }

    fn pick(&mut self, queue: &LunQueue, now: Time) -> Result<Option<i64>, Cause> {
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
        Ok((chosen >= 0).then_some(chosen))
    }

    fn fork(&self) -> Result<Box<dyn ExternalScheduler>, Cause> {
        let queue = Arc::new(Queue::new(self.queue.capacity()));
        Ok(Box::new(Scheduler { pick: self.pick.forked()?, reconsiders: self.reconsiders, queue }))
    }
}
