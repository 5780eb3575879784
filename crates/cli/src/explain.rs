//! `floatgate explain`: explains the latency of one request.

use std::path::PathBuf;

use floatgate_report::explain::{self, Choice};
use floatgate_run::text::explanation::text;

use crate::failure::{Failure, say};
use crate::output::print;

/// `floatgate explain`.
#[derive(clap::Args)]
pub struct ExplainArgs {
    /// Result of `floatgate run --out DIR --requests=parquet --timeline`
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Number of the request, or its rank by latency, such as p99 or write:max
    ///
    /// Ranks are p99, p99.9, max, slowest:3 (the third slowest) and so on. They are among all requests, or among those
    /// of one operation: write:p99.
    #[arg(value_name = "REQUEST")]
    request: Choice,
    /// Print the explanation as JSON instead
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let explanation = explain::explain(&args.directory, &args.request).map_err(Failure::Mistake)?;
    if let Some(note) = &explanation.note {
        say(&format!("note: {note}"));
    }
    print(&if args.json {
        serde_json::to_string_pretty(&explanation).map_err(Failure::fault)? + "\n"
    } else {
        text(&explanation, &args.directory, &args.request)
    })
}
