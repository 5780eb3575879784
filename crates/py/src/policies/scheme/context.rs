//! The context of a mapping scheme in Python.

use std::sync::Arc;

use floatgate_core::mapping::{self, Context as Device, Kind, Task};
use floatgate_core::sim::id::{Ppn, TransactionId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::ftl::{Ftl, block_at, plane_at, unit_at};
use super::loans::Loans;
use super::operations::{Transaction, Transactions, operation_at};
use super::values::{Call, Copy, WaitCause};

/// Interface of the device for mapping schemes.
#[pyclass(frozen, module = "floatgate._floatgate")]
pub struct Context {
    loans: Arc<Loans>,
    /// The FTL, without the scheme.
    #[pyo3(get)]
    ftl: Py<Ftl>,
    /// The outstanding operations.
    #[pyo3(get)]
    ops: Py<Transactions>,
    /// The queue of tasks.
    #[pyo3(get)]
    tasks: Py<Tasks>,
}

impl Context {
    /// Creates the context of a scheme with these loans.
    pub fn new(py: Python<'_>, loans: &Arc<Loans>, ftl: &Py<Ftl>) -> PyResult<Py<Context>> {
        let ops = Py::new(py, Transactions(Arc::clone(loans)))?;
        let tasks = Py::new(py, Tasks(Arc::clone(loans)))?;
        Py::new(py, Context { loans: Arc::clone(loans), ftl: ftl.clone_ref(py), ops, tasks })
    }

    /// Returns the loans of the scheme.
    pub fn loans(&self) -> &Loans {
        &self.loans
    }

    /// Passes the number of a host write to the device.
    fn pass_write(&self, id: u32, to: impl FnOnce(&mut dyn Device, TransactionId)) -> PyResult<()> {
        self.loans.context(|cx| {
            let id = operation_at(cx.ops(), id)?;
            if cx.ops()[id].kind != Kind::Write {
                let text = format!("operation {} is not a host write, but has the kind {:?}", id.0, cx.ops()[id].kind);
                return Err(PyValueError::new_err(text));
            }
            to(cx, id);
            Ok(())
        })
    }
}

#[pymethods]
impl Context {
    fn queue(&self, operation: &Transaction) -> PyResult<()> {
        let operation = operation.value()?;
        self.loans.context(|cx| {
            plane_at(cx.ftl(), operation.plane.0)?;
            cx.queue(operation);
            Ok(())
        })
    }

    fn enqueue(&self, id: u32) -> PyResult<()> {
        self.loans.context(|cx| {
            let id = operation_at(cx.ops(), id)?;
            let plane = cx.ops()[id].plane;
            plane_at(cx.ftl(), plane.0)
                .map_err(|_| PyValueError::new_err(format!("operation {} has no plane: set cx.ops[id].plane", id.0)))?;
            cx.enqueue(id);
            Ok(())
        })
    }

    fn has_time(&self) -> PyResult<bool> {
        self.loans.context(|cx| Ok(cx.has_time()))
    }

    fn map_written(&self, page: u32, ppn: u32) -> PyResult<()> {
        self.loans.context(|cx| {
            let ppn = unit_at(cx.ftl(), ppn)?;
            cx.map_written(page, ppn);
            Ok(())
        })
    }

    fn request_units(&self, id: u32) -> PyResult<u32> {
        self.loans.context(|cx| {
            let id = operation_at(cx.ops(), id)?;
            Ok(cx.request_units(id))
        })
    }

    fn is_durable(&self) -> PyResult<bool> {
        self.loans.context(|cx| Ok(cx.is_durable()))
    }

    fn note_waiting(&self, id: u32) -> PyResult<()> {
        self.pass_write(id, |cx, id| cx.note_waiting(id))
    }

    fn note_queued(&self, id: u32, queue: u32) -> PyResult<()> {
        self.pass_write(id, |cx, id| cx.note_queued(id, queue))
    }

    fn note_cause(&self, queue: u32, cause: WaitCause) -> PyResult<()> {
        self.loans.context(|cx| {
            cx.note_cause(queue, cause.into());
            Ok(())
        })
    }

    fn bind(&self, id: u32, ppn: u32) -> PyResult<()> {
        self.loans.context(|cx| unit_at(cx.ftl(), ppn).map(|_| ()))?;
        self.pass_write(id, |cx, id| cx.bind(id, Ppn(ppn)))
    }

    fn take_over(&self, older: u32, newer: u32) -> PyResult<()> {
        self.loans.context(|cx| operation_at(cx.ops(), older).map(|_| ()))?;
        self.pass_write(newer, |cx, newer| cx.take_over(TransactionId(older), newer))
    }

    fn drop_write(&self, id: u32) -> PyResult<()> {
        self.pass_write(id, |cx, id| cx.drop_write(id))
    }

    fn refuse_write(&self, id: u32) -> PyResult<()> {
        self.pass_write(id, |cx, id| cx.refuse_write(id))
    }

    fn end_copy(&self, copy: Copy) -> PyResult<()> {
        self.loans.context(|cx| {
            unit_at(cx.ftl(), copy.from_)?;
            unit_at(cx.ftl(), copy.to.unwrap_or(u32::MAX))?;
            cx.end_copy(&copy.into());
            Ok(())
        })
    }

    fn program_ended(&self, ppn: u32) -> PyResult<()> {
        self.loans.context(|cx| {
            let ppn = unit_at(cx.ftl(), ppn)?;
            cx.program_ended(ppn);
            Ok(())
        })
    }

    fn is_moving(&self, plane: u32, block: u32) -> PyResult<bool> {
        self.loans.context(|cx| {
            let (plane, block) = (plane_at(cx.ftl(), plane)?, block_at(cx.ftl(), block)?);
            Ok(cx.is_moving(plane, block))
        })
    }

    fn release(&self, block: u32) -> PyResult<()> {
        self.loans.context(|cx| {
            let id = block_at(cx.ftl(), block)?;
            if cx.ftl().blocks.block(id).dependents == 0 {
                return Err(PyValueError::new_err(format!("no operation depends on block {block}")));
            }
            cx.release(id);
            Ok(())
        })
    }

    fn erase(&self, block: u32) -> PyResult<()> {
        self.loans.context(|cx| {
            let id = block_at(cx.ftl(), block)?;
            if !cx.ftl().blocks.can_erase(id) {
                let text = format!("block {block} cannot be erased: it does not await its erase, or is still in use");
                return Err(PyValueError::new_err(text));
            }
            cx.erase(id);
            Ok(())
        })
    }
}

/// Deferred calls of the scheme to itself.
#[pyclass(frozen, module = "floatgate._floatgate")]
pub struct Tasks(Arc<Loans>);

#[pymethods]
impl Tasks {
    fn push(&self, call: &Call) -> PyResult<()> {
        let call = mapping::Call { number: call.number, step: call.step, ..mapping::Call::default() };
        self.0.context(|cx| {
            cx.tasks().push(Task::Scheme(call));
            Ok(())
        })
    }
}
