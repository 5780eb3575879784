//! Jobs in a single line: `key=value` words, with jobs separated by `;`.

use std::collections::BTreeMap;

use super::keys;
use super::options::Options;
use super::section::{MAX_JOBS, Section, too_many};
use crate::sim::source::SourceError;
use crate::sim::text::shown;

/// Returns the texts of the jobs.
pub fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(';').filter(|part| !part.trim().is_empty())
}

/// Parses the jobs of a text, after `others` jobs of other workloads. Errors name the job, the key and the value.
pub fn read(text: &str, others: usize) -> Result<Vec<Section>, SourceError> {
    let mut jobs = Vec::new();
    for part in parts(text) {
        let name = format!("job{}", others + jobs.len() + 1);
        let options = read_job(part).map_err(|why| SourceError(format!("{name}: {why}")))?;
        let place = options.name.clone().unwrap_or_else(|| name.clone());
        jobs.push(Section { options, place, name, keys: BTreeMap::new(), in_file: false, warnings: Vec::new() });
        if jobs.len() > MAX_JOBS {
            return Err(SourceError(too_many()));
        }
    }
    if jobs.is_empty() {
        return Err(SourceError("the workload is empty; write a job like `rw=randwrite bs=4k iodepth=32`".to_owned()));
    }
    Ok(jobs)
}

/// Parses one job.
fn read_job(text: &str) -> Result<Options, String> {
    let mut options = Options::default();
    let mut seen = vec![None; keys::KEYS.len()];
    // The base of suffixes applies to the whole job, so it is parsed first.
    for base in [true, false] {
        for word in text.split_whitespace() {
            let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            if (name == "kb_base") != base {
                continue;
            }
            if let Some(index) = keys::find(name)
                && let Some(earlier) = seen[index].replace(word)
            {
                return Err(format!("`{}` and `{}` set the same option; leave one out", shown(earlier), shown(word)));
            }
            keys::set(&mut options, name, value).map_err(keys::Refusal::text)?;
        }
    }
    Ok(options)
}
