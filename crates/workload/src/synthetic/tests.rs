//! Tests of whole jobs: requests for given texts.

use super::*;
use crate::sim::request::{Operation, Request};
use crate::sim::source::Pace;
use crate::sim::time::Time;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Parses jobs that generate their requests.
fn made(text: &str, device_bytes: u64, seed: u64) -> Result<Vec<Synthetic>, SourceError> {
    let made = |planned| match planned {
        Planned::Made(job) => *job,
        Planned::Replayed(recipe) => panic!("{recipe:?}"),
    };
    Ok(plan_text(text, device_bytes, seed)?.into_iter().map(made).collect())
}

fn job(text: &str, device_bytes: u64) -> Synthetic {
    made(text, device_bytes, 1).unwrap().remove(0)
}

/// Returns the first `max` requests.
fn requests(source: &mut Synthetic, max: usize) -> Vec<Request> {
    std::iter::from_fn(|| source.next_request().unwrap()).take(max).collect()
}

fn run(text: &str, device_bytes: u64, max: usize) -> Vec<Request> {
    requests(&mut job(text, device_bytes), max)
}

fn lbas(requests: &[Request]) -> Vec<u64> {
    requests.iter().map(|request| request.lba).collect()
}

fn error(text: &str) -> String {
    made(text, GIB, 1).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn the_example_of_the_manual() {
    let mut source = job("rw=randwrite bs=4k iodepth=32 number_ios=2m", GIB);
    assert_eq!(source.pace(), Pace::Depth { depth: 32, think: Time::ZERO });
    assert_eq!((source.stop_at(), source.measure_from()), (None, Time::ZERO));
    assert_eq!(source.streams(), ["job1"]);
    assert!(source.warnings().is_empty());
    assert_eq!(source.description(), "job1: randwrite of 4 KiB in the first 1 GiB, 32 outstanding");
    assert_eq!(source.progress(), Some(0.0));
    let mut count = 0u64;
    while let Some(request) = source.next_request().unwrap() {
        assert_eq!((request.operation, request.sectors, request.arrival), (Operation::Write, 8, Time::ZERO));
        assert!(request.lba % 8 == 0 && request.lba < GIB / SECTOR);
        count += 1;
    }
    assert_eq!(count, 2 << 20);
    assert_eq!(source.progress(), Some(1.0));
}

#[test]
fn random_jobs_cover_every_block_once_in_a_pass() {
    for (text, blocks) in [
        ("rw=randwrite bs=4k size=1m offset=1m io_size=3m", 256),
        ("rw=randread bs=12k size=1m offset=1m io_size=300%", 85),
        ("rw=randrw bs=4k size=1m offset=1m io_size=3m", 256),
        ("rw=randtrim bs=512 size=1m offset=1m io_size=3m", 2048),
        ("rw=randwrite bssplit=4k/ size=1m offset=1m io_size=3m", 256),
    ] {
        let all = run(text, 4 * MIB, usize::MAX);
        assert!(all.len() >= 3 * blocks, "{text}: {}", all.len());
        let mut passes = Vec::new();
        for pass in all.chunks_exact(blocks) {
            let step = u64::from(pass[0].sectors);
            let mut sorted = lbas(pass);
            passes.push(sorted.clone());
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq((0..blocks as u64).map(|i| 2048 + i * step)), "{text}");
        }
        assert_ne!(passes[0], passes[1], "{text}");
    }
}

#[test]
fn without_the_map_blocks_repeat() {
    for extra in ["norandommap", "random_distribution=zipf:0.5", "blockalign=2k"] {
        let mut all = lbas(&run(&format!("rw=randread bs=4k size=1m {extra}"), MIB, usize::MAX));
        assert_eq!(all.len(), 256);
        all.sort_unstable();
        all.dedup();
        assert!(all.len() < 240, "{extra}: {}", all.len());
    }
}

#[test]
fn without_the_map_all_blocks_are_alike() {
    let mut counts = [0i32; 256];
    run("rw=randread size=1m norandommap io_size=1g", MIB, usize::MAX)
        .iter()
        .for_each(|request| counts[request.lba as usize / 8] += 1);
    // 1024 expected, with a standard deviation of 32.
    assert!(counts.iter().all(|count| (count - 1024).abs() < 160), "{counts:?}");
}

#[test]
fn sequential_jobs_advance_and_wrap() {
    let order = lbas(&run("rw=write bs=64k size=256k offset=1m io_size=512k", 4 * MIB, usize::MAX));
    assert_eq!(order, [2048, 2176, 2304, 2432, 2048, 2176, 2304, 2432]);
    // The last block extends beyond the region, but not beyond the device.
    let order = |device| lbas(&run("rw=read bs=48k size=256k number_ios=7 io_size=1m", device, usize::MAX));
    assert_eq!(order(MIB), [0, 96, 192, 288, 384, 480, 0]);
    assert_eq!(order(MIB / 4), [0, 96, 192, 288, 384, 0, 96]);
    // Reads and writes each continue at their own address, like fio's `last_pos`.
    let all = run("rw=rw bs=4k,8k size=1m number_ios=200 io_size=4m", MIB, usize::MAX);
    for (operation, step) in [(Operation::Read, 8), (Operation::Write, 16)] {
        let ours: Vec<Request> = all.iter().filter(|request| request.operation == operation).copied().collect();
        assert!(ours.len() > 60);
        assert!(lbas(&ours).into_iter().eq((0..ours.len() as u64).map(|i| i * step % 2048)));
    }
}

