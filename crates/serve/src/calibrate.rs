//! What the host takes by itself: found out at the start, by a device that takes no time.
//!
//! A client in this process asks the real loop for sectors of a device that answers at once, over a pair of sockets.
//! What that takes is what a request takes beyond the device: to be sent, to wake the server, to be answered and to
//! wake the client. It is deducted from the time of later answers.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use floatgate_core::config;
use floatgate_core::device::{Device, Options};
use rustix::event::Timespec;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::client::Client;
use crate::clock::{Wall, set_timer_slack};
use crate::engine::{Cost, Engine, Pace};
use crate::nbd::front::{Front, Parts};
use crate::nbd::session::Export;
use crate::payload::memory::Memory;
use crate::server::{Bell, spawn};

/// What was found out of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// What a request takes beyond the device.
    pub cost: Cost,
    /// How much before its time a wait has to end so that it does not end too late; 0 where no processor can be spared
    /// to look at the clock from then on.
    pub spin: Wall,
    /// How much later than asked for a wait ended, at worst of a hundred but one.
    pub overslept: Wall,
}

impl Calibration {
    /// What is deducted of a read and of a write of 4 KiB, in microseconds.
    pub fn deducted_us(&self) -> [f64; 2] {
        let us = |(fixed, each): (f64, f64)| (fixed + each * 4096.0) / 1e3;
        [us(self.cost.read), us(self.cost.write)]
    }
}

/// Requests that are timed, of each kind; the first quarter of them warms up.
const REQUESTS: usize = 1600;

/// Sizes that are timed: the cost of a byte is the slope between them.
const SIZES: [u32; 2] = [4096, 131_072];

/// Bytes of the device that is asked.
const BYTES: u64 = 1 << 20;

/// Finds out what the host takes.
pub fn calibrate(no_spin: bool) -> io::Result<Calibration> {
    let overslept = oversleeping();
    let spin = if can_spare() && !no_spin { overslept.clamp(Wall::from_us(20), Wall::from_us(200)) } else { Wall(0) };
    Ok(Calibration { cost: cost(spin)?, spin, overslept })
}

/// Whether clients have a processor while the server looks at the clock: there is more than one for it, or it was given
/// one of several.
fn can_spare() -> bool {
    let several = std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1);
    several || others().is_some()
}

/// The processors that this thread may not use, where it may use only one.
fn others() -> Option<CpuSet> {
    let own = sched_getaffinity(None).ok().filter(|own| own.count() == 1)?;
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let mut others = CpuSet::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        for processor in first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?.min(CpuSet::MAX_CPU - 1) {
            if !own.is_set(processor) {
                others.set(processor);
            }
        }
    }
    (others.count() > 0).then_some(others)
}

/// How late waits end.
fn oversleeping() -> Wall {
    const WAITS: usize = 100;
    const SPAN: Wall = Wall::from_us(200);
    set_timer_slack();
    let timeout = Timespec { tv_sec: 0, tv_nsec: SPAN.0 as i64 };
    let mut late: Vec<Wall> = (0..WAITS)
        .map(|_| {
            let start = Wall::now();
            // A wait that a signal cuts short is none too late.
            let _ = rustix::event::poll(&mut [], Some(&timeout));
            Wall::now().since(start).since(SPAN)
        })
        .collect();
    late.sort();
    late[WAITS * 9 / 10]
}

/// What requests take.
fn cost(spin: Wall) -> io::Result<Cost> {
    let (ours, theirs) = UnixStream::pair()?;
    let stop = Arc::new(AtomicBool::new(false));
    let bell = Arc::new(Bell::new()?);
    let front = front(ours, &stop, &bell, spin)?;
    let thread = spawn("calibrate", move || front.run())?;
    // The client is where clients will be, and the server where it will be.
    let client = spawn("calibrate-client", move || {
        if let Some(others) = others() {
            // Where that is not allowed, clients will not be there either.
            let _ = sched_setaffinity(None, &others);
        }
        Client::over(theirs).and_then(|mut client| measure(&mut client))
    })?;
    let defect = || io::Error::other("the self-test failed, which is a defect");
    let measured = client.join().unwrap_or_else(|_| Err(defect()));
    stop.store(true, Ordering::Release);
    bell.ring();
    thread.join().map_err(|_| defect()).and(measured)
}

/// A loop over a device that answers at once.
fn front(client: UnixStream, stop: &Arc<AtomicBool>, bell: &Arc<Bell>, spin: Wall) -> io::Result<Front> {
    let config = config::load("tiny", &[]).map_err(|error| io::Error::other(error.to_string()))?;
    let options = Options { attribution: true, ..Options::default() };
    let device = Device::new(config, options).map_err(io::Error::other)?;
    let mut engine = Engine::new(device, Box::new(Memory::new(BYTES, 4096, BYTES)), Pace::AtOnce, None);
    let ring = Arc::clone(bell);
    let port = engine.add_port("calibrate", Arc::new(move || ring.ring()));
    let mut front = Front::new(Parts {
        engine: Arc::new(Mutex::new(engine)),
        port,
        export: Export { name: "calibrate".to_owned(), description: String::new(), bytes: BYTES, unit: 4096 },
        listeners: Vec::new(),
        bell: Arc::clone(bell),
        stop: Arc::clone(stop),
        spin,
    });
    front.add(client)?;
    Ok(front)
}

fn measure(client: &mut Client) -> io::Result<Cost> {
    let mut bytes = vec![0; SIZES[1] as usize];
    let mut medians = [[0.0; 2]; 2];
    for (index, size) in SIZES.into_iter().enumerate() {
        let bytes = &mut bytes[..size as usize];
        // Writes first, so that reads find payload to copy.
        medians[1][index] = median(|at| client.write(at, bytes, false), size)?;
        medians[0][index] = median(|at| client.read(at, bytes), size)?;
    }
    let line = |[small, large]: [f64; 2]| {
        let each = ((large - small) / f64::from(SIZES[1] - SIZES[0])).max(0.0);
        ((small - each * f64::from(SIZES[0])).max(0.0), each)
    };
    Ok(Cost { read: line(medians[0]), write: line(medians[1]) })
}

/// The median time of a request of that size, in ns.
fn median(mut request: impl FnMut(u64) -> io::Result<()>, size: u32) -> io::Result<f64> {
    let mut times = Vec::with_capacity(REQUESTS);
    // Large requests are slow, and vary less.
    let requests = if size > 4096 { REQUESTS / 8 } else { REQUESTS };
    for index in 0..requests {
        let at = index as u64 * u64::from(size) % (BYTES - u64::from(size) + 1) / 4096 * 4096;
        let start = Wall::now();
        request(at)?;
        times.push(Wall::now().since(start).0);
    }
    let timed = &mut times[requests / 4..];
    timed.sort_unstable();
    Ok(timed[timed.len() / 2] as f64)
}
