//! Operations as a mapping scheme in Python sees them.

use std::sync::{Arc, Mutex, PoisonError};

use floatgate_core::mapping::{self, Transaction as Core, Transactions as Table};
use floatgate_core::policies::Class;
use floatgate_core::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;

use super::loans::Loans;
use super::values::{Kind, Purpose};

/// Returns the number of an operation, or fails if there has never been one with this number.
pub fn operation_at(ops: &Table, id: u32) -> PyResult<TransactionId> {
    if ops.has_had(TransactionId(id)) {
        return Ok(TransactionId(id));
    }
    Err(PyKeyError::new_err(format!("there is no operation {id}")))
}

/// Place of the fields of an operation.
enum Place {
    /// In the object. Python's memory has a smaller alignment than an operation.
    Here(Box<Mutex<Core>>),
    /// In the table of operations.
    Table(Arc<Loans>, u32),
}

/// Operation on the flash, or mapping unit that waits for one.
#[pyclass(frozen, module = "floatgate._floatgate")]
pub struct Transaction(Place);

impl Transaction {
    fn here(operation: Core) -> Transaction {
        Transaction(Place::Here(Box::new(Mutex::new(operation))))
    }

    /// Returns the values of all fields.
    pub fn value(&self) -> PyResult<Core> {
        self.read(|operation| Ok(*operation))
    }

    fn read<T>(&self, using: impl FnOnce(&Core) -> PyResult<T>) -> PyResult<T> {
        match &self.0 {
            Place::Here(operation) => using(&operation.lock().unwrap_or_else(PoisonError::into_inner)),
            Place::Table(loans, id) => loans.context(|cx| {
                let id = operation_at(cx.ops(), *id)?;
                using(&cx.ops()[id])
            }),
        }
    }

    fn change(&self, using: impl FnOnce(&mut Core)) -> PyResult<()> {
        match &self.0 {
            Place::Here(operation) => using(&mut operation.lock().unwrap_or_else(PoisonError::into_inner)),
            Place::Table(loans, id) => loans.context(|cx| {
                let id = operation_at(cx.ops(), *id)?;
                using(&mut cx.ops()[id]);
                Ok(())
            })?,
        }
        Ok(())
    }

    /// Returns a field that operations of some kinds have.
    fn of_kinds<T>(&self, name: &str, kinds: &[mapping::Kind], using: impl FnOnce(&Core) -> T) -> PyResult<T> {
        self.read(|operation| {
            if kinds.contains(&operation.kind) {
                return Ok(using(operation));
            }
            Err(PyValueError::new_err(format!("an operation of the kind {:?} has no {name}", operation.kind)))
        })
    }
}

/// Returns the class with a number.
fn class(number: u8) -> PyResult<Class> {
    let class = Class::ALL.get(usize::from(number)).copied();
    class.ok_or_else(|| PyValueError::new_err(format!("there is no class {number}: there are 9, counted from 0")))
}

#[pymethods]
impl Transaction {
    #[new]
    fn new(kind: Kind, class_: u8) -> PyResult<Transaction> {
        Ok(Transaction::here(Core::new(kind.into(), class(class_)?)))
    }

    /// Creates a read or a program of units that a scheme copies.
    #[staticmethod]
    fn copying(kind: Kind, plane: u32, number: u32, purpose: Purpose) -> PyResult<Transaction> {
        match kind {
            Kind::MergeRead | Kind::MergeWrite => {
                Ok(Transaction::here(Core::copying(kind.into(), PlaneId(plane), number, purpose.into())))
            }
            _ => Err(PyValueError::new_err("units are copied by Kind.MergeRead and Kind.MergeWrite")),
        }
    }

    /// Creates the erase of a block.
    #[staticmethod]
    fn erase(class_: u8, plane: u32, block: u32) -> PyResult<Transaction> {
        Ok(Transaction::here(Core::erase(class(class_)?, PlaneId(plane), BlockId(block))))
    }

    #[getter]
    fn kind(&self) -> PyResult<Kind> {
        self.read(|operation| Ok(operation.kind.into()))
    }

    #[getter]
    fn class_(&self) -> PyResult<u8> {
        self.read(|operation| Ok(operation.class as u8))
    }

    #[getter]
    fn trimmed(&self) -> PyResult<bool> {
        self.read(|operation| Ok(operation.trimmed))
    }

    #[getter]
    fn complete(&self) -> PyResult<bool> {
        self.read(|operation| Ok(operation.complete))
    }

    #[getter]
    fn temperature(&self) -> PyResult<u8> {
        self.read(|operation| Ok(operation.temperature))
    }

