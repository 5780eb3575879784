//! Garbage collection of one plane, step by step: which block is next, which page is read, what is programmed.

use crate::config::advanced::Waste;
use crate::ftl::Ftl;
use crate::ftl::mover::Evacuation;
use crate::ftl::space::{Claim, InHand, Role};
use crate::sim::id::{BlockId, PlaneId, Ppn};
use crate::work::Class;

/// What a job does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read the page of `first`: so many valid units of it.
    Read {
        /// The first valid unit of the page.
        first: Ppn,
        /// How many units are moved from it.
        units: u32,
    },
    /// Move the page of `first` within the plane.
    CopyBack {
        /// The first valid unit of the page.
        first: Ppn,
    },
    /// Program what has been read.
    Write,
    /// A victim has been read out; it can be erased at once.
    Erase(BlockId),
    /// Decide which block is next: that takes time, and is to be granted.
    Choose,
    /// Nothing to do now.
    Rest,
}

/// The garbage collection of one plane. One block is evacuated at a time.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// True from the choice of a step until its operation has ended, so that no two steps are under way.
    pub busy: bool,
    /// The step that is being taken, and its scheduling class.
    pub coming: Option<(Step, Class)>,
    /// The evacuation of its victims.
    pub moving: Evacuation,
    /// Invalid units that were passed over since the last host program of the plane.
    pub reclaimed: u32,
    /// Units that the victim still gains: what blind copy-backs may waste, but for one program.
    pub gain: u32,
    /// Victims that are read out and not yet erased, without those that have failed.
    pub awaiting_erase: u32,
    /// Failed blocks that are read out and not yet given up.
    pub leaving: u32,
    /// Of `awaiting_erase`, those that something still depends on, where programs fail: that may be a write which waits for a
    /// free block to be programmed again, so that nobody may wait for them.
    pub held: u32,
    /// A failed block has just been chosen: the host has room again that was kept for it.
    pub took_failed: bool,
    /// Choices take time: each is asked for, and made once when it is granted.
    asks: bool,
    /// A choice is granted.
    pub granted: bool,
    asking: bool,
}

impl Job {
    /// No cleaning yet; `asks` where choices take time.
    pub fn new(asks: bool) -> Job {
        Job { asks, ..Job::default() }
    }

    /// Whether the job has anything in hand.
    pub fn is_idle(&self) -> bool {
        !self.busy && self.moving.is_idle() && self.awaiting_erase + self.leaving == 0
    }

    /// Returns what the job has still to program, and what it will free.
    pub fn in_hand(&self, ftl: &Ftl) -> InHand {
        InHand {
            units: self.moving.units_left(ftl),
            read: self.moving.copies.len() as u32,
            waste: if ftl.shape().copy_back == Waste::Blind { self.gain } else { 0 },
            awaiting_erase: self.awaiting_erase,
            coming: self.blocks_coming(ftl),
        }
    }

    /// What to do next, given that nothing of the job is on its way.
    ///
    /// Program commands are filled with the units of the next victim where cleaning goes on, so that nothing is
    /// padded while space is short; the rest is programmed, padded, when it stops.
    pub fn next_step(&mut self, ftl: &mut Ftl, plane: PlaneId) -> Step {
        debug_assert!(!self.busy);
        let group = ftl.shape().units_per_program as usize;
        if self.moving.copies.len() >= group {
            return Step::Write;
        }
        loop {
            if self.moving.block().is_none() && !self.choose(ftl, plane) {
                if std::mem::take(&mut self.asking) {
                    return Step::Choose;
                }
                // What is in hand may have to wait for the erase of a victim that waits for others.
                let room = ftl.blocks.may_take(ftl.blocks.region(plane, Role::Data), Claim::Move);
                return if self.moving.copies.is_empty() || !room { Step::Rest } else { Step::Write };
            }
            if let Some(step) = self.read_next(ftl) {
                return step;
            }
            let Some(victim) = self.moving.end() else { continue };
            ftl.blocks.await_erase(victim);
            *(if ftl.blocks.block(victim).failed { &mut self.leaving } else { &mut self.awaiting_erase }) += 1;
            if ftl.blocks.can_erase(victim) {
                return Step::Erase(victim);
            }
            self.held += u32::from(ftl.faults.is_some() && !ftl.blocks.block(victim).failed);
        }
    }

