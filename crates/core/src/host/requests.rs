//! Requests that the device works on.

use crate::sim::id::RequestId;
use crate::sim::request::{Request, Status};
use crate::sim::slab::Slab;
use crate::sim::time::Time;

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
    pub crossed: u32,
    /// The controller's software knows of it.
    pub received: bool,
    /// Units of it that are through the controller's software, and may be admitted.
    pub arrived: u32,
    /// When it was first served; [`Time::NEVER`] until then.
    pub start: Time,
    /// When its latest unit was done.
    pub finish: Time,
    /// How it ends.
    pub status: Status,
}

impl Pending {
    /// A request that has just got a place in the queue.
    pub fn new(request: Request) -> Pending {
        Pending {
            request,
            remaining: 1,
            admitted: 0,
            crossed: 0,
            received: false,
            arrived: 0,
            start: Time::NEVER,
            finish: Time::ZERO,
            status: Status::Ok,
        }
    }
}

/// The requests in progress, by number.
pub type Requests = Slab<RequestId, Pending>;
