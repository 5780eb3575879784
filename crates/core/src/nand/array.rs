//! Channels and what hangs on them: who holds a bus, which die is busy until when.

mod busy;
mod operation;
mod overlap;
mod saving;
mod watchers;

use super::parallel::Parallel;
use super::timing::Timing;
use crate::config::DeviceConfig;
use crate::scheduler::RANKS;
use crate::sim::id::{ChannelId, ExecUnitId, LunId, PlaneId, Ppn};
use crate::sim::memory::Divider;
use crate::sim::queue::EventQueue;
use crate::sim::table::Table;
use crate::sim::time::Time;
use busy::BusyTime;
pub use operation::{Kind, Member, Operation, Spot};
use overlap::{Beside, Overlap};
use watchers::Watchers;

/// Whether a LUN takes a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LunState {
    /// It does.
    Idle,
    /// It waits for the channel to start its next command. What that works on is bound when it is granted.
    Requesting,
    /// Not now: its next command is being bound, or an operation wound up.
    Binding,
    /// Some of its units work.
    Busy,
    /// What it does is suspended: it takes reads of the host.
    Suspended,
}

/// Bus cycles that a unit queues for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cycles {
    /// Command and address cycles that no data follow.
    Command,
    /// Data, with the command before those of a program.
    Data,
}

/// What a unit does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing.
    Idle,
    /// The cells work, or will when their command and data have come.
    Cell,
    /// The same, until the cells work: somebody wants to hear of that.
    Coming,
    /// Data of a read are in the register and wait for the channel.
    Holding,
    /// Data of a read leave over the channel.
    Out,
    /// Waits for the channel to go on with the next page of a unit that spans pages.
    NextPage,
    /// The cells come to rest.
    Suspending,
}

/// What takes one command at a time.
#[derive(Clone, Copy, Debug)]
struct Lun {
    state: LunState,
    /// Units that work.
    active: u32,
}

/// What executes one operation at a time. Where its LUN waits for the channel to start a command, that is noted at the
/// LUN's first unit. Two cache lines.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Unit {
    phase: Phase,
    /// The one behind it in the channel's line.
    next: ExecUnitId,
    rank: u8,
    operation: Operation,
    held_since: Time,
    /// Time that the cells have worked for the operation.
    cells: Time,
    /// A copy-back has read its page and programs it.
    programs: bool,
    /// What overlaps with the operation.
    beside: Beside,
    /// Reads that the operation has been held back for.
    held_back: u32,
}

/// A bus. What each transfer needs lies in one cache line, the queues in the next.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Channel {
    busy_until: Time,
    /// What it carries at last: the data of each plane, and of all.
    data: Time,
    all_data: Time,
    /// The command cycles of each plane and its data, which take turns.
    turn: Time,
    /// The place of its release among the events of that instant: that of the transfer's start.
    release_order: u64,
    /// One bit for each line that is not empty.
    waiting: u32,
    last_chip: u32,
    /// Units that wait, first and last of each line: a line for each rank, or with commands first one for the commands
    /// of each rank and then one for the data of each.
    lines: [(ExecUnitId, ExecUnitId); 2 * RANKS],
}

impl Channel {
    /// How much of the time from `at` until it is free is for data.
    fn data_ahead(&self, at: Time) -> Time {
        let ahead = self.busy_until.since(at);
        if self.turn == Time::ZERO {
            return Time::ZERO;
        }
        // Seen from the end: whole turns, and of the one before them its data, which come last. What is before all of
        // them is the way switch.
        let (turns, rest) = (ahead.0 / self.turn.0, Time(ahead.0 % self.turn.0));
        (Time(turns * self.data.0) + rest.min(self.data)).min(self.all_data)
    }
}

/// Time spent by a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelTime {
    /// Carrying data.
    pub data: Time,
    /// Carrying commands and addresses, or turning to another chip or channel.
    pub command: Time,
}

