//! What a request's time went into: its latency, partitioned along its critical path.
//!
//! The parts of a request add up to its latency, to the picosecond. Which instant ends one part and begins the next is
//! told in docs/model/attribution.md.

use crate::sim::time::Time;

/// What a part of a request's time went into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Part {
    /// Waiting for a place in the device's queue.
    HostQueue,
    /// The host link, waiting for it included.
    Link,
    /// Waiting for the controller's memory to have room.
    Buffer,
    /// Waiting for an earlier write of the same mapping unit.
    Order,
    /// Waiting for the die, which other host operations hold.
    Die,
    /// Waiting for the channel, which other host operations hold.
    Channel,
    /// Waiting for cleaning: for a free block, or for a die or channel that operations of cleaning hold.
    Cleaning,
    /// The read that completes a partial write: bus and cells.
    Rmw,
    /// Command and data cycles of its own operation, with the channel's turning to it.
    Bus,
    /// The cells of its own operation.
    Cell,
}

impl Part {
    /// How many there are.
    pub const COUNT: usize = 10;

    /// All parts, in the order in which a request meets them.
    pub const ALL: [Part; Part::COUNT] = [
        Part::HostQueue,
        Part::Link,
        Part::Buffer,
        Part::Order,
        Part::Die,
        Part::Channel,
        Part::Cleaning,
        Part::Rmw,
        Part::Bus,
        Part::Cell,
    ];

    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Part::HostQueue => "host_queue",
            Part::Link => "link",
            Part::Buffer => "buffer",
            Part::Order => "order",
            Part::Die => "die",
            Part::Channel => "channel",
            Part::Cleaning => "cleaning",
            Part::Rmw => "rmw",
            Part::Bus => "bus",
            Part::Cell => "cell",
        }
    }
}

/// The latency of one request, by [`Part`], and how widely it was spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// Time, in the order of [`Part::ALL`].
    pub parts: [Time; Part::COUNT],
    /// How many channels its flash operations used (Yoo et al. 2013, Figure 11).
    pub channels: u32,
}

impl Breakdown {
    /// The time of one part.
    pub const fn of(&self, part: Part) -> Time {
        self.parts[part as usize]
    }

    /// All parts together: the latency.
    pub fn total(&self) -> Time {
        self.parts.iter().fold(Time::ZERO, |sum, part| sum + *part)
    }
}
