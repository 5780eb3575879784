//! Tests of `floatgate serve` with the real program and common clients.
//!
//! nbdinfo, nbdcopy, nbdsh, qemu-io, qemu-img, qemu-system-x86_64 and fio must be installed.
//! `scripts/prerequisites.sh test` checks that.
#![cfg(feature = "live")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use floatgate_report::timeline::read_events;
use floatgate_serve::client::Client as NbdClient;
use floatgate_serve::nbd::wire::command;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::live::{Live, floatgate};
use crate::common::partial_of;

#[test]
fn nbd_clients_of_other_projects_work() {
    let live = Live::new(&["tiny", "--precondition", "none", "--no-delay"]);
    let uri = live.uri();
    assert!(live.welcome.contains(&format!("nbdinfo '{uri}'")), "{}", live.welcome);
    let info: Value = serde_json::from_str(&live.client("nbdinfo", &["--json", "--list", &uri])).unwrap();
    let export = &info["exports"][0];
    assert_eq!((&export["export-name"], &export["export-size"]), (&"tiny".into(), &53_686_272.into()));
    for able in ["can_flush", "can_fua", "can_trim", "can_zero", "can_fast_zero", "can_multi_conn", "can_df"] {
        assert_eq!(export[able], true, "{able}");
    }
    assert_eq!((&export["block_size_minimum"], &export["block_size_preferred"]), (&1.into(), &4096.into()));

    let image: Vec<u8> = (0..53_686_272u32).map(|at| if at < 8 << 20 { (at / 513) as u8 } else { 0 }).collect();
    fs::write(live.path("in.img"), &image).unwrap();
    live.client("nbdcopy", &["in.img", &uri]);
    live.client("nbdcopy", &[&uri, "out.img"]);
    assert!(fs::read(live.path("out.img")).unwrap() == image);
    live.client("qemu-img", &["compare", "-f", "raw", "-F", "raw", "in.img", &uri]);

    let commands = [
        "-c",
        "write -P 9 1M 64k",
        "-c",
        "discard 1M 8k",
        "-c",
        "write -z -u 1040k 8k",
        "-c",
        "write -f -P 7 1056k 512",
    ];
    let checks =
        ["-c", "read -P 0 1M 8k", "-c", "read -P 9 1032k 8k", "-c", "read -P 0 1040k 8k", "-c", "read -P 7 1056k 512"];
    let said =
        live.client("qemu-io", &[&["-f", "raw"], &commands[..], &["-c", "flush"], &checks[..], &[&uri]].concat());
    assert!(!said.contains("failed") && !said.contains("error"), "{said}");
    let map = live.client("nbdinfo", &["--map", &uri]);
    let holes: Vec<&str> = map.lines().filter(|line| line.contains("hole,zero")).collect();
    assert!(holes.iter().any(|line| line.split_whitespace().take(2).eq(["1048576", "8192"])), "{map}");
}

/// Python programs access the device through libnbd.
#[test]
fn all_commands_of_libnbd_work() {
    let mut live = Live::new(&["tiny", "--precondition", "none", "--no-delay", "--json", "--record", "live.csv"]);
    let script = "
data = bytes(range(1, 129)) * 128
start = 1 << 20
h.pwrite(data, start)
assert h.pread(len(data), start) == data
h.pwrite(b'now ' * 128, start + 512, nbd.CMD_FLAG_FUA)
h.trim(4096, start + 4096)
h.zero(4096, start + 8192)
h.zero(4096, start + 12288, nbd.CMD_FLAG_NO_HOLE)
h.flush()
assert h.pread(len(data), start) == data[:512] + b'now ' * 128 + data[1024:4096] + bytes(12288)

found = []
h.block_status(6 * 4096, start - 4096, lambda context, at, entries, error: found.append((context, at, entries)))
hole = nbd.STATE_HOLE | nbd.STATE_ZERO
wanted = [4096, hole, 4096, 0, 8192, hole, 4096, 0, 4096, hole]
assert found == [(nbd.CONTEXT_BASE_ALLOCATION, start - 4096, wanted)], found
try:
    h.pread(512, h.get_size())
    raise SystemExit('a read beyond the end succeeded')
except nbd.Error as error:
    assert error.errno == 'EINVAL', error
";
    // nbdsh needs the Python of the system, which need not be the first in PATH.
    let nbdsh = ["PATH=/usr/bin:/bin", "nbdsh", "--base-allocation", "--uri", &live.uri()];
    live.client("env", &[&nbdsh[..], &["-c", "h.set_strict_mode(0)", "-c", script, "-c", "h.shutdown()"]].concat());
    let result: Value = serde_json::from_slice(&live.end(Signal::INT).stdout).unwrap();
    let served = ["read", "write", "trim", "write_zeroes", "flush"].map(|kind| &result["requests"][kind]["count"]);
    assert_eq!(served, [2, 3, 1, 1, 1], "zeros that stay allocated must count as writes");
    let recorded = fs::read_to_string(live.path("live.csv")).unwrap();
    assert!(recorded.contains(",write,2048,32,0,") && recorded.contains(",write,2049,1,1,"), "FUA: {recorded}");
}

