//! `floatgate trace synth`: fits a synthetic workload to a trace, or to moments.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use floatgate_run::output::{Named, keep_apart, write_whole};
use floatgate_workload::file::Stop;
use floatgate_workload::synthetic;
use floatgate_workload::synthetic::model::compare::{Moment, compare};
use floatgate_workload::synthetic::model::fit::{self, Fitted, TRIED};
use floatgate_workload::synthetic::model::moments::{self, KNOWN};
use floatgate_workload::synthetic::model::{Model, words};
use floatgate_workload::trace::profile::Profile;

use super::info::{check_reading, print, profile};
use crate::failure::Failure;
use crate::run::interrupt::Interrupt;
use crate::run::progress::Reporter;
use crate::text::{Page, Table, number, percent};
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

/// File format of a workload.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Model,
    Job,
}

/// Runs the command.
pub fn run(args: &SynthArgs) -> Result<(), Failure> {
    let form = args.out.as_deref().map_or(Ok(Form::Model), form_of)?;
    if let Some(out) = &args.out {
        let traces = args.trace.traces(Stop::default());
        let inputs = args.file.iter().flat_map(|file| traces.inputs(file)).collect::<Vec<_>>();
        keep_apart(&inputs, &[Named::new("--out", out)])?;
    }
    let interrupt = Interrupt::with_message("\nstopping; Ctrl-C again stops at once")?;
    let (trace, mut fitted) = match &args.moments {
        Some(text) => of_moments(args, text)?,
        None => of_trace(args, &interrupt)?,
    };
    if form == Form::Job {
        fitted.moments = compare(&trace, &profile_of_job(&fitted.model, args.seed)?);
    }
    let requests = args.requests.map(NonZeroU64::get);
    fit::scale(&mut fitted.model, requests, args.scale_rate, args.scale_footprint).map_err(Failure::mistake)?;
    if let Some(out) = &args.out {
        write(out, form, &fitted.model, &interrupt)?;
    }
    if args.json {
        let json = serde_json::to_string_pretty(&fitted.moments).map_err(Failure::fault)?;
        return print(&format!("{json}\n"));
    }
    print(&text(args, form, &trace, &fitted))
}

fn known_workloads() -> String {
    let mut text = "Known workloads for --moments, with their moments from papers:".to_owned();
    for known in KNOWN {
        text += &format!("\n  {:<11}{}: {}", known.name, known.title, known.moments);
    }
    text
}

fn form_of(path: &Path) -> Result<Form, Failure> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Ok(Form::Model),
        Some("fio") => Ok(Form::Job),
        _ => Err(Failure::mistake(format!(
            "{}: unknown file format: expected a name that ends in .json (a model) or .fio (a job)",
            path.display()
        ))),
    }
}

/// Builds a model from moments. Returns it with the profile of the moments.
fn of_moments(args: &SynthArgs, text: &str) -> Result<(Profile, Fitted), Failure> {
    if let Some(name) = args.trace.spec().given().first() {
        return Err(Failure::mistake(format!("{name} is for traces, and has no effect on --moments")));
    }
    let moments = moments::read(text).map_err(|why| Failure::mistake(format!("--moments: {why}")))?;
    let model = moments.model(&format!("made from the moments {text}"));
    let made = fit::profile(&model, args.seed).map_err(Failure::mistake)?;
    let wanted = moments.profile();
    let moments = compare(&wanted, &made);
    Ok((wanted, Fitted { model, moments }))
}

/// Fits a model to a trace. Returns it with the profile of the trace.
fn of_trace(args: &SynthArgs, interrupt: &Interrupt) -> Result<(Profile, Fitted), Failure> {
    check_reading(&args.trace.spec())?;
    let file = args.file.as_deref().unwrap_or(Path::new(""));
    let trace = profile(file, &args.trace.traces(interrupt.stop()), interrupt)?;
    let reporter = Reporter::new("fitting");
    let fitted = fit::fit(&trace, args.seed, &mut |share| {
        reporter.share(share);
        !interrupt.requested()
    });
    reporter.finish();
    match fitted {
        Ok(Some(fitted)) => Ok((trace, fitted)),
        Ok(None) => Err(Failure::Interrupted("nothing was written")),
        Err(error) => Err(Failure::mistake(format!("{}: {error}", file.display()))),
    }
}

/// Returns the profile of the requests that the fio job of a model generates.
fn profile_of_job(model: &Model, seed: u64) -> Result<Profile, Failure> {
    let words = words::words(model).map_err(Failure::mistake)?;
    let device = model.end().map_or(1 << 35, |end| end * 512);
    let mut jobs = synthetic::parse(&words::line(&words), device, seed).map_err(Failure::mistake)?;
    let job = jobs.first_mut().ok_or_else(|| Failure::fault("the model has no job"))?;
    fit::profile_of(job.source.as_mut()).map_err(Failure::mistake)
}

/// Writes the workload to a file.
fn write(path: &Path, form: Form, model: &Model, interrupt: &Interrupt) -> Result<(), Failure> {
    let text = match form {
        Form::Model => model.to_json(),
        Form::Job => {
            let name = path.file_stem().map_or("job".into(), |stem| stem.to_string_lossy());
            words::file(&words::words(model).map_err(Failure::mistake)?, &name, &model.source)
        }
    };
    write_whole(path, text.as_bytes(), &interrupt.wait()).map_err(|error| match interrupt.requested() {
        true => Failure::Interrupted("the workload was not written to its end"),
        false => Failure::Fault(error),
    })
}

/// Formats the comparison as text.
fn text(args: &SynthArgs, form: Form, trace: &Profile, fitted: &Fitted) -> String {
    let mut page = Page::default();
    page.line("workload", &fitted.model.source);
    if trace.requests > TRIED {
        page.line("", format!("compared with the first {TRIED} generated requests, except footprints and hot shares"));
    }
    page.gap();
    let of = if args.moments.is_some() { "wanted" } else { "trace" };
    let mut table = Table::new(&["moment", of, "fit", "deviation", ""]);
    for moment in &fitted.moments {
        let Moment { trace, fit, deviation, is_share, is_poor, .. } = *moment;
        let value = |value: f64| if is_share { percent(Some(value)) } else { number(value) };
        let sign = if deviation > 0.0 { "+" } else { "" };
        let off = match is_share {
            true => format!("{sign}{:.1} points", deviation * 100.0),
            false => format!("{sign}{:.1} %     ", deviation * 100.0),
        };
        let mark = if is_poor { "poor" } else { "" };
        table.row(&[moment.name.clone(), value(trace), value(fit), off, mark.to_owned()]);
    }
    page.text.push_str(&table.text());
    page.gap();
    let poor: Vec<&str> = fitted.moments.iter().filter(|one| one.is_poor).map(|one| one.name.as_str()).collect();
    if !poor.is_empty() {
        page.line(
            "warning",
            format!("poor fit: {}; results that depend on these moments will differ", poor.join(", ")),
        );
    }
    for warning in &trace.warnings {
        page.line("warning", warning);
    }
    match (&args.out, form) {
        (Some(out), Form::Model) => page.line("written", format!("{0}; floatgate run DEVICE {0}", out.display())),
        (Some(out), Form::Job) => {
            page.line("written", out.display().to_string());
            if let Ok(words) = words::words(&fitted.model) {
                page.text += &format!("as a job       '{}'\n", words::line(&words));
            }
        }
        (None, _) => page.line("written", "nothing: -o FILE.json writes the model, -o FILE.fio a job"),
    }
    page.text
}
