//! Results as tables for data analysis: Parquet files, and CSV.

use std::path::Path;

use anyhow::Result;

mod csv;
mod pages;
pub(crate) mod record;
pub mod requests;
pub mod series;
pub mod spool;
pub mod table;

/// Run that a results file belongs to. Every file contains it, so that a copy can be identified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Digest of the device configuration, including overrides: `config_digest` of the summary.
    pub config_digest: String,
    /// Name of the device.
    pub device: String,
    /// Name of the workload.
    pub workload: String,
    /// Seed of the random number generators.
    pub seed: u64,
}

/// Key of the digest that identifies the run. The digest is known only at the end of the run.
const RUN: &str = "floatgate.run";

/// Returns the metadata written when a file is completed: the digest of the run, if the run has a result.
fn of_run(run: Option<&str>) -> Vec<(String, String)> {
    run.map(|run| (RUN.to_owned(), run.to_owned())).into_iter().collect()
}

/// Returns the digest of the run from a Parquet file.
///
/// # Errors
///
/// Fails if the file cannot be read as a Parquet file.
pub fn run_in(path: &Path) -> Result<Option<String>> {
    table::run_in(path, RUN)
}

impl Origin {
    /// Returns the key-value metadata of a file with this schema.
    fn metadata(&self, schema: &str) -> Vec<(String, String)> {
        let pairs = [
            ("floatgate.schema", schema.to_owned()),
            ("floatgate.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("floatgate.config_digest", self.config_digest.clone()),
            ("floatgate.device", self.device.clone()),
            ("floatgate.workload", self.workload.clone()),
            ("floatgate.seed", self.seed.to_string()),
        ];
        pairs.map(|(key, value)| (key.to_owned(), value)).to_vec()
    }
}
