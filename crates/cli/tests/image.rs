//! Tests of `floatgate serve --image` with the real program: kills, restarts, and errors about invalid images.
#![cfg(feature = "live")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use floatgate_serve::Address;
use floatgate_serve::client::Client;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::truth::Truth;

/// Device of 8 planes with 8 blocks of 16 units: 4 MiB of flash, 1.8 MiB for the host.
const SMALL: [&str; 7] =
    ["tiny", "--set", "geometry.blocks=8", "--set", "geometry.pages=16", "--set", "capacity={ spare = 0.55 }"];

/// Running server.
pub struct Live {
    pub child: Option<Child>,
    errors: BufReader<std::process::ChildStderr>,
    /// Text that the server printed until it was ready or ended.
    pub said: String,
}

impl Live {
    pub fn new(folder: &Path, arguments: &[&str]) -> Live {
        let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
        command.current_dir(folder).arg("serve").args(SMALL).args(["--nbd", "unix:ssd.sock"]).args(arguments);
        Live::of(command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Waits until a started server is ready or has ended.
    fn of(mut child: Child) -> Live {
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("Ctrl-C ends") && errors.read_line(&mut said).unwrap() > 0 {}
        Live { child: Some(child), errors, said }
    }

    /// Kills the server after a number of milliseconds, without waiting for that.
    pub fn kill_in(&self, ms: u64) -> Child {
        let script = format!("sleep 0.{ms:03}; kill -9 {}", self.child.as_ref().unwrap().id());
        Command::new("sh").args(["-c", &script]).spawn().unwrap()
    }

    /// Waits for the end of a server that is killed, and checks that it did not end in another way.
    pub fn killed(&mut self, killer: &mut Child) {
        assert!(killer.wait().unwrap().success());
        let status = self.child.take().unwrap().wait().unwrap();
        while self.errors.read_line(&mut self.said).unwrap() > 0 {}
        assert_eq!(status.signal(), Some(9), "the server ended by itself: {status}: {}", self.said);
    }

    pub fn end(&mut self, signal: Signal) -> Output {
        let child = self.child.take().unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        while self.errors.read_line(&mut self.said).unwrap() > 0 {}
        output
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn client(folder: &TempDir) -> Client {
    Client::connect(&Address::Unix(folder.path().join("ssd.sock"))).unwrap()
}

pub fn times(usual: u64) -> u64 {
    std::env::var("FLOATGATE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Kills a server repeatedly during writes. Returns `true` if a recovery skipped blocks thanks to a checkpoint.
fn kill_often(arguments: &[&str], protected: bool, kills: u64, seed: u64) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [&["--image", "ssd.img", "--no-delay"], arguments].concat();
    let mut truth = Truth::new(1_884_160, 4096, seed);
    truth.protected = protected;
    let mut spared = false;
    for round in 0..kills {
        let mut live = Live::new(folder.path(), &arguments);
        assert_eq!(live.said.contains("recovered after a power cut"), round > 0, "{}", live.said);
        spared |= live.said.contains("blocks not read");
        let mut client = client(&folder);
        assert_eq!(client.bytes(), 1_884_160);
        truth.check(&mut client);
        let mut killer = live.kill_in(truth.luck.below(100));
        while truth.step(&mut client).is_ok() {}
        live.killed(&mut killer);
    }
    let mut live = Live::new(folder.path(), &arguments);
    truth.check(&mut client(&folder));
    let output = live.end(Signal::INT);
    assert!(output.status.success(), "{}: {}", output.status, live.said);
    let live = Live::new(folder.path(), &arguments);
    assert!(live.said.contains("recovered after a shutdown"), "{}", live.said);
    truth.check_newest(&mut client(&folder));
    spared
}

#[test]
fn a_kill_at_any_moment_is_a_power_cut() {
    kill_often(&[], false, times(16), 1);
    kill_often(&["--set", "buffer.capacity=128KiB"], false, times(8), 2);
    let protected = ["--set", "buffer.capacity=128KiB", "--set", "buffer.power_loss_protection=true"];
    kill_often(&protected, true, times(8), 3);
    for (seed, scheme) in
        (20..).zip(["\"block\"", "{ bast = { logs = 4 } }", "{ fast = {} }", "{ last = { logs = { hot = 2 } } }"])
    {
        let scheme = format!("mapping.scheme={scheme}");
        kill_often(&["--set", &scheme, "--set", "durability.trim_journal=true"], false, times(6), seed);
    }
    // On a slow or busy machine, the server may be killed before it has written a checkpoint, so several seeds are
    // tried.
    let checkpoint = ["--set", "durability.checkpoint=16KiB"];
    let is_used = (4..14).any(|seed| kill_often(&checkpoint, false, times(8), seed));
    assert!(is_used, "the checkpoint is never used");
}

/// A kill is a power cut of all members of an array, and so is `ctl power-cut`.
#[test]
fn killed_arrays_recover() {
    for (level, members, row) in [(0, 3, 8), (5, 4, 48)] {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "[array]\nlevel = {level}\nstripe = \"8KiB\"\ndevice = \"tiny\"\ncount = {members}\n[member]\n\
             geometry.blocks = 8\ngeometry.pages = 16\ncapacity.spare = 0.55\nbuffer.capacity = \"128KiB\"\n"
        );
        fs::write(folder.path().join("raid.toml"), text).unwrap();
        let start = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
            command.current_dir(folder.path()).args(["serve", "raid.toml", "--nbd", "unix:ssd.sock", "--no-delay"]);
            command.args(["--image", "images", "--json"]);
            Live::of(command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
        };
        let mut live = start();
        let mut truth = Truth::new(client(&folder).bytes(), 4096, level + 40);
        truth.trims = row;
        // With parity, a request that is not aligned is written in parts, which also divide mapping units.
        truth.only_whole = level == 5;
        for _ in 0..times(6) {
            let mut client = client(&folder);
            let mut killer = live.kill_in(truth.luck.below(150));
            while truth.step(&mut client).is_ok() {}
            live.killed(&mut killer);
            live = start();
            assert!(live.said.contains("recovered after a power cut"), "{}", live.said);
            truth.check(&mut self::client(&folder));
        }
        (0..20).for_each(|_| truth.step(&mut client(&folder)).unwrap());
        let text = cut_of(power_cut(&folder));
        assert!(text.contains("the power was cut"), "{text}");
        truth.check(&mut client(&folder));
        let output = live.end(Signal::INT);
        assert!(output.status.success(), "{}: {}", output.status, live.said);
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(summary["members"].as_array().unwrap().len(), members);
        assert_eq!(
            (&summary["live"]["image"]["power_cuts"], &summary["array"]["state"]),
            (&1.into(), &"optimal".into())
        );
        let live = start();
        assert!(live.said.contains("recovered after a shutdown"), "{}", live.said);
        truth.check_newest(&mut client(&folder));
    }
}

/// Starts `floatgate ctl power-cut` in this directory.
pub fn power_cut(folder: &TempDir) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    command.current_dir(folder.path()).args(["ctl", "--socket", "ssd.ctl", "power-cut"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Returns the output of [`power_cut`], which must succeed.
pub fn cut_of(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_requested_power_cut_loses_data_that_was_not_flushed() {
    for image in ["memory", "ssd.img"] {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["--image", image, "--no-delay", "--json", "--set", "buffer.capacity=128KiB"];
        let mut live = Live::new(folder.path(), &arguments);
        let mut truth = Truth::new(1_884_160, 4096, 5);
        let cuts = times(4);
        for _ in 0..cuts {
            let (mut one, mut other) = (client(&folder), client(&folder));
            truth.check(&mut one);
            let cutter = power_cut(&folder);
            assert!((0..100_000).any(|_| truth.step(&mut one).is_err()), "{image}: its connection did not end");
            assert!(other.flush().is_err(), "{image}: the connection of the idle client did not end");
            let said = cut_of(cutter);
            assert!(said.starts_with("the power was cut: ") && said.contains("recovered after a power cut"), "{said}");
        }
        // Time stops without requests because of --no-delay, so the buffer does not write back the unit.
        let mut client = client(&folder);
        truth.check(&mut client);
        client.flush().unwrap();
        client.write(0, &[7; 4096], false).unwrap();
        let said = cut_of(power_cut(&folder));
        assert!(said.starts_with("the power was cut: 0 requests, 1 units and 0 trims were"), "{said}");
        truth.check_newest(&mut self::client(&folder));

        let output = live.end(Signal::INT);
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let kept = &result["live"]["image"];
        assert_eq!((&kept["power_cuts"], &kept["recovery"]["after_shutdown"]), (&(cuts + 1).into(), &false.into()));
        assert_eq!((&kept["complete"], &kept["unreadable"]), (&true.into(), &0.into()), "{}", live.said);
        if image != "memory" {
            let live = Live::new(folder.path(), &arguments);
            assert!(live.said.contains("recovered after a shutdown"), "{}", live.said);
            truth.check_newest(&mut self::client(&folder));
        }
    }
}

#[test]
fn a_shutdown_keeps_all_data_and_the_result_reports_it() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--image", "ssd.img", "--json", "--set", "buffer.capacity=128KiB", "--record", "live.csv"];
    let mut live = Live::new(folder.path(), &arguments);
    client(&folder).write(8192, &[7; 4096], false).unwrap();
    let output = live.end(Signal::TERM);
    assert!(output.status.success(), "{}", live.said);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let image = &result["live"]["image"];
    assert_eq!((&image["complete"], &image["recovery"]), (&true.into(), &Value::Null));
    assert!(image["bytes"].as_u64().unwrap() >= 8192);
    assert_eq!(result["requests"]["flush"]["count"], 1, "the shutdown flushes like a host");

    let mut live = Live::new(folder.path(), &arguments[..5]);
    assert!(live.said.contains("recovered after a shutdown"), "{}", live.said);
    let mut read = [0; 4096];
    client(&folder).read(8192, &mut read).unwrap();
    assert_eq!(read, [7; 4096]);
    let elsewhere = tempfile::tempdir().unwrap();
    let image = folder.path().join("ssd.img");
    let second = Live::new(elsewhere.path(), &["--image", image.to_str().unwrap()]);
    assert!(second.said.contains("the image is in use by another server"), "{}", second.said);
    let result: Value = serde_json::from_slice(&live.end(Signal::INT).stdout).unwrap();
    let recovery = &result["live"]["image"]["recovery"];
    assert_eq!((&recovery["after_shutdown"], &recovery["units_mapped"]), (&true.into(), &1.into()));
    assert!(recovery["simulated_us"].as_f64().unwrap() > 0.0 && recovery["real_us"].as_f64().unwrap() > 0.0);
}

#[test]
fn invalid_images_and_images_of_other_devices_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine"), "mine").unwrap();
    let refused = |arguments: &[&str]| {
        let mut live = Live::new(folder.path(), arguments);
        let status = live.child.take().unwrap().wait().unwrap();
        assert_eq!(status.code(), Some(2), "{}", live.said);
        live.said.clone()
    };
    assert!(refused(&["--image", "mine"]).contains("--image mine: not a flash image"));
    assert_eq!(fs::read(folder.path().join("mine")).unwrap(), b"mine");
    Live::new(folder.path(), &["--image", "ssd.img"]).end(Signal::INT);
    let other = refused(&["--image", "ssd.img", "--set", "geometry.channels=4"]);
    assert!(other.contains("`geometry.channels` is 2 in the image and 4 here"), "{other}");
    let twice = refused(&["--image", "ssd.img", "--precondition", "fill"]);
    assert!(twice.contains("--precondition is for a new device"), "{twice}");
    assert!(refused(&["--image-sync"]).contains("--image"));
    let file = fs::OpenOptions::new().write(true).open(folder.path().join("ssd.img")).unwrap();
    file.set_len(2_000_000).unwrap();
    assert!(refused(&["--image", "ssd.img"]).contains("the file is truncated"));
}

/// fio verifies its patterns under garbage collection. Flash is so slow that the rounds take minutes of simulated time:
/// two in a test, hours in `make soak`.
#[test]
fn fio_verifies_its_data_under_garbage_collection() {
    let folder = tempfile::tempdir().unwrap();
    let slow = ["--set", "nand.program=100ms", "--set", "nand.erase=300ms"];
    let mut live = Live::new(folder.path(), &[&["--image", "ssd.img", "--no-delay", "--json"], &slow[..]].concat());
    let uri = format!("--uri=nbd+unix:///?socket={}", folder.path().join("ssd.sock").display());
    let loops = format!("--loops={}", times(8));
    let job = ["--name=verify", "--ioengine=nbd", &uri, "--thread", "--rw=randwrite", "--bsrange=512-32k"];
    let rest = ["--iodepth=16", "--size=1840k", "--verify=crc32c", "--verify_fatal=1", &loops, "--minimal"];
    let output = Command::new("fio")
        .current_dir(folder.path())
        .args(job)
        .args(rest)
        .output()
        .expect("fio: see scripts/prerequisites.sh");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&live.end(Signal::INT).stdout).unwrap();
    assert!(result["flash"]["blocks_erased"].as_u64().unwrap() > 10, "too little garbage collection");
    let seconds = result["measured_s"].as_f64().unwrap();
    assert!(seconds > 15.0 * times(8) as f64, "{seconds} s of aging");
    assert_eq!(result["live"]["image"]["unreadable"], 0);
}

/// The state of the image is saved next to the recording, so that a replay starts from the same state.
#[test]
fn a_recording_on_an_image_replays_from_the_state_of_the_image() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--image", "ssd.img", "--no-delay", "--json"];
    let mut truth = Truth::new(1_884_160, 4096, 1);
    let mut work = |live: &mut Live, signal| {
        let mut client = client(&folder);
        truth.check(&mut client);
        (0..600).for_each(|_| truth.step(&mut client).unwrap());
        live.end(signal)
    };
    work(&mut Live::new(folder.path(), &arguments), Signal::KILL);
    let record = [&arguments[..], &["--record", "more.csv"]].concat();
    let output = work(&mut Live::new(folder.path(), &record), Signal::INT);
    let kept: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(kept["flash"]["blocks_erased"].as_u64().unwrap() > 0, "garbage collection must reclaim blocks");
    let words = kept["arguments"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let words: Vec<&str> = words.collect();
    assert!(words.contains(&"more.csv.fgstate"), "{words:?}");
    let mut replay = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    let output = replay.args(&words).arg("--json").current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let replayed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(replayed["workload"]["digest"], kept["workload"]["digest"]);
    for what in ["requests", "flash", "gc"] {
        assert_eq!(replayed[what], kept[what], "{what}");
    }
}

/// The text names what differs from the built-in device. Nothing was given with `--set`.
#[test]
fn the_result_names_the_parameters_that_an_image_changes() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    command.current_dir(folder.path()).args(["serve", "tiny", "--image", "memory", "--no-delay"]);
    let child = command.args(["--nbd", "unix:ssd.sock"]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut live = Live::of(child);
    client(&folder).write(0, &[7; 4096], false).unwrap();
    let text = String::from_utf8(live.end(Signal::INT).stdout).unwrap();
    let device = text.lines().next().unwrap();
    assert!(device.starts_with("device         tiny (changed: ") && !text.contains("--set"), "{text}");
}

/// A few writes to an empty device of a terabyte access few pages of its tables. With huge pages, each access would
/// take
/// 2 MiB.
#[test]
fn the_first_writes_to_a_large_device_take_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    command.current_dir(folder.path()).args(["serve", "bench-1t", "--image", "memory", "--no-delay", "--json"]);
    let child = command.args(["--nbd", "unix:ssd.sock"]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut live = Live::of(child);
    client(&folder).write(0, &vec![7; 2 << 20], false).unwrap();
    let result: Value = serde_json::from_slice(&live.end(Signal::INT).stdout).unwrap();
    let peak = result["run"]["peak_rss_bytes"].as_u64().unwrap();
    assert!(peak < 512 << 20, "{peak} bytes; 2.1 GiB with huge pages");
}
