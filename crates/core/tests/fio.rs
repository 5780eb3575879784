//! Jobs in fio syntax on a device: addresses and times of requests, compared with the documentation of fio and with
//! fio.

use crate::common::{self, device};
use floatgate_core::results::Breakdown;
use floatgate_core::sim::request::{Completion, Operation, SECTOR};
use floatgate_core::sim::source::Source;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Outcome, Progress, Watcher, run};
use floatgate_workload::synthetic::{self, Job};

const MIB: u64 = 1 << 20;
const US: u64 = 1_000_000;
const MS: u64 = 1000 * US;

/// Returns an empty device. The controller completes reads of unmapped units at once, so requests finish when they
/// arrive, and all times are those of the workload.
fn instant() -> Device {
    device::<&str>(&[])
}

/// Every request in the order of completion: stream, operation, first byte, length, arrival and finish.
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
    let outcome = run(device, &mut sources, &mut seen).expect("the jobs run");
    assert!(outcome.complete);
    (outcome, seen)
}

/// Runs jobs given as text on the device and returns their requests.
fn line(device: &mut Device, text: &str) -> Seen {
    let jobs = synthetic::parse(text, device.config().logical_bytes(), 1).unwrap_or_else(|error| panic!("{error}"));
    played(device, jobs).1
}

impl Seen {
    /// Returns the arrivals of a stream in units of `unit` picoseconds.
    fn arrivals(&self, stream: u16, unit: u64) -> Vec<u64> {
        let of = self.0.iter().filter(|seen| seen.0 == stream);
        let mut all: Vec<u64> = of.map(|seen| seen.4).collect();
        all.sort_unstable();
        assert!(all.iter().all(|at| at % unit == 0), "{all:?}");
        all.into_iter().map(|at| at / unit).collect()
    }

    /// Returns the requests of a stream in order: first letter of the operation, and first byte in KiB.
    fn order(&self, stream: u16) -> String {
        let of = self.0.iter().filter(|seen| seen.0 == stream);
        of.map(|seen| format!("{}{}", &seen.1.name()[..1], seen.2 / 1024)).collect::<Vec<_>>().join(" ")
    }
}

