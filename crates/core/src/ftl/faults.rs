//! What fails, and what has failed: see docs/model/faults.md.
//!
//! An operation fails at its end or does not: a draw from a stream of its own, or the list of places, says so then.

use std::collections::BTreeSet;
use std::ops::Range;

use super::Ftl;
use super::allocation::AllocationConfig;
use super::gc::job::Job;
use super::space::{BlockState, InHand, RESERVE, Role};
use crate::config::{DeviceConfig, FaultKind, FaultPlace};
use crate::nand::media::LOST;
use crate::sim::id::{BlockId, PlaneId, Ppn};
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
struct Chance {
    rate: f64,
    rng: Rng,
}

impl Chance {
    fn new(rate: f64, seed: u64, name: &str) -> Chance {
        Chance { rate, rng: Rng::new(seed, name) }
    }

    /// Whether the next one fails. Nothing is drawn where none does.
    fn draw(&mut self) -> bool {
        self.rate > 0.0 && self.rng.unit() < self.rate
    }
}

/// What fails, and what has failed.
#[derive(Clone, Debug)]
pub struct Faults {
    /// By [`FaultKind`].
    chances: [Chance; 3],
    /// What the device file says of places, and whether that is still to come.
    places: Vec<(FaultPlace, bool)>,
    /// What was asked for while the device ran.
    asked: Vec<FaultPlace>,
    /// Erases that a block stands; 0: any number.
    endurance: u32,
    /// Units that cannot be read.
    lost: BTreeSet<u32>,
    /// Blocks that are to be emptied, in the order in which they failed.
    waiting: Vec<BlockId>,
    /// By plane: blocks that are owed to those of translation pages.
    owed: Vec<u32>,
    /// Blocks that were bad when the device was new.
    pub factory_bad: u64,
    /// Since when the device takes no writes.
    pub read_only: Option<Time>,
    /// By number of good blocks of a plane: the units that it can hold.
    holds: Vec<u64>,
    /// Units that a plane holds on a full device, or the planes of a pool together where these are `pooled`.
    needed: u64,
    pooled: bool,
    seed: u64,
    factory_per_plane: u32,
}

/// Faults that were asked for and have not come, at most.
const MOST_ASKED: usize = 1000;

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
            places: config.places.iter().map(|&place| (place, true)).collect(),
            asked: Vec::new(),
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
    fn draw_factory_bad(&self, planes: u32, blocks: u32) -> Vec<BlockId> {
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
    pub fn ask(&mut self, place: FaultPlace) -> Result<(), String> {
        if self.asked.len() >= MOST_ASKED {
            return Err(format!("{MOST_ASKED} faults were asked for and have not come: wait for them"));
        }
        self.asked.push(place);
        Ok(())
    }

    /// Whether an operation that ends now has failed.
    fn fails(&mut self, kind: FaultKind, plane: u32, block: u32, pages: Range<u32>) -> bool {
        let drawn = self.chances[kind as usize].draw();
        if let Some(index) = self.asked.iter().position(|place| place.is_hit(kind, plane, block, pages.clone())) {
            self.asked.remove(index);
            return true;
        }
        let hit = |place: &&mut (FaultPlace, bool)| place.1 && place.0.is_hit(kind, plane, block, pages.clone());
        if let Some(place) = self.places.iter_mut().find(hit) {
            place.1 = false;
            return true;
        }
        drawn
    }

    /// Whether no read that is under way can turn out not to be readable.
    pub fn reads_are_sure(&self) -> bool {
        let may_come = |place: &FaultPlace| place.kind == FaultKind::Read;
        self.chances[FaultKind::Read as usize].rate == 0.0
            && self.lost.is_empty()
            && !self.asked.iter().any(may_come)
            && !self.places.iter().any(|(place, to_come)| *to_come && may_come(place))
    }

    /// Writes what is still to come, and what was lost, for a saved state.
    pub(super) fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        for chance in &self.chances {
            chance.rng.words().iter().try_for_each(|&word| out.u64(word))?;
        }
        self.places.iter().try_for_each(|(_, to_come)| out.u8(u8::from(*to_come)))?;
        out.u64(self.factory_bad)?;
        out.u32(self.lost.len() as u32)?;
        self.lost.iter().try_for_each(|&place| out.u32(place))
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
        for place in &mut self.places {
            place.1 = input.u8()? != 0;
        }
        self.factory_bad = input.count("factory bad blocks")?;
        self.lost.clear();
        for _ in 0..input.below(units.saturating_add(1), "lost units")? {
            let place = input.below(units, "place")?;
            if !self.lost.insert(place) {
                return Err(input.damaged(format!("place {place} is lost twice")));
            }
        }
        Ok(())
    }
}

