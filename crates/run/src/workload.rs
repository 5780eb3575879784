//! Workload of a run: opens jobs, models and traces as sources of requests.

use std::path::{Path, PathBuf};

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::preparation::Precondition;
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::source::Source;
use floatgate_core::summary::{Named, ObjectUse};
use floatgate_workload::objects::{self, ObjectWords};
use floatgate_workload::synthetic::model::{Model, Modeled, looks_like_model};
use floatgate_workload::synthetic::{self, Changes, Job};
use floatgate_workload::trace::words::{TraceWords, are_words};
use floatgate_workload::trace::{TableSource, Trace, TraceOptions};

use crate::blocks;
use crate::failure::Failure;
use crate::frontend::{Frontend, unless_stopped};
use crate::import;
use crate::iolog;
use crate::traces::{STDIN, Traces};

/// Workload with its sources of requests.
pub struct Workload {
    /// Sources, which run concurrently.
    pub sources: Vec<Box<dyn Source>>,
    name: String,
    /// Digest of jobs and models. `None` for joined workloads, and for a trace, whose digest is known when it has been
    /// read.
    digest: Option<String>,
    /// Logs that the jobs request with `write_iolog`. Indexed by source.
    logs: Vec<Option<synthetic::Log>>,
    /// Logs that are being written.
    begun: Vec<iolog::Shared>,
    /// Digest, if known, and number of sources of each joined workload. Empty for a single workload.
    parts: Vec<(Option<String>, usize)>,
}

impl Workload {
    /// Opens a job or a trace for a device, whose requests are whole logical blocks.
    pub fn open(text: &str, traces: &Traces, device: &DeviceConfig, seed: u64) -> Result<Workload, Failure> {
        Workload::open_any(text, traces, device, seed).map(|workload| workload.in_blocks_of(device))
    }

    /// Widens all requests to whole logical blocks of a device.
    pub(super) fn in_blocks_of(mut self, device: &DeviceConfig) -> Workload {
        blocks::widen(&mut self.sources, device);
        self
    }

    /// Opens a job or a trace for a device.
    fn open_any(text: &str, traces: &Traces, device: &DeviceConfig, seed: u64) -> Result<Workload, Failure> {
        let name = text.to_owned();
        if let Some((table, options)) = traces.table(text) {
            let source = TableSource::new(table.clone(), options.clone(), device.logical_sectors());
            return Ok(Workload::new(vec![Box::new(source.map_err(Failure::mistake)?)], name, None));
        }
        if synthetic::looks_like_job(text) {
            return Workload::words(0, text, traces, device, seed);
        }
        if synthetic::is_job_file(Path::new(text)) {
            let changes = traces.spec().changes();
            let read = synthetic::read_file(Path::new(text), &changes, device.logical_bytes(), seed, traces.stop());
            let (jobs, digest) = read.map_err(Failure::mistake)?;
            return Ok(Workload::of_jobs(jobs, name, digest));
        }
        if looks_like_model(Path::new(text)) {
            return Workload::model(text, &model_name(text), device, seed);
        }
        if objects::are_words(text) {
            let words = ObjectWords::read(text).map_err(Failure::mistake)?;
            let source = words.open(device.logical_sectors(), traces.stop()).map_err(Failure::mistake)?;
            return Ok(Workload::new(vec![Box::new(source)], name, None));
        }
        if are_words(text) || text == STDIN {
            let words = traces.words(text)?;
            let trace = words.open(device.logical_sectors(), words.name.as_deref()).map_err(Failure::mistake)?;
            return Ok(Workload::new(vec![Box::new(trace)], name, None));
        }
        if text.trim().is_empty() {
            return Err(Failure::mistake(
                "the workload is empty: give a job, such as 'rw=randwrite bs=4k iodepth=32', or the path of a trace",
            ));
        }
        let pattern = text.split_whitespace().find(|word| synthetic::is_pattern(word));
        if let (Some(pattern), false) = (pattern, Path::new(text).exists()) {
            let words: Vec<String> = text.split_whitespace().map(|word| with_key(word, pattern)).collect();
            let job = words.join(" ");
            return Err(Failure::mistake(format!("`{text}` is not a file; to run it as a job, write `{job}`")));
        }
        if !Path::new(text).exists() && text.contains('=') {
            return Err(Failure::mistake(format!(
                "`{text}` is neither a file nor a job: a job needs rw=..., with all its options in one pair of quotes; \
                 a trace with options starts with trace=..."
            )));
        }
        if traces.spec().format.is_none() && objects::is_object_trace(Path::new(text)) {
            return Err(Failure::mistake(format!(
                "`{text}` is a trace of objects, which have no addresses; to place them on the device, write \
                 `objects={text}` (docs/reference/objects.md)"
            )));
        }
        let trace = Trace::open(Path::new(text), &traces.options(), device.logical_sectors());
        let trace =
            trace.map_err(|error| import::remedy(text).map_or_else(|| Failure::mistake(error), Failure::mistake))?;
        Ok(Workload::new(vec![Box::new(trace)], name, None))
    }

