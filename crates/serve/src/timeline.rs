//! Timeline of a live device: passes the operations of the flash array and the requests to a thread that writes them.
//!
//! The engine only copies operations under its lock. If the writing thread falls too far behind, operations are dropped
//! and counted: a timeline with a gap is useful, and the server must not wait for it.

use std::io;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use floatgate_array::AnySsd;
use floatgate_core::results::Breakdown;
use floatgate_core::sim::request::Completion;
use floatgate_core::sim::time::Time;
use floatgate_core::timeline::{CoreWork, Probe, Slice};

use crate::threads::spawn;

/// Number of operations and requests that are handed to the writing thread at once.
const BATCH: usize = 4096;

/// Maximum number of batches that wait for the writing thread.
const BATCHES: usize = 64;

/// Operations of some instants, and the requests that completed then.
#[derive(Debug, Default)]
pub struct Batch {
    /// Names of streams that are new. Requests refer to streams by their position among all names so far.
    pub streams: Vec<String>,
    /// Phases of operations. The tag is the number of the request, by order of arrival.
    slices: Vec<Slice>,
    works: Vec<CoreWork>,
    completions: Vec<(Completion, Option<Breakdown>)>,
    /// Number of entries of each list at the end of each instant.
    ends: Vec<[usize; 3]>,
    /// True if everything so far should be readable in the file.
    is_flushed: bool,
}

/// Operations and requests of one instant.
pub struct Instant<'a> {
    /// Phases of operations.
    pub slices: &'a [Slice],
    /// Work of the controller's cores.
    pub works: &'a [CoreWork],
    /// Completed requests.
    pub completions: &'a [(Completion, Option<Breakdown>)],
}

impl Batch {
    /// Returns the instants in order.
    pub fn instants(&self) -> impl Iterator<Item = Instant<'_>> {
        let starts = std::iter::once([0; 3]).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| Instant {
            slices: &self.slices[start[0]..end[0]],
            works: &self.works[start[1]..end[1]],
            completions: &self.completions[start[2]..end[2]],
        })
    }

    fn length(&self) -> usize {
        self.slices.len() + self.works.len() + self.completions.len()
    }
}

/// Destination of a timeline.
pub trait Sink: Send {
    /// Adds operations and requests.
    fn write(&mut self, batch: &Batch) -> io::Result<()>;

    /// Makes everything written so far readable, even if the file is never finished.
    fn flush(&mut self) -> io::Result<()>;

    /// Completes the timeline, and moves it to its final place.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Timeline of a live device.
pub struct Timeline {
    /// Numbers of the outstanding requests, indexed by tag. Tags are used again, numbers are not.
    numbers: Vec<u64>,
    arrived: u64,
    batch: Batch,
    /// True if a batch was handed over since the last flush.
    is_behind: bool,
    /// Number of operations and requests that were dropped.
    dropped: u64,
    sender: Option<SyncSender<Batch>>,
    thread: Option<JoinHandle<()>>,
    error: Arc<Mutex<Option<String>>>,
}

impl Timeline {
    /// Starts the writing thread.
    pub fn begin(mut sink: Box<dyn Sink>) -> io::Result<Timeline> {
        let (sender, batches) = sync_channel::<Batch>(BATCHES);
        let error = Arc::new(Mutex::new(None));
        let say = Arc::clone(&error);
        let write = move || {
            let written = batches.iter().try_for_each(|batch| {
                sink.write(&batch)?;
                if batch.is_flushed { sink.flush() } else { Ok(()) }
            });
            // After an error, the receiver is dropped, and further batches are refused.
            if let Err(error) = written.and_then(|()| sink.finish()) {
                *say.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
            }
        };
        let thread = spawn("timeline", write)?;
        Ok(Timeline {
            numbers: Vec::new(),
            arrived: 0,
            batch: Batch::default(),
            is_behind: false,
            dropped: 0,
            sender: Some(sender),
            thread: Some(thread),
            error,
        })
    }

