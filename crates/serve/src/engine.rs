//! The engine: holds the device, its clock, its payload and the measurements, and is shared by all frontends.
//!
//! A frontend submits the requests that it has read, advances the engine to the current time, and takes the replies
//! that are due. It holds the engine's lock only for that: sockets are read and written without the lock. Each frontend
//! has its own port. Any frontend that is awake advances the device for all of them.

mod monitor_data;
mod steps;
mod totals;
mod watch;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use floatgate_array::SsdArray;
use floatgate_core::device_file::InjectedFault;
use floatgate_core::flash::Outbox;
use floatgate_core::results::{Breakdown, Profile, Results, Sample};
use floatgate_core::sim::request::{Completion, Operation, Request, SECTOR, Status};
use floatgate_core::sim::slab::Slab;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options as DeviceOptions, Outcome, Ssd};
use floatgate_workload::trace::RequestDigest;

use crate::clock::Wall;
pub use crate::cost::{Cost, Pace};
use crate::image::members::{Members, failure};
use crate::image::store::Arriving;
use crate::image::{Recovered, Store};
use crate::lateness::{Due, Lateness, Requesting, Turn};
use crate::payload::{Extent, Payload, PayloadError};
use crate::record::Recorder;
use crate::timeline::Timeline;
use floatgate_array::AnySsd;

use monitor_data::Watch;
use steps::Steps;
pub use totals::Totals;
pub use watch::{MemberSnapshot, NotTimed, Snapshot};

/// Identifies a frontend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port(usize);

/// Wakes a frontend that is waiting on its sockets.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// A request from a frontend.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The frontend's own identifier, returned with the reply.
    pub token: u64,
    /// Operation. [`Operation::WriteZeroes`] leaves the range unallocated.
    pub operation: Operation,
    /// First sector.
    pub lba: u64,
    /// Length in sectors; 0 only for a flush.
    pub sectors: u32,
    /// True if the request may complete only when it is durable.
    pub fua: bool,
    /// Payload of a write. A write without payload writes zeros.
    pub data: Option<&'a [u8]>,
    /// Number of bytes to reserve before the payload in the reply to a read. The frontend fills them in.
    pub headroom: usize,
    /// True if the client polls for replies and does not have to be woken.
    pub is_awake: bool,
    /// Information about the client.
    pub requesting: Requesting,
}

impl Order<'_> {
    /// Creates a request for a range of sectors, with defaults for all other fields.
    pub fn of(operation: Operation, lba: u64, sectors: u32) -> Order<'static> {
        let (fua, data, headroom, is_awake, requesting) = (false, None, 0, false, Requesting::default());
        Order { token: 0, operation, lba, sectors, fua, data, headroom, is_awake, requesting }
    }
}

/// A reply for a frontend to send.
#[derive(Debug)]
pub struct Answer {
    /// Token of the [`Order`].
    pub token: u64,
    /// Status of the completed request.
    pub status: Status,
    /// Error if storing or fetching the payload failed. The device itself may have succeeded.
    pub failed: Option<PayloadError>,
    /// Reserved headroom followed by the payload, for a successful read.
    pub bytes: Vec<u8>,
    /// Time at which the reply is due.
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
    /// Completion time, if the reply was issued before the completion because the completion was certain.
    answered: Option<Time>,
}

/// Entry of a heap of replies, ordered by due time and then by order of publication.
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

/// The engine's state of one frontend.
struct PortState {
    due: BinaryHeap<Waiting>,
    in_flight: u32,
    /// Real time that the frontend needs to receive a request and send its reply.
    cost: Cost,
    lateness: Lateness,
    /// Time at which the frontend polls next without being woken.
    looks_at: Wall,
    waker: Waker,
}

/// Measurements of a run, from which its results are built.
struct Records {
    /// Names of the streams.
    names: Vec<String>,
    results: Results,
    profile: Profile,
    digest: RequestDigest,
    first: Option<Sample>,
    /// Completion time of the last request so far.
    last_finish: Time,
    /// Sample since which no request has arrived. `None` if none was taken since the last request.
    idle: Option<Box<Sample>>,
    lateness: Lateness,
    recorder: Option<Recorder>,
    timeline: Option<Box<Timeline>>,
    speed_changes: u64,
    payload_errors: u64,
    damaged: u64,
    unaligned: Unaligned,
}

/// Requests that do not consist of whole sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unaligned {
    /// Number of these requests.
    pub requests: u64,
    /// Sectors that were read to complete writes and zeroing.
    pub reads: u64,
}

