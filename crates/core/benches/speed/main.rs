//! `make bench`: speed of the simulator per CPU second, compared with a floor that does the least
//! work for the same events.
//!
//! CPU seconds of this process are measured, not wall time, so other load on the machine changes them by only a few
//! percent. Each case runs at least three times, alternating with the cases that it is compared with. The best run
//! counts, because disturbances only make a run slower. Arguments after `--` are names of cases (`functional`,
//! `preconditioning`, `lifetime`, `timed`, `attribution`, `controller`, `advanced`, `scaling`). Without any, all run.

mod budget;
mod floor;

use budget::{BUFFER, BUFFER_AHEAD, CASES, OTHERS, RANDOM};
use floatgate_core::device_file::{self, DeviceConfig};
use floatgate_core::endurance::{Repeated, Until, live};
use floatgate_core::preparation::{Precondition, precondition, precondition_with};
use floatgate_core::results::Counters;
use floatgate_core::sim::source::{Source, SourceError};
use floatgate_core::simulation::{Device, NoWatcher, Options, Outcome, run};
use floatgate_workload::synthetic;
use floor::Floor;
use rustix::time::{ClockId, clock_gettime};

/// Returns the CPU seconds that this process has used.
fn cpu_seconds() -> f64 {
    // /proc is not precise enough: it has the value of the last scheduler tick, up to 4 ms ago.
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the peak resident memory in MiB.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the benchmark needs Linux's /proc");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("the kernel reports the peak");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).expect("in KiB") / 1024.0
}

/// Runs `work` and returns its CPU seconds and result.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = cpu_seconds();
    let result = work();
    (cpu_seconds() - start, result)
}

fn device(name: &str) -> Device {
    let config = device_file::load(name, &[]).expect("a built-in device");
    Device::new(config, Options::default()).expect("a checked device")
}

fn prepare(device: &mut Device, to: Precondition) {
    precondition(device, to, 1, &mut |_| true).expect("the state can be reached");
}

fn sources(device: &Device, text: &str, seed: u64) -> Vec<Box<dyn Source>> {
    let jobs = synthetic::parse(text, device.config().logical_bytes(), seed).expect("a valid job");
    jobs.into_iter().map(|job| job.source).collect()
}

/// Runs a job. Returns CPU seconds and the counts of the device, including work left over from the previous job.
fn job(device: &mut Device, text: &str, seed: u64) -> (f64, Counters) {
    let (seconds, counted, _) = job_with_latency(device, text, seed);
    (seconds, counted)
}

/// Runs a job. Returns CPU seconds, the counts of the device, including work left over from the previous job, and the
/// mean latency in microseconds. Each run needs another seed: writing the same addresses again would find them in the
/// same blocks, whose garbage collection costs nothing.
fn job_with_latency(device: &mut Device, text: &str, seed: u64) -> (f64, Counters, f64) {
    let mut sources = sources(device, text, seed);
    let before = device.ftl().counters;
    let (seconds, outcome) = timed(|| measured(device, &mut sources));
    (seconds, device.ftl().counters.since(&before), outcome.results.all().latency.mean_us())
}

/// The measured part, whose instructions `scripts/budget.py` counts.
#[inline(never)]
fn measured(device: &mut Device, sources: &mut [Box<dyn Source>]) -> Outcome {
    run(device, sources, &mut NoWatcher).expect("all requests complete")
}

fn flash_operations(counted: &Counters) -> f64 {
    (counted.pages_programmed_total() + counted.pages_read_total() + counted.blocks_erased) as f64
}

fn best(runs: impl Iterator<Item = f64>) -> f64 {
    runs.fold(0.0, f64::max)
}

/// Returns the floor of `bench-32g` after two drive writes in random order.
fn steady_floor() -> Floor {
    let mut floor = Floor::new(&device_file::load("bench-32g", &[]).expect("built in"));
    floor.fill();
    floor.overwrite(2 * floor.units());
    floor
}

/// Measures preconditioning in functional mode.
fn functional() {
    let rate = best((0..3).map(|_| {
        let mut device = device("bench-32g");
        let before = device.ftl().counters;
        let (seconds, ()) = timed(|| prepare(&mut device, Precondition::Steady));
        device.ftl().counters.since(&before).units_programmed as f64 / seconds
    }));
    let mut floor = steady_floor();
    let least = best((0..3).map(|_| {
        let before = floor.programs;
        let (seconds, ()) = timed(|| floor.overwrite(floor.units() / 2));
        (floor.programs - before) as f64 / seconds
    }));
    println!("functional, bench-32g to `steady`:    {:6.1} M page programs/CPU s   (bar 20)", rate / 1e6);
    println!("  floor, without time:                {:6.1} M   ratio {:.2}", least / 1e6, rate / least);
    let mut large = device("bench-1t");
    let (seconds, ()) = timed(|| prepare(&mut large, Precondition::Fill));
    let units = f64::from(large.ftl().map.len());
    println!(
        "fill of bench-1t:                     {seconds:6.1} CPU s   (bar 15); {:.1} M units/s",
        units / seconds / 1e6
    );
}

