//! Saved states of arrays: a loaded array has the same future as the saved one, and is saved as the same bytes. A
//! damaged file, or the state of another device, is refused with the reason.

use crate::common::config;
use floatgate_array::config::{ArrayConfig, from_toml};
use floatgate_array::{ArrayHead, Options, SsdArray};
use floatgate_core::device_file::load;
use floatgate_core::preparation::{self, precondition};
use floatgate_core::sim::request::{Completion, Operation, Request, Status};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options as DeviceOptions, Ssd};
use floatgate_core::summary::{self, Precondition};

const SMALL: [&str; 3] = ["member.geometry.blocks=16", "member.geometry.pages=16", "member.capacity={ spare = 0.4 }"];

const RAID5: &str = "level = 5\ndevice = \"tiny\"\ncount = 4\nstripe = \"8KiB\"\nwrite_hole = \"journal\"\n";

fn small(options: &str, set: &[&str]) -> ArrayConfig {
    config(options, &[&SMALL, set].concat())
}

/// Returns an array whose members are in a steady state.
fn steady(config: &ArrayConfig, options: Options) -> SsdArray {
    let mut array = SsdArray::new(config.clone(), options).unwrap();
    for member in (0..config.members.len()).filter(|&member| !array.has_failed(member)).collect::<Vec<_>>() {
        let state = preparation::Precondition::Steady;
        precondition(array.member_mut(member), state, 1 + member as u64, &mut |_| true).unwrap();
    }
    array
}

/// Serves random requests until the array is idle, with empty buffers and without unrecorded trims. Returns tag, start
/// and finish of each, relative to the start of the call.
fn serve(array: &mut SsdArray, seed: u64, requests: u64) -> Vec<(u64, u64, u64)> {
    let mut rng = Rng::new(seed, "array/state");
    let start = array.now();
    let sectors = array.config().logical_bytes() / 512;
    let mut at = start;
    for tag in 0..requests {
        array.advance(at);
        let operation = [Operation::Read, Operation::Write, Operation::Write, Operation::Trim][rng.below(4) as usize];
        let length = 1 + rng.below(64);
        let lba = rng.below(sectors - length);
        array.submit(at, Request { tag, ..Request::new(at, operation, lba, length as u32) });
        at += Time::from_ns(rng.below(300_000));
    }
    drain(array);
    let now = array.now();
    array.submit(now, Request { tag: requests, ..Request::new(now, Operation::Flush, 0, 0) });
    drain(array);
    let mut done: Vec<Completion> = Vec::new();
    array.take_completions(&mut done);
    assert!(done.len() as u64 == requests + 1 && done.iter().all(|done| done.status == Status::Ok));
    done.iter().map(|c| (c.request.tag, c.start.since(start).ps(), c.finish.since(start).ps())).collect()
}

fn drain(array: &mut SsdArray) {
    while let Some(at) = array.next_event() {
        array.advance(at);
    }
}

fn saved(array: &SsdArray) -> Vec<u8> {
    let mut bytes = Vec::new();
    array.save(&state(), &mut bytes).unwrap();
    bytes
}

fn state() -> Precondition {
    Precondition { requested: "steady".to_owned(), reached: summary::Reached::default() }
}

fn refusal<T>(result: Result<T, impl std::fmt::Display>) -> String {
    match result {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it is refused"),
    }
}

/// Returns the state without its header, which has the seed.
fn body(bytes: &[u8]) -> &[u8] {
    let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    &bytes[16 + length + 8..]
}

