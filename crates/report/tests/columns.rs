//! `requests.parquet`: rows are read as written, over several row groups, and memory does not grow with their number.

use std::fs::File;
use std::io::BufWriter;

use floatgate_core::results::Breakdown;
use floatgate_core::sim::request::{Completion, Operation, Request, Status};
use floatgate_core::sim::time::Time;
use floatgate_report::columns::Origin;
use floatgate_report::columns::requests::{
    ParquetRequests, Record, fields, find_request, read_latencies, read_requests,
};

/// Number of rows: two row groups of 2^20 rows, and one that is not full.
const ROWS: u64 = 2_300_000;

/// Returns the request with this number. Every third request has no breakdown.
fn request(number: u64) -> (Completion, Option<Breakdown>) {
    let operation = Operation::ALL[(number % 4) as usize];
    let arrival = Time(number * 1_000_003);
    let (start, finish) = (Time(arrival.ps() + number % 977), Time(arrival.ps() + 1_000 + number * 7919 % 1_000_003));
    let (stream, lba, sectors) = ((number % 2) as u16, number * 2_654_435_761 % (1 << 40), 1 + number as u32 % 64);
    let request = Request { tag: number, stream, namespace: 0, ..Request::new(arrival, operation, lba, sectors) };
    let status = if number.is_multiple_of(100) { Status::OutOfRange } else { Status::Ok };
    let parts = std::array::from_fn(|part| Time(number * (part as u64 + 1) % 10_007));
    let breakdown = Breakdown { parts, channels: number as u32 % 9 };
    (Completion { request, status, start, finish }, (!number.is_multiple_of(3)).then_some(breakdown))
}

fn record(number: u64) -> Record<'static> {
    let (Completion { request, status, start, finish }, breakdown) = request(number);
    let Request { operation, lba, sectors, arrival, stream, .. } = request;
    let stream = ["even", "odd, \"quoted\""][usize::from(stream)];
    Record { number, stream, operation, lba, sectors: sectors.into(), status, arrival, start, finish, breakdown }
}

/// Returns the anonymous memory of this process, in KiB.
fn anonymous_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn memory_does_not_grow_with_the_number_of_requests() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.parquet");
    let streams = ["even", "odd, \"quoted\""].map(str::to_owned);
    let out = BufWriter::new(File::create(&path).unwrap());
    let mut writer = ParquetRequests::new(out, folder.path(), &streams, &Origin::default()).unwrap();
    let (mut early, mut most) = (0, 0);
    for number in 0..ROWS {
        let (completion, breakdown) = request(number);
        writer.write(&completion, breakdown.as_ref()).unwrap();
        match number {
            5_000 => early = anonymous_kib(),
            _ if number % 10_000 == 0 => most = most.max(anonymous_kib()),
            _ => {}
        }
    }
    drop(writer.finish(None).unwrap());
    assert!(most.max(anonymous_kib()) < early + 3_000, "from {early} to {most} KiB");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "temporary files were left behind");

    let mut next = 0;
    read_requests(&path, &mut |read| {
        assert_eq!(*read, record(next));
        next += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(next, ROWS);

    let mut next = 0;
    read_latencies(&path, &mut |number, operation, latency| {
        let wanted = record(next);
        assert_eq!((number, operation, latency), (next, wanted.operation, wanted.latency()));
        next += 1;
    })
    .unwrap();
    assert_eq!(next, ROWS);

    // First and last rows of batches and row groups.
    for number in [0, 65_535, 65_536, (1 << 20) - 1, 1 << 20, 1_200_000, 1 << 21, ROWS - 1] {
        let mut found = Vec::new();
        find_request(&path, number, &mut |read| {
            assert_eq!(*read, record(number));
            found.push(read.number);
            Ok(())
        })
        .unwrap();
        assert_eq!(found, [number]);
    }
    find_request(&path, ROWS, &mut |read| panic!("unexpected request {}", read.number)).unwrap();
}

#[test]
fn every_column_is_documented() {
    let text = include_str!("../../../docs/reference/requests.md");
    for field in fields() {
        let name = format!("`{}`", field.name);
        assert!(text.contains(&name), "docs/reference/requests.md does not document {name}");
    }
}
