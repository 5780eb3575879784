//! Files that a run reads and writes: checks that no output is an input or another output.

use std::path::Path;

use floatgate_core::device_file::Builtin;
use floatgate_core::preparation::Precondition;
use floatgate_workload::objects::{self, ObjectWords};
use floatgate_workload::synthetic::model::looks_like_model;
use floatgate_workload::synthetic::{self, Planned};
use floatgate_workload::trace::words::are_words;

use crate::device::{DeviceSource, LoadedDevice};
use crate::failure::Failure;
use crate::output::{LIFETIME, Named, files_of, refuse_overwrites};
use crate::spec::{RunSpec, StateSpec};
use crate::traces::{STDIN, STDIN_FILE, Traces};

/// Refuses a run whose outputs would overwrite its inputs, or each other. `seeds` are the seeds of a run with several.
pub fn check(spec: &RunSpec, traces: &Traces, chosen: &LoadedDevice, seeds: Option<&[u64]>) -> Result<(), Failure> {
    let mut files = Files::of(chosen, spec.seed);
    if let Some(columns) = traces.columns_file() {
        files.inputs.push(Named::new("--columns", columns));
    }
    if let StateSpec::Saved(state) = &spec.state {
        files.inputs.push(Named::new("--load-state", state));
    }
    spec.workloads.iter().try_for_each(|text| files.workload("the workload", text, traces))?;
    if let (Some(_), Some(log)) = (seeds, files.outputs.first()) {
        let why = "each of the seeds would write it, and only the file of the last would remain";
        return Err(Failure::mistake(format!("{}: {why}; give one --seed, or omit the key", log.called)));
    }
    if let Some(text) = spec.state.precondition().filter(|text| text.parse::<Precondition>().is_err()) {
        files.workload("--precondition", text, traces)?;
    }
    if let Some(state) = &spec.save_state {
        files.outputs.push(Named::new("--save-state", state));
    }
    if let Some(out) = &spec.out {
        match seeds {
            None if spec.until.is_some() => {
                files.outputs.push(Named::new("lifetime.json of --out", out.join(LIFETIME)))
            }
            None => files.outputs.extend(files_of(out)),
            Some(seeds) => {
                files.outputs.extend(seeds.iter().flat_map(|seed| files_of(&out.join(format!("seed-{seed}")))));
            }
        }
    }
    refuse_overwrites(&files.inputs, &files.outputs)
}

/// Returns the files that are read to bring a device into this state: the device file, and the file of a workload.
pub fn of_state(chosen: &LoadedDevice, requested: &str, seed: u64) -> Result<Vec<Named>, Failure> {
    let mut files = Files::of(chosen, seed);
    if requested.parse::<Precondition>().is_err() {
        files.workload("the precondition", requested, &Traces::default())?;
    }
    Ok(files.inputs)
}

/// Input and output files of a run.
struct Files<'a> {
    chosen: &'a LoadedDevice,
    seed: u64,
    inputs: Vec<Named>,
    outputs: Vec<Named>,
}

impl<'a> Files<'a> {
    /// Creates a list with the device file, if there is one.
    fn of(chosen: &'a LoadedDevice, seed: u64) -> Files<'a> {
        let file = match &chosen.spec.source {
            DeviceSource::Named(path) if Builtin::named(path).is_none() && Path::new(path).is_file() => Some(path),
            _ => None,
        };
        let inputs = file.map(|path| Named::new("the device file", path)).into_iter().collect();
        Files { chosen, seed, inputs, outputs: Vec::new() }
    }

    /// Adds the files of a workload. A workload that cannot be read adds none, because opening it reports the error.
    fn workload(&mut self, kind: &str, text: &str, traces: &Traces) -> Result<(), Failure> {
        let bytes = self.chosen.config.logical_bytes();
        let path = Path::new(text);
        if traces.table(text).is_some() {
            return Ok(());
        }
        let planned = if synthetic::looks_like_job(text) {
            synthetic::plan_text(text, bytes, self.seed)
        } else if synthetic::is_job_file(path) {
            let mut read = |path: &Path| {
                self.inputs.push(Named::new("the job file", path));
                synthetic::text_of(path)
            };
            synthetic::plan_file(path, &mut read, &traces.spec().changes(), bytes, self.seed)
        } else {
            let path = match text {
                STDIN => STDIN_FILE.into(),
                _ if objects::are_words(text) => ObjectWords::read(text).map_err(Failure::mistake)?.path,
                _ if are_words(text) && !looks_like_model(path) => traces.words(text)?.path,
                _ => path.to_owned(),
            };
            self.inputs.push(Named::new(kind, path));
            return Ok(());
        };
        planned.into_iter().flatten().for_each(|job| self.job(&job));
        Ok(())
    }

    fn job(&mut self, job: &Planned) {
        if let Some(trace) = job.trace() {
            self.inputs.push(Named::new("the trace of read_iolog", trace));
        }
        if let Some(log) = job.log() {
            self.outputs.push(Named { called: log.place.clone(), path: log.path.clone().into() });
        }
    }
}
