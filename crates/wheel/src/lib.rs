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
    #[pymodule_export]
    use floatgate_py::device::{DeviceConfig, builtin_names, policy_names};
    #[pymodule_export]
    use floatgate_py::errors::provoke_panic;
    #[pymodule_export]
    use floatgate_py::policies::Units;
    #[pymodule_export]
    use floatgate_py::result::{check_result, check_summary, check_table, compare, report, seal};
    #[pymodule_export]
    use floatgate_py::run::run;
    #[pymodule_export]
    use floatgate_py::simulator::{Simulator, state_info};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
