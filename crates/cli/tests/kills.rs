//! Kills and power cuts of live devices whose parts work together: gangs, pools of planes, maps that survive.

use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::image::{Live, client, cut_of, power_cut, times};
use crate::truth::Truth;

/// Capacity of the devices in bytes.
const BYTES: u64 = 1_884_160;

/// Devices, with the bytes of a mapping unit.
const DEVICES: [(&[&str], usize); 12] = [
    (&["gang={ width = 2, mode = \"serial\" }", "nand.concurrency=chip", "geometry.chips_per_package=2"], 4096),
    (&["gang={ width = 2, mode = \"interleaved\" }"], 4096),
    (&["gang={ width = 2, mode = \"asynchronous\" }", "nand.concurrency=chip", "geometry.chips_per_package=2"], 4096),
    (
        &[
            "gang={ width = 2, mode = \"asynchronous\" }",
            "nand.concurrency=chip",
            "geometry.chips_per_package=2",
            "buffer.capacity=128KiB",
        ],
        4096,
    ),
    // The gang is a virtual package, whose units have two parts.
    (&["gang={ width = 2, mode = \"synchronous\" }"], 8192),
    (&["allocation={ dynamic = { scope = \"channel\" } }", "gc.scope=pool", "gc.destination=pool"], 4096),
    (&["allocation={ dynamic = { scope = \"die\" } }", "gc.scope=pool", "buffer.capacity=128KiB"], 4096),
    (&["allocation={ dynamic = { scope = \"device\", active_blocks = 4 } }", "gc.scope=pool"], 4096),
    (&["durability.map=non-volatile"], 4096),
    (&["durability.map=saved"], 4096),
    (&["durability.map=saved", "buffer.capacity=128KiB", "buffer.power_loss_protection=true"], 4096),
    // Without faults, a block that is merged has no reserve.
    (&["mapping.scheme=block"], 4096),
];

/// Kills a server or cuts the power of its device, in turn, while a client writes.
fn assert_survives(options: &[&str], unit: usize, rounds: u64, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = vec!["--image", "ssd.img", "--no-delay", "--json"];
    arguments.extend(options.iter().flat_map(|option| ["--set", option]));
    let mut truth = Truth::new(BYTES, unit, seed);
    truth.protected = options.iter().any(|option| option.contains("power_loss_protection"));
    let mut live = Live::new(folder.path(), &arguments);
    assert!(live.said.contains("Ctrl-C ends"), "{options:?}: {}", live.said);
    let mut cuts = 0;
    for round in 0..rounds {
        let mut one = client(&folder);
        assert_eq!(one.bytes(), BYTES, "{options:?}");
        truth.check(&mut one);
        if round % 2 == 0 {
            let mut killer = live.kill_in(truth.luck.below(100));
            while truth.step(&mut one).is_ok() {}
            live.killed(&mut killer);
            live = Live::new(folder.path(), &arguments);
            assert!(live.said.contains("recovered after a power cut"), "{options:?}: {}", live.said);
            cuts = 0;
        } else {
            let cutter = power_cut(&folder);
            assert!((0..100_000).any(|_| truth.step(&mut one).is_err()), "{options:?}: the connection did not end");
            assert!(cut_of(cutter).contains("recovered after a power cut"), "{options:?}");
            cuts += 1;
        }
    }
    truth.check(&mut client(&folder));
    let output = live.end(Signal::INT);
    assert!(output.status.success(), "{options:?}: {}", live.said);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let image = &result["live"]["image"];
    assert_eq!((&image["power_cuts"], &image["unreadable"]), (&cuts.into(), &0.into()), "{options:?}");
    let live = Live::new(folder.path(), &arguments);
    assert!(live.said.contains("recovered after a shutdown"), "{options:?}: {}", live.said);
    truth.check_newest(&mut client(&folder));
}

#[test]
fn gangs_pools_and_surviving_maps_lose_nothing() {
    for (seed, (options, unit)) in (60..).zip(DEVICES) {
        assert_survives(options, unit, times(4), seed);
    }
}

/// A clock that jumps ahead, as after a pause of the process or its virtual machine, makes replies late, and nothing
/// else. (While the machine is suspended, the monotonic clock stands still, and so does simulated time.)
#[test]
fn a_server_that_was_paused_continues() {
    let folder = tempfile::tempdir().unwrap();
    // Requests are in flight nearly all the time, also if the client has to wait for a processor.
    let slow = "host.link_latency=2ms";
    let arguments = ["--image", "ssd.img", "--json", "--set", "buffer.capacity=128KiB", "--set", slow];
    let mut live = Live::new(folder.path(), &arguments);
    let mut truth = Truth::new(BYTES, 4096, 80);
    let mut one = client(&folder);
    let id = live.child.as_ref().unwrap().id();
    // A request that arrives during a pause is not late, so one pause may have no late reply.
    let script = format!("for pause in 1 2 3 4; do sleep 0.2; kill -STOP {id}; sleep 1; kill -CONT {id}; done");
    let mut pause = Command::new("sh").args(["-c", &script]).spawn().unwrap();
    while pause.try_wait().unwrap().is_none() {
        truth.step(&mut one).unwrap();
    }
    (0..20).for_each(|_| truth.step(&mut one).unwrap());
    truth.check_newest(&mut one);
    let output = live.end(Signal::INT);
    assert!(output.status.success(), "{}", live.said);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lateness = &result["live"]["lateness_us"];
    assert!(lateness["max"].as_f64().unwrap() > 900_000.0, "the replies of the pause are late: {lateness}");
    assert!(lateness["p50"].as_f64().unwrap() < 100_000.0, "other replies are not: {lateness}");
    assert_eq!(result["live"]["payload_errors"], 0);
    let live = Live::new(folder.path(), &arguments);
    assert!(live.said.contains("recovered after a shutdown"), "{}", live.said);
    truth.check_newest(&mut client(&folder));
}
