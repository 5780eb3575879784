//! Tests of the monitor: display, control, and hostile clients.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use floatgate_core::device_file;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::results::Statistics;
use floatgate_core::simulation::{Device, Options as DeviceOptions};
use floatgate_serve::client::Client;
use floatgate_serve::image::{ImageAt, Opened};
use floatgate_serve::monitor::blocks::BlockMap;
use floatgate_serve::monitor::client::{Requester, running};
use floatgate_serve::monitor::commands::Command;
use floatgate_serve::monitor::frame::{Frame, Info};
use floatgate_serve::monitor::{Doors, Monitor, Options as MonitorOptions};
use floatgate_serve::{Options, ServeError, Server};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::options::{options, sockets};

const TOKEN: &str = "long-enough";

/// A server with a monitor.
struct Bench {
    monitor: Option<Monitor>,
    server: Option<Server>,
    folder: TempDir,
}

fn monitor_options(folder: &TempDir) -> MonitorOptions {
    MonitorOptions {
        control: Some(folder.path().join("ssd.ctl")),
        dashboard: Some("127.0.0.1:0".parse().unwrap()),
        allow_remote: None,
        token: Some(TOKEN.to_owned()),
        plotting_library: b"packed",
    }
}

fn made_with() -> DeviceOptions {
    DeviceOptions { attribution: true, ..DeviceOptions::default() }
}

fn device() -> Device {
    Device::new(device_file::load("tiny", &[]).unwrap(), made_with()).unwrap()
}

impl Bench {
    fn new(no_delay: bool, change: impl FnOnce(&mut MonitorOptions)) -> Bench {
        let mut device = device();
        precondition(&mut device, Precondition::Fill, 1, &mut |_| true).unwrap();
        Bench::of(device, |options| options.no_delay = no_delay, change)
    }

    /// Creates a server with an image, which can recover from power cuts.
    fn on_image() -> Bench {
        let config = device_file::load("tiny", &["durability.trim_journal=true".to_owned()]).unwrap();
        let mut device = Device::new(config, made_with()).unwrap();
        let opened = Opened::open(&ImageAt::Memory, device.config(), false).unwrap();
        let store = opened.begin(&mut device).unwrap();
        Bench::of(device, |options| options.image = Some((store, made_with())), |_| {})
    }

    fn of(device: Device, serve: impl FnOnce(&mut Options), change: impl FnOnce(&mut MonitorOptions)) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options();
        serve(&mut options);
        let sockets = sockets(Some(&folder.path().join("ssd.sock")), None);
        let mut watched = monitor_options(&folder);
        change(&mut watched);
        let monitor = Doors::open(watched).unwrap().start(device.config(), &sockets, options.image.is_some()).unwrap();
        let server = Server::start(device, sockets, options).unwrap();
        monitor.attach(&server);
        Bench { monitor: Some(monitor), server: Some(server), folder }
    }

    fn client(&self) -> Client {
        Client::connect(&self.server.as_ref().unwrap().nbd()[0]).unwrap()
    }

    fn requester(&self) -> Requester {
        let requester = Requester::connect(&self.folder.path().join("ssd.sock")).unwrap();
        requester.set_patience(Some(Duration::from_secs(20))).unwrap();
        requester
    }

    fn ask(&self, command: &Command) -> Value {
        self.requester().ask(command).unwrap()
    }

    /// Returns the first frame that satisfies a condition.
    fn frame(&self, holds: impl Fn(&Frame) -> bool) -> Frame {
        let mut requester = self.requester();
        requester.ask(&Command::Watch { blocks: false }).unwrap();
        for _ in 0..20 {
            let frame = Frame::deserialize(&requester.receive().unwrap()["frame"]).unwrap();
            if frame.preparing.is_none() && holds(&frame) {
                return frame;
            }
        }
        panic!("no such frame arrived");
    }

    fn dashboard(&self) -> SocketAddr {
        self.monitor.as_ref().unwrap().dashboard().unwrap()
    }

    /// Sends bytes to the dashboard. Returns the status, head and body of the response.
    fn http(&self, bytes: &[u8]) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.dashboard()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // The server may respond and disconnect before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, head.to_owned(), body.to_owned())
    }

    fn get(&self, path: &str) -> (u16, String, String) {
        self.http(format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.dashboard()).as_bytes())
    }

    fn post(&self, headers: &str, body: &str) -> (u16, Value) {
        let head = format!("POST /api/control HTTP/1.1\r\nHost: {}\r\n{headers}", self.dashboard());
        let text = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        let (status, _, answer) = self.http(text.as_bytes());
        (status, serde_json::from_str(&answer).unwrap_or_default())
    }

    fn end(mut self) -> floatgate_serve::Finished {
        drop(self.monitor.take());
        self.server.take().unwrap().stop(true).unwrap()
    }
}

