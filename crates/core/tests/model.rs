//! The device against a reference model: whatever the host does and however the device is built, a read returns the
//! last acknowledged write, and no unit, block, slot or request is lost.
//!
//! Swarm testing (Groce et al., "Swarm testing", ISSTA 2012): each case draws which features are on and how likely
//! each operation is. `FLOATGATE_SEED=n` repeats case n alone; `FLOATGATE_SOAK_OPS=n` goes on for n operations.

mod common;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use common::device_config;
use floatgate_core::config::{DeviceConfig, from_toml};
use floatgate_core::device::{Device, Mutant, Options};
use floatgate_core::ftl::blocks::{Block, BlockState, RESERVE};
use floatgate_core::ftl::mapping::NOWHERE;
use floatgate_core::metrics::counters::ProgramCause;
use floatgate_core::nand::array::Kind;
use floatgate_core::nand::probe::{Lane, Phase, Probe};
use floatgate_core::sim::id::{Lpn, PlaneId, Ppn};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::workload::request::{Completion, Operation, Request, Status};

// The reference: what each sector may hold.

/// A write as the host sees it: a version for some sectors, from its submission to its acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Write {
    version: u32,
    submitted: u64,
    acknowledged: u64,
}

/// A read that has not been answered: its first sector, and the writes that it may return of each.
#[derive(Debug)]
struct OpenRead {
    first: u64,
    allowed: Vec<Vec<u32>>,
}

/// Each sector is a register that takes a write at some instant between submission and acknowledgement. So a read
/// returns a write that was submitted before the read was answered, and that no other write has certainly replaced:
/// none that was submitted after it was acknowledged, and itself acknowledged (or seen by a read) before the read was
/// submitted.
struct Reference {
    writes: Vec<Write>,
    sectors: Vec<Vec<u32>>,
    open_writes: BTreeMap<u64, (u32, u64, u64)>,
    open_reads: BTreeMap<u64, OpenRead>,
    clock: u64,
    unit: u64,
}

impl Reference {
    fn new(config: &DeviceConfig) -> Reference {
        Reference {
            writes: vec![Write { version: 0, submitted: 0, acknowledged: 0 }],
            sectors: vec![vec![0]; config.logical_sectors() as usize],
            open_writes: BTreeMap::new(),
            open_reads: BTreeMap::new(),
            clock: 0,
            unit: u64::from(config.sectors_per_unit()),
        }
    }

    fn submit(&mut self, request: &Request) {
        self.clock += 1;
        let (mut first, mut end) = (request.lba, request.lba + u64::from(request.sectors));
        let version = match request.operation {
            Operation::Flush => return,
            Operation::Read => {
                let allowed = self.sectors[first as usize..end as usize].to_vec();
                self.open_reads.insert(request.tag, OpenRead { first, allowed });
                return;
            }
            Operation::Trim => {
                // A unit that is not covered whole keeps its data.
                (first, end) = (first.next_multiple_of(self.unit), end / self.unit * self.unit);
                0
            }
            Operation::WriteZeroes => 0,
            Operation::Write => request.tag as u32,
        };
        let write = self.writes.len() as u32;
        self.writes.push(Write { version, submitted: self.clock, acknowledged: u64::MAX });
        for sector in first..end {
            self.sectors[sector as usize].push(write);
        }
        for read in self.open_reads.values_mut() {
            let both = first.max(read.first)..end.min(read.first + read.allowed.len() as u64);
            both.for_each(|sector| read.allowed[(sector - read.first) as usize].push(write));
        }
        self.open_writes.insert(request.tag, (write, first, end));
    }

    /// A request has been answered, a read with `returned`.
    fn complete(&mut self, request: &Request, returned: &[u32]) -> Result<(), String> {
        self.clock += 1;
        if let Some((write, first, end)) = self.open_writes.remove(&request.tag) {
            self.writes[write as usize].acknowledged = self.clock;
            (first..end).for_each(|sector| self.replaced_by(sector, write));
        }
        let Some(read) = self.open_reads.remove(&request.tag) else { return Ok(()) };
        if returned.len() != read.allowed.len() {
            return Err(format!("a read of {} sectors returned {}", read.allowed.len(), returned.len()));
        }
        for (index, (allowed, &version)) in read.allowed.iter().zip(returned).enumerate() {
            let sector = read.first + index as u64;
            let mut matches = allowed.iter().filter(|&&write| self.writes[write as usize].version == version);
            let Some(&write) = matches.next() else {
                let allowed: Vec<Write> = allowed.iter().map(|&write| self.writes[write as usize]).collect();
                return Err(format!("a read of sector {sector} returned version {version}, not one of {allowed:?}"));
            };
            if matches.next().is_none() {
                self.replaced_by(sector, write);
            }
        }
        Ok(())
    }

