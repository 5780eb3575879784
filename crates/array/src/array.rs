//! The array: its members, its queue, and its construction.

use std::any::Any;
use std::collections::VecDeque;

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::policies::Externals;
use floatgate_core::results::{Breakdown, Results};
use floatgate_core::sim::id::RequestId;
use floatgate_core::sim::request::{Completion, Operation, Request, SECTOR, Status};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::slab::Slab;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{self, Device, Ssd};

use crate::config::ArrayConfig;
use crate::contents::{Contents, MemberPayload};
use crate::counts::Counts;
use crate::entries::Journal;
use crate::layout::Layout;
use crate::locks::Locks;
use crate::operation::StripeOp;
use crate::progress::{Rebuilding, Turns};
use crate::timers::Timers;
use crate::tournament::Tournament;

/// Options for building an array.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Seed of all random numbers. Each member has a seed of its own, which follows from it.
    pub seed: u64,
    /// True to compute the contents of all sectors, including parity, and to return them with reads.
    pub verify: bool,
    /// True to measure a latency breakdown for each request to a member.
    pub attribution: bool,
    /// Policies of the program, which the device files of members may name.
    pub externals: Externals,
    /// Test hook: a deliberate bug.
    #[doc(hidden)]
    pub mutant: Mutant,
}

impl Options {
    /// Returns the options of a member with this seed.
    pub fn of_member(&self, seed: u64) -> simulation::Options {
        let Options { verify, attribution, ref externals, .. } = *self;
        simulation::Options {
            seed,
            verify,
            attribution,
            externals: externals.clone(),
            ..simulation::Options::default()
        }
    }
}

/// Deliberate bugs, which show that the tests catch them. No option enables them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(hidden)]
pub enum Mutant {
    /// Correct behavior.
    #[default]
    None,
    /// Parity is not updated by read-modify-write.
    ForgetParity,
    /// Operations on one stripe do not wait for each other.
    IgnoreLocks,
    /// The rebuild writes the chunk of the next stripe.
    RebuildNext,
    /// The recovery restores nothing from the journal.
    IgnoreJournal,
    /// Journal entries are overwritten before the writes of their stripes have been flushed.
    ReuseEntries,
}

/// Purpose of a request to a member, which is its stream in the member's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Host,
    Parity,
    Journal,
    Rebuild,
}

/// Names of the streams in the results of members, by [`Purpose`].
const STREAMS: [&str; 4] = ["host", "parity", "journal", "rebuild"];

/// Member of an array.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub device: Device,
    /// Number of stripes whose chunks the member holds: all, or those below the progress of its rebuild.
    pub valid_rows: u64,
    /// Requests since the start of the measured part.
    pub results: Results,
    /// Number of requests that have not completed.
    pub outstanding: u32,
    /// Position of the next entry in the member's journal area, in sectors.
    pub journal_at: u64,
}

/// Request of the host that has not completed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub request: Request,
    /// Number of parts that have not completed. While the request is being split, one more.
    pub left: u32,
    /// Time of the first service by a member, or [`Time::NEVER`].
    pub start: Time,
    pub status: Status,
}

/// Array of SSDs. A clone has the same future as the original.
#[derive(Clone, Debug)]
pub struct SsdArray {
    pub(crate) config: ArrayConfig,
    pub(crate) options: Options,
    pub(crate) layout: Layout,
    pub(crate) members: Vec<Member>,
    /// Times of the members' next events.
    pub(crate) due: Tournament,
    pub(crate) timers: Timers,
    pub(crate) now: Time,
    pub(crate) requests: Slab<RequestId, Pending>,
    /// Maximum number of requests of the host that have a slot in the queue. 0 while the journal is read.
    pub(crate) depth: usize,
    pub(crate) waiting: VecDeque<Request>,
    pub(crate) completions: Vec<Completion>,
    pub(crate) operations: Slab<u32, StripeOp>,
    pub(crate) locks: Locks,
    pub(crate) journal: Journal,
    /// Time at which the parity engine is free.
    pub(crate) xor_free: Time,
    pub(crate) rebuilding: Option<Rebuilding>,
    /// Stripes that remain to be compared after a power cut. The last one is the next.
    pub(crate) resyncing: Option<Vec<u64>>,
    pub(crate) turns: Option<Turns>,
    /// Number of requests that arrived, and of events without turns.
    pub(crate) events: u64,
    /// True if a member is not valid for all stripes.
    pub(crate) is_degraded: bool,
    pub(crate) counts: Counts,
    /// Counters when the last request of the host completed. Valid while none is outstanding.
    pub(crate) counted: Counts,
    pub(crate) measure_from: Time,
    pub(crate) contents: Option<Box<Contents>>,
    /// Sectors of the smallest range that is whole mapping units of all members.
    pub(crate) unit_sectors: u64,
    /// True if the mapping units of the members differ.
    pub(crate) has_mixed_units: bool,
    /// Serial number of the last request to a member, in verification mode.
    pub(crate) serial: u32,
    /// Members with completions to take, a bit each.
    pub(crate) ready: u64,
    /// Scratch buffers.
    pub(crate) freed: Vec<u32>,
    taken: Vec<Completion>,
    breakdowns: Vec<Breakdown>,
}