#[test]
fn the_monitor_shows_client_activity() {
    let bench = Bench::new(true, |_| {});
    let mut client = bench.client();
    for block in 0..8 {
        client.write(block * 16384, &[7; 16384], false).unwrap();
    }
    client.read(0, &mut [0; 4096]).unwrap();
    client.trim(0, 65536).unwrap();
    let frame = bench.frame(|frame| frame.requests["trim"].count == 1);
    let of = |name: &str| (frame.requests[name].count, frame.requests[name].bytes, frame.requests[name].sectors);
    assert_eq!((of("write"), of("read")), ((8, 131_072, 256), (1, 4096, 8)));
    assert_eq!((of("trim"), frame.requests["flush"].count), ((1, 65536, 128), 0));
    assert_eq!((frame.outstanding, frame.speed), (0, None));
    assert_eq!((frame.channels.len(), frame.flash.statistics.counters.units_trimmed), (bench_channels(), 16));

    let answer = bench.ask(&Command::Status {});
    let info = Info::deserialize(&answer["info"]).unwrap();
    assert_eq!((info.device.as_str(), info.logical_bytes), ("tiny", 53_686_272));
    assert_eq!(info.addresses, [format!("unix:{}", bench.folder.path().join("ssd.sock").display())]);

    let mut requester = bench.requester();
    requester.ask(&Command::Watch { blocks: true }).unwrap();
    let picture = (0..10).map(|_| requester.receive().unwrap()).find(|line| line.get("blocks").is_some()).unwrap();
    let map = BlockMap::deserialize(&picture["blocks"]).unwrap();
    assert_eq!(map.rows * map.columns, info.planes * info.blocks_per_plane, "a cell for each block");

    // The monitor and the result agree.
    let finished = bench.end();
    assert_eq!(finished.outcome.measurement(finished.device.devices().next().unwrap()).results.all().count(), 10);
}

#[test]
fn the_monitor_counts_block_mapping_merges_by_kind() {
    let config = device_file::load("tiny", &["mapping.scheme=block".to_owned()]).unwrap();
    let block = config.data_units_per_block() as usize * config.sectors_per_unit() as usize * 512;
    let bench = Bench::of(Device::new(config, made_with()).unwrap(), |options| options.no_delay = true, |_| {});
    let mut client = bench.client();
    // Write unit by unit, to stay in order. Write everything two more times, then half of it, then its first unit.
    for bytes in [block, block, block, block / 2, 4096] {
        for at in (0..bytes).step_by(4096) {
            client.write(at as u64, &[7; 4096], false).unwrap();
        }
    }
    let frame = bench.frame(|frame| frame.flash.merges.get("partial") == Some(&1));
    let kinds: Vec<(&str, u64)> = frame.flash.merges.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
    assert_eq!(kinds, [("full", 0), ("partial", 1), ("switch", 2)]);
    let (_, _, metrics) = bench.get("/metrics");
    assert!(metrics.contains("merges_total{kind=\"switch\"} 2"), "{metrics}");
    bench.end();
}

