//! Results by column, for programs that analyse data: Parquet files, and CSV.

use std::path::Path;

use anyhow::Result;

mod csv;
mod pages;
mod record;
pub mod requests;
pub mod series;
pub mod spool;
pub mod table;

/// What a file of results is of. It is kept in the file, so that a copy tells by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Digest of the device's configuration, with overrides: `config_digest` of the summary.
    pub config_digest: String,
    /// Name of the device.
    pub device: String,
    /// Name of the workload.
    pub workload: String,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// Key of the digest that identifies the run, which is known at its end.
const RUN: &str = "floatgate.run";

/// Returns what a file keeps of its run when it is completed; nothing of a run without a result.
fn of_run(run: Option<&str>) -> Vec<(String, String)> {
    run.map(|run| (RUN.to_owned(), run.to_owned())).into_iter().collect()
}

/// Returns the digest of the run that a Parquet file holds.
///
/// # Errors
///
/// It is not a Parquet file.
pub fn run_in(path: &Path) -> Result<Option<String>> {
    table::run_in(path, RUN)
}

impl Origin {
    /// As keys and values, for a file of the form `schema`.
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
