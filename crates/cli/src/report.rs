//! `floatgate report`: writes the report of a result again.

use std::path::{Path, PathBuf};

use floatgate_core::sim::text::read_text;
use floatgate_core::summary::Summary;
use floatgate_report::columns::run_in;
use floatgate_report::columns::series::Row;
use floatgate_report::digests::Checked;
use floatgate_report::html;
use floatgate_run::output::{self, Named, Wait, refuse_overwrites};
use floatgate_workload::file::Stop;

use crate::failure::{Failure, say};

/// `floatgate report`.
#[derive(clap::Args)]
pub struct ReportArgs {
    /// Result of `floatgate run --out DIR`
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Write the report to FILE instead of DIR/report.html
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &ReportArgs) -> Result<(), Failure> {
    let path = args.directory.join(output::SUMMARY);
    let text = read_text(&path, Summary::LARGEST)
        .map_err(|error| Failure::mistake(format!("cannot read {}: {error}", path.display())))?;
    let summary =
        Summary::from_json(&text).map_err(|error| Failure::mistake(format!("{}: {error}", path.display())))?;
    let checked = Checked::of_summary(&path, &text).map_err(Failure::Mistake)?;
    let place = args.out.clone().unwrap_or_else(|| args.directory.join(output::REPORT));
    refuse_overwrites(&output::data_of(&args.directory), &[Named::new("--out", &place)])?;
    let series = args.directory.join(output::SERIES);
    let windows = if series.exists() { windows(&checked, &series).map_err(Failure::Fault)? } else { Vec::new() };
    let report = html::report(&summary, &html::points(&windows));
    if let Some(note) = checked.note() {
        say(&format!("note: {note}"));
    }
    output::write_whole(&place, report.as_bytes(), &Wait::new(Stop::default(), say)).map_err(Failure::Fault)?;
    say(&format!("wrote {}", place.display()));
    Ok(())
}

/// Checks and reads the windows of a result.
fn windows(checked: &Checked, series: &Path) -> anyhow::Result<Vec<Row>> {
    checked.file(series)?;
    checked.run(series, run_in(series)?.as_deref())?;
    output::windows(series)
}
