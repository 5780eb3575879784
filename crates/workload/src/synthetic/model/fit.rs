//! Fitting of a model to the profile of a trace.
//!
//! The mix, the sizes and the gaps are taken from the trace. The sizes of the regions, the weights of the zones and the
//! share of sequential requests are found by trials. Each trial profiles the generated workload like the trace, and
//! adjusts each parameter by the deviation of its moment. The best trial is used.

use super::compare::{Moment, compare};
use super::{ArrivalModel, Gap, Model, Modeled, OperationModel, PAGE, SCHEMA, Zone};
use crate::sim::source::{Source, SourceError};
use crate::sim::time::Time;
use crate::trace::Item;
use crate::trace::profile::{GapClass, HotShares, OperationProfile, Profile, Profiler};

/// Zones: shares of the pages, hottest first.
const PARTS: [f64; 5] = [0.01, 0.04, 0.05, 0.1, 0.8];
/// Number of trials for each position of the pages that are both read and written.
const FIRST_TRIALS: usize = 4;
/// Number of further trials with the best of these positions.
const LAST_TRIALS: usize = 10;
/// Maximum number of requests in a trial.
pub const TRIED: u64 = 1_000_000;

/// A model, and the quality of its fit.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The model.
    pub model: Model,
    /// Moments of the model, compared with those of the trace.
    pub moments: Vec<Moment>,
}

/// Parameters of an operation that trials adjust.
#[derive(Clone, Copy, Debug)]
struct Knobs {
    pages: f64,
    weights: [f64; PARTS.len()],
    sequential: f64,
    aligned: f64,
}

/// Fits a model to the profile of a trace. Calls `on_trial` with the completed share of the work before each trial.
/// Returns `None` if `on_trial` returned `false`.
pub fn fit(trace: &Profile, seed: u64, on_trial: &mut dyn FnMut(f64) -> bool) -> Result<Option<Fitted>, SourceError> {
    if trace.requests < 2 || trace.arrivals.histogram.is_empty() {
        return Err(SourceError("a trace of fewer than two requests has nothing that could be fitted".to_owned()));
    }
    let mut hunts: Vec<Hunt> =
        [(true, true), (true, false), (false, true), (false, false)].map(|hottest| Hunt::new(trace, hottest)).into();
    if trace.footprint.both_pages < 1.0 {
        // If no page is both read and written, the position of such pages does not matter.
        hunts.truncate(1);
    }
    let all = hunts.len() * FIRST_TRIALS + LAST_TRIALS;
    for done in 0..all {
        if !on_trial(done as f64 / all as f64) {
            return Ok(None);
        }
        if done == hunts.len() * FIRST_TRIALS {
            hunts.sort_by(|a, b| a.score().total_cmp(&b.score()));
            hunts.truncate(1);
        }
        let count = hunts.len();
        hunts[done % count].try_once(trace, seed)?;
    }
    hunts.sort_by(|a, b| a.score().total_cmp(&b.score()));
    Ok(hunts.into_iter().next().and_then(|hunt| hunt.best).map(|(_, fitted)| fitted))
}

/// Trials with one position of the pages that are both read and written.
struct Hunt {
    hottest: Hottest,
    knobs: Vec<Knobs>,
    both: f64,
    best: Option<(f64, Fitted)>,
}

impl Hunt {
    fn new(trace: &Profile, hottest: Hottest) -> Hunt {
        let knobs = trace.operations.iter().map(|one| first_guess(trace, one)).collect();
        Hunt { hottest, knobs, both: trace.footprint.both_pages, best: None }
    }

    fn score(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |(score, _)| *score)
    }

    fn try_once(&mut self, trace: &Profile, seed: u64) -> Result<(), SourceError> {
        let model = build(trace, &self.knobs, self.both, self.hottest);
        let made = profile(&model, seed)?;
        let moments = compare(trace, &made);
        turn(&mut self.knobs, &mut self.both, trace, &made);
        let score = score(&moments);
        if score < self.score() {
            self.best = Some((score, Fitted { model, moments }));
        }
        Ok(())
    }
}

/// Adjusts all parameters by the deviations of their moments.
fn turn(knobs: &mut [Knobs], both: &mut f64, trace: &Profile, made: &Profile) {
    let comparable = model_is_whole(trace);
    for (knobs, one) in knobs.iter_mut().zip(&trace.operations) {
        if let Some(other) = made.operation(&one.operation) {
            knobs.turn(trace, made, one, other, comparable);
        }
    }
    if comparable && made.footprint.both_pages > 0.0 {
        *both *= limited(trace.footprint.both_pages / made.footprint.both_pages);
    }
}

/// Returns `true` if a trial has as many requests as the trace.
fn model_is_whole(trace: &Profile) -> bool {
    trace.requests <= TRIED
}

