//! Tests that one Ctrl-C or SIGTERM ends every wait of the real program.
#![cfg(all(unix, feature = "live"))]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::common::{self, Bench, stderr};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

#[expect(clippy::disallowed_methods, reason = "waits for another process")]
fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}

/// Process that is killed if the test fails.
struct Running(Option<Child>);

impl Running {
    fn start(bench: &Bench, arguments: &[&str], stdin: Stdio) -> Running {
        let mut command = bench.command(arguments);
        Running(Some(command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
    }

    /// Waits until the process handles signals, which is when its thread for signals exists.
    fn listens(self) -> Running {
        let tasks = format!("/proc/{}/task", self.0.as_ref().unwrap().id());
        for _ in 0..600 {
            let all = fs::read_dir(&tasks).into_iter().flatten().flatten();
            let names = all.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
            if names.into_iter().any(|name| name.trim() == "signals") {
                return self;
            }
            pause();
        }
        panic!("the process does not handle signals");
    }

    /// Reads standard error until it contains these words, for at most ten seconds, and returns the text.
    fn says(&mut self, words: &str) -> String {
        let stream = self.0.as_mut().unwrap().stderr.as_mut().unwrap();
        let mut said = Vec::new();
        let mut byte = [0];
        let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
        while !String::from_utf8_lossy(&said).contains(words) {
            let ready = poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&patience)).unwrap();
            assert_eq!(ready, 1, "it did not print `{words}`: {}", String::from_utf8_lossy(&said));
            assert_eq!(stream.read(&mut byte).unwrap(), 1, "the process ended: {}", String::from_utf8_lossy(&said));
            said.push(byte[0]);
        }
        String::from_utf8(said).unwrap()
    }

    /// Sends one signal, waits up to ten seconds for the end of the process, and returns its output.
    fn end(self, signal: Signal) -> Output {
        self.end_within(signal, 10)
    }

    /// Sends one signal, waits up to `seconds` for the end of the process, and returns its output.
    fn end_within(mut self, signal: Signal, seconds: u32) -> Output {
        let mut child = self.0.take().unwrap();
        pause();
        pause();
        kill_process(Pid::from_child(&child), signal).unwrap();
        for _ in 0..20 * seconds {
            if child.try_wait().unwrap().is_some() {
                return child.wait_with_output().unwrap();
            }
            pause();
        }
        self.0 = Some(child);
        panic!("one signal did not end the process");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|child| drop(child.kill()));
    }
}

fn pipe(bench: &Bench) {
    assert!(Command::new("mkfifo").arg(bench.path("pipe")).status().unwrap().success());
}

