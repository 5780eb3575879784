//! Comparison of the moments of a generated workload with those of its trace.

use schemars::JsonSchema;
use serde::Serialize;

use crate::trace::profile::{HotShares, OperationProfile, Profile};

/// A moment of both workloads.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Moment {
    /// Name.
    pub name: String,
    /// Value in the trace.
    pub trace: f64,
    /// Value in the generated workload.
    pub fit: f64,
    /// True for a share, whose deviation is the difference. False for a quantity, whose deviation is relative.
    pub is_share: bool,
    /// Deviation, as a fraction.
    pub deviation: f64,
    /// True if the deviation is large enough to affect results.
    pub is_poor: bool,
}

/// Tolerance for shares.
const SHARE: f64 = 0.05;
/// Relative tolerance for quantities.
const QUANTITY: f64 = 0.10;
/// Tolerance for measures of bursts, which few events determine.
const BURSTS: f64 = 0.5;
/// Tolerance for measures that one percent of the values determine.
const TAILS: f64 = 0.25;

/// Collects the moments that both workloads have.
struct Moments(Vec<Moment>);

impl Moments {
    fn share(&mut self, name: &str, trace: Option<f64>, fit: Option<f64>) {
        if let (Some(trace), Some(fit)) = (trace, fit) {
            let deviation = fit - trace;
            let is_poor = deviation.abs() > SHARE;
            self.0.push(Moment { name: name.to_owned(), trace, fit, is_share: true, deviation, is_poor });
        }
    }

    fn quantity(&mut self, name: &str, trace: Option<f64>, fit: Option<f64>, tolerance: f64) {
        if let (Some(trace), Some(fit)) = (trace, fit) {
            let deviation = if trace == fit { 0.0 } else { fit / trace - 1.0 };
            let is_poor = !deviation.is_finite() || deviation.abs() > tolerance;
            self.0.push(Moment { name: name.to_owned(), trace, fit, is_share: false, deviation, is_poor });
        }
    }
}

/// Compares the moments of a trace and of the workload generated for it.
pub fn compare(trace: &Profile, fit: &Profile) -> Vec<Moment> {
    let mut moments = Moments(Vec::new());
    // Pages are not comparable if the numbers of requests differ much.
    let is_whole = fit.requests * 10 >= trace.requests * 9 && fit.requests * 9 <= trace.requests * 10;
    for one in &trace.operations {
        let Some(other) = fit.operation(&one.operation) else {
            moments.share(&format!("{} share", one.operation), Some(one.share), Some(0.0));
            continue;
        };
        operation(&mut moments, one, other, is_whole);
    }
    let (one, other) = (&trace.arrivals, &fit.arrivals);
    moments.quantity("gap mean ms", ms(one.gap_us.mean), ms(other.gap_us.mean), QUANTITY);
    moments.quantity("gap CV", one.gap_us.variation, other.gap_us.variation, TAILS);
    moments.quantity("gap median ms", ms(one.median_us), ms(other.median_us), TAILS);
    moments.share("gap correlation", one.correlation, other.correlation);
    for burst in &one.bursts {
        let same = other.bursts.iter().find(|same| same.window_s == burst.window_s);
        let name = format!("dispersion in {} s", burst.window_s);
        moments.quantity(&name, Some(burst.dispersion), same.map(|same| same.dispersion), BURSTS);
    }
    let (one, other) = (&trace.footprint, &fit.footprint);
    if is_whole {
        let mib = |pages: f64| (pages > 0.0).then_some(pages / 256.0);
        moments.quantity("footprint MiB", mib(one.pages), mib(other.pages), QUANTITY);
        moments.quantity("pages read MiB", mib(one.read_pages), mib(other.read_pages), QUANTITY);
        moments.quantity("pages written MiB", mib(one.written_pages), mib(other.written_pages), QUANTITY);
        moments.share("overwrites", one.overwrites, other.overwrites);
        moments.share("updates", one.updates, other.updates);
        moments.share("reads of unwritten", one.reads_of_unwritten, other.reads_of_unwritten);
    }
    moments.0
}

fn ms(us: Option<f64>) -> Option<f64> {
    us.map(|us| us / 1e3)
}

fn operation(moments: &mut Moments, one: &OperationProfile, other: &OperationProfile, is_whole: bool) {
    let name = &one.operation;
    moments.share(&format!("{name} share"), Some(one.share), Some(other.share));
    let positive = |mean: Option<f64>| mean.filter(|mean| *mean > 0.0);
    let (size, made) = (&one.size_kib, &other.size_kib);
    moments.quantity(&format!("{name} KiB mean"), positive(size.mean), made.mean, QUANTITY);
    moments.quantity(&format!("{name} KiB deviation"), positive(size.deviation), made.deviation, QUANTITY);
    moments.share(&format!("{name} sequential"), Some(one.sequential), Some(other.sequential));
    moments.share(&format!("{name} starts at 4K"), Some(one.aligned), Some(other.aligned));
    let shares = |hot: Option<HotShares>| {
        hot.filter(|_| is_whole).map(|hot| [hot.of_1_percent, hot.of_5_percent, hot.of_10_percent, hot.of_20_percent])
    };
    if let (Some(one), Some(other)) = (shares(one.hot), shares(other.hot)) {
        for (percent, (one, other)) in [1, 5, 10, 20].into_iter().zip(one.into_iter().zip(other)) {
            moments.share(&format!("{name} hottest {percent} %"), Some(one), Some(other));
        }
    }
}
