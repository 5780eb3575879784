//! Gangs: packages that are connected to the controller together (Agrawal et al. 2008, Section 3.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Gangs of packages. `geometry` describes packages with a channel each. A gang connects a number of them, so that one
/// option turns a device into one with gangs. Results have values for each gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gang {
    /// Number of channels of `geometry` whose packages form a gang; with 1, each channel works as without this table.
    #[schemars(range(min = 1))]
    pub width: u32,
    /// Connection of the packages, and the way in which they work together.
    #[serde(default)]
    pub mode: GangMode,
}

/// Connection of the packages of a gang, and the way in which they work together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GangMode {
    /// Shared bus, which carries one operation at a time: the gang takes its next command after the last one is done.
    #[default]
    Serial,
    /// Shared bus: the packages work independently of one another and share a channel.
    Interleaved,
    /// Shared control, and a data path for each package: the packages work independently of one another, and only their
    /// command and address cycles exclude each other.
    Asynchronous,
    /// Shared control, and a data path for each package. All packages execute the same operation at the same addresses:
    /// the gang is a virtual package with the sum of their pages, spare bytes and mapping units.
    Synchronous,
}
