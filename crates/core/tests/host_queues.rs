//! Queue pairs: the order in which commands are fetched, and the time of a fetch, to the picosecond.
//!
//! All reads take 25 us + 102.4 us on a die and a channel of their own, and the controller takes one command at a time
//! unless stated otherwise.

use crate::common::{Load, build, device, device_config, drain, fill, read, refusal, serve, submit};
use floatgate_core::results::Part;
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Options, Ssd};
use proptest::prelude::*;

/// Time of a read in the device.
const READ: u64 = 127_400_000;
/// Time of a fetch in the tests that have one.
const FETCH: u64 = 1_000_000;

/// Serves reads of these streams, which arrive together, on a device with `host.queues` and overrides. Returns the
/// finishing times, and the waits for the controller.
fn times(queues: &str, overrides: &[&str], streams: &[u16]) -> Vec<(Time, Time)> {
    let queues = format!("host.queues={queues}");
    let config = device_config(&[&["host.queue_depth=1", &queues], overrides].concat());
    let mut device = build(config, Options { attribution: true, ..Options::default() });
    fill(&mut device, 64);
    let requests = (0..).zip(streams).map(|(unit, &stream)| Request { stream, ..read(unit) });
    let served = serve(&mut device, &requests.collect::<Vec<_>>());
    served.iter().map(|(completion, parts)| (completion.finish, parts.of(Part::HostQueue))).collect()
}

/// Returns the numbers of the requests in the order in which a device that serves one at a time completes them.
fn order(queues: &str, streams: &[u16]) -> Vec<usize> {
    let mut finishes: Vec<(Time, usize)> =
        times(queues, &[], streams).into_iter().map(|(finish, _)| finish).zip(1..).collect();
    finishes.sort_unstable();
    for (&(finish, _), place) in finishes.iter().zip(1..) {
        assert_eq!(finish, Time(place * READ));
    }
    finishes.into_iter().map(|(_, number)| number).collect()
}

/// The first request enters an idle device at once.
#[test]
fn queues_take_turns() {
    let streams = [0, 0, 0, 0, 1, 1];
    assert_eq!(order("{ count = 1 }", &streams), [1, 2, 3, 4, 5, 6]);
    assert_eq!(order("{ count = 2 }", &streams), [1, 2, 5, 3, 6, 4]);
    let bursts = "{ count = 2, arbitration = { round-robin = { burst = 2 } } }";
    assert_eq!(order(bursts, &streams), [1, 2, 3, 5, 6, 4]);
}

#[test]
fn streams_share_queues_by_number() {
    let streams = [0, 0, 0, 2, 1];
    assert_eq!(order("{ count = 2 }", &streams), [1, 2, 5, 3, 4]);
    assert_eq!(order("{ count = 3 }", &streams), [1, 2, 4, 5, 3]);
}

/// A request in the only queue waits for all earlier ones. In a queue of its own, it waits for the one at work, and for
/// one of the other queue.
#[test]
fn a_stream_does_not_wait_for_the_depth_of_another() {
    let mut streams = [0; 33];
    streams[32] = 1;
    for (queues, before) in [("{ count = 1 }", 32), ("{ count = 2 }", 2)] {
        let last = times(queues, &[], &streams)[32];
        assert_eq!(last, (Time((before + 1) * READ), Time(before * READ)));
    }
}

#[test]
fn weights_are_the_shares_of_the_priorities() {
    let streams: Vec<u16> = (0..24).map(|number| number % 3).collect();
    let weighted = |options: &str| {
        let queues = format!("{{ count = 3, arbitration = {{ weighted-round-robin = {{ {options} }} }} }}");
        let order = order(&queues, &streams);
        order.iter().map(|number| streams[number - 1]).collect::<Vec<u16>>()
    };
    // The request that enters at once, then rounds of 3, 2 and 1.
    let by_weight = weighted("priorities = ['low', 'high', 'medium'], high = 3, medium = 2, low = 1");
    assert_eq!(by_weight[..13], [0, 1, 1, 1, 2, 2, 0, 1, 1, 1, 2, 2, 0]);
    // After two more, no commands of high priority are left, and a round ends without them.
    assert_eq!(by_weight[13..19], [1, 1, 2, 2, 0, 2]);
    let urgent = weighted("priorities = ['low', 'medium', 'urgent'], medium = 2, low = 1");
    assert_eq!(urgent[..15], [0, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 0, 1, 1, 0]);
    // A turn ends with the commands of the round.
    let bursts = weighted("priorities = ['medium', 'medium', 'low'], medium = 3, low = 1, burst = 2");
    assert_eq!(bursts[..9], [0, 1, 1, 0, 2, 1, 1, 0, 2]);
    assert_eq!(weighted("")[..7], [0, 1, 2, 0, 1, 2, 0], "queues without a priority are medium");
}

/// The fetch of a command starts when it arrives, or when the fetch before it ends. The reads are on different chips
/// and channels.
#[test]
fn a_fetch_takes_the_commands_of_one_turn() {
    let fetches = |burst: u32| {
        let arbitration = format!("{{ round-robin = {{ burst = {burst} }} }}");
        let queues = format!("{{ count = 2, fetch = '1us', arbitration = {arbitration} }}");
        times(&queues, &["host.queue_depth=8"], &[0; 5]).into_iter().map(|(_, wait)| wait.0).collect::<Vec<u64>>()
    };
    assert_eq!(fetches(1), [FETCH, 2 * FETCH, 3 * FETCH, 4 * FETCH, 5 * FETCH]);
    assert_eq!(fetches(3), [FETCH, 2 * FETCH, 2 * FETCH, 2 * FETCH, 3 * FETCH]);
    assert_eq!(fetches(8), [FETCH, 2 * FETCH, 2 * FETCH, 2 * FETCH, 2 * FETCH]);
    let alone = times("{ count = 1, fetch = '1us' }", &[], &[0]);
    assert_eq!(alone, [(Time(FETCH + READ), Time(FETCH))]);
}

