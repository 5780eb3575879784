//! The queue of a LUN in columns, for schedulers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use floatgate_core::policies::{Cause, Class, LunQueue, check_rank, position};
use floatgate_core::sim::id::{PlaneId, TransactionId};
use pyo3::prelude::*;

use super::call::Called;
use super::columns::{array, from_package, times};

/// Ranks of a scheduler, and the operations among which it chooses.
#[derive(Clone)]
pub struct Ranks {
    /// Indexed by class.
    pub ranks: [u8; Class::COUNT],
    /// True if the policy picks operations.
    pub picks: bool,
    /// See `SchedulerPolicy::reconsiders`.
    pub reconsiders: bool,
}

impl Ranks {
    /// Reads the ranks of a policy.
    pub fn new(py: Python<'_>, called: &mut Called) -> PyResult<Ranks> {
        let (picks, reconsiders) = called.policy.call_method0(py, "_picks")?.extract(py)?;
        let mut ranks = [0; Class::COUNT];
        for (class, rank) in Class::ALL.into_iter().zip(&mut ranks) {
            let given = called.policy.call_method1(py, "_rank", (class as u8,))?.extract(py)?;
            *rank = called.keep(check_rank(class, given));
        }
        Ok(Ranks { ranks, picks, reconsiders })
    }
}

/// Returns the operation at a position of a queue that a policy has chosen.
pub fn queued_at(queue: &LunQueue, chosen: i64) -> Result<TransactionId, Cause> {
    position(chosen, queue.len(), "waiting operations").map(|position| queue.as_slice()[position].id)
}

/// Waiting operations, by position in the queue. `floatgate.policies` describes the columns.
pub struct Queue {
    pub since: Box<[AtomicU64]>,
    pub request: Box<[AtomicI64]>,
    pub lun: Box<[AtomicU32]>,
    pub plane: Box<[AtomicI32]>,
    pub stream: Box<[AtomicI32]>,
    pub class: Box<[AtomicU8]>,
    pub rank: Box<[AtomicU8]>,
}

fn column<N: Default>(rows: usize) -> Box<[N]> {
    (0..rows).map(|_| N::default()).collect()
}

impl Queue {
    /// Creates columns for `rows` operations.
    pub fn new(rows: usize) -> Queue {
        Queue {
            since: column(rows),
            request: column(rows),
            lun: column(rows),
            plane: column(rows),
            stream: column(rows),
            class: column(rows),
            rank: column(rows),
        }
    }

    /// Returns the number of operations for which there is room.
    pub fn capacity(&self) -> usize {
        self.since.len()
    }

    /// Writes the operations of a queue, which must not exceed the capacity.
    pub fn fill(&self, queue: &LunQueue) {
        let lun = queue.lun().0;
        for (row, of) in queue.iter().enumerate() {
            let plane = if of.plane == PlaneId::NONE { -1 } else { of.plane.0 as i32 };
            self.since[row].store(of.since.0, Relaxed);
            self.request[row].store(of.request.map_or(-1, |request| request as i64), Relaxed);
            self.lun[row].store(lun, Relaxed);
            self.plane[row].store(plane, Relaxed);
            self.stream[row].store(of.stream.map_or(-1, i32::from), Relaxed);
            self.class[row].store(of.class as u8, Relaxed);
            self.rank[row].store(of.rank, Relaxed);
        }
    }
}

/// Views of a queue in Python, one for each length. They are created once, and show the operations of the latest call.
pub struct Views {
    queue: Arc<Queue>,
    /// Indexed by the number of operations.
    views: Vec<Option<Py<PyAny>>>,
}

impl Views {
    /// Creates the views of a queue that grows as needed.
    pub fn new() -> Views {
        Views { queue: Arc::new(Queue::new(0)), views: Vec::new() }
    }

    /// Returns a view of the operations of a queue.
    pub fn of(&mut self, py: Python<'_>, queue: &LunQueue) -> PyResult<&Py<PyAny>> {
        let count = queue.len();
        if count > self.queue.capacity() || self.views.is_empty() {
            let rows = count.next_power_of_two().max(64);
            self.queue = Arc::new(Queue::new(rows));
            self.views = (0..=rows).map(|_| None).collect();
        }
        self.queue.fill(queue);
        let view = &mut self.views[count];
        if view.is_none() {
            *view = Some(made(py, &self.queue, count)?);
        }
        Ok(view.as_ref().unwrap_or_else(|| unreachable!("it was made")))
    }
}

fn made(py: Python<'_>, queue: &Arc<Queue>, count: usize) -> PyResult<Py<PyAny>> {
    let columns = (
        array(py, queue, &queue.class[..count])?,
        array(py, queue, &queue.rank[..count])?,
        times(py, queue, &queue.since[..count])?,
        array(py, queue, &queue.lun[..count])?,
        array(py, queue, &queue.plane[..count])?,
        array(py, queue, &queue.request[..count])?,
        array(py, queue, &queue.stream[..count])?,
    );
    Ok(from_package(py, "Queue")?.call1(columns)?.unbind())
}
