//! Layouts: write the data that a workload reads before writing it, so that such reads find data in flash.

use super::jobs::check_ends_of;
use super::{OnProgress, PROGRESS_EVERY, Reached, STOPPED};
use crate::device::Device;
use crate::ftl::allocation::{LevelOrder, Order};
use crate::ftl::mapping::Location;
use crate::sim::id::{Lpn, PlaneId};
use crate::sim::request::{Operation, Request};
use crate::sim::source::{Source, SourceError};

/// Layout of the data that a workload reads before writing it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prewrite {
    /// No data: the controller completes such reads without flash.
    #[default]
    None,
    /// A page for each plane in turn, over channels first, then chips, dies and planes (Hu et al. 2013, Section 4.2:
    /// "stored evenly among all the chips of all the channels").
    Even,
    /// Placement as if the host had written the data, in ascending address order.
    Allocation,
}

impl std::str::FromStr for Prewrite {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Prewrite::None),
            "even" => Ok(Prewrite::Even),
            "allocation" => Ok(Prewrite::Allocation),
            _ => Err(format!("invalid value `{text}`: expected none, even or allocation")),
        }
    }
}

impl std::fmt::Display for Prewrite {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Prewrite::None => "none",
            Prewrite::Even => "even",
            Prewrite::Allocation => "allocation",
        })
    }
}

impl Prewrite {
    /// Fails if only simulated time can end one of the sources.
    pub fn check_ends(sources: &[Box<dyn Source>]) -> Result<(), SourceError> {
        check_ends_of(sources, "prewriting reads the workload without simulating time")
    }

    /// Writes units of a device that are unmapped. Returns their number, and updates `reached`.
    pub fn write_missing(self, device: &mut Device, missing: &UnitSet, reached: &mut Reached) -> Result<u64, String> {
        let units = device.ftl().map.len();
        let absent: Vec<u32> = (0..units).filter(|&unit| missing.contains(unit)).collect();
        match self {
            Prewrite::None => {}
            Prewrite::Even => prewrite_evenly(device, &absent)?,
            Prewrite::Allocation => absent.iter().for_each(|&unit| device.ftl_mut().write_whole(Lpn(unit))),
        }
        let ftl = device.ftl_mut();
        ftl.seal();
        reached.mapped += absent.len() as f64 / f64::from(units);
        Ok(absent.len() as u64)
    }
}

/// Set of mapping units, one bit per unit.
#[derive(Clone, Debug)]
pub struct UnitSet(Vec<u64>);

impl UnitSet {
    /// Creates an empty set for a device with `units` mapping units.
    pub fn new(units: u32) -> UnitSet {
        UnitSet(vec![0; units.div_ceil(64) as usize])
    }

    /// Adds a unit.
    pub fn insert(&mut self, unit: u32) {
        self.0[(unit / 64) as usize] |= 1 << (unit % 64);
    }

    /// Returns `true` if the set has a unit.
    pub fn contains(&self, unit: u32) -> bool {
        self.0[(unit / 64) as usize] >> (unit % 64) & 1 == 1
    }
}

/// Reads all requests of the workload and writes the unmapped units that a source reads before it writes, trims or
/// zeroes any part of them. Returns the number of these units, and updates `reached`. Requests outside the device are
/// ignored here.
pub fn prewrite(
    device: &mut Device,
    sources: &mut [Box<dyn Source>],
    how: Prewrite,
    reached: &mut Reached,
    on_progress: OnProgress,
) -> Result<u64, SourceError> {
    if how == Prewrite::None {
        return Ok(0);
    }
    Prewrite::check_ends(sources)?;
    let mut missing = UnitSet::new(device.ftl().map.len());
    for source in sources {
        find_missing(device, source.as_mut(), &mut missing, on_progress)?;
    }
    how.write_missing(device, &missing, reached).map_err(SourceError)
}

/// Adds the units that a source reads, that it has not written before, and that are unmapped.
fn find_missing(
    device: &Device,
    source: &mut dyn Source,
    missing: &mut UnitSet,
    on_progress: OnProgress,
) -> Result<(), SourceError> {
    let mut written = UnitSet::new(device.ftl().map.len());
    let mut work = 0u64;
    while let Some(request) = source.next_request()? {
        work += request.work();
        if work >= PROGRESS_EVERY {
            work = 0;
            if !on_progress(source.progress().unwrap_or(0.0)) {
                return Err(SourceError(STOPPED.to_owned()));
            }
        }
        for unit in units_of(device, &request) {
            match request.operation {
                Operation::Read if written.contains(unit) => {}
                Operation::Read if device.ftl().map.get(Lpn(unit)) == Location::Unmapped => missing.insert(unit),
                Operation::Read | Operation::Flush => {}
                Operation::Write | Operation::Trim | Operation::WriteZeroes => written.insert(unit),
            }
        }
    }
    Ok(())
}

/// Returns the units of a request, or an empty range if the request is outside the device.
fn units_of(device: &Device, request: &Request) -> std::ops::Range<u32> {
    let per_unit = u64::from(device.config().sectors_per_unit());
    match request.lba.checked_add(u64::from(request.sectors)) {
        Some(end) if end <= device.sectors() && request.sectors > 0 => {
            (request.lba / per_unit) as u32..end.div_ceil(per_unit) as u32
        }
        _ => 0..0,
    }
}

/// Writes units page by page to all planes in turn. Fails if a plane then has no room for the data that it must be able
/// to hold.
fn prewrite_evenly(device: &mut Device, units: &[u32]) -> Result<(), String> {
    let order = Order::new(device.config(), LevelOrder::default());
    let per_page = device.config().units_per_page();
    let place = |index: usize| order.plane(index as u32 / per_page);
    let spare = device.config().units_to_spare();
    if device.config().merges_blocks() {
        let what = "even prewriting spreads pages over all planes, but this mapping scheme keeps logical blocks together: \
                    use `allocation`";
        return Err(what.to_owned());
    }
    if device.config().superblock.is_some() {
        let what = "even prewriting spreads pages over all planes, but superblocks have parity in some of them: use \
                    `allocation`";
        return Err(what.to_owned());
    }
    let ftl = device.ftl_mut();
    // Number of units in each plane for which the allocation has reserved room elsewhere.
    let mut guests = vec![0u64; order.len() as usize];
    for (index, &unit) in units.iter().enumerate() {
        let plane: PlaneId = place(index);
        let at_home = match ftl.home(Lpn(unit)) {
            Some(home) => home == plane,
            None => ftl.pool(Lpn(unit)) == ftl.allocation.pool_of(plane),
        };
        guests[plane.index()] += u64::from(!at_home);
    }
    if let Some(most) = guests.into_iter().max().filter(|&most| most > spare) {
        return Err(format!(
            "even prewriting puts {most} units into a plane to which they are not allocated, but a full device has room \
             for {spare} of them; give the device more over-provisioning, or use `allocation`"
        ));
    }
    for (index, &unit) in units.iter().enumerate() {
        ftl.write_to(place(index), Lpn(unit));
    }
    Ok(())
}
