use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::trace::TraceOptions;

fn profiled(text: &str, options: &TraceOptions) -> Profile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let mut reader = Reader::open(file.path(), options).unwrap();
    let mut profiler = Profiler::default();
    while let Some(item) = reader.next_item().unwrap() {
        profiler.add(&item);
    }
    profiler.finish_trace(&reader, "file")
}

/// Returns lines of SPC for device, sector, bytes, operation and seconds.
fn spc(requests: &[(u32, u64, u64, char, f64)]) -> String {
    requests.iter().map(|(asu, lba, bytes, op, s)| format!("{asu},{lba},{bytes},{op},{s}\n")).collect()
}

#[test]
fn a_small_trace_by_hand() {
    let text = spc(&[
        (0, 0, 4096, 'W', 10.0),
        (0, 8, 8192, 'W', 10.001),
        (0, 8, 4096, 'R', 10.003),
        (1, 4, 4096, 'R', 10.003),
        (0, 16, 4096, 'W', 10.007),
        (0, 12, 2048, 'R', 10.008),
    ]);
    let profile = profiled(&text, &TraceOptions::default());
    assert_eq!((profile.requests, profile.bytes), (6, 26_624));
    assert!((profile.duration_s - 0.008).abs() < 1e-12);
    assert_eq!(profile.rate, Some(5.0 / 0.008));
    let origin = profile.trace.as_ref().unwrap();
    assert_eq!(
        (origin.format.as_str(), origin.confidence.as_str(), origin.time_unit.as_str()),
        ("spc", "certain", "s")
    );
    assert_eq!(profile.warnings, Vec::<String>::new());

    let read = profile.operation("read").unwrap();
    assert_eq!((read.requests, read.share, read.bytes), (3, 0.5, 10_240));
    assert_eq!((read.size_kib.min, read.size_kib.max), (Some(2.0), Some(4.0)));
    assert_eq!(read.sizes, [SizeCount { sectors: 4, requests: 1 }, SizeCount { sectors: 8, requests: 2 }]);
    // The read of 12 starts within a page, like the read of 4 on the other device.
    assert_eq!((read.sequential, read.aligned, read.whole_pages), (0.0, 1.0 / 3.0, 1.0 / 3.0));
    let write = profile.operation("write").unwrap();
    assert_eq!((write.sequential, write.run_longest, write.run_mean), (1.0 / 3.0, 2, Some(1.5)));
    assert_eq!((write.aligned, write.whole_pages), (1.0, 1.0));

    // Gaps of 1, 2, 0, 4 and 1 ms: the mean is 1.6, the variance (1 + 4 + 0 + 16 + 1) / 5 - 2.56 = 1.84.
    let arrivals = &profile.arrivals;
    assert!((arrivals.gap_us.mean.unwrap() - 1600.0).abs() < 1e-6);
    assert!((arrivals.gap_us.variation.unwrap() - 1.84_f64.sqrt() / 1.6).abs() < 1e-9);
    assert_eq!((arrivals.zero, arrivals.resolution_ns), (Some(0.2), Some(1e6)));
    assert_eq!(arrivals.histogram.iter().map(|class| class.count).sum::<u64>(), 5);
    assert_eq!(arrivals.transitions.len(), 4);

    // Writes: 0, 1 and 2, the last twice. Reads: page 1 twice, and pages 0 and 1 of the other device.
    let footprint = &profile.footprint;
    assert_eq!((footprint.pages, footprint.read_pages, footprint.written_pages), (5.0, 3.0, 3.0));
    assert_eq!((footprint.both_pages, footprint.sampled, footprint.relative_error), (1.0, 1.0, 0.0));
    assert_eq!((footprint.overwrites, footprint.updates), (Some(0.25), Some(0.25)));
    assert_eq!((footprint.reads_of_unwritten, footprint.accesses_per_page), (Some(0.5), Some(1.6)));
    assert_eq!(footprint.span_bytes, 24 * 512);
    // Three accesses to one page, two to another, one to each of three: the hottest fifth is one page.
    assert_eq!(footprint.hot.unwrap().of_20_percent, 3.0 / 8.0);
    assert_eq!(footprint.hot.unwrap().of_10_percent, 1.5 / 8.0);

    // Four requests have a predecessor on their device. Two of them, the second and the third write, continue it.
    assert_eq!(profile.sequentiality.after_last, Some(0.5));
    assert_eq!(profile.order, Order::default());
    let names: Vec<_> = profile.devices.iter().map(|one| (one.name.as_str(), one.requests, one.pages)).collect();
    assert_eq!(names, [("0", 5, 3.0), ("1", 1, 2.0)]);
}