impl SsdArray {
    /// Creates an array of empty members. Failed members are replaced by empty spares if they are rebuilt.
    pub fn new(config: ArrayConfig, options: Options) -> Result<SsdArray, String> {
        let members = SsdArray::seeded(&config, &options).into_iter().zip(0..).map(|((device, options), number)| {
            Device::new(device, options).map_err(|error| format!("member {number}: {error}"))
        });
        let members = members.collect::<Result<Vec<_>, String>>()?;
        Ok(SsdArray::of(config, options, members))
    }

    /// Returns the configuration and the options of each member.
    pub(crate) fn seeded(config: &ArrayConfig, options: &Options) -> Vec<(DeviceConfig, simulation::Options)> {
        let mut seeds = Rng::new(options.seed, "array");
        config.members.iter().map(|device| (device.clone(), options.of_member(seeds.next_u64()))).collect()
    }

    /// Creates an array of these members.
    pub(crate) fn of(config: ArrayConfig, options: Options, members: Vec<Device>) -> SsdArray {
        let layout = config.layout();
        let first = config.members[0].unit_bytes();
        let has_mixed_units = config.members.iter().any(|member| member.unit_bytes() != first);
        let now = members.iter().map(Device::now).max().unwrap_or(Time::ZERO);
        let member = |(device, number): (Device, u32)| {
            let valid_rows = if config.options.failed.contains(&number) { 0 } else { layout.rows() };
            Member { device, valid_rows, results: no_results(), outstanding: 0, journal_at: 0 }
        };
        let members: Vec<Member> = members.into_iter().zip(0..).map(member).collect();
        let mut array = SsdArray {
            due: Tournament::new(layout.members()),
            timers: Timers::default(),
            now,
            requests: Slab::default(),
            depth: config.queue_depth() as usize,
            waiting: VecDeque::new(),
            completions: Vec::new(),
            operations: Slab::default(),
            locks: Locks::default(),
            journal: Journal::default(),
            xor_free: Time::ZERO,
            rebuilding: Rebuilding::new(&config, now),
            resyncing: None,
            turns: Turns::new(&config),
            events: 0,
            is_degraded: !config.options.failed.is_empty(),
            counts: Counts::default(),
            counted: Counts::default(),
            measure_from: now,
            contents: options.verify.then(|| Box::new(Contents::tags())),
            unit_sectors: config.unit_bytes() / SECTOR,
            has_mixed_units,
            serial: 0,
            ready: 0,
            freed: Vec::new(),
            taken: Vec::new(),
            breakdowns: Vec::new(),
            layout,
            members,
            config,
            options,
        };
        (0..array.layout.members()).for_each(|number| array.look_at(number));
        array.start_rebuild();
        array
    }

    /// Returns the configuration.
    pub fn config(&self) -> &ArrayConfig {
        &self.config
    }

    /// Returns the device of a member.
    pub fn member(&self, number: usize) -> &Device {
        &self.members[number].device
    }

    /// Returns the device of a member, to bring it into a state before the run.
    pub fn member_mut(&mut self, number: usize) -> &mut Device {
        &mut self.members[number].device
    }

    /// Returns `true` if a member has failed and its data were not rebuilt.
    pub fn has_failed(&self, number: usize) -> bool {
        self.members[number].valid_rows < self.layout.rows()
    }

    /// Returns the results of a member's requests since the start of the measured part.
    pub fn member_results(&self, number: usize) -> &Results {
        &self.members[number].results
    }