    /// Starts to record the operations of a device, which may be new after a power cut.
    pub fn attach(device: &mut AnySsd) {
        device.set_probe(Some(Probe::new(Time::ZERO, Time::NEVER).with_waits()));
    }

    /// Adds a stream.
    pub fn add_stream(&mut self, name: &str) {
        self.batch.streams.push(name.to_owned());
    }

    /// Numbers a request, which is outstanding with this tag.
    pub fn arrived(&mut self, tag: u64) {
        let tag = tag as usize;
        if self.numbers.len() <= tag {
            self.numbers.resize(tag + 1, u64::MAX);
        }
        self.numbers[tag] = self.arrived;
        self.arrived += 1;
    }

    fn number(numbers: &[u64], tag: u64) -> u64 {
        usize::try_from(tag).ok().and_then(|tag| numbers.get(tag).copied()).unwrap_or(u64::MAX)
    }

    /// Takes the operations that a device has recorded. Must be called before the completions of the same instant are
    /// added, because they free their tags.
    pub fn take(&mut self, device: &mut AnySsd) {
        let Timeline { numbers, batch, .. } = self;
        let now = device.now();
        let taken = device.drain_probe(now, &mut |slices, works| {
            let slices = slices.iter().map(|slice| Slice { tag: Timeline::number(numbers, slice.tag), ..*slice });
            batch.slices.extend(slices);
            let works = works.iter().map(|work| CoreWork { tag: Timeline::number(numbers, work.tag), ..*work });
            batch.works.extend(works);
            Ok(())
        });
        debug_assert!(taken.is_ok(), "copying cannot fail");
    }

    /// Adds a completed request.
    pub fn completed(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) {
        let mut completion = *completion;
        completion.request.tag = Timeline::number(&self.numbers, completion.request.tag);
        self.batch.completions.push((completion, breakdown.copied()));
    }

    /// Ends an instant.
    pub fn end_instant(&mut self) {
        let Batch { slices, works, completions, ends, .. } = &mut self.batch;
        ends.push([slices.len(), works.len(), completions.len()]);
        if self.batch.length() >= BATCH {
            self.hand_over();
        }
    }

    /// Takes what the device has recorded, and flushes it. Should be called about twice a second.
    pub fn tick(&mut self, device: &mut AnySsd) {
        self.take(device);
        self.end_instant();
        if self.is_behind || self.batch.length() > 0 {
            self.batch.is_flushed = true;
            self.hand_over();
            self.is_behind = false;
        }
    }

    fn hand_over(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        self.is_behind = true;
        let Some(sender) = &self.sender else { return };
        match sender.try_send(batch) {
            Ok(()) => {}
            Err(TrySendError::Full(batch)) => {
                self.dropped += batch.length() as u64;
                self.batch.streams = batch.streams;
            }
            Err(TrySendError::Disconnected(_)) => self.sender = None,
        }
    }

    /// Returns the reason why the timeline has stopped or has gaps. `None` if it is complete so far.
    pub fn trouble(&self) -> Option<String> {
        let error = self.error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let error = error.map(|error| format!("the timeline has stopped, but the device is still served: {error}"));
        let gaps = (self.dropped > 0)
            .then(|| "the timeline has gaps, because operations are faster than they can be written".to_owned());
        error.or(gaps)
    }

    /// Writes what is left, and completes the timeline. Returns the number of operations and requests that it lacks.
    pub fn finish(mut self, device: &mut AnySsd) -> Result<u64, String> {
        self.tick(device);
        self.sender = None;
        let joined = self.thread.take().map_or(Ok(()), JoinHandle::join);
        let error = self.error.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (error, joined) {
            (Some(error), _) => Err(error),
            (None, Err(_)) => Err("the writing thread failed".to_owned()),
            (None, Ok(())) => Ok(self.dropped),
        }
    }
}