/// Time spent by a die.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DieTime {
    /// Its cells work.
    pub cell: Time,
    /// Held by an operation whose cells do not work: data move, or wait for the channel.
    pub register_held: Time,
}

/// What a unit's event means for the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It needs its channel now, with this rank.
    WantsChannel(u8),
    /// The data of one plane have left; it needs its channel for those of the next, with this rank.
    MemberOut(u8),
    /// It goes on by itself.
    GoesOn,
    /// Its cells work from now on, as was asked for by [`Array::await_cells`].
    CellsWork,
    /// Its operation is suspended: it takes a read of the host.
    Suspended,
    /// Its operation has ended.
    Done,
}

/// The flash array in time.
#[derive(Clone, Debug)]
pub struct Array {
    timing: Timing,
    luns: Table<LunId, Lun>,
    units: Table<ExecUnitId, Unit>,
    /// By plane: those that work together in a unit, in the order in which their data move.
    members: Vec<Member>,
    /// The same of operations that are suspended, and of reads that have begun behind another.
    resting: Vec<Member>,
    /// By unit, where operations may overlap.
    overlaps: Table<ExecUnitId, Overlap>,
    /// That of [`Spot::Member`].
    joining: Operation,
    channels: Table<ChannelId, Channel>,
    events: EventQueue,
    lun_of_plane: Table<PlaneId, LunId>,
    planes_per_lun: u32,
    planes_per_unit: Divider,
    units_per_lun: Divider,
    planes_per_die: Divider,
    planes_per_chip: Divider,
    luns_per_channel: Divider,
    units_per_channel: Divider,
    last_channel: u32,
    switch_free: Time,
    /// Time spent, by channel.
    pub channel_time: Vec<ChannelTime>,
    /// Time spent, by die.
    pub die_time: Vec<DieTime>,
    /// By LUN, where operations may overlap.
    busy: Table<LunId, BusyTime>,
    /// Commands that made several planes or dies work together.
    pub parallel: Parallel,
    /// Behind one pointer, so that one test tells whether anybody watches.
    watchers: Option<Box<Watchers>>,
}

/// No chip or channel yet.
const NOWHERE: u32 = u32::MAX;

impl Array {
    /// An idle array. `others` resources beside LUNs and channels have events in its queue; they come last.
    pub fn new(device: &DeviceConfig, others: u32) -> Array {
        let g = &device.geometry;
        let (planes_per_lun, planes_per_unit) = (device.planes_per_lun(), device.planes_per_unit());
        let planes = device.total_planes();
        let (luns, units) = (planes / planes_per_lun, planes / planes_per_unit);
        let unit = Unit {
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
            timing: Timing::new(device),
            luns: Table::new(luns, Lun { state: LunState::Idle, active: 0 }),
            units: Table::new(units, unit),
            members: vec![NO_MEMBER; planes as usize],
            resting: vec![NO_MEMBER; if device.nand.advanced.overlaps() { planes as usize } else { 0 }],
            overlaps: Table::new(if device.nand.advanced.overlaps() { units } else { 0 }, Overlap::default()),
            joining: Operation::default(),
            channels: Table::new(g.channels, channel),
            events: EventQueue::new(units + g.channels + others),
            lun_of_plane: (0..planes).map(|p| LunId(p / planes_per_lun)).collect(),
            planes_per_lun,
            planes_per_unit: Divider::new(planes_per_unit),
            units_per_lun: Divider::new(planes_per_lun / planes_per_unit),
            planes_per_die: Divider::new(g.planes),
            planes_per_chip: Divider::new(g.dies * g.planes),
            luns_per_channel: Divider::new(luns / g.channels),
            units_per_channel: Divider::new(units / g.channels),
            last_channel: NOWHERE,
            switch_free: Time::ZERO,
            channel_time: vec![ChannelTime::default(); g.channels as usize],
            die_time: vec![DieTime::default(); (planes / g.planes) as usize],
            busy: Array::busy_times(device, luns),
            parallel: Parallel::new(if device.nand.advanced.merges() { g.dies } else { 0 }, g.planes),
            watchers: None,
        }
    }

