//! Synthetic workloads fitted to traces, or to moments.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use floatgate_workload::synthetic;
use floatgate_workload::synthetic::model::compare::{Moment, compare};
use floatgate_workload::synthetic::model::fit::{self, Fitted, TRIED};
use floatgate_workload::synthetic::model::{Model, moments, words};
use floatgate_workload::trace::profile::Profile;

use super::profile::{check_reading, profile};
use crate::failure::Failure;
use crate::frontend::Frontend;
use crate::output::{Named, refuse_overwrites, write_whole};
use crate::text::{Page, Table, number, percent};
use crate::traces::Traces;

/// Source of a fit.
#[derive(Clone, Debug, PartialEq)]
pub enum Basis {
    /// Trace at this path.
    Trace(PathBuf),
    /// Moments, or the name of a known workload.
    Moments(String),
}

/// Options of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct FitSpec {
    /// Trace or moments that the workload is fitted to.
    pub basis: Basis,
    /// File for the workload: a model (.json) or a fio job (.fio). `None`: nothing is written.
    pub out: Option<PathBuf>,
    /// Number of requests to generate. `None`: as many as the trace has.
    pub requests: Option<NonZeroU64>,
    /// Factor of the request rate.
    pub scale_rate: Option<f64>,
    /// Factor of the footprint.
    pub scale_footprint: Option<f64>,
    /// Seed of the requests that are generated for the comparison.
    pub seed: u64,
}

/// File format of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Model,
    Job,
}

/// A fitted workload, compared with its basis.
#[derive(Debug)]
pub struct Fit {
    spec: FitSpec,
    form: Form,
    trace: Profile,
    fitted: Fitted,
}

/// Fits a workload, and writes it to the file of `spec`.
pub fn fit(spec: FitSpec, traces: &Traces, frontend: &dyn Frontend) -> Result<Fit, Failure> {
    let form = spec.out.as_deref().map_or(Ok(Form::Model), form_of)?;
    if let Some(out) = &spec.out {
        let inputs = if let Basis::Trace(file) = &spec.basis { traces.inputs(file) } else { Vec::new() };
        refuse_overwrites(&inputs, &[Named::new("--out", out)])?;
    }
    let (trace, mut fitted) = match &spec.basis {
        Basis::Moments(text) => of_moments(text, traces, spec.seed)?,
        Basis::Trace(file) => of_trace(file, traces, spec.seed, frontend)?,
    };
    if form == Form::Job {
        fitted.moments = compare(&trace, &profile_of_job(&fitted.model, spec.seed)?);
    }
    let requests = spec.requests.map(NonZeroU64::get);
    fit::scale(&mut fitted.model, requests, spec.scale_rate, spec.scale_footprint).map_err(Failure::mistake)?;
    if let Some(out) = &spec.out {
        write(out, form, &fitted.model, frontend)?;
    }
    Ok(Fit { spec, form, trace, fitted })
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
fn of_moments(text: &str, traces: &Traces, seed: u64) -> Result<(Profile, Fitted), Failure> {
    if let Some(name) = traces.spec().given().first() {
        return Err(Failure::mistake(format!("{name} is for traces, and has no effect on --moments")));
    }
    let moments = moments::read(text).map_err(|why| Failure::mistake(format!("--moments: {why}")))?;
    let model = moments.model(&format!("made from the moments {text}"));
    let made = fit::profile(&model, seed).map_err(Failure::mistake)?;
    let wanted = moments.profile();
    let moments = compare(&wanted, &made);
    Ok((wanted, Fitted { model, moments }))
}

/// Fits a model to a trace. Returns it with the profile of the trace.
fn of_trace(file: &Path, traces: &Traces, seed: u64, frontend: &dyn Frontend) -> Result<(Profile, Fitted), Failure> {
    check_reading(traces.spec())?;
    let trace = profile(file, traces, frontend)?;
    frontend.begin("fitting");
    let fitted = fit::fit(&trace, seed, &mut |share| {
        frontend.share(share);
        !frontend.wants_end()
    });
    frontend.end();
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
fn write(path: &Path, form: Form, model: &Model, frontend: &dyn Frontend) -> Result<(), Failure> {
    let text = match form {
        Form::Model => model.to_json(),
        Form::Job => {
            let name = path.file_stem().map_or("job".into(), |stem| stem.to_string_lossy());
            words::file(&words::words(model).map_err(Failure::mistake)?, &name, &model.source)
        }
    };
    write_whole(path, text.as_bytes(), &frontend.wait()).map_err(|error| {
        if frontend.wants_end() {
            Failure::Interrupted("the workload was not written to its end")
        } else {
            Failure::Fault(error)
        }
    })
}

impl Fit {
    /// Returns the workload as JSON, as in a model file.
    pub fn model(&self) -> String {
        self.fitted.model.to_json()
    }

    /// Returns the comparison as JSON: a list of moments.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.fitted.moments).unwrap_or_default() + "\n"
    }

    /// Formats the comparison as text.
    pub fn text(&self) -> String {
        let Fit { spec, form, trace, fitted } = self;
        let mut page = Page::default();
        page.line("workload", &fitted.model.source);
        if trace.requests > TRIED {
            page.line(
                "",
                format!("compared with the first {TRIED} generated requests, except footprints and hot shares"),
            );
        }
        page.gap();
        page.text.push_str(&self.table().text());
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
        match (&spec.out, form) {
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

    /// Returns the moments of the basis and of the fit.
    fn table(&self) -> Table {
        let of = if matches!(self.spec.basis, Basis::Moments(_)) { "wanted" } else { "trace" };
        let mut table = Table::new(&["moment", of, "fit", "deviation", ""]);
        for moment in &self.fitted.moments {
            let Moment { trace, fit, deviation, is_share, is_poor, .. } = *moment;
            let value = |value: f64| if is_share { percent(Some(value)) } else { number(value) };
            let sign = if deviation > 0.0 { "+" } else { "" };
            let off = if is_share {
                format!("{sign}{:.1} points", deviation * 100.0)
            } else {
                format!("{sign}{:.1} %     ", deviation * 100.0)
            };
            let mark = if is_poor { "poor" } else { "" };
            table.row(&[moment.name.clone(), value(trace), value(fit), off, mark.to_owned()]);
        }
        table
    }
}
