//! A device whose power is cut repeatedly, and its host.

use std::collections::BTreeMap;

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::flash::{Keep, Recovery};
use floatgate_core::internals::{MapMemory, MemoryFlash, Mutant};
use floatgate_core::mapping::Ftl;
use floatgate_core::results::{MergeKind, ProgramCause};
use floatgate_core::sim::id::{BlockId, Lpn};
use floatgate_core::sim::request::{Completion, Operation, Request, Status};
use floatgate_core::sim::rng::Rng;
use floatgate_core::simulation::{Device, Options, Ssd};
use floatgate_core::summary::{Precondition, Reached};

use crate::case::{Case, UNITS};
use crate::common::build;
use crate::common::history::{Digests, History};
use crate::host::Host;

/// Number of cuts in each state, and results of the recoveries.
#[derive(Clone, Debug, Default)]
pub struct Hits {
    counts: BTreeMap<&'static str, u64>,
    torn: u64,
    summaries: u64,
    trims: u64,
    saved: u64,
    accounted: u64,
    compared: u64,
    bad: u64,
    merged: u64,
    idle: u64,
    /// Devices that became read-only before all their cuts.
    read_only: u64,
    /// Recoveries that made a device with enough good blocks read-only, because no block was free for a merge.
    stuck: u64,
    pub cuts: u64,
}

/// States in which the power is cut.
const STATES: [&str; 8] =
    ["program", "copy", "erase", "map write", "journal", "checkpoint", "recovery", "acknowledged"];

/// States in which the power is cut, of mapping schemes that merge blocks.
const MERGE_STATES: [&str; 9] = [
    "program",
    "erase",
    "journal",
    "checkpoint",
    "recovery",
    "acknowledged",
    "switch merge",
    "partial merge",
    "full merge",
];

/// State in which a block takes the place of a failed one, of mapping schemes that merge blocks.
const REPLACEMENT: &str = "replacement";

impl Hits {
    /// Returns the number of cuts in each state of a mapping scheme that merges blocks that may fail.
    pub fn faulty_merges(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let replaced = self.counts.get(REPLACEMENT).copied().unwrap_or(0);
        self.merges().chain([(REPLACEMENT, replaced), ("bad blocks found", self.bad)])
    }

    /// Returns the number of recoveries that made a device with enough good blocks read-only.
    pub fn stuck(&self) -> u64 {
        self.stuck
    }

    /// Returns the number of cuts in each state of a mapping scheme that merges blocks.
    pub fn merges(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let states = MERGE_STATES.map(|state| (state, self.counts.get(state).copied().unwrap_or(0)));
        let found =
            [("torn programs found", self.torn), ("summaries used", self.summaries), ("units merged", self.merged)];
        states.into_iter().chain(found)
    }

    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let states = STATES.map(|state| (state, self.counts.get(state).copied().unwrap_or(0)));
        let found = [
            ("torn programs found", self.torn),
            ("summaries used", self.summaries),
            ("trims replayed", self.trims),
            ("units of protected memory", self.saved),
            ("blocks not read for the checkpoint", self.accounted),
            ("recoveries compared with a full scan", self.compared),
            ("bad blocks found", self.bad),
            ("victims of idle time", self.idle),
        ];
        states.into_iter().chain(found)
    }

    fn hit(&mut self, state: &'static str) {
        *self.counts.entry(state).or_default() += 1;
    }
}

pub struct Bench {
    config: DeviceConfig,
    options: Options,
    device: Option<Device>,
    host: Host,
    rng: Rng,
    tag: u64,
    case: Case,
    completions: Vec<Completion>,
    history: Option<History>,
}

fn deallocates(operation: Operation) -> bool {
    matches!(operation, Operation::Trim | Operation::WriteZeroes)
}

fn is_in(state: &str, device: &Device) -> bool {
    let flash = device.flash().expect("a durable device").in_flight();
    let writes_back = device.buffer().is_some_and(|buffer| buffer.writes_back());
    let merging = device.ftl().scheme().report(device.ftl()).merging;
    let programs = |cause| flash.programs[cause as usize] > 0;
    match state {
        "program" => programs(ProgramCause::Host),
        "copy" => programs(ProgramCause::Gc),
        "erase" => flash.erases > 0,
        "map write" => programs(ProgramCause::Map),
        "journal" => programs(ProgramCause::Journal),
        "checkpoint" => programs(ProgramCause::Checkpoint),
        "acknowledged" => writes_back && flash.staged > 0,
        "switch merge" => merging[MergeKind::Switch as usize] > 0,
        "partial merge" => merging[MergeKind::Partial as usize] > 0,
        "full merge" => merging[MergeKind::Full as usize] > 0,
        REPLACEMENT => device.ftl().scheme().report(device.ftl()).replacing > 0,
        _ => false,
    }
}

