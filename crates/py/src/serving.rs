//! Live devices: what an extension module with the command needs to serve a device of the package.

use floatgate_core::policies::Externals;
use floatgate_workload::file::Stop;
use pyo3::prelude::*;

use crate::device::DeviceConfig;
use crate::makers::makers;
use crate::policies::registered;

pub use crate::errors::policy_error;
pub use crate::policies::registered::Named;

/// Request to end a live device.
#[pyclass(frozen, module = "floatgate._floatgate")]
#[derive(Default)]
pub struct Ending(Stop);

#[pymethods]
impl Ending {
    #[new]
    fn new() -> Ending {
        Ending::default()
    }

    /// Requests the end.
    fn request(&self) {
        self.0.request();
    }
}

impl Ending {
    /// Returns the flag that the server polls.
    pub fn stop(&self) -> Stop {
        self.0.clone()
    }
}

/// Returns the policies of a device of the package.
pub fn policies_of(device: &Bound<'_, PyAny>) -> PyResult<Externals> {
    Ok(device.cast::<DeviceConfig>()?.get().chosen.spec.makers.clone())
}

/// Returns the policies of a command: those of the extension module and, if there are any, registered ones with the
/// function that finds them.
pub fn policies_of_command(policies: Option<(Py<PyAny>, Vec<Named>)>) -> Externals {
    match policies {
        Some((find, named)) => registered::externals(find, named, makers()),
        None => makers(),
    }
}
