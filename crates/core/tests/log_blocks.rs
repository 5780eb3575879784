//! Log blocks: which log block takes a write, and what merges cost, step by step. See docs/model/log_blocks.md.

use crate::common::{self, device_config, drain, fill, submit, units};
use floatgate_core::device_file::from_toml;
use floatgate_core::flash::Role;
use floatgate_core::internals::ReadCause;
use floatgate_core::mapping::{KeptBlock, PADDING};
use floatgate_core::policies::Purpose;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::results::{Counters, ProgramCause};
use floatgate_core::sim::id::{Lpn, PlaneId, Ppn};
use floatgate_core::sim::request::Operation;
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};
use floatgate_core::timeline::{Kind, Phase, Probe};

/// Cells to register, register to cells, erase, and transfer of a page over the channel: 4096 cycles of 25 ns.
const READ: u64 = 25_000_000;
const PROGRAM: u64 = 200_000_000;
const ERASE: u64 = 1_500_000_000;
const PAGE: u64 = 4096 * 25_000;
const WRITE: u64 = PAGE + PROGRAM;
/// A page that is copied through the controller.
const COPY: u64 = READ + PAGE + PAGE + PROGRAM;
/// Units of a logical block: a page each.
const UNITS: u64 = 64;

/// Returns a device with four planes, and a scheme whose log blocks take all writes.
fn device(scheme: &str) -> Device {
    device_with(scheme, "log")
}

/// Returns a device with four planes, and a scheme with a place of first writes.
fn device_with(scheme: &str, first_writes: &str) -> Device {
    let (name, _) = scheme.split_once(" = ").expect("a scheme and its options");
    let first_writes = format!("mapping.scheme.{name}.first_writes={first_writes}");
    let scheme = format!("mapping.scheme={{ {scheme} }}");
    common::build(device_config(&[&scheme, &first_writes]), Options { attribution: true, ..Options::default() })
}

/// Returns this device after each unit was written once, in order.
fn filled(scheme: &str) -> Device {
    let mut device = device(scheme);
    let all = device.ftl().map.len();
    fill(&mut device, all);
    device
}

/// Performs a request and everything that it causes. Returns its latency in picoseconds.
fn perform(device: &mut Device, operation: Operation, unit: u64, count: u32) -> u64 {
    let at = device.now();
    let request = units(device, operation, unit, count);
    submit(device, at, request);
    let completions = drain(device);
    device.check_invariants().unwrap();
    (completions[0].finish - completions[0].request.arrival).ps()
}

fn write(device: &mut Device, unit: u64, count: u32) -> u64 {
    perform(device, Operation::Write, unit, count)
}

/// Writes single units, one after another.
fn write_each(device: &mut Device, units: impl IntoIterator<Item = u64>) {
    for unit in units {
        write(device, unit, 1);
    }
}

fn programs(counters: &Counters) -> [u64; 3] {
    [ProgramCause::Host, ProgramCause::Padding, ProgramCause::Merge].map(|c| counters.pages_programmed[c as usize])
}

/// Returns the counts since `before`.
fn counted(device: &Device, before: &Counters) -> Counters {
    device.ftl().counters.since(before)
}

/// Log blocks of FAST: a sequential one and two random ones.
const FAST: &str = "fast = { logs = { sequential = 1, random = 2 } }";

#[test]
fn a_switch_costs_one_erase() {
    let mut device = device(FAST);
    write(&mut device, 0, 64);
    write(&mut device, 0, 64);
    let before = device.ftl().counters;
    assert_eq!((before.merges, before.blocks_erased), ([1, 0, 0], 0), "the first data block replaces none");
    // The log block is full, so it becomes the data block. The write goes to a log block in another plane, and does not
    // wait for the erase of the old one.
    assert_eq!(write(&mut device, 64, 1), WRITE);
    let after = counted(&device, &before);
    assert_eq!((after.merges, after.blocks_erased, programs(&after)), ([1, 0, 0], 1, [1, 0, 0]));
}

#[test]
fn a_partial_merge_copies_the_rest_of_the_block() {
    let mut device = device(FAST);
    write(&mut device, 0, 64);
    write(&mut device, 0, 10);
    let before = device.ftl().counters;
    // The log block has ten pages. The write waits for the other 54, and then for nothing else.
    assert_eq!(write(&mut device, 64, 1), 54 * COPY + WRITE);
    let after = counted(&device, &before);
    assert_eq!((after.merges, after.blocks_erased), ([0, 1, 0], 1));
    assert_eq!((programs(&after), after.pages_read[ReadCause::Merge as usize]), ([1, 0, 54], 54));
}

