//! Durations of all phases, computed once from the device file.

use crate::config::cells::CellMode;
use crate::config::units::Duration;
use crate::config::{BlockSummary, BusOrder, DeviceConfig, Direction, SwitchScope};
use crate::nand::array::{Kind, Operation};
use crate::sim::time::Time;

/// Durations of the array's phases.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Command and address cycles of a read.
    pub read_command: Time,
    /// Command and address cycles of a program.
    pub program_command: Time,
    /// Command and address cycles of an erase.
    pub erase_command: Time,
    native: CellTimes,
    slc: CellTimes,
    /// Erase of a block.
    pub erase: Time,
    /// Transfer of mapping units out of a page. Indexed by their number.
    pub units_out: Vec<Time>,
    /// Transfer of sectors out of a page. Indexed by their number; empty unless `bus.partial_transfer` is set.
    sectors_out: Vec<Time>,
    /// Transfer of sectors into a page that is in the register. Indexed by their number; empty unless
    /// `nand.advanced.copy_back_modify` is set.
    pub sectors_in: Vec<Time>,
    /// Transfer of one page out.
    pub page_out: Time,
    /// Transfer of a summary page in.
    pub summary_in: Time,
    /// Time lost when a channel switches to another chip.
    pub way_switch: Time,
    /// Time lost when the controller switches to another channel for a read.
    channel_switch_read: Time,
    /// Time lost when the controller switches to another channel for any other operation.
    channel_switch: Time,
    /// True if switching to another chip or channel takes time.
    pub switches: bool,
    /// True if a channel switch blocks the whole controller.
    pub switch_is_shared: bool,
    /// True if commands without data take priority over data on the channels.
    pub commands_first: bool,
}

/// Operations with their times, in native blocks. `page` returns the number of the first page within its block.
impl Timing {
    /// Returns a read of `pages` pages. Each takes the channel for `data`.
    #[inline(always)]
    pub fn read(&self, of: Operation, pages: u32, data: Time, page: impl FnOnce() -> u32) -> Operation {
        let cell = self.of(CellMode::Native).read_of(page);
        Operation { kind: Kind::Read, pages, command: self.read_command, data, cell, ..of }
    }

    /// Returns a program of `pages` pages.
    #[inline(always)]
    pub fn program(&self, of: Operation, pages: u32, page: impl FnOnce() -> u32) -> Operation {
        let times = self.of(CellMode::Native);
        let (data, cell) = (times.program_in, times.program_of(page));
        Operation { kind: Kind::Program, pages, command: self.program_command, data, cell, ..of }
    }

    /// Returns the read of a page that is programmed as by `program`, within its plane. The channel is used for `data`
    /// in between.
    #[inline]
    pub fn copy_back(&self, program: Operation, data: Time, page: impl FnOnce() -> u32) -> Operation {
        let cell = self.of(CellMode::Native).read_of(page);
        Operation { kind: Kind::CopyBack, command: self.read_command, data, cell, program: program.cell, ..program }
    }

    /// Returns an erase.
    #[inline(always)]
    pub fn erase(&self, of: Operation) -> Operation {
        Operation { kind: Kind::Erase, command: self.erase_command, cell: self.erase, ..of }
    }
}

/// Durations that depend on the cell mode of a block.
#[derive(Clone, Debug)]
pub struct CellTimes {
    /// Indexed by page type.
    read: Vec<Time>,
    /// Indexed by page type.
    program: Vec<Time>,
    /// Transfer of the data of all pages of one program command.
    pub program_in: Time,
}

impl CellTimes {
    /// Creates the durations of a mode from those of its page types.
    fn new(device: &DeviceConfig, cells: CellMode, read: &[Duration], program: &[Duration]) -> CellTimes {
        // A wordline is programmed by one command, which transfers its pages one after another. A mapping unit that
        // spans pages is programmed by one command per page.
        let pages_in = if device.pages_per_unit() > 1 { 1 } else { device.block_size(cells).program_pages };
        let page = device.data_time(device.page_bytes(), Direction::In);
        // The pages of the same type of all planes that are programmed together follow one another.
        let planes = if read.len() > 1 || program.len() > 1 { device.planes_together() as usize } else { 1 };
        let times =
            |of: &[Duration]| of.iter().flat_map(|duration| std::iter::repeat_n(duration.time(), planes)).collect();
        CellTimes { read: times(read), program: times(program), program_in: Time(page.0 * u64::from(pages_in)) }
    }

    /// Returns the time from cell to register of page number `page` of a block. The page types of a wordline alternate.
    pub fn read(&self, page: u32) -> Time {
        self.read_of(|| page)
    }

