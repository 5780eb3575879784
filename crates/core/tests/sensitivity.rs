//! Each option of the device file changes a measured result in one of the cases here. Otherwise the option has no
//! effect and the test fails. A new option without a case also fails.
//!
//! Fields that only repeat the input do not count: the configuration, its digest and names.

use std::collections::BTreeSet;

use floatgate_core::device_file::from_toml;
use floatgate_core::flash::Keep;
use floatgate_core::internals::options;
use floatgate_core::preparation::precondition;
use floatgate_core::sim::source::Source;
use floatgate_core::simulation::{Device, NoWatcher, Options, Outcome};
use floatgate_core::summary::{About, Named, Precondition, Summary};
use floatgate_workload::synthetic;
use serde_json::Value;

/// Device that the cases modify: 32 MiB, with more than one of every level except dies.
const BASE: &str = r#"
[geometry]
channels = 2
chips = 2
dies = 1
planes = 2
blocks = 16
pages = 64
page_size = "4KiB"
[capacity]
spare = 0.4
[nand]
read = "25us"
program = "200us"
erase = "1500us"
[bus]
protocol = { nv-ddr = "200MT/s" }
[gc]
soft_threshold = 3
hard_threshold = 1
"#;

/// Random reads, random writes with garbage collection, a mix of both, and other loads.
const READS: &str = "rw=randread bs=4k iodepth=16 number_ios=500";
const WRITES: &str = "rw=randwrite norandommap=1 bs=4k iodepth=16 number_ios=6000";
const PARTS: &str = "rw=randrw norandommap=1 bs=1k iodepth=4 number_ios=2000";
const MIX: &str = "rw=randrw norandommap=1 bs=4k iodepth=32 number_ios=4000";
/// The mix, with requests of two priorities.
const RANKED: &str = "rw=randrw norandommap=1 bs=4k iodepth=32 number_ios=4000 cmdprio_percentage=20";
const SKEWED: &str =
    "rw=randwrite norandommap=1 bs=4k iodepth=16 number_ios=20000 random_distribution=zoned:80/20:20/80";
const WIDE: &str = "rw=randwrite norandommap=1 bs=32k iodepth=8 number_ios=2000";
const WIDE_READS: &str = "rw=randread norandommap=1 bs=32k iodepth=8 number_ios=300";
const PAUSES: &str = "rw=randwrite norandommap=1 bs=4k iodepth=1 thinktime=5ms number_ios=200";
const BURSTS: &str = "rw=randwrite norandommap=1 bs=4k iodepth=4 thinktime=20ms thinktime_blocks=64 number_ios=4000";
const SYNC: &str = "rw=randwrite norandommap=1 bs=4k iodepth=4 sync=1 number_ios=500";
const BOTH: &str = "rw=write bs=32k iodepth=4 number_ios=300; rw=randwrite norandommap=1 bs=4k number_ios=2000";
/// Sequential writes that begin in the middle of a block.
const MIDDLE: &str =
    "rw=write bs=32k iodepth=4 number_ios=300 offset=20k; rw=randwrite norandommap=1 bs=4k number_ios=2000";
const HINTS: &str = "rw=randwrite norandommap=1 bs=4k iodepth=4 number_ios=6000 size=4m write_hint=short; \
                     rw=randwrite norandommap=1 bs=4k iodepth=4 number_ios=3000";
const TRIMS: &str = "rw=randtrim norandommap=1 bs=4k iodepth=4 number_ios=2000";
/// Trims that leave several blocks of a plane without valid units, each with a write of the same addresses.
const HOLES: &str = "rw=randtrimwrite norandommap=1 bs=4m number_ios=60";
/// Two sequential streams of reads.
const RUNS: &str = "rw=read bs=4k number_ios=200; rw=read bs=4k offset=2m number_ios=200";
const STREAM: &str = "rw=write bs=32k iodepth=4 number_ios=200";

/// An option, overrides that let it have an effect, the workload, and values that all give different results.
/// `-` omits the option. [`ALL`] stands for all names of a choice, so that a new policy is included.
type Case = (&'static str, &'static [&'static str], &'static str, &'static [&'static str]);

/// All names of a choice.
const ALL: &[&str] = &["*"];

/// Reads of two streams, the first with more requests outstanding.
const CONTEST: &str = "rw=randread bs=4k iodepth=16 number_ios=500; rw=randread bs=4k iodepth=4 number_ios=500";

/// A controller that chooses between two queues, and one whose queues have priorities.
const CONTESTED: [&str; 2] = ["host.queue_depth=2", "host.queues.count=2"];
const FAVORED: &str = "{ weighted-round-robin = { priorities = ['medium', 'high'] } }";
const PREFERRED: [&str; 3] = [
    "host.queue_depth=2",
    "host.queues.count=2",
    "host.queues.arbitration={ weighted-round-robin = { priorities = ['medium', 'high'] } }",
];
const DEFERRED: [&str; 3] = [
    "host.queue_depth=2",
    "host.queues.count=2",
    "host.queues.arbitration={ weighted-round-robin = { priorities = ['low', 'medium'] } }",
];

