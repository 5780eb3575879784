//! Device of a run: its specification and its configuration.

use floatgate_array::config::{self as array, ArrayConfig};
use floatgate_core::device_file::{self, Builtin, ConfigError, DeviceConfig, Problem, Scale, Scaled};
use floatgate_core::policies::Externals;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::import;

/// Specification of the device of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// Origin of the configuration.
    pub source: DeviceSource,
    /// Overridden parameters, in the syntax of `--set`: `gc.victim=fifo`.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// Share of the blocks that the device has, after the overrides. `None`: all blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
    /// External policies of the program that loads the device. They are not stored with the specification.
    #[serde(skip)]
    pub makers: Externals,
}

/// Origin of the configuration of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceSource {
    /// Name of a built-in device, or path of a device file.
    Named(String),
    /// Text of a device file.
    Text {
        /// The text.
        text: String,
        /// Name of the text in errors.
        called: String,
    },
}

impl DeviceSpec {
    /// Creates the specification of a built-in device, or of a device file at this path.
    pub fn named(name_or_path: &str, overrides: &[String]) -> DeviceSpec {
        DeviceSpec::from(DeviceSource::Named(name_or_path.to_owned()), overrides)
    }

    /// Creates the specification of a device file with this text. Errors call it `called`.
    pub fn text(text: &str, called: &str, overrides: &[String]) -> DeviceSpec {
        let source = DeviceSource::Text { text: text.to_owned(), called: called.to_owned() };
        DeviceSpec::from(source, overrides)
    }

    fn from(source: DeviceSource, overrides: &[String]) -> DeviceSpec {
        DeviceSpec { source, overrides: overrides.to_vec(), scale: None, makers: Externals::default() }
    }

    /// Sets the share of the blocks that the device has.
    pub fn with_scale(self, scale: Option<Scale>) -> DeviceSpec {
        DeviceSpec { scale, ..self }
    }

    /// Adds external policies of the program that loads the device.
    pub fn with_makers(self, makers: Externals) -> DeviceSpec {
        DeviceSpec { makers, ..self }
    }

    /// Returns the name of the device for errors: that of a built-in device or of a text, or the path of a file.
    pub fn called(&self) -> &str {
        match &self.source {
            DeviceSource::Named(called) | DeviceSource::Text { called, .. } => called,
        }
    }

    /// Reads the configuration, applies the overrides, and checks the result.
    pub fn load(&self) -> Result<LoadedDevice, ConfigError> {
        match &self.source {
            DeviceSource::Named(name) => match Builtin::named(name) {
                Some(device) => {
                    let base = Some(device.name.to_owned());
                    self.load_with(base, |overrides| {
                        device_file::load_with(&self.makers.offers(), device.name, overrides)
                    })
                }
                None => {
                    let loaded = DeviceConfig::file_text(name).and_then(|text| self.load_text(&text));
                    loaded.map_err(|error| self.or_import(error))
                }
            },
            DeviceSource::Text { text, .. } => self.load_text(text),
        }
    }

    /// Replaces the error of a file that is not a device file, if it is a configuration of another simulator.
    fn or_import(&self, error: ConfigError) -> ConfigError {
        let is_other = matches!(error, ConfigError::Malformed(_) | ConfigError::Unreadable { .. });
        match import::remedy(self.called()).filter(|_| is_other) {
            Some(remedy) => ConfigError::Malformed(vec![Problem::new("", remedy)]),
            None => error,
        }
    }

    fn load_text(&self, text: &str) -> Result<LoadedDevice, ConfigError> {
        if array::is_array(text) {
            return self.load_array(text);
        }
        let load =
            |overrides: &[String]| device_file::from_toml_with(&self.makers.offers(), text, self.called(), overrides);
        self.load_with(DeviceConfig::base_in(text), load)
    }

    fn load_array(&self, text: &str) -> Result<LoadedDevice, ConfigError> {
        let load = |overrides: &[String]| array::from_toml(&self.makers.offers(), text, self.called(), overrides);
        let array = load(&self.overrides)?;
        if let Some(scale) = self.scale {
            let message = format!(
                "{}: this is an array, which cannot be scaled to {scale}; scale the device files of its members with \
                 `floatgate device scale`",
                self.called()
            );
            return Err(ConfigError::Refused(vec![Problem::new("array", message)]));
        }
        let plain = if self.overrides.is_empty() { None } else { load(&[]).ok() };
        let plain_digest = plain.as_ref().unwrap_or(&array).digest();
        let (config, plain) = (array.as_one_ssd(), plain.map(|plain| plain.as_one_ssd()));
        let (spec, array) = (self.clone(), Some(Box::new(array)));
        Ok(LoadedDevice { spec, config, plain, array, plain_digest, base: None, scaled: None })
    }

    fn load_with(
        &self,
        base: Option<String>,
        load: impl Fn(&[String]) -> Result<DeviceConfig, ConfigError>,
    ) -> Result<LoadedDevice, ConfigError> {
        let whole = load(&self.overrides)?;
        let scaled = self.scale.map(|scale| whole.scaled(scale)).transpose()?;
        let config = match &scaled {
            Some(scaled) => load(&[self.overrides.clone(), scaled.overrides()].concat())?,
            None => whole,
        };
        // If the file is invalid without the overrides, the digest is that of the device with overrides.
        let is_plain = self.overrides.is_empty() && scaled.is_none();
        let plain = if is_plain { None } else { load(&[]).ok() };
        let plain_digest = plain.as_ref().unwrap_or(&config).digest();
        Ok(LoadedDevice { spec: self.clone(), config, plain, array: None, plain_digest, base, scaled })
    }
}

/// Loaded device.
#[derive(Clone, Debug)]
pub struct LoadedDevice {
    /// Specification of the device.
    pub spec: DeviceSpec,
    /// Configuration with overrides. For an array: an SSD with the flash of all members.
    pub config: DeviceConfig,
    /// Configuration without overrides. `None` if there are none, or if it is invalid.
    pub plain: Option<DeviceConfig>,
    /// Array, if the device is one.
    pub array: Option<Box<ArrayConfig>>,
    /// Digest of the device without overrides.
    pub plain_digest: String,
    /// Built-in device that the device is, or is based on.
    pub base: Option<String>,
    /// Changes of the scale, if the device is scaled.
    pub scaled: Option<Scaled>,
}

impl LoadedDevice {
    /// Returns the digest of the device with overrides.
    pub fn digest(&self) -> String {
        self.array.as_ref().map_or_else(|| self.config.digest(), |array| array.digest())
    }

    /// Returns notes on the scale for the user: the changes, and effects that do not scale.
    pub fn scale_notes(&self) -> Vec<String> {
        let (Some(scaled), Some(scale)) = (&self.scaled, self.spec.scale) else { return Vec::new() };
        let changes: Vec<String> = scaled.changes.iter().map(ToString::to_string).collect();
        let first = format!(
            "scaled to {scale}: {}; a workload scales only as far as its sizes are percentages",
            changes.join(", ")
        );
        [first].into_iter().chain(scaled.notes.iter().cloned()).collect()
    }

    /// Fails if the device is an array. `what` is what needs a single SSD, such as `floatgate serve`.
    pub fn check_single(&self, what: &str) -> Result<(), Failure> {
        let Some(array) = &self.array else { return Ok(()) };
        Err(Failure::mistake(format!(
            "{}: {what} needs a single SSD, and this is an array; give one of its members, such as `{}`, or simulate \
             the array with `floatgate run` or `fg.run`",
            self.spec.called(),
            array.members[0].name
        )))
    }
}
