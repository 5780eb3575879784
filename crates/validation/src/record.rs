//! Recorded results: stores the results of the cases in `validation/results.json`, so that tests can check the page
//! without running all cases.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use floatgate_workload::synthetic;
use serde::{Deserialize, Serialize};

use crate::case::{Case, Group, Run};
use crate::simulate;

/// Results, indexed by `group/case`.
pub type Results = BTreeMap<String, Recorded>;

/// Result of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Digest of the simulated settings. If it differs from that of the case, the result is outdated.
    pub input: String,
    /// Keys of the result that are compared, with their values.
    pub metrics: BTreeMap<String, f64>,
}

const PATH: &str = "validation/results.json";

/// Reads the recorded results. Returns an empty map if there is no file yet.
pub fn read(root: &Path) -> Result<Results> {
    match std::fs::read_to_string(root.join(PATH)) {
        Ok(text) => serde_json::from_str(&text).context(PATH),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Results::new()),
        Err(error) => Err(error).context(PATH),
    }
}

/// Writes the results to the file.
pub fn write(root: &Path, results: &Results) -> Result<()> {
    let text = serde_json::to_string_pretty(results)? + "\n";
    std::fs::write(root.join(PATH), text).context(PATH)
}

/// Returns the key of a case in the results.
pub fn key(group: &Group, case: &Case) -> String {
    format!("{}/{}", group.id, case.name)
}

/// Returns the digest of everything that determines a result, except the simulator.
pub fn input(run: &Run) -> String {
    let job = synthetic::digest(&run.workload, run.seed);
    format!("{}-{job}-{}", run.config.digest(), synthetic::digest(&run.precondition, run.seed))
}

/// Runs a case, and returns its result.
pub fn take(root: &Path, group: &Group, case: &Case) -> Result<Recorded> {
    let named = || key(group, case);
    let run = group.run(root, case).with_context(named)?;
    let summary = simulate::summary(&run).with_context(named)?;
    let metrics = case.expect.iter().map(|expected| {
        let value = simulate::metric(&summary, &expected.metric).with_context(named)?;
        Ok((expected.metric.clone(), value))
    });
    Ok(Recorded { input: input(&run), metrics: metrics.collect::<Result<_>>()? })
}
