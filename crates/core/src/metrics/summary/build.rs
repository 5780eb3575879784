//! Construction of a summary from a measurement.

use super::distributions::{EACH, rounded};
use super::*;
use crate::metrics::attribution::Bands;
use crate::metrics::bounds::Demand;
use crate::metrics::counters::{Counters, ProgramCause};
use crate::metrics::energy::{Served, Work};
use crate::metrics::results::{OperationResults, StreamResults};
use crate::sim::request::Operation;
use crate::sim::time::Time;

/// Description of a run: the part of a summary that is not measured.
#[derive(Clone, Debug)]
pub struct About {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Device, without overrides.
    pub device: Named,
    /// Workload.
    pub workload: Named,
    /// State before the run.
    pub precondition: Precondition,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Built-in device that the device is, or is based on; `None` for other devices.
    pub base: Option<String>,
    /// Arguments of `floatgate` for this result, without its outputs; empty if another program ran the simulation.
    pub arguments: Vec<String>,
}

impl Summary {
    /// Creates the summary of a run.
    pub fn new(about: About, measurement: &Measurement) -> Summary {
        let Measurement { config, results, counters, measured, .. } = *measurement;
        Summary {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            complete: measurement.complete,
            warnings: about.warnings,
            seed: about.seed,
            device: about.device,
            workload: about.workload,
            config_digest: config.digest(),
            config: config.resolved(),
            changes: about.base.and_then(|base| Changes::new(base, config)),
            arguments: about.arguments,
            precondition: about.precondition,
            measured_s: measured.as_s(),
            requests: Requests::new(measured, &results.all(), |operation| Some(results.of(operation))),
            streams: results.streams.iter().map(Stream::new).collect(),
            distributions: Distributions::new(results, measurement.profile),
            unmapped_reads: counters.unmapped_reads,
            flash: Flash::new(measurement),
            write_amplification: ratio(
                units_programmed(config, counters),
                counters.host_units.saturating_sub(counters.units_unwritten),
            ),
            write_amplification_bytes: ratio(
                counters.pages_programmed_total() * config.page_bytes(),
                counters.host_bytes.saturating_sub(counters.bytes_unwritten),
            ),
            map_cache: MapCache::of(&counters.map),
            gc: Gc::new(measurement),
            temperature: measurement.classes.iter().map(UnitClass::new).collect(),
            wear: Wear::new(config, &measurement.erases),
            utilization: Utilization::new(measurement),
            objects: Vec::new(),
            gangs: GangUse::all(measurement),
            pools: PoolsUse::new(measurement),
            energy: EnergyUse::of(measurement),
            bottleneck: Bottleneck::new(measurement),
            updates: Updates::new(counters),
            buffer: BufferUse::of(measurement),
            firmware: FirmwareUse::new(measurement),
            faults: measurement.faults.as_ref().map(|state| FaultsMet::new(state, &counters.faults, counters.rebuilt)),
            errors: config.errors.as_ref().map(|_| ErrorsMet::new(&counters.errors)),
            live: None,
            array: None,
            members: Vec::new(),
            run: None,
        }
    }
}

/// Returns the number of mapping units programmed, for any cause.
pub fn units_programmed(config: &DeviceConfig, counters: &Counters) -> u64 {
    // A summary, and parity, take the space of this many units, whatever they hold.
    let units_of = |cause| counters.units_of(cause, config.units_per_page(), config.pages_per_unit());
    let others = units_of(ProgramCause::Summary) + units_of(ProgramCause::Parity);
    counters.units_programmed + counters.units_padded + others
}

impl EnergyUse {
    /// Returns the energy of a run, or `None` if the device states none.
    fn of(measurement: &Measurement) -> Option<EnergyUse> {
        let Measurement { config, results, counters, elapsed, channels, .. } = *measurement;
        let data = channels.iter().map(|time| time.data.0 as i64).sum();
        let bytes = [Operation::Read, Operation::Write].map(|operation| results.of(operation).bytes);
        let served = Served { bytes: bytes.iter().sum(), requests: results.all().count() };
        EnergyUse::new(config, &Work { counters, data, span: elapsed }, served)
    }
}

impl Requests {
    /// Creates the requests of a span of time. `of` returns those of an operation, if there are any.
    fn new<F>(span: Time, all: &OperationResults, of: F) -> Requests
    where
        F: Fn(Operation) -> Option<OperationResults>,
    {
        let operations =
            |operation| of(operation).map_or_else(Operations::default, |o| Operations::new(span, &o, o.bytes));
        let data = [Operation::Read, Operation::Write].iter().filter_map(|&operation| of(operation)).map(|of| of.bytes);
        Requests {
            read: operations(Operation::Read),
            write: operations(Operation::Write),
            trim: operations(Operation::Trim),
            write_zeroes: operations(Operation::WriteZeroes),
            flush: operations(Operation::Flush),
            all: Operations::new(span, all, data.sum()),
        }
    }
}

