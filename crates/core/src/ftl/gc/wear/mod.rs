//! Wear leveling: chooses free blocks to open, refuses victims, and names cold blocks to migrate.
//!
//! docs/model/wear.md describes the policies with their sources.

pub mod external;
mod life;

use crate::external::Cause;
use crate::ftl::space::{ColdOrder, FreeOrder, RegionView};
use crate::policy_family;
use crate::sim::id::BlockId;
use crate::state::{Reader, StateError, Writer};

/// Requirements of a wear policy on the space. By default, there are none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// Order in which free blocks are opened.
    pub free: FreeOrder,
    /// True if [`WearPolicy::pick_free`] is to be called. Otherwise, the first free block is opened.
    pub picks: bool,
    /// Order in which the policy looks for cold blocks, if it does.
    pub cold: Option<ColdOrder>,
    /// True if the policy needs the times at which blocks were closed and changed.
    pub ages: bool,
}

/// Levels wear. Each method gets a view of the region.
pub trait WearPolicy {
    /// Returns what the policy needs from the space.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Chooses the free block to open next. Returns its position in `first`: the first free blocks of the plane, at
    /// least one and at most eight. Called only if [`Needs::picks`] is true.
    ///
    /// If planes open blocks of equal addresses (`nand.advanced.strict`), these addresses decide instead.
    fn pick_free(&mut self, _view: &RegionView, _first: &[BlockId]) -> usize {
        0
    }

    /// Returns `true` if garbage collection may take the victim that the victim policy has chosen. Otherwise, the
    /// victim policy chooses again. If all victims are refused, garbage collection takes the first one.
    fn allows(&mut self, _view: &RegionView, _victim: BlockId) -> bool {
        true
    }

    /// Notes that a block of the plane was erased, for whatever reason.
    fn note_erased(&mut self, _view: &RegionView, _block: BlockId) {}

    /// Returns a closed block whose data are to fill `block`, which was erased, or `None`. The closed block is then
    /// erased, and is free instead of `block`.
    ///
    /// Called for data blocks of devices whose policy migrates data (`WearConfig::migrates`), after
    /// [`WearPolicy::note_erased`]. Not called while a migration of the plane has not ended, after the erase of a cold
    /// block, or if the plane is short of free blocks.
    fn erased(&mut self, _view: &RegionView, _block: BlockId) -> Option<BlockId> {
        None
    }

    /// Writes the internal state of the policy to a saved state.
    ///
    /// # Errors
    ///
    /// [`StateError::Policy`] if the policy cannot be saved.
    fn save(&self, _out: &mut Writer) -> Result<(), StateError> {
        Ok(())
    }

    /// Reads what [`WearPolicy::save`] wrote, into a new policy.
    ///
    /// # Errors
    ///
    /// [`StateError`] if the file is damaged.
    fn load(&mut self, _input: &mut Reader) -> Result<(), StateError> {
        Ok(())
    }

    /// Returns the error of an external policy that has failed. The policy is not called again.
    fn error(&self) -> Option<&Cause> {
        None
    }
}

policy_family! {
    /// Policy that levels wear.
    Wear / WearConfig: dyn WearPolicy, or external {
        /// No wear leveling: free blocks are opened in the order in which they were erased.
        none::Unleveled = "none",
        /// Opens the free block with the fewest erases; of several, the one that was erased first.
        least_erased::LeastErased = "least-erased",
        /// Fills an erased block with the data of the least erased closed block, if their erases differ by more than a
        /// threshold.
        static_threshold::StaticThreshold = "static-threshold",
        /// Keeps a pool of blocks with hot data and one with cold data, and swaps blocks between them (Chang 2007).
        dual_pool::DualPool = "dual-pool",
        /// Fills worn blocks with cold data, and erases worn blocks less often (Agrawal et al. 2008, Section 5).
        agrawal::Agrawal = "agrawal",
    }
}

impl Default for WearConfig {
    fn default() -> Self {
        WearConfig::Unleveled(Default::default())
    }
}

impl WearConfig {
    /// Returns `true` for the policy of devices that name none.
    pub fn is_default(&self) -> bool {
        *self == WearConfig::default()
    }

    /// Returns `true` if the policy may migrate the data of cold blocks.
    pub fn migrates(&self) -> bool {
        match self {
            WearConfig::Unleveled(_) | WearConfig::LeastErased(_) => false,
            WearConfig::StaticThreshold(_) | WearConfig::DualPool(_) | WearConfig::External(_) => true,
            WearConfig::Agrawal(options) => options.migration,
        }
    }
}
