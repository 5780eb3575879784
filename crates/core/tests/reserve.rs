//! The reserve of free blocks: devices at the limit on which requests once waited for a free block forever.

use floatgate_core::device_file::from_toml;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::simulation::{Device, NoWatcher, Options, run};
use floatgate_workload::synthetic;

/// Map in flash, journal of trims, and reserve for failures on planes with eight blocks for data.
const FULL: &str = r#"
capacity = { spare = 0.6613 }
geometry = { channels = 1, chips = 1, dies = 1, planes = 4, blocks = 11, pages = 64, page_size = "1KiB" }
nand = { read = "25us", program = "1300us", erase = "100us" }
bus = { protocol = { sdr = "20ns" } }
mapping = { scheme = "dftl" }
gc = { soft_threshold = 1 }
durability = { trim_journal = true }
host = { link_bandwidth = "1KB/s" }
faults = { }
"#;

#[test]
fn trims_of_a_full_device_do_not_take_the_last_free_blocks() {
    for seed in [u64::MAX, 1, 2, 3, 4, 5, 6, 7] {
        for erase in ["99999999999999ps", "1500us"] {
            let set = [format!("nand.erase={erase}")];
            let config = from_toml(FULL, "full.toml", &set).unwrap();
            let mut device = Device::new(config, Options { seed, ..Options::default() }).unwrap();
            precondition(&mut device, Precondition::Fill, seed, &mut |_| true).unwrap();
            let text = "rw=randtrim number_ios=28 ; rw=randwrite number_ios=204 rate_iops=1000";
            let jobs = synthetic::parse(text, device.config().logical_bytes(), seed).unwrap();
            let mut sources: Vec<_> = jobs.into_iter().map(|job| job.source).collect();
            let outcome = run(&mut device, &mut sources, &mut NoWatcher);
            let outcome = outcome.unwrap_or_else(|error| panic!("seed {seed}, erase {erase}: {error}"));
            assert_eq!(outcome.results.all().count(), 232);
            device.check_invariants().unwrap();
        }
    }
}