    /// How many LUNs there are.
    pub fn luns(&self) -> u32 {
        self.luns.len() as u32
    }

    /// How many units there are.
    pub fn units(&self) -> u32 {
        self.units.len() as u32
    }

    /// The durations of the phases.
    #[inline]
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// The LUN of a plane.
    #[inline]
    pub fn lun_of(&self, plane: PlaneId) -> LunId {
        self.lun_of_plane[plane]
    }

    /// The planes of a LUN.
    #[inline]
    pub fn planes_of(&self, lun: LunId) -> std::ops::Range<u32> {
        lun.0 * self.planes_per_lun..(lun.0 + 1) * self.planes_per_lun
    }

    /// The unit of a plane.
    #[inline]
    pub fn unit_of(&self, plane: PlaneId) -> ExecUnitId {
        ExecUnitId(self.planes_per_unit.divide(plane.0))
    }

    /// The chip of a plane.
    #[inline]
    pub fn chip_of(&self, plane: PlaneId) -> u32 {
        self.planes_per_chip.divide(plane.0)
    }

    /// The number of the die of a plane.
    #[inline]
    fn die_of(&self, plane: PlaneId) -> usize {
        self.planes_per_die.divide(plane.0) as usize
    }

    #[inline]
    fn time_of_die(&mut self, plane: PlaneId) -> &mut DieTime {
        let die = self.die_of(plane);
        &mut self.die_time[die]
    }

    /// The planes of a unit.
    #[inline]
    pub fn planes_of_unit(&self, unit: ExecUnitId) -> std::ops::Range<u32> {
        let planes = self.planes_per_unit.divisor();
        unit.0 * planes..(unit.0 + 1) * planes
    }

    /// The LUN of a unit.
    #[inline]
    pub fn lun_of_unit(&self, unit: ExecUnitId) -> LunId {
        LunId(self.units_per_lun.divide(unit.0))
    }

    /// Units of a LUN.
    pub fn units_per_lun(&self) -> u32 {
        self.units_per_lun.divisor()
    }

    /// The channel of a LUN.
    #[inline]
    pub fn channel_of(&self, lun: LunId) -> ChannelId {
        ChannelId(self.luns_per_channel.divide(lun.0))
    }

    /// The channel of a unit.
    #[inline]
    pub fn channel_of_unit(&self, unit: ExecUnitId) -> ChannelId {
        ChannelId(self.units_per_channel.divide(unit.0))
    }

    /// The number of the queue's first resource that is no unit and no channel.
    pub fn first_other(&self) -> u32 {
        (self.units.len() + self.channels.len()) as u32
    }

    /// Whose event a resource number is.
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

    /// The event queue.
    #[inline]
    pub fn events(&mut self) -> &mut EventQueue {
        &mut self.events
    }

