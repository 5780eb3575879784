//! Claims on the free space of a region.

/// Number of free blocks that are kept for garbage collection: with one, the valid units of any victim find room. If
/// blocks may fail, one more is kept ([`Space::reserve`](super::Space::reserve)).
pub const RESERVE: u32 = 1;

/// Units that garbage collection of a region still has to program, and blocks that it will free.
#[derive(Clone, Copy, Debug, Default)]
pub struct InHand {
    /// Units of the victim that are still to be read, and units that were read and are not programmed.
    pub units: u32,
    /// Units among them that were read.
    pub read: u32,
    /// Units that blind copy-back may waste on the victim.
    pub waste: u32,
    /// Blocks that await their erase.
    pub awaiting_erase: u32,
    /// Blocks that will be free when all of this has been moved.
    pub coming: u32,
}

/// A claim on the free space of a region.
#[derive(Clone, Copy, Debug)]
pub enum Claim {
    /// A write of the host or of the device itself, or an update of a translation page. `besides` is the number of
    /// units that the evacuation of a failed block still needs.
    Write {
        /// Units to leave in addition to the reserve.
        besides: u32,
    },
    /// A write whose program has failed. It must not wait for an erase, because the block of the old copy is not erased
    /// before the write is programmed.
    Retry(InHand),
    /// A number of programs that together free a block of the region. They go to the frontier of moved units.
    Freeing {
        /// Units and blocks that garbage collection has still to program or to free.
        hand: InHand,
        /// Number of programs.
        programs: u32,
    },
    /// A program of moved units.
    Move,
    /// All valid units of the next victim.
    Victim(InHand),
    /// All valid units of a block of the SLC cache. Folding leaves the reserve but one block, which writes leave to it.
    Fold {
        /// Units and blocks that garbage collection has still to program or to free.
        hand: InHand,
        /// Valid units of the block.
        valid: u32,
    },
    /// All valid units of a failed block. Its evacuation frees no block.
    Failed {
        /// Units and blocks that garbage collection has still to program or to free.
        hand: InHand,
        /// Valid units of the block.
        valid: u32,
    },
    /// A whole block of a mapping scheme.
    Block,
    /// A whole block for another region of the plane.
    Lend,
}

impl Claim {
    /// A write that leaves the reserve.
    pub const WRITE: Claim = Claim::Write { besides: 0 };

    /// The units of a victim, while nothing else is to be programmed.
    pub const VICTIM: Claim = Claim::Victim(InHand { units: 0, read: 0, waste: 0, awaiting_erase: 0, coming: 0 });
}
