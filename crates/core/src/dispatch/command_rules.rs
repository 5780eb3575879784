//! Shared commands: kinds of operations that can join a command, and planes that can work together.

use crate::config::DeviceConfig;
use crate::config::advanced::Waste;
use crate::nand::array;
use crate::sim::id::PlaneId;
use crate::sim::memory::Divider;

/// Rules for shared commands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Merging {
    /// True if planes work together. Indexed by [`array::Kind`].
    pub(super) planes: [bool; array::Kind::COUNT],
    /// True if pages are wasted so that planes can be programmed together.
    pub(super) blind: bool,
    /// True if block addresses must be equal too.
    pub(super) strict: bool,
    /// Number of planes that can work together.
    pub(super) group: Divider,
    /// Number of dies of a chip.
    pub(super) per_chip: u32,
    /// True if dies of a chip work together.
    pub(super) interleave: bool,
    /// True if any operations share commands.
    pub(super) any: bool,
}

impl Merging {
    pub(crate) fn new(device: &DeviceConfig) -> Merging {
        let advanced = &device.nand.advanced;
        let mut planes = [false; array::Kind::COUNT];
        planes[array::Kind::Read as usize] = advanced.multi_plane_read;
        planes[array::Kind::Program as usize] = advanced.multi_plane_program != Waste::Off;
        planes[array::Kind::Erase as usize] = advanced.multi_plane_erase;
        // A multi-plane copy-back reads and programs in all its planes.
        planes[array::Kind::CopyBack as usize] =
            advanced.copy_back != Waste::Off && advanced.multi_plane_program != Waste::Off && advanced.multi_plane_read;
        let any = advanced.merges();
        Merging {
            planes,
            blind: advanced.multi_plane_program == Waste::Blind,
            strict: advanced.strict,
            group: Divider::new(device.planes_per_group()),
            per_chip: device.geometry.dies,
            interleave: advanced.interleave,
            any,
        }
    }

    /// Returns the number of planes that one program command can fill.
    pub(crate) fn planes_per_program(&self) -> u32 {
        if self.planes[array::Kind::Program as usize] { self.group.divisor() } else { 1 }
    }

    /// Returns the planes that can work together with `plane`, including `plane`.
    #[inline]
    pub(crate) fn group_of(&self, plane: PlaneId) -> std::ops::Range<u32> {
        let first = plane.0 - self.place_in_group(plane);
        first..first + self.group.divisor()
    }

    /// Returns the planes whose pages are programmed together with those of `plane`, itself included.
    #[inline]
    pub(crate) fn planes_together(&self, plane: PlaneId) -> impl Iterator<Item = PlaneId> + use<> {
        let is_alone = !self.planes[array::Kind::Program as usize];
        let planes = if is_alone { plane.0..plane.0 + 1 } else { self.group_of(plane) };
        planes.map(PlaneId)
    }

    /// Returns the other planes that can work together with `plane`.
    #[inline]
    pub(crate) fn others_of(&self, plane: PlaneId) -> impl Iterator<Item = PlaneId> + use<> {
        let own = self.place_in_group(plane);
        let first = plane.0 - own;
        // Without a branch, because the result is hard to predict.
        (0..self.group.divisor() - 1).map(move |index| PlaneId(first + index + u32::from(index >= own)))
    }

    /// Returns the index of a plane in its group of planes that can work together.
    #[inline]
    pub(crate) fn place_in_group(&self, plane: PlaneId) -> u32 {
        self.group.divide_with_rest(plane.0).1
    }
}