#[test]
fn the_monitor_shows_log_blocks() {
    let set =
        ["mapping.scheme={ fast = { logs = { sequential = 1, random = 2 }, first_writes = \"log\" } }".to_owned()];
    let config = device_file::load("tiny", &set).unwrap();
    let block = u64::from(config.data_units_per_block()) * 4096;
    let mut device = Device::new(config, made_with()).unwrap();
    precondition(&mut device, Precondition::Fill, 1, &mut |_| true).unwrap();
    let bench = Bench::of(device, |options| options.no_delay = true, |_| {});
    let mut client = bench.client();
    // Two random log blocks, with units of 16 logical blocks, and a read. The next write reclaims the first log block.
    for unit in 0..128 {
        client.write(unit % 16 * block + 4096 * (1 + unit / 16), &[7; 4096], false).unwrap();
    }
    client.read(0, &mut [0; 8192]).unwrap();
    let frame = bench.frame(|frame| frame.requests["read"].count == 1);
    assert_eq!((frame.mix.read_share, frame.mix.mean_bytes), (Some(1.0 / 129.0), Some(130.0 * 4096.0 / 129.0)));
    let logs = frame.flash.log_blocks.unwrap();
    assert_eq!((logs.reclaimed, logs.associativity, logs.writes["random"]), (0, None, 128));
    // The sequential log block holds the end of the filled device, and is switched. The random one takes 16 merges.
    client.write(0, &[7; 4096], false).unwrap();
    client.write(20 * block + 4096, &[7; 4096], false).unwrap();
    let frame = bench.frame(|frame| frame.flash.merges.get("full") == Some(&16));
    let logs = frame.flash.log_blocks.unwrap();
    assert_eq!((logs.reclaimed, logs.associativity, logs.writes["sequential"]), (2, Some(17.0 / 2.0), 1));
    assert_eq!(frame.flash.merges["switch"], 1);
    let (_, _, metrics) = bench.get("/metrics");
    for line in
        ["log_associativity 8.5", "log_blocks_reclaimed_total 2", "log_units_written_total{kind=\"random\"} 129"]
    {
        assert!(metrics.contains(&format!("floatgate_{line}\n")), "{line}: {metrics}");
    }
    let mut requester = bench.requester();
    requester.ask(&Command::Watch { blocks: true }).unwrap();
    let map = std::iter::repeat_with(|| requester.receive().unwrap()).find_map(|news| news.get("blocks").cloned());
    let map = BlockMap::deserialize(map.unwrap()).unwrap();
    let info = Info::deserialize(&bench.ask(&Command::Status {})["info"]).unwrap();
    let count = |kind: &str| map.blocks_of_kind[info.block_kinds.iter().position(|name| name == kind).unwrap()];
    assert_eq!(["sequential log", "random log", "target of a full merge"].map(count), [1, 2, 0]);
    assert_eq!(map.kinds.len(), map.valid.len());
    let mean = map.writes.iter().map(|units| u64::from(*units)).sum::<u64>() / map.writes.len() as u64;
    assert!((51..70).contains(&mean), "{mean} units in each block: 51 of the host, and copies");
    bench.end();
}

fn bench_channels() -> usize {
    device_file::load("tiny", &[]).unwrap().geometry.channels as usize
}

#[test]
fn every_field_is_documented() {
    let text =
        [include_str!("../../../docs/reference/control.md"), include_str!("../../../docs/reference/statistics.md")]
            .concat();
    let frame = serde_json::to_value(Frame {
        requests: [("read".to_owned(), Default::default())].into(),
        flash: floatgate_serve::monitor::frame::Flash {
            parallel: vec![Default::default()],
            log_blocks: Some(Default::default()),
            ..Default::default()
        },
        preparing: Some(Default::default()),
        clients: vec![Default::default()],
        ..Frame::default()
    });
    let map = BlockMap { kinds: vec![0], blocks_of_kind: vec![0], ..BlockMap::default() };
    let all = [frame, serde_json::to_value(Info::default()), serde_json::to_value(map)];
    let mut names = Vec::new();
    all.into_iter().for_each(|value| keys(&value.unwrap(), &mut names));
    assert!(names.len() > 70, "{}", names.len());
    for name in names {
        assert!(text.contains(&format!("`{name}`")), "docs/reference/control.md does not have `{name}`");
    }
}

fn keys(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            into.push(name.clone());
            keys(value, into);
        }),
        Value::Array(items) => items.iter().for_each(|item| keys(item, into)),
        _ => {}
    }
}

