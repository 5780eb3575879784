//! Functional mode of arrays: it leaves what the timed array leaves on each member, without time.

use std::collections::VecDeque;

use crate::common::config;
use floatgate_array::config::{ArrayConfig, from_toml};
use floatgate_array::{Options, SsdArray};
use floatgate_core::mapping::Location;
use floatgate_core::preparation::Prewrite;
use floatgate_core::sim::id::Lpn;
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::source::{Pace, Source, SourceError};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::Ssd;
use floatgate_core::summary::Reached;

const SMALL: [&str; 3] = ["member.geometry.blocks=16", "member.geometry.pages=16", "member.capacity={ spare = 0.5 }"];

const ARRAYS: [&str; 9] = [
    "level = 0\ndevice = \"tiny\"\ncount = 3\nstripe = \"12KiB\"",
    "level = 1\ndevice = \"tiny\"\ncount = 3\nfailed = [1]",
    "level = 10\ndevice = \"tiny\"\ncount = 4\nstripe = \"8KiB\"\nfailed = [1, 2]",
    "level = 5\ndevice = \"tiny\"\ncount = 4\nstripe = \"8KiB\"",
    "level = 5\ndevice = \"tiny\"\ncount = 4\nstripe = \"16KiB\"\nwrite_hole = \"journal\"",
    "level = 5\ndevice = \"tiny\"\ncount = 7\nstripe = \"8KiB\"\nfailed = [3]",
    "level = 6\ndevice = \"tiny\"\ncount = 6\nstripe = \"8KiB\"",
    "level = 6\ndevice = \"tiny\"\ncount = 5\nstripe = \"8KiB\"\nfailed = [0]\nwrite_hole = \"journal\"",
    "level = 6\ndevice = \"tiny\"\ncount = 5\nstripe = \"8KiB\"\nfailed = [2, 3]",
];

fn array(config: &ArrayConfig) -> SsdArray {
    SsdArray::new(config.clone(), Options::default()).unwrap()
}

/// Returns the mapped units of a member.
fn mapped(array: &SsdArray, member: usize) -> Vec<u32> {
    let map = &array.member(member).ftl().map;
    (0..map.len()).filter(|unit| map.get(Lpn(*unit)) != Location::Unmapped).collect()
}

/// Draws requests in a third of the array. With `aligned`, each is in one chunk, and whole mapping units.
fn requests(array: &SsdArray, seed: u64, count: u64, aligned: bool) -> Vec<Request> {
    let mut rng = Rng::new(seed, "array/functional");
    let sectors = array.config().logical_bytes() / 512;
    let draw = |_| {
        let operation = match rng.below(12) {
            0 => Operation::Read,
            1 => Operation::WriteZeroes,
            2 => Operation::Trim,
            _ => Operation::Write,
        };
        let (length, lba) = if aligned {
            (8, rng.below(sectors / 24) * 8)
        } else {
            let most = if rng.below(4) == 0 { 300 } else { 40 };
            (1 + rng.below(most), rng.below(sectors / 3))
        };
        Request::new(Time::ZERO, operation, lba, length.min(sectors - lba) as u32)
    };
    (0..count).map(draw).collect()
}

/// Serves requests one after the other in simulated time.
fn serve(array: &mut SsdArray, requests: &[Request]) {
    for request in requests {
        let at = array.now();
        array.submit(at, Request { arrival: at, ..*request });
        while let Some(at) = array.next_event() {
            array.advance(at);
        }
        array.take_completions(&mut Vec::new());
    }
}

/// Closed loop over a list of requests.
struct List(VecDeque<Request>);

impl Source for List {
    fn pace(&self) -> Pace {
        Pace::Depth { depth: 1, think: Time::ZERO }
    }

    fn next_request(&mut self) -> Result<Option<Request>, SourceError> {
        Ok(self.0.pop_front())
    }
}

fn sources(requests: &[Request]) -> Vec<Box<dyn Source>> {
    vec![Box::new(List(requests.iter().copied().collect()))]
}

