//! Channels, LUNs and execution units: which operation holds a bus, and until when each die is busy.

mod busy;
mod operation;
mod overlap;
mod plane_reads;
mod saving;
mod watchers;

use std::hint::select_unpredictable;

use super::busy_time::BusyAccounting;
use super::parallel::Parallel;
use super::probe::Probe;
use super::timing::Timing;
use crate::config::cells::CellMode;
use crate::config::{DeviceConfig, GcPace};
use crate::scheduler::RANKS;
use crate::sim::id::{ChannelId, ExecUnitId, LunId, PlaneId, Ppn};
use crate::sim::memory::Divider;
use crate::sim::queue::EventQueue;
use crate::sim::table::Table;
use crate::sim::time::Time;
use crate::work::Class;
use busy::{BusyTime, add_to, signed};
use operation::{Beside, Overlap};
pub use operation::{Kind, Member, Operation, Spot};

/// State of a LUN, which determines whether it takes a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LunState {
    /// The LUN takes a command.
    Idle,
    /// The LUN waits for the channel to start its next command. The transaction is bound when the channel is granted.
    Requesting,
    /// The LUN takes no command, because its next one is being bound, or an operation is being completed.
    Binding,
    /// Some execution units of the LUN work.
    Busy,
    /// The operation of the LUN is suspended: it takes reads of the host.
    Suspended,
}

/// Bus cycles that a unit queues for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cycles {
    /// Command and address cycles without data.
    Command,
    /// Data, after the command of a program.
    Data,
}

/// Phase of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No operation.
    Idle,
    /// The cells work, or will work once command and data have been transferred.
    Cell,
    /// Like [`Phase::Cell`], but the unit has an event when the cells start to work.
    Coming,
    /// Data of a read are in the register and wait for the channel.
    Holding,
    /// Data of a read leave over the channel.
    Out,
    /// The unit waits for the channel to continue with the next page of a mapping unit that spans pages.
    NextPage,
    /// The cells are being suspended.
    Suspending,
}

/// Part that takes one command at a time.
#[derive(Clone, Copy, Debug)]
struct Lun {
    state: LunState,
    /// Number of units that work.
    active: u32,
}

/// Execution unit: executes one operation at a time. If its LUN waits for the channel to start a command, the first
/// unit of the LUN is queued. Two cache lines.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Unit {
    lun: LunId,
    channel: ChannelId,
    phase: Phase,
    /// Next unit in the queue of the channel.
    next: ExecUnitId,
    rank: u8,
    operation: Operation,
    held_since: Time,
    /// Time for which the cells work in the operation.
    cells: Time,
    /// True if a copy-back has read its page and programs it.
    programs: bool,
    /// Operation that overlaps with this one.
    beside: Beside,
    /// Number of reads for which the operation was held back.
    held_back: u32,
}

/// Bus. The data that each transfer needs are in one cache line, the queues in the next.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Channel {
    busy_until: Time,
    /// Data time of the current or last transfer: of each plane, and of all planes.
    data: Time,
    all_data: Time,
    /// Time of the command cycles and the data of each plane, which alternate.
    turn: Time,
    /// Order of the channel's release among the events of the same time: that of the transfer's start.
    release_order: u64,
    /// Bit mask of the queues that are not empty.
    waiting: u32,
    last_chip: u32,
    /// First and last unit of each queue. There is a queue for each rank. If commands go first, there is a queue of
    /// commands for each rank, then a queue of data for each rank.
    lines: [(ExecUnitId, ExecUnitId); 2 * RANKS],
}

/// Watchers of an array.
#[derive(Clone, Debug, Default)]
struct Watchers {
    /// Recorder of every phase.
    probe: Option<Probe>,
    /// Accounting of the time for which operations hold LUNs and channels.
    accounting: Option<BusyAccounting>,
    /// True if the device records queued transactions, though nothing is recorded here.
    of_queues: bool,
}

impl Channel {
    /// Returns the part of the time from `at` until the channel is free that is for data.
    fn data_ahead(&self, at: Time) -> Time {
        let ahead = self.busy_until.since(at);
        if self.turn == Time::ZERO {
            return Time::ZERO;
        }
        // Count from the end: whole turns, then the data of the turn before them, which are its last part. Before all
        // turns is the way switch.
        let (turns, rest) = (ahead.0 / self.turn.0, Time(ahead.0 % self.turn.0));
        (Time(turns * self.data.0) + rest.min(self.data)).min(self.all_data)
    }
}

/// Time spent by a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelTime {
    /// Transferring data.
    pub data: Time,
    /// Transferring commands and addresses, or switching to another chip or channel.
    pub command: Time,
}

/// Time spent by a die.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DieTime {
    /// Time in which the cells work.
    pub cell: Time,
    /// Time in which an operation holds the die but the cells do not work: its data move, or wait for the channel.
    pub register_held: Time,
}

/// Outcome of a unit's event, for the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The unit needs its channel now, with this rank.
    WantsChannel(u8),
    /// The data of one plane have been transferred. The unit needs its channel for those of the next, with this rank.
    MemberOut(u8),
    /// The unit continues by itself.
    GoesOn,
    /// The cells start to work, which [`Array::await_cells`] requested.
    CellsWork,
    /// The operation is suspended: the unit takes a read of the host.
    Suspended,
    /// The operation has ended.
    Done,
}

