//! Calls of policies in Python, and their failures.

use std::sync::Arc;

use floatgate_core::external::Cause;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

fn raised(error: PyErr) -> Cause {
    Arc::new(error)
}

/// Calls Python. An exception becomes the fault of the policy.
pub fn python<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, Cause> {
    Python::attach(call).map_err(raised)
}

/// Returns another policy with the same state, from its method `fork`.
pub fn fork(py: Python<'_>, policy: &Py<PyAny>) -> PyResult<Py<PyAny>> {
    policy.call_method0(py, "fork")
}

/// Returns the error that the device has no columns, which is a defect of the simulator.
pub fn missing() -> Cause {
    raised(PyRuntimeError::new_err("the closed blocks are not in columns"))
}
