//! Object traces: `objects=FILE`.

use crate::common::Bench;

const TRACE: &str = "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n\
    10.0,Write,65536,Tier-2,a,Evict\n10.1,Read,65536,Tier-2,a,Decode\n10.2,Read,32768,Tier-2,b,Decode\n\
    10.3,Read,1,Tier-1,b,Decode\n";

#[test]
fn results_contain_the_hits() {
    let bench = Bench::with_device();
    bench.file("kv.csv", TRACE);
    let summary = bench.json(&["objects=kv.csv placement=log segment=64KiB", "rw=read number_ios=3"]);
    let objects = &summary["objects"];
    assert_eq!(objects.as_array().unwrap().len(), 1);
    assert_eq!(objects[0]["stream"], "kv");
    assert_eq!((&objects[0]["gets"], &objects[0]["hits"]), (&2.into(), &1.into()));
    assert_eq!((&objects[0]["hit_ratio"], &objects[0]["other_tiers"]), (&0.5.into(), &1.into()));
    assert_eq!(summary["requests"]["write"]["count"], 2);
    let text = bench.good(&["objects=kv.csv"]);
    assert!(text.contains("kv: 50.0 % hits of 2 gets (66.7 % of the bytes), 2 sets, 0 evictions, 2 stored"), "{text}");
    assert!(bench.error(2, &["objects=kv.csv placement=heap"]).contains("must be one of extent, log, sets"));
    assert!(bench.error(2, &["kv.csv"]).contains("to place them on the device, write `objects=kv.csv`"));
    assert!(bench.error(2, &["objects=none.csv"]).contains("none.csv: cannot open the trace"));
    assert!(bench.error(2, &["objects=kv.csv", "--fit", "wrap"]).contains("--fit is for traces"));
}

#[test]
fn trace_info_describes_object_traces() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv.csv");
    std::fs::write(&path, "key,op,size,op_time\na,SET,4096,1\nb,SET,8192,2\na,GET,4096,5\n").unwrap();
    let info = |more: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_floatgate"));
        let output = command.args(["trace", "info"]).arg(&path).args(more).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = info(&[]);
    assert!(text.contains("object trace, 3 accesses in 4.000 s") && text.contains("2, 12 KiB; 50.0 % are"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&info(&["--json"])).unwrap();
    assert_eq!((&json["objects"], &json["unlimited_hit_ratio"]), (&2.into(), &1.0.into()));
}

#[test]
fn a_generated_key_value_cache_runs() {
    let bench = Bench::with_device();
    let words = "objects=kv-cache prompts=50 block=64KiB think=1s placement=log segment=1MiB capacity=90%";
    let summary = bench.json(&[words]);
    assert_eq!(summary["objects"][0]["stream"], "kv-cache");
    assert!(summary["objects"][0]["gets"].as_u64().unwrap() > 100, "{summary}");
}
