//! The device, its clock, its payload and its books, behind which front ends stand.
//!
//! A front end submits what it has read, lets the engine catch up with the clock, and takes what is due. It locks the
//! engine for that, and for nothing else: sockets are read and written without the lock. Several front ends have a
//! port each; whichever of them is awake moves the device on for all.

mod steps;
mod watch;
mod watched;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use floatgate_core::config::FaultPlace;
use floatgate_core::device::{Device, Options as DeviceOptions};
use floatgate_core::durability::flash::Outbox;
use floatgate_core::metrics::attribution::Breakdown;
use floatgate_core::metrics::profile::Profile;
use floatgate_core::metrics::results::Results;
use floatgate_core::metrics::series::Sample;
use floatgate_core::run::Outcome;
use floatgate_core::sim::request::{Completion, Operation, Request, SECTOR, Status};
use floatgate_core::sim::slab::Slab;
use floatgate_core::sim::time::Time;
use floatgate_core::ssd::Ssd;
use floatgate_workload::trace::RequestDigest;

use crate::clock::Wall;
pub use crate::cost::{Cost, Pace};
use crate::image::store::Arriving;
use crate::image::{Recovered, Store};
use crate::lateness::{Asking, Due, Lateness, Turn};
use crate::payload::{Extent, Payload, PayloadError};
use crate::record::Recorder;

use steps::Steps;
pub use watch::{Look, NotTimed, Totals};
use watched::Watch;

/// Which front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port(usize);

/// Wakes a front end that waits for its sockets.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// What a front end asks for.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The front end's own mark; comes back with the answer.
    pub token: u64,
    /// What to do. [`Operation::WriteZeroes`] leaves the range unallocated.
    pub operation: Operation,
    /// First sector.
    pub lba: u64,
    /// Length in sectors; 0 only for a flush.
    pub sectors: u32,
    /// Complete only when durable.
    pub fua: bool,
    /// Of a write, its payload; without one it writes zeros.
    pub data: Option<&'a [u8]>,
    /// Bytes that the answer to a read has before its payload, for the front end to fill in.
    pub headroom: usize,
    /// The client looks for its answers: it need not be woken.
    pub is_awake: bool,
    /// What is known of the client.
    pub asking: Asking,
}

impl Order<'_> {
    /// Of a range of sectors, without more.
    pub fn of(operation: Operation, lba: u64, sectors: u32) -> Order<'static> {
        let (fua, data, headroom, is_awake, asking) = (false, None, 0, false, Asking::default());
        Order { token: 0, operation, lba, sectors, fua, data, headroom, is_awake, asking }
    }
}

/// What a front end has to answer.
#[derive(Debug)]
pub struct Answer {
    /// Of the order.
    pub token: u64,
    /// How it ended.
    pub status: Status,
    /// Why its payload could not be kept or fetched, where only that went wrong.
    pub failed: Option<PayloadError>,
    /// Of a read that ended well: the room asked for, and the payload.
    pub bytes: Vec<u8>,
    /// When.
    pub due: Due,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    port: Port,
    token: u64,
    headroom: usize,
    is_awake: bool,
    scale: f32,
    request: Request,
    number: u64,
    /// It was answered before its completion, which was certain.
    answered: Option<Time>,
}

