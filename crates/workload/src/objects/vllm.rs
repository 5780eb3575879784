//! Events of vLLM's key-value cache: blocks that it has stored and removed.
//!
//! vLLM publishes batches `[time in s, [event, ...], rank]`, whose events are `["BlockStored", hashes, parent, tokens,
//! block size, adapter, medium, ...]`, `["BlockRemoved", hashes, medium, ...]` and `["AllBlocksCleared"]` (class
//! `KVEventBatch` in `vllm/distributed/kv_events.py`). A line has the JSON of a batch. Batches and events may also be
//! objects with the names of the fields, and `type` for the name of the event.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::access::Kind;

const EXPECTED: &str = "a batch of events: `[time in s, [[\"BlockStored\", hashes, ...], ...]]`";

/// Blocks that are stored, by medium.
#[derive(Default)]
pub(super) struct Blocks {
    stored: BTreeMap<String, BTreeSet<u64>>,
}

/// Events of a line.
pub(super) struct Batch {
    /// Time in s.
    pub(super) time: f64,
    /// Changes of blocks of the wanted medium.
    pub(super) changes: Vec<(Kind, u64)>,
    /// Number of changes of other media.
    pub(super) others: u64,
}

/// Returns the field of a structure that is an array or an object.
fn field<'a>(of: &'a Value, position: usize, name: &str) -> Option<&'a Value> {
    let found = if of.is_array() { of.get(position) } else { of.get(name) };
    found.filter(|value| !value.is_null())
}

/// Returns a block's hash: a whole number, or a text.
fn hash(value: &Value) -> Result<u64, &'static str> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_i64().map(i64::cast_unsigned)).ok_or(EXPECTED),
        Value::String(text) => Ok(xxhash_rust::xxh3::xxh3_64(text.as_bytes())),
        _ => Err(EXPECTED),
    }
}

impl Blocks {
    /// Parses a line. `medium` is that of the blocks that are read, such as `CPU`; `None` is any.
    pub(super) fn read(&mut self, text: &str, medium: Option<&str>) -> Result<Batch, &'static str> {
        let batch: Value = serde_json::from_str(text).map_err(|_| EXPECTED)?;
        let time = field(&batch, 0, "ts").and_then(Value::as_f64).ok_or(EXPECTED)?;
        let events = field(&batch, 1, "events").and_then(Value::as_array).ok_or(EXPECTED)?;
        let mut read = Batch { time, changes: Vec::new(), others: 0 };
        for event in events {
            let name = field(event, 0, "type").and_then(Value::as_str).ok_or(EXPECTED)?;
            let (kind, medium_at) = match name {
                "BlockStored" => (Kind::Set, 6),
                "BlockRemoved" => (Kind::Delete, 2),
                "AllBlocksCleared" => {
                    let is_wanted = |of: &str| medium.is_none_or(|medium| medium == of);
                    let all = std::mem::take(&mut self.stored).into_iter().filter(|(of, _)| is_wanted(of));
                    let all: BTreeSet<u64> = all.flat_map(|(_, hashes)| hashes).collect();
                    read.changes.extend(all.into_iter().map(|hash| (Kind::Delete, hash)));
                    continue;
                }
                _ => return Err("an event BlockStored, BlockRemoved or AllBlocksCleared"),
            };
            // Without a medium, a block is in the memory of the GPU.
            let of = field(event, medium_at, "medium").and_then(Value::as_str).unwrap_or("GPU");
            let hashes = field(event, 1, "block_hashes").and_then(Value::as_array).ok_or(EXPECTED)?;
            let hashes: Vec<u64> = hashes.iter().map(hash).collect::<Result<_, _>>()?;
            let stored = self.stored.entry(of.to_owned()).or_default();
            for hash in &hashes {
                if kind == Kind::Set {
                    stored.insert(*hash)
                } else {
                    stored.remove(hash)
                };
            }
            if medium.is_none_or(|medium| medium == of) {
                read.changes.extend(hashes.into_iter().map(|hash| (kind, hash)));
            } else {
                read.others += hashes.len() as u64;
            }
        }
        Ok(read)
    }
}
