//! Metrics: the label and the unit of each number of a summary, by its path.
//!
//! A metric has one name, its path in `summary.json`, such as `requests.read.latency_us.p99`. Commands and errors show
//! the name, figures show the label with the unit.

use crate::words::words;

/// Unit of shares, which are from 0 to 1.
pub const SHARE: &str = "share";

/// Labels of metrics that words of their path would not describe.
const LABELS: [(&str, &str); 19] = [
    ("measured_s", "simulated time"),
    ("write_amplification_bytes", "write amplification in bytes"),
    ("gc.efficiency", "cleaning efficiency"),
    ("gc.pages_moved", "pages moved by GC"),
    ("gc.free_blocks", "free blocks at GC"),
    ("gc.collection_us", "GC of a block"),
    ("flash.pages.read", "pages read"),
    ("flash.pages.programmed", "pages programmed"),
    ("flash.blocks_erased", "blocks erased"),
    ("wear.blocks.mean", "erases of a block, mean"),
    ("wear.blocks.max", "erases of the most worn block"),
    ("wear.blocks.stddev", "erases of a block, standard deviation"),
    ("utilization.channels.data.mean", "channels carry data"),
    ("utilization.channels.command.mean", "channels carry commands"),
    ("utilization.channels.idle.mean", "channels idle"),
    ("utilization.dies.cell.mean", "dies, cells work"),
    ("utilization.dies.register_held.mean", "dies, register held"),
    ("utilization.dies.idle.mean", "dies idle"),
    ("energy.per_host_byte_j", "energy per byte of the host"),
];

/// Units by the end of a key.
const UNITS: [(&str, &str); 10] = [
    ("iops", "IOPS"),
    ("mib_per_s", "MiB/s"),
    ("per_cpu_s", "1/s"),
    ("bytes", "bytes"),
    ("us", "us"),
    ("ns", "ns"),
    ("ps", "ps"),
    ("s", "s"),
    ("j", "J"),
    ("w", "W"),
];

/// Keys whose values are shares, by their end.
const SHARES: [&str; 6] = ["share", "hit_ratio", "utilization", "efficiency", "life_used", "mapped"];

/// Starts of the paths of requests by operation.
const REQUESTS: &str = "requests.";

/// Metrics that were renamed before the first release: old and new.
const RENAMED: [(&str, &str); 5] = [
    ("gc.stock_blocks", "gc.free_blocks"),
    ("gc.copies_in_vain", "gc.wasted_copies"),
    ("buffer.written_out", "buffer.written_back"),
    ("buffer.reads.partly", "buffer.reads.partial"),
    ("buffer.reads.missed", "buffer.reads.miss"),
];

/// Returns the new name of a metric that was renamed before the first release. `old` may also be the last part of a
/// metric, a key of a summary: then the new key is returned.
pub fn new_name(old: &str) -> Option<String> {
    let moved = old.strip_prefix("cleaning.").map(|rest| format!("gc.{rest}"));
    let path = moved.as_deref().unwrap_or(old);
    let renamed = RENAMED.iter().find(|(known, _)| *known == path).map(|(_, new)| (*new).to_owned());
    let key = |path: &'static str| path.rsplit('.').next().unwrap_or(path);
    let keys = || RENAMED.iter().chain(&[("cleaning", "gc")]).find(|(known, _)| key(known) == old);
    renamed.or(moved).or_else(|| keys().map(|(_, new)| key(new).to_owned()))
}

/// Returns the full name of a metric. `read.latency_us.p99` is short for `requests.read.latency_us.p99`.
pub fn full_name(name: &str) -> String {
    let operation = name.split_once('.').map(|(operation, _)| operation);
    match operation {
        Some("read" | "write" | "trim" | "write_zeroes" | "flush" | "all") => format!("{REQUESTS}{name}"),
        _ => name.to_owned(),
    }
}

/// Returns the shortest name of a metric.
pub fn short_name(path: &str) -> &str {
    path.strip_prefix(REQUESTS).unwrap_or(path)
}

/// Returns the unit of a metric: [`SHARE`] for shares, and an empty text for numbers without a unit.
pub fn unit(path: &str) -> &'static str {
    // A ratio of bytes.
    if path == "write_amplification_bytes" {
        return "";
    }
    let parts = path.split('.');
    let is_share = |part: &str| part.starts_with("share_of_") || SHARES.iter().any(|end| ends_with(part, end));
    parts
        .rev()
        .find_map(|part| if is_share(part) { Some(SHARE) } else { unit_of(part).map(|(_, unit)| unit) })
        .unwrap_or("")
}

