//! Python bindings: the basis of the package `floatgate` in `python/floatgate`.
//!
//! They are thin, because names, defaults, units and documentation are in the package. Long work runs without Python's
//! lock and ends at Ctrl-C. Failures become exceptions of the package (`errors`). Tables are passed to Python as Arrow
//! columns without a copy (`tables`). `crates/wheel` builds the extension module from these bindings.

mod device;
mod errors;
mod frontend;
mod makers;
mod memory;
mod policies;
mod result;
mod run;
pub mod serving;
mod simulator;
mod tables;
mod tools;

use floatgate_core::policies::Externals;
use pyo3::prelude::*;

/// Adds all bindings and the version of the simulator to an extension module. `makers` provides policies that devices
/// name like built-in ones.
pub fn fill(module: &Bound<'_, PyModule>, makers: Externals) -> PyResult<()> {
    makers::set(makers);
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<device::DeviceConfig>()?;
    module.add_class::<memory::Requests>()?;
    module.add_class::<policies::Column>()?;
    module.add_class::<policies::Units>()?;
    module.add_class::<run::Shared>()?;
    module.add_class::<serving::Ending>()?;
    module.add_class::<simulator::Simulator>()?;
    policies::scheme::fill(module)?;
    for function in [
        wrap_pyfunction!(device::builtin_names, module)?,
        wrap_pyfunction!(device::policy_names, module)?,
        wrap_pyfunction!(device::check_policies, module)?,
        wrap_pyfunction!(errors::provoke_panic, module)?,
        wrap_pyfunction!(result::check_result, module)?,
        wrap_pyfunction!(result::check_summary, module)?,
        wrap_pyfunction!(result::check_table, module)?,
        wrap_pyfunction!(result::compare, module)?,
        wrap_pyfunction!(result::grouped_files, module)?,
        wrap_pyfunction!(result::new_name, module)?,
        wrap_pyfunction!(result::described, module)?,
        wrap_pyfunction!(result::report, module)?,
        wrap_pyfunction!(result::seal, module)?,
        wrap_pyfunction!(run::lifetime, module)?,
        wrap_pyfunction!(run::run, module)?,
        wrap_pyfunction!(simulator::state_info, module)?,
        wrap_pyfunction!(tools::check_precondition, module)?,
        wrap_pyfunction!(tools::check_workload, module)?,
        wrap_pyfunction!(tools::draw, module)?,
        wrap_pyfunction!(tools::explain, module)?,
        wrap_pyfunction!(tools::import_config, module)?,
        wrap_pyfunction!(tools::object_info, module)?,
        wrap_pyfunction!(tools::summary_text, module)?,
        wrap_pyfunction!(tools::trace_convert, module)?,
        wrap_pyfunction!(tools::trace_info, module)?,
        wrap_pyfunction!(tools::trace_synth, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
