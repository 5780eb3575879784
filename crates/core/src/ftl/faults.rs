//! What fails, and what has failed: see docs/model/faults.md.
//!
//! An operation fails at its end or does not: a draw from a stream of its own, or the list of configured, says so then.

use std::collections::BTreeSet;
use std::ops::Range;

use super::allocation::AllocationConfig;
use crate::config::{DeviceConfig, FaultKind, InjectedFault};
use crate::nand::media::LOST;
use crate::sim::id::BlockId;
use crate::sim::rng::Rng;
use crate::sim::time::Time;
use crate::state::{Reader, StateError, Writer};

/// Whether a block is bad, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// It was when the device was new.
    Factory,
    /// A program or an erase of it has failed.
    Grown,
}

/// One kind of operation, some of which fail.
#[derive(Clone, Debug)]
pub(super) struct Chance {
    pub(super) rate: f64,
    pub(super) rng: Rng,
}

impl Chance {
    pub(super) fn new(rate: f64, seed: u64, name: &str) -> Chance {
        Chance { rate, rng: Rng::new(seed, name) }
    }

    /// Whether the next one fails. Nothing is drawn where none does.
    pub(super) fn draw(&mut self) -> bool {
        self.rate > 0.0 && self.rng.unit() < self.rate
    }
}

/// What fails, and what has failed.
#[derive(Clone, Debug)]
pub struct Faults {
    /// By [`FaultKind`].
    pub(super) chances: [Chance; 3],
    /// What the device file says of configured, and whether that is still to come.
    pub(super) configured: Vec<(InjectedFault, bool)>,
    /// What was asked for while the device ran.
    pub(super) injected: Vec<InjectedFault>,
    /// Erases that a block stands; 0: any number.
    pub(super) endurance: u32,
    /// Units that cannot be read.
    pub(super) lost: BTreeSet<u32>,
    /// Blocks that are to be emptied, in the order in which they failed.
    pub(super) waiting: Vec<BlockId>,
    /// By plane: blocks that are owed to those of translation pages.
    pub(super) owed: Vec<u32>,
    /// Blocks that were bad when the device was new.
    pub factory_bad: u64,
    /// Since when the device takes no writes.
    pub read_only: Option<Time>,
    /// By number of good blocks of a plane: the units that it can hold.
    pub(super) holds: Vec<u64>,
    /// Units that a plane holds on a full device, or the planes of a pool together where these are `pooled`.
    pub(super) needed: u64,
    pub(super) pooled: bool,
    pub(super) seed: u64,
    pub(super) factory_per_plane: u32,
}

/// Faults that were asked for and have not come, at most.
pub(super) const MOST_INJECTED: usize = 1000;

impl Faults {
    /// Of a new device; `None` where nothing fails.
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
            endurance: device.endurance(),
            lost: BTreeSet::new(),
            waiting: Vec::new(),
            owed: vec![0; device.total_planes() as usize],
            factory_bad: 0,
            read_only: None,
            holds: (0..=device.geometry.blocks).map(|good| device.units_of_a_plane_with(good)).collect(),
            needed: device.units_of_a_place(),
            pooled: matches!(device.allocation, AllocationConfig::Dynamic(_)),
            seed,
            factory_per_plane: device.factory_bad(),
        })
    }

    /// By plane, which blocks are bad when the device is new: any so many of them are as likely.
    pub(super) fn draw_factory_bad(&self, planes: u32, blocks: u32) -> Vec<BlockId> {
        let mut rng = Rng::new(self.seed, "faults-factory");
        let mut bad = Vec::new();
        for plane in 0..planes {
            // Floyd's sampling (Bentley and Floyd, Communications of the ACM 30(9), 1987).
            let mut chosen = BTreeSet::new();
            for last in blocks - self.factory_per_plane.min(blocks)..blocks {
                let drawn = rng.below(u64::from(last) + 1) as u32;
                chosen.insert(if chosen.contains(&drawn) { last } else { drawn });
            }
            bad.extend(chosen.into_iter().map(|block| BlockId(plane * blocks + block)));
        }
        bad
    }

    /// Has the next such operation fail. An error where too many have not come.
    pub fn inject(&mut self, fault: InjectedFault) -> Result<(), String> {
        if self.injected.len() >= MOST_INJECTED {
            return Err(format!("{MOST_INJECTED} faults were asked for and have not come: wait for them"));
        }
        self.injected.push(fault);
        Ok(())
    }

    /// Whether an operation that ends now has failed.
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

    /// Whether no read that is under way can turn out not to be readable.
    pub fn reads_are_sure(&self) -> bool {
        let may_come = |fault: &InjectedFault| fault.kind == FaultKind::Read;
        self.chances[FaultKind::Read as usize].rate == 0.0
            && self.lost.is_empty()
            && !self.injected.iter().any(may_come)
            && !self.configured.iter().any(|(fault, to_come)| *to_come && may_come(fault))
    }

    /// Writes what is still to come, and what was lost, for a saved state.
    pub(super) fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        for chance in &self.chances {
            chance.rng.words().iter().try_for_each(|&word| out.u64(word))?;
        }
        self.configured.iter().try_for_each(|(_, to_come)| out.u8(u8::from(*to_come)))?;
        out.u64(self.factory_bad)?;
        out.u32(self.lost.len() as u32)?;
        self.lost.iter().try_for_each(|&fault| out.u32(fault))
    }

    /// Reads what [`Faults::save`] wrote, of a device of so many units.
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
        self.factory_bad = input.count("factory bad blocks")?;
        self.lost.clear();
        for _ in 0..input.below(units.saturating_add(1), "lost units")? {
            let fault = input.below(units, "place")?;
            if !self.lost.insert(fault) {
                return Err(input.damaged(format!("place {fault} is lost twice")));
            }
        }
        Ok(())
    }
}

/// Versions of units that cannot be read are none that anybody wrote.
const _: () = assert!(LOST != crate::nand::media::BLANK);
