//! An SSD that is run or served: a single one, or an array.

use std::io::Write;
use std::ops::{Deref, DerefMut};

use floatgate_core::device_file::{DeviceConfig, InjectedFault};
use floatgate_core::flash::Block;
use floatgate_core::saved_state::StateError;
use floatgate_core::sim::id::PlaneId;
use floatgate_core::sim::source::Source;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Outcome, RunError, RunOptions, Ssd, Watcher, replay, run_with};
use floatgate_core::summary::Precondition;
use floatgate_core::timeline::Probe;

use crate::SsdArray;

/// Single SSD or array. It dereferences to the interface that both kinds have.
#[derive(Clone)]
pub enum AnySsd {
    /// Single SSD.
    Device(Box<Device>),
    /// Array, with an SSD that has the flash of all members.
    Array(Box<SsdArray>, Box<DeviceConfig>),
}

impl From<Device> for AnySsd {
    fn from(device: Device) -> AnySsd {
        AnySsd::Device(Box::new(device))
    }
}

impl From<SsdArray> for AnySsd {
    fn from(array: SsdArray) -> AnySsd {
        let config = Box::new(array.config().as_one_ssd());
        AnySsd::Array(Box::new(array), config)
    }
}

impl Deref for AnySsd {
    type Target = dyn Ssd;

    fn deref(&self) -> &Self::Target {
        match self {
            AnySsd::Device(device) => &**device,
            AnySsd::Array(array, _) => &**array,
        }
    }
}

impl DerefMut for AnySsd {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            AnySsd::Device(device) => &mut **device,
            AnySsd::Array(array, _) => &mut **array,
        }
    }
}

impl AnySsd {
    /// Returns the single SSD, or `None` for an array.
    pub fn into_device(self) -> Option<Device> {
        match self {
            AnySsd::Device(device) => Some(*device),
            AnySsd::Array(..) => None,
        }
    }

    /// Writes the state of an idle SSD: see [`Device::save`] and [`SsdArray::save`].
    pub fn save(&self, precondition: &Precondition, out: impl Write) -> Result<(), StateError> {
        match self {
            AnySsd::Device(device) => device.save(precondition, out),
            AnySsd::Array(array, _) => array.save(precondition, out),
        }
    }

    /// Returns the configuration. For an array: an SSD with the flash of all members.
    pub fn config(&self) -> &DeviceConfig {
        match self {
            AnySsd::Device(device) => device.config(),
            AnySsd::Array(_, config) => config,
        }
    }

    /// Returns the devices: one, or the members.
    pub fn devices(&self) -> impl Iterator<Item = &Device> {
        let count = match self {
            AnySsd::Device(_) => 1,
            AnySsd::Array(array, _) => array.config().members.len(),
        };
        (0..count).map(move |number| match self {
            AnySsd::Device(device) => &**device,
            AnySsd::Array(array, _) => array.member(number),
        })
    }

    /// Returns the LUN of each plane. Those of members follow each other.
    pub fn luns(&self) -> Vec<u32> {
        let mut luns = Vec::new();
        for device in self.devices() {
            let before = luns.iter().max().map_or(0, |lun| lun + 1);
            let (planes, together) = (device.config().physical_planes(), device.config().planes_together());
            luns.extend((0..planes).map(|plane| before + device.array().lun_of(PlaneId(plane / together)).0));
        }
        luns
    }

    /// Attaches a probe.
    pub fn set_probe(&mut self, probe: Option<Probe>) {
        match self {
            AnySsd::Device(device) => device.array_mut().set_probe(probe),
            AnySsd::Array(array, _) => array.set_probe(probe.as_ref()),
        }
    }

    /// Runs the sources.
    pub fn run(
        &mut self,
        sources: &mut [Box<dyn Source>],
        watcher: &mut dyn Watcher,
        options: RunOptions,
    ) -> Result<Outcome, RunError> {
        match self {
            AnySsd::Device(device) => run_with(device, sources, watcher, options),
            AnySsd::Array(array, _) => replay(array.as_mut(), sources, watcher, options),
        }
    }

    /// Returns `true` if nothing is left to do.
    pub fn is_idle(&self) -> bool {
        match self {
            AnySsd::Device(device) => device.is_idle(),
            AnySsd::Array(array, _) => array.is_idle(),
        }
    }

    /// Returns `true` if the blocks of all devices are those of one SSD.
    pub fn is_uniform(&self) -> bool {
        match self {
            AnySsd::Device(_) => true,
            AnySsd::Array(array, _) => array.config().is_uniform(),
        }
    }

    /// Returns `true` if replies can be timed: a single SSD has to record latency breakdowns.
    pub fn is_timed(&self) -> bool {
        matches!(self, AnySsd::Array(..)) || self.attributes()
    }

    /// Returns the number of bytes that a TRIM drops together: a mapping unit, or a stripe with parity.
    pub fn trim_bytes(&self) -> u64 {
        match self {
            AnySsd::Device(device) => device.config().unit_bytes(),
            AnySsd::Array(array, _) => array.config().trim_bytes(),
        }
    }

    /// Returns the time at which a device became read-only, if one did.
    pub fn read_only_since(&self) -> Option<Time> {
        self.devices().filter_map(|device| device.ftl().read_only_since()).min()
    }

    /// Returns the number of operations that can be executed at once.
    pub fn units(&self) -> usize {
        self.devices().map(|device| device.array().units() as usize).sum()
    }

    /// Returns the number of trimmed units whose records are not in flash. `None` if trims are never recorded.
    pub fn trims_in_memory(&self) -> Option<u64> {
        self.devices().map(Device::trims_in_memory).sum()
    }

    /// Makes the next operation of a kind at a location fail: see [`Device::fail_next`].
    pub fn fail_next(&mut self, place: InjectedFault) -> Result<(), String> {
        match self {
            AnySsd::Device(device) => device.fail_next(place),
            AnySsd::Array(..) => {
                let instead = "set member.faults.inject in the array file, or serve one of its members";
                Err(format!("operations of the members of an array cannot be made to fail; {instead}"))
            }
        }
    }

    /// Appends the states of at most `count` blocks, starting at `first`, and their kinds (`KeptBlock::kind`) if the
    /// mapping scheme has log blocks. Blocks of members follow each other.
    pub fn copy_blocks(&self, mut first: usize, count: usize, into: &mut Vec<Block>, kinds: &mut Vec<u8>) {
        for device in self.devices() {
            let blocks = device.ftl().blocks.all();
            let (start, left) = (first.min(blocks.len()), count - into.len());
            let end = blocks.len().min(start + left);
            into.extend_from_slice(&blocks[start..end]);
            if !device.config().log_kinds().is_empty() {
                let before = kinds.len();
                kinds.resize(before + end - start, 0);
                device.ftl().scheme().blocks(device.ftl(), &mut |kept| {
                    if let Some(index) = kept.block.index().checked_sub(start).filter(|index| *index < end - start) {
                        kinds[before + index] = kept.kind;
                    }
                });
            }
            first -= start;
        }
    }

    /// Test hook: checks the invariants.
    pub fn check_invariants(&self) -> Result<(), String> {
        match self {
            AnySsd::Device(device) => device.check_invariants(),
            AnySsd::Array(array, _) => array.check_invariants(),
        }
    }
}
