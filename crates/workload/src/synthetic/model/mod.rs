//! Workload models: distributions that jobs in fio syntax cannot express, such as the distribution and correlation of
//! the gaps between requests, and sizes and addresses that depend on the operation.
//!
//! A [`Model`] is a JSON file, built from a trace (`fit`) or from a few moments (`moments`). A running model is a
//! source that generates its requests on demand. `docs/reference/model.md` explains the parts of a model.

mod arrivals;
pub mod compare;
pub mod fit;
mod form;
pub mod moments;
mod regions;
pub mod words;

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::readable;
use crate::sim::request::{Operation, Request, SECTOR};
use crate::sim::rng::Rng;
use crate::sim::source::{Pace, Source, SourceError};
use crate::sim::text::read_text;
use crate::sim::time::Time;
use arrivals::Chain;
use form::PAGE;
pub use form::{ArrivalModel, Gap, OperationModel, Zone};
use regions::Ranks;

/// Value of `model` in models of this version. The number is raised when a field is removed or changes its meaning.
pub const SCHEMA: &str = "floatgate-model-1";

/// A workload described by distributions. Weights are relative: only their ratios matter. A sector has 512 B, a page 4
/// KiB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Format version: `floatgate-model-1`.
    pub model: String,
    /// Description of the origin of the model.
    pub source: String,
    /// Number of requests.
    pub requests: u64,
    /// Operations. Each request draws one independently by weight.
    pub operations: Vec<OperationModel>,
    /// Arrivals of the requests.
    pub arrivals: ArrivalModel,
}

/// Returns `true` if a file looks like a model: its name ends with `.json`.
pub fn looks_like_model(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json") && path.is_file()
}

impl Model {
    /// Reads a model. Errors name the file and the position.
    pub fn read(path: &Path) -> Result<Model, SourceError> {
        /// A model contains some thousand numbers. The limit prevents that a trace given by mistake fills the memory.
        const LONGEST: u64 = 64 << 20;
        let error = |what: String| SourceError(format!("{}: {what}", path.display()));
        let text = read_text(path, LONGEST).map_err(|why| error(format!("cannot read the model: {why}")))?;
        Model::parse(&text).map_err(error)
    }

    /// Parses a model from JSON.
    pub fn parse(text: &str) -> Result<Model, String> {
        let model: Model = serde_json::from_str(text).map_err(|why| format!("not a model: {why}"))?;
        model.check()?;
        Ok(model)
    }

    /// Returns the model as JSON, followed by a line feed.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Returns the JSON schema of models.
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Model).to_value()
    }

    fn check(&self) -> Result<(), String> {
        if self.model != SCHEMA {
            return Err(format!("`model` is `{}`; this version reads `{SCHEMA}`", self.model));
        }
        if self.requests == 0 {
            return Err("`requests` is 0: a model makes at least one".to_owned());
        }
        if self.operations.is_empty() || weight(self.operations.iter().map(|one| one.weight))? == 0 {
            return Err("`operations` has none with a weight above 0".to_owned());
        }
        for one in &self.operations {
            one.check().map_err(|why| format!("operation `{}`: {why}", one.operation))?;
        }
        arrivals::check(&self.arrivals)
    }

    /// Returns the end of the addresses that the model uses, in sectors. `None` if it uses the whole device.
    pub fn end(&self) -> Option<u64> {
        let ends = self.operations.iter().flat_map(|one| &one.extents).map(|(start, pages)| (start + pages) * PAGE);
        ends.max()
    }
}

/// Returns the sum of weights. Fails on overflow.
fn weight(mut weights: impl Iterator<Item = u64>) -> Result<u64, String> {
    let sum = weights.try_fold(0_u64, |sum, weight| sum.checked_add(weight));
    sum.ok_or_else(|| "the weights add up to more than 2^64".to_owned())
}

impl OperationModel {
    fn kind(&self) -> Option<Operation> {
        Operation::ALL.into_iter().find(|operation| operation.name() == self.operation)
    }

    fn check(&self) -> Result<(), String> {
        let names = Operation::ALL.map(Operation::name).join(", ");
        let kind = self.kind().ok_or_else(|| format!("must be one of {names}"))?;
        if weight(self.sizes.iter().map(|(_, weight)| *weight))? == 0 {
            return Err("`sizes` has none with a weight above 0".to_owned());
        }
        if kind != Operation::Flush && self.sizes.iter().any(|(sectors, weight)| *sectors == 0 && *weight > 0) {
            return Err("a size of 0 sectors is for flushes only".to_owned());
        }
        for (name, value) in [("sequential", self.sequential), ("aligned", self.aligned)] {
            if !(0.0..=1.0).contains(&value) {
                return Err(format!("`{name}` is {value}; a probability is from 0 to 1"));
            }
        }
        let is_weight = |value: f64| value.is_finite() && value >= 0.0;
        let zones: f64 = self.zones.iter().map(|zone| zone.weight).sum();
        let parts: f64 = self.zones.iter().map(|zone| zone.part).sum();
        if self.zones.iter().any(|zone| !is_weight(zone.part) || !is_weight(zone.weight)) || zones <= 0.0 {
            return Err("`zones` needs parts and weights of at least 0, and one weight above 0".to_owned());
        }
        if (parts - 1.0).abs() > 1e-6 {
            return Err(format!("the parts of `zones` add up to {parts}, not to 1"));
        }
        /// 2^64 bytes, in pages.
        const MAX_PAGES: u64 = 1 << 52;
        let is_extent =
            |(start, pages): &(u64, u64)| *pages > 0 && start.checked_add(*pages).is_some_and(|end| end <= MAX_PAGES);
        if self.chunk_pages == 0 || !self.extents.iter().all(is_extent) {
            return Err("`chunk_pages` and the pages of `extents` must be above 0, and end below 16 EiB".to_owned());
        }
        Ok(())
    }
}