/// Location of the payload.
enum Kept {
    /// Outside the device, which does not know about it.
    Apart(Box<dyn Payload>),
    /// Flash pages to which the device writes it. The options are needed to rebuild the device.
    InFlash(Box<Store>, DeviceOptions),
    /// Flash pages of the members of an array, which has the stores.
    InMembers,
}

impl Kept {
    /// Returns the stores of the flash pages.
    fn stores<'a>(&'a self, target: &'a AnySsd) -> &'a [Store] {
        match (self, target) {
            (Kept::InFlash(store, _), _) => std::slice::from_ref(&**store),
            (Kept::InMembers, AnySsd::Array(array, _)) => array.payload::<Members>().map_or(&[], Members::stores),
            _ => &[],
        }
    }

    /// Returns the stores of the flash pages.
    fn stores_mut<'a>(&'a mut self, target: &'a mut AnySsd) -> &'a mut [Store] {
        match (self, target) {
            (Kept::InFlash(store, _), _) => std::slice::from_mut(&mut **store),
            (Kept::InMembers, AnySsd::Array(array, _)) => {
                array.payload_mut::<Members>().map_or(&mut [], Members::stores_mut)
            }
            _ => &mut [],
        }
    }
}

/// Effects of a power cut.
#[derive(Clone, Debug)]
pub struct PowerCut {
    /// Simulated time of the power cut.
    pub at: Time,
    /// Outstanding requests, which get no reply.
    pub requests_lost: usize,
    /// Mapping units that the device had accepted but not yet written to flash.
    pub units_lost: usize,
    /// Trimmed mapping units whose records were not in flash. `None` if trims are never recorded in flash.
    pub trims_lost: Option<u64>,
    /// True if the memory is protected against power loss (`buffer.power_loss_protection`).
    pub protected: bool,
    /// Result of the recovery.
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

/// Results of a finished run.
pub struct Served {
    /// The device in its final state.
    pub device: AnySsd,
    /// Measurements.
    pub outcome: Outcome,
    /// Lateness of all replies.
    pub lateness: Lateness,
    /// Lateness of each frontend's replies, with the name of the frontend.
    pub frontends: Vec<(String, Lateness)>,
    /// Number of speed changes.
    pub speed_changes: u64,
    /// Requests that failed because their payload could not be stored or fetched.
    pub payload_errors: u64,
    /// Number of requests in the recording, or the reason why it is incomplete. `None` without a recording.
    pub recorded: Option<Result<u64, String>>,
    /// Number of operations and requests that the timeline lacks, or the reason why it is incomplete. `None` without a
    /// timeline.
    pub timeline: Option<Result<u64, String>>,
    /// Digest of the requests, equal to the digest of a recording of them.
    pub digest: u64,
    /// Bytes of payload held at the end. For an image, the disk space that it takes.
    pub payload_bytes: u64,
    /// `Ok` if the image contains all accepted data, otherwise the reason. `None` without an image.
    pub image: Option<Result<(), String>>,
    /// Mapping units of the image that could not be read.
    pub unreadable: u64,
    /// The part of `payload_errors` that was caused by damaged mapping units of the image.
    pub damaged: u64,
    /// Permanent problems of the device and its image, and requests that are not whole sectors.
    pub warnings: Vec<String>,
    /// Number of power cuts.
    pub power_cuts: u64,
    /// Number of operations that a monitor requested to fail.
    pub faults_asked: u64,
    /// The recovery after the last power cut.
    pub recovered: Option<Recovered>,
}

/// The device and everything needed to serve it.
pub struct Engine {
    device: AnySsd,
    kept: Kept,
    outbox: Outbox,
    pace: Pace,
    ports: Vec<PortState>,
    in_flight: Slab<u32, InFlight>,
    steps: Steps,
    /// Completion time of the last request that was replied to before it completed.
    committed_until: Time,
    published: u64,
    /// Number of operations that the device can execute at once.
    at_once: usize,
    records: Records,
    spare: Vec<Vec<u8>>,
    /// Data of completed reads of an array that have no reply yet, by tag.
    replies: BTreeMap<u64, Vec<u8>>,
    fatal_error: Option<String>,
    power_cuts: u64,
    /// Requests that have completed since the start, indexed by [`Operation::index`]. Power cuts do not reset them.
    served: [Totals; 5],
    faults_asked: u64,
    recovered: Option<Recovered>,
    /// Warning about a refused client. `None` if none was refused.
    refusal: Option<String>,
    /// Measured costs of frontends that are not deducted, as warnings.
    undeducted: Vec<String>,
    /// Data collected for a monitor. `None` without a monitor.
    watch: Option<Box<Watch>>,
}

/// Maximum number of buffers kept for reuse.
const SPARE: usize = 64;

impl Engine {
    /// Creates an engine whose payload is stored outside the device.
    pub fn new(device: impl Into<AnySsd>, payload: Box<dyn Payload>, pace: Pace, recorder: Option<Recorder>) -> Engine {
        Engine::over(device.into(), Kept::Apart(payload), pace, recorder)
    }

