//! Relations between jobs: names, clones, areas of the device, and the order of jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::SECTOR;
use super::options::{Amount, Options};
use super::place::{Area, Place};
use super::replay::Recipe;
use super::section::{Log, MAX_JOBS, Section, too_many};
use super::stream::Synthetic;
use super::texts::bytes_text;
use crate::sim::source::SourceError;
use crate::sim::time::Time;

/// A job before its trace is opened.
#[derive(Debug)]
pub enum Planned {
    /// The job generates its requests.
    Made(Box<Synthetic>),
    /// The job replays a trace.
    Replayed(Box<Recipe>),
}

impl Planned {
    /// Returns the log of the job's requests. `None` if they are not logged.
    pub fn log(&self) -> Option<&Log> {
        match self {
            Planned::Made(job) => job.place.write_iolog.as_ref(),
            Planned::Replayed(recipe) => recipe.place.write_iolog.as_ref(),
        }
    }

    /// Returns the path of the trace that the job replays, if there is one.
    pub fn trace(&self) -> Option<&std::path::Path> {
        match self {
            Planned::Made(_) => None,
            Planned::Replayed(recipe) => Some(recipe.path()),
        }
    }
}

/// Plans the jobs of the sections for a device of `device_bytes`.
pub fn plan(sections: Vec<Section>, device_bytes: u64, seed: u64) -> Result<Vec<Planned>, SourceError> {
    let count: u64 = sections.iter().map(|section| u64::from(section.options.numjobs.unwrap_or(1))).sum();
    if count > MAX_JOBS as u64 {
        let many = sections.iter().find(|section| u64::from(section.options.numjobs.unwrap_or(1)) > MAX_JOBS as u64);
        return Err(many.map_or(SourceError(too_many()), |section| section.error(format!("`numjobs`: {}", too_many()))));
    }
    let areas = areas(&sections, device_bytes)?;
    let mut names = BTreeSet::new();
    let mut logs: BTreeMap<String, String> = BTreeMap::new();
    let mut planned = Vec::new();
    // Jobs by name, for `wait_for`.
    let mut ranges: BTreeMap<String, Vec<Range<usize>>> = BTreeMap::new();
    let mut group = 0;
    let mut without_meaning = without_meaning(&sections);
    for section in sections {
        let options = &section.options;
        let error = |why: String| section.error(why);
        let first = planned.len();
        if options.stonewall {
            group = first;
        }
        let waits_for = waits_for(options, &ranges, group).map_err(error)?;
        let name = options.name.clone().unwrap_or_else(|| section.name.clone());
        let clones = options.numjobs.unwrap_or(1);
        for clone in 0..clones {
            let numbered = |text: &str| if clones == 1 { text.to_owned() } else { format!("{text}.{clone}") };
            let name = numbered(&name);
            if !names.insert(name.clone()) {
                return Err(error(format!("two jobs have the name `{name}`; give each its own with name=...")));
            }
            let write_iolog = log_of(&section, numbered);
            if let Some(Log { path, .. }) = &write_iolog
                && let Some(other) = logs.insert(path.clone(), name.clone())
            {
                return Err(error(format!("`write_iolog={path}` is that of `{other}` too; give each job its own")));
            }
            let mut warnings = if clone == 0 { section.warnings.clone() } else { Vec::new() };
            warnings.extend(without_meaning.take());
            let area = options.filename.as_ref().and_then(|name| areas.get(name)).copied();
            let area = area.unwrap_or(Area { start: 0, bytes: device_bytes, named: false });
            let start_delay = Time(options.startdelay.unwrap_or(0));
            let place = Place { name, clone, area, waits_for: waits_for.clone(), start_delay, write_iolog, warnings };
            planned.push(match &options.read_iolog {
                None => Planned::Made(Box::new(Synthetic::new(options, place, seed).map_err(error)?)),
                Some(path) => {
                    let from = section.error(format!("`read_iolog={path}`")).0;
                    Planned::Replayed(Box::new(Recipe::new(options, path, from, place).map_err(error)?))
                }
            });
        }
        ranges.entry(name).or_default().push(first..planned.len());
    }
    Ok(planned)
}