    /// Later reads cannot return what was acknowledged before `write` was submitted.
    fn replaced_by(&mut self, sector: u64, write: u32) {
        let (writes, submitted) = (&self.writes, self.writes[write as usize].submitted);
        self.sectors[sector as usize]
            .retain(|&other| writes[other as usize].acknowledged > submitted || other == write);
    }
}

// The cases.

/// Triggers: a plane is cleaned as soon as it may be, later, and not before it has to be.
const TRIGGERS: [&str; 4] = ["threshold", "threshold", "lazy", "{ lazy = { stale = 1.0 } }"];

/// How a flash page, a mapping unit and a program command relate: page, unit, pages per program.
const UNITS: [(&str, &str, u32); 7] = [
    ("4KiB", "4KiB", 1),
    ("16KiB", "4KiB", 1),
    ("2KiB", "4KiB", 1),
    ("4KiB", "4KiB", 3),
    ("8KiB", "4KiB", 3),
    ("64KiB", "64KiB", 1),
    ("8KiB", "2KiB", 1),
];
const VICTIMS: [&str; 7] = [
    "greedy",
    "fifo",
    "random",
    "cost-benefit",
    "{ d-choices = { d = 1 } }",
    "{ d-choices = { d = 2 } }",
    "{ d-choices = { d = 10 } }",
];
const ORDERS: [&str; 6] = ["s1", "s2", "s4", "s6", "plane-die-chip-channel", "die-channel-plane-chip"];

/// How units are mapped.
#[derive(Clone, Copy, Debug)]
enum Scheme {
    Page,
    Dftl,
    Block,
}
const EVICTIONS: [&str; 9] = [
    "lru",
    "fifo",
    "clock",
    "cflru",
    "{ cflru = { window = 1.0 } }",
    "bplru",
    "{ bplru = { padding = false } }",
    "{ bplru = { compensation = false } }",
    "fab",
];

/// One random case.
#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    overrides: Vec<String>,
    load: Load,
}

/// What the host does.
#[derive(Clone, Debug)]
struct Load {
    /// How likely each operation is, in the order of [`Operation::ALL`].
    weights: [u64; 5],
    /// Requests outstanding.
    depth: usize,
    /// The longest request, in units.
    longest: u64,
    /// Percent of requests that are whole units.
    aligned: u64,
    /// Percent of requests that go to the first `hot_units` units.
    hot: u64,
    hot_units: u64,
    /// The longest pause between requests, in microseconds.
    pause: u64,
    /// Operations in functional mode, before those in time.
    functional: u64,
    timed: u64,
    /// Watch the array.
    watch: bool,
}

fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.below(from.len() as u64) as usize]
}

fn between(rng: &mut Rng, least: u64, most: u64) -> u64 {
    least + rng.below(most - least + 1)
}

/// With one chance in `n`.
fn one_in(rng: &mut Rng, n: u64) -> bool {
    rng.below(n) == 0
}

impl Case {
    fn new(seed: u64) -> Case {
        Case::with_capacity(seed, false, Scheme::Page)
    }

    /// A device with its map in flash.
    fn dftl(seed: u64) -> Case {
        Case::with_capacity(seed, false, Scheme::Dftl)
    }

    /// The same with the highest capacity that its checks accept.
    fn full_dftl(seed: u64) -> Case {
        Case::with_capacity(seed, true, Scheme::Dftl)
    }

    /// A device that maps blocks.
    fn block(seed: u64) -> Case {
        Case::with_capacity(seed, false, Scheme::Block)
    }

    /// The same with the highest capacity that its checks accept.
    fn full_block(seed: u64) -> Case {
        Case::with_capacity(seed, true, Scheme::Block)
    }

    /// A device with the highest capacity that its checks accept.
    fn full(seed: u64) -> Case {
        Case::with_capacity(seed, true, Scheme::Page)
    }

    fn with_capacity(seed: u64, full: bool, scheme: Scheme) -> Case {
        let rng = &mut Rng::new(seed, "model");
        let mut overrides = geometry(rng);
        overrides.extend(policies(rng));
        if one_in(rng, 2) {
            advanced(rng, &mut overrides);
        }
        overrides.extend(times(rng));
        match scheme {
            Scheme::Page => {}
            Scheme::Dftl => overrides.extend(map_in_flash(rng)),
            Scheme::Block => {
                overrides.push("mapping.scheme=block".to_owned());
                overrides.push(format!("allocation.static.order={}", pick(rng, &ORDERS)));
                overrides.extend(["copy_back=off", "cache_program=false"].map(|o| format!("nand.advanced.{o}")));
            }
        }
        limits(rng, &mut overrides, full);
        controller(&mut Rng::new(seed, "model/controller"), &mut overrides);
        overrides.push(format!("gc.trigger={}", pick(&mut Rng::new(seed, "model/trigger"), &TRIGGERS)));
        Case { seed, overrides, load: Load::new(rng) }
    }

    fn config(&self) -> DeviceConfig {
        device_config(&self.overrides)
    }
}

