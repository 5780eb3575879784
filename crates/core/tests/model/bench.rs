//! Run of a case: the device and the reference receive the same requests.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use floatgate_core::flash::Keep;
use floatgate_core::internals::{Durability, Mutant};
use floatgate_core::results::Counters;
use floatgate_core::sim::request::{Completion, Operation, Request, Status};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};
use floatgate_core::summary::{Precondition, Reached};
use floatgate_core::timeline::Probe;

use crate::accounts::{check_blocks, check_bounds, check_busy, check_lanes, check_pools};
use crate::case::{Case, Load, one_in, pick};
use crate::common;
use crate::common::history::{Digests, History};
use crate::reference::Reference;

/// Number of events without a completion after which the device counts as stuck. A full device of these sizes moves all
/// its data in fewer events.
pub const PATIENCE: u64 = 100_000;

struct Bench {
    device: Device,
    reference: Reference,
    rng: Rng,
    tag: u64,
    submitted: u64,
    completed: u64,
    completions: Vec<Completion>,
    /// True if the device reports latency breakdowns.
    attributed: bool,
    options: Options,
    history: Option<History>,
    /// Counters at the start of the timed part.
    earlier: Counters,
}

impl Bench {
    fn new(case: &Case, mutant: Mutant) -> Bench {
        let (config, externals) = case.with_externals();
        let options = Options { seed: case.seed, verify: true, attribution: case.seed & 1 == 0, externals, mutant };
        Bench {
            reference: Reference::new(&config),
            device: common::build(config, options.clone()),
            rng: Rng::new(case.seed, "model/load"),
            tag: 0,
            submitted: 0,
            completed: 0,
            completions: Vec::new(),
            attributed: options.attribution,
            options,
            history: None,
            earlier: Counters::default(),
        }
    }

    fn draw(&mut self, load: &Load) -> Request {
        self.tag += 1;
        load.request(&mut self.rng, self.device.config(), self.tag)
    }

    /// Writes all units, and then performs random operations, in functional mode.
    fn functional(&mut self, load: &Load) -> Result<(), String> {
        let (unit, units) = (self.device.config().sectors_per_unit(), self.device.config().logical_units());
        for lpn in (0..units).filter(|_| load.fill) {
            self.tag += 1;
            let write = Request::new(Time::ZERO, Operation::Write, lpn * u64::from(unit), unit);
            let write = Request { tag: self.tag, ..write };
            self.reference.submit(&write);
            let contents = self.device.serve_now(&write).ok_or("refused")?;
            self.reference.complete(&write, &contents)?;
        }
        for _ in 0..load.functional {
            let request = self.draw(load);
            self.reference.submit(&request);
            let contents = self.device.serve_now(&request).ok_or("refused")?;
            self.reference.complete(&request, &contents)?;
        }
        self.device.ftl_mut().seal();
        self.device.check_invariants()
    }

    fn timed(&mut self, load: &Load) -> Result<(), String> {
        if load.watch {
            self.device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
        }
        self.earlier = self.device.ftl().counters;
        let (mut events, mut completed) = (0, 0);
        while self.submitted < load.timed || self.device.outstanding() > 0 {
            let room = self.submitted < load.timed && self.device.outstanding() < load.depth;
            let event = self.device.next_event();
            if room && (event.is_none() || self.rng.below(4) > 0) {
                self.submit(load);
                if self.submitted.is_multiple_of(64) {
                    check_bounds(&self.device)?;
                }
            } else {
                let at = event.ok_or_else(|| self.device.explain_stall())?;
                self.device.advance(at);
            }
            self.collect()?;
            if let Some(history) = &mut self.history {
                history.reported(&mut self.device);
            }
            events = if self.completed > completed { 0 } else { events + 1 };
            completed = self.completed;
            // A full device may update a translation page for each unit that it moves.
            let patience = if load.fill { 20 * PATIENCE } else { PATIENCE };
            if events > patience {
                return Err(format!("no request has completed for {patience} events: {}", self.device.explain_stall()));
            }
        }
        Ok(())
    }

    fn submit(&mut self, load: &Load) {
        let now = self.device.now();
        let pause = if load.pause > 0 { self.rng.below(load.pause * 1_000_000) } else { 0 };
        self.device.advance(now + Time(pause));
        if one_in(&mut self.rng, 200) {
            self.submit_outside();
        }
        let request = Request { arrival: self.device.now(), ..self.draw(load) };
        self.reference.submit(&request);
        self.submitted += 1;
        self.device.submit(request.arrival, request);
    }

    /// Submits a request beyond the end of the device.
    fn submit_outside(&mut self) {
        let (now, sectors) = (self.device.now(), self.device.config().logical_sectors());
        let operation = *pick(&mut self.rng, &Operation::ALL[..4]);
        let lba = *pick(&mut self.rng, &[sectors - 1, sectors, u64::MAX - 1]);
        self.device.submit(now, Request { tag: u64::MAX, ..Request::new(now, operation, lba, 2) });
        self.submitted += 1;
    }

