//! Tests of the example policies: their choices, and their names in devices, errors, the schema and the command.

use std::process::Command;

use example_policies::makers;
use floatgate_core::device_file::{DeviceConfig, from_toml_with, load_with};
use floatgate_core::flash::Role;
use floatgate_core::laws::{self, close};
use floatgate_core::mapping::Space;
use floatgate_core::policies::{Class, Externals, LunQueue, Queued};
use floatgate_core::results::ProgramCause;
use floatgate_core::sim::id::{Lpn, LunId, PlaneId, TransactionId};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};
use floatgate_run::device::DeviceSpec;
use floatgate_run::frontend::Quiet;
use floatgate_run::session::Session;
use floatgate_run::spec::RunSpec;
use floatgate_run::traces::Traces;

fn device(overrides: &[&str]) -> Result<DeviceConfig, String> {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    load_with(&makers().offers(), "tiny", &overrides).map_err(|error| error.to_string())
}

#[test]
fn all_policies_obey_the_laws_of_their_families() {
    assert_eq!(makers().offers().len(), 4);
    laws::offers(&makers());
}

/// Small devices: pages of several units, units of several pages, multi-plane programs, and blocks of several planes.
const SHAPES: [&[&str]; 5] = [
    &["geometry.page_size=16KiB", "geometry.pages=16"],
    &["geometry.page_size=2KiB", "geometry.mapping_unit=4KiB"],
    &["geometry.pages_per_program=2", "mapping.block_summary.last_page=2KiB"],
    &["geometry.planes=2", "nand.concurrency=die", "nand.advanced.multi_plane_program=wise"],
    &["geometry.planes=2", "nand.concurrency=plane-reads"],
];
/// The mapping schemes, with the number of free blocks that each needs.
const SCHEMES: [[&str; 2]; 2] =
    [["mapping.scheme=append", "gc.soft_threshold=4"], ["mapping.scheme=log-block", "gc.soft_threshold=1"]];

/// Returns a small device with each scheme and shape.
fn devices() -> impl Iterator<Item = DeviceConfig> {
    let small = ["geometry.blocks=16", "capacity={ spare = 0.5 }"];
    SCHEMES
        .iter()
        .flat_map(move |scheme| SHAPES.iter().map(move |shape| device(&[&small[..], scheme, shape].concat()).unwrap()))
}

#[test]
fn the_mapping_schemes_lose_no_data() {
    devices().for_each(|device| laws::mapping(&device, &makers()));
}

#[test]
fn the_mapping_schemes_outlive_power_cuts() {
    devices().for_each(|device| laws::power_cuts(&device, &makers()));
}

/// Writes units with log blocks to a full plane of `count` logical blocks of `size` units. Returns the number of units
/// that merges copy.
fn copies_of(size: u32, count: u32, units: &[u32]) -> u64 {
    let shape = [format!("geometry.pages={size}"), format!("geometry.blocks={}", 2 * count)];
    let one_plane = ["geometry.channels=1", "geometry.chips=1", "geometry.planes=1", "capacity={ spare = 0.5 }"];
    let device = device(&[&one_plane[..], &SCHEMES[1], &shape.each_ref().map(String::as_str)].concat()).unwrap();
    let sectors = device.sectors_per_unit();
    assert_eq!(device.logical_units(), u64::from(size * count));
    let options = Options { externals: makers(), ..Options::default() };
    let mut device = Device::new(device, options).unwrap();
    (0..size * count).for_each(|unit| device.ftl_mut().write_whole(Lpn(unit)));
    device.ftl_mut().seal();
    let merged = |device: &Device| device.ftl().counters.pages_programmed[ProgramCause::Merge as usize];
    let before = merged(&device);
    for &unit in units {
        let now = device.now();
        device.submit(now, Request::new(now, Operation::Write, u64::from(unit * sectors), sectors));
        while let Some(at) = device.next_event() {
            device.advance(at);
        }
    }
    device.check_invariants().unwrap();
    merged(&device) - before
}