impl Load {
    fn new(rng: &mut Rng) -> Load {
        let mut weights = [0; 5];
        for weight in &mut weights {
            *weight = if one_in(rng, 3) { 0 } else { between(rng, 1, 20) };
        }
        weights[Operation::Read.index()] += 5;
        weights[Operation::Write.index()] += 5;
        Load {
            weights,
            depth: *pick(rng, &[1, 2, 5, 16, 64]),
            longest: *pick(rng, &[1, 2, 8]),
            aligned: *pick(rng, &[0, 50, 100]),
            hot: *pick(rng, &[0, 50, 95]),
            hot_units: between(rng, 1, 12),
            pause: *pick(rng, &[0, 0, 50, 2000]),
            functional: if one_in(rng, 3) { 0 } else { between(rng, 1, 4000) },
            timed: between(rng, 200, 2500),
            watch: one_in(rng, 8),
        }
    }

    fn request(&self, rng: &mut Rng, config: &DeviceConfig, tag: u64) -> Request {
        let mut draw = rng.below(self.weights.iter().sum());
        let mut operation = Operation::Read;
        for (candidate, weight) in Operation::ALL.into_iter().zip(self.weights) {
            if draw < weight {
                operation = candidate;
                break;
            }
            draw -= weight;
        }
        let (unit, units) = (u64::from(config.sectors_per_unit()), config.logical_units());
        let span = if rng.below(100) < self.hot { units.min(self.hot_units) } else { units };
        let first = rng.below(span);
        let most = self.longest.min(units - first);
        let (lba, sectors) = if rng.below(100) < self.aligned {
            (first * unit, between(rng, 1, most) * unit)
        } else {
            let skip = rng.below(unit);
            (first * unit + skip, between(rng, 1, most * unit - skip))
        };
        let sectors = if operation == Operation::Flush { 0 } else { sectors as u32 };
        let fua = tag.is_multiple_of(8);
        Request { tag, fua, ..Request::new(Time::ZERO, operation, lba, sectors) }
    }
}

fn geometry(rng: &mut Rng) -> Vec<String> {
    let (page, unit, per_program) = *pick(rng, &UNITS);
    let chips = between(rng, 1, 2);
    vec![
        format!("geometry.channels={}", between(rng, 1, 3)),
        format!("geometry.chips={chips}"),
        format!("geometry.chips_per_package={}", between(rng, 1, chips)),
        format!("geometry.dies={}", between(rng, 1, 2)),
        format!("geometry.planes={}", between(rng, 1, 2)),
        format!("geometry.blocks={}", between(rng, 8, 24)),
        format!("geometry.pages={}", pick(rng, &[6, 12, 24])),
        format!("geometry.page_size={page}"),
        format!("geometry.mapping_unit={unit}"),
        format!("capacity.logical={unit}"),
        format!("geometry.pages_per_program={per_program}"),
        format!("nand.concurrency={}", pick(rng, &["chip", "command", "die", "plane"])),
    ]
}

fn policies(rng: &mut Rng) -> Vec<String> {
    let scheme = pick(rng, &["static", "dynamic"]);
    let scope = if *scheme == "dynamic" { *pick(rng, &["", ", scope = \"channel\""]) } else { "" };
    let mut overrides = vec![
        format!("allocation={{ {scheme} = {{ order = \"{}\"{scope} }} }}", pick(rng, &ORDERS)),
        format!("gc.victim={}", pick(rng, &VICTIMS)),
        format!("gc.frontiers={}", pick(rng, &["separate", "single"])),
        format!("scheduler={}", pick(rng, &["fcfs", "read-first"])),
    ];
    if one_in(rng, 3) {
        overrides.push("mapping.block_summary={ last_page = \"528B\" }".to_owned());
    }
    overrides
}

/// Advanced commands, those that the device can have.
fn advanced(rng: &mut Rng, overrides: &mut Vec<String>) {
    let has = |option: &str| overrides.iter().any(|text| text == option);
    let spans = has("geometry.page_size=2KiB");
    let (wordlines, independent) = (has("geometry.pages_per_program=3"), has("nand.concurrency=plane"));
    let mut options = Vec::new();
    if !wordlines {
        options.push(format!("copy_back={}", pick(rng, &["off", "wise", "blind"])));
    }
    if has("geometry.planes=2") && !independent && !spans {
        options.push(format!("multi_plane_program={}", pick(rng, &["off", "wise", "blind"])));
        options.push(format!("multi_plane_read={}", pick(rng, &["off", "wise"])));
        options.push(format!("multi_plane_erase={}", pick(rng, &["off", "wise"])));
        options.push(format!("strict={}", one_in(rng, 2)));
        options.push(format!("plane_pairs={}", one_in(rng, 2)));
    }
    if has("geometry.dies=2") && (has("nand.concurrency=command") || has("nand.concurrency=chip")) {
        options.push(format!("interleave={}", one_in(rng, 2)));
    }
    if (independent || has("nand.concurrency=die")) && !spans {
        options.push(format!("cache_read={}", one_in(rng, 2)));
        options.push(format!("cache_program={}", one_in(rng, 2)));
        options.push(format!("suspend.program={}", one_in(rng, 2)));
        options.push(format!("suspend.erase={}", one_in(rng, 2)));
        options.push(format!("suspend.latency={}us", rng.below(20)));
        options.push(format!("suspend.resume={}us", rng.below(20)));
        options.push(format!("suspend.limit={}", between(rng, 1, 3)));
    }
    overrides.extend(options.iter().map(|option| format!("nand.advanced.{option}")));
}

