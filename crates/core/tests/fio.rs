//! fio's job files and keys: what is issued, and when, against what fio's documentation says and fio itself does.

mod common;

use std::path::Path;

use common::device;
use floatgate_core::device::Device;
use floatgate_core::metrics::attribution::Breakdown;
use floatgate_core::run::{Outcome, Progress, Watcher, run};
use floatgate_core::sim::request::{Completion, Operation, SECTOR};
use floatgate_core::sim::source::{Source, SourceError};
use floatgate_core::sim::time::Time;
use floatgate_core::workload::synthetic::{self, Job, Planned};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const US: u64 = 1_000_000;
const MS: u64 = 1000 * US;

/// Unmapped reads are answered by the controller at once, with nothing else in the way; so requests end when they
/// arrive, and times are those of the workload alone.
fn instant() -> Device {
    device::<&str>(&[])
}

/// Every request in the order of completion: its stream, operation, first byte, length, arrival and finish.
#[derive(Default)]
struct Seen(Vec<(u16, Operation, u64, u64, u64, u64)>);

impl Watcher for Seen {
    fn completed(&mut self, completion: &Completion, _: Option<&Breakdown>) -> Result<(), String> {
        let Completion { request, finish, .. } = completion;
        let bytes = u64::from(request.sectors) * SECTOR;
        self.0.push((
            request.stream,
            request.operation,
            request.lba * SECTOR,
            bytes,
            request.arrival.ps(),
            finish.ps(),
        ));
        Ok(())
    }
    fn progress(&mut self, _: Progress) -> bool {
        true
    }
}

fn played(device: &mut Device, jobs: Vec<Job>) -> (Outcome, Seen) {
    let mut sources: Vec<Box<dyn Source>> = jobs.into_iter().map(|job| job.source).collect();
    let mut seen = Seen::default();
    let outcome = run(device, &mut sources, &mut seen).expect("it runs");
    assert!(outcome.complete);
    (outcome, seen)
}

/// What a text of jobs does on the device.
fn line(device: &mut Device, text: &str) -> Seen {
    let jobs = synthetic::parse(text, device.config().logical_bytes(), 1).unwrap_or_else(|error| panic!("{error}"));
    played(device, jobs).1
}

impl Seen {
    /// Arrivals of a stream, in parts of `unit` picoseconds.
    fn arrivals(&self, stream: u16, unit: u64) -> Vec<u64> {
        let of = self.0.iter().filter(|seen| seen.0 == stream);
        let mut all: Vec<u64> = of.map(|seen| seen.4).collect();
        all.sort_unstable();
        assert!(all.iter().all(|at| at % unit == 0), "{all:?}");
        all.into_iter().map(|at| at / unit).collect()
    }

    /// What a stream did, in order: the letter of the operation and the first byte in KiB.
    fn order(&self, stream: u16) -> String {
        let of = self.0.iter().filter(|seen| seen.0 == stream);
        of.map(|seen| format!("{}{}", &seen.1.name()[..1], seen.2 / 1024)).collect::<Vec<_>>().join(" ")
    }
}

/// The plan of a job file; includes are not found.
fn plan(text: &str) -> Result<Vec<Planned>, SourceError> {
    plan_with(text, &[])
}

fn plan_with(text: &str, included: &[(&str, &str)]) -> Result<Vec<Planned>, SourceError> {
    let mut files = |path: &Path| {
        let path = path.to_str().unwrap();
        if path == "dir/jobs.fio" {
            return Ok(text.to_owned());
        }
        let found = included.iter().find(|(name, _)| *name == path);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| format!("{path} is not there"))
    };
    synthetic::plan_file(Path::new("dir/jobs.fio"), &mut files, 256 * MIB, 1)
}

fn made(planned: Vec<Planned>) -> Vec<synthetic::Synthetic> {
    let made = |planned| match planned {
        Planned::Made(job) => *job,
        Planned::Replayed(recipe) => panic!("{recipe:?}"),
    };
    planned.into_iter().map(made).collect()
}

