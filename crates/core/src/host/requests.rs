//! Requests that the device works on.

use crate::sim::time::Time;
use crate::workload::request::{Request, Status};

/// A request in progress.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// The request.
    pub request: Request,
    /// Units of it that are not done; one more while it is being taken apart.
    pub remaining: u32,
    /// Units of it that have been admitted, for writes that wait for slots.
    pub admitted: u32,
    /// Units of it whose data have crossed the link.
    pub arrived: u32,
    /// When it was first served; [`Time::NEVER`] until then.
    pub start: Time,
    /// When its latest unit was done.
    pub finish: Time,
    /// How it ends.
    pub status: Status,
}

/// The requests in progress, by number.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    slots: Vec<Pending>,
    free: Vec<u32>,
}

impl Requests {
    /// How many are in progress.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds one.
    pub fn insert(&mut self, request: Request) -> u32 {
        let pending = Pending {
            request,
            remaining: 1,
            admitted: 0,
            arrived: 0,
            start: Time::NEVER,
            finish: Time::ZERO,
            status: Status::Ok,
        };
        match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = pending;
                id
            }
            None => {
                self.slots.push(pending);
                self.slots.len() as u32 - 1
            }
        }
    }

    /// Takes one out.
    pub fn remove(&mut self, id: u32) -> Pending {
        self.free.push(id);
        self.slots[id as usize]
    }
}

impl std::ops::Index<u32> for Requests {
    type Output = Pending;
    #[inline]
    fn index(&self, id: u32) -> &Pending {
        &self.slots[id as usize]
    }
}

impl std::ops::IndexMut<u32> for Requests {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut Pending {
        &mut self.slots[id as usize]
    }
}
