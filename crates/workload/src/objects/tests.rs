use std::collections::BTreeMap;
use std::io::Write;

use super::ObjectWords;
use super::access::{BLOCK, Effects, Placement, Step};
use super::extents::{Extents, Search};
use super::log::Log;
use super::order::Policy;
use super::sets::Sets;
use crate::file::Stop;
use crate::sim::request::{Operation, Request};
use crate::sim::rng::Rng;
use crate::sim::source::{ObjectCounts, Source};

/// Returns the requests of a trace, and its counters.
fn run(contents: &[u8], words: &str, sectors: u64) -> Result<(Vec<Request>, ObjectCounts), String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(contents).unwrap();
    let words = ObjectWords::read(&format!("objects={} {words}", file.path().display())).map_err(|error| error.0)?;
    let mut source = words.open(sectors, &Stop::default()).map_err(|error| error.0)?;
    let mut all = Vec::new();
    while let Some(request) = source.next_request().map_err(|error| error.0)? {
        all.push(request);
    }
    Ok((all, source.objects().unwrap()))
}

/// Returns operation, offset in KiB and size in KiB.
fn short(requests: &[Request]) -> Vec<(Operation, u64, u32)> {
    requests.iter().map(|request| (request.operation, request.lba / 2, request.sectors / 2)).collect()
}

const MLPERF: &str = "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n\
    1764000000.000000,Write,8192,Tier-2,block/a1,Evict\n\
    1764000000.013700,Write,8192,Tier-2,block/a2,Evict\n\
    1764000000.020000,Write,8192,Tier-1,block/a3,Evict\n\
    1764000000.027400,Read,8192,Tier-2,block/a1,Decode\n\
    1764000000.041100,Write,4096,Tier-2,block/b7,Evict\n\
    1764000000.082200,Write,12288,Tier-2,block/a2,Evict\n\
    1764000000.095900,Read,12288,Tier-2,block/a2,Decode\n";

#[test]
fn extents_are_allocated_overwritten_and_trimmed() {
    use Operation::{Read, Trim, Write};
    let (requests, counts) = run(MLPERF.as_bytes(), "", 1 << 20).unwrap();
    let expected = [
        (Write, 0, 8),
        (Write, 8, 8),
        (Read, 0, 8),
        (Write, 16, 4),
        // The object has grown: its extent is freed, and a new one is allocated after the others.
        (Trim, 8, 8),
        (Write, 20, 12),
        (Read, 20, 12),
    ];
    assert_eq!(short(&requests), expected);
    let times: Vec<u64> = requests.iter().map(|request| request.arrival.ps() / 100_000_000).collect();
    assert_eq!(times, [0, 137, 274, 411, 822, 822, 959]);
    assert_eq!((counts.gets, counts.hits, counts.sets, counts.other_tiers, counts.objects), (2, 2, 4, 1, 3));
    assert_eq!((counts.set_bytes, counts.bytes), (8192 * 2 + 4096 + 12288, 8192 + 4096 + 12288));
    // A capacity of 16 KiB evicts the objects that were accessed, or written, longest ago.
    let (requests, counts) = run(MLPERF.as_bytes(), "capacity=16KiB policy=fifo limit=4", 1 << 20).unwrap();
    assert_eq!(short(&requests)[2..], [(Read, 0, 8), (Trim, 0, 8), (Write, 0, 4)]);
    assert_eq!(counts.evictions, 1);
    let (requests, _) = run(MLPERF.as_bytes(), "capacity=16KiB limit=4 trim=0 offset=1MiB", 1 << 20).unwrap();
    assert_eq!(short(&requests)[2..], [(Read, 1024, 8), (Write, 1032, 4)]);
}

#[test]
fn misses_write_unless_they_are_not_admitted() {
    let trace = b"{\"timestamp\": 0, \"input_length\": 1100, \"hash_ids\": [0, 1, 2]}\n\
        {\"timestamp\": 2000.5, \"input_length\": 1100, \"hash_ids\": [0, 1, 3]}\n";
    let (requests, counts) = run(trace, "block=3MiB request=2MiB", 1 << 20).unwrap();
    let operations: Vec<Operation> = requests.iter().map(|request| request.operation).collect();
    use Operation::{Read, Write};
    assert_eq!(operations, [Write, Write, Write, Write, Write, Write, Read, Read, Read, Read, Write, Write]);
    assert_eq!(short(&requests)[..2], [(Write, 0, 2048), (Write, 2048, 1024)]);
    assert_eq!(requests[6].arrival.ps(), 2_000_500_000_000);
    assert_eq!((counts.gets, counts.hits, counts.hit_bytes), (6, 2, 6 << 20));
    let (requests, counts) = run(trace, "block=3MiB admit=0", 1 << 20).unwrap();
    assert_eq!((requests.len(), counts.gets, counts.hits), (0, 6, 0));
    assert!(run(trace, "", 1 << 20).unwrap_err().contains("block=2MiB"));
}