#[test]
fn metrics_match_the_frame() {
    let bench = Bench::new(true, |_| {});
    let mut client = bench.client();
    for block in 0..5 {
        client.write(block * 4096, &[1; 4096], false).unwrap();
    }
    bench.frame(|frame| frame.requests["write"].count == 5);
    let (status, head, body) = bench.get("/metrics");
    assert!(status == 200 && head.to_lowercase().contains("content-type: application/openmetrics-text; version=1.0.0"));
    let lines = body.lines().map(|line| Ok(line.to_owned()));
    let parsed = prometheus_parse::Scrape::parse(lines).unwrap();
    let value = |name: &str, label: Option<(&str, &str)>| {
        let fits = |sample: &&prometheus_parse::Sample| {
            sample.metric == name && label.is_none_or(|(key, value)| sample.labels.get(key) == Some(value))
        };
        match parsed.samples.iter().find(fits).map(|sample| &sample.value) {
            // The parser expects the type of a counter under the name of its sample, which ends in `_total`.
            Some(prometheus_parse::Value::Untyped(value) | prometheus_parse::Value::Gauge(value)) => *value,
            other => panic!("{name}: {other:?}"),
        }
    };
    assert_eq!(value("floatgate_requests_total", Some(("operation", "write"))), 5.0);
    assert_eq!(value("floatgate_request_bytes_total", Some(("operation", "write"))), 20480.0);
    assert_eq!(value("floatgate_info", Some(("device", "tiny"))), 1.0);
    assert!(value("floatgate_write_amplification", None) >= 1.0);
    assert_eq!(value("floatgate_request_latency_seconds_count", Some(("operation", "write"))), 5.0);
    let histogram = parsed.samples.iter().find(|sample| sample.metric == "floatgate_request_latency_seconds");
    let Some(prometheus_parse::Value::Histogram(buckets)) = histogram.map(|sample| &sample.value) else {
        panic!("no histogram: {body}")
    };
    assert_eq!(buckets.last().map(|last| (last.less_than, last.count)), Some((f64::INFINITY, 5.0)));
    assert!(buckets.windows(2).all(|pair| pair[0].less_than < pair[1].less_than && pair[0].count <= pair[1].count));
    let mean = value("floatgate_request_latency_seconds_sum", Some(("operation", "write"))) / 5.0;
    let (first, last) =
        (buckets.iter().find(|b| b.count > 0.0).unwrap(), buckets.iter().find(|b| b.count == 5.0).unwrap());
    assert!(first.less_than / 2.0 <= mean && mean < last.less_than, "{mean}: {buckets:?}");
    assert!(body.ends_with("# EOF\n"), "{body}");
    // Each name has its help and type once, before its samples, and is not used again.
    let mut seen = Vec::new();
    for line in body.lines() {
        if let Some(name) = line.strip_prefix("# TYPE ") {
            let name = name.split(' ').next().unwrap().to_owned();
            assert!(!seen.contains(&name), "{name} twice");
            seen.push(name);
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let suffix = name.strip_prefix(seen.last().unwrap().as_str());
            assert!(matches!(suffix, Some("" | "_total" | "_sum" | "_count" | "_bucket")), "{line}");
        }
    }
    assert_eq!(body.matches("# HELP ").count(), seen.len());
    let text =
        [include_str!("../../../docs/reference/control.md"), include_str!("../../../docs/reference/statistics.md")]
            .concat();
    for statistic in Statistics::default().list().iter().filter_map(|(statistic, _)| statistic.metric) {
        assert!(seen.contains(&format!("floatgate_{statistic}")), "{statistic} is no metric");
    }
    for name in &seen {
        let short = name.strip_prefix("floatgate_").unwrap();
        let is_named = ["", "_total"].iter().any(|suffix| text.contains(&format!("`{short}{suffix}`")));
        assert!(is_named, "docs/reference/control.md does not have `{short}`");
    }
}

#[test]
fn the_speed_is_changed_while_requests_are_served() {
    let bench = Bench::new(false, |_| {});
    let mut client = bench.client();
    client.read(0, &mut [0; 4096]).unwrap();
    let done = bench.ask(&Command::Speed { value: "0.25".to_owned() });
    assert_eq!((&done["ok"], &done["message"]), (&json!(true), &json!("simulated time now runs at speed 0.25")));
    let before = bench.frame(|frame| frame.speed == Some(0.25));
    let after = bench.frame(|frame| frame.number > before.number);
    // Simulated time runs at a quarter of the speed. Two successive frames are some samples apart.
    let share = (after.simulated_s - before.simulated_s) / (after.wall_s - before.wall_s);
    assert!((share - 0.25).abs() < 0.002, "{share}");
    client.read(4096, &mut [0; 4096]).unwrap();
    for wrong in ["0", "1e9", "-1", "x"] {
        let refused = bench.ask(&Command::Speed { value: wrong.to_owned() });
        assert!(refused["error"].as_str().unwrap().contains("from 0.0001 to 100"), "{refused}");
    }
    let finished = bench.end();
    assert_eq!((finished.speed_changes, finished.live.speed), (1, 0.25));

    let bench = Bench::new(true, |_| {});
    let refused = bench.ask(&Command::Speed { value: "2".to_owned() });
    assert!(refused["error"].as_str().unwrap().contains("--no-delay"), "{refused}");
}