    /// Makes a member fail. The array must be idle, and the data must survive.
    ///
    /// # Errors
    ///
    /// Fails if the array would lose data.
    pub fn fail(&mut self, number: u32) -> Result<(), String> {
        debug_assert!(self.requests.is_empty(), "a member fails while requests are outstanding");
        let alive = |member: u32| member != number && !self.has_failed(member as usize);
        if !self.layout.survives(alive) {
            return Err(format!("member {number} cannot fail: the array would lose data"));
        }
        self.members[number as usize].valid_rows = 0;
        self.is_degraded = true;
        Ok(())
    }

    /// Returns the tags of the sectors that completed reads returned, with the tags of the reads. Empty without
    /// [`Options::verify`].
    pub fn take_contents(&mut self) -> Vec<(u64, Vec<u32>)> {
        let tags = |bytes: Vec<u8>| bytes.as_chunks().0.iter().map(|tag| u32::from_le_bytes(*tag)).collect();
        self.take_replies().into_iter().map(|(tag, bytes)| (tag, tags(bytes))).collect()
    }

    /// Returns the contents of completed reads, with the tags of the reads. Empty if contents are not computed.
    pub fn take_replies(&mut self) -> Vec<(u64, Vec<u8>)> {
        self.contents.as_mut().map_or_else(Vec::new, |contents| contents.take_done())
    }

    /// Attaches the payload of the members, which have to be durable. Reads then return bytes.
    pub fn attach(&mut self, payload: Box<dyn MemberPayload>) {
        self.contents = Some(Box::new(Contents::payload(payload)));
    }

    /// Returns the payload, if it has this type.
    pub fn payload<P: MemberPayload>(&self) -> Option<&P> {
        let payload: &dyn Any = self.contents.as_ref()?.attached_ref()?;
        payload.downcast_ref()
    }

    /// Returns the payload, if it has this type.
    pub fn payload_mut<P: MemberPayload>(&mut self) -> Option<&mut P> {
        let payload: &mut dyn Any = self.contents.as_mut()?.attached()?;
        payload.downcast_mut()
    }

    /// Removes and returns the payload, if it has this type.
    pub fn detach<P: MemberPayload>(&mut self) -> Option<Box<P>> {
        let payload: Box<dyn Any> = self.contents.take()?.take_attached()?;
        payload.downcast().ok()
    }

    /// Stores the data of a write that will be submitted with this tag.
    pub fn stage_payload(&mut self, tag: u64, data: &[u8]) {
        if let Some(contents) = &mut self.contents {
            contents.stage_payload(tag, data.to_vec());
        }
    }

    /// Applies all flash events of the members to the payload.
    pub fn apply_flash(&mut self) {
        let Some(contents) = &mut self.contents else { return };
        for (member, number) in self.members.iter_mut().zip(0..) {
            contents.apply(number, &mut member.device);
        }
    }