    /// Creates an engine on a flash image. `options` are the options with which the device was built.
    pub fn on_image(
        device: Device,
        store: Store,
        options: DeviceOptions,
        pace: Pace,
        recorder: Option<Recorder>,
    ) -> Engine {
        Engine::over(device.into(), Kept::InFlash(Box::new(store), options), pace, recorder)
    }

    /// Creates an engine on the flash images of the members of an array.
    pub fn on_members(array: SsdArray, pace: Pace, recorder: Option<Recorder>) -> Engine {
        Engine::over(array.into(), Kept::InMembers, pace, recorder)
    }

    fn over(device: AnySsd, kept: Kept, pace: Pace, recorder: Option<Recorder>) -> Engine {
        let records = Records {
            names: Vec::new(),
            results: Results::new(Vec::new()),
            profile: Profile::default(),
            digest: RequestDigest::default(),
            first: None,
            last_finish: Time::ZERO,
            idle: None,
            lateness: Lateness::default(),
            recorder,
            timeline: None,
            speed_changes: 0,
            payload_errors: 0,
            damaged: 0,
            unaligned: Unaligned::default(),
        };
        Engine {
            at_once: device.units(),
            device,
            kept,
            outbox: Outbox::default(),
            pace,
            ports: Vec::new(),
            in_flight: Slab::default(),
            steps: Steps::default(),
            committed_until: Time::ZERO,
            published: 0,
            records,
            spare: Vec::new(),
            replies: BTreeMap::new(),
            fatal_error: None,
            power_cuts: 0,
            served: Default::default(),
            faults_asked: 0,
            recovered: None,
            refusal: None,
            undeducted: Vec::new(),
            watch: None,
        }
    }

    /// Records a timeline from now on. Must be called before frontends are added.
    pub fn set_timeline(&mut self, timeline: Timeline) {
        Timeline::attach(&mut self.device);
        self.records.timeline = Some(Box::new(timeline));
    }

    /// Adds a frontend, whose requests form the stream `name`.
    pub fn add_port(&mut self, name: &str, waker: Waker) -> Port {
        self.records.names.push(name.to_owned());
        self.records.timeline.iter_mut().for_each(|timeline| timeline.add_stream(name));
        self.records.results.streams.append(&mut Results::new(vec![name.to_owned()]).streams);
        let (due, cost, lateness) = (BinaryHeap::new(), Cost::default(), Lateness::default());
        self.ports.push(PortState { due, in_flight: 0, cost, lateness, looks_at: Wall::NEVER, waker });
        Port(self.ports.len() - 1)
    }

    /// Sets the real time that a frontend needs for receiving and sending. The default is no cost.
    pub fn set_cost(&mut self, port: Port, cost: Cost) {
        self.ports[port.0].cost = cost;
    }

    /// Returns the device.
    pub fn device(&self) -> &AnySsd {
        &self.device
    }

    /// Returns the number of outstanding requests of all frontends.
    pub fn outstanding(&self) -> usize {
        self.in_flight.len()
    }

    /// Returns the reason why the engine cannot continue. `None` if it can.
    pub fn fatal_error(&self) -> Option<String> {
        let breach = || self.kept.stores(&self.device).iter().find_map(Store::breach);
        let defect = |what: &str| format!("{what}, which is a defect of the simulator");
        // A policy that failed may also be the reason why requests do not complete.
        let policy = self.device.fault().map(ToString::to_string);
        policy.or_else(|| self.fatal_error.clone()).or_else(|| breach().map(defect))
    }

    /// Flushes the recording and the timeline if a flush is due: see [`Recorder::tick`].
    pub fn tick_recording(&mut self) {
        self.records.recorder.iter_mut().for_each(Recorder::tick);
        if let Some(timeline) = &mut self.records.timeline {
            timeline.tick(&mut self.device);
        }
    }

    /// Returns the problems that do not stop the engine.
    pub fn warnings(&self) -> Vec<String> {
        let image = self.kept.stores(&self.device).iter().find_map(Store::failure_text);
        let image = image.map(|error| format!("cannot write the image file, so clients get errors: {error}"));
        let recording = self.records.recorder.as_ref().and_then(Recorder::fatal_error);
        let recording =
            recording.map(|error| format!("the recording has stopped, but the device is still served: {error}"));
        let timeline = self.records.timeline.as_ref().and_then(|timeline| timeline.trouble());
        let refused = self.undeducted.iter().chain(&self.refusal).cloned();
        image.into_iter().chain(recording).chain(timeline).chain(refused).chain(self.condition()).collect()
    }

