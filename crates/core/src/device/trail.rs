//! With attribution: what each request and transaction in progress has spent its time with so far.
//!
//! A trail is a point in time and what lies before it, part by part. Time is only ever spent from that point on, so the
//! parts of a trail add up to its length. A transaction starts with the trail of its request, and the transaction that
//! ends last leaves its own to the request: that is the request's critical path. See docs/model/attribution.md.

use super::Device;
use super::transaction::{Kind, Transactions};
use crate::metrics::attribution::{Breakdown, Part};
use crate::nand::ledger::{Ledger, Mark, MarkOfAll, Spent, Wait};
use crate::scheduler::lines::NONE;
use crate::sim::id::LunId;
use crate::sim::time::Time;
use crate::workload::request::Request;

/// What something waits in line for, with the reading of the books when it lined up.
#[derive(Clone, Copy, Debug, Default)]
enum Line {
    /// Nothing that the array keeps books of.
    #[default]
    None,
    /// A LUN.
    Lun(LunId, Mark),
    /// Whichever LUN is free first.
    Any(MarkOfAll),
    /// A free block.
    Block,
}

/// How far something has come, and what it has spent its time with.
#[derive(Clone, Copy, Debug, Default)]
struct Trail {
    at: Time,
    parts: [Time; Part::COUNT],
    line: Line,
}

impl Trail {
    /// The time up to `until` went into `part`.
    #[inline]
    fn spend(&mut self, part: Part, until: Time) {
        self.parts[part as usize] += until - self.at;
        self.at = until;
    }

    fn wait(&mut self, wait: Wait) {
        let Wait { die, channel, cleaning } = wait;
        self.parts[Part::Die as usize] += die;
        self.parts[Part::Channel as usize] += channel;
        self.parts[Part::Cleaning as usize] += cleaning;
        self.at += die + channel + cleaning;
    }

    /// The wait in line ends.
    fn leave_line(&mut self, ledger: &Ledger, now: Time) {
        match std::mem::take(&mut self.line) {
            Line::None => {}
            Line::Lun(lun, mark) => self.wait(ledger.wait(lun, mark, self.at, now)),
            Line::Any(mark) => self.wait(ledger.wait_for_any(mark, self.at, now)),
            Line::Block => self.spend(Part::Cleaning, now),
        }
    }

    /// An operation for it has ended.
    fn operation(&mut self, spent: &Spent, bus: Part, cell: Part) {
        self.wait(spent.wait);
        self.parts[bus as usize] += spent.bus;
        self.parts[cell as usize] += spent.cell;
        self.at += spent.bus + spent.cell;
    }
}

/// A request in progress.
#[derive(Clone, Copy, Debug, Default)]
struct RequestTrail {
    /// Up to where its transactions begin.
    front: Trail,
    /// That of its part that ended last.
    critical: Trail,
    /// Channels used: a bit each, in turn where there are more of them.
    channels: u128,
}

/// The trails of a device.
#[derive(Clone, Debug, Default)]
pub(super) struct Trails {
    requests: Vec<RequestTrail>,
    transactions: Vec<Trail>,
}

impl Trails {
    fn request(&mut self, id: u32) -> &mut RequestTrail {
        &mut self.requests[id as usize]
    }

    fn transaction(&mut self, id: u32) -> &mut Trail {
        &mut self.transactions[id as usize]
    }
}

/// The trail that a transaction's waits and operations belong to: a read that completes a write is on the write's way.
/// Cleaning is on nobody's.
fn bearer(transactions: &Transactions, id: u32) -> Option<u32> {
    match transactions[id].kind {
        Kind::HostRead | Kind::Write | Kind::SlotRead => Some(id),
        Kind::RmwRead => Some(transactions[id].owner),
        Kind::GcRead | Kind::GcWrite | Kind::Erase | Kind::Summary => None,
    }
}

impl Device {
    /// A request has got a place in the queue at `at`.
    #[inline]
    pub(super) fn trail_request(&mut self, id: u32, at: Time) {
        let Some(trails) = &mut self.trails else { return };
        if trails.requests.len() <= id as usize {
            trails.requests.resize(id as usize + 1, RequestTrail::default());
        }
        let mut front = Trail { at: self.requests[id].request.arrival, ..Trail::default() };
        front.spend(Part::HostQueue, at);
        trails.requests[id as usize] = RequestTrail { front, ..RequestTrail::default() };
    }

    /// Time of a request up to now, before it was taken apart, went into `part`.
    #[inline]
    pub(super) fn trail_front(&mut self, id: u32, part: Part) {
        if let Some(trails) = &mut self.trails {
            trails.request(id).front.spend(part, self.now);
        }
    }

