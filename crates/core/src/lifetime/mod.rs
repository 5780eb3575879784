//! Lifetime of a device: repeats workloads in functional mode, without time, until the device is worn out.

mod result;

use std::fmt;
use std::str::FromStr;

use crate::config::{DeviceConfig, WearOut};
use crate::device::Device;
use crate::ftl::allocation::AllocationConfig;
use crate::metrics::counters::Counters;
use crate::precondition::{ends_by_time_alone, serve_all};
use crate::sim::id::PlaneId;
use crate::sim::source::{Source, SourceError};
pub use result::{Expiry, Lifetime, RemainingLife};

/// Event that ends a lifetime.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Until {
    /// The good blocks can no longer hold all data of the host.
    WornOut,
    /// A block has to be erased beyond its endurance.
    FirstExpiry,
    /// The device has erased this number of blocks.
    Erases(u64),
    /// The host has written its capacity this number of times.
    DriveWrites(f64),
}

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Until, String> {
        let number = |name| text.strip_prefix(name);
        let erases = number("erases=").and_then(|n| n.parse().ok()).filter(|n| *n > 0).map(Until::Erases);
        let writes = number("drive-writes=").and_then(|n| n.parse().ok());
        let writes = writes.filter(|n: &f64| n.is_finite() && *n > 0.0).map(Until::DriveWrites);
        match text {
            "worn-out" => Ok(Until::WornOut),
            "first-expiry" => Ok(Until::FirstExpiry),
            _ => erases.or(writes).ok_or_else(|| {
                format!("`{text}`: expected worn-out, first-expiry, erases=N or drive-writes=N, with N above 0")
            }),
        }
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Until::WornOut => f.write_str("worn-out"),
            Until::FirstExpiry => f.write_str("first-expiry"),
            Until::Erases(erases) => write!(f, "erases={erases}"),
            Until::DriveWrites(writes) => write!(f, "drive-writes={writes}"),
        }
    }
}

/// State of the capacity at one point of a lifetime.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Units that the host has written.
    pub host_units: u64,
    /// Number of bad blocks.
    pub bad_blocks: u64,
    /// Units that the good blocks can hold, by the rule for accepting devices, but at most those of the host.
    pub units_held: u64,
}

/// A lifetime that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Lived {
    /// True if the event happened that ends the lifetime.
    pub complete: bool,
    /// True if the good blocks can no longer hold all data of the host. A lifetime also ends then.
    pub is_worn_out: bool,
    /// Number of times that the workload was repeated, including the last, which may be cut off.
    pub repetitions: u32,
    /// Counts since the start of the lifetime.
    pub counters: Counters,
    /// Number of blocks that were erased beyond their endurance, or would have been.
    pub expired: u64,
    /// Units that the host had written at the first of them.
    pub first_expiry: Option<u64>,
    /// Capacity over time, at the start, after each change, and at the end.
    pub capacity: Vec<Point>,
}

/// Number of requests between two progress reports.
const PROGRESS_EVERY: u64 = 4096;

/// Maximum number of points of the capacity. If there are more, every second one is dropped.
const POINTS: usize = 512;

/// Workloads that can be repeated.
pub trait Repeated {
    /// Opens the workloads for a repetition, counted from 0.
    ///
    /// # Errors
    ///
    /// Fails if a workload cannot be opened.
    fn open(&mut self, repetition: u32) -> Result<&mut [Box<dyn Source>], SourceError>;
}

/// Repeats workloads on a device that was preconditioned, until the event `until`, or until the device is worn out.
/// `on_progress` is called with the progress from 0 to 1, and interrupts the lifetime by returning `false`.
///
/// # Errors
///
/// Fails if the event cannot happen on this device or with these workloads, if a workload cannot be read, or if an
/// external policy fails.
pub fn live(
    device: &mut Device,
    workloads: &mut dyn Repeated,
    until: Until,
    on_progress: &mut dyn FnMut(f64) -> bool,
) -> Result<Lived, SourceError> {
    until.check(device.config()).map_err(SourceError)?;
    let before = device.ftl().counters;
    device.ftl_mut().start_life();
    let mut capacity = vec![point(device, &before)];
    let mut complete = false;
    let mut goes_on = true;
    let mut repetitions = 0;
    let mut requests = 0u64;
    while goes_on {
        let written = device.ftl().counters.host_units;
        let sources = workloads.open(repetitions)?;
        if sources.iter().any(|source| ends_by_time_alone(source.as_ref())) {
            let what = "a workload of a lifetime is served without time, so `runtime` cannot end it: give it size, \
                        io_size or number_ios";
            return Err(SourceError(what.to_owned()));
        }
        repetitions += 1;
        serve_all(device, sources, &mut |device, _, _| {
            note_capacity(device, &before, &mut capacity);
            complete = has_happened(device, &before, until);
            goes_on = !complete && !device.ftl().is_worn_out();
            requests += 1;
            if requests.is_multiple_of(PROGRESS_EVERY) {
                device.ftl().fault().map_or(Ok(()), |fault| Err(SourceError(fault.to_string())))?;
                goes_on &= on_progress(progress(device, &before, until));
            }
            Ok(goes_on)
        })?;
        if device.ftl().counters.host_units == written {
            let what = "the workload writes nothing, so it wears nothing out; give a workload with writes";
            return Err(SourceError(what.to_owned()));
        }
    }
    device.ftl().fault().map_or(Ok(()), |fault| Err(SourceError(fault.to_string())))?;
    capacity.push(point(device, &before));
    let life = device.ftl().life.unwrap_or_default();
    Ok(Lived {
        complete,
        is_worn_out: life.is_worn_out,
        repetitions,
        counters: device.ftl().counters.since(&before),
        expired: life.expired,
        first_expiry: life.first_expiry.map(|units| units - before.host_units),
        capacity,
    })
}

