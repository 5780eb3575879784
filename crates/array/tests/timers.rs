//! Timers: random arrays with timers of garbage collection come to rest, and no timer is set again without progress.
//!
//! `FLOATGATE_SEED=n` repeats case n alone. `FLOATGATE_CASES=n` runs n / 5 cases.

use crate::common::config;
use floatgate_array::config::ArrayConfig;
use floatgate_array::{Options, SsdArray};
use floatgate_core::sim::request::{Completion, Operation, Request, Status};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{NoWatcher, RunOptions, Ssd, replay};
use floatgate_workload::synthetic;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.replace('_', "").parse().ok())
}

fn seeds() -> std::ops::Range<u64> {
    let cases = number("FLOATGATE_CASES").unwrap_or(1500) / 5;
    number("FLOATGATE_SEED").map_or(0..cases, |seed| seed..seed + 1)
}

fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[rng.below(from.len() as u64) as usize]
}

const TIMES: [&str; 8] = ["1us", "7us", "50us", "300us", "1ms", "13ms", "400ms", "20s"];

/// Draws an array of small members with timers.
fn draw(rng: &mut Rng) -> ArrayConfig {
    let level = pick(rng, &["0", "1", "5", "6", "10"]);
    let count = if level == "10" { 4 } else { 3 + rng.below(3) + u64::from(level == "6") };
    let failed = if level != "0" && rng.below(4) == 0 { "failed = [1]\nrebuild = { rate = \"50MB/s\" }\n" } else { "" };
    let window = pick(rng, &TIMES);
    let members = 1 + rng.below(count - 1);
    let options = format!(
        "level = {level}\nstripe = \"8KiB\"\ndevice = \"tiny\"\ncount = {count}\n{failed}\
         gc = {{ staggered = {{ window = \"{window}\", members = {members} }} }}"
    );
    let mut all = ["blocks=12", "pages=16"].map(|text| format!("member.geometry.{text}")).to_vec();
    all.extend(["member.capacity.spare=0.6", "member.gc.soft_threshold=2"].map(str::to_owned));
    let (idle, until, preempt) = (pick(rng, &TIMES), 4 + rng.below(8), rng.below(2) == 0);
    if rng.below(5) > 0 {
        let gain = pick(rng, &["0.0", "0.1", "0.7"]);
        all.push(format!(
            "member.gc.background={{ idle = \"{idle}\", until = {until}, preempt = {preempt}, gain = {gain} }}"
        ));
    }
    if rng.below(3) == 0 {
        all.push("member.buffer.capacity=64KiB".to_owned());
        all.push(format!("member.buffer.idle={}", pick(rng, &TIMES)));
    }
    if rng.below(3) == 0 {
        all.push(format!("member.controller.fill_timeout={}", pick(rng, &["1us", "50us", "1ms"])));
        all.push("member.geometry.pages_per_program=4".to_owned());
        all.push("member.nand.program=700us".to_owned());
    }
    if rng.below(4) == 0 {
        let delay = pick(rng, &["1us", "300us"]);
        all.push(format!("member.gc.throttle={{ below = 6, delay = \"{delay}\" }}"));
    }
    if rng.below(4) == 0 {
        let cost = pick(rng, &["100", "\"3us\"", "\"1ms\""]);
        all.push(format!("member.controller.firmware.gc={cost}"));
        all.push(format!("member.controller.firmware.lookup={cost}"));
    }
    if rng.below(4) == 0 {
        all.push(format!("member.host.link_latency={}", pick(rng, &["1us", "30us"])));
        all.push(format!("member.host.link_bandwidth={}", pick(rng, &["100KB/s", "300MB/s"])));
    }
    config(&options, &all.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Array, and the number of events since the last one that has changed something.
struct Bench {
    array: SsdArray,
    rng: Rng,
    /// Number of flash operations, of requests, and of members without an event.
    seen: (u64, usize, usize),
    quiet: u64,
    events: u64,
    completions: Vec<Completion>,
}

impl Bench {
    /// Processes the next instant with an event. Fails if many events have changed nothing.
    fn step(&mut self) -> Result<(), String> {
        let at = self.array.next_event().ok_or_else(|| self.array.explain_stall())?;
        self.array.advance(at);
        self.array.take_completions(&mut self.completions);
        let moved = self.array.outstanding() + self.completions.len();
        let members = self.array.config().members.len();
        let idle = (0..members).filter(|&number| self.array.member(number).next_event().is_none()).count();
        let seen = (self.array.flash_operations(), moved, idle);
        self.quiet = if seen == self.seen { self.quiet + 1 } else { 0 };
        self.seen = seen;
        self.events += 1;
        // A write waits for firmware of 1 ms for each of its units, and checks every `fill_timeout` whether it is full.
        if self.quiet > 100_000 || self.events > 10_000_000 {
            return Err(format!("{} events without progress, at {:?}: {}", self.quiet, at, self.array.explain_stall()));
        }
        Ok(())
    }

    fn submit(&mut self, tag: u64) {
        let sectors = self.array.config().logical_bytes() / 512;
        let operation = match self.rng.below(10) {
            0 => Operation::Trim,
            1 => Operation::Flush,
            2..4 => Operation::Read,
            _ => Operation::Write,
        };
        let (lba, count) = (self.rng.below(sectors / 8 - 8) * 8, 8 * (1 + self.rng.below(8)));
        let count = if operation == Operation::Flush { 0 } else { count as u32 };
        let now = self.array.now();
        self.array.submit(now, Request { tag, ..Request::new(now, operation, lba, count) });
    }
}

/// Runs bursts of requests with pauses, and lets the array come to rest.
fn run(seed: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed, "array/timers");
    let array = SsdArray::new(draw(&mut rng), Options { seed, ..Options::default() })?;
    let mut bench = Bench { array, rng, seen: (0, 0, 0), quiet: 0, events: 0, completions: Vec::new() };
    let bursts = 1 + bench.rng.below(4);
    let mut tag = 0;
    for _ in 0..bursts {
        for _ in 0..bench.rng.below(150) {
            bench.submit(tag);
            tag += 1;
            while bench.array.outstanding() > 8 {
                bench.step()?;
            }
        }
        let pause = Time(1_000_000 << bench.rng.below(22));
        let until = bench.array.now().later(pause);
        while bench.array.next_event().is_some_and(|at| at <= until) {
            bench.step()?;
        }
        bench.array.advance(until);
    }
    while bench.array.next_event().is_some() {
        bench.step()?;
    }
    if bench.completions.len() as u64 != tag || bench.completions.iter().any(|done| done.status != Status::Ok) {
        return Err(format!(
            "{} of {tag} requests completed: {}",
            bench.completions.len(),
            bench.array.explain_stall()
        ));
    }
    if let Some(member) = (0..bench.array.config().members.len()).find(|&at| bench.array.member(at).waits_for_turn()) {
        return Err(format!("member {member} has not had its turn"));
    }
    bench.array.check_invariants()
}

#[test]
fn arrays_with_timers_come_to_rest() {
    for seed in seeds() {
        if let Err(error) = run(seed) {
            panic!("{error}\nFLOATGATE_SEED={seed} repeats it");
        }
    }
}

/// Turns that are shorter than the idle time do not restart it.
#[test]
fn short_turns_end_with_the_work() {
    let options = "level = 0\ndevice = \"tiny\"\ncount = 2\ngc = { staggered = { window = \"1us\", members = 1 } }";
    for idle in ["0ns", "1ms", "30s"] {
        let background = format!("member.gc.background={{ idle = \"{idle}\", until = 6 }}");
        let config = config(options, &[&background]);
        let mut sources: Vec<_> = synthetic::parse("rw=write number_ios=2", config.logical_bytes(), 1)
            .unwrap()
            .into_iter()
            .map(|job| job.source)
            .collect();
        let mut array = SsdArray::new(config, Options::default()).unwrap();
        let outcome = replay(&mut array, &mut sources, &mut NoWatcher, RunOptions::default()).unwrap();
        assert_eq!((outcome.results.all().count(), outcome.complete), (2, true));
        assert!(array.is_idle());
    }
}