/// Profiles the requests of a model, but at most [`TRIED`] of them.
pub fn profile(model: &Model, seed: u64) -> Result<Profile, SourceError> {
    let model = Model { requests: model.requests.min(TRIED), ..model.clone() };
    // Adds space after the end for the longest request. A whole device is represented by 32 GiB.
    let device = model.end().map_or(1 << 26, |end| end + (1 << 33));
    profile_of(&mut Modeled::new(&model, "fit", device, seed)?)
}

/// Profiles the requests of a source, but at most [`TRIED`] of them.
pub fn profile_of(source: &mut dyn Source) -> Result<Profile, SourceError> {
    let mut profiler = Profiler::default();
    let mut made = 0;
    while let Some(request) = source.next_request()? {
        let Time(ps) = request.arrival;
        profiler.add(&Item {
            ps: i128::from(ps),
            device: 0,
            operation: request.operation,
            lba: request.lba,
            sectors: request.sectors,
            line: 0,
        });
        made += 1;
        if made == TRIED {
            break;
        }
    }
    Ok(profiler.finish())
}

/// Returns the total deviation of the shares and quantities that trials adjust.
fn score(moments: &[Moment]) -> f64 {
    let off = |moment: &Moment| {
        if moment.is_share { moment.deviation.abs() } else { libm::log1p(moment.deviation.max(-0.99)).abs().min(3.0) }
    };
    let counts = |moment: &&Moment| {
        ["hottest", "MiB", "sequential", "overwrites", "unwritten", "4K"].iter().any(|part| moment.name.contains(part))
    };
    moments.iter().filter(counts).map(off).sum()
}

/// Limits the change of a parameter per trial.
fn limited(factor: f64) -> f64 {
    if factor.is_finite() { factor.clamp(0.5, 2.0) } else { 1.0 }
}

fn classes(hot: HotShares) -> [f64; PARTS.len()] {
    let sums = [hot.of_1_percent, hot.of_5_percent, hot.of_10_percent, hot.of_20_percent, 1.0];
    let mut before = 0.0;
    sums.map(|sum| (sum - std::mem::replace(&mut before, sum)).max(1e-6))
}

fn pages(profile: &Profile, one: &OperationProfile) -> f64 {
    match one.operation.as_str() {
        "read" => profile.footprint.read_pages,
        _ => profile.footprint.written_pages,
    }
}

fn first_guess(trace: &Profile, one: &OperationProfile) -> Knobs {
    let weights = one.hot.map_or(PARTS, classes);
    Knobs {
        pages: pages(trace, one).max(1.0),
        weights,
        sequential: one.sequential,
        aligned: one.aligned_starts.unwrap_or(1.0),
    }
}

impl Knobs {
    fn turn(
        &mut self,
        trace: &Profile,
        made: &Profile,
        one: &OperationProfile,
        other: &OperationProfile,
        comparable: bool,
    ) {
        self.sequential = (self.sequential + one.sequential - other.sequential).clamp(0.0, 1.0);
        self.aligned = (self.aligned + one.aligned - other.aligned).clamp(0.0, 1.0);
        // Operations other than reads and writes have no page statistics.
        let (Some(wanted), Some(found)) = (one.hot, other.hot) else { return };
        if !comparable {
            return;
        }
        self.pages = (self.pages * limited(pages(trace, one) / pages(made, other))).max(1.0);
        for (weight, (wanted, found)) in self.weights.iter_mut().zip(classes(wanted).into_iter().zip(classes(found))) {
            *weight *= limited(wanted / found);
        }
        let sum: f64 = self.weights.iter().sum();
        self.weights = self.weights.map(|weight| weight / sum);
    }
}

fn build(trace: &Profile, knobs: &[Knobs], both: f64, hottest: Hottest) -> Model {
    let known = |name: &str| {
        let found = trace.operations.iter().zip(knobs).find(|(one, _)| one.operation == name);
        found.map_or(0, |(_, knobs)| knobs.pages.round() as u64)
    };
    let (read, written) = (known("read"), known("write"));
    let both = (both.round() as u64).min(read).min(written);
    let file = trace.trace.as_ref().map_or("requests", |origin| origin.file.as_str());
    let name = file.rsplit('/').next().unwrap_or(file);
    Model {
        model: SCHEMA.to_owned(),
        source: format!("fitted to {name}, {} requests", trace.requests),
        requests: trace.requests,
        operations: trace
            .operations
            .iter()
            .zip(knobs)
            .map(|(one, knobs)| OperationModel {
                operation: one.operation.clone(),
                weight: one.requests,
                sizes: one.sizes.iter().map(|size| (size.sectors, size.requests)).collect(),
                sequential: knobs.sequential,
                aligned: knobs.aligned,
                chunk_pages: chunk(one),
                extents: extents(&one.operation, read, written, both, hottest),
                zones: zones(knobs),
            })
            .collect(),
        arrivals: ArrivalModel {
            gaps: trace.arrivals.histogram.iter().map(gap).collect(),
            transitions: trace.arrivals.transitions.clone(),
        },
    }
}

