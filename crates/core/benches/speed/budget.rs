//! Short runs whose instructions `scripts/budget.py` counts.

use floatgate_core::device_file::{self, DeviceConfig};
use floatgate_core::preparation::Precondition;

/// Jobs of random requests of 4 KiB: writes, reads, and both.
pub const RANDOM: [(&str, &str, Precondition); 3] = [
    ("writes", "rw=randwrite bs=4k iodepth=32 norandommap=1 number_ios=300000", Precondition::Steady),
    ("reads", "rw=randread bs=4k iodepth=32 norandommap=1 number_ios=300000", Precondition::Fill),
    ("both", "rw=randrw rwmixread=70 bs=4k iodepth=32 norandommap=1 number_ios=300000", Precondition::Steady),
];

/// A buffer with default options.
pub const BUFFER: [&str; 1] = ["buffer.capacity=64MiB"];

/// A buffer with water marks, whose memory takes time.
pub const BUFFER_AHEAD: [&str; 4] =
    [BUFFER[0], "buffer.high_water=0.9", "buffer.low_water=0.8", "buffer.bandwidth=20GB/s"];

/// A run of a job on a device.
pub struct Case {
    pub name: &'static str,
    pub device: &'static str,
    /// Changes of the device. They make it small, so that valgrind can precondition it.
    pub options: [&'static [&'static str]; 2],
    pub job: &'static str,
    pub state: Precondition,
}

impl Case {
    pub fn config(&self) -> DeviceConfig {
        let set: Vec<String> = self.options.iter().copied().flatten().map(|&option| option.to_owned()).collect();
        device_file::load(self.device, &set).expect("an accepted device")
    }
}

/// Runs of the floor, and of cases with latency breakdowns.
pub const OTHERS: [&str; 4] = ["floor-reads", "floor-writes", "attributed-reads", "attributed-collecting"];

const READS: &str = "rw=randread bs=4k iodepth=32 norandommap=1 number_ios=100000";
const WRITES: &str = "rw=randwrite bs=4k iodepth=32 norandommap=1 number_ios=100000";
const FEW_WRITES: &str = "rw=randwrite bs=4k iodepth=32 norandommap=1 number_ios=20000";
const MIXED: &str = "rw=randrw rwmixread=50 bs=4k iodepth=32 norandommap=1 number_ios=100000";
const WRITES_OF_PAGES: &str = "rw=randwrite bs=4k iodepth=32 norandommap=1 number_ios=2000";

/// `bench-32g`, of 2 GiB.
const SMALL: &[&str] = &["geometry.blocks=16", "gc.soft_threshold=1", "gc.hard_threshold=1", "capacity={spare=0.4}"];
const PLANES: &[&str] = &["nand.advanced.multi_plane_program=wise", "nand.advanced.cache_program=true"];
const DFTL: &[&str] = &["mapping.scheme={ dftl = { cache = \"64KiB\" } }", "geometry.blocks=24"];
const FIRMWARE: &[&str] = &["controller.firmware.cores=4", "controller.firmware.lookup=\"50ns\""];
const FAST: &[&str] = &["mapping.scheme.fast.logs.random=16", "capacity.spare=0.5"];
const LAST: &[&str] = &["mapping.scheme=last", "capacity.spare=0.5"];
const HU: &[&str] = &["geometry.blocks=64"];
const TLC: &[&str] = &["geometry.blocks=12", "capacity={spare=0.5}"];
const QLC: &[&str] = &["geometry.blocks=10", "capacity={spare=0.55}"];
const MQSIM: &[&str] = &["geometry.blocks=24", "gc.soft_threshold=2", "gc.hard_threshold=1", "capacity={spare=0.3}"];
const AGRAWAL: &[&str] = &["geometry.blocks=64", "gc.soft_threshold=4", "gc.hard_threshold=4", "capacity={spare=0.2}"];

const fn small(name: &'static str, options: &'static [&'static str], job: &'static str, state: Precondition) -> Case {
    Case { name, device: "bench-32g", options: [SMALL, options], job, state }
}

const fn of_device(name: &'static str, device: &'static str, options: &'static [&'static str], reads: bool) -> Case {
    let (job, state) = if reads { (READS, Precondition::Fill) } else { (FEW_WRITES, Precondition::Steady) };
    Case { name, device, options: [options, &[]], job, state }
}

/// All runs. Those of `bench-32g` with names of one word have no options.
pub const CASES: [Case; 21] = [
    small("reads", &[], READS, Precondition::Fill),
    small("writes", &[], WRITES, Precondition::Fill),
    small("collecting", &[], WRITES, Precondition::Steady),
    small("mixed", &[], MIXED, Precondition::Fill),
    small("buffer", &BUFFER_AHEAD, MIXED, Precondition::Fill),
    small("firmware", FIRMWARE, MIXED, Precondition::Fill),
    small("planes", PLANES, MIXED, Precondition::Fill),
    small("dftl", DFTL, MIXED, Precondition::Fill),
    small("block", &["mapping.scheme=block"], "rw=write bs=64k iodepth=8 number_ios=8000", Precondition::Fill),
    small("fast", FAST, WRITES_OF_PAGES, Precondition::Fill),
    small("last", LAST, WRITES_OF_PAGES, Precondition::Fill),
    of_device("hu2011-reads", "hu2011", HU, true),
    of_device("hu2011-writes", "hu2011", HU, false),
    of_device("tlc-direct-reads", "tlc-direct", TLC, true),
    of_device("tlc-direct-writes", "tlc-direct", TLC, false),
    of_device("qlc-direct-reads", "qlc-direct", QLC, true),
    of_device("qlc-direct-writes", "qlc-direct", QLC, false),
    of_device("mqsim-default-reads", "mqsim-default", MQSIM, true),
    of_device("mqsim-default-writes", "mqsim-default", MQSIM, false),
    of_device("agrawal2008-reads", "agrawal2008", AGRAWAL, true),
    of_device("agrawal2008-writes", "agrawal2008", AGRAWAL, false),
];
