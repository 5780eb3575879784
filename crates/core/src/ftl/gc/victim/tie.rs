//! Ties of victim policies: the choice among blocks with equally few valid units.

use crate::ftl::space::RegionView;
use crate::sim::id::BlockId;

/// Block that is chosen among several with equally few valid units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "VictimTie")]
pub enum Tie {
    /// The block that has had this number for the longest time.
    #[default]
    Oldest,
    /// The block that has had this number for the shortest time.
    Newest,
    /// The block with the highest address (DiskSim's SSD extension, `ssd_clean.c`).
    Index,
    /// The block with the fewest erases; of several, the one that has had its number for the longest time.
    FewestErases,
}

impl Tie {
    /// Returns the block of `tied` that is chosen. `tied` is ordered from the oldest to the newest.
    pub fn choose(self, view: &RegionView, tied: impl Iterator<Item = BlockId>) -> Option<BlockId> {
        let mut tied = tied;
        match self {
            Tie::Oldest => tied.next(),
            Tie::Newest => tied.last(),
            Tie::Index => tied.max(),
            Tie::FewestErases => tied.min_by_key(|&block| view.erases(block)),
        }
    }
}
