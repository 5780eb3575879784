//! Times of single requests on idle arrays, to the nanosecond.
//!
//! A member is `tiny` with one page in each chunk. A page read takes 25 us in the cells and 20.48 us on the channel,
//! and a write takes 20.48 us and 200 us. Requests to different members run at the same time.

use crate::common::config;
use floatgate_array::{Options, SsdArray};
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Room, Ssd};

/// Time of a page read, and of a page write.
const R: Time = Time::from_ns(45_480);
const W: Time = Time::from_ns(220_480);

/// Sectors of a page.
const PAGE: u32 = 8;

const NO_COMMANDS: &str = "member.bus.command_cycles={ read = 0, program = 0, erase = 0 }";

/// Builds an array of the built-in device `tiny`.
fn array(options: &str, overrides: &[&str]) -> SsdArray {
    SsdArray::new(config(options, overrides), Options::default()).unwrap()
}

/// Submits a request and processes all events. Returns its completion, without others.
fn serve(array: &mut SsdArray, operation: Operation, lba: u64, sectors: u32) -> Completion {
    let now = array.now();
    array.submit(now, Request::new(now, operation, lba, sectors));
    let mut completions = Vec::new();
    while array.outstanding() > 0 {
        let at = array.next_event().unwrap_or_else(|| panic!("{}", array.explain_stall()));
        array.advance(at);
    }
    array.take_completions(&mut completions);
    completions.pop().unwrap()
}

/// Returns the time that a request takes.
fn latency(array: &mut SsdArray, operation: Operation, lba: u64, sectors: u32) -> Time {
    let completion = serve(array, operation, lba, sectors);
    completion.finish - completion.request.arrival
}

/// Builds an array with chunks of one page, and fills its members.
fn filled(level: u32, count: u32, options: &str) -> SsdArray {
    filled_with(&format!("level = {level}\ndevice = \"tiny\"\ncount = {count}\nstripe = \"4KiB\"\n{options}"))
}

fn filled_with(options: &str) -> SsdArray {
    let mut array = array(options, &[NO_COMMANDS]);
    for member in (0..array.config().members.len()).filter(|&member| !array.has_failed(member)).collect::<Vec<_>>() {
        precondition(array.member_mut(member), Precondition::Fill, 1, &mut |_| true).unwrap();
    }
    array
}

fn sum(times: &[Time]) -> Time {
    times.iter().fold(Time::ZERO, |sum, time| sum + *time)
}

#[test]
fn reads_take_the_time_of_one_member() {
    for (level, count) in [(0, 4), (1, 2), (5, 4), (6, 5), (10, 4)] {
        let mut array = filled(level, count, "");
        assert_eq!(latency(&mut array, Operation::Read, 0, PAGE), R, "level {level}");
        assert_eq!(array.usage().member_operations.host, 1, "level {level}");
        // Chunks of one stripe are read at the same time.
        let stripe = array.config().layout().row_sectors() as u32;
        assert_eq!(latency(&mut array, Operation::Read, 0, stripe), R, "level {level}");
    }
}

#[test]
fn writes_without_parity_take_the_time_of_one_member() {
    for (level, count, copies) in [(0, 4, 1), (1, 3, 3), (10, 4, 2)] {
        let mut array = filled(level, count, "");
        assert_eq!(latency(&mut array, Operation::Write, 0, PAGE), W, "level {level}");
        assert_eq!(array.usage().member_operations.host, copies, "level {level}");
    }
}

/// The strategies of a write: fewest reads, and reconstruct-write at equal numbers.
#[test]
fn writes_with_parity_read_first() {
    // Level, members, pages, time, and counts of full, reconstruct and read-modify writes.
    let cases = [
        (5, 4, 3, W, [1, 0, 0]),
        (5, 4, 1, R + W, [0, 1, 0]),
        (5, 5, 1, R + W, [0, 0, 1]),
        (5, 5, 2, R + W, [0, 1, 0]),
        (6, 5, 3, W, [1, 0, 0]),
        (6, 5, 1, R + W, [0, 1, 0]),
        (6, 8, 1, R + W, [0, 0, 1]),
    ];
    for (level, count, pages, time, writes) in cases {
        let mut array = filled(level, count, "");
        let what = format!("level {level}, {count} members, {pages} pages");
        assert_eq!(latency(&mut array, Operation::Write, 0, pages * PAGE), time, "{what}");
        let usage = array.usage();
        let counted = [usage.writes.full_stripe, usage.writes.reconstruct, usage.writes.read_modify_write];
        assert_eq!(counted, writes, "{what}");
        assert_eq!(usage.member_operations.parity_writes, if level == 5 { 1 } else { 2 }, "{what}");
    }
}

