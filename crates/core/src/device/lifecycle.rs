//! The lifecycle of requests and transactions: at each of its stages, observers are shown what has happened.

use super::Device;
use crate::ftl::mapping::Location;
use crate::host::requests::Part;
use crate::metrics::attribution::Part as TimePart;
use crate::observe::{Observers, Origin, View};
use crate::sim::id::{LunId, Ppn, RequestId, TransactionId, UnitId};
use crate::sim::request::Request;
use crate::sim::time::Time;

/// Stages: nothing but a test on a device without observers. What observers do stays out of line, so that the code
/// around a stage is as good as without.
macro_rules! stages {
    ($($(#[$doc:meta])* $hook:ident => $stage:ident($($argument:ident: $type:ty),*);)+) => {
        impl Device {
            $($(#[$doc])*
            #[inline(always)]
            pub(super) fn $hook(&mut self, $($argument: $type),*) {
                if let Some((observers, view)) = self.observed() {
                    observers.$stage(&view, $($argument),*)
                }
            })+
        }
    };
}

stages! {
    /// See [`Observers::refused`].
    observe_refused => refused(request: &Request);
    /// See [`Observers::entered`].
    observe_entered => entered(id: RequestId, at: Time);
    /// See [`Observers::spent_by_request`].
    observe_request => spent_by_request(id: RequestId, part: TimePart);
    /// See [`Observers::spent`].
    observe_spent => spent(id: TransactionId, part: TimePart);
    /// See [`Observers::accepted`].
    observe_accepted => accepted(id: TransactionId, before: Location, origin: Origin);
    /// See [`Observers::read_began`].
    observe_read => read_began(id: TransactionId, part: Part, place: Ppn, from: TransactionId);
    /// See [`Observers::read_joined`].
    observe_read_joined => read_joined(id: TransactionId, part: Part, place: Ppn);
    /// See [`Observers::slot_read`].
    observe_slot_read => slot_read(request: RequestId, slot: TransactionId, part: Part);
    /// See [`Observers::buffer_read`].
    observe_buffer_read => buffer_read(request: RequestId, part: Part);
    /// See [`Observers::slot_read_ended`].
    observe_slot_read_ended => slot_read_ended(id: TransactionId, slot: TransactionId);
    /// See [`Observers::completed`].
    observe_completed => completed(write: TransactionId, older: TransactionId);
    /// See [`Observers::pooled`].
    observe_pooled => pooled(id: TransactionId);
    /// See [`Observers::stalled`].
    observe_stalled => stalled(id: TransactionId);
    /// See [`Observers::unstalled`].
    observe_unstalled => unstalled(id: TransactionId, lun: LunId);
    /// See [`Observers::member_ended`].
    observe_member_ended => member_ended(unit: UnitId, id: TransactionId);
    /// See [`Observers::settled`].
    observe_settled => settled(id: RequestId, by: TransactionId);
    /// See [`Observers::answered`].
    observe_answered => answered(id: RequestId, by: TransactionId, finish: Time);
}

impl Device {
    /// Returns the observers, if there are any, with the parts of the device that they look at.
    #[inline(always)]
    pub(super) fn observed(&mut self) -> Option<(&mut Observers, View<'_>)> {
        let observers = self.observers.as_deref_mut()?;
        let view = View {
            now: self.now,
            front: &self.front,
            transactions: &self.transactions,
            array: &self.array,
            ftl: &self.ftl,
            buffer: self.buffer.as_deref(),
        };
        Some((observers, view))
    }

    /// See [`Observers::ended`].
    #[inline(always)]
    pub(super) fn observe_ended(&mut self, unit: UnitId, lun: LunId, first: TransactionId) {
        if let Some((observers, view)) = self.observed() {
            observers.ended(&view, unit, lun, first);
            self.array.book_end(unit, lun, self.now);
        }
    }

    /// Shows observers that a write is in flash at the place that it was bound to.
    #[inline(always)]
    pub(super) fn observe_programmed(&mut self, id: TransactionId) {
        if let Some(observers) = self.observers.as_deref() {
            observers.programmed(&self.transactions[id], id, &mut self.ftl.media);
        }
    }
}
