//! Validation page: writes `docs/validation.md`, which compares the values of the sources with Floatgate's results.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::case::{Case, Group};
use crate::record::{self, Results};

/// Path of the page, relative to the root of the repository.
pub const PATH: &str = "docs/validation.md";

/// Path of the file with the commands, relative to the root of the repository.
pub const COMMANDS: &str = "validation/commands.txt";

/// Comparison of one value.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Group, case and description of the value.
    pub name: String,
    /// Value of the source.
    pub theirs: f64,
    /// Value of Floatgate.
    pub ours: f64,
    /// Maximum relative deviation. `None` if the two are known to differ.
    pub tolerance: Option<f64>,
}

impl Row {
    /// Returns the deviation of Floatgate's value, relative to the value of the source.
    pub fn deviation(&self) -> f64 {
        (self.ours - self.theirs) / self.theirs
    }

    /// Returns an error text if the deviation is too large.
    pub fn fault(&self) -> Option<String> {
        let allowed = self.tolerance?;
        let off = self.deviation();
        // NaN is an error, too.
        (off.is_nan() || off.abs() > allowed).then(|| {
            let Row { name, theirs, ours, .. } = self;
            format!(
                "{name}: {}, expected {}: deviation {}, allowed {}",
                number(*ours),
                number(*theirs),
                percent(off),
                percent(allowed)
            )
        })
    }
}

/// Returns the rows of a case. Fails if its result is not recorded, or was recorded with other settings.
pub fn rows(root: &Path, group: &Group, case: &Case, results: &Results) -> Result<Vec<Row>> {
    let key = record::key(group, case);
    let run = group.run(root, case).with_context(|| key.clone())?;
    let recorded = results.get(&key).filter(|recorded| recorded.input == record::input(&run));
    let recorded =
        recorded.with_context(|| format!("{key}: no result is recorded for these settings: run `make validate`"))?;
    let row = |expected: &crate::case::Expectation| {
        let kept = recorded.metrics.get(&expected.metric);
        let kept =
            kept.with_context(|| format!("{key}: `{}` is not recorded: run `make validate`", expected.metric))?;
        Ok(Row {
            name: format!("{key}, {}", expected.what),
            theirs: expected.value(&run.config),
            ours: kept * expected.times,
            tolerance: expected.tolerance,
        })
    };
    case.expect.iter().map(row).collect()
}

/// Returns the text of the page.
pub fn page(root: &Path, groups: &[Group], results: &Results) -> Result<String> {
    let mut overview = String::new();
    let mut sections = String::new();
    for group in groups {
        let mut all = Vec::new();
        for case in &group.cases {
            all.push(rows(root, group, case, results)?);
        }
        let rows: Vec<&Row> = all.iter().flatten().collect();
        let judged: Vec<&&Row> = rows.iter().filter(|row| row.tolerance.is_some()).collect();
        let worst = judged.iter().map(|row| row.deviation().abs()).fold(0.0, f64::max);
        let differ = rows.len() - judged.len();
        let Group { title, .. } = group;
        let link = anchor(title);
        writeln!(
            overview,
            "|[{title}](#{link})|{}|{}|{differ}|{}|",
            judged.len(),
            percent(worst),
            group.missing.len()
        )?;
        section(group, &all, &mut sections)?;
    }
    Ok(format!("{INTRODUCTION}\n{overview}{sections}"))
}

/// Returns the text of the file with the commands that give the values of the page.
pub fn commands(root: &Path, groups: &[Group]) -> Result<String> {
    let mut text =
        "# Commands of docs/validation.md. Written by `make validate`: changes made here are lost.\n".to_owned();
    for group in groups {
        writeln!(text, "\n## {}", group.title)?;
        for case in &group.cases {
            // Line breaks between jobs do not change them.
            let command = group.run(root, case)?.command().replace(" ; ", " ;\n    ");
            writeln!(text, "\n# {}\n{command}", case.name)?;
        }
    }
    Ok(text)
}

const INTRODUCTION: &str = "# Validation