#[test]
fn the_parity_engine_takes_its_time() {
    // A page takes 4.096 us at 1 GB/s. Inputs: all data of a stripe, or old and new data and the old parity.
    let page = |count: u64| Time::from_ns(4096 * count);
    let mut full = filled(5, 4, "xor = \"1GB/s\"");
    assert_eq!(latency(&mut full, Operation::Write, 0, 3 * PAGE), page(3) + W);
    let mut modify = filled(5, 5, "xor = \"1GB/s\"");
    assert_eq!(latency(&mut modify, Operation::Write, 0, PAGE), sum(&[R, page(3), W]));
    let mut double = filled(6, 5, "xor = \"1GB/s\"");
    assert_eq!(latency(&mut double, Operation::Write, 0, PAGE), sum(&[R, page(6), W]), "two parities of three data");
    assert!((double.usage().xor_s - 24.576e-6).abs() < 1e-12);
}

/// An entry takes 8 KiB of the ring of 1 MiB. The 65th uses more than half of it, so that all members are flushed.
#[test]
fn a_half_used_journal_is_flushed() {
    let mut array = filled(5, 4, "write_hole = \"journal\"");
    for entries in 1..=65 {
        serve(&mut array, Operation::Write, 0, PAGE);
        let flushes = if entries == 65 { 4 } else { 0 };
        assert_eq!(array.usage().member_operations.journal, entries + flushes);
    }
}

#[test]
fn the_journal_is_written_before_the_stripe() {
    for pages in [1, 3] {
        let mut array = filled(5, 4, "write_hole = \"journal\"");
        let reads = if pages == 1 { R } else { Time::ZERO };
        assert_eq!(latency(&mut array, Operation::Write, 0, pages * PAGE), sum(&[reads, W, W]));
        assert_eq!(array.usage().member_operations.journal, 1);
    }
}

#[test]
fn a_failed_member_is_read_from_the_others() {
    let mut array = filled(5, 4, "failed = [0]\nxor = \"1GB/s\"");
    assert_eq!(latency(&mut array, Operation::Read, 0, PAGE), R + Time::from_ns(3 * 4096));
    assert_eq!(array.usage().member_operations.parity_reads, 3);
    assert_eq!(latency(&mut array, Operation::Read, 8, PAGE), R, "data of another member");
    // A write to the failed member reads the other data, and writes parity only.
    let mut array = filled(5, 5, "failed = [0]");
    assert_eq!(latency(&mut array, Operation::Write, 0, PAGE), R + W);
    let operations = array.usage().member_operations;
    assert_eq!((operations.host, operations.parity_reads, operations.parity_writes), (0, 3, 1));
    // Without its parity member, a stripe is written at once.
    let mut array = filled(5, 4, "failed = [3]");
    assert_eq!(latency(&mut array, Operation::Write, 0, PAGE), W);
    assert_eq!(array.usage().writes.without_parity, 1);
}

#[test]
fn two_failed_members_are_solved_from_both_parities() {
    let mut array = filled(6, 6, "failed = [0, 1]\nxor = \"1GB/s\"");
    assert_eq!(latency(&mut array, Operation::Read, 0, PAGE), R + Time::from_ns(4 * 4096));
    assert_eq!(array.usage().member_operations.parity_reads, 4, "two data and two parities");
}

/// Submits two requests at the same time. Returns their completion times in order.
fn both(array: &mut SsdArray, requests: [Request; 2]) -> [Time; 2] {
    requests.into_iter().for_each(|request| array.submit(Time::ZERO, request));
    let mut completions: Vec<Completion> = Vec::new();
    while let Some(at) = array.next_event() {
        array.advance(at);
    }
    array.take_completions(&mut completions);
    [completions[0].finish, completions[1].finish]
}

#[test]
fn writes_of_one_range_are_ordered() {
    let write = |lba| Request::new(Time::ZERO, Operation::Write, lba, PAGE);
    let options = "level = 5\ndevice = \"tiny\"\ncount = 4\nstripe = \"8KiB\"";
    let mut same = filled_with(options);
    assert_eq!(both(&mut same, [write(0), write(0)]), [R + W, sum(&[R, W, R, W])]);
    assert_eq!((same.usage().stripe_waits, same.usage().stripe_wait_us), (1, (R + W).as_us()));
    let mut apart = filled_with(options);
    assert_eq!(both(&mut apart, [write(0), write(8)]), [R + W, R + W], "other ranges do not wait");
    let mut parity = filled_with(options);
    assert_eq!(both(&mut parity, [write(0), write(16)])[1], sum(&[R, W, R, W]), "the parity of both is the same");
}