/// DFTL with caches down to one entry and many small translation pages, in planes with room for them.
fn map_in_flash(rng: &mut Rng) -> Vec<String> {
    let scheme = format!(
        "mapping.scheme={{ dftl = {{ cache = \"{}B\", entry = \"{}B\", protected = {}, map_spare = {}, \
         batch_updates = {}, lazy_copies = {} }} }}",
        8 * pick(rng, &[1, 1, 2, 3, 8, 30, 200]),
        pick(rng, &[4, 64, 256, 1024]),
        pick(rng, &["0.0", "0.5", "0.9"]),
        pick(rng, &["0.0", "0.25", "0.6"]),
        !one_in(rng, 4),
        !one_in(rng, 4),
    );
    vec![scheme, format!("geometry.blocks={}", between(rng, 18, 30))]
}

fn times(rng: &mut Rng) -> Vec<String> {
    let mut overrides = vec![
        format!("nand.read={}us", between(rng, 1, 60)),
        format!("nand.program={}us", between(rng, 1, 700)),
        format!("nand.erase={}us", pick(rng, &[1, 1500, 6000])),
        (*pick(rng, &["bus.protocol={ sdr = \"25ns\" }", "bus.protocol={ nv-ddr = \"400MT/s\" }"])).to_owned(),
        format!("host.queue_depth={}", pick(rng, &[1, 2, 8, 1024])),
    ];
    if one_in(rng, 2) {
        overrides.push("bus.command_cycles={ read = 7, program = 7, erase = 5 }".to_owned());
    }
    if one_in(rng, 4) {
        overrides.push("bus.way_switch=300ns".to_owned());
        overrides.push("bus.channel_switch=700ns".to_owned());
        overrides.push(format!("bus.channel_switch_scope={}", pick(rng, &["channel", "controller"])));
    }
    if one_in(rng, 3) {
        overrides.push(format!("host.link_latency={}us", rng.below(20)));
        overrides.push(format!("host.link_bandwidth={}MB/s", between(rng, 50, 2000)));
    }
    overrides
}

/// Thresholds and slots, and a capacity up to the highest that leaves cleaning its reserve.
fn limits(rng: &mut Rng, overrides: &mut Vec<String>, full: bool) {
    let soft = between(rng, 1, 3);
    overrides.push(format!("gc.soft_threshold={soft}"));
    overrides.push(format!("gc.hard_threshold={}", between(rng, 0, soft)));
    let config = device_config(overrides);
    let most = config.max_logical_units();
    let units = if full || one_in(rng, 3) { most } else { between(rng, most / 4, most).max(1) };
    overrides.push(format!("capacity.logical={}B", units * config.unit_bytes()));
    let program = u64::from(config.units_per_program());
    overrides.push(format!("controller.slots={}", pick(rng, &[program, program + 1, 24, 4096])));
    let by_offset = overrides.iter().any(|text| text == "mapping.scheme=block");
    if program > 1 && !by_offset && one_in(rng, 3) {
        overrides.push(format!("controller.fill_timeout={}us", pick(rng, &[1, 50, 2000])));
    }
}

/// A buffer of a few units up to all, and software that takes time.
fn controller(rng: &mut Rng, overrides: &mut Vec<String>) {
    if one_in(rng, 2) {
        let config = device_config(overrides);
        let most = config.logical_units();
        let units = *pick(rng, &[1, 2, 5, 16, 64, most]);
        let through = one_in(rng, 3);
        overrides.push(format!("buffer.capacity={}B", units.clamp(1, most) * config.unit_bytes()));
        overrides.push(format!("buffer.write={}", if through { "write-through" } else { "write-back" }));
        overrides.push(format!("buffer.read={}", through || one_in(rng, 2)));
        overrides.push(format!("buffer.eviction={}", pick(rng, &EVICTIONS)));
        if one_in(rng, 3) {
            overrides.push(format!("buffer.low_water={}", pick(rng, &["0.0", "0.5"])));
            overrides.push(format!("buffer.high_water={}", pick(rng, &["0.5", "0.75"])));
        }
        if one_in(rng, 4) {
            overrides.push(format!("buffer.idle={}us", pick(rng, &[0, 100, 1500])));
        }
        if one_in(rng, 2) {
            overrides.push(format!("buffer.latency={}ns", rng.below(3000)));
            overrides.push(format!("buffer.bandwidth={}MB/s", between(rng, 20, 2000)));
        }
        overrides.push(format!("buffer.power_loss_protection={}", one_in(rng, 4)));
    }
    if one_in(rng, 3) {
        overrides.push(format!("controller.firmware.cores={}", between(rng, 1, 4)));
        for step in ["interrupt", "lookup", "allocation", "cleaning", "buffer"] {
            let cost = *pick(rng, &["0", "100", "\"3us\"", "2500"]);
            overrides.push(format!("controller.firmware.{step}={cost}"));
        }
    }
}

