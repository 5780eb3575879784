//! Calibration: measures the overhead of the host for each frontend when the server starts.
//!
//! A client in this process sends requests through the real loop to a device without delays, over a socket pair or over
//! rings in shared memory. The measured time is what a request costs in addition to the device: sending it, waking the
//! server, replying and waking the client. This cost is deducted from the due time of later replies.
//!
//! A client that has slept longer wakes more slowly, especially on a virtual machine. Therefore a second measurement
//! uses a device with the latency of flash, separately for reads and writes, with the measured cost already deducted.
//! The remaining difference between the client's stopwatch and the model is the additional cost at that latency.

use std::cmp::Ordering;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{self, AtomicBool};
use std::sync::{Arc, Mutex};

use floatgate_core::device_file;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};
use rustix::event::Timespec;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::address::Address;
use crate::client::Client;
use crate::clock::{Clock, Speed, Wall, set_timer_slack};
use crate::engine::{Cost, Engine, Pace, Port};
use crate::listen::Listener;
use crate::nbd::session::Export;
use crate::nvme::identify::Drive;
use crate::nvme::target::Target;
use crate::pacing::lock;
use crate::payload::memory::Memory;
use crate::threads::{Bell, spawn};
use crate::vhost::blk::Disk;
use crate::{nbd, nvme, vhost};

/// Measured properties of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// Time before the end of a wait at which to wake up and busy-wait, so that the wait does not end late. 0 if no
    /// processor can be spared for busy-waiting.
    pub spin: Wall,
    /// Delay of waits, as the 90th percentile.
    pub overslept: Wall,
}

/// Number of timed requests of each kind. The first quarter warms up.
const REQUESTS: usize = 1600;

/// Number of requests of each kind to a device with latency, and number of repetitions with other threads. The time to
/// wake a thread differs by some us from thread to thread, but hardly varies within the life of one. The median counts.
const IN_TIME: usize = 250;
const ROUNDS: usize = 5;

/// Timed sizes. The cost of a byte is the slope between them.
const SIZES: [u32; 2] = [4096, 131_072];

/// Capacity of the test device in bytes.
const BYTES: u64 = 1 << 20;

/// Measures the host's wake-up delay, and chooses how long to busy-wait.
pub fn calibrate(no_spin: bool) -> io::Result<Calibration> {
    let overslept = oversleeping();
    let spin = if can_spare() && !no_spin { overslept.clamp(Wall::from_us(20), Wall::from_us(200)) } else { Wall(0) };
    Ok(Calibration { spin, overslept })
}

/// Returns `true` if clients have a processor while the server busy-waits: the server may use several processors, or it
/// is bound to one of several.
fn can_spare() -> bool {
    let several = std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1);
    several || apart().is_some()
}

/// Returns a processor for the server and the processors for its client. `None` if both have to share one.
///
/// If this thread may use several processors, the server gets the first: a busy-waiting server stays on its processor
/// and leaves the others to clients. Without this, the system sometimes puts both ends of the self-test on one
/// processor, where they wake each other in half the time.
fn apart() -> Option<(CpuSet, CpuSet)> {
    let own = sched_getaffinity(None).ok()?;
    let first = (0..CpuSet::MAX_CPU).find(|&processor| own.is_set(processor))?;
    let mut ours = CpuSet::new();
    ours.set(first);
    let mut theirs = if own.count() == 1 { online()? } else { own };
    theirs.unset(first);
    (theirs.count() > 0).then_some((ours, theirs))
}

/// Returns the processors of the machine that are online.
fn online() -> Option<CpuSet> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let mut online = CpuSet::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        for processor in first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?.min(CpuSet::MAX_CPU - 1) {
            online.set(processor);
        }
    }
    Some(online)
}

/// Restricts this thread to some processors. If the system refuses, its affinity does not change.
fn stay_on(processors: Option<CpuSet>) {
    if let Some(processors) = processors {
        let _ = sched_setaffinity(None, &processors);
    }
}

