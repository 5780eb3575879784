//! Tests of the engine with a clock under the control of the test: early replies, followed by a power cut or the end.

use std::sync::Arc;

use floatgate_core::device_file::{self, Direction};
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::sim::request::{Operation, Status};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options};
use floatgate_serve::clock::{Clock, Speed, Wall};
use floatgate_serve::engine::{Answer, Cost, Engine, Order, Pace, Port};
use floatgate_serve::image::{ImageAt, Opened};
use floatgate_serve::lateness::{Cause, Requesting, Turn};
use floatgate_serve::payload::memory::Memory;
use floatgate_serve::server::Costs;

/// Returns an engine on an image in memory with one mapping unit written and flushed. A read of it was replied to
/// before the device has completed it. Also returns the current time.
fn answered_ahead() -> (Engine, Wall) {
    // A page takes 100 us on the bus. The completion of a read is certain that long before.
    let config = device_file::load("tiny", &["bus.protocol.nv-ddr=40MT/s".to_owned()]).unwrap();
    let options = Options { attribution: true, ..Options::default() };
    let mut device = Device::new(config.clone(), options.clone()).unwrap();
    let store = Opened::open(&ImageAt::Memory, &config, false).unwrap().begin(&mut device).unwrap();
    let pace = Pace::Timed(Clock::new(Wall(0), Speed::default()));
    let mut engine = Engine::on_image(device, store, options, pace, None);
    let port = engine.add_port("test", Arc::new(|| {}));
    engine.set_cost(port, Cost { read: (50_000.0, 0.0), ..Cost::default() });

    let data = vec![7; 4096];
    engine.submit(port, Wall(0), &Order { data: Some(&data), fua: true, ..Order::of(Operation::Write, 0, 8) }).unwrap();
    let mut now = Wall(10_000_000);
    engine.advance(now);
    assert_eq!(due(&mut engine, port, now).len(), 1, "the write is done within 10 ms");

    engine.submit(port, now, &Order::of(Operation::Read, 0, 8)).unwrap();
    let read_at = now;
    loop {
        assert!(now.since(read_at) < Wall(1_000_000), "a read of 150 us is answered");
        now = now.later(Wall(1000));
        engine.advance(now);
        let answers = due(&mut engine, port, now);
        if let [answer] = &answers[..] {
            assert_eq!((answer.status, &answer.bytes[..]), (Status::Ok, &data[..]));
            assert_eq!(engine.outstanding(), 1, "it is answered ahead of its time");
            return (engine, now);
        }
    }
}

fn due(engine: &mut Engine, port: Port, now: Wall) -> Vec<Answer> {
    let mut answers = Vec::new();
    engine.take_due(port, now, &mut answers);
    answers
}

/// Creates the device `tiny`, with an option if there is one.
fn device(set: Option<&str>) -> Device {
    let config = device_file::load("tiny", &set.map(str::to_owned).into_iter().collect::<Vec<_>>()).unwrap();
    Device::new(config, Options { attribution: true, ..Options::default() }).unwrap()
}

/// Creates an engine with payload outside the device, and a frontend with this cost.
fn engine(device: Device, cost: Cost) -> (Engine, Port) {
    let payload = Box::new(Memory::new(device.config().logical_bytes(), 4096, u64::MAX));
    let mut engine = Engine::new(device, payload, Pace::Timed(Clock::new(Wall(0), Speed::default())), None);
    let port = engine.add_port("test", Arc::new(|| {}));
    engine.set_cost(port, cost);
    (engine, port)
}

#[test]
fn a_power_cut_does_not_undo_an_early_reply() {
    let (mut engine, now) = answered_ahead();
    let before = engine.device().now();
    let cut = engine.power_cut(now).unwrap();
    assert_eq!((cut.requests_lost, cut.units_lost), (0, 0));
    let late = (cut.at - before).as_us();
    assert!((1.0..=50.0).contains(&late), "the cut came {late} us later, when the read had ended");
}

#[test]
fn early_replies_are_in_the_results() {
    let (engine, _) = answered_ahead();
    let served = engine.finish(true);
    let results = &served.outcome.results;
    assert_eq!(results.all().count(), 2);
    served.device.check_invariants().unwrap();
}

