//! Failures with mapping schemes that have blocks of their own: what they cost, step by step, and how many blocks a
//! device can lose. Random devices with faults are in `model/`.

use crate::common::{build, device_config, drain, fill, submit, units};
use floatgate_core::flash::BlockState;
use floatgate_core::internals::ReadCause;
use floatgate_core::results::{CopyCause, ProgramCause};
use floatgate_core::sim::id::PlaneId;
use floatgate_core::sim::request::{Operation, Status};
use floatgate_core::simulation::{Device, Options, Ssd};
use floatgate_core::summary::{Precondition, Reached};

/// Cells to register, register to cells, and transfer of a page over the channel: 4096 cycles of 25 ns.
const READ: u64 = 25_000_000;
const PROGRAM: u64 = 200_000_000;
const PAGE: u64 = 4096 * 25_000;
const WRITE: u64 = PAGE + PROGRAM;
/// A page that is copied through the controller.
const COPY: u64 = READ + PAGE + PAGE + PROGRAM;
/// Units of a logical block: a page each.
const UNITS: u64 = 64;

/// Log blocks of FAST: a sequential one and two random ones.
const FAST: &str = "{ fast = { logs = { sequential = 1, random = 2 }, first_writes = \"log\" } }";
/// FAST with first writes to data blocks.
const IN_PLACE: &str = "{ fast = { logs = { sequential = 1, random = 2 } } }";
/// Log blocks of one logical block each.
const BAST: &str = "{ bast = { logs = 4, first_writes = \"log\" } }";
const LAST: &str = "{ last = { logs = { sequential = 1, hot = 2, cold = 2 }, first_writes = \"log\" } }";

/// Returns a device with four planes of 64 blocks, and a scheme.
fn device(scheme: &str, more: &[&str]) -> Device {
    let scheme = format!("mapping.scheme={scheme}");
    let all: Vec<&str> = [&[scheme.as_str(), "faults={}"], more].concat();
    build(device_config(&all), Options { verify: true, attribution: true, ..Options::default() })
}

/// Performs a request and everything that it causes. Returns its latency in picoseconds, and its status.
fn perform(device: &mut Device, operation: Operation, unit: u64, count: u32) -> (u64, Status) {
    let at = device.now();
    let request = units(device, operation, unit, count);
    submit(device, at, request);
    let completions = drain(device);
    device.check_invariants().unwrap();
    ((completions[0].finish - completions[0].request.arrival).ps(), completions[0].status)
}

fn write(device: &mut Device, unit: u64, count: u32) -> u64 {
    let (latency, status) = perform(device, Operation::Write, unit, count);
    assert_eq!(status, Status::Ok);
    latency
}

fn fail(device: &mut Device, fault: &str) {
    device.fail_next(fault.parse().unwrap()).unwrap();
}

/// Asserts that one program has failed, after which `moved` units went to the new block, and that the block is bad.
fn assert_replaced(device: &Device, moved: u64) {
    let counters = &device.ftl().counters;
    let faults = &counters.faults;
    assert_eq!((faults.programs_failed, faults.units_failed, faults.blocks_grown_bad), (1, 1, 1));
    assert_eq!(counters.moved[CopyCause::FailedBlock as usize], moved);
    let bad = device.ftl().blocks.all().iter().filter(|block| block.state == BlockState::Bad).count();
    assert_eq!(bad, 1, "the failed block is retired");
}

#[test]
fn a_block_takes_the_place_of_one_whose_program_fails() {
    for (scheme, first) in [(FAST, 1), (FAST, 0), (BAST, 1), (LAST, 1), (IN_PLACE, 1), (IN_PLACE, 0), ("block", 0)] {
        let mut device = device(scheme, &[]);
        for unit in first..first + 3 {
            assert_eq!(write(&mut device, unit, 1), WRITE);
        }
        fail(&mut device, "program");
        // The three units before it are moved to the new block, then the write is repeated there.
        assert_eq!(write(&mut device, first + 3, 1), WRITE + 3 * COPY + WRITE, "{scheme} {first}");
        assert_replaced(&device, 3);
        let counters = &device.ftl().counters;
        let pages = [ProgramCause::Host, ProgramCause::Merge].map(|cause| counters.pages_programmed[cause as usize]);
        assert_eq!((pages, counters.pages_read[ReadCause::Merge as usize]), ([5, 3], 3));
        assert_eq!(write(&mut device, first + 4, 1), WRITE, "the new block takes the next write");
    }
}

