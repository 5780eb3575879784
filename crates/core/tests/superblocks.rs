//! Superblocks (`superblock`): stripes of a sequential fill, times computed by hand, to the picosecond, and the
//! collection of whole superblocks.

use crate::common::{self, Load, assert_close, build, device_config, drain, fill, refusal, submit, units};
use floatgate_core::flash::BlockState;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::results::ProgramCause;
use floatgate_core::sim::id::{Lpn, PlaneId};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};

const PROGRAM: u64 = 200_000_000;
const DATA: u64 = 4096 * 25_000;
const WRITE: u64 = DATA + PROGRAM;

/// Returns a device of `channels` channels with `chips` dies each, 16 blocks of 8 pages in each, and stripes of
/// `parity` dies.
fn device(channels: u32, chips: u32, parity: &str, overrides: &[&str]) -> Device {
    let (channels, chips) = (format!("geometry.channels={channels}"), format!("geometry.chips={chips}"));
    let base = [
        channels.as_str(),
        &chips,
        "geometry.blocks=16",
        "geometry.pages=8",
        "capacity.spare=0.7",
        "allocation=dynamic",
        "gc.scope=pool",
        parity,
    ];
    build(device_config(&[&base, overrides].concat()), Options { verify: true, ..Options::default() })
}

/// Returns the pages programmed for the host, for garbage collection, and for parity.
fn pages(device: &Device) -> [u64; 3] {
    let counters = device.ftl().counters;
    [ProgramCause::Host, ProgramCause::Gc, ProgramCause::Parity].map(|cause| counters.pages_programmed[cause as usize])
}

/// Writes units at the same time, and returns the times of their completions, and of the last event.
fn write_at_once(device: &mut Device, count: u64) -> (Vec<u64>, u64) {
    let now = device.now();
    for unit in 0..count {
        let request = units(device, Operation::Write, unit, 1);
        submit(device, now, request);
    }
    let mut ends: Vec<u64> = drain(device).iter().map(|done| done.finish.0).collect();
    ends.sort_unstable();
    device.check_invariants().unwrap();
    (ends, device.now().0)
}

#[test]
fn a_sequential_fill_programs_a_page_of_parity_for_each_stripe() {
    for (parity, of) in [(2, "superblock.parity=2"), (4, "superblock.parity=4")] {
        // Whole stripes of four dies: three superblocks of eight rows.
        let count = 3 * 8 * (4 - 4 / parity);
        let mut filled = device(2, 2, of, &[]);
        fill(&mut filled, count as u32);
        let mut written = device(2, 2, of, &[]);
        write_at_once(&mut written, count);
        for device in [&filled, &written] {
            assert_eq!(pages(device), [count, 0, count / (parity - 1)], "{of}");
        }
        // The host could fill another superblock, whose first stripes have no parity yet.
        fill(&mut filled, 1);
        assert_eq!(pages(&filled), [count + 1, 0, count / (parity - 1) + u64::from(parity == 2)]);
    }
    let mut none = device(2, 2, "superblock={}", &[]);
    assert_eq!(write_at_once(&mut none, 64), write_at_once(&mut common::device(&["allocation=dynamic"]), 64));
    assert_eq!(pages(&none), [64, 0, 0]);
}

/// The parity of a fill counts in the amplification that preconditioning reports.
#[test]
fn preconditioning_counts_parity() {
    let mut device = device(2, 2, "superblock.parity=4", &[]);
    let reached = precondition(&mut device, Precondition::Fill, 1, &mut |_| true).unwrap();
    let [host, _, parity] = pages(&device);
    assert!(parity > 0);
    assert_eq!(reached.write_amplification, Some((host + parity) as f64 / host as f64));
}

