//! `floatgate trace info`: analyzes traces.

use std::path::{Path, PathBuf};

use floatgate_run::text::profile::text;
use floatgate_run::tool::profile::{check_reading, profile};
use floatgate_run::traces::Traces;
use floatgate_workload::objects;

use crate::failure::Failure;
use crate::output::print;
use crate::run::interrupt::Interrupt;
use crate::run::progress::Terminal;
use crate::trace_args::TraceArgs;

/// `floatgate trace info`.
#[derive(clap::Args)]
pub struct InfoArgs {
    /// Trace files, plain or compressed; - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON instead: an object for one file, a list for several
    ///
    /// See docs/reference/profile.md, or docs/reference/objects.md for traces of objects.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trace: TraceArgs,
}

/// Runs the command.
pub fn run(args: &InfoArgs) -> Result<(), Failure> {
    check_reading(&args.trace.spec())?;
    let interrupt = Interrupt::with_message("\nstopping; Ctrl-C again stops at once")?;
    let traces = args.trace.traces(interrupt.stop());
    let terminal = Terminal::new(interrupt);
    let mut profiles: Vec<String> = Vec::new();
    for file in &args.files {
        let (text, json) = described(file, args, &traces, &terminal)?;
        if !args.json {
            let gap = if profiles.is_empty() { "" } else { "\n" };
            print(format!("{gap}{text}"))?;
        }
        profiles.push(json);
    }
    match &profiles[..] {
        _ if !args.json => Ok(()),
        [profile] => print(profile),
        _ => {
            let texts: Vec<&str> = profiles.iter().map(|profile| profile.trim_end()).collect();
            print(format!("[\n{}\n]\n", texts.join(",\n")))
        }
    }
}

/// Returns the profile of a trace as a text and as JSON.
fn described(file: &Path, args: &InfoArgs, traces: &Traces, terminal: &Terminal) -> Result<(String, String), Failure> {
    if args.trace.spec().format.is_none() && objects::is_object_trace(file) {
        let profile = objects::profile(file, traces.stop()).map_err(Failure::mistake)?;
        return Ok((profile.to_text(), profile.to_json()));
    }
    let profile = profile(file, traces, terminal)?;
    Ok((text(&profile), profile.to_json()))
}