#[test]
fn disorder_is_measured_and_can_be_sorted() {
    let text = spc(&[(0, 0, 512, 'R', 3.0), (0, 8, 512, 'R', 5.0), (0, 8, 512, 'R', 4.0), (0, 8, 512, 'R', 6.0)]);
    let profile = profiled(&text, &TraceOptions::default());
    assert_eq!(profile.order, Order { late: 1, sort_window: 1, beyond: false });
    assert!(profile.warnings.join("\n").contains("--sort-window 1"), "{:?}", profile.warnings);
    // The late request has no gap: 2 s and 1 s.
    assert_eq!(profile.arrivals.gap_us.mean, Some(1.5e6));
    let sorted = profiled(&text, &TraceOptions { sort_window: 1, ..TraceOptions::default() });
    assert_eq!((sorted.order.late, sorted.arrivals.gap_us.mean), (0, Some(1e6)));
    assert_eq!(sorted.warnings, Vec::<String>::new());
}

/// Returns a trace with five numbers per line, and one request per millisecond in a unit given as a power of ten.
fn numbers(count: u64, exponent: u32, line: impl Fn(u64) -> String) -> String {
    (0..count).map(|n| format!("{} 0 {}\n", n * 10_u64.pow(exponent), line(n))).collect()
}

#[test]
fn implausible_traces_give_warnings() {
    let warnings = |text: &str| profiled(text, &TraceOptions::default()).warnings.join("\n");
    let ordinary = |n: u64| format!("{} 8 {}", n * n % 999 * 8, n % 3 % 2);
    assert_eq!(warnings(&numbers(100, 6, ordinary)), "");
    // Microseconds read as nanoseconds: 32 MB/ms.
    let text = warnings(&numbers(2000, 3, |n| format!("{} 8192 {}", n * n % 999 * 8, n % 2)));
    assert!(text.contains("--time-unit us") && text.contains("(1000 requests/s)"), "{text}");
    // Seconds read as nanoseconds give a million requests per second and more. Years between requests are too few.
    let text = warnings(&numbers(100, 16, ordinary));
    assert!(text.contains("less than one request an hour") && text.contains("213 days"), "{text}");
    let text = warnings(&numbers(100, 6, |n| format!("{} 4096 {}", n * n % 999 * 4096, n % 2)));
    assert!(text.contains("all addresses and lengths are multiples of 512"), "{text}");
    let text = warnings(&numbers(100, 6, |n| format!("{} 8 {}", n * n % 999 * 4096, n % 2)));
    assert!(text.contains("all addresses are multiples of 512"), "{text}");
    let text = warnings(&numbers(100, 6, |n| format!("{} 8 0", n * n % 999)));
    assert!(text.contains("all requests are writes"), "{text}");
    let text = warnings(&numbers(100, 6, |n| format!("{} 8 {}", (n << 42) + n, n % 2)));
    assert!(text.contains("which no drive has"), "{text}");
    let coarse = |n: u64| format!("{} 0 {} 8 {}\n", n / 50 * 1_000_000_000, n * n % 999, n % 2);
    let text = warnings(&(0..1000).map(coarse).collect::<String>());
    assert!(
        text.contains("98 % of the requests arrive at the same time") && text.contains("multiples of 1 s"),
        "{text}"
    );
}

#[test]
fn an_empty_trace_has_a_profile() {
    let profile = Profiler::default().finish();
    assert_eq!((profile.requests, profile.rate, profile.footprint.hot), (0, None, None));
    assert!(profile.to_json().contains("\"rate\": null"));
}

/// Computes the same with plain sets and lists.
struct Naive {
    pages: [BTreeSet<(u32, u64)>; 2],
    accesses: BTreeMap<(u32, u64), u64>,
    overwrites: u64,
    writes: u64,
    sequential: u64,
}

