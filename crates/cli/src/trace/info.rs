//! `floatgate trace info`: analyzes traces.

use std::path::PathBuf;

use floatgate_run::text::profile::text;
use floatgate_run::tool::profile::{check_reading, profile};

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
    /// See docs/reference/profile.md.
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
    let mut profiles = Vec::new();
    for file in &args.files {
        let profile = profile(file, &traces, &terminal)?;
        if !args.json {
            let gap = if profiles.is_empty() { "" } else { "\n" };
            print(format!("{gap}{}", text(&profile)))?;
        }
        profiles.push(profile);
    }
    match &profiles[..] {
        _ if !args.json => Ok(()),
        [profile] => print(profile.to_json()),
        _ => {
            let texts: Vec<String> = profiles.iter().map(|profile| profile.to_json().trim_end().to_owned()).collect();
            print(format!("[\n{}\n]\n", texts.join(",\n")))
        }
    }
}