// Running a case.

/// Events without a completion after which the device counts as stuck. A full device of these sizes moves all that it
/// holds in fewer.
const PATIENCE: u64 = 100_000;

struct Bench {
    device: Device,
    reference: Reference,
    rng: Rng,
    tag: u64,
    submitted: u64,
    completed: u64,
    completions: Vec<Completion>,
    /// Whether the device tells what the time of each request went into.
    attributed: bool,
}

impl Bench {
    fn new(case: &Case, mutant: Mutant) -> Bench {
        let config = case.config();
        let options = Options { seed: case.seed, verify: true, attribution: case.seed & 1 == 0, mutant };
        Bench {
            reference: Reference::new(&config),
            device: common::build(config, options),
            rng: Rng::new(case.seed, "model/load"),
            tag: 0,
            submitted: 0,
            completed: 0,
            completions: Vec::new(),
            attributed: options.attribution,
        }
    }

    fn draw(&mut self, load: &Load) -> Request {
        self.tag += 1;
        load.request(&mut self.rng, self.device.config(), self.tag)
    }

    fn functional(&mut self, load: &Load) -> Result<(), String> {
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
        let (mut events, mut completed) = (0, 0);
        while self.submitted < load.timed || self.device.outstanding() > 0 {
            let room = self.submitted < load.timed && self.device.outstanding() < load.depth;
            let event = self.device.next_event_time();
            if room && (event.is_none() || self.rng.below(4) > 0) {
                self.submit(load);
            } else {
                let at = event.ok_or_else(|| self.device.explain_stall())?;
                self.device.advance_to(at);
            }
            self.collect()?;
            events = if self.completed > completed { 0 } else { events + 1 };
            completed = self.completed;
            if events > PATIENCE {
                return Err(format!("no request has completed for {PATIENCE} events: {}", self.device.explain_stall()));
            }
        }
        Ok(())
    }

    fn submit(&mut self, load: &Load) {
        let now = self.device.now();
        let pause = if load.pause > 0 { self.rng.below(load.pause * 1_000_000) } else { 0 };
        self.device.advance_to(now + Time(pause));
        if one_in(&mut self.rng, 200) {
            self.submit_outside();
        }
        let request = Request { arrival: self.device.now(), ..self.draw(load) };
        self.reference.submit(&request);
        self.submitted += 1;
        self.device.submit(request.arrival, request);
    }

    /// A request beyond the end of the device.
    fn submit_outside(&mut self) {
        let (now, sectors) = (self.device.now(), self.device.config().logical_sectors());
        let operation = *pick(&mut self.rng, &Operation::ALL[..4]);
        let lba = *pick(&mut self.rng, &[sectors - 1, sectors, u64::MAX - 1]);
        self.device.submit(now, Request { tag: u64::MAX, ..Request::new(now, operation, lba, 2) });
        self.submitted += 1;
    }

    fn collect(&mut self) -> Result<(), String> {
        self.device.take_completions(&mut self.completions);
        let mut breakdowns = Vec::new();
        self.device.take_breakdowns(&mut breakdowns);
        let mut breakdowns = breakdowns.into_iter();
        let mut contents: BTreeMap<u64, Vec<u32>> = self.device.take_contents().into_iter().collect();
        for completion in self.completions.drain(..) {
            self.completed += 1;
            let breakdown = breakdowns.next();
            if let Some(breakdown) = breakdown
                && breakdown.total() != completion.finish - completion.request.arrival
            {
                return Err(format!("{completion:?} took its time for {breakdown:?}"));
            }
            if breakdown.is_some() != self.attributed {
                return Err(format!("{completion:?} comes with {breakdown:?}"));
            }
            let Completion { request, status, start, finish } = completion;
            let outside = request.tag == u64::MAX;
            if (status == Status::OutOfRange) != outside || (status != Status::Ok) != outside {
                return Err(format!("{request:?} ended with {status:?}"));
            }
            if !(request.arrival <= start && start <= finish) {
                return Err(format!("{request:?} arrived, started at {start:?} and finished at {finish:?}"));
            }
            self.reference.complete(&request, &contents.remove(&request.tag).unwrap_or_default())?;
        }
        Ok(())
    }