/// Compares with fio 3.33, as recorded by `write_iolog` with ioengine=null and size=64k.
#[test]
fn sequences_match_fio() {
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
fn random_addresses_start_runs() {
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
    // A quarter of the 40,000 addresses are random: 10,000, with a standard deviation of 87. Of these, 0.1 % follow the
    // previous address by chance.
    let quarter = starts("rw=randread size=4m io_size=160000k norandommap percentage_random=25");
    let random = quarter.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    assert!(random.abs_diff(10_000) < 500, "{random}");
}

#[test]
fn rates_are_exact_and_each_direction_has_its_own() {
    let seen = line(&mut instant(), "rw=randread rate_iops=3 number_ios=4");
    assert_eq!(seen.arrivals(0, 1), [0, 333_333_333_333, 666_666_666_667, 1_000_000_000_000]);
    // 4 KiB at 4 MiB/s take 1/1024 s.
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
fn clones_and_stonewalls_follow_each_other_exactly() {
    let text = "name=a rw=read rate_iops=1000 number_ios=5 numjobs=2; \
                name=b rw=read rate_iops=1000 number_ios=3 stonewall startdelay=2ms; \
                name=c rw=read rate_iops=500 number_ios=2; \
                name=d rw=read rate_iops=1000 number_ios=2 wait_for=b; \
                name=e rw=read rate_iops=1000 number_ios=1 stonewall";
    let seen = line(&mut instant(), text);
    assert_eq!(seen.arrivals(0, MS), [0, 1, 2, 3, 4]);
    assert_eq!(seen.arrivals(1, MS), [0, 1, 2, 3, 4]);
    // The last request of the first two streams arrived and completed at 4 ms.
    assert_eq!(seen.arrivals(2, MS), [6, 7, 8]);
    assert_eq!(seen.arrivals(3, MS), [4, 6]);
    assert_eq!(seen.arrivals(4, MS), [8, 9]);
    assert_eq!(seen.arrivals(5, MS), [9]);
}

#[test]
fn a_job_ends_when_its_runtime_is_over() {
    let text = "name=a rw=read rate_iops=1000 runtime=2500us; name=b rw=read number_ios=1 stonewall";
    assert_eq!(line(&mut instant(), text).arrivals(1, US), [2500]);
    // A closed loop on a device that takes time: 25 us for a read and 102.4 us for the transfer of 4 KiB.
    let mut device = instant();
    floatgate_core::preparation::precondition(
        &mut device,
        floatgate_core::preparation::Precondition::Fill,
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
fn think_time_starts_when_a_batch_has_completed() {
    let seen = line(&mut instant(), "rw=read thinktime=10 number_ios=3");
    assert_eq!(seen.arrivals(0, US), [0, 10, 20]);
    let seen = line(&mut instant(), "rw=read iodepth=4 thinktime=10 thinktime_blocks=2 number_ios=5");
    assert_eq!(seen.arrivals(0, US), [0, 0, 10, 10, 20]);
    // On a device that takes time, 10 us of think time follow the last completion of each batch of three reads.
    let mut device = instant();
    floatgate_core::preparation::precondition(
        &mut device,
        floatgate_core::preparation::Precondition::Fill,
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
    // Batches by time: reads follow one another for a millisecond, then nothing is read for a millisecond.
    let seen = line(&mut device, "rw=randread thinktime=1ms thinktime_iotime=1ms number_ios=40");
    let at = seen.arrivals(0, 1);
    let gaps: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let one = gaps[0];
    // New requests start within the millisecond, and the last one ends after it.
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
    // Requests arrive from 0 to 5 ms. Those from 2 ms on are measured. The next group starts at 6 ms.
    assert_eq!(seen.arrivals(0, MS), [2, 3, 4, 5]);
    assert_eq!(seen.arrivals(1, MS), [7, 8, 9]);
    assert_eq!(seen.arrivals(2, US), [6500, 7500]);
    assert_eq!(outcome.results.all().count(), 9);
}

/// A device that cannot keep up completes as many requests per second, whenever the measurement starts.
#[test]
fn an_overloaded_open_loop_reports_the_completions_in_the_measured_part() {
    let outcome = |text: &str| {
        let mut device = device(&["host.link_bandwidth=100MB/s"]);
        played(&mut device, synthetic::parse(text, 16 * MIB, 1).unwrap()).0
    };
    let rate = |outcome: &Outcome| outcome.results.all().count() as f64 / outcome.measured.as_s();
    let base = "rw=randwrite norandommap bs=4k time_based runtime=20ms rate_iops";
    for depth in ["iodepth=8", "iodepth=1", ""] {
        let whole = outcome(&format!("{base}=200000 {depth}"));
        let later = outcome(&format!("{base}=200000 {depth} ramp_time=60ms"));
        let (whole_rate, later_rate) = (rate(&whole), rate(&later));
        assert!((later_rate / whole_rate - 1.0).abs() < 0.05, "{depth}: {whole_rate} and {later_rate}");
        let [backlog] = &later.backlogs[..] else { panic!("{:?}", later.backlogs) };
        let arrived = 200_000.0 * 0.08;
        let expected = arrived - later_rate * 0.08;
        assert!((backlog.requests as f64 / expected - 1.0).abs() < 0.1, "{backlog:?} for {expected}");
        assert_eq!((backlog.rate.round(), &backlog.streams[..]), (200_000.0, &["job1".to_owned()][..]));
        assert!((backlog.waited > Time::ZERO) != depth.is_empty(), "{backlog:?}");
    }
    for text in [&format!("{base}=5000 iodepth=8 rate_process=poisson"), "rw=write bs=4k iodepth=8 number_ios=999"] {
        assert_eq!(outcome(text).backlogs, [], "{text}");
    }
}

#[test]
fn shares_of_a_split_are_by_direction() {
    let seen = line(&mut instant(), "rw=randread bssplit=4k/25:16k/75,8k size=32m io_size=100m");
    let small = seen.0.iter().filter(|seen| seen.3 == 4096).count() as f64 / seen.0.len() as f64;
    // About 7900 requests: a standard deviation of 0.5 %.
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
    floatgate_core::preparation::precondition_with(&mut device, &mut sources, &mut |_| true).unwrap();
    // Everything that was written has been trimmed. If the jobs ran together, some units would be written after their
    // trim.
    assert!(device.ftl().blocks.all().iter().all(|block| block.valid == 0));
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

/// Returns a device whose reads of written data take 100 us and more, and use one chip at a time.
fn slow() -> Device {
    let mut device = device(&["nand.read=100us", "geometry.channels=1", "geometry.chips=1", "geometry.planes=1"]);
    common::fill(&mut device, 64);
    device
}

/// Runs jobs, and returns their requests and warnings.
fn warned(device: &mut Device, text: &str) -> (Vec<u64>, Vec<String>) {
    let jobs = synthetic::parse(text, device.config().logical_bytes(), 1).unwrap_or_else(|error| panic!("{error}"));
    let mut sources: Vec<Box<dyn Source>> = jobs.into_iter().map(|job| job.source).collect();
    let mut seen = Seen::default();
    run(device, &mut sources, &mut seen).expect("the jobs run");
    let mut counts = vec![0; sources.len()];
    seen.0.iter().for_each(|request| counts[usize::from(request.0)] += 1);
    (counts, sources.iter().flat_map(|source| source.warnings()).filter(|text| text.contains("job")).collect())
}

#[test]
fn exitall_ends_the_jobs_of_the_group() {
    let jobs = |exit: &str| {
        let read = "rw=randread bs=4k size=64k io_size=1g norandommap=1";
        format!(
            "{read} number_ios=10 {exit} ; {read} number_ios=400 ; {read} number_ios=30 new_group=1 ; \
             {read} number_ios=20 stonewall=1"
        )
    };
    let counts = |exit: &str| warned(&mut slow(), &jobs(exit)).0;
    assert_eq!(counts(""), [10, 400, 30, 20]);
    let group = counts("exitall=1");
    // The second job ends with the first one. The third is in another group, and the fourth waits for it.
    assert!((9..=12).contains(&group[1]) && group[2..] == [30, 20], "{group:?}");
    let batch = counts("exitall=1 exit_what=stonewall");
    assert!(batch[..3].iter().all(|count| (9..=12).contains(count)) && batch[3] == 20, "{batch:?}");
    let all = counts("exitall=1 exit_what=all");
    assert!(all[..3].iter().all(|count| (9..=12).contains(count)) && all[3] == 0, "{all:?}");
}

#[test]
fn jobs_of_a_flow_share_requests_by_weight() {
    let read = "rw=randread bs=4k size=64k norandommap=1 iodepth=4 runtime=50ms time_based=1";
    let (counts, _) = warned(&mut slow(), &format!("{read} flow=3 ; {read} flow=1 ; {read} flow=1 flow_id=1"));
    let ratio = counts[0] as f64 / counts[1] as f64;
    assert!(counts[1] > 30 && (ratio - 3.0).abs() < 0.2, "{counts:?}");
    // After the end of the other job, a job of a flow is alone in it.
    let (counts, _) = warned(&mut slow(), &format!("{read} flow=3 number_ios=30 ; {read} flow=1 number_ios=200"));
    assert_eq!(counts, [30, 200]);
}

#[test]
fn jobs_of_a_group_are_judged_together() {
    let job = "rw=randread bs=4k size=64k norandommap=1 time_based=1 runtime=400ms ss_dur=40ms ss_interval=10ms \
               group_reporting=1";
    let (counts, warnings) = warned(&mut slow(), &format!("{job} ss=lat:5% numjobs=2"));
    assert!(counts.iter().sum::<u64>() < 1200, "{counts:?}");
    let [reached] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(reached.starts_with("job1.0: the steady state (lat) was reached after 0.040 s at "), "{reached}");
    // A job that ends early does not end the judgment, and its group has the rate of the others.
    let (counts, warnings) = warned(&mut slow(), &format!("{job} ss=iops:5% number_ios=1; {job} ss=iops:5%"));
    assert!(counts[0] == 1 && (100..1000).contains(&counts[1]), "{counts:?}");
    assert!(warnings[0].starts_with("job1: the steady state (iops) was reached after 0.0"), "{warnings:?}");
    let differing = format!("{job} ss=iops:5%; {job} ss=iops:4%");
    let error = synthetic::parse(&differing, MIB, 1).err().expect("it is refused").to_string();
    assert!(error.contains("needs the same options in all jobs of the group"), "{error}");
}

#[test]
fn a_steady_job_ends() {
    let job = "rw=randread bs=4k size=64k norandommap=1 time_based=1 runtime=2s ss_dur=40ms ss_interval=10ms";
    let (counts, warnings) = warned(&mut slow(), &format!("{job} ss=iops:5% ss_ramp=20ms"));
    // A ramp of 20 ms and four intervals of 10 ms. A read takes 100 us, and some for the bus.
    assert!((200..600).contains(&counts[0]), "{counts:?}");
    assert!(warnings[0].starts_with("job1: the steady state (iops) was reached after 0.040 s at "), "{warnings:?}");
    let (counts, warnings) = warned(&mut slow(), &format!("{job} ss=iops:0"));
    assert!(counts[0] > 9000, "{counts:?}");
    assert!(warnings[0].starts_with("job1: the steady state was not reached (the last criterion is "), "{warnings:?}");
}

#[test]
fn a_latency_target_finds_a_depth() {
    let job = "rw=randread bs=4k size=64k norandommap=1 iodepth=64 time_based=1 runtime=2s latency_window=10ms";
    // One chip serves one read of about 200 us at a time, so that the latency is in proportion to the depth.
    let (counts, warnings) = warned(&mut slow(), &format!("{job} latency_target=1000"));
    let depth: u64 = warnings[0].rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a depth");
    assert!(warnings[0].starts_with("job1: latency_target is met up to a depth of "), "{warnings:?}");
    let (fixed, _) = warned(
        &mut slow(),
        &format!(
            "rw=randread bs=4k size=64k norandommap=1 iodepth={depth} \
        time_based=1 runtime=10ms"
        ),
    );
    // The results are those of the last window.
    assert!(depth > 1 && counts[0].abs_diff(fixed[0]) <= depth + 2, "{counts:?} {fixed:?}");
    let one = synthetic::parse(&format!("{job} latency_target=1"), 1 << 20, 1).expect("a job");
    let mut sources: Vec<Box<dyn Source>> = one.into_iter().map(|job| job.source).collect();
    let error = run(&mut slow(), &mut sources, &mut Seen::default()).expect_err("no depth meets it").to_string();
    assert!(error.contains("job1: `latency_target` is not met with one outstanding request"), "{error}");
}

#[test]
fn a_low_mark_lets_the_queue_drain() {
    let outstanding = |keys: &str| {
        let requests =
            line(&mut slow(), &format!("rw=randread bs=4k size=64k norandommap=1 iodepth=8 number_ios=200 {keys}")).0;
        // Outstanding requests just before each arrival after the first eight.
        let at = |arrival: u64| requests.iter().filter(|other| other.4 < arrival && other.5 > arrival).count();
        let mut levels: Vec<usize> = requests.iter().map(|request| at(request.4)).collect();
        levels.sort_unstable();
        levels.dedup();
        levels
    };
    assert!(outstanding("").contains(&7));
    assert_eq!(outstanding("iodepth_low=2").iter().max(), Some(&2));
    assert_eq!(outstanding("iodepth_batch_complete_min=8").iter().max(), Some(&0));
}