/// Clients that do not read their replies, or do not send the rest of a request, take a bounded amount of memory and do
/// not delay other clients.
#[test]
#[expect(clippy::disallowed_methods, reason = "clients of a server that runs by the clock")]
fn the_memory_of_stalled_clients_is_bounded() {
    const LONGEST: u32 = 32 << 20;
    let live = Live::new(&["tiny", "--precondition", "none", "--no-delay", "--memory", "256MiB"]);
    let address = format!("unix:{}", live.path("ssd.sock").display()).parse().unwrap();
    let client = || NbdClient::connect(&address).unwrap();
    let mut good = client();
    good.write(0, &[7; 4096], false).unwrap();
    let mut rude: Vec<NbdClient> = (0..40).map(|_| client()).collect();
    for client in &mut rude {
        client.ask(command::READ, 0, 0, LONGEST, &[]);
        client.ask(command::READ, 0, 0, LONGEST, &[]);
        client.send().unwrap();
    }
    let mut slow: Vec<NbdClient> = (0..20).map(|_| client()).collect();
    for client in &mut slow {
        client.ask(command::WRITE, 0, 0, LONGEST, &vec![1; LONGEST as usize / 2]);
    }
    // The server does not read from these clients, so their threads block until the sockets are closed.
    let sending = slow.into_iter().map(|mut client| std::thread::spawn(move || client.send()));
    let sending: Vec<_> = sending.collect();
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let start = Instant::now();
        let mut read = [0; 4096];
        good.read(0, &mut read).unwrap();
        assert_eq!(read, [7; 4096]);
        slowest = slowest.max(start.elapsed());
        std::thread::sleep(Duration::from_millis(50));
    }
    let most = live.peak_memory();
    assert!(most < 450 << 20, "{most} bytes");
    assert!(slowest < Duration::from_millis(500), "{slowest:?}");
    // The server disconnects stalled clients that hold the memory that another client waits for.
    let start = Instant::now();
    let mut all = vec![0; LONGEST as usize];
    good.read(0, &mut all).unwrap();
    assert!(start.elapsed() < Duration::from_secs(25), "{:?}", start.elapsed());
    drop(rude);
    drop(live);
    sending.into_iter().for_each(|thread| drop(thread.join()));
}

#[test]
fn clients_wait_while_the_device_is_filled() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("ssd.sock");
    let filling = |ios: &str| {
        let job = format!("rw=randwrite bs=4k number_ios={ios}");
        let arguments =
            ["serve", "tiny", "--no-delay", "--nbd", "unix:ssd.sock", "--dashboard", "--precondition", &job];
        let mut command = floatgate(&directory);
        let mut child = command.args(arguments).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        while !socket.exists() {
            assert!(child.try_wait().unwrap().is_none(), "the server ended");
        }
        child
    };
    let child = filling("300000");
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    let output = Command::new("nbdinfo").args(["--size", &uri]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "53686272");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());

    // This takes longer than any client waits.
    let child = filling("1000000000");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "a socket is left");
}

#[test]
fn fio_verifies_its_data() {
    let live = Live::new(&["tiny", "--speed", "10"]);
    let uri = format!("--uri={}", live.uri());
    let job = ["--name=verify", "--ioengine=nbd", &uri, "--thread", "--rw=randrw", "--bsrange=512-64k", "--iodepth=16"];
    live.client("fio", &[&job[..], &["--size=24m", "--verify=crc32c", "--verify_fatal=1", "--minimal"]].concat());
}