    /// Returns `true` if no request is outstanding and no event is pending.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.waiting.is_empty() && self.next_at() == Time::NEVER
    }

    /// Test hook: checks the invariants of the array and of its members.
    pub fn check_invariants(&self) -> Result<(), String> {
        if self.is_idle() && !self.operations.is_empty() {
            return Err("stripe operations are left although the array is idle".to_owned());
        }
        self.members.iter().try_for_each(|member| member.device.check_invariants())
    }

    /// Returns `true` if the queue has room.
    #[inline]
    pub(crate) fn has_queue_room(&self) -> bool {
        self.requests.len() < self.depth
    }

    /// Returns `true` if a member holds its chunk of a stripe.
    #[inline]
    pub(crate) fn is_alive(&self, member: u32, row: u64) -> bool {
        row < self.members[member as usize].valid_rows
    }

    /// Starts the measured part: counters and results start at 0.
    pub(crate) fn start_measuring(&mut self) {
        (self.counts, self.counted, self.measure_from) = (Counts::default(), Counts::default(), self.now);
        for member in &mut self.members {
            member.results = no_results();
            member.device.array_mut().reset_times();
        }
    }

    /// Sends a request to a member. Inlined, so that the parts of the request stay in registers: a request that is
    /// written field by field and then copied as a whole costs more than the rest of this function.
    #[inline(always)]
    pub(crate) fn issue(&mut self, number: u32, part: MemberRequest) {
        let MemberRequest { owner, operation, lba, sectors, purpose, placement, fua, high_priority } = part;
        self.count(purpose, operation, sectors);
        let tag = owner | u64::from(self.serial);
        let member = &mut self.members[number as usize];
        member.outstanding += 1;
        let arrival = self.now;
        let stream = purpose as u16;
        let namespace = 1;
        member.device.submit(
            self.now,
            Request { tag, arrival, operation, lba, sectors, stream, namespace, placement, fua, high_priority },
        );
        if let Some(contents) = &mut self.contents {
            contents.apply(number, &mut member.device);
            if operation == Operation::Read {
                contents.note_read(self.serial, lba);
            }
        }
        self.look_at(number);
    }

    /// Updates the time of a member's next event, and notes its completions.
    #[inline]
    pub(crate) fn look_at(&mut self, number: u32) {
        let device = &self.members[number as usize].device;
        self.due.set(number, device.next_event().unwrap_or(Time::NEVER));
        self.ready |= u64::from(device.has_completions()) << number;
    }

    fn count(&mut self, purpose: Purpose, operation: Operation, sectors: u32) {
        let operations = &mut self.counts.operations;
        let is_write = operation == Operation::Write;
        *match (purpose, is_write) {
            (Purpose::Host, _) => &mut operations.host,
            (Purpose::Parity, false) => &mut operations.parity_reads,
            (Purpose::Parity, true) => &mut operations.parity_writes,
            (Purpose::Journal, _) => &mut operations.journal,
            (Purpose::Rebuild, _) => &mut operations.rebuild,
        } += 1;
        if is_write && purpose != Purpose::Rebuild {
            self.counts.member_bytes += u64::from(sectors) * 512;
        }
    }

    /// Handles all completions of members that can be taken now.
    #[inline]
    pub(crate) fn settle(&mut self) {
        while self.ready != 0 {
            let number = self.ready.trailing_zeros();
            self.ready &= self.ready - 1;
            self.collect(number);
        }
    }

    /// Handles the completions of a member. Those that reach the controller later wait for a timer.
    fn collect(&mut self, number: u32) {
        let mut taken = std::mem::take(&mut self.taken);
        let member = &mut self.members[number as usize];
        member.device.take_completions(&mut taken);
        member.outstanding -= taken.len() as u32;
        if self.options.attribution {
            member.device.take_breakdowns(&mut self.breakdowns);
        }
        let counts_rebuild = !self.requests.is_empty();
        for (index, completion) in taken.iter().enumerate() {
            let is_rebuild = completion.request.stream == Purpose::Rebuild as u16;
            if completion.request.arrival >= self.measure_from && (counts_rebuild || !is_rebuild) {
                member.results.record(completion, self.breakdowns.get(index));
            }
        }
        self.breakdowns.clear();
        if self.contents.is_some() {
            self.note_contents(number, &mut taken);
        }
        for completion in &taken {
            if completion.finish > self.now {
                self.timers.part(completion.finish, number, *completion);
            } else {
                self.part_done(number, completion);
            }
        }
        taken.clear();
        self.taken = taken;
    }

    /// Ends a part of a request of the host.
    #[inline]
    pub(crate) fn request_part_done(&mut self, id: RequestId, start: Time, status: Status) {
        let pending = &mut self.requests[id];
        pending.start = pending.start.min(start);
        if status != Status::Ok {
            pending.status = status;
        }
        pending.left -= 1;
        if pending.left == 0 {
            self.complete(id);
        }
    }

    fn complete(&mut self, id: RequestId) {
        let Pending { request, start, status, .. } = self.requests.remove(id);
        if let Some(contents) = &mut self.contents {
            contents.complete(id.0, request.tag);
        }
        self.completions.push(Completion { request, status, start: start.min(self.now), finish: self.now });
        if !self.waiting.is_empty() {
            self.admit();
        } else if self.requests.is_empty() {
            self.counted = self.counts;
        }
    }

    /// Accepts the first request that waits for room in the queue.
    #[inline(never)]
    pub(crate) fn admit(&mut self) {
        if let Some(next) = self.waiting.pop_front() {
            self.enter(next);
        }
    }
}

/// Request to a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberRequest {
    /// Tag, whose low 32 bits are 0: see [`crate::events::Owner`].
    pub owner: u64,
    pub operation: Operation,
    pub lba: u64,
    pub sectors: u32,
    pub purpose: Purpose,
    pub placement: u16,
    pub fua: bool,
    pub high_priority: bool,
}

fn no_results() -> Results {
    Results::new(STREAMS.map(str::to_owned).to_vec())
}