    fn collect(&mut self) -> Result<(), String> {
        let mut completions = std::mem::take(&mut self.completions);
        self.device.take_completions(&mut completions);
        let mut breakdowns = Vec::new();
        self.device.take_breakdowns(&mut breakdowns);
        let mut breakdowns = breakdowns.into_iter();
        let mut contents: BTreeMap<u64, Vec<u32>> = self.device.take_contents().into_iter().collect();
        for completion in completions.drain(..) {
            self.completed += 1;
            let breakdown = breakdowns.next();
            if let Some(history) = &mut self.history {
                history.answer(&completion, breakdown.as_ref());
            }
            if let Some(breakdown) = breakdown
                && breakdown.total() != completion.finish - completion.request.arrival
            {
                return Err(format!("{completion:?} has a latency other than the sum of {breakdown:?}"));
            }
            if breakdown.is_some() != self.attributed {
                return Err(format!("{completion:?} has the breakdown {breakdown:?}"));
            }
            let Completion { request, status, start, finish } = completion;
            let outside = request.tag == u64::MAX;
            let failed = self.is_told(&completion);
            if (status == Status::OutOfRange) != outside || (status != Status::Ok) != (outside || failed) {
                return Err(format!("{request:?} ended with {status:?}"));
            }
            if !(request.arrival <= start && start <= finish) {
                return Err(format!("{request:?} started at {start:?} and finished at {finish:?}"));
            }
            let returned = contents.remove(&request.tag).unwrap_or_default();
            if failed {
                self.reference.fail(&request, status);
            } else {
                self.reference.complete(&request, &returned)?;
            }
        }
        Ok(())
    }

    /// Returns `true` if a request failed and the device has counted the cause.
    fn is_told(&self, completion: &Completion) -> bool {
        let Completion { request, status, .. } = completion;
        let lost = self.device.ftl().counters.faults.uncorrectable.iter().sum::<u64>() > 0;
        match status {
            Status::Uncorrectable => {
                matches!(request.operation, Operation::Read | Operation::Write | Operation::WriteZeroes) && lost
            }
            Status::ReadOnly => request.operation != Operation::Read && self.device.ftl().read_only_since().is_some(),
            Status::Ok | Status::OutOfRange => false,
        }
    }

    /// Reads all units in timed mode, one by one.
    fn read_all(&mut self) -> Result<(), String> {
        let per_unit = self.device.config().sectors_per_unit();
        for unit in 0..self.device.config().logical_units() {
            self.tag += 1;
            let now = self.device.now();
            let lba = unit * u64::from(per_unit);
            let read = Request { tag: self.tag, ..Request::new(now, Operation::Read, lba, per_unit) };
            self.reference.submit(&read);
            self.submitted += 1;
            self.device.submit(now, read);
            self.rest()?;
            self.collect()?;
            if self.submitted != self.completed {
                return Err(format!(
                    "a read of unit {unit} of an idle device does not complete: {}",
                    self.device.explain_stall()
                ));
            }
        }
        Ok(())
    }

    /// Waits until the device is idle.
    fn rest(&mut self) -> Result<(), String> {
        // Each missed entry and each evicted dirty entry may have caused an update that no request waits for.
        let map = self.device.ftl().counters.map;
        let mut events = 0;
        let patience = PATIENCE + 20 * (map.misses + map.evictions_dirty);
        while let Some(at) = self.device.next_event() {
            self.device.advance(at);
            events += 1;
            if events > patience {
                return Err("garbage collection does not end".to_owned());
            }
        }
        Ok(())
    }

    /// Writes the records of trims, without which a device cannot be saved.
    fn flush_trims(&mut self) -> Result<(), String> {
        if !self.device.config().durability.trim_journal {
            return Ok(());
        }
        self.tag += 1;
        let flush = Request { tag: self.tag, ..Request::new(self.device.now(), Operation::Flush, 0, 0) };
        self.reference.submit(&flush);
        self.submitted += 1;
        self.device.submit(flush.arrival, flush);
        self.rest()?;
        self.collect()?;
        if self.submitted == self.completed {
            Ok(())
        } else {
            Err(format!("a flush of an idle device does not complete: {}", self.device.explain_stall()))
        }
    }