impl Bench {
    /// Creates a device and its host. Records their history if `digests` are given.
    pub fn new(case: &Case, mutant: Mutant, digests: Option<&Digests>) -> Bench {
        let (config, externals) = case.with_externals();
        let options = Options { seed: case.seed, verify: true, externals, mutant, ..Options::default() };
        let mut device = build(config.clone(), options.clone());
        let mut rng = Rng::new(case.seed, "power/load");
        let through = device.buffer().is_none_or(|buffer| !buffer.writes_back());
        let protected = device.buffer().is_some_and(|buffer| buffer.is_protected() && buffer.writes_back());
        let mut host = Host::new(UNITS, u64::from(config.sectors_per_unit()), through, protected);
        let mut tag = 0;
        if rng.below(2) == 0 {
            // The host did not write the preconditioned data, which read as zeros.
            let sectors = config.sectors_per_unit();
            for unit in 0..UNITS {
                let lba = unit * u64::from(sectors);
                device.serve_now(&Request::new(device.now(), Operation::Write, lba, sectors));
            }
            device.ftl_mut().seal();
            host.restart();
        }
        device.make_durable(Keep::Memory, None).expect("the device is idle");
        tag += 1;
        let (completions, history) = (Vec::new(), digests.and_then(|digests| digests.begin(case.seed, &mut device)));
        Bench { config, options, device: Some(device), host, rng, tag, case: case.clone(), completions, history }
    }

