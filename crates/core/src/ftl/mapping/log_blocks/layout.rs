//! Logical blocks: the units that they hold, and the planes that may hold them.

use std::ops::Range;

use super::options::{Common, FreeBlocks};
use crate::config::DeviceConfig;
use crate::sim::id::{Lpn, PlaneId};
use crate::sim::memory::Divider;

/// Division of the units into logical blocks, and of the logical blocks into sets of planes. The planes of a set share
/// log blocks.
///
/// Consecutive pages go to w logical blocks in turn if the stripe is w. Together, these hold w blocks of consecutive
/// units.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Units of a block.
    block: Divider,
    /// Units of the logical blocks of a stripe.
    stripes: Divider,
    /// Units of a page, and of a row of pages: one of each logical block of a stripe.
    page: Divider,
    row: Divider,
    stripe: u32,
    /// Number of sets.
    sets: Divider,
    /// Sets of consecutive logical blocks, if consecutive sets are not in different channels.
    turns: Vec<u32>,
    planes: u32,
    units: u32,
}

impl Layout {
    pub(super) fn new(device: &DeviceConfig, common: &Common) -> Layout {
        let (units, page) = (device.data_units_per_block(), device.units_per_program());
        let planes = common.planes(device);
        Layout {
            block: Divider::new(units),
            stripes: Divider::new(units * common.stripe),
            page: Divider::new(page),
            row: Divider::new(page * common.stripe),
            stripe: common.stripe,
            sets: Divider::new(device.total_planes() / planes),
            turns: match common.free_blocks {
                FreeBlocks::ByPlane => Vec::new(),
                FreeBlocks::ByChannel => sets_by_channel(device, planes),
            },
            planes,
            units: device.logical_units() as u32,
        }
    }

    /// Returns the number of logical blocks.
    pub fn count(&self) -> u32 {
        self.units.div_ceil(self.stripes.divisor()) * self.stripe
    }

    /// Returns the number of units of a logical block.
    #[inline]
    pub fn units(&self) -> u32 {
        self.block.divisor()
    }

    /// Returns the number of units of a program.
    #[inline]
    pub fn group(&self) -> u32 {
        self.page.divisor()
    }

    /// Returns the logical block of a unit, and the unit's offset in it.
    #[inline]
    pub fn split(&self, lpn: Lpn) -> (u32, u32) {
        if self.stripe == 1 {
            return self.block.divide_with_rest(lpn.0);
        }
        let (stripe, rest) = self.stripes.divide_with_rest(lpn.0);
        let (row, rest) = self.row.divide_with_rest(rest);
        let (part, offset) = self.page.divide_with_rest(rest);
        (stripe * self.stripe + part, row * self.page.divisor() + offset)
    }

    /// Returns the unit at an offset of a logical block, or `None` if the device ends before it.
    #[inline]
    pub fn unit(&self, number: u32, offset: u32) -> Option<Lpn> {
        let (row, rest) = self.page.divide_with_rest(offset);
        let (stripe, part) = (number / self.stripe, number % self.stripe);
        let lpn = stripe * self.stripes.divisor() + row * self.row.divisor() + part * self.page.divisor() + rest;
        (lpn < self.units).then_some(Lpn(lpn))
    }

    /// Returns the set of planes of a logical block. Consecutive logical blocks are in different sets.
    #[inline]
    pub fn set_of(&self, number: u32) -> u32 {
        let turn = self.sets.divide_with_rest(number).1;
        self.turns.get(turn as usize).copied().unwrap_or(turn)
    }

    /// Returns the set of a plane.
    #[inline]
    pub fn set_of_plane(&self, plane: PlaneId) -> u32 {
        plane.0 / self.planes
    }

    /// Returns the planes of a set.
    pub fn planes_of(&self, set: u32) -> Range<u32> {
        set * self.planes..(set + 1) * self.planes
    }

    /// Returns the number of sets.
    pub fn sets(&self) -> u32 {
        self.sets.divisor()
    }
}

/// Returns the sets of `planes` planes each, such that consecutive ones are in different channels.
fn sets_by_channel(device: &DeviceConfig, planes: u32) -> Vec<u32> {
    let (sets, channels) = (device.total_planes() / planes, device.channels());
    let per_channel = sets / channels;
    if per_channel < 2 {
        return Vec::new();
    }
    (0..sets).map(|turn| turn % channels * per_channel + turn / channels).collect()
}