    /// Saves the device and continues with the loaded one.
    fn reload(&mut self) -> Result<(), String> {
        let saved = |device: &Device| {
            let (origin, mut bytes) =
                (Precondition { requested: String::new(), reached: Reached::default() }, Vec::new());
            device.save(&origin, &mut bytes).map(|()| bytes).map_err(|error| format!("save: {error}"))
        };
        let bytes = saved(&self.device)?;
        let config = self.device.config().clone();
        let loaded =
            Device::load(config, self.options.clone(), &bytes[..]).map_err(|error| format!("load: {error}"))?;
        if let Some(history) = &mut self.history {
            history.state(&bytes);
        }
        self.device = loaded.0;
        self.device.check_invariants()?;
        if saved(&self.device)? == bytes {
            Ok(())
        } else {
            Err("a loaded device is saved with different bytes".to_owned())
        }
    }

    /// Waits until the device is idle, then reads and counts everything.
    fn finish(&mut self, load: &Load) -> Result<(), String> {
        self.rest()?;
        self.device.check_invariants()?;
        self.device.write_out_buffer();
        self.rest()?;
        self.collect()?;
        if self.device.config().faults.is_some() {
            self.read_all()?;
        }
        if self.device.ftl().read_only_since().is_some() {
            self.settle(load)?;
            return self.finish_read_only();
        }
        if self.device.buffer().is_some_and(|buffer| !buffer.is_clean()) {
            return Err("the buffer has dirty units".to_owned());
        }
        if self.submitted != self.completed || !self.device.is_idle() {
            return Err(format!("{} of {} requests completed", self.completed, self.submitted));
        }
        self.device.check_invariants()?;
        check_bounds(&self.device)?;
        // The accounts do not include units of the device itself.
        if self.device.config().durability == Durability::default() {
            check_blocks(&self.device, load.functional > 0)?;
            check_pools(&self.device, &self.earlier)?;
        }
        self.settle(load)?;
        self.flush_trims()?;
        // Memory that survives power cuts keeps its records.
        if self.device.trims_in_memory().unwrap_or(0) == 0 {
            self.reload()?;
        }
        if self.device.config().faults.is_some() {
            return self.read_all();
        }
        let all = Request { tag: self.tag + 1, ..Request::new(Time::ZERO, Operation::Read, 0, 0) };
        let all = Request { sectors: self.device.config().logical_sectors() as u32, ..all };
        self.reference.submit(&all);
        let contents = self.device.serve_now(&all).ok_or("refused")?;
        self.reference.complete(&all, &contents)
    }
}

impl Bench {
    /// Checks the recorded phases, and completes the history.
    fn settle(&mut self, load: &Load) -> Result<(), String> {
        let Some(probe) = self.device.array_mut().take_probe() else { return Ok(()) };
        if let Some(history) = &mut self.history {
            history.reported(&mut self.device);
            history.operations(&probe);
            history.summary(&self.device);
        }
        if load.watch && self.device.ftl().read_only_since().is_none() {
            check_lanes(&self.device, &probe)?;
            check_busy(&self.device, &probe)?;
        }
        Ok(())
    }

    /// Checks that a read-only device has completed all requests and refuses more writes.
    fn finish_read_only(&mut self) -> Result<(), String> {
        if self.submitted != self.completed || !self.device.is_idle() {
            return Err(format!("{} of {} requests completed in a read-only device", self.completed, self.submitted));
        }
        for operation in [Operation::Write, Operation::Trim, Operation::WriteZeroes] {
            let now = self.device.now();
            self.device.submit(now, Request { tag: u64::MAX - 1, ..Request::new(now, operation, 0, 1) });
            self.rest()?;
            let mut completions = Vec::new();
            self.device.take_completions(&mut completions);
            if completions.len() != 1 || completions[0].status != Status::ReadOnly {
                return Err(format!("a read-only device completes {operation:?} with {completions:?}"));
            }
        }
        self.device.check_invariants()
    }
}

fn run_case(case: &Case, mutant: Mutant, digests: Option<&mut Digests>) -> Result<(), String> {
    let mut bench = Bench::new(case, mutant);
    bench.functional(&case.load)?;
    if let Some(digests) = &digests {
        bench.history = digests.begin(case.seed, &mut bench.device);
        if bench.history.is_some() && case.seed % 4 < 2 && !bench.device.config().merges_blocks() {
            bench.device.make_durable(Keep::Outbox, None)?;
        }
    }
    bench.timed(&case.load)?;
    bench.finish(&case.load)?;
    if let Some(digests) = digests {
        digests.end(case.seed, bench.history);
    }
    Ok(())
}

/// Runs a case. Returns its error, and `true` if it was a panic. Records its history if `digests` are given.
pub fn failure_of(case: &Case, mutant: Mutant, digests: Option<&mut Digests>) -> Option<(String, bool)> {
    match catch_unwind(AssertUnwindSafe(|| run_case(case, mutant, digests))) {
        Ok(Ok(())) => None,
        Ok(Err(what)) => Some((what, false)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
            Some((text.unwrap_or_default(), true))
        }
    }
}
