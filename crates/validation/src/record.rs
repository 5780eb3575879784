//! What came out of the cases, kept in `validation/results.json` so that the page can be checked without running all.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use floatgate_workload::synthetic;
use serde::{Deserialize, Serialize};

use crate::case::{Case, Group, Run};
use crate::simulate;

/// The results by `group/case`.
pub type Results = BTreeMap<String, Recorded>;

/// What came out of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Digest of what was simulated; another one than the case's now says that this is stale.
    pub input: String,
    /// The keys of the result that are compared, with their values.
    pub metrics: BTreeMap<String, f64>,
}

const PATH: &str = "validation/results.json";

/// Reads what is kept; nothing where there is no file yet.
pub fn read(root: &Path) -> Result<Results> {
    match std::fs::read_to_string(root.join(PATH)) {
        Ok(text) => serde_json::from_str(&text).context(PATH),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Results::new()),
        Err(error) => Err(error).context(PATH),
    }
}

/// Keeps results.
pub fn write(root: &Path, results: &Results) -> Result<()> {
    let text = serde_json::to_string_pretty(results)? + "\n";
    std::fs::write(root.join(PATH), text).context(PATH)
}

/// The name of a case among the results.
pub fn key(group: &Group, case: &Case) -> String {
    format!("{}/{}", group.id, case.name)
}

/// The digest of all that a result follows from, the simulator aside.
pub fn input(run: &Run) -> String {
    let job = synthetic::digest(&run.workload, run.seed);
    format!("{}-{job}-{}", run.config.digest(), synthetic::digest(&run.precondition, run.seed))
}

/// Runs a case.
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
