//! Recovery of an array after a power cut: copies and parity are compared with the data, and corrected.
//!
//! A power cut between the writes of one stripe leaves copies that differ, or parity that does not agree with the data.
//! Stripes are compared one after the other. A stripe is locked during its comparison.

use floatgate_core::flash::Place;
use floatgate_core::sim::id::{Lpn, RequestId};
use floatgate_core::sim::request::{Operation, SECTOR};
use floatgate_core::simulation::Device;

use crate::array::{Options, Purpose, SsdArray};
use crate::config::ArrayConfig;
use crate::operation::{Kind, Phase, Segment, StripeOp};
use crate::timers::Timer;

impl SsdArray {
    /// Creates an array of existing members, such as members that were recovered. The controller is in its initial
    /// state. The clock is that of the members.
    pub fn of_members(config: ArrayConfig, options: Options, members: Vec<Device>) -> SsdArray {
        SsdArray::of(config, options, members)
    }

    /// Restarts the array with members that were recovered after a power cut. Everything in the controller is lost.
    pub fn restart(&mut self, members: Vec<Device>) {
        let contents = self.contents.take().and_then(|contents| contents.take_attached());
        *self = SsdArray::of(self.config.clone(), self.options.clone(), members);
        if let Some(payload) = contents {
            self.attach(payload);
        }
    }

    /// Starts to compare these stripes, in the order of the list.
    pub fn resync(&mut self, mut rows: Vec<u64>) {
        rows.reverse();
        self.resyncing = (!rows.is_empty()).then_some(rows);
        if self.resyncing.is_some() && !self.is_recovering() {
            self.timers.set(self.now, Timer::Resync);
        }
    }

    /// Returns the stripes with data on a member.
    pub fn used_rows(&self) -> Vec<u64> {
        let bytes = u64::from(self.layout.chunk()) * SECTOR;
        let is_used = |row: &u64| {
            self.members.iter().any(|member| {
                let units = bytes / member.device.config().unit_bytes();
                (row * units..(row + 1) * units).any(|unit| member.device.place_of(Lpn(unit as u32)) != Place::Nothing)
            })
        };
        (0..self.layout.rows()).filter(is_used).collect()
    }

    /// Returns the number of stripes that remain to be compared.
    pub fn stripes_to_resync(&self) -> usize {
        self.resyncing.as_ref().map_or(0, Vec::len)
    }

    /// Compares the next stripe.
    pub(crate) fn resync_next(&mut self) {
        let Some(&row) = self.resyncing.as_ref().and_then(|rows| rows.last()) else { return };
        self.begin(StripeOp::new(RequestId::NONE, Kind::Resync, Segment::whole(&self.layout, row), self.now));
    }

    /// Reads all chunks of a range of a stripe, also the redundant ones.
    pub(crate) fn read_all(&mut self, id: u32) {
        self.enter_phase(id, Phase::Reading);
        let row = self.operations[id].row;
        for member in (0..self.layout.members()).filter(|member| self.is_alive(*member, row)).collect::<Vec<_>>() {
            self.read_from(id, member, Purpose::Rebuild);
        }
    }

    /// Corrects the copies and the parity of a stripe that do not agree with its data.
    pub(crate) fn write_resynced(&mut self, id: u32) {
        self.enter_phase(id, Phase::Writing);
        let row = self.operations[id].row;
        let alive = (0..self.layout.members()).filter(|member| self.is_alive(*member, row));
        let wrong: Vec<u32> = alive.filter(|member| !self.agrees(id, *member)).collect();
        self.counts.resynced += u64::from(!wrong.is_empty());
        for &member in &wrong {
            self.next_serial();
            self.store_rebuilt(id, member);
            self.issue_part(id, member, Operation::Write, Purpose::Rebuild);
        }
        if wrong.is_empty() {
            self.end(id);
        }
    }

    /// Notes that a stripe agrees, and sets the time of the next one.
    pub(crate) fn resynced(&mut self) {
        let Some(rows) = &mut self.resyncing else { return };
        rows.pop();
        if rows.is_empty() { self.resyncing = None } else { self.timers.set(self.now, Timer::Resync) }
    }
}
