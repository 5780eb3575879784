//! Relations between jobs: names, clones, areas of the device, and the order of jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::areas::Areas;
use super::options::{ExitWhat, Options};
use super::place::Place;
use super::replay::Recipe;
use super::section::{Log, MAX_JOBS, Section, all_errors, too_many};
use super::stream::Synthetic;
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
    /// Plans a job of a section.
    fn new(section: &Section, place: Place, seed: u64) -> Result<Planned, String> {
        let options = &section.options;
        let Some(path) = &options.read_iolog else {
            return Synthetic::new(options, place, seed).map(|job| Planned::Made(Box::new(job)));
        };
        let from = section.error(format!("`read_iolog={path}`")).0;
        Recipe::new(options, path, from, place).map(|recipe| Planned::Replayed(Box::new(recipe)))
    }

    /// Returns the log of the job's requests. `None` if they are not logged.
    pub fn log(&self) -> Option<&Log> {
        match self {
            Planned::Made(job) => job.place.write_iolog.as_ref(),
            Planned::Replayed(recipe) => recipe.place.write_iolog.as_ref(),
        }
    }

    fn place_mut(&mut self) -> &mut Place {
        match self {
            Planned::Made(job) => &mut job.place,
            Planned::Replayed(recipe) => &mut recipe.place,
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
pub fn plan(mut sections: Vec<Section>, device_bytes: u64, seed: u64) -> Result<Vec<Planned>, SourceError> {
    let count: u64 = sections.iter().map(|section| u64::from(section.options.numjobs.unwrap_or(1))).sum();
    if count > MAX_JOBS as u64 {
        let many = sections.iter().find(|section| u64::from(section.options.numjobs.unwrap_or(1)) > MAX_JOBS as u64);
        return Err(many.map_or(SourceError(too_many()), |section| section.error(format!("`numjobs`: {}", too_many()))));
    }
    let areas = Areas::new(&sections, device_bytes)?;
    for section in &mut sections {
        section.limit_depth();
        section.warn_of_names();
    }
    let mut names = BTreeSet::new();
    let mut logs: BTreeMap<String, String> = BTreeMap::new();
    let mut planned = Vec::new();
    // Jobs by name, for `wait_for`.
    let mut ranges: BTreeMap<String, Vec<Range<usize>>> = BTreeMap::new();
    let mut group = 0;
    let mut groups = Groups::default();
    let mut notes = notes(&sections);
    let mut errors = Vec::new();
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
            let name = free_name(numbered(&name), &mut names);
            let write_iolog = log_of(&section, numbered);
            if let Some(Log { path, .. }) = &write_iolog
                && let Some(other) = logs.insert(path.clone(), name.clone())
            {
                return Err(error(format!("`write_iolog={path}` is that of `{other}` too; give each job its own")));
            }
            let mut warnings = if clone == 0 { section.warnings.clone() } else { Vec::new() };
            warnings.append(&mut notes);
            let place = Place {
                name,
                clone,
                areas: areas.of(&section, clone),
                waits_for: waits_for.clone(),
                ends: 0..0,
                together: 0..0,
                start_delay: Time(options.startdelay.unwrap_or(0)),
                write_iolog,
                follows_fio: section.follows_fio(),
                warnings,
            };
            match Planned::new(&section, place, seed) {
                Ok(job) => planned.push(job),
                Err(why) => {
                    errors.push(error(why).0);
                    break;
                }
            }
        }
        ranges.entry(name).or_default().push(first..planned.len());
        groups.add(section, first, planned.len() - first);
    }
    groups.set(&mut planned)?;
    if errors.is_empty() { Ok(planned) } else { Err(all_errors(errors)) }
}

/// Groups of jobs, for `exitall` and for `steadystate` with `group_reporting`.
#[derive(Default)]
struct Groups {
    /// True if a job has `exitall`, which holds for all jobs, as in fio.
    exits: bool,
    /// Positions of the first jobs of the groups, and of the parts between stonewalls.
    starts: [Vec<usize>; 2],
    /// Sections, and the number of jobs of each.
    sections: Vec<(Section, usize)>,
}

impl Groups {
    /// Adds a section, whose `count` jobs begin at position `first`.
    fn add(&mut self, section: Section, first: usize, count: usize) {
        let options = &section.options;
        self.exits |= options.exitall;
        for (starts, is_start) in
            self.starts.iter_mut().zip([options.stonewall || options.new_group, options.stonewall])
        {
            if is_start {
                starts.push(first);
            }
        }
        self.sections.push((section, count));
    }

    /// Sets the jobs that each job ends, and those that are judged together.
    fn set(&self, planned: &mut [Planned]) -> Result<(), SourceError> {
        let all = planned.len();
        let within = |starts: &[usize], index: usize| {
            let from = starts.iter().rev().find(|start| **start <= index).copied().unwrap_or(0);
            from..starts.iter().find(|start| **start > index).copied().unwrap_or(all)
        };
        let of_jobs = || self.sections.iter().flat_map(|(section, count)| std::iter::repeat_n(section, *count));
        for (index, (job, section)) in planned.iter_mut().zip(of_jobs()).enumerate() {
            let options = &section.options;
            let group = within(&self.starts[0], index);
            if options.group_reporting && options.steadystate.is_some() {
                let differs = |other: &Section| !other.options.is_judged_like(options);
                if of_jobs().skip(group.start).take(group.len()).any(differs) {
                    let why = "`steadystate` with group_reporting needs the same options in all jobs of the group; \
                               separate others with new_group";
                    return Err(section.error(why));
                }
                job.place_mut().together = group.clone();
            }
            if self.exits {
                job.place_mut().ends = match options.exit_what.unwrap_or(ExitWhat::Group) {
                    ExitWhat::All => 0..all,
                    ExitWhat::Group => group,
                    ExitWhat::Stonewall => within(&self.starts[1], index),
                };
            }
        }
        Ok(())
    }
}

/// Returns a name that no other job has, and adds it to the names. As in fio, several jobs may have one name.
fn free_name(name: String, names: &mut BTreeSet<String>) -> String {
    let free = match names.contains(&name) {
        false => name,
        true => (2..).map(|n| format!("{name}#{n}")).find(|name| !names.contains(name)).unwrap_or(name),
    };
    names.insert(free.clone());
    free
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

/// Returns a warning about keys without an effect, and one about keys that are ignored on request.
fn notes(sections: &[Section]) -> Vec<String> {
    let keys: BTreeSet<&str> =
        sections.iter().flat_map(|section| section.options.without_meaning.iter().copied()).collect();
    let list: Vec<&str> = keys.into_iter().collect();
    let (have, they) = if list.len() == 1 { ("has", "it is") } else { ("have", "they are") };
    let mut notes = Vec::new();
    if !list.is_empty() {
        notes.push(format!(
            "{} {have} no meaning for a simulated device, which has no host; {they} left out",
            list.join(", ")
        ));
    }
    let ignored: BTreeSet<&str> =
        sections.iter().flat_map(|section| section.options.ignored.iter().map(String::as_str)).collect();
    if !ignored.is_empty() {
        let list: Vec<&str> = ignored.into_iter().collect();
        notes.push(format!(
            "{} ignored because of --ignore-unknown: the requests may differ from fio's",
            list.join(", ")
        ));
    }
    notes
}
