//! Extension module of the Python package `floatgate` with the policies of this example. It replaces the module of
//! `crates/wheel`, and has the same contents otherwise.

use std::ffi::OsString;

use floatgate_py::serving::{Named, policies_of_command};
use pyo3::prelude::*;

/// Runs a command line, which starts with the name of the program, and returns the exit status. `policies` are the
/// registered policies in Python, with the function that finds them.
#[pyfunction]
#[pyo3(signature = (arguments, policies=None))]
fn command(py: Python<'_>, arguments: Vec<OsString>, policies: Option<(Py<PyAny>, Vec<Named>)>) -> u8 {
    py.detach(|| floatgate_cli::main_with(policies_of_command(policies), arguments))
}

/// Bindings of the simulator, and the policies.
#[pymodule]
mod _floatgate {
    #[pymodule_export]
    use crate::command;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        floatgate_py::fill(module, example_policies::makers())
    }
}