#[test]
fn trim_all_is_visible_to_the_host() {
    for no_delay in [true, false] {
        let bench = Bench::new(no_delay, |_| {});
        let mut client = bench.client();
        client.write(1 << 20, &[9; 65536], false).unwrap();
        let done = bench.ask(&Command::TrimAll {});
        assert_eq!(done["message"], "trimmed all 53686272 bytes", "{done}");
        let mut read = [1; 65536];
        client.read(1 << 20, &mut read).unwrap();
        assert!(read.iter().all(|byte| *byte == 0));
        let finished = bench.end();
        assert_eq!(finished.device.devices().next().unwrap().ftl().counters.units_trimmed, 53_686_272 / 4096);
        assert_eq!(finished.payload_bytes, 0);
    }
}

#[test]
fn a_power_cut_requires_an_image() {
    let bench = Bench::new(true, |_| {});
    let refused = bench.ask(&Command::PowerCut {});
    assert!(refused["error"].as_str().unwrap().contains("--image FILE or --image memory"), "{refused}");
    let bench = Bench::on_image();
    let reported = bench.ask(&Command::PowerCut {});
    let message = reported["message"].as_str().unwrap();
    assert!(
        message.starts_with("the power was cut: 0 requests, 0 units and 0 trims were in the device's memory"),
        "{reported}"
    );
    assert!(message.contains("recovered after a power cut"), "{reported}");
    let finished = bench.end();
    assert_eq!(finished.power_cuts, 1);
}

/// A drive may lose trims that were not flushed. The message reports them, and `trim-all` flushes, so that users are
/// not surprised.
#[test]
fn a_power_cut_reports_lost_trims_and_keeps_those_of_trim_all() {
    let bench = Bench::on_image();
    let mut read = [0; 65536];
    let mut client = bench.client();
    client.write(0, &[9; 65536], true).unwrap();
    client.trim(0, 65536).unwrap();
    let reported = bench.ask(&Command::PowerCut {});
    assert!(reported["message"].as_str().unwrap().contains("0 units and 16 trims were"), "{reported}");
    bench.client().read(0, &mut read).unwrap();
    assert_eq!(read, [9; 65536]);
    assert_eq!(bench.ask(&Command::TrimAll {})["ok"], true);
    let reported = bench.ask(&Command::PowerCut {});
    assert!(reported["message"].as_str().unwrap().contains("0 units and 0 trims were"), "{reported}");
    bench.client().read(0, &mut read).unwrap();
    assert_eq!(read, [0; 65536]);
    bench.end();
}

