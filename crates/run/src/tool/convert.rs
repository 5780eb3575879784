//! Conversions of traces to other formats.

use std::io::{self, Write};
use std::path::Path;

use floatgate_workload::trace::{self, ConvertError, Converted, Format, Packing};

use crate::failure::Failure;
use crate::frontend::Frontend;
use crate::output::{Draft, Named, refuse_overwrites};
use crate::traces::{TraceSpec, Traces};

/// Refuses options for running a trace, which have no effect on a conversion.
pub fn check(spec: &TraceSpec) -> Result<(), Failure> {
    spec.check()?;
    let given = spec.given();
    match ["--fit", "--replay"].into_iter().find(|option| given.contains(option)) {
        Some(option) => {
            Err(Failure::mistake(format!("{option} is for running a trace, and has no effect on a conversion")))
        }
        None => Ok(()),
    }
}

/// Writes a trace to a file in another format. The file appears when it is complete.
pub fn to_file(
    input: &Path,
    output: &Path,
    format: &'static Format,
    traces: &Traces,
    frontend: &dyn Frontend,
) -> Result<Converted, Failure> {
    refuse_overwrites(&traces.inputs(input), &[Named::new("the output", output)])?;
    let cannot = |error: io::Error| Failure::fault(format!("cannot write {}: {error}", output.display()));
    let mut draft = Draft::new(output, &frontend.wait()).map_err(Failure::Fault)?;
    let packing = Packing::of_name(output);
    let converted = write(input, packing, format, traces, frontend, draft.writer(), cannot)?;
    draft.complete().map_err(Failure::Fault)?;
    draft.publish().map_err(Failure::Fault)?;
    Ok(converted)
}

/// Writes a trace to `out` in another format. `failed` converts errors of `out`.
pub fn write<F>(
    input: &Path,
    packing: Packing,
    format: &'static Format,
    traces: &Traces,
    frontend: &dyn Frontend,
    out: impl Write,
    failed: impl Fn(io::Error) -> F,
) -> Result<Converted, F>
where
    F: From<Failure>,
{
    let (path, options) = traces.source(input)?;
    frontend.begin("converting");
    let mut packed = packing.writer(out).map_err(&failed)?;
    let converted = trace::convert(&path, &options, format, &mut packed, &mut |share| frontend.share(share));
    frontend.end();
    let converted = converted.map_err(|error| match error {
        ConvertError::Source(_) if frontend.wants_end() => {
            Failure::Interrupted("the trace was not converted to its end").into()
        }
        ConvertError::Source(error) => Failure::mistake(error).into(),
        ConvertError::Write(error) => failed(error),
    })?;
    packed.finish().and_then(|mut out| out.flush()).map_err(&failed)?;
    for warning in &converted.warnings {
        frontend.warn(warning);
    }
    Ok(converted)
}

/// Describes a conversion in a line.
pub fn described(converted: &Converted, format: &Format) -> String {
    let Converted { requests, description, .. } = converted;
    let requests = if *requests == 1 { "1 request".to_owned() } else { format!("{requests} requests") };
    format!("{requests} written as {}; read as {description}", format.name)
}