impl Stream {
    fn new(stream: &StreamResults) -> Stream {
        let mut all = OperationResults::default();
        stream.operations.iter().flatten().for_each(|operation| all.add(operation));
        let of = |operation: Operation| stream.operations[operation.index()].as_deref().cloned();
        Stream { name: stream.name.clone(), requests: Requests::new(stream.last.since(stream.first), &all, of) }
    }
}

impl Operations {
    /// Creates the results of requests, of whose bytes `moved` count for the throughput.
    fn new(span: Time, results: &OperationResults, moved: u64) -> Operations {
        let count = results.count();
        let per_second = |amount: f64| (span > Time::ZERO).then(|| amount / span.as_s());
        let mean = |sum: u128| Mean { mean: (count > 0).then(|| sum as f64 / count as f64 / 1e6) };
        Operations {
            count,
            bytes: results.bytes,
            errors: results.errors,
            iops: per_second(count as f64),
            mib_per_s: per_second(moved as f64 / 1_048_576.0),
            latency_us: Distribution::new(&results.latency),
            waiting_us: mean(results.waiting),
            service_us: mean(results.service),
            attribution: results.attribution.as_deref().and_then(Attribution::new),
        }
    }
}

impl Attribution {
    fn new(bands: &Bands) -> Option<Attribution> {
        let at = |share| bands.at(share).map(Parts::new);
        Some(Attribution { mean: Parts::new(bands.mean()?), p50: at(0.5)?, p99: at(0.99)?, p99_9: at(0.999)? })
    }
}

impl Bottleneck {
    fn new(measurement: &Measurement) -> Bottleneck {
        let requests = measurement.results.all().count();
        let elapsed = measurement.elapsed.ps() as f64;
        if requests == 0 || elapsed == 0.0 {
            return Bottleneck::default();
        }
        let bound = |demand: Demand| {
            let each = demand.work as f64 / f64::from(demand.units.max(1));
            Bound {
                resource: demand.resource.to_owned(),
                units: demand.units,
                demand_s: each / 1e12,
                gc: if demand.work > 0 { demand.gc as f64 / demand.work as f64 } else { 0.0 },
                bound_iops: (each > 0.0).then(|| requests as f64 / each * 1e12),
                reached: each / elapsed,
            }
        };
        let mut resources: Vec<Bound> = measurement.work().demands().into_iter().map(bound).collect();
        resources.sort_by(|a, b| b.reached.total_cmp(&a.reached));
        let nearest = &resources[0];
        let limited_by = match (nearest.reached < 0.5, nearest.gc > 0.5) {
            (true, _) => "load",
            (false, true) => "gc",
            (false, false) => &nearest.resource,
        };
        Bottleneck { limited_by: Some(limited_by.to_owned()), resources }
    }
}

impl Wear {
    pub(crate) fn new(config: &DeviceConfig, erases: &[u32]) -> Wear {
        let blocks = (config.geometry.blocks as usize).max(1);
        let most = erases.iter().max().map_or(0, |most| u64::from(*most));
        Wear {
            life_used: ratio(most, u64::from(config.endurance())),
            blocks: Spread::new(erases.iter().map(|e| u64::from(*e))),
            planes: Spread::new(erases.chunks(blocks).map(|plane| plane.iter().map(|e| u64::from(*e)).sum())),
            histogram: WearHistogram::new(erases),
        }
    }
}

impl Spread {
    fn new(values: impl Iterator<Item = u64>) -> Spread {
        let (mut count, mut sum, mut squares, mut max) = (0u128, 0u128, 0u128, 0);
        for value in values {
            count += 1;
            sum += u128::from(value);
            squares += u128::from(value).pow(2);
            max = max.max(value);
        }
        let n = count.max(1);
        // Integers, so that equal values have no deviation at all.
        let variance = (n * squares - sum * sum) as f64 / (n * n) as f64;
        Spread { mean: sum as f64 / n as f64, stddev: variance.sqrt(), max }
    }
}