#[test]
fn a_signal_ends_the_server_with_a_result() {
    for signal in [Signal::TERM, Signal::INT] {
        let device = ["tiny", "--set", "gc.victim=fifo"];
        let options = ["--record", "live.csv.gz", "--out", "result", "--json", "--seed", "7"];
        let mut live = Live::new(&[&device[..], &options].concat());
        let uri = live.uri();
        live.client("qemu-io", &["-f", "raw", "-c", "write 0 1M", "-c", "read 64k 128k", "-c", "flush", &uri]);
        let output = live.end(signal);
        assert!(output.status.success(), "{:?}", output.status);
        assert!(!live.path("ssd.sock").exists());
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let kept: Value = serde_json::from_slice(&fs::read(live.path("result/summary.json")).unwrap()).unwrap();
        assert_eq!(printed, kept);
        assert!(live.path("result/report.html").exists());
        assert_eq!((&kept["workload"]["name"], &kept["live"]["pace"]), (&"live".into(), &"timed".into()));
        assert_eq!((&kept["requests"]["write"]["bytes"], &kept["complete"]), (&(1 << 20).into(), &true.into()));
        assert!(kept["live"]["lateness_us"]["p50"].as_f64().unwrap() < 1e6);

        // The result has the command that replays the recording.
        let replay = kept["arguments"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let output = floatgate(&live.directory).args(replay).arg("--json").output().unwrap();
        let replayed: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(replayed["workload"]["digest"], kept["workload"]["digest"]);
        for operation in ["read", "write", "flush"] {
            let of = |result: &Value| result["requests"][operation]["latency_us"].clone();
            assert_eq!(of(&replayed), of(&kept), "{operation}");
        }
    }
}

/// Calls the program in the directory of the server. Returns its status and its output.
fn ask(live: &Live, arguments: &[&str]) -> (i32, String) {
    let mut command = floatgate(&live.directory);
    // Other servers on this machine must not be found.
    command.env("TMPDIR", live.directory.path()).env_remove("XDG_RUNTIME_DIR");
    let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn a_running_server_can_be_queried_and_controlled() {
    let mut live = Live::new(&["tiny", "--precondition", "none", "--dashboard", "--dashboard-token", "long-enough"]);
    assert!(live.welcome.contains("Dashboard at http://127.0.0.1:"), "{}", live.welcome);
    assert!(live.welcome.contains(&format!("floatgate top {}", live.path("ssd.ctl").display())), "{}", live.welcome);
    live.client("qemu-io", &["-f", "raw", "-c", "write 0 1M", &live.uri()]);
    let (status, text) = ask(&live, &["ctl", "speed", "0.5"]);
    assert_eq!((status, text.as_str()), (0, "simulated time now runs at speed 0.5\n"));
    let (status, text) = ask(&live, &["ctl", "--socket", "ssd.sock", "trim-all"]);
    assert_eq!((status, text.as_str()), (0, "trimmed all 53686272 bytes\n"));
    let (status, text) = ask(&live, &["ctl", "power-cut"]);
    assert!(status == 1 && text.contains("--image FILE") && text.contains("--image memory"), "{text}");
    let (status, text) = ask(&live, &["ctl", "status"]);
    let at = format!("tiny: 51.20 MiB at unix:{}\n", live.path("ssd.sock").display());
    assert!(status == 0 && text.starts_with(&at), "{text}");
    let (status, text) = ask(&live, &["ctl", "--json", "status"]);
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &answer["frame"]["requests"]["write"]["bytes"]), (0, &(1 << 20).into()));
    let (status, text) = ask(&live, &["top"]);
    assert!(status == 2 && text.contains("needs a terminal"), "{text}");
    let output = live.end(Signal::TERM);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("the speed was changed once"), "{printed}");
    assert!(printed.contains("256 mapping units that were in flash"), "1 MiB must be trimmed: {printed}");
    assert!(!live.path("ssd.ctl").exists());
    let (status, text) = ask(&live, &["ctl", "status"]);
    assert!(status == 1 && text.contains("no running server found"), "{text}");
    let (status, text) = ask(&live, &["ctl", "--socket", "ssd.ctl", "status"]);
    assert!(status == 1 && text.contains("cannot connect to a server at ssd.ctl: no such socket"), "{text}");
}