/// Returns the log of a job. `numbered` gives each clone its own path.
fn log_of(section: &Section, numbered: impl Fn(&str) -> String) -> Option<Log> {
    let path = numbered(section.options.write_iolog.as_deref()?);
    let place = section.error(format!("`write_iolog={path}`")).0;
    Some(Log { path, place })
}

/// Returns the jobs that must end before a job starts. `group` is the position of the first job in its group.
fn waits_for(
    options: &Options,
    ranges: &BTreeMap<String, Vec<Range<usize>>>,
    group: usize,
) -> Result<Range<usize>, String> {
    let Some(name) = &options.wait_for else { return Ok(0..group) };
    match ranges.get(name).map(Vec::as_slice) {
        Some([range]) if range.end <= group => Ok(0..group),
        // The other jobs of the group have waited for the jobs before the group.
        Some([range]) => Ok(range.clone()),
        Some(_) => Err(format!("`wait_for={name}`: several jobs have that name; give each its own with name=...")),
        None => Err(format!("`wait_for={name}`: no job before this one has that name")),
    }
}

/// Returns a warning about keys without a meaning for a simulated device.
fn without_meaning(sections: &[Section]) -> Option<String> {
    let keys: BTreeSet<&str> =
        sections.iter().flat_map(|section| section.options.without_meaning.iter().copied()).collect();
    let list: Vec<&str> = keys.into_iter().collect();
    let (have, they) = if list.len() == 1 { ("has", "it is") } else { ("have", "they are") };
    (!list.is_empty()).then(|| {
        format!("{} {have} no meaning for a simulated device, which has no host; {they} left out", list.join(", "))
    })
}

/// Alignment of the start of named areas.
const ALIGNMENT: u64 = 1 << 20;

/// Returns the areas by name, placed one after the other. Empty if all jobs use the same area.
fn areas(sections: &[Section], device_bytes: u64) -> Result<BTreeMap<String, Area>, SourceError> {
    let mut areas = BTreeMap::new();
    let jobs = || sections.iter().filter(|section| section.options.read_iolog.is_none());
    let names: BTreeSet<Option<&String>> = jobs().map(|section| section.options.filename.as_ref()).collect();
    if names.len() < 2 {
        return Ok(areas);
    }
    let mut order: Vec<&str> = Vec::new();
    let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
    for section in jobs() {
        let error = |why: String| section.error(why);
        let Some(name) = &section.options.filename else {
            let why =
                "no `filename`, where other jobs have one: give all jobs one, or none to work on the whole device";
            return Err(error(why.to_owned()));
        };
        let size = extent(&section.options).map_err(|why| error(format!("`filename={name}`: {why}")))?;
        if !sizes.contains_key(name.as_str()) {
            order.push(name);
        }
        let largest = sizes.entry(name).or_default();
        *largest = size.max(*largest);
    }
    let mut start = 0u64;
    for name in order {
        let bytes = sizes[name];
        let end = start.checked_add(bytes).filter(|end| *end <= device_bytes).ok_or_else(|| {
            SourceError(format!(
                "`filename={name}`: the areas lie side by side, and {} from {} on do not fit the device of {}",
                bytes_text(bytes),
                bytes_text(start),
                bytes_text(device_bytes)
            ))
        })?;
        areas.insert(name.to_owned(), Area { start, bytes, named: true });
        start = end.checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
    }
    Ok(areas)
}

/// Returns the size of a job's area according to its options.
fn extent(options: &Options) -> Result<u64, String> {
    if let Some(bytes) = options.filesize {
        return Ok(bytes);
    }
    let bytes = |amount: Option<Amount>, key: &str| match amount {
        None => Ok(0),
        Some(Amount::Bytes(bytes)) => Ok(bytes),
        Some(Amount::Share(..)) => Err(format!("`{key}` in percent needs `filesize`")),
    };
    let size = match options.size {
        None => Err("areas of several names need a size; give filesize, or size in bytes".to_owned()),
        size => bytes(size, "size"),
    }?;
    let steps = u64::from(options.numjobs.unwrap_or(1)) - 1;
    bytes(options.offset_increment, "offset_increment")?
        .checked_mul(steps)
        .and_then(|steps| steps.checked_add(bytes(options.offset, "offset").ok()?))
        .and_then(|offset| offset.checked_add(size))
        .filter(|end| end.is_multiple_of(SECTOR))
        .ok_or_else(|| "`offset` and `size` are beyond 64 bits".to_owned())
}
