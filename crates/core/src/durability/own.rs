//! Mapping units of the device itself: when the journal and the checkpoint are written, which planes their units go to,
//! and what follows when they are in flash. The router writes them like units of the host.

use std::cmp::Reverse;

use super::{Durability, is_home};
use crate::ftl::Ftl;
use crate::ftl::gc::collector::Collector;
use crate::ftl::space::Role;
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{BlockId, Lpn, PlaneId, RequestId, TransactionId};
use crate::work::{Transactions, chain};

/// Place of a unit of the device itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnPlace {
    /// The mapping scheme decides.
    OfScheme,
    /// In this plane.
    In(PlaneId),
    /// No plane has room. The write waits until one of these planes has room.
    Waits(Vec<PlaneId>),
}

/// Consequence of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// No wait: all trims are in flash.
    Done,
    /// An error, because trims can no longer be written.
    ReadOnly,
    /// The flush waits for the records of trims.
    Waits,
}

/// Next step of the journal, when it is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalStep {
    /// No write now, or not before that of another unit ends.
    Wait,
    /// This unit is written.
    Write(Lpn),
    /// No records wait, so these flushes complete.
    End(Vec<RequestId>),
}

/// Unit of the journal that is in flash now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journalled {
    /// Blocks that no longer wait for a record.
    pub blocks: Vec<BlockId>,
    /// Sequence number up to which all trims are in flash.
    pub sequence: u64,
    /// Flushes that waited for these trims.
    pub flushes: Vec<RequestId>,
}

impl Durability {
    /// Returns the number of trims whose records are not in flash, and `None` without a trim journal
    /// (`durability.trim_journal`). A power cut undoes these trims.
    pub fn trims_in_memory(&self) -> Option<u64> {
        Some(self.journal.as_ref()?.in_memory())
    }

    /// Returns the number of the part of the checkpoint that a mapping unit holds, if it does.
    #[inline]
    pub fn part_of(&self, lpn: Lpn) -> Option<u32> {
        self.checkpoint.as_ref()?.layout.part(lpn)
    }

