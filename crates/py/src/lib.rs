//! Python bindings: what the package `floatgate`, in `python/floatgate`, is made on.
//!
//! They are thin: names, defaults, units and documentation are the package's. What takes long runs without Python's
//! lock and ends at Ctrl-C; what fails becomes one of the package's exceptions (`errors`). Tables go to Python as Arrow
//! columns, without a copy (`tables`). `crates/wheel` makes the extension module of them.

mod device;
mod errors;
mod frontend;
mod makers;
mod policies;
mod result;
mod run;
mod simulator;
mod tables;

use floatgate_core::external::Externals;
use pyo3::prelude::*;

/// Adds all bindings to an extension module, and the version of the simulator. `makers` are policies that its devices
/// name like built-in ones.
pub fn fill(module: &Bound<'_, PyModule>, makers: Externals) -> PyResult<()> {
    makers::set(makers);
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<device::DeviceConfig>()?;
    module.add_class::<policies::Units>()?;
    module.add_class::<simulator::Simulator>()?;
    for function in [
        wrap_pyfunction!(device::builtin_names, module)?,
        wrap_pyfunction!(device::policy_names, module)?,
        wrap_pyfunction!(errors::provoke_panic, module)?,
        wrap_pyfunction!(result::check_result, module)?,
        wrap_pyfunction!(result::check_summary, module)?,
        wrap_pyfunction!(result::check_table, module)?,
        wrap_pyfunction!(result::compare, module)?,
        wrap_pyfunction!(result::report, module)?,
        wrap_pyfunction!(result::seal, module)?,
        wrap_pyfunction!(run::run, module)?,
        wrap_pyfunction!(simulator::state_info, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