/// The clock of an idle device advances when a command asks for its state, or at the end.
#[test]
fn idle_time_before_and_after_the_requests_does_not_dilute_utilization() {
    let measured = |begin: u64, idle: u64| {
        let (mut engine, port) = engine(device(None), Cost::default());
        engine.advance(Wall(begin));
        for at in [begin, begin + 5_000_000] {
            engine.submit(port, Wall(at), &Order::of(Operation::Write, 0, 8)).unwrap();
            engine.advance(Wall(at + 2_000_000));
            assert_eq!(due(&mut engine, port, Wall(at + 2_000_000)).len(), 1);
        }
        for part in 1..=5 {
            engine.advance(Wall(begin + 7_000_000 + idle / 5 * part));
        }
        let outcome = engine.finish(true).outcome;
        assert!(outcome.elapsed >= outcome.measured);
        (outcome.measured, outcome.elapsed, outcome.dies[0].cell)
    };
    let expected = measured(0, 0);
    assert!(expected.1.since(expected.0) < Time::from_us(2000), "{expected:?}");
    for (begin, idle) in [(12_000_000_000, 0), (0, 12_000_000_000), (0, 20_000_000)] {
        let found = measured(begin, idle);
        assert_eq!((found.0, found.2), (expected.0, expected.2));
        // Idle time that is shorter than 10 ms is not worth a sample.
        assert!(found.1.since(found.0) < Time::from_us(10_000), "{found:?} for {begin} and {idle}");
    }
}

#[test]
fn the_deduction_grows_with_the_clients_sleep() {
    let cost = Cost {
        read: (10_000.0, 1.0),
        write: (12_000.0, 2.0),
        asleep: [(60_000.0, 6_000.0), (260_000.0, 16_000.0)],
        waking: Some(5_000.0),
        ..Cost::default()
    };
    let of = |operation, latency, is_awake| cost.of(operation, 4096, Wall(latency), is_awake).0;
    let reads = [0, 30_000, 60_000, 160_000, 260_000, u64::MAX].map(|latency| of(Operation::Read, latency, false));
    assert_eq!(reads, [14_096, 17_096, 20_096, 25_096, 30_096, 30_096]);
    assert_eq!([0, 260_000].map(|latency| of(Operation::Write, latency, false)), [20_192, 36_192]);
    assert_eq!(of(Operation::Flush, 60_000, false), 18_000, "of a write without bytes");
    // A client that polls does not sleep, however long the request takes.
    assert_eq!([0, 260_000].map(|latency| of(Operation::Read, latency, true)), [9_096, 9_096]);
    assert_eq!((cost.us(), cost.waking_us()), ([20.096, 36.192], 16.0));
    // If the clients of a frontend cannot indicate polling, no client counts as polling.
    let asleep = Cost { waking: None, ..cost };
    assert_eq!((asleep.of(Operation::Flush, 0, Wall(60_000), true), asleep.waking_us()), (Wall(18_000), 0.0));
    assert_eq!(Cost::default().of(Operation::Read, 4096, Wall(1000), false), Wall(0));
}

#[test]
fn a_cost_above_the_time_of_flash_is_refused() {
    let config = device(None).config().clone();
    let transfer = config.data_time(config.page_bytes(), Direction::Out);
    let read = config.nand.read.values()[0].time().as_us() + transfer.as_us();
    let of_read = |us: f64| Cost { read: (us * 1e3, 0.0), ..Cost::default() };
    let below = Costs { nbd: of_read(read - 0.001), vhost_user: of_read(1.0), nvme: Cost::default() };
    assert_eq!(below.plausible(&config, Speed::default()), (below, vec![]));
    let (kept, refused) = Costs { nbd: of_read(read + 0.001), ..below }.plausible(&config, Speed::default());
    assert_eq!(kept, Costs { nbd: Cost::default(), ..below });
    let [refused] = refused.try_into().unwrap();
    assert!(refused.starts_with("nothing is deducted over NBD: the self-test measured an overhead of"), "{refused}");
    let write = Cost { write: (3_482_000.0, 0.0), ..Cost::default() };
    assert!(write.refusal("vhost-user", &config, Speed::default()).unwrap().contains("3482.0 us for a write"));
    // Flash takes ten times as long in real time.
    assert_eq!(of_read(read * 9.9).refusal("NBD", &config, "0.1".parse().unwrap()), None);
}

#[test]
fn the_cost_for_the_client_is_deducted() {
    let target = |scale, is_provisional| {
        let cost = Cost { read: (40_000.0, 0.0), is_provisional, ..Cost::default() };
        let (mut engine, port) = engine(device(Some("bus.protocol.nv-ddr=40MT/s")), cost);
        let requesting = Requesting { scale, ..Requesting::default() };
        engine.submit(port, Wall(0), &Order { requesting, ..Order::of(Operation::Write, 0, 8) }).unwrap();
        let at = Wall(10_000_000);
        engine.advance(at);
        engine.submit(port, at, &Order { requesting, ..Order::of(Operation::Read, 0, 8) }).unwrap();
        engine.advance(at.later(Wall(1_000_000)));
        let answers = due(&mut engine, port, Wall::NEVER);
        let answer = answers.last().unwrap();
        assert_eq!(answer.due.cost, Wall(40_000), "by the self-test");
        (answer.due.target, answer.due.deducted)
    };
    let (whole, deducted) = target(1.0, false);
    assert_eq!(deducted, Wall(40_000));
    assert_eq!(target(0.75, false), (whole.later(Wall(10_000)), Wall(30_000)));
    assert_eq!(target(1.25, false), (whole.earlier(Wall(10_000)), Wall(50_000)));
    assert_eq!(target(0.75, true), (whole, deducted), "the self-test finds its own cost");
}

