//! Two execution units on one channel: times in nanoseconds.

use super::*;
use crate::config::load;

/// Array of one channel with two LUNs, of one execution unit each.
struct Bench {
    array: Array,
    /// Events of units, with their times in nanoseconds.
    seen: Vec<(u64, u32, Outcome)>,
}

const CHANNEL: ChannelId = ChannelId(0);

fn ns(time: u64) -> Time {
    Time(1_000 * time)
}

impl Bench {
    fn new() -> Bench {
        let set = ["geometry.channels=1", "geometry.planes=1"].map(str::to_owned);
        let array = Array::new(&load("tiny", &set).unwrap(), 0);
        assert_eq!((array.luns(), array.units()), (2, 2));
        Bench { array, seen: Vec::new() }
    }

    /// Builds an operation at a unit: command of 100 ns, and data of 1,000 ns.
    fn build(&mut self, unit: u32, kind: Kind, cell: u64) {
        let operation = self.array.draft_mut(Spot::Unit(ExecUnitId(unit)));
        *operation = Operation { kind, plane: PlaneId(unit), members: 1, pages: 1, ..Operation::default() };
        (operation.command, operation.data, operation.cell) = (ns(100), ns(1_000), ns(cell));
    }

    /// Requests the channel for the operation of an idle unit.
    fn request(&mut self, unit: u32, now: u64) {
        self.array.request_start(LunId(unit), 0, Cycles::Data, ns(now));
        self.grant(ns(now));
    }

    fn grant(&mut self, now: Time) {
        let Some(unit) = self.array.grant(CHANNEL, now) else { return };
        match self.array.state(LunId(unit.0)) {
            LunState::Requesting => self.array.start(unit, now),
            _ => self.array.resume(unit, now),
        }
    }

    /// Runs the array up to a time, like the router of a device.
    fn run_until(&mut self, until: u64) {
        while let Some((at, resource)) = self.array.events().pop(ns(until)) {
            let unit = match self.array.owner(resource) {
                Owner::Unit(unit) => unit,
                Owner::Channel(_) => {
                    self.grant(at);
                    continue;
                }
                Owner::Other(_) => unreachable!("there are no timers"),
            };
            let outcome = self.array.unit_event(unit, at);
            self.seen.push((at.0 / 1_000, unit.0, outcome));
            match outcome {
                Outcome::WantsChannel(rank) => {
                    self.array.request_more(unit, rank, at);
                    self.grant(at);
                }
                Outcome::Done => assert!(self.array.set_idle(LunId(unit.0))),
                other => unreachable!("{other:?}"),
            }
        }
    }
}

#[test]
fn programs_take_turns_on_the_channel_and_overlap_in_the_cells() {
    let mut bench = Bench::new();
    for unit in 0..2 {
        bench.build(unit, Kind::Program, 5_000);
        bench.request(unit, 0);
    }
    assert_eq!([0, 1].map(|lun| bench.array.state(LunId(lun))), [LunState::Busy, LunState::Requesting]);
    bench.run_until(20_000);
    // The first: 1,100 ns on the channel, and 5,000 ns in the cells. The second follows on the channel.
    assert_eq!(bench.seen, [(6_100, 0, Outcome::Done), (7_200, 1, Outcome::Done)]);
    assert_eq!(bench.array.channel_time[0], ChannelTime { data: ns(2_000), command: ns(200) });
    let of_die = DieTime { cell: ns(5_000), register_held: ns(1_100) };
    assert_eq!(bench.array.die_time, [of_die, of_die]);
    assert!(bench.array.channel_is_idle(CHANNEL, ns(20_000)));
}

#[test]
fn data_of_a_read_wait_for_the_channel() {
    let mut bench = Bench::new();
    bench.build(0, Kind::Read, 2_000);
    bench.request(0, 0);
    bench.run_until(2_000);
    // A program occupies the channel from 2,000 to 3,100 ns, and the page of the read is in the register at 2,100 ns.
    bench.build(1, Kind::Program, 5_000);
    bench.request(1, 2_000);
    bench.run_until(20_000);
    assert_eq!(
        bench.seen,
        [(2_100, 0, Outcome::WantsChannel(0)), (4_100, 0, Outcome::Done), (8_100, 1, Outcome::Done)]
    );
    // The read holds the die for its command, for the wait of 1,000 ns, and for its data.
    let [read, program] =
        [(2_000, 2_100), (5_000, 1_100)].map(|(cell, held)| DieTime { cell: ns(cell), register_held: ns(held) });
    assert_eq!(bench.array.die_time, [read, program]);
}

#[test]
fn an_erase_leaves_the_channel_after_its_command() {
    let mut bench = Bench::new();
    bench.build(0, Kind::Erase, 9_000);
    bench.build(1, Kind::Read, 2_000);
    [0, 1].into_iter().for_each(|unit| bench.request(unit, 50));
    bench.run_until(20_000);
    let read = [(2_250, 1, Outcome::WantsChannel(0)), (3_250, 1, Outcome::Done)];
    assert_eq!(bench.seen, [read[0], read[1], (9_150, 0, Outcome::Done)]);
}