#[test]
fn a_loaded_array_equals_the_saved_one() {
    let levels = [
        "level = 0\ndevice = \"tiny\"\ncount = 3",
        "level = 1\ndevice = \"tiny\"\ncount = 2",
        "level = 10\ndevice = \"tiny\"\ncount = 4\ngc = { staggered = { window = \"5ms\" } }",
        "level = 6\ndevice = \"tiny\"\ncount = 5\nxor = \"1GB/s\"\nstripe = \"8KiB\"",
        RAID5,
        "level = 5\ndevice = \"tiny\"\ncount = 4\nfailed = [2]\nwrite_hole = \"journal\"",
    ];
    for (options, seed) in levels.iter().zip(1..) {
        for set in [&[][..], &["member.buffer.capacity=128KiB", "member.host.queue_depth=4"]] {
            let config = small(options, set);
            let with = Options { seed, ..Options::default() };
            let mut array = steady(&config, with.clone());
            let before = saved(&array);
            let (mut unused, _) = SsdArray::load(config.clone(), with.clone(), &before[..]).unwrap();
            assert!(serve(&mut unused, 3, 300) == serve(&mut array, 3, 300), "{options}: another future of the start");
            let bytes = saved(&array);
            let (mut loaded, head) = SsdArray::load(config.clone(), with.clone(), &bytes[..]).unwrap();
            assert_eq!((head.seed, loaded.now()), (seed, Time::ZERO));
            assert!(saved(&loaded) == bytes, "{options}: saved as other bytes");
            // The turns of staggered collection start again, and clean data of a buffer are not saved, so that the
            // futures of these arrays differ.
            if config.options.gc == Default::default() && set.is_empty() {
                let expected = serve(&mut array, 7, 400);
                let mut forked = loaded.in_same_state(config.clone(), with.clone()).unwrap();
                assert!(serve(&mut loaded, 7, 400) == expected, "{options}: another future");
                assert!(serve(&mut forked, 7, 400) == expected, "{options}: another future in memory");
                assert!(saved(&loaded) == saved(&array), "{options}: another state in the end");
            }
            loaded.check_invariants().unwrap();
        }
    }
}

/// Options that do not place data may differ, and more members may fail. The spare of a failed member is empty.
#[test]
fn a_state_can_be_loaded_into_another_state_of_the_array() {
    let bytes = saved(&steady(&small(RAID5, &[]), Options::default()));
    let set = ["array.queue_depth=3", "array.xor=1GB/s", "member.nand.read=5us", "array.gc=independent"];
    let (slow, _) = SsdArray::load(small(RAID5, &set), Options::default(), &bytes[..]).unwrap();
    assert!(body(&saved(&slow)).len() > 1000);
    let rebuilding = small(RAID5, &["array.failed=[1]", "array.rebuild={ rate = \"100MB/s\" }"]);
    let (mut array, _) = SsdArray::load(rebuilding.clone(), Options::default(), &bytes[..]).unwrap();
    let mapped = |array: &SsdArray, member| array.member(member).ftl().blocks.valid_data();
    assert!(mapped(&array, 0) > 0 && mapped(&array, 1) == 0);
    assert!(refusal(array.save(&state(), Vec::new())).contains("an event is due at"));
    drain(&mut array);
    assert!(mapped(&array, 1) > 0 && !array.has_failed(1));
    // The rebuilt member is saved like the others.
    SsdArray::load(small(RAID5, &[]), Options::default(), &saved(&array)[..]).unwrap();
    // A member that had failed has no state.
    let degraded = small(RAID5, &["array.failed=[1]"]);
    let (array, _) = SsdArray::load(degraded.clone(), Options::default(), &bytes[..]).unwrap();
    let bytes = saved(&array);
    assert!(SsdArray::load(degraded, Options::default(), &bytes[..]).is_ok());
    let error = refusal(SsdArray::load(small(RAID5, &[]), Options::default(), &bytes[..]));
    assert!(error.contains("`array.failed` was [1] when it was saved, and is [] here"), "{error}");
    let head = ArrayHead::read(&mut &bytes[..]).unwrap();
    let members = head.inspect_members(body(&bytes)).unwrap();
    assert_eq!(members.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true, true]);
}

