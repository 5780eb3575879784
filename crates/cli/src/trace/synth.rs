//! `floatgate trace synth`: fits a synthetic workload to a trace, or to moments.

use std::num::NonZeroU64;
use std::path::PathBuf;

use floatgate_run::tool::fit::{Basis, FitSpec, fit};
use floatgate_workload::synthetic::model::moments::KNOWN;

use crate::failure::Failure;
use crate::output::print;
use crate::run::interrupt::Interrupt;
use crate::run::progress::Terminal;
use crate::trace_args::{TraceArgs, one_or_more, whole};

/// `floatgate trace synth`.
#[derive(clap::Args)]
#[command(after_help = known_workloads())]
pub struct SynthArgs {
    /// Trace to fit; - for standard input
    #[arg(required_unless_present = "moments")]
    file: Option<PathBuf>,
    /// Fit moments, or a known workload, instead of a trace
    ///
    /// Moments are one argument: 'read=23.2% read_size=2.25KiB write_size=3.75KiB interarrival=8.19ms'. Optional
    /// moments are cv=V (coefficient of variation of the gaps), footprint=SIZE, hot=SHARE (of accesses to the hottest
    /// 20 % of the pages), sequential=SHARE and requests=N. The name of a known workload can also be followed by
    /// moments.
    #[arg(long, value_name = "MOMENTS", conflicts_with = "file")]
    moments: Option<String>,
    /// Write the workload to FILE: a model (.json), or a fio job (.fio)
    ///
    /// A fio job cannot express all properties of a model.
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Generate N requests instead of as many as the trace has
    #[arg(long, value_name = "N", value_parser = one_or_more, allow_hyphen_values = true)]
    requests: Option<NonZeroU64>,
    /// Multiply the request rate by X
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    scale_rate: Option<f64>,
    /// Multiply the footprint by X
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    scale_footprint: Option<f64>,
    /// Seed of the requests that are generated for the comparison
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_hyphen_values = true)]
    seed: u64,
    /// Print the comparison as JSON instead: a list of moments
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trace: TraceArgs,
}

/// Runs the command.
pub fn run(args: &SynthArgs) -> Result<(), Failure> {
    let basis = match &args.moments {
        Some(moments) => Basis::Moments(moments.clone()),
        None => Basis::Trace(args.file.clone().unwrap_or_default()),
    };
    let spec = FitSpec {
        basis,
        out: args.out.clone(),
        requests: args.requests,
        scale_rate: args.scale_rate,
        scale_footprint: args.scale_footprint,
        seed: args.seed,
    };
    let interrupt = Interrupt::with_message("\nstopping; Ctrl-C again stops at once")?;
    let traces = args.trace.traces(interrupt.stop());
    let fit = fit(spec, &traces, &Terminal::new(interrupt))?;
    print(&if args.json { fit.to_json() } else { fit.text() })
}

fn known_workloads() -> String {
    let mut text = "Known workloads for --moments, with their moments from papers:".to_owned();
    for known in KNOWN {
        text += &format!("\n  {:<11}{}: {}", known.name, known.title, known.moments);
    }
    text
}
