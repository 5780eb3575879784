//! State of DFTL.

use std::collections::VecDeque;

use super::directory::MapState;
use crate::ftl::Ftl;
use crate::ftl::mover::Walk;
use crate::ftl::space::InHand;
use crate::sim::id::PlaneId;
use crate::sim::table::Table;
use crate::work::Fifo;

/// Demand-based caching of the page map.
#[derive(Clone, Debug)]
pub struct Dftl {
    /// Map in the controller.
    pub state: MapState,
    pub(super) pages: Table<u32, Page>,
    pub(super) jobs: Table<PlaneId, Reclaim>,
    /// Translation pages that wait for room, indexed by plane. Pages that were queued since are skipped.
    pub(super) stalled: Table<PlaneId, VecDeque<u32>>,
    /// Units that garbage collection has moved and whose entries are not cached, as victim and translation page.
    /// Indexed by plane.
    pub(super) moved: Table<PlaneId, Vec<(u32, u32)>>,
    /// Host operations that wait for a cache entry.
    pub(super) line: Fifo,
}

/// Tasks of the scheme.
pub(super) mod step {
    /// Serve the operations that wait for a cache entry.
    pub const SERVE: u8 = 0;
    /// Continue with a page that was fetched, after resuming the operations that waited for its entries.
    pub const FETCHED: u8 = 1;
    /// Resume the operations that waited for an update.
    pub const UPDATED: u8 = 2;
    /// Request the updates that victims wait for.
    pub const ASK: u8 = 3;
}

/// State of a translation page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// No operation is in flight, and the controller does not hold the page.
    #[default]
    Idle,
    /// The flash page with an entry is being read.
    Fetching,
    /// The whole page is being read, to be updated.
    Reading,
    /// The controller holds the page, and its plane has no room for the new version.
    Stalled,
    /// The controller holds the page, and its program waits for the LUN.
    Queued,
    /// The controller holds the page, and it is being programmed.
    Programming,
}

/// A translation page, and the operations that wait for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Page {
    pub(super) state: State,
    /// Flash page of the translation page that is being fetched.
    pub(super) part: u32,
    /// True if garbage collection of its block waits until the page has moved.
    pub(super) moving: bool,
    /// Number of updates that no operation waits for.
    pub(super) owed: u32,
    /// Operations that need one of its entries.
    pub(super) readers: Fifo,
    /// Operations that wait for an update.
    pub(super) writers: Fifo,
    /// Operations whose update is being programmed.
    pub(super) taken: Fifo,
}

/// A device has one `Page` for each translation page. The directory and the cache add twelve bytes to it.
const _: () = assert!(size_of::<Page>() + 12 <= 60);

/// Garbage collection of a plane's blocks of translation pages: one victim at a time, page by page.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reclaim {
    pub(super) walk: Walk,
    /// True while a translation page of the victim is being moved.
    pub(super) waiting: bool,
    pub(super) awaiting_erase: u32,
}

impl Reclaim {
    /// Returns the units that are still to be programmed, and the blocks that will be freed.
    pub(super) fn in_hand(&self, ftl: &Ftl) -> InHand {
        let victim = self.walk.block().map(|victim| ftl.blocks.block(victim));
        InHand {
            units: victim.map_or(0, |victim| u32::from(victim.valid)),
            awaiting_erase: self.awaiting_erase,
            coming: self.awaiting_erase + u32::from(victim.is_some_and(|victim| !victim.failed)),
            ..InHand::default()
        }
    }
}
