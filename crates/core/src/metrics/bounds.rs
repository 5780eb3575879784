//! Bounds of a run: the time for which each kind of resource had to work, which is the least time of any run.
//!
//! The utilization law (Denning and Buzen 1978): a resource that works for D seconds per request, on average, serves at
//! most 1/D requests per second, whatever the scheduling. docs/model/metrics.md defines the terms.

use crate::config::DeviceConfig;
use crate::config::cells::CellMode;
use crate::metrics::counters::{Counters, ProgramCause, ReadCause};
use crate::nand::array::{ChannelTime, DieTime};
use crate::nand::timing::Timing;
use crate::sim::time::{Time, transfer_time};

/// Work of a kind of resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Name in results.
    pub resource: &'static str,
    /// Number of units of the resource.
    pub units: u32,
    /// Time for which all units had to work, summed, in picoseconds.
    pub work: u128,
    /// Part of `work` for garbage collection.
    pub gc: u128,
}

/// Input of the bounds: the operations of a run.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// Device.
    pub config: &'a DeviceConfig,
    /// Counters of the device.
    pub counters: &'a Counters,
    /// Busy times of the channels, indexed by channel.
    pub channels: &'a [ChannelTime],
    /// Busy times of the dies, indexed by die.
    pub dies: &'a [DieTime],
    /// Time for which each LUN worked; empty if operations cannot overlap.
    pub luns: &'a [Time],
    /// Bytes of host writes and of host reads.
    pub bytes: [u64; 2],
    /// Time for which the port of the controller's memory was busy.
    pub memory: Time,
    /// Time for which each core worked.
    pub cores: &'a [Time],
}

/// Error for a resource that worked for longer than the run lasted, which is a defect of the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{resource} {index} worked for {worked_ps} ps within {elapsed_ps} ps")]
pub struct OverBound {
    resource: &'static str,
    index: usize,
    worked_ps: u64,
    elapsed_ps: u64,
}

