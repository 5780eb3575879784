//! Contents: random requests on random arrays return the data that were written, in all states and after failures.
//!
//! Each write has its own tag, and members return the tags of each sector. Parity is computed from the tags that the
//! array has read, so that a wrong member, address, strategy or order of operations shows as a wrong tag.

use std::collections::BTreeMap;

use crate::common::config;
use floatgate_array::config::ArrayConfig;
use floatgate_array::{Mutant, Options, SsdArray};
use floatgate_core::sim::request::{Completion, Operation, Request, Status};
use floatgate_core::sim::rng::Rng;
use floatgate_core::simulation::Ssd;
use proptest::prelude::*;

/// Random array and load.
#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    level: u32,
    members: u32,
    stripe_kib: u64,
    journal: bool,
    xor: bool,
    staggered: bool,
    /// Members that have failed before the run.
    failed: Vec<u32>,
    rebuild: bool,
    depth: usize,
    requests: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let level = prop::sample::select(vec![0u32, 1, 5, 5, 6, 6, 10]);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (any::<u64>(), level, 4u32..8, prop::sample::select(vec![4u64, 8, 12, 16]), flags, 0u32..3, 1usize..24, 50u64..400)
        .prop_map(
            |(seed, level, members, stripe_kib, (journal, xor, rebuild, staggered), failures, depth, requests)| {
                let members = if level == 10 { members / 2 * 2 } else { members };
                let most = [0, members - 1, 1, 2, 1][[0, 1, 5, 6, 10].iter().position(|l| *l == level).unwrap()];
                let first = (seed % u64::from(members)) as u32;
                let failed: Vec<u32> = (0..failures.min(most)).map(|at| (first + at) % members).collect();
                Case {
                    seed,
                    level,
                    members,
                    stripe_kib,
                    journal,
                    xor,
                    staggered,
                    rebuild: rebuild && !failed.is_empty(),
                    failed,
                    depth,
                    requests,
                }
            },
        )
}

impl Case {
    fn config(&self) -> ArrayConfig {
        let mut options = format!(
            "level = {}\nstripe = \"{}KiB\"\ndevice = \"tiny\"\ncount = {}\nfailed = {:?}",
            self.level, self.stripe_kib, self.members, self.failed
        );
        if self.journal && [5, 6].contains(&self.level) {
            options += "\nwrite_hole = \"journal\"";
        }
        if self.xor {
            options += "\nxor = \"1GB/s\"";
        }
        if self.staggered {
            options += "\ngc = { staggered = { window = \"1ms\" } }";
        }
        if self.rebuild {
            options += "\nrebuild = { rate = \"100MB/s\" }";
        }
        config(&options, &["member.geometry.blocks=8", "member.geometry.pages=16", "member.capacity.spare=0.6"])
    }
}

/// Write of a sector: its tag, and the steps of its submission and of its completion.
#[derive(Clone, Copy, Debug)]
struct Write {
    tag: u32,
    submitted: u64,
    completed: u64,
    /// True for a TRIM, which may leave the sector unchanged.
    is_optional: bool,
}

/// Writes of each sector, in the order of their submission.
struct Reference {
    sectors: Vec<Vec<Write>>,
    step: u64,
    submitted: BTreeMap<u64, u64>,
}

impl Reference {
    fn submit(&mut self, request: &Request) {
        self.step += 1;
        self.submitted.insert(request.tag, self.step);
        let tag = if request.operation == Operation::Write { request.tag as u32 } else { 0 };
        if matches!(request.operation, Operation::Write | Operation::WriteZeroes | Operation::Trim) {
            let is_optional = request.operation == Operation::Trim;
            let write = Write { tag, submitted: self.step, completed: u64::MAX, is_optional };
            let end = request.lba + u64::from(request.sectors);
            self.sectors[request.lba as usize..end as usize].iter_mut().for_each(|writes| writes.push(write));
        }
    }

    fn complete(&mut self, request: &Request, contents: Option<&Vec<u32>>) -> Result<(), String> {
        self.step += 1;
        let submitted = self.submitted[&request.tag];
        let end = request.lba + u64::from(request.sectors);
        for (at, lba) in (request.lba..end).enumerate() {
            let writes = &mut self.sectors[lba as usize];
            if request.operation != Operation::Read {
                let write = writes.iter_mut().find(|write| write.submitted == submitted);
                write.into_iter().for_each(|write| write.completed = self.step);
                continue;
            }
            let tag = contents.ok_or("a read returned no contents")?[at];
            if !is_acceptable(writes, tag, submitted) {
                return Err(format!("sector {lba} has tag {tag}, but its writes are {writes:?} ({request:?})"));
            }
        }
        Ok(())
    }
}

/// Returns `true` if a read that was submitted at a step may return the tag: no later write replaced it before.
fn is_acceptable(writes: &[Write], tag: u32, read: u64) -> bool {
    let first = Write { tag: 0, submitted: 0, completed: 0, is_optional: false };
    let replaced = |old: &Write| {
        writes.iter().any(|new| !new.is_optional && new.submitted > old.completed && new.completed < read)
    };
    std::iter::once(&first).chain(writes).any(|write| write.tag == tag && !replaced(write))
}

struct Bench {
    array: SsdArray,
    reference: Reference,
    rng: Rng,
    tag: u64,
}

impl Bench {
    fn new(case: &Case, mutant: Mutant) -> Bench {
        let config = case.config();
        let sectors = vec![Vec::new(); (config.logical_bytes() / 512) as usize];
        let options = Options { seed: case.seed, verify: true, mutant, ..Options::default() };
        Bench {
            array: SsdArray::new(config, options).unwrap(),
            reference: Reference { sectors, step: 0, submitted: BTreeMap::new() },
            rng: Rng::new(case.seed, "array/load"),
            tag: 0,
        }
    }