/// A running model, which generates its requests on demand.
pub struct Modeled {
    name: String,
    requests: u64,
    made: u64,
    operations: Vec<Running>,
    /// Cumulative weights of the operations.
    mix: Vec<u64>,
    arrivals: Chain,
    mix_rng: Rng,
    size_rng: Rng,
    device_sectors: u64,
}

/// An operation of a running model.
struct Running {
    operation: Operation,
    /// Sizes, with cumulative weights.
    sizes: Vec<(u32, u64)>,
    ranks: Ranks,
}

impl Modeled {
    /// Runs a model on a device of `device_sectors`. `name` is the name of the stream, and a part of the seed.
    pub fn new(model: &Model, name: &str, device_sectors: u64, seed: u64) -> Result<Modeled, SourceError> {
        let error = |what: String| SourceError(format!("{name}: {what}"));
        model.check().map_err(error)?;
        let size = |sectors: u64| readable(u128::from(sectors) * u128::from(SECTOR));
        let end = model.end().unwrap_or(0);
        if end > device_sectors {
            return Err(error(format!(
                "the model works on the first {} and the device has {}; make one with a smaller footprint \
                 (floatgate trace synth --scale-footprint), or take a larger device",
                size(end),
                size(device_sectors)
            )));
        }
        let largest = model.operations.iter().flat_map(|one| &one.sizes).map(|(sectors, _)| *sectors).max();
        if u64::from(largest.unwrap_or(0)) > device_sectors {
            let largest = size(u64::from(largest.unwrap_or(0)));
            let device = size(device_sectors);
            return Err(error(format!("a request of {largest} is larger than the device, {device}")));
        }
        let rng = |part: &str| Rng::new(seed, &format!("workload/{name}/{part}"));
        let running = |one: &OperationModel| Running {
            operation: one.kind().unwrap_or(Operation::Read),
            sizes: cumulated(&one.sizes),
            ranks: Ranks::new(one, device_sectors, rng(&format!("address/{}", one.operation))),
        };
        let mix: Vec<(u32, u64)> = model.operations.iter().map(|one| (0, one.weight)).collect();
        Ok(Modeled {
            name: name.to_owned(),
            requests: model.requests,
            made: 0,
            operations: model.operations.iter().map(running).collect(),
            mix: cumulated(&mix).into_iter().map(|(_, up_to)| up_to).collect(),
            arrivals: Chain::new(&model.arrivals, rng("arrival")),
            mix_rng: rng("mix"),
            size_rng: rng("size"),
            device_sectors,
        })
    }
}

/// Replaces weights by cumulative weights.
fn cumulated(weights: &[(u32, u64)]) -> Vec<(u32, u64)> {
    let mut sum = 0;
    weights
        .iter()
        .map(|(value, weight)| {
            sum += weight;
            (*value, sum)
        })
        .collect()
}

impl Source for Modeled {
    fn next_request(&mut self) -> Result<Option<Request>, SourceError> {
        if self.made == self.requests {
            return Ok(None);
        }
        let arrival = match self.made {
            0 => Some(0),
            _ => self.arrivals.next(),
        };
        let arrival = arrival.ok_or_else(|| {
            SourceError(format!(
                "{}: arrivals exceed 213 days, the limit of simulated time; use fewer requests or a higher \
                 rate",
                self.name
            ))
        })?;
        self.made += 1;
        let total = self.mix.last().copied().unwrap_or(1);
        let draw = self.mix_rng.below(total);
        let running = &mut self.operations[self.mix.partition_point(|up_to| *up_to <= draw)];
        let total = running.sizes.last().map_or(1, |(_, up_to)| *up_to);
        let draw = self.size_rng.below(total);
        let (sectors, _) = running.sizes[running.sizes.partition_point(|(_, up_to)| *up_to <= draw)];
        let lba = if sectors == 0 { 0 } else { running.ranks.next(sectors) };
        debug_assert!(lba + u64::from(sectors) <= self.device_sectors);
        Ok(Some(Request::new(Time(arrival), running.operation, lba, sectors)))
    }

    fn pace(&self) -> Pace {
        Pace::Timed { depth: None }
    }

    fn streams(&self) -> Vec<String> {
        vec![self.name.clone()]
    }

    fn progress(&self) -> Option<f64> {
        Some(self.made as f64 / self.requests as f64)
    }

    fn description(&self) -> String {
        format!("{}: {} requests by distributions", self.name, self.requests)
    }
}

#[cfg(test)]
mod tests;