#[test]
fn states_of_other_devices_are_refused() {
    let healthy = small(RAID5, &[]);
    let array = steady(&healthy, Options::default());
    let bytes = saved(&array);
    for (set, words) in [
        ("array.level=6", "it is the state of another device: `array.level` was 5 when it was saved, and is 6 here"),
        ("array.count=5", "`array.count` was 4 when it was saved, and is 5 here"),
        ("array.stripe=16KiB", "`array.stripe` was 8KiB when it was saved, and is 16KiB here"),
        ("array.write_hole=none", "`array.write_hole` was journal when it was saved, and is none here"),
        ("member.gc.victim=fifo", "member 0: it is the state of another device: `gc.victim` was greedy"),
    ] {
        let other = small(RAID5, &[set]);
        let error = refusal(SsdArray::load(other.clone(), Options::default(), &bytes[..]));
        assert!(error.contains(words), "{set}: {error}");
        let error = refusal(array.in_same_state(other, Options::default()));
        assert!(error.contains(words), "{set}: {error}");
    }
    // Only one of the members differs.
    let members = "[array]\nlevel = 5\nmembers = [\"tiny\", \"tiny\", \"hu2011\", \"tiny\"]\nstripe = \"8KiB\"\n";
    let mixed = from_toml(&[], &format!("{members}write_hole = \"journal\""), "a.toml", &[]).unwrap();
    let same = RAID5.replace("count = 4", "count = 4\n");
    let bytes_of_tiny = saved(&SsdArray::new(config(&same, &[]), Options::default()).unwrap());
    let error = refusal(SsdArray::load(mixed, Options::default(), &bytes_of_tiny[..]));
    assert!(error.starts_with("member 2: it is the state of another device: "), "{error}");
    // States of a single SSD and of an array are distinguished.
    let tiny = load("tiny", &[]).unwrap();
    let error = refusal(Device::load(tiny.clone(), DeviceOptions::default(), &bytes[..]));
    assert_eq!(error, "it is the state of an array, and this device is a single SSD; give the array file");
    let mut single = Vec::new();
    let device = Device::new(tiny, DeviceOptions::default()).unwrap();
    device.save(&state(), &mut single).unwrap();
    let error = refusal(SsdArray::load(healthy, Options::default(), &single[..]));
    assert_eq!(error, "it is the state of a single SSD, and this device is an array; give the device file of the SSD");
}

#[test]
fn only_an_idle_array_can_be_saved() {
    let mut array = steady(&small(RAID5, &["member.buffer.capacity=128KiB"]), Options::default());
    let error = |array: &SsdArray| refusal(array.save(&state(), Vec::new()));
    array.submit(Time::ZERO, Request::new(Time::ZERO, Operation::Write, 0, 8));
    assert!(error(&array).contains("cannot save the array: 1 requests have not completed"));
    drain(&mut array);
    let text = error(&array);
    assert!(text.contains("member 0: cannot save the device: the buffer holds dirty data; send a flush"), "{text}");
    let verifying = Options { verify: true, ..Options::default() };
    assert!(error(&SsdArray::new(small(RAID5, &[]), verifying).unwrap()).contains("cannot be saved"));
}

#[test]
fn damage_is_detected() {
    let config = small(RAID5, &[]);
    let bytes = saved(&steady(&config, Options::default()));
    let load = |bytes: &[u8]| SsdArray::load(config.clone(), Options::default(), bytes).map(|(array, _)| array);
    for length in (0..bytes.len()).step_by(bytes.len() / 150 + 1) {
        assert!(load(&bytes[..length]).is_err(), "{length} bytes of {}", bytes.len());
    }
    // The file ends between two members.
    let head = ArrayHead::read(&mut &bytes[..]).unwrap();
    let starts: Vec<usize> = (0..bytes.len() - 8).filter(|&at| bytes[at..].starts_with(b"FGSTATE\n")).collect();
    assert_eq!(starts.len(), 4);
    assert_eq!(refusal(load(&bytes[..starts[2]])), "it is damaged: it ends in the middle of `member 2`");
    let error = refusal(head.inspect_members(&body(&bytes)[..starts[2] - starts[0]]));
    assert_eq!(error, "it is damaged: it ends in the middle of `member 2`");
    let error = refusal(load(&[&bytes[..], b"more"].concat()));
    assert_eq!(error, "it is damaged: unexpected bytes in `the end`");
    let mut other_version = bytes.clone();
    other_version[8] += 1;
    assert!(refusal(load(&other_version)).contains("unsupported version"));
    let mut rng = Rng::new(1, "damage");
    for _ in 0..200 {
        let mut other = bytes.clone();
        let at = rng.below(bytes.len() as u64) as usize;
        other[at] ^= 1 << rng.below(8);
        if let Ok(array) = load(&other) {
            assert!(saved(&array) == bytes, "a flip at {at} gives another array");
        }
    }
}
