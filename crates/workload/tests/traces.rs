//! Tests of the readers with genuine traces, compared with values that an independent script has counted.
//!
//! The traces may not be redistributed: `common/genuine.rs` describes their location.

use std::path::Path;

use crate::common::genuine::trace_file;
use floatgate_sim::request::Operation;
use floatgate_sim::source::Source;
use floatgate_workload::trace::{Confidence, Fit, Replay, TimeUnit, Trace, TraceOptions};

/// Larger than any of the traces with its devices side by side.
const DEVICE: u64 = 1 << 40;

/// Known contents of a trace.
struct Known {
    file: &'static str,
    /// Options needed to read the trace.
    unit: Option<TimeUnit>,
    sort_window: u32,
    skip_bad_lines: u64,
    limit: Option<u64>,
    replay: Replay,
    /// Words in the only warning.
    warning: Option<&'static str>,
    format: &'static str,
    confidence: Confidence,
    reads: u64,
    writes: u64,
    read_bytes: u64,
    write_bytes: u64,
    /// Time from the first to the last request.
    span_ps: u64,
    /// Number of distinct 4 KiB pages, counted separately for each device.
    pages: u64,
}

impl Known {
    const fn new(file: &'static str, format: &'static str, confidence: Confidence) -> Known {
        Known {
            file,
            unit: None,
            sort_window: 0,
            skip_bad_lines: 0,
            limit: None,
            replay: Replay::Timed,
            warning: None,
            format,
            confidence,
            reads: 0,
            writes: 0,
            read_bytes: 0,
            write_bytes: 0,
            span_ps: 0,
            pages: 0,
        }
    }

    fn options(&self) -> TraceOptions {
        let Known { unit: time_unit, sort_window, skip_bad_lines, limit, replay, .. } = *self;
        TraceOptions { time_unit, sort_window, skip_bad_lines, limit, replay, ..TraceOptions::default() }
    }
}

