//! Options of DFTL.

use super::super::{Needs, SchemeOptions, Translation};
use crate::config::DeviceConfig;
use crate::config::cells::CellMode;
use crate::config::units::Bytes;

/// Options of DFTL.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DftlConfig {
    /// Memory of the cached mapping table.
    pub cache: Bytes,
    /// Memory of one cached entry: the logical unit and its address.
    pub cached_entry: Bytes,
    /// Bytes of an entry, an address, in a translation page.
    pub entry: Bytes,
    /// Share of the cache for entries that were used more than once (protected segment).
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0))]
    pub protected: f64,
    /// True if one update of a translation page writes all its entries that are newer in the cache, and a victim causes
    /// one update for each page. False if each entry needs its own.
    pub batch_updates: bool,
    /// True if garbage collection updates a cached entry in the cache only, and its translation page later.
    pub lazy_copies: bool,
    /// Share of spare blocks for translation pages, beyond the least that works.
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0))]
    pub map_spare: f64,
    /// Cell mode of these blocks. `slc` needs the times of `nand.slc_mode`.
    #[serde(skip_serializing_if = "CellMode::is_native")]
    #[schemars(extend("default" = "native"))]
    pub cells: CellMode,
}

impl Default for DftlConfig {
    fn default() -> Self {
        DftlConfig {
            cache: Bytes(64 << 10),
            cached_entry: Bytes(8),
            entry: Bytes(4),
            protected: 0.5,
            batch_updates: true,
            lazy_copies: true,
            map_spare: 0.25,
            cells: CellMode::Native,
        }
    }
}

/// Maximum number of entries of a translation page.
pub(super) const MAX_ENTRIES: u64 = 1 << 24;
/// Maximum number of cached entries.
pub(super) const MAX_CACHED: u64 = 1 << 30;
/// Maximum number of units of a block. Each unit may have its victim wait for another translation page, and these waits
/// are counted in 16 bits.
pub(super) const MAX_UNITS_PER_BLOCK: u32 = 1 << 15;

impl DftlConfig {
    /// Returns the bytes of a translation page, which is as large as one program.
    pub(super) fn bytes_per_page(&self, device: &DeviceConfig) -> u64 {
        u64::from(device.block_size(self.cells).program_units) * device.unit_bytes()
    }

    /// Returns the number of entries of a translation page.
    pub fn entries_per_page(&self, device: &DeviceConfig) -> u32 {
        (self.bytes_per_page(device) / self.entry.0.max(1)).clamp(1, MAX_ENTRIES) as u32
    }

    /// Returns the number of entries that the cache can hold.
    pub fn cached_entries(&self) -> u64 {
        self.cache.0 / self.cached_entry.0.max(1)
    }
}

impl SchemeOptions for DftlConfig {
    fn needs(&self, device: &DeviceConfig) -> Needs {
        let entries_per_page = self.entries_per_page(device);
        let translation = Translation { entries_per_page, spare: self.map_spare, cells: self.cells };
        Needs { translation: Some(translation), ..Needs::default() }
    }

    fn bytes(&self, device: &DeviceConfig) -> u64 {
        let logical = device.logical_units();
        let cached = self.cached_entries().clamp(1, logical);
        // Entries of the cache, and its hash chains.
        36 * cached + 4 * cached.next_power_of_two() + 64 * logical.div_ceil(u64::from(self.entries_per_page(device)))
    }
}