impl Work<'_> {
    /// Returns the work of each kind of resource.
    pub fn demands(&self) -> Vec<Demand> {
        let sum = |times: &mut dyn Iterator<Item = Time>| times.map(|time| u128::from(time.0)).sum::<u128>();
        let on_channels = sum(&mut self.channels.iter().map(|time| time.data + time.command));
        let in_cells = sum(&mut self.dies.iter().map(|time| time.cell));
        let (gc_bus, gc_cells) = self.of_gc();
        let one_by_one = in_cells + on_channels;
        let in_luns = self.in_luns().sum();
        let gc_luns = (gc_cells + gc_bus).min(one_by_one);
        let mut demands = vec![
            Demand {
                resource: "channels",
                units: self.channels.len() as u32,
                work: on_channels,
                gc: gc_bus.min(on_channels),
            },
            // Overlaps shorten garbage collection by the same share as all other work.
            Demand { resource: "dies", units: self.luns(), work: in_luns, gc: gc_luns * in_luns / one_by_one.max(1) },
        ];
        if let Some(bandwidth) = self.config.host.link_bandwidth {
            for (resource, bytes) in ["link_in", "link_out"].into_iter().zip(self.bytes) {
                let work = u128::from(transfer_time(bytes, bandwidth.0).0);
                demands.push(Demand { resource, units: 1, work, gc: 0 });
            }
        }
        if !self.cores.is_empty() {
            let work = sum(&mut self.cores.iter().copied());
            demands.push(Demand { resource: "cores", units: self.cores.len() as u32, work, gc: 0 });
        }
        if self.config.active_buffer().is_some_and(|buffer| buffer.bandwidth.is_some()) {
            demands.push(Demand { resource: "memory", units: 1, work: u128::from(self.memory.0), gc: 0 });
        }
        demands
    }

    /// Returns the number of LUNs in the device.
    fn luns(&self) -> u32 {
        self.config.total_planes() / self.config.planes_per_lun()
    }

    /// Returns the time for which the LUNs of each channel worked, summed, in picoseconds. They work while their cells
    /// work, and during their own transfers, but not while they wait for the channel.
    fn in_luns(&self) -> impl Iterator<Item = u128> {
        let channels = self.channels.len().max(1);
        let (dies, luns) = (self.dies.len() / channels, self.luns.len() / channels);
        let sum = |times: &mut dyn Iterator<Item = Time>| times.map(|time| u128::from(time.0)).sum::<u128>();
        self.channels.iter().enumerate().map(move |(i, channel)| {
            if luns > 0 {
                return sum(&mut self.luns[i * luns..][..luns].iter().copied());
            }
            // Phases follow one another.
            let cells = self.dies[i * dies..][..dies].iter().map(|die| die.cell);
            sum(&mut cells.chain([channel.data, channel.command]))
        })
    }

    /// Returns the time of garbage collection on the channels and in the cells, computed from counters. If page types
    /// have different times, their mean is used. Summaries count as those of blocks in native mode.
    fn of_gc(&self) -> (u128, u128) {
        let (timing, counters, config) = (Timing::new(self.config), self.counters, self.config);
        let times = timing.of(CellMode::Native);
        let programs = |cause| counters.pages_programmed[cause as usize] / u64::from(config.pages_per_program());
        // A scheme with blocks of its own merges instead of collecting garbage.
        let moves =
            [ReadCause::Gc, ReadCause::Wear, ReadCause::Merge, ReadCause::Fold, ReadCause::Rebuild, ReadCause::Refresh];
        let reads: u64 = moves.iter().map(|&cause| counters.pages_read[cause as usize]).sum();
        let copies: u64 = [
            ProgramCause::Gc,
            ProgramCause::Wear,
            ProgramCause::Merge,
            ProgramCause::Fold,
            ProgramCause::Parity,
            ProgramCause::Refresh,
        ]
        .map(programs)
        .iter()
        .sum();
        let summaries = programs(ProgramCause::Summary);
        let erases = counters.blocks_erased;
        let moved = (counters.units_moved() + counters.wasted_copies) * u64::from(config.pages_per_unit());
        let unit_out = timing.units_out.get(1).copied().unwrap_or(timing.page_out);
        let bus = [
            (reads, timing.read_command),
            (moved, unit_out),
            (copies, timing.program_command + times.program_in),
            (summaries, timing.program_command + timing.summary_in),
            (erases, timing.erase_command),
        ];
        let planes = u64::from(config.planes_together());
        let programs = (copies + summaries) * planes;
        let cells = [(reads, times.mean_read()), (programs, times.mean_program()), (erases * planes, timing.erase)];
        let sum = |parts: &[(u64, Time)]| parts.iter().map(|(n, time)| u128::from(*n) * u128::from(time.0)).sum();
        (sum(&bus), sum(&cells))
    }

    /// Checks that no resource has worked for longer than the run lasted.
    pub fn check(&self, elapsed: Time) -> Result<(), OverBound> {
        let lanes = u64::from(self.config.lanes_per_die());
        let channels = self.channels.iter().enumerate().map(|(i, time)| ("channel", i, time.data + time.command, 1));
        let dies = self.dies.iter().enumerate().map(|(i, time)| ("die", i, time.cell, lanes));
        let each = self.luns.iter().enumerate().map(|(i, time)| ("LUN", i, *time, 1));
        let per_channel = u64::from(self.luns()) / (self.channels.len() as u64).max(1);
        let luns = self.in_luns().enumerate().map(|(i, ps)| ("LUNs of channel", i, Time(ps as u64), per_channel));
        let cores = self.cores.iter().enumerate().map(|(i, time)| ("core", i, *time, 1));
        let memory = [("memory", 0, self.memory, 1)];
        let all = channels.chain(dies).chain(each).chain(luns).chain(cores).chain(memory);
        for (resource, index, worked, lanes) in all {
            if worked.0 > elapsed.0.saturating_mul(lanes) {
                return Err(OverBound { resource, index, worked_ps: worked.0, elapsed_ps: elapsed.0 });
            }
        }
        let bandwidth = self.config.host.link_bandwidth;
        for (index, bytes) in self.bytes.into_iter().enumerate() {
            let worked = bandwidth.map_or(Time::ZERO, |bandwidth| transfer_time(bytes, bandwidth.0));
            if worked > elapsed {
                return Err(OverBound { resource: "link", index, worked_ps: worked.0, elapsed_ps: elapsed.0 });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_resource_works_for_longer_than_the_run() {
        let config = crate::config::load("hu2011", &[]).unwrap();
        let channels = vec![ChannelTime { data: Time(70), command: Time(30) }; config.geometry.channels as usize];
        let mut dies = vec![DieTime::default(); 32];
        let counters = Counters::default();
        let work = |dies: &[DieTime], luns: &[Time]| {
            let work = Work {
                config: &config,
                counters: &counters,
                channels: &channels,
                dies,
                luns,
                bytes: [0, 0],
                memory: Time::ZERO,
                cores: &[],
            };
            (work.check(Time(100)), work.check(Time(99)))
        };
        let (enough, short) = work(&dies, &[]);
        assert_eq!(enough, Ok(()));
        assert_eq!(short.unwrap_err().to_string(), "channel 0 worked for 100 ps within 99 ps");
        dies[3].cell = Time(101);
        assert_eq!(work(&dies, &[]).0.unwrap_err().to_string(), "die 3 worked for 101 ps within 100 ps");
        // A channel has four chips for eight dies, and each chip takes one command at a time.
        dies.fill(DieTime { cell: Time(40), ..DieTime::default() });
        let one_by_one = work(&dies, &[]).0.unwrap_err().to_string();
        assert_eq!(one_by_one, "LUNs of channel 0 worked for 420 ps within 100 ps");
        let mut luns = vec![Time(100); 16];
        assert_eq!(work(&dies, &luns).0, Ok(()));
        luns[5] = Time(101);
        assert_eq!(work(&dies, &luns).0.unwrap_err().to_string(), "LUN 5 worked for 101 ps within 100 ps");
    }
}