    /// Opens the jobs that a text describes. `others` is the number of jobs in the texts before it.
    pub(super) fn words(
        others: usize,
        text: &str,
        traces: &Traces,
        device: &DeviceConfig,
        seed: u64,
    ) -> Result<Workload, Failure> {
        let jobs = synthetic::parse_behind(others, text, device.logical_bytes(), seed, traces.stop());
        let jobs = jobs.map_err(Failure::mistake)?;
        Ok(Workload::of_jobs(jobs, text.to_owned(), synthetic::digest(text, seed)))
    }

    fn of_jobs(jobs: Vec<Job>, name: String, digest: String) -> Workload {
        let (sources, logs) = jobs.into_iter().map(|job| (job.source, job.write_iolog)).unzip();
        Workload { logs, ..Workload::new(sources, name, Some(digest)) }
    }

    /// Creates the logs that the jobs request.
    pub fn begin_logs(&mut self, frontend: &dyn Frontend) -> Result<(), Failure> {
        for (source, log) in self.sources.iter_mut().zip(&self.logs) {
            if let Some(requested) = log {
                let log = iolog::attach(source, requested, &frontend.wait());
                self.begun.push(log.map_err(|error| unless_stopped(error, frontend))?);
            }
        }
        Ok(())
    }

    /// Refuses jobs with logs, because preconditioning has no simulated time.
    pub fn without_logs(self) -> Result<Workload, Failure> {
        match self.logs.iter().flatten().next() {
            None => Ok(self),
            Some(log) => Err(Failure::mistake(format!(
                "{}: a workload for preconditioning is served without simulated time and cannot be logged; omit the \
                 key",
                log.place
            ))),
        }
    }

    /// Completes the logs of [`Workload::begin_logs`].
    pub fn finish_logs(&mut self, frontend: &dyn Frontend) -> Result<(), Failure> {
        let mut logs = self.begun.iter().filter_map(|log| log.borrow_mut().take());
        logs.try_for_each(iolog::Log::finish).map_err(|error| unless_stopped(error, frontend))
    }

    /// Opens a model. `name` is the name of its stream.
    pub(super) fn model(path: &str, name: &str, device: &DeviceConfig, seed: u64) -> Result<Workload, Failure> {
        let model = Model::read(Path::new(path)).map_err(Failure::mistake)?;
        let source = Modeled::new(&model, name, device.logical_sectors(), seed).map_err(Failure::mistake)?;
        let digest = synthetic::digest(&model.to_json(), seed);
        Ok(Workload::new(vec![Box::new(source)], path.to_owned(), Some(digest)))
    }

    pub(super) fn new(sources: Vec<Box<dyn Source>>, name: String, digest: Option<String>) -> Workload {
        let logs = vec![None; sources.len()];
        Workload { sources, name, digest, logs, begun: Vec::new(), parts: Vec::new() }
    }

    /// Joins several workloads to one with this name.
    pub(super) fn join(workloads: Vec<Workload>, name: String) -> Workload {
        let parts = workloads.iter().map(|one| (one.digest.clone(), one.sources.len())).collect();
        let mut all = Workload { parts, ..Workload::new(Vec::new(), name, None) };
        for one in workloads {
            let before = all.sources.len();
            all.sources.extend(one.sources);
            all.sources[before..].iter_mut().for_each(|source| source.shift_positions(before));
            all.logs.extend(one.logs);
        }
        all
    }

    /// Returns the name and the digest. The digest is complete after the workload has been run.
    pub fn named(&self) -> Named {
        let whole = [(self.digest.clone(), self.sources.len())];
        let parts = if self.parts.is_empty() { &whole[..] } else { &self.parts };
        let mut left = &self.sources[..];
        let mut digests = Vec::new();
        for (digest, count) in parts {
            let (sources, rest) = left.split_at(*count);
            left = rest;
            digests.extend(digest.clone());
            digests.extend(sources.iter().filter_map(|source| source.digest()).map(|digest| format!("{digest:016x}")));
        }
        Named { name: self.name.clone(), digest: digests.join("-") }
    }

    /// Returns the names of all streams. Indexed by the number of the stream.
    pub fn streams(&self) -> Vec<String> {
        self.sources.iter().flat_map(|source| source.streams()).collect()
    }

