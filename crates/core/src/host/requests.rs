//! Outstanding requests, and the mapping units that they cover.

use crate::config::DeviceConfig;
use crate::sim::id::{Lpn, RequestId};
use crate::sim::memory::Divider;
use crate::sim::request::{Operation, Request, Status};
use crate::sim::slab::Slab;
use crate::sim::time::Time;

/// Outstanding request.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// The request.
    pub request: Request,
    /// First mapping unit that the request covers or rewrites.
    pub first_unit: Lpn,
    /// Number of mapping units that the request covers or rewrites.
    pub units: u32,
    /// Number of units that have not completed. While the request is being split into units, one more.
    pub remaining: u32,
    /// Number of units that have been admitted, for writes that wait for slots.
    pub admitted: u32,
    /// Number of units whose data have crossed the link.
    pub crossed: u32,
    /// True if the firmware has received the request.
    pub received: bool,
    /// Number of units that the firmware has processed and that may be admitted.
    pub arrived: u32,
    /// Time at which the device started to serve the request. [`Time::NEVER`] until then.
    pub start: Time,
    /// Time at which the latest unit completed.
    pub finish: Time,
    /// Status of the completion.
    pub status: Status,
}

/// Outstanding requests, indexed by their id.
pub type Requests = Slab<RequestId, Pending>;

/// Part of a request that lies in one mapping unit. A write also has an empty part for each unit that it rewrites
/// because the unit belongs to the same logical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Mapping unit.
    pub lpn: Lpn,
    /// First sector, within the unit.
    pub first: u32,
    /// Sector after the last one, within the unit.
    pub end: u32,
    /// Number of sectors of the request before this part.
    pub offset: u32,
}

impl Part {
    /// Returns the number of sectors of the part.
    #[inline]
    pub fn sectors(&self) -> u32 {
        self.end - self.first
    }
}

/// Divides requests into mapping units and flash pages.
#[derive(Clone, Copy, Debug)]
pub struct Units {
    unit_sectors: Divider,
    units_per_page: Divider,
    /// Number of units in a logical page; 1 without logical pages.
    together: u32,
    /// Number of units that the host sees.
    total: u32,
}

impl Units {
    /// Creates the divider for a device.
    pub fn new(config: &DeviceConfig) -> Units {
        Units {
            unit_sectors: Divider::new(config.sectors_per_unit()),
            units_per_page: Divider::new(config.units_per_page()),
            // A write-back buffer completes logical pages itself.
            together: if config.writes_back() { 1 } else { config.units_per_logical_page() },
            total: config.logical_units() as u32,
        }
    }

    /// Returns the number of sectors of a mapping unit.
    #[inline]
    pub fn sectors(&self) -> u32 {
        self.unit_sectors.divisor()
    }

    /// Returns the mapping unit of a sector.
    #[inline]
    pub fn at(&self, lba: u64) -> Lpn {
        Lpn(self.unit_sectors.divide_long(lba) as u32)
    }

    /// Returns the state of a request that has just entered the queue.
    #[inline(always)]
    pub fn enter(&self, request: Request) -> Pending {
        let (first_unit, units) = self.span(&request);
        Pending {
            request,
            first_unit: Lpn(first_unit),
            units,
            remaining: 1,
            admitted: 0,
            crossed: 0,
            received: false,
            arrived: 0,
            start: Time::NEVER,
            finish: Time::ZERO,
            status: Status::Ok,
        }
    }

    /// Returns the first mapping unit that a request covers or rewrites, and the number of these units.
    #[inline]
    fn span(&self, request: &Request) -> (u32, u32) {
        if request.sectors == 0 {
            return (0, 0);
        }
        let first = self.at(request.lba).0;
        let last = self.at(request.lba + u64::from(request.sectors) - 1).0;
        if self.together > 1 && request.operation == Operation::Write {
            let first = first / self.together * self.together;
            return (first, ((last / self.together + 1) * self.together).min(self.total) - first);
        }
        (first, last + 1 - first)
    }

    /// Returns the part of a request in its mapping unit number `index`.
    #[inline]
    pub fn part(&self, pending: &Pending, index: u32) -> Part {
        let unit = pending.first_unit.0 + index;
        let start = u64::from(unit) * u64::from(self.unit_sectors.divisor());
        let Request { lba, sectors, .. } = pending.request;
        let first = lba.max(start);
        let end = (lba + u64::from(sectors)).min(start + u64::from(self.unit_sectors.divisor()));
        if first >= end {
            return Part { lpn: Lpn(unit), first: 0, end: 0, offset: 0 };
        }
        Part { lpn: Lpn(unit), first: (first - start) as u32, end: (end - start) as u32, offset: (first - lba) as u32 }
    }

    /// Returns the number of flash pages whose units a request covers. The data of a write arrive in this many steps,
    /// so that a page can be programmed once all its data have arrived.
    pub fn pages_of(&self, request: &Request) -> u32 {
        let last = request.lba + u64::from(request.sectors) - 1;
        let page = |sector| self.units_per_page.divide(self.at(sector).0);
        page(last) - page(request.lba) + 1
    }

    /// Returns the index of a request's first unit after the flash page of its unit `index`.
    pub fn end_of_page(&self, pending: &Pending, index: u32) -> u32 {
        let first = pending.first_unit.0;
        let per_page = self.units_per_page.divisor();
        ((first + index) / per_page * per_page + per_page - first).min(pending.units)
    }
}
