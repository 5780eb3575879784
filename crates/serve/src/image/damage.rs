//! Damage that a recovery found in an image.

/// Damage that recoveries found in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Records of which one or two bits were wrong, and that were restored.
    pub repaired: u64,
    /// Records that could not be restored; only with salvage.
    pub records_lost: u64,
    /// Units with damaged payload; only where all payload was checked.
    pub payload_lost: u64,
}

impl Damage {
    /// Takes over what a further recovery found. What could not be restored is found again each time.
    pub(super) fn update(&mut self, other: Damage) {
        self.repaired += other.repaired;
        self.records_lost = self.records_lost.max(other.records_lost);
        self.payload_lost = self.payload_lost.max(other.payload_lost);
    }

    /// Describes each kind of damage that there is.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let Damage { repaired, records_lost, payload_lost } = *self;
        let of = |count: u64, what: &str| (count > 0).then(|| format!("{what}: {count}"));
        let repaired = of(repaired, "damaged records of the image that were restored (check its disk)");
        let records = of(records_lost, "damaged records of the image, whose units read as older data or as zeros");
        let payload = of(payload_lost, "damaged units of the image, reads of which get an I/O error");
        [repaired, records, payload].into_iter().flatten()
    }
}
