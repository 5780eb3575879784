//! Failures of operations, and the damage that they have done: see docs/model/faults.md.
//!
//! An operation is found to have failed when it ends. Failures are drawn from random numbers of their own, or injected
//! at the addresses that `faults.inject` lists.

use std::collections::BTreeSet;
use std::ops::Range;

use super::allocation::AllocationConfig;
use crate::config::{DeviceConfig, FaultKind, InjectedFault, WearOut};
use crate::nand::media::LOST;
use crate::sim::id::{BlockId, Ppn};
use crate::sim::rng::Rng;
use crate::sim::time::Time;
use crate::state::{Reader, StateError, Writer};

/// Reason for which a block is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// The block was bad when the device was new.
    Factory,
    /// A program or an erase of the block has failed.
    Grown,
    /// A failed block whose data have been moved. Its contents do not count any more.
    Retired,
}

/// Failure rate of a kind of operation.
#[derive(Clone, Debug)]
pub(super) struct Chance {
    pub(super) rate: f64,
    pub(super) rng: Rng,
}

impl Chance {
    pub(super) fn new(rate: f64, seed: u64, name: &str) -> Chance {
        Chance { rate, rng: Rng::new(seed, name) }
    }

    /// Returns `true` if the next operation fails. Draws no number if the rate is 0.
    pub(super) fn draw(&mut self) -> bool {
        self.rate > 0.0 && self.rng.unit() < self.rate
    }
}

/// Erases that the blocks of a device endure.
#[derive(Clone, Debug)]
pub(super) enum Endurance {
    /// Any number.
    Unlimited,
    /// A common number of all blocks.
    Same(u32),
    /// A number for each block.
    Each(Vec<u32>),
}

impl Endurance {
    fn new(device: &DeviceConfig, wear_out: WearOut, seed: u64) -> Endurance {
        match (wear_out, device.endurance()) {
            (_, 0) => Endurance::Unlimited,
            (WearOut::Limit | WearOut::Count | WearOut::Exclude, endurance) => Endurance::Same(endurance),
            (WearOut::Weibull { shape }, endurance) => {
                let mut rng = Rng::new(seed, "faults-endurance");
                // The mean of the distribution is scale * gamma(1 + 1 / shape).
                let scale = f64::from(endurance) / libm::tgamma(1.0 + 1.0 / shape);
                let mut draw = || scale * libm::pow(-libm::log(1.0 - rng.unit()), 1.0 / shape);
                Endurance::Each((0..device.total_blocks()).map(|_| (draw().round_ties_even() as u32).max(1)).collect())
            }
        }
    }

    /// Returns `true` if a block cannot be erased once more after `erases` erases.
    pub(super) fn is_reached(&self, block: BlockId, erases: u32) -> bool {
        match self {
            Endurance::Unlimited => false,
            Endurance::Same(endurance) => erases >= *endurance,
            Endurance::Each(endurance) => erases >= endurance[block.index()],
        }
    }
}

/// Failures of a device, and the damage that they have done.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Failure rates, indexed by [`FaultKind`].
    pub(super) chances: [Chance; 3],
    /// Injected faults of the device file. The flag is true until the fault has occurred.
    pub(super) configured: Vec<(InjectedFault, bool)>,
    /// Faults that were injected while the device ran, and have not occurred.
    pub(super) injected: Vec<InjectedFault>,
    /// Erases that blocks endure.
    pub(super) endurance: Endurance,
    /// True if erases of blocks beyond their endurance do not fail.
    pub(super) only_counts: bool,
    /// Uncorrectable units, by physical address.
    pub(super) lost: BTreeSet<u32>,
    /// True if the device draws the faults of reads before they end, because it may rebuild their pages.
    pub(super) draws_before: bool,
    /// True if the read that ends now has failed. Only if `draws_before`.
    pub(super) drawn: bool,
    /// Pages that were rebuilt and wait for their move, with the erases of their blocks.
    pub(super) rebuilt: Vec<(Ppn, u32)>,
    /// Blocks that wait for their evacuation, in the order in which they failed.
    pub(super) waiting: Vec<BlockId>,
    /// Blocks that data still has to give to translation pages. Indexed by plane.
    pub(super) owed: Vec<u32>,
    /// Number of blocks that were bad when the device was new.
    pub factory_bad: u64,
    /// Time at which the device became read-only.
    pub read_only: Option<Time>,
    /// Units that a plane can hold, indexed by its number of good blocks.
    pub(super) holds: Vec<u64>,
    /// Units that a plane holds on a full device. If `pooled`, units that the planes of a pool hold together.
    pub(super) needed: u64,
    pub(super) pooled: bool,
    /// Sets of planes that share blocks, if the mapping scheme has blocks of its own.
    pub(super) sets: Option<Sets>,
    pub(super) seed: u64,
    pub(super) factory_per_plane: u32,
}

/// Sets of planes whose blocks a mapping scheme shares among its logical blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sets {
    /// Number of planes of a set.
    pub(super) planes: u32,
    /// Number of good blocks that a set needs.
    pub(super) needed: u32,
    /// Number of blocks in addition to these that stay free for a recovery.
    pub(super) for_recovery: u32,
}

/// Maximum number of injected faults that have not occurred.
pub(super) const MAX_INJECTED: usize = 1000;

