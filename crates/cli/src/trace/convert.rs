//! `floatgate trace convert`: writes a trace in another format.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use floatgate_run::output::{Draft, Named, Wait, keep_apart};
use floatgate_run::traces::Traces;
use floatgate_workload::file::Stop;
use floatgate_workload::trace::{self, ConvertError, Converted, Format, Packing};

use crate::failure::{Failure, say};
use crate::run::progress::Reporter;
use crate::trace_args::TraceArgs;

/// `floatgate trace convert`.
#[derive(clap::Args)]
pub struct ConvertArgs {
    /// Trace to read, plain or compressed; - for standard input
    input: PathBuf,
    /// File to write; - for standard output
    ///
    /// The file is compressed if its name ends in .gz, .xz, .zst or .bz2. While it is written, it is named *.partial.
    output: PathBuf,
    /// Format to write
    ///
    /// alibaba, blkparse, disksim, fio, flashsim, mqsim, msr, spc, ssdsim, systor or tencent.
    #[arg(long, value_name = "FORMAT", value_parser = Format::written)]
    to: &'static Format,
    #[command(flatten)]
    trace: TraceArgs,
}

/// Runs the command.
pub fn run(args: &ConvertArgs) -> Result<(), Failure> {
    let spec = args.trace.spec();
    spec.check()?;
    let given = spec.given();
    if let Some(option) = ["--fit", "--replay"].into_iter().find(|option| given.contains(option)) {
        return Err(Failure::mistake(format!("{option} is for running a trace, and has no effect on a conversion")));
    }
    let traces = &Traces::new(spec, Stop::default());
    if args.output == Path::new("-") {
        let converted = write(args, traces, io::stdout().lock(), Failure::of_stdout)?;
        say(&reported(args, &converted));
        return Ok(());
    }
    keep_apart(&traces.inputs(&args.input), &[Named::new("the output", &args.output)])?;
    let cannot = |error: io::Error| Failure::fault(format!("cannot write {}: {error}", args.output.display()));
    let mut draft = Draft::new(&args.output, &Wait::new(traces.stop().clone(), say))?;
    let converted = write(args, traces, draft.writer(), cannot)?;
    draft.complete()?;
    draft.publish()?;
    let text = reported(args, &converted) + "\n";
    io::stdout().lock().write_all(text.as_bytes()).map_err(Failure::of_stdout)
}

/// Writes the trace to `out`, compressed according to the name of the output.
fn write(
    args: &ConvertArgs,
    traces: &Traces,
    out: impl Write,
    failed: impl Fn(io::Error) -> Failure,
) -> Result<Converted, Failure> {
    let (path, options) = traces.source(&args.input)?;
    let reporter = Reporter::new("converting");
    let mut packed = Packing::of_name(&args.output).writer(out).map_err(&failed)?;
    let on_progress = &mut |share: f64| reporter.share(share);
    let converted = trace::convert(&path, &options, args.to, &mut packed, on_progress);
    reporter.finish();
    let converted = converted.map_err(|error| match error {
        ConvertError::Source(error) => Failure::mistake(error),
        ConvertError::Write(error) => failed(error),
    })?;
    packed.finish().and_then(|mut out| out.flush()).map_err(&failed)?;
    for warning in &converted.warnings {
        say(&format!("warning: {warning}"));
    }
    Ok(converted)
}

fn reported(args: &ConvertArgs, converted: &Converted) -> String {
    let Converted { requests, description, .. } = converted;
    let requests = if *requests == 1 { "1 request".to_owned() } else { format!("{requests} requests") };
    format!("{requests} written as {}; read as {description}", args.to.name)
}