/// The parity of the first superblock is in the first die, and all data of a stripe of two in the second.
#[test]
fn parity_of_a_stripe_of_two_is_a_mirror() {
    let mut device = device(2, 1, "superblock.parity=2", &[]);
    assert_eq!(write_at_once(&mut device, 2), (vec![WRITE, 2 * WRITE], DATA + PROGRAM + WRITE));
    let programmed =
        |plane| device.ftl().blocks.of_plane(PlaneId(plane)).iter().map(|block| block.written).sum::<u32>();
    assert_eq!([programmed(0), programmed(1)], [0, 2]);
}

/// Three pages and their parity cross a channel one after another. Parity waits for the data of its stripe only.
#[test]
fn parity_follows_the_data_of_its_stripe() {
    let mut device = device(1, 4, "superblock.parity=4", &[]);
    let (ends, last) = write_at_once(&mut device, 3);
    assert_eq!(ends, [WRITE, DATA + WRITE, 2 * DATA + WRITE]);
    assert_eq!(last, 3 * DATA + WRITE);
    assert_eq!(pages(&device), [3, 0, 1]);
}

/// A superblock is opened when the last one is full: the dies of a stripe take equal numbers of programs.
#[test]
fn superblocks_are_opened_in_all_planes() {
    let mut device = device(2, 2, "superblock.parity=4", &[]);
    write_at_once(&mut device, 24);
    let states = |device: &Device, index: usize| {
        [0, 1, 2, 3].map(|plane| device.ftl().blocks.of_plane(PlaneId(plane))[index].state)
    };
    assert_eq!(states(&device, 0), [BlockState::Closed; 4]);
    assert_eq!(states(&device, 1), [BlockState::Free; 4]);
    write_at_once(&mut device, 1);
    // The block of parity is in the second plane.
    let open = BlockState::Open;
    assert_eq!(states(&device, 1), [open, BlockState::Closed, open, open]);
}

/// Overwrites a full device at random, in time. Returns the device.
fn overwritten(overrides: &[&str], parity: &str) -> Device {
    let mut device = device(2, 2, parity, overrides);
    let count = device.config().logical_units();
    let per_unit = u64::from(device.config().sectors_per_unit());
    fill(&mut device, count as u32);
    let mut rng = Rng::new(7, "superblocks");
    let next = move || Request::new(Time::ZERO, Operation::Write, rng.below(count) * per_unit, per_unit as u32);
    Load::closed(16, 20 * count, next).run(&mut device);
    device.check_invariants().unwrap();
    device
}

#[test]
fn superblocks_are_collected_and_erased_together() {
    for parity in ["superblock={}", "superblock.parity=2", "superblock.parity=4"] {
        for overrides in [&[][..], &["geometry.mapping_unit=1KiB"], &["gc.soft_threshold=2"]] {
            let device = overwritten(overrides, parity);
            let erases = |plane| {
                let blocks = device.ftl().blocks.of_plane(PlaneId(plane));
                blocks.iter().map(|block| block.erases).collect::<Vec<_>>()
            };
            assert!(erases(0).iter().sum::<u32>() > 50, "{parity}, {overrides:?}");
            (1..4).for_each(|plane| assert_eq!(erases(plane), erases(0), "{parity}, {overrides:?}"));
        }
    }
}

/// All programs but those of open stripes have their parity.
#[test]
fn parity_is_a_share_of_all_programs() {
    let device = overwritten(&["capacity.spare=0.6"], "superblock.parity=4");
    let [host, gc, parity] = pages(&device);
    assert!(gc > host / 10, "{gc} pages were moved");
    // Two open superblocks have eight stripes each.
    let open = (host + gc) - 3 * parity;
    assert!(open <= 2 * 8 * 2, "{open} pages are in open stripes");
}

