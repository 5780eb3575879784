//! Models from a few moments, such as those that papers tabulate.

use super::{ArrivalModel, Gap, Model, OperationModel, SCHEMA, Zone};
use crate::quantity;
use crate::sim::request::SECTOR;
use crate::trace::profile::{self as report, Profile, class_ends, class_of};

/// A workload that is known by its moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Name.
    pub name: &'static str,
    /// Moments, in the syntax of [`read`].
    pub moments: &'static str,
    /// Description.
    pub title: &'static str,
}

/// Workloads of the SSD literature: read and write sizes, shares of reads and mean gaps. Papers tabulate them for the
/// traces of the UMass Trace Repository (the first three) and of Microsoft's production servers, SNIA IOTTA (the
/// others). The tables give the gaps of the last four without a unit. They must be microseconds, because otherwise the
/// part of Develop that is known to be 300 s long would have another length.
pub const KNOWN: &[Known] = &[
    Known {
        name: "financial1",
        moments: "read=23.2% read_size=2.25KiB write_size=3.75KiB interarrival=8.19ms",
        title: "OLTP at a financial institution (UMass)",
    },
    Known {
        name: "financial2",
        moments: "read=82.3% read_size=2.3KiB write_size=2.9KiB interarrival=11.08ms",
        title: "OLTP at a financial institution (UMass)",
    },
    Known {
        name: "websearch",
        moments: "read=99.9% read_size=15.15KiB write_size=8.6KiB interarrival=2.99ms",
        title: "a search engine (UMass)",
    },
    Known {
        name: "exchange",
        moments: "read=30.8% read_size=15.15KiB write_size=14.5KiB interarrival=1179us",
        title: "a mail server (SNIA)",
    },
    Known {
        name: "msn",
        moments: "read=67.2% read_size=9.6KiB write_size=11.1KiB interarrival=513us",
        title: "a storage server of MSN (SNIA)",
    },
    Known {
        name: "develop",
        moments: "read=88.6% read_size=18.45KiB write_size=10.95KiB interarrival=1985us",
        title: "a release server of developers' tools (SNIA)",
    },
    Known {
        name: "radius",
        moments: "read=17.1% read_size=124.25KiB write_size=12.45KiB interarrival=9475us",
        title: "an authentication server (SNIA)",
    },
];

/// Default number of requests.
const REQUESTS: u64 = 1_000_000;

/// Moments of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// Share of reads.
    pub read: f64,
    /// Mean sizes of reads and writes in sectors.
    pub sectors: [f64; 2],
    /// Mean gap in ps.
    pub gap_ps: u64,
    /// Coefficient of variation of the gaps.
    pub variation: f64,
    /// Number of pages used. `None` for the whole device.
    pub pages: Option<u64>,
    /// Share of the accesses to the hottest fifth of the pages.
    pub hot: f64,
    /// Share of requests that start at the end of the last one of their operation.
    pub sequential: f64,
    /// Number of requests.
    pub requests: u64,
}

const KEYS: &str = "read=23.2% read_size=2.25KiB write_size=3.75KiB interarrival=8.19ms, and where they are known \
                    cv=1 (of the gaps), footprint=10GiB, hot=80% (of the accesses, to 20 % of the pages), \
                    sequential=5%, requests=1000000";

/// Parses moments: `key=value` words, or the name of a known workload followed by further words.
pub fn read(text: &str) -> Result<Moments, String> {
    let mut words: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        match KNOWN.iter().find(|known| known.name == word) {
            Some(known) => words.extend(known.moments.split(' ')),
            None if !word.contains('=') => {
                let names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
                return Err(format!("unknown workload `{word}`: choose one of {}, or write {KEYS}", names.join(", ")));
            }
            None => words.push(word),
        }
    }
    let mut moments = Moments {
        read: f64::NAN,
        sectors: [f64::NAN; 2],
        gap_ps: 0,
        variation: 1.0,
        pages: None,
        hot: 0.2,
        sequential: 0.0,
        requests: REQUESTS,
    };
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        moments.set(key, value).map_err(|why| format!("`{word}`: {why}"))?;
    }
    moments.complete()
}