/// A device that reads ahead.
const AHEAD: [&str; 2] = ["buffer.capacity=1MiB", "buffer.read_ahead.size=64KiB"];

/// An endurance that a skewed load uses up to different shares.
const ENDURANCE: [&str; 1] = ["nand.endurance=8"];
const RATE_LIMITED: [&str; 2] = ["nand.endurance=8", "gc.wear.agrawal.migration=false"];

/// Reads with errors, of old data in worn blocks, of worn blocks, and of blocks that are often read.
const ERRORS: [&str; 2] = ["faults={}", "errors={}"];
const AGED: [&str; 2] = [ERRORS[0], "errors={ age = \"3 months\", cycles = 1000 }"];
const WORN: [&str; 2] = [ERRORS[0], "errors.cycles=3000"];
const DISTURBED: [&str; 2] = [ERRORS[0], "errors={ cycles = 1000, rate = { disturb = 0.1 } }"];

/// Packages that take one command at a time, one for each channel; and a gang of them.
const PACKAGES: [&str; 2] = ["nand.concurrency=chip", "geometry.chips_per_package=2"];
const GANG: [&str; 3] = [PACKAGES[0], PACKAGES[1], "gang.width=2"];

/// A map in flash, with many translation pages and a cache for some of its entries.
const DFTL: [&str; 3] = ["capacity.spare=0.6", "mapping.scheme.dftl.cache=4KiB", "mapping.scheme.dftl.entry=64B"];

/// Room for log blocks in each plane.
const LOGS: [&str; 2] = ["capacity.spare=0.55", "geometry.blocks=40"];

/// FAST and LAST with striped data blocks.
const FAST_STRIPED: [&str; 3] = [LOGS[0], LOGS[1], "mapping.scheme.fast.stripe.data=8"];
const LAST_STRIPED: [&str; 3] = [LOGS[0], LOGS[1], "mapping.scheme.last.stripe.data=8"];

/// Room for log blocks, in a device with several of each level.
const MANY_LOGS: [&str; 6] =
    [LOGS[0], LOGS[1], "geometry.dies=2", "geometry.chips_per_package=2", "geometry.chips=4", "geometry.pages=16"];

/// A map in flash with so many translation pages that they fill blocks.
const LARGE_ENTRIES: [&str; 3] =
    ["capacity.spare=0.75", "mapping.scheme.dftl.cache=4KiB", "mapping.scheme.dftl.entry=1KiB"];

/// A device with three bits per cell and the times of SLC mode.
const TLC: [&str; 6] = [
    "capacity.spare=0.6",
    "mapping.scheme.dftl.cache=4KiB",
    "mapping.scheme.dftl.entry=64B",
    "geometry.pages=66",
    "nand.cell=tlc",
    "nand.slc_mode={ read = \"20us\", program = \"75us\" }",
];

/// The device of `TLC` with its map in SLC mode.
const IN_SLC_MODE: [&str; 7] = [TLC[0], TLC[1], TLC[2], TLC[3], TLC[4], TLC[5], "mapping.scheme.dftl.cells=slc"];

/// A device with an SLC cache.
const CACHED: [&str; 5] = [
    "capacity.spare=0.6",
    "geometry.pages=66",
    "nand.cell=tlc",
    "nand.slc_mode={ read = \"20us\", program = \"75us\" }",
    "slc_cache.blocks=4",
];

/// A device with an SLC cache that is folded completely.
const CACHED_LOW: [&str; 6] = [CACHED[0], CACHED[1], CACHED[2], CACHED[3], CACHED[4], "slc_cache.low_water=0.0"];

