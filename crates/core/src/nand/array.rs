//! Channels and what hangs on them: who holds a bus, which die is busy until when.

mod watchers;

use super::timing::Timing;
use crate::config::DeviceConfig;
use crate::scheduler::{Class, RANKS};
use crate::sim::id::{ChannelId, LunId, PlaneId};
use crate::sim::queue::EventQueue;
use crate::sim::time::Time;
use watchers::Watchers;

/// What the array does for one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Cell to register, register to controller.
    Read,
    /// Controller to register, register to cell.
    Program,
    /// Erase of a block.
    Erase,
}

/// One command for a LUN, with the times of its phases.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// What it does.
    pub kind: Kind,
    /// What it is for.
    pub class: Class,
    /// Rank of its data transfer where that waits for the channel by itself.
    pub rank: u8,
    /// The plane it works on.
    pub plane: PlaneId,
    /// Pages still to go, this one included; above 1 where a mapping unit spans pages.
    pub pages: u32,
    /// Time on the channel for command and address cycles.
    pub command: Time,
    /// Time on the channel for the data of a page.
    pub data: Time,
    /// Time in the cells.
    pub cell: Time,
    /// The host request it is for, or `u64::MAX`; for observers.
    pub tag: u64,
    /// The physical page; for observers.
    pub place: u32,
}

/// What a LUN does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing; takes a command.
    Idle,
    /// Waits for the channel to start its next command. What that works on is bound when it is granted.
    Requesting,
    /// Nothing yet: its next operation is being bound, or its last one wound up.
    Binding,
    /// The cells work.
    Cell,
    /// Data of a read are in the register and wait for the channel.
    Holding,
    /// Data of a read leave over the channel.
    Out,
    /// Waits for the channel to go on with the next page of a unit that spans pages.
    NextPage,
}

/// What takes one operation at a time.
#[derive(Clone, Debug)]
struct Lun {
    phase: Phase,
    /// The one behind it in the channel's line.
    next: u32,
    rank: u8,
    operation: Operation,
    held_since: Time,
    /// Time that the cells have worked for the operation.
    cells: Time,
}

/// A bus.
#[derive(Clone, Debug)]
struct Channel {
    busy_until: Time,
    /// The last part of its last transfer, for which it carries data.
    data: Time,
    /// The place of its release among the events of that instant: that of the transfer's start.
    release_order: u32,
    /// LUNs that wait, by rank: first and last of each line.
    lines: [(u32, u32); RANKS],
    /// One bit for each line that is not empty.
    waiting: u32,
    last_chip: u32,
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

/// What a LUN's event means for the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It needs its channel now, with this rank.
    WantsChannel(u8),
    /// Its operation has ended.
    Done,
}

/// The flash array in time.
#[derive(Clone, Debug)]
pub struct Array {
    timing: Timing,
    luns: Vec<Lun>,
    channels: Vec<Channel>,
    events: EventQueue,
    lun_of_plane: Vec<LunId>,
    planes_per_lun: u32,
    planes_per_die: u32,
    planes_per_chip: u32,
    luns_per_channel: u32,
    last_channel: u32,
    switch_free: Time,
    /// Time spent, by channel.
    pub channel_time: Vec<ChannelTime>,
    /// Time spent, by die.
    pub die_time: Vec<DieTime>,
    /// Behind one pointer, so that one test tells whether anybody watches.
    watchers: Option<Box<Watchers>>,
}

/// No chip or channel yet.
const NOWHERE: u32 = u32::MAX;

