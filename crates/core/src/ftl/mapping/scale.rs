//! Options of mapping schemes on a device with a share of its blocks: see [`crate::config::scale`].

use super::MappingConfig;
use crate::config::fraction::Scale;
use crate::config::units::Bytes;

impl MappingConfig {
    /// Options that scale in proportion.
    pub const PROPORTIONAL: &[&str] = &[
        "mapping.scheme.dftl.cache",
        "mapping.scheme.bast.logs",
        "mapping.scheme.fast.logs",
        "mapping.scheme.last.logs",
        "mapping.scheme.last.hot_window",
    ];

    /// Options that are shares.
    pub const SHARES: &[&str] = &["mapping.scheme.dftl.protected", "mapping.scheme.dftl.map_spare"];

    /// Overrides with all options of [`MappingConfig::PROPORTIONAL`], for tests.
    #[cfg(test)]
    pub const EXAMPLES: &[&str] = &[
        "mapping.scheme.dftl.cache=96KiB",
        "mapping.scheme.bast.logs=48",
        "mapping.scheme.fast.logs={ sequential = 32, random = 64 }",
        "mapping.scheme.last.logs={ sequential = 32, hot = 96, cold = 64 }",
    ];

    /// Overrides with default options, for tests.
    #[cfg(test)]
    pub const DEFAULTS: &[&str] = &["mapping.scheme=dftl", "mapping.scheme=bast"];

    /// Scales the options of [`MappingConfig::PROPORTIONAL`]. At least one log block of each kind remains.
    pub fn scale(&mut self, scale: Scale) {
        let scale_count = |count: &mut u32| *count = scale.of_blocks(*count).max(u32::from(*count > 0));
        match self {
            MappingConfig::Dftl(options) => options.cache = Bytes(scale.of(options.cache.0)),
            MappingConfig::Bast(options) => scale_count(&mut options.logs),
            MappingConfig::Fast(options) => {
                [&mut options.logs.sequential, &mut options.logs.random].into_iter().for_each(scale_count);
            }
            MappingConfig::Last(options) => {
                let logs = &mut options.logs;
                [&mut logs.sequential, &mut logs.hot, &mut logs.cold].into_iter().for_each(scale_count);
                scale_count(&mut options.hot_window);
            }
            _ => {}
        }
    }
}