/// A device with several of every level, and all sizes of pools.
const LEVELS: [&str; 6] = [
    "geometry.channels=4",
    "geometry.chips=4",
    "geometry.chips_per_package=2",
    "geometry.dies=2",
    "geometry.pages=8",
    "allocation=dynamic",
];
const POOLS: [&str; 7] = ["plane", "die", "chip", "package", "channel", "{ channels = 2 }", "device"];

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("geometry.channels", &[], READS, &["-", "4"]),
    ("geometry.chips", &[], READS, &["-", "4"]),
    ("geometry.chips_per_package", &["nand.concurrency=chip"], READS, &["-", "2"]),
    ("geometry.dies", &[], READS, &["-", "2"]),
    ("geometry.planes", &["nand.concurrency=plane"], READS, &["-", "4"]),
    ("geometry.blocks", &[], WRITES, &["-", "20"]),
    ("geometry.pages", &[], WRITES, &["-", "32"]),
    ("geometry.block_size", &[], WRITES, &["256KiB", "128KiB"]),
    ("geometry.page_size", &[], READS, &["-", "8KiB"]),
    ("geometry.spare_size", &["bus.transfer_spare=true"], READS, &["-", "128B"]),
    ("geometry.mapping_unit", &[], WRITES, &["-", "2KiB", "8KiB"]),
    ("geometry.pages_per_program", &[], STREAM, &["-", "2"]),
    ("gang.width", &PACKAGES, MIX, &["1", "2"]),
    ("gang.mode", &GANG, MIX, ALL),
    ("capacity.spare", &[], WRITES, &["-", "0.35"]),
    ("capacity.logical", &[], WRITES, &["-", "16MiB"]),
    ("controller.fill_timeout", &["geometry.pages_per_program=2"], WRITES, &["-", "500us"]),
    ("nand.cell", &[], WRITES, ALL),
    ("nand.read", &["nand.cell=mlc"], READS, &["-", "30us", "[\"25us\", \"35us\"]"]),
    ("nand.program", &["nand.cell=mlc"], WRITES, &["-", "300us", "[\"200us\", \"300us\"]"]),
    ("nand.erase", &[], WRITES, &["-", "2ms"]),
    ("nand.endurance", &["faults.erase_rate=0"], WRITES, &["-", "1000", "0", "1"]),
    ("nand.slc_mode.read", &IN_SLC_MODE, MIX, &["10us", "20us"]),
    ("nand.slc_mode.program", &IN_SLC_MODE, MIX, &["75us", "150us"]),
    ("nand.concurrency", &["geometry.dies=2", "geometry.planes=4", "geometry.chips_per_package=2"], MIX, ALL),
    ("nand.advanced.copy_back", &[], WRITES, ALL),
    ("nand.advanced.copy_back_parity", &["nand.advanced.copy_back=wise"], WRITES, &["-", "false"]),
    ("nand.advanced.multi_plane_program", &[], WIDE, ALL),
    ("nand.advanced.multi_plane_read", &[], WIDE_READS, &["-", "true"]),
    ("nand.advanced.multi_plane_erase", &[], WIDE, &["-", "true"]),
    ("nand.advanced.strict", &["nand.advanced.multi_plane_program=wise"], WIDE, &["-", "true"]),
    ("nand.advanced.plane_pairs", &["geometry.planes=4", "nand.advanced.multi_plane_read=true"], WIDE_READS, &["-", "true"]),
    ("nand.advanced.interleave", &["geometry.dies=2", "nand.concurrency=command"], WIDE, &["-", "true"]),
    ("nand.advanced.copy_back_modify", &["geometry.mapping_unit=page"], PARTS, &["-", "true"]),
    ("nand.advanced.cache_read", &[], WIDE_READS, &["-", "true"]),
    ("nand.advanced.cache_program", &[], WIDE, &["-", "true"]),
    ("nand.advanced.suspend.program", &["scheduler=read-first"], MIX, &["-", "true"]),
    ("nand.advanced.suspend.erase", &["scheduler=read-first"], MIX, &["-", "true"]),
    ("nand.advanced.suspend.latency", &["scheduler=read-first", "nand.advanced.suspend.program=true"], MIX, &["-", "9us"]),
    ("nand.advanced.suspend.resume", &["scheduler=read-first", "nand.advanced.suspend.program=true"], MIX, &["-", "9us"]),
    ("nand.advanced.suspend.limit", &["scheduler=read-first", "nand.advanced.suspend.program=true"], MIX, &["-", "1"]),
    ("nand.advanced.suspend.most", &["scheduler=read-first", "nand.advanced.suspend.program=true"], MIX, &["-", "1"]),
    ("nand.advanced.suspend.until", &["scheduler=read-first", "nand.advanced.suspend.program=true"], MIX, &["-", "0.5"]),
    (
        "nand.advanced.suspend.writes_first",
        &["scheduler=read-first", "nand.advanced.suspend.program=true", "buffer.capacity=256KiB"],
        MIX,
        &["-", "true"],
    ),
    ("nand.advanced.suspend.lost", &["scheduler=read-first", "nand.advanced.suspend.program=true"], MIX, &["-", "9us"]),
    ("bus.protocol.sdr", &[], READS, &["25ns", "30ns"]),
    ("bus.protocol.nv-ddr", &[], READS, &["-", "400MT/s"]),
    ("bus.width", &[], READS, &["-", "16"]),
    ("bus.command_cycle", &["bus.command_cycles.read=7"], READS, &["-", "25ns"]),
    ("bus.command_cycles.read", &[], READS, &["-", "7"]),
    ("bus.command_cycles.program", &[], WRITES, &["-", "7"]),
    ("bus.command_cycles.erase", &[], WRITES, &["-", "5"]),
    ("bus.order", &["bus.command_cycles.read=7"], READS, ALL),
    ("bus.transfer_spare", &["geometry.spare_size=128B"], READS, &["-", "true"]),
    ("bus.read_cycle", &["bus.protocol={ sdr = \"25ns\" }"], READS, &["-", "30ns"]),
    ("bus.write_cycle", &["bus.protocol={ sdr = \"25ns\" }"], WRITES, &["-", "30ns"]),
    ("bus.partial_transfer", &[], PARTS, &["-", "true"]),
    ("bus.way_switch", &[], READS, &["-", "1us"]),
    ("bus.channel_switch", &[], READS, &["-", "1us"]),
    ("bus.channel_switch_read", &["bus.channel_switch=2us"], READS, &["-", "1us"]),
    ("bus.channel_switch_scope", &["bus.channel_switch=30us"], READS, ALL),
    ("allocation", &[], MIX, ALL),
    ("allocation.static.stripe", &[], MIX, &["-", "32KiB"]),
    ("geometry.logical_page", &[], WRITES, &["-", "8KiB", "16KiB"]),
    ("allocation.static.order", &[], STREAM, &["-", "s1", "s3"]),
    ("allocation.dynamic.order", &[], STREAM, &["s2", "s1"]),
    ("allocation.dynamic.tie", &[], SKEWED, &["turn", "erases"]),
    ("allocation.dynamic.scope", &LEVELS, MIX, &POOLS),
    ("allocation.dynamic.active_blocks", &LEVELS, MIX, &["-", "1", "4"]),
    ("allocation.dynamic.scope.channels", &LEVELS, MIX, &["1", "2", "4"]),
    ("temperature", &["gc.soft_threshold=1", "gc.hard_threshold=1"], HINTS, ALL),
    ("temperature.two-level-lru.hot", &[], SKEWED, &["0.05", "0.2"]),
    ("temperature.two-level-lru.candidates", &[], SKEWED, &["0.05", "0.2"]),
    ("temperature.multi-hash.counters", &[], SKEWED, &["0.1", "2.0"]),
    ("temperature.multi-hash.hashes", &["temperature.multi-hash.counters=0.5"], SKEWED, &["1", "3"]),
    ("temperature.multi-hash.hot", &[], SKEWED, &["2", "8"]),
    ("temperature.multi-hash.halve_after", &[], SKEWED, &["0.2", "2.0"]),
    ("temperature.hints.by", &["temperature.hints.classes=[1, 0, 1]"], HINTS, &["placement", "stream"]),
    ("temperature.hints.classes", &[], HINTS, &["[1, 0, 1]", "[0, 0, 1]"]),
    ("mapping.scheme", &["capacity.spare=0.55"], MIX, ALL),
    ("mapping.scheme.dftl.cache", &["capacity.spare=0.55"], MIX, &["256B", "8KiB"]),
    ("mapping.scheme.dftl.cached_entry", &["capacity.spare=0.55"], MIX, &["32B", "128B"]),
    ("mapping.scheme.dftl.entry", &["capacity.spare=0.55"], MIX, &["4B", "16B"]),
    ("mapping.scheme.dftl.protected", &DFTL, MIX, &["0.0", "0.9"]),
    ("mapping.scheme.dftl.batch_updates", &DFTL, MIX, &["true", "false"]),
    ("mapping.scheme.dftl.lazy_copies", &DFTL, WRITES, &["true", "false"]),
    ("mapping.scheme.dftl.map_spare", &LARGE_ENTRIES, WRITES, &["0.0", "0.6"]),
    ("mapping.scheme.dftl.cells", &TLC, MIX, ALL),
    ("mapping.scheme.bast.logs", &LOGS, MIX, &["4", "16"]),
    ("mapping.scheme.bast.scope", &MANY_LOGS, MIX, &["plane", "die", "chip", "package", "channel", "device"]),
    ("mapping.scheme.bast.free_blocks", &MANY_LOGS, MIX, ALL),
    ("mapping.scheme.bast.first_writes", &LOGS, MIX, ALL),
    ("mapping.scheme.bast.scope.channels", &LOGS, MIX, &["1", "2"]),
    ("mapping.scheme.bast.stripe", &LOGS, MIX, &["-", "2", "8"]),
    ("mapping.scheme.fast.logs", &LOGS, MIX, &["-", "{ random = 3 }"]),
    ("mapping.scheme.fast.logs.sequential", &LOGS, BOTH, &["1", "3"]),
    ("mapping.scheme.fast.logs.random", &LOGS, MIX, &["4", "16"]),
    ("mapping.scheme.fast.scope", &MANY_LOGS, MIX, &["plane", "die", "chip", "package", "channel", "device"]),
    ("mapping.scheme.fast.free_blocks", &MANY_LOGS, MIX, ALL),
    ("mapping.scheme.fast.first_writes", &LOGS, MIX, ALL),
    ("mapping.scheme.fast.scope.channels", &LOGS, MIX, &["1", "2"]),
    ("mapping.scheme.fast.sequential", &LOGS, MIDDLE, &["block-start", "after-last", "{ min-pages = 4 }"]),
    ("mapping.scheme.fast.sequential.min-pages", &LOGS, BOTH, &["1", "9"]),
    ("mapping.scheme.fast.stripe", &LOGS, MIX, &["-", "{ random = 4 }"]),
    ("mapping.scheme.fast.stripe.data", &LOGS, MIX, &["1", "8"]),
    ("mapping.scheme.fast.stripe.sequential", &FAST_STRIPED, BOTH, &["-", "1"]),
    ("mapping.scheme.fast.stripe.random", &LOGS, MIX, &["1", "4"]),
    ("mapping.scheme.fast.reclaim", &LOGS, MIX, ALL),
    ("mapping.scheme.fast.merges", &LOGS, MIX, &["-", "4"]),
    ("mapping.scheme.last.logs", &LOGS, SKEWED, &["-", "{ hot = 2 }"]),
    ("mapping.scheme.last.logs.sequential", &LOGS, BOTH, &["1", "4"]),
    ("mapping.scheme.last.logs.hot", &LOGS, SKEWED, &["1", "8"]),
    ("mapping.scheme.last.logs.cold", &LOGS, SKEWED, &["2", "8"]),
    ("mapping.scheme.last.scope", &MANY_LOGS, MIX, &["plane", "die", "chip", "package", "channel", "device"]),
    ("mapping.scheme.last.free_blocks", &MANY_LOGS, MIX, ALL),
    ("mapping.scheme.last.first_writes", &LOGS, SKEWED, ALL),
    ("mapping.scheme.last.scope.channels", &LOGS, MIX, &["1", "2"]),
    ("mapping.scheme.last.sequential", &LOGS, MIDDLE, &["block-start", "after-last", "{ min-pages = 4 }"]),
    ("mapping.scheme.last.sequential.min-pages", &LOGS, BOTH, &["1", "9"]),
    ("mapping.scheme.last.hot_window", &LOGS, SKEWED, &["8", "2000"]),
    ("mapping.scheme.last.stripe", &LOGS, SKEWED, &["-", "{ cold = 4 }"]),
    ("mapping.scheme.last.stripe.data", &LOGS, MIX, &["1", "8"]),
    ("mapping.scheme.last.stripe.sequential", &LAST_STRIPED, BOTH, &["-", "1"]),
    ("mapping.scheme.last.stripe.hot", &LOGS, SKEWED, &["1", "4"]),
    ("mapping.scheme.last.stripe.cold", &LOGS, SKEWED, &["1", "4"]),
    ("mapping.scheme.last.reclaim", &LOGS, SKEWED, ALL),
    ("mapping.scheme.last.merges", &LOGS, SKEWED, &["-", "4"]),
    ("mapping.block_summary", &[], WRITES, &["none", "{ last_page = \"528B\" }"]),
    ("mapping.block_summary.last_page", &[], WRITES, &["528B", "1KiB"]),
    ("gc.soft_threshold", &[], WRITES, &["-", "4", "10%"]),
    ("gc.hard_threshold", &[], WRITES, &["-", "0", "3"]),
    ("gc.trigger", &[], WRITES, ALL),
    ("gc.trigger.lazy.invalid", &[], WRITES, &["0.2", "0.5"]),
    ("gc.trigger.lazy.invalid", &["gc.soft_threshold=90%", "capacity.spare=0.25"], WRITES, &["0.0", "0.2"]),
    ("gc.victim", &[], WRITES, ALL),
    (
        "gc.wear",
        &ENDURANCE,
        SKEWED,
        &[
            "none",
            "least-erased",
            "{ static-threshold = { threshold = 2 } }",
            "{ dual-pool = { threshold = 2 } }",
            "agrawal",
        ],
    ),
    ("gc.wear.static-threshold", &[], SKEWED, &["-", "{ threshold = 2 }"]),
    ("gc.wear.dual-pool", &[], SKEWED, &["-", "{ threshold = 2 }"]),
    ("gc.wear.static-threshold.threshold", &[], SKEWED, &["2", "5"]),
    ("gc.wear.dual-pool.threshold", &[], SKEWED, &["2", "5"]),
    ("gc.wear.agrawal.migration", &ENDURANCE, SKEWED, &["true", "false"]),
    ("gc.wear.agrawal.rate_limiting", &["nand.endurance=8", "gc.wear.agrawal.age_variance=1.0"], SKEWED, &["true", "false"]),
    ("gc.wear.agrawal.retirement_age", &ENDURANCE, SKEWED, &["0.85", "0.95"]),
    ("gc.wear.agrawal.age_variance", &RATE_LIMITED, SKEWED, &["0.8", "1.0"]),
    ("gc.wear.agrawal.cold", &ENDURANCE, SKEWED, &["last-erase", "temperature"]),
    ("gc.wear.agrawal.cold_life", &ENDURANCE, SKEWED, &["0.5", "1.1"]),
    ("gc.wear.agrawal.cold_age", &ENDURANCE, SKEWED, &["0.1", "1.5"]),
    ("gc.wear.agrawal.cold_valid", &ENDURANCE, SKEWED, &["0.0", "1.0"]),
    ("gc.victim.greedy.tie", &[], WRITES, ALL),
    ("gc.victim.d-choices.d", &[], WRITES, &["2", "5"]),
    ("gc.victim.d-choices.tie", &[], WRITES, &["-", "oldest", "newest", "index", "fewest-erases"]),
    ("gc.victim.cost-benefit.tie", &[], HOLES, ALL),
    ("gc.frontiers", &[], WRITES, ALL),
    ("gc.scope", &["allocation=dynamic"], WRITES, ALL),
    ("gc.destination", &["allocation=dynamic"], WRITES, ALL),
    ("gc.pace", &[], WRITES, &["queued", "proportional", "exclusive", "{ burst = { amount = { stripes = 4 } } }"]),
    ("gc.pace.burst", &[], WRITES, &["{ amount = { stripes = 4 } }", "{ amount = { stripes = 8 }, share = 0.5 }"]),
    ("gc.pace.burst.amount", &[], WRITES, &["{ stripes = 4 }", "{ units = 400 }"]),
    ("gc.pace.burst.amount.stripes", &[], WRITES, &["4", "9"]),
    ("gc.pace.burst.amount.units", &[], WRITES, &["64", "400"]),
    ("gc.pace.burst.share", &["gc.pace.burst.amount.stripes=8"], WRITES, &["-", "0.2", "0.5"]),
    (
        "gc.pace.burst.room",
        &["gc.pace.burst.amount.stripes=8", "buffer={ capacity = \"1MiB\", read = false }"],
        WRITES,
        &["-", "64KiB"],
    ),
    ("gc.pace.burst.rest", &["gc.pace.burst={ amount = { stripes = 8 }, share = 0.5 }"], WRITES, &["-", "1us"]),
    ("gc.background", &[], BURSTS, &["-", "{ idle = \"1ms\", until = 6 }"]),
    ("gc.background", &["allocation=dynamic", "gc.scope=pool"], BURSTS, &["-", "{ idle = \"1ms\", until = 6 }"]),
    ("gc.background.idle", &["gc.background.until=6"], BURSTS, &["1ms", "5ms"]),
    ("gc.background.until", &["gc.background.idle=1ms"], BURSTS, &["5", "6"]),
    ("gc.background.preempt", &["gc.background={ idle = \"1ms\", until = 6 }"], BURSTS, &["true", "false"]),
    ("gc.background.gain", &["gc.background={ idle = \"1ms\", until = 6 }"], BURSTS, &["0.0", "0.75"]),
    ("gc.throttle", &[], WRITES, &["-", "{ below = 6, delay = \"1ms\" }"]),
    ("gc.throttle.below", &["gc.throttle.delay=1ms"], WRITES, &["5", "6"]),
    ("gc.throttle.delay", &["gc.throttle.below=6"], WRITES, &["100us", "1ms"]),
    ("scheduler", &[], RANKED, ALL),
    ("controller.write_slots", &[], WRITES, &["-", "2"]),
    ("controller.power_cap", &[], WRITES, &["-", "1", "3"]),
    ("faults.factory_bad", &[], WRITES, &["0", "1"]),
    ("faults.program_rate", &[], WRITES, &["0.0", "0.001"]),
    ("faults.erase_rate", &[], WRITES, &["0.0", "0.05"]),
    ("faults.read_rate", &[], READS, &["0.0", "0.1"]),
    ("faults.wear_out", &["nand.endurance=2"], SKEWED, &["limit", "count", "exclude", "{ weibull = { shape = 2 } }"]),
    ("faults.wear_out.weibull", &["nand.endurance=2"], SKEWED, &["{ shape = 3 }", "{ shape = 9 }"]),
    ("faults.wear_out.weibull.shape", &["nand.endurance=2"], SKEWED, &["2", "5"]),
    ("errors.age", &ERRORS, READS, &["0 h", "1 year", "1 year at 55C"]),
    ("errors.cycles", &AGED, READS, &["0", "2000"]),
    ("errors.temperature", &AGED, READS, &["20.0", "50.0"]),
    ("errors.rate.base", &ERRORS, READS, &["0.001", "0.02"]),
    ("errors.rate.wear", &WORN, READS, &["0.0", "1e-9"]),
    ("errors.rate.wear_exponent", &WORN, READS, &["1.0", "2.2"]),
    ("errors.rate.retention", &AGED, READS, &["0.0", "0.001"]),
    ("errors.rate.retention_wear", &AGED, READS, &["0.0", "0.2"]),
    ("errors.rate.retention_time", &AGED, READS, &["0.1", "0.54"]),
    ("errors.rate.activation_energy", &AGED, READS, &["0.5", "1.1"]),
    ("errors.rate.disturb", &ERRORS, READS, &["0.0", "1.0"]),
    ("errors.rate.disturb_wear", &DISTURBED, READS, &["0.0", "0.5"]),
    ("errors.rate.disturb_reads", &DISTURBED, READS, &["0.5", "2.0"]),
    ("errors.ecc.codeword", &AGED, READS, &["512B", "1KiB"]),
    ("errors.ecc.corrects", &AGED, READS, &["40", "72"]),
    ("errors.ecc.decode", &ERRORS, READS, &["0ps", "20us"]),
    ("errors.retry.steps", &AGED, READS, &["2", "31"]),
    ("errors.retry.factor", &AGED, READS, &["0.5", "0.9"]),
    ("errors.refresh.retries", &AGED, READS, &["-", "1", "19"]),
    ("faults.inject", &[], WRITES, &["[]", "[\"program 1/3\"]"]),
    ("controller.firmware.cores", &["controller.firmware.lookup=2000"], READS, &["-", "2"]),
    ("controller.firmware.clock", &["controller.firmware.lookup=100"], READS, &["-", "200MHz"]),
    ("controller.firmware.interrupt", &[], READS, &["0", "100", "\"2us\""]),
    ("controller.firmware.lookup", &[], READS, &["0", "100", "\"2us\""]),
    ("controller.firmware.allocation", &[], WRITES, &["0", "100", "\"2us\""]),
    ("controller.firmware.jitter", &["controller.firmware.lookup=2000"], READS, &["0.0", "0.1", "1.0"]),
    ("controller.firmware.gc", &[], WRITES, &["0", "1000", "\"20us\""]),
    ("controller.firmware.buffer", &["buffer.capacity=256KiB"], READS, &["0", "100", "\"2us\""]),
    ("buffer.capacity", &[], WRITES, &["256KiB", "1MiB"]),
    ("buffer.write", &["buffer.capacity=1MiB"], WRITES, &["write-back", "write-through"]),
    ("buffer.read", &["buffer.capacity=1MiB"], MIX, &["true", "false"]),
    ("buffer.read_ahead", &["buffer.capacity=1MiB"], RUNS, &["-", "{ size = \"64KiB\" }"]),
    ("buffer.read_ahead.size", &["buffer.capacity=1MiB"], RUNS, &["16KiB", "64KiB"]),
    ("buffer.read_ahead.streams", &AHEAD, RUNS, &["1", "8"]),
    ("buffer.read_ahead.after", &AHEAD, RUNS, &["2", "4"]),
    ("buffer.eviction", &["buffer.capacity=1MiB"], MIX, ALL),
    ("buffer.eviction.cflru.window", &["buffer.capacity=1MiB"], MIX, &["0.25", "0.5"]),
    ("buffer.eviction.bplru.padding", &["buffer.capacity=1MiB"], MIX, &["true", "false"]),
    ("buffer.eviction.bplru.compensation", &["buffer.capacity=1MiB"], BOTH, &["true", "false"]),
    ("buffer.high_water", &["buffer.capacity=1MiB", "buffer.low_water=0.5"], WRITES, &["1.0", "0.6"]),
    ("buffer.low_water", &["buffer.capacity=1MiB", "buffer.high_water=0.9"], WRITES, &["0.9", "0.5"]),
    ("buffer.credits", &["buffer.capacity=1MiB", "buffer.high_water=0.5", "buffer.low_water=0.4"], WRITES, &["-", "1ms"]),
    ("buffer.idle", &["buffer.capacity=1MiB"], PAUSES, &["1ms", "20ms"]),
    ("buffer.latency", &["buffer.capacity=1MiB"], MIX, &["0ns", "500ns"]),
    ("buffer.bandwidth", &["buffer.capacity=1MiB"], MIX, &["1GB/s", "4GB/s"]),
    ("buffer.power_loss_protection", &["buffer.capacity=1MiB"], SYNC, &["false", "true"]),
    ("durability.trim_journal", &[], TRIMS, &["true", "false"]),
    ("durability.checkpoint", &[], WRITES, &["-", "64KiB", "1MiB"]),
    ("durability.map", &["durability.trim_journal=true"], STREAM, &["volatile", "non-volatile", "saved"]),
    ("superblock.parity", &["allocation=dynamic", "gc.scope=pool", "capacity.spare=0.7", "geometry.channels=2", "geometry.chips=2", "superblock={}"], WRITES, &["-", "2", "4"]),
    ("slc_cache.blocks", &CACHED, BURSTS, &["-", "2", "3"]),
    ("slc_cache.when_full", &CACHED, WRITES, ALL),
    ("slc_cache.high_water", &CACHED_LOW, BURSTS, &["0.5", "1.0"]),
    ("slc_cache.low_water", &CACHED, BURSTS, &["0.0", "0.7"]),
    ("slc_cache.idle", &CACHED, BURSTS, &["-", "1ms", "15ms"]),
    ("energy.read", &[], READS, &["-", "0J", "5uJ"]),
    ("energy.program", &[], WRITES, &["-", "0J", "30uJ"]),
    ("energy.erase", &[], WRITES, &["-", "0J", "200uJ"]),
    ("energy.slc_read", &IN_SLC_MODE, MIX, &["-", "0J", "5uJ"]),
    ("energy.slc_program", &IN_SLC_MODE, MIX, &["-", "0J", "30uJ"]),
    ("energy.transfer", &[], READS, &["-", "0J", "100pJ"]),
    ("energy.die", &[], READS, &["-", "0W", "2mW"]),
    ("energy.controller", &[], READS, &["-", "0W", "1W"]),
    ("host.queue_depth", &[], READS, &["-", "4"]),
    ("host.queues", &["host.queue_depth=2"], CONTEST, &["-", "{ count = 2 }"]),
    ("host.queues.count", &["host.queue_depth=2"], CONTEST, &["1", "2"]),
    ("host.queues.arbitration", &CONTESTED, CONTEST, &["round-robin", FAVORED]),
    ("host.queues.arbitration.weighted-round-robin", &CONTESTED, CONTEST, &["{}", "{ priorities = ['high', 'low'] }"]),
    ("host.queues.arbitration.round-robin.burst", &CONTESTED, CONTEST, &["1", "4"]),
    ("host.queues.arbitration.weighted-round-robin.priorities", &CONTESTED, CONTEST, &["['high']", "['low', 'urgent']"]),
    ("host.queues.arbitration.weighted-round-robin.high", &PREFERRED, CONTEST, &["1", "9"]),
    ("host.queues.arbitration.weighted-round-robin.medium", &PREFERRED, CONTEST, &["1", "9"]),
    ("host.queues.arbitration.weighted-round-robin.low", &DEFERRED, CONTEST, &["1", "9"]),
    ("host.queues.arbitration.weighted-round-robin.burst", &CONTESTED, CONTEST, &["1", "4"]),
    ("host.queues.fetch", &["host.queues.count=1"], READS, &["0us", "5us"]),
    ("host.sector_size", &["geometry.page_size=2KiB", "capacity.logical=10002KiB"], WRITES, &["512B", "4KiB"]),
    ("host.link_bandwidth", &[], READS, &["-", "100MB/s"]),
    ("host.link_latency", &[], READS, &["-", "5us"]),
    ("host.software", &[], READS, &["-", "5us"]),
    ("host.order", &["controller.write_slots=2"], MIX, &["separate", "one-queue"]),
];

