//! Extension module of the Python package: the bindings of `floatgate-py`, and the command.
//!
//! Both share one copy of the simulator in the wheel. Only this crate depends on the command, and the bindings do not.

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

/// Serves a device with its policies until `ending` requests the end. Calls `ready` with the commands of clients when
/// they are served. Returns the exit status of `floatgate serve`, with the result as JSON or the failure's message.
/// Raises the failure of a policy.
#[cfg(target_os = "linux")]
#[pyfunction]
fn serve(
    py: Python<'_>,
    device: &Bound<'_, PyAny>,
    arguments: Vec<OsString>,
    ending: &floatgate_py::serving::Ending,
    ready: Py<PyAny>,
) -> PyResult<(u8, String)> {
    let (policies, stop) = (floatgate_py::serving::policies_of(device)?, ending.stop());
    let announce = |text: String| Python::attach(|py| drop(ready.call1(py, (text,))));
    match py.detach(|| floatgate_cli::serve(policies, arguments, stop, announce)) {
        Ok(result) => Ok((0, result)),
        Err((status, error)) => match error.downcast_ref() {
            Some(fault) => Err(floatgate_py::serving::policy_error(py, fault)),
            None => Ok((status, format!("{error:#}"))),
        },
    }
}

/// Bindings of the simulator: the basis of the package.
#[pymodule]
mod _floatgate {
    #[pymodule_export]
    use crate::command;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::serve;

    use floatgate_core::policies::Externals;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        floatgate_py::fill(module, Externals::default())
    }
}
