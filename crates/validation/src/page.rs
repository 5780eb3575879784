//! `docs/validation.md`: theirs beside ours.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::case::{Case, Group};
use crate::record::{self, Results};

/// Where the page is, from the root of the repository.
pub const PATH: &str = "docs/validation.md";

/// One figure beside the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Group and case, and what is compared.
    pub name: String,
    /// The source's figure.
    pub theirs: f64,
    /// Floatgate's.
    pub ours: f64,
    /// What is allowed; `None` where the two are known to differ.
    pub tolerance: Option<f64>,
}

impl Row {
    /// The share of theirs by which ours differs.
    pub fn deviation(&self) -> f64 {
        (self.ours - self.theirs) / self.theirs
    }

    /// What is wrong, if anything is.
    pub fn fault(&self) -> Option<String> {
        let allowed = self.tolerance?;
        let off = self.deviation();
        // A figure that is no number is a fault too.
        (off.is_nan() || off.abs() > allowed).then(|| {
            let Row { name, theirs, ours, .. } = self;
            format!(
                "{name}: {}, theirs is {}: {} off, allowed {}",
                number(*ours),
                number(*theirs),
                percent(off),
                percent(allowed)
            )
        })
    }
}

/// The rows of a case. Fails where its result is not kept, or is that of another case.
pub fn rows(root: &Path, group: &Group, case: &Case, results: &Results) -> Result<Vec<Row>> {
    let key = record::key(group, case);
    let run = group.run(root, case).with_context(|| key.clone())?;
    let recorded = results.get(&key).filter(|recorded| recorded.input == record::input(&run));
    let recorded = recorded.with_context(|| format!("{key}: no result of it is kept: run `make validate`"))?;
    let row = |expected: &crate::case::Expectation| {
        let kept = recorded.metrics.get(&expected.metric);
        let kept = kept.with_context(|| format!("{key}: `{}` is not kept: run `make validate`", expected.metric))?;
        Ok(Row {
            name: format!("{key}, {}", expected.what),
            theirs: expected.theirs(&run.config),
            ours: kept * expected.times,
            tolerance: expected.tolerance,
        })
    };
    case.expect.iter().map(row).collect()
}

/// The page.
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
            "| [{title}](#{link}) | {} | {} | {differ} | {} |",
            judged.len(),
            percent(worst),
            group.missing.len()
        )?;
        section(root, group, &all, &mut sections)?;
    }
    Ok(format!("{INTRODUCTION}\n{overview}{sections}"))
}

const INTRODUCTION: &str = "# Validation

<!-- Written by `make validate` from validation/*.toml: changes made here are lost. -->

What Floatgate says, beside what papers, closed forms and other simulators say of the same device and workload. The
cases are data, in [validation/](../validation). `make validate` runs them all and writes this page; `make test` runs
the quick ones again, and fails when a result is not the one recorded here or lies outside what is allowed. Runs are
deterministic: the commands below give these figures to the last digit on every machine.

*Off by* is (ours - theirs) / theirs. Where no deviation is *allowed*, the two are known to differ, and the notes say
why. What a source has and Floatgate does not reproduce is listed with it.

| Source | Figures that agree | Largest deviation | That differ | Not reproduced |
|---|--:|--:|--:|--:|";

fn section(root: &Path, group: &Group, rows: &[Vec<Row>], out: &mut String) -> Result<()> {
    writeln!(out, "\n## {}\n\n*{}*\n\n{}\n", group.title, group.source.trim(), group.text.trim())?;
    writeln!(out, "| Case | Figure | Theirs | From | Ours | Off by | Allowed |\n|---|---|--:|---|--:|--:|--:|")?;
    for (case, rows) in group.cases.iter().zip(rows) {
        for (position, (row, expected)) in rows.iter().zip(&case.expect).enumerate() {
            let name = if position == 0 { case.name.as_str() } else { "" };
            let allowed = row.tolerance.map_or("differs".to_owned(), percent);
            let (theirs, ours, off) = (number(row.theirs), number(row.ours), signed(row.deviation()));
            let (what, from) = (&expected.what, &expected.from);
            writeln!(out, "| {name} | {what} | {theirs} | {from} | {ours} | {off} | {allowed} |")?;
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
    writeln!(out, "\n<details><summary>Commands</summary>\n\n```sh")?;
    for case in &group.cases {
        // A job on a line of its own is the same job.
        let command = group.run(root, case)?.command().replace(" ; ", " ;\n    ");
        writeln!(out, "# {}\n{command}", case.name)?;
    }
    writeln!(out, "```\n\n</details>")?;
    Ok(())
}

/// The name that a heading has in links.
fn anchor(title: &str) -> String {
    let kept = title.to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Six digits, without zeros at the end.
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
    if percent > 0.0 && percent < 0.01 { format!("{percent:.3} %") } else { format!("{percent:.2} %") }
}

fn signed(share: f64) -> String {
    // Nothing is neither more nor less.
    if (share * 1e4).abs() < 0.5 { "0.00 %".to_owned() } else { format!("{:+.2} %", share * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_shortly() {
        assert_eq!(
            [130.6, 61_255.741, 0.725_274_7, 2.0, 1e7].map(number),
            ["130.6", "61255.7", "0.72527", "2", "10000000"]
        );
        assert_eq!([0.000_04, -0.0123, 0.1].map(signed), ["0.00 %", "-1.23 %", "+10.00 %"]);
        assert_eq!(anchor("Hu et al. 2013, Section 5.1"), "hu-et-al-2013-section-51");
    }

    #[test]
    fn what_is_outside_is_a_fault() {
        let row = |ours, tolerance| Row { name: "x".into(), theirs: 100.0, ours, tolerance };
        assert_eq!(row(101.0, Some(0.01)).fault(), None);
        assert_eq!(row(101.1, Some(0.01)).fault().unwrap(), "x: 101.1, theirs is 100: 1.10 % off, allowed 1.00 %");
        assert!(row(f64::NAN, Some(0.01)).fault().is_some());
        assert_eq!(row(150.0, None).fault(), None);
    }
}