const KNOWN: [Known; 17] = [
    Known {
        reads: 4078,
        writes: 5922,
        read_bytes: 25_438_208,
        write_bytes: 29_840_896,
        span_ps: 259_601_203_125_000,
        pages: 7322,
        ..Known::new("fin1_ssdsim_10k.ascii.xz", "ssdsim", Confidence::Ambiguous)
    },
    Known {
        reads: 24_779,
        writes: 4,
        read_bytes: 382_085_120,
        write_bytes: 32_768,
        span_ps: 60_066_625_000_000 - 11_413_000_000,
        pages: 93_029,
        ..Known::new("wsrch-small.trace.xz", "ssdsim", Confidence::Ambiguous)
    },
    Known {
        reads: 4381,
        writes: 2618,
        read_bytes: 36_315_136,
        write_bytes: 23_403_520,
        span_ps: 1_075_002_000_000 - 938_513_000_000,
        pages: 20_470,
        ..Known::new("tpcc-small.trace.xz", "ssdsim", Confidence::Ambiguous)
    },
    Known {
        reads: 42,
        writes: 13_738,
        read_bytes: 568_320,
        write_bytes: 171_211_264,
        span_ps: (128_172_246_651_676_066 - 128_166_481_075_232_275) * 100_000,
        pages: 28_775,
        ..Known::new("rsrch_1.csv.xz", "msr", Confidence::Certain)
    },
    Known {
        reads: 508,
        writes: 492,
        read_bytes: 6_108_672,
        write_bytes: 3_580_928,
        span_ps: (128_166_386_567_849_604 - 128_166_385_295_514_663) * 100_000,
        pages: 1917,
        ..Known::new("msr-cambridge1-sample.csv.xz", "msr", Confidence::Certain)
    },
    Known {
        unit: Some(TimeUnit::Us),
        reads: 113_123,
        writes: 13_920,
        read_bytes: 6_437_011_456,
        write_bytes: 760_849_408,
        span_ps: 299_999_516_000_000,
        pages: 1_272_267,
        ..Known::new("DTRS1K.trace.xz", "ssdsim", Confidence::Ambiguous)
    },
    Known {
        reads: 0,
        writes: 100_000,
        read_bytes: 0,
        write_bytes: 36_855_717_888,
        span_ps: 941_714_422_000_000 - 5_265_313_000_000,
        pages: 271_320,
        ..Known::new("ssd-iozone-aligned2-100K.trace.xz", "disksim", Confidence::Ambiguous)
    },
    Known {
        reads: 51_780,
        writes: 10_477,
        read_bytes: 5_236_285_440,
        write_bytes: 8_936_939_520,
        span_ps: 498_398_596_000_000 - 7_961_833_000_000,
        pages: 1_533_388,
        ..Known::new("ssd-postmark-aligned2.trace.xz", "disksim", Confidence::Ambiguous)
    },
    Known {
        reads: 79_634,
        writes: 20_366,
        read_bytes: 412_875_264,
        write_bytes: 107_663_872,
        span_ps: 1_532_949_045_363_000 - 13_191_135_000,
        pages: 158_355,
        ..Known::new("disksim_ascii.trace.xz", "disksim", Confidence::Ambiguous)
    },
    Known {
        reads: 46_974,
        writes: 66_898,
        read_bytes: 1_797_412_352,
        write_bytes: 2_408_565_760,
        span_ps: 7_200_089_885_000_000,
        pages: 269_210,
        ..Known::new("cloudPhysicsIO.vscsi.xz", "vscsi", Confidence::Certain)
    },
    Known {
        reads: 8896,
        writes: 1101,
        read_bytes: 36_438_016,
        write_bytes: 4_509_696,
        span_ps: 23_566_198_233_000,
        pages: 9201,
        ..Known::new("fiu_cheetah_sample10k.blkparse.xz", "fiu", Confidence::Certain)
    },
    // The time of the very last request is from another clock: without this request, then with it and without times.
    Known {
        sort_window: 37,
        limit: Some(9886),
        reads: 9038,
        writes: 848,
        read_bytes: 1_047_494_656,
        write_bytes: 251_944_960,
        span_ps: 810_379_690_811_000,
        pages: 317_131,
        ..Known::new("blkparseout_ext4.txt.xz", "blkparse", Confidence::Certain)
    },
    Known {
        replay: Replay::Asap,
        reads: 9039,
        writes: 848,
        read_bytes: 1_047_625_728,
        write_bytes: 251_944_960,
        pages: 317_163,
        ..Known::new("blkparseout_ext4.txt.xz", "blkparse", Confidence::Certain)
    },
    // Times of two clocks, for devices side by side.
    Known {
        replay: Replay::Asap,
        reads: 12_327,
        writes: 6090,
        read_bytes: 771_833_856,
        write_bytes: 234_036_224,
        pages: 232_499,
        ..Known::new("nexus5_Booting_log176.txt.xz", "biotracer", Confidence::Certain)
    },
    // The last line of the trace is truncated.
    Known {
        sort_window: 119,
        skip_bad_lines: 1,
        warning: Some("1 bad line was left out: line 52220: `3592285.250,120,0,4096,10`"),
        reads: 5450,
        writes: 46_769,
        read_bytes: 120_094_720,
        write_bytes: 306_143_232,
        span_ps: 3_592_285_250_000_000,
        pages: 42_927,
        ..Known::new("alibaba_replay_log.csv.xz", "replay-log", Confidence::Certain)
    },
    // Times are whole seconds, so many requests have the same time.
    Known {
        sort_window: 25_640,
        reads: 24_521,
        writes: 25_479,
        read_bytes: 646_755_328,
        write_bytes: 871_636_992,
        span_ps: 1_000_000_000_000,
        pages: 348_239,
        ..Known::new("tencent_cloud_storage-sample.bz2", "tencent", Confidence::Certain)
    },
    Known {
        sort_window: 16,
        reads: 826,
        writes: 173,
        read_bytes: 36_355_584,
        write_bytes: 2_766_848,
        span_ps: 2_447_767_000_000,
        pages: 9831,
        ..Known::new("systor17-traces-sample.csv.gz", "systor", Confidence::Certain)
    },
];

