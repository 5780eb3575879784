//! Duration of a recovery in simulated time.

use super::Scan;
use crate::config::cells::CellMode;
use crate::config::{DeviceConfig, Direction, MapMemory};
use crate::ftl::Ftl;
use crate::ftl::space::Role;
use crate::nand::array::Array;
use crate::sim::id::{BlockId, PlaneId, Ppn};
use crate::sim::time::Time;

/// Size of the out-of-band record of a page, in bytes, if the device file has no spare bytes: the spare area of an MLC
/// part with 4 KiB pages (assumed).
const SPARE: u64 = 128;

/// Work of the dies and of the channels during a recovery, in ps.
struct Work<'a> {
    array: &'a Array,
    luns: Vec<u64>,
    channels: Vec<u64>,
}

impl Work<'_> {
    /// Adds operations of a plane: the time of the cells, and that of the channel.
    fn add(&mut self, plane: PlaneId, cells: Time, bus: Time) {
        let lun = self.array.lun_of(plane);
        self.luns[lun.index()] += cells.0 + bus.0;
        self.channels[self.array.channel_of(lun).index()] += bus.0;
    }
}

/// Returns the duration of a recovery. Each die reads its pages and performs its erases one after another, while the
/// channels transfer the out-of-band records. All dies and channels work in parallel.
pub fn time_of(device: &DeviceConfig, ftl: &Ftl, array: &Array, scan: &Scan, map_pages: u64) -> Time {
    let timing = array.timing();
    let spare = device.spare_bytes();
    let out = device.raw_data_time(if spare > 0 { spare } else { SPARE }, Direction::Out);
    let (luns, channels) = (vec![0; array.luns() as usize], vec![0; device.buses() as usize]);
    let mut work = Work { array, luns, channels };
    let plane_of = |ppn: Ppn| ftl.blocks.plane_of(ftl.blocks.block_of(ppn));
    for (block, &pages) in scan.pages.iter().enumerate() {
        let each = |time: Time| Time(time.0 * u64::from(pages));
        let read = timing.of(scan.cells[block]).mean_read();
        let plane = ftl.blocks.plane_of(BlockId(block as u32));
        work.add(plane, each(read), each(Time(timing.read_command.0 + out.0)));
    }
    let pages = u64::from(ftl.shape().pages_per_unit);
    let whole = device.raw_data_time(device.unit_bytes() / pages, Direction::Out);
    let bus = Time((timing.read_command.0 + whole.0) * pages);
    let read = |cells| Time(timing.of(cells).mean_read().0 * pages);
    for &ppn in &scan.wholes {
        work.add(plane_of(ppn), read(scan.cells[ftl.blocks.block_of(ppn).index()]), bus);
    }
    if device.durability.map == MapMemory::Saved {
        // Backup power spreads the map evenly over the planes.
        let planes = u64::from(ftl.shape().planes);
        for unit in 0..device.saved_map_units() {
            work.add(PlaneId((unit % planes) as u32), read(CellMode::Native), bus);
        }
    }
    for &ppn in &scan.merged {
        work.add(plane_of(ppn), read(CellMode::Native), bus);
    }
    let native = timing.of(CellMode::Native);
    for &ppn in &scan.programs {
        work.add(plane_of(ppn), native.mean_program(), Time(timing.program_command.0 + native.program_in.0));
    }
    for &block in &scan.erased {
        work.add(ftl.blocks.plane_of(block), timing.erase, timing.erase_command);
    }
    let of_map = timing.of(ftl.blocks.cells(Role::Map));
    for page in 0..map_pages {
        let bus = Time(timing.program_command.0 + of_map.program_in.0);
        work.add(ftl.map_home(page as u32), of_map.mean_program(), bus);
    }
    Time(work.luns.into_iter().chain(work.channels).max().unwrap_or(0))
}