/// In a heap: the earliest first, and those of one instant in their order.
#[derive(Debug)]
struct Waiting {
    at: Reverse<(Wall, u64)>,
    finish: Time,
    answer: Answer,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.at == other.at
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

/// A front end, as the engine knows it.
struct PortState {
    due: BinaryHeap<Waiting>,
    in_flight: u32,
    /// What receiving and sending take it.
    cost: Cost,
    lateness: Lateness,
    /// When it will look again by itself.
    looks_at: Wall,
    waker: Waker,
}

/// What is kept of a run for its result.
struct Books {
    /// Of the streams.
    names: Vec<String>,
    results: Results,
    profile: Profile,
    digest: RequestDigest,
    first: Option<Sample>,
    lateness: Lateness,
    recorder: Option<Recorder>,
    speed_changes: u64,
    payload_errors: u64,
    damaged: u64,
}

/// Where payload is.
enum Kept {
    /// Beside the device, which does not know of it.
    Apart(Box<dyn Payload>),
    /// Where the device puts it, and how to make the device again.
    InFlash(Box<Store>, DeviceOptions),
}

/// What a power cut did.
#[derive(Clone, Debug)]
pub struct PowerCut {
    /// When, in simulated time.
    pub at: Time,
    /// Requests that were in progress, and are not answered.
    pub requests_lost: usize,
    /// Units that were accepted and were not in flash.
    pub units_lost: usize,
    /// Trimmed units whose records were not in flash; `None` if trims are never recorded there.
    pub trims_lost: Option<u64>,
    /// The memory outlives power cuts (`buffer.power_loss_protection`).
    pub protected: bool,
    /// What recovery found.
    pub recovered: Recovered,
}

impl Display for PowerCut {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let PowerCut { requests_lost, units_lost, trims_lost, protected, recovered, .. } = self;
        let trims = match trims_lost {
            Some(count) => format!("{units_lost} units and {count} trims were in the device's memory"),
            None => {
                format!("{units_lost} units were in the device's memory, and all trims (`durability.trim_journal`)")
            }
        };
        let kept = if *protected { ", which kept them" } else { "" };
        write!(f, "the power was cut: {requests_lost} requests, {trims}{kept}; {recovered}")
    }
}

/// What was served.
pub struct Served {
    /// The device as it is now.
    pub device: Device,
    /// What was measured.
    pub outcome: Outcome,
    /// How late answers were.
    pub lateness: Lateness,
    /// The same of each front end, with its name.
    pub fronts: Vec<(String, Lateness)>,
    /// How often the speed was changed.
    pub speed_changes: u64,
    /// Requests that failed because their payload could not be kept or fetched.
    pub payload_errors: u64,
    /// Requests in the recording, or why it is not whole; `None` without one.
    pub recorded: Option<Result<u64, String>>,
    /// A digest of the requests: that of a recording of them.
    pub digest: u64,
    /// Bytes of payload that were held at the end; of an image what it takes on its disk.
    pub payload_bytes: u64,
    /// Of an image: whether it has all that was accepted, or why not.
    pub image: Option<Result<(), String>>,
    /// Units of an image that could not be read.
    pub unreadable: u64,
    /// Those of `payload_errors` that failed because units of the image are damaged.
    pub damaged: u64,
    /// Lasting troubles of the device and its image.
    pub warnings: Vec<String>,
    /// Power cuts.
    pub power_cuts: u64,
    /// Operations that were asked to fail.
    pub faults_asked: u64,
    /// The recovery after the last of them.
    pub recovered: Option<Recovered>,
}

/// The device and all that is around it.
pub struct Engine {
    device: Device,
    kept: Kept,
    outbox: Outbox,
    pace: Pace,
    ports: Vec<PortState>,
    in_flight: Slab<u32, InFlight>,
    steps: Steps,
    /// When the last of those requests completes that were answered ahead of their time.
    foreseen_until: Time,
    published: u64,
    /// Operations that the device works on at once.
    at_once: usize,
    books: Books,
    spare: Vec<Vec<u8>>,
    trouble: Option<String>,
    power_cuts: u64,
    faults_asked: u64,
    recovered: Option<Recovered>,
    /// What a monitor wants to know.
    watch: Option<Box<Watch>>,
}

/// Buffers that are kept to be used again.
const SPARE: usize = 64;

impl Engine {
    /// A device that begins to serve.
    pub fn new(device: Device, payload: Box<dyn Payload>, pace: Pace, recorder: Option<Recorder>) -> Engine {
        Engine::over(device, Kept::Apart(payload), pace, recorder)
    }

