//! What a device calls certain comes as it said.

use std::collections::BTreeMap;

use floatgate_core::config;
use floatgate_core::device::{Device, Options};
use floatgate_core::precondition::{Precondition, precondition};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::time::Time;
use proptest::prelude::*;

fn device(overrides: &[&str]) -> Device {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    let mut device = Device::new(config::load("tiny", &overrides).unwrap(), Options::default()).unwrap();
    precondition(&mut device, Precondition::Aged(0.06), 1, &mut |_| true).unwrap();
    device
}

/// What was called certain, and what came of it.
#[derive(Default)]
struct Certain {
    open: BTreeMap<u64, Time>,
    came: usize,
    /// How long before its completion something was certain at most.
    longest: Time,
}

impl Certain {
    fn look(&mut self, device: &mut Device) {
        device.committed_completions(&mut Vec::new(), |tag, finish| {
            assert!(finish >= device.now(), "it has not come yet");
            self.longest = self.longest.max(finish.since(device.now()));
            assert_eq!(*self.open.entry(tag).or_insert(finish), finish, "what was certain has changed");
        });
        let mut completions = Vec::new();
        device.take_completions(&mut completions);
        for completion in completions {
            if let Some(finish) = self.open.remove(&completion.request.tag) {
                assert_eq!(finish, completion.finish, "{completion:?}");
                self.came += 1;
            }
        }
    }
}

/// Serves the requests, each so many us after the one before; returns how many were certain before they completed, and
/// how long before at most.
fn serve(device: &mut Device, requests: &[(u64, u8, u64, u32)]) -> (usize, Time) {
    let sectors = device.config().logical_sectors();
    let mut certain = Certain::default();
    let mut at = Time::ZERO;
    for index in 0..=requests.len() {
        let until = requests.get(index).map_or(Time::NEVER, |request| at + Time::from_us(request.0));
        while let Some(next) = device.next_event_time().filter(|next| *next <= until) {
            device.advance_to(next);
            certain.look(device);
        }
        let Some((_, operation, lba, length)) = requests.get(index).copied() else { break };
        at = until;
        device.advance_to(at);
        let operation = [Operation::Read, Operation::Write, Operation::Trim][usize::from(operation % 3)];
        let lba = lba % (sectors - u64::from(length));
        device.submit(at, Request { tag: index as u64, ..Request::new(at, operation, lba, length) });
        certain.look(device);
    }
    assert!(certain.open.is_empty(), "what was certain never came: {:?}", certain.open);
    (certain.came, certain.longest)
}

#[test]
fn a_read_is_certain_when_its_data_leave_and_a_write_when_it_is_programmed() {
    // 4 KiB at 200 MB/s: 20.48 us on the channel. A program is certain from its command on, and takes 200 us.
    assert_eq!(serve(&mut device(&[]), &[(1, 0, 0, 8)]), (1, Time(20_480_000)));
    assert_eq!(serve(&mut device(&[]), &[(1, 1, 0, 8)]), (1, Time(220_480_000)));
    // Four dies, two on a channel: four reads are certain when the last data leave, four writes from when the last
    // begins, though two of the programs end before that one.
    assert_eq!(serve(&mut device(&[]), &[(1, 0, 0, 32)]), (1, Time(20_480_000)));
    assert_eq!(serve(&mut device(&[]), &[(1, 1, 0, 32)]), (1, Time(220_480_000)));
    // What comes behind the flash is told by completions that lie ahead.
    assert_eq!(serve(&mut device(&["host.link_latency=5us"]), &[(1, 0, 0, 8)]).0, 0);
    // A program that reads may suspend is not certain.
    assert_eq!(serve(&mut device(&["nand.advanced.suspend.program=true"]), &[(1, 1, 0, 8)]).0, 0);
}

proptest! {
    #[test]
    fn what_is_certain_comes(
        requests in prop::collection::vec((0..300u64, 0..7u8, 0..100_000u64, 1..64u32), 1..80),
        variant in 0..7usize,
    ) {
        let overrides: &[&str] = [
            &[][..],
            &["nand.concurrency=plane"],
            &["nand.advanced.multi_plane_program=wise", "nand.advanced.multi_plane_read=wise"],
            &["buffer.capacity=64KiB"],
            &["nand.advanced.suspend.program=true"],
            &["geometry.mapping_unit=2KiB"],
            &["mapping.block_summary.last_page=512B"],
        ][variant];
        serve(&mut device(overrides), &requests);
    }
}