    fn draw(&mut self) -> Request {
        let size = self.reference.sectors.len() as u64;
        let operation = match self.rng.below(20) {
            0 => Operation::Trim,
            1 => Operation::WriteZeroes,
            2 => Operation::Flush,
            3..8 => Operation::Read,
            _ => Operation::Write,
        };
        let most = [8, 64, 256][self.rng.below(3) as usize].min(size);
        // Half of the requests are aligned to mapping units, and all are in a few stripes, so that they collide.
        let align = [1, 8][self.rng.below(2) as usize];
        let sectors = (1 + self.rng.below(most)).next_multiple_of(align).min(size);
        let lba = self.rng.below((size - sectors + 1).min(512)) / align * align;
        let sectors = if operation == Operation::Flush { 0 } else { sectors as u32 };
        let fua = self.rng.below(16) == 0;
        Request { fua, ..Request::new(self.array.now(), operation, lba, sectors) }
    }

    fn submit(&mut self, request: Request) {
        self.tag += 1;
        let request = Request { tag: self.tag, arrival: self.array.now(), ..request };
        self.reference.submit(&request);
        self.array.submit(request.arrival, request);
    }

    /// Takes completions, and compares reads with the reference. Returns the contents of the reads.
    fn collect(&mut self) -> Result<BTreeMap<u64, Vec<u32>>, String> {
        let mut completions: Vec<Completion> = Vec::new();
        self.array.take_completions(&mut completions);
        let contents: BTreeMap<u64, Vec<u32>> = self.array.take_contents().into_iter().collect();
        for completion in &completions {
            if completion.status != Status::Ok {
                return Err(format!("{completion:?}"));
            }
            self.reference.complete(&completion.request, contents.get(&completion.request.tag))?;
        }
        Ok(contents)
    }

    fn run(&mut self, requests: u64, depth: usize) -> Result<(), String> {
        let mut submitted = 0;
        while submitted < requests || self.array.outstanding() > 0 {
            if submitted < requests && self.array.outstanding() < depth && self.rng.below(3) > 0 {
                let request = self.draw();
                self.submit(request);
                submitted += 1;
            } else if let Some(at) = self.array.next_event() {
                self.array.advance(at);
            } else if self.array.outstanding() > 0 {
                return Err(self.array.explain_stall());
            }
            self.collect()?;
        }
        Ok(())
    }

    /// Processes all events, also of the rebuild.
    fn drain(&mut self) -> Result<(), String> {
        while let Some(at) = self.array.next_event() {
            self.array.advance(at);
        }
        self.collect()?;
        self.array.check_invariants()
    }

    /// Reads all sectors.
    fn read_all(&mut self) -> Result<Vec<u32>, String> {
        let size = self.reference.sectors.len() as u64;
        let mut all = Vec::new();
        for lba in (0..size).step_by(96) {
            let sectors = (size - lba).min(96) as u32;
            self.submit(Request::new(self.array.now(), Operation::Read, lba, sectors));
            let tag = self.tag;
            while self.array.outstanding() > 0 {
                let at = self.array.next_event().ok_or_else(|| self.array.explain_stall())?;
                self.array.advance(at);
            }
            all.extend(self.collect()?.remove(&tag).ok_or("no contents")?);
        }
        Ok(all)
    }
}

/// Runs a case: a load, then failures of one member after the other as long as the array survives, with the same
/// contents, and a load on the degraded array.
fn run(case: &Case, mutant: Mutant) -> Result<(), String> {
    let mut bench = Bench::new(case, mutant);
    bench.run(case.requests, case.depth)?;
    bench.drain()?;
    let contents = bench.read_all()?;
    let first = bench.rng.below(u64::from(case.members)) as u32;
    for at in 0..case.members {
        if bench.array.fail((first + at) % case.members).is_err() {
            continue;
        }
        let degraded = bench.read_all()?;
        if let Some(lba) = (0..contents.len()).find(|&lba| degraded[lba] != contents[lba]) {
            let (was, is) = (contents[lba], degraded[lba]);
            return Err(format!("sector {lba} had tag {was}, and has {is} after a failure"));
        }
    }
    bench.run(case.requests / 4, case.depth)?;
    bench.drain()?;
    bench.read_all().map(|_| ())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reads_return_the_last_write(case in cases()) {
        if let Err(error) = run(&case, Mutant::None) {
            prop_assert!(false, "{error}");
        }
    }
}

/// Returns `true` if one of the random cases with the mutant fails.
fn is_caught(mutant: Mutant, allow: impl Fn(&Case) -> bool) -> bool {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let drawn = (0..200).map(|_| cases().new_tree(&mut runner).unwrap().current());
    drawn.filter(|case| allow(case)).take(40).any(|case| {
        assert_eq!(run(&case, Mutant::None), Ok(()), "the case has to pass without the mutant");
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&case, mutant))).map_or(true, |run| run.is_err())
    })
}

#[test]
fn forgotten_parity_is_found() {
    assert!(is_caught(Mutant::ForgetParity, |case| case.level == 5 && case.members > 4 && case.failed.is_empty()));
}

#[test]
fn missing_locks_are_found() {
    assert!(is_caught(Mutant::IgnoreLocks, |case| [5, 6].contains(&case.level) && case.depth > 8));
}

#[test]
fn a_wrong_rebuild_is_found() {
    assert!(is_caught(Mutant::RebuildNext, |case| case.rebuild));
}
