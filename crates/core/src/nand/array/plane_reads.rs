//! Planes of a die that read independently: an execution unit for each of them, in addition to that of the die, which
//! programs and erases in all planes. See docs/model/planes.md.
//!
//! The unit of the die is also the one that is queued for the channel to start a command. The LUN may therefore be
//! [`LunState::Requesting`] while its planes read.

use std::ops::Range;

use super::{Array, LunState, Phase};
use crate::sim::id::{ExecUnitId, LunId, PlaneId};
use crate::sim::time::Time;

impl Array {
    /// Returns `true` if a unit is that of a plane that reads independently.
    #[inline]
    pub fn reads_in_plane(&self, unit: ExecUnitId) -> bool {
        unit.0 >= self.first_reading
    }

    /// Returns the units of the planes of a LUN that read independently; none if none do.
    #[inline]
    pub fn reading_units(&self, lun: LunId) -> Range<u32> {
        let first = self.luns.len() as u32 + lun.0 * self.reading_planes;
        first..first + self.reading_planes
    }

    /// Returns `true` if a unit executes no operation.
    #[inline]
    pub fn unit_is_idle(&self, unit: ExecUnitId) -> bool {
        self.units[unit].phase == Phase::Idle
    }

    /// Returns `true` if some units of a LUN work.
    #[inline]
    pub fn is_at_work(&self, lun: LunId) -> bool {
        self.luns[lun].active > 0
    }

    /// Returns `true` if a LUN takes reads of idle planes while other planes read.
    #[inline]
    pub fn takes_reads(&self, lun: LunId) -> bool {
        self.reading_planes > 0 && self.state(lun) == LunState::Busy && self.unit_is_idle(ExecUnitId(lun.0))
    }

    /// Continues the wait of a LUN for its channel after its last read has ended. Returns `true` if it waits.
    pub fn still_requests(&mut self, lun: LunId, now: Time) -> bool {
        let requests = self.state(lun) == LunState::Requesting;
        if requests && self.is_watched() && !self.is_at_work(lun) {
            self.show_enqueue(ExecUnitId(lun.0), now);
        }
        requests
    }

    /// Returns `true` if a unit is queued for its channel to start a read in a LUN at work. The busy-time accounting
    /// then counts the time of the LUN for the operations at work.
    pub(super) fn requests_at_work(&self, unit: ExecUnitId) -> bool {
        let lun = self.lun_of_unit(unit);
        self.reading_planes > 0
            && !self.reads_in_plane(unit)
            && self.state(lun) == LunState::Requesting
            && self.is_at_work(lun)
    }

    /// Returns the index in [`Array::die_time`] for the operations of a unit.
    #[inline]
    pub(super) fn place_of_time(&self, unit: ExecUnitId, plane: PlaneId) -> usize {
        self.die_of(plane) + usize::from(self.reads_in_plane(unit)) * (self.die_time.len() / 2)
    }

    /// Adds the times of the reads of planes to those of the dies, which count for each plane.
    pub(super) fn add_plane_reads(&self, dies: &mut Vec<[i64; 2]>) {
        if self.reading_planes == 0 {
            return;
        }
        let planes = i64::from(self.reading_planes);
        let reads = dies.split_off(dies.len() / 2);
        for (die, read) in dies.iter_mut().zip(reads) {
            *die = [die[0] * planes + read[0], die[1] * planes + read[1]];
        }
    }

    /// Returns the number of the plane of an operation of a unit, with each plane counted by itself. For a program or
    /// an erase of several planes, this is the first one.
    pub fn physical_plane(&self, unit: ExecUnitId, plane: PlaneId) -> u32 {
        if self.reading_planes == 0 { plane.0 } else { self.physical_planes(unit).start }
    }

    /// Returns the planes that a unit works in, with each plane counted by itself.
    pub(super) fn physical_planes(&self, unit: ExecUnitId) -> Range<u32> {
        if self.reading_planes == 0 {
            return self.planes_of_unit(unit);
        }
        if self.reads_in_plane(unit) {
            let row = unit.0 - self.first_reading;
            return row..row + 1;
        }
        unit.0 * self.reading_planes..(unit.0 + 1) * self.reading_planes
    }
}