    /// The time of the earliest event.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        self.events.peek().map(|(at, _)| at)
    }

    /// Whether a LUN takes a command.
    #[inline]
    pub fn state(&self, lun: LunId) -> LunState {
        self.luns[lun].state
    }

    /// What a unit does, or did last.
    pub fn operation(&self, unit: ExecUnitId) -> &Operation {
        &self.units[unit].operation
    }

    /// The operation that is put together at a spot.
    #[inline(always)]
    pub fn draft(&self, at: Spot) -> &Operation {
        match at {
            Spot::Unit(unit) => &self.units[unit].operation,
            Spot::Ahead(unit) => &self.overlaps[unit].other,
            Spot::Member => &self.joining,
        }
    }

    /// To put it together there.
    #[inline(always)]
    pub fn draft_mut(&mut self, at: Spot) -> &mut Operation {
        match at {
            Spot::Unit(unit) => &mut self.units[unit].operation,
            Spot::Ahead(unit) => &mut self.overlaps[unit].other,
            Spot::Member => &mut self.joining,
        }
    }

    /// The rank with which a LUN waits for its channel to start a command.
    #[inline]
    pub fn rank(&self, lun: LunId) -> u8 {
        self.units[ExecUnitId(lun.0 * self.units_per_lun.divisor())].rank
    }

    /// Whether a channel is free and nothing waits for it.
    #[inline]
    pub fn channel_is_idle(&self, channel: ChannelId, now: Time) -> bool {
        let channel = &self.channels[channel];
        channel.busy_until <= now && channel.waiting == 0
    }

    /// Puts an idle LUN in line for its channel, to start a command there.
    pub fn request_start(&mut self, lun: LunId, rank: u8, cycles: Cycles, now: Time) {
        self.luns[lun].state = LunState::Requesting;
        self.enqueue(ExecUnitId(lun.0 * self.units_per_lun.divisor()), rank, cycles, now);
    }

    /// Queues a unit for its channel, to continue its operation.
    pub fn request_more(&mut self, unit: ExecUnitId, rank: u8, now: Time) {
        let Unit { phase, operation, .. } = &self.units[unit];
        // The data of a program's next page follow its command.
        let is_command = *phase == Phase::NextPage && operation.kind != Kind::Program;
        self.enqueue(unit, rank, if is_command { Cycles::Command } else { Cycles::Data }, now);
    }

    /// Takes a LUN out of the queue for its channel again, which has not been granted: it is idle.
    pub fn withdraw(&mut self, lun: LunId, now: Time) {
        let unit = ExecUnitId(lun.0 * self.units_per_lun.divisor());
        debug_assert!(self.state(lun) == LunState::Requesting && !self.asks(unit));
        let Unit { rank, next, .. } = self.units[unit];
        let channel = self.channel_of_unit(unit);
        // Of commands, or of data. At most the units of one channel are queued.
        for number in [usize::from(rank), usize::from(rank) + RANKS] {
            let (first, last) = self.channels[channel].lines[number];
            let (mut before, mut at) = (ExecUnitId::NONE, first);
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
        if self.is_watched() {
            self.show_grant(unit, now);
        }
        self.luns[lun].state = LunState::Idle;
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

    /// Keeps a LUN from being started: its next command is being bound.
    #[inline]
    pub fn set_binding(&mut self, lun: LunId) {
        self.luns[lun].state = LunState::Binding;
    }

    /// A LUN takes commands again, unless some of its units still work; whether it does.
    #[inline]
    pub fn set_idle(&mut self, lun: LunId) -> bool {
        let state = &mut self.luns[lun];
        state.state = if state.active == 0 { LunState::Idle } else { LunState::Busy };
        state.active == 0
    }

    /// Some units of a LUN work.
    #[inline]
    pub fn set_busy(&mut self, lun: LunId) {
        self.luns[lun].state = LunState::Busy;
    }

    /// The unit that gets `channel` now, if it is free; sees to it that the channel has an event when others wait.
    #[inline]
    pub fn grant(&mut self, channel: ChannelId, now: Time) -> Option<ExecUnitId> {
        let state = &self.channels[channel];
        if state.waiting == 0 {
            return None;
        }
        let resource = self.units.len() as u32 + channel.0;
        if self.events.is_set(resource) {
            return None; // Its release is still to come, if only later at this instant.
        }
        if state.busy_until > now {
            self.events.set_stamped(resource, state.busy_until, state.release_order);
            return None;
        }
        let number = state.waiting.trailing_zeros() as usize;
        let first = state.lines[number].0;
        let next = self.units[first].next;
        let channel = &mut self.channels[channel];
        channel.lines[number].0 = next;
        if next.is_none() {
            channel.lines[number].1 = ExecUnitId::NONE;
            channel.waiting &= !(1 << number);
        }
        if self.is_watched() && !self.asks(first) {
            self.show_grant(first, now);
        }
        Some(first)
    }

    /// Takes the channel of `unit` for what it does in a plane, from `from` on, for so many turns of command cycles and
    /// data, after what turning to its chip costs; returns when that has ended.
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
        let channel_id = self.channel_of_unit(unit);
        let lead = if self.timing.switches { self.turn(channel_id, (kind, plane), from) } else { Time::ZERO };
        let channel = &mut self.channels[channel_id];
        debug_assert!(channel.busy_until <= from, "the channel carries one transfer at a time");
        let (commands, all_data) = if turns == 1 {
            (command, data)
        } else {
            (Time(command.0 * u64::from(turns)), Time(data.0 * u64::from(turns)))
        };
        let end = from + lead + commands + all_data;
        // A command for another die of the chip goes on where the last one ended: one transfer in turns.
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

    /// Turns a channel to the chip of a plane, and the controller to the channel. Returns the time that this takes.
    #[inline(never)]
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

    /// Names plane number `index` of those that will work together in a unit, in the order in which their data move.
    pub fn set_member(&mut self, unit: ExecUnitId, index: u32, member: Member) {
        self.members[(unit.0 * self.planes_per_unit.divisor() + index) as usize] = member;
    }

    /// What was put together for a plane ([`Spot::Member`]) joins the operation `at` a spot, as a member of `unit`.
    pub fn join(&mut self, unit: ExecUnitId, at: Spot) {
        let Operation { plane, data, cell, program, tag, ppn, .. } = self.joining;
        let operation = self.draft_mut(at);
        let index = operation.members;
        operation.members += 1;
        operation.cell = operation.cell.max(cell);
        operation.program = operation.program.max(program);
        self.set_member(unit, index, Member { plane, data, tag, ppn });
    }

    /// The planes that work together in a unit, those whose data have left not counted.
    fn members_of(&self, unit: ExecUnitId) -> &[Member] {
        let first = (unit.0 * self.planes_per_unit.divisor()) as usize;
        &self.members[first..first + self.units[unit].operation.members as usize]
    }

    /// The planes that a unit works in, with their places.
    pub fn planes_at_work(&self, unit: ExecUnitId) -> impl Iterator<Item = (PlaneId, Ppn)> + Clone {
        let operation = &self.units[unit].operation;
        let alone = (operation.members <= 1).then_some((operation.plane, Ppn(operation.ppn)));
        let members = if operation.members <= 1 { &[] } else { self.members_of(unit) };
        alone.into_iter().chain(members.iter().map(|member| (member.plane, Ppn(member.ppn))))
    }

    /// Counts a command that makes so many dies and planes work, where that is more than one.
    pub fn note_merged(&mut self, kind: Kind, dies: u32, planes: u32) {
        if planes > 1 {
            self.parallel.note(kind, dies, planes);
        }
    }

    /// Starts the operation that was put together at a unit ([`Spot::Unit`]), which holds none, as the LUN's command or
    /// behind what that has for other units; a command that needs the channel has been granted it.
    #[inline(always)]
    pub fn start(&mut self, unit: ExecUnitId, now: Time) {
        let lun = self.lun_of_unit(unit);
        let state = &mut self.luns[lun];
        debug_assert!(!matches!(state.state, LunState::Busy), "a LUN takes one command at a time");
        state.active += 1;
        state.state = LunState::Busy;
        let first = state.active == 1;
        let state = &mut self.units[unit];
        debug_assert!(state.phase == Phase::Idle, "a unit executes one operation at a time");
        debug_assert!(state.operation.plane.0 / self.planes_per_unit.divisor() == unit.0, "what was put together here");
        state.cells = Time::ZERO;
        let Operation { kind, class, command, data, .. } = state.operation;
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

    /// Starts the command of the next page of an operation that has begun.
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
        let data_in = if kind == Kind::Program { data } else { Time::ZERO };
        let begin = if command + data_in == Time::ZERO {
            from
        } else {
            self.seize(unit, (kind, plane), from, members, command, data_in)
        };
        let end = begin + cell;
        let state = &mut self.units[unit];
        state.phase = Phase::Cell;
        state.cells += cell;
        self.time_of_die(plane).cell += cell;
        self.add_busy(unit, from, end);
        self.events.set(unit.0, end);
        self.stamp_release(unit);
        if self.probe().is_some() {
            self.show_cells(unit, begin, end);
        }
    }

    /// Goes on with a unit that has been granted its channel in the middle of an operation.
    #[inline(always)]
    pub fn resume(&mut self, unit: ExecUnitId, now: Time) {
        let state = &mut self.units[unit];
        if state.phase == Phase::NextPage {
            return self.start_next_page(unit, now);
        }
        debug_assert_eq!(state.phase, Phase::Holding);
        state.phase = Phase::Out;
        let Operation { kind, plane, data, .. } = state.operation;
        // The command of a read that starts behind this one goes first (ONFI: 31h before the data).
        let from =
            if self.overlaps.is_empty() { now } else { now.max(self.channels[self.channel_of_unit(unit)].busy_until) };
        let end = self.seize(unit, (kind, plane), from, 1, Time::ZERO, data);
        self.add_busy(unit, from, end);
        self.events.set(unit.0, end);
        self.stamp_release(unit);
    }

    /// Notes the place in the order of events of the release of a unit's channel, behind the unit's own event. The
    /// event itself is only set when somebody waits for it.
    #[inline]
    fn stamp_release(&mut self, unit: ExecUnitId) {
        let channel = self.channel_of_unit(unit);
        self.channels[channel].release_order = self.events.stamp();
    }

    /// Takes the event of a unit at `now`.
    #[inline]
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
        let (plane, held) = (operation.plane, now - state.held_since - state.cells);
        self.time_of_die(plane).register_held += held;
        // The router winds the operation up, then lets the LUN take commands again.
        let lun = self.lun_of_unit(unit);
        let state = &mut self.luns[lun];
        state.active -= 1;
        state.state = LunState::Binding;
        Outcome::Done
    }

    /// A copy-back has its page in the register: programs it.
    fn program_back(&mut self, unit: ExecUnitId, now: Time) -> Outcome {
        if self.timing.program_command == Time::ZERO {
            self.start_next_page(unit, now);
            return Outcome::GoesOn;
        }
        let state = &mut self.units[unit];
        state.phase = Phase::NextPage;
        Outcome::WantsChannel(state.operation.rank)
    }

    /// The data of one plane have left: those of the next wait for the channel.
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

    /// When the operation of a unit ends, where nothing but that is left of it: the last data of a read leave, or the
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

    /// The time spent up to `at`, in picoseconds: by channel with data and with commands, by die in the cells and held
    /// without. Nothing may have happened that is later.
    ///
    /// [`Array::channel_time`] and [`Array::die_time`] book a phase in full when it starts, and what a die is held
    /// when that has ended: this is exact. What was under way at [`Array::reset_times`] makes it less than nothing.
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
                    end.since(at).min(cell).min(unit.cells) // What was suspended has a part left.
                }),
                Phase::Holding | Phase::Out | Phase::NextPage | Phase::Suspending => Time::ZERO,
            };
            let die = &mut dies[self.die_of(unit.operation.plane)];
            let overlapping = self.cells_ahead(ExecUnitId(index as u32), at);
            die[0] -= signed(ahead) + signed(overlapping);
            let worked = if unit.phase == Phase::Suspending { 0 } else { signed(unit.cells) - signed(ahead) };
            die[1] += signed(at.since(unit.held_since)) - worked;
        }
    }

    /// Forgets the time spent so far: what follows is measured.
    pub fn reset_times(&mut self) {
        self.channel_time.fill(ChannelTime::default());
        self.die_time.fill(DieTime::default());
        self.reset_busy();
    }
}

/// A time that is added and taken away; 106 days have room.
const fn signed(time: Time) -> i64 {
    time.0 as i64
}

/// Whose event it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A unit's.
    Unit(ExecUnitId),
    /// A channel's.
    Channel(ChannelId),
    /// Of something outside the array, by its number there.
    Other(u32),
}

const NO_MEMBER: Member = Member { plane: PlaneId(0), data: Time::ZERO, tag: u64::MAX, ppn: 0 };