/// Returns the end of a key that is its unit, and the unit.
fn unit_of(key: &str) -> Option<(&'static str, &'static str)> {
    UNITS.into_iter().find(|(end, _)| ends_with(key, end))
}

/// Returns `true` if a key is this word, or ends with it after an underscore.
fn ends_with(key: &str, word: &str) -> bool {
    key.strip_suffix(word).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
}

/// Returns the label of a metric, without its unit: `read latency p99`.
pub fn label(path: &str) -> String {
    if let Some((_, label)) = LABELS.iter().find(|(known, _)| *known == path) {
        return (*label).to_owned();
    }
    let parts: Vec<&str> = path.split('.').collect();
    match parts.as_slice() {
        ["requests", "all", rest @ ..] if !rest.is_empty() => format!("{} of all requests", quantity(rest)),
        ["requests", operation, rest @ ..] if !rest.is_empty() => format!("{} {}", words(operation), quantity(rest)),
        parts => quantity(parts),
    }
}

/// Returns the words of a path.
fn quantity(parts: &[&str]) -> String {
    match parts {
        ["attribution", of, part] => format!("latency {}, part {}", word(of), word(part)),
        ["iops" | "mib_per_s"] => "throughput".to_owned(),
        ["demerit_share"] => "demerit, share of the mean".to_owned(),
        parts => parts.iter().map(|part| word(part)).collect::<Vec<_>>().join(" "),
    }
}

/// Returns the words of a key, without its unit.
fn word(key: &str) -> String {
    match key {
        "gc" => return "GC".to_owned(),
        "min" => return "minimum".to_owned(),
        "max" => return "maximum".to_owned(),
        "stddev" => return "standard deviation".to_owned(),
        "p99_9" | "p99_99" => return key.replace('_', "."),
        _ => {}
    }
    let without = unit_of(key)
        .filter(|(end, _)| *end != "per_cpu_s")
        .and_then(|(end, _)| key.strip_suffix(end)?.strip_suffix('_'));
    match without {
        Some(rest) => word(rest),
        None if key == "bytes" => "data".to_owned(),
        None => words(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renamed_metrics_have_a_new_name() {
        let new = |old| new_name(old).unwrap_or_default();
        assert_eq!(new("cleaning.efficiency"), "gc.efficiency");
        assert_eq!([new("cleaning.stock_blocks"), new("gc.stock_blocks")], ["gc.free_blocks"; 2]);
        assert_eq!(new_name("gc.efficiency"), None);
    }

    #[test]
    fn labels_are_words_without_units() {
        for (path, expected) in [
            ("requests.read.latency_us.p99", "read latency p99, us"),
            ("requests.write_zeroes.latency_us.p99_9", "write zeroes latency p99.9, us"),
            ("requests.all.latency_us.mean", "latency mean of all requests, us"),
            ("requests.read.iops", "read throughput, IOPS"),
            ("requests.read.mib_per_s", "read throughput, MiB/s"),
            ("requests.all.iops", "throughput of all requests, IOPS"),
            ("requests.write.attribution.p99.gc_us", "write latency p99, part GC, us"),
            ("requests.read.bytes", "read data, bytes"),
            ("requests.read.demerit_us", "read demerit, us"),
            ("requests.read.demerit_share", "read demerit, share of the mean, share"),
            ("write_amplification", "write amplification"),
            ("write_amplification_bytes", "write amplification in bytes"),
            ("measured_s", "simulated time, s"),
            ("utilization.channels.data.max", "utilization channels data maximum, share"),
            ("gc.merges.full", "GC merges full"),
            ("energy.total_j", "energy total, J"),
            ("map_cache.hit_ratio", "map cache hit ratio, share"),
            ("run.requests_per_cpu_s", "run requests per cpu s, 1/s"),
        ] {
            let unit = unit(path);
            let shown = if unit.is_empty() { label(path) } else { format!("{}, {unit}", label(path)) };
            assert_eq!(shown, expected, "{path}");
        }
    }

    #[test]
    fn operations_may_start_a_name() {
        assert_eq!(full_name("read.latency_us.p99"), "requests.read.latency_us.p99");
        assert_eq!(full_name("requests.read.iops"), "requests.read.iops");
        assert_eq!(full_name("write_amplification"), "write_amplification");
        assert_eq!(full_name("gc.efficiency"), "gc.efficiency");
        assert_eq!(short_name("requests.read.latency_us.p99"), "read.latency_us.p99");
        assert_eq!(short_name("write_amplification"), "write_amplification");
    }
}
