//! `floatgate trace convert`: writes a trace in another format.

use std::io;
use std::path::{Path, PathBuf};

use floatgate_run::tool::convert::{check, described, to_file, write};
use floatgate_workload::trace::{Format, Packing};

use crate::failure::{Failure, say};
use crate::output::print;
use crate::run::interrupt::Interrupt;
use crate::run::progress::Terminal;
use crate::trace_args::TraceArgs;

/// `floatgate trace convert`.
#[derive(clap::Args)]
pub struct ConvertArgs {
    /// Trace to read, plain or compressed; - for standard input
    input: PathBuf,
    /// File to write; - for standard output
    ///
    /// The file is compressed if its name ends in .gz, .xz, .zst or .bz2. While it is written, its name is
    /// OUT.*.partial.
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
    check(&args.trace.spec())?;
    let interrupt = Interrupt::with_message("\nstopping; Ctrl-C again stops at once")?;
    let traces = args.trace.traces(interrupt.stop());
    let terminal = Terminal::new(interrupt);
    if args.output == Path::new("-") {
        let (out, failed) = (io::stdout().lock(), Failure::of_stdout);
        let converted = write(&args.input, Packing::Plain, args.to, &traces, &terminal, out, failed)?;
        say(&described(&converted, args.to));
        return Ok(());
    }
    let converted = to_file(&args.input, &args.output, args.to, &traces, &terminal)?;
    print(&(described(&converted, args.to) + "\n"))
}
