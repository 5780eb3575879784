//! Which kinds of operations join a command, and which planes work together.

use crate::config::DeviceConfig;
use crate::config::advanced::{Waste, Wise};
use crate::nand::array;
use crate::sim::id::PlaneId;
use crate::sim::memory::Divider;

/// Which operations are merged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Merging {
    /// By [`array::Kind`]: whether planes work together.
    pub(super) planes: [bool; array::Kind::COUNT],
    /// Pages are wasted so that planes can be programmed together.
    pub(super) blind: bool,
    /// Block addresses must be equal too.
    pub(super) strict: bool,
    /// Planes that can work together.
    pub(super) group: Divider,
    /// Dies of a chip.
    pub(super) per_chip: u32,
    /// Dies of a chip work together.
    pub(super) interleave: bool,
    /// Whether anything is merged at all.
    pub(super) any: bool,
}

impl Merging {
    pub(crate) fn new(device: &DeviceConfig) -> Merging {
        let advanced = &device.nand.advanced;
        let mut planes = [false; array::Kind::COUNT];
        planes[array::Kind::Read as usize] = advanced.multi_plane_read != Wise::Off;
        planes[array::Kind::Program as usize] = advanced.multi_plane_program != Waste::Off;
        planes[array::Kind::Erase as usize] = advanced.multi_plane_erase != Wise::Off;
        // It reads in all planes and programs in all.
        planes[array::Kind::CopyBack as usize] = advanced.copy_back != Waste::Off
            && advanced.multi_plane_program != Waste::Off
            && advanced.multi_plane_read != Wise::Off;
        let any = advanced.merges();
        Merging {
            planes,
            blind: advanced.multi_plane_program == Waste::Blind,
            strict: advanced.strict,
            group: Divider::new(if advanced.plane_pairs { 2 } else { device.geometry.planes }),
            per_chip: device.geometry.dies,
            interleave: advanced.interleave,
            any,
        }
    }

    /// Returns the number of planes that one program command can fill.
    pub(crate) fn planes_per_program(&self) -> u32 {
        if self.planes[array::Kind::Program as usize] { self.group.divisor() } else { 1 }
    }

    /// The planes that can work together with `plane`, itself among them.
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

    /// The other planes that can work together with `plane`.
    #[inline]
    pub(crate) fn others_of(&self, plane: PlaneId) -> impl Iterator<Item = PlaneId> + use<> {
        let own = self.place_in_group(plane);
        let first = plane.0 - own;
        // Which of them it is can hardly be guessed: no branch.
        (0..self.group.divisor() - 1).map(move |index| PlaneId(first + index + u32::from(index >= own)))
    }

    /// The number of a plane among those that it can work together with.
    #[inline]
    pub(crate) fn place_in_group(&self, plane: PlaneId) -> u32 {
        self.group.divide_with_rest(plane.0).1
    }
}
