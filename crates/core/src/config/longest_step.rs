//! Longest step: a bound on the time of any single operation, transfer or delay, for checks that a run progresses.

use super::{DeviceConfig, Direction};
use crate::sim::request::SECTOR;
use crate::sim::time::{Time, transfer_time};

impl DeviceConfig {
    /// Returns a time that no single flash operation, transfer or delay exceeds, if requests have at most `sectors`
    /// sectors: the sum of all of them.
    pub fn longest_step(&self, sectors: u32) -> Time {
        let bytes = u64::from(sectors) * SECTOR;
        let units = bytes.div_ceil(self.unit_bytes()) + 1;
        let times = [self.longest_operation(), self.longest_transfer(bytes), self.longest_delay(units)];
        times.into_iter().fold(Time::ZERO, Time::later)
    }

    /// Returns the sum of the times of a read, a program and an erase, with their transfers on the channel.
    fn longest_operation(&self) -> Time {
        let nand = &self.nand;
        let slc = nand.slc_mode.iter().flat_map(|mode| [mode.read, mode.program]);
        let cells = nand.read.values().into_iter().chain(nand.program.values()).chain(slc).chain([nand.erase]);
        let suspend = &nand.advanced.suspend;
        let bus = [Some(self.bus.way_switch), Some(self.bus.channel_switch), self.bus.channel_switch_read];
        let times = cells.chain([suspend.latency, suspend.resume]).chain(bus.into_iter().flatten());
        let pages = u64::from(self.pages_per_program()) + 1;
        let data = |direction| Time(self.data_time(self.page_bytes(), direction).0.saturating_mul(pages));
        let cycles = self.bus.command_cycles;
        let commands = self.command_time(cycles.read + cycles.program + cycles.erase);
        let alone = times
            .fold(commands.later(data(Direction::In)).later(data(Direction::Out)), |sum, time| sum.later(time.time()));
        // All execution units may wait for the power of one another.
        let units = self.total_planes() / self.planes_per_unit();
        let turns = self.controller.power_cap.map_or(1, |cap| units.div_ceil(cap.max(1)) + 1);
        Time(alone.0.saturating_mul(turns.into()))
    }

    /// Returns the sum of the times of `bytes` on the host link and at the memory of the buffer.
    fn longest_transfer(&self, bytes: u64) -> Time {
        let link = self.host.link_bandwidth.map_or(Time::ZERO, |bandwidth| transfer_time(bytes, bandwidth.0));
        let buffer = self.active_buffer();
        let memory = buffer.and_then(|buffer| buffer.bandwidth);
        let memory = memory.map_or(Time::ZERO, |bandwidth| transfer_time(bytes + self.page_bytes(), bandwidth.0));
        let latency = buffer.map_or(Time::ZERO, |buffer| buffer.latency.time());
        link.later(memory).later(latency).later(self.host.link_latency.time()).later(self.host.software.time())
    }

    /// Returns the sum of the delays of a request of `units` mapping units by the controller.
    fn longest_delay(&self, units: u64) -> Time {
        let by_unit = |time: Time| Time(time.0.saturating_mul(units));
        let throttle = self.gc.throttle.as_ref().map_or(Time::ZERO, |throttle| by_unit(throttle.delay.time()));
        let firmware = self.controller.firmware.as_ref().map_or(Time::ZERO, |firmware| {
            let costs = [firmware.interrupt, firmware.lookup, firmware.allocation, firmware.gc, firmware.buffer];
            by_unit(costs.into_iter().fold(Time::ZERO, |sum, cost| sum.later(cost.time(firmware.clock))))
        });
        let decoding = self.errors.as_ref().map_or(Time::ZERO, |errors| errors.ecc.decode.time());
        let fetch = self.host.queues.as_ref().map_or(Time::ZERO, |queues| queues.fetch.time());
        throttle.later(firmware).later(fetch).later(self.controller.fill_timeout.time()).later(decoding)
    }
}