fn zones(knobs: &Knobs) -> Vec<Zone> {
    PARTS.iter().zip(knobs.weights).map(|(part, weight)| Zone { part: *part, weight }).collect()
}

fn gap(class: &GapClass) -> Gap {
    Gap { from_ps: class.from_ps, to_ps: class.to_ps, mean_ps: class.mean_ps, weight: class.count as f64 }
}

/// Returns the chunk size, which holds a few runs of requests.
fn chunk(one: &OperationProfile) -> u64 {
    let sectors = one.size_kib.mean.unwrap_or(4.0) * 2.0 * one.run_mean.unwrap_or(1.0).min(64.0);
    ((sectors * 8.0 / PAGE as f64).round() as u64).max(64)
}

/// True if the pages that are both read and written are the hottest of the read pages, and of the written pages.
type Hottest = (bool, bool);

/// Returns the extents of an operation: pages that are both read and written, then pages that are only read, then pages
/// that are only written.
fn extents(operation: &str, read: u64, written: u64, both: u64, hottest: Hottest) -> Vec<(u64, u64)> {
    let (only_read, only_written) = (read - both, written - both);
    let (own, is_hottest) = match operation {
        "read" => ((both, only_read), hottest.0),
        _ if written == 0 => ((0, read.max(1)), false),
        _ => ((read, only_written), hottest.1),
    };
    let mut extents = vec![(0, both), own];
    if !is_hottest {
        extents.reverse();
    }
    extents.retain(|(_, pages)| *pages > 0);
    if extents.is_empty() {
        extents.push((0, 1));
    }
    extents
}

/// Scales a model: sets the number of requests, and multiplies the rate and the footprint by factors.
pub fn scale(
    model: &mut Model,
    requests: Option<u64>,
    rate: Option<f64>,
    footprint: Option<f64>,
) -> Result<(), SourceError> {
    for (name, factor) in [("rate", rate), ("footprint", footprint)] {
        if factor.is_some_and(|factor| !(factor.is_finite() && factor > 0.0)) {
            return Err(SourceError(format!("the scale of the {name} must be above 0")));
        }
    }
    model.requests = requests.unwrap_or(model.requests);
    if let Some(factor) = rate.filter(|factor| *factor != 1.0) {
        scale_gaps(&mut model.arrivals, factor);
    }
    if let Some(factor) = footprint {
        for (start, pages) in model.operations.iter_mut().flat_map(|one| &mut one.extents) {
            let end = ((*start + *pages) as f64 * factor).round() as u64;
            *start = (*start as f64 * factor).round() as u64;
            *pages = end.saturating_sub(*start).max(1);
        }
    }
    Model::check(model).map_err(|why| SourceError(format!("scaled so, the model is none: {why}")))
}

fn scale_gaps(arrivals: &mut ArrivalModel, factor: f64) {
    let octave = |gap: &Gap| crate::trace::profile::octave_of(gap.mean_ps as u64);
    // A factor that is not a power of two moves gaps across the borders of octaves. Each old octave is split
    // accordingly.
    let mut moved: Vec<(u8, u8, f64)> = Vec::new();
    for gap in &mut arrivals.gaps {
        let before = octave(gap);
        gap.from_ps = (gap.from_ps as f64 / factor).floor() as u64;
        gap.to_ps = (gap.to_ps as f64 / factor).ceil() as u64;
        gap.mean_ps /= factor;
        moved.push((before, octave(gap), gap.weight));
    }
    let mut transitions = std::collections::BTreeMap::<(u8, u8), f64>::new();
    let shares = |from: u8| {
        let of: Vec<_> =
            moved.iter().filter(|(before, _, _)| *before == from).map(|(_, to, weight)| (*to, *weight)).collect();
        let total: f64 = of.iter().map(|(_, weight)| weight).sum();
        of.into_iter().map(move |(to, weight)| (to, weight / total))
    };
    for (from, to, weight) in &arrivals.transitions {
        for (new_from, part) in shares(*from) {
            for (new_to, other) in shares(*to) {
                *transitions.entry((new_from, new_to)).or_default() += *weight as f64 * part * other;
            }
        }
    }
    // Weights are integers, so the scale of 1000 preserves fractions.
    arrivals.transitions = transitions
        .into_iter()
        .map(|((from, to), weight)| (from, to, (weight * 1000.0).round() as u64))
        .filter(|(_, _, weight)| *weight > 0)
        .collect();
}
