//! Places for clients of the monitor: a bounded number, which idle clients do not block.
//!
//! If all places are taken, the client that has been idle longest loses its place to the new one. Clients that are
//! silent therefore cannot lock others out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A bounded number of places.
#[derive(Clone)]
pub struct Places {
    seats: Arc<Mutex<Vec<Seat>>>,
    most: usize,
}

/// A place that is taken. Of idle clients, the one that has been idle longest comes first.
struct Seat {
    lost: Arc<Notify>,
    is_idle: bool,
}

/// The place of a client, which it may lose while it is idle.
pub struct Place {
    places: Places,
    lost: Arc<Notify>,
}

impl Places {
    /// Creates `most` places.
    pub fn new(most: usize) -> Places {
        Places { seats: Arc::default(), most }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a client that is idle: a free one, or that of the client that has been idle longest. Returns
    /// `None` if all clients are busy.
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
    /// Waits until the place is lost to another client.
    pub async fn lost(&self) {
        self.lost.notified().await;
    }

    /// Keeps the place, because the client has a request in progress. Returns `false` if the place is lost already.
    pub fn keep(&self) -> bool {
        let mut seats = self.places.lock();
        let seat = seats.iter_mut().find(|seat| Arc::ptr_eq(&seat.lost, &self.lost));
        seat.map(|seat| seat.is_idle = false).is_some()
    }

    /// Marks the client as idle from now on.
    pub fn rest(&self) {
        if self.leave() {
            self.places.lock().push(Seat { lost: Arc::clone(&self.lost), is_idle: true });
        }
    }

    /// Gives the place back. Returns `false` if it is lost already.
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
    fn the_client_that_is_idle_longest_gives_way() {
        let places = Places::new(2);
        let (first, second) = (places.take().unwrap(), places.take().unwrap());
        assert!(first.keep());
        first.rest();
        let third = places.take().unwrap();
        assert!(!second.keep(), "the first one was idle for a shorter time");
        second.rest();
        drop(second);
        assert!(first.keep() && third.keep());
        assert!(places.take().is_none(), "who is busy keeps its place");
        assert!(third.leave());
        assert!(places.take().is_some());
    }
}