#[test]
fn functional_mode_has_the_amplification_of_time() {
    for parity in ["superblock={}", "superblock.parity=4"] {
        let larger = ["geometry.blocks=256", "capacity.spare=0.45"];
        let of = |counts: [u64; 3], before: [u64; 3]| {
            let pages: u64 = counts.iter().zip(before).map(|(after, before)| after - before).sum();
            pages as f64 / (counts[0] - before[0]) as f64
        };
        let mut device = device(2, 2, parity, &larger);
        precondition(&mut device, Precondition::Steady, 1, &mut |_| true).expect("a steady state");
        let (count, before) = (device.config().logical_units(), pages(&device));
        let mut rng = Rng::new(3, "superblocks");
        let ftl = device.ftl_mut();
        (0..3 * count).for_each(|_| ftl.write_whole(Lpn(rng.below(count) as u32)));
        let functional = of(pages(&device), before);
        device.check_invariants().unwrap();
        let before = pages(&device);
        let next = move || Request::new(Time::ZERO, Operation::Write, rng.below(count) * 8, 8);
        Load::closed(16, 3 * count, next).run(&mut device);
        let timed = of(pages(&device), before);
        assert_close(parity, timed, functional, 0.02);
    }
}

#[test]
fn a_saved_state_continues_with_the_same_stripes() {
    let mut device = overwritten(&["geometry.mapping_unit=2KiB"], "superblock.parity=4");
    let mut copy = device.in_same_state(device.config().clone(), Options::default()).unwrap();
    for device in [&mut device, &mut copy] {
        write_at_once(device, 100);
    }
    let blocks = |device: &Device| format!("{:?}", device.ftl().blocks.all());
    let without_written = |text: String| {
        text.split("written: ")
            .map(|part| part.split_once(',').map_or(part, |(_, rest)| rest).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(without_written(blocks(&device)), without_written(blocks(&copy)));
    assert_eq!(pages(&device), pages(&copy));
}

#[test]
fn other_options_are_refused() {
    let refused = |overrides: &[&str]| {
        let base = ["superblock.parity=2", "allocation=dynamic", "gc.scope=pool", "capacity.spare=0.7"];
        refusal(&[&base, overrides].concat())
    };
    for (overrides, expected) in [
        (&["superblock.parity=3"][..], "must have a divisor of the 4 planes"),
        (&["superblock.parity=1"], "superblock.parity"),
        (&["allocation=static"], "set allocation to dynamic"),
        (&["allocation.dynamic.scope=plane"], "with a scope of several planes"),
        (&["gc.scope=plane"], "set gc.scope to \"pool\""),
        (&["gc.destination=pool"], "set gc.destination to \"plane\""),
        (&["gc.victim=fifo"], "set gc.victim to \"greedy\""),
        (&["gc.frontiers=single"], "set gc.frontiers to \"separate\""),
        (&["gc.wear=least-erased"], "set gc.wear to \"none\""),
        (&["gc.background={ idle = \"1ms\", until = 8 }"], "remove gc.background"),
        (&["mapping.scheme=dftl"], "set mapping.scheme to \"page\""),
        (&["mapping.block_summary={ last_page = \"4KiB\" }"], "set mapping.block_summary to \"none\""),
        (&["temperature=multi-hash"], "set temperature to \"none\""),
        (&["allocation.dynamic.active_blocks=2"], "remove allocation.dynamic.active_blocks"),
        (&["allocation.dynamic.tie=erases"], "set allocation.dynamic.tie to \"turn\""),
        (&["nand.endurance=100", "faults.wear_out=exclude"], "set faults.wear_out to another value"),
        (&["durability.trim_journal=true"], "remove the table superblock"),
        (&["nand.advanced.copy_back=wise"], "set nand.advanced.copy_back to \"off\""),
        (&["geometry.planes=2", "nand.advanced.multi_plane_program=wise"], "set nand.advanced.multi_plane_program"),
        (&["geometry.dies=2", "nand.concurrency=command", "nand.advanced.interleave=true"], "nand.advanced.interleave"),
    ] {
        let text = refused(overrides);
        assert!(text.contains(expected), "{overrides:?}: {text}");
    }
}