    #[setter]
    fn set_temperature(&self, temperature: u8) -> PyResult<()> {
        self.change(|operation| operation.temperature = temperature)
    }

    #[getter]
    fn units(&self) -> PyResult<u16> {
        self.read(|operation| Ok(operation.units))
    }

    #[setter]
    fn set_units(&self, units: u16) -> PyResult<()> {
        self.change(|operation| operation.units = units)
    }

    #[getter]
    fn plane(&self) -> PyResult<Option<u32>> {
        self.read(|operation| Ok(operation.plane.get().map(|plane| plane.0)))
    }

    #[setter]
    fn set_plane(&self, plane: Option<u32>) -> PyResult<()> {
        self.change(|operation| operation.plane = plane.map_or(PlaneId::NONE, PlaneId))
    }

    #[getter]
    fn ppn(&self) -> PyResult<Option<u32>> {
        self.read(|operation| Ok(operation.ppn.get().map(|ppn| ppn.0)))
    }

    #[setter]
    fn set_ppn(&self, ppn: Option<u32>) -> PyResult<()> {
        self.change(|operation| operation.ppn = ppn.map_or(Ppn::NONE, Ppn))
    }

    #[getter]
    fn lpn(&self) -> PyResult<Option<u32>> {
        self.read(|operation| Ok(operation.lpn.get().map(|lpn| lpn.0)))
    }

    #[setter]
    fn set_lpn(&self, lpn: Option<u32>) -> PyResult<()> {
        self.change(|operation| operation.lpn = lpn.map_or(Lpn::NONE, Lpn))
    }

    #[getter]
    fn next(&self) -> PyResult<Option<u32>> {
        self.read(|operation| Ok(operation.next.get().map(|id| id.0)))
    }

    #[setter]
    fn set_next(&self, next: Option<u32>) -> PyResult<()> {
        self.change(|operation| operation.next = next.map_or(TransactionId::NONE, TransactionId))
    }

    #[getter]
    fn source(&self) -> PyResult<Option<u32>> {
        self.read(|operation| Ok(operation.source.get().map(|ppn| ppn.0)))
    }

    #[getter]
    fn dependency(&self) -> PyResult<Option<u32>> {
        self.read(|operation| Ok(operation.dependency.get().map(|block| block.0)))
    }

    #[setter]
    fn set_dependency(&self, block: Option<u32>) -> PyResult<()> {
        self.change(|operation| operation.dependency = block.map_or(BlockId::NONE, BlockId))
    }

    #[getter]
    fn older(&self) -> PyResult<Option<u32>> {
        self.read(|operation| Ok(operation.older.get().map(|id| id.0)))
    }

    #[getter]
    fn newer(&self) -> PyResult<Option<u32>> {
        self.read(|operation| Ok(operation.newer.get().map(|id| id.0)))
    }

    #[getter]
    fn block(&self) -> PyResult<u32> {
        self.of_kinds("block", &[mapping::Kind::Erase], |operation| operation.block().0)
    }

    #[getter]
    fn logical_block(&self) -> PyResult<u32> {
        let kinds = [mapping::Kind::MergeRead, mapping::Kind::MergeWrite];
        self.of_kinds("logical_block", &kinds, Core::logical_block)
    }

    #[getter]
    fn purpose(&self) -> PyResult<Purpose> {
        let kinds = [mapping::Kind::MergeRead, mapping::Kind::MergeWrite];
        self.of_kinds("purpose", &kinds, |operation| operation.purpose().into())
    }
}

/// Outstanding operations, by number.
#[pyclass(frozen, module = "floatgate._floatgate")]
pub struct Transactions(pub Arc<Loans>);

#[pymethods]
impl Transactions {
    fn __len__(&self) -> PyResult<usize> {
        self.0.context(|cx| Ok(cx.ops().len()))
    }

    fn __getitem__(&self, id: u32) -> PyResult<Transaction> {
        self.0.context(|cx| operation_at(cx.ops(), id).map(|_| ()))?;
        Ok(Transaction(Place::Table(Arc::clone(&self.0), id)))
    }

    fn insert(&self, operation: &Transaction) -> PyResult<u32> {
        let operation = operation.value()?;
        self.0.context(|cx| Ok(cx.ops().insert(operation).0))
    }

    fn remove(&self, id: u32) -> PyResult<Transaction> {
        self.0.context(|cx| {
            let id = operation_at(cx.ops(), id)?;
            Ok(Transaction::here(cx.ops().remove(id)))
        })
    }
}
