//! Workloads by distributions: what jobs in fio's words cannot say, such as how gaps between requests are distributed
//! and follow one another, and sizes and addresses that differ by operation.
//!
//! A [`Model`] is a JSON file, made from a trace (`fit`) or from a few moments (`moments`); run, it is a source like
//! any other, made up as it goes. `docs/reference/model.md` says what its parts mean.

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

/// The value of `model` in models of this form; the number is raised when a field changes its meaning or goes.
pub const SCHEMA: &str = "floatgate-model-1";

/// A workload by distributions. Weights are relative: only their ratios count. A sector has 512 B, a page 4 KiB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Which form this is: `floatgate-model-1`.
    pub model: String,
    /// What it was made from, in words.
    pub source: String,
    /// How many requests it makes.
    pub requests: u64,
    /// By operation, each drawn by its weight, independently.
    pub operations: Vec<OperationModel>,
    /// When requests come.
    pub arrivals: ArrivalModel,
}

/// Whether a file looks like a model: its name ends in `.json`.
pub fn looks_like_model(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json") && path.is_file()
}

impl Model {
    /// Reads a model. An error names the file, the place and what is wrong.
    pub fn read(path: &Path) -> Result<Model, SourceError> {
        /// A model holds some thousand numbers; a trace given by mistake must not fill the memory.
        const LONGEST: u64 = 64 << 20;
        let error = |what: String| SourceError(format!("{}: {what}", path.display()));
        let text = read_text(path, LONGEST).map_err(|why| error(format!("cannot read the model: {why}")))?;
        Model::parse(&text).map_err(error)
    }

    /// A model from its JSON.
    pub fn parse(text: &str) -> Result<Model, String> {
        let model: Model = serde_json::from_str(text).map_err(|why| format!("is no model: {why}"))?;
        model.check()?;
        Ok(model)
    }

    /// The model as JSON, with a line feed at the end.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The JSON schema of models.
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

    /// Where the addresses end that it uses, in sectors; `None` for one that uses the whole device.
    pub fn end(&self) -> Option<u64> {
        let ends = self.operations.iter().flat_map(|one| &one.extents).map(|(start, pages)| (start + pages) * PAGE);
        ends.max()
    }
}

/// A sum of weights; too large a one is an error.
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
        /// 2^64 bytes in pages.
        const MOST_PAGES: u64 = 1 << 52;
        let is_extent =
            |(start, pages): &(u64, u64)| *pages > 0 && start.checked_add(*pages).is_some_and(|end| end <= MOST_PAGES);
        if self.chunk_pages == 0 || !self.extents.iter().all(is_extent) {
            return Err("`chunk_pages` and the pages of `extents` must be above 0, and end below 16 EiB".to_owned());
        }
        Ok(())
    }
}

/// A model being run: a stream of requests made up as it goes.
pub struct Modelled {
    name: String,
    requests: u64,
    made: u64,
    operations: Vec<Running>,
    /// The weights of each operation and those before it.
    mix: Vec<u64>,
    arrivals: Chain,
    mix_rng: Rng,
    size_rng: Rng,
    device_sectors: u64,
}

/// An operation of a running model.
struct Running {
    operation: Operation,
    /// Sizes, and the weights of each and those before it.
    sizes: Vec<(u32, u64)>,
    ranks: Ranks,
}

impl Modelled {
    /// Runs a model on a device of so many sectors. `name` is that of its stream, and a part of the seed.
    pub fn new(model: &Model, name: &str, device_sectors: u64, seed: u64) -> Result<Modelled, SourceError> {
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
            let (largest, device) = (size(u64::from(largest.unwrap_or(0))), size(device_sectors));
            return Err(error(format!("a request of {largest} is larger than the device, {device}")));
        }
        let rng = |part: &str| Rng::new(seed, &format!("workload/{name}/{part}"));
        let running = |one: &OperationModel| Running {
            operation: one.kind().unwrap_or(Operation::Read),
            sizes: cumulated(&one.sizes),
            ranks: Ranks::new(one, device_sectors, rng(&format!("address/{}", one.operation))),
        };
        let mix: Vec<(u32, u64)> = model.operations.iter().map(|one| (0, one.weight)).collect();
        Ok(Modelled {
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

/// Weights replaced by their sums up to and with each.
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

impl Source for Modelled {
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
                "{}: arrivals reach 213 days, beyond which there is no time: fewer requests, or a higher \
                 rate, would fit",
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
