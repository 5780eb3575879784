//! Priority on a channel (`bus.order`): periods of chips that always have work, and the order of transfers.
//!
//! The closed forms are those of docs/model/timing.md. `a` is the time of the command cycles, `X` that of the data of a
//! page. If `n` chips share a channel and reads wait for each of them, n reads complete in every
//!
//! - max(n (a + X), a + tR + X) with `commands-first`: a command follows the data of its chip without waiting;
//! - n X + max(a + tR, n a) with `fcfs`, if a > 0, (n - 1) a <= X and n > 1. The commands of all chips wait for the
//!   data of all chips, and the channel idles while the cells of the first chip read: a convoy.

use crate::common::{self, device, drain, submit};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::Device;
use floatgate_core::timeline::{Phase, Probe, Slice};

const US: u64 = 1_000_000;
/// Transfer time of a page of 4096 B at 25 ns per byte.
const DATA: u64 = 102_400_000;
const ORDERS: [&str; 2] = ["fcfs", "commands-first"];

/// Returns a device of one channel with `chips` chips of one plane. Unit u is on chip u mod `chips`.
fn channel(chips: u64, overrides: &[&str]) -> Device {
    let chips_option = format!("geometry.chips={chips}");
    let base =
        ["geometry.channels=1", &chips_option, "allocation={ static = { order = \"s2\" } }", "geometry.blocks=32"];
    let mut device = device(&[&base, overrides].concat());
    common::fill(&mut device, 64 * chips as u32);
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
    device
}

fn request(operation: Operation, unit: u64) -> Request {
    Request { tag: unit, ..Request::new(Time::ZERO, operation, unit * 8, 8) }
}

fn slices(device: &mut Device) -> Vec<Slice> {
    drain(device);
    device.array().probe().map(Probe::slices).unwrap_or_default().to_vec()
}

/// Operations of each chip: enough that the start does not affect the result.
const ROUNDS: u64 = 48;

/// Returns the time between operations of chip 0 when all chips have had work for a while. It is a mean, because the
/// load may allow several patterns that alternate.
fn period(device: &mut Device, chips: u64, operation: Operation) -> u64 {
    for unit in 0..ROUNDS * chips {
        submit(device, Time::ZERO, request(operation, unit));
    }
    let slices = slices(device);
    let mut data: Vec<u64> =
        slices.iter().filter(|s| s.phase == Phase::Data && s.plane == 0).map(|s| s.start.ps()).collect();
    data.sort_unstable();
    let (from, to) = (data[data.len() - 20], data[data.len() - 4]);
    assert_eq!((to - from) % 16, 0, "{data:?}");
    (to - from) / 16
}

#[test]
fn saturated_reads_have_the_period_of_the_closed_form() {
    // 25 ns per command cycle. Cell times from far below the transfer of a page to far above those of all chips.
    for cycles in [1, 7, 100] {
        for read in [5, 25, 60, 110, 250, 450, 1100] {
            for chips in 1..=8 {
                let overrides = |order: &str| {
                    [
                        format!("bus.command_cycles.read={cycles}"),
                        format!("nand.read={read}us"),
                        format!("bus.order={order}"),
                    ]
                };
                let a = cycles * 25_000;
                let cells = read * US;
                let expected = [
                    if chips == 1 { a + cells + DATA } else { chips * DATA + (a + cells).max(chips * a) },
                    (chips * (a + DATA)).max(a + cells + DATA),
                ];
                for (order, expected) in ORDERS.into_iter().zip(expected) {
                    let overrides = overrides(order);
                    let mut device = channel(chips, &overrides.each_ref().map(String::as_str));
                    let found = period(&mut device, chips, Operation::Read);
                    assert_eq!(found, expected, "{order}: {chips} chips, {cycles} cycles, tR = {read} us");
                }
            }
        }
    }
}

#[test]
fn the_order_does_not_matter_if_commands_take_no_time() {
    for order in ORDERS {
        for (chips, expected) in [(1, 25 * US + DATA), (2, 2 * DATA), (4, 4 * DATA)] {
            let mut device = channel(chips, &[&format!("bus.order={order}")]);
            assert_eq!(period(&mut device, chips, Operation::Read), expected, "{order}: {chips} chips");
        }
    }
}

#[test]
fn programs_have_the_same_period_in_any_order() {
    // The data of a program follow its command without a gap: max(n (a + X), a + X + tPROG).
    for order in ORDERS {
        for chips in 1..=6 {
            let mut device = channel(
                chips,
                &[&format!("bus.order={order}"), "bus.command_cycles.program=7", "controller.write_slots=9999"],
            );
            let one = 175_000 + DATA;
            let found = period(&mut device, chips, Operation::Write);
            assert_eq!(found, (chips * one).max(one + 200 * US), "{order}: {chips} chips");
        }
    }
}

