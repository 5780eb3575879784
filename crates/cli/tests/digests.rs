//! Tests that reading a result detects damage, and files of different runs in one directory.

use std::fs;

use crate::common::{self, Bench};
use floatgate_core::sim::rng::Rng;

/// Creates a result with all files in `name`, of a run with this seed.
fn result(bench: &Bench, name: &str, seed: &str, form: &str) {
    let job = "rw=randrw bs=4k iodepth=8 number_ios=2000 norandommap=1";
    bench.good(&["run", "tiny", job, "--seed", seed, "--out", name, "--requests", form, "--timeline"]);
}

/// Returns a command that reads the file.
fn reader(file: &str) -> &'static [&'static str] {
    if file == "series.parquet" { &["report", "R"] } else { &["explain", "R", "max"] }
}

#[test]
fn every_flipped_bit_is_detected() {
    let bench = Bench::new();
    for form in ["parquet", "csv"] {
        result(&bench, "R", "1", form);
        let requests = format!("requests.{form}");
        bench.good(reader(&requests));
        bench.good(reader("series.parquet"));
        for file in [&requests, "summary.json", "timeline.pftrace.gz", "series.parquet", "digests.json"] {
            let path = bench.path("R").join(file);
            let whole = fs::read(&path).unwrap();
            let mut rng = Rng::new(7, file);
            for _ in 0..60 {
                let bit = rng.below(whole.len() as u64 * 8);
                let mut flipped = whole.clone();
                flipped[(bit / 8) as usize] ^= 1 << (bit % 8);
                fs::write(&path, flipped).unwrap();
                let status = bench.run(reader(file)).status.code();
                // The flipped bit may be in the digest of a file that this command does not read.
                let may_pass = file == "digests.json" && status == Some(0);
                assert!(matches!(status, Some(1 | 2)) || may_pass, "{file}: bit {bit} was not detected");
            }
            fs::write(&path, whole).unwrap();
        }
        bench.good(reader(&requests));
    }
}

#[test]
fn files_of_another_run_are_detected() {
    let bench = Bench::new();
    result(&bench, "R", "1", "parquet");
    result(&bench, "other", "2", "parquet");
    for with_digests in [true, false] {
        for file in ["summary.json", "requests.parquet", "timeline.pftrace.gz", "series.parquet"] {
            let path = bench.path("R").join(file);
            let own = fs::read(&path).unwrap();
            fs::copy(bench.path("other").join(file), &path).unwrap();
            let error = String::from_utf8(bench.run(reader(file)).stderr).unwrap();
            let said = if with_digests { "another run than R/digests.json" } else { "another run than R/summary" };
            assert!(error.starts_with("error: R/") && error.contains(said), "{file}: {error}");
            fs::write(&path, own).unwrap();
        }
        bench.good(&["explain", "R", "max"]);
        let _ = fs::remove_file(bench.path("R/digests.json"));
    }
    // Only the digests are of another run.
    fs::copy(bench.path("other/digests.json"), bench.path("R/digests.json")).unwrap();
    for arguments in [&["report", "R"][..], &["compare", "R", "other"], &["explain", "R", "max"]] {
        let error = bench.refused(arguments);
        assert!(error.contains("R/summary.json is changed, damaged, or"), "{error}");
    }
    assert!(bench.refused(&["draw", "R", "..100us"]).contains("R/timeline.pftrace.gz is changed, damaged, or"));
    // A file that the run has not written.
    result(&bench, "R", "1", "parquet");
    result(&bench, "csv", "1", "csv");
    fs::remove_file(bench.path("R/requests.parquet")).unwrap();
    fs::copy(bench.path("csv/requests.csv"), bench.path("R/requests.csv")).unwrap();
    assert!(bench.refused(&["explain", "R", "max"]).contains("R/requests.csv is not listed as a file of this result"));
}

#[test]
fn a_directory_without_digests_is_read_with_a_note() {
    let bench = Bench::new();
    result(&bench, "R", "1", "parquet");
    result(&bench, "other", "1", "parquet");
    fs::remove_file(bench.path("R/digests.json")).unwrap();
    for arguments in [&["report", "R"][..], &["compare", "a=R", "b=other"], &["explain", "R", "max"]] {
        let output = bench.run(arguments);
        assert!(output.status.success(), "{}", common::stderr(&output));
        assert!(common::stderr(&output).starts_with("note: R/digests.json is missing"), "{}", common::stderr(&output));
    }
    // Both runs write equal files. The cost of the simulation is in the summary only.
    for file in ["requests.parquet", "series.parquet", "timeline.pftrace.gz"] {
        let read = |directory: &str| fs::read(bench.path(directory).join(file)).unwrap();
        assert!(read("R") == read("other"), "{file}");
    }
}