    /// Returns the states in which the power of this device is cut.
    fn states(&self) -> Vec<&'static str> {
        match (self.case.merges, self.config.faults.is_some()) {
            (false, _) => STATES.to_vec(),
            (true, false) => MERGE_STATES.to_vec(),
            (true, true) => [&MERGE_STATES[..], &[REPLACEMENT]].concat(),
        }
    }

    fn device(&mut self) -> &mut Device {
        self.device.as_mut().expect("a device between cuts")
    }

    /// Cuts the power `cuts` times.
    pub fn run(&mut self, cuts: u64, hits: &mut Hits) -> Result<(), String> {
        for _ in 0..cuts {
            if self.device().ftl().read_only_since().is_some() {
                if self.case.merges {
                    // What is in flash survives.
                    let flash = self.cut(hits);
                    self.recover(flash, "nothing", hits)?;
                    hits.cuts += 1;
                }
                hits.read_only += 1;
                return self.record_end();
            }
            let states = self.states();
            let target = states[self.rng.below(states.len() as u64) as usize];
            self.work(target)?;
            hits.cuts += 1;
            let flash = self.cut(hits);
            self.recover(flash, target, hits)?;
        }
        self.rest()
    }

    /// Runs the last device until it is idle, and checks its counters.
    fn rest(&mut self) -> Result<(), String> {
        self.work("nothing")?;
        self.run_until_idle()?;
        if self.device().outstanding() > 0 {
            return Err(self.device().explain_stall());
        }
        self.device().check_invariants()?;
        self.record_end()
    }

    fn run_until_idle(&mut self) -> Result<(), String> {
        let mut events = 0;
        while let Some(at) = self.device().next_event() {
            self.device().advance(at);
            self.collect()?;
            events += 1;
            if events > 100_000 {
                return Err("the device does not become idle".to_owned());
            }
        }
        Ok(())
    }

    /// Records the summary of the last device, and its state after a flush. A device that is read-only or keeps trims
    /// in protected memory cannot be saved.
    fn record_end(&mut self) -> Result<(), String> {
        self.note_operations();
        let (Some(device), Some(history)) = (&self.device, &mut self.history) else { return Ok(()) };
        history.summary(device);
        if device.ftl().read_only_since().is_none() {
            self.flush()?;
        }
        let (Some(device), Some(history)) = (&self.device, &mut self.history) else { return Ok(()) };
        let keeps_trims = device.buffer().is_some_and(|buffer| buffer.is_protected())
            && device.trims_in_memory().is_some_and(|trims| trims > 0);
        if device.ftl().read_only_since().is_none() && !keeps_trims {
            let (origin, mut bytes) =
                (Precondition { requested: String::new(), reached: Reached::default() }, Vec::new());
            device.save(&origin, &mut bytes).map_err(|error| error.to_string())?;
            history.state(&bytes);
        }
        Ok(())
    }

    /// Writes back the buffer and the records of trims. The history has the effects only in the saved state.
    fn flush(&mut self) -> Result<(), String> {
        self.device().write_out_buffer();
        self.run_until_idle()?;
        self.tag += 1;
        let now = self.device().now();
        let request = Request { tag: self.tag, ..Request::new(now, Operation::Flush, 0, 0) };
        self.host.submit(&request);
        self.device().submit(now, request);
        self.run_until_idle()
    }

    /// Runs the host and the device until the device is in the state `target`, or for a limited number of steps.
    fn work(&mut self, target: &str) -> Result<(), String> {
        let least = self.rng.below(60);
        for step in 0..300 {
            if step >= least && (target == "recovery" || is_in(target, self.device())) {
                return Ok(());
            }
            let (outstanding, event) = (self.device().outstanding(), self.device().next_event());
            if outstanding < self.case.depth && (event.is_none() || self.rng.below(3) > 0) {
                self.submit();
            } else {
                let at = event.ok_or_else(|| self.device().explain_stall())?;
                self.device().advance(at);
            }
            self.collect()?;
        }
        Ok(())
    }

    fn submit(&mut self) {
        self.tag += 1;
        let sectors = self.host_sectors();
        let now = self.device().now();
        let first = self.rng.below(self.case.hot * sectors);
        let most = (UNITS * sectors - first).min(3 * sectors);
        let operation = match (self.rng.below(self.case.flushes), self.rng.below(self.case.trims)) {
            (0, _) => Operation::Flush,
            (_, 0) if self.rng.below(3) == 0 => Operation::WriteZeroes,
            (_, 0) => Operation::Trim,
            (1, _) => Operation::Read,
            _ => Operation::Write,
        };
        let mut request = Request::new(now, operation, first, 1 + self.rng.below(most) as u32);
        if operation == Operation::Flush {
            (request.lba, request.sectors) = (0, 0);
        } else if operation == Operation::Trim || self.rng.below(2) == 0 {
            request.lba = first / sectors * sectors;
            request.sectors = ((1 + self.rng.below(3)).min(UNITS - first / sectors) * sectors) as u32;
        }
        request.fua = operation == Operation::Write && self.rng.below(12) == 0;
        request.fua |= self.case.lasting_trims && deallocates(operation) && self.tag.is_multiple_of(3);
        request.tag = self.tag;
        // A trim overtakes waiting writes, so a trim or read is submitted only if no other request of its units is
        // outstanding.
        let alone = !matches!(operation, Operation::Flush | Operation::Write);
        if operation != Operation::Flush && (alone || self.host.has_others(&request)) && !self.host.is_quiet(&request) {
            return;
        }
        self.host.submit(&request);
        self.device().submit(now, request);
    }

    fn host_sectors(&self) -> u64 {
        u64::from(self.config.sectors_per_unit())
    }

    fn collect(&mut self) -> Result<(), String> {
        let mut completions = std::mem::take(&mut self.completions);
        self.device().take_completions(&mut completions);
        let contents: BTreeMap<u64, Vec<u32>> = self.device().take_contents().into_iter().collect();
        for completion in completions.drain(..) {
            if let Some(history) = &mut self.history {
                history.answer(&completion, None);
            }
            let Completion { request, status, .. } = completion;
            let fails = self.config.faults.is_some();
            match status {
                Status::Ok => {}
                Status::Uncorrectable if fails => {}
                Status::ReadOnly if self.device().ftl().read_only_since().is_some() => {
                    self.host.abandon(&request);
                    continue;
                }
                _ => return Err(format!("{request:?} ended with {status:?}")),
            }
            // A refused write may or may not be visible.
            let settled = self.device().ftl().read_only_since().is_none();
            if request.operation == Operation::Read && status == Status::Ok && settled {
                let read = &contents[&request.tag];
                let expected = self.host.expected(&request);
                if *read != expected {
                    return Err(format!("{request:?} returned {read:?} instead of {expected:?}"));
                }
            }
            self.host.complete(&request);
        }
        self.completions = completions;
        Ok(())
    }

    fn cut(&mut self, hits: &mut Hits) -> MemoryFlash {
        self.note_operations();
        let device = self.device.take().expect("a device before the cut");
        let states = self.states();
        states.iter().filter(|state| is_in(state, &device)).for_each(|state| hits.hit(state));
        hits.idle += device.ftl().counters.background.victims;
        let mut flash = device.power_cut(self.rng.next_u64()).expect("a durable device");
        if let Some(history) = &mut self.history {
            history.flash(&self.config, &mut flash);
        }
        flash
    }

    /// Records the operations since the device was built or recovered.
    fn note_operations(&mut self) {
        let probe = self.device().array_mut().take_probe();
        if let (Some(history), Some(probe)) = (&mut self.history, probe) {
            history.operations(&probe);
        }
    }

    /// Returns the history so far.
    pub fn into_history(mut self) -> Option<History> {
        self.note_operations();
        self.history
    }

    fn recover(&mut self, flash: MemoryFlash, target: &str, hits: &mut Hits) -> Result<(), String> {
        let mut flash = flash;
        let mut left = if target == "recovery" { 3 } else { 0 };
        let erases: Vec<u32> = self.erases(&mut flash);
        hits.compared += u64::from(self.compare_with_scan(&flash)?);
        let (mut device, report) = loop {
            let cut = (left > 0).then(|| (self.rng.below(12) as usize, self.rng.next_u64()));
            left -= i32::from(left > 0);
            let recovered = Device::recover_in_memory(self.config.clone(), self.options.clone(), flash, cut);
            match recovered.map_err(|error| format!("after a power cut: {error}"))? {
                Ok(recovered) => break recovered,
                Err(left_over) => {
                    hits.hit("recovery");
                    flash = left_over;
                }
            }
        };
        hits.torn += report.torn_programs;
        hits.summaries += report.summaries_used;
        hits.trims += report.units_trimmed;
        hits.saved += report.units_saved;
        hits.accounted += report.blocks_skipped;
        hits.bad += report.blocks_bad;
        hits.merged += report.units_merged;
        hits.stuck += u64::from(device.ftl().read_only_since().is_some() && device.ftl().has_spare());
        device.check_invariants()?;
        for (block, before) in erases.iter().enumerate() {
            let after = device.ftl().blocks.block(BlockId(block as u32)).erases;
            if after < *before {
                return Err(format!("block {block} had {before} erases, but {after} after a power cut"));
            }
        }
        let sectors = self.config.sectors_per_unit();
        for unit in 0..UNITS as usize {
            let lpn = Lpn(unit as u32);
            let buffered = device.buffer().and_then(|buffer| Some((buffer, buffer.entry_of(lpn)?)));
            let held = match buffered {
                Some((buffer, entry)) => buffer.versions(entry).to_vec(),
                None => device.ftl().read_contents(lpn, 0, sectors),
            };
            if device.ftl().ppn_in_flash(lpn).is_some_and(|place| device.ftl().is_lost(place)) {
                self.host.lose(unit, &held);
            } else {
                self.host.recover(unit, &held)?;
            }
        }
        self.host.restart();
        if let Some(history) = &mut self.history {
            history.continue_with(&mut device);
        }
        self.device = Some(device);
        Ok(())
    }

    /// Checks that a recovery with the checkpoint, or with a map that survived, and one from all records agree. Returns
    /// `true` if there was a checkpoint.
    fn compare_with_scan(&self, flash: &MemoryFlash) -> Result<bool, String> {
        let durability = &self.config.durability;
        let is_compared = durability.checkpoint.is_some() || durability.map != MapMemory::Volatile;
        if !is_compared || self.options.mutant != Mutant::None {
            return Ok(false);
        }
        let recover = |mut flash: MemoryFlash, map: MapMemory| {
            let mut config = self.config.clone();
            config.durability.map = map;
            Device::recover(config, self.options.clone(), &mut flash)
                .map_err(|error| format!("after a power cut: {error}"))
        };
        let (with, report) = recover(flash.clone(), durability.map)?;
        let mut unread = flash.clone();
        unread.forget_checkpoint();
        let (without, scanned) = recover(unread, MapMemory::Volatile)?;
        if durability.map == MapMemory::NonVolatile && report.pages_read > 0 {
            return Err(format!("a map that survived a power cut is read: {} pages", report.pages_read));
        }
        let (ours, theirs) = (with.ftl(), without.ftl());
        let blocks = |ftl: &Ftl| -> Vec<_> {
            ftl.blocks.all().iter().map(|b| (b.valid, b.dependents, b.erases, b.state, b.role)).collect()
        };
        let map = |ftl: &Ftl| -> Vec<_> { (0..ftl.map.all()).map(|lpn| ftl.map.get(Lpn(lpn))).collect() };
        let masks = |ftl: &Ftl| -> Vec<_> { (0..ftl.map.len()).map(|lpn| ftl.partial.mask(lpn)).collect() };
        let found = |r: &Recovery| (r.duplicates, r.units_mapped, r.units_trimmed, r.journal_records, r.blocks_erased);
        let same = blocks(ours) == blocks(theirs)
            && map(ours) == map(theirs)
            && masks(ours) == masks(theirs)
            && ours.sequence == theirs.sequence
            && found(&report) == found(&scanned);
        let parts = report.blocks_skipped;
        if !same {
            return Err(format!(
                "after a power cut, {parts} blocks that were not read give another device than a scan"
            ));
        }
        Ok(parts > 0 && durability.checkpoint.is_some())
    }

    fn erases(&self, flash: &mut MemoryFlash) -> Vec<u32> {
        use floatgate_core::flash::FlashImage;
        let blocks = self.config.total_blocks();
        (0..blocks).map(|block| flash.erases(BlockId(block)).expect("flash in memory")).collect()
    }
}
