//! Planes of a die that read independently: the queue and the execution unit of each read. See docs/model/planes.md.

use crate::config::DeviceConfig;
use crate::nand::array::{self, Array};
use crate::sim::memory::Divider;
use crate::work::{Kind, Transaction};

/// Addresses of planes that read independently. Consecutive pages are in consecutive planes.
///
/// Reads have a queue for each plane. The queues are numbered like the execution units: those of the dies, which are
/// the planes of the FTL, come first.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlaneReads {
    units_per_page: Divider,
    planes: Divider,
    luns: u32,
}

impl PlaneReads {
    pub(super) fn new(config: &DeviceConfig, array: &Array) -> Option<PlaneReads> {
        (config.planes_together() > 1).then(|| PlaneReads {
            units_per_page: Divider::new(config.units_per_page()),
            planes: Divider::new(config.planes_together()),
            luns: array.luns(),
        })
    }

    /// Returns the number of the queue and of the execution unit of a read of one page. All other transactions,
    /// including reads of large translation pages, have those of the die.
    pub(super) fn number_of(&self, transaction: &Transaction) -> Option<u32> {
        reads_a_page(transaction).then(|| {
            let (_, plane) = self.planes.divide_with_rest(self.units_per_page.divide(transaction.ppn.0));
            self.luns + transaction.plane.0 * self.planes.divisor() + plane
        })
    }
}

/// Returns `true` if a transaction reads one flash page. A translation page may span several.
pub(super) fn reads_a_page(transaction: &Transaction) -> bool {
    let Transaction { kind, units, .. } = *transaction;
    array::Kind::from(kind) == array::Kind::Read && (kind != Kind::MapRead || units == 1)
}
