//! Bursts of garbage collection (`gc.pace.burst`): all planes collect at the same time, and the host waits.
//!
//! A burst has a number of programs for each plane that takes part. A plane takes a turn, gathers the units of a
//! program and programs them, and takes the next turn, so planes that are faster take more of them. Host writes wait
//! until the last turn is taken. A host with a share of the programs waits until planes have taken enough turns for one
//! of its own. See docs/model/gc.md.

use super::job::Job;
use crate::config::{DeviceConfig, GcPace};
use crate::ftl::Ftl;
use crate::sim::id::PlaneId;
use crate::sim::table::Table;
use crate::sim::time::Time;

/// A program, in units of [`Bursts::credit`].
const PROGRAM: u64 = 1 << 20;

/// Bursts of a device.
#[derive(Clone, Debug)]
pub(super) struct Bursts {
    /// Number of programs of each plane.
    programs: u32,
    /// Programs that the host gets for each turn, and the time between two bursts below which it gets them; none if
    /// bursts stop the host.
    granted: Option<(u64, Time)>,
    /// Limit of the units in the buffer during a burst.
    room: u64,
    /// True if the host has its share of the current burst.
    shares: bool,
    /// Programs that the host may start in the current burst.
    credit: u64,
    /// End of the last burst.
    end: Option<Time>,
    /// Number of turns of the current burst that no plane has taken yet; 0 between bursts.
    left: u64,
    /// True for planes that may take a turn.
    joins: Table<PlaneId, bool>,
    /// Number of planes that may take a turn.
    joined: u32,
    /// Free units of each plane when they were last counted, and their sum.
    free: Table<PlaneId, u32>,
    sum: u64,
    /// True if the units of all planes have to be counted, because functional mode may have changed them.
    is_stale: bool,
}

impl Bursts {
    /// Returns `None` if the device has no bursts.
    pub(super) fn new(device: &DeviceConfig) -> Option<Box<Bursts>> {
        let planes = device.total_planes();
        let programs = device.programs_of_burst()?;
        let GcPace::Burst(burst) = device.gc.pace else { return None };
        let granted = burst.share.map(|share| {
            let programs = (share / (1.0 - share) * PROGRAM as f64).round() as u64;
            (programs, burst.rest.map_or(Time::NEVER, |rest| rest.time()))
        });
        let (joins, free) = (Table::new(planes, false), Table::new(planes, 0));
        Some(Box::new(Bursts {
            programs,
            granted,
            room: burst.room.map_or(u64::MAX, |room| room.0 / device.unit_bytes()),
            shares: false,
            credit: 0,
            end: None,
            left: 0,
            joins,
            joined: 0,
            free,
            sum: 0,
            is_stale: true,
        }))
    }

    /// Returns `true` during a burst.
    pub(super) fn is_under_way(&self) -> bool {
        self.left > 0
    }

    /// Returns `true` if the host waits for a plane to program, whose job may have a turn.
    pub(super) fn is_urgent(&self, ftl: &Ftl, has_turn: bool) -> bool {
        ftl.blocks.holds_host || has_turn && !self.shares
    }

    /// Returns `true` if a plane may take a turn.
    pub(super) fn has_turn_for(&self, plane: PlaneId) -> bool {
        self.left > 0 && self.joins[plane]
    }

    /// Has the free units of all planes counted again.
    pub(super) fn forget(&mut self) {
        self.is_stale = true;
    }

    /// Counts the free units of a plane, which may have changed.
    pub(super) fn count(&mut self, ftl: &Ftl, jobs: &Table<PlaneId, Job>, plane: PlaneId) {
        if std::mem::take(&mut self.is_stale) {
            (0..ftl.shape().planes).for_each(|plane| self.count(ftl, jobs, PlaneId(plane)));
        }
        let free = jobs[plane].free_units(ftl, plane);
        let before = std::mem::replace(&mut self.free[plane], free);
        self.sum = self.sum + u64::from(free) - u64::from(before);
    }

    /// Returns `true` if no burst is in progress and the free space of the device is below its level.
    pub(super) fn is_due(&self, ftl: &Ftl) -> bool {
        self.left == 0 && self.sum < ftl.burst_level()
    }

    /// Starts a burst. Planes that have a block more than the level of free space do not join it, unless the host finds
    /// no room in their open blocks. Returns `false` if none joins.
    #[cold]
    pub(super) fn start(&mut self, ftl: &mut Ftl, jobs: &Table<PlaneId, Job>, now: Time) -> bool {
        self.joined = 0;
        for plane in (0..ftl.shape().planes).map(PlaneId) {
            self.count(ftl, jobs, plane);
            let is_low = self.free[plane] < ftl.pace_level() + ftl.blocks.data_units();
            self.joins[plane] = is_low || jobs[plane].lacks_room(ftl, plane);
            self.joined += u32::from(self.joins[plane]);
        }
        self.left = u64::from(self.programs) * u64::from(self.joined);
        self.credit = 0;
        ftl.blocks.host_room = if self.left > 0 { self.room } else { u64::MAX };
        let is_soon = |rest: Time| rest == Time::NEVER || self.end.is_some_and(|end| now - end < rest);
        self.shares = self.granted.is_some_and(|(_, rest)| is_soon(rest));
        ftl.hold_host(self.left > 0);
        self.left > 0
    }

    /// Lets a plane take turns that has left the current burst, or did not join it.
    pub(super) fn join(&mut self, plane: PlaneId) {
        debug_assert!(!self.joins[plane], "the plane takes turns");
        self.joins[plane] = true;
        self.joined += 1;
    }

    /// Takes a turn. Returns `true` if the host continues: the turn was the last one, or the host has earned a program.
    pub(super) fn take(&mut self, ftl: &mut Ftl, now: Time) -> bool {
        self.left -= 1;
        if self.left > 0 && self.shares {
            return self.grant(ftl);
        }
        self.end_if(ftl, self.left == 0, now)
    }

    /// Gives the host its programs for a turn, up to a stripe. Returns `true` if it continues with them.
    fn grant(&mut self, ftl: &mut Ftl) -> bool {
        let stripe = u64::from(self.joined) * PROGRAM;
        self.credit = stripe.min(self.credit + self.granted.map_or(0, |(programs, _)| programs));
        let resumes = self.credit >= PROGRAM && ftl.blocks.holds_host;
        if resumes {
            ftl.hold_host(false);
        }
        resumes
    }

    /// Notes a program of the host, which waits after the last one of its share.
    pub(super) fn spend(&mut self, ftl: &mut Ftl) {
        if self.left > 0 && self.shares {
            self.credit = self.credit.saturating_sub(PROGRAM);
            if self.credit < PROGRAM {
                ftl.hold_host(true);
            }
        }
    }

    /// Notes that a plane has nothing to collect. Returns `true` if no plane has, so that the host continues.
    pub(super) fn leave(&mut self, ftl: &mut Ftl, plane: PlaneId, now: Time) -> bool {
        if self.left == 0 || !std::mem::replace(&mut self.joins[plane], false) {
            return false;
        }
        self.joined -= 1;
        self.end_if(ftl, self.joined == 0, now)
    }

    fn end_if(&mut self, ftl: &mut Ftl, ends: bool, now: Time) -> bool {
        if ends {
            self.left = 0;
            self.end = Some(now);
            ftl.blocks.host_room = u64::MAX;
            ftl.hold_host(false);
        }
        ends
    }
}
