//! Timing diagrams of docs/model: one figure per command, drawn from a run with a few requests.
//!
//! The device is that of Hu et al. 2011, Table 2 (pages of 2048 B, 25 ns per byte, tR 20 us, tPROG 200 us, tBERS 1.5
//! ms) with one channel and one chip. The command and address cycles, which the paper omits, are those of ONFI 2.2.

use floatgate_core::device_file::load;
use floatgate_core::policies::Class;
use floatgate_core::sim::id::{Lpn, PlaneId};
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options};
use floatgate_core::timeline::{Kind, Phase, Probe, Slice};
use floatgate_report::timeline::TimelineWriter;

use crate::common::{drain, fill, submit, units};

pub const US: u64 = 1_000_000;
/// Command and address cycles of a read or a program, and of an erase.
pub const A: u64 = 7 * 25_000;
pub const A_ERASE: u64 = 5 * 25_000;
/// Data transfer of a page.
pub const X: u64 = 2048 * 25_000;
pub const READ: u64 = 20 * US;
pub const PROGRAM: u64 = 200 * US;
pub const ERASE: u64 = 1500 * US;

const BASE: [&str; 10] = [
    "name=hu2011",
    "geometry.channels=1",
    "geometry.chips=1",
    "geometry.dies=1",
    "geometry.planes=1",
    "geometry.blocks=16",
    "geometry.pages=8",
    "capacity.spare=0.5",
    "bus.command_cycles={ read = 7, program = 7, erase = 5 }",
    "allocation.static.order=plane-die-chip-channel",
];

/// A figure.
pub struct Figure {
    /// Name of the file, without extension.
    pub name: &'static str,
    pub title: &'static str,
    /// Changes to the basic device.
    pub overrides: Vec<&'static str>,
    /// All phases of the array.
    pub slices: Vec<Slice>,
    pub completions: Vec<Completion>,
    /// Span to draw.
    pub span: (Time, Time),
    /// Expected duration, calculated by hand.
    pub takes: u64,
    luns: Vec<u32>,
}

impl Figure {
    /// Returns the timeline that `floatgate run --timeline` would write.
    pub fn timeline(&self) -> Vec<u8> {
        let device = device(&self.overrides);
        let streams = ["host".to_owned()];
        let whole = (Time::ZERO, Time::NEVER);
        let mut writer =
            TimelineWriter::new(Vec::new(), device.config(), self.luns.clone(), &streams, whole, u64::MAX).unwrap();
        writer.slices(&self.slices).unwrap();
        self.completions.iter().for_each(|completion| writer.completed(completion, None).unwrap());
        writer.finish(None).unwrap()
    }

    /// Returns the phases that are drawn.
    pub fn drawn(&self) -> impl Iterator<Item = &Slice> {
        let here = |slice: &&Slice| slice.end > self.span.0 && slice.start < self.span.1;
        self.slices.iter().filter(move |slice| slice.phase != Phase::Wait && here(slice))
    }
}

fn device(overrides: &[&str]) -> Device {
    let all: Vec<String> = BASE.iter().chain(overrides).map(|text| (*text).to_owned()).collect();
    let config = load("hu2011", &all).unwrap_or_else(|error| panic!("{all:?}: {error}"));
    Device::new(config, Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn write(device: &Device, tag: u64, first: u64, count: u32) -> Request {
    Request { tag, ..units(device, Operation::Write, first, count) }
}

fn read(device: &Device, tag: u64, first: u64, count: u32) -> Request {
    Request { tag, ..units(device, Operation::Read, first, count) }
}

/// Runs requests at these times. Returns the phases and completions of the device.
fn play(device: &mut Device, script: &[(u64, Request)]) -> (Vec<Slice>, Vec<Completion>) {
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER).with_waits()));
    script.iter().for_each(|&(at, request)| submit(device, Time(at), request));
    let completions = drain(device);
    (device.array().probe().expect("a probe is set").slices().to_vec(), completions)
}

type Script<'a> = &'a dyn Fn(&Device) -> Vec<(u64, Request)>;