#[test]
fn jobs_end_as_in_fio() {
    for (text, expected) in [
        // A single pass over the device, or over `size`.
        ("rw=write bs=4k", 256),
        ("rw=randwrite bs=4k size=512k", 128),
        ("rw=randwrite bs=4k size=25%", 64),
        ("rw=randwrite bs=4k offset=768k", 64),
        ("rw=randwrite bs=4k offset=50% size=100%", 128),
        ("rw=write bs=12k", 85),
        // `io_size` instead: until this number of bytes is reached.
        ("rw=write bs=4k io_size=10k", 3),
        ("rw=write bs=4k io_size=2m", 512),
        ("rw=write bs=4k io_size=0.00000000000000001%", 1),
        ("rw=write bs=4k size=512k io_size=50%", 64),
        // `number_ios` requests, but not more than `size`.
        ("rw=write bs=4k number_ios=10", 10),
        ("rw=write bs=4k number_ios=10k", 10_240),
        ("rw=write bs=4k size=512k number_ios=1k", 128),
        ("rw=write bs=4k size=512k number_ios=1k io_size=8m", 1024),
        ("rw=write bs=4k time_based runtime=1s number_ios=1k", 1024),
        // fio 3.33 issues the same numbers on a file of 1 MiB.
        ("rw=write bs=12k size=100k", 9),
        ("rw=rw bs=12k size=100k", 9),
        ("rw=randwrite bs=12k size=100k", 8),
        ("rw=randread bs=12k size=100k norandommap", 9),
        ("rw=write:4k bs=12k size=100k", 7),
        ("rw=read:-8k bs=4k size=100k", 25),
        ("rw=read bs=12k size=100k loops=2", 17),
        ("rw=randread bs=12k size=100k loops=2", 16),
        ("rw=write bs=12k size=100k io_size=250k", 21),
        // A pair counts once.
        ("rw=trimwrite bs=4k", 512),
        ("rw=randtrimwrite bs=4k number_ios=10", 20),
    ] {
        assert_eq!(run(text, MIB, 100_000).len(), expected, "{text}");
    }
    assert_eq!(run("rw=write time_based runtime=10", MIB, 5000).len(), 5000);
}

/// The size of a request is drawn again until the request fits into the rest of the region, as in fio.
#[test]
fn sequential_jobs_of_several_sizes_fill_their_region() {
    for text in ["bssplit=4k/50:16k/50", "bsrange=4k-16k"] {
        let all = run(&format!("rw=write size=100k io_size=1m {text}"), MIB, usize::MAX);
        let mut next = 0;
        for request in all {
            assert_eq!(request.lba, next, "{text}");
            next = (request.lba + u64::from(request.sectors)) % 200;
            assert!(request.lba + u64::from(request.sectors) <= 200, "{text}");
        }
    }
}

#[test]
fn a_pair_trims_and_writes_the_same_blocks() {
    for rw in ["trimwrite", "randtrimwrite"] {
        let all = run(&format!("rw={rw} bssplit=4k/50:16k/50 size=256k"), MIB, usize::MAX);
        assert!(all.len() > 30 && all.len().is_multiple_of(2));
        for pair in all.chunks_exact(2) {
            assert_eq!((pair[0].operation, pair[1].operation), (Operation::Trim, Operation::Write));
            assert_eq!((pair[0].lba, pair[0].sectors), (pair[1].lba, pair[1].sectors));
        }
    }
}

#[test]
fn mixes_have_their_share() {
    for (text, reads) in [("rw=randrw", 50), ("rw=rw rwmixread=70", 70), ("rw=randrw rwmixwrite=90", 10)] {
        let all = run(&format!("{text} bs=4k number_ios=100000 norandommap"), GIB, usize::MAX);
        let count = all.iter().filter(|request| request.operation == Operation::Read).count();
        // The standard deviation is at most 158.
        assert!(count.abs_diff(reads * 1000) < 800, "{text}: {count}");
    }
    // The later of the two keys applies.
    let all = run("rw=randrw rwmixread=80 rwmixwrite=100 number_ios=100", GIB, usize::MAX);
    assert!(all.iter().all(|request| request.operation == Operation::Write));
    let all = run("rw=readwrite rwmixwrite=100 rwmixread=100 number_ios=100", GIB, usize::MAX);
    assert!(all.iter().all(|request| request.operation == Operation::Read));
}

#[test]
fn block_sizes_by_direction() {
    let sizes = |text: &str| -> [Vec<u32>; 2] {
        let all = run(&format!("rw=randrw number_ios=20000 {text}"), GIB, usize::MAX);
        [Operation::Read, Operation::Write].map(|operation| {
            let mut sizes: Vec<u32> = all.iter().filter(|r| r.operation == operation).map(|r| r.sectors).collect();
            sizes.sort_unstable();
            sizes.dedup();
            sizes
        })
    };
    assert_eq!(sizes(""), [[8], [8]]);
    assert_eq!(sizes("bs=256k"), [[512], [512]]);
    assert_eq!(sizes("bs=8k,32k"), [[16], [64]]);
    assert_eq!(sizes("bs=,8k"), [[8], [16]]);
    assert_eq!(sizes("bs=16k,"), [[32], [8]]);
    assert_eq!(sizes("bssplit=2k/50:4k/50,4k/90:8k/10"), [[4, 8], [8, 16]]);
    assert_eq!(sizes("bssplit=,4k/90:8k/10 bs=64k"), [vec![128], vec![8, 16]]);
    let trims = run("rw=randtrim bs=4k,8k,16k number_ios=10", GIB, usize::MAX);
    assert!(trims.iter().all(|request| (request.operation, request.sectors) == (Operation::Trim, 32)));
    let trims = run("rw=trim bs=4k,8k number_ios=10", GIB, usize::MAX);
    assert!(trims.iter().all(|request| request.sectors == 16));
}

#[test]
fn split_shares_are_by_count_and_missing_ones_are_shared() {
    for (split, shares) in [
        ("4k/10:64k/50:32k/40", vec![(8, 10.0), (64, 40.0), (128, 50.0)]),
        ("4k/50:1k/:32k/", vec![(2, 25.0), (8, 50.0), (64, 25.0)]),
        ("4k:8k:16k", vec![(8, 100.0 / 3.0), (16, 100.0 / 3.0), (32, 100.0 / 3.0)]),
        ("4k/99:1m", vec![(8, 99.0), (2048, 1.0)]),
    ] {
        // Large blocks of a small region often lie near the end. This must not affect the shares.
        let all = run(&format!("rw=randwrite bssplit={split} size=2m io_size=1t number_ios=100000"), GIB, usize::MAX);
        for (sectors, percent) in shares {
            let count = all.iter().filter(|request| request.sectors == sectors).count() as f64;
            // The standard deviation is at most 158.
            assert!((count - percent * 1000.0).abs() < 700.0, "{split}: {count} of {sectors}");
        }
        assert!(all.iter().all(|request| request.lba + u64::from(request.sectors) <= 2 * MIB / SECTOR));
    }
}

