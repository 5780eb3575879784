//! Transfers of sectors (`bus.partial_transfer`): times of reads and writes, to the picosecond.
//!
//! Pages have 8 sectors, which take 12.8 us each at 25 ns per byte. A page read takes 25 us, a program 200 us.

use crate::common::{self, device, drain, submit};
use floatgate_core::sim::request::Operation::{self, Read, Trim, Write};
use floatgate_core::sim::request::Request;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Ssd};

const SECTOR: u64 = 12_800;
const READ: u64 = 25_000;
const PROGRAM: u64 = 200_000;
const PARTIAL: &str = "bus.partial_transfer=true";
const ONE_PLANE: [&str; 2] = ["geometry.channels=1", "geometry.chips=1"];

/// Returns a device whose first 16 units are written.
fn machine(overrides: &[&str]) -> Device {
    let mut device = device(&[&ONE_PLANE[..], overrides].concat());
    common::fill(&mut device, 16);
    device
}

/// Returns the latency of a request on an idle device in nanoseconds.
fn time(device: &mut Device, operation: Operation, lba: u64, sectors: u32) -> u64 {
    let now = Time(device.now().0 + 1_000_000_000);
    submit(device, now, Request::new(now, operation, lba, sectors));
    let done = drain(device);
    let end = done.iter().find(|completion| completion.request.lba == lba).unwrap().finish;
    assert_eq!(end.since(now).0 % 1000, 0);
    end.since(now).0 / 1000
}

#[test]
fn a_read_transfers_the_requested_sectors() {
    for (overrides, expected) in [(&[][..], [8, 8, 8, 16]), (&[PARTIAL], [1, 3, 8, 2])] {
        let mut device = machine(overrides);
        let reads = [(7, 1), (2, 3), (0, 8)].map(|(lba, sectors)| time(&mut device, Read, lba, sectors));
        for (got, sectors) in reads.into_iter().zip(expected) {
            assert_eq!(got, READ + sectors * SECTOR, "{overrides:?}");
        }
        // The last sector of a page and the first of the next one: two reads in succession.
        assert_eq!(time(&mut device, Read, 7, 2), 2 * READ + expected[3] * SECTOR, "{overrides:?}");
    }
    // Two units of one page are one read.
    let quarters = ["geometry.mapping_unit=1KiB"];
    assert_eq!(time(&mut machine(&quarters), Read, 1, 2), READ + 4 * SECTOR);
    assert_eq!(time(&mut machine(&[quarters[0], PARTIAL]), Read, 1, 2), READ + 2 * SECTOR);
}

#[test]
fn a_partial_write_reads_the_sectors_that_it_keeps() {
    for (overrides, kept) in [(&[][..], 8), (&[PARTIAL], 5)] {
        let mut device = machine(overrides);
        let expected = READ + kept * SECTOR + 8 * SECTOR + PROGRAM;
        assert_eq!(time(&mut device, Write, 2, 3), expected, "{overrides:?}");
        assert_eq!(time(&mut device, Read, 0, 8), READ + 8 * SECTOR);
        device.check_invariants().unwrap();
    }
}

#[test]
fn sectors_that_were_never_written_are_not_kept() {
    let mut device = machine(&[PARTIAL]);
    let whole = 8 * SECTOR + PROGRAM;
    time(&mut device, Trim, 0, 8);
    assert_eq!(time(&mut device, Write, 1, 4), whole, "nothing is read");
    assert_eq!(time(&mut device, Write, 0, 2), READ + 3 * SECTOR + whole, "sectors 2 to 4 are kept");
    assert_eq!(time(&mut device, Write, 0, 6), whole, "all of 0 to 4 are replaced");
    assert_eq!(time(&mut device, Write, 7, 1), READ + 6 * SECTOR + whole);
}

#[test]
fn a_buffer_keeps_the_transferred_sectors_and_reads_the_rest_for_its_writes() {
    let buffer = "buffer={ capacity = \"8KiB\", write = \"write-through\" }";
    for (overrides, moved, again) in [(&[buffer][..], 8, 0), (&[buffer, PARTIAL], 2, READ + 2 * SECTOR)] {
        let mut device = machine(overrides);
        assert_eq!(time(&mut device, Read, 0, 2), READ + moved * SECTOR, "{overrides:?}");
        assert_eq!(time(&mut device, Read, 0, 2), 0, "{overrides:?}");
        assert_eq!(time(&mut device, Read, 4, 2), again, "{overrides:?}");
    }
    // Three sectors of a unit are evicted when two other units are written. The rest of the unit is read at that time.
    let back = "buffer={ capacity = \"8KiB\", read = false }";
    let mut device = machine(&[back, PARTIAL]);
    for (lba, sectors) in [(2, 3), (8, 8)] {
        time(&mut device, Write, lba, sectors);
    }
    assert_eq!(time(&mut device, Write, 16, 8), READ + 5 * SECTOR + 8 * SECTOR + PROGRAM);
}

#[test]
fn planes_that_are_read_together_transfer_their_own_sectors() {
    let planes = ["geometry.planes=2", "nand.advanced.multi_plane_read=true", PARTIAL];
    let mut device = machine(&planes);
    // Neighbors are in the two planes of the die, at equal addresses.
    assert_eq!(time(&mut device, Read, 5, 4), READ + 4 * SECTOR);
    assert_eq!(time(&mut device, Read, 7, 3), READ + 3 * SECTOR);
}

#[test]
fn a_unit_over_several_pages_is_refused() {
    let base = floatgate_core::device_file::from_toml;
    let overrides = ["geometry.mapping_unit=8KiB", PARTIAL].map(str::to_owned);
    let error = base(common::BASE, "test.toml", &overrides).unwrap_err().to_string();
    assert!(error.contains("bus.partial_transfer"), "{error}");
}
