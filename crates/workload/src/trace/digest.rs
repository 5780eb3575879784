//! Digests of requests.

use super::record::Record;

/// A running 64-bit hash of the words of requests: FNV-1a's step on whole words, followed by a shift that mixes the
/// high bits down. It distinguishes traces, but does not resist deliberate collisions.
#[derive(Clone, Debug)]
pub(super) struct Digest(pub(super) u64);

impl Digest {
    pub(super) const fn new() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }

    #[inline]
    pub(super) fn add(&mut self, ps: u64, record: &Record) {
        let length_and_device = u64::from(record.sectors) << 32 | u64::from(record.device);
        let operation = record.operation.index() as u64 | u64::from(record.fua) << 8;
        for word in [ps, record.lba, length_and_device, operation] {
            // 2^64 divided by the golden ratio: odd, and with as many ones as zeros.
            self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0 ^= self.0 >> 32;
        }
    }
}
