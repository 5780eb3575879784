//! List of the built-in devices, as data.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Builtin, Cell, ConfigError, DeviceConfig, load};

/// Format of the list.
const SCHEMA: &str = "floatgate-devices-1";

/// The built-in devices, in alphabetical order.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Listing {
    /// Format of the list: `floatgate-devices-1`.
    pub schema: &'static str,
    /// Version of Floatgate.
    pub version: &'static str,
    /// The devices.
    pub devices: Vec<Listed>,
}

/// Built-in device. Counts are those of the next higher level: chips per channel, dies per chip, planes per die.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Listed {
    /// Name, as in `floatgate run NAME`.
    pub name: String,
    /// Modeled device, and its source.
    pub description: String,
    /// Version of the device file, raised when a value changes.
    pub version: u32,
    /// Digest of all parameters, as in results.
    pub digest: String,
    /// Capacity for the host, in bytes.
    pub logical_bytes: u64,
    /// Data bytes of all flash pages.
    pub physical_bytes: u64,
    /// Number of channels.
    pub channels: u32,
    /// Number of chips per channel.
    pub chips: u32,
    /// Number of dies per chip.
    pub dies: u32,
    /// Number of planes per die.
    pub planes: u32,
    /// Cells: `slc`, `mlc`, `tlc` or `qlc`.
    #[schemars(with = "String")]
    pub cell: Cell,
}

impl Listing {
    /// Loads all built-in devices.
    ///
    /// # Errors
    ///
    /// If a built-in device is invalid.
    pub fn new() -> Result<Listing, ConfigError> {
        let devices = Builtin::ALL.iter().map(|builtin| Ok(Listed::of(load(builtin.name, &[])?)));
        let devices = devices.collect::<Result<_, ConfigError>>()?;
        Ok(Listing { schema: SCHEMA, version: env!("CARGO_PKG_VERSION"), devices })
    }
}

impl Listed {
    fn of(device: DeviceConfig) -> Listed {
        let geometry = &device.geometry;
        Listed {
            version: device.version,
            digest: device.digest(),
            logical_bytes: device.logical_bytes(),
            physical_bytes: device.physical_bytes(),
            channels: geometry.channels,
            chips: geometry.chips,
            dies: geometry.dies,
            planes: geometry.planes,
            cell: device.nand.cell,
            name: device.name,
            description: device.description,
        }
    }
}