/// Without a Unix socket for NBD and without `XDG_RUNTIME_DIR`, the control socket is in the directory for temporary
/// files.
#[test]
fn a_server_without_an_nbd_socket_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let here = |mut command: Command| {
        command.env("TMPDIR", directory.path()).env_remove("XDG_RUNTIME_DIR");
        command
    };
    let mut command = here(floatgate(&directory));
    command.args(["serve", "tiny", "--precondition", "none", "--nbd", "127.0.0.1:0", "--vhost-user", "vhost.sock"]);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut welcome = String::new();
    while !welcome.contains("Ctrl-C ends") {
        assert_ne!(errors.read_line(&mut welcome).unwrap(), 0, "it ended: {welcome}");
    }
    let name = format!("floatgate-{}.ctl", child.id());
    assert!(welcome.contains(&format!("Control at {}", directory.path().join(&name).display())), "{welcome}");
    let ask = |arguments: &[&str]| {
        // The server must be found from another working directory.
        let output = here(floatgate(&directory)).current_dir("/").args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (status, clients) = (ask(&["ctl", "status"]), ask(&["ctl", "clients"]));
    let (help, short) = (ask(&["serve", "--help"]), ask(&["serve", "-h"]));
    child.kill().unwrap();
    child.wait().unwrap();
    let vhost_user = format!(", vhost-user {}\n", directory.path().join("vhost.sock").display());
    assert!(status.starts_with("tiny: 51.20 MiB at 127.0.0.1:") && status.contains(&vhost_user), "{status}");
    assert!(
        clients.contains("nbdinfo 'nbd://127.0.0.1:") && clients.contains("device vhost-user-blk-pci"),
        "{clients}"
    );
    assert!(welcome.contains(&clients), "{clients}, and at the start: {welcome}");
    assert!(help.ends_with(&format!("\nRunning now: tiny\n{clients}")), "{help}");
    assert!(!short.contains("Running now"), "{short}");
    let gone = ask(&["serve", "--help"]);
    assert!(!gone.contains("Running now"), "the killed server is still listed: {gone}");

    // The next server removes the socket of the killed server, but no socket of a running process.
    let left = directory.path().join(&name);
    let ours = directory.path().join(format!("floatgate-{}.ctl", std::process::id()));
    drop(std::os::unix::net::UnixListener::bind(&ours).unwrap());
    assert!(left.exists());
    let output = here(floatgate(&directory)).args(["serve", "tiny", "--nbd", "127.0.0.1:0", "--seed", "x"]).output();
    assert!(output.unwrap().status.code() == Some(2) && left.exists());
    let mut next = here(floatgate(&directory));
    next.args(["serve", "tiny", "--vhost-user", "vhost.sock", "--no-delay"]).stderr(Stdio::piped());
    let mut next = next.spawn().unwrap();
    let mut said = BufReader::new(next.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("Ctrl-C ends")));
    assert!(!left.exists() && ours.exists());
    next.kill().unwrap();
    next.wait().unwrap();
}