/// Returns the values of a case.
fn values(case: &Case, options: &[String]) -> Vec<String> {
    let (path, _, _, values) = *case;
    if values != ALL {
        return values.iter().map(|&value| value.to_owned()).collect();
    }
    options.iter().filter_map(|option| chosen(path, option)).map(str::to_owned).collect()
}

/// Returns the name that an option selects, if `path` is a choice and the option one of its names.
fn chosen<'a>(path: &str, option: &'a str) -> Option<&'a str> {
    option.strip_prefix(path)?.strip_prefix('.').filter(|name| !name.contains('.'))
}

/// Returns `true` if a case covers an option: its own path, or the name of one of its values.
fn tries(case: &Case, option: &str, options: &[String]) -> bool {
    case.0 == option || chosen(case.0, option).is_some_and(|name| values(case, options).iter().any(|v| v == name))
}

#[test]
fn every_option_has_a_case() {
    let options = options();
    assert!(options.iter().any(|option| option == "gc.victim.fifo") && options.len() > 40, "{options:?}");
    let without: Vec<&String> =
        options.iter().filter(|option| !CASES.iter().any(|case| tries(case, option, &options))).collect();
    assert!(without.is_empty(), "no case changes these options: add one to CASES: {without:?}");
    for (path, ..) in CASES {
        let prefix = format!("{path}.");
        let known = options.iter().any(|option| option == path || option.starts_with(&prefix));
        assert!(known, "unknown option `{path}`");
    }
}

