//! Power cuts of arrays with failed members, in the middle of requests: with the stripe journal, each unit holds its
//! last flushed version or a newer one, also on members with volatile buffers.

use std::collections::BTreeMap;

use floatgate_array::config::{ArrayConfig, from_toml};
use floatgate_array::{Mutant, Options, SsdArray};
use floatgate_core::sim::request::{Completion, Operation, Request, Status};
use floatgate_core::sim::rng::Rng;
use floatgate_core::simulation::Ssd;
use floatgate_serve::image::{ImageAt, Members, OpenedArray};

/// Options of members: 4 MiB of flash, with 1.6 MiB visible. The journal takes 1 MiB.
const MEMBER: [&str; 5] = [
    "member.geometry.blocks=8",
    "member.geometry.pages=16",
    "member.capacity.spare=0.6",
    "member.durability.trim_journal=true",
    "array.write_hole=journal",
];

const UNIT: usize = 4096;

fn config(options: &str, set: &[&str]) -> ArrayConfig {
    let text = format!("[array]\nstripe = \"8KiB\"\ndevice = \"tiny\"\n{options}\n");
    let set: Vec<String> = MEMBER.iter().chain(set).map(|text| (*text).to_owned()).collect();
    from_toml(&[], &text, "array.toml", &set).unwrap()
}

/// Array with its images, and the versions that each unit may hold after a power cut. The first one is certain, and the
/// last one is the newest.
struct Bench {
    array: SsdArray,
    versions: Vec<Vec<u64>>,
    /// Units of outstanding writes, by the tag of the request. A flush has all units.
    outstanding: BTreeMap<u64, (Request, std::ops::Range<usize>)>,
    rng: Rng,
    stamp: u64,
    /// True for long rounds without flushes.
    is_long: bool,
}

impl Bench {
    fn new(config: &ArrayConfig, seed: u64, mutant: Mutant) -> Bench {
        let options = Options { seed, mutant, ..Options::default() };
        let opened = OpenedArray::open(&ImageAt::Memory, config, false).unwrap();
        let array = opened.begin(SsdArray::new(config.clone(), options.clone()).unwrap(), options).unwrap();
        let versions = vec![vec![0]; config.logical_bytes() as usize / UNIT];
        Bench {
            array,
            versions,
            outstanding: BTreeMap::new(),
            rng: Rng::new(seed, "array/journal"),
            stamp: 0,
            is_long: false,
        }
    }

    fn submit(&mut self, request: Request, data: &[u8]) {
        self.stamp += 1;
        let now = self.array.now();
        let request = Request { tag: self.stamp, arrival: now, ..request };
        let first = (request.lba * 512) as usize / UNIT;
        let units = match request.operation {
            Operation::Flush => 0..self.versions.len(),
            _ => first..first + (request.bytes() as usize / UNIT),
        };
        self.outstanding.insert(self.stamp, (request, units));
        if request.operation == Operation::Write {
            self.array.stage_payload(self.stamp, data);
        }
        self.array.submit(now, request);
        self.array.apply_flash();
    }

    /// Submits a random request for units without outstanding requests.
    fn draw(&mut self) {
        if !self.is_long && self.rng.below(12) == 0 && self.outstanding.is_empty() {
            return self.submit(Request::new(self.array.now(), Operation::Flush, 0, 0), &[]);
        }
        let row = (self.array.config().layout().row_sectors() * 512) as usize / UNIT;
        let is_trim = self.rng.below(10) == 0;
        let most = if self.rng.below(4) == 0 { 24 } else { 2 };
        let length = if is_trim { row } else { 1 + self.rng.below(most) as usize };
        // Requests are in a few stripes, so that they collide.
        let first = self.rng.below(96) as usize;
        let first = if is_trim { first / row * row } else { first };
        let units = first..(first + length).min(self.versions.len());
        if self.outstanding.values().any(|(_, other)| other.start < units.end && units.start < other.end) {
            return;
        }
        let operation = if !is_trim {
            Operation::Write
        } else if self.rng.below(2) == 0 {
            Operation::Trim
        } else {
            Operation::WriteZeroes
        };
        let version = if is_trim { 0 } else { self.stamp + 1 };
        units.clone().for_each(|unit| self.versions[unit].push(version));
        let request = Request::new(self.array.now(), operation, (first * UNIT / 512) as u64, (units.len() * 8) as u32);
        let data = version.to_le_bytes().repeat(units.len() * UNIT / 8);
        let fua = self.rng.below(8) == 0;
        self.submit(Request { fua, ..request }, &data);
    }

    /// Processes the events of an instant. Flushed versions become certain.
    fn step(&mut self) -> Vec<Completion> {
        if let Some(at) = self.array.next_event() {
            self.array.advance(at);
        }
        self.array.apply_flash();
        let mut completions = Vec::new();
        self.array.take_completions(&mut completions);
        for completion in &completions {
            assert_eq!(completion.status, Status::Ok, "{completion:?}");
            let (request, units) = self.outstanding.remove(&completion.request.tag).unwrap();
            if request.fua || request.operation == Operation::Flush {
                self.versions[units].iter_mut().for_each(|versions| drop(versions.drain(..versions.len() - 1)));
            }
        }
        completions
    }

