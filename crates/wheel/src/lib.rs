//! Extension module of the Python package: the bindings of `floatgate-py`, and the command.
//!
//! Both share one copy of the simulator in the wheel. Only this crate depends on the command, and the bindings do not.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs a command line, which starts with the name of the program, and returns the exit status.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| floatgate_cli::main(arguments))
}

/// Bindings of the simulator: the basis of the package.
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