    /// Waits until the device is at rest.
    fn rest(&mut self) -> Result<(), String> {
        let mut events = 0;
        while let Some(at) = self.device.next_event_time() {
            self.device.advance_to(at);
            events += 1;
            if events > PATIENCE {
                return Err("cleaning never comes to an end".to_owned());
            }
        }
        Ok(())
    }

    /// Waits until the device is at rest, then reads and counts everything.
    fn finish(&mut self, load: &Load) -> Result<(), String> {
        self.rest()?;
        self.device.check_invariants()?;
        self.device.write_out_buffer();
        self.rest()?;
        self.collect()?;
        if self.device.buffer().is_some_and(|buffer| !buffer.is_clean()) {
            return Err("the buffer is not written out".to_owned());
        }
        if self.submitted != self.completed || !self.device.is_idle() {
            return Err(format!("{} of {} requests completed", self.completed, self.submitted));
        }
        self.device.check_invariants()?;
        check_blocks(&self.device, load.functional > 0)?;
        if let Some(probe) = self.device.array_mut().take_probe() {
            check_lanes(&self.device, &probe)?;
        }
        let all = Request { tag: self.tag + 1, ..Request::new(Time::ZERO, Operation::Read, 0, 0) };
        let all = Request { sectors: self.device.config().logical_sectors() as u32, ..all };
        self.reference.submit(&all);
        let contents = self.device.serve_now(&all).ok_or("refused")?;
        self.reference.complete(&all, &contents)
    }
}

/// At rest: every block is free, open or closed, cleaning has nothing left to do, and the programs add up.
///
/// Functional mode cleans before it takes a block, so it may leave a plane with one free block less.
fn check_blocks(device: &Device, functional: bool) -> Result<(), String> {
    let (config, ftl) = (device.config(), device.ftl());
    if ftl.block_map.is_some() {
        return check_logical_blocks(device);
    }
    let per_plane = config.geometry.blocks as usize;
    // Below, a plane is cleaned: at the soft threshold, or where another trigger has no say.
    let least = match config.gc.trigger.is_default() {
        true => config.soft_threshold(),
        false => config.hard_threshold().max(RESERVE),
    };
    let data = config.data_units_per_block();
    for plane in 0..config.total_planes() {
        let blocks = &ftl.blocks.all()[plane as usize * per_plane..][..per_plane];
        let in_state = |state| blocks.iter().filter(|b| b.state == state).count();
        let [free, open, closed] = [BlockState::Free, BlockState::Open, BlockState::Closed].map(in_state);
        let frontiers = if ftl.map_state.is_some() { 3 } else { 2 };
        if free + open + closed != per_plane || open > frontiers {
            return Err(format!("plane {plane}: {free} blocks free, {open} open, {closed} closed of {per_plane}"));
        }
        let is_data = |b: &&Block| b.state == BlockState::Closed && !b.map;
        // A block with fewer stale units than a program gains nothing.
        let hidden = blocks.iter().filter(is_data).count() as u32 * (config.units_per_program() - 1);
        let stale: u32 = blocks.iter().filter(is_data).map(|b| data - u32::from(b.valid)).sum();
        if ftl.blocks.stock(PlaneId(plane)) + u32::from(functional) <= least && stale > hidden {
            return Err(format!("plane {plane}: cleaning rests with {free} free blocks, threshold {least}"));
        }
    }
    let erases: u64 = ftl.blocks.all().iter().map(|b| u64::from(b.erases)).sum();
    if erases != ftl.counters.blocks_erased || erases != ftl.counters.victims + ftl.counters.map.victims {
        return Err(format!(
            "{erases} erases, {} counted, {} victims",
            ftl.counters.blocks_erased, ftl.counters.victims
        ));
    }
    check_programs(device)
}

/// With block mapping: every block is free or a logical block's, and as many are free as the threshold asks for.
fn check_logical_blocks(device: &Device) -> Result<(), String> {
    let (config, ftl) = (device.config(), device.ftl());
    let per_plane = config.geometry.blocks as usize;
    let logical = ftl.block_map.iter().flat_map(|map| &map.logical);
    let owned: usize = logical.map(|l| usize::from(l.current != NOWHERE) + usize::from(l.old != NOWHERE)).sum();
    let in_state = |state| ftl.blocks.all().iter().filter(|block| block.state == state).count();
    let (free, taken) = (in_state(BlockState::Free), in_state(BlockState::Logical));
    if owned != taken || free + taken != ftl.blocks.all().len() {
        return Err(format!("{free} blocks are free, {taken} taken by logical blocks that own {owned}"));
    }
    for plane in 0..config.total_planes() {
        let stock = ftl.blocks.stock(PlaneId(plane));
        let of_plane = &ftl.blocks.all()[plane as usize * per_plane..][..per_plane];
        let free = of_plane.iter().filter(|block| block.state == BlockState::Free).count();
        let pairs = ftl.block_map.as_ref().map_or(0, |map| map.pairs_of(PlaneId(plane)));
        if stock as usize != free || (stock + 1 < config.gc.soft_threshold.of(config.geometry.blocks) && pairs > 0) {
            return Err(format!("plane {plane}: {stock} blocks in stock, {free} free, {pairs} to be merged"));
        }
    }
    check_programs(device)
}

