//! The files that a run reads and writes: no output may be an input or another output.

use std::path::Path;

use floatgate_core::config;
use floatgate_core::precondition::Precondition;
use floatgate_core::workload::synthetic::model::looks_like_model;
use floatgate_core::workload::synthetic::{self, Planned};
use floatgate_core::workload::trace::words::are_words;

use super::RunArgs;
use super::session::Chosen;
use super::trace::{STDIN, STDIN_FILE};
use crate::failure::Failure;
use crate::output::{Named, files_of, keep_apart};

/// Refuses a run whose outputs would overwrite what it reads, or each other. `seeds` are those of a run with several.
pub fn check(args: &RunArgs, chosen: &Chosen, seeds: Option<&[u64]>) -> Result<(), Failure> {
    let mut files = Files { chosen, seed: args.seed, inputs: Vec::new(), outputs: Vec::new() };
    if config::builtin(&chosen.called).is_none() && Path::new(&chosen.called).is_file() {
        files.inputs.push(Named::new("the device file", &chosen.called));
    }
    if let Some(columns) = args.trace.columns_file() {
        files.inputs.push(Named::new("--columns", columns));
    }
    if let Some(state) = &args.load_state {
        files.inputs.push(Named::new("--load-state", state));
    }
    args.workloads.iter().try_for_each(|text| files.workload("the workload", text, args))?;
    if let (Some(_), Some(log)) = (seeds, files.outputs.first()) {
        let why = "each of the seeds would write it, and only that of the last would be left";
        return Err(Failure::mistake(format!("{}: {why}; give one --seed, or leave the key out", log.called)));
    }
    if args.precondition.parse::<Precondition>().is_err() && args.load_state.is_none() {
        files.workload("--precondition", &args.precondition, args)?;
    }
    if let Some(state) = &args.save_state {
        files.outputs.push(Named::new("--save-state", state));
    }
    if let Some(out) = &args.out {
        match seeds {
            None => files.outputs.extend(files_of(out)),
            Some(seeds) => {
                files.outputs.extend(seeds.iter().flat_map(|seed| files_of(&out.join(format!("seed-{seed}")))));
            }
        }
    }
    keep_apart(&files.inputs, &files.outputs)
}

/// Input and output files of a run.
struct Files<'a> {
    chosen: &'a Chosen,
    seed: u64,
    inputs: Vec<Named>,
    outputs: Vec<Named>,
}

impl Files<'_> {
    /// Adds the files of a workload. What cannot be read has none: opening it says why.
    fn workload(&mut self, kind: &str, text: &str, args: &RunArgs) -> Result<(), Failure> {
        let bytes = self.chosen.config.logical_bytes();
        let path = Path::new(text);
        let planned = if synthetic::looks_like_job(text) {
            synthetic::plan_text(text, bytes, self.seed)
        } else if synthetic::is_job_file(path) {
            let mut read = |path: &Path| {
                self.inputs.push(Named::new("the job file", path));
                synthetic::text_of(path)
            };
            synthetic::plan_file(path, &mut read, bytes, self.seed)
        } else {
            let path = match text {
                STDIN => STDIN_FILE.into(),
                _ if are_words(text) && !looks_like_model(path) => args.trace.words(text)?.path,
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