<!-- Written by `make validate` from validation/*.toml: changes made here are lost. -->

This page compares Floatgate with papers, closed forms and other simulators, for the same device and workload.
[Fidelity](fidelity.md) compares it with measured drives.
`make validate` runs the cases of [validation/](../validation) and writes this page. `make test` runs the quick ones. Both
fail if a deviation is not allowed. [validation/commands.txt](../validation/commands.txt) has the commands, which give these
values to the last digit on every machine.

*Deviation* is (Floatgate - source) / source. *Differs* marks a known difference, which the notes explain.

|Source|Values that agree|Largest deviation|Values that differ|Not reproduced|
|---|--:|--:|--:|--:|";

fn section(group: &Group, rows: &[Vec<Row>], out: &mut String) -> Result<()> {
    writeln!(out, "\n## {}\n\n*{}*\n\n{}\n", group.title, group.source.trim(), group.text.trim())?;
    writeln!(out, "|Case|Value|Source|From|Floatgate|Deviation|Allowed|\n|---|---|--:|---|--:|--:|--:|")?;
    for (case, rows) in group.cases.iter().zip(rows) {
        for (position, (row, expected)) in rows.iter().zip(&case.expect).enumerate() {
            let name = if position == 0 { case.name.as_str() } else { "" };
            let allowed = row.tolerance.map_or("differs".to_owned(), percent);
            let (theirs, ours, off) = (number(row.theirs), number(row.ours), signed(row.deviation()));
            let (what, from) = (&expected.what, &expected.from);
            writeln!(out, "|{name}|{what}|{theirs}|{from}|{ours}|{off}|{allowed}|")?;
        }
    }
    let notes: Vec<&Case> = group.cases.iter().filter(|case| !case.note.is_empty()).collect();
    if !notes.is_empty() {
        writeln!(out)?;
    }
    for case in notes {
        writeln!(out, "* **{}**: {}", case.name, case.note.trim().replace('\n', "\n  "))?;
    }
    if !group.missing.is_empty() {
        writeln!(out, "\nNot reproduced:\n")?;
    }
    for missing in &group.missing {
        writeln!(out, "* **{}**: {}", missing.what, missing.why.trim().replace('\n', "\n  "))?;
    }
    Ok(())
}

/// Returns the anchor of a heading, for links.
fn anchor(title: &str) -> String {
    let kept = title.to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Formats a number with six digits, without trailing zeros.
fn number(value: f64) -> String {
    let mut digits = 5;
    let mut bound = 10.0;
    while digits > 0 && value.abs() >= bound {
        digits -= 1;
        bound *= 10.0;
    }
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.01 { format!("{percent:.3}%") } else { format!("{percent:.2}%") }
}

fn signed(share: f64) -> String {
    // A deviation that rounds to 0 has no sign.
    if (share * 1e4).abs() < 0.5 { "0.00%".to_owned() } else { format!("{:+.2}%", share * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_anchors_are_formatted() {
        assert_eq!(
            [130.6, 61_255.741, 0.725_274_7, 2.0, 1e7].map(number),
            ["130.6", "61255.7", "0.72527", "2", "10000000"]
        );
        assert_eq!([0.000_04, -0.0123, 0.1].map(signed), ["0.00%", "-1.23%", "+10.00%"]);
        assert_eq!(anchor("Hu et al. 2013, Section 5.1"), "hu-et-al-2013-section-51");
    }

    #[test]
    fn a_deviation_above_the_tolerance_is_an_error() {
        let row = |ours, tolerance| Row { name: "x".into(), theirs: 100.0, ours, tolerance };
        assert_eq!(row(101.0, Some(0.01)).fault(), None);
        assert_eq!(row(101.1, Some(0.01)).fault().unwrap(), "x: 101.1, expected 100: deviation 1.10%, allowed 1.00%");
        assert!(row(f64::NAN, Some(0.01)).fault().is_some());
        assert_eq!(row(150.0, None).fault(), None);
    }
}