    /// A device that begins to serve from its image; `options` are those it was made with.
    pub fn on_image(
        device: Device,
        store: Store,
        options: DeviceOptions,
        pace: Pace,
        recorder: Option<Recorder>,
    ) -> Engine {
        Engine::over(device, Kept::InFlash(Box::new(store), options), pace, recorder)
    }

    fn over(device: Device, kept: Kept, pace: Pace, recorder: Option<Recorder>) -> Engine {
        let books = Books {
            names: Vec::new(),
            results: Results::new(Vec::new()),
            profile: Profile::default(),
            digest: RequestDigest::default(),
            first: None,
            lateness: Lateness::default(),
            recorder,
            speed_changes: 0,
            payload_errors: 0,
            damaged: 0,
        };
        Engine {
            at_once: device.array().units() as usize,
            device,
            kept,
            outbox: Outbox::default(),
            pace,
            ports: Vec::new(),
            in_flight: Slab::default(),
            steps: Steps::default(),
            foreseen_until: Time::ZERO,
            published: 0,
            books,
            spare: Vec::new(),
            trouble: None,
            power_cuts: 0,
            faults_asked: 0,
            recovered: None,
            watch: None,
        }
    }

    /// Adds a front end, whose requests are a stream of that name.
    pub fn add_port(&mut self, name: &str, waker: Waker) -> Port {
        self.books.names.push(name.to_owned());
        self.books.results.streams.append(&mut Results::new(vec![name.to_owned()]).streams);
        let (due, cost, lateness) = (BinaryHeap::new(), Cost::default(), Lateness::default());
        self.ports.push(PortState { due, in_flight: 0, cost, lateness, looks_at: Wall::NEVER, waker });
        Port(self.ports.len() - 1)
    }

    /// What receiving and sending take a front end; nothing where that was not measured.
    pub fn set_cost(&mut self, port: Port, cost: Cost) {
        self.ports[port.0].cost = cost;
    }

    /// The device, to look at.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Requests in progress, of all front ends.
    pub fn outstanding(&self) -> usize {
        self.in_flight.len()
    }

    /// Why it cannot go on, if that is so.
    pub fn trouble(&self) -> Option<String> {
        let breach = || match &self.kept {
            Kept::InFlash(store, _) => store.breach().map(|what| format!("{what}, which is a defect of the simulator")),
            Kept::Apart(_) => None,
        };
        self.trouble.clone().or_else(breach)
    }

    /// Flushes the recording if a flush is due: see [`Recorder::tick`].
    pub fn tick_recording(&mut self) {
        self.books.recorder.iter_mut().for_each(Recorder::tick);
    }

    /// What is wrong although it can go on.
    pub fn warnings(&self) -> Vec<String> {
        let image = match &self.kept {
            Kept::InFlash(store, _) => store.failure_text(),
            Kept::Apart(_) => None,
        };
        let image = image.map(|error| format!("the file of the image cannot be written, clients get errors: {error}"));
        let recording = self.books.recorder.as_ref().and_then(Recorder::trouble);
        let recording = recording.map(|error| format!("the recording has ended, the device is still served: {error}"));
        image.into_iter().chain(recording).chain(self.condition()).collect()
    }

    /// Describes the lasting troubles of the device and its image: damage, and that it is read-only.
    fn condition(&self) -> Vec<String> {
        let damage = match &self.kept {
            Kept::InFlash(store, _) => store.damage(),
            Kept::Apart(_) => Vec::new(),
        };
        let read_only = self.device.read_only_since().map(|since| {
            let at = since.as_s();
            format!("the device is read-only since {at:.3} s, because too many of its blocks are bad: writes fail")
        });
        damage.into_iter().chain(read_only).collect()
    }

    /// Requests that failed because their payload could not be kept or fetched.
    pub fn payload_errors(&self) -> u64 {
        self.books.payload_errors
    }