impl Array {
    /// An idle array. `others` resources beside LUNs and channels have events in its queue; they come last.
    pub fn new(device: &DeviceConfig, others: u32) -> Array {
        let g = &device.geometry;
        let planes_per_lun = device.planes_per_lun();
        let planes = device.total_planes();
        let luns = planes / planes_per_lun;
        let idle = Lun {
            phase: Phase::Idle,
            next: NOWHERE,
            rank: 0,
            operation: NO_OPERATION,
            held_since: Time::ZERO,
            cells: Time::ZERO,
        };
        let channel = Channel {
            busy_until: Time::ZERO,
            data: Time::ZERO,
            release_order: 0,
            lines: [(NOWHERE, NOWHERE); RANKS],
            waiting: 0,
            last_chip: NOWHERE,
        };
        Array {
            timing: Timing::new(device),
            luns: vec![idle; luns as usize],
            channels: vec![channel; g.channels as usize],
            events: EventQueue::new(luns + g.channels + others),
            lun_of_plane: (0..planes).map(|p| LunId(p / planes_per_lun)).collect(),
            planes_per_lun,
            planes_per_die: g.planes,
            planes_per_chip: g.dies * g.planes,
            luns_per_channel: luns / g.channels,
            last_channel: NOWHERE,
            switch_free: Time::ZERO,
            channel_time: vec![ChannelTime::default(); g.channels as usize],
            die_time: vec![DieTime::default(); (planes / g.planes) as usize],
            watchers: None,
        }
    }

    /// How many LUNs there are.
    pub fn luns(&self) -> u32 {
        self.luns.len() as u32
    }

    /// The durations of the phases.
    #[inline]
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// The LUN of a plane.
    #[inline]
    pub fn lun_of(&self, plane: PlaneId) -> LunId {
        self.lun_of_plane[plane.index()]
    }

    /// The planes of a LUN.
    #[inline]
    pub fn planes_of(&self, lun: LunId) -> std::ops::Range<u32> {
        lun.0 * self.planes_per_lun..(lun.0 + 1) * self.planes_per_lun
    }

    /// The channel of a LUN.
    #[inline]
    pub fn channel_of(&self, lun: LunId) -> ChannelId {
        ChannelId(lun.0 / self.luns_per_channel)
    }

    /// The number of the queue's first resource that is no LUN and no channel.
    pub fn first_other(&self) -> u32 {
        (self.luns.len() + self.channels.len()) as u32
    }