/// Pipes without a writer, in all places where a trace, a state or standard input is read.
#[test]
fn waiting_for_input_ends_with_the_first_signal() {
    let bench = Bench::calling(&[], &[("device.toml", common::DEVICE)]);
    pipe(&bench);
    let job = "rw=read number_ios=9";
    let cases: &[&[&str]] = &[
        &["run", "device.toml", "pipe"],
        &["run", "device.toml", "read_iolog=pipe"],
        &["run", "device.toml", "-"],
        &["run", "device.toml", "pipe", "trace=t.spc"],
        &["run", "device.toml", job, "--precondition", "pipe"],
        &["run", "device.toml", job, "--load-state", "pipe", "--out", "result"],
        &["serve", "device.toml", "--no-delay", "--precondition", "pipe"],
        &["trace", "info", "pipe"],
        &["trace", "info", "-"],
        &["trace", "synth", "pipe"],
    ];
    for (index, arguments) in cases.iter().enumerate() {
        let (signal, status) = if index % 2 == 0 { (Signal::INT, 130) } else { (Signal::TERM, 143) };
        let (reader, _writer) = std::io::pipe().unwrap();
        let output = Running::start(&bench, arguments, Stdio::from(reader)).listens().end(signal);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("\ninterrupted: "), "{arguments:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

/// Pipes without a reader, and one whose reader does not read, in all places where a file is written.
#[test]
fn waiting_for_a_reader_ends_with_the_first_signal() {
    let bench = Bench::calling(&[], &[("device.toml", common::DEVICE)]);
    let make = |name: &str| assert!(Command::new("mkfifo").arg(bench.path(name)).status().unwrap().success());
    ["pipe", "pipe.json", "silent"].into_iter().for_each(make);
    fs::create_dir(bench.path("result")).unwrap();
    make("result/series.parquet");
    // Linux opens a pipe for reading and writing without waiting.
    let mut reader = File::options().read(true).write(true).open(bench.path("silent")).unwrap();
    let job = "rw=randread number_ios=100k";
    let cases: &[(&[&str], bool)] = &[
        (&["run", "device.toml", "rw=read number_ios=9 write_iolog=pipe"], true),
        (&["run", "device.toml", &format!("{job} write_iolog=silent")], false),
        (&["run", "device.toml", job, "--save-state", "pipe"], true),
        (&["run", "device.toml", job, "--out", "result"], true),
        (&["serve", "device.toml", "--no-delay", "--precondition", "none", "--record", "pipe"], true),
        (&["trace", "synth", "--moments", "financial1", "--requests", "1000", "--out", "pipe.json"], true),
    ];
    for (index, (arguments, waits)) in cases.iter().enumerate() {
        let (signal, status) = if index % 2 == 0 { (Signal::INT, 130) } else { (Signal::TERM, 143) };
        let mut running = Running::start(&bench, arguments, Stdio::null()).listens();
        let before = if *waits {
            running.says("waiting for a program that reads the pipe")
        } else {
            // Data in the pipe shows that the run has started. The run then fills the pipe and waits.
            reader.read(&mut [0]).map(|_| String::new()).unwrap()
        };
        let output = running.end(signal);
        let said = before + &stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains("\ninterrupted: "), "{arguments:?}: {said}");
    }
}

/// A device file or a token can come from a pipe, too. The signal ends the process directly, because nothing needs an
/// orderly end yet.
#[test]
fn waiting_for_a_device_or_a_token_ends_with_the_first_signal() {
    use std::os::unix::process::ExitStatusExt;
    let bench = Bench::calling(&[], &[]);
    pipe(&bench);
    for arguments in [
        &["run", "./pipe", "rw=read number_ios=9"][..],
        &["serve", "./pipe", "--no-delay"],
        &["serve", "tiny", "--dashboard", "0", "--dashboard-token-file", "pipe"],
    ] {
        let running = Running::start(&bench, arguments, Stdio::null());
        (0..10).for_each(|_| pause());
        assert_eq!(running.end(Signal::TERM).status.signal(), Some(15), "{arguments:?}");
    }
}

/// The run waits for a reader that opens the pipe late, and writes the whole log to it.
#[test]
fn a_pipe_with_a_late_reader_is_written_to_its_end() {
    let bench = Bench::with_device();
    pipe(&bench);
    let mut running = Running::start(&bench, &["rw=read number_ios=5000 write_iolog=pipe"], Stdio::null());
    running.says("waiting for a program that reads the pipe pipe; Ctrl-C ends the wait");
    let log = fs::read_to_string(bench.path("pipe")).unwrap();
    assert_eq!(log.lines().filter(|line| line.contains(" read ")).count(), 5000);
    assert!(log.ends_with(" device close\n"), "{log}");
    let output = running.0.take().unwrap().wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

/// If a run is ended while it waits for the rest of its trace, its result covers the requests served so far.
#[test]
fn a_run_that_waits_for_its_trace_has_a_result() {
    let bench = Bench::with_device();
    pipe(&bench);
    let arguments = ["pipe", "--devices", "merge", "--format", "spc", "--json", "--out", "result"];
    let running = Running::start(&bench, &arguments, Stdio::null()).listens();
    let mut writer = File::options().write(true).open(bench.path("pipe")).unwrap();
    for second in 0..20_000 {
        writeln!(writer, "0,{},4096,R,{second}.0", 8 * (second % 1000)).unwrap();
    }
    let output = running.end(Signal::TERM);
    assert_eq!(output.status.code(), Some(143), "{}", stderr(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["complete"], false);
    let served = summary["requests"]["all"]["count"].as_u64().unwrap();
    assert!((10_000..20_000).contains(&served), "{served}");
    assert_eq!(fs::read(bench.path("result/summary.json")).unwrap(), output.stdout);
}

/// Requests of 64 MiB and preconditioning take long.
#[test]
fn long_work_ends_with_the_first_signal() {
    let bench = Bench::calling(&["run", "hu2011"], &[]);
    let jobs: &[&[&str]] = &[
        &["rw=read bs=64m number_ios=1000000 iodepth=4"],
        &["rw=trim bs=64m number_ios=1000000", "--set", "durability.trim_journal=true"],
        &["rw=read number_ios=1", "--precondition", "steady"],
        &["rw=read number_ios=1", "--precondition", "rw=randwrite bs=64m norandommap=1 io_size=100t"],
        &["rw=randread number_ios=100m", "--set", "gc.victim.d-choices.d=64"],
    ];
    for job in jobs {
        let output = Running::start(&bench, job, Stdio::null()).listens().end(Signal::INT);
        assert_eq!(output.status.code(), Some(130), "{job:?}: {}", stderr(&output));
    }
}

/// The outstanding requests take longer than the deadline, on a single SSD and on an array.
#[test]
fn a_run_ends_in_time_with_the_results_so_far() {
    let array = "[array]\nlevel = 0\ndevice = \"hu2011\"\ncount = 2\nqueue_depth = 4096\n";
    let bench = Bench::calling(&["run"], &[("array.toml", array)]);
    let job = "rw=randread bs=4k iodepth=1 number_ios=2000 ; rw=write bs=64m iodepth=2000 number_ios=1000000";
    let jobs: &[&[&str]] = &[
        &["hu2011", job, "--set", "host.queue_depth=4096"],
        &["array.toml", job, "--set", "member.host.queue_depth=4096"],
    ];
    for job in jobs {
        let arguments = [job, &["--precondition", "none", "--out", "result"][..]].concat();
        let running = Running::start(&bench, &arguments, Stdio::null()).listens();
        (0..20).for_each(|_| pause());
        let output = running.end_within(Signal::TERM, 5);
        assert_eq!(output.status.code(), Some(143), "{job:?}: {}", stderr(&output));
        let summary: Value = serde_json::from_slice(&fs::read(bench.path("result/summary.json")).unwrap()).unwrap();
        assert_eq!(summary["complete"], false, "{job:?}");
        let warnings = summary["warnings"].to_string();
        assert!(warnings.contains("requests were outstanding when the run had to end"), "{job:?}: {warnings}");
    }
}

/// The seeds that were finished before the signal are shown, and marked as a part.
#[test]
fn a_series_that_is_ended_shows_the_finished_seeds() {
    let bench = Bench::with_device();
    let arguments = ["rw=randread number_ios=5000", "--seeds", "1000"];
    let mut running = Running::start(&bench, &arguments, Stdio::null()).listens();
    running.says("seed 3, 3 of 1000");
    let output = running.end_within(Signal::INT, 5);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("INTERRUPTED: only ") && text.contains(" of 1000 seeds"), "{text}");
}

#[test]
fn a_pipe_that_must_be_read_again_is_refused_before_the_run() {
    let bench = Bench::with_device();
    pipe(&bench);
    let job = "rw=read number_ios=9";
    for arguments in [
        &["pipe", "--seeds", "2", "--out", "result"][..],
        &["trace=pipe devices=merge", "--seeds", "2", "--out", "result"],
        &[job, "--precondition", "pipe", "--seeds", "2", "--out", "result"],
        &["pipe", "pipe"],
        &["pipe", "--prewrite", "even", "--precondition", "none"],
    ] {
        let said = bench.refused(arguments);
        assert!(said.contains("pipe: must be read") && said.contains("write it into a file first"), "{said}");
    }
    // The device file is read only once, although it is evaluated with and without the overrides.
    let script = "cat device.toml > pipe & \"$0\" run ./pipe 'rw=read number_ios=9' --set gc.victim=fifo --json";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_floatgate")]).current_dir(bench.path(""));
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}
