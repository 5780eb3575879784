//! From what the user calls a workload to sources of requests.

use std::path::Path;

use floatgate_core::config::DeviceConfig;
use floatgate_core::metrics::summary::Named;
use floatgate_core::sim::rng::Rng;
use floatgate_core::workload::Source;
use floatgate_core::workload::synthetic;
use floatgate_core::workload::synthetic::model::{Model, Modelled, looks_like_model};
use floatgate_core::workload::trace::words::{TraceWords, are_words};
use floatgate_core::workload::trace::{Trace, TraceOptions};

use super::trace::TraceArgs;
use crate::failure::Failure;

/// A workload, and where its requests come from.
pub struct Workload {
    /// The sources; they run beside each other.
    pub sources: Vec<Box<dyn Source>>,
    name: String,
    /// Of jobs; that of a trace is known when it has been read.
    digest: Option<String>,
    /// Of several workloads together: the digest of each, where it is known, and its number of sources.
    parts: Vec<(Option<String>, usize)>,
}

impl Workload {
    /// Opens a job or a trace for a device.
    pub fn open(text: &str, args: &TraceArgs, device: &DeviceConfig, seed: u64) -> Result<Workload, Failure> {
        let name = text.to_owned();
        if synthetic::looks_like_job(text) {
            let jobs = synthetic::parse(text, device.logical_bytes(), seed).map_err(Failure::mistake)?;
            let sources = jobs.into_iter().map(|job| Box::new(job) as Box<dyn Source>).collect();
            return Ok(Workload::new(sources, name, Some(synthetic::digest(text, seed))));
        }
        if looks_like_model(Path::new(text)) {
            return Workload::model(text, &model_name(text), device, seed);
        }
        if are_words(text) {
            let words = TraceWords::read(text, &args.options()).map_err(Failure::mistake)?;
            let trace = words.open(device.logical_sectors(), words.name.as_deref()).map_err(Failure::mistake)?;
            return Ok(Workload::new(vec![Box::new(trace)], name, None));
        }
        if text.trim().is_empty() {
            return Err(Failure::mistake(
                "the workload is empty: give a job, like 'rw=randwrite bs=4k iodepth=32', or the path of a trace",
            ));
        }
        let pattern = text.split_whitespace().find(|word| synthetic::is_pattern(word));
        if let (Some(pattern), false) = (pattern, Path::new(text).exists()) {
            let words: Vec<String> = text.split_whitespace().map(|word| with_key(word, pattern)).collect();
            let job = words.join(" ");
            return Err(Failure::mistake(format!("`{text}` is no file; as a job it is written `{job}`")));
        }
        if !Path::new(text).exists() && text.contains('=') {
            return Err(Failure::mistake(format!(
                "`{text}` is no file, and no job: a job says what to do with rw=..., all its words between one pair of \
                 quotes; a trace in words starts with trace=..."
            )));
        }
        let trace =
            Trace::open(Path::new(text), &args.options(), device.logical_sectors()).map_err(Failure::mistake)?;
        Ok(Workload::new(vec![Box::new(trace)], name, None))
    }

    /// Opens a model, whose stream is called `name`.
    pub(super) fn model(path: &str, name: &str, device: &DeviceConfig, seed: u64) -> Result<Workload, Failure> {
        let model = Model::read(Path::new(path)).map_err(Failure::mistake)?;
        let source = Modelled::new(&model, name, device.logical_sectors(), seed).map_err(Failure::mistake)?;
        let digest = synthetic::digest(&model.to_json(), seed);
        Ok(Workload::new(vec![Box::new(source)], path.to_owned(), Some(digest)))
    }

    pub(super) fn new(sources: Vec<Box<dyn Source>>, name: String, digest: Option<String>) -> Workload {
        Workload { sources, name, digest, parts: Vec::new() }
    }

    /// Several workloads as one, under this name.
    pub(super) fn join(workloads: Vec<Workload>, name: String) -> Workload {
        let parts = workloads.iter().map(|one| (one.digest.clone(), one.sources.len())).collect();
        let sources = workloads.into_iter().flat_map(|one| one.sources).collect();
        Workload { sources, name, digest: None, parts }
    }

    /// Name and digest; complete when the workload has been run.
    pub fn named(&self) -> Named {
        let of_sources = |sources: &[Box<dyn Source>]| {
            let digests = sources.iter().filter_map(|source| source.digest());
            digests.map(|digest| format!("{digest:016x}")).collect::<Vec<_>>().join("-")
        };
        let mut left = &self.sources[..];
        let of_parts = self.parts.iter().map(|(digest, count)| {
            let (sources, rest) = left.split_at(*count);
            left = rest;
            digest.clone().unwrap_or_else(|| of_sources(sources))
        });
        let digest = match (&self.digest, self.parts.is_empty()) {
            (Some(digest), _) => digest.clone(),
            (None, true) => of_sources(&self.sources),
            (None, false) => of_parts.collect::<Vec<_>>().join("-"),
        };
        Named { name: self.name.clone(), digest }
    }

    /// The names of all streams, by the number in the requests.
    pub fn streams(&self) -> Vec<String> {
        self.sources.iter().flat_map(|source| source.streams()).collect()
    }

    /// What the sources do, in a line each.
    pub fn descriptions(&self) -> Vec<String> {
        self.sources.iter().map(|source| source.description()).collect()
    }

    /// What the sources have noticed so far.
    pub fn warnings(&self) -> Vec<String> {
        self.sources.iter().flat_map(|source| source.warnings()).collect()
    }
}

/// The pattern with its key before it, or another word.
fn with_key(word: &str, pattern: &str) -> String {
    if word == pattern { format!("rw={word}") } else { word.to_owned() }
}

/// The name of a model's stream: that of its file without the endings.
pub fn model_name(path: &str) -> String {
    TraceWords::plain(path, &TraceOptions::default()).stem()
}

/// Whether what stands for a workload or a state is a trace.
pub fn is_trace(text: &str) -> bool {
    !synthetic::looks_like_job(text)
        && !looks_like_model(Path::new(text))
        && text.parse::<floatgate_core::precondition::Precondition>().is_err()
}

/// Whether what is no known state can be a workload.
pub fn looks_like_workload(text: &str) -> bool {
    synthetic::looks_like_job(text) || are_words(text) || Path::new(text).exists()
}

/// The seed of a workload to precondition with, in a run of this seed.
pub fn preconditioning_seed(seed: u64) -> u64 {
    Rng::new(seed, "precondition/workload").next_u64()
}
