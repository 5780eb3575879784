//! Device of a run: how it is named, and its configuration.

use floatgate_core::config::{self, ConfigError, DeviceConfig};
use floatgate_core::external::Externals;
use serde::{Deserialize, Serialize};

/// Specification of the device of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// Origin of its configuration.
    pub source: DeviceSource,
    /// Parameters to change, as `--set` takes them: `gc.victim=fifo`.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// Policies of the program that loads the device. They are not stored with the specification.
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
    /// Names a built-in device, or a device file by its path.
    pub fn named(name_or_path: &str, overrides: &[String]) -> DeviceSpec {
        DeviceSpec::from(DeviceSource::Named(name_or_path.to_owned()), overrides)
    }

    /// Gives the text of a device file, which errors call `called`.
    pub fn text(text: &str, called: &str, overrides: &[String]) -> DeviceSpec {
        let source = DeviceSource::Text { text: text.to_owned(), called: called.to_owned() };
        DeviceSpec::from(source, overrides)
    }

    fn from(source: DeviceSource, overrides: &[String]) -> DeviceSpec {
        DeviceSpec { source, overrides: overrides.to_vec(), makers: Externals::default() }
    }

    /// Lets the device name policies of the program that loads it.
    pub fn with_makers(self, makers: Externals) -> DeviceSpec {
        DeviceSpec { makers, ..self }
    }

    /// Returns the name of the device in errors: that of a built-in device, the path of a file, or that of a text.
    pub fn called(&self) -> &str {
        match &self.source {
            DeviceSource::Named(called) | DeviceSource::Text { called, .. } => called,
        }
    }

    /// Reads the configuration, applies the overrides, and checks the result.
    pub fn load(&self) -> Result<Chosen, ConfigError> {
        match &self.source {
            DeviceSource::Named(name) => match config::builtin(name) {
                Some(device) => {
                    let base = Some(device.name.to_owned());
                    self.load_with(base, |overrides| config::load_with(&self.makers, device.name, overrides))
                }
                None => {
                    let text = config::file_text(name)?;
                    self.load_text(&text)
                }
            },
            DeviceSource::Text { text, .. } => self.load_text(text),
        }
    }

    fn load_text(&self, text: &str) -> Result<Chosen, ConfigError> {
        let load = |overrides: &[String]| config::from_toml_with(&self.makers, text, self.called(), overrides);
        self.load_with(config::base_in(text), load)
    }

    fn load_with(
        &self,
        base: Option<String>,
        load: impl Fn(&[String]) -> Result<DeviceConfig, ConfigError>,
    ) -> Result<Chosen, ConfigError> {
        let config = load(&self.overrides)?;
        // A file that needs the overrides to be a device at all has no other digest.
        let plain = if self.overrides.is_empty() { None } else { load(&[]).ok() };
        let plain_digest = plain.as_ref().unwrap_or(&config).digest();
        Ok(Chosen { spec: self.clone(), config, plain_digest, base })
    }
}

/// A device that was loaded.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Its specification.
    pub spec: DeviceSpec,
    /// Its configuration, with overrides.
    pub config: DeviceConfig,
    /// Digest of the device without overrides.
    pub plain_digest: String,
    /// Built-in device that it is or is based on.
    pub base: Option<String>,
}
