//! Damage that recoveries found in an image.

/// Counts of the damage that recoveries found in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Restored records, in which one or two bits were wrong.
    pub repaired: u64,
    /// Records that could not be restored. Nonzero only with salvage.
    pub records_lost: u64,
    /// Mapping units with damaged payload. Nonzero only if all payload was checked.
    pub payload_lost: u64,
    /// Records that were flushed, but had not reached the machine's disk when the machine stopped.
    pub unsynced: u64,
}

impl Damage {
    /// Merges the result of a further recovery. Damage that cannot be repaired is found again each time, so it is not
    /// added up.
    pub(super) fn update(&mut self, other: Damage) {
        self.repaired += other.repaired;
        self.records_lost = self.records_lost.max(other.records_lost);
        self.payload_lost = self.payload_lost.max(other.payload_lost);
        self.unsynced = self.unsynced.max(other.unsynced);
    }

    /// Describes each kind of damage that was found.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let Damage { repaired, records_lost, payload_lost, unsynced } = *self;
        let of = |count: u64, what: &str| (count > 0).then(|| format!("{what}: {count}"));
        let repaired = of(repaired, "damaged records of the image that were restored (check its disk)");
        let records = of(records_lost, "damaged records of the image, whose units read as older data or as zeros");
        let payload = of(payload_lost, "damaged units of the image, which return I/O errors");
        let unsynced =
            of(unsynced, "flushed units that were lost when the machine stopped (--image-sync prevents this)");
        [repaired, records, payload, unsynced].into_iter().flatten()
    }
}