/// The flash array in time.
#[derive(Clone, Debug)]
pub struct Array {
    timing: Timing,
    luns: Table<LunId, Lun>,
    units: Table<ExecUnitId, Unit>,
    /// Planes that work together in a unit, in the order of their transfers. Indexed by plane.
    members: Vec<Member>,
    /// Planes of suspended operations, and of reads that have started after another one. Indexed by plane.
    resting: Vec<Member>,
    /// Indexed by unit; empty if operations cannot overlap.
    overlaps: Table<ExecUnitId, Overlap>,
    /// Operation of [`Spot::Member`].
    joining: Operation,
    channels: Table<ChannelId, Channel>,
    events: EventQueue,
    /// Number of planes of each LUN that read independently; 0 if none do. Their units follow those of the LUNs.
    reading_planes: u32,
    /// Number of the first unit of these planes; [`u32::MAX`] without them.
    first_reading: u32,
    lun_of_plane: Table<PlaneId, LunId>,
    planes_per_lun: u32,
    planes_per_unit: Divider,
    units_per_lun: Divider,
    planes_per_die: Divider,
    planes_per_chip: Divider,
    luns_per_channel: Divider,
    /// End of the last command on the control lines of each asynchronous gang; empty without such gangs.
    control: Vec<Time>,
    /// Number of channels that share control lines.
    channels_per_control: u32,
    /// True if time may pass before command cycles, for switches or shared control lines.
    leads: bool,
    /// LUN that holds each channel, or `NONE`; empty if garbage collection holds no channels.
    held_by: Vec<LunId>,
    /// End of the last program or erase in each place that `controller.power_cap` allows; empty without a limit.
    powered: Vec<Time>,
    last_channel: u32,
    switch_free: Time,
    /// Time spent. Indexed by channel.
    pub channel_time: Vec<ChannelTime>,
    /// Time spent. Indexed by die. If planes read independently, the times of their reads follow those of programs and
    /// erases ([`Array::time_until`]).
    pub die_time: Vec<DieTime>,
    /// Indexed by LUN; empty if operations cannot overlap.
    busy: Table<LunId, BusyTime>,
    /// Numbers of multi-plane and interleaved commands.
    pub parallel: Parallel,
    /// `None` without watchers. One pointer, so that one test is enough.
    watchers: Option<Box<Watchers>>,
}

/// No chip or channel yet.
const NOWHERE: u32 = u32::MAX;

impl Array {
    /// Creates an idle array. The event queue has `others` more resources, which follow those of units and channels.
    pub fn new(device: &DeviceConfig, others: u32) -> Array {
        let g = &device.geometry;
        let (planes_per_lun, planes_per_unit) = (device.planes_per_lun(), device.planes_per_unit());
        let planes = device.total_planes();
        let (luns, units, buses) = (planes / planes_per_lun, planes / planes_per_unit, device.buses());
        let (timing, per_control) = (Timing::new(device), device.buses_per_control());
        let together = device.planes_together();
        let reading_planes = if together > 1 { together } else { 0 };
        let unit = |number: u32| Unit {
            lun: LunId(number / (planes_per_lun / planes_per_unit)),
            channel: ChannelId(number / (units / buses)),
            phase: Phase::Idle,
            next: ExecUnitId::NONE,
            rank: 0,
            operation: Operation::default(),
            held_since: Time::ZERO,
            cells: Time::ZERO,
            programs: false,
            beside: Beside::Nothing,
            held_back: 0,
        };
        let channel = Channel {
            busy_until: Time::ZERO,
            data: Time::ZERO,
            all_data: Time::ZERO,
            turn: Time::ZERO,
            release_order: 0,
            lines: [(ExecUnitId::NONE, ExecUnitId::NONE); 2 * RANKS],
            waiting: 0,
            last_chip: NOWHERE,
        };
        Array {
            leads: timing.switches || per_control > 1,
            timing,
            luns: Table::new(luns, Lun { state: LunState::Idle, active: 0 }),
            units: (0..units).chain((0..units * reading_planes).map(|number| number / together)).map(unit).collect(),
            members: vec![NO_MEMBER; planes as usize],
            resting: vec![NO_MEMBER; if device.nand.advanced.overlaps() { planes as usize } else { 0 }],
            overlaps: Table::new(if device.nand.advanced.overlaps() { units } else { 0 }, Overlap::default()),
            joining: Operation::default(),
            channels: Table::new(buses, channel),
            events: EventQueue::new(units * (1 + reading_planes) + buses + others),
            reading_planes,
            first_reading: if reading_planes > 0 { units } else { u32::MAX },
            lun_of_plane: (0..planes).map(|p| LunId(p / planes_per_lun)).collect(),
            planes_per_lun,
            planes_per_unit: Divider::new(planes_per_unit),
            units_per_lun: Divider::new(planes_per_lun / planes_per_unit),
            planes_per_die: Divider::new(device.planes_per_die()),
            planes_per_chip: Divider::new(g.dies * device.planes_per_die()),
            luns_per_channel: Divider::new((luns / buses).max(1)),
            control: vec![Time::ZERO; if per_control > 1 { (buses / per_control) as usize } else { 0 }],
            channels_per_control: per_control,
            held_by: vec![LunId::NONE; if device.gc.pace == GcPace::Exclusive { buses as usize } else { 0 }],
            powered: vec![Time::ZERO; device.controller.power_cap.map_or(0, |cap| cap.min(units) as usize)],
            last_channel: NOWHERE,
            switch_free: Time::ZERO,
            channel_time: vec![ChannelTime::default(); buses as usize],
            die_time: vec![DieTime::default(); (planes / device.planes_per_die() * together.min(2)) as usize],
            busy: Array::busy_times(device, luns),
            parallel: Parallel::new(if device.nand.advanced.merges() { g.dies } else { 0 }, device.planes_per_die()),
            watchers: None,
        }
    }

