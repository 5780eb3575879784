//! Columns of numbers that the simulator writes and NumPy reads, without a copy.
//!
//! A [`Column`] exports an address to NumPy by the array interface, and owns a reference to the memory. So an array
//! that a policy keeps never dangles: it shows later values, or the last ones of a device that is gone. NumPy's buffer
//! protocol would do the same, but Python's stable interface has it only since version 3.11.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A read-only column, for `numpy.asarray`.
#[pyclass(frozen, module = "floatgate._floatgate")]
pub struct Column {
    /// Owner of the memory.
    _owner: Arc<dyn Any + Send + Sync>,
    address: usize,
    count: usize,
    /// Kind and size of a number, as in NumPy.
    kind: &'static str,
}

#[pymethods]
impl Column {
    /// Returns the address, the length and the type, as NumPy's array interface defines them.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let order = if cfg!(target_endian = "little") { '<' } else { '>' };
        let dict = PyDict::new(py);
        dict.set_item("version", 3)?;
        dict.set_item("shape", (self.count,))?;
        dict.set_item("typestr", format!("{order}{}", self.kind))?;
        dict.set_item("data", (self.address, true))?;
        Ok(dict)
    }
}

/// A number that a policy may read while the simulator writes it.
pub trait Number {
    /// Kind and size, as in NumPy.
    const KIND: &'static str;
}

macro_rules! numbers {
    ($($kind:ty = $name:literal),+) => {$(
        impl Number for $kind {
            const KIND: &'static str = $name;
        }
    )+};
}

numbers!(AtomicU8 = "u1", AtomicU16 = "u2", AtomicU32 = "u4", AtomicI32 = "i4", AtomicU64 = "u8", AtomicI64 = "i8");

/// Returns a NumPy array of a column whose memory `owner` owns.
pub fn array<'py, N: Number>(
    py: Python<'py>,
    owner: &Arc<impl Any + Send + Sync>,
    numbers: &[N],
) -> PyResult<Bound<'py, PyAny>> {
    array_as(py, owner, numbers, N::KIND)
}

/// Returns a NumPy array of times, which are signed in Python, so that the difference of two does not wrap around.
pub fn times<'py>(
    py: Python<'py>,
    owner: &Arc<impl Any + Send + Sync>,
    times: &[AtomicU64],
) -> PyResult<Bound<'py, PyAny>> {
    array_as(py, owner, times, AtomicI64::KIND)
}

fn array_as<'py, N>(
    py: Python<'py>,
    owner: &Arc<impl Any + Send + Sync>,
    numbers: &[N],
    kind: &'static str,
) -> PyResult<Bound<'py, PyAny>> {
    let (address, count) = (numbers.as_ptr().expose_provenance(), numbers.len());
    let owner: Arc<dyn Any + Send + Sync> = Arc::clone(owner) as Arc<dyn Any + Send + Sync>;
    let column = Column { _owner: owner, address, count, kind };
    py.import("numpy")?.call_method1("asarray", (Py::new(py, column)?,))
}

/// Returns a class or function of `floatgate.policies`.
pub fn from_package<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("floatgate.policies")?.getattr(name)
}
