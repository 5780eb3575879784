//! `floatgate compare`: compares results in a table, and on a page.

use std::path::{Path, PathBuf};

use floatgate_core::sim::text::escaped_lines;
use floatgate_report::compare::{Comparison, groups};
use floatgate_run::output::{self, Named, Wait, refuse_overwrites};
use floatgate_workload::file::Stop;

use crate::failure::{Failure, say};
use crate::output::print;

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
    /// Print the comparison as JSON instead
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &CompareArgs) -> Result<(), Failure> {
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
    let text = if args.json { comparison.to_json() } else { escaped_lines(&comparison.text()).into_owned() };
    print(text)
}