/// Measures preconditioning of a modern drive with large maps, by `--precondition steady` and by jobs.
fn preconditioning() {
    let new = || {
        let overrides = ["geometry.blocks=240".to_owned(), "capacity={ spare = 0.12 }".to_owned()];
        let config = device_file::load("tlc-direct", &overrides).expect("an accepted device");
        Device::new(config, Options::default()).expect("a checked device")
    };
    let show = |what: &str, seconds: f64, counted: &Counters| {
        let (units, pages) = (counted.units_programmed as f64, counted.pages_programmed_total() as f64);
        println!(
            "tlc-direct {what}: {seconds:5.1} CPU s; {:5.1} M units, {:4.1} M pages, {:4.1} M host writes/CPU s   (bar 20)",
            units / seconds / 1e6,
            pages / seconds / 1e6,
            counted.host_units as f64 / seconds / 1e6
        );
    };
    let mut device = new();
    let (seconds, ()) = timed(|| prepare(&mut device, Precondition::Steady));
    show("to `steady`              ", seconds, &device.ftl().counters);
    for (what, text) in [
        ("by writes of 128 KiB in order", "rw=write bs=128k"),
        ("by random writes of 4 KiB    ", "rw=randwrite bs=4k"),
        ("by uniform writes of 4 KiB   ", "rw=randwrite bs=4k norandommap=1"),
        ("by zipf writes of 4 KiB      ", "rw=randwrite bs=4k random_distribution=zipf:1.1"),
    ] {
        let mut device = new();
        let units = f64::from(device.ftl().map.len());
        prepare(&mut device, Precondition::Fill);
        let text = format!("{text} io_size={}", 2 * device.config().logical_bytes());
        let mut sources = sources(&device, &text, 1);
        let before = device.ftl().counters;
        let (seconds, _) =
            timed(|| precondition_with(&mut device, &mut sources, &mut |_| true).expect("the state can be reached"));
        let counted = device.ftl().counters.since(&before);
        assert!(counted.host_units as f64 > units, "the job wrote less than the drive");
        show(what, seconds, &counted);
    }
}