    /// Returns the number of LUNs.
    pub fn luns(&self) -> u32 {
        self.luns.len() as u32
    }

    /// Returns the number of execution units.
    pub fn units(&self) -> u32 {
        self.units.len() as u32
    }

    /// Returns the durations of the phases.
    #[inline]
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Returns the LUN of a plane.
    #[inline]
    pub fn lun_of(&self, plane: PlaneId) -> LunId {
        self.lun_of_plane[plane]
    }

    /// Returns the planes of a LUN.
    #[inline]
    pub fn planes_of(&self, lun: LunId) -> std::ops::Range<u32> {
        lun.0 * self.planes_per_lun..(lun.0 + 1) * self.planes_per_lun
    }

    /// Returns the execution unit of a plane.
    #[inline]
    pub fn unit_of(&self, plane: PlaneId) -> ExecUnitId {
        ExecUnitId(self.planes_per_unit.divide(plane.0))
    }

    /// Returns the chip of a plane.
    #[inline]
    pub fn chip_of(&self, plane: PlaneId) -> u32 {
        self.planes_per_chip.divide(plane.0)
    }

    /// Returns the number of the die of a plane.
    #[inline]
    fn die_of(&self, plane: PlaneId) -> usize {
        self.planes_per_die.divide(plane.0) as usize
    }

    #[inline]
    fn time_of_die(&mut self, plane: PlaneId) -> &mut DieTime {
        let die = self.die_of(plane);
        &mut self.die_time[die]
    }

    /// Returns the time of the die of a plane for the operations of a unit.
    #[inline]
    fn time_of(&mut self, unit: ExecUnitId, plane: PlaneId) -> &mut DieTime {
        let place = self.place_of_time(unit, plane);
        &mut self.die_time[place]
    }

    /// Returns the planes of a unit.
    #[inline]
    pub fn planes_of_unit(&self, unit: ExecUnitId) -> std::ops::Range<u32> {
        let planes = self.planes_per_unit.divisor();
        unit.0 * planes..(unit.0 + 1) * planes
    }

    /// Returns the LUN of a unit.
    #[inline]
    pub fn lun_of_unit(&self, unit: ExecUnitId) -> LunId {
        self.units[unit].lun
    }

    /// Returns the number of units of a LUN.
    pub fn units_per_lun(&self) -> u32 {
        self.units_per_lun.divisor()
    }

    /// Returns the channel of a LUN.
    #[inline]
    pub fn channel_of(&self, lun: LunId) -> ChannelId {
        ChannelId(self.luns_per_channel.divide(lun.0))
    }

    /// Returns the channel of a unit.
    #[inline]
    pub fn channel_of_unit(&self, unit: ExecUnitId) -> ChannelId {
        self.units[unit].channel
    }

    /// Returns the number of the first resource of the event queue that is neither a unit nor a channel.
    pub fn first_other(&self) -> u32 {
        (self.units.len() + self.channels.len()) as u32
    }

    /// Returns the owner of a resource number.
    #[inline]
    pub fn owner(&self, resource: u32) -> Owner {
        let units = self.units.len() as u32;
        if resource < units {
            Owner::Unit(ExecUnitId(resource))
        } else if resource < self.first_other() {
            Owner::Channel(ChannelId(resource - units))
        } else {
            Owner::Other(resource - self.first_other())
        }
    }

    /// Returns the event queue.
    #[inline]
    pub fn events(&mut self) -> &mut EventQueue {
        &mut self.events
    }