    /// Returns `true` if a mapping unit belongs to the journal.
    #[inline]
    pub fn is_of_journal(&self, ftl: &Ftl, lpn: Lpn) -> bool {
        ftl.is_own(lpn) && !self.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.layout.has(lpn))
    }

    /// Updates the journal and the checkpoint after a mapping unit of the host was programmed. Returns the units of the
    /// checkpoint that are written now, if some are due.
    pub fn written(&mut self, ftl: &Ftl, lpn: Lpn) -> Option<Vec<Lpn>> {
        if let Some(journal) = &mut self.journal {
            journal.forget(lpn);
        }
        let checkpoint = self.checkpoint.as_mut()?;
        if !checkpoint.count() {
            return None;
        }
        let layout = checkpoint.layout;
        Some(checkpoint.begin(ftl).into_iter().map(|part| layout.unit(part)).collect())
    }

    /// Makes a flush wait for the records of all earlier trims.
    pub fn flush(&mut self, ftl: &Ftl, id: RequestId) -> Flush {
        let Some(journal) = &mut self.journal else { return Flush::Done };
        if ftl.is_read_only() {
            return if journal.has_waiting() { Flush::ReadOnly } else { Flush::Done };
        }
        if journal.flush(id, ftl.sequence) { Flush::Waits } else { Flush::Done }
    }

    /// Chooses the next unit of the journal to be written, unless one is being written.
    pub fn journal_step(&mut self, ftl: &Ftl) -> JournalStep {
        let Some(journal) = self.journal.as_mut().filter(|journal| !ftl.is_read_only() && !journal.is_writing()) else {
            return JournalStep::Wait;
        };
        let home = |lpn, block| is_home(ftl, lpn, block);
        match journal.take(ftl.sequence, ftl.blocks.awaiting_erase(), home) {
            Some(lpn) => JournalStep::Write(lpn),
            None => JournalStep::End(journal.end_flushes(u64::MAX)),
        }
    }

    /// Returns the planes that a unit of the device itself may go to: its home, or those of its pool. A unit of the
    /// journal that a block waits for may go to other planes too, because reads and recovery find it anywhere.
    fn planes_for(&self, ftl: &Ftl, lpn: Lpn) -> Vec<PlaneId> {
        let planes = || (0..ftl.shape().planes).map(PlaneId);
        let Some(home) = ftl.home(lpn) else {
            return planes().filter(|&plane| ftl.allocation.pool_of(plane) == ftl.pool(lpn)).collect();
        };
        let mut all = vec![home];
        if self.is_of_journal(ftl, lpn) && self.is_held_before_erase(&ftl.blocks) {
            let has_room = |plane| self.journal.as_ref().is_some_and(|journal| journal.has_room_for_guest(lpn, plane));
            all.extend(planes().filter(|&plane| plane != home && has_room(plane)));
        }
        all
    }

    /// Returns one of `planes` for a unit of the device itself, if one has room: the home, the one with the most free
    /// blocks, or any other.
    fn plane_for(&self, ftl: &Ftl, jobs: &Collector, lpn: Lpn, planes: &[PlaneId]) -> Option<PlaneId> {
        let takes = |plane: &PlaneId| ftl.blocks.takes_own_write(*plane);
        let free = |plane: &PlaneId| (ftl.blocks.free_blocks(*plane, Role::Data), Reverse(*plane));
        let first = ftl.home(lpn).or_else(|| planes.iter().copied().max_by_key(free)).filter(takes);
        let any = first.or_else(|| planes.iter().copied().find(takes));
        let lends = |plane: &PlaneId| self.is_of_journal(ftl, lpn) && self.may_free(ftl, jobs, *plane);
        any.or_else(|| planes.iter().copied().find(lends))
    }

    /// Returns `true` if a unit of the journal may be programmed in a plane without room for the host, because a block
    /// of the plane waits only for this unit, or for it and the next ones. The plane then has a block to reclaim after
    /// any power cut. Before the programs end, they take no space from others; afterwards, that block holds no newest
    /// version.
    pub fn may_free(&self, ftl: &Ftl, jobs: &Collector, plane: PlaneId) -> bool {
        let Some(journal) = &self.journal else { return false };
        let waits_for_one = |block: &BlockId| ftl.blocks.dependents_before_erase(plane, *block) == Some(1);
        let waiting = ftl.blocks.awaiting_erase().filter(waits_for_one);
        let programs = waiting.filter_map(|block| journal.programs_for(block)).min();
        programs.is_some_and(|programs| jobs.may_free(ftl, plane, programs))
    }

    /// Chooses the plane for the write `id` of a unit of the device itself. The write waits here if none has room.
    pub fn place(&mut self, ftl: &Ftl, jobs: &Collector, id: TransactionId, lpn: Lpn) -> OwnPlace {
        let of_journal = self.is_of_journal(ftl, lpn);
        if of_journal {
            self.add_to_journal(ftl);
        }
        if ftl.keeps_data() {
            return OwnPlace::OfScheme;
        }
        let planes = self.planes_for(ftl, lpn);
        let plane = self.plane_for(ftl, jobs, lpn, &planes);
        match (&mut self.journal, &mut self.checkpoint) {
            (Some(journal), _) if of_journal => match plane {
                Some(plane) => journal.note_guest(lpn, plane, ftl.home(lpn).is_some_and(|home| home != plane)),
                None => journal.stalled = Some(id),
            },
            (_, Some(checkpoint)) if plane.is_none() => checkpoint.stalled.push(id),
            _ => {}
        }
        plane.map_or(OwnPlace::Waits(planes), OwnPlace::In)
    }

    /// Takes the writes of units that found no room, to retry them after space was freed: that of the journal, and
    /// those of the checkpoint.
    pub fn take_stalled(&mut self) -> (Option<TransactionId>, Vec<TransactionId>) {
        let of_journal = self.journal.as_mut().and_then(|journal| journal.stalled.take());
        (
            of_journal,
            self.checkpoint.as_mut().map_or_else(Vec::new, |checkpoint| std::mem::take(&mut checkpoint.stalled)),
        )
    }

    /// Takes the write of a unit of the journal that found no room, if a block waits for it and it has room now.
    pub fn take_stalled_for_block(
        &mut self,
        ftl: &Ftl,
        jobs: &Collector,
        transactions: &Transactions,
    ) -> Option<TransactionId> {
        let lpn = transactions[self.stalled_for_block(ftl)?].lpn;
        self.plane_for(ftl, jobs, lpn, &self.planes_for(ftl, lpn))?;
        self.journal.as_mut()?.stalled.take()
    }

    /// Ends the program of a unit of the device itself. Returns what follows if the unit is one of the journal.
    pub fn own_written(&mut self, lpn: Lpn) -> Option<Journalled> {
        if let Some(checkpoint) = self.checkpoint.as_mut().filter(|checkpoint| checkpoint.layout.has(lpn)) {
            if let Some(part) = checkpoint.layout.part(lpn) {
                checkpoint.end(part);
            }
            return None;
        }
        let journal = self.journal.as_mut()?;
        let (blocks, sequence) = journal.end_write()?;
        Some(Journalled { blocks, sequence, flushes: journal.end_flushes(sequence) })
    }

    /// Returns `true` if the journal has to be written again after one of its units.
    pub fn is_journal_due(&self, ftl: &Ftl) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.has_flushes() || journal.is_due())
            || self.is_held_before_erase(&ftl.blocks)
    }
}

/// Returns the cause of a program of a number of writes, which are linked from the first one on.
#[inline(always)]
pub fn cause_of(
    durability: Option<&Durability>,
    ftl: &Ftl,
    transactions: &Transactions,
    writes: (TransactionId, u32),
) -> ProgramCause {
    durability.map_or(ProgramCause::Host, |durability| cause_if_durable(durability, ftl, transactions, writes))
}

#[inline(never)]
fn cause_if_durable(
    durability: &Durability,
    ftl: &Ftl,
    transactions: &Transactions,
    (first, count): (TransactionId, u32),
) -> ProgramCause {
    if count == 1 && durability.is_of_journal(ftl, transactions[first].lpn) {
        return ProgramCause::Journal;
    }
    let mut writes = chain(transactions, first).map(|id| transactions[id].lpn);
    if writes.all(|lpn| durability.part_of(lpn).is_some()) { ProgramCause::Checkpoint } else { ProgramCause::Host }
}