/// Returns the 90th percentile of the delay of waits.
fn oversleeping() -> Wall {
    const WAITS: usize = 100;
    const SPAN: Wall = Wall::from_us(200);
    set_timer_slack();
    let timeout = Timespec { tv_sec: 0, tv_nsec: SPAN.0 as i64 };
    let mut late: Vec<Wall> = (0..WAITS)
        .map(|_| {
            let start = Wall::now();
            // A wait that a signal cuts short is not late.
            let _ = rustix::event::poll(&mut [], Some(&timeout));
            Wall::now().since(start).since(SPAN)
        })
        .collect();
    late.sort();
    late[WAITS * 9 / 10]
}

/// Measures the cost of requests over NBD.
pub fn nbd_cost(spin: Wall) -> io::Result<Cost> {
    cost(&|bench| {
        let (ours, theirs) = UnixStream::pair()?;
        let mut frontend = nbd::frontend::Frontend::new(nbd::frontend::Parts {
            engine: bench.engine.clone(),
            port: bench.port,
            export: Export {
                name: "calibrate".to_owned(),
                description: String::new(),
                bytes: BYTES,
                sector: 512,
                unit: 4096,
                read_only: false,
            },
            listeners: Vec::new(),
            bell: Arc::clone(&bench.bell),
            stop: Arc::clone(&bench.stop),
            spin,
            idle_limit: Wall::NEVER,
        });
        frontend.add(ours)?;
        Ok(Ends { server: Box::new(move || frontend.run()), client: Box::new(move || boxed(Client::over(theirs)?)) })
    })
}

/// Measures the cost of requests over NVMe/TCP. Hosts use TCP, which takes longer than a Unix socket.
pub fn nvme_cost(spin: Wall) -> io::Result<Cost> {
    cost(&|bench| {
        let listener = Listener::open(&Address::Tcp((Ipv4Addr::LOCALHOST, 0).into()))?;
        let Address::Tcp(address) = *listener.address() else { unreachable!("the listener uses TCP") };
        let drive = Drive::new(lock(&bench.engine).0.device().config(), 0, None);
        let nqn = drive.nqn.clone();
        let frontend = nvme::tcp::frontend::Frontend::new(nvme::tcp::frontend::Parts {
            engine: bench.engine.clone(),
            port: bench.port,
            target: Target::new(drive, Vec::new()),
            listeners: vec![listener],
            bell: Arc::clone(&bench.bell),
            stop: Arc::clone(&bench.stop),
            spin,
        });
        let shape = nvme::client::Shape { no_flow_control: true, ..Default::default() };
        let client = move || boxed(nvme::client::Client::connect_to(address, &nqn, 1, shape)?);
        Ok(Ends { server: Box::new(move || frontend.run()), client: Box::new(client) })
    })
}

/// Measures the cost of requests over vhost-user, from clients that sleep and from clients that poll.
pub fn vhost_cost(spin: Wall) -> io::Result<Cost> {
    let ends = |bench: &Bench, looks: bool| {
        let (ours, theirs) = UnixStream::pair()?;
        let mut frontend = vhost::frontend::Frontend::new(vhost::frontend::Parts {
            engine: bench.engine.clone(),
            port: bench.port,
            disk: Disk {
                name: "calibrate".to_owned(),
                bytes: BYTES,
                sector: 512,
                unit: 4096,
                queues: 1,
                read_only: false,
            },
            listener: None,
            bell: Arc::clone(&bench.bell),
            stop: Arc::clone(&bench.stop),
            spin,
            idle_limit: Wall::NEVER,
        });
        frontend.add(ours)?;
        let shape = vhost::client::Shape { looks, ..Default::default() };
        let client = move || boxed(vhost::client::Client::over(theirs, shape)?);
        Ok(Ends { server: Box::new(move || frontend.run()), client: Box::new(client) })
    };
    let asleep = cost(&|bench| ends(bench, false))?;
    let mut excesses = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        let bench = Bench::in_time(asleep)?;
        let found = bench.excess(ends(&bench, true)?)?;
        excesses.iter_mut().zip(found).for_each(|(excesses, found)| excesses.push(found));
    }
    let [read, write] = excesses.each_mut().map(|excesses| middle(excesses));
    // If polling is slower than being woken, clients have no processor for polling. The result is then the same for
    // both.
    let more = asleep.asleep.map(|(_, more)| more).iter().sum::<f64>() / 2.0;
    Ok(Cost { waking: Some((-(read + write) / 2.0).max(-more)), ..asleep })
}