/// A recording can be read up to a kill with every compression. The next recording does not replace its files.
#[test]
fn a_recording_survives_a_kill() {
    // All servers idle at the same time, for long enough to flush. xz, the slowest format, idles for the shortest time,
    // and cannot compress all of its requests in that time alone.
    let lives =
        [("r.csv", 1), ("r.csv.gz", 1), ("r.csv.zst", 1), ("r.csv.bz2", 1), ("r.csv.xz", 20)].map(|(name, loops)| {
            let live = Live::new(&["tiny", "--no-delay", "--precondition", "none", "--record", name]);
            let writes = ["--name=w", "--ioengine=nbd", &format!("--uri={}", live.uri()), "--rw=randwrite", "--bs=512"];
            let size = ["--size=5m", "--norandommap", &format!("--loops={loops}"), "--iodepth=32", "--minimal"];
            live.client("fio", &[&writes[..], &size].concat());
            (name, 10_240 * loops, live)
        });
    pause(Duration::from_secs(3));
    for (name, count, mut live) in lives {
        live.end(Signal::KILL);
        let partial = partial_of(&live.path(name)).unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let info = floatgate(&live.directory).args(["trace", "info", &partial, "--json"]).output().unwrap();
        let text = String::from_utf8_lossy(&info.stdout).into_owned() + &String::from_utf8_lossy(&info.stderr);
        assert!(info.status.success() && text.contains(&count.to_string()), "{name}: {text}");
        assert_eq!(text.contains("data is cut off"), name != "r.csv", "{name}: {text}");
        let replay = ["run", "tiny", &partial, "--precondition", "none", "--json"];
        let replayed = floatgate(&live.directory).args(replay).output().unwrap();
        let result: Value = serde_json::from_slice(&replayed.stdout).unwrap();
        assert_eq!(result["requests"]["write"]["count"], count, "{name}");
        let warnings = result["warnings"].to_string();
        assert_eq!(warnings.contains("data is cut off"), name != "r.csv", "{name}: {warnings}");

        let again = ["serve", "tiny", "--no-delay", "--nbd", "unix:ssd.sock", "--record", name];
        let refused = floatgate(&live.directory).args(again).output().unwrap();
        let text = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && text.contains(&format!("it would replace {partial}")), "{text}");
    }
}

/// Returns the events of a timeline, and the start of the part that it covers.
fn events_of(bytes: &[u8]) -> (Vec<Value>, u64) {
    let mut events = Vec::new();
    let covered = read_events(bytes, "t.pftrace.gz", &mut |event| {
        events.push(event.clone());
        Ok(())
    });
    (events, covered.unwrap().from.ps())
}

fn requests_in(events: &[Value]) -> Vec<u64> {
    let requests = events.iter().filter(|event| event["cat"] == "request");
    requests.map(|event| event["args"]["request"].as_u64().unwrap()).collect()
}

#[test]
fn the_newest_part_of_a_timeline_is_kept() {
    let fast = "mapping.scheme={ fast = { logs = { sequential = 2, random = 4 } } }";
    for limit in ["256MiB", "1MiB"] {
        let options = ["tiny", "--no-delay", "--set", fast, "--timeline", "t.pftrace.gz", "--timeline-limit", limit];
        let mut live = Live::new(&options);
        let writes = ["--name=w", "--ioengine=nbd", &format!("--uri={}", live.uri()), "--rw=randwrite", "--bs=4k"];
        live.client("fio", &[&writes[..], &["--size=8m", "--iodepth=4", "--minimal"]].concat());
        assert!(live.path("t.pftrace.gz.parts/end.gz").exists() && !live.path("t.pftrace.gz").exists());
        let output = live.end(Signal::TERM);
        assert!(output.status.success() && !live.path("t.pftrace.gz.parts").exists());
        let (events, from) = events_of(&fs::read(live.path("t.pftrace.gz")).unwrap());
        let requests = requests_in(&events);
        let has = |name: &str| events.iter().any(|event| event["name"] == name);
        assert!(has("full merge write") && has("host write") && has("full merge erase"), "{limit}");
        assert!(events.iter().any(|event| event["args"]["name"] == "requests 0"), "threads are named");
        // All requests are in the whole timeline, and the last ones in its newest part.
        let all = requests.len() as u64;
        match limit {
            "1MiB" => assert!(all < 1800 && from > 0 && requests.iter().max() >= Some(&2047), "{all} from {from}"),
            _ => assert!(all >= 2048 && (0..2048).all(|number| requests.contains(&number)), "{all} requests"),
        }
        let size = fs::metadata(live.path("t.pftrace.gz")).unwrap().len();
        assert!(limit != "1MiB" || size < 350_000, "compressed, it is a third of the limit: {size} bytes");
        let span = format!("{}us..{}us", from / 1_000_000 + 100, from / 1_000_000 + 2_000);
        let drawn =
            floatgate(&live.directory).args(["draw", "t.pftrace.gz", &span, "--out", "t.svg"]).output().unwrap();
        assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
    }
}