impl Utilization {
    fn new(measurement: &Measurement) -> Utilization {
        let Measurement { config, elapsed, channels, dies, .. } = *measurement;
        if elapsed == Time::ZERO {
            return Utilization::default();
        }
        let busy = |first: Time, second: Time, lanes: u32| busy(first, second, elapsed, lanes);
        let channels: Vec<_> = channels.iter().map(|time| busy(time.data, time.command, 1)).collect();
        // Independent planes or pairs work at the same time, so their times add up to a multiple of the die's time.
        let lanes = config.lanes_per_die();
        let dies: Vec<_> = dies.iter().map(|time| busy(time.cell, time.register_held, lanes)).collect();
        let each = Each::new(&channels, &dies);
        let chips = ChipShares::new(measurement, &dies);
        let [data, command, idle] = [0, 1, 2].map(|part| Share::new(channels.iter().map(|shares| shares[part])));
        let channels = ChannelShares { data, command, idle };
        let [cell, register_held, idle] = [0, 1, 2].map(|part| Share::new(dies.iter().map(|shares| shares[part])));
        Utilization { channels, dies: DieShares { cell, register_held, idle }, chips, each }
    }
}

impl ChipShares {
    /// Creates the shares from those of each die, if a LUN has several. Its operations follow one another, so the times
    /// of its dies add up, or `luns` has the sum without overlaps.
    fn new(measurement: &Measurement, dies: &[[f64; 3]]) -> Option<ChipShares> {
        let Measurement { config, elapsed, luns, .. } = *measurement;
        let dies_per_lun = (config.planes_per_lun() / config.planes_per_die()) as usize;
        // Gangs have results of their own.
        if dies_per_lun < 2 || config.channels_per_lun() > 1 {
            return None;
        }
        let shares: Vec<f64> = if luns.is_empty() {
            let occupied = |dies: &[[f64; 3]]| dies.iter().map(|[cell, held, _]| cell + held).sum::<f64>();
            dies.chunks(dies_per_lun).map(|dies| occupied(dies).min(1.0)).collect()
        } else {
            luns.iter().map(|time| busy(*time, Time::ZERO, elapsed, 1)[0]).collect()
        };
        let each = if shares.len() > EACH { Vec::new() } else { shares.iter().copied().map(rounded).collect() };
        Some(ChipShares { busy: Share::new(shares.into_iter()), each })
    }
}

/// Returns the shares of two kinds of busy time, and of idle time.
fn busy(first: Time, second: Time, elapsed: Time, lanes: u32) -> [f64; 3] {
    let time = elapsed.ps() as f64 * f64::from(lanes);
    // An operation may be accounted for beyond the end of the measured time: see `Utilization`.
    let whole = time.max((first + second).ps() as f64);
    if whole <= 0.0 {
        return [0.0, 0.0, 1.0];
    }
    let (first, second) = (first.ps() as f64 / whole, second.ps() as f64 / whole);
    [first, second, (1.0 - first - second).max(0.0)]
}

impl Share {
    fn new(shares: impl Iterator<Item = f64>) -> Share {
        let (mut count, mut sum, mut min, mut max) = (0u32, 0.0, 1.0f64, 0.0f64);
        for share in shares {
            count += 1;
            sum += share;
            min = min.min(share);
            max = max.max(share);
        }
        Share { mean: Some(sum / f64::from(count.max(1))), min: Some(min), max: Some(max) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_wear_has_no_deviation() {
        let spread = Spread::new([3, 3, 3].into_iter());
        assert_eq!(spread, Spread { mean: 3.0, stddev: 0.0, max: 3 });
        let spread = Spread::new([1, 3].into_iter());
        assert_eq!(spread, Spread { mean: 2.0, stddev: 1.0, max: 3 });
        assert_eq!(Spread::new(std::iter::empty()), Spread { mean: 0.0, stddev: 0.0, max: 0 });
    }

    #[test]
    fn shares_add_up_to_one() {
        assert_eq!(busy(Time(25), Time(25), Time(100), 1), [0.25, 0.25, 0.5]);
        assert_eq!(busy(Time(100), Time(100), Time(100), 4), [0.25, 0.25, 0.5]);
        // The busy time extends beyond the end.
        assert_eq!(busy(Time(300), Time(100), Time(100), 1), [0.75, 0.25, 0.0]);
        assert_eq!(busy(Time::ZERO, Time::ZERO, Time::ZERO, 1), [0.0, 0.0, 1.0]);
    }

    #[test]
    fn numbers_without_requests_are_null() {
        let none = Operations::new(Time::ZERO, &OperationResults::default(), 0);
        assert_eq!(none, Operations::default());
        assert_eq!(serde_json::to_value(&none).unwrap()["latency_us"]["p99_9"], serde_json::Value::Null);
    }
}
