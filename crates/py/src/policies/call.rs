//! Calls of policies in Python, and their failures.

use std::sync::Arc;

use floatgate_core::policies::{Cause, RegionView, position};
use floatgate_core::sim::id::BlockId;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

fn raised(error: PyErr) -> Cause {
    Arc::new(error)
}

/// Calls Python. An exception becomes the error of the policy.
pub fn python<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, Cause> {
    Python::attach(call).map_err(raised)
}

/// Policy in Python, and its error once it has failed.
pub struct Called {
    /// The policy.
    pub policy: Py<PyAny>,
    /// The method that is called most, bound to the policy.
    pub method: Py<PyAny>,
    name: &'static str,
    error: Option<Cause>,
}

impl Called {
    /// Creates a policy whose method `name` is called.
    pub fn new(py: Python<'_>, policy: Py<PyAny>, name: &'static str) -> PyResult<Called> {
        let method = policy.getattr(py, name)?;
        Ok(Called { policy, method, name, error: None })
    }

    /// Returns the result of a call. If the call failed, stores its error and returns a default.
    pub fn keep<T: Default>(&mut self, result: Result<T, Cause>) -> T {
        result.unwrap_or_else(|cause| {
            self.error.get_or_insert(cause);
            T::default()
        })
    }

    /// Returns the error of the policy.
    pub fn error(&self) -> Option<&Cause> {
        self.error.as_ref()
    }
}

impl Clone for Called {
    /// Returns another policy with the same state, from its method `fork`. If this fails, the clone has an error.
    fn clone(&self) -> Called {
        Python::attach(|py| {
            let fork = self.policy.call_method0(py, "fork").and_then(|policy| Called::new(py, policy, self.name));
            fork.unwrap_or_else(|error| {
                let (policy, method) = (self.policy.clone_ref(py), self.method.clone_ref(py));
                Called { policy, method, name: self.name, error: Some(raised(error)) }
            })
        })
    }
}

/// Returns the closed block at a position that a policy has chosen.
pub fn closed_at(view: &RegionView, chosen: i64) -> Result<Option<BlockId>, Cause> {
    position(chosen, view.closed_count() as usize, "candidates").map(|position| view.closed_at(position))
}

/// Returns the error that the device has no columns, which is a defect of the simulator.
pub fn missing() -> Cause {
    raised(PyRuntimeError::new_err("the closed blocks are not in columns"))
}
