//! What is compared: the files of `validation/`, as data.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use floatgate_core::config::{self, DeviceConfig};
use serde::Deserialize;

use crate::closed_form::ClosedForm;

/// A file: figures of one source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its file's name without the ending; not in the file.
    #[serde(skip)]
    pub id: String,
    /// Heading of the page.
    pub title: String,
    /// Where the figures are from.
    pub source: String,
    /// What is compared and how, in Markdown.
    pub text: String,
    /// What all its cases have in common.
    #[serde(flatten)]
    pub common: Setting,
    /// The cases.
    #[serde(rename = "case")]
    pub cases: Vec<Case>,
    /// What the source has and Floatgate does not reproduce.
    #[serde(default, rename = "missing")]
    pub missing: Vec<Missing>,
}

/// What is simulated: the arguments of `floatgate run`. What a case leaves out is its group's.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Setting {
    /// A built-in device, or the path of a device file from the root of the repository.
    pub device: Option<String>,
    /// Overrides, each `path=value`; those of a case come after those of its group.
    #[serde(default)]
    pub set: Vec<String>,
    /// The state before the run; `fill` where none is given, as in the command.
    pub precondition: Option<String>,
    /// The workload: a job in fio's words.
    pub workload: Option<String>,
    /// How often the workload runs side by side; `{4n}` in it is 0, 4, 8 ... in the first, second, third one.
    pub streams: Option<u32>,
    /// The seed; 1 where none is given.
    pub seed: Option<u64>,
}

/// One simulation, and what is expected of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What the case is called.
    pub name: String,
    /// Whether `make test` runs it: it takes well under a second.
    #[serde(default)]
    pub quick: bool,
    /// Its own part of the setting.
    #[serde(flatten)]
    pub own: Setting,
    /// What is expected.
    pub expect: Vec<Expectation>,
    /// Why it differs, or what has to be known to compare, in Markdown.
    #[serde(default)]
    pub note: String,
}

/// One figure of a result, and the figure of the source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// What it is, with its unit, for people.
    pub what: String,
    /// The key in the result (`docs/reference/summary.md`), with dots.
    pub metric: String,
    /// Ours is the key's value times this.
    #[serde(default = "one")]
    pub times: f64,
    /// Theirs: a figure.
    pub value: Option<f64>,
    /// Theirs: a closed form.
    pub closed_form: Option<ClosedForm>,
    /// Deviation that is allowed, as a share of theirs. Without one the two are known to differ, and the case's note
    /// says why.
    pub tolerance: Option<f64>,
    /// Where in the source the figure is, or what it is made of.
    pub from: String,
}

fn one() -> f64 {
    1.0
}

/// A figure that is not reproduced.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    /// What the source has.
    pub what: String,
    /// Why Floatgate has no figure to set beside it.
    pub why: String,
}

/// All that a simulation needs.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name or path of the device.
    pub device: String,
    /// The overrides.
    pub set: Vec<String>,
    /// The state before.
    pub precondition: String,
    /// The workload.
    pub workload: String,
    /// The seed.
    pub seed: u64,
    /// The device, checked.
    pub config: DeviceConfig,
}

/// Reads all groups, in the order of their files.
pub fn read(root: &Path) -> Result<Vec<Group>> {
    let directory = root.join("validation");
    let mut paths: Vec<_> = std::fs::read_dir(&directory)
        .with_context(|| format!("cannot read {}", directory.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    paths.iter().map(|path| read_group(path).with_context(|| path.display().to_string())).collect()
}

fn read_group(path: &Path) -> Result<Group> {
    let mut group: Group = toml::from_str(&std::fs::read_to_string(path)?)?;
    group.id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    for (index, case) in group.cases.iter().enumerate() {
        if group.cases[..index].iter().any(|other| other.name == case.name) {
            bail!("two cases are called `{}`", case.name);
        }
        for expected in &case.expect {
            if expected.value.is_some() == expected.closed_form.is_some() {
                bail!("{}, {}: give `value` or `closed_form`, and not both", case.name, expected.what);
            }
            if expected.tolerance.is_none() && case.note.is_empty() {
                bail!("{}, {}: give a `tolerance`, or a `note` that says why there is none", case.name, expected.what);
            }
        }
    }
    Ok(group)
}

impl Group {
    /// The simulation of one of its cases.
    pub fn run(&self, root: &Path, case: &Case) -> Result<Run> {
        let either = |own: &Option<String>, common: &Option<String>| own.clone().or_else(|| common.clone());
        let device = either(&case.own.device, &self.common.device).context("no `device`")?;
        let set: Vec<String> = self.common.set.iter().chain(&case.own.set).cloned().collect();
        let place = match device.contains('/') {
            true => root.join(&device).display().to_string(),
            false => device.clone(),
        };
        Ok(Run {
            config: config::load(&place, &set)?,
            device,
            set,
            precondition: either(&case.own.precondition, &self.common.precondition).unwrap_or_else(|| "fill".into()),
            workload: {
                let workload = either(&case.own.workload, &self.common.workload).context("no `workload`")?;
                side_by_side(&workload, case.own.streams.or(self.common.streams).unwrap_or(1))?
            },
            seed: case.own.seed.or(self.common.seed).unwrap_or(1),
        })
    }
}

impl Run {
    /// The command that gives the same result.
    pub fn command(&self) -> String {
        let mut words = vec!["floatgate run".to_owned(), self.device.clone()];
        words.extend(self.set.iter().map(|set| format!("--set {}", quoted(set))));
        if self.precondition != "fill" {
            words.push(format!("--precondition {}", quoted(&self.precondition)));
        }
        if self.seed != 1 {
            words.push(format!("--seed {}", self.seed));
        }
        words.push(quoted(&self.workload));
        words.join(" ")
    }
}

/// A workload so many times, with its multiples of the number of the stream filled in.
fn side_by_side(workload: &str, streams: u32) -> Result<String> {
    let one = |stream: u32| {
        let mut text = String::new();
        let mut rest = workload;
        while let Some((before, after)) = rest.split_once('{') {
            let (factor, behind) = after.split_once("n}").context("a `{` without `n}`")?;
            write!(text, "{before}{}", factor.parse::<u32>()? * stream)?;
            rest = behind;
        }
        Ok(text + rest)
    };
    Ok((0..streams).map(one).collect::<Result<Vec<_>>>()?.join(" ; "))
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "=./:,%_-".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

impl Expectation {
    /// Theirs.
    pub fn theirs(&self, device: &DeviceConfig) -> f64 {
        let closed = self.closed_form.as_ref().map(|form| form.value(device));
        closed.or(self.value).unwrap_or(f64::NAN)
    }
}