#[test]
fn accesses_of_a_second_are_spread() {
    let record = |time: u32, object: u64, size: u32| {
        [&time.to_le_bytes()[..], &object.to_le_bytes(), &size.to_le_bytes(), &(-1i64).to_le_bytes()].concat()
    };
    let trace = [record(100, 7, 4096), record(100, 8, 100), record(102, 7, 4096)].concat();
    let (requests, counts) = run(&trace, "", 1 << 20).unwrap();
    let times: Vec<u64> = requests.iter().map(|request| request.arrival.ps() / 1_000_000_000).collect();
    assert_eq!(times, [0, 500, 2000]);
    assert_eq!((counts.gets, counts.hits, counts.bytes), (3, 1, 4196));
    let twitter = b"0,k1,10,90,5,set,60\n0,k1,10,90,5,get,0\n1,k2,4,0,5,incr,0\n1,k1,10,0,5,delete,0\n";
    let (_, counts) = run(twitter, "", 1 << 20).unwrap();
    assert_eq!((counts.sets, counts.hits, counts.deletes, counts.bytes), (2, 1, 1, 4));
    let cachelib = b"op_time,key,key_size,op,op_count,size\n5,7,1,SET,1,100\n5,7,1,GET,3,100\n";
    let (requests, counts) = run(cachelib, "replay=depth=4", 1 << 20).unwrap();
    assert_eq!((requests.len(), counts.hits, requests[3].arrival.ps()), (4, 3, 0));
}

#[test]
fn segments_are_reused_as_a_whole() {
    let mut log = Log::new(2, 4, Policy::Fifo, true);
    let mut effects = Effects::default();
    for key in 0..4 {
        assert!(log.set(key, 2 * BLOCK, &mut effects));
    }
    assert_eq!(log.stored(), (4, 8 * BLOCK));
    // The first segment is reused, and its objects are evicted.
    effects.steps.clear();
    assert!(log.set(4, 1, &mut effects));
    let step = |operation, start, blocks| Step { operation, start, blocks };
    assert_eq!(effects.steps, [step(Operation::Trim, 0, 4), step(Operation::Write, 0, 1)]);
    assert_eq!((effects.counts.evictions, log.stored()), (2, (3, 4 * BLOCK + 1)));
    assert_eq!([0, 1, 2].map(|key| log.get(key, &mut effects)), [None, None, Some(2 * BLOCK)]);
    assert!(!log.set(9, 5 * BLOCK, &mut effects));
    // The segment that was accessed longest ago is reused.
    let mut log = Log::new(3, 1, Policy::Lru, false);
    (0..3).for_each(|key| assert!(log.set(key, 1, &mut effects)));
    log.get(0, &mut effects);
    log.set(3, 1, &mut effects);
    assert_eq!([0, 1, 2, 3].map(|key| log.get(key, &mut effects).is_some()), [true, false, true, true]);
}

#[test]
fn buckets_are_read_and_written() {
    let mut sets = Sets::new(1);
    let mut effects = Effects::default();
    assert!(sets.set(1, 2000, &mut effects) && sets.set(2, 2000, &mut effects) && sets.set(3, 500, &mut effects));
    let operations: Vec<Operation> = effects.steps.iter().map(|step| step.operation).collect();
    use Operation::{Read, Write};
    assert_eq!(operations, [Write, Read, Write, Read, Write]);
    assert_eq!((effects.counts.evictions, sets.stored()), (1, (2, 2500)));
    assert_eq!([1, 2].map(|key| sets.get(key, &mut effects)), [None, Some(2000)]);
    assert!(!sets.set(2, 5000, &mut effects));
    assert_eq!(sets.stored(), (1, 500));
}