    /// What payload is at the start of a range of bytes, and up to where within it.
    pub fn extent(&self, range: std::ops::Range<u64>) -> (Extent, u64) {
        match &self.kept {
            Kept::Apart(payload) => payload.extent(range),
            Kept::InFlash(store, _) => store.extent(range, |lpn| self.device.place_of(lpn)),
        }
    }

    /// A request that was read at `at`. It has not been submitted where its payload cannot be kept.
    pub fn submit(&mut self, port: Port, at: Wall, order: &Order) -> Result<(), PayloadError> {
        self.books.lateness.note_turn(&order.asking);
        self.ports[port.0].lateness.note_turn(&order.asking);
        self.keep(at, order).inspect_err(|_| self.books.payload_errors += 1)?;
        let now = match self.pace {
            Pace::Timed(clock) => clock.simulated(at).max(self.device.now()),
            Pace::AtOnce => self.device.now(),
        };
        self.catch_up(now);
        self.steps.changed = now;
        if self.books.first.is_none() {
            self.device.reset_times();
            let mut first = Sample::default();
            self.device.sample(now, &mut first);
            if let Some(watch) = &mut self.watch {
                watch.begin(&first);
            }
            self.books.first = Some(first);
        }
        let mut request = Request::new(now, order.operation, order.lba, order.sectors);
        (request.fua, request.stream) = (order.fua, port.0 as u16);
        let Order { token, headroom, is_awake, asking: Asking { scale, .. }, .. } = *order;
        let in_flight = InFlight { port, token, headroom, is_awake, scale, request, number: 0, answered: None };
        self.count_outstanding(now);
        let id = self.in_flight.insert(in_flight);
        request.tag = u64::from(id);
        if let Some(recorder) = &mut self.books.recorder {
            self.in_flight[id].number = recorder.arrived(&request);
        }
        self.books.profile.issued(&request);
        self.books.digest.add(&request);
        self.ports[port.0].in_flight += 1;
        self.device.submit(now, request);
        let arriving = Arriving { tag: request.tag, data: order.data, sectors: order.sectors };
        let accepted = self.apply_flash(Some(&arriving));
        if let Kept::InFlash(store, _) = &mut self.kept
            && order.operation == Operation::Write
        {
            store.keep(&arriving, accepted);
        }
        self.collect();
        Ok(())
    }

    /// Does to the image what the device has told. Returns how many sectors of the arriving request were accepted.
    fn apply_flash(&mut self, arriving: Option<&Arriving>) -> u32 {
        let Kept::InFlash(store, _) = &mut self.kept else { return 0 };
        self.device.take_flash(&mut self.outbox);
        let accepted = store.apply(&self.outbox, arriving);
        self.outbox.clear();
        accepted
    }

    /// Puts the payload of a request where it is kept, or sees that it can be kept in flash.
    fn keep(&mut self, at: Wall, order: &Order) -> Result<(), PayloadError> {
        let read_only = self.device.read_only_since().is_some();
        let payload = match &mut self.kept {
            // What the device will not take is not to be read.
            _ if read_only => return Ok(()),
            Kept::Apart(payload) => payload,
            Kept::InFlash(..) if order.operation == Operation::Read => return Ok(()),
            Kept::InFlash(store, _) => return store.check(at),
        };
        let offset = order.lba * SECTOR;
        let range = offset..offset + u64::from(order.sectors) * SECTOR;
        match (order.operation, order.data) {
            (Operation::Write, Some(data)) => payload.write(offset, data),
            (Operation::Write, None) => payload.zero(range),
            (Operation::Trim, _) => {
                // The FTL keeps the mapping of a unit that is covered in part, so its data stay, too.
                let unit = self.device.config().unit_bytes();
                let whole = range.start.next_multiple_of(unit)..range.end / unit * unit;
                if !whole.is_empty() {
                    payload.discard(whole);
                }
                Ok(())
            }
            (Operation::WriteZeroes, _) => {
                payload.discard(range);
                Ok(())
            }
            (Operation::Read | Operation::Flush, _) => Ok(()),
        }
    }