#[test]
fn scattered_zipf_blocks_have_their_frequencies() {
    let count = 400_000;
    let text =
        format!("rw=randread bs=4k size=4m offset=8m random_distribution=zipf:1.2 number_ios={count} io_size=1t");
    let mut counts = vec![0u32; 1024];
    let mut source = job(&text, GIB);
    while let Some(request) = source.next_request().unwrap() {
        counts[((request.lba - 16 * MIB / 1024) / 8) as usize] += 1;
    }
    let hottest = counts.iter().enumerate().max_by_key(|(_, count)| **count).map(|(block, _)| block);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let sum: f64 = (1..=1024).map(|k| libm::pow(f64::from(k), -1.2)).sum();
    for rank in 1..=8 {
        let expected = libm::pow(f64::from(rank), -1.2) / sum * f64::from(count);
        let found = f64::from(counts[rank as usize - 1]);
        assert!((found - expected).abs() < 5.0 * libm::sqrt(expected), "rank {rank}: {found}, {expected}");
    }
    // Another seed makes another block the hottest.
    let mut other = vec![0u32; 1024];
    run(&format!("{text} randseed=5"), GIB, 10_000)
        .iter()
        .for_each(|request| other[((request.lba - 16 * MIB / 1024) / 8) as usize] += 1);
    assert_ne!(hottest, other.iter().enumerate().max_by_key(|(_, count)| **count).map(|(block, _)| block));
}

#[test]
fn pareto_gives_a_fifth_of_the_blocks_four_fifths_of_the_requests() {
    let all = run("rw=randread random_distribution=pareto:0.2 size=4m number_ios=200000 io_size=1t", GIB, usize::MAX);
    let mut counts = vec![0u32; 1024];
    all.iter().for_each(|request| counts[request.lba as usize / 8] += 1);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let share = f64::from(counts[..205].iter().sum::<u32>()) / 2e5;
    assert!((share - 0.8).abs() < 0.01, "{share}");
}

#[test]
fn zones_of_random_jobs() {
    let shares = |text: &str, ends: &[u64], operation: Operation| -> Vec<f64> {
        let all = run(&format!("rw=randrw size=100m norandommap number_ios=100000 io_size=1t {text}"), GIB, usize::MAX);
        let ours: Vec<u64> = all.iter().filter(|r| r.operation == operation).map(|r| r.lba * SECTOR / MIB).collect();
        let below = |end: u64| ours.iter().filter(|&&lba| lba < end).count() as f64 / ours.len() as f64 * 100.0;
        let mut from = 0.0;
        ends.iter().map(|&end| below(end) - std::mem::replace(&mut from, below(end))).collect()
    };
    let close = |found: Vec<f64>, expected: &[f64]| {
        // The standard deviation for 50 000 requests is at most 0.23 percent.
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1.2), "{found:?}, expected {expected:?}");
    };
    let text = "random_distribution=zoned:60/10:30/20:8/30:2/40";
    close(shares(text, &[10, 30, 60, 100], Operation::Read), &[60.0, 30.0, 8.0, 2.0]);
    close(shares(text, &[10, 30, 60, 100], Operation::Write), &[60.0, 30.0, 8.0, 2.0]);
    let text = "random_distribution=zoned:50/5:30/15:20/,50/10:50/90";
    close(shares(text, &[5, 20, 100], Operation::Read), &[50.0, 30.0, 20.0]);
    close(shares(text, &[10, 100], Operation::Write), &[50.0, 50.0]);
    let text = "random_distribution=zoned_abs:60/20m:0/10m:40/50m";
    close(shares(text, &[20, 30, 80, 100], Operation::Read), &[60.0, 0.0, 40.0, 0.0]);
}

#[test]
fn strides_are_exact() {
    // Every fourth unit of 4 KiB, in one pass.
    let text = "rw=write bs=4k zonemode=strided zonesize=4k zoneskip=12k size=64k";
    assert_eq!(lbas(&run(text, MIB / 16, 6)), [0, 32, 64, 96, 0, 32]);
    // As in fio, zones continue to the end of the file, whatever `size` is.
    assert_eq!(lbas(&run(text, MIB, 6)), [0, 32, 64, 96, 128, 160]);
    let random = lbas(&run("rw=randread bs=4k zonesize=16k zonerange=64k zoneskip=64k size=256k", MIB, 64));
    let zones: Vec<u64> = random.iter().map(|lba| lba / 128).collect();
    assert!(zones.into_iter().eq((0..64).map(|i| i / 4 % 8 * 2)), "{random:?}");
    // The first 8 KiB of each zone of 16 KiB.
    let all = lbas(&run("rw=write bs=4k zonesize=8k zonerange=16k zoneskip=0 size=48k", MIB, 7));
    assert_eq!(all, [0, 8, 32, 40, 64, 72, 96]);
    // Each zone of 8 KiB twice.
    let all = lbas(&run("rw=read bs=4k zonesize=16k zonerange=8k zoneskip=8k size=32k offset=64k", MIB, 8));
    assert_eq!(all, [128, 136, 128, 136, 160, 168, 160, 168]);
    // Each block of a zone occurs once, in random order.
    for chunk in run("rw=randwrite bs=4k zonesize=64k zoneskip=192k", MIB, 256).chunks_exact(16).enumerate() {
        let zone = chunk.0 as u64 % 4 * 512;
        let mut order = lbas(chunk.1);
        order.sort_unstable();
        assert!(order.into_iter().eq((0..16).map(|i| zone + i * 8)));
    }
    // A distribution applies to each zone.
    for (i, request) in
        run("rw=randread zonesize=64k zoneskip=192k random_distribution=zipf", MIB, 256).iter().enumerate()
    {
        assert_eq!(request.lba / 128, i as u64 / 16 % 4 * 4);
    }
}

#[test]
fn blocks_are_aligned_as_asked() {
    let all = run("rw=randwrite bs=16k blockalign=4k size=1m io_size=64m", MIB, usize::MAX);
    assert!(all.iter().all(|request| request.lba % 8 == 0 && request.lba + 32 <= 2048));
    assert!(all.iter().any(|request| request.lba % 32 != 0));
    assert!(all.iter().any(|request| request.lba + 32 == 2048), "the last place is used");
    let all = run("rw=randwrite bs=4k ba=64k size=1m io_size=64m", MIB, usize::MAX);
    assert!(all.iter().all(|request| request.lba % 128 == 0));
}