    /// Adds a warning that the cost of a frontend is not deducted.
    pub fn warn_of_cost(&mut self, warning: String) {
        self.undeducted.push(warning);
    }

    /// Adds a warning that a client was refused. Later refusals for the same reason add nothing.
    pub fn warn_of_refusal(&mut self, warning: &str) {
        self.refusal.get_or_insert_with(|| warning.to_owned());
    }

    /// Describes the requests that do not consist of whole sectors, if there were any.
    fn unaligned_requests(&self) -> Option<String> {
        let Unaligned { requests, reads } = self.records.unaligned;
        let sector = self.device.config().host.sector_size.0;
        (requests > 0).then(|| {
            format!(
                "{requests} requests were not whole sectors of {sector} B; the server read {reads} sectors to complete \
                 their writes, and rounded their reads, so that they cost more than on a host that aligns them"
            )
        })
    }

    /// Describes the permanent problems of the device and its image: damage, and read-only state.
    fn condition(&self) -> Vec<String> {
        let mut damage: Vec<String> = Vec::new();
        for found in self.kept.stores(&self.device).iter().flat_map(Store::damage) {
            if !damage.contains(&found) {
                damage.push(found);
            }
        }
        let read_only = self.device.read_only_since().map(|since| {
            let at = since.as_s();
            format!("the device is read-only since {at:.3} s, because it has too many bad blocks: writes fail")
        });
        damage.into_iter().chain(read_only).collect()
    }

    /// Counts a request that does not consist of whole sectors.
    pub fn note_unaligned(&mut self) {
        self.records.unaligned.requests += 1;
    }

    /// Counts a sector that is read to complete such a request.
    pub fn note_completing_read(&mut self) {
        self.records.unaligned.reads += 1;
    }

    /// Returns the number of requests that do not consist of whole sectors.
    pub fn unaligned(&self) -> Unaligned {
        self.records.unaligned
    }

    /// Returns the number of requests that failed because their payload could not be stored or fetched.
    pub fn payload_errors(&self) -> u64 {
        self.records.payload_errors
    }

    /// Returns the kind of payload at the start of a range of bytes, and the end of the extent within the range.
    pub fn extent(&self, range: std::ops::Range<u64>) -> (Extent, u64) {
        match (&self.kept, &self.device) {
            (Kept::Apart(payload), _) => payload.extent(range),
            (Kept::InFlash(store, _), AnySsd::Device(device)) => store.extent(range, |lpn| device.place_of(lpn)),
            (_, AnySsd::Array(array, _)) => Members::extent(array, range),
            _ => (Extent::Data, range.end),
        }
    }