/// Filling leaves the log block full of the last logical block. Each further write that finds it full merges all
/// logical blocks that it has units of, and each merge copies all units. So a log block with units of *n* logical
/// blocks causes *n* copies per write, and the write amplification is 1 + *n*.
#[test]
fn full_merges_copy_each_logical_block_of_a_full_log() {
    for (size, count) in [(4, 4), (8, 4), (4, 8)] {
        let (in_order, rounds): (Vec<u32>, u32) = ((0..size * count).collect(), 3);
        let copies = |units: &[u32]| copies_of(size, count, units);
        assert_eq!(copies(&in_order.repeat(rounds as usize)), u64::from(rounds * count * size), "n = 1");
        assert_eq!(copies(&in_order[..1]), u64::from(size));
        assert_eq!(copies(&in_order[..size as usize]), u64::from(size));
        assert_eq!(copies(&in_order[..size as usize + 1]), u64::from(2 * size));
        // A unit of each logical block in turn.
        let strided = |number| size * (number % count) + number / count % size;
        let (logs, of_a_log) = (rounds * count - 1, size.min(count));
        let units: Vec<u32> = (0..rounds * size * count).map(strided).collect();
        assert_eq!(copies(&units), u64::from(size * (1 + logs * of_a_log)), "n = {of_a_log}");
    }
}

/// Returns the index of the block that is chosen first, of two blocks with 16 and 32 valid units of 64. `ages` are the
/// host writes since they were closed. Their costs are 16 / 48 = 1 / 3 and 32 / 32 = 1.
fn first_victim(ages: [u64; 2], erases: u32, options: &str) -> u32 {
    let victim = format!("gc.victim={{ cost-age-times = {{ {options} }} }}");
    let set = ["geometry.blocks=16", "geometry.pages=64", "capacity={ spare = 0.5 }", "gc.soft_threshold=1", &victim];
    let mut space = Space::new(&device(&set).unwrap(), 1, false, &makers()).unwrap();
    let plane = PlaneId(0);
    let now = 1_000;
    for _ in 0..erases {
        // Wear the first block: only this block is filled and erased, and it is free again at the end.
        let block = close(&mut space, plane, 0);
        space.take_victim(space.region(plane, Role::Data), 0).unwrap();
        space.await_erase(block);
        space.erased(block);
    }
    let mut blocks = Vec::new();
    for (age, valid) in ages.into_iter().zip([16, 32]) {
        space.clock = now + 1 - age;
        blocks.push(close(&mut space, plane, valid));
    }
    space.clock = now;
    let victim = space.take_victim(space.region(plane, Role::Data), 0).unwrap();
    blocks.iter().position(|block| *block == victim).unwrap() as u32
}

/// The scores are (1 / 3) / age for the first block, and 1 / age for the second.
#[test]
fn cost_and_age_decide() {
    assert_eq!(first_victim([100, 100], 0, ""), 0);
    assert_eq!(first_victim([100, 299], 0, ""), 0, "1 / 300 is below 1 / 299");
    assert_eq!(first_victim([100, 301], 0, ""), 1, "1 / 301 is below 1 / 300");
    // No unit became invalid after the blocks were closed, so both starts of the age are equal.
    assert_eq!(first_victim([100, 301], 0, "since = \"changed\""), 1);
}

fn queued(class: Class, since_us: u64, number: u32) -> Queued {
    let id = TransactionId(number);
    let plane = PlaneId(0);
    let since = Time::from_us(since_us);
    Queued { id, class, rank: 0, plane, since, request: None, stream: None, high_priority: false }
}

fn picked(makers: &Externals, waiting: &[(Class, u64)], now_us: u64) -> u32 {
    let set = ["scheduler={ deadline = { read = \"1ms\", write = \"5ms\" } }".to_owned()];
    let config = load_with(&makers.offers(), "tiny", &set).unwrap();
    let mut scheduler = config.scheduler.build(&config, 1, makers).unwrap();
    let queue: Vec<Queued> = waiting.iter().zip(0..).map(|((class, since), n)| queued(*class, *since, n)).collect();
    scheduler.pick(&LunQueue::new(LunId(0), &queue), Time::from_us(now_us)).unwrap().0
}

#[test]
fn deadlines_come_before_reads() {
    use Class::{Gc, HostProgram, HostRead, UrgentGc};
    let pick = |waiting: &[(Class, u64)], now| picked(&makers(), waiting, now);
    let queue = [(Gc, 0), (HostProgram, 0), (HostRead, 4_500)];
    assert_eq!(pick(&queue, 4_999), 2, "reads first");
    assert_eq!(pick(&queue, 5_000), 1, "the write is due");
    assert_eq!(pick(&[(HostProgram, 0), (HostRead, 3_000)], 9_000), 1, "the read was due before the write");
    assert_eq!(pick(&[(Gc, 0), (HostProgram, 1)], 10), 0, "otherwise in order");
    assert_eq!(pick(&[(HostProgram, 0), (UrgentGc, 8_000)], 9_000), 1, "operations that free space first");
}

