//! Committed completions: a completion that the device calls certain happens at the stated time.

use floatgate_core::device_file;
use floatgate_core::simulation::{Room, Ssd};
use std::collections::BTreeMap;

use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options};
use proptest::prelude::*;

fn device(overrides: &[&str]) -> Device {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    let mut device = Device::new(device_file::load("tiny", &overrides).unwrap(), Options::default()).unwrap();
    precondition(&mut device, Precondition::Aged(0.06), 1, &mut |_| true).unwrap();
    device
}

/// Completions that were reported as certain, by tag, and whether they happened.
#[derive(Default)]
struct Certain {
    open: BTreeMap<u64, Time>,
    came: usize,
    /// Longest time between the report and the completion.
    longest: Time,
}

impl Certain {
    fn record(&mut self, device: &mut Device) {
        device.committed_completions(&mut Room::default(), &mut |tag, finish| {
            assert!(finish >= device.now(), "a completion in the past");
            self.longest = self.longest.max(finish.since(device.now()));
            assert_eq!(*self.open.entry(tag).or_insert(finish), finish, "a certain completion has changed");
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

/// Serves requests that arrive the given number of microseconds after each other. Returns the number of completions
/// that were certain in advance, and the longest time in advance.
fn serve(device: &mut Device, requests: &[(u64, u8, u64, u32)]) -> (usize, Time) {
    let sectors = device.config().logical_sectors();
    let mut certain = Certain::default();
    let mut at = Time::ZERO;
    for index in 0..=requests.len() {
        let until = requests.get(index).map_or(Time::NEVER, |request| at + Time::from_us(request.0));
        while let Some(next) = device.next_event().filter(|next| *next <= until) {
            device.advance(next);
            certain.record(device);
        }
        let Some((_, operation, lba, length)) = requests.get(index).copied() else { break };
        at = until;
        device.advance(at);
        let operation = [Operation::Read, Operation::Write, Operation::Trim][usize::from(operation % 3)];
        let lba = lba % (sectors - u64::from(length));
        device.submit(at, Request { tag: index as u64, ..Request::new(at, operation, lba, length) });
        certain.record(device);
    }
    assert!(certain.open.is_empty(), "certain requests did not complete: {:?}", certain.open);
    (certain.came, certain.longest)
}

#[test]
fn a_read_is_certain_when_its_data_leave_and_a_write_when_it_is_programmed() {
    // 4 KiB at 200 MB/s: 20.48 us on the channel. A program is certain when its command starts, 220.48 us before its
    // end.
    assert_eq!(serve(&mut device(&[]), &[(1, 0, 0, 8)]), (1, Time(20_480_000)));
    assert_eq!(serve(&mut device(&[]), &[(1, 1, 0, 8)]), (1, Time(220_480_000)));
    // Four dies, two on each channel. Four reads are certain when the last data transfer starts. Four writes are
    // certain when the last command starts, although two of the programs end before that one.
    assert_eq!(serve(&mut device(&[]), &[(1, 0, 0, 32)]), (1, Time(20_480_000)));
    assert_eq!(serve(&mut device(&[]), &[(1, 1, 0, 32)]), (1, Time(220_480_000)));
    // If the device has a host link, completions are never certain in advance.
    assert_eq!(serve(&mut device(&["host.link_latency=5us"]), &[(1, 0, 0, 8)]).0, 0);
    // A program that reads may suspend is not certain.
    assert_eq!(serve(&mut device(&["nand.advanced.suspend.program=true"]), &[(1, 1, 0, 8)]).0, 0);
}

proptest! {
    #[test]
    fn certain_requests_complete_at_the_stated_time(
        requests in prop::collection::vec((0..300u64, 0..7u8, 0..100_000u64, 1..64u32), 1..80),
        variant in 0..8usize,
    ) {
        let overrides: &[&str] = [
            &[][..],
            &["nand.concurrency=plane"],
            &["nand.advanced.multi_plane_program=wise", "nand.advanced.multi_plane_read=true"],
            &["buffer.capacity=64KiB"],
            &["nand.advanced.suspend.program=true"],
            &["geometry.mapping_unit=2KiB"],
            &["controller.power_cap=1"],
            &["nand.concurrency=plane-reads", "geometry.planes=2"],
            &["mapping.block_summary.last_page=512B"],
        ][variant];
        serve(&mut device(overrides), &requests);
    }
}
