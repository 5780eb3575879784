//! Garbage collection that precedes the host and holds its channel (`gc.pace = "exclusive"`): times computed by hand,
//! to the picosecond.

use crate::common::{self, drain, fill, refusal, submit, units};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::Device;

const US: u64 = 1_000_000;
/// Command and address cycles of a read or program, and of an erase: 7 and 5 cycles of 25 ns.
const COMMAND: u64 = 7 * 25_000;
const ERASE_COMMAND: u64 = 5 * 25_000;
/// Cells to register, register to cells, erase, and transfer of a page.
const READ: u64 = 25 * US;
const PROGRAM: u64 = 200 * US;
const ERASE: u64 = 1_500 * US;
const DATA: u64 = 4096 * 25_000;
const FETCHED: u64 = COMMAND + READ + DATA;
const WRITTEN: u64 = COMMAND + DATA + PROGRAM;
/// A page that garbage collection moves through the controller: the time of SSDsim's `uninterrupt_gc`.
const MOVE: u64 = FETCHED + WRITTEN;

/// Returns a device of two chips on one channel, with eight blocks of eight pages each. Even units are on the first
/// chip, odd ones on the second. Each chip collects garbage at 3 free blocks. It has 4, and 4 blocks with four valid
/// pages each.
fn device(overrides: &[&str]) -> Device {
    let base = [
        "geometry.channels=1",
        "geometry.chips=2",
        "geometry.blocks=8",
        "geometry.pages=8",
        "capacity.spare=0.75",
        "gc.soft_threshold=3",
        "bus.command_cycles={ read = 7, program = 7, erase = 5 }",
        "bus.command_cycle=25ns",
    ];
    let mut device = common::device(&[&base, overrides].concat());
    assert_eq!(device.ftl().map.len(), 32);
    fill(&mut device, 32);
    for unit in [0, 1, 2, 3, 8, 9, 10, 11, 0, 1, 8, 9, 0, 1, 8, 9] {
        for chip in 0..2 {
            let request = units(&device, Operation::Write, 2 * unit + chip, 1);
            device.serve_now(&request);
        }
    }
    device
}

/// Plays requests and returns their times of completion, in the order of the requests.
fn play(device: &mut Device, script: &[(u64, Operation, u64)]) -> Vec<u64> {
    let request = |tag, operation, unit| Request { tag, ..units(device, operation, unit, 1) };
    let requests: Vec<_> = (0..).zip(script).map(|(tag, &(at, op, unit))| (Time(at), request(tag, op, unit))).collect();
    requests.into_iter().for_each(|(at, request)| submit(device, at, request));
    let mut ends: Vec<_> = drain(device).iter().map(|done| (done.request.tag, done.finish.ps())).collect();
    ends.sort_unstable();
    device.check_invariants().unwrap();
    ends.into_iter().map(|(_, end)| end).collect()
}

/// The first write to a chip opens its fourth free block, so that garbage is collected when the program has ended. The
/// victim is the block of the old copy, with three valid pages. A second victim, with four, frees the block that the
/// moves need.
const SCRIPT: [(u64, Operation, u64); 4] = [
    (0, Operation::Write, 8),
    (WRITTEN + 10 * US, Operation::Read, 1),
    (WRITTEN + 20 * US, Operation::Write, 9),
    (WRITTEN + 30 * US, Operation::Read, 2),
];

#[test]
fn the_moves_of_a_victim_hold_the_channel() {
    let mut device = device(&["gc.pace=exclusive"]);
    let ends = play(&mut device, &SCRIPT);
    // The first chip holds the channel until it has sent the command of its erase. Then the other chip works.
    let erase = |moved: u64| moved + ERASE_COMMAND;
    let first = WRITTEN + 3 * MOVE;
    let read = erase(first) + FETCHED;
    assert_eq!(ends[..3], [WRITTEN, read, read + WRITTEN]);
    // The write starts a collection of the second chip. The erase of the first chip ends during it, and so does each
    // later erase: the chips hold the channel in turn, and a read of the first chip waits for all victims.
    let second = read + WRITTEN + 3 * MOVE;
    assert!(second > erase(first) + ERASE && 4 * MOVE > ERASE);
    let third = erase(second) + 4 * MOVE;
    let fourth = erase(third) + 4 * MOVE;
    assert_eq!(ends[3], erase(fourth) + FETCHED);
    assert_eq!((device.ftl().counters.victims, device.ftl().counters.units_moved()), (4, 3 + 3 + 4 + 4));
}

#[test]
fn urgent_collection_shares_the_channel() {
    let mut device = device(&["gc.hard_threshold=3"]);
    let ends = play(&mut device, &SCRIPT[..2]);
    // The command is sent while the first chip reads. Its page leaves first and goes back, and then that of the host.
    assert_eq!(ends, [WRITTEN, WRITTEN + FETCHED + COMMAND + DATA + DATA]);
}

#[test]
fn copies_within_a_chip_hold_the_channel_too() {
    let back = ["gc.pace=exclusive", "nand.advanced.copy_back=wise", "nand.advanced.copy_back_parity=false"];
    let ends = play(&mut device(&back), &SCRIPT[..2]);
    let moved = WRITTEN + 3 * (COMMAND + READ + COMMAND + PROGRAM);
    assert_eq!(ends, [WRITTEN, moved + ERASE_COMMAND + FETCHED]);
}

#[test]
fn it_is_refused_where_no_channel_is_held() {
    let text = refusal(&["gc.pace=exclusive", "mapping.scheme=dftl", "capacity.spare=0.6"]);
    assert!(text.contains("choose mapping.scheme = \"page\""), "{text}");
    let text = refusal(&["gc.pace=exclusive", "allocation=dynamic", "gc.scope=pool"]);
    assert!(text.contains("a victim holds the channel of its own plane"), "{text}");
}