#[test]
fn devices_name_them_like_built_in_ones() {
    let config = device(&["gc.victim=cost-age-times", "scheduler.deadline.read=1ms"]).unwrap();
    assert_eq!((config.gc.victim.name(), config.scheduler.name()), ("cost-age-times", "deadline"));
    assert_eq!(config.externals()[1].1.options["read"], "1ms");
    let source = |path: &str| config.sources.get(path).map(String::as_str);
    assert!(source("gc.victim.external.name").is_some() && source("scheduler.external.options.read").is_some());
    // The device in a result can be loaded by this program again.
    let text = toml::to_string(&config.resolved()).unwrap();
    let again = from_toml_with(&makers().offers(), &text, "again.toml", &[]).unwrap();
    assert_eq!((again.digest(), again.externals()), (config.digest(), config.externals()));
    let later = device(&["scheduler.deadline.read=1ms", "scheduler=fcfs"]).unwrap();
    assert_eq!(later.scheduler.name(), "fcfs");
}

#[test]
fn errors_suggest_them() {
    for (set, says) in [
        ("gc.victim=cost-age-time", "did you mean `cost-age-times`? one of greedy, fifo"),
        ("scheduler=dedline", "unknown name `dedline`, did you mean `deadline`?"),
        ("mapping.scheme=appends", "unknown name `appends`, did you mean `append`?"),
        ("scheduler.deadline.reads=1ms", "unknown key `scheduler.deadline.reads`"),
        ("scheduler.deadline.read=soon", "`scheduler`: `deadline`: "),
        ("mapping.scheme.append.free=2", "unknown key `mapping.scheme.append.free`"),
        ("gc.victim.cost-age-times.since=never", "unknown name `never`: one of closed, changed"),
    ] {
        let error = device(&[set]).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    let plain = floatgate_core::device_file::load("tiny", &["scheduler=deadline".to_owned()]).unwrap_err().to_string();
    assert!(plain.contains("unknown name `deadline`"), "only this program has the policy: {plain}");
}

#[test]
fn the_schema_has_them() {
    let schema = DeviceConfig::json_schema(&makers().offers()).to_string();
    let plain = DeviceConfig::json_schema(&[]).to_string();
    for name in ["cost-age-times", "deadline", "append", "log-block"].map(|name| format!("\"{name}\"")) {
        assert!(schema.contains(&name) && !plain.contains(&name), "{name}");
    }
    assert!(schema.contains("Longest wait of a write"));
}

/// Runs a workload like a program without a command line, and returns the write amplification.
fn write_amplification(overrides: &[&str]) -> f64 {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    let device = DeviceSpec::named("tiny", &overrides).with_makers(makers());
    let job = "rw=randwrite random_distribution=zoned:90/10:10/90 bs=4k number_ios=20k iodepth=4";
    let mut spec = RunSpec::new(device, vec![job.to_owned()]);
    spec.state = floatgate_run::spec::StateSpec::Precondition("fill".to_owned());
    let traces = Traces::default();
    let chosen = spec.device.load().unwrap();
    let Ok(session) = Session::open(&spec, &traces, chosen, &Quiet) else { panic!("the run could not start") };
    let Ok(finished) = session.run_into_directory(&Quiet) else { panic!("the run failed") };
    finished.summary.write_amplification.expect("the host must have written")
}

#[test]
fn a_session_runs_with_them() {
    let greedy = write_amplification(&[]);
    let cat = write_amplification(&["gc.victim=cost-age-times"]);
    assert_ne!(greedy, cat);
    assert!(cat < 1.5 * greedy, "write amplification of cost-age-times: {cat}, of greedy: {greedy}");
}

#[test]
fn the_command_knows_them() {
    let command = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_floatgate-policies")).args(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (output.status.code(), text)
    };
    let set = ["--set", "gc.victim=cost-age-times", "--set", "scheduler.deadline.write=5ms"];
    let (status, text) = command(&[&["run", "tiny", "rw=randrw bs=4k number_ios=2k"][..], &set].concat());
    assert_eq!(status, Some(0), "{text}");
    let (_, text) = command(&[&["device", "show", "tiny"][..], &set].concat());
    assert!(text.contains("gc.victim.external.name") && text.contains("cost-age-times"), "{text}");
    let (status, text) = command(&["run", "tiny", "rw=read", "--set", "gc.victim=cost-age-time"]);
    assert!(status == Some(2) && text.contains("did you mean `cost-age-times`?"), "{text}");
    let (_, text) = command(&["device", "schema"]);
    assert!(text.contains("\"cost-age-times\"") && text.contains("\"deadline\""), "{text}");
    assert!(text.contains("\"append\"") && text.contains("\"log-block\""), "{text}");
}