fn error(text: &str) -> String {
    plan(text).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn files_are_read_as_fio_reads_them() {
    let text = "\u{feff}; a comment\r\n[global]\n  bs = 8k  # behind a value\nrw=randread\ntime_based=0\n\n[first]\n\
                rw=write\niodepth=4 ; and here\n[global]\nsize=50%\n[second]\nbs=4k\nname=other\n";
    let jobs = made(plan(text).unwrap());
    let said: Vec<&str> = jobs.iter().map(|job| job.description()).collect();
    assert_eq!(
        said,
        [
            "first: write of 8 KiB in the first 256 MiB, 4 outstanding",
            "other: randread of 4 KiB in the first 128 MiB, 1 outstanding"
        ]
    );
}

#[test]
fn includes_stand_for_their_lines() {
    let files = [("dir/sub/common.fio", "bs=8k\ninclude deeper.fio\n"), ("dir/sub/deeper.fio", "size=1m\n")];
    let jobs = made(plan_with("[a]\nrw=write\ninclude sub/common.fio\n[b]\nrw=read\n", &files).unwrap());
    assert_eq!(jobs[0].description(), "a: write of 8 KiB in the first 1 MiB, 1 outstanding");
    assert_eq!(jobs[1].description(), "b: read of 4 KiB in the first 256 MiB, 1 outstanding");
    let error = |files: &[(&str, &str)]| plan_with("[a]\ninclude x.fio\n", files).unwrap_err().to_string();
    assert_eq!(error(&[]), "dir/jobs.fio:2: include: dir/x.fio is not there");
    assert_eq!(
        error(&[("dir/x.fio", "rw=read\n[b]\n")]),
        "dir/x.fio:2: an included file has no sections; move them to the file that includes it"
    );
    assert_eq!(error(&[("dir/x.fio", "include x.fio\n")]), "dir/x.fio:1: files include each other more than 16 deep");
    let twice = "include x.fio\n".repeat(2);
    assert!(error(&[("dir/x.fio", twice.as_str())]).contains("more than 16 deep"));
    assert!(error(&[("dir/x.fio", "bs=5\n")]).starts_with("dir/x.fio:1: [a] `bs=5`: must be a multiple of 512"));
}

#[test]
fn errors_name_file_line_section_and_key() {
    let cases = [
        (
            "rw=read\n",
            "dir/jobs.fio:1: `rw=read` stands outside of a section; begin one above it, like [global] or [reads]",
        ),
        ("[a]\n\nbs=1000\n", "dir/jobs.fio:3: [a] `bs=1000`: must be a multiple of 512 bytes, is 1000"),
        ("[a\nrw=read", "dir/jobs.fio:1: a section's name ends with `]`"),
        ("[]\nrw=read", "dir/jobs.fio:1: a section's name has 1 to 255 bytes"),
        (
            "[globals]\nrw=read",
            "dir/jobs.fio:1: fio takes every section whose name begins with `global` for [global]; give [globals] \
             another name",
        ),
        (
            "[a]\nsize=${SIZE}",
            "dir/jobs.fio:2: [a] `size`: variables of the environment are not read, so that a file means the same \
             everywhere; write the value, or put it in with `envsubst`",
        ),
        ("[a]\nnumjobs=$ncpus", "dir/jobs.fio:2: [a] `numjobs`: `$ncpus` is a figure of the machine; write the number"),
        ("[a]\nbs=4k\\\nrw=read", "dir/jobs.fio:2: [a] `bs`: lines are not continued in fio; write it in one line"),
        (
            "[a]\nrw=read\n[b]\nnumjobs=1000000000\n",
            "dir/jobs.fio:4: [b]: `numjobs`: there are more than 4096 jobs, clones by numjobs included; that is the most, as in fio",
        ),
        (
            "[a]\nsize=1g\n",
            "dir/jobs.fio:2: [a]: `size` of 1 GiB does not fit the device, which has 256 MiB after the offset",
        ),
        ("[global]\nbs=4k\n", "dir/jobs.fio: there is no job in it; a job is a section like [reads] with its keys"),
        (
            "[a]\nverify=crc32c\n",
            "dir/jobs.fio:2: [a] `verify` of fio is not supported: the simulator checks contents in its own tests; leave it out",
        ),
        ("[a]\n[a]\n", "dir/jobs.fio:2: [a]: two jobs have the name `a`; give each its own with name=..."),
        ("[a]\nwait_for=b\n[b]\n", "dir/jobs.fio:2: [a]: `wait_for=b`: no job before this one has that name"),
        (
            "[a]\nwrite_iolog=x\n[b]\nwrite_iolog=x",
            "dir/jobs.fio:4: [b]: `write_iolog=x` is that of `a` too; give each job its own",
        ),
        (
            "[a]\nrate=1m\nrate_iops=4\n",
            "dir/jobs.fio:2: [a]: `rate` and `rate_iops` exclude each other; leave one out",
        ),
        (
            "[a]\nrw=randrw\nrate=1m,\n",
            "dir/jobs.fio:3: [a]: `rate` says nothing of the writes of rw; without a rate, give the writes a job of their own",
        ),
        (
            "[a]\noffset=200m\noffset_increment=100m\nnumjobs=2\n",
            "dir/jobs.fio:2: [a]: `offset` and `offset_increment` leave nothing of the device of 256 MiB",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected);
    }
    assert!(
        error("[a]\nrw=read\niodetph=4\n")
            .starts_with("dir/jobs.fio:3: [a] `iodetph` is not supported; did you mean `iodepth`?")
    );
    assert!(error("[a]\nioengin=x\n").contains("did you mean `ioengine`?"));
    assert!(error("[a]\nnumjobs=4000\n[b]\nnumjobs=97\n").contains("more than 4096 jobs"));
}

#[test]
fn keys_of_the_host_are_named_once() {
    let jobs = made(plan("[global]\nioengine=libaio\ndirect=1\n[a]\nthread\nbs=4k\nbs=8k\n[b]\n").unwrap());
    assert_eq!(
        jobs[0].warnings(),
        [
            "dir/jobs.fio:7: [a] `bs` replaces that of dir/jobs.fio:6",
            "direct, ioengine, thread have no meaning for a simulated device, which has no host; they are left out"
        ]
    );
    assert_eq!(jobs[1].warnings(), [""; 0]);
}

#[test]
fn suffixes_are_those_of_kb_base() {
    let block =
        |base: &str, bs: &str| made(plan(&format!("[a]\nbs={bs}\n{base}\n")).unwrap())[0].description().to_owned();
    assert!(block("", "4k").contains("of 4 KiB"));
    assert!(block("kb_base=1024", "4kb").contains("of 4 KiB"));
    assert!(block("kb_base=1000", "4ki").contains("of 4 KiB"));
    assert!(block("kb_base=1000", "512k").contains("of 500 KiB"));
    assert!(error("[a]\nbs=4k\nkb_base=1000\n").ends_with("is 4000 (with kb_base=1000, k is 1000 and ki is 1024)"));
}

#[test]
fn files_of_several_names_lie_side_by_side() {
    let text = "[global]\nrw=write\nbs=4k\nnumber_ios=2\n[a]\nfilename=x\nsize=1m\n[b]\nfilename=y\nsize=5k\noffset=4k\n\
                bs=512\n[c]\nfilename=x\nsize=4k\noffset=3m\n[d]\nfilename=z\nfilesize=8m\noffset=50%\n";
    let first: Vec<u64> =
        made(plan(text).unwrap()).iter_mut().map(|job| job.next_request().unwrap().unwrap().lba * SECTOR).collect();
    // x holds 3 MiB and 4 KiB, and so y starts at 4 MiB, z at 5 MiB.
    assert_eq!(first, [0, 4 * MIB + 4096, 3 * MIB, 5 * MIB + 4 * MIB]);
    assert!(error("[a]\nfilename=x\nsize=1m\n[b]\n").contains("no `filename`, where other jobs have one"));
    assert!(error("[a]\nfilename=x\nsize=1m\n[b]\nfilename=y\n").contains("give filesize, or size in bytes"));
    assert!(
        error("[a]\nfilename=x\nsize=200m\n[b]\nfilename=y\nsize=100m").contains("do not fit the device of 256 MiB")
    );
    // One name is the device.
    assert_eq!(
        made(plan("[a]\nfilename=/dev/sda\n").unwrap())[0].description(),
        "a: read of 4 KiB in the first 256 MiB, 1 outstanding"
    );
}

/// What fio 3.33 wrote with `write_iolog`, ioengine=null and size=64k.
#[test]
fn sequences_are_those_of_fio() {
    let mut device = instant();
    let order = |text: &str| {
        let jobs = synthetic::parse(text, 256 * MIB, 1).unwrap();
        played(&mut device, jobs).1.order(0)
    };
    let mut order = order;
    assert_eq!(order("rw=trimwrite size=64k number_ios=3"), "t0 w0 t4 w4 t8 w8");
    assert_eq!(order("rw=write size=64k io_size=12k loops=2"), "w0 w4 w8 w12 w16 w20");
    assert_eq!(order("rw=write size=64k number_ios=3 loops=2"), "w0 w4 w8 w12 w16 w20");
    assert_eq!(order("rw=write size=64k number_ios=6 fsync=2 fdatasync=3"), "w0 w4 f0 w8 f0 w12 f0 w16 w20 f0");
    assert_eq!(order("rw=write size=16k io_size=36k offset=16k"), "w16 w20 w24 w28 w16 w20 w24 w28 w16");
    assert_eq!(order("rw=write:4k size=64k offset=4k"), "w4 w12 w20 w28 w36 w44 w52 w60");
    assert_eq!(order("rw=read:-8k size=1m number_ios=4"), "r0 r1016 r1012 r1008");
    assert_eq!(order("rw=write size=64k number_ios=2 end_fsync"), "w0 w4 f0");
    assert_eq!(order("rw=write size=64k number_ios=2 fsync=2 end_fsync"), "w0 w4 f0 f0");
}

#[test]
fn random_addresses_lead_runs() {
    let starts = |text: &str| -> Vec<u64> {
        let seen = line(&mut instant(), text);
        seen.0.iter().map(|seen| seen.2 / 4096).collect()
    };
    let runs = starts("rw=randread:4 size=4m io_size=16000k norandommap");
    let follows = |pair: &[u64]| pair[1] == pair[0] + 1 || pair[0] == 1023;
    assert!(runs.chunks(4).all(|run| run.windows(2).all(follows)), "{runs:?}");
    assert!(runs.chunks(4).map(|run| run[0]).collect::<std::collections::BTreeSet<_>>().len() > 500);
    let same = starts("rw=randread:4 size=4m io_size=16000k norandommap rw_sequencer=identical");
    assert!(same.chunks(4).all(|run| run.iter().all(|start| *start == run[0])));
    // A quarter at random: of 40000, 10000 with a deviation of 87; 0.1 % of these follow by chance.
    let quarter = starts("rw=randread size=4m io_size=160000k norandommap percentage_random=25");
    let random = quarter.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    assert!(random.abs_diff(10_000) < 500, "{random}");
}

#[test]
fn rates_are_exact_and_each_direction_has_its_own() {
    let seen = line(&mut instant(), "rw=randread rate_iops=3 number_ios=4");
    assert_eq!(seen.arrivals(0, 1), [0, 333_333_333_333, 666_666_666_667, 1_000_000_000_000]);
    // 4 KiB at 4 MiB/s are 1/1024 s; 8 KiB twice that.
    let seen = line(&mut instant(), "rw=read rate=4m bs=4k number_ios=3");
    assert_eq!(seen.arrivals(0, 1), [0, 976_562_500, 1_953_125_000]);
    let seen = line(&mut instant(), "rw=rw rate_iops=1000,500 runtime=10ms");
    let of = |operation| {
        let of = seen.0.iter().filter(|seen| seen.1 == operation);
        of.map(|seen| seen.4 / MS).collect::<Vec<u64>>()
    };
    assert_eq!(of(Operation::Read), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(of(Operation::Write), [0, 2, 4, 6, 8]);
    let seen = line(&mut instant(), "rw=rw rate_iops=1000 runtime=10ms");
    assert_eq!((seen.0.len(), seen.arrivals(0, MS).len()), (20, 20));
    let seen = line(&mut instant(), "rw=rw rate_iops=1000 rwmixread=100 runtime=10ms");
    assert_eq!(seen.0.len(), 10);
}

#[test]
fn clones_and_stonewalls_follow_each_other_to_the_picosecond() {
    let text = "name=a rw=read rate_iops=1000 number_ios=5 numjobs=2; \
                name=b rw=read rate_iops=1000 number_ios=3 stonewall startdelay=2ms; \
                name=c rw=read rate_iops=500 number_ios=2; \
                name=d rw=read rate_iops=1000 number_ios=2 wait_for=b; \
                name=e rw=read rate_iops=1000 number_ios=1 stonewall";
    let seen = line(&mut instant(), text);
    assert_eq!(seen.arrivals(0, MS), [0, 1, 2, 3, 4]);
    assert_eq!(seen.arrivals(1, MS), [0, 1, 2, 3, 4]);
    // The last of the first two came, and was answered, at 4 ms.
    assert_eq!(seen.arrivals(2, MS), [6, 7, 8]);
    assert_eq!(seen.arrivals(3, MS), [4, 6]);
    assert_eq!(seen.arrivals(4, MS), [8, 9]);
    assert_eq!(seen.arrivals(5, MS), [9]);
}

#[test]
fn a_job_whose_time_is_over_ends_then() {
    let text = "name=a rw=read rate_iops=1000 runtime=2500us; name=b rw=read number_ios=1 stonewall";
    assert_eq!(line(&mut instant(), text).arrivals(1, US), [2500]);
    // A closed loop on a device that reads 25 us and takes 102.4 us for 4 KiB, and some for the command.
    let mut device = instant();
    floatgate_core::precondition::precondition(
        &mut device,
        floatgate_core::precondition::Precondition::Fill,
        1,
        &mut |_| true,
    )
    .unwrap();
    let seen = line(&mut device, "name=a rw=read runtime=1ms time_based; name=b rw=read number_ios=1 stonewall");
    let last = seen.0.iter().filter(|seen| seen.0 == 0).map(|seen| seen.5).max().unwrap();
    assert!(last >= MS);
    assert_eq!(seen.arrivals(1, 1), [last]);
}

#[test]
fn batches_think_when_all_is_answered() {
    let seen = line(&mut instant(), "rw=read thinktime=10 number_ios=3");
    assert_eq!(seen.arrivals(0, US), [0, 10, 20]);
    let seen = line(&mut instant(), "rw=read iodepth=4 thinktime=10 thinktime_blocks=2 number_ios=5");
    assert_eq!(seen.arrivals(0, US), [0, 0, 10, 10, 20]);
    // On a device that takes its time: two reads of one chip each, then 10 us after the later one.
    let mut device = instant();
    floatgate_core::precondition::precondition(
        &mut device,
        floatgate_core::precondition::Precondition::Fill,
        1,
        &mut |_| true,
    )
    .unwrap();
    let seen = line(&mut device, "rw=randread iodepth=4 thinktime=10 thinktime_blocks=3 number_ios=9");
    let mut batches: Vec<_> = seen.0.clone();
    batches.sort_by_key(|seen| seen.4);
    for (earlier, later) in batches.chunks(3).zip(batches.chunks(3).skip(1)) {
        let last = earlier.iter().map(|seen| seen.5).max().unwrap();
        assert!(later.iter().all(|seen| seen.4 == last + 10 * US), "{batches:?}");
    }
    // By time: reads follow each other for a millisecond, and for as long nothing is read.
    let seen = line(&mut device, "rw=randread thinktime=1ms thinktime_iotime=1ms number_ios=40");
    let at = seen.arrivals(0, 1);
    let gaps: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let one = gaps[0];
    // Fresh requests start within the millisecond, the last ends after it.
    let in_batch = MS.div_ceil(one) as usize;
    for (index, gap) in gaps.iter().enumerate() {
        let expected = if (index + 1).is_multiple_of(in_batch) { one + MS } else { one };
        assert_eq!(*gap, expected, "gap {index} of {gaps:?}");
    }
}

#[test]
fn delays_and_ramps_count_from_the_start_of_the_job() {
    let text = "name=a rw=read rate_iops=1000 runtime=4ms ramp_time=2ms; \
                name=b rw=read rate_iops=1000 runtime=3ms ramp_time=1ms stonewall; \
                name=c rw=read rate_iops=1000 number_ios=2 startdelay=500us";
    let jobs = synthetic::parse(text, 256 * MIB, 1).unwrap();
    let (outcome, seen) = played(&mut instant(), jobs);
    // Requests at 0 to 5 ms, of which those from 2 ms on count; the next group starts at 6 ms.
    assert_eq!(seen.arrivals(0, MS), [2, 3, 4, 5]);
    assert_eq!(seen.arrivals(1, MS), [7, 8, 9]);
    assert_eq!(seen.arrivals(2, US), [6500, 7500]);
    assert_eq!(outcome.results.all().count(), 9);
}

#[test]
fn shares_of_a_split_are_by_direction() {
    let seen = line(&mut instant(), "rw=randread bssplit=4k/25:16k/75,8k size=32m io_size=100m");
    let small = seen.0.iter().filter(|seen| seen.3 == 4096).count() as f64 / seen.0.len() as f64;
    // About 7900 requests: a deviation of 0.5 %.
    assert!((small - 0.25).abs() < 0.025, "{small}");
    let seen = line(&mut instant(), "rw=write bssplit=4k/25:16k/75,8k size=1m");
    assert!(seen.0.iter().all(|seen| seen.3 == 8192));
}

#[test]
fn a_trace_is_replayed_as_a_job() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    // MSR: 100 ns, host, disk, type, offset, size, response.
    let trace = "128166372000000000,a,0,Read,0,4096,0\n128166372000010000,a,0,Read,8192,4096,0\n\
                 128166372000030000,a,0,Read,4096,4096,0\n";
    std::fs::write(&path, trace).unwrap();
    let job = |keys: &str| {
        let text = format!("name=first rw=read number_ios=1; read_iolog={} {keys}", path.display());
        line(&mut instant(), &text)
    };
    let seen = job("");
    assert_eq!((seen.arrivals(1, MS), seen.order(1)), (vec![0, 1, 3], "r0 r8 r4".to_owned()));
    assert_eq!(job("replay_time_scale=50").arrivals(1, MS), [0, 2, 6]);
    assert_eq!(job("replay_time_scale=300").arrivals(1, 1), [0, 333_333_333, MS]);
    assert_eq!(job("replay_no_stall").arrivals(1, MS), [0, 0, 0]);
    assert_eq!(job("startdelay=5ms number_ios=2").arrivals(1, MS), [5, 6]);
    assert_eq!(job("runtime=2ms").arrivals(1, MS), [0, 1]);
    let text = format!("read_iolog={} bs=4k", path.display());
    let jobs = synthetic::parse(&text, 256 * MIB, 1).unwrap();
    assert_eq!(jobs[0].source.warnings(), ["job1: bs has no effect with read_iolog"]);
    assert!(synthetic::parse("read_iolog=/nowhere/x", MIB, 1).is_err());
}

#[test]
fn preconditioning_keeps_the_order_of_stonewalls() {
    let mut device = instant();
    let text = "name=a rw=write size=1m; name=b rw=randtrim size=1m stonewall";
    let jobs = synthetic::parse(text, device.config().logical_bytes(), 1).unwrap();
    let mut sources: Vec<Box<dyn Source>> = jobs.into_iter().map(|job| job.source).collect();
    floatgate_core::precondition::precondition_with(&mut device, &mut sources, &mut |_| true).unwrap();
    // All that was written has been trimmed; side by side, some would have been written after its trim.
    assert!(device.ftl().blocks.all().iter().all(|block| block.valid == 0));
}

/// The corpus of job files: each is read, and most are accepted.
fn corpus() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/fio");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 8);
    let read = |path: &std::path::PathBuf| {
        (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(path).unwrap())
    };
    files.iter().map(read).collect()
}

