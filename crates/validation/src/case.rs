//! Validation cases: reads the files of `validation/`.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use floatgate_core::device_file::{self, DeviceConfig};
use serde::Deserialize;

use crate::closed_form::ClosedForm;

/// File of cases: values of one source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Name of the file without its extension. Not in the file itself.
    #[serde(skip)]
    pub id: String,
    /// Heading in the page.
    pub title: String,
    /// Source of the values.
    pub source: String,
    /// Description of the comparison, in Markdown.
    pub text: String,
    /// Settings that all cases share.
    #[serde(flatten)]
    pub common: Setting,
    /// Cases.
    #[serde(rename = "case")]
    pub cases: Vec<Case>,
    /// Values of the source that Floatgate does not reproduce.
    #[serde(default, rename = "missing")]
    pub missing: Vec<Missing>,
}

/// Settings of a simulation: the arguments of `floatgate run`. Settings that a case omits are those of its group.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Setting {
    /// Built-in device, or path of a device file relative to the root of the repository.
    pub device: Option<String>,
    /// Overrides, each `path=value`. Those of a case apply after those of its group.
    #[serde(default)]
    pub set: Vec<String>,
    /// State before the run. Default: `fill`, as in the command.
    pub precondition: Option<String>,
    /// Workload: a job in fio syntax.
    pub workload: Option<String>,
    /// Number of copies of the workload that run concurrently. `{4n}` is replaced with 0, 4, 8 ... in the first,
    /// second, third copy.
    pub streams: Option<u32>,
    /// Seed. Default: 1.
    pub seed: Option<u64>,
}

/// Simulation with its expected results.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Name of the case.
    pub name: String,
    /// True if `make test` runs the case, because it takes well under a second.
    #[serde(default)]
    pub quick: bool,
    /// Settings of the case.
    #[serde(flatten)]
    pub own: Setting,
    /// Expected results.
    pub expect: Vec<Expectation>,
    /// Note on the comparison, such as the cause of a deviation, in Markdown.
    #[serde(default)]
    pub note: String,
}

/// Value of a result, with the value of the source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Description of the value, with its unit.
    pub what: String,
    /// Key in the result (`docs/reference/summary.md`), with dots.
    pub metric: String,
    /// Factor for the value in the result before the comparison.
    #[serde(default = "one")]
    pub times: f64,
    /// Value of the source, if it is a number.
    pub value: Option<f64>,
    /// Value of the source, if it is a closed form.
    pub closed_form: Option<ClosedForm>,
    /// Maximum deviation, relative to the value of the source. `None` if the two are known to differ for the reason in
    /// the note of the case.
    pub tolerance: Option<f64>,
    /// Location of the value in the source, or its calculation.
    pub from: String,
}

fn one() -> f64 {
    1.0
}

/// Value that is not reproduced.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    /// Description of the value in the source.
    pub what: String,
    /// Reason why Floatgate has no value to compare it with.
    pub why: String,
}

/// Complete settings of a simulation.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name or path of the device.
    pub device: String,
    /// Overrides.
    pub set: Vec<String>,
    /// State before the run.
    pub precondition: String,
    /// Workload.
    pub workload: String,
    /// Seed.
    pub seed: u64,
    /// Checked configuration of the device.
    pub config: DeviceConfig,
}

/// Reads all groups, in the order of their file names.
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
            bail!("two cases have the name `{}`", case.name);
        }
        for expected in &case.expect {
            if expected.value.is_some() == expected.closed_form.is_some() {
                bail!("{}, {}: expected either `value` or `closed_form`", case.name, expected.what);
            }
            if expected.tolerance.is_none() && case.note.is_empty() {
                bail!(
                    "{}, {}: expected a `tolerance`, or a `note` with the reason for the deviation",
                    case.name,
                    expected.what
                );
            }
        }
    }
    Ok(group)
}

impl Group {
    /// Returns the settings of one case.
    pub fn run(&self, root: &Path, case: &Case) -> Result<Run> {
        let either = |own: &Option<String>, common: &Option<String>| own.clone().or_else(|| common.clone());
        let device = either(&case.own.device, &self.common.device).context("no `device`")?;
        let set: Vec<String> = self.common.set.iter().chain(&case.own.set).cloned().collect();
        let place = if device.contains('/') { root.join(&device).display().to_string() } else { device.clone() };
        Ok(Run {
            config: device_file::load(&place, &set)?,
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
    /// Returns the command that gives the same result.
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

/// Returns `streams` copies of a workload. Replaces each `{Kn}` with K times the number of the copy.
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

/// Quotes a word for the shell if necessary.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "=./:,%_-".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

impl Expectation {
    /// Returns the value of the source.
    pub fn value(&self, device: &DeviceConfig) -> f64 {
        let closed = self.closed_form.as_ref().map(|form| form.value(device));
        closed.or(self.value).unwrap_or(f64::NAN)
    }
}