#[test]
fn units_that_were_overwritten_are_not_moved() {
    let mut device = device(FAST, &[]);
    for unit in [1, 2, 1, 2] {
        write(&mut device, unit, 1);
    }
    fail(&mut device, "program");
    assert_eq!(write(&mut device, 3, 1), WRITE + 2 * COPY + WRITE);
    assert_replaced(&device, 2);
    // The first two pages of the new block are skipped.
    assert_eq!(device.ftl().scheme().report(device.ftl()).unwritten, 2);
}

#[test]
fn a_block_that_takes_the_place_of_another_may_fail_too() {
    let mut device = device(FAST, &[]);
    for unit in [1, 2, 3] {
        write(&mut device, unit, 1);
    }
    // The write, and then the first unit that is moved.
    fail(&mut device, "program");
    fail(&mut device, "program");
    assert_eq!(write(&mut device, 4, 1), WRITE + COPY + 3 * COPY + WRITE);
    assert_eq!(device.ftl().counters.faults.blocks_grown_bad, 2);
}

#[test]
fn a_partial_merge_continues_in_a_new_block() {
    let mut device = device(FAST, &[]);
    write(&mut device, 0, 64);
    write(&mut device, 0, 10);
    fail(&mut device, "program");
    // The merge fails at its first copy. The ten units of the log block are moved before it is repeated.
    assert_eq!(write(&mut device, UNITS, 1), COPY + 10 * COPY + 54 * COPY + WRITE);
    assert_replaced(&device, 10);
    assert_eq!(device.ftl().counters.merges, [1, 1, 0]);
}

#[test]
fn a_full_merge_continues_in_a_new_block() {
    let mut device = device("{ fast = { logs = { sequential = 1, random = 1 } } }", &[]);
    let all = device.ftl().map.len();
    fill(&mut device, all);
    for offset in 1..=UNITS {
        write(&mut device, 1 + offset % 3, 1);
    }
    fail(&mut device, "program");
    let before = device.ftl().counters;
    write(&mut device, 2 * UNITS + 1, 1);
    let after = device.ftl().counters.since(&before);
    assert_eq!((after.merges, after.blocks_erased), ([0, 0, 1], 2), "the data block and the log block are erased");
    assert_eq!(after.pages_programmed[ProgramCause::Merge as usize], UNITS + 1);
    assert_replaced(&device, 0);
}

#[test]
fn a_block_whose_erase_fails_is_bad() {
    for scheme in [FAST, BAST, LAST, "block"] {
        let mut device = device(scheme, &[]);
        let all = device.ftl().map.len();
        fill(&mut device, all);
        fail(&mut device, "erase");
        let mut unit = 0;
        while device.ftl().counters.faults.erases_failed == 0 {
            write(&mut device, unit, 1);
            unit = (unit + UNITS + 1) % u64::from(all);
        }
        let good: u32 = (0..4).map(|plane| device.ftl().blocks.good(PlaneId(plane))).sum();
        assert_eq!((good, device.ftl().counters.faults.blocks_grown_bad), (4 * 64 - 1, 1), "{scheme}");
    }
}

#[test]
fn a_merge_copies_unreadable_data_as_unreadable() {
    for scheme in [FAST, BAST, "block"] {
        let mut device = device(scheme, &[]);
        write(&mut device, 0, 64);
        // A write that leaves out the first units, so that they are copied.
        fail(&mut device, "read");
        if scheme == "block" {
            write(&mut device, 5, 1);
        } else {
            write(&mut device, 0, 5);
            for block in 1..5 {
                write(&mut device, block * UNITS, 1);
            }
        }
        let faults = device.ftl().counters.faults;
        assert_eq!((faults.units_lost, faults.uncorrectable), (1, [0, 1, 0]), "{scheme}");
        let lost = if scheme == "block" { 0 } else { 5 };
        assert_eq!(perform(&mut device, Operation::Read, lost, 1).1, Status::Uncorrectable, "{scheme}");
        assert_eq!(perform(&mut device, Operation::Read, lost + 1, 1).1, Status::Ok);
        write(&mut device, lost, 1);
        assert_eq!(perform(&mut device, Operation::Read, lost, 1).1, Status::Ok);
    }
}