#[test]
fn the_parts_of_a_timeline_survive_a_kill() {
    let mut live = Live::new(&["tiny", "--no-delay", "--timeline", "t.pftrace.gz"]);
    let uri = live.uri();
    live.client("qemu-io", &["-f", "raw", "-c", "write 0 1M", "-c", "read 64k 128k", "-c", "flush", &uri]);
    pause(Duration::from_secs(3));
    live.end(Signal::KILL);
    let mut parts: Vec<_> =
        fs::read_dir(live.path("t.pftrace.gz.parts")).unwrap().map(|part| part.unwrap().path()).collect();
    parts.sort();
    let (events, _) = events_of(&parts.iter().flat_map(|part| fs::read(part).unwrap()).collect::<Vec<u8>>());
    let count = |name: &str| events.iter().filter(|event| event["cat"] == "request" && event["name"] == name).count();
    // qemu-io also flushes when it ends.
    assert_eq!(["write", "read", "flush"].map(count), [1, 1, 2]);
    assert_eq!(requests_in(&events), [0, 1, 2, 3]);
    assert!(events.iter().any(|event| event["name"] == "host read"));
    let again = ["serve", "tiny", "--nbd", "unix:ssd.sock", "--timeline", "t.pftrace.gz"];
    let refused = floatgate(&live.directory).args(again).output().unwrap();
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && text.contains("it would replace t.pftrace.gz.parts"), "{text}");
}

#[test]
fn a_plain_recording_is_read_up_to_the_line_that_a_kill_cut() {
    let directory = tempfile::tempdir().unwrap();
    let head = "# requests of a live device\narrival_ps,operation,lba,sectors,fua,latency_ps\n";
    let text = format!("{head}0,write,0,8,0,1000\n5000,write,8,8,0,1000\n9000,wri");
    fs::write(directory.path().join("cut.csv"), text).unwrap();
    for arguments in [
        &["run", "tiny", "cut.csv"][..],
        &["trace", "info", "cut.csv"],
        &["trace", "convert", "cut.csv", "out.spc", "--to", "spc"],
    ] {
        let output = floatgate(&directory).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            output.status.success() && said.contains("the recording is cut off in line 5"),
            "{arguments:?}: {said}"
        );
    }
    assert_eq!(fs::read_to_string(directory.path().join("out.spc")).unwrap().lines().count(), 2);
}

/// QEMU waits forever for a server that was killed before its first reply. Therefore, clients cannot connect before the
/// self-test has ended.
#[test]
fn the_vhost_user_socket_appears_when_the_device_is_ready() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("vhost.sock");
    let mut command = floatgate(&directory);
    command.args(["serve", "tiny", "--precondition", "none", "--vhost-user", "vhost.sock", "--control", "ready.ctl"]);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let control = directory.path().join("ready.ctl");
    // The self-test runs between the creation of the two sockets, and takes more than a second.
    while !control.exists() {
        pause(Duration::from_millis(5));
    }
    for _ in 0..50 {
        assert!(std::os::unix::net::UnixStream::connect(&socket).is_err());
        pause(Duration::from_millis(5));
    }
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("Ctrl-C ends")));
    std::os::unix::net::UnixStream::connect(&socket).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A replay of the recording does not repeat injected failures.
#[test]
fn failures_of_ctl_fail_are_a_warning_in_a_recording() {
    let mut live = Live::new(&["tiny", "--no-delay", "--set", "faults.program_rate=0", "--record", "requests.csv"]);
    let (status, text) = ask(&live, &["ctl", "fail", "program"]);
    assert_eq!(status, 0, "{text}");
    let printed = String::from_utf8(live.end(Signal::INT).stdout).unwrap();
    assert!(printed.contains("`ctl fail` made 1 operation fail during the recording"), "{printed}");
}