/// Placements never put two objects on the same blocks, and read an object from the blocks to which it was written.
#[test]
fn objects_do_not_overlap() {
    let placements: Vec<(&str, Box<dyn Placement>)> = vec![
        ("first", Box::new(Extents::new(64, Search::First, Policy::Lru, true))),
        ("next", Box::new(Extents::new(64, Search::Next, Policy::Fifo, true))),
        ("class", Box::new(Extents::new(64, Search::Class, Policy::Lru, false))),
        ("log", Box::new(Log::new(4, 16, Policy::Fifo, true))),
        ("log by accesses", Box::new(Log::new(4, 16, Policy::Lru, false))),
    ];
    for (name, mut placement) in placements {
        let mut rng = Rng::new(1, name);
        let mut written: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut owners = [None; 64];
        for _ in 0..20_000 {
            let (key, size) = (rng.below(40), 1 + rng.below(10 * BLOCK));
            let mut effects = Effects::default();
            match rng.below(10) {
                0 => _ = placement.delete(key, &mut effects),
                1..5 => assert!(placement.set(key, size, &mut effects), "{name}"),
                _ => {
                    if let Some(found) = placement.get(key, &mut effects) {
                        let (start, size) = written[&key];
                        let read = effects.steps[0];
                        assert_eq!((read.start, read.blocks, found), (start, size.div_ceil(BLOCK), size), "{name}");
                        let whole = start as usize..(start + read.blocks) as usize;
                        assert!(owners[whole].iter().all(|owner| *owner == Some(key)), "{name}");
                    }
                }
            }
            for step in effects.steps.iter().filter(|step| step.operation == Operation::Write) {
                written.insert(key, (step.start, size));
                owners[step.start as usize..(step.start + step.blocks) as usize].fill(Some(key));
            }
        }
        let (objects, bytes) = placement.stored();
        assert!(objects > 3 && bytes < 64 * BLOCK, "{name}: {objects} {bytes}");
    }
}

#[test]
fn mistakes_are_named() {
    let error = |words: &str| run(MLPERF.as_bytes(), words, 1 << 20).unwrap_err();
    assert!(error("placement=heap").contains("`placement=heap`: must be one of extent, log, sets"));
    assert!(error("color=red").contains("`color=red`: unknown word for an object trace. The words are: objects,"));
    assert!(error("trim=1 trim=0").contains("given twice"));
    assert!(error("request=5").contains("multiple of 4 KiB"));
    assert!(error("capacity=1GiB").contains("must be from 4 KiB to 512 MiB"));
    assert!(error("capacity=4KiB placement=log").contains("`segment` is larger"));
    assert!(run(b"a,b\n", "", 1 << 20).unwrap_err().contains("not an object trace"));
    let bad = MLPERF.replace("8192", "many");
    assert!(run(bad.as_bytes(), "", 1 << 20).unwrap_err().contains("line 2: `1764000000.000000,Write,many"));
}

#[test]
fn a_profile_has_objects_reuse_sizes_and_lifetimes() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(MLPERF.as_bytes()).unwrap();
    let profile = super::profile(file.path(), &Stop::default()).unwrap();
    assert_eq!((profile.accesses, profile.gets, profile.sets, profile.deletes), (6, 2, 4, 0));
    assert_eq!((profile.objects, profile.bytes, profile.unlimited_hit_ratio), (3, 8192 + 4096 + 12288, Some(1.0)));
    assert_eq!(profile.accessed_once, Some(1.0 / 3.0));
    let (size, accesses) = (profile.size.unwrap(), profile.accesses_per_object.unwrap());
    assert_eq!((size.p50, size.max, accesses.mean, accesses.max), (8192.0, 12288.0, 2.0, 3.0));
    // a2 is accessed from 13.7 to 95.9 ms.
    assert!((profile.lifetime_s.unwrap().max - 0.0822).abs() < 1e-9, "{profile:?}");
    assert!(
        profile.to_text().contains("objects              3, 24 KiB; 33.3 % are accessed once\n"),
        "{}",
        profile.to_text()
    );
    let json: serde_json::Value = serde_json::from_str(&profile.to_json()).unwrap();
    assert_eq!(json["schema"], "floatgate-objects-1");
    // Mooncake's trace contains no sizes.
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"{\"timestamp\": 0, \"hash_ids\": [1, 2]}\n{\"timestamp\": 5, \"hash_ids\": [1, 3]}\n").unwrap();
    let profile = super::profile(file.path(), &Stop::default()).unwrap();
    assert_eq!((profile.objects, profile.bytes, profile.size, profile.gets), (3, 0, None, 4));
    // The second access to 1 is a hit.
    assert_eq!(profile.unlimited_hit_ratio, Some(0.25));
}