/// The program of the summary fails, so the block is full of data. It is retired instead of erased.
#[test]
fn a_block_whose_summary_fails_keeps_its_data() {
    for scheme in [FAST, BAST, "block"] {
        let mut device = device(scheme, &["mapping.block_summary={ last_page = \"528B\" }"]);
        let data = device.config().data_units_per_block();
        fail(&mut device, "program 0/0/63");
        fail(&mut device, "program 1/0/63");
        fail(&mut device, "program 2/0/63");
        fail(&mut device, "program 3/0/63");
        write(&mut device, 0, data);
        assert_eq!(device.ftl().counters.faults.programs_failed, 1, "{scheme}");
        assert_eq!(perform(&mut device, Operation::Read, 0, data).1, Status::Ok);
        let origin = Precondition { requested: String::new(), reached: Reached::default() };
        let mut bytes = Vec::new();
        device.save(&origin, &mut bytes).unwrap();
        let options = Options { verify: true, ..Options::default() };
        let (mut device, _) = Device::load(device.config().clone(), options, &bytes[..]).unwrap();
        let good: u32 = (0..4).map(|plane| device.ftl().blocks.good(PlaneId(plane))).sum();
        assert_eq!(good, 4 * 64 - 1, "a saved state has the failure");
        let bad = |device: &Device| device.ftl().blocks.all().iter().filter(|b| b.state == BlockState::Bad).count();
        assert_eq!(bad(&device), 0);
        write(&mut device, 0, data);
        write(&mut device, 0, data);
        assert_eq!(bad(&device), 1, "{scheme}");
    }
}

/// Number of blocks of a full device that may fail: with `spare` logical blocks less than the most, as many.
#[test]
fn a_device_is_read_only_when_too_few_blocks_are_left() {
    for scheme in [FAST, BAST, LAST, "block"] {
        let most = |more: &[&str]| {
            let scheme = format!("mapping.scheme={scheme}");
            let all: Vec<&str> = [&[scheme.as_str(), "capacity.spare=0.5"], more].concat();
            device_config(&all).max_logical_units()
        };
        let of_faults = if scheme == "block" { 0 } else { UNITS };
        assert_eq!(most(&["gc.soft_threshold=2"]) - of_faults, most(&["gc.soft_threshold=2", "faults={}"]), "{scheme}");
        let factory = most(&["faults.factory_bad=3"]);
        assert_eq!(most(&["faults={}"]) - 4 * 3 * UNITS, factory, "{scheme}: three blocks of each of four planes");
        for spare in [0, 2] {
            // With block mapping, each of the four planes has a share of its own.
            let planes = if scheme == "block" { 4 } else { 1 };
            let units = most(&["faults={}"]) - spare * planes * UNITS;
            let mut device = device(scheme, &["faults={}", &format!("capacity={{ logical = \"{}B\" }}", units * 4096)]);
            let all = device.ftl().map.len();
            fill(&mut device, all);
            for failure in 0..spare {
                fail(&mut device, "program 0");
                let mut unit = failure;
                let before = device.ftl().counters.faults.programs_failed;
                while device.ftl().counters.faults.programs_failed == before {
                    write(&mut device, unit, 1);
                    unit = (unit + UNITS + 1) % u64::from(all);
                }
            }
            assert_eq!(device.ftl().read_only_since(), None, "{scheme} {spare}");
            fail(&mut device, "program 0");
            let mut unit = 0;
            while perform(&mut device, Operation::Write, unit, 1).1 == Status::Ok {
                unit = (unit + UNITS + 1) % u64::from(all);
            }
            assert!(device.ftl().read_only_since().is_some(), "{scheme} {spare}");
            assert_eq!(device.ftl().counters.faults.blocks_grown_bad, spare + 1, "{scheme} {spare}");
            for first in (0..u64::from(all)).step_by(UNITS as usize) {
                assert_eq!(perform(&mut device, Operation::Read, first, UNITS as u32).1, Status::Ok);
            }
        }
    }
}