#[test]
fn invalid_arguments_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "mine").unwrap();
    let error = |arguments: &[&str]| {
        let output = floatgate(&directory).arg("serve").args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        text
    };
    assert!(error(&["tiny", "--nbd", "0.0.0.0:0"]).contains("--allow-remote 0.0.0.0"));
    assert!(error(&["tiny", "--nbd", "unix:file"]).contains("is not a socket"));
    assert!(error(&["tiny", "--nbd", "unix:no/such/directory"]).contains("cannot listen on unix:no/such/directory"));
    assert!(error(&["tiny", "--nbd", "file"]).contains("as unix:file"));
    assert!(error(&["tiny", "--vhost-user", "file"]).contains("is not a socket"));
    assert!(error(&["tiny", "--nvme", "tcp://0.0.0.0:0"]).contains("--allow-remote 0.0.0.0"));
    assert!(error(&["tiny", "--nvme", "127.0.0.1:4420"]).contains("expected tcp://HOST:PORT"));
    assert!(error(&["tiny", "--allow-host", "nqn.2026-01.example:host"]).contains("--nvme"));
    assert!(error(&["tiny", "--nvme", "tcp://127.0.0.1:0", "--allow-host", "host"]).contains("start with nqn."));
    for nqn in ["drive", "nqn.2026-01.example:my drive", "nqn.2026-01.example:dr\u{e4}ve"] {
        assert!(error(&["tiny", "--nvme", "tcp://127.0.0.1:0", "--nqn", nqn]).contains("start with nqn."), "{nqn}");
    }
    let discovery = ["tiny", "--nvme", "tcp://127.0.0.1:0", "--nqn", "nqn.2014-08.org.nvmexpress.discovery"];
    assert!(error(&discovery).contains("the one of discovery controllers"));
    assert!(error(&["tiny", "--vhost-user", "a", "--vhost-queues", "0"]).contains("1..=128"));
    assert!(error(&["tiny", "--speed", "0"]).contains("from 0.0001 to 100"));
    assert!(error(&["tiny", "--no-delay", "--speed", "2"]).contains("cannot be used with"));
    assert!(error(&["tinny"]).contains("tiny"));
    assert!(error(&["tiny", "--dashboard", "0.0.0.0:0"]).contains("--allow-remote 0.0.0.0"));
    assert!(error(&["tiny", "--dashboard", "--dashboard-token", "short"]).contains("8 to 256"));
    assert!(error(&["tiny", "--dashboard", "--dashboard-token-file", "absent"]).contains("absent"));
    assert!(error(&["tiny", "--dashboard-token", "long-enough"]).contains("--dashboard"));
    assert!(error(&["--dashboard", "tiny"]).contains("invalid dashboard address"));
    assert!(error(&["tiny", "--memory", "256X"]).contains("KiB, MiB, GiB"));
    let small = error(&["tiny", "--timeline", "t", "--timeline-limit", "1k"]);
    assert!(small.contains("1024 bytes is too small; give at least 1MiB"), "{small}");
    assert!(error(&["tiny", "--record", "file"]).contains("it would replace file; remove"));
    assert!(error(&["tiny", "--image", "x", "--record", "x"]).contains("--image x and --record x are the same file"));
    let both = error(&["tiny", "--out", ".", "--record", "summary.json"]);
    assert!(both.contains("--record summary.json and summary.json of --out . are the same file"), "{both}");
    // The server creates the directory, so that the files do not exist yet.
    for (record, out) in [("new/summary.json", "new"), ("./new/report.html", "new"), ("new/summary.json", "a/../new")] {
        let text = error(&["tiny", "--out", out, "--record", record]);
        let file = record.rsplit('/').next().unwrap();
        assert!(text.contains(&format!("--record {record} and {file} of --out {out} are the same file")), "{text}");
        assert!(!directory.path().join("new").exists());
    }
    // Common spellings of sizes are accepted, so that the error is about the socket.
    for size in ["256M", "256m", "256MiB", "256MB", "1G", "268435456", "0.25GiB"] {
        assert!(error(&["tiny", "--memory", size, "--nbd", "unix:file"]).contains("is not a socket"), "{size}");
    }
    assert_eq!(fs::read_to_string(directory.path().join("file")).unwrap(), "mine");
}

fn pause(span: Duration) {
    #[expect(clippy::disallowed_methods, reason = "waits for another process")]
    std::thread::sleep(span);
}

/// Returns an address at which other machines can reach this one: the source address for packets to another machine. No
/// packet is sent. Returns the unspecified address if there is no route.
fn reachable() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let found = socket.connect("198.51.100.1:9").and_then(|()| socket.local_addr()).map(|address| address.ip());
    found.ok().filter(|ip| !ip.is_loopback()).unwrap_or(Ipv4Addr::UNSPECIFIED.into())
}