/// Plans a text, and takes some requests of what is accepted.
fn survives(text: &str, device_bytes: u64) {
    let mut files = |path: &Path| match path.to_str() {
        Some("x.fio") => Ok(text.to_owned()),
        _ => Err("not there".to_owned()),
    };
    let Ok(planned) = synthetic::plan_file(Path::new("x.fio"), &mut files, device_bytes, 1) else { return };
    assert!(planned.len() <= synthetic::MAX_JOBS);
    for planned in planned.into_iter().take(50) {
        let Planned::Made(mut job) = planned else { continue };
        let _ = (job.warnings(), job.pace(), job.progress(), job.stop_at());
        for _ in 0..50 {
            let Ok(Some(request)) = job.next_request() else { break };
            assert!(request.sectors > 0 || request.operation == Operation::Flush);
            assert!(request.lba + u64::from(request.sectors) <= device_bytes / SECTOR, "{text}: {request:?}");
        }
    }
}

#[test]
fn the_corpus_is_accepted() {
    for (name, text) in corpus() {
        let planned = plan(&text);
        if name.starts_with("wrong") {
            assert!(planned.is_err(), "{name}");
        } else if let Err(error) = planned {
            panic!("{name}: {error}");
        }
        survives(&text, 256 * MIB);
    }
}

