//! Slots for clients of the monitor: a bounded number, which idle clients cannot block.
//!
//! If all slots are taken, the client that has been idle longest loses its slot to the new one. Silent clients
//! therefore cannot lock others out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A bounded number of slots.
#[derive(Clone)]
pub struct Places {
    seats: Arc<Mutex<Vec<Seat>>>,
    most: usize,
}

/// A slot that is taken. Idle clients are ordered by idle time, longest first.
struct Seat {
    lost: Arc<Notify>,
    is_idle: bool,
}

/// The slot of a client, which the client may lose while it is idle.
pub struct Place {
    places: Places,
    lost: Arc<Notify>,
}

impl Places {
    /// Creates `most` slots.
    pub fn new(most: usize) -> Places {
        Places { seats: Arc::default(), most }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot for a client that is idle: a free one, or the slot of the client that has been idle longest.
    /// Returns `None` if all clients are busy.
    pub fn take(&self) -> Option<Place> {
        let mut seats = self.lock();
        if seats.len() >= self.most {
            let oldest = seats.iter().position(|seat| seat.is_idle)?;
            seats.remove(oldest).lost.notify_one();
        }
        let lost = Arc::new(Notify::new());
        seats.push(Seat { lost: Arc::clone(&lost), is_idle: true });
        Some(Place { places: self.clone(), lost })
    }
}

impl Place {
    /// Waits until the slot is lost to another client.
    pub async fn lost(&self) {
        self.lost.notified().await;
    }

    /// Keeps the slot, because the client has an outstanding request. Returns `false` if the slot is already lost.
    pub fn keep(&self) -> bool {
        let mut seats = self.places.lock();
        let seat = seats.iter_mut().find(|seat| Arc::ptr_eq(&seat.lost, &self.lost));
        seat.map(|seat| seat.is_idle = false).is_some()
    }

    /// Marks the client as idle.
    pub fn rest(&self) {
        if self.leave() {
            self.places.lock().push(Seat { lost: Arc::clone(&self.lost), is_idle: true });
        }
    }

    /// Releases the slot. Returns `false` if it is already lost.
    pub fn leave(&self) -> bool {
        let mut seats = self.places.lock();
        let before = seats.len();
        seats.retain(|seat| !Arc::ptr_eq(&seat.lost, &self.lost));
        seats.len() < before
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_that_is_idle_longest_is_replaced() {
        let places = Places::new(2);
        let (first, second) = (places.take().unwrap(), places.take().unwrap());
        assert!(first.keep());
        first.rest();
        let third = places.take().unwrap();
        assert!(!second.keep(), "the first connection was idle for a shorter time");
        second.rest();
        drop(second);
        assert!(first.keep() && third.keep());
        assert!(places.take().is_none(), "a busy connection must keep its slot");
        assert!(third.leave());
        assert!(places.take().is_some());
    }
}
