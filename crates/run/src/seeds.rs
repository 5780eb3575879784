//! Series of runs that differ only in their seed.

use std::fs;
use std::path::{Path, PathBuf};

use floatgate_core::summary::Summary;

use crate::device::LoadedDevice;
use crate::failure::Failure;
use crate::files;
use crate::output::{Lock, SUMMARY, seeds_in};
use crate::shared::SharedState;
use crate::spec::RunSpec;
use crate::traces::Traces;

/// Runs of one specification with several seeds. Each has a directory of its own below that of
/// the specification, if there is one.
pub struct SeedRuns {
    specs: Vec<RunSpec>,
    shared: Option<SharedState>,
    _lock: Option<Lock>,
}

impl SeedRuns {
    /// Checks a specification that has seeds, and checks and locks its directory.
    pub fn open(spec: &RunSpec, traces: &Traces, chosen: &LoadedDevice) -> Result<SeedRuns, Failure> {
        spec.check()?;
        let Some(seeds) = &spec.seeds else {
            return Err(Failure::mistake("a series of runs needs --seeds"));
        };
        let all = seeds.all().to_vec();
        files::check(spec, traces, chosen, Some(&all))?;
        let lock = spec.out.as_deref().map(Lock::of).transpose().map_err(Failure::Fault)?;
        if let Some(out) = &spec.out {
            refuse_others(spec, chosen, out, &all)?;
        }
        let of_seed = |seed| spec.out.as_deref().map(|out| place(out, seed));
        let one = |seed| RunSpec { seed, seeds: None, out: of_seed(seed), ..spec.clone() };
        let shared = if all.len() > 1 { SharedState::new(chosen, &spec.state) } else { None };
        Ok(SeedRuns { specs: all.into_iter().map(one).collect(), shared, _lock: lock })
    }

    /// Returns the specification of each run.
    pub fn specs(&self) -> &[RunSpec] {
        &self.specs
    }

    /// Returns the state that the runs share, if it does not depend on the seed.
    pub fn shared(&self) -> Option<&SharedState> {
        self.shared.as_ref()
    }
}

/// Returns the directory for the result of a seed.
fn place(out: &Path, seed: u64) -> PathBuf {
    out.join(format!("seed-{seed}"))
}

/// Refuses a directory with results that `floatgate compare` would mix with those of this run. These are the result of
/// a run without `--seeds`, and results of seeds that this run does not write, from another device, workload or
/// version.
fn refuse_others(spec: &RunSpec, chosen: &LoadedDevice, out: &Path, seeds: &[u64]) -> Result<(), Failure> {
    let name = out.display();
    if out.join(SUMMARY).exists() {
        return Err(Failure::mistake(format!(
            "--out {name} has the result of a run without --seeds, which `floatgate compare` would read instead of \
             these; give another directory, or remove it"
        )));
    }
    let digest = chosen.digest();
    let is_other = |seed: &u64| {
        let text = fs::read_to_string(place(out, *seed).join(SUMMARY)).unwrap_or_default();
        let same = |summary: Summary| {
            let again = RunSpec { seed: *seed, ..spec.clone() }.arguments();
            summary.config_digest == digest
                && summary.version == env!("CARGO_PKG_VERSION")
                && summary.arguments == again
        };
        !Summary::from_json(&text).is_ok_and(same)
    };
    let others = seeds_in(out).into_iter().filter(|seed| !seeds.contains(seed));
    let others: Vec<String> = others.filter(is_other).map(|seed| format!("{name}/seed-{seed}")).collect();
    let (Some(first), more) = (others.first(), others.len().saturating_sub(1)) else { return Ok(()) };
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Err(Failure::mistake(format!(
        "--out {name} has {first}{more} of another run, which this one would not replace and `floatgate compare` would \
         read with it; remove the old results, or give another directory"
    )))
}