/// The plane that gives a block after each plane. Channels differ first, then chips.
const AFTER: [usize; 4] = [2, 3, 1, 0];

/// Returns the plane of a unit in flash.
fn plane_of(device: &Device, unit: u64) -> usize {
    let ftl = device.ftl();
    let ppn = ftl.ppn_in_flash(Lpn(unit as u32)).unwrap();
    ftl.blocks.plane_of(ftl.blocks.block_of(ppn)).index()
}

/// Returns the planes of the log blocks of eight logical blocks that are written one after another.
fn planes_of_log_blocks(options: &str) -> Vec<usize> {
    let scheme = format!("mapping.scheme={{ bast = {{ logs = 8{options} }} }}");
    let order = "allocation={ static = { order = \"chip-channel-die-plane\" } }";
    let mut device = common::device(&[order, &scheme]);
    write_each(&mut device, (0..8).map(|block| block * UNITS));
    (0..8).map(|block| plane_of(&device, block * UNITS)).collect()
}

#[test]
fn planes_or_channels_give_blocks_in_turn() {
    // Planes 0 and 1 are in the first channel, 2 and 3 in the second.
    assert_eq!(planes_of_log_blocks(""), [0, 1, 2, 3, 0, 1, 2, 3]);
    let by_channel = ", free_blocks = \"by-channel\"";
    assert_eq!(planes_of_log_blocks(by_channel), [0, 2, 1, 3, 0, 2, 1, 3]);
    // Each logical block belongs to a chip. Consecutive ones are in different chips, or in different channels.
    let of_chips = ", scope = \"chip\"";
    assert_eq!(planes_of_log_blocks(of_chips), [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(planes_of_log_blocks(&format!("{of_chips}{by_channel}")), [0, 2, 1, 3, 0, 2, 1, 3]);
}

#[test]
fn a_channel_gives_the_free_block_with_the_fewest_erases() {
    let scheme = "mapping.scheme={ fast = { logs = { sequential = 1, random = 4 }, free_blocks = \"by-channel\" } }";
    let mut device = common::device(&["gc.wear=least-erased", "geometry.pages=8", "geometry.blocks=24", scheme]);
    let all = device.ftl().map.len();
    fill(&mut device, all);
    let rng = &mut Rng::new(5, "erases");
    let (mut checked, mut uneven) = (0, 0);
    let look = |device: &Device| {
        let space = &device.ftl().blocks;
        let planes = [0, 1, 2, 3].map(PlaneId);
        let free = planes.map(|plane| space.free_blocks(plane, Role::Data));
        (free, planes.map(|plane| space.erases_of_next(plane)), device.ftl().counters.blocks_erased)
    };
    for _ in 0..1500 {
        let mut at = device.now();
        let mut request = Some(units(&device, Operation::Write, rng.below(u64::from(all)), 1));
        loop {
            let (before, next, erased) = look(&device);
            match request.take() {
                Some(request) => submit(&mut device, at, request),
                None => device.advance(at),
            }
            let (after, _, erased_since) = look(&device);
            let opened: Vec<usize> = (0..4).filter(|&plane| after[plane] < before[plane]).collect();
            if let [plane] = opened[..]
                && (erased_since, after[plane] + 1) == (erased, before[plane])
            {
                let other = plane ^ 1;
                assert!(next[plane] <= next[other], "plane {plane}: {next:?}");
                checked += 1;
                uneven += u32::from(next[plane] < next[other]);
            }
            match device.next_event() {
                Some(next) => at = next,
                None => break,
            }
        }
    }
    device.check_invariants().unwrap();
    assert!(checked > 1000 && uneven > 100, "{checked} blocks, {uneven} with a choice");
}

/// Returns the offset in its block of a unit in flash.
fn offset_of(device: &Device, unit: u64) -> u32 {
    device.ftl().blocks.offset_in_block(device.ftl().ppn_in_flash(Lpn(unit as u32)).unwrap())
}

/// Schemes with a place for three kinds of writes.
const SCHEMES: [&str; 3] = [BAST, FAST, "last = {}"];

#[test]
fn a_first_write_goes_to_its_offset_in_the_data_block() {
    for scheme in SCHEMES {
        let mut device = device_with(scheme, "data");
        let in_logs = |device: &Device| device.ftl().counters.log_blocks.units.iter().sum::<u64>();
        for unit in [0, 1, 2, 10, 64 + 7] {
            assert_eq!(write(&mut device, unit, 1), WRITE, "{scheme}");
            assert_eq!(offset_of(&device, unit), (unit % UNITS) as u32, "{scheme}");
        }
        assert_eq!(in_logs(&device), 0);
        assert_eq!(plane_of(&device, 10), plane_of(&device, 0), "the same block");
        // The pages of units 1 and 10 have data. Those of units 5 and 66 have been skipped.
        for (unit, logs) in [(1, 1), (10, 2), (5, 3), (66, 4)] {
            assert_eq!(write(&mut device, unit, 1), WRITE, "{scheme}");
            assert_eq!(in_logs(&device), logs, "{scheme}, unit {unit}");
        }
        // A trim does not free the page. Later pages are free still.
        perform(&mut device, Operation::Trim, 2, 1);
        write_each(&mut device, [2, 11]);
        assert_eq!((in_logs(&device), offset_of(&device, 11)), (5, 11), "{scheme}");
        assert_eq!(device.ftl().scheme().report(device.ftl()).unwritten, 7 + 7, "offsets 3 to 9, and 0 to 6");
        assert_eq!(device.ftl().counters.merges, [0; 3]);
    }
}

#[test]
fn a_merge_leaves_the_last_pages_of_the_data_block_free() {
    let mut device = device_with("bast = { logs = 1 }", "data");
    write_each(&mut device, 0..10);
    write_each(&mut device, [3, UNITS]);
    let before = device.ftl().counters;
    // The log block of the first logical block has unit 3 alone. Its ten units are copied one after another. The next
    // log block is opened in the plane of the old data block, whose erase comes first.
    assert_eq!(write(&mut device, UNITS, 1), 10 * COPY + ERASE + WRITE);
    let after = counted(&device, &before);
    assert_eq!((after.merges, programs(&after), after.blocks_erased), ([0, 0, 1], [1, 0, 10], 2));
    // The new data block takes first writes from offset 10 on.
    assert_eq!(write(&mut device, 20, 1), WRITE);
    assert_eq!((offset_of(&device, 20), offset_of(&device, 3)), (20, 3));
    assert_eq!(counted(&device, &before).log_blocks.units, [1, 0, 0]);
    // A page that was skipped is not free. A log block is opened for it, after the merge of the other logical block.
    write(&mut device, 15, 1);
    let after = counted(&device, &before);
    assert_eq!((after.log_blocks.units, after.merges), ([2, 0, 0], [1, 0, 1]));
}

#[test]
fn a_device_is_filled_without_log_blocks() {
    for scheme in [BAST, FAST, "last = {}", "fast = { stripe = { data = 4 }, logs = { sequential = 4 } }", RUNS] {
        for (count, depth) in [(16, 1), (16, 64), (1, 7)] {
            let mut device = device_with(scheme, "data");
            write_all(&mut device, 1, count, depth);
            let (units, counters) = (u64::from(device.ftl().map.len()), device.ftl().counters);
            assert_eq!((counters.log_blocks.units, counters.merges), ([0; 3], [0; 3]), "{scheme}");
            assert_eq!((counters.units_programmed, counters.blocks_erased), (units, 0), "{scheme}");
        }
    }
}

/// Fills a random log block with units of `blocks` logical blocks in turn, and another one with others. Returns the
/// device, and the time that the next write has to take: full merges one after another, page by page. A page is
/// read when its plane is idle, and programmed when the plane of the new data block is idle. Erases keep planes busy.
fn before_full_merge(blocks: u64) -> (Device, u64) {
    let mut device = filled(FAST);
    // Offset 0 would be sequential.
    write_each(&mut device, (0..UNITS).map(|i| i % blocks * UNITS + 1 + i / blocks % (UNITS - 1)));
    write_each(&mut device, (0..UNITS).map(|i| (10 + i) * UNITS + 1));
    // The planes give blocks in turn. The first one after that of the second log block is the first target.
    let mut target = plane_of(&device, 10 * UNITS + 1);
    let victim = plane_of(&device, 1);
    let mut now = 0;
    let mut idle_at = [0; 4];
    for block in 0..blocks {
        target = AFTER[target];
        for offset in 0..UNITS {
            let source = plane_of(&device, block * UNITS + offset);
            now = idle_at[source].max(now) + READ + PAGE;
            now = idle_at[target].max(now) + PAGE + PROGRAM;
        }
        idle_at[plane_of(&device, block * UNITS)] = now + ERASE;
    }
    idle_at[victim] = idle_at[victim].max(now) + ERASE;
    (device, idle_at[AFTER[target]].max(now) + WRITE)
}

#[test]
fn a_full_merge_copies_each_logical_block_of_the_log_block() {
    for blocks in [1, 2, 8] {
        let (mut device, expected) = before_full_merge(blocks);
        let before = device.ftl().counters;
        let latency = write(&mut device, 9 * UNITS + 1, 1);
        let after = counted(&device, &before);
        assert_eq!(after.merges, [0, 0, blocks], "{blocks}");
        assert_eq!(programs(&after), [1, 0, blocks * UNITS], "{blocks}");
        assert_eq!(after.blocks_erased, blocks + 1, "the data blocks and the log block");
        assert_eq!((after.log_blocks.reclaimed, after.log_blocks.logical_blocks), (1, blocks));
        assert_eq!(latency, expected, "{blocks}");
    }
}

/// Returns the number of operations of each kind and purpose since the last call.
fn operations(device: &mut Device) -> Vec<(Kind, Purpose, usize)> {
    let probe = device.array_mut().probe_mut().unwrap();
    let cells = probe.slices().iter().filter(|slice| slice.phase == Phase::Cell);
    let mut all: Vec<(Kind, Purpose)> = cells.map(|slice| (slice.kind, slice.purpose)).collect();
    probe.clear();
    all.sort_by_key(|(kind, purpose)| (*kind as usize, *purpose as usize));
    all.chunk_by(|a, b| a == b).map(|of| (of[0].0, of[0].1, of.len())).collect()
}

#[test]
fn operations_have_the_kind_of_their_merge() {
    let probe = || Some(Probe::new(Time::ZERO, Time::NEVER));
    let mut switched = device(FAST);
    switched.array_mut().set_probe(probe());
    write(&mut switched, 0, 64);
    write(&mut switched, 0, 64);
    operations(&mut switched);
    write(&mut switched, 64, 1);
    let host = (Kind::Program, Purpose::OfClass, 1);
    assert_eq!(operations(&mut switched), [host, (Kind::Erase, Purpose::SwitchMerge, 1)]);
    let kinds = |device: &Device| {
        let mut counts = [0; 4];
        device.ftl().scheme().blocks(device.ftl(), &mut |kept| counts[usize::from(kept.kind)] += 1);
        [1, 2, 3].map(|kind| counts[kind])
    };
    assert_eq!(kinds(&switched), [0, 1, 0], "a sequential log block");

    let mut partial = device(FAST);
    write(&mut partial, 0, 64);
    write(&mut partial, 0, 10);
    partial.array_mut().set_probe(probe());
    write(&mut partial, 64, 1);
    let expected = [
        (Kind::Read, Purpose::PartialMerge, 54),
        host,
        (Kind::Program, Purpose::PartialMerge, 54),
        (Kind::Erase, Purpose::PartialMerge, 1),
    ];
    assert_eq!(operations(&mut partial), expected);

    let (mut full, _) = before_full_merge(2);
    assert_eq!(kinds(&full), [0, 1, 2], "the sequential log block has the end of the filled device");
    full.array_mut().set_probe(probe());
    write(&mut full, 9 * UNITS + 1, 1);
    let expected = [
        (Kind::Read, Purpose::FullMerge, 128),
        host,
        (Kind::Program, Purpose::FullMerge, 128),
        (Kind::Erase, Purpose::FullMerge, 3),
    ];
    assert_eq!(operations(&mut full), expected);
}

/// Log blocks of BAST, for four logical blocks.
const BAST: &str = "bast = { logs = 4 }";

#[test]
fn log_blocks_of_one_logical_block_thrash_under_random_writes() {
    let mut device = filled(BAST);
    write_each(&mut device, (0..4).map(|block| block * UNITS + 5));
    let before = device.ftl().counters;
    write_each(&mut device, (4..12).map(|block| block * UNITS + 5));
    let after = counted(&device, &before);
    assert_eq!(after.merges, [0, 0, 8], "each write reclaims a log block that holds a single page");
    assert_eq!((programs(&after), after.blocks_erased), ([8, 0, 8 * UNITS], 16));
    assert_eq!(after.log_blocks.logical_blocks, 8);
}

#[test]
fn log_blocks_in_order_are_switched_and_others_are_merged() {
    let mut device = filled(BAST);
    // In order and full; in order; and out of order.
    write(&mut device, 0, 64);
    write(&mut device, UNITS, 10);
    write(&mut device, 2 * UNITS + 1, 1);
    write(&mut device, 3 * UNITS, 1);
    let before = device.ftl().counters;
    write_each(&mut device, (4..7).map(|block| block * UNITS));
    let after = counted(&device, &before);
    assert_eq!((after.merges, programs(&after)), ([1, 1, 1], [3, 0, 54 + 64]));
}

/// Writes the whole device `rounds` times in order, in requests of `count` units. `depth` requests are outstanding.
fn write_all(device: &mut Device, rounds: u32, count: u32, depth: usize) {
    let all = device.ftl().map.len();
    let mut completions = Vec::new();
    let requests = (0..rounds).flat_map(|_| (0..all).step_by(count as usize));
    for (submitted, first) in requests.enumerate() {
        while submitted - completions.len() >= depth {
            device.advance(device.next_event().unwrap());
            device.take_completions(&mut completions);
        }
        let at = device.now();
        let request = units(device, Operation::Write, first.into(), count.min(all - first));
        submit(device, at, request);
    }
    drain(device);
    device.check_invariants().unwrap();
}

#[test]
fn sequential_writes_are_not_amplified() {
    for scheme in ["bast = {}", FAST, "last = {}", "fast = { stripe = { data = 4 }, logs = { sequential = 4 } }"] {
        for (count, depth) in [(16, 1), (16, 4), (16, 64), (1, 7)] {
            if count == 1 && scheme == "last = {}" {
                continue;
            }
            let mut device = device(scheme);
            write_all(&mut device, 3, count, depth);
            let (units, counters) = (device.ftl().map.len(), device.ftl().counters);
            let programmed = (counters.units_moved(), counters.units_programmed);
            assert_eq!(programmed, (0, 3 * u64::from(units)), "{scheme}, {count} units, depth {depth}");
            assert_eq!(counters.merges[1..], [0, 0], "{scheme}");
        }
    }
}

/// Data blocks in four planes, and sequential log blocks in one each.
const RUNS: &str = "fast = { logs = { sequential = 4 }, stripe = { data = 4, sequential = 1 } }";

#[test]
fn sequential_log_blocks_in_one_plane_are_merged_into_striped_data_blocks() {
    let mut device = filled(RUNS);
    // Merges the last stripe, which is in log blocks.
    write(&mut device, 0, 1);
    let before = device.ftl().counters;
    // Each plane has a logical block of the stripe, but consecutive pages are programmed one after another.
    assert_eq!(write(&mut device, 1, 63), 63 * WRITE);
    let plane = plane_of(&device, 0);
    assert!((0..64).all(|unit| plane_of(&device, unit) == plane));
    // The other log blocks are empty.
    write(&mut device, 64, 192);
    let after = counted(&device, &before);
    assert_eq!((after.merges, programs(&after), after.blocks_erased), ([0, 0, 0], [255, 0, 0], 3));
    // The first log block has units of all four logical blocks. Their merges empty the other three log blocks, too.
    write(&mut device, 256, 1);
    let after = counted(&device, &before);
    assert_eq!((after.merges, programs(&after), after.blocks_erased), ([0, 0, 4], [256, 0, 256], 3 + 4 + 1));
    assert_eq!((after.log_blocks.reclaimed, after.log_blocks.logical_blocks), (3 + 1, 4));
}

#[test]
fn runs_share_no_log_block() {
    let mut device = device(RUNS);
    // Three runs in turn, from the first page of a logical block.
    write_each(&mut device, (0..40).flat_map(|unit| [unit, 256 + unit, 512 + unit]));
    let planes = [0, 256, 512].map(|first| plane_of(&device, first));
    assert_ne!((planes[0], planes[1]), (planes[1], planes[2]));
    for (first, plane) in [0, 256, 512].into_iter().zip(planes) {
        assert!((first..first + 40).all(|unit| plane_of(&device, unit) == plane));
    }
    assert_eq!(device.ftl().counters.log_blocks.units, [120, 0, 0]);
    // A unit in the middle of a run does not continue it.
    write(&mut device, 21, 1);
    assert_eq!(device.ftl().counters.log_blocks.units, [120, 1, 0]);
    write(&mut device, 40, 1);
    assert_eq!((device.ftl().counters.log_blocks.units, plane_of(&device, 40)), ([121, 1, 0], planes[0]));
}

#[test]
fn sequential_writes_to_runs_are_copied_once() {
    // With more outstanding writes, the first log block of a stripe may be reclaimed before the last one is full.
    for (count, depth) in [(16, 1), (16, 4), (1, 7)] {
        let mut device = device(RUNS);
        write_all(&mut device, 3, count, depth);
        let (host, counters) = (3 * u64::from(device.ftl().map.len()), device.ftl().counters);
        // All but the last stripe, which is still in log blocks.
        let copied = host - 256;
        assert_eq!((counters.units_moved(), counters.units_programmed), (copied, host + copied), "{count}, {depth}");
        assert_eq!((counters.merges, counters.log_blocks.units[1]), ([0, 0, copied / 64], 0), "{count}, {depth}");
    }
}

#[test]
fn trimmed_units_are_not_copied() {
    let mut device = filled(FAST);
    // A trim of the whole rest of a logical block makes its partial merge a switch.
    write(&mut device, 0, 10);
    perform(&mut device, Operation::Trim, 10, 54);
    assert_eq!(device.ftl().scheme().report(device.ftl()).listed_trims, 54);
    let before = device.ftl().counters;
    assert_eq!(write(&mut device, UNITS, 1), WRITE);
    let after = counted(&device, &before);
    assert_eq!((after.merges, after.log_blocks.copies_saved), ([1, 0, 0], 54));
    assert_eq!(device.ftl().scheme().report(device.ftl()).listed_trims, 0);
}

#[test]
fn hot_units_go_to_their_own_log_blocks() {
    let scheme =
        "last = { hot_window = 8, sequential = { min-pages = 4 }, logs = { sequential = 1, hot = 2, cold = 2 } }";
    let mut device = filled(scheme);
    let before = device.ftl().counters;
    // Four pages are sequential. A unit that is written again within eight pages is hot.
    write(&mut device, 64, 4);
    write(&mut device, 200, 1);
    write(&mut device, 200, 1);
    write_each(&mut device, (300..308).map(|unit| 2 * unit));
    write(&mut device, 200, 1);
    assert_eq!(counted(&device, &before).log_blocks.units, [4, 1, 10]);
}

#[test]
fn striped_log_blocks_take_writes_at_the_same_time() {
    for (stripe, expected) in [(1, 4 * WRITE), (4, 2 * PAGE + WRITE)] {
        let mut device = device(&format!("fast = {{ logs = {{ random = 4 }}, stripe = {{ random = {stripe} }} }}"));
        // Four pages, to planes that share two channels.
        let at = device.now();
        for unit in [1, 65, 129, 193] {
            let request = units(&device, Operation::Write, unit, 1);
            submit(&mut device, at, request);
        }
        let finish = drain(&mut device).into_iter().map(|completion| completion.finish).max().unwrap();
        assert_eq!(finish.since(at).ps(), expected - if stripe == 4 { PAGE } else { 0 }, "{stripe}");
    }
}

/// Returns the counts of the same writes and trims, one after another, with or without time.
fn counts(scheme: &str, first_writes: &str, timed: bool) -> Counters {
    let mut device = device_with(scheme, first_writes);
    let all = u64::from(device.ftl().map.len());
    let mut rng = Rng::new(1, "log blocks");
    for _ in 0..5000 {
        let (block, run) = (rng.below(all / UNITS), rng.below(20));
        let first = if run == 0 { block * UNITS } else { block * UNITS + rng.below(UNITS) };
        let last = if run == 0 { first + rng.below(UNITS) } else { first };
        let trims = rng.below(10) == 0;
        for unit in first..=last {
            let operation = if trims { Operation::Trim } else { Operation::Write };
            let request = units(&device, operation, unit, 1);
            if timed {
                let at = device.now();
                submit(&mut device, at, request);
                drain(&mut device);
            } else {
                device.serve_now(&request);
            }
        }
    }
    device.ftl_mut().seal();
    device.check_invariants().unwrap();
    Counters { read_commands: 0, program_commands: 0, ..device.ftl().counters }
}

#[test]
fn writes_without_time_cause_the_same_merges() {
    for scheme in
        [BAST, FAST, RUNS, "fast = { stripe = { random = 3, data = 2 } }", "last = { sequential = \"block-start\" }"]
    {
        for first_writes in ["data", "log"] {
            let [at_once, timed] = [false, true].map(|timed| counts(scheme, first_writes, timed));
            assert_eq!(at_once, timed, "{scheme}, {first_writes}");
        }
    }
}

#[test]
fn a_share_of_the_flash_is_invalid_after_preconditioning() {
    let striped = "fast = { stripe = { data = 4 }, logs = { sequential = 4 } }";
    let chips = "bast = { scope = \"chip\" }";
    // LAST has the first three units of each logical block of 64 in cold log blocks, which it erases.
    for (scheme, missing) in [(BAST, 0.0), (chips, 0.0), (FAST, 0.0), (striped, 0.0), ("last = {}", 3.0 / 64.0)] {
        for share in [0.25, 0.5, 0.74] {
            let mut device = device(scheme);
            precondition(&mut device, Precondition::Invalid(share), 1, &mut |_| true).unwrap();
            let ftl = device.ftl();
            let mut programmed = 0;
            ftl.scheme().blocks(ftl, &mut |KeptBlock { block, units, .. }| {
                let first = ftl.blocks.first_unit(block).0;
                // Skipped pages have no owner.
                programmed += (first..first + units).filter(|&unit| ftl.map.owner(Ppn(unit)) != PADDING).count();
            });
            assert_eq!(ftl.blocks.valid_data(), 0, "{scheme}");
            let measured = programmed as f64 / f64::from(4 * 64 * UNITS as u32);
            let most = share + 1e-9;
            assert!((share * (1.0 - missing) - 1e-3..most).contains(&measured), "{scheme}: {measured}, not {share}");
            device.check_invariants().unwrap();
        }
        let refused = precondition(&mut device(scheme), Precondition::Invalid(0.76), 1, &mut |_| true).unwrap_err();
        assert!(refused.contains("give at most invalid=0.75"), "{refused}");
        let aged = precondition(&mut device(scheme), Precondition::Aged(0.1), 1, &mut |_| true).unwrap_err();
        assert!(aged.contains("use steady, invalid=V or a workload"), "{aged}");
    }
}

#[test]
fn invalid_options_are_refused_with_a_value_that_works() {
    for (scheme, advice) in [
        ("bast = { logs = 0 }", "use 4"),
        ("bast = { stripe = 0 }", "use 1"),
        ("fast = { logs = { sequential = 4294967295, random = 4294967295 } }", "use 4"),
        ("fast = { stripe = { data = 3 } }", "use 1"),
        ("fast = { stripe = { data = 0 } }", "use 1"),
        ("fast = { stripe = { random = 8 } }", "from 1 to 7"),
        ("fast = { merges = 5 }", "from 1 to 4"),
        ("fast = { scope = { channels = 3 } }", "use 1"),
        ("fast = { logs = { random = 100 } }", "give fewer log blocks"),
        ("fast = { stripe = { data = 4, sequential = 2 } }", "must be 1 or the value of stripe.data, which is 4"),
        ("fast = { stripe = { sequential = 4 } }", "must be 1 or the value of stripe.data, which is 1"),
        ("last = { scope = \"plane\", stripe = { data = 4, sequential = 1 } }", "use scope = \"device\""),
        ("last = { hot_window = 0 }", "at least 1"),
        ("last = { sequential = { min-pages = 65 } }", "use 4"),
    ] {
        let option = format!("mapping.scheme={{ {scheme} }}");
        let error = from_toml(common::BASE, "test.toml", &[option]).expect_err("an invalid option");
        assert!(error.to_string().contains(advice), "{scheme}: {error}");
    }
}