#[test]
fn changes_require_the_token() {
    let bench = Bench::new(false, |_| {});
    let speed = r#"{"command":"speed","value":"0.5"}"#;
    let (status, answer) = bench.post("", speed);
    assert!(status == 401 && answer["error"].as_str().unwrap().contains("token"), "{status} {answer}");
    assert_eq!(bench.post("Authorization: Bearer long-enougH\r\n", speed).0, 401);
    assert_eq!(bench.post(&format!("Cookie: token={TOKEN}\r\n"), speed).0, 401);
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    assert_eq!(bench.post(&format!("{token}Origin: http://evil.example\r\n"), speed).0, 403);
    assert_eq!(bench.post(&token, "{").0, 400);
    assert_eq!(bench.post(&token, "{\"command\":\"power-cut\",\"x\":1}").0, 400);
    assert_eq!(bench.post(&token, r#"{"command":"status"}"#).0, 409);
    assert_eq!(bench.post(&token, &"x".repeat(100_000)).0, 413);
    // A chunk without a valid length.
    let head = format!("POST /api/control HTTP/1.1\r\nHost: {}\r\n{token}", bench.dashboard());
    assert_eq!(bench.http(format!("{head}Transfer-Encoding: chunked\r\n\r\nZZ\r\n").as_bytes()).0, 400);
    assert_eq!(bench.frame(|_| true).speed, Some(1.0), "nothing has changed");
    let (status, answer) = bench.post(&token, speed);
    assert_eq!((status, &answer["ok"]), (200, &json!(true)));
    assert_eq!(bench.frame(|frame| frame.speed != Some(1.0)).speed, Some(0.5));

    let bench = Bench::new(false, |options| options.token = None);
    let (status, answer) = bench.post(&token, speed);
    assert!(status == 403 && answer["error"].as_str().unwrap().contains("--dashboard-token"), "{answer}");
    assert!(bench.get("/api/status").2.contains("\"controls\":false"));
}

#[test]
fn each_path_has_its_methods() {
    let bench = Bench::new(true, |_| {});
    let ask = |method: &str, path: &str| {
        bench.http(format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n\r\n", bench.dashboard()).as_bytes())
    };
    for path in ["/", "/monitor.css", "/plotly.js", "/metrics", "/api/status", "/api/history", "/api/events"] {
        let (status, head, body) = ask("HEAD", path);
        assert!(status == 200 && body.is_empty() && head.contains("no-store"), "{path}: {head}");
        let (status, head, _) = ask("POST", path);
        assert!(status == 405 && head.to_lowercase().contains("allow: get,head"), "{path}: {head}");
    }
    let (status, head, _) = ask("GET", "/api/control");
    assert!(status == 405 && head.to_lowercase().contains("allow: post"), "{head}");
    assert_eq!((ask("GET", "/api").0, ask("POST", "/api").0), (404, 404));
}

#[test]
fn other_host_names_are_refused() {
    let bench = Bench::new(true, |_| {});
    let port = bench.dashboard().port();
    let host = |host: &str, path: &str| bench.http(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).0;
    for path in ["/", "/metrics", "/api/status", "/api/history", "/monitor.js"] {
        assert_eq!(host(&format!("localhost:{port}"), path), 200, "{path}");
        assert_eq!(host(&format!("evil.example:{port}"), path), 403, "{path}");
    }
    assert_eq!(host(&format!("localhost:{port}"), "/../../etc/passwd"), 404);
    let (_, head, body) = bench.get("/");
    assert!(head.contains("frame-ancestors 'none'") && head.contains("default-src 'none'"), "{head}");
    for way in ["http://", "https://", "<script>", "@import", "onclick"] {
        assert!(!body.contains(way), "{way}");
    }
}

#[test]
fn hostile_clients_do_not_affect_others() {
    let bench = Bench::new(true, |_| {});
    let mut client = bench.client();
    // At the dashboard: an invalid request, a head without end, and silent connections.
    assert!(bench.http(&[0xff; 4096]).0 == 400 && bench.http(b"GET / HTTP/9.9\r\n\r\n").0 >= 400);
    let long = format!("GET / HTTP/1.1\r\nHost: {}\r\nX: {}\r\n\r\n", bench.dashboard(), "x".repeat(1 << 20));
    assert!([0, 400, 431].contains(&bench.http(long.as_bytes()).0));
    let silent: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(bench.dashboard()).unwrap()).collect();
    // At the control socket: garbage, a line without end, and silent connections.
    let path = bench.folder.path().join("ssd.ctl");
    let said = |bytes: &[u8]| {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    };
    assert!(said(b"\xff\xfe\n").contains("invalid command"));
    assert!(said(b"{\"command\":\"format-disk\"}\n").contains("invalid command"));
    for command in ["status", "watch", "trim-all", "power-cut"] {
        let unknown = format!("{{\"command\":\"{command}\",\"x\":1}}\n");
        assert!(said(unknown.as_bytes()).contains("invalid command: unknown field `x`"), "{command}");
    }
    assert!(said(b"{\"command\":\"status\",\"more\":1}\n{\"command\":\"status\"}\n").contains("\"ok\":true"));
    assert!(said(&vec![b'x'; 1 << 20]).contains("at most 4096 bytes"));
    assert!(said(&b"[".repeat(4000)).contains("invalid command"));
    let quiet: Vec<UnixStream> = (0..40).map(|_| UnixStream::connect(&path).unwrap()).collect();
    // Followers that read nothing.
    for _ in 0..200 {
        client.write(0, &[3; 4096], false).unwrap();
    }
    let mut read = [0; 4096];
    client.read(0, &mut read).unwrap();
    assert_eq!(read, [3; 4096]);
    drop((silent, quiet));
    let again = || (bench.get("/api/status").0 == 200).then_some(());
    let patience = || std::os::unix::net::UnixStream::pair().unwrap().0;
    for _ in 0..100 {
        if again().is_some() {
            break;
        }
        let waiting = patience();
        waiting.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let _ = (&waiting).read(&mut [0]);
    }
    assert!(again().is_some(), "places become free");
    assert_eq!(bench.ask(&Command::Status {})["ok"], json!(true));
    assert_eq!(bench.end().outcome.measurement(&device()).results.all().count(), 201);
}

#[test]
fn sockets_are_private_and_removed_with_the_server() {
    let bench = Bench::new(true, |_| {});
    let path = bench.folder.path().join("ssd.ctl");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let places = [bench.folder.path().to_owned(), PathBuf::from("/no/such/place"), bench.folder.path().join(".")];
    assert_eq!(running(&places), std::slice::from_ref(&path), "found once");
    let second = Doors::open(monitor_options(&bench.folder)).err().expect("one listens there already");
    assert!(second.to_string().contains("another server listens on this socket"), "{second}");
    let remote = MonitorOptions {
        control: None,
        dashboard: Some("0.0.0.0:0".parse().unwrap()),
        ..monitor_options(&bench.folder)
    };
    let refused = Doors::open(remote).err().expect("others could connect");
    assert!(matches!(refused, ServeError::Remote { .. }) && refused.to_string().contains("--allow-remote 0.0.0.0"));
    let folder = bench.folder.path().to_owned();
    let Bench { monitor, server, folder: _kept } = bench;
    drop(monitor);
    assert!(!path.exists() && running(&[folder]).is_empty());
    server.unwrap().stop(true).unwrap();
}

#[test]
fn the_monitor_responds_while_the_device_is_filled() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = sockets(Some(&folder.path().join("ssd.sock")), None);
    let config = device_file::load("tiny", &[]).unwrap();
    let monitor = Doors::open(monitor_options(&folder)).unwrap().start(&config, &sockets, false).unwrap();
    let mut bench = Bench { monitor: Some(monitor), server: None, folder };
    bench.monitor.as_ref().unwrap().prepares("filling the device", Some(0.429));
    let answer = bench.ask(&Command::Status {});
    let frame = Frame::deserialize(&answer["frame"]).unwrap();
    let preparing = frame.preparing.unwrap();
    assert_eq!(
        (answer["info"]["device"].as_str(), preparing.to_string().as_str()),
        (Some("tiny"), "filling the device, 42 %")
    );
    assert_eq!((frame.requests.len(), frame.requests["read"].count), (5, 0));
    let refused = bench.ask(&Command::Speed { value: "2".to_owned() });
    assert!(refused["error"].as_str().unwrap().contains("not served yet (filling the device, 42 %)"), "{refused}");
    assert_eq!((bench.get("/").0, bench.get("/api/history").2.as_str()), (200, "[]"));
    assert!(bench.get("/api/status").2.contains("filling the device"));
    assert!(bench.get("/metrics").2.contains("\nfloatgate_ready 0\n"));
    let server = Server::start(device(), sockets, options()).unwrap();
    bench.monitor.as_ref().unwrap().attach(&server);
    bench.server = Some(server);
    bench.client().write(0, &[1; 4096], false).unwrap();
    assert_eq!(bench.frame(|frame| frame.requests["write"].count > 0).preparing, None);
    assert!(bench.get("/metrics").2.contains("\nfloatgate_ready 1\n"));
    bench.end();
}

#[test]
fn the_monitor_lists_clients() {
    let bench = Bench::new(true, |_| {});
    assert_eq!(bench.frame(|_| true).clients, []);
    let first = bench.client();
    let second = bench.client();
    let clients = bench.frame(|frame| frame.clients.len() == 2).clients;
    let me = &clients[0];
    assert_eq!((me.frontend.as_str(), me.address.as_str(), me.pid), ("nbd", "unix", Some(std::process::id())));
    assert!(me.process.as_ref().is_some_and(|name| !name.is_empty()) && me.connected_s < 20.0, "{me:?}");
    assert_eq!(me.in_progress, 0);
    assert!(bench.get("/metrics").2.contains("\nfloatgate_clients 2\n"));
    drop(first);
    bench.frame(|frame| frame.clients.len() == 1);
    drop(second);
    bench.frame(|frame| frame.clients.is_empty());
    bench.end();
}

/// Returns how many of 40 turnarounds were late, for a client that sleeps before 10 of them.
#[expect(clippy::disallowed_methods, reason = "a client of a server that runs by the clock")]
fn late_turns() -> u64 {
    const USUAL: u64 = 33;
    // Reads take 4.5 ms, so that a busy machine delays few turnarounds by more than 5% of that.
    let slow = |options: &mut Options| (options.no_delay, options.speed) = (false, "0.01".parse().unwrap());
    let mut device = device();
    precondition(&mut device, Precondition::Fill, 1, &mut |_| true).unwrap();
    let bench = Bench::of(device, slow, |_| {});
    let mut client = bench.client();
    let mut read = |index: u64| client.read(index * 4096, &mut [0; 4096]).unwrap();
    (0..USUAL).for_each(&mut read);
    let frame = bench.frame(|frame| frame.requests["read"].count == USUAL);
    assert_eq!((frame.lateness.client_late_share, frame.clients[0].turns), (None, 0), "no turn is usual before");
    for index in 0..40 {
        if index % 4 == 3 {
            std::thread::sleep(Duration::from_millis(20));
        }
        read(USUAL + index);
    }
    // A turnaround is counted when its request is read.
    let frame = bench.frame(|frame| frame.requests["read"].count == USUAL + 40);
    let (me, late) = (&frame.clients[0], &frame.lateness);
    assert_eq!((me.turns, late.client_turns, late.client_late), (40, 40, me.late_turns));
    assert!(me.late_turns >= 10, "{me:?}");
    let metrics = bench.get("/metrics").2;
    for (name, count) in [("client_turns_total", 40), ("client_late_turns_total", me.late_turns)] {
        assert!(metrics.contains(&format!("\nfloatgate_{name} {count}\n")), "{metrics}");
    }
    let live = bench.end().live;
    let frontend = &live.frontends[0];
    assert_eq!((frontend.name.as_str(), frontend.client_turns, frontend.client_late), ("nbd", 40, me.late_turns));
    assert_eq!(frontend.client_late_share, Some(me.late_turns as f64 / 40.0));
    me.late_turns
}

#[test]
fn the_monitor_counts_late_turnarounds() {
    // The first turnaround after the wait for a frame is late as well, and so may be others on a busy machine.
    let counts: Vec<u64> = (0..5).map(|_| late_turns()).take_while(|late| *late > 20).collect();
    assert!(counts.len() < 5, "{counts:?} of 40 turns are late");
}

#[test]
fn the_page_knows_all_commands() {
    let of = |bench: &Bench| Info::deserialize(&bench.ask(&Command::Status {})["info"]).unwrap();
    let plain = of(&Bench::new(true, |_| {}));
    assert_eq!((plain.power_cut, plain.faults), (false, false));
    assert!(of(&Bench::on_image()).power_cut);
    let config = device_file::load("tiny", &["faults.program_rate=0".to_owned()]).unwrap();
    assert!(of(&Bench::of(Device::new(config, made_with()).unwrap(), |_| {}, |_| {})).faults);
}

#[test]
fn event_streams_do_not_use_slots_of_other_requests() {
    let bench = Bench::new(true, |_| {});
    let ask = || {
        let mut stream = TcpStream::connect(bench.dashboard()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let head = format!("GET /api/events HTTP/1.1\r\nHost: {}\r\n\r\n", bench.dashboard());
        stream.write_all(head.as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        (stream, String::from_utf8_lossy(&status).into_owned())
    };
    let mut streams: Vec<(TcpStream, String)> = (0..64).map(|_| ask()).collect();
    assert!(streams.iter().all(|(_, status)| status == "HTTP/1.1 200"), "{streams:?}");
    for _ in 0..3 {
        assert_eq!(bench.get("/metrics").0, 200);
    }
    let (status, _, body) = bench.get("/api/events");
    assert!(status == 503 && body.contains("64 pages are already open for this server"), "{status} {body}");
    streams.pop();
    let is_free = || {
        (0..50).any(|_| {
            let (_held, status) = ask();
            status.ends_with("200")
        })
    };
    assert!(is_free(), "a page that leaves makes room");
    // Programs that follow do not take the slots of programs that send commands.
    let followers: Vec<Requester> = (0..20)
        .map(|_| bench.requester())
        .map(|mut requester| {
            requester.ask(&Command::Watch { blocks: false }).unwrap();
            requester
        })
        .collect();
    assert_eq!(bench.ask(&Command::Status {})["ok"], json!(true));
    drop((streams, followers));
    bench.end();
}

#[test]
fn silent_clients_do_not_lock_others_out() {
    let bench = Bench::new(true, |_| {});
    let _silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(bench.dashboard()).unwrap()).collect();
    let path = bench.folder.path().join("ssd.ctl");
    let _quiet: Vec<UnixStream> = (0..60).map(|_| UnixStream::connect(&path).unwrap()).collect();
    for _ in 0..5 {
        assert_eq!(bench.get("/metrics").0, 200, "at once, though all are still connected");
        assert_eq!(bench.ask(&Command::Status {})["ok"], json!(true));
    }
    bench.end();
}