    /// Submits a request that was read at `at`. If its payload cannot be stored, returns an error without submitting
    /// it.
    pub fn submit(&mut self, port: Port, at: Wall, order: &Order) -> Result<(), PayloadError> {
        self.records.lateness.note_turn(&order.requesting);
        self.ports[port.0].lateness.note_turn(&order.requesting);
        self.keep(at, order).inspect_err(|_| self.records.payload_errors += 1)?;
        let now = match self.pace {
            Pace::Timed(clock) => clock.simulated(at).max(self.device.now()),
            Pace::AtOnce => self.device.now(),
        };
        self.catch_up(now);
        self.records.idle = None;
        self.steps.changed = now;
        if self.records.first.is_none() {
            self.device.reset_times();
            let mut first = Sample::default();
            self.device.sample(now, &mut first);
            if let Some(watch) = &mut self.watch {
                watch.begin(&first);
            }
            self.records.first = Some(first);
        }
        let mut request = Request::new(now, order.operation, order.lba, order.sectors);
        (request.fua, request.stream) = (order.fua, port.0 as u16);
        let Order { token, headroom, is_awake, requesting: Requesting { scale, .. }, .. } = *order;
        let in_flight = InFlight { port, token, headroom, is_awake, scale, request, number: 0, answered: None };
        self.count_outstanding(now);
        let id = self.in_flight.insert(in_flight);
        request.tag = u64::from(id);
        if let Some(recorder) = &mut self.records.recorder {
            self.in_flight[id].number = recorder.arrived(&request);
        }
        if let Some(timeline) = &mut self.records.timeline {
            timeline.arrived(request.tag);
        }
        self.records.profile.issued(&request);
        self.records.digest.add(&request);
        self.ports[port.0].in_flight += 1;
        if let (Kept::InMembers, AnySsd::Array(array, _), Some(data)) = (&self.kept, &mut self.device, order.data) {
            array.stage_payload(request.tag, data);
        }
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

    /// Applies the device's flash events to the image. Returns the number of accepted sectors of the arriving request.
    fn apply_flash(&mut self, arriving: Option<&Arriving>) -> u32 {
        match (&mut self.kept, &mut self.device) {
            (Kept::InFlash(store, _), AnySsd::Device(device)) => {
                device.take_flash(&mut self.outbox);
                let accepted = store.apply(&self.outbox, arriving);
                self.outbox.clear();
                accepted
            }
            (Kept::InMembers, AnySsd::Array(array, _)) => {
                array.apply_flash();
                0
            }
            _ => 0,
        }
    }

    /// Stores the payload of a request, or checks that the image can store it.
    fn keep(&mut self, at: Wall, order: &Order) -> Result<(), PayloadError> {
        let read_only = self.device.read_only_since().is_some();
        let payload = match &mut self.kept {
            // The device will reject this write, so its payload must not become readable.
            _ if read_only => return Ok(()),
            Kept::Apart(payload) => payload,
            _ if order.operation == Operation::Read => return Ok(()),
            kept => return kept.stores_mut(&mut self.device).iter_mut().try_for_each(|store| store.check(at)),
        };
        let offset = order.lba * SECTOR;
        let range = offset..offset + u64::from(order.sectors) * SECTOR;
        match (order.operation, order.data) {
            (Operation::Write, Some(data)) => payload.write(offset, data),
            (Operation::Write, None) => payload.zero(range),
            (Operation::Trim, _) => {
                // The FTL keeps the mapping of a partially covered unit, so its data stay as well. An array with parity
                // keeps partially covered stripes.
                let unit = self.device.trim_bytes();
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

    /// Advances the device to the current time. Without a clock, advances it until a reply is due.
    pub fn advance(&mut self, now: Wall) {
        match self.pace {
            Pace::Timed(clock) => {
                self.catch_up(clock.simulated(now).max(self.device.now()));
                self.committed_completions();
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
            self.fatal_error = Some("simulated time has reached its limit of 213 days".to_owned());
        }
    }

    /// Advances the device from one instant with completions to the next, to record when each completion was decided.
    fn catch_up(&mut self, until: Time) {
        self.sample_if_idle(until);
        while self.steps.next(&mut *self.device, until) {
            self.collect();
        }
        self.device.advance(until);
        self.apply_flash(None);
    }

    /// Samples the device before its clock advances to `until`, if it has been idle by then. The measured part ends
    /// with the last completion, and a later sample would include idle time and the garbage collection in it.
    fn sample_if_idle(&mut self, until: Time) {
        /// Idle time after which a sample costs little in proportion.
        const IDLE: Time = Time::from_us(10_000);
        let is_idle = self.in_flight.is_empty() && until.since(self.records.last_finish) >= IDLE;
        if is_idle && self.records.idle.is_none() && self.records.first.is_some() {
            let mut sample = Box::<Sample>::default();
            self.device.sample(self.device.now().max(self.records.last_finish), &mut sample);
            self.records.idle = Some(sample);
        }
    }

    /// Publishes the completions that the device has decided at its current time.
    fn collect(&mut self) {
        if !self.device.has_completions() {
            return;
        }
        // Update the image first, so that everything reported to the host as durable is in it.
        self.apply_flash(None);
        let batch = self.steps.take(&mut *self.device);
        if let AnySsd::Array(array, _) = &mut self.device {
            self.replies.extend(array.take_replies());
        }
        if let Some(timeline) = &mut self.records.timeline {
            timeline.take(&mut self.device);
            batch.iter().for_each(|(completion, breakdown)| timeline.completed(completion, breakdown));
            timeline.end_instant();
        }
        for (completion, breakdown) in batch.iter() {
            self.publish(completion, breakdown);
        }
        self.steps.reuse(batch);
    }

    /// Issues replies whose completion lies in the future and is certain.
    fn committed_completions(&mut self) {
        let costs_nothing = |port: &PortState| port.cost == Cost::default();
        if self.is_saturated() || self.in_flight.is_empty() || self.ports.iter().all(costs_nothing) {
            return;
        }
        let committed = self.steps.committed(&*self.device);
        for &(tag, finish) in &committed {
            let in_flight = self.in_flight[tag as u32];
            // Data that become durable at the completion are not durable yet: power may be cut before it.
            let is_certain = match self.kept {
                Kept::Apart(_) => true,
                Kept::InFlash(..) => in_flight.request.operation == Operation::Read,
                // The data are read when the members have completed their parts.
                Kept::InMembers => false,
            };
            if in_flight.answered.is_none() && is_certain {
                self.in_flight[tag as u32].answered = Some(finish);
                self.committed_until = self.committed_until.max(finish);
                let completion = Completion { request: in_flight.request, status: Status::Ok, start: finish, finish };
                self.answer(&in_flight, &completion);
            }
        }
        self.steps.reuse_committed(committed);
    }

    /// Returns the time that calls for the image's file have taken since the last call of this function.
    pub fn take_disk_time(&mut self) -> Wall {
        let times = self.kept.stores_mut(&mut self.device).iter_mut().map(Store::take_disk_time);
        times.fold(Wall(0), Wall::later)
    }

    /// Returns `true` if there are more requests than the device can execute at once. Requests then wait for each
    /// other, which hides the cost of the frontend.
    fn is_saturated(&self) -> bool {
        self.in_flight.len() > self.at_once
    }

    /// Records a completion, and replies to it unless a reply was already issued.
    fn publish(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) {
        let in_flight = self.in_flight[completion.request.tag as u32];
        self.records.results.record(completion, breakdown);
        self.records.last_finish = self.records.last_finish.max(completion.finish);
        self.served[completion.request.operation.index()].note(completion);
        if let Some(watch) = &mut self.watch {
            watch.completed(completion, breakdown);
        }
        if let Some(breakdown) = breakdown {
            self.records.profile.completed(completion.request.operation, breakdown);
        }
        if let Some(recorder) = &mut self.records.recorder {
            recorder.completed(in_flight.number, completion);
        }
        match in_flight.answered {
            None => self.answer(&in_flight, completion),
            Some(foreseen) => {
                debug_assert_eq!(foreseen, completion.finish, "a committed completion must happen at its time")
            }
        }
        self.count_outstanding(self.device.now());
        if let Kept::InFlash(store, _) = &mut self.kept {
            store.settle(completion.request.tag);
        }
        self.in_flight.remove(completion.request.tag as u32);
        self.ports[in_flight.port.0].in_flight -= 1;
    }

    /// Adds a reply to the queue of its frontend, and wakes the frontend if necessary.
    fn answer(&mut self, in_flight: &InFlight, completion: &Completion) {
        let InFlight { port, token, headroom, .. } = *in_flight;
        let fetched = self.fetch(completion, headroom);
        let (failed, bytes) = fetched.map_or_else(|error| (Some(error), Vec::new()), |bytes| (None, bytes));
        self.records.payload_errors += u64::from(failed.is_some());
        self.records.damaged += u64::from(failed == Some(PayloadError::Damaged));
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

    /// Returns the payload of a successful read. For other operations, returns no data once the image contains their
    /// changes.
    fn fetch(&mut self, completion: &Completion, headroom: usize) -> Result<Vec<u8>, PayloadError> {
        let request = &completion.request;
        if completion.status != Status::Ok {
            self.replies.remove(&request.tag);
            return Ok(Vec::new());
        }
        if request.operation != Operation::Read {
            return self.reached_image(request).map(|()| Vec::new());
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.resize(headroom + request.bytes() as usize, 0);
        let offset = request.lba * SECTOR;
        let into = &mut bytes[headroom..];
        match (&mut self.kept, &self.device) {
            (Kept::Apart(payload), _) => payload.read(offset, into)?,
            (Kept::InFlash(store, _), AnySsd::Device(device)) => {
                store.read(offset, into, |lpn| device.place_of(lpn))?
            }
            _ => into.copy_from_slice(&self.replies.remove(&request.tag).ok_or(PayloadError::Failed)?),
        }
        Ok(bytes)
    }

    /// Checks that the changes of a request are in the image's file, or on its disk if the request asked for
    /// durability.
    fn reached_image(&mut self, request: &Request) -> Result<(), PayloadError> {
        let stores = self.kept.stores_mut(&mut self.device);
        if request.operation == Operation::Flush || request.fua {
            stores.iter_mut().for_each(Store::flushed);
        }
        failure(stores)
    }

    /// Returns the time at which the reply to a completion is due.
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
        // Changes that must be in the image before the reply cannot be replied to ahead of their completion.
        let is_held = !matches!(self.kept, Kept::Apart(_)) && request.operation != Operation::Read;
        let is_held = is_held && completion.finish <= self.device.now();
        let deducted = if self.is_saturated() || is_held { Wall(0) } else { own };
        let target = clock.wall(completion.finish).earlier(deducted);
        let possible = clock.wall(self.steps.changed);
        let has_payload = matches!(request.operation, Operation::Read | Operation::Write);
        Due { target, possible, latency, cost, deducted, not_judged: latency < own && !has_payload }
    }

    fn stalled(&mut self) {
        let stall = self.device.explain_stall();
        self.fatal_error = Some(format!("requests do not complete, which is a defect of the simulator: {stall}"));
    }

    /// Records that a frontend is awake and will poll, so that it need not be woken.
    pub fn awake(&mut self, port: Port) {
        self.ports[port.0].looks_at = Wall(0);
    }

    /// Moves the replies that are due to `into`.
    pub fn take_due(&mut self, port: Port, now: Wall, into: &mut Vec<Answer>) {
        let due = &mut self.ports[port.0].due;
        while due.peek().is_some_and(|waiting| waiting.at.0.0 <= now) {
            into.extend(due.pop().map(|waiting| waiting.answer));
        }
    }

    /// Returns the time at which a frontend has to poll again if its sockets stay silent. [`Wall::NEVER`] means never.
    pub fn next_poll(&mut self, port: Port) -> Wall {
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

    /// Records the lateness of sent replies, and recycles their buffers.
    pub fn sent(&mut self, port: Port, answers: &mut Vec<Answer>, turn: &Turn) {
        for answer in answers.drain(..) {
            if let Pace::Timed(_) = self.pace {
                self.records.lateness.record(&answer.due, turn);
                self.ports[port.0].lateness.record(&answer.due, turn);
                if let Some(watch) = self.watch.as_mut().filter(|_| !answer.due.not_judged) {
                    watch.late_by(answer.due.late_by(turn.sent));
                }
            }
            if answer.bytes.capacity() > 0 && self.spare.len() < SPARE {
                self.spare.push(answer.bytes);
            }
        }
    }

    /// Returns `true` if the device no longer accepts writes.
    pub fn is_read_only(&self) -> bool {
        self.device.read_only_since().is_some()
    }

    /// Makes the next operation of a kind at a location fail: see [`Device::fail_next`].
    pub fn fail_next(&mut self, place: InjectedFault) -> Result<(), String> {
        self.device.fail_next(place)?;
        self.faults_asked += 1;
        Ok(())
    }

    /// Cuts the power of a device that is served from its image, and restores it.
    ///
    /// All contents of memory are lost: outstanding requests, accepted data that are not yet in flash, and the map.
    /// Recovery rebuilds the device from the image. The device is ready when the simulated time of the recovery has
    /// passed. Frontends disconnect their clients when [`Engine::power_cuts`] changes, and drop their outstanding
    /// requests without a reply. All measurements restart, except lateness.
    pub fn power_cut(&mut self, now: Wall) -> Result<PowerCut, String> {
        if let Pace::Timed(clock) = self.pace {
            // Early replies promise completions in the near future, so delay the cut by microseconds until these have
            // happened.
            self.catch_up(clock.simulated(now).max(self.device.now()).max(self.answered_until()));
        }
        if matches!(self.kept, Kept::Apart(_)) {
            return Err("the device has no flash image; serve it with --image FILE or --image memory".to_owned());
        }
        self.power_cuts += 1;
        let (at, requests_lost) = (self.device.now(), self.in_flight.len());
        let stores = self.kept.stores(&self.device);
        let (units_lost, protected) =
            (stores.iter().map(Store::units_waiting).sum(), stores.iter().all(Store::protects));
        let trims_lost = self.device.trims_in_memory();
        let cycled = match (&mut self.kept, &mut self.device) {
            (Kept::InFlash(store, options), AnySsd::Device(device)) => store
                .power_cycle(device.config().clone(), options.clone(), self.power_cuts)
                .map(|(mut new, recovered)| {
                    new.advance(at.later(Time(recovered.device.time_ps)));
                    **device = new;
                    recovered
                }),
            (_, AnySsd::Array(array, _)) => Members::power_cycle(array, self.power_cuts),
            _ => unreachable!("only a single SSD has one image"),
        };
        let recovered = cycled.map_err(|error| {
            let what = format!("cannot recover the device from the image after a power cut: {error}");
            self.fatal_error.get_or_insert(what).clone()
        })?;
        self.recovered = Some(recovered.clone());
        self.begin_anew();
        Ok(PowerCut { at, requests_lost, units_lost, trims_lost, protected, recovered })
    }

    /// Drops outstanding requests and restarts measurements.
    fn begin_anew(&mut self) {
        self.in_flight = Slab::default();
        self.replies.clear();
        self.outbox.clear();
        if let Some(recorder) = &mut self.records.recorder {
            recorder.cut();
        }
        if self.records.timeline.is_some() {
            Timeline::attach(&mut self.device);
        }
        self.records.results = Results::new(self.records.names.clone());
        (self.records.profile, self.records.digest, self.records.first) = Default::default();
        (self.records.last_finish, self.records.idle) = Default::default();
        self.steps.changed = self.device.now();
        self.watch_anew();
        for port in &mut self.ports {
            port.due.clear();
            (port.in_flight, port.looks_at) = (0, Wall(0));
            (port.waker)();
        }
    }

    /// Returns the bytes of payload held. For an image, returns the disk space that it takes.
    pub fn payload_bytes(&self) -> u64 {
        match &self.kept {
            Kept::Apart(payload) => payload.bytes_held(),
            kept => kept.stores(&self.device).iter().map(Store::bytes_held).sum(),
        }
    }

    /// Returns the requests that have completed since the start, indexed by [`Operation::index`].
    pub fn served(&self) -> &[Totals; 5] {
        &self.served
    }

    /// Returns the number of power cuts.
    pub fn power_cuts(&self) -> u64 {
        self.power_cuts
    }

    /// Shuts the device down like a host: with a flush as the last request of the run. Does nothing without an image.
    /// The image contains all accepted data afterwards.
    pub fn shut_down(&mut self) {
        if matches!(self.kept, Kept::Apart(_)) || self.ports.is_empty() {
            return;
        }
        let order = Order::of(Operation::Flush, 0, 0);
        // If the image cannot be written, closing it reports the error.
        if self.submit(Port(0), Wall::now(), &order).is_ok() {
            self.complete_outstanding();
        }
        self.ports[0].due.clear();
    }

    /// Advances the device, and takes the replies of a frontend that are due. If `hurries` is set, completes all
    /// outstanding requests at once, regardless of the clock, and takes all replies.
    pub fn take(&mut self, port: Port, now: Wall, hurries: bool, into: &mut Vec<Answer>) {
        if hurries {
            self.complete_outstanding();
            return self.take_due(port, Wall::NEVER, into);
        }
        self.advance(now);
        self.take_due(port, now, into);
    }

    fn complete_outstanding(&mut self) {
        while !self.in_flight.is_empty() && self.device.next_event().is_some() {
            self.device.advance_to_completion(Time::NEVER);
            self.collect();
        }
    }

    /// Returns the lateness of replies so far.
    pub fn lateness(&self) -> &Lateness {
        &self.records.lateness
    }

    /// Returns the pace, which contains the clock.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Returns the time up to which outstanding requests have already been replied to.
    fn answered_until(&self) -> Time {
        if self.in_flight.is_empty() { Time::ZERO } else { self.committed_until }
    }

    /// Ends the run. All requests must have been replied to. Advances the device past the completions of early replies.
    pub fn finish(mut self, complete: bool) -> Served {
        let end = self.records.last_finish.max(self.device.now()).max(self.answered_until());
        self.device.advance(end);
        self.collect();
        let payload_bytes = self.payload_bytes();
        let mut warnings = self.condition();
        warnings.extend(self.unaligned_requests());
        let last = self.records.idle.take().map_or_else(
            || {
                let mut last = Sample::default();
                self.device.sample(end, &mut last);
                last
            },
            |idle| *idle,
        );
        let first = self.records.first.unwrap_or_else(|| last.clone());
        let profile = Some(self.records.profile);
        let outcome = Outcome::between(&first, last, self.records.results, profile, complete);
        let unreadable = self.kept.stores(&self.device).iter().map(Store::unreadable).sum();
        let image = match (self.kept, &mut self.device) {
            (Kept::InFlash(mut store, _), _) => Some(store.close()),
            (Kept::InMembers, AnySsd::Array(array, _)) => Some(Members::close(array)),
            _ => None,
        };
        let recorded = self.records.recorder.map(Recorder::finish);
        let timeline = self.records.timeline.map(|timeline| timeline.finish(&mut self.device));
        let (names, lateness, digest) = (self.records.names, self.records.lateness, self.records.digest.value());
        let frontends = self.ports.into_iter().map(|port| port.lateness);
        Served {
            device: self.device,
            outcome,
            lateness,
            speed_changes: self.records.speed_changes,
            payload_errors: self.records.payload_errors,
            frontends: names.into_iter().zip(frontends).collect(),
            recorded,
            timeline,
            digest,
            payload_bytes,
            image,
            unreadable,
            damaged: self.records.damaged,
            warnings,
            power_cuts: self.power_cuts,
            faults_asked: self.faults_asked,
            recovered: self.recovered,
        }
    }
}