#[test]
fn other_machines_can_connect_only_if_allowed() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str]| {
        let output = floatgate(&directory).args(["serve", "tiny"]).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    // This address is not one of this machine, so that listening fails even if it is allowed.
    let nowhere = ["--nbd", "203.0.113.1:0"];
    let hint = "--allow-remote 203.0.113.1";
    let reported = refused(&nowhere);
    assert!(reported.contains(hint) && reported.contains("other machines"), "{reported}");
    assert!(
        refused(&[&nowhere[..], &["--allow-remote", "203.0.113.2"]].concat()).contains(hint),
        "another address is allowed"
    );
    let reported = refused(&[&nowhere[..], &["--allow-remote", "203.0.113.1"]].concat());
    assert!(reported.contains("cannot listen on 203.0.113.1:0") && !reported.contains(hint), "{reported}");

    let ip = reachable().to_string();
    let own = format!("{ip}:0");
    assert!(refused(&["--nbd", &own]).contains(&format!("--allow-remote {ip}")));
    let device = ["tiny", "--precondition", "none", "--no-delay"];
    let live = Live::new(&[&device[..], &["--nbd", &own, "--dashboard", &own, "--allow-remote", &ip]].concat());
    let uri = live.welcome.split(['\'', '"', ' ', '=', ',']).find(|word| word.starts_with(&format!("nbd://{ip}:")));
    assert_eq!(live.client("nbdinfo", &["--size", uri.expect(&live.welcome)]).trim(), "53686272");
    let is_metrics = |word: &&str| word.starts_with(&format!("http://{ip}:")) && word.ends_with("/metrics");
    let page = live.welcome.split_whitespace().find(is_metrics).expect(&live.welcome);
    let host = page.trim_start_matches("http://").trim_end_matches("/metrics");
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    stream.write_all(format!("GET /metrics HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
    let metrics = std::io::read_to_string(stream).unwrap();
    assert!(metrics.contains("floatgate_info{device=\"tiny\""), "{metrics}");
}

/// Boot sector for QEMU's firmware. It reads the next sector, writes it to the one after, prints it on port 0xe9, and
/// ends QEMU with status 33 through port 0xf4.
const BOOT: [u8; 54] = [
    0x31, 0xc0, 0x8e, 0xd8, 0x8e, 0xc0, 0xbc, 0x00, 0x7c, // ax = ds = es = 0, sp = 0x7c00
    0xbb, 0x00, 0x7e, 0xb8, 0x01, 0x02, 0xb9, 0x02, 0x00, 0xb6, 0x00, 0xcd, 0x13, // read sector 2 (1) to 0x7e00
    0xb8, 0x01, 0x03, 0xb9, 0x03, 0x00, 0xb6, 0x00, 0xcd, 0x13, // write it to sector 3 (2)
    0xbe, 0x00, 0x7e, 0xba, 0xe9, 0x00, 0xac, 0x84, 0xc0, 0x74, 0x03, 0xee, 0xeb, 0xf8, // print it up to a zero
    0xba, 0xf4, 0x00, 0xb0, 0x10, 0xee, 0xf4, 0x00, // end
];

/// QEMU without modifications, with the printed arguments, boots from the disk and writes to it over vhost-user.
/// Another client reads the data over NBD.
#[test]
fn qemu_boots_over_vhost_user() {
    let live = Live::new(&["tiny", "--precondition", "none", "--no-delay", "--vhost-user", "vhost.sock"]);
    let mut image = BOOT.to_vec();
    image.resize(510, 0);
    image.extend([0x55, 0xaa]);
    image.extend(b"booted from flash");
    image.resize(1024, 0);
    fs::write(live.path("boot"), &image).unwrap();
    live.client("qemu-io", &["-f", "raw", "-c", "write -s boot 0 1024", &live.uri()]);
    let line = live.welcome.lines().find(|line| line.contains("vhost-user-blk-pci")).unwrap();
    let words: Vec<&str> = line.split_whitespace().skip_while(|word| *word != "-object").collect();
    let arguments = words.iter().map(|word| word.replace("size=1G", "size=64M"));
    let output = Command::new("qemu-system-x86_64")
        .args("-accel tcg -m 64M -nodefaults -display none -no-reboot -debugcon stdio".split(' '))
        .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"])
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("booted from flash"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(33));
    live.client("nbdcopy", &[&live.uri(), "copy"]);
    let copy = fs::read(live.path("copy")).unwrap();
    assert_eq!(copy[1024..1024 + 17], *b"booted from flash");
}
