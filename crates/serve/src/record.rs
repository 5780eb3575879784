//! Recording of a live run as a trace, which `floatgate run` can replay.
//!
//! Requests are recorded in order of arrival, each with the latency that the device gave it. A completed request is
//! therefore held back until all earlier ones have completed. A separate thread writes the file, so that a slow disk
//! does not delay replies.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use floatgate_core::sim::request::{Completion, Request};
use floatgate_workload::trace::RecordedRequest;

/// Bytes handed to the writing thread at once.
const BLOCK: usize = 1 << 16;

/// Maximum number of blocks that wait for the disk. If the disk falls further behind, the recording ends.
const BLOCKS: usize = 1024;

/// Number of calls of [`Recorder::tick`] after which a recording that is never idle is flushed. Each flush ends a block
/// of a compressed file, which makes the file larger.
const TICKS: u32 = 10;

/// A command for the writing thread.
enum Order {
    /// Write these bytes.
    Write(Vec<u8>),
    /// Make everything written so far readable, even if the file is never finished.
    Flush,
}

/// Destination of the trace. Dropping it ends the trace.
pub trait Sink: Write + Send {
    /// Completes the trace, and moves it to its final place.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Records the requests of a run.
pub struct Recorder {
    /// Requests that are not written yet, in order of arrival. `None` for outstanding ones.
    open: VecDeque<Option<Completion>>,
    /// Number of requests removed from the front of `open`, and the number of these that never completed.
    written: u64,
    lost: u64,
    text: Vec<u8>,
    /// Values of `written` at the last flush, and at the last tick.
    flushed: Option<u64>,
    at_tick: u64,
    /// Ticks since the last flush.
    ticks: u32,
    sender: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<()>>,
    failed: Arc<AtomicBool>,
    error: Arc<Mutex<Option<String>>>,
}

impl Recorder {
    /// Starts a recording. `head` is written as comment lines at its start.
    pub fn begin(mut sink: Box<dyn Sink>, head: &[String]) -> io::Result<Recorder> {
        let (sender, orders) = sync_channel::<Order>(BLOCKS);
        let (failed, error) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
        let (has_failed, say) = (Arc::clone(&failed), Arc::clone(&error));
        let write = move || {
            let written = orders.iter().try_for_each(|order| match order {
                Order::Write(block) => sink.write_all(&block),
                Order::Flush => sink.flush(),
            });
            // An incomplete recording is not moved to its final place.
            let is_whole = || !has_failed.load(Ordering::Acquire);
            let written = written.and_then(|()| if is_whole() { sink.finish() } else { Ok(()) });
            if let Err(error) = written {
                *say.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
                has_failed.store(true, Ordering::Release);
            }
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "files are written concurrently, without influence on the simulation"
        )]
        let thread = std::thread::Builder::new().name("record".to_owned()).spawn(write)?;
        let mut text = Vec::with_capacity(2 * BLOCK);
        head.iter().for_each(|line| text.extend_from_slice(format!("# {line}\n").as_bytes()));
        text.extend_from_slice(RecordedRequest::HEADER.as_bytes());
        Ok(Recorder {
            open: VecDeque::new(),
            written: 0,
            lost: 0,
            text,
            flushed: None,
            at_tick: 0,
            ticks: 0,
            sender: Some(sender),
            thread: Some(thread),
            failed,
            error,
        })
    }

    /// Adds a request. Returns its number.
    pub fn arrived(&mut self, _: &Request) -> u64 {
        self.open.push_back(None);
        self.written + self.open.len() as u64 - 1
    }

    /// Adds the completion of a request, and writes all requests that are ready.
    pub fn completed(&mut self, number: u64, completion: &Completion) {
        if let Some(place) = self.open.get_mut((number - self.written) as usize) {
            *place = Some(*completion);
        }
        while let Some(Some(completion)) = self.open.front() {
            RecordedRequest::of(completion).write(&mut self.text);
            self.open.pop_front();
            self.written += 1;
        }
        if self.text.len() >= BLOCK {
            self.hand_over();
        }
    }

    /// Drops the outstanding requests, which will never complete after a power cut.
    pub fn cut(&mut self) {
        for completion in self.open.drain(..) {
            self.written += 1;
            match completion {
                Some(completion) => RecordedRequest::of(&completion).write(&mut self.text),
                None => self.lost += 1,
            }
        }
    }

    /// Flushes the recording if no request has completed since the last call, or else after `TICKS` calls. The flushed
    /// part survives if the server is killed. Should be called about twice a second.
    pub fn tick(&mut self) {
        let is_idle = self.at_tick == self.written;
        self.at_tick = self.written;
        self.ticks += 1;
        if self.flushed == Some(self.written) || (!is_idle && self.ticks < TICKS) {
            return;
        }
        self.ticks = 0;
        self.flushed = Some(self.written);
        if !self.text.is_empty() {
            self.hand_over();
        }
        // The queue is full only if the disk is slow. In that case, handing over the next block fails as well.
        let _ = self.sender.as_ref().map(|sender| sender.try_send(Order::Flush));
    }

    fn hand_over(&mut self) {
        let block = std::mem::replace(&mut self.text, Vec::with_capacity(2 * BLOCK));
        let sent = self.sender.as_ref().map(|sender| sender.try_send(Order::Write(block)));
        if let Some(Err(TrySendError::Full(_))) = sent {
            let behind = format!("the disk is {} MiB behind", (BLOCK * BLOCKS) >> 20);
            *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(behind);
            self.failed.store(true, Ordering::Release);
            // Write nothing after a gap.
            self.sender = None;
        }
    }

    /// Returns the reason why the recording has failed. `None` if it has not.
    pub fn fatal_error(&self) -> Option<String> {
        if !self.failed.load(Ordering::Acquire) {
            return None;
        }
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes the remaining requests, and completes the trace. Returns the number of recorded requests.
    pub fn finish(mut self) -> Result<u64, String> {
        self.cut();
        self.hand_over();
        self.sender = None;
        let joined = self.thread.take().map_or(Ok(()), JoinHandle::join);
        match (self.fatal_error(), joined) {
            (Some(trouble), _) => Err(trouble),
            (None, Err(_)) => Err("the writing thread failed".to_owned()),
            (None, Ok(())) => Ok(self.written - self.lost),
        }
    }
}