/// Contents that were read.
#[derive(Debug, Default, PartialEq)]
struct Found {
    count: [u64; 2],
    bytes: [u64; 2],
    span_ps: u64,
    pages: Vec<u64>,
    highest: u64,
}

fn read(path: &Path, options: &TraceOptions, device: u64) -> (Found, Trace) {
    let mut trace = Trace::open(path, options, device).unwrap_or_else(|error| panic!("{error}"));
    let mut found = Found::default();
    while let Some(request) = trace.next_request().unwrap_or_else(|error| panic!("{error}")) {
        let kind = usize::from(request.operation == Operation::Write);
        found.count[kind] += 1;
        found.bytes[kind] += request.bytes();
        found.span_ps = request.arrival.ps();
        let end = request.lba + u64::from(request.sectors);
        found.highest = found.highest.max(end);
        found.pages.extend(request.lba / 8..end.div_ceil(8));
    }
    found.pages.sort_unstable();
    found.pages.dedup();
    (found, trace)
}

#[test]
fn genuine_traces_are_read_exactly() {
    for known in &KNOWN {
        let Some(path) = trace_file(known.file) else { continue };
        let (found, trace) = read(&path, &known.options(), DEVICE);
        let file = known.file;
        assert_eq!(trace.detected().format.name, known.format, "{file}");
        assert_eq!(trace.detected().confidence, known.confidence, "{file}");
        assert_eq!(found.count, [known.reads, known.writes], "{file}");
        assert_eq!(found.bytes, [known.read_bytes, known.write_bytes], "{file}");
        assert_eq!(found.span_ps, known.span_ps, "{file}");
        assert_eq!(found.pages.len() as u64, known.pages, "{file}");
        let warnings = trace.warnings();
        assert_eq!(warnings.len(), known.warning.map_or(0, |_| 1), "{file}: {warnings:?}");
        assert!(known.warning.is_none_or(|words| warnings[0].contains(words)), "{file}: {warnings:?}");
        // At a limit, reading stops before the end.
        assert!(trace.progress().is_some_and(|share| share > 0.5 && (share == 1.0 || known.limit.is_some())), "{file}");
    }
}

#[test]
fn genuine_traces_compact_to_their_footprint() {
    for known in &KNOWN {
        let Some(path) = trace_file(known.file) else { continue };
        let options = TraceOptions { fit: Fit::Compact, ..known.options() };
        let (found, trace) = read(&path, &options, known.pages * 8);
        assert_eq!(found.pages.len() as u64, known.pages, "{}", known.file);
        assert!(found.highest <= known.pages * 8, "{}", known.file);
        let error = Trace::open(&path, &options, known.pages * 8 - 1).err().expect("a device too small").0;
        assert!(error.contains("the trace touches"), "{error}");
        drop(trace);
    }
}

#[test]
fn traces_out_of_order_give_advice() {
    for known in KNOWN.iter().filter(|known| known.sort_window > 0) {
        let Some(path) = trace_file(known.file) else { continue };
        for sort_window in [0, known.sort_window - 1] {
            let options = TraceOptions { sort_window, ..known.options() };
            let error = Trace::open(&path, &options, DEVICE).err().expect("times that run backwards").0;
            let advice = if sort_window == 0 { "`--sort-window N` sorts" } else { "is too small" };
            assert!(error.contains(": line ") && error.contains(advice), "{}: {error}", known.file);
        }
    }
}

#[test]
fn the_wrong_unit_of_dtrs1k_is_detected() {
    let Some(path) = trace_file("DTRS1K.trace.xz") else { return };
    let (_, trace) = read(&path, &TraceOptions::default(), DEVICE);
    let warnings = trace.warnings().join("\n");
    assert!(warnings.contains("more than a host can") && warnings.contains("--time-unit us"), "{warnings}");
}
