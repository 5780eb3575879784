//! Extension module of the Python package: the bindings of `floatgate-py`, and the command.
//!
//! The wheel has one copy of the simulator for both. The bindings do not know the command: only this crate, which
//! composes the two, depends on it.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs a command line, which starts with the name of the program, and returns the exit status.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| floatgate_cli::main(arguments))
}

/// Bindings of the simulator: what the package is made on.
#[pymodule]
mod _floatgate {
    #[pymodule_export]
    use crate::command;

    use floatgate_core::external::Externals;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        floatgate_py::fill(module, Externals::default())
    }
}