    /// Reads all units. Each has one of its possible versions, which is certain from then on.
    fn check(&mut self) -> Result<(), String> {
        for unit in 0..self.versions.len() {
            self.submit(Request::new(self.array.now(), Operation::Read, (unit * UNIT / 512) as u64, 8), &[]);
            while self.step().is_empty() {}
            let [(_, bytes)] = &self.array.take_replies()[..] else { panic!("one read has completed") };
            let versions = &mut self.versions[unit];
            let is = |version: &&u64| version.to_le_bytes().repeat(UNIT / 8) == *bytes;
            let Some(version) = versions.iter().rev().find(is).copied() else {
                return Err(format!("unit {unit} may have the versions {versions:?}, and has {:?}", &bytes[..8]));
            };
            *versions = vec![version];
        }
        Ok(())
    }

    /// Serves random requests, cuts the power in the middle of some, and checks all units.
    fn round(&mut self) -> Result<(), String> {
        let steps = if self.is_long { 20_000 } else { 100 + self.rng.below(1500) };
        for _ in 0..steps {
            if self.outstanding.len() < 8 && self.rng.below(3) == 0 {
                self.draw();
            }
            self.step();
        }
        Members::power_cycle(&mut self.array, self.rng.next_u64()).unwrap();
        self.outstanding.clear();
        self.array.take_replies();
        // Sometimes, the power fails again during the recovery.
        if self.rng.below(3) == 0 {
            (0..self.rng.below(60)).for_each(|_| drop(self.step()));
            Members::power_cycle(&mut self.array, self.rng.next_u64()).unwrap();
        }
        self.check()
    }
}

/// Runs several rounds on an array. Returns the first error, and the number of stripes that were corrected.
fn run(config: &ArrayConfig, seed: u64, mutant: Mutant) -> Result<u64, String> {
    let mut bench = Bench::new(config, seed, mutant);
    let mut corrected = 0;
    for round in 0..8 {
        bench.round().map_err(|error| format!("seed {seed}, round {round}: {error}"))?;
        corrected += bench.array.usage().stripes_corrected;
    }
    bench.array.check_invariants()?;
    Ok(corrected)
}

const DEGRADED: [&str; 4] = [
    "level = 5\ncount = 4\nfailed = [1]",
    "level = 5\ncount = 3\nfailed = [0]\nrebuild = { rate = \"20MB/s\" }",
    "level = 6\ncount = 5\nfailed = [3]",
    "level = 6\ncount = 6\nfailed = [0, 4]",
];

const MEMBERS: [&[&str]; 3] = [
    &[],
    &["member.buffer.capacity=128KiB"],
    &["member.buffer={ capacity = \"64KiB\", power_loss_protection = true }"],
];

#[test]
fn a_degraded_array_with_a_journal_loses_no_flushed_data() {
    for options in DEGRADED {
        for set in MEMBERS {
            let config = config(options, set);
            let corrected: u64 = (0..4)
                .map(|seed| {
                    run(&config, seed, Mutant::None).unwrap_or_else(|error| panic!("{options} {set:?}: {error}"))
                })
                .sum();
            assert!(corrected > 0, "{options} {set:?}: no stripe was inconsistent");
        }
    }
}

/// Without the journal, or without its use, the write hole loses flushed data.
#[test]
fn the_test_finds_the_write_hole() {
    for set in MEMBERS {
        let journaled = config(DEGRADED[0], set);
        let fails = |config: &ArrayConfig, mutant| (0..6).any(|seed| run(config, seed, mutant).is_err());
        assert!(fails(&journaled, Mutant::IgnoreJournal), "{set:?}: the journal is not needed");
        assert!(fails(&config(DEGRADED[0], &[set, &["array.write_hole=none"]].concat()), Mutant::None), "{set:?}");
    }
}

/// Writes in a volatile buffer need their entries until they are flushed. Here, long rounds without a flush of the host
/// use the whole ring, and only some members have a buffer, so that parity is in flash and data are not.
#[test]
fn entries_are_kept_until_members_are_flushed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("buffered.toml"), "base = \"tiny\"\n[buffer]\ncapacity = \"1280KiB\"\n").unwrap();
    let members = "members = [\"tiny\", \"tiny\", \"buffered.toml\", \"buffered.toml\"]";
    let text = format!("[array]\nlevel = 5\nstripe = \"8KiB\"\nfailed = [1]\n{members}\n");
    let path = folder.path().join("array.toml");
    let set = MEMBER.map(str::to_owned);
    let config = from_toml(&[], &text, path.to_str().unwrap(), &set).unwrap();
    let long = |seed, mutant| {
        let mut bench = Bench::new(&config, seed, mutant);
        bench.is_long = true;
        (0..2).try_for_each(|_| bench.round())
    };
    assert!((0..4).any(|seed| long(seed, Mutant::ReuseEntries).is_err()));
    (0..4).for_each(|seed| long(seed, Mutant::None).unwrap());
}
