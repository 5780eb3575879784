//! Conversion of a model to a job in fio syntax. Properties that a job cannot express are lost, and the comparison of
//! the moments shows the effect.

use std::fmt::Write;

use super::{Model, OperationModel};
use crate::sim::source::SourceError;

/// Converts a model to the keys and values of a job. Errors name operations that a job cannot perform.
pub fn words(model: &Model) -> Result<Vec<(&'static str, String)>, SourceError> {
    let of = |name: &str| model.operations.iter().find(|one| one.operation == name && one.weight > 0);
    let (reads, writes) = (of("read"), of("write"));
    if let Some(other) = model.operations.iter().find(|one| !["read", "write"].contains(&one.operation.as_str())) {
        return Err(SourceError(format!(
            "a job cannot mix {}s with reads and writes; write the model as JSON instead (-o FILE.json)",
            other.operation.replace('_', " ")
        )));
    }
    let rw = match (reads, writes) {
        (Some(_), Some(_)) => "randrw",
        (None, _) => "randwrite",
        (_, None) => "randread",
    };
    let mut words = vec![("rw", rw.to_owned())];
    if let (Some(reads), Some(writes)) = (reads, writes) {
        let share = 100.0 * reads.weight as f64 / (reads.weight + writes.weight) as f64;
        words.push(("rwmixread", format!("{}", share.round())));
    }
    let both: Vec<&OperationModel> = [reads, writes].into_iter().flatten().collect();
    let joined = |texts: Vec<String>| texts.join(",");
    words.push(("bssplit", joined(both.iter().map(|one| split(&one.sizes)).collect())));
    if let Some(end) = model.end() {
        words.push(("size", format!("{}k", end * 512 / 1024)));
    }
    words.push(("blockalign", "4k".to_owned()));
    words.push(("random_distribution", format!("zoned:{}", joined(both.iter().map(|one| zones(one)).collect()))));
    let weight: f64 = model.arrivals.gaps.iter().map(|gap| gap.weight).sum();
    let mean = model.arrivals.gaps.iter().map(|gap| gap.weight * gap.mean_ps).sum::<f64>() / weight;
    let rate = |share: f64| if mean > 0.0 { (share * 1e12 / mean).round().clamp(1.0, 1e12) } else { 1e12 };
    // A mixed job has a rate for each direction, as in fio.
    let weights: u64 = both.iter().map(|one| one.weight).sum();
    let rates = joined(both.iter().map(|one| rate(one.weight as f64 / weights as f64).to_string()).collect());
    words.push(("rate_iops", rates));
    words.push(("rate_process", "poisson".to_owned()));
    // Prevents the size of the region from ending the job before all requests are issued.
    let largest = both.iter().flat_map(|one| &one.sizes).map(|(sectors, _)| u64::from(*sectors)).max().unwrap_or(1);
    words.push(("io_size", format!("{}k", model.requests.saturating_mul(largest) / 2 + 1)));
    words.push(("number_ios", model.requests.to_string()));
    Ok(words)
}

/// Formats the keys in one line.
pub fn line(words: &[(&'static str, String)]) -> String {
    words.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

/// Formats the keys as a job file.
pub fn file(words: &[(&'static str, String)], name: &str, source: &str) -> String {
    // With the default engine of fio, requests would wait for each other.
    let mut text = format!("; {source}\n[{name}]\nioengine=libaio\n");
    for (key, value) in words {
        let _ = writeln!(text, "{key}={value}");
    }
    text
}

/// Returns whole percentages in proportion to weights that add up to 100, by the largest remainder method.
fn percentages(weights: &[f64]) -> Vec<u32> {
    let total: f64 = weights.iter().sum();
    let exact: Vec<f64> = weights.iter().map(|weight| 100.0 * weight / total).collect();
    let mut whole: Vec<u32> = exact.iter().map(|percent| percent.floor() as u32).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|a, b| exact[*b].fract().total_cmp(&exact[*a].fract()).then(a.cmp(b)));
    let missing = 100 - whole.iter().sum::<u32>().min(100);
    order.iter().cycle().take(missing as usize).for_each(|index| whole[*index] += 1);
    whole
}

/// Returns `bssplit` with the sizes of at least one percent, and the mean of all others.
fn split(sizes: &[(u32, u64)]) -> String {
    let total: u64 = sizes.iter().map(|(_, weight)| weight).sum();
    let is_common = |(_, weight): &(u32, u64)| weight * 100 >= total;
    let (common, rare): (Vec<_>, Vec<_>) = sizes.iter().copied().partition(is_common);
    let mut parts: Vec<(u64, f64)> =
        common.iter().map(|(sectors, weight)| (u64::from(*sectors), *weight as f64)).collect();
    let weight: f64 = rare.iter().map(|(_, weight)| *weight as f64).sum();
    if weight > 0.0 {
        let sectors: f64 = rare.iter().map(|(sectors, weight)| f64::from(*sectors) * *weight as f64).sum();
        parts.push((((sectors / weight).round() as u64).max(1), weight));
    }
    let percents = percentages(&parts.iter().map(|(_, weight)| *weight).collect::<Vec<_>>());
    let text = |((sectors, _), percent): (&(u64, f64), u32)| format!("{}/{percent}", sectors * 512);
    parts.iter().zip(percents).filter(|(_, percent)| *percent > 0).map(text).collect::<Vec<_>>().join(":")
}

/// Returns the zones of an operation, in whole percentages of the requests and of the region.
fn zones(one: &OperationModel) -> String {
    let access = percentages(&one.zones.iter().map(|zone| zone.weight).collect::<Vec<_>>());
    let parts = percentages(&one.zones.iter().map(|zone| zone.part).collect::<Vec<_>>());
    let zones = access.iter().zip(&parts).filter(|(_, part)| **part > 0);
    zones.map(|(access, part)| format!("{access}/{part}")).collect::<Vec<_>>().join(":")
}