#[test]
fn trims_pass_for_whole_stripes() {
    let mut array = filled(5, 4, "");
    let before = array.member(0).ftl().blocks.valid_data();
    serve(&mut array, Operation::Trim, 0, 2 * PAGE);
    assert_eq!((array.usage().trims_dropped, array.member(0).ftl().blocks.valid_data()), (1, before));
    serve(&mut array, Operation::Trim, 0, 3 * PAGE);
    let valid: Vec<u64> = (0..4).map(|member| array.member(member).ftl().blocks.valid_data()).collect();
    assert_eq!(valid, [before - 1; 4], "data and parity");
}

#[test]
fn a_flush_reaches_all_members() {
    let mut array = filled(6, 5, "failed = [2]");
    serve(&mut array, Operation::Flush, 0, 0);
    assert_eq!(array.usage().member_operations.host, 4);
}

#[test]
fn requests_beyond_the_end_are_refused() {
    let mut array = filled(0, 2, "");
    let end = array.config().logical_bytes() / 512;
    let status = serve(&mut array, Operation::Read, end - 1, 2).status;
    assert_eq!(status, floatgate_core::sim::request::Status::OutOfRange);
}

/// A rebuild that is limited by its members takes a read and a write for each stripe. One that is limited by its rate
/// starts a stripe whenever a chunk is due.
#[test]
fn the_rebuild_keeps_its_rate() {
    for (rate, interval) in [("10GB/s", R + W), ("1MB/s", Time::from_us(4096))] {
        let mut array = filled(5, 4, &format!("failed = [2]\nrebuild = {{ rate = \"{rate}\" }}"));
        assert_eq!(array.usage().state, "rebuilding");
        while let Some(at) = array.next_event() {
            array.advance(at);
        }
        let rows = array.config().layout().rows();
        let usage = array.usage();
        let finished = Time((rows - 1) * interval.ps()) + R + W;
        assert_eq!(usage.rebuild.unwrap().finished_s, Some(finished.as_s()), "{rate}");
        assert_eq!((usage.state.as_str(), usage.failed), ("optimal", vec![]));
        assert_eq!(latency(&mut array, Operation::Read, 0, 3 * PAGE), R, "the spare serves reads");
    }
}

#[test]
fn empty_requests_complete_at_once() {
    for failed in ["", "failed = [0]"] {
        let mut array = filled(5, 4, failed);
        for operation in [Operation::Read, Operation::Write, Operation::Trim] {
            assert_eq!(latency(&mut array, operation, 0, 0), Time::ZERO, "{operation:?} {failed}");
        }
    }
}

#[test]
fn mirrors_read_from_the_least_busy_copy() {
    let mut array = filled(1, 2, "");
    let read = |lba| Request::new(Time::ZERO, Operation::Read, lba, PAGE);
    assert_eq!(both(&mut array, [read(0), read(0)]), [R, R], "each copy serves one");
}

#[test]
fn a_full_queue_makes_requests_wait() {
    let mut array = filled(0, 2, "queue_depth = 1");
    let read = |lba| Request::new(Time::ZERO, Operation::Read, lba, PAGE);
    assert_eq!(both(&mut array, [read(0), read(8)]), [R, R + R]);
}

/// A read of two members is certain when both have finished in the cells, and only transfers are left.
#[test]
fn completions_of_reads_are_known_before_their_time() {
    let mut array = filled(0, 3, "");
    let start = array.now();
    array.submit(start, Request { tag: 7, ..Request::new(start, Operation::Read, 4, PAGE) });
    let mut seen = Vec::new();
    while let Some(at) = array.next_event() {
        array.advance(at);
        array.committed_completions(&mut Room::default(), &mut |tag, finish| seen.push((tag, finish, array.now())));
    }
    let mut completions = Vec::new();
    array.take_completions(&mut completions);
    let finish = start.later(R);
    assert_eq!(completions[0].finish, finish);
    assert!(seen.iter().all(|(tag, at, now)| (*tag, *at) == (7, finish) && *now < finish), "{seen:?}");
    assert!(seen.iter().any(|(.., now)| *now <= start.later(Time::from_us(25))), "{seen:?}");
}