    /// A transaction of a request begins.
    #[inline]
    pub(super) fn trail_begin(&mut self, id: u32, request: u32) {
        let Some(trails) = &mut self.trails else { return };
        if trails.transactions.len() <= id as usize {
            trails.transactions.resize(id as usize + 1, Trail::default());
        }
        trails.transactions[id as usize] = trails.requests[request as usize].front;
    }

    /// Time of a transaction up to now went into `part`.
    #[inline]
    pub(super) fn trail_spend(&mut self, id: u32, part: Part) {
        if let Some(trails) = &mut self.trails {
            trails.transaction(id).spend(part, self.now);
        }
    }

    /// A transaction lines up for a LUN.
    #[inline]
    pub(super) fn trail_line_up(&mut self, id: u32, lun: LunId) {
        if let (Some(trails), Some(ledger)) = (&mut self.trails, &self.array.ledger)
            && let Some(id) = bearer(&self.transactions, id)
        {
            trails.transaction(id).line = Line::Lun(lun, ledger.mark(lun, self.now));
        }
    }

    /// A write waits for any LUN.
    #[inline]
    pub(super) fn trail_pool(&mut self, id: u32) {
        if let (Some(trails), Some(ledger)) = (&mut self.trails, &self.array.ledger) {
            let trail = trails.transaction(id);
            trail.leave_line(ledger, self.now);
            trail.line = Line::Any(ledger.mark_all(self.now));
        }
    }

    /// A write waits for a free block.
    #[inline]
    pub(super) fn trail_stall(&mut self, id: u32) {
        if let (Some(trails), Some(ledger)) = (&mut self.trails, &self.array.ledger) {
            let trail = trails.transaction(id);
            trail.leave_line(ledger, self.now);
            trail.line = Line::Block;
        }
    }

    /// A write that waited for a free block lines up for a LUN again.
    #[inline]
    pub(super) fn trail_unstall(&mut self, id: u32, lun: LunId) {
        if let (Some(trails), Some(ledger)) = (&mut self.trails, &self.array.ledger) {
            let trail = trails.transaction(id);
            trail.leave_line(ledger, self.now);
            trail.line = Line::Lun(lun, ledger.mark(lun, self.now));
        }
    }

    /// A transaction of `request` starts in `lun`.
    #[inline]
    pub(super) fn trail_start(&mut self, id: u32, request: u32, lun: LunId) {
        if let (Some(trails), Some(ledger)) = (&mut self.trails, &self.array.ledger)
            && let Some(id) = bearer(&self.transactions, id)
        {
            trails.transaction(id).leave_line(ledger, self.now);
            trails.request(request).channels |= 1 << (self.array.channel_of(lun).0 % u128::BITS);
        }
    }

    /// The operation of a LUN has ended, for `first` and those that were bound with it.
    #[inline]
    pub(super) fn trail_finish(&mut self, lun: LunId, first: u32) {
        let (Some(trails), Some(ledger)) = (&mut self.trails, &self.array.ledger) else { return };
        let Some(bearer) = bearer(&self.transactions, first) else { return };
        let spent = ledger.spent(lun);
        match self.transactions[first].kind {
            Kind::RmwRead => trails.transaction(bearer).operation(&spent, Part::Rmw, Part::Rmw),
            Kind::Write => {
                let mut id = first;
                while id != NONE {
                    trails.transaction(id).operation(&spent, Part::Bus, Part::Cell);
                    id = self.transactions[id].next;
                }
            }
            _ => trails.transaction(bearer).operation(&spent, Part::Bus, Part::Cell),
        }
    }

    /// A part of a request was done at `at`, later than those before it: that of transaction `by`, or of the request
    /// itself where that is [`NONE`].
    #[inline]
    pub(super) fn trail_part(&mut self, request: u32, by: u32, at: Time) {
        let Some(trails) = &mut self.trails else { return };
        let mut trail = if by == NONE { trails.request(request).front } else { *trails.transaction(by) };
        debug_assert_eq!(trail.at, self.now, "all time up to now is spent");
        trail.spend(Part::Link, at);
        trails.request(request).critical = trail;
    }

    /// A request is complete: what its time until `finish` went into.
    #[inline]
    pub(super) fn trail_complete(&mut self, id: u32, finish: Time) {
        let Some(trails) = &mut self.trails else { return };
        let RequestTrail { mut critical, channels, .. } = *trails.request(id);
        critical.spend(Part::Link, finish);
        self.breakdowns.push(Breakdown { parts: critical.parts, channels: channels.count_ones() });
    }

    /// A request was refused at once.
    #[inline]
    pub(super) fn trail_refused(&mut self, request: &Request) {
        if self.trails.is_some() {
            let mut trail = Trail { at: request.arrival, ..Trail::default() };
            trail.spend(Part::HostQueue, self.now);
            self.breakdowns.push(Breakdown { parts: trail.parts, channels: 0 });
        }
    }
}