/// Returns the start and the end of a phase of an operation.
fn phase_of(slices: &[Slice], plane: u32, phase: Phase) -> (u64, u64) {
    let slice = slices.iter().find(|slice| (slice.plane, slice.phase) == (plane, phase));
    slice.map(|slice| (slice.start.ps(), slice.end.ps())).unwrap_or_else(|| panic!("plane {plane} has no {phase:?}"))
}

/// Lets chips 0 and 1 have data of host reads ready, chip 0 first. While the data of chip 0 are transferred, chips 2
/// and 3 receive requests.
fn behind_data(order: &str, scheduler: &str, third: Request, fourth: Request) -> Vec<Slice> {
    let (order, scheduler) = (format!("bus.order={order}"), format!("scheduler={scheduler}"));
    let cycles = "bus.command_cycles={ read = 7, program = 7, erase = 5 }";
    let mut device = channel(4, &[&order, &scheduler, cycles]);
    submit(&mut device, Time::ZERO, request(Operation::Read, 0));
    submit(&mut device, Time::ZERO, request(Operation::Read, 1));
    submit(&mut device, Time(50 * US), third);
    submit(&mut device, Time(50 * US), fourth);
    slices(&mut device)
}

const COMMAND: u64 = 175_000;

#[test]
fn a_command_precedes_data_that_wait_longer() {
    let free = COMMAND + 25 * US + DATA;
    let (read, write) = (request(Operation::Read, 2), request(Operation::Write, 3));
    let slices = behind_data("fcfs", "fcfs", read, write);
    assert_eq!(phase_of(&slices, 1, Phase::Data), (free, free + DATA));
    assert_eq!(phase_of(&slices, 2, Phase::Command), (free + DATA, free + DATA + COMMAND));
    // A read is a command that transfers its data later. The command and the data of a program are one transfer.
    let slices = behind_data("commands-first", "fcfs", read, write);
    assert_eq!(phase_of(&slices, 2, Phase::Command), (free, free + COMMAND));
    assert_eq!(phase_of(&slices, 1, Phase::Data), (free + COMMAND, free + COMMAND + DATA));
    assert_eq!(phase_of(&slices, 3, Phase::Command), (free + COMMAND + DATA, free + 2 * COMMAND + DATA));
}

/// Ranks order commands among themselves and data among themselves. With this scheduler, those of host reads are first.
/// A read for a partial write has the rank of a program, or of garbage collection.
#[test]
fn a_command_precedes_data_of_any_rank() {
    let free = COMMAND + 25 * US + DATA;
    let partial = Request { sectors: 3, ..request(Operation::Write, 2) };
    let read = request(Operation::Read, 3);
    let slices = behind_data("fcfs", "read-first", partial, read);
    assert_eq!(phase_of(&slices, 1, Phase::Data), (free, free + DATA));
    assert_eq!(phase_of(&slices, 3, Phase::Command), (free + DATA, free + DATA + COMMAND));
    assert_eq!(phase_of(&slices, 2, Phase::Command), (free + DATA + COMMAND, free + DATA + 2 * COMMAND));
    let slices = behind_data("commands-first", "read-first", partial, read);
    assert_eq!(phase_of(&slices, 3, Phase::Command), (free, free + COMMAND));
    assert_eq!(phase_of(&slices, 2, Phase::Command), (free + COMMAND, free + 2 * COMMAND));
    assert_eq!(phase_of(&slices, 1, Phase::Data), (free + 2 * COMMAND, free + 2 * COMMAND + DATA));
}

/// The second page of a unit that spans two pages is read by a separate command.
#[test]
fn the_next_page_of_a_unit_is_a_command() {
    let spans = ["geometry.page_size=2KiB", "geometry.mapping_unit=4KiB", "bus.command_cycles.read=7"];
    let page = DATA / 2;
    let cells = 25 * US;
    for (order, second) in ORDERS.into_iter().zip([2 * page, page]) {
        let mut device = channel(2, &[&spans[..], &[&format!("bus.order={order}")]].concat());
        submit(&mut device, Time::ZERO, request(Operation::Read, 0));
        submit(&mut device, Time::ZERO, request(Operation::Read, 1));
        let slices = slices(&mut device);
        let of_first = |slice: &&Slice| slice.plane == 0 && slice.phase == Phase::Command;
        let commands: Vec<u64> = slices.iter().filter(of_first).map(|slice| slice.start.ps()).collect();
        assert_eq!(commands, [0, COMMAND + cells + second], "{order}");
    }
}
