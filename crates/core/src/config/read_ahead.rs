//! Read-ahead: the buffer reads units before a sequential stream of the host requests them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Check;
use super::units::Bytes;
use super::{BufferConfig, DeviceConfig};

/// Read-ahead: the units after the last request of a sequential stream of reads are read into the buffer before the
/// host requests them (docs/model/buffer.md).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadAheadConfig {
    /// Data that is read ahead of the last request of a stream, rounded up to whole mapping units. More is read when
    /// half of it is left.
    pub size: Bytes,
    /// Number of streams that are followed at a time. A new one replaces the least recently used one.
    #[serde(default = "default_streams")]
    #[schemars(range(min = 1, max = 64))]
    pub streams: u32,
    /// Number of consecutive requests that make a stream: read-ahead starts with the last one of them.
    #[serde(default = "default_after")]
    #[schemars(range(min = 2, max = 1000))]
    pub after: u32,
}

fn default_streams() -> u32 {
    8
}

fn default_after() -> u32 {
    2
}

impl Check<'_> {
    /// Checks that the data of all streams fit into the buffer.
    pub(super) fn read_ahead(&mut self, device: &DeviceConfig, buffer: &BufferConfig) {
        let Some(ahead) = &buffer.read_ahead else { return };
        let most = buffer.capacity.0 / u64::from(ahead.streams.max(1));
        let range = Bytes(device.unit_bytes())..=Bytes(most);
        self.in_range("buffer.read_ahead.size", ahead.size, range, "that of all streams is in the buffer");
    }
}
