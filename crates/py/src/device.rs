//! Device configurations.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use floatgate_core::device_file::{Builtin, DeviceConfig as Config, Scale};
use floatgate_core::laws;
use floatgate_core::policies::{ExternalConfig, Externals};
use floatgate_run::device::{DeviceSpec, LoadedDevice};
use floatgate_run::shared::is_equal_for_all_seeds;
use pyo3::prelude::*;

use crate::errors::{config_error, exception, text_of};
use crate::makers::makers;
use crate::policies::Policies;

/// Checked device configuration.
#[pyclass(frozen, module = "floatgate._floatgate")]
pub struct DeviceConfig {
    pub(crate) chosen: LoadedDevice,
}

fn load(py: Python<'_>, spec: DeviceSpec) -> PyResult<DeviceConfig> {
    let spec = spec.with_makers(makers());
    spec.load().map(|chosen| DeviceConfig { chosen }).map_err(|error| config_error(py, &error))
}

/// Returns the policies of a device that are neither built in nor part of the extension module, with the paths of their
/// keys.
fn foreign(config: &Config) -> Vec<(&'static str, Cow<'_, ExternalConfig>)> {
    let offers = makers().offers();
    let is_offered = |path, name: &str| offers.iter().any(|offer| (offer.path(), offer.name()) == (path, name));
    config.externals().into_iter().filter(|(path, policy)| !is_offered(path, &policy.name)).collect()
}

/// Returns `true` if a device calls policies in Python.
pub fn calls_python(config: &Config) -> bool {
    !foreign(config).is_empty()
}

#[pymethods]
impl DeviceConfig {
    /// Loads a built-in device by its name, or a file by its path.
    #[staticmethod]
    fn load(py: Python<'_>, name_or_path: &str, overrides: Vec<String>) -> PyResult<DeviceConfig> {
        load(py, DeviceSpec::named(name_or_path, &overrides))
    }

    /// Loads the text of a device file.
    #[staticmethod]
    fn from_toml(py: Python<'_>, text: &str, called: &str, overrides: Vec<String>) -> PyResult<DeviceConfig> {
        load(py, DeviceSpec::text(text, called, &overrides))
    }

    /// Returns the overrides that scale the device, and notes on effects that do not scale.
    fn scaling(&self, py: Python<'_>, scale: &str) -> PyResult<(Vec<String>, Vec<String>)> {
        let refuse = |message: &str| Err(exception(py, "ConfigError", message));
        let scale = match scale.parse::<Scale>() {
            Ok(scale) => scale,
            Err(error) => return refuse(&error),
        };
        if self.chosen.array.is_some() {
            return refuse("an array cannot be scaled; scale the devices of its members");
        }
        let scaled = self.chosen.config.scaled(scale).map_err(|error| config_error(py, &error))?;
        Ok((scaled.overrides(), scaled.notes))
    }

    /// Returns `true` if all seeds prepare equal states of the device.
    fn has_one_state(&self, py: Python<'_>, precondition: &str) -> bool {
        py.detach(|| is_equal_for_all_seeds(&self.chosen, precondition))
    }

    /// Returns the policies that are neither built in nor part of the extension module: the path of the key, the name,
    /// the digest of the source, and the options as JSON.
    fn externals(&self) -> Vec<(&'static str, String, String, String)> {
        let reported = foreign(&self.chosen.config).into_iter().map(|(path, config)| {
            let options = serde_json::Value::from(config.options.clone()).to_string();
            (path, config.name.clone(), config.source.clone(), options)
        });
        reported.collect()
    }

    /// Returns the same device with functions that build these policies, indexed by the path of the key.
    fn with_policies(&self, makers: BTreeMap<String, Py<PyAny>>) -> DeviceConfig {
        let mut chosen = self.chosen.clone();
        let others = std::mem::take(&mut chosen.spec.makers);
        chosen.spec.makers = Externals::by(Arc::new(Policies { makers, others }));
        DeviceConfig { chosen }
    }

    /// Returns the name.
    #[getter]
    fn name(&self) -> &str {
        &self.chosen.config.name
    }

    /// Returns the description.
    #[getter]
    fn description(&self) -> &str {
        &self.chosen.config.description
    }

    /// Returns the digest of the parameters.
    #[getter]
    fn digest(&self) -> String {
        self.chosen.digest()
    }

    /// Returns the digest of the parameters that shape a state.
    #[getter]
    fn state_digest(&self) -> String {
        self.chosen.array.as_ref().map_or_else(|| self.chosen.config.state_digest(), |array| array.state_digest())
    }

    /// Returns the built-in device that this device is, or is based on.
    #[getter]
    fn base(&self) -> Option<&str> {
        self.chosen.base.as_deref()
    }

    /// Returns the number of bytes that the host sees.
    #[getter]
    fn logical_bytes(&self) -> u64 {
        self.chosen.config.logical_bytes()
    }

    /// Returns the number of bytes of the flash.
    #[getter]
    fn physical_bytes(&self) -> u64 {
        self.chosen.config.physical_bytes()
    }

    /// Returns all parameters, as JSON.
    fn to_json(&self) -> String {
        serde_json::to_value(self.chosen.config.resolved()).unwrap_or_default().to_string()
    }

    /// Returns the options of an array as JSON, or `None` for a single SSD.
    #[getter]
    fn array(&self) -> Option<String> {
        self.chosen.array.as_ref().map(|array| serde_json::Value::from(array.to_json()).to_string())
    }

    /// Returns all parameters, as a device file.
    fn to_toml(&self, py: Python<'_>) -> PyResult<String> {
        if let Some(array) = &self.chosen.array {
            return Ok(array.to_toml());
        }
        let text = toml::to_string(&self.chosen.config.resolved());
        text.map_err(|error| exception(py, "ConfigError", &error.to_string()))
    }

    /// Returns each parameter: its path, its value as JSON, and its source.
    fn figures(&self) -> Vec<(String, String, Option<String>)> {
        let figures = self.chosen.config.figures();
        let figure = figures.into_iter();
        figure.map(|f| (f.path.to_string(), f.value.to_string(), f.source.map(str::to_owned))).collect()
    }
}

/// Returns the names of the policies of a family, given the path of its key: those of the simulator, and those of the
/// extension module.
#[pyfunction]
pub fn policy_names(path: &str) -> Vec<&'static str> {
    let own = Config::builtin_policies(path);
    let offers = makers().offers().into_iter();
    let offered = offers.filter(|offer| offer.path() == path).map(|offer| offer.name());
    own.iter().copied().chain(offered).collect()
}

/// Checks the policies in Python of a device against the laws of their families.
#[pyfunction]
pub fn check_policies(py: Python<'_>, device: &DeviceConfig) -> PyResult<()> {
    let chosen = &device.chosen;
    let checked = catch_unwind(AssertUnwindSafe(|| laws::policies(&chosen.config, &chosen.spec.makers)));
    checked.map_err(|panic| exception(py, "PolicyError", &text_of(panic.as_ref())))
}

/// Returns the names of the built-in devices.
#[pyfunction]
pub fn builtin_names() -> Vec<&'static str> {
    Builtin::ALL.iter().map(|builtin| builtin.name).collect()
}