impl Faults {
    /// Creates the faults of a new device. Returns `None` if the device has no table `faults`.
    pub fn new(device: &DeviceConfig, seed: u64) -> Option<Faults> {
        let config = device.faults.as_ref()?;
        let chance = |rate, name| Chance::new(rate, seed, name);
        Some(Faults {
            chances: [
                chance(config.program_rate, "faults-program"),
                chance(config.erase_rate, "faults-erase"),
                chance(config.read_rate, "faults-read"),
            ],
            configured: config.inject.iter().map(|&fault| (fault, true)).collect(),
            injected: Vec::new(),
            endurance: Endurance::new(device, config.wear_out, seed),
            only_counts: matches!(config.wear_out, WearOut::Count | WearOut::Exclude),
            lost: BTreeSet::new(),
            draws_before: device.rebuilds(),
            drawn: false,
            rebuilt: Vec::new(),
            waiting: Vec::new(),
            owed: vec![0; device.total_planes() as usize],
            factory_bad: 0,
            read_only: None,
            holds: (0..=device.geometry.blocks).map(|good| device.units_of_a_plane_with(good)).collect(),
            needed: device.units_of_a_place(),
            sets: device.blocks_of_set().map(|(planes, needed)| Sets { planes, needed, for_recovery: 0 }),
            pooled: matches!(device.allocation, AllocationConfig::Dynamic(_)),
            seed,
            factory_per_plane: device.factory_bad(),
        })
    }

    /// Draws the blocks of each plane that are bad when the device is new. All sets of this size are equally likely.
    /// The blocks of `together` planes have the same addresses, because superblocks were formed of good blocks.
    pub(super) fn draw_factory_bad(&self, planes: u32, blocks: u32, together: u32) -> Vec<BlockId> {
        let mut rng = Rng::new(self.seed, "faults-factory");
        let mut bad = Vec::new();
        for plane in (0..planes).step_by(together as usize) {
            // Floyd's sampling (Bentley and Floyd, Communications of the ACM 30(9), 1987).
            let mut chosen = BTreeSet::new();
            for last in blocks - self.factory_per_plane.min(blocks)..blocks {
                let drawn = rng.below(u64::from(last) + 1) as u32;
                chosen.insert(if chosen.contains(&drawn) { last } else { drawn });
            }
            let of = |plane| chosen.iter().map(move |block| BlockId(plane * blocks + block));
            bad.extend((plane..plane + together).flat_map(of));
        }
        bad
    }

    /// Injects a fault: the next operation that matches `fault` fails. Returns an error if too many faults have not
    /// occurred.
    pub fn inject(&mut self, fault: InjectedFault) -> Result<(), String> {
        if self.injected.len() >= MAX_INJECTED {
            return Err(format!("too many injected faults: {MAX_INJECTED} have not occurred; wait until they have"));
        }
        self.injected.push(fault);
        Ok(())
    }

    /// Returns `true` if an operation that ends now has failed.
    pub(super) fn fails(&mut self, kind: FaultKind, plane: u32, block: u32, pages: Range<u32>) -> bool {
        let drawn = self.chances[kind as usize].draw();
        if let Some(index) = self.injected.iter().position(|fault| fault.is_hit(kind, plane, block, pages.clone())) {
            self.injected.remove(index);
            return true;
        }
        let hit = |fault: &&mut (InjectedFault, bool)| fault.1 && fault.0.is_hit(kind, plane, block, pages.clone());
        if let Some(fault) = self.configured.iter_mut().find(hit) {
            fault.1 = false;
            return true;
        }
        drawn
    }

    /// Makes the next read of a page fail.
    pub(super) fn fail_next_read(&mut self, plane: u32, block: u32, page: u32) {
        let [plane, block, page] = [plane, block, page].map(Some);
        self.injected.push(InjectedFault { kind: FaultKind::Read, plane, block, page });
    }

    /// Returns `true` if no read in flight can turn out to be uncorrectable.
    pub fn reads_are_sure(&self) -> bool {
        let may_come = |fault: &InjectedFault| fault.kind == FaultKind::Read;
        self.chances[FaultKind::Read as usize].rate == 0.0
            && self.lost.is_empty()
            && !self.injected.iter().any(may_come)
            && !self.configured.iter().any(|(fault, to_come)| *to_come && may_come(fault))
    }

    /// Writes the random numbers, the faults that have not occurred, and the uncorrectable units to a saved state.
    pub(super) fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        for chance in &self.chances {
            chance.rng.words().iter().try_for_each(|&word| out.u64(word))?;
        }
        self.configured.iter().try_for_each(|(_, to_come)| out.u8(u8::from(*to_come)))?;
        if let Endurance::Each(endurance) = &self.endurance {
            endurance.iter().try_for_each(|&erases| out.u32(erases))?;
        }
        out.u64(self.factory_bad)?;
        out.u32(self.lost.len() as u32)?;
        self.lost.iter().try_for_each(|&fault| out.u32(fault))
    }

    /// Reads what [`Faults::save`] wrote, on a device with `units` units.
    pub(super) fn load(&mut self, units: u32, input: &mut Reader) -> Result<(), StateError> {
        for chance in &mut self.chances {
            let mut words = [0; 4];
            for word in &mut words {
                *word = input.u64()?;
            }
            chance.rng = Rng::from_words(words).ok_or_else(|| input.damaged("a stream of random numbers"))?;
        }
        for fault in &mut self.configured {
            fault.1 = input.u8()? != 0;
        }
        if let Endurance::Each(endurance) = &mut self.endurance {
            for erases in endurance {
                *erases = input.u32()?;
            }
        }
        self.factory_bad = input.count("factory bad blocks")?;
        self.lost.clear();
        for _ in 0..input.below(units.saturating_add(1), "lost units")? {
            let fault = input.below(units, "place")?;
            if !self.lost.insert(fault) {
                return Err(input.damaged(format!("address {fault} is lost twice")));
            }
        }
        Ok(())
    }
}

/// Sectors that are lost and sectors that were never written have different versions.
const _: () = assert!(LOST != crate::nand::media::BLANK);