#[test]
fn open_loops() {
    let mut source = job("rw=write rate_iops=1000", GIB);
    assert_eq!(source.pace(), Pace::Timed { depth: None });
    let times: Vec<u64> = requests(&mut source, 4).iter().map(|request| request.arrival.ps()).collect();
    assert_eq!(times, [0, 1_000_000_000, 2_000_000_000, 3_000_000_000]);
    assert_eq!(job("rw=write rate_iops=1k iodepth=8", GIB).pace(), Pace::Timed { depth: Some(8) });
    // No request at or after the end.
    assert_eq!(run("rw=write rate_iops=1000 runtime=2s", GIB, usize::MAX).len(), 2000);
    assert_eq!(run("rw=write rate_iops=1000 runtime=2s ramp_time=500ms", GIB, usize::MAX).len(), 2500);
    let count = run("rw=write rate_iops=100000 rate_process=poisson runtime=1s", GIB, usize::MAX).len();
    assert!(count.abs_diff(100_000) < 1_600, "{count}");
}

#[test]
fn closed_loops() {
    let pace = |text: &str| job(text, GIB).pace();
    assert_eq!(pace("rw=read"), Pace::Depth { depth: 1, think: Time::ZERO });
    assert_eq!(pace("rw=read iodepth=1k"), Pace::Depth { depth: 1024, think: Time::ZERO });
    let batch = |requests, span, think| Pace::Batch { depth: 1, requests, span, think: Time::from_us(think) };
    assert_eq!(pace("rw=read thinktime=50"), batch(1, Time::NEVER, 50));
    assert_eq!(pace("rw=read thinktime=1.5ms thinktime_blocks=8"), batch(8, Time::NEVER, 1500));
    assert_eq!(pace("rw=read thinktime=1.5ms thinktime_iotime=1"), batch(u32::MAX, Time(1_000_000_000_000), 1500));
    assert_eq!(pace("rw=read thinktime=0"), Pace::Depth { depth: 1, think: Time::ZERO });
    let source = job("rw=read runtime=1m ramp_time=10", GIB);
    assert_eq!(source.stop_at(), Some(Time::from_us(70_000_000)));
    assert_eq!(source.measure_from(), Time::from_us(10_000_000));
    assert_eq!(job("rw=read ramp_time=10", GIB).stop_at(), None);
}

#[test]
fn several_jobs_are_separate_streams() {
    let jobs = made("rw=randread bs=4k; name=log rw=write bs=64k\niodepth=2 ;\n rw=randread bs=4k;", GIB, 1).unwrap();
    let names: Vec<String> = jobs.iter().flat_map(|job| job.streams()).collect();
    assert_eq!(names, ["job1", "log", "job3"]);
    let orders: Vec<Vec<u64>> = jobs.into_iter().map(|mut job| lbas(&requests(&mut job, 100))).collect();
    assert_ne!(orders[0], orders[2], "jobs that are alike are not the same");
    assert_eq!(orders[1][..3], [0, 128, 256]);
}

/// Requests with high priority are drawn independently of the others, whose addresses stay the same.
#[test]
fn a_share_of_the_requests_has_high_priority() {
    const COUNT: usize = 20_000;
    let of = |text: &str| {
        let mut source = job(text, GIB);
        let streams = source.streams();
        let all = requests(&mut source, COUNT);
        for request in &all {
            assert_eq!(request.stream, u16::from(request.high_priority && streams.len() == 2));
        }
        let share = |operation| {
            let all = all.iter().filter(|request| request.operation == operation);
            all.clone().filter(|request| request.high_priority).count() as f64 / all.count() as f64
        };
        (streams, share(Operation::Read), share(Operation::Write), lbas(&all))
    };
    let mix = "name=a rw=randrw norandommap=1 bs=4k";
    let (streams, reads, writes, addresses) = of(&format!("{mix} cmdprio_percentage=20,5"));
    assert_eq!(streams, ["a", "a (high priority)"]);
    // Five standard errors.
    let error = |share: f64| 5.0 * (share * (1.0 - share) / (COUNT as f64 / 2.0)).sqrt();
    assert!((reads - 0.2).abs() < error(0.2) && (writes - 0.05).abs() < error(0.05), "{reads} {writes}");
    assert_eq!(of(mix).3, addresses);
    for all in ["prioclass=1", "cmdprio_percentage=100"] {
        let (streams, reads, writes, _) = of(&format!("{mix} {all}"));
        assert_eq!((streams.len(), reads, writes), (1, 1.0, 1.0), "{all}");
    }
    for none in ["prioclass=2", "cmdprio_percentage=50 cmdprio_class=3", "cmdprio_percentage=0"] {
        let (streams, reads, writes, _) = of(&format!("{mix} {none}"));
        assert_eq!((streams.len(), reads, writes), (1, 0.0, 0.0), "{none}");
    }
}

#[test]
fn the_seed_determines_the_requests() {
    let text = "rw=randrw bssplit=4k/50:8k/50 rate_iops=1000 rate_process=poisson random_distribution=zipf:0.9";
    let first = |text: &str, seed: u64| requests(&mut made(text, GIB, seed).unwrap()[0], 1000);
    assert_eq!(first(text, 1), first(text, 1));
    assert_ne!(first(text, 1), first(text, 2));
    let seeded = format!("{text} randseed=2");
    assert_eq!(first(&seeded, 1), first(text, 2));
    // A clone continues like the original.
    let mut original = job(text, GIB);
    requests(&mut original, 100);
    let mut clone = original.clone();
    assert_eq!(requests(&mut original, 100), requests(&mut clone, 100));
}

#[test]
fn random_streams_are_independent() {
    let addresses = |text: &str| lbas(&run(text, GIB, 500));
    assert_eq!(addresses("rw=randread"), addresses("rw=randrw"));
    assert_eq!(addresses("rw=randread"), addresses("rw=randread rate_iops=10 rate_process=poisson"));
    assert_eq!(addresses("rw=randread"), addresses("rw=randread bssplit=4k/99:8k/1"));
}

