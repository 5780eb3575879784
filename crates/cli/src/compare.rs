//! `floatgate compare`: compares results in a table, and on a page.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use floatgate_core::sim::text::escaped_lines;
use floatgate_report::compare::{Comparison, MOST_DIFFERENT, Row, groups};
use floatgate_run::output::{self, Named, Wait, refuse_overwrites};
use floatgate_workload::file::Stop;

use crate::failure::{Failure, say};
use crate::output::print;
use crate::python;

/// `floatgate compare`.
#[derive(clap::Args)]
pub struct CompareArgs {
    /// Results to compare: directories or summary.json files
    ///
    /// A result can have a label: label=DIR. Several seeds of one configuration are label=DIR1,DIR2 or 'label=DIR*'.
    #[arg(required = true, value_name = "RESULT")]
    results: Vec<String>,
    /// Write a page with the table and the overlaid distributions to FILE.html
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print all metrics, instead of the ten that differ most
    #[arg(long)]
    all: bool,
    /// Print this metric: its path in summary.json, such as write_amplification or read.latency_us.p99
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    metric: Vec<String>,
    /// Draw the metric, or all differences, into FILE: .svg, .pdf or .png [Python package]
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print the comparison as JSON instead
    #[arg(long)]
    json: bool,
}

/// Runs the command. `given` is the command line without the name of the program.
pub fn run(args: &CompareArgs, given: &[OsString]) -> Result<(), Failure> {
    if args.plot.is_some() {
        return python::forward(given);
    }
    let groups = groups(&args.results).map_err(Failure::mistake)?;
    if let Some(note) = groups.iter().flat_map(|group| &group.runs).find_map(|run| run.note.as_ref()) {
        say(&format!("note: {note}"));
    }
    if let Some(place) = &args.out {
        let directories = groups.iter().flat_map(|group| &group.runs).map(|run| Path::new(&run.path).parent());
        let mut inputs: Vec<Named> = directories.flatten().flat_map(output::data_of).collect();
        let given = groups.iter().flat_map(|group| &group.runs).map(|run| Named::new("the result", &run.path));
        inputs.extend(given);
        refuse_overwrites(&inputs, &[Named::new("--out", place)])?;
    }
    let comparison = Comparison::new(&groups);
    for warning in &comparison.warnings {
        say(&format!("warning: {warning}"));
    }
    if let Some(place) = &args.out {
        output::write_whole(place, comparison.html(&groups).as_bytes(), &Wait::new(Stop::default(), say))
            .map_err(Failure::Fault)?;
        say(&format!("wrote {}", place.display()));
    }
    if args.json {
        return print(comparison.to_json());
    }
    let shown = shown(args, &comparison)?;
    let mut text = comparison.text(&shown);
    if args.metric.is_empty() && shown.len() < comparison.metrics.len() {
        let (shown, all) = (shown.len(), comparison.metrics.len());
        text += &format!("\nthe {shown} of {all} metrics that differ most; --all prints all of them\n");
    }
    print(escaped_lines(&text).as_ref())
}

/// Returns the metrics to print.
fn shown<'a>(args: &CompareArgs, comparison: &'a Comparison) -> Result<Vec<&'a Row>, Failure> {
    if args.metric.is_empty() {
        let all = || comparison.metrics.iter().collect();
        return Ok(if args.all { all() } else { comparison.most_different(MOST_DIFFERENT) });
    }
    args.metric.iter().map(|name| comparison.metric(name).map_err(Failure::mistake)).collect()
}
