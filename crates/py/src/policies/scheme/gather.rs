//! Copies and recoveries of mapping schemes in Python.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use floatgate_core::mapping;
use floatgate_core::sim::id::Ppn;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::context::Context;
use super::ftl::{Ftl, unit_at};
use super::loans::Loans;
use super::values::{Copy, FoundBlock, FoundMerge, Purpose};

/// Copies of one program. The units are read, then the program is bound, then it ends.
#[pyclass(frozen, module = "floatgate.policies")]
#[derive(Default)]
pub struct Gather(Mutex<mapping::Gather>);

impl Gather {
    fn lock(&self) -> MutexGuard<'_, mapping::Gather> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the gather, whose reads have all ended.
    fn read(&self) -> PyResult<MutexGuard<'_, mapping::Gather>> {
        let gather = self.lock();
        if gather.is_reading() {
            return Err(PyValueError::new_err("units of this Gather are still being read"));
        }
        Ok(gather)
    }
}

#[pymethods]
impl Gather {
    #[new]
    fn new() -> Gather {
        Gather::default()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Gather {
        Gather(Mutex::new(self.lock().clone()))
    }

    fn add(&self, cx: &Context, number: (u32, Purpose), from_: u32) -> PyResult<()> {
        cx.loans().context(|cx| {
            let from = unit_at(cx.ftl(), from_)?;
            if !cx.ftl().blocks.is_valid(from) {
                return Err(PyValueError::new_err(format!("physical unit {from_} is not valid")));
            }
            self.lock().add(cx, (number.0, number.1.into()), from);
            Ok(())
        })
    }

    fn is_ready(&self, cx: &Context) -> PyResult<bool> {
        cx.loans().context(|cx| Ok(self.lock().is_ready(cx)))
    }

    fn read_ended(&self) -> PyResult<bool> {
        let mut gather = self.lock();
        if !gather.is_reading() {
            return Err(PyValueError::new_err("no unit of this Gather is being read"));
        }
        Ok(gather.read_ended())
    }

    fn bind(&self, cx: &Context, place_of: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut places = Vec::new();
        for copy in self.copies() {
            places.push(place_of.call1((copy,))?.extract::<u32>()?);
        }
        cx.loans().context(|cx| {
            let mut gather = self.read()?;
            places.iter().try_for_each(|&to| unit_at(cx.ftl(), to).map(|_| ()))?;
            let places: Vec<_> =
                gather.copies().iter().map(|copy| copy.from).zip(places.into_iter().map(Ppn)).collect();
            let place_of = |from| places.iter().find(|place| place.0 == from).map_or(Ppn::NONE, |place| place.1);
            gather.bind(cx, |copy| place_of(copy.from));
            Ok(())
        })
    }

    fn bind_from(&self, cx: &Context, start: u32) -> PyResult<()> {
        cx.loans().context(|cx| {
            let mut gather = self.read()?;
            let start = unit_at(cx.ftl(), start)?;
            unit_at(cx.ftl(), start.0 + (gather.copies().len() as u32).saturating_sub(1))?;
            gather.bind_from(cx, start);
            Ok(())
        })
    }

    fn copies(&self) -> Vec<Copy> {
        self.lock().copies().iter().map(Copy::from).collect()
    }

    fn __len__(&self) -> usize {
        self.lock().copies().len()
    }

    fn forget(&self, cx: &Context) -> PyResult<()> {
        cx.loans().context(|cx| {
            self.read()?.forget(cx);
            Ok(())
        })
    }

    fn end(&self, cx: &Context) -> PyResult<()> {
        cx.loans().context(|cx| {
            self.read()?.end(cx);
            Ok(())
        })
    }
}

/// A recovery, for a scheme that takes over the blocks with data.
#[pyclass(frozen, module = "floatgate._floatgate")]
pub struct Recovering {
    loans: Arc<Loans>,
    /// The FTL, without the scheme.
    #[pyo3(get)]
    ftl: Py<Ftl>,
}

impl Recovering {
    /// Creates the object for a scheme with these loans.
    pub fn new(loans: &Arc<Loans>, ftl: Py<Ftl>) -> Recovering {
        Recovering { loans: Arc::clone(loans), ftl }
    }
}

#[pymethods]
impl Recovering {
    fn found(&self) -> PyResult<Vec<FoundBlock>> {
        self.loans.recovery(|recovery| Ok(recovery.found().into_iter().map(FoundBlock::from).collect()))
    }

    fn merge(&self, merge: FoundMerge) -> PyResult<bool> {
        self.loans.recovery(|recovery| recovery.merge(&merge.into()).map_err(PyValueError::new_err))
    }

    fn keep(&self) -> PyResult<Vec<FoundBlock>> {
        self.loans.recovery(|recovery| Ok(recovery.keep().into_iter().map(FoundBlock::from).collect()))
    }

    fn close(&self) -> PyResult<()> {
        self.loans.recovery(|recovery| recovery.close().map_err(PyValueError::new_err))
    }
}
