//! Several workloads that run concurrently, each with streams of its own.

use std::path::Path;

use floatgate_core::device_file::DeviceConfig;
use floatgate_workload::synthetic;
use floatgate_workload::synthetic::model::looks_like_model;
use floatgate_workload::trace::words::{TraceWords, are_words};

use crate::failure::Failure;
use crate::traces::{STDIN, Traces};
use crate::workload::{Workload, model_name};

/// Opens the workloads of a run. If there are several, their streams get unique names.
pub fn open(texts: &[String], traces: &Traces, device: &DeviceConfig, seed: u64) -> Result<Workload, Failure> {
    if let [text] = texts {
        return Workload::open(text, traces, device, seed);
    }
    let mut names: Vec<String> = Vec::new();
    let mut workloads = Vec::new();
    let mut jobs = 0;
    for text in texts {
        let workload = match words(text, traces)? {
            Some(words) => {
                let name = words.name.clone().unwrap_or_else(|| free_name(&words.stem(), &names));
                let trace = words.open(device.logical_sectors(), Some(&name)).map_err(Failure::mistake)?;
                Workload::new(vec![Box::new(trace)], text.clone(), None).in_blocks_of(device)
            }
            None if looks_like_model(Path::new(text)) => {
                Workload::model(text, &free_name(&model_name(text), &names), device, seed)?.in_blocks_of(device)
            }
            // Jobs are numbered consecutively over all texts.
            None if synthetic::looks_like_job(text) => {
                let workload = Workload::words(jobs, text, traces, device, seed)?;
                jobs += synthetic::jobs_in(text);
                workload.in_blocks_of(device)
            }
            None => Workload::open(text, traces, device, seed)?,
        };
        for name in workload.streams() {
            if names.contains(&name) {
                return Err(Failure::mistake(format!(
                    "`{text}`: another workload has a stream of the name `{name}`; rename this one with name=..."
                )));
            }
            names.push(name);
        }
        workloads.push(workload);
    }
    // Requests have 16 bits for the number of their stream.
    if names.len() > usize::from(u16::MAX) {
        return Err(Failure::mistake(format!(
            "too many streams: {}, at most {} can run concurrently",
            names.len(),
            u16::MAX
        )));
    }
    Ok(Workload::join(workloads, texts.join(" + ")))
}

/// Returns the options of a trace, also of one given by its path only. Returns `None` if the workload is not a trace.
fn words(text: &str, traces: &Traces) -> Result<Option<TraceWords>, Failure> {
    if are_words(text) || text == STDIN {
        return traces.words(text).map(Some);
    }
    let path = Path::new(text);
    let is_trace = !synthetic::looks_like_job(text) && !looks_like_model(path) && path.exists();
    Ok(is_trace.then(|| TraceWords::plain(text, &traces.options())))
}

/// Returns the name, with a number appended if it is taken.
fn free_name(name: &str, taken: &[String]) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or_else(|| name.to_owned())
}