/// If there are more requests than execution units, they wait for each other, which hides the cost of the frontend.
#[test]
fn nothing_is_deducted_while_requests_wait_for_each_other() {
    const COST: Wall = Wall(40_000);
    let (mut engine, port) = engine(device(None), Cost { read: (COST.0 as f64, 0.0), ..Cost::default() });
    let units = engine.device().units();
    let mut at = Wall(0);
    let mut served = |operation, requests: usize| {
        at = at.later(Wall(100_000_000));
        for unit in 0..requests as u64 {
            engine.submit(port, at, &Order::of(operation, unit * 8, 8)).unwrap();
        }
        engine.advance(at.later(Wall(50_000_000)));
        let mut answers = due(&mut engine, port, Wall::NEVER);
        assert_eq!(answers.len(), requests);
        answers.sort_by_key(|answer| answer.due.latency);
        answers.iter().for_each(|answer| {
            let finish = at.later(answer.due.latency);
            assert_eq!(answer.due.target, finish.earlier(answer.due.deducted), "{answer:?}");
        });
        answers.iter().map(|answer| answer.due.deducted).collect::<Vec<_>>()
    };
    served(Operation::Write, 3 * units);
    assert_eq!(served(Operation::Read, units), vec![COST; units]);
    // The first requests have as many others outstanding as there are execution units, the last ones have fewer.
    let deducted = served(Operation::Read, 3 * units);
    assert_eq!(deducted, [vec![Wall(0); 2 * units], vec![COST; units]].concat());
}

/// If sending takes longer than the device, the difference is lateness, caused by the lead time of the device.
#[test]
fn a_reply_faster_than_its_sending_is_late_by_the_difference() {
    let cost = (50_000.0, 0.0);
    let cost = Cost { read: cost, write: cost, ..Cost::default() };
    let (mut engine, port) = engine(device(Some("buffer.capacity=64KiB")), cost);
    let mut at = Wall(10_000_000);
    let mut answered = |operation, sectors| {
        at = at.later(Wall(1_000_000));
        engine.submit(port, at, &Order::of(operation, 0, sectors)).unwrap();
        engine.advance(at.later(Wall(500_000)));
        let answer = due(&mut engine, port, Wall::NEVER).pop().unwrap();
        (answer.due, at)
    };
    for operation in [Operation::Write, Operation::Read] {
        // A write accepted by the buffer and a read found in the buffer take no time.
        let (due, at) = answered(operation, 8);
        assert!(due.latency < Wall(10_000) && !due.not_judged, "{operation:?}: {due:?}");
        assert_eq!((due.target, due.deducted), (at.later(due.latency).earlier(Wall(50_000)), Wall(50_000)));
        let turn = Turn { awake: due.possible, sent: due.possible, ..Turn::default() };
        assert!(due.is_late(turn.sent) && due.late_by(turn.sent) >= Wall(40_000), "{due:?}");
        assert_eq!(due.cause(&turn), Cause::LeadTime);
    }
    let (due, _) = answered(Operation::Trim, 8);
    assert!(due.not_judged, "what moves no data is not judged: {due:?}");
}

/// If the server polls late, it finds a completion that was decided in time. The host causes this delay, not the
/// device.
#[test]
fn completions_are_dated_by_the_device_and_not_by_the_wake_up() {
    let mut device = device(Some("bus.protocol.nv-ddr=40MT/s"));
    precondition(&mut device, Precondition::Fill, 1, &mut |_| true).unwrap();
    let (mut engine, port) = engine(device, Cost { read: (50_000.0, 0.0), ..Cost::default() });
    let at = Wall(10_000_000);
    engine.submit(port, at, &Order::of(Operation::Read, 0, 8)).unwrap();
    // The cells take 25 us and the bus 102.4 us. The reply is due 50 us before the completion, and the server wakes 30
    // us late.
    let awake = at.later(Wall(110_000));
    engine.advance(awake);
    let [answer] = &due(&mut engine, port, awake)[..] else { panic!("it is due") };
    let possible = answer.due.possible.since(at);
    assert!((25_000..27_000).contains(&possible.0), "decided with the end of the cells: {:?}", answer.due);
    let turn = Turn { awake, waited: true, sent: awake, ..Turn::default() };
    assert!(answer.due.is_late(awake) && answer.due.cause(&turn) == Cause::Host, "{:?}", answer.due);
}
