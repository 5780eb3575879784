//! Slots for clients of the monitor: a bounded number, which idle clients cannot block.
//!
//! If all slots are taken, the client that has been idle longest loses its slot to the new one. Silent clients
//! therefore cannot lock others out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A bounded number of slots.
#[derive(Clone)]
pub struct Slots {
    taken: Arc<Mutex<Vec<Taken>>>,
    max: usize,
}

/// A slot that is taken. Idle clients are ordered by idle time, longest first.
struct Taken {
    lost: Arc<Notify>,
    is_idle: bool,
}

/// The slot of a client, which the client may lose while it is idle.
pub struct Slot {
    slots: Slots,
    lost: Arc<Notify>,
}

impl Slots {
    /// Creates `max` slots.
    pub fn new(max: usize) -> Slots {
        Slots { taken: Arc::default(), max }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Taken>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot for a client that is idle: a free one, or the slot of the client that has been idle longest.
    /// Returns `None` if all clients are busy.
    pub fn take(&self) -> Option<Slot> {
        let mut taken = self.lock();
        if taken.len() >= self.max {
            let oldest = taken.iter().position(|taken| taken.is_idle)?;
            taken.remove(oldest).lost.notify_one();
        }
        let lost = Arc::new(Notify::new());
        taken.push(Taken { lost: Arc::clone(&lost), is_idle: true });
        Some(Slot { slots: self.clone(), lost })
    }
}

impl Slot {
    /// Waits until the slot is lost to another client.
    pub async fn lost(&self) {
        self.lost.notified().await;
    }

    /// Keeps the slot, because the client has an outstanding request. Returns `false` if the slot is already lost.
    pub fn keep(&self) -> bool {
        let mut taken = self.slots.lock();
        let taken = taken.iter_mut().find(|taken| Arc::ptr_eq(&taken.lost, &self.lost));
        taken.map(|taken| taken.is_idle = false).is_some()
    }

    /// Marks the client as idle.
    pub fn rest(&self) {
        if self.leave() {
            self.slots.lock().push(Taken { lost: Arc::clone(&self.lost), is_idle: true });
        }
    }

    /// Releases the slot. Returns `false` if it is already lost.
    pub fn leave(&self) -> bool {
        let mut taken = self.slots.lock();
        let before = taken.len();
        taken.retain(|taken| !Arc::ptr_eq(&taken.lost, &self.lost));
        taken.len() < before
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_that_is_idle_longest_is_replaced() {
        let slots = Slots::new(2);
        let (first, second) = (slots.take().unwrap(), slots.take().unwrap());
        assert!(first.keep());
        first.rest();
        let third = slots.take().unwrap();
        assert!(!second.keep(), "the first connection was idle for a shorter time");
        second.rest();
        drop(second);
        assert!(first.keep() && third.keep());
        assert!(slots.take().is_none(), "a busy connection must keep its slot");
        assert!(third.leave());
        assert!(slots.take().is_some());
    }
}
