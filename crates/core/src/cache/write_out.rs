//! Write-back: which units leave the buffer next, so that they fill whole programs.

use super::{Buffer, Pick};
use crate::dispatch::Filling;
use crate::ftl::Ftl;
use crate::sim::id::Lpn;

/// Parts outside the buffer on which the choice of units depends.
pub(crate) struct Outside<'a> {
    /// Program units that are being filled, with `controller.fill_timeout`.
    pub(crate) filling: Option<&'a mut Filling>,
    /// Number of free write slots.
    pub(crate) slots: &'a mut u32,
    /// Map, and places of units.
    pub(crate) ftl: &'a Ftl,
    /// True with dynamic allocation.
    pub(crate) is_dynamic: bool,
}

/// Returns the list of dirty units that a unit belongs to.
#[inline]
pub(crate) fn list_of(filling: Option<&Filling>, ftl: &Ftl, lpn: Lpn) -> u16 {
    match Filling::lists(filling) {
        1 => 0,
        _ => ftl.destination(lpn) as u16,
    }
}

/// Returns `true` if enough slots are free to complete the program unit of a list. A program unit that is begun without
/// them would wait for its time-out.
#[inline]
fn has_slots_for(with: &Outside, list: Option<u16>) -> bool {
    *with.slots >= with.filling.as_deref().map_or(1, |filling| filling.slots_for(list))
}

/// Returns `true` if a program unit other than that of `list` has been begun.
#[inline]
fn has_begun_other(with: &Outside, list: Option<u16>) -> bool {
    let begun = with.filling.as_deref().and_then(Filling::first_begun);
    begun.is_some_and(|(begun, _)| list.is_none_or(|list| list != begun))
}

/// Returns `true` if the units picked from a list form whole program units.
#[inline]
fn is_complete(with: &Outside, list: Option<u16>) -> bool {
    let filling = with.filling.as_deref();
    filling.zip(list).and_then(|(filling, list)| filling.missing_in(list)) == Some(0)
}

impl Buffer {
    /// Evicts units if the buffer needs room, and picks the next unit to write back, with others that fill its program.
    /// Returns the number of picked units: 0 if there is nothing to write back, or no free slot.
    #[inline]
    pub(crate) fn pick_units(&mut self, with: &mut Outside) -> u32 {
        self.make_room();
        self.gather_pages();
        if *with.slots == 0 || with.ftl.is_read_only() {
            return 0;
        }
        let (list, has_out) = (self.next_list(), self.has_out());
        if has_begun_other(with, list) {
            let units = self.complete_begun(with);
            if units > 0 || has_begun_other(with, list) {
                return units;
            }
        }
        if !has_out || !has_slots_for(with, list) {
            return 0;
        }
        // The map entries of upcoming units are prefetched, as for requests of the host.
        self.upcoming().inspect(|&lpn| with.ftl.map.prefetch(lpn));
        let Some(pick) = self.pick_next() else { return 0 };
        self.pick_up(pick, with);
        let alone = pick.entry == Pick::PADDING || with.ftl.shape().units_per_program == 1;
        let companions = if alone { 0 } else { self.pick_companions(Lpn(pick.lpn), list, with) };
        if is_complete(with, list) {
            self.turn();
        }
        1 + companions
    }

    /// Picks the dirty units that would share a program with `lpn`, of `list`. Returns their number.
    fn pick_companions(&mut self, lpn: Lpn, list: Option<u16>, with: &mut Outside) -> u32 {
        let mut count = 0;
        for unit in Buffer::companions(lpn, with.ftl.shape(), with.is_dynamic) {
            if *with.slots == 0 || is_complete(with, list) {
                return count;
            }
            let Some(pick) = self.pick_companion(unit) else { continue };
            self.counts.companions += 1;
            self.pick_up(pick, with);
            count += 1;
        }
        count
    }

    /// Reserves a slot for a picked unit, and queues the unit for [`Buffer::next_picked`].
    #[inline]
    pub(crate) fn pick_up(&mut self, pick: Pick, with: &mut Outside) {
        *with.slots -= 1;
        let list = list_of(with.filling.as_deref(), with.ftl, Lpn(pick.lpn));
        if let Some(filling) = with.filling.as_deref_mut() {
            filling.expect(list);
        }
        self.queue(pick);
    }

    /// Dequeues the next picked unit.
    #[inline]
    pub(crate) fn next_picked(&mut self, with: &mut Outside) -> Option<Pick> {
        let pick = self.next_queued()?;
        let list = list_of(with.filling.as_deref(), with.ftl, Lpn(pick.lpn));
        if let Some(filling) = with.filling.as_deref_mut() {
            filling.note_received(list);
        }
        Some(pick)
    }

    /// Completes the program units that have been begun, and returns the number of units picked for them. Stops at the
    /// first one that needs more slots than are free.
    pub(crate) fn complete_begun(&mut self, with: &mut Outside) -> u32 {
        let mut picked = 0;
        while let Some((list, missing)) = with.filling.as_deref().and_then(Filling::first_begun)
            && missing <= *with.slots
        {
            picked += self.pick_missing(list, with);
            let Some(filling) = with.filling.as_deref_mut() else { break };
            filling.complete_first();
        }
        picked
    }

    /// Picks the oldest dirty units of a list to complete its program unit, and returns their number. Picks none if
    /// there are too few dirty units or slots.
    pub(crate) fn pick_missing(&mut self, list: u16, with: &mut Outside) -> u32 {
        let missing = with.filling.as_deref().and_then(|filling| filling.missing_in(list));
        let Some(missing) = missing else { return 0 };
        if self.dirty_in(list) < missing || *with.slots < missing || with.ftl.is_read_only() {
            return 0;
        }
        for _ in 0..missing {
            let pick = self.pick_oldest(list);
            pick.into_iter().for_each(|pick| self.pick_up(pick, with));
        }
        self.counts.companions += u64::from(missing);
        missing
    }

    /// Returns `true` if the buffer is handing over units.
    pub(crate) fn hands_over(&self, with: &Outside) -> bool {
        let hands_over = self.has_out() && has_slots_for(with, self.next_list()) && !with.ftl.is_read_only();
        self.has_queued() || hands_over
    }
}
