//! Timeline of an array: phases of all members, with the channels and planes of one SSD that has the flash of all.

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Ssd, TakeProbed};
use floatgate_core::timeline::{CoreWork, Kind, Lane, Probe, Slice};

use crate::array::SsdArray;

/// Number of channels, planes and so on of the members before a member.
#[derive(Clone, Copy, Default)]
struct Before {
    channels: u32,
    planes: u32,
    blocks: u32,
    units: u32,
    cores: u32,
}

impl Before {
    /// Adds a member.
    fn and(self, config: &DeviceConfig) -> Before {
        let units = config.total_blocks().wrapping_mul(config.units_per_block());
        Before {
            channels: self.channels + config.geometry.channels,
            planes: self.planes + config.physical_planes(),
            blocks: self.blocks + config.total_blocks(),
            units: self.units.wrapping_add(units),
            cores: self.cores + config.controller.firmware.as_ref().map_or(0, |firmware| firmware.cores),
        }
    }

    /// Returns a phase of a member as a phase of the array. The request is that to the member, so it is left out.
    fn slice(self, slice: &Slice) -> Slice {
        let lane = match slice.lane {
            Lane::Channel(channel) => Lane::Channel(channel + self.channels),
            Lane::Plane(plane) => Lane::Plane(plane + self.planes),
        };
        let first = if slice.kind == Kind::Erase { self.blocks } else { self.units };
        Slice { lane, plane: slice.plane + self.planes, ppn: slice.ppn.wrapping_add(first), tag: u64::MAX, ..*slice }
    }

    /// Returns the work of a member's core as work of a core of the array.
    fn work(self, work: &CoreWork) -> CoreWork {
        let plane = if work.plane == u32::MAX { u32::MAX } else { work.plane + self.planes };
        CoreWork { core: work.core + self.cores, plane, tag: u64::MAX, ..*work }
    }
}

impl SsdArray {
    /// Attaches a probe to each member.
    pub fn set_probe(&mut self, probe: Option<&Probe>) {
        self.members.iter_mut().for_each(|member| member.device.array_mut().set_probe(probe.cloned()));
    }

    /// Passes on what the probes of the members have recorded.
    pub(crate) fn drain_probes(&mut self, now: Time, take: TakeProbed<'_>) -> Result<(), String> {
        let mut before = Before::default();
        for member in &mut self.members {
            Ssd::drain_probe(&mut member.device, now, &mut |slices, works| {
                let slices: Vec<Slice> = slices.iter().map(|slice| before.slice(slice)).collect();
                let works: Vec<CoreWork> = works.iter().map(|work| before.work(work)).collect();
                take(&slices, &works)
            })?;
            before = before.and(member.device.config());
        }
        Ok(())
    }
}