impl Ftl {
    /// Whether the device takes no writes any more.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.read_only.is_some())
    }

    /// Marks what is bad in a new device.
    pub(super) fn mark_factory_bad(&mut self, device: &DeviceConfig) {
        let Some(faults) = &self.faults else { return };
        let bad = faults.draw_factory_bad(device.total_planes(), device.geometry.blocks);
        self.mark_bad(&bad);
        self.note_factory_bad(bad.len() as u64);
    }

    pub(crate) fn note_factory_bad(&mut self, blocks: u64) {
        if let Some(faults) = &mut self.faults {
            faults.factory_bad = blocks;
        }
    }

    /// Takes blocks out of a new device.
    pub(super) fn mark_bad(&mut self, bad: &[BlockId]) {
        self.blocks.mark_bad(bad);
        (0..self.shape.planes).for_each(|plane| self.refresh_ready(PlaneId(plane)));
    }

    /// Whether the program of `units` units at `place` has failed, which ends now.
    pub fn program_fails(&mut self, place: Ppn, units: u32) -> bool {
        let pages = self.pages_of(place, units);
        self.operation_fails(FaultKind::Program, self.blocks.block_of(place), pages)
    }

    /// Returns whether the erase of a block has failed, which ends now: by chance, by order, or because the block has
    /// had as many erases as it stands.
    pub fn erase_fails(&mut self, block: BlockId) -> bool {
        let has_failed = self.operation_fails(FaultKind::Erase, block, 0..u32::MAX);
        let stands = self.faults.as_ref().map_or(0, |faults| faults.endurance);
        has_failed || (stands > 0 && self.blocks.block(block).erases >= stands)
    }

    fn operation_fails(&mut self, kind: FaultKind, block: BlockId, pages: Range<u32>) -> bool {
        let (plane, index) = (self.blocks.plane_of(block), self.blocks.index_in_plane(block));
        self.faults.as_mut().is_some_and(|faults| faults.fails(kind, plane.0, index, pages))
    }

    /// The flash pages of some units, within their block.
    fn pages_of(&self, place: Ppn, units: u32) -> Range<u32> {
        let (per_page, spans) = (self.shape.units_per_page, self.shape.pages_per_unit);
        let first = self.blocks.offset_in_block(place);
        per_page.divide(first) * spans..(per_page.divide(first + units - 1) + 1) * spans
    }

    /// The read of the page of `place` ends, or of so many pages of a unit that spans them. Where it fails all units of
    /// the page are lost. Returns whether it did.
    pub fn read_fails(&mut self, place: Ppn, pages: u32) -> bool {
        let per_page = self.shape.units_per_page.divisor();
        let first = Ppn(place.0 / per_page * per_page);
        let of_unit = self.pages_of(first, per_page);
        let block = self.blocks.block_of(place);
        let spans = self.shape.pages_per_unit > 1;
        let mut failed = false;
        for page in of_unit.start..of_unit.start + if spans { pages } else { 1 } {
            failed |= self.operation_fails(FaultKind::Read, block, page..page + 1);
        }
        if failed {
            (first.0..first.0 + per_page).for_each(|place| self.lose(Ppn(place)));
        }
        failed
    }

    /// A unit cannot be read from now on. What is the device's own it knows without.
    pub fn lose(&mut self, place: Ppn) {
        let owner = self.map.owner(place);
        if owner >= self.host_units || self.is_lost(place) {
            return;
        }
        let valid = self.blocks.is_valid(place);
        let Some(faults) = &mut self.faults else { return };
        faults.lost.insert(place.0);
        self.counters.faults.units_lost += u64::from(valid);
        if let Some(media) = &mut self.media {
            media.spoil(place);
        }
    }

    /// What a lost unit was copied to is lost too.
    pub fn copy_loss(&mut self, from: Ppn, to: Ppn) {
        if self.is_lost(from)
            && let Some(faults) = &mut self.faults
        {
            faults.lost.insert(to.0);
        }
    }

    /// A program has put something at a place that cannot be read: found by a recovery, or kept of what was lost.
    pub fn mark_lost(&mut self, place: Ppn) {
        if let Some(faults) = &mut self.faults {
            faults.lost.insert(place.0);
        }
        if let Some(media) = &mut self.media {
            media.spoil(place);
        }
    }

    /// Whether a unit cannot be read.
    #[inline]
    pub fn is_lost(&self, place: Ppn) -> bool {
        self.faults.as_ref().is_some_and(|faults| !faults.lost.is_empty() && faults.lost.contains(&place.0))
    }

    /// Whether anything in the page of `place` cannot be read that is or was one of these logical units.
    pub fn is_lost_in_page(&self, place: Ppn, units: &Range<u32>) -> bool {
        let per_page = self.shape.units_per_page.divisor();
        let first = place.0 / per_page * per_page;
        let Some(faults) = &self.faults else { return false };
        faults.lost.range(first..first + per_page).any(|&place| units.contains(&self.map.owner(Ppn(place))))
    }

    /// Whether anything in a block cannot be read.
    pub(crate) fn has_lost(&self, block: BlockId) -> bool {
        let places = || self.blocks.first_unit(block).0..self.blocks.first_unit(BlockId(block.0 + 1)).0;
        self.faults.as_ref().is_some_and(|faults| faults.lost.range(places()).next().is_some())
    }

    /// What a block holds is gone.
    pub(super) fn forget_lost(&mut self, block: BlockId) {
        let Some(faults) = self.faults.as_mut().filter(|faults| !faults.lost.is_empty()) else { return };
        let first = self.blocks.first_unit(block).0;
        let end = self.blocks.first_unit(BlockId(block.0 + 1)).0;
        let gone: Vec<u32> = faults.lost.range(first..end).copied().collect();
        gone.iter().for_each(|place| {
            faults.lost.remove(place);
        });
    }

    /// A program has failed: what was to be there is not, and its block takes nothing more. `units` held data.
    pub fn program_failed(&mut self, place: Ppn, units: u32, with_data: u32) {
        let block = self.blocks.block_of(place);
        self.counters.faults.programs_failed += 1;
        self.counters.faults.units_failed += u64::from(with_data);
        let plane = self.blocks.plane_of(block);
        let (is_new, left) = self.blocks.fail(block);
        for unit in (place.0..place.0 + units).chain(left) {
            self.map.set_owner(Ppn(unit), super::PADDING);
        }
        if is_new {
            self.counters.faults.blocks_grown_bad += 1;
            self.replace_block(plane, self.blocks.block(block).role);
        }
        self.refresh_ready(plane);
    }

    /// Nothing is programmed any more in a block of which a program has failed: it is to be emptied.
    pub fn empty_failed(&mut self, block: BlockId) {
        self.blocks.set_failed(block);
        let Some(faults) = &mut self.faults else { return };
        faults.waiting.push(block);
        let plane = self.blocks.plane_of(block);
        self.update_kept(plane);
    }

    /// The host leaves a block more to cleaning while one waits to be emptied.
    fn update_kept(&mut self, plane: PlaneId) {
        let waits = self.first_failed(plane, Role::Data).is_some();
        self.blocks.set_kept(plane, RESERVE + 1 + u32::from(waits));
        self.refresh_ready(plane);
    }

    /// The first block of a plane that waits to be emptied: of data, or of translation pages.
    pub fn first_failed(&self, plane: PlaneId, role: Role) -> Option<BlockId> {
        let waiting = self.faults.iter().flat_map(|faults| &faults.waiting).copied();
        waiting.into_iter().find(|&block| self.blocks.plane_of(block) == plane && self.blocks.block(block).role == role)
    }

    /// After loading a state: blocks that have failed are to be emptied.
    pub(super) fn find_failed(&mut self) {
        let Some(faults) = &mut self.faults else { return };
        let blocks = self.blocks.all().iter().zip(0..);
        faults.waiting = blocks.filter(|(b, _)| b.state == BlockState::Failed).map(|(_, id)| BlockId(id)).collect();
        (0..self.shape.planes).for_each(|plane| self.update_kept(PlaneId(plane)));
    }

    /// Its units are moved next.
    pub fn take_failed(&mut self, block: BlockId) {
        if let Some(faults) = &mut self.faults {
            faults.waiting.retain(|waiting| *waiting != block);
        }
        self.blocks.take_failed(block);
        self.update_kept(self.blocks.plane_of(block));
    }

    /// All that a failed block held is elsewhere: it is never used again.
    pub fn retire(&mut self, block: BlockId) {
        self.forget_lost(block);
        self.blocks.set_bad(block);
    }

    /// The erase of a block has failed: it is never used again.
    pub fn erase_failed(&mut self, block: BlockId) {
        let role = self.blocks.block(block).role;
        self.counters.faults.erases_failed += 1;
        self.counters.faults.blocks_grown_bad += 1;
        self.forget_lost(block);
        self.blocks.fail(block);
        self.blocks.set_bad(block);
        self.replace_block(self.blocks.plane_of(block), role);
    }

    /// After loading a state: by plane, the blocks that are owed to those of translation pages.
    pub(super) fn set_owed(&mut self, owed: Vec<u32>) {
        if let Some(faults) = &mut self.faults {
            faults.owed = owed;
        }
    }

    /// Translation pages get a block in the place of one that failed, as soon as one of data is free.
    fn replace_block(&mut self, plane: PlaneId, role: Role) {
        if let Some(faults) = &mut self.faults {
            faults.owed[plane.index()] += u32::from(role == Role::Map);
        }
        self.pay_map(plane);
    }

    /// A free block of data goes to the translation pages, where they have lost one.
    pub fn pay_map(&mut self, plane: PlaneId) {
        let Some(faults) = &mut self.faults else { return };
        let owed = &mut faults.owed[plane.index()];
        if *owed == 0 {
            return;
        }
        while *owed > 0 && self.blocks.give_to_map(plane) {
            *owed -= 1;
        }
        self.refresh_ready(plane);
    }

    /// Whether the good blocks hold what the host may write, by the rule that devices are accepted by.
    pub fn has_spare(&self) -> bool {
        let Some(faults) = &self.faults else { return true };
        let holds = |plane: PlaneId| faults.holds[self.blocks.good(plane) as usize];
        if faults.pooled {
            let mut pools = vec![0; self.allocation.pools() as usize];
            for plane in (0..self.shape.planes).map(PlaneId) {
                pools[self.allocation.pool_of(plane) as usize] += holds(plane);
            }
            return pools.iter().all(|held| *held >= faults.needed);
        }
        (0..self.shape.planes).all(|plane| holds(PlaneId(plane)) >= faults.needed)
    }

    /// Returns `true` if garbage collection of a plane is sure to continue with what it has in hand, and so is that of
    /// its translation pages.
    pub fn can_go_on(&self, plane: PlaneId, job: &Job, map: InHand) -> bool {
        let is_sure = |role, hand| self.blocks.is_sure(self.blocks.region(plane, role), hand);
        is_sure(Role::Data, job.in_hand(self))
            && (!self.shape.hooks.entries || (is_sure(Role::Map, map) && self.holds_map(plane)))
    }

    /// Whether translation pages always find room in a plane, in the good blocks that they have and those that data
    /// are sure to give for the ones that they have lost: with one of them free, those left hold a stale page, also
    /// when what a failed block still holds has come to them. Writes may fill the frontier, so that it is one of those
    /// left (config/reserve.rs keeps one more than that).
    fn holds_map(&self, plane: PlaneId) -> bool {
        let Some(faults) = &self.faults else { return true };
        let (blocks, planes, data) = (&self.blocks, self.shape.planes, self.blocks.data_units());
        let pages = (self.scheme().translation_pages() + planes - 1 - self.allocation.order().position(plane)) / planes;
        let (mut of_map, mut of_data, mut open, mut valid) =
            (blocks.free_blocks(plane, Role::Map), blocks.free_blocks(plane, Role::Data), 0, 0);
        for block in blocks.of_plane(plane).iter().filter(|block| !block.failed && block.state != BlockState::Free) {
            *(if block.role == Role::Map { &mut of_map } else { &mut of_data }) += 1;
            if block.role == Role::Data {
                open += u32::from(block.state == BlockState::Open);
                valid += u32::from(block.valid);
            }
        }
        let spare = (of_data * data - valid) / data;
        let coming = spare.saturating_sub(open + RESERVE).min(faults.owed[plane.index()]);
        (of_map + coming).saturating_sub(1) * (data / self.shape.units_per_program) > pages
    }
}

/// Versions of units that cannot be read are none that anybody wrote.
const _: () = assert!(LOST != crate::nand::media::BLANK);