    /// Lets everything happen up to now: by the clock, or as far as it takes for something to be due.
    pub fn advance(&mut self, now: Wall) {
        match self.pace {
            Pace::Timed(clock) => {
                self.catch_up(clock.simulated(now).max(self.device.now()));
                self.foresee();
            }
            Pace::AtOnce => {
                while !self.in_flight.is_empty() && self.ports.iter().all(|port| port.due.is_empty()) {
                    if self.device.next_event().is_none() {
                        return self.stalled();
                    }
                    self.device.advance_to_completion(Time::NEVER);
                    self.collect();
                }
            }
        }
        if self.device.now() > Time::LAST {
            self.trouble = Some("simulated time has come to its end, 213 days".to_owned());
        }
    }

    /// Moves the device on, from one instant with completions to the next, so that it is known when each was decided.
    fn catch_up(&mut self, until: Time) {
        while self.steps.next(&mut self.device, until) {
            self.collect();
        }
        self.device.advance(until);
        self.apply_flash(None);
    }

    /// Takes what the device has decided at its present instant.
    fn collect(&mut self) {
        if !self.device.has_completions() {
            return;
        }
        // What the host will be told is in flash first.
        self.apply_flash(None);
        let batch = self.steps.take(&mut self.device);
        for (completion, breakdown) in batch.iter() {
            self.publish(completion, breakdown);
        }
        self.steps.reuse(batch);
    }

    /// Puts answers on their way whose completion lies ahead and is certain.
    fn foresee(&mut self) {
        let costs_nothing = |port: &PortState| port.cost == Cost::default();
        if self.is_saturated() || self.in_flight.is_empty() || self.ports.iter().all(costs_nothing) {
            return;
        }
        let committed = self.steps.committed(&self.device);
        for &(tag, finish) in &committed {
            let in_flight = self.in_flight[tag as u32];
            // What is durable in a moment is not yet: a cut may come before.
            let is_certain = in_flight.request.operation == Operation::Read || matches!(self.kept, Kept::Apart(_));
            if in_flight.answered.is_none() && is_certain {
                self.in_flight[tag as u32].answered = Some(finish);
                self.foreseen_until = self.foreseen_until.max(finish);
                let completion = Completion { request: in_flight.request, status: Status::Ok, start: finish, finish };
                self.answer(&in_flight, &completion);
            }
        }
        self.steps.reuse_committed(committed);
    }

    /// How long the file of the image, if there is one, has kept this thread since this was asked last.
    pub fn take_disk_time(&mut self) -> Wall {
        match &mut self.kept {
            Kept::InFlash(store, _) => store.take_disk_time(),
            Kept::Apart(_) => Wall(0),
        }
    }

    /// Whether there are more requests than the device works on at once: they wait for each other, and what the front
    /// end takes is hidden by that.
    fn is_saturated(&self) -> bool {
        self.in_flight.len() > self.at_once
    }

    /// Books a completion, and answers it unless that has been done.
    fn publish(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) {
        let in_flight = self.in_flight[completion.request.tag as u32];
        self.books.results.record(completion, breakdown);
        if let Some(watch) = &mut self.watch {
            watch.completed(completion, breakdown);
        }
        if let Some(breakdown) = breakdown {
            self.books.profile.completed(completion.request.operation, breakdown);
        }
        if let Some(recorder) = &mut self.books.recorder {
            recorder.completed(in_flight.number, completion);
        }
        match in_flight.answered {
            None => self.answer(&in_flight, completion),
            Some(foreseen) => debug_assert_eq!(foreseen, completion.finish, "what was certain has come"),
        }
        self.count_outstanding(self.device.now());
        if let Kept::InFlash(store, _) = &mut self.kept {
            store.settle(completion.request.tag);
        }
        self.in_flight.remove(completion.request.tag as u32);
        self.ports[in_flight.port.0].in_flight -= 1;
    }

