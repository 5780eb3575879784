//! Calls of the device's mapping scheme. The call for each unit is skipped if it would do nothing: a device without
//! translation pages has the whole map in memory, and most schemes keep no blocks of data.

use super::page::Page;
use super::{Bound, Change, Context, Ended, LookUp, Mapping, MappingScheme, Program, Recovering, Step, Target};
use crate::ftl::Ftl;
use crate::ftl::space::InHand;
use crate::sim::id::{Lpn, PlaneId, TransactionId};

/// Looks up the map entry of a unit: see [`Mapping::look_up`]. Without translation pages, the controller has all of
/// them.
#[inline(always)]
pub fn look_up<C: Context>(cx: &mut C, lpn: Lpn, what: LookUp) -> bool {
    cx.ftl().shape().map_pages == 0 || call(cx, |scheme, cx| scheme.look_up(cx, lpn, what))
}

/// Notes a change of the map entry of a unit: see [`Mapping::changed`].
#[inline(always)]
pub fn changed<C: Context>(cx: &mut C, lpn: Lpn, change: Change) {
    let is_kept = if change == Change::Trimmed { cx.ftl().keeps_data } else { cx.ftl().shape().map_pages > 0 };
    if is_kept {
        call(cx, |scheme, cx| scheme.changed(cx, lpn, change));
    }
}

/// Has a write wait for its address in a kept block: see [`Mapping::place`]. Returns `false` if no block of data is
/// kept.
#[inline(always)]
pub fn place<C: Context>(cx: &mut C, id: TransactionId) -> bool {
    let keeps = cx.ftl().keeps_data;
    if keeps {
        call(cx, |scheme, cx| scheme.place(cx, id));
    }
    keeps
}

/// See [`Mapping::bind`].
pub fn bind<C: Context>(cx: &mut C, id: TransactionId) -> Option<Bound> {
    call(cx, |scheme, cx| scheme.bind(cx, id))
}

/// See [`Mapping::ended`].
pub fn ended<C: Context>(cx: &mut C, end: Ended) -> bool {
    call(cx, |scheme, cx| scheme.ended(cx, end))
}

/// See [`Mapping::step`].
pub fn step<C: Context>(cx: &mut C, step: Step) {
    call(cx, |scheme, cx| scheme.step(cx, step));
}

/// Notes that garbage collection of a plane has chosen its next step: see [`Step::Collected`].
#[inline(always)]
pub fn collected<C: Context>(cx: &mut C, plane: PlaneId) {
    if cx.ftl().shape().map_pages > 0 {
        step(cx, Step::Collected(plane));
    }
}

/// Frees blocks of translation pages: see [`Mapping::make_room`].
pub fn make_room<C: Context>(cx: &mut C, plane: PlaneId, freed: bool) {
    if cx.ftl().shape().map_pages > 0 {
        call(cx, |scheme, cx| scheme.make_room(cx, plane, freed));
    }
}

/// Calls the scheme.
fn call<C: Context, T>(cx: &mut C, call: impl FnOnce(&mut dyn Mapping<C>, &mut C) -> T) -> T {
    let mut scheme = cx.ftl().take_scheme();
    let result = call(scheme.of(), cx);
    cx.ftl().scheme = Some(scheme);
    cx.note_called();
    result
}

/// See [`Mapping::recover`].
pub fn recover(found: &mut dyn Recovering) -> Result<(), String> {
    let mut scheme = found.ftl().take_scheme();
    let result = scheme.recover(found);
    found.ftl().scheme = Some(scheme);
    result
}

impl MappingScheme {
    /// Returns `true` for page mapping.
    pub fn is_page_map(&self) -> bool {
        matches!(self, MappingScheme::Page(_))
    }
}

impl Ftl {
    /// Returns the mapping scheme.
    pub fn scheme(&self) -> &MappingScheme {
        self.scheme.as_deref().unwrap_or_else(|| unreachable!("a scheme does not call itself"))
    }

    pub(super) fn take_scheme(&mut self) -> Box<MappingScheme> {
        self.scheme.take().unwrap_or_else(|| unreachable!("a scheme does not call itself"))
    }

    /// Calls the mapping scheme with the rest of the FTL.
    pub fn with_scheme<T>(&mut self, call: impl FnOnce(&mut MappingScheme, &mut Ftl) -> T) -> T {
        let mut scheme = self.take_scheme();
        let result = call(&mut scheme, self);
        self.scheme = Some(scheme);
        result
    }

    /// Returns `true` if writes go to blocks that the scheme keeps.
    #[inline]
    pub fn keeps_data(&self) -> bool {
        self.keeps_data
    }

    /// Returns `true` if each plane collects garbage by itself, with the usual pace.
    #[inline]
    pub fn collects_simply(&self) -> bool {
        self.collects_simply
    }

    /// See [`Mapping::target`].
    #[inline]
    pub fn target(&self, of: Program) -> Target {
        if self.has_page_map {
            return Mapping::<dyn Context>::target(&Page, self, of);
        }
        self.scheme().target(self, of)
    }

    /// Returns the plane that is fixed for `lpn`, if there is one. Units of one stripe share a plane.
    #[inline]
    pub fn home(&self, lpn: Lpn) -> Option<PlaneId> {
        self.target(Program::Write(lpn)).plane
    }

    /// Returns the number of the home plane of a unit, or that of its pool with dynamic allocation.
    #[inline]
    pub fn destination(&self, lpn: Lpn) -> u32 {
        self.home(lpn).map_or_else(|| self.pool(lpn), |plane| plane.0)
    }

    /// See [`Mapping::can_go_on`].
    pub fn can_go_on(&self, plane: PlaneId, hand: InHand) -> bool {
        self.scheme().can_go_on(self, plane, hand)
    }
}