/// A controller that works on one command at a time fetches the next one when it has completed.
#[test]
fn a_fetch_waits_for_room_in_the_controller() {
    let served = times("{ count = 1, fetch = '1us' }", &[], &[0; 3]);
    let finishes: Vec<Time> = served.into_iter().map(|(finish, _)| finish).collect();
    assert_eq!(finishes, [1, 2, 3].map(|place| Time(place * (FETCH + READ))));
}

/// A closed loop of three reads on a controller that works on one command at a time. The host issues each read when
/// there is room, or, with queues, as soon as its depth allows.
#[test]
fn latencies_count_the_wait_in_a_queue() {
    let latencies = |queues: &[&str]| {
        let mut device = device(&[&["host.queue_depth=1"], queues].concat());
        fill(&mut device, 64);
        let outcome = Load::closed(3, 50, || read(0)).run(&mut device);
        let latency = outcome.results.all().latency;
        (outcome.elapsed, latency.min_us(), latency.max_us())
    };
    // The controller is never idle: two reads of the loop are ready when one completes.
    assert_eq!(latencies(&[]), (Time(50 * READ), 127.4, 127.4));
    assert_eq!(latencies(&["host.queues.count=1"]), (Time(50 * READ), 127.4, 382.2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Each request completes once. Requests of a stream enter the device in their order, and at most `depth` are at
    /// work. With one queue and no time for fetches, completions are those of a device without queue pairs.
    #[test]
    fn requests_of_a_stream_keep_their_order(
        requests in prop::collection::vec((0..200u64, 0..5u16, 0..3u8, 0..200u64, 1..20u32), 1..120),
        depth in 1..6usize,
        count in 1..7u16,
        arbitration in 0..3usize,
        fetch in 0..3u64,
    ) {
        let arbitration = [
            "'round-robin'",
            "{ round-robin = { burst = 3 } }",
            "{ weighted-round-robin = { priorities = ['low'], burst = 2 } }",
        ][arbitration];
        let depth_option = format!("host.queue_depth={depth}");
        let queues = format!("host.queues={{ count = {count}, fetch = '{fetch}us', arbitration = {arbitration} }}");
        let served = serve_over_time(&[&depth_option, &queues], &requests);
        prop_assert_eq!(served.len(), requests.len());
        let mut tags: Vec<u64> = served.iter().map(|&(tag, ..)| tag).collect();
        tags.sort_unstable();
        prop_assert_eq!(tags, (0..requests.len() as u64).collect::<Vec<_>>());
        for stream in 0..count {
            let of_stream = |tag: &u64| requests[*tag as usize].1 % count == stream;
            let mut entered: Vec<(u64, Time)> =
                served.iter().filter(|(tag, ..)| of_stream(tag)).map(|&(tag, entered, _)| (tag, entered)).collect();
            entered.sort_unstable();
            prop_assert!(entered.is_sorted_by_key(|&(_, entered)| entered), "{:?}", entered);
        }
        for &(_, at, _) in &served {
            let working = served.iter().filter(|(_, entered, finish)| *entered <= at && at < *finish).count();
            // Requests that complete at the time at which they enter hold no place after it.
            prop_assert!(working <= depth, "{} requests at work at {:?}", working, at);
        }
        if count == 1 && fetch == 0 {
            prop_assert_eq!(served, serve_over_time(&[&depth_option], &requests));
        }
    }
}

/// Submits requests at the stated intervals in us. Returns the tag of each, the time at which it entered the device,
/// and its finish, in the order of completion.
fn serve_over_time(overrides: &[&str], requests: &[(u64, u16, u8, u64, u32)]) -> Vec<(u64, Time, Time)> {
    let config = device_config(&[&["buffer.capacity=64KiB"], overrides].concat());
    let mut device = build(config, Options { attribution: true, verify: true, ..Options::default() });
    let mut at = Time::ZERO;
    for (&(pause, stream, operation, unit, sectors), tag) in requests.iter().zip(0..) {
        at += Time::from_us(pause);
        let operation = [Operation::Read, Operation::Write, Operation::Trim][usize::from(operation)];
        submit(&mut device, at, Request { tag, stream, ..Request::new(at, operation, unit * 8, sectors) });
    }
    let completions = drain(&mut device);
    let mut breakdowns = Vec::new();
    device.take_breakdowns(&mut breakdowns);
    device.check_invariants().unwrap();
    let served = completions.iter().zip(&breakdowns).map(|(completion, parts)| {
        let request = completion.request;
        (request.tag, request.arrival + parts.of(Part::HostQueue), completion.finish)
    });
    served.collect()
}

#[test]
fn invalid_queues_are_refused() {
    for (queues, why) in [
        ("{ count = 0 }", "host.queues.count = 0: must be"),
        ("{ count = 65536 }", "host.queues.count = 65536: must be"),
        ("{ count = 1, arbitration = { round-robin = { burst = 0 } } }", "round-robin.burst = 0: must be at least 1"),
        (
            "{ count = 1, arbitration = { weighted-round-robin = { low = 0 } } }",
            "round-robin.low = 0: must be at least 1",
        ),
        (
            "{ count = 1, arbitration = { weighted-round-robin = { priorities = ['low', 'high'] } } }",
            "host.queues.arbitration.weighted-round-robin: priorities has 2 entries for 1 queue",
        ),
    ] {
        let error = refusal(&[format!("host.queues={queues}")]);
        assert!(error.contains(why), "{error}");
    }
}