    /// Whose event a resource number is.
    #[inline]
    pub fn owner(&self, resource: u32) -> Owner {
        let luns = self.luns.len() as u32;
        if resource < luns {
            Owner::Lun(LunId(resource))
        } else if resource < self.first_other() {
            Owner::Channel(ChannelId(resource - luns))
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

    /// What a LUN does.
    #[inline]
    pub fn phase(&self, lun: LunId) -> Phase {
        self.luns[lun.index()].phase
    }

    /// What a LUN does, or did last.
    pub fn operation(&self, lun: LunId) -> &Operation {
        &self.luns[lun.index()].operation
    }

    /// The rank with which a LUN waits for its channel.
    #[inline]
    pub fn rank(&self, lun: LunId) -> u8 {
        self.luns[lun.index()].rank
    }

    /// Whether a channel is free and nothing waits for it.
    #[inline]
    pub fn channel_is_idle(&self, channel: ChannelId, now: Time) -> bool {
        let channel = &self.channels[channel.index()];
        channel.busy_until <= now && channel.waiting == 0
    }

    /// Puts an idle LUN in line for its channel, to start a command there.
    pub fn request_start(&mut self, lun: LunId, rank: u8, now: Time) {
        self.luns[lun.index()].phase = Phase::Requesting;
        self.line_up(lun, rank, now);
    }

    /// Puts a LUN in line for its channel.
    pub fn line_up(&mut self, lun: LunId, rank: u8, now: Time) {
        if self.is_watched() {
            self.show_line_up(lun, now);
        }
        let channel = self.channel_of(lun);
        let channel = &mut self.channels[channel.index()];
        let line = &mut channel.lines[usize::from(rank)];
        let last = line.1;
        let state = &mut self.luns[lun.index()];
        (state.rank, state.next) = (rank, NOWHERE);
        line.1 = lun.0;
        if last == NOWHERE {
            line.0 = lun.0;
            channel.waiting |= 1 << rank;
        } else {
            self.luns[last as usize].next = lun.0;
        }
    }

    /// Keeps a LUN from being started: its next operation is being bound.
    #[inline]
    pub fn set_binding(&mut self, lun: LunId) {
        self.luns[lun.index()].phase = Phase::Binding;
    }

    /// A LUN takes operations again.
    #[inline]
    pub fn set_idle(&mut self, lun: LunId) {
        self.luns[lun.index()].phase = Phase::Idle;
    }

    /// The LUN that gets `channel` now, if it is free; sees to it that the channel has an event when others wait.
    #[inline]
    pub fn grant(&mut self, channel: ChannelId, now: Time) -> Option<LunId> {
        let state = &self.channels[channel.index()];
        if state.waiting == 0 {
            return None;
        }
        let resource = self.luns.len() as u32 + channel.0;
        if self.events.is_set(resource) {
            return None; // Its release is still to come, if only later at this instant.
        }
        if state.busy_until > now {
            self.events.set_stamped(resource, state.busy_until, state.release_order);
            return None;
        }
        let rank = state.waiting.trailing_zeros() as usize;
        let first = state.lines[rank].0;
        let next = self.luns[first as usize].next;
        let channel = &mut self.channels[channel.index()];
        channel.lines[rank].0 = next;
        if next == NOWHERE {
            channel.lines[rank].1 = NOWHERE;
            channel.waiting &= !(1 << rank);
        }
        if self.is_watched() {
            self.show_grant(LunId(first), now);
        }
        Some(LunId(first))
    }

    /// Takes the channel of `lun` for command cycles and data, after what turning to it costs; returns when that
    /// has ended.
    #[inline]
    fn seize(&mut self, lun: LunId, plane: PlaneId, now: Time, command: Time, data: Time) -> Time {
        let channel_id = self.channel_of(lun);
        let chip = plane.0 / self.planes_per_chip;
        let channel = &mut self.channels[channel_id.index()];
        debug_assert!(channel.busy_until <= now, "the channel carries one transfer at a time");
        let mut lead = Time::ZERO;
        if self.timing.way_switch.0 > 0 && channel.last_chip != chip {
            if channel.last_chip != NOWHERE {
                lead += self.timing.way_switch;
            }
            channel.last_chip = chip;
        }
        if self.timing.channel_switch.0 > 0 && self.last_channel != channel_id.0 {
            if self.last_channel != NOWHERE {
                if self.timing.switch_is_shared {
                    lead += self.switch_free.since(now);
                    self.switch_free = now + lead + self.timing.channel_switch;
                }
                lead += self.timing.channel_switch;
            }
            self.last_channel = channel_id.0;
        }
        let end = now + lead + command + data;
        (channel.busy_until, channel.data) = (end, data);
        let time = &mut self.channel_time[channel_id.index()];
        time.command += lead + command;
        time.data += data;
        if self.is_watched() {
            self.show_transfer(lun, now, now + lead, end - data, end);
        }
        end
    }

    /// Starts `operation` on a LUN that holds none; one that needs the channel has been granted it.
    #[inline]
    pub fn start(&mut self, lun: LunId, operation: Operation, now: Time) {
        let state = &mut self.luns[lun.index()];
        debug_assert!(matches!(state.phase, Phase::Idle | Phase::Binding), "a LUN takes one operation at a time");
        state.operation = operation;
        state.held_since = now;
        state.cells = Time::ZERO;
        if self.is_watched() {
            self.show_start(lun, operation.class, now);
        }
        self.start_page(lun, now);
    }

    /// Starts the command of the next page of the operation.
    fn start_page(&mut self, lun: LunId, now: Time) {
        let Operation { kind, plane, command, data, cell, .. } = self.luns[lun.index()].operation;
        let data_in = if kind == Kind::Program { data } else { Time::ZERO };
        let begin = if command + data_in == Time::ZERO { now } else { self.seize(lun, plane, now, command, data_in) };
        let end = begin + cell;
        let state = &mut self.luns[lun.index()];
        state.phase = Phase::Cell;
        state.cells += cell;
        self.die_time[(plane.0 / self.planes_per_die) as usize].cell += cell;
        self.events.set(lun.0, end);
        self.stamp_release(lun);
        if self.probe().is_some() {
            self.show_cells(lun, begin, end);
        }
    }

    /// Goes on with a LUN that has been granted its channel in the middle of an operation.
    #[inline]
    pub fn resume(&mut self, lun: LunId, now: Time) {
        let state = &mut self.luns[lun.index()];
        if state.phase == Phase::NextPage {
            return self.start_page(lun, now);
        }
        debug_assert_eq!(state.phase, Phase::Holding);
        state.phase = Phase::Out;
        let (plane, data) = (state.operation.plane, state.operation.data);
        let end = self.seize(lun, plane, now, Time::ZERO, data);
        self.events.set(lun.0, end);
        self.stamp_release(lun);
    }

    /// Notes the place in the order of events of the release of a LUN's channel, behind the LUN's own event. The event
    /// itself is only set when somebody waits for it.
    #[inline]
    fn stamp_release(&mut self, lun: LunId) {
        let channel = self.channel_of(lun);
        self.channels[channel.index()].release_order = self.events.stamp();
    }

    /// Takes the event of a LUN at `now`.
    #[inline]
    pub fn lun_event(&mut self, lun: LunId, now: Time) -> Outcome {
        let state = &mut self.luns[lun.index()];
        let operation = &mut state.operation;
        if state.phase == Phase::Cell && operation.kind == Kind::Read {
            state.phase = Phase::Holding;
            return Outcome::WantsChannel(operation.rank);
        }
        debug_assert!(matches!(state.phase, Phase::Cell | Phase::Out));
        if operation.pages > 1 {
            operation.pages -= 1;
            state.phase = Phase::NextPage;
            return Outcome::WantsChannel(operation.rank);
        }
        // The router winds the operation up, then sets the LUN idle.
        state.phase = Phase::Binding;
        let die = (operation.plane.0 / self.planes_per_die) as usize;
        self.die_time[die].register_held += now - state.held_since - state.cells;
        Outcome::Done
    }

    /// The time spent up to `at`, in picoseconds: by channel with data and with commands, by die in the cells and held
    /// without. Nothing may have happened that is later.
    ///
    /// [`Array::channel_time`] and [`Array::die_time`] book a phase in full when it starts, and what a die is held
    /// when that has ended: this is exact. What was under way at [`Array::reset_times`] makes it less than nothing.
    pub fn time_until(&self, at: Time, channels: &mut Vec<[i64; 2]>, dies: &mut Vec<[i64; 2]>) {
        channels.clear();
        channels.extend(self.channels.iter().zip(&self.channel_time).map(|(channel, time)| {
            let ahead = channel.busy_until.since(at);
            let data = ahead.min(channel.data);
            [signed(time.data) - signed(data), signed(time.command) - signed(ahead - data)]
        }));
        dies.clear();
        dies.extend(self.die_time.iter().map(|time| [signed(time.cell), signed(time.register_held)]));
        for (index, lun) in self.luns.iter().enumerate() {
            let ahead = match lun.phase {
                Phase::Idle | Phase::Requesting | Phase::Binding => continue,
                Phase::Cell => {
                    self.events.time_of(index as u32).map_or(Time::ZERO, |end| end.since(at).min(lun.operation.cell))
                }
                Phase::Holding | Phase::Out | Phase::NextPage => Time::ZERO,
            };
            let die = &mut dies[(lun.operation.plane.0 / self.planes_per_die) as usize];
            die[0] -= signed(ahead);
            die[1] += signed(at.since(lun.held_since)) - (signed(lun.cells) - signed(ahead));
        }
    }

    /// Forgets the time spent so far: what follows is measured.
    pub fn reset_times(&mut self) {
        self.channel_time.fill(ChannelTime::default());
        self.die_time.fill(DieTime::default());
    }
}

/// A time that is added and taken away; 106 days have room.
const fn signed(time: Time) -> i64 {
    time.0 as i64
}

/// Whose event it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A LUN's.
    Lun(LunId),
    /// A channel's.
    Channel(ChannelId),
    /// Of something outside the array, by its number there.
    Other(u32),
}

const NO_OPERATION: Operation = Operation {
    kind: Kind::Read,
    class: Class::HostRead,
    rank: 0,
    plane: PlaneId(0),
    pages: 0,
    command: Time::ZERO,
    data: Time::ZERO,
    cell: Time::ZERO,
    tag: u64::MAX,
    place: 0,
};
