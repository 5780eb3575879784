//! What the host takes by itself: found out at the start, by a device that takes no time, for each front end.
//!
//! A client in this process asks the real loop for sectors of a device that answers at once, over a pair of sockets, or
//! by rings in memory that it shares.
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
use crate::engine::{Cost, Engine, Pace, Port};
use crate::nbd::session::Export;
use crate::payload::memory::Memory;
use crate::server::{Bell, spawn};
use crate::vhost::blk::Disk;
use crate::{nbd, vhost};

/// What was found out of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// How much before its time a wait has to end so that it does not end too late; 0 where no processor can be spared
    /// to look at the clock from then on.
    pub spin: Wall,
    /// How much later than asked for a wait ended, at worst of a hundred but one.
    pub overslept: Wall,
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
    Ok(Calibration { spin, overslept })
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

/// What requests take that come by NBD.
pub fn nbd_cost(spin: Wall) -> io::Result<Cost> {
    let bench = Bench::new()?;
    let (ours, theirs) = UnixStream::pair()?;
    let mut front = nbd::front::Front::new(nbd::front::Parts {
        engine: bench.engine.clone(),
        port: bench.port,
        export: Export { name: "calibrate".to_owned(), description: String::new(), bytes: BYTES, unit: 4096 },
        listeners: Vec::new(),
        bell: Arc::clone(&bench.bell),
        stop: Arc::clone(&bench.stop),
        spin,
    });
    front.add(ours)?;
    bench.measure(move || front.run(), move || measure(&mut Client::over(theirs)?))
}

/// What requests take that come by vhost-user.
pub fn vhost_cost(spin: Wall) -> io::Result<Cost> {
    let bench = Bench::new()?;
    let (ours, theirs) = UnixStream::pair()?;
    let mut front = vhost::front::Front::new(vhost::front::Parts {
        engine: bench.engine.clone(),
        port: bench.port,
        disk: Disk { name: "calibrate".to_owned(), bytes: BYTES, unit: 4096, queues: 1 },
        listener: None,
        bell: Arc::clone(&bench.bell),
        stop: Arc::clone(&bench.stop),
        spin,
    });
    front.add(ours)?;
    let client = move || measure(&mut vhost::client::Client::over(theirs, Default::default())?);
    bench.measure(move || front.run(), client)
}

/// A device that answers at once, and what a loop over it needs.
struct Bench {
    engine: Arc<Mutex<Engine>>,
    port: Port,
    bell: Arc<Bell>,
    stop: Arc<AtomicBool>,
}

impl Bench {
    fn new() -> io::Result<Bench> {
        let config = config::load("tiny", &[]).map_err(|error| io::Error::other(error.to_string()))?;
        let options = Options { attribution: true, ..Options::default() };
        let device = Device::new(config, options).map_err(io::Error::other)?;
        let mut engine = Engine::new(device, Box::new(Memory::new(BYTES, 4096, BYTES)), Pace::AtOnce, None);
        let bell = Arc::new(Bell::new()?);
        let ring = Arc::clone(&bell);
        let port = engine.add_port("calibrate", Arc::new(move || ring.ring()));
        Ok(Bench { engine: Arc::new(Mutex::new(engine)), port, bell, stop: Arc::default() })
    }

    /// Runs the loop while the client measures.
    fn measure(
        &self,
        run: impl FnOnce() + Send + 'static,
        measure: impl FnOnce() -> io::Result<Cost> + Send + 'static,
    ) -> io::Result<Cost> {
        let thread = spawn("calibrate", run)?;
        // The client is where clients will be, and the server where it will be.
        let client = spawn("calibrate-client", move || {
            if let Some(others) = others() {
                // Where that is not allowed, clients will not be there either.
                let _ = sched_setaffinity(None, &others);
            }
            measure()
        })?;
        let defect = || io::Error::other("the self-test failed, which is a defect");
        let measured = client.join().unwrap_or_else(|_| Err(defect()));
        self.stop.store(true, Ordering::Release);
        self.bell.ring();
        thread.join().map_err(|_| defect()).and(measured)
    }
}

/// A client that waits for each of its requests.
trait Asks {
    fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<()>;
    fn write(&mut self, at: u64, data: &[u8]) -> io::Result<()>;
}

impl Asks for Client {
    fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.read(at, into)
    }
    fn write(&mut self, at: u64, data: &[u8]) -> io::Result<()> {
        self.write(at, data, false)
    }
}

impl Asks for vhost::client::Client {
    fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.read(at, into)
    }
    fn write(&mut self, at: u64, data: &[u8]) -> io::Result<()> {
        self.write(at, data)
    }
}

fn measure(client: &mut impl Asks) -> io::Result<Cost> {
    let mut bytes = vec![0; SIZES[1] as usize];
    let mut medians = [[0.0; 2]; 2];
    for (index, size) in SIZES.into_iter().enumerate() {
        let bytes = &mut bytes[..size as usize];
        // Writes first, so that reads find payload to copy.
        medians[1][index] = median(|at| client.write(at, bytes), size)?;
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