/// Job of a lifetime, and the bytes of the device.
struct Job(&'static str, u64, Vec<Box<dyn Source>>);

impl Repeated for Job {
    fn open(&mut self, repetition: u32) -> Result<&mut [Box<dyn Source>], SourceError> {
        let jobs = synthetic::parse(self.0, self.1, 1 + u64::from(repetition)).expect("a valid job");
        self.2 = jobs.into_iter().map(|job| job.source).collect();
        Ok(&mut self.2)
    }
}

/// Measures lifetimes up to the first block that expires, with and without wear leveling.
fn lifetime() {
    for wear in ["none", "least-erased", "static-threshold", "dual-pool", "agrawal"] {
        let rate = best((1..=3).map(|_| {
            let options = ["nand.endurance=30", "faults={ wear_out = \"count\" }", &format!("gc.wear={wear}")];
            let config = device_file::load("bench-32g", &options.map(str::to_owned)).expect("an accepted device");
            let mut device = Device::new(config, Options::default()).expect("a checked device");
            prepare(&mut device, Precondition::Fill);
            let bytes = device.config().logical_bytes();
            let mut job = Job("rw=randwrite bs=4k norandommap=1", bytes, Vec::new());
            let (seconds, lived) = timed(|| live(&mut device, &mut job, Until::FirstExpiry, &mut |_| true));
            let lived = lived.expect("a workload that can be repeated");
            assert!(lived.complete, "no block expired");
            lived.counters.pages_programmed_total() as f64 / seconds
        }));
        println!("lifetime, bench-32g, {wear:<16}:    {:6.1} M page programs/CPU s   (bar 20)", rate / 1e6);
    }
}

/// Measures the full model in timed mode, and the floor in turn.
fn timed_cases() {
    let (mut device, mut floor) = (device("bench-32g"), steady_floor());
    prepare(&mut device, Precondition::Steady);
    for (what, kind, count) in [("steady writes", "randwrite", 1_000_000), ("reads", "randread", 4_000_000)] {
        let text = format!("rw={kind} bs=4k iodepth=32 norandommap=1 number_ios={count}");
        let (mut ours, mut least) = (Vec::new(), Vec::new());
        let (mut latency, mut of_floor) = (0.0, 0.0);
        for seed in 1..=5 {
            let (seconds, counted, mean) = job_with_latency(&mut device, &text, seed);
            ours.push(flash_operations(&counted) / seconds);
            latency += mean / 5.0;
            let (seconds, done) = timed(|| floor.run(kind == "randwrite", count));
            least.push(done.operations as f64 / seconds);
            of_floor += done.latency / 1e6 / 5.0;
        }
        let (ours, least) = (median(ours) / 1e6, median(least) / 1e6);
        println!(
            "random 4 KiB {what:<13}, depth 32: {ours:6.2} M flash operations/CPU s, mean latency {latency:.2} us"
        );
        println!("  floor: {least:6.2} M, {of_floor:.2} us;   ratio {:.2}   (bar 0.5)", ours / least);
        assert!((latency / of_floor - 1.0).abs() < 0.01, "the floor does other work than the device");
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures the cost of latency breakdowns.
fn attribution() {
    for (what, kind, state) in
        [("writes", "randwrite", Precondition::Steady), ("reads", "randread", Precondition::Fill)]
    {
        let mut devices = [false, true].map(|attribution| {
            let config = device_file::load("bench-32g", &[]).expect("a built-in device");
            let options = Options { attribution, ..Options::default() };
            let mut device = Device::new(config, options).expect("a checked device");
            prepare(&mut device, state);
            device
        });
        // Alternating, so that other load on the machine affects both.
        let mut costs = [f64::INFINITY; 2];
        for seed in 1..=5 {
            for (device, cost) in devices.iter_mut().zip(&mut costs) {
                let text = format!("rw={kind} bs=4k iodepth=32 norandommap=1 number_ios=1000000");
                *cost = cost.min(job(device, &text, seed).0 * 1e3);
            }
        }
        let [off, on] = costs;
        println!(
            "attribution, random {what:<6} {off:4.0} -> {on:4.0} ns each: {:+.1} %   (bar 15)",
            (on / off - 1.0) * 100.0
        );
    }
}

/// Returns the CPU nanoseconds per flash operation of a job on devices with different options. The devices alternate.
fn costs<const N: usize>(options: [&[&str]; N], job_text: &str, state: Precondition) -> [f64; N] {
    let mut devices = options.map(|options| {
        let set: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let config = device_file::load("bench-32g", &set).expect("an accepted device");
        let mut device = Device::new(config, Options::default()).expect("a checked device");
        prepare(&mut device, state);
        device
    });
    let mut costs = [f64::INFINITY; N];
    for seed in 1..=24 {
        for (device, cost) in devices.iter_mut().zip(&mut costs) {
            let (seconds, counted) = job(device, job_text, seed);
            *cost = cost.min(seconds / flash_operations(&counted) * 1e9);
        }
    }
    costs
}

/// Measures the cost of the buffer and of firmware, per flash operation.
fn controller() {
    let software = [
        "controller.firmware.cores=4",
        "controller.firmware.interrupt=\"100ns\"",
        "controller.firmware.lookup=\"50ns\"",
        "controller.firmware.allocation=\"50ns\"",
        "controller.firmware.buffer=\"50ns\"",
    ];
    let both = [&BUFFER_AHEAD[..], &software].concat();
    for (what, job, state) in RANDOM {
        let [plain, buffer, both] = costs([&[], &BUFFER_AHEAD, &both], job, state);
        println!(
            "random {what:<6} per flash operation: {plain:4.0} ns; with a buffer {:.2}, and firmware {:.2} times as \
             much   (bar 1.5)",
            buffer / plain,
            both / plain
        );
    }
}

/// Measures the cost of advanced commands, alone and with a buffer, per flash operation.
fn advanced() {
    let planes = [
        "nand.advanced.multi_plane_program=wise",
        "nand.advanced.multi_plane_read=true",
        "nand.advanced.multi_plane_erase=true",
    ];
    let caches = ["nand.advanced.cache_read=true", "nand.advanced.cache_program=true"];
    let suspend = ["nand.advanced.suspend={ program = true, erase = true, latency = \"5us\", resume = \"5us\" }"];
    let together = [&planes[..], &caches, &suspend, &["nand.advanced.copy_back=wise"]].concat();
    let buffered = [&together[..], &BUFFER].concat();
    let ahead = [&together[..], &BUFFER_AHEAD].concat();
    let chips = ["nand.concurrency=command"];
    let interleave = [&chips[..], &["nand.advanced.interleave=true"], &planes].concat();
    for (what, job, state) in RANDOM {
        let [plain, planes, caches, suspend, together, buffered, ahead] =
            costs([&[], &planes, &caches, &suspend, &together, &buffered, &ahead], job, state);
        let [command, interleave] = costs([&chips, &interleave], job, state);
        println!(
            "random {what:<6} per flash operation: {plain:4.0} ns; multi-plane {:.2}, caches {:.2}, suspend {:.2}, \
             all {:.2}, with a buffer {:.2} times as much   (bar 1.5)\n  \
             with a buffer with water marks, in memory that takes time: {:.2}\n  \
             with one command per chip at a time: {command:4.0} ns; interleaved and multi-plane {:.2} times as much",
            planes / plain,
            caches / plain,
            suspend / plain,
            together / plain,
            buffered / plain,
            ahead / plain,
            interleave / command
        );
    }
}

/// Prints the names of the runs that `instructions` knows.
fn list_runs() {
    OTHERS.into_iter().chain(CASES.iter().map(|case| case.name)).for_each(|name| println!("{name}"));
}

/// Performs a run of `budget.rs` once, and prints its requests and flash operations. The clock is not read, because the
/// program ends at that point under valgrind.
fn instructions(name: &str) {
    let case_of =
        |name: &str| CASES.iter().find(|case| case.name == name).unwrap_or_else(|| panic!("unknown run `{name}`"));
    if let Some(kind) = name.strip_prefix("floor-") {
        return instructions_of_floor(&case_of("reads").config(), kind == "writes");
    }
    let (run_name, attribution) = name.strip_prefix("attributed-").map_or((name, false), |name| (name, true));
    let case = case_of(run_name);
    let options = Options { attribution, ..Options::default() };
    let mut device = Device::new(case.config(), options).expect("a checked device");
    prepare(&mut device, case.state);
    let mut sources = sources(&device, case.job, 1);
    let before = device.ftl().counters;
    let outcome = measured(&mut device, &mut sources);
    let operations = flash_operations(&device.ftl().counters.since(&before));
    println!("requests {} operations {operations}", outcome.results.all().count());
}

fn instructions_of_floor(config: &DeviceConfig, is_write: bool) {
    const REQUESTS: u64 = 100_000;
    let mut floor = Floor::new(config);
    floor.fill();
    floor.overwrite(if is_write { 2 * floor.units() } else { 0 });
    println!("requests {REQUESTS} operations {}", floor.run(is_write, REQUESTS).operations);
}

/// Measures the cost over device size and length of the run, and the memory.
fn scaling() {
    let small: DeviceConfig = device_file::load(
        "bench-32g",
        &[
            "geometry.blocks=8".into(),
            "gc.soft_threshold=1".into(),
            "gc.hard_threshold=1".into(),
            "capacity={spare=0.55}".into(),
        ],
    )
    .expect("an accepted device");
    for (name, config) in [
        ("1 GiB", small),
        ("32 GiB", device_file::load("bench-32g", &[]).expect("built in")),
        ("1 TiB", device_file::load("bench-1t", &[]).expect("built in")),
    ] {
        let mut device = Device::new(config, Options::default()).expect("a checked device");
        prepare(&mut device, Precondition::Fill);
        let mut cost = |kind: &str, count: u64| {
            let text = format!("rw={kind} bs=4k iodepth=32 norandommap=1 number_ios={count}");
            job(&mut device, &text, count).0 / count as f64 * 1e9
        };
        let (one, four) = (cost("randread", 500_000), cost("randread", 2_000_000));
        let writes = cost("randwrite", 500_000);
        println!(
            "{name:>7}: read {one:5.0} ns, {four:5.0} ns in a run four times as long; write {writes:5.0} ns; peak {:.0} MiB",
            peak_mib()
        );
    }
    println!(
        "  (bar: cost per request within 2x from 1 GiB to 1 TiB and independent of the run length; 3072 MiB for 1 TiB)"
    );
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    match wanted.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["instructions"] => return list_runs(),
        ["instructions", name] => return instructions(name),
        _ => {}
    }
    let cases: [(&str, fn()); 8] = [
        ("functional", functional),
        ("preconditioning", preconditioning),
        ("lifetime", lifetime),
        ("timed", timed_cases),
        ("attribution", attribution),
        ("controller", controller),
        ("advanced", advanced),
        ("scaling", scaling),
    ];
    for (name, case) in cases {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            case();
        }
    }
}
