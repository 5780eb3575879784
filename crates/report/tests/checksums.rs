//! Checksums of Parquet pages: a flipped bit in any page is an error.

use std::fs;
use std::path::Path;

use anyhow::Result;
use floatgate_core::results::Breakdown;
use floatgate_core::sim::request::{Completion, Operation, Request, Status};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_report::columns::requests::{ParquetRequests, fields};
use floatgate_report::columns::series::{Row, SeriesWriter, read_series};
use floatgate_report::columns::table::{Kind, Rows, TableReader};
use floatgate_report::columns::{Origin, run_in};

/// Writes requests to a file.
fn requests(path: &Path, folder: &Path) {
    let streams = ["a", "b"].map(str::to_owned);
    let out = fs::File::create(path).unwrap();
    let mut writer = ParquetRequests::new(out, folder, &streams, &Origin::default()).unwrap();
    let mut rng = Rng::new(1, "requests");
    for tag in 0..10_000 {
        let arrival = Time(tag * 1_000_003);
        let (start, finish) = (Time(arrival.ps() + rng.below(977)), Time(arrival.ps() + 1_000 + rng.below(1 << 30)));
        let (operation, lba, sectors) = (Operation::ALL[rng.below(4) as usize], rng.below(1 << 40), 8);
        let stream = (tag % 2) as u16;
        let request = Request { tag, stream, namespace: 0, ..Request::new(arrival, operation, lba, sectors) };
        let breakdown = Breakdown { parts: std::array::from_fn(|_| Time(rng.below(1 << 20))), channels: 1 };
        let reported = (!tag.is_multiple_of(3)).then_some(&breakdown);
        writer.write(&Completion { request, status: Status::Ok, start, finish }, reported).unwrap();
    }
    drop(writer.finish(Some("0123")).unwrap());
}

/// Writes windows to a file.
fn series(path: &Path, folder: &Path) {
    let mut writer = SeriesWriter::new(fs::File::create(path).unwrap(), folder, &Origin::default()).unwrap();
    let mut rng = Rng::new(1, "series");
    for window in 0..2_000 {
        let mut lists = || (0..16).map(|_| rng.unit()).collect::<Vec<f64>>();
        let (channel_data, die_cell) = (lists(), lists());
        writer.write(Row { start_ps: window, channel_data, die_cell, ..Row::default() }).unwrap();
    }
    drop(writer.finish(Some("0123")).unwrap());
}

/// Reads all columns of requests.
fn read_requests(path: &Path) -> Result<()> {
    let table = TableReader::open(path, "floatgate-requests-2")?;
    for group in table.groups() {
        for batch in group?.batches() {
            for field in fields() {
                match field.kind {
                    Kind::Whole => drop(batch.whole(&field.name)?),
                    Kind::Text => drop(batch.text(&field.name)?),
                    _ => drop(batch.maybe_whole(&field.name)?),
                }
            }
        }
    }
    Ok(())
}

/// Flips 500 random bits in the pages of a file, one at a time, and returns the number of undetected flips.
fn unnoticed(path: &Path, read: &dyn Fn(&Path) -> Result<()>) -> usize {
    let whole = fs::read(path).unwrap();
    read(path).unwrap();
    assert_eq!(run_in(path).unwrap().as_deref(), Some("0123"));
    let footer = u32::from_le_bytes(whole[whole.len() - 8..][..4].try_into().unwrap());
    let bits = 8 * (whole.len() as u64 - 12 - u64::from(footer));
    let mut rng = Rng::new(1, "bits");
    let mut passes = || {
        let bit = 8 * 4 + rng.below(bits);
        let mut flipped = whole.clone();
        flipped[(bit / 8) as usize] ^= 1 << (bit % 8);
        fs::write(path, flipped).unwrap();
        read(path).is_ok()
    };
    (0..500).filter(|_| passes()).count()
}

#[test]
fn a_flipped_bit_in_a_page_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    requests(&at("requests.parquet"), folder.path());
    series(&at("series.parquet"), folder.path());
    let series = unnoticed(&at("series.parquet"), &|path| read_series(path).map(drop));
    let requests = unnoticed(&at("requests.parquet"), &read_requests);
    // Page headers have no checksum, and readers ignore some of their bits.
    assert!(requests <= 2 && series <= 2, "{requests} and {series} of 500 flips were not detected");
}