    /// Returns the time from register to cell of page number `page` of a block.
    pub fn program(&self, page: u32) -> Time {
        self.program_of(|| page)
    }

    /// Does the same as [`CellTimes::read`]. The number of the page is computed only if there are several page types.
    #[inline(always)]
    pub(crate) fn read_of(&self, page: impl FnOnce() -> u32) -> Time {
        of_page(&self.read, page)
    }

    /// Does the same as [`CellTimes::program`]. The number of the page is computed only if there are several page
    /// types.
    #[inline(always)]
    pub(crate) fn program_of(&self, page: impl FnOnce() -> u32) -> Time {
        of_page(&self.program, page)
    }

    /// Returns the mean read time of the page types.
    pub fn mean_read(&self) -> Time {
        mean(&self.read)
    }

    /// Returns the mean program time of the page types.
    pub fn mean_program(&self) -> Time {
        mean(&self.program)
    }
}

impl Timing {
    /// Computes the durations of a device.
    pub fn new(device: &DeviceConfig) -> Timing {
        let (way_switch, channel_switch) = (device.bus.way_switch.time(), device.bus.channel_switch.time());
        let channel_switch_read = device.bus.channel_switch_read.map_or(channel_switch, |time| time.time());
        let cycles = device.bus.command_cycles;
        let page = device.page_bytes();
        let (read, program) = (device.nand.read.values(), device.nand.program.values());
        let native = CellTimes::new(device, CellMode::Native, &read, &program);
        Timing {
            read_command: device.command_time(cycles.read),
            program_command: device.command_time(cycles.program.saturating_mul(device.planes_together())),
            erase_command: device.command_time(cycles.erase.saturating_mul(device.planes_together())),
            slc: match device.nand.slc_mode {
                Some(mode) => CellTimes::new(device, CellMode::Slc, &[mode.read], &[mode.program]),
                None => native.clone(),
            },
            native,
            erase: device.nand.erase.time(),
            units_out: (0..=u64::from(device.units_per_page()))
                .map(|units| device.data_time((units * device.unit_bytes()).min(page), Direction::Out))
                .collect(),
            sectors_out: times_of_sectors(device, Direction::Out, device.bus.partial_transfer),
            sectors_in: times_of_sectors(device, Direction::In, device.nand.advanced.copy_back_modify),
            page_out: device.data_time(page, Direction::Out),
            summary_in: match device.mapping.block_summary {
                BlockSummary::None => Time::ZERO,
                BlockSummary::LastPage(bytes) => device.raw_data_time(bytes.0, Direction::In),
            },
            way_switch,
            channel_switch_read,
            channel_switch,
            switches: way_switch.0 | channel_switch.0 | channel_switch_read.0 > 0,
            switch_is_shared: device.bus.channel_switch_scope == SwitchScope::Controller,
            commands_first: device.bus.order == BusOrder::CommandsFirst,
        }
    }

    /// Returns the transfer time of `sectors` sectors out of a page, if reads transfer only the requested sectors.
    #[inline]
    pub fn sectors_out(&self, sectors: u16) -> Option<Time> {
        self.sectors_out.get(usize::from(sectors)).copied()
    }

    /// Returns the time lost when the controller switches to another channel for an operation.
    #[inline]
    pub fn channel_switch(&self, kind: Kind) -> Time {
        if kind == Kind::Read { self.channel_switch_read } else { self.channel_switch }
    }

    /// Returns `true` if switching to another channel takes time.
    #[inline]
    pub fn switches_channels(&self) -> bool {
        self.channel_switch.0 | self.channel_switch_read.0 > 0
    }

    /// Returns the durations of blocks in a cell mode.
    #[inline]
    pub fn of(&self, cells: CellMode) -> &CellTimes {
        match cells {
            CellMode::Native => &self.native,
            CellMode::Slc => &self.slc,
        }
    }
}

/// Returns the transfer time of each number of sectors of a page, or nothing if no such transfer is `used`.
fn times_of_sectors(device: &DeviceConfig, direction: Direction, used: bool) -> Vec<Time> {
    if !used {
        return Vec::new();
    }
    let sectors = u64::from(device.sectors_per_unit() * device.units_per_page());
    let bytes = device.page_bytes() / sectors;
    (0..=sectors).map(|sectors| device.data_time(sectors * bytes, direction)).collect()
}

/// Returns the time of the type of a page. Usually there is only one type.
#[inline(always)]
fn of_page(times: &[Time], page: impl FnOnce() -> u32) -> Time {
    match times {
        [time] => *time,
        _ => times[page() as usize % times.len()],
    }
}

fn mean(times: &[Time]) -> Time {
    Time(times.iter().map(|time| time.0).sum::<u64>() / times.len().max(1) as u64)
}