    /// Puts an answer on its way.
    fn answer(&mut self, in_flight: &InFlight, completion: &Completion) {
        let InFlight { port, token, headroom, .. } = *in_flight;
        let fetched = self.fetch(completion, headroom);
        let (failed, bytes) = fetched.map_or_else(|error| (Some(error), Vec::new()), |bytes| (None, bytes));
        self.books.payload_errors += u64::from(failed.is_some());
        self.books.damaged += u64::from(failed == Some(PayloadError::Damaged));
        let status = if failed.is_some() { Status::Uncorrectable } else { completion.status };
        let due = self.due(in_flight, completion);
        let answer = Answer { token, status, failed, bytes, due };
        let state = &mut self.ports[port.0];
        state.due.push(Waiting { at: Reverse((due.target, self.published)), finish: completion.finish, answer });
        self.published += 1;
        if due.target < state.looks_at {
            state.looks_at = due.target;
            (state.waker)();
        }
    }

    /// The payload of a read that went well; of others nothing, where the image has what they brought.
    fn fetch(&mut self, completion: &Completion, headroom: usize) -> Result<Vec<u8>, PayloadError> {
        let request = &completion.request;
        if completion.status != Status::Ok {
            return Ok(Vec::new());
        }
        if request.operation != Operation::Read {
            return self.reached_image(request).map(|()| Vec::new());
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.resize(headroom + request.bytes() as usize, 0);
        let (offset, into) = (request.lba * SECTOR, &mut bytes[headroom..]);
        match &mut self.kept {
            Kept::Apart(payload) => payload.read(offset, into),
            Kept::InFlash(store, _) => store.read(offset, into, |lpn| self.device.place_of(lpn)),
        }?;
        Ok(bytes)
    }

    /// Whether what a request changed is in the file of the image, if there is one; on its disk, where that was asked.
    fn reached_image(&mut self, request: &Request) -> Result<(), PayloadError> {
        let Kept::InFlash(store, _) = &mut self.kept else { return Ok(()) };
        if request.operation == Operation::Flush || request.fua {
            store.flushed();
        }
        store.failure().map_or(Ok(()), Err)
    }

    /// When a completion is to be answered.
    fn due(&self, in_flight: &InFlight, completion: &Completion) -> Due {
        let Pace::Timed(clock) = self.pace else {
            return Due::default();
        };
        let request = &completion.request;
        let latency = clock.between(request.arrival, completion.finish);
        let InFlight { port, is_awake, scale, .. } = *in_flight;
        let cost = self.ports[port.0].cost.of(request.operation, request.bytes(), latency, is_awake);
        let scale = if self.ports[port.0].cost.is_provisional { 1.0 } else { scale };
        let own = Wall((cost.0 as f32 * scale) as u64);
        // What has to be in the image before it is answered cannot be answered ahead of its time.
        let is_held = matches!(self.kept, Kept::InFlash(..)) && request.operation != Operation::Read;
        let is_held = is_held && completion.finish <= self.device.now();
        let deducted = if self.is_saturated() || is_held { Wall(0) } else { own };
        let target = clock.wall(completion.finish).earlier(deducted);
        let possible = clock.wall(self.steps.changed);
        let has_payload = matches!(request.operation, Operation::Read | Operation::Write);
        Due { target, possible, latency, cost, deducted, too_short: latency < own && !has_payload }
    }

    fn stalled(&mut self) {
        let stall = self.device.explain_stall();
        self.trouble = Some(format!("requests do not complete, which is a defect of the simulator: {stall}"));
    }

    /// A front end looks, and needs not be woken for what it will find.
    pub fn awake(&mut self, port: Port) {
        self.ports[port.0].looks_at = Wall(0);
    }

    /// Takes the answers that are due.
    pub fn take_due(&mut self, port: Port, now: Wall, into: &mut Vec<Answer>) {
        let due = &mut self.ports[port.0].due;
        while due.peek().is_some_and(|waiting| waiting.at.0.0 <= now) {
            into.extend(due.pop().map(|waiting| waiting.answer));
        }
    }

    /// When a front end has to look again, if by then none of its sockets has called; [`Wall::NEVER`] for not at all.
    pub fn next_look(&mut self, port: Port) -> Wall {
        let state = &self.ports[port.0];
        let due = state.due.peek().map_or(Wall::NEVER, |waiting| waiting.at.0.0);
        let event = match (self.pace, state.in_flight) {
            (_, 0) => Wall::NEVER,
            (Pace::AtOnce, _) => Wall(0),
            (Pace::Timed(clock), _) => match self.device.next_event() {
                Some(at) => clock.wall(at),
                None => {
                    self.stalled();
                    Wall(0)
                }
            },
        };
        let next = due.min(event);
        self.ports[port.0].looks_at = next;
        next
    }

    /// A front end has sent answers.
    pub fn sent(&mut self, port: Port, answers: &mut Vec<Answer>, turn: &Turn) {
        for answer in answers.drain(..) {
            if let Pace::Timed(_) = self.pace {
                self.books.lateness.record(&answer.due, turn);
                self.ports[port.0].lateness.record(&answer.due, turn);
                if let Some(watch) = self.watch.as_mut().filter(|_| !answer.due.too_short) {
                    watch.late_by(answer.due.late_by(turn.sent));
                }
            }
            if answer.bytes.capacity() > 0 && self.spare.len() < SPARE {
                self.spare.push(answer.bytes);
            }
        }
    }

    /// Whether the device takes no writes any more.
    pub fn is_read_only(&self) -> bool {
        self.device.read_only_since().is_some()
    }

    /// Has the next operation of a kind at a place fail: see [`Device::fail_next`].
    pub fn fail_next(&mut self, place: FaultPlace) -> Result<(), String> {
        self.device.fail_next(place)?;
        self.faults_asked += 1;
        Ok(())
    }

    /// Cuts the power of a device that is served from its image, and lets it come again. All that is in memory goes:
    /// requests in progress, what was accepted and is not in flash, the map. The device is what recovery makes of the
    /// image, ready as soon as the simulated time of that has passed. Front ends part with their clients: they see that
    /// [`Engine::power_cuts`] has changed, and forget the orders that were in progress, which are not answered. What
    /// was measured begins anew, but for lateness.
    pub fn power_cut(&mut self, now: Wall) -> Result<PowerCut, String> {
        if let Pace::Timed(clock) = self.pace {
            // What was answered ahead of its time happened: the cut comes those microseconds later.
            self.catch_up(clock.simulated(now).max(self.device.now()).max(self.answered_until()));
        }
        let Kept::InFlash(store, options) = &mut self.kept else {
            return Err("the device has no flash image: serve it with --image FILE, or --image memory".to_owned());
        };
        self.power_cuts += 1;
        let (at, requests_lost, units_lost) = (self.device.now(), self.in_flight.len(), store.units_waiting());
        let (trims_lost, protected) = (self.device.trims_in_memory(), store.protects());
        let config = self.device.config().clone();
        let (mut device, recovered) = store.power_cycle(config, *options, self.power_cuts).map_err(|error| {
            let what = format!("no device can be made of the image after a power cut: {error}");
            self.trouble.get_or_insert(what).clone()
        })?;
        device.advance(at.later(Time(recovered.device.time_ps)));
        self.device = device;
        self.recovered = Some(recovered.clone());
        self.begin_anew();
        Ok(PowerCut { at, requests_lost, units_lost, trims_lost, protected, recovered })
    }

    /// Forgets requests and what was measured.
    fn begin_anew(&mut self) {
        self.in_flight = Slab::default();
        self.outbox.clear();
        if let Some(recorder) = &mut self.books.recorder {
            recorder.cut();
        }
        self.books.results = Results::new(self.books.names.clone());
        (self.books.profile, self.books.digest, self.books.first) = Default::default();
        self.steps.changed = self.device.now();
        self.watch_anew();
        for port in &mut self.ports {
            port.due.clear();
            (port.in_flight, port.looks_at) = (0, Wall(0));
            (port.waker)();
        }
    }

    /// Bytes of payload that are held; of an image what it takes on its disk.
    pub fn payload_bytes(&self) -> u64 {
        match &self.kept {
            Kept::Apart(payload) => payload.bytes_held(),
            Kept::InFlash(store, _) => store.bytes_held(),
        }
    }

    /// How often the power was cut.
    pub fn power_cuts(&self) -> u64 {
        self.power_cuts
    }

    /// Ends as a host does that shuts down: with a flush, the last request of the run. Only for an image, which has all
    /// that was accepted then.
    pub fn shut_down(&mut self) {
        if matches!(self.kept, Kept::Apart(_)) || self.ports.is_empty() {
            return;
        }
        let order = Order::of(Operation::Flush, 0, 0);
        // Where the image cannot be written, it is told when it is closed.
        if self.submit(Port(0), Wall::now(), &order).is_ok() {
            self.hurry();
        }
        self.ports[0].due.clear();
    }

    /// Moves the device on, and takes the answers of a front end that are due; all there are where it `hurries`, for
    /// which the device does at once what it has taken, however long that would take by the clock.
    pub fn take(&mut self, port: Port, now: Wall, hurries: bool, into: &mut Vec<Answer>) {
        if hurries {
            self.hurry();
            return self.take_due(port, Wall::NEVER, into);
        }
        self.advance(now);
        self.take_due(port, now, into);
    }

    fn hurry(&mut self) {
        while !self.in_flight.is_empty() && self.device.next_event().is_some() {
            self.device.advance_to_completion(Time::NEVER);
            self.collect();
        }
    }

    /// How late answers have been so far.
    pub fn lateness(&self) -> &Lateness {
        &self.books.lateness
    }

    /// The name of the pace, and its speed.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Until when requests have been answered that are still in progress.
    fn answered_until(&self) -> Time {
        if self.in_flight.is_empty() { Time::ZERO } else { self.foreseen_until }
    }

    /// Ends the run; all must be answered, some perhaps ahead of their time, which comes now.
    pub fn finish(mut self, complete: bool) -> Served {
        let answered = self.books.results.streams.iter().map(|stream| stream.last).max().unwrap_or(Time::ZERO);
        let end = answered.max(self.device.now()).max(self.answered_until());
        self.device.advance(end);
        self.collect();
        let warnings = self.condition();
        let mut last = Sample::default();
        self.device.sample(end, &mut last);
        let first = self.books.first.unwrap_or_else(|| last.clone());
        let profile = Some(self.books.profile);
        let outcome = Outcome::between(&first, last, self.books.results, profile, complete);
        let (payload_bytes, unreadable, image) = match self.kept {
            Kept::Apart(payload) => (payload.bytes_held(), 0, None),
            Kept::InFlash(store, _) => (store.bytes_held(), store.unreadable(), Some(store.close())),
        };
        let recorded = self.books.recorder.map(Recorder::finish);
        let (names, lateness, digest) = (self.books.names, self.books.lateness, self.books.digest.value());
        let fronts = self.ports.into_iter().map(|port| port.lateness);
        Served {
            device: self.device,
            outcome,
            lateness,
            speed_changes: self.books.speed_changes,
            payload_errors: self.books.payload_errors,
            fronts: names.into_iter().zip(fronts).collect(),
            recorded,
            digest,
            payload_bytes,
            image,
            unreadable,
            damaged: self.books.damaged,
            warnings,
            power_cuts: self.power_cuts,
            faults_asked: self.faults_asked,
            recovered: self.recovered,
        }
    }
}
