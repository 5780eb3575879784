//! Python bindings: what the package `floatgate`, in `python/floatgate`, is made on.
//!
//! They are thin: names, defaults, units and documentation are the package's. What takes long runs without Python's
//! lock and ends at Ctrl-C; what fails becomes one of the package's exceptions (`errors`). Tables go to Python as Arrow
//! columns, without a copy (`tables`).

mod device;
mod errors;
mod front;
mod policies;
mod result;
mod run;
mod simulator;
mod tables;

use pyo3::prelude::*;

/// Bindings of the simulator: what the package is made on.
#[pymodule]
mod _floatgate {
    #[pymodule_export]
    use crate::device::{DeviceConfig, builtin_names, policy_names};
    #[pymodule_export]
    use crate::errors::provoke_panic;
    #[pymodule_export]
    use crate::policies::Units;
    #[pymodule_export]
    use crate::result::{check_result, check_summary, check_table, compare, report, seal};
    #[pymodule_export]
    use crate::run::{command, run};
    #[pymodule_export]
    use crate::simulator::{Simulator, state_info};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