/// Parts of job files, for mutations.
const TOKENS: &[&str] = &[
    "\n",
    "[global]\n",
    "[x]\n",
    "=",
    "%",
    "18446744073709551615",
    "0",
    "-1",
    "1e9",
    "k",
    "p",
    "numjobs=1000000000\n",
    "include x.fio\n",
    "stonewall\n",
    ":",
    "/",
    ",",
    "rw=randrw:3\n",
    "bs=1p\n",
    "offset=100%\n",
    "size=1%\n",
    "loops=4294967295\n",
    "io_size=16383p\n",
    "rate=1\n",
    "startdelay=213d\n",
    "runtime=213d\n",
    "kb_base=1000\n",
    "random_distribution=normal:0.0000001:0\n",
    "bsrange=512-1t\n",
    "zonesize=4k\n",
    "filename=y\n",
    "${X}",
    "bssplit=4k/1:8k\n",
    "rw=write:-1p\n",
    "offset_increment=50%\n",
    "thinktime_iotime=1us\n",
    "\u{0}",
    "\u{feff}",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_files_do_no_harm(
        file: prop::sample::Index,
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..3u8, any::<prop::sample::Index>(), any::<u8>()), 1..8,
        ),
        device_bytes in prop_oneof![Just(256 * MIB), 0..MIB, any::<u64>()],
    ) {
        let corpus = corpus();
        let mut bytes = file.get(&corpus).1.clone().into_bytes();
        for (place, kind, token, byte) in edits {
            let at = place.index(bytes.len() + 1).min(bytes.len());
            match kind {
                0 if at < bytes.len() => bytes[at] = byte,
                1 => {
                    let end = (at + usize::from(byte % 16)).min(bytes.len());
                    bytes.drain(at..end);
                }
                _ => {
                    bytes.splice(at..at, token.get(TOKENS).bytes());
                }
            }
        }
        survives(&String::from_utf8_lossy(&bytes), device_bytes);
    }

    #[test]
    fn files_of_tokens_do_no_harm(tokens in prop::collection::vec(prop::sample::select(TOKENS), 0..30)) {
        survives(&tokens.concat(), 256 * MIB);
        survives(&format!("[a]\n{}", tokens.concat()), 256 * MIB);
    }
}

#[test]
fn the_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/synthetic.md");
    let page = synthetic::reference_page();
    if std::env::var_os("FLOATGATE_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == page, "{} is stale: run the tests with FLOATGATE_BLESS=1", path.display());
}

#[test]
fn summaries_have_a_stream_for_each_clone() {
    let mut device = instant();
    let jobs = synthetic::parse("name=a rw=read number_ios=2 numjobs=3", 256 * MIB, 1).unwrap();
    let (outcome, _) = played(&mut device, jobs);
    let names: Vec<&str> = outcome.results.streams.iter().map(|stream| stream.name.as_str()).collect();
    assert_eq!(names, ["a.0", "a.1", "a.2"]);
    assert!(outcome.measured < Time(1));
}