/// Both ends of a connection, each to run in its own thread.
struct Ends {
    server: Box<dyn FnOnce() + Send>,
    client: Box<dyn FnOnce() -> io::Result<Box<dyn Asks>> + Send>,
}

fn boxed(client: impl Asks + 'static) -> io::Result<Box<dyn Asks>> {
    Ok(Box::new(client))
}

/// Measures the cost of a frontend over a device without delays, then corrects it over a device with the latency of
/// flash, because a client that has slept longer wakes more slowly.
fn cost(ends: &dyn Fn(&Bench) -> io::Result<Ends>) -> io::Result<Cost> {
    let bench = Bench::at_once()?;
    let mut cost = bench.measure(ends(&bench)?, lines)?;
    let mut found = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        let bench = Bench::in_time(cost)?;
        let excess = bench.excess(ends(&bench)?)?;
        for (kind, found) in found.iter_mut().enumerate() {
            found.push(cost.asleep[kind].1 + excess[kind]);
            cost.asleep[kind] = (bench.model[kind].0 as f64, middle(found));
        }
    }
    Ok(cost)
}

/// A device under test, and what a frontend's loop over it needs.
struct Bench {
    engine: Arc<Mutex<Engine>>,
    port: Port,
    bell: Arc<Bell>,
    stop: Arc<AtomicBool>,
    /// Latency of the device for a read and a write of 4 KiB.
    model: [Wall; 2],
}

impl Bench {
    /// Creates a device without delays.
    fn at_once() -> io::Result<Bench> {
        Bench::new(device()?, Pace::AtOnce, Cost::default(), [Wall(0); 2])
    }

    /// Creates a device with latency, from which the cost of the frontend is deducted.
    fn in_time(cost: Cost) -> io::Result<Bench> {
        let mut device = device()?;
        precondition(&mut device, Precondition::Fill, 1, &mut |_| true).map_err(io::Error::other)?;
        let model = [Operation::Read, Operation::Write].map(|operation| alone(&mut device, operation));
        let start = Wall::now().earlier(Wall(device.now().ps().div_ceil(1000)));
        Bench::new(device, Pace::Timed(Clock::new(start, Speed::default())), cost, model)
    }

    fn new(device: Device, pace: Pace, cost: Cost, model: [Wall; 2]) -> io::Result<Bench> {
        let mut engine = Engine::new(device, Box::new(Memory::new(BYTES, 4096, BYTES)), pace, None);
        let bell = Arc::new(Bell::new()?);
        let ring = Arc::clone(&bell);
        let port = engine.add_port("calibrate", Arc::new(move || ring.ring()));
        engine.set_cost(port, Cost { is_provisional: true, ..cost });
        Ok(Bench { engine: Arc::new(Mutex::new(engine)), port, bell, stop: Arc::default(), model })
    }

    /// Measures how much longer than the device's latency a read and a write of 4 KiB take, in ns.
    fn excess(&self, ends: Ends) -> io::Result<[f64; 2]> {
        let [read, write] = self.model.map(|time| time.0 as f64);
        self.measure(ends, move |client| {
            let mut bytes = [0; SIZES[0] as usize];
            let writes = median(|at| client.write(at, &bytes), SIZES[0], IN_TIME)?;
            let reads = median(|at| client.read(at, &mut bytes), SIZES[0], IN_TIME)?;
            Ok([reads - read, writes - write])
        })
    }