impl Moments {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "read" => self.read = share(value)?,
            "read_size" => self.sectors[0] = size(value)?,
            "write_size" => self.sectors[1] = size(value)?,
            "interarrival" => self.gap_ps = quantity::time(value)?,
            "cv" => {
                let cv = value.parse::<f64>().ok().filter(|cv| (0.0..=100.0).contains(cv));
                self.variation = cv.ok_or("the coefficient of variation is a number from 0 to 100")?;
            }
            "footprint" => self.pages = Some(quantity::bytes(value)? / 4096).filter(|pages| *pages > 0),
            "hot" => self.hot = share(value)?,
            "sequential" => self.sequential = share(value)?,
            "requests" => {
                let requests = value.parse().ok().filter(|requests| *requests > 0);
                self.requests = requests.ok_or("must be a whole number from 1")?;
            }
            _ => return Err(format!("there is no such moment; write {KEYS}")),
        }
        Ok(())
    }

    fn complete(self) -> Result<Moments, String> {
        let missing = [
            ("read", self.read.is_nan()),
            ("read_size", self.sectors[0].is_nan() && self.read > 0.0),
            ("write_size", self.sectors[1].is_nan() && self.read < 1.0),
            ("interarrival", self.gap_ps == 0),
        ];
        match missing.iter().find(|(_, is_missing)| *is_missing) {
            Some((key, _)) => Err(format!("the moment `{key}` is needed: write {KEYS}")),
            None => Ok(self),
        }
    }

    /// Returns the profile of a trace with only these moments, for comparison with the generated workload.
    pub fn profile(&self) -> Profile {
        let of = |mean: f64, variation: Option<f64>| report::Moments {
            mean: Some(mean),
            variation,
            ..report::Moments::default()
        };
        let operation = |((name, share), sectors): ((&str, f64), f64)| report::OperationProfile {
            operation: name.to_owned(),
            requests: (self.requests as f64 * share).round() as u64,
            share,
            size_kib: of(sectors / 2.0, None),
            sequential: self.sequential,
            aligned: 1.0,
            ..report::OperationProfile::default()
        };
        let used = [("read", self.read), ("write", 1.0 - self.read)].into_iter().zip(self.sectors);
        Profile {
            requests: self.requests,
            operations: used.filter(|((_, share), _)| *share > 0.0).map(operation).collect(),
            arrivals: report::Arrivals {
                gap_us: of(self.gap_ps as f64 / 1e6, Some(self.variation)),
                ..report::Arrivals::default()
            },
            ..Profile::default()
        }
    }

    /// Builds a model with these moments. Sizes are the two whole numbers of sectors next to the mean, weighted so that
    /// the mean is exact to a millionth. Gaps are exponential, or lognormal if their coefficient of variation is not 1.
    pub fn model(&self, source: &str) -> Model {
        /// Sum of the weights.
        const PARTS: f64 = 1e6;
        let reads = (self.read * PARTS).round() as u64;
        let weights = [("read", reads), ("write", PARTS as u64 - reads)];
        let operation = |((name, weight), sectors): ((&str, u64), f64)| {
            let whole = sectors.floor().max(1.0);
            let more = ((sectors - whole).max(0.0) * PARTS).round() as u64;
            let sizes = [(whole as u32, PARTS as u64 - more), (whole as u32 + 1, more)];
            OperationModel {
                operation: name.to_owned(),
                weight,
                sizes: sizes.into_iter().filter(|(_, weight)| *weight > 0).collect(),
                sequential: self.sequential,
                aligned: 1.0,
                chunk_pages: 64,
                extents: self.pages.map(|pages| (0, pages)).into_iter().collect(),
                zones: vec![Zone { part: 0.2, weight: self.hot }, Zone { part: 0.8, weight: 1.0 - self.hot }],
            }
        };
        let used = weights.into_iter().zip(self.sectors).filter(|((_, weight), _)| *weight > 0);
        Model {
            model: SCHEMA.to_owned(),
            source: source.to_owned(),
            requests: self.requests,
            operations: used.map(operation).collect(),
            arrivals: ArrivalModel { gaps: gaps(self.gap_ps as f64, self.variation), transitions: Vec::new() },
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    let share = number.ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "must be a share from 0 to 1, or a percentage like 23.2%".to_owned())
}

/// Parses a mean size, in sectors.
fn size(text: &str) -> Result<f64, String> {
    let bytes = quantity::bytes(text)?;
    match bytes {
        SECTOR..=0x7fff_ffff => Ok(bytes as f64 / SECTOR as f64),
        _ => Err("a mean size is from 512 B to 2 GiB".to_owned()),
    }
}

/// Returns classes of gaps with a mean and a coefficient of variation: constant for 0, exponential for 1, else
/// lognormal.
fn gaps(mean: f64, variation: f64) -> Vec<Gap> {
    if variation == 0.0 {
        return vec![Gap { from_ps: mean as u64, to_ps: mean as u64, mean_ps: mean, weight: 1.0 }];
    }
    // Returns the share of the gaps below a bound, and their share of the sum of all gaps.
    let below = |bound: f64| -> (f64, f64) {
        let x = bound / mean;
        if bound <= 0.0 {
            return (0.0, 0.0);
        }
        if variation == 1.0 {
            return (-libm::expm1(-x), -libm::expm1(-x) - x * libm::exp(-x));
        }
        let s = libm::log1p(variation * variation).sqrt();
        let z = (libm::log(x) + s * s / 2.0) / s;
        let normal = |z: f64| libm::erfc(-z / std::f64::consts::SQRT_2) / 2.0;
        (normal(z), normal(z - s))
    };
    let mut gaps = Vec::new();
    for class in 0..=class_of(u64::MAX) {
        let (from_ps, to_ps) = class_ends(class);
        let ((count, sum), (count_to, sum_to)) = (below(from_ps as f64), below(to_ps as f64));
        let weight = count_to - count;
        // Omit classes with less than one gap in 10^12.
        if weight > 1e-12 {
            let mean_ps = ((sum_to - sum) * mean / weight).clamp(from_ps as f64, to_ps as f64);
            gaps.push(Gap { from_ps, to_ps, mean_ps, weight });
        }
    }
    gaps
}
