//! `floatgate report`: the report of a result, again.

use std::path::PathBuf;

use floatgate_core::metrics::summary::Summary;
use floatgate_report::html;

use crate::failure::Failure;
use crate::output::{self, Named, keep_apart};

/// `floatgate report`.
#[derive(clap::Args)]
pub struct ReportArgs {
    /// The directory of a result, as `floatgate run --out DIR` writes it
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Write the report here instead of to DIR/report.html
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &ReportArgs) -> Result<(), Failure> {
    let path = args.directory.join(output::SUMMARY);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::mistake(format!("cannot read {}: {error}", path.display())))?;
    let summary =
        Summary::from_json(&text).map_err(|error| Failure::mistake(format!("{}: {error}", path.display())))?;
    let place = args.out.clone().unwrap_or_else(|| args.directory.join(output::REPORT));
    keep_apart(&output::data_of(&args.directory), &[Named::new("--out", &place)])?;
    let series = args.directory.join(output::SERIES);
    let windows = if series.exists() { output::windows(&series).map_err(Failure::Fault)? } else { Vec::new() };
    let report = html::report(&summary, &html::points(&windows));
    output::write_whole(&place, report.as_bytes()).map_err(Failure::Fault)
}