    /// Runs the loop while the client measures.
    fn measure<T: Send + 'static>(
        &self,
        Ends { server, client }: Ends,
        measure: impl FnOnce(&mut dyn Asks) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (ours, theirs) = apart().unzip();
        let thread = spawn("calibrate", move || {
            stay_on(ours);
            server();
        })?;
        let client = spawn("calibrate-client", move || {
            stay_on(theirs);
            measure(&mut *client()?)
        })?;
        let defect = || io::Error::other("the self-test failed, which is a defect");
        let measured = client.join().unwrap_or_else(|_| Err(defect()));
        self.stop.store(true, atomic::Ordering::Release);
        self.bell.ring();
        thread.join().map_err(|_| defect()).and(measured)
    }
}

/// Creates a device with the latency of typical flash: 65 us for a read, 260 us for a write. Its last transfer takes 60
/// us for 4 KiB. This is longer than the cost of any frontend, so the whole cost can be deducted.
fn device() -> io::Result<Device> {
    let slow = ["nand.read=5us", "bus.protocol.nv-ddr=68MT/s"].map(str::to_owned);
    let config = device_file::load("tiny", &slow).map_err(|error| io::Error::other(error.to_string()))?;
    Device::new(config, Options { attribution: true, ..Options::default() }).map_err(io::Error::other)
}

/// Returns the latency of a request of 4 KiB on an idle device.
fn alone(device: &mut Device, operation: Operation) -> Wall {
    device.submit(device.now(), Request::new(device.now(), operation, 0, SIZES[0] / 512));
    let mut completions = Vec::new();
    while completions.is_empty() && device.next_event().is_some() {
        device.advance_to_completion(Time::NEVER);
        device.take_completions(&mut completions);
    }
    // Discard the breakdown together with its completion. Otherwise it would be paired with the next completion.
    device.take_breakdowns(&mut Vec::new());
    let taken = |completion: &Completion| completion.finish.since(completion.request.arrival);
    Wall(completions.first().map_or(0, |completion| taken(completion).ps() / 1000))
}

/// A client that sends one request at a time.
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

impl Asks for nvme::client::Client {
    fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.read(at, into)
    }
    fn write(&mut self, at: u64, data: &[u8]) -> io::Result<()> {
        self.write(at, data)
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

/// Measures the fixed cost of a request and the cost of each of its bytes.
fn lines(client: &mut dyn Asks) -> io::Result<Cost> {
    let mut bytes = vec![0; SIZES[1] as usize];
    let mut medians = [[0.0; 2]; 2];
    // Large requests take longer and vary less, so fewer of them suffice.
    for (index, (size, requests)) in SIZES.into_iter().zip([REQUESTS, REQUESTS / 8]).enumerate() {
        let bytes = &mut bytes[..size as usize];
        // Writes first, so that reads find payload to copy.
        medians[1][index] = median(|at| client.write(at, bytes), size, requests)?;
        medians[0][index] = median(|at| client.read(at, bytes), size, requests)?;
    }
    let line = |[small, large]: [f64; 2]| {
        let each = ((large - small) / f64::from(SIZES[1] - SIZES[0])).max(0.0);
        ((small - each * f64::from(SIZES[0])).max(0.0), each)
    };
    Ok(Cost { read: line(medians[0]), write: line(medians[1]), ..Cost::default() })
}

/// Returns the median time of `requests` requests of `size` bytes, in ns.
fn median(mut request: impl FnMut(u64) -> io::Result<()>, size: u32, requests: usize) -> io::Result<f64> {
    let mut times = Vec::with_capacity(requests);
    for index in 0..requests {
        let at = index as u64 * u64::from(size) % (BYTES - u64::from(size) + 1) / 4096 * 4096;
        let start = Wall::now();
        request(at)?;
        times.push(Wall::now().since(start).0);
    }
    Ok(middle(&mut times[requests / 4..]) as f64)
}

/// Returns the median of `values`, which must not be empty.
fn middle<T: Copy + PartialOrd>(values: &mut [T]) -> T {
    values.sort_unstable_by(|one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal));
    values[values.len() / 2]
}