    /// Returns a one-line description of each source.
    pub fn descriptions(&self) -> Vec<String> {
        self.sources.iter().map(|source| source.description()).collect()
    }

    /// Returns the counters of the sources that access objects, with the names of their streams.
    pub fn objects(&self) -> Vec<ObjectUse> {
        let of = |source: &dyn Source| Some(ObjectUse::new(source.streams().join(", "), source.objects()?));
        self.sources.iter().filter_map(|source| of(&**source)).collect()
    }

    /// Returns the warnings of the sources so far.
    pub fn warnings(&self) -> Vec<String> {
        self.sources.iter().flat_map(|source| source.warnings()).collect()
    }
}

/// Fails if the options of a workload are invalid on every device. Opens neither traces nor models.
pub fn check(text: &str, changes: &Changes) -> Result<(), Failure> {
    /// A device on which no region is too large.
    const LARGE: u64 = 1 << 40;
    if synthetic::looks_like_job(text) {
        return synthetic::plan_text(text, LARGE, 1).map(drop).map_err(Failure::mistake);
    }
    let path = Path::new(text);
    if synthetic::is_job_file(path) {
        let planned = synthetic::plan_file(path, &mut synthetic::text_of, changes, LARGE, 1);
        return planned.map(drop).map_err(Failure::mistake);
    }
    if objects::are_words(text) {
        return ObjectWords::read(text).map(drop).map_err(Failure::mistake);
    }
    if are_words(text) {
        TraceWords::read(text, &TraceOptions::default()).map(drop).map_err(Failure::mistake)
    } else {
        Ok(())
    }
}

/// Returns a note if a text of jobs among the workloads keeps a depth that fio would limit, because it names no engine.
pub fn depth_note(workloads: &[String]) -> Option<&'static str> {
    let keeps = |text: &String| synthetic::looks_like_job(text) && synthetic::keeps_depth(text);
    workloads.iter().any(keeps).then_some(
        "iodepth applies although the job names no ioengine; fio's default, psync, would limit it to 1 \
         (docs/reference/synthetic.md)",
    )
}

/// Returns the pattern with its key `rw`, or another word unchanged.
fn with_key(word: &str, pattern: &str) -> String {
    if word == pattern { format!("rw={word}") } else { word.to_owned() }
}

/// Returns the name of a model's stream: the name of its file without extensions.
pub fn model_name(path: &str) -> String {
    TraceWords::plain(path, &TraceOptions::default()).stem()
}

/// Returns `true` if the text of a workload or of a precondition is a trace.
pub fn is_trace(text: &str) -> bool {
    !synthetic::looks_like_job(text)
        && !objects::are_words(text)
        && !synthetic::is_job_file(Path::new(text))
        && !looks_like_model(Path::new(text))
        && text.parse::<floatgate_core::preparation::Precondition>().is_err()
}

/// Returns `true` if the text of a workload is the path of a job file.
pub fn is_job_file(text: &str) -> bool {
    !synthetic::looks_like_job(text) && synthetic::is_job_file(Path::new(text))
}

/// Returns the path of a trace that is a pipe, which cannot be read twice. Returns `None` for other workloads, and for
/// standard input, `-`, which is kept in a file.
pub fn pipe(text: &str, options: &TraceOptions) -> Option<PathBuf> {
    let path = if are_words(text) { TraceWords::read(text, options).ok()?.path } else { PathBuf::from(text) };
    let is_pipe = path != Path::new(STDIN) && is_trace(text) && path.exists() && !path.is_file() && !path.is_dir();
    is_pipe.then_some(path)
}

/// Fails if a precondition is neither a state nor a workload, or if its options are invalid on every device.
pub fn check_precondition(text: &str) -> Result<(), Failure> {
    match text.parse::<Precondition>() {
        Ok(_) => Ok(()),
        Err(_) if looks_like_workload(text) => check(text, &Changes { ignore_unknown: true, ..Changes::default() }),
        Err(error) => Err(Failure::mistake(error)),
    }
}

/// Returns `true` if a text that is not the name of a state may be a workload, also one whose file is missing.
pub fn looks_like_workload(text: &str) -> bool {
    let path = Path::new(text);
    let is_path = !text.contains('=') && (path.extension().is_some() || path.components().count() > 1);
    let words = are_words(text) || objects::are_words(text);
    synthetic::looks_like_job(text) || words || text == STDIN || is_path || path.exists()
}

/// Returns the seed of a workload for preconditioning, in a run with this seed.
pub fn preconditioning_seed(seed: u64) -> u64 {
    Rng::new(seed, "precondition/workload").next_u64()
}