#[test]
fn prompts_of_bailian_have_times_in_seconds() {
    let lines = b"{\"chat_id\": 1, \"timestamp\": 61.114, \"hash_ids\": [7, 8]}\n{\"chat_id\": 2, \"timestamp\": 61.214, \"hash_ids\": [7]}\n";
    let (requests, counts) = run(lines, "block=8KiB", 1 << 20).unwrap();
    let times: Vec<u64> = requests.iter().map(|request| request.arrival.ps() / 1_000_000_000).collect();
    assert_eq!(times, [0, 0, 100]);
    assert_eq!((counts.gets, counts.hits), (3, 1));
}

#[test]
fn events_of_vllm_write_and_remove_blocks() {
    use Operation::{Trim, Write};
    // As arrays, and as objects; hashes as signed numbers and as texts.
    let lines = r#"[1757000000.5, [["BlockStored", [11, -12], null, [1, 2], 16, null, "CPU"], ["BlockStored", [13], 11, [3], 16, null]], 0]
{"ts": 1757000000.75, "events": [{"type": "BlockRemoved", "block_hashes": [11], "medium": "CPU"}]}
{"ts": 1757000001, "events": [{"type": "BlockStored", "block_hashes": ["ab"], "medium": "CPU"}]}
[1757000002, [["AllBlocksCleared"]]]
"#;
    let (requests, counts) = run(lines.as_bytes(), "block=8KiB tier=CPU", 1 << 20).unwrap();
    let expected =
        [(Write, 0, 8), (Write, 8, 8), (Trim, 0, 8), (Write, 0, 8)].into_iter().chain([(Trim, 8, 8), (Trim, 0, 8)]);
    let (mut found, mut expected) = (short(&requests), expected.collect::<Vec<_>>());
    // The order of the last two is that of the hashes.
    found[4..].sort_by_key(|step| step.1);
    expected[4..].sort_by_key(|step| step.1);
    assert_eq!(found, expected);
    let times: Vec<u64> = requests.iter().map(|request| request.arrival.ps() / 1_000_000_000).collect();
    assert_eq!(times, [0, 0, 250, 500, 1500, 1500]);
    assert_eq!((counts.sets, counts.deletes, counts.other_tiers, counts.objects), (3, 3, 1, 0));
    let all = run(lines.as_bytes(), "block=8KiB", 1 << 20).unwrap().1;
    assert_eq!((all.sets, all.deletes, all.other_tiers), (4, 4, 0));
    let error = run(b"[1, [[\"BlockLost\", [1]]]]\n".as_slice(), "block=8KiB", 1 << 20).unwrap_err();
    assert!(error.contains("line 1") && error.contains("an event BlockStored"), "{error}");
    assert!(run(lines.as_bytes(), "", 1 << 20).unwrap_err().contains("without their size"));
}

#[test]
fn accesses_are_generated() {
    let words = |text: &str| ObjectWords::read(text).map_err(|error| error.0);
    let run = |text: &str| {
        let mut source = words(text).unwrap().open(1 << 24, &Stop::default()).unwrap();
        let mut count = 0;
        while source.next_request().unwrap().is_some() {
            count += 1;
        }
        (count, source.objects().unwrap())
    };
    let (count, counts) = run("objects=kv-cache prompts=200 think=1s block=64KiB");
    assert!(count > 1000 && counts.hits == counts.gets && counts.sets > 500, "{counts:?}");
    assert_eq!(run("objects=kv-cache prompts=200 think=1s block=64KiB").1, counts);
    assert_ne!(run("objects=kv-cache prompts=200 think=1s block=64KiB seed=2").1, counts);
    assert_eq!(run("objects=kv-cache prompts=200 think=1s block=64KiB turns=1").1.gets, 0);
    let kept = run("objects=kv-cache prompts=200 think=1s block=64KiB drop=0").1;
    assert_eq!((kept.deletes, kept.objects), (0, kept.sets));
    assert!(words("objects=x.csv turns=2").unwrap_err().contains("`turns=2`: needs objects=kv-cache"));
    assert!(words("objects=kv-cache turns=0.5").unwrap_err().contains("must be 1 or more"));
}