fn naive(items: &[Item]) -> Naive {
    let (mut pages, mut accesses) = ([BTreeSet::new(), BTreeSet::new()], BTreeMap::new());
    let (mut overwrites, mut writes, mut sequential) = (0, 0, 0);
    for (n, item) in items.iter().enumerate() {
        let kind = usize::from(item.operation == Operation::Write);
        for page in item.lba / 8..(item.lba + u64::from(item.sectors)).div_ceil(8) {
            *accesses.entry((item.device, page)).or_insert(0) += 1;
            let fresh = pages[kind].insert((item.device, page));
            writes += kind as u64;
            overwrites += u64::from(kind == 1 && !fresh);
        }
        let same = |other: &&Item| other.device == item.device && other.operation == item.operation;
        let last = items[..n].iter().rev().find(same);
        sequential += u64::from(last.is_some_and(|last| last.lba + u64::from(last.sectors) == item.lba));
    }
    Naive { pages, accesses, overwrites, writes, sequential }
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    let one = (0..2_000_000_000_u64, 0..3_u32, any::<bool>(), 0..6_000_u64, 1..700_u32, any::<bool>());
    proptest::collection::vec(one, 1..60).prop_map(|parts| {
        let mut ps = 0_i128;
        let mut end = 0;
        parts
            .into_iter()
            .map(|(gap, device, reads, lba, sectors, follows)| {
                ps += i128::from(gap);
                let lba = if follows { end } else { lba };
                end = lba + u64::from(sectors);
                let operation = if reads { Operation::Read } else { Operation::Write };
                Item { ps, device, operation, lba, sectors, line: 0 }
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn profiles_match_plain_sets(items in items()) {
        let mut profiler = Profiler::default();
        items.iter().for_each(|item| profiler.add(item));
        let profile = profiler.finish();
        let naive = naive(&items);
        let both = naive.pages[0].intersection(&naive.pages[1]).count();
        let footprint = &profile.footprint;
        prop_assert_eq!(footprint.read_pages, naive.pages[0].len() as f64);
        prop_assert_eq!(footprint.written_pages, naive.pages[1].len() as f64);
        prop_assert_eq!(footprint.both_pages, both as f64);
        prop_assert_eq!(footprint.pages, naive.accesses.len() as f64);
        let overwrites = (naive.writes > 0).then(|| naive.overwrites as f64 / naive.writes as f64);
        prop_assert_eq!(footprint.overwrites, overwrites);
        let sequential: f64 = profile.operations.iter().map(|one| one.sequential * one.requests as f64).sum();
        prop_assert!((sequential - naive.sequential as f64).abs() < 1e-6);

        let mut hottest: Vec<u64> = naive.accesses.values().copied().collect();
        hottest.sort_unstable_by(|a, b| b.cmp(a));
        let total: u64 = hottest.iter().sum();
        let part = hottest.len() as f64 / 10.0;
        let whole = part as usize;
        let rest = hottest.get(whole).map_or(0.0, |count| *count as f64 * part.fract());
        let hot = (hottest[..whole].iter().sum::<u64>() as f64 + rest) / total as f64;
        prop_assert!((footprint.hot.unwrap().of_10_percent - hot).abs() < 1e-9);

        let times: Vec<f64> = items.windows(2).map(|pair| (pair[1].ps - pair[0].ps) as f64 / 1e6).collect();
        if !times.is_empty() {
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            let squares = times.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / times.len() as f64;
            let gap = profile.arrivals.gap_us;
            prop_assert!((gap.mean.unwrap() - mean).abs() <= 1e-9 * mean.max(1.0));
            prop_assert!((gap.deviation.unwrap() - squares.sqrt()).abs() <= 1e-6 * mean.max(1.0));
        }
        let windows = profile.arrivals.bursts.iter().find(|burst| burst.window_s == 0.001);
        if let Some(burst) = windows {
            let first = items[0].ps;
            let mut counts = vec![0_u64; burst.windows as usize];
            for item in &items {
                if let Some(count) = counts.get_mut(((item.ps - first) / 1_000_000_000) as usize) {
                    *count += 1;
                }
            }
            let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
            let squares: f64 = counts.iter().map(|n| (*n as f64 - mean) * (*n as f64 - mean)).sum();
            prop_assert!((burst.dispersion - squares / counts.len() as f64 / mean).abs() < 1e-9);
        }
    }
}