    /// Returns the free units of a plane: of free and open blocks, of victims that await their erase, and of the
    /// scanned part of the current one, less the units that were read and are not programmed yet.
    pub fn free_units(&self, ftl: &Ftl, plane: PlaneId) -> u32 {
        let (blocks, data) = (&ftl.blocks, ftl.blocks.data_units());
        let free = (blocks.free_blocks(plane, Role::Data) + self.awaiting_erase) * data
            + blocks.open_units(plane, Role::Data)
            + self.moving.passed(ftl);
        free.saturating_sub(self.moving.unbound())
    }

    /// Blocks that will be free when what is in hand has been moved.
    pub fn blocks_coming(&self, ftl: &Ftl) -> u32 {
        self.awaiting_erase - self.held
            + u32::from(self.moving.block().is_some_and(|victim| !ftl.blocks.block(victim).failed))
    }

    /// Chooses a block that has failed, where what it holds has room and leaves a victim's behind it, and another
    /// block's, which may fail in its turn.
    fn choose_failed(&mut self, ftl: &mut Ftl, plane: PlaneId) -> bool {
        let Some(failed) = ftl.first_failed(plane, Role::Data) else { return false };
        let claim = Claim::Failed { hand: self.in_hand(ftl), valid: u32::from(ftl.blocks.block(failed).valid) };
        if !ftl.blocks.may_take(ftl.blocks.region(plane, Role::Data), claim) {
            return false;
        }
        ftl.take_failed(failed);
        self.moving.start(ftl, failed);
        (self.gain, self.took_failed) = (0, true);
        true
    }

    /// Chooses a victim, if the plane needs cleaning and what is read has room.
    fn choose(&mut self, ftl: &mut Ftl, plane: PlaneId) -> bool {
        if ftl.faults.is_some() && self.choose_failed(ftl, plane) {
            return true;
        }
        let (free_blocks, shape) = (ftl.blocks.free_blocks(plane, Role::Data), *ftl.shape());
        let coming = self.awaiting_erase - self.held;
        if free_blocks + coming > shape.soft || !ftl.wants_gc(plane, free_blocks + coming) {
            return false;
        }
        let is_paced = shape.paces && ftl.blocks.takes_host_write(plane);
        if is_paced && self.free_units(ftl, plane) >= ftl.pace_level() {
            return false;
        }
        // A whole victim must find room, behind what is in hand; if it does not, that is programmed first. With a
        // single frontier the host may take the open block meanwhile, so nothing is ever kept in hand there.
        let data = ftl.blocks.data_units();
        let in_hand = if self.moving.copies.is_empty() { 0 } else { shape.units_per_program };
        if !ftl.blocks.may_take(ftl.blocks.region(plane, Role::Data), Claim::Victim(self.in_hand(ftl))) {
            return false;
        }
        if self.asks && !std::mem::take(&mut self.granted) {
            self.asking = true;
            return false;
        }
        let least = room_to_leave(ftl, plane, in_hand);
        let region = ftl.blocks.region(plane, Role::Data);
        let Some(victim) = ftl.blocks.take_victim(region, least) else { return false };
        ftl.note_victim(plane, victim, self.awaiting_erase);
        self.moving.start(ftl, victim);
        self.gain = data - u32::from(ftl.blocks.block(victim).valid) - least;
        true
    }

    /// Takes the next page of the victim that holds valid units.
    fn read_next(&mut self, ftl: &mut Ftl) -> Option<Step> {
        let page = self.moving.read(ftl, 1)?;
        self.reclaimed += page.invalid;
        let copy_back = ftl.shape().copy_back;
        // Wise copy-back moves no invalid unit: a page with one would give up what the controller packs together.
        let is_whole = page.units == ftl.shape().units_per_page.divisor();
        if copy_back == Waste::Blind || (copy_back == Waste::Wise && is_whole) {
            self.moving.move_back(page.units);
            return Some(Step::CopyBack { first: page.first });
        }
        Some(Step::Read { first: page.first, units: page.units })
    }
}

/// What a victim must gain. Its erase may come to wait for the records of trims, and those for room: where the reserve
/// and what is left of the frontier of moved units may be all there is, a program of it is left for them. The rest of
/// the stock, and a frontier that is the host's too, may be the host's by then.
fn room_to_leave(ftl: &Ftl, plane: PlaneId, in_hand: u32) -> u32 {
    let shape = ftl.shape();
    let left = if shape.single_frontier { 0 } else { ftl.blocks.room(ftl.blocks.gc_frontier(plane)) };
    let is_short = shape.trim_journal && left < in_hand + shape.units_per_program;
    if is_short { shape.units_per_program } else { 0 }
}