/// Mixed mapping units: 4 KiB and 8 KiB.
fn mixed() -> ArrayConfig {
    let set: Vec<String> = SMALL.iter().map(|text| text.to_string()).collect();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("coarse.toml"), "base = \"tiny\"\ngeometry.mapping_unit = \"8KiB\"\n").unwrap();
    let path = folder.path().join("array.toml");
    let text = "[array]\nlevel = 1\nmembers = [\"tiny\", \"coarse.toml\"]\n";
    from_toml(&[], text, path.to_str().unwrap(), &set).unwrap()
}

#[test]
fn a_workload_leaves_what_the_timed_array_leaves() {
    let configs = ARRAYS.iter().map(|options| config(options, &SMALL)).chain([mixed()]);
    for (number, config) in configs.enumerate() {
        for aligned in [false, true] {
            let (mut timed, mut functional) = (array(&config), array(&config));
            let requests = requests(&timed, 3 + number as u64, 400, aligned);
            serve(&mut timed, &requests);
            let reached = functional.precondition_with(&mut sources(&requests), &mut |_| true).unwrap();
            assert_eq!(reached.len(), config.members.len() - config.options.failed.len());
            // Parts of one request take their journal entries in the order in which their reads complete.
            let area = config.layout().rows() * u64::from(config.layout().chunk()) / 8;
            let journal = |unit: &u32| aligned || u64::from(*unit) < area;
            for member in 0..config.members.len() {
                let [timed, functional] = [&timed, &functional]
                    .map(|array| mapped(array, member).into_iter().filter(journal).collect::<Vec<_>>());
                assert!(timed == functional, "array {number}, member {member}: {timed:?} and {functional:?}");
                assert_eq!(timed.is_empty(), config.options.failed.contains(&(member as u32)));
            }
            functional.check_invariants().unwrap();
            // Members have written the same units for the host, so that their state is that after as many writes.
            let written = |array: &SsdArray| {
                (0..config.members.len()).map(|m| array.member(m).ftl().counters.host_units).collect::<Vec<_>>()
            };
            assert_eq!(written(&timed), written(&functional), "array {number}");
        }
    }
}

/// Reads of data that the workload has not written find data on all copies, and parity. Reads of its own data do not.
#[test]
fn prewriting_writes_what_is_read_with_copies_and_parity() {
    for how in [Prewrite::Allocation, Prewrite::Even] {
        for options in ARRAYS {
            let config = config(options, &SMALL);
            let (layout, mut array) = (config.layout(), array(&config));
            let row = layout.row_sectors();
            let request = |operation, lba, sectors| Request::new(Time::ZERO, operation, lba, sectors);
            // The first sectors of stripe 1 are read. Those of stripe 2 are written before they are read.
            let list = [
                request(Operation::Read, row, 8),
                request(Operation::Write, 2 * row, 8),
                request(Operation::Read, 2 * row, 8),
            ];
            let mut reached = Reached::default();
            let bytes = array.prewrite(&mut sources(&list), how, &mut reached, &mut |_| true).unwrap();
            let unit = layout.address(1, 0) / 8;
            let copies = (0..layout.copies()).map(|copy| layout.data_member(1, 0, copy));
            let parities = (0..layout.level().parities()).map(|index| layout.parity_member(1, index));
            let holders: Vec<u32> = copies.chain(parities).filter(|m| !config.options.failed.contains(m)).collect();
            assert_eq!(bytes, 4096 * holders.len() as u64, "{options}");
            assert!(reached.mapped > 0.0);
            for member in 0..layout.members() {
                let expected: Vec<u32> = holders.iter().filter(|m| **m == member).map(|_| unit as u32).collect();
                assert_eq!(mapped(&array, member as usize), expected, "{options}: member {member}");
            }
            array.check_invariants().unwrap();
            // The read takes the time to read flash.
            serve(&mut array, &list[..1]);
            assert!(array.now() > Time::from_us(25), "{options}");
        }
    }
}