/// What was programmed, in units, is what was programmed in pages, by cause.
fn check_programs(device: &Device) -> Result<(), String> {
    let (config, counters) = (device.config(), &device.ftl().counters);
    let summaries = counters.pages_programmed[ProgramCause::Summary as usize];
    let pages = counters.pages_programmed_total() - summaries;
    let units = counters.units_programmed + counters.units_padded;
    let (have, want) = (pages * u64::from(config.units_per_page()), units * u64::from(config.pages_per_unit()));
    if have != want {
        return Err(format!("{pages} pages programmed by all causes but summaries, {units} units"));
    }
    // What the buffer took is programmed when, and as often as, it writes it out.
    let buffer = device.buffer().map_or_else(Default::default, |buffer| buffer.counts);
    let written = counters.host_units - buffer.writes_back + buffer.written_out;
    let of_map = counters.map.programs.iter().sum::<u64>() * u64::from(config.units_per_program());
    // With block mapping a write that is trimmed while it waits is never programmed.
    let dropped = device.ftl().block_map.as_ref().map_or(0, |map| map.dropped);
    if counters.units_programmed + dropped != written + counters.units_moved + counters.copies_in_vain + of_map {
        return Err(format!("units programmed are not the host's and the moved ones: {counters:?}"));
    }
    Ok(())
}

/// A channel carries one transfer at a time, the cells of a unit do one operation at a time, in several planes only
/// where all of them do the same, and the pages of a block are programmed in order.
fn check_lanes(device: &Device, probe: &Probe) -> Result<(), String> {
    let mut busy: BTreeMap<(bool, u32), (Time, Time, Kind, u32)> = BTreeMap::new();
    let mut programmed: BTreeMap<u32, u32> = BTreeMap::new();
    for slice in probe.slices() {
        let key = match slice.lane {
            Lane::Channel(channel) => (false, channel),
            Lane::Plane(plane) => (true, device.array().unit_of(PlaneId(plane)).0),
        };
        let last = busy.insert(key, (slice.start, slice.end, slice.kind, slice.plane));
        if let Some((start, end, kind, plane)) = last
            && slice.start < end
            && (!key.0 || (slice.start, slice.end, slice.kind) != (start, end, kind) || slice.plane == plane)
        {
            return Err(format!("{slice:?} starts before {end:?}, when the last one there ends: {last:?}"));
        }
        if slice.phase != Phase::Cell {
            continue;
        }
        let block = device.ftl().blocks.block_of(Ppn(slice.place)).0;
        match slice.kind {
            Kind::Read => {}
            Kind::Erase => drop(programmed.remove(&slice.place)),
            Kind::Program | Kind::CopyBack => match programmed.insert(block, slice.place) {
                // A unit that spans pages is programmed page by page under one number.
                Some(last) if last > slice.place => return Err(format!("{slice:?} comes behind place {last}")),
                _ => {}
            },
        }
    }
    Ok(())
}

fn run_case(case: &Case, mutant: Mutant) -> Result<(), String> {
    let mut bench = Bench::new(case, mutant);
    bench.functional(&case.load)?;
    bench.timed(&case.load)?;
    bench.finish(&case.load)
}

/// How a case fails: with what it says, and whether it was a panic.
fn failure_of(case: &Case, mutant: Mutant) -> Option<(String, bool)> {
    match catch_unwind(AssertUnwindSafe(|| run_case(case, mutant))) {
        Ok(Ok(())) => None,
        Ok(Err(what)) => Some((what, false)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
            Some((text.unwrap_or_default(), true))
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.replace('_', "").parse().ok())
}

/// Cases that are always run.
const CASES: u64 = 5000;

#[test]
fn reads_return_the_last_acknowledged_write() {
    run_swarm(Case::new, CASES);
}

#[test]
fn a_map_in_flash_changes_no_answer() {
    run_swarm(Case::dftl, CASES / 2);
}

#[test]
fn mapping_blocks_changes_no_answer() {
    run_swarm(Case::block, CASES / 2);
}

fn run_swarm(new: fn(u64) -> Case, cases: u64) {
    let (first, cases) = number("FLOATGATE_SEED").map_or((0, cases), |seed| (seed, 1));
    let soak = number("FLOATGATE_SOAK_OPS").unwrap_or(0);
    let (mut seed, mut operations) = (first, 0);
    while seed < first + cases || operations < soak {
        let case = new(seed);
        if let Some((what, _)) = failure_of(&case, Mutant::None) {
            panic!("{what}\nFLOATGATE_SEED={seed} repeats it: {case:#?}");
        }
        operations += case.load.functional + case.load.timed;
        seed += 1;
    }
}

/// Runs cases with a deliberate bug until one fails; asserts that it is caught soon, and in release, where no
/// assertion of the model itself is on, by what reads return.
fn assert_caught(mutant: Mutant) {
    let mut panics = 0;
    for seed in 0..200 {
        match failure_of(&Case::new(seed), mutant) {
            Some((what, false)) if what.starts_with("a read of sector") => return,
            Some((_, true)) if cfg!(debug_assertions) => return,
            Some(_) => panics += 1,
            None => {}
        }
    }
    panic!("{mutant:?} returned no wrong data in 200 cases; {panics} failed otherwise");
}

#[test]
fn a_block_erased_too_early_is_caught() {
    assert_caught(Mutant::EraseEarly);
}

#[test]
fn a_copy_taken_for_a_write_is_caught() {
    assert_caught(Mutant::RenumberCopies);
}

#[test]
fn a_map_that_moves_back_is_caught() {
    assert_caught(Mutant::MapMovesBack);
}

// Full devices.

/// Which units are written.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Sequential,
    Uniform,
    /// Nine writes of ten go to the first tenth.
    HotCold,
}