    /// Returns the time of the earliest event.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        self.events.peek().map(|(at, _)| at)
    }

    /// Returns the state of a LUN.
    #[inline]
    pub fn state(&self, lun: LunId) -> LunState {
        self.luns[lun].state
    }

    /// Returns the current or last operation of a unit.
    pub fn operation(&self, unit: ExecUnitId) -> &Operation {
        &self.units[unit].operation
    }

    /// Returns the operation that is built at a spot.
    #[inline(always)]
    pub fn draft(&self, at: Spot) -> &Operation {
        match at {
            Spot::Unit(unit) => &self.units[unit].operation,
            Spot::Ahead(unit) => &self.overlaps[unit].other,
            Spot::Member => &self.joining,
        }
    }

    /// Returns a mutable reference to the operation that is built at a spot.
    #[inline(always)]
    pub fn draft_mut(&mut self, at: Spot) -> &mut Operation {
        match at {
            Spot::Unit(unit) => &mut self.units[unit].operation,
            Spot::Ahead(unit) => &mut self.overlaps[unit].other,
            Spot::Member => &mut self.joining,
        }
    }

    /// Sets the times of the read or program that is drafted at a spot to those of the cell mode of its block.
    /// `cells_of` returns the mode and the number of the page within the block, unless the mode is the native one.
    #[inline(never)]
    pub fn set_cells(&mut self, at: Spot, cells_of: impl FnOnce(Ppn) -> Option<(CellMode, u32)>) {
        let Some((cells, page)) = cells_of(Ppn(self.draft(at).ppn)) else { return };
        let times = self.timing.of(cells);
        let (cell, data) = match self.draft(at).kind {
            Kind::Program => (times.program(page), Some(times.program_in)),
            _ => (times.read(page), None),
        };
        let operation = self.draft_mut(at);
        (operation.cell, operation.data) = (cell, data.unwrap_or(operation.data));
    }

    /// Returns the rank with which a LUN waits for its channel to start a command.
    #[inline]
    pub fn rank(&self, lun: LunId) -> u8 {
        self.units[ExecUnitId(lun.0 * self.units_per_lun.divisor())].rank
    }

    /// Returns `true` if a channel is free, its queue is empty, and no LUN holds it.
    #[inline]
    pub fn channel_is_idle(&self, channel: ChannelId, now: Time) -> bool {
        let state = &self.channels[channel];
        state.busy_until <= now && state.waiting == 0 && (self.held_by.is_empty() || self.holder(channel).is_none())
    }

    /// Returns `true` if the LUN of a unit can use its channel at once: it holds the channel, or the channel is idle.
    #[inline(always)]
    pub fn has_channel(&self, unit: ExecUnitId, now: Time) -> bool {
        let state = &self.channels[self.channel_of_unit(unit)];
        state.busy_until <= now && if self.holds_channels() { self.may_take_channel(unit) } else { state.waiting == 0 }
    }

    /// Returns `true` if the LUN of a unit holds its channel, which is free, or nothing holds it or waits for it.
    #[cold]
    fn may_take_channel(&self, unit: ExecUnitId) -> bool {
        let channel = self.channel_of_unit(unit);
        let holder = self.holder(channel);
        holder == self.lun_of_unit(unit) || (self.channels[channel].waiting == 0 && holder.is_none())
    }

    /// Returns the LUN that holds a channel, or `NONE`.
    fn holder(&self, channel: ChannelId) -> LunId {
        self.held_by.get(channel.index()).copied().unwrap_or(LunId::NONE)
    }

    /// Returns `true` if garbage collection holds channels.
    #[inline]
    pub fn holds_channels(&self) -> bool {
        !self.held_by.is_empty()
    }

    /// Lets a LUN hold its channel from the start of an operation on, if that moves a victim.
    #[cold]
    fn hold_channel(&mut self, lun: LunId, kind: Kind, class: Class) {
        if kind != Kind::Erase && class.is_collecting() && class != Class::Summary {
            let channel = self.channel_of(lun);
            self.held_by[channel.index()] = lun;
        }
    }

    /// Ends the hold of a LUN on its channel. Returns the channel if the LUN held it.
    pub fn release_channel(&mut self, lun: LunId) -> Option<ChannelId> {
        let channel = self.channel_of(lun);
        let is_held = self.held_by.get(channel.index()) == Some(&lun);
        is_held.then(|| {
            self.held_by[channel.index()] = LunId::NONE;
            channel
        })
    }

    /// Queues an idle LUN for its channel, to start a command.
    pub fn request_start(&mut self, lun: LunId, rank: u8, cycles: Cycles, now: Time) {
        self.luns[lun].state = LunState::Requesting;
        self.enqueue(ExecUnitId(lun.0 * self.units_per_lun.divisor()), rank, cycles, now);
    }

    /// Queues a unit for its channel, to continue its operation.
    pub fn request_more(&mut self, unit: ExecUnitId, rank: u8, now: Time) {
        let Unit { phase, operation, .. } = &self.units[unit];
        // The data of a program's next page follow its command, and so do those of a fused partial write.
        let has_data = operation.kind == Kind::Program || (operation.kind == Kind::CopyBack && operation.data.0 > 0);
        let is_command = *phase == Phase::NextPage && !has_data;
        self.enqueue(unit, rank, if is_command { Cycles::Command } else { Cycles::Data }, now);
    }

    /// Removes a LUN from the queue for its channel before the grant, which makes the LUN idle.
    pub fn withdraw(&mut self, lun: LunId, now: Time) {
        let unit = ExecUnitId(lun.0 * self.units_per_lun.divisor());
        debug_assert!(self.state(lun) == LunState::Requesting && !self.requests_ahead(unit));
        self.leave_channel_line(self.channel_of_unit(unit), unit);
        if self.is_watched() {
            self.show_grant(unit, now);
        }
        self.luns[lun].state = LunState::Idle;
    }

    /// Removes a unit from the queue for its channel.
    #[inline]
    fn leave_channel_line(&mut self, channel: ChannelId, unit: ExecUnitId) {
        let Unit { rank, next, .. } = self.units[unit];
        // The queue is that of commands or that of data. It has at most all units of one channel.
        for number in [usize::from(rank), usize::from(rank) + RANKS] {
            let (first, last) = self.channels[channel].lines[number];
            let mut before = ExecUnitId::NONE;
            let mut at = first;
            while at != unit && at.is_some() {
                (before, at) = (at, self.units[at].next);
            }
            if at.is_none() {
                continue;
            }
            if before.is_some() {
                self.units[before].next = next;
            }
            let queue = (if before.is_none() { next } else { first }, if next.is_none() { before } else { last });
            let channel = &mut self.channels[channel];
            channel.lines[number] = queue;
            channel.waiting &= !(u32::from(queue.0.is_none()) << number);
            break;
        }
    }

    /// Returns `true` if a LUN holds a channel and does not wait for it.
    #[cold]
    fn waits_for_holder(&self, channel: ChannelId) -> bool {
        self.holder(channel).is_some() && self.waiting_of_holder(channel).is_none()
    }

    /// Returns the first unit in the queue of a channel that belongs to the LUN that holds it.
    #[cold]
    fn waiting_of_holder(&self, channel: ChannelId) -> Option<ExecUnitId> {
        let holder = self.holder(channel);
        self.channels[channel].lines.iter().find_map(|&(first, _)| {
            let mut unit = first;
            while unit.is_some() && self.units[unit].lun != holder {
                unit = self.units[unit].next;
            }
            unit.get()
        })
    }

    fn enqueue(&mut self, unit: ExecUnitId, rank: u8, cycles: Cycles, now: Time) {
        if self.is_watched() {
            self.show_enqueue(unit, now);
        }
        self.join_channel_line(unit, rank, cycles);
    }

    fn join_channel_line(&mut self, unit: ExecUnitId, rank: u8, cycles: Cycles) {
        let after_commands = self.timing.commands_first && cycles == Cycles::Data;
        let number = usize::from(rank) + if after_commands { RANKS } else { 0 };
        let channel = self.channel_of_unit(unit);
        let channel = &mut self.channels[channel];
        let line = &mut channel.lines[number];
        let last = line.1;
        let state = &mut self.units[unit];
        (state.rank, state.next) = (rank, ExecUnitId::NONE);
        line.1 = unit;
        if last.is_none() {
            line.0 = unit;
            channel.waiting |= 1 << number;
        } else {
            self.units[last].next = unit;
        }
    }

    /// Marks a LUN as binding its next command, so that nothing else starts on it.
    #[inline]
    pub fn set_binding(&mut self, lun: LunId) {
        self.luns[lun].state = LunState::Binding;
    }

    /// Makes a LUN idle, or busy if some of its units still work. Returns `true` if it is idle.
    #[inline]
    pub fn set_idle(&mut self, lun: LunId) -> bool {
        let state = &mut self.luns[lun];
        state.state = if state.active == 0 { LunState::Idle } else { LunState::Busy };
        state.active == 0
    }

    /// Marks a LUN as busy, because some of its units work.
    #[inline]
    pub fn set_busy(&mut self, lun: LunId) {
        self.luns[lun].state = LunState::Busy;
    }

    /// Returns the next unit in the queue of `channel`, and removes it, if the channel is free. If the channel is busy,
    /// sets the event of its release.
    #[inline]
    pub fn grant(&mut self, channel: ChannelId, now: Time) -> Option<ExecUnitId> {
        let state = &self.channels[channel];
        if state.waiting == 0 {
            return None;
        }
        if self.holds_channels() && self.waits_for_holder(channel) {
            return None; // The end of the hold grants the channel.
        }
        let resource = self.units.len() as u32 + channel.0;
        if self.events.is_set(resource) {
            return None; // The channel's release is pending, possibly at this time.
        }
        if state.busy_until > now {
            self.events.set_stamped(resource, state.busy_until, state.release_order);
            return None;
        }
        let number = state.waiting.trailing_zeros() as usize;
        let mut first = state.lines[number].0;
        if self.holds_channels()
            && let Some(of_holder) = self.waiting_of_holder(channel)
        {
            first = of_holder;
            self.leave_channel_line(channel, first);
        } else {
            let next = self.units[first].next;
            let channel = &mut self.channels[channel];
            channel.lines[number].0 = next;
            if next.is_none() {
                channel.lines[number].1 = ExecUnitId::NONE;
                channel.waiting &= !(1 << number);
            }
        }
        if self.is_watched() && !self.requests_ahead(first) {
            self.show_grant(first, now);
        }
        Some(first)
    }

    /// Occupies the channel of `unit` from `from` on, for the switch to its chip and for `turns` turns of command
    /// cycles and data. Returns the time of the end.
    #[inline(always)]
    fn seize(
        &mut self,
        unit: ExecUnitId,
        (kind, plane): (Kind, PlaneId),
        from: Time,
        turns: u32,
        command: Time,
        data: Time,
    ) -> Time {
        let channel_id = self.units[unit].channel;
        let (commands, all_data) = if turns == 1 {
            (command, data)
        } else {
            (Time(command.0 * u64::from(turns)), Time(data.0 * u64::from(turns)))
        };
        let lead = if self.leads { self.lead(channel_id, (kind, plane), from, commands) } else { Time::ZERO };
        let channel = &mut self.channels[channel_id];
        debug_assert!(channel.busy_until <= from, "the channel is busy");
        let end = from + lead + commands + all_data;
        // A command for another die of the chip continues where the last one ended: together they are one transfer.
        let goes_on = self.units_per_lun.divisor() > 1 && lead == Time::ZERO && channel.busy_until == from;
        let before = if goes_on { channel.all_data } else { Time::ZERO };
        (channel.busy_until, channel.data, channel.all_data) = (end, data, before + all_data);
        channel.turn = command + data;
        let time = &mut self.channel_time[channel_id.index()];
        time.command += lead + commands;
        time.data += all_data;
        if self.is_watched() {
            self.show_transfer(unit, from, from + lead, turns, end);
        }
        end
    }

    /// Returns the time before the command cycles of an operation: of switches, and until the control lines are free.
    #[inline(never)]
    fn lead(&mut self, channel: ChannelId, (kind, plane): (Kind, PlaneId), from: Time, commands: Time) -> Time {
        let switches = if self.timing.switches { self.turn(channel, (kind, plane), from) } else { Time::ZERO };
        if self.control.is_empty() {
            return switches;
        }
        switches + self.await_control(channel, from + switches, commands)
    }

    /// Occupies the control lines that a channel shares for command cycles, when these are free. Returns the time
    /// until then.
    fn await_control(&mut self, channel: ChannelId, from: Time, commands: Time) -> Time {
        let until = &mut self.control[(channel.0 / self.channels_per_control) as usize];
        let wait = if commands == Time::ZERO { Time::ZERO } else { until.since(from) };
        *until = (*until).max(from + wait + commands);
        wait
    }

    /// Switches a channel to the chip of a plane, and the controller to the channel. Returns the time that this takes.
    fn turn(&mut self, channel_id: ChannelId, (kind, plane): (Kind, PlaneId), from: Time) -> Time {
        let chip = self.chip_of(plane);
        let channel = &mut self.channels[channel_id];
        let mut lead = Time::ZERO;
        if self.timing.way_switch.0 > 0 && channel.last_chip != chip {
            if channel.last_chip != NOWHERE {
                lead += self.timing.way_switch;
            }
            channel.last_chip = chip;
        }
        let switch = self.timing.channel_switch(kind);
        if self.timing.switches_channels() && self.last_channel != channel_id.0 {
            if self.last_channel != NOWHERE && switch > Time::ZERO {
                if self.timing.switch_is_shared {
                    lead += self.switch_free.since(from);
                    self.switch_free = from + lead + switch;
                }
                lead += switch;
            }
            self.last_channel = channel_id.0;
        }
        lead
    }

    /// Sets plane number `index` of a multi-plane operation of a unit, in the order in which the data move.
    pub fn set_member(&mut self, unit: ExecUnitId, index: u32, member: Member) {
        self.members[(unit.0 * self.planes_per_unit.divisor() + index) as usize] = member;
    }

    /// Adds the operation that was built for a plane ([`Spot::Member`]) to the operation `at` a spot, as a member of
    /// `unit`.
    pub fn join(&mut self, unit: ExecUnitId, at: Spot) {
        let Operation { plane, data, cell, program, tag, ppn, .. } = self.joining;
        let operation = self.draft_mut(at);
        let index = operation.members;
        operation.members += 1;
        operation.cell = operation.cell.max(cell);
        operation.program = operation.program.max(program);
        self.set_member(unit, index, Member { plane, data, tag, ppn });
    }

    /// Returns the planes that work together in a unit, except those whose data have left.
    fn members_of(&self, unit: ExecUnitId) -> &[Member] {
        let first = (unit.0 * self.planes_per_unit.divisor()) as usize;
        &self.members[first..first + self.units[unit].operation.members as usize]
    }

    /// Returns the planes that a unit works in, with their physical addresses.
    pub fn planes_at_work(&self, unit: ExecUnitId) -> impl Iterator<Item = (PlaneId, Ppn)> + Clone {
        let operation = &self.units[unit].operation;
        let alone = (operation.members <= 1).then_some((operation.plane, Ppn(operation.ppn)));
        let members = if operation.members <= 1 { &[] } else { self.members_of(unit) };
        alone.into_iter().chain(members.iter().map(|member| (member.plane, Ppn(member.ppn))))
    }

    /// Counts a command for `dies` dies and `planes` planes, if there are several planes.
    pub fn note_merged(&mut self, kind: Kind, dies: u32, planes: u32) {
        if planes > 1 {
            self.parallel.note(kind, dies, planes);
        }
    }

    /// Starts the operation that was built at an idle unit ([`Spot::Unit`]). It starts the LUN's command, or follows
    /// the transfers of the command for other units. If the command needs the channel, the channel must have been
    /// granted.
    #[inline(always)]
    pub fn start(&mut self, unit: ExecUnitId, now: Time) {
        let lun = self.lun_of_unit(unit);
        let state = &mut self.luns[lun];
        debug_assert!(!matches!(state.state, LunState::Busy), "the LUN is busy");
        state.active += 1;
        state.state = LunState::Busy;
        let first = state.active == 1;
        let reads_in_plane = self.reads_in_plane(unit);
        let state = &mut self.units[unit];
        debug_assert!(state.phase == Phase::Idle, "the unit is busy");
        debug_assert!(
            reads_in_plane || state.operation.plane.0 / self.planes_per_unit.divisor() == unit.0,
            "a plane of another unit"
        );
        state.cells = Time::ZERO;
        let Operation { kind, class, command, data, .. } = state.operation;
        if self.holds_channels() {
            self.hold_channel(lun, kind, class);
        }
        self.clear_overlap(unit);
        let data = if kind == Kind::Program { data } else { Time::ZERO };
        let mut from = now;
        if !first && command + data > Time::ZERO {
            from = from.max(self.channels[self.channel_of_unit(unit)].busy_until);
        }
        self.units[unit].held_since = from;
        if self.is_watched() {
            self.show_start(lun, first, class, now);
        }
        self.start_page(unit, from);
    }

    /// Starts the command of the next page of an operation that has started.
    #[inline(never)]
    fn start_next_page(&mut self, unit: ExecUnitId, from: Time) {
        self.start_page(unit, from);
    }

    /// Starts the command of a page of the operation.
    #[inline(always)]
    fn start_page(&mut self, unit: ExecUnitId, from: Time) {
        let Unit { operation, programs, .. } = &self.units[unit];
        let Operation { kind, plane, members, data, .. } = *operation;
        let (command, cell) = if *programs {
            (self.timing.program_command, operation.program)
        } else {
            (operation.command, operation.cell)
        };
        // A fused partial write transfers its sectors before it programs the page.
        let data_in = if kind == Kind::Program || *programs { data } else { Time::ZERO };
        let begin = if command + data_in == Time::ZERO {
            from
        } else {
            self.seize(unit, (kind, plane), from, members, command, data_in)
        };
        let begin = if self.powered.is_empty() {
            self.add_busy(unit, from, begin + cell);
            begin
        } else {
            self.await_power(unit, (from, begin), cell)
        };
        let end = begin + cell;
        let state = &mut self.units[unit];
        state.phase = Phase::Cell;
        state.cells += cell;
        add_to(&mut self.time_of(unit, plane).cell, cell);
        self.events.set(unit.0, end);
        self.stamp_release(unit);
        if self.probe().is_some() {
            self.show_cells(unit, begin, end);
        }
    }

    /// Returns the time at which the power allows the cells of a unit to work, from `begin` on for `cell`. The ends of
    /// all operations are known, so programs and erases take the power in the order in which they start. Records the
    /// busy time of the LUN since `from`.
    #[cold]
    fn await_power(&mut self, unit: ExecUnitId, (from, begin): (Time, Time), cell: Time) -> Time {
        let start = self.power_from(unit, begin, cell);
        if start > begin && self.reading_planes > 0 {
            self.add_busy(unit, from, begin);
            self.resume_busy(unit, begin, start, start + cell);
        } else {
            self.add_busy(unit, from, start + cell);
        }
        start
    }

    fn power_from(&mut self, unit: ExecUnitId, begin: Time, cell: Time) -> Time {
        let Unit { operation, programs, .. } = &self.units[unit];
        let is_read = match operation.kind {
            Kind::Read => true,
            Kind::CopyBack => !programs,
            Kind::Program | Kind::Erase => false,
        };
        let Some(first) = self.powered.iter_mut().min().filter(|_| !is_read) else { return begin };
        let start = begin.max(*first);
        *first = start + cell;
        if let Some(accounting) = self.accounting_mut() {
            accounting.await_power(unit, start - begin);
        }
        start
    }

    /// Continues an operation that has been granted its channel.
    #[inline(always)]
    pub fn resume(&mut self, unit: ExecUnitId, now: Time) {
        let state = &mut self.units[unit];
        if state.phase == Phase::NextPage {
            return self.start_next_page(unit, now);
        }
        debug_assert_eq!(state.phase, Phase::Holding);
        state.phase = Phase::Out;
        let Operation { kind, plane, data, .. } = state.operation;
        // The command of a read that starts ahead goes before these data (ONFI: 31h).
        let from =
            if self.overlaps.is_empty() { now } else { now.max(self.channels[self.channel_of_unit(unit)].busy_until) };
        let end = self.seize(unit, (kind, plane), from, 1, Time::ZERO, data);
        self.add_busy(unit, from, end);
        self.events.set(unit.0, end);
        self.stamp_release(unit);
    }

    /// Reserves the order of the release of a unit's channel among all events, after the unit's own event. The event of
    /// the release is set only if a unit waits for the channel.
    #[inline]
    fn stamp_release(&mut self, unit: ExecUnitId) {
        let channel = self.channel_of_unit(unit);
        self.channels[channel].release_order = self.events.stamp();
    }

    /// Handles the event of a unit at `now`.
    #[inline(always)]
    pub fn unit_event(&mut self, unit: ExecUnitId, now: Time) -> Outcome {
        let state = &mut self.units[unit];
        let operation = &mut state.operation;
        if state.phase == Phase::Cell && operation.kind == Kind::Read {
            state.phase = Phase::Holding;
            return Outcome::WantsChannel(operation.rank);
        }
        if state.phase == Phase::Suspending {
            return self.suspended(unit, now);
        }
        if state.phase == Phase::Coming {
            return self.cells_work(unit, now);
        }
        debug_assert!(matches!(state.phase, Phase::Cell | Phase::Out));
        if operation.kind == Kind::CopyBack {
            state.programs = !state.programs;
            if state.programs {
                return self.program_back(unit, now);
            }
        }
        if operation.pages > 1 {
            operation.pages -= 1;
            state.phase = Phase::NextPage;
            return Outcome::WantsChannel(operation.rank);
        }
        if operation.kind == Kind::Read && operation.members > 1 {
            return self.member_out(unit);
        }
        state.phase = Phase::Idle;
        let plane = operation.plane;
        let held = now - state.held_since - state.cells;
        self.time_of(unit, plane).register_held += held;
        // The router winds the operation up, then lets the LUN take commands again.
        let lun = self.lun_of_unit(unit);
        let state = &mut self.luns[lun];
        state.active -= 1;
        // A LUN whose planes read may already wait for its channel to start the next read.
        let requests = state.state == LunState::Requesting;
        state.state = select_unpredictable(requests, LunState::Requesting, LunState::Binding);
        Outcome::Done
    }

    /// Programs the page of a copy-back, which is in the register.
    fn program_back(&mut self, unit: ExecUnitId, now: Time) -> Outcome {
        if self.timing.program_command + self.units[unit].operation.data == Time::ZERO {
            self.start_next_page(unit, now);
            return Outcome::GoesOn;
        }
        let state = &mut self.units[unit];
        state.phase = Phase::NextPage;
        Outcome::WantsChannel(state.operation.rank)
    }

    /// Ends the transfer of one plane of a read: the data of the next plane wait for the channel.
    #[cold]
    fn member_out(&mut self, unit: ExecUnitId) -> Outcome {
        let first = (unit.0 * self.planes_per_unit.divisor()) as usize;
        let state = &mut self.units[unit];
        let left = state.operation.members as usize - 1;
        self.members.copy_within(first + 1..=first + left, first);
        let Member { plane, data, tag, ppn } = self.members[first];
        let operation = &mut state.operation;
        (operation.members, operation.plane, operation.data) = (left as u32, plane, data);
        (operation.tag, operation.ppn) = (tag, ppn);
        state.phase = Phase::Holding;
        Outcome::MemberOut(operation.rank)
    }

    /// Returns the end of the operation of a unit if only its last phase is left: the last data of a read leave, or the
    /// cells of a program work.
    pub fn settled_end(&self, unit: ExecUnitId) -> Option<Time> {
        let Unit { phase, operation, .. } = &self.units[unit];
        let is_last = match operation.kind {
            Kind::Read => *phase == Phase::Out && operation.members <= 1,
            Kind::Program => *phase == Phase::Cell,
            _ => false,
        };
        self.events.time_of(unit.0).filter(|_| is_last && operation.pages <= 1)
    }

    /// Collects the time spent up to `at`, in picoseconds. For each channel: time with data, and with commands. For
    /// each die: time in the cells, and held without them. No later event may have been processed.
    ///
    /// Programs and erases of planes that read independently count for each of these planes.
    ///
    /// This is exact, while [`Array::channel_time`] and [`Array::die_time`] count a phase in full when it starts, and
    /// the holding time of a die when it ends. Values may be negative if a phase was in progress at
    /// [`Array::reset_times`].
    pub fn time_until(&self, at: Time, channels: &mut Vec<[i64; 2]>, dies: &mut Vec<[i64; 2]>) {
        channels.clear();
        channels.extend(self.channels.iter().zip(&self.channel_time).map(|(channel, time)| {
            let (ahead, data) = (channel.busy_until.since(at), channel.data_ahead(at));
            [signed(time.data) - signed(data), signed(time.command) - signed(ahead - data)]
        }));
        dies.clear();
        dies.extend(self.die_time.iter().map(|time| [signed(time.cell), signed(time.register_held)]));
        for (index, unit) in self.units.iter().enumerate() {
            let ahead = match unit.phase {
                Phase::Idle => continue,
                Phase::Coming => unit.cells,
                Phase::Cell => self.events.time_of(index as u32).map_or(Time::ZERO, |end| {
                    let cell = if unit.programs { unit.operation.program } else { unit.operation.cell };
                    end.since(at).min(cell).min(unit.cells) // A resumed operation has less left.
                }),
                Phase::Holding | Phase::Out | Phase::NextPage | Phase::Suspending => Time::ZERO,
            };
            let die = &mut dies[self.place_of_time(ExecUnitId(index as u32), unit.operation.plane)];
            let overlapping = self.cells_ahead(ExecUnitId(index as u32), at);
            die[0] -= signed(ahead) + signed(overlapping);
            let worked = if unit.phase == Phase::Suspending { 0 } else { signed(unit.cells) - signed(ahead) };
            die[1] += signed(at.since(unit.held_since)) - worked;
        }
        self.add_plane_reads(dies);
    }

    /// Resets the time spent so far, to start a measurement.
    pub fn reset_times(&mut self) {
        self.channel_time.fill(ChannelTime::default());
        self.die_time.fill(DieTime::default());
        self.reset_busy();
    }
}

/// Owner of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// An execution unit.
    Unit(ExecUnitId),
    /// A channel.
    Channel(ChannelId),
    /// A source outside the array, by its number there.
    Other(u32),
}

const NO_MEMBER: Member = Member { plane: PlaneId(0), data: Time::ZERO, tag: u64::MAX, ppn: 0 };

#[cfg(test)]
mod tests;
