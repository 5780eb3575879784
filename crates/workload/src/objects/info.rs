//! Profile of an object trace: objects, reuse, sizes and lifetimes.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::access::{Access, Kind};
use super::words::ObjectWords;
use crate::file::Stop;
use crate::quantity::readable;
use crate::sim::source::SourceError;
use crate::sim::time::Time;

/// Profile of an object trace. Sizes are in bytes, times in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ObjectProfile {
    /// Name and version of the format: `floatgate-objects-1`.
    pub schema: String,
    /// Name of the trace.
    pub trace: String,
    /// Number of accesses.
    pub accesses: u64,
    /// Time from the first to the last access.
    pub duration_s: f64,
    /// Reads of objects.
    pub gets: u64,
    /// Writes of objects.
    pub sets: u64,
    /// Removals of objects.
    pub deletes: u64,
    /// Number of different objects.
    pub objects: u64,
    /// Bytes of these objects, with their largest sizes.
    pub bytes: u64,
    /// Share of the reads whose object was accessed before, and not removed since: the hit ratio without a limit of
    /// the capacity. `None` without reads.
    pub unlimited_hit_ratio: Option<f64>,
    /// Share of the objects that are accessed once.
    pub accessed_once: Option<f64>,
    /// Accesses per object.
    pub accesses_per_object: Option<Spread>,
    /// Sizes of the objects. `None` if the trace has none.
    pub size: Option<Spread>,
    /// Time from the first to the last access of an object.
    pub lifetime_s: Option<Spread>,
}

/// Mean and percentiles of a quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of values. `None` if there are none.
    fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let at = |share: f64| values[((share * values.len() as f64).ceil() as usize).saturating_sub(1).min(last)];
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(Spread { mean, p50: at(0.5), p90: at(0.9), p99: at(0.99), max: values[last] })
    }
}

/// Accesses to one object.
#[derive(Clone, Copy, Debug)]
struct Object {
    first: Time,
    last: Time,
    accesses: u64,
    size: u64,
    /// True unless the last access removed the object.
    exists: bool,
}

/// Reads an object trace to its end.
pub fn profile(path: &Path, stop: &Stop) -> Result<ObjectProfile, SourceError> {
    // The size of some formats' blocks is unknown, and 1 byte counts them.
    let text = path.to_string_lossy();
    let mut words = ObjectWords::read("objects=x block=1B")?;
    words.path = path.to_owned();
    let mut accesses = words.open_accesses(stop)?;
    let mut profile = ObjectProfile {
        schema: "floatgate-objects-1".to_owned(),
        trace: text.into_owned(),
        ..ObjectProfile::default()
    };
    let mut objects: BTreeMap<u64, Object> = BTreeMap::new();
    let (mut hits, mut last) = (0u64, Time::ZERO);
    while let Some(Access { at, kind, key, size }) = accesses.next()? {
        profile.accesses += 1;
        last = at;
        let object = objects.entry(key).or_insert(Object { first: at, last: at, accesses: 0, size: 0, exists: false });
        match kind {
            Kind::Get => {
                profile.gets += 1;
                hits += u64::from(object.exists);
            }
            Kind::Set => profile.sets += 1,
            Kind::Delete => profile.deletes += 1,
        }
        object.accesses += u64::from(kind != Kind::Delete);
        object.exists = kind != Kind::Delete;
        object.last = at;
        object.size = object.size.max(size);
    }
    profile.duration_s = last.as_s();
    profile.objects = objects.len() as u64;
    profile.bytes = objects.values().map(|object| object.size).sum();
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    profile.unlimited_hit_ratio = share(hits, profile.gets);
    let once = objects.values().filter(|object| object.accesses == 1).count();
    profile.accessed_once = share(once as u64, profile.objects);
    let spread = |value: fn(&Object) -> f64| Spread::of(objects.values().map(value).collect());
    profile.accesses_per_object = spread(|object| object.accesses as f64);
    profile.size = if accesses.has_sizes() { spread(|object| object.size as f64) } else { None };
    if profile.size.is_none() {
        profile.bytes = 0;
    }
    profile.lifetime_s = spread(|object| object.last.since(object.first).as_s());
    Ok(profile)
}

impl ObjectProfile {
    /// Returns the profile as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Returns the profile as a text.
    pub fn to_text(&self) -> String {
        let percent = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
        let size = |bytes: f64| readable(bytes.round() as u128);
        let spread = |name: &str, values: Option<Spread>, shown: &dyn Fn(f64) -> String| {
            let Some(Spread { mean, p50, p90, p99, max }) = values else { return String::new() };
            let texts = [mean, p50, p90, p99, max].map(shown);
            let [mean, p50, p90, p99, max] = texts;
            format!("{name:<20} mean {mean}, p50 {p50}, p90 {p90}, p99 {p99}, max {max}\n")
        };
        let bytes = if self.size.is_some() { format!(", {}", size(self.bytes as f64)) } else { String::new() };
        format!(
            "{}: object trace, {} accesses in {:.3} s\n\
             {:<20} {} gets, {} sets, {} deletes\n\
             {:<20} {}{bytes}; {} are accessed once\n\
             {:<20} {} without a limit of the capacity\n{}{}{}",
            self.trace,
            self.accesses,
            self.duration_s,
            "operations",
            self.gets,
            self.sets,
            self.deletes,
            "objects",
            self.objects,
            percent(self.accessed_once),
            "hit ratio",
            percent(self.unlimited_hit_ratio),
            spread("accesses per object", self.accesses_per_object, &|value| format!("{value:.2}")),
            spread("size", self.size, &size),
            spread("lifetime, s", self.lifetime_s, &|value| format!("{value:.3}")),
        )
    }
}