impl Pattern {
    fn unit(self, rng: &mut Rng, index: u64, units: u64) -> u64 {
        match self {
            Pattern::Sequential => index % units,
            Pattern::HotCold if rng.below(10) < 9 => rng.below(units.div_ceil(10)),
            Pattern::Uniform | Pattern::HotCold => rng.below(units),
        }
    }
}

const DRIVE_WRITES: u64 = 10;

/// Writes the whole device in order, then ten times its size by `pattern`; at once, or in time.
fn write_over(case: &Case, pattern: Pattern, timed: bool) -> Result<(), String> {
    let config = case.config();
    let (units, per_unit) = (config.logical_units(), config.sectors_per_unit());
    let mut device = common::build(config, Options { seed: case.seed, ..Options::default() });
    let rng = &mut Rng::new(case.seed, "model/drive");
    let mut completions = Vec::new();
    let (mut completed, mut events) = (0, 0);
    for index in 0..units * (1 + DRIVE_WRITES) {
        let unit = if index < units { index } else { pattern.unit(rng, index, units) };
        if !timed {
            device.ftl_mut().write_whole(Lpn(unit as u32));
            continue;
        }
        let now = device.now();
        let lba = unit * u64::from(per_unit);
        device.submit(now, Request::new(now, Operation::Write, lba, per_unit));
        while device.outstanding() >= case.load.depth {
            device.advance_to(device.next_event_time().ok_or_else(|| device.explain_stall())?);
            device.take_completions(&mut completions);
            events = if completions.len() > completed { 0 } else { events + 1 };
            completed = completions.len();
            if events > PATIENCE {
                return Err(format!("write {index} makes no progress: {}", device.explain_stall()));
            }
        }
    }
    completions.extend(common::drain(&mut device));
    let expected = if timed { units * (1 + DRIVE_WRITES) } else { 0 };
    if completions.len() as u64 != expected {
        return Err(format!("{} of {expected} writes completed: {}", completions.len(), device.explain_stall()));
    }
    device.ftl().recount()?;
    device.check_invariants()
}

#[test]
fn accepted_devices_take_ten_drive_writes() {
    write_over_all(Case::full, 150);
}

#[test]
fn accepted_devices_with_their_map_in_flash_take_ten_drive_writes() {
    write_over_all(Case::full_dftl, 150);
}

#[test]
fn accepted_devices_that_map_blocks_take_ten_drive_writes() {
    write_over_all(Case::full_block, 150);
}

fn write_over_all(new: fn(u64) -> Case, cases: u64) {
    for seed in number("FLOATGATE_SEED").map_or(0..cases, |seed| seed..seed + 1) {
        let case = new(seed);
        for pattern in [Pattern::Sequential, Pattern::Uniform, Pattern::HotCold] {
            let timed = case.config().logical_units() < 1500;
            for timed in [false, true].into_iter().filter(|&t| !t || timed) {
                if let Err(what) = write_over(&case, pattern, timed) {
                    panic!("{what}\n{pattern:?}, timed: {timed}; FLOATGATE_SEED={seed} repeats it: {case:#?}");
                }
            }
        }
    }
}

#[test]
fn a_device_with_one_unit_over_its_reserve_is_refused() {
    for seed in 0..100 {
        let case = match seed % 3 {
            0 => Case::full(seed),
            1 => Case::full_dftl(seed),
            _ => Case::full_block(seed),
        };
        let config = case.config();
        let capacity = format!("capacity.logical={}B", (config.max_logical_units() + 1) * config.unit_bytes());
        let overrides: Vec<String> = case.overrides.iter().cloned().chain([capacity]).collect();
        let error = from_toml(common::BASE, "test.toml", &overrides).expect_err("the reserve is kept");
        assert!(error.problems().iter().any(|p| p.path == "gc.soft_threshold"), "{error}");
    }
}