/// Returns a figure of a script that runs on a device with 16 written pages.
fn figure(name: &'static str, title: &'static str, overrides: &[&'static str], takes: u64, script: Script) -> Figure {
    let mut device = device(overrides);
    fill(&mut device, 16);
    let script = script(&device);
    let (slices, completions) = play(&mut device, &script);
    let whole = (Time::ZERO, Time::NEVER);
    finished(name, title, overrides, (device, slices, completions), whole, takes)
}

fn finished(
    name: &'static str,
    title: &'static str,
    overrides: &[&'static str],
    (device, slices, completions): (Device, Vec<Slice>, Vec<Completion>),
    span: (Time, Time),
    takes: u64,
) -> Figure {
    let luns = (0..device.config().total_planes()).map(|plane| device.array().lun_of(PlaneId(plane)).0).collect();
    Figure { name, title, overrides: overrides.to_vec(), slices, completions, span, takes, luns }
}

/// Order in which pages are overwritten.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// Pages in ascending order, so that victims have no valid pages.
    Sequential,
    Random,
}

/// Returns a full device after `overwritten` overwrites in each plane, and the next write.
fn used(overrides: &[&'static str], order: Order, overwritten: u32) -> (Device, Request) {
    let mut device = device(overrides);
    let planes = device.config().total_planes();
    let rows = device.config().logical_units() as u32 / planes;
    fill(&mut device, rows * planes);
    let mut rng = Rng::new(1, "diagrams");
    for index in 0..overwritten {
        let row = if order == Order::Random { rng.below(u64::from(rows)) as u32 } else { index % rows };
        (0..planes).for_each(|plane| device.ftl_mut().write_whole(Lpn(row * planes + plane)));
    }
    device.ftl_mut().seal();
    let request = write(&device, 0, u64::from(overwritten % rows * planes), planes);
    (device, request)
}

/// Returns a figure of garbage collection. The number of overwrites is the first one after which `wanted` finds a span.
fn gc(
    name: &'static str,
    title: &'static str,
    overrides: &[&'static str],
    takes: u64,
    order: Order,
    wanted: impl Fn(&[Slice]) -> Option<(Time, Time)>,
) -> Figure {
    let found = (0..400).find_map(|overwritten| {
        let (mut device, request) = used(overrides, order, overwritten);
        let (slices, completions) = play(&mut device, &[(0, request)]);
        wanted(&slices).map(|span| (device, slices, completions, span))
    });
    let (device, slices, completions, span) = found.unwrap_or_else(|| panic!("{name}: no span was found"));
    finished(name, title, overrides, (device, slices, completions), span, takes)
}

/// Returns the span of garbage-collection erases, if exactly `planes` planes are erased.
fn erased(slices: &[Slice], planes: usize) -> Option<(Time, Time)> {
    let erases = || slices.iter().filter(|slice| slice.kind == Kind::Erase && slice.phase != Phase::Wait);
    let from = erases().map(|slice| slice.start).min()?;
    let to = erases().map(|slice| slice.end).max()?;
    (erases().filter(|slice| slice.phase == Phase::Cell).count() == planes).then_some((from, to))
}

/// Returns the span in which garbage collection moves a page by copy-back, and the next page through the controller.
fn moved(slices: &[Slice]) -> Option<(Time, Time)> {
    let cleans = |slice: &&Slice| matches!(slice.class, Class::Gc | Class::UrgentGc) && slice.phase == Phase::Cell;
    let cells: Vec<&Slice> = slices.iter().filter(cleans).collect();
    let kinds = [Kind::CopyBack, Kind::CopyBack, Kind::Read, Kind::Program];
    let found = cells.windows(4).find(|four| four.iter().map(|slice| slice.kind).eq(kinds))?;
    Some((found[0].start - Time(A), found[3].end))
}

/// Returns the span in which garbage collection moves a page in each of two planes by one copy-back command.
fn moved_together(slices: &[Slice]) -> Option<(Time, Time)> {
    let moves = |slice: &&Slice| slice.kind == Kind::CopyBack && slice.phase == Phase::Cell;
    let cells: Vec<&Slice> = slices.iter().filter(moves).collect();
    let found = cells.windows(4).find(|four| four[0].start == four[1].start && four[2].start == four[3].start)?;
    Some((found[0].start - Time(2 * A), found[3].end))
}

/// All figures.
pub fn figures() -> Vec<Figure> {
    [basic(), multi_plane(), dies(), caches(), suspended(), places(), gangs(), pairs(), copies(), merges()]
        .into_iter()
        .flatten()
        .collect()
}

fn basic() -> Vec<Figure> {
    vec![
        figure("read", "Page read", &[], A + READ + X, &|d| vec![(0, read(d, 0, 0, 1))]),
        figure("program", "Page program", &[], A + X + PROGRAM, &|d| vec![(0, write(d, 0, 20, 1))]),
        gc("erase", "Block erase", &[], A_ERASE + ERASE, Order::Sequential, |slices| erased(slices, 1)),
        gc(
            "copy-back",
            "GC: a page moved by copy-back, and one through the controller",
            &["nand.advanced.copy_back=wise"],
            2 * A + READ + PROGRAM + 2 * (A + X) + READ + PROGRAM,
            Order::Random,
            moved,
        ),
    ]
}

fn multi_plane() -> Vec<Figure> {
    vec![
        figure(
            "multi-plane-read",
            "Two-plane read",
            &["geometry.planes=2", "nand.advanced.multi_plane_read=true"],
            2 * A + READ + 2 * X,
            &|d| vec![(0, read(d, 0, 0, 2))],
        ),
        figure(
            "multi-plane-program",
            "Two-plane program",
            &["geometry.planes=2", "nand.advanced.multi_plane_program=wise"],
            2 * (A + X) + PROGRAM,
            &|d| vec![(0, write(d, 0, 20, 2))],
        ),
        gc(
            "multi-plane-erase",
            "Two-plane erase",
            &["geometry.planes=2", "nand.advanced.multi_plane_erase=true", "nand.advanced.multi_plane_program=wise"],
            2 * A_ERASE + ERASE,
            Order::Sequential,
            |slices| erased(slices, 2),
        ),
        gc(
            "multi-plane-copy-back",
            "GC: a page of each plane moved by a two-plane copy-back",
            &[
                "geometry.planes=2",
                "nand.advanced.copy_back=wise",
                "nand.advanced.multi_plane_read=true",
                "nand.advanced.multi_plane_program=wise",
            ],
            4 * A + READ + PROGRAM,
            Order::Random,
            moved_together,
        ),
    ]
}

fn dies() -> Vec<Figure> {
    vec![
        figure(
            "interleaved-program",
            "Interleaved program of two dies",
            &["geometry.dies=2", "nand.advanced.interleave=true"],
            2 * (A + X) + PROGRAM,
            &|d| vec![(0, write(d, 0, 20, 2))],
        ),
        figure(
            "interleaved-two-plane-program",
            "Interleaved two-plane program of two dies",
            &[
                "geometry.dies=2",
                "geometry.planes=2",
                "nand.advanced.interleave=true",
                "nand.advanced.multi_plane_program=wise",
            ],
            4 * (A + X) + PROGRAM,
            &|d| vec![(0, write(d, 0, 20, 4))],
        ),
        figure(
            "interleaved-read",
            "Interleaved read of two dies",
            &["geometry.dies=2", "nand.advanced.interleave=true"],
            A + READ + 2 * X,
            &|d| vec![(0, read(d, 0, 0, 2))],
        ),
        gc(
            "interleaved-erase",
            "Interleaved erase of two dies",
            &["geometry.dies=2", "nand.advanced.interleave=true"],
            2 * A_ERASE + ERASE,
            Order::Sequential,
            |slices| erased(slices, 2),
        ),
    ]
}

fn gangs() -> Vec<Figure> {
    let gang = |mode: &'static str| vec!["geometry.channels=2", "nand.concurrency=chip", "gang.width=2", mode];
    vec![
        figure("gang-serial", "Serial gang: two page reads", &gang("gang.mode=serial"), 2 * (A + READ + X), &|d| {
            vec![(0, read(d, 0, 0, 2))]
        }),
        figure(
            "gang-interleaved",
            "Interleaved gang: two page reads",
            &gang("gang.mode=interleaved"),
            A + READ + 2 * X,
            &|d| vec![(0, read(d, 0, 0, 2))],
        ),
        figure(
            "gang-asynchronous",
            "Asynchronous gang: a write to one package, and a read of the other",
            &gang("gang.mode=asynchronous"),
            A + X + PROGRAM,
            &|d| vec![(0, write(d, 0, 16, 1)), (60 * US, read(d, 1, 1, 1))],
        ),
        figure(
            "gang-synchronous",
            "Synchronous gang: a write of half a page",
            &gang("gang.mode=synchronous"),
            (A + READ + X / 2) + (A + X + PROGRAM),
            &|_| vec![(0, Request::new(Time::ZERO, Operation::Write, 0, 4))],
        ),
        figure(
            "fused-partial-write",
            "Fused partial write of half a page",
            &["nand.advanced.copy_back_modify=true"],
            A + READ + A + X / 2 + PROGRAM,
            &|_| vec![(0, Request::new(Time::ZERO, Operation::Write, 0, 2))],
        ),
    ]
}

/// Returns the span in which both pairs of a die move a page by copy-back at the same time.
fn moved_in_pairs(slices: &[Slice]) -> Option<(Time, Time)> {
    let moves = |slice: &&Slice| slice.kind == Kind::CopyBack && slice.phase == Phase::Cell;
    let cells: Vec<&Slice> = slices.iter().filter(moves).collect();
    let found = cells.windows(4).find(|four| {
        let [first, second, third, fourth] = [0, 1, 2, 3].map(|index| four[index].plane);
        four[1].start == four[0].start + Time(A) && (first, second) == (third, fourth) && first / 2 != second / 2
    })?;
    Some((found[0].start - Time(A), found[3].end))
}

fn pairs() -> Vec<Figure> {
    let pairs = ["geometry.planes=4", "nand.concurrency=plane-pair"];
    vec![
        figure(
            "plane-pairs",
            "Two-plane programs in two pairs of planes",
            &[pairs[0], pairs[1], "nand.advanced.multi_plane_program=wise"],
            4 * (A + X) + PROGRAM,
            &|d| vec![(0, write(d, 0, 16, 4))],
        ),
        gc(
            "plane-pair-copy-backs",
            "GC: two copy-backs at once in the two pairs of a die",
            &[pairs[0], pairs[1], "nand.advanced.copy_back=wise"],
            3 * A + READ + PROGRAM,
            Order::Random,
            moved_in_pairs,
        ),
    ]
}

/// Returns the copies of eight victims of idle time, from the planes of one package to the planes of another one:
/// Figure 2 of Agrawal et al. 2008, with its times. Half of the pages of a victim are valid.
fn copies() -> Vec<Figure> {
    let overrides = [
        "geometry.channels=2",
        "geometry.dies=2",
        "geometry.planes=4",
        "geometry.page_size=4KiB",
        "nand.concurrency=plane-pair",
        "nand.read=25us",
        "bus.command_cycles={ read = 0, program = 0, erase = 0 }",
        "allocation=dynamic",
        "gc.scope=pool",
        "gc.destination=pool",
        "gc.background={ idle = \"1ms\", until = 16 }",
    ];
    let mut device = device(&overrides);
    for plane in 0..8 {
        let units = (8 * plane..8 * plane + 8).map(Lpn);
        let ftl = device.ftl_mut();
        units.clone().for_each(|unit| ftl.write_to(PlaneId(plane), unit));
        units.take(4).for_each(|unit| ftl.trim(unit));
    }
    let request = read(&device, 0, 7, 1);
    let (slices, completions) = play(&mut device, &[(0, request)]);
    let copies = slices.iter().filter(|slice| slice.class == Class::BackgroundGc && slice.phase != Phase::Wait);
    let from = copies.map(|slice| slice.start).min().expect("pages are copied");
    // The ninth page has entered its target.
    let (read, data) = (25 * US, 2 * X);
    let span = (from, from + Time(read + 10 * data));
    let title = "GC: pages of eight blocks of a package are copied to another package";
    let takes = read + 9 * data + PROGRAM;
    vec![finished("copies-between-packages", title, &overrides, (device, slices, completions), span, takes)]
}

fn caches() -> Vec<Figure> {
    vec![
        figure(
            "cache-read",
            "Read cache: three pages of a block",
            &["nand.concurrency=die", "nand.advanced.cache_read=true"],
            3 * A + READ + 3 * X,
            &|d| vec![(0, read(d, 0, 0, 3))],
        ),
        figure(
            "multi-plane-cache-read",
            "Read cache: three pages of a block in each of two planes",
            &[
                "geometry.planes=2",
                "nand.concurrency=die",
                "nand.advanced.cache_read=true",
                "nand.advanced.multi_plane_read=true",
            ],
            6 * A + READ + 6 * X,
            &|d| vec![(0, read(d, 0, 0, 6))],
        ),
        figure(
            "cache-program",
            "Cache program: three pages of a block",
            &["nand.concurrency=die", "nand.advanced.cache_program=true"],
            A + X + 3 * PROGRAM,
            &|d| vec![(0, write(d, 0, 20, 3))],
        ),
    ]
}

const SUSPENDS: [&str; 3] = [
    "nand.concurrency=die",
    "scheduler=read-first",
    "nand.advanced.suspend={ program = true, erase = true, latency = \"20us\", resume = \"10us\" }",
];

fn suspended() -> Vec<Figure> {
    let latencies = (20 + 10) * US;
    let mut all = vec![figure(
        "suspended-program",
        "A program suspended by a read",
        &SUSPENDS,
        A + X + PROGRAM + latencies + A + READ + X,
        &|d| vec![(0, write(d, 0, 20, 1)), (120 * US, read(d, 1, 0, 1))],
    )];
    // Run once to find the erase, then again with a read in the middle of it.
    let (overwritten, (from, _)) = (0..400)
        .find_map(|overwritten| {
            let (mut device, request) = used(&SUSPENDS, Order::Sequential, overwritten);
            let (slices, _) = play(&mut device, &[(0, request)]);
            erased(&slices, 1).map(|span| (overwritten, span))
        })
        .expect("an erase occurs");
    let (mut device, request) = used(&SUSPENDS, Order::Sequential, overwritten);
    let last = device.config().logical_units() - 1;
    let other = read(&device, 1, last, 1);
    let (slices, completions) = play(&mut device, &[(0, request), (from.ps() + 600 * US, other)]);
    let (from, to) = erased(&slices, 2).expect("the erase has two parts");
    all.push(finished(
        "suspended-erase",
        "An erase suspended by a read",
        &SUSPENDS,
        (device, slices, completions),
        (from, to),
        A_ERASE + ERASE + latencies + A + READ + X,
    ));
    all
}

fn places() -> Vec<Figure> {
    const CHIPS: [&str; 2] = ["geometry.chips=2", "allocation.static.order=chip-plane-die-channel"];
    vec![
        figure(
            "wordline-program",
            "Program of a wordline of three pages (tPROG 600 us)",
            &["nand.cell=tlc", "geometry.pages=9", "geometry.pages_per_program=3", "nand.program=600us"],
            A + 3 * X + 600 * US,
            &|d| vec![(0, write(d, 0, 21, 3))],
        ),
        figure(
            "partial-write",
            "Un-covered update: three sectors of a page of four",
            &[],
            2 * A + X / 4 + X + READ + PROGRAM,
            &|_| vec![(0, Request { tag: 0, ..Request::new(Time::ZERO, Operation::Write, 0, 3) })],
        ),
        figure(
            "two-chips",
            "Two chips on a channel: a read waits to transfer its data",
            &CHIPS,
            2 * A + READ + 2 * X - A,
            &|d| vec![(0, read(d, 0, 0, 1)), (0, read(d, 1, 1, 1))],
        ),
        figure(
            "way-switch",
            "Two chips on a channel with a way switch of 5 us",
            &[CHIPS[0], CHIPS[1], "bus.way_switch=5us"],
            A + X + PROGRAM + A + X + 5 * US,
            &|d| vec![(0, write(d, 0, 20, 2))],
        ),
    ]
}

/// Returns a figure of a merge. The units in `before` are written without time, and then one unit in time.
fn merge(
    name: &'static str,
    title: &'static str,
    overrides: &[&'static str],
    takes: u64,
    before: &[u32],
    unit: u64,
) -> Figure {
    let mut device = device(overrides);
    before.iter().for_each(|unit| device.ftl_mut().write_whole(Lpn(*unit)));
    device.ftl_mut().seal();
    let request = write(&device, 0, unit, 1);
    let (slices, completions) = play(&mut device, &[(0, request)]);
    finished(name, title, overrides, (device, slices, completions), (Time::ZERO, Time::NEVER), takes)
}

/// Merges of FAST with a log block of each kind.
fn merges() -> Vec<Figure> {
    const FAST: &str = "mapping.scheme={ fast = { logs = { sequential = 1, random = 1 }, first_writes = \"log\" } }";
    const COPY: u64 = A + READ + X + A + X + PROGRAM;
    let on = |chips, pages| [chips, "allocation.static.order=chip-plane-die-channel", FAST, pages];
    let (four, two) = (on("geometry.chips=3", "geometry.pages=4"), on("geometry.chips=4", "geometry.pages=2"));
    let erase = A_ERASE + ERASE;
    vec![
        merge("switch-merge", "Switch", &four, erase, &[0, 1, 2, 3, 0, 1, 2, 3], 4),
        merge("partial-merge", "Partial merge", &four, 2 * COPY + erase, &[0, 1, 2, 3, 0, 1], 4),
        // The channel takes the command that erases the log block, the page of the write, and the command that erases
        // the second data block.
        merge("full-merge", "Full merge", &two, 4 * COPY + A_ERASE + A + X + erase, &[0, 1, 2, 3, 4, 5, 1, 3], 5),
    ]
}