#[test]
fn the_same_requests_in_every_version() {
    let all =
        run("rw=randwrite bssplit=4k/60:16k/40 random_distribution=zipf:1.1 rate_iops=7 rate_process=poisson", GIB, 5);
    let text: Vec<String> =
        all.iter().map(|r| format!("{} {} {} {}", r.arrival.ps(), r.operation.name(), r.lba, r.sectors)).collect();
    insta::assert_snapshot!(text.join("\n"), @r#"
        52149681784 write 665280 8
        142830747142 write 828752 32
        198496404049 write 1898144 8
        249405221275 write 1879184 8
        383136942706 write 978832 32
        "#);
    let text: Vec<String> = lbas(&run("rw=randwrite size=1000m", GIB, 8)).iter().map(u64::to_string).collect();
    insta::assert_snapshot!(text.join(" "), @"416584 1573776 1536424 442264 478544 194496 726944 1935480");
}

/// Returns the visible properties of jobs, except descriptions and warnings.
fn visible(text: &str) -> impl PartialEq + std::fmt::Debug + use<> {
    let of_job = |planned| match planned {
        Planned::Made(mut source) => {
            let requests = requests(&mut source, 40_000);
            let times = (source.stop_at(), source.measure_from(), source.waits_for(), source.start_delay());
            let control = source.control();
            (
                requests,
                Some((source.pace(), control, times, source.streams())),
                source.place.write_iolog.clone().map(|log| log.path),
            )
        }
        Planned::Replayed(mut recipe) => {
            recipe.place.warnings.clear();
            (Vec::new(), None, Some(format!("{recipe:?}")))
        }
    };
    plan_text(text, 64 * MIB, 1).unwrap().into_iter().map(of_job).collect::<Vec<_>>()
}

const RANDOM: &str = "rw=randrw bs=4k";

/// Jobs, with a key that changes each of them.
const CHANGES: &[(&str, &str)] = &[
    ("", "rw=write"),
    ("", "readwrite=randread"),
    ("rw=randread", "bs=8k"),
    ("rw=randread", "blocksize=8k"),
    (RANDOM, "bssplit=4k/50:8k/50"),
    (RANDOM, "blockalign=8k"),
    (RANDOM, "ba=2k"),
    (RANDOM, "rwmixread=60"),
    (RANDOM, "rwmixwrite=60"),
    (RANDOM, "random_distribution=zipf:0.8"),
    (RANDOM, "random_distribution=pareto:0.3"),
    (RANDOM, "random_distribution=zoned:60/40:40/60"),
    (RANDOM, "random_distribution=zoned_abs:60/1m:40/60m"),
    (RANDOM, "norandommap"),
    ("rw=randwrite bs=4k", "sprandom"),
    ("rw=randwrite bs=4k sprandom", "spr_num_regions=10"),
    ("rw=randwrite bs=4k sprandom", "spr_op=0.1"),
    ("rw=randwrite bs=4k sprandom", "spr_cs=64k"),
    (RANDOM, "offset=4k"),
    (RANDOM, "size=4m"),
    (RANDOM, "io_size=4m"),
    (RANDOM, "number_ios=4"),
    (RANDOM, "runtime=4"),
    ("rw=randrw bs=4k runtime=4", "time_based"),
    (RANDOM, "ramp_time=1s"),
    (RANDOM, "iodepth=2"),
    (RANDOM, "thinktime=1"),
    (RANDOM, "rate_iops=1000"),
    ("rw=randrw bs=4k rate_iops=1000", "rate_process=poisson"),
    ("rw=randrw bs=4k rate_iops=1000", "iodepth=4"),
    ("rw=read zonesize=64k zoneskip=64k", "zonerange=128k"),
    ("rw=read zonesize=64k zonerange=128k", "zoneskip=64k"),
    ("rw=read", "zonesize=64k zoneskip=4k"),
    ("rw=read", "zonemode=strided zonesize=64k zoneskip=4k"),
    (RANDOM, "randseed=3"),
    (RANDOM, "name=a"),
    ("rw=randread:8", "rw_sequencer=identical"),
    (RANDOM, "bsrange=4k-8k"),
    (RANDOM, "blocksize_range=4k-8k"),
    (RANDOM, "percentage_random=50"),
    (RANDOM, "cmdprio_percentage=50"),
    ("rw=randrw cmdprio_percentage=50", "cmdprio_class=2"),
    (RANDOM, "prioclass=1"),
    ("rw=write size=1m", "filename=a; rw=write size=1m filename=b"),
    ("rw=write size=1m numjobs=2", "ioengine=libaio"),
    ("rw=write size=1m numjobs=2 ioengine=libaio", "filename_format=a"),
    ("rw=write size=1m numjobs=2 filename=a", "directory=a:b"),
    (RANDOM, "filesize=32m"),
    (RANDOM, "fileoffset=4k"),
    ("rw=randrw numjobs=2", "offset_increment=4k"),
    (RANDOM, "io_limit=4m"),
    ("rw=randrw number_ios=4", "loops=2"),
    (RANDOM, "timeout=4"),
    ("rw=randrw thinktime=1", "thinktime_blocks=4"),
    ("rw=randrw thinktime=1", "thinktime_iotime=4"),
    (RANDOM, "rate=1000k"),
    (RANDOM, "fsync=4"),
    (RANDOM, "fdatasync=4"),
    ("rw=randrw number_ios=4", "end_fsync"),
    (RANDOM, "sync=dsync"),
    (RANDOM, "numjobs=2"),
    ("name=a rw=read; rw=write", "stonewall"),
    ("name=a rw=read; rw=write", "wait_for_previous"),
    ("name=a rw=read; rw=write", "wait_for=a"),
    (RANDOM, "startdelay=2"),
    (RANDOM, "write_iolog=a.log"),
    ("rw=randwrite", "write_hint=short"),
    ("", "read_iolog=trace.csv"),
    ("read_iolog=trace.csv", "replay_time_scale=50"),
    ("read_iolog=trace.csv", "replay_no_stall"),
    ("read_iolog=trace.csv", "replay_redirect=/dev/sda"),
    ("rw=randrw bs=4ki", "kb_base=1000"),
    ("rw=randread random_distribution=sequence:2,0,1", "random_sequence_stride"),
    ("rw=read offset=1% size=10%", "offset_align=64k"),
    ("rw=write size=1m ioengine=libaio", "nrfiles=2"),
    ("rw=write size=1m ioengine=libaio", "nr_files=2"),
    ("rw=write size=1m filename=a:b", "file_service_type=sequential"),
    ("rw=read ioengine=psync iodepth=4", "io_submit_mode=offload"),
    (RANDOM, "writefua"),
    (RANDOM, "write_mode=zeroes"),
    (RANDOM, "sg_write_mode=write_same_ndob"),
    ("rw=write size=1m", "verify=md5"),
    ("rw=write size=1m verify=md5", "do_verify=0"),
    ("rw=write size=1m verify=md5", "verify_only"),
    ("rw=write size=1m verify=md5", "verify_backlog=4"),
    ("rw=write size=1m verify=md5 verify_backlog=4", "verify_backlog_batch=2"),
    (RANDOM, "steadystate=iops:3% ss_dur=9"),
    ("rw=read ss_dur=9", "ss=lat_slope:4us"),
    ("rw=read ss=iops:3% ss_dur=9 numjobs=2", "group_reporting"),
    (RANDOM, "ss=bw_slope:1m steadystate_duration=9"),
    ("rw=read ss=iops:3% ss_dur=9", "steadystate_ramp_time=2"),
    ("rw=read ss=iops:3% ss_dur=9", "ss_ramp=2"),
    ("rw=read ss=iops:3% ss_dur=9", "steadystate_check_interval=3"),
    ("rw=read ss=iops:3% ss_dur=9", "ss_interval=3"),
    (RANDOM, "latency_target=9 latency_window=8"),
    ("rw=read latency_target=9 latency_window=8", "latency_percentile=99.5"),
    ("rw=read latency_target=9 latency_window=8", "latency_run"),
    ("rw=read iodepth=8", "iodepth_batch_complete_min=4"),
    ("rw=read iodepth=8", "iodepth_batch_complete=4"),
    ("rw=read iodepth=8", "iodepth_low=4"),
    (RANDOM, "flow=2"),
    ("rw=read flow=2", "flow_id=1"),
    ("rw=read; rw=write", "exitall"),
    ("rw=read exitall; rw=write; rw=trim stonewall", "exit_what=all"),
    ("rw=read exitall; rw=write", "new_group"),
];

#[test]
fn every_key_has_an_effect() {
    for &(base, key) in CHANGES {
        let with = format!("{base} {key}");
        let base = match base {
            "" => "rw=read",
            // Without `kb_base`, 4ki would not be a multiple of a sector.
            "rw=randrw bs=4ki" => "rw=randrw bs=8k",
            base => base,
        };
        assert!(visible(base) != visible(&with), "`{key}` changes nothing of `{base}`");
        if !with.contains("read_iolog") {
            let warnings = made(&with, 64 * MIB, 1).unwrap().iter().flat_map(Source::warnings).collect::<Vec<_>>();
            assert!(warnings.iter().all(|warning| warning.contains("overridden")), "{with}: {warnings:?}");
        }
    }
    // A text for people, which appears only in the description.
    assert!(job("rw=read description=mine", GIB).description().contains("mine"));
    for name in keys::all_names().filter(|name| *name != "description") {
        assert!(
            CHANGES.iter().any(|(_, key)| key.split_whitespace().any(|word| word.split('=').next() == Some(name))),
            "{name}"
        );
    }
}

#[test]
fn the_reference_has_every_key() {
    let page = include_str!("../../../../docs/reference/synthetic.md");
    for name in keys::all_names() {
        assert!(
            page.contains(&format!("`{name}`")) || page.contains(&format!("`{name}=")),
            "{name} is not in the page"
        );
    }
}

#[test]
fn errors_of_keys_suggest_similar_ones() {
    let text = error("rw=randwrite blocksise=4k");
    assert!(
        text.starts_with("job1: `blocksise` is not supported; did you mean `blocksize`? The keys are in docs/"),
        "{text}"
    );
    let text = error("rw=randwrite fsyn=4");
    assert!(text.contains("did you mean `fsync` or `sync`?"), "{text}");
    assert!(
        error("rw=randwrite; rw=read io_depth=4")
            .starts_with("job2: `io_depth` is not supported; did you mean `iodepth`?")
    );
    assert!(error("rw=randwrite atomic=1").starts_with("job1: `atomic` of fio is not supported: "));
    assert!(error("rw=randwrite opendir=x").starts_with("job1: `opendir` of fio is not supported: "));
    assert!(
        error("quite_unheard_of=1").starts_with("job1: `quite_unheard_of` is not supported. The keys are in docs/")
    );
    assert!(error("bs 4k").starts_with("job1: `bs` needs a value"));
    insta::assert_snapshot!(error("bs=4k rw=read blocksize=8k"), @r#"
        job1: `bs=4k` and `blocksize=8k` set the same option; leave one out
        "#);
    insta::assert_snapshot!(error("  ; \n "), @r#"
        the workload is empty; write a job like `rw=randwrite bs=4k iodepth=32`
        "#);
}

/// Jobs with an invalid value.
const WRONG_VALUES: &[&str] = &[
    "rw=randwrit",
    "rw=randread:0",
    "rw=write:100",
    "rw=write:-0x",
    "rw_sequencer=same",
    "bsrange=4k",
    "bsrange=8k-4k",
    "sync=yes",
    "filename=a:b nrfiles=0",
    "file_service_type=zipf",
    "verify=crc32x",
    "write_mode=uncor",
    "kb_base=1001",
    "fsync=-1",
    "bs=4q",
    "bs=1000",
    "bs=4kib",
    "bs=0",
    "bs=-4k",
    "bs=4k,4k,4k,4k",
    "bs=",
    "bssplit=4k/60:8k/50",
    "bssplit=4k/60:8k/30",
    "bssplit=4k/100:8k/",
    "bssplit=4k/x:8k",
    "bssplit=4k/50::8k/50",
    "rwmixread=101",
    "iodepth=0",
    "iodepth=many",
    "rate_process=poison",
    "thinktime=5ns",
    "random_distribution=zipf:0",
    "random_distribution=zipf:1.2:1.5",
    "random_distribution=pareto:1",
    "random_distribution=normal:0",
    "random_distribution=zoned",
    "random_distribution=zoned:50/10:40/90",
    "random_distribution=zoned:50/60:50/60",
    "random_distribution=zoned_abs:50/60:50",
    "norandommap=yes",
    "size=120%",
    "runtime=300d",
    "randseed=-1",
    "zonemode=zbd",
];

#[test]
fn errors_of_values_list_what_is_allowed() {
    let errors: Vec<String> = WRONG_VALUES.iter().map(|value| error(value)).collect();
    insta::assert_snapshot!(errors.join("\n"), @r#"
        job1: `rw=randwrit`: must be one of read, write, randread, randwrite, rw, readwrite, randrw, trim, randtrim, trimwrite, randtrimwrite; did you mean `randwrite`?
        job1: `rw=randread:0`: the number of requests for each random address, `0`, must be a whole number from 1 to 4294967295; k means 1024, m 1024*1024
        job1: `rw=write:100`: the distance between requests, `100`, must be a multiple of 512 bytes, is 100
        job1: `rw=write:-0x`: the distance between requests, `-0x`, must be a number of bytes, with k, m, g, t or p for powers of 1024, like 4k
        job1: `rw_sequencer=same`: must be one of sequential, identical
        job1: `bsrange=4k`: must be a range; write min-max, like 4k-64k
        job1: `bsrange=8k-4k`: the range ends below its start; write min-max, like 4k-64k
        job1: `sync=yes`: must be one of none, sync, dsync
        job1: `nrfiles=0`: must be a whole number from 1 to 4294967295; k means 1024, m 1024*1024
        job1: `file_service_type=zipf`: must be one of roundrobin, sequential, random
        job1: `verify=crc32x`: must be one of md5, crc64, crc32c, crc32c-intel, crc32, crc16, crc7, xxhash, sha512, sha256, sha1, sha3-224, sha3-256, sha3-384, sha3-512, meta, pattern, pattern_hdr, null; did you mean `crc32`?
        job1: `write_mode=uncor`: must be write or zeroes: the simulated device has no other commands that write
        job1: `kb_base=1001`: must be one of 1024, 1000; did you mean `1000`?
        job1: `fsync=-1`: must be a whole number from 0 to 4294967295; k means 1024, m 1024*1024
        job1: `bs=4q`: must be a number of bytes, with k, m, g, t or p for powers of 1024, like 4k
        job1: `bs=1000`: must be a multiple of 512 bytes, is 1000
        job1: `bs=4kib`: must be a multiple of 512 bytes, is 4000 (as in fio, k is 1024 and ki is 1000)
        job1: `bs=0`: must be at least 512 bytes
        job1: `bs=-4k`: must be a number of bytes, with k, m, g, t or p for powers of 1024, like 4k
        job1: `bs=4k,4k,4k,4k`: at most three values, for reads, writes and trims
        job1: `bs` needs a value: write bs=...
        job1: `bssplit=4k/60:8k/50`: the percentages add up to 110, more than 100; write size/percentage:size/percentage, like 4k/10:64k/50:32k/40
        job1: `bssplit=4k/60:8k/30`: the percentages add up to 90, not to 100; write size/percentage:size/percentage, like 4k/10:64k/50:32k/40
        job1: `bssplit=4k/100:8k/`: the percentages add up to 100, which leaves nothing for those not given; write size/percentage:size/percentage, like 4k/10:64k/50:32k/40
        job1: `bssplit=4k/x:8k`: invalid percentage `x`: expected 1 to 100; write size/percentage:size/percentage, like 4k/10:64k/50:32k/40
        job1: `bssplit=4k/50::8k/50`: the size `` must be a number of bytes, with k, m, g, t or p for powers of 1024, like 4k; write size/percentage:size/percentage, like 4k/10:64k/50:32k/40
        job1: `rwmixread=101`: must be a whole percentage from 0 to 100
        job1: `iodepth=0`: must be a whole number from 1 to 1048576; k means 1024, m 1024*1024
        job1: `iodepth=many`: must be a whole number from 1 to 1048576; k means 1024, m 1024*1024
        job1: `rate_process=poison`: must be one of linear, poisson; did you mean `poisson`?
        job1: `thinktime=5ns`: must be a time in microseconds, or with us, ms, s, m, h or d, like 10s, at most 213 days
        job1: `random_distribution=zipf:0`: zipf takes theta, above 0 and at most 50, like zipf:1.2; optionally a center from 0 to 1 after another colon
        job1: `random_distribution=zipf:1.2:1.5`: zipf takes theta, above 0 and at most 50, like zipf:1.2; optionally a center from 0 to 1 after another colon
        job1: `random_distribution=pareto:1`: pareto takes h, between 0 and 1, like pareto:0.2; optionally a center from 0 to 1 after another colon
        job1: `random_distribution=normal:0`: normal takes a deviation in percent, above 0 and at most 100, like normal:10; optionally a center from 0 to 1 after another colon
        job1: `random_distribution=zoned`: the access share `` must be a whole percentage from 0 to 100; write access%/range%:..., like zoned:60/10:30/20:8/30:2/40
        job1: `random_distribution=zoned:50/10:40/90`: the access shares add up to 90%, not to 100%; write access%/range%:..., like zoned:60/10:30/20:8/30:2/40
        job1: `random_distribution=zoned:50/60:50/60`: the ranges: the percentages add up to 120, more than 100; write access%/range%:..., like zoned:60/10:30/20:8/30:2/40
        job1: `random_distribution=zoned_abs:50/60:50`: a zone's size must be a multiple of 512 bytes, is 60; write access%/size:..., like zoned_abs:60/20g:30/100g:10/500g
        job1: `norandommap=yes`: must have no value, or be 0 or 1
        job1: `size=120%`: must be at most 100%
        job1: `runtime=300d`: must be a time in seconds, or with us, ms, s, m, h or d, like 10s, more than 0, at most 213 days
        job1: `randseed=-1`: must be a whole number from 0; k means 1024, m 1024*1024
        job1: `zonemode=zbd`: must be one of none, strided
        "#);
}

#[test]
fn errors_of_fit_name_the_cause() {
    let jobs = [
        "size=2g",
        "offset=1g",
        "offset=1m size=1g",
        "rw=write bs=2m size=1m",
        "rw=randwrite bssplit=4k/50:2m/50 size=1m",
        "zonesize=2m zonerange=4k bs=8k",
        "zonesize=4k zonerange=2m size=1m",
        "zonemode=strided",
        "zonemode=none zonesize=4k",
        "zoneskip=4k",
        "time_based",
        "rate_iops=10 thinktime=10",
        "runtime=200d ramp_time=100d",
        "rw=randread blockalign=2m size=1m",
        "rw=randread random_distribution=zoned:50/1:50/ size=256k",
        "rw=randread random_distribution=zoned_abs:50/1m:50/1g",
    ];
    let errors: Vec<String> = jobs.iter().map(|job| error(job)).collect();
    insta::assert_snapshot!(errors.join("\n"), @r#"
        job1: `size` of 2 GiB does not fit the device, which has 1 GiB after the offset
        job1: `offset` leaves nothing of the device of 1 GiB
        job1: `size` of 1 GiB does not fit the device, which has 1023 MiB after the offset
        job1: a block of 2 MiB does not fit the region of 1 MiB; make bs smaller or the region larger
        job1: a block of 2 MiB does not fit the region of 1 MiB; make bs smaller or the region larger
        job1: a block of 8 KiB does not fit the zone of 4 KiB; make bs smaller or the zone larger
        job1: a zone of 2 MiB does not fit the first 1 MiB
        job1: `zonemode=strided` needs zonesize
        job1: `zonemode=none` and `zonesize` exclude each other
        job1: `zoneskip` needs zonemode=strided and zonesize
        job1: `time_based` needs runtime
        job1: `thinktime` waits for completions, which a rate does not; leave one out
        job1: `runtime` and `ramp_time` exceed 213 days
        job1: `blockalign` of 2 MiB leaves no place for a block
        job1: `random_distribution`: zone 1 is smaller than a block
        job1: `random_distribution`: zone 2 ends beyond the region of 1 GiB
        "#);
    assert!(made("rw=read", 0, 1).is_err());
    assert!(made("rw=read", 511, 1).is_err());
    assert!(made("rw=read bs=512", 512, 1).is_ok());
}

#[test]
fn options_without_effect_give_warnings() {
    let warnings = [
        "rw=randread rwmixread=70",
        "rw=read norandommap random_distribution=zipf blockalign=4k",
        "rw=read bs=4k bssplit=4k/50:8k",
        "rw=read rate_process=poisson",
        "rw=read io_size=1m time_based runtime=1",
        "rw=randwrite bs=4k size=512m number_ios=2m",
        "rw=randwrite bs=4k size=512m number_ios=128k",
    ]
    .map(|text| job(text, GIB).warnings().join("\n"));
    insta::assert_snapshot!(warnings.join("\n"), @r#"
        job1: rwmixread and rwmixwrite have no effect on rw=randread
        job1: norandommap has no effect on rw=read, which is sequential
        job1: random_distribution has no effect on rw=read, which is sequential
        job1: blockalign has no effect on rw=read, which is sequential
        job1: bs is overridden by bssplit
        job1: rate_process needs rate_iops or rate
        job1: io_size has no effect with time_based
        job1: number_ios=2097152 is not reached: as in fio, size ends the job after 512 MiB; set io_size
        "#);
}

#[test]
fn jobs_and_files_are_distinguished() {
    for text in ["rw=read", "bs=4k rw=randwrite", "name=a;rw=read", "bs=4k\nreadwrite=rw"] {
        assert!(looks_like_job(text), "{text}");
    }
    for text in ["", "trace.csv", "dir/rw=read.csv", "bs=4k", "rw"] {
        assert!(!looks_like_job(text), "{text}");
    }
}

/// Generates words of jobs, valid and invalid ones.
fn words() -> impl Strategy<Value = String> {
    let names: Vec<&str> = keys::all_names().collect();
    let value = prop_oneof![
        "[0-9]{1,20}[a-z%]{0,3}",
        "(4k|8k|1m|512|0x1000)",
        "(read|randwrite|randrw|rw|randtrimwrite|strided|poisson)",
        "(zipf|pareto|normal|zoned|zoned_abs)(:[0-9./:]{0,12})?",
        "([0-9]{1,3}k?/[0-9]{0,3}[:,]?){1,6}",
        "\\PC{0,20}",
    ];
    (proptest::sample::select(names), value).prop_map(|(name, value)| format!("{name}={value}"))
}

/// Checks that the requests of an accepted job lie in the device and are not empty.
fn check(text: &str, device_bytes: u64) {
    let planned = plan_text(text, device_bytes, 1).into_iter().flatten();
    for mut job in planned.filter_map(|job| if let Planned::Made(job) = job { Some(job) } else { None }) {
        let _ = (job.warnings(), job.description().len(), job.pace(), job.progress());
        let mut last = Time::ZERO;
        for _ in 0..200 {
            let Ok(Some(request)) = job.next_request() else { break };
            let flush = request.operation == Operation::Flush;
            assert!((flush || request.sectors > 0) && request.arrival >= last, "{text}: {request:?}");
            assert!(request.lba + u64::from(request.sectors) <= device_bytes / SECTOR, "{text}: {request:?}");
            last = request.arrival;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_parser_panic(text in "(?s).{0,200}", device_bytes: u64) {
        check(&text, device_bytes);
        check(&format!("rw=randread {text}"), device_bytes);
    }

    #[test]
    fn no_job_leaves_its_device(
        words in proptest::collection::vec(words(), 0..5),
        device in prop_oneof![Just(GIB), 0..(4 * MIB), any::<u64>()],
    ) {
        check(&words.join(" "), device);
        // Each word is also checked alone, because most jobs of many words have an error in one of them.
        for word in &words {
            check(&format!("rw=randrw {word}"), device);
            check(word, device);
        }
    }

    #[test]
    fn jobs_stay_in_their_region(
        offset in 0u64..2000, size in 1u64..2000, block in 1u64..64, align in 1u64..64,
        random: bool, zone in proptest::option::of((1u64..300, 1u64..300, 0u64..300)),
    ) {
        let [offset, size, block, align] = [offset, size, block, align].map(|sectors| sectors * SECTOR);
        let zone = zone.map(|(size, range, skip)| {
            format!("zonesize={} zonerange={} zoneskip={}", size * SECTOR, range * SECTOR, skip * SECTOR)
        });
        let rw = if random { format!("randrw ba={align}") } else { "rw".to_owned() };
        // Zones, and the last block of a sequential job, may extend beyond the region.
        let end = if zone.is_some() { 4 * MIB } else { offset + size + if random { 0 } else { block - SECTOR } };
        let text = format!("rw={rw} bs={block} offset={offset} size={size} io_size=1m {}", zone.unwrap_or_default());
        for mut job in made(&text, 4 * MIB, 1).into_iter().flatten() {
            while let Some(request) = job.next_request().unwrap() {
                prop_assert!(request.lba * SECTOR >= offset);
                prop_assert!(request.lba * SECTOR + request.bytes() <= end);
            }
        }
    }
}
