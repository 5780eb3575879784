//! Simulation of a case.

use anyhow::{Context, Result, anyhow};
use floatgate_core::preparation::{precondition, precondition_with};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::source::Source;
use floatgate_core::simulation::{Device, NoWatcher, Options, Outcome, RunError};
use floatgate_core::summary::{About, Named, Precondition, Summary};
use floatgate_workload::synthetic;
use serde_json::Value;

use crate::case::Run;

/// Runs a simulation, and returns the result as `floatgate run --json` prints it.
pub fn summary(run: &Run) -> Result<Value> {
    let options = Options { seed: run.seed, ..Options::default() };
    let mut device = Device::new(run.config.clone(), options).map_err(|error| anyhow!("{error}"))?;
    let precondition = prepare(run, &mut device)?;
    let mut sources = jobs(&run.workload, &device, run.seed)?;
    let outcome = measure(&mut device, &mut sources)?;
    let named = |name: &str, digest| Named { name: name.to_owned(), digest };
    let about = About {
        seed: run.seed,
        device: named(&run.device, run.config.digest()),
        workload: named(&run.workload, synthetic::digest(&run.workload, run.seed)),
        precondition,
        warnings: Vec::new(),
        arguments: Vec::new(),
        base: None,
    };
    Ok(serde_json::to_value(Summary::new(about, &outcome.measurement(&device)))?)
}

/// Runs the sources on the device. No other function here calls the replay loop.
fn measure(device: &mut Device, sources: &mut [Box<dyn Source>]) -> Result<Outcome, RunError> {
    floatgate_core::simulation::run(device, sources, &mut NoWatcher)
}

fn jobs(text: &str, device: &Device, seed: u64) -> Result<Vec<Box<dyn Source>>> {
    let jobs = synthetic::parse(text, device.config().logical_bytes(), seed)?;
    Ok(jobs.into_iter().map(|job| job.source).collect())
}

/// Preconditions the device: to a named state, or by running a job.
fn prepare(run: &Run, device: &mut Device) -> Result<Precondition> {
    let reached = match run.precondition.parse() {
        Ok(state) => precondition(device, state, run.seed, &mut |_| true).map_err(anyhow::Error::msg)?,
        Err(error) => {
            let text: String = error;
            if !synthetic::looks_like_job(&run.precondition) {
                return Err(anyhow!(text));
            }
            // The command also derives this seed from that of the run.
            let seed = Rng::new(run.seed, "precondition/workload").next_u64();
            let mut sources = jobs(&run.precondition, device, seed)?;
            precondition_with(device, &mut sources, &mut |_| true)?
        }
    };
    Ok(Precondition { requested: run.precondition.clone(), reached })
}

/// Returns the number at a key with dots.
pub fn metric(summary: &Value, key: &str) -> Result<f64> {
    let pointer = format!("/{}", key.replace('.', "/"));
    summary.pointer(&pointer).and_then(Value::as_f64).with_context(|| format!("`{key}` is not a number in the result"))
}