#[test]
fn every_option_changes_a_measured_result() {
    let mut idle = Vec::new();
    let options = options();
    for case in CASES {
        let (path, with, job, _) = case;
        let mut seen = BTreeSet::new();
        for value in values(case, &options) {
            let mut overrides: Vec<String> = with.iter().map(|&text| text.to_owned()).collect();
            if value != "-" {
                overrides.push(format!("{path}={value}"));
            }
            if !seen.insert(measured(&overrides, job)) {
                idle.push(format!("{path} = {value}"));
            }
        }
        assert!(seen.len() > 1 || !idle.is_empty(), "{path}: nothing to compare");
    }
    assert!(idle.is_empty(), "these values change no measured result: {idle:#?}");
}

/// Returns the results of a job on a full device as text, and those of a recovery from a power cut after it if the
/// device keeps data for that.
fn measured(overrides: &[String], job: &str) -> String {
    let config = from_toml(BASE, "base.toml", overrides).unwrap_or_else(|error| panic!("{overrides:?}: {error}"));
    let mut device = Device::new(config, Options::default()).unwrap_or_else(|error| panic!("{error}"));
    let reached = precondition(&mut device, "fill".parse().unwrap(), 1, &mut |_| true).unwrap();
    let config = device.config().clone();
    let is_durable = !config.durability.is_default();
    if is_durable {
        device.make_durable(Keep::Memory, None).expect("the device is idle");
    }
    let jobs = synthetic::parse(job, device.config().logical_bytes(), 1).unwrap();
    let mut sources: Vec<Box<dyn Source>> = jobs.into_iter().map(|job| job.source).collect();
    let outcome = run(&mut device, &mut sources);
    let named = Named { name: String::new(), digest: String::new() };
    let about = About {
        seed: 1,
        device: named.clone(),
        workload: named,
        precondition: Precondition { requested: String::new(), reached },
        warnings: Vec::new(),
        arguments: Vec::new(),
        base: None,
    };
    let mut summary = serde_json::to_value(Summary::new(about, &outcome.measurement(&device))).unwrap();
    let keys = summary.as_object_mut().unwrap();
    for echo in ["config", "config_digest"] {
        keys.insert(echo.to_owned(), Value::Null);
    }
    let recovery = is_durable.then(|| {
        let flash = device.power_cut(1).expect("a durable device");
        let recovered =
            Device::recover_in_memory(config, Options::default(), flash, None).expect("the device recovers");
        recovered.expect("the power is cut once").1
    });
    format!("{summary} {recovery:?}")
}

fn run(device: &mut Device, sources: &mut [Box<dyn Source>]) -> Outcome {
    floatgate_core::simulation::run(device, sources, &mut NoWatcher).unwrap_or_else(|error| panic!("{error}"))
}