impl Until {
    /// Checks that the event can happen on a device.
    ///
    /// # Errors
    ///
    /// The option that rules it out, and a remedy.
    pub fn check(self, config: &DeviceConfig) -> Result<(), String> {
        if config.superblock.is_some() {
            return Err("a lifetime retires single blocks, not superblocks; remove the table superblock".to_owned());
        }
        let needs_expiry = matches!(self, Until::WornOut | Until::FirstExpiry);
        let Some(faults) = &config.faults else {
            return if needs_expiry {
                Err(format!(
                    "{self} needs a device with a table [faults], which may be empty (--set faults.erase_rate=0), \
                     because blocks do not wear out without it"
                ))
            } else {
                Ok(())
            };
        };
        if faults.program_rate > 0.0 {
            return Err("faults.program_rate is not 0, but programs do not fail without time; set it to 0".to_owned());
        }
        if needs_expiry && config.endurance() == 0 {
            return Err(format!("{self}: blocks of this device endure any number of erases; give nand.endurance"));
        }
        if self == Until::WornOut && faults.wear_out == WearOut::Count {
            let what = "worn-out: with faults.wear_out = \"count\", no block is ever retired; give first-expiry or \
                        erases=N";
            return Err(what.to_owned());
        }
        Ok(())
    }
}

/// Returns `true` if the event has happened.
#[inline]
fn has_happened(device: &Device, before: &Counters, until: Until) -> bool {
    let ftl = device.ftl();
    match until {
        Until::WornOut => ftl.is_worn_out(),
        Until::FirstExpiry => ftl.life.is_some_and(|life| life.expired > 0),
        Until::Erases(erases) => ftl.counters.blocks_erased - before.blocks_erased >= erases,
        Until::DriveWrites(writes) => {
            (ftl.counters.host_units - before.host_units) as f64 >= writes * f64::from(ftl.map.len())
        }
    }
}

/// Returns the progress from 0 to 1: of the event, or of the endurance of all blocks together.
fn progress(device: &Device, before: &Counters, until: Until) -> f64 {
    let counters = &device.ftl().counters;
    let erases = (counters.blocks_erased - before.blocks_erased) as f64;
    let share = match until {
        Until::Erases(all) => erases / all as f64,
        Until::DriveWrites(writes) => {
            (counters.host_units - before.host_units) as f64 / (writes * f64::from(device.ftl().map.len()))
        }
        Until::WornOut | Until::FirstExpiry => {
            let config = device.config();
            erases / (f64::from(config.endurance()) * f64::from(config.total_blocks()))
        }
    };
    share.min(1.0)
}

/// Adds a point if the number of bad blocks has changed.
#[inline]
fn note_capacity(device: &Device, before: &Counters, capacity: &mut Vec<Point>) {
    let grown = device.ftl().counters.faults.blocks_grown_bad - before.faults.blocks_grown_bad;
    let known = capacity.last().map_or(0, |point| point.bad_blocks) - capacity[0].bad_blocks;
    if grown != known {
        if capacity.len() == POINTS {
            let mut index = 0;
            capacity.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
        capacity.push(point(device, before));
    }
}

fn point(device: &Device, before: &Counters) -> Point {
    let ftl = device.ftl();
    let planes = || (0..ftl.shape().planes).map(PlaneId);
    let config = device.config();
    let bad_blocks = planes().map(|plane| u64::from(config.geometry.blocks - ftl.blocks.good(plane))).sum();
    let good: Vec<u32> = planes().map(|plane| ftl.blocks.good(plane)).collect();
    if let Some(held) = config.units_of_sets_with(&good) {
        let units_held = held.min(u64::from(ftl.host_units));
        return Point { host_units: ftl.counters.host_units - before.host_units, bad_blocks, units_held };
    }
    let held = good.into_iter().map(|good| config.units_of_a_plane_with(good));
    // With static allocation, each plane holds the same share of the data.
    let held = match config.allocation {
        AllocationConfig::Dynamic(_) => held.sum(),
        _ => held.min().unwrap_or(0) * u64::from(ftl.shape().planes),
    };
    Point {
        host_units: ftl.counters.host_units - before.host_units,
        bad_blocks,
        units_held: held.min(u64::from(ftl.host_units)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_parse_back_from_their_text() {
        for text in ["worn-out", "first-expiry", "erases=101170", "drive-writes=2.5"] {
            assert_eq!(text.parse::<Until>().map(|until| until.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "worn", "erases=0", "erases=-1", "drive-writes=0", "drive-writes=inf", "drive-writes=x"] {
            let error = text.parse::<Until>().expect_err(text);
            assert!(error.contains("expected worn-out"), "{error}");
        }
    }
}
