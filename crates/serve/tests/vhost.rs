//! Tests of a server with vhost-user clients, over real sockets and shared memory.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use floatgate_core::device_file;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::results::StreamResults;
use floatgate_core::sim::request::Operation;
use floatgate_core::simulation::{Device, Options as DeviceOptions};
use floatgate_serve::client::Client as NbdClient;
use floatgate_serve::clock::Wall;
use floatgate_serve::record::Recorder;
use floatgate_serve::vhost::client::{Client, Shape};
use floatgate_serve::{Address, Cost, Costs, Options, Server};
use proptest::test_runner::{Config, TestRunner};
use tempfile::TempDir;

use crate::common::options::{options, sockets};
use crate::common::progress::until_in_progress;
use crate::common::replay::{Shared, assert_replays};
use crate::common::trims::trimmed;

fn device(overrides: &[&str]) -> Device {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    let config = device_file::load("tiny", &overrides).unwrap();
    let mut device = Device::new(config, DeviceOptions { attribution: true, ..DeviceOptions::default() }).unwrap();
    precondition(&mut device, Precondition::Fill, 1, &mut |_| true).unwrap();
    device
}

/// A server, and the directory of its socket.
struct Bench {
    server: Option<Server>,
    path: PathBuf,
    _folder: TempDir,
}

impl Bench {
    fn new(change: impl FnOnce(&mut Options)) -> Bench {
        let mut bench = Bench::without_server();
        bench.start(change);
        bench
    }

    fn without_server() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vhost.sock");
        Bench { server: None, path, _folder: folder }
    }

    /// Creates a server on which a read takes 2.2 s.
    fn slow() -> Bench {
        let mut bench = Bench::without_server();
        bench.start_over(device(&["nand.read=200us"]), None, |options| {
            (options.no_delay, options.speed) = (false, "0.0001".parse().unwrap());
        });
        bench
    }

    fn start(&mut self, change: impl FnOnce(&mut Options)) {
        self.start_over(device(&[]), None, change);
    }

    /// Starts a server with a device, and with a socket for NBD clients.
    fn start_over(&mut self, device: Device, nbd: Option<&Path>, change: impl FnOnce(&mut Options)) {
        let sockets = sockets(nbd, Some(&self.path));
        let mut options = Options { vhost_queues: 4, ..options() };
        change(&mut options);
        self.server = Some(Server::start(device, sockets, options).unwrap());
    }

    fn client(&self) -> Client {
        Client::connect(&self.path, Shape::default()).unwrap()
    }

    fn stop(&mut self) -> floatgate_serve::Finished {
        self.server.take().unwrap().stop(true).unwrap()
    }
}

#[test]
fn data_are_readable() {
    let mut bench = Bench::new(|_| {});
    assert_eq!(std::fs::metadata(&bench.path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut clients = [bench.client(), bench.client()];
    let size = 1 << 20;
    let mut model = vec![0u8; size];
    let step = (0..2usize, 0..6, 0..(size as u64 / 512), 1..200u64, proptest::num::u8::ANY);
    let mut runner = TestRunner::new(Config { cases: 1, ..Config::default() });
    let held = std::sync::Mutex::new((&mut clients, &mut model));
    let run = |steps: Vec<(usize, i32, u64, u64, u8)>| {
        let mut held = held.lock().unwrap();
        let (clients, model) = &mut *held;
        for (client, operation, sector, sectors, byte) in steps {
            let client = &mut clients[client];
            let start = (sector * 512) as usize;
            let end = (start + sectors as usize * 512).min(size);
            let (offset, length) = (start as u64, (end - start) as u64);
            match operation {
                0 | 1 => client.write(offset, &vec![byte; end - start]).unwrap(),
                2 => client.discard(offset, length).unwrap(),
                3 => client.write_zeroes(offset, length, byte % 2 == 0).unwrap(),
                4 => client.flush().unwrap(),
                _ => {
                    let mut read = vec![0xee; end - start];
                    client.read(offset, &mut read).unwrap();
                    assert!(read == model[start..end], "{start}..{end}");
                }
            }
            match operation {
                0 | 1 => model[start..end].fill(byte),
                2 => model[trimmed(start..end)].fill(0),
                3 => model[start..end].fill(0),
                _ => {}
            }
        }
        Ok(())
    };
    runner.run(&proptest::collection::vec(step, 600), run).unwrap();
    drop(clients);
    let finished = bench.stop();
    assert!(finished.outcome.results.all().count() >= 500);
    finished.device.check_invariants().unwrap();
    assert!(!bench.path.exists(), "the socket goes with its server");
}

#[test]
fn the_disk_describes_itself() {
    let bench = Bench::new(|_| {});
    let mut client = bench.client();
    let config = client.config().to_vec();
    let number = |at: usize| u32::from_le_bytes(config[at..at + 4].try_into().unwrap());
    let bytes = bench.server.as_ref().unwrap().vhost_user().map(|_| client.bytes()).unwrap();
    assert_eq!(bytes, device(&[]).config().logical_bytes());
    // Sectors of 512 B in mapping units of 4 KiB: 2^3 of them.
    assert_eq!((number(20), config[24], number(28)), (512, 3, 8));
    assert_eq!(u16::from_le_bytes([config[34], config[35]]), 4, "queues");
    assert_eq!([36, 40, 44].map(number), [(bytes / 512) as u32, 1, 8], "discard: longest, ranges, alignment");
    assert_eq!((number(48), number(52), config[56]), (65536, 1, 1), "zeroes: longest, ranges, by unmapping");
    assert_eq!(client.id().unwrap(), "tiny");
    assert!(client.write(bytes, &[1; 512]).is_err() && client.discard(bytes - 512, 1024).is_err());
    client.write(bytes - 512, &[1; 512]).unwrap();
}

#[test]
fn replies_take_the_latency_of_the_device() {
    // At a hundredth of real time, a read of 45.48 us takes 4.548 ms, regardless of other load on the host.
    let mut bench = Bench::new(|options| {
        options.no_delay = false;
        options.speed = "0.01".parse().unwrap();
    });
    let cost = bench.server.as_ref().unwrap().costs().vhost_user;
    let deducted = cost.us();
    assert!(deducted.iter().all(|us| (0.1..5000.0).contains(us)), "{deducted:?}");
    let mut client = bench.client();
    let mut read = [0; 4096];
    let mut least = f64::MAX;
    for index in 0..20 {
        let start = Wall::now();
        client.read(index * 4096, &mut read).unwrap();
        least = least.min(Wall::now().since(start).as_us());
    }
    let finished = bench.stop();
    let model = finished.outcome.results.all().latency.min_us();
    assert!((45.0..46.0).contains(&model), "{model}");
    // The deduction is that for a client which has slept equally long.
    let deducted = cost.of(Operation::Read, 4096, Wall((1e5 * model) as u64), false).as_us();
    assert!(least >= 100.0 * model - deducted - 1.0, "{least} us for 100 times {model} us less {deducted} us");
    let frontend = &finished.live.frontends[0];
    assert_eq!((frontend.name.as_str(), frontend.replies, finished.live.replies), ("vhost-user", 20, 20));
}

#[test]
fn the_deduction_adapts_to_the_client() {
    // As with NBD: the cost from the self-test at first, and the measured turnarounds after 32 requests.
    let cost = Cost { read: (4e6, 0.0), ..Cost::default() };
    let mean_us = |requests: u64| {
        let mut bench = Bench::new(|options| {
            options.no_delay = false;
            options.speed = "0.01".parse().unwrap();
            options.costs = Some(Costs { vhost_user: cost, ..Costs::default() });
        });
        let mut client = bench.client();
        (0..requests).for_each(|index| client.read(index % 256 * 4096, &mut [0; 4096]).unwrap());
        bench.stop().live.frontends[0].deducted_mean_us.unwrap()
    };
    assert_eq!(mean_us(20), 4000.0);
    let many = mean_us(100);
    assert!((1.0..3990.0).contains(&many), "{many} us were deducted");
}

/// Waits for `span`.
fn pause(span: Wall) {
    let timeout = rustix::event::Timespec { tv_sec: 0, tv_nsec: span.0 as i64 };
    rustix::event::poll(&mut [], Some(&timeout)).unwrap();
}

#[test]
fn several_queues_are_served_at_once() {
    let mut bench = Bench::new(|_| {});
    let shape = Shape { queues: 4, size: 64, bytes: 16384, looks: false };
    let mut client = Client::connect(&bench.path, shape).unwrap();
    assert!(Client::connect(&bench.path, Shape { queues: 5, ..shape }).is_err(), "there are four");
    for queue in 0..4 {
        for index in 0..21 {
            let data = [queue as u8 * 32 + index as u8; 512];
            client.ask(queue, 1, queue as u64 * 100 + index, 0, &data).unwrap().unwrap();
        }
        assert_eq!(client.ask(queue, 1, 0, 0, &[0; 512]).unwrap(), None, "64 descriptors are 21 requests");
    }
    // Send all requests before waiting for any reply.
    (0..4).for_each(|queue| client.send(queue).unwrap());
    for queue in 0..4 {
        for _ in 0..21 {
            client.wait(queue).unwrap();
            assert_eq!(client.reply(queue).unwrap().unwrap().status, 0);
        }
    }
    let mut read = [0; 512];
    client.read((3 * 100 + 20) * 512, &mut read).unwrap();
    assert_eq!(read, [3 * 32 + 20; 512]);
    assert_eq!(bench.stop().outcome.results.all().count(), 85);
}

/// A vhost-user client cannot connect this early, because QEMU would wait forever if the server were killed.
#[test]
fn early_nbd_clients_wait_for_the_device() {
    let folder = tempfile::tempdir().unwrap();
    let (nbd, vhost_user) = (folder.path().join("nbd.sock"), folder.path().join("vhost.sock"));
    let sockets = sockets(Some(&nbd), Some(&vhost_user));
    let one = UnixStream::connect(nbd).unwrap();
    assert!(UnixStream::connect(&vhost_user).is_err() && !vhost_user.exists());
    let server = Server::start(device(&[]), sockets, options()).unwrap();
    let other = UnixStream::connect(vhost_user).unwrap();
    let mut one = NbdClient::over(one).unwrap();
    let mut other = Client::over(other, Shape::default()).unwrap();
    one.write(8192, &[5; 4096], false).unwrap();
    let mut read = [0; 4096];
    other.read(8192, &mut read).unwrap();
    assert_eq!(read, [5; 4096]);
    drop((one, other));
    server.stop(true).unwrap();
}

#[test]
fn both_frontends_show_the_same_disk() {
    let mut bench = Bench::without_server();
    let nbd = bench.path.with_file_name("nbd.sock");
    bench.start_over(device(&[]), Some(&nbd), |_| {});
    let address = Address::Unix(nbd);
    let mut one = NbdClient::connect(&address).unwrap();
    let mut other = bench.client();
    one.write(8192, &[5; 4096], false).unwrap();
    let mut read = [0; 4096];
    other.read(8192, &mut read).unwrap();
    assert_eq!(read, [5; 4096]);
    other.write(8192, &[6; 4096]).unwrap();
    one.read(8192, &mut read).unwrap();
    assert_eq!(read, [6; 4096]);
    let count = |stream: &StreamResults| stream.operations.iter().flatten().map(|all| all.count()).sum();
    let finished = bench.stop();
    let streams: Vec<(&str, u64)> =
        finished.outcome.results.streams.iter().map(|stream| (stream.name.as_str(), count(stream))).collect();
    assert_eq!(streams, [("nbd", 2), ("vhost-user", 2)]);
}

#[test]
fn a_client_continues_with_the_next_server() {
    let mut bench = Bench::new(|_| {});
    let mut client = bench.client();
    client.write(0, &[1; 4096]).unwrap();
    bench.stop();
    assert!(client.write(0, &[2; 4096]).is_err(), "no server is running");
    bench.start(|_| {});
    client.reconnect(&bench.path).unwrap();
    // The request that no server had taken is performed now, and its reply comes first.
    client.write(4096, &[3; 4096]).unwrap();
    let mut read = [0; 8192];
    client.read(0, &mut read).unwrap();
    assert!(read[..4096].iter().all(|byte| *byte == 2) && read[4096..].iter().all(|byte| *byte == 3));
    assert_eq!(client.stop(0).unwrap(), 4, "all that was offered since was taken, by one server or the other");
}

/// The next server repeats the requests that a lost server had taken and not replied to, each once.
#[test]
fn requests_of_a_lost_server_are_repeated() {
    let mut bench = Bench::slow();
    let mut client = bench.client();
    for index in 0..8 {
        client.ask(0, 0, index * 8, 4096, &[]).unwrap().unwrap();
    }
    client.send(0).unwrap();
    until_in_progress(bench.server.as_ref().unwrap(), 8);
    assert_eq!(client.reply(0).unwrap(), None);
    // The server no longer knows this client, as if the server had been killed. The other server is new.
    let mut other = Bench::new(|_| {});
    client.reconnect(&other.path).unwrap();
    let mut slots = Vec::new();
    while slots.len() < 8 {
        client.wait(0).unwrap();
        while let Some(reply) = client.reply(0).unwrap() {
            assert_eq!(reply.status, 0);
            slots.push(reply.slot);
        }
    }
    slots.sort_unstable();
    assert_eq!(slots, (0..8).collect::<Vec<u16>>(), "each of the first eight places, once");
    client.read(0, &mut [0; 4096]).unwrap();
    drop(client);
    assert_eq!(other.stop().outcome.results.all().count(), 9);
    bench.stop();
}

/// Outstanding requests are replied to before a queue stops, and before the server stops.
#[test]
fn a_stopped_queue_has_completed_its_requests() {
    let mut bench = Bench::slow();
    let mut client = bench.client();
    for index in 0..4 {
        client.ask(0, 0, index * 8, 4096, &[]).unwrap().unwrap();
    }
    client.send(0).unwrap();
    until_in_progress(bench.server.as_ref().unwrap(), 4);
    assert_eq!(client.stop(0).unwrap(), 4);
    for _ in 0..4 {
        assert_eq!(client.reply(0).unwrap().unwrap().status, 0);
    }
    let mut last = bench.client();
    last.ask(0, 0, 0, 4096, &[]).unwrap().unwrap();
    last.send(0).unwrap();
    until_in_progress(bench.server.as_ref().unwrap(), 1);
    assert_eq!(bench.stop().outcome.results.all().count(), 5);
    assert_eq!(last.reply(0).unwrap().unwrap().status, 0);
}

#[test]
fn a_recording_replays_to_the_same_latencies() {
    for no_delay in [false, true] {
        let file = Shared::default();
        let recorder = Recorder::begin(Box::new(file.clone()), &["a test".to_owned()]).unwrap();
        let mut bench = Bench::new(|options| (options.no_delay, options.recorder) = (no_delay, Some(recorder)));
        let mut client = Client::connect(&bench.path, Shape { queues: 2, ..Shape::default() }).unwrap();
        let mut requests = 0;
        for round in 0..100u64 {
            // Never submit more at a time than the device accepts, so that only the device decides when each request
            // starts.
            let (queue, batch) = (round as usize % 2, 1 + round % 20);
            for index in 0..batch {
                let sector = (round * 7919 + index * 104_729) % 13_000 * 8;
                let requested = match (round + index) % 4 {
                    0 | 1 => client.ask(queue, 1, sector, 0, &[index as u8; 4096]),
                    _ => client.ask(queue, 0, sector, 8192, &[]),
                };
                requested.unwrap().expect("there is room in the ring");
            }
            client.send(queue).unwrap();
            let mut answered = 0;
            while answered < batch {
                client.wait(queue).unwrap();
                while let Some(reply) = client.reply(queue).unwrap() {
                    assert_eq!(reply.status, 0);
                    answered += 1;
                }
            }
            requests += batch;
        }
        drop(client);
        let finished = bench.stop();
        assert_eq!(finished.recorded, Some(Ok(requests)));
        assert_replays(&file.text(), requests, finished.digest, &mut device(&[]));
    }
}

#[test]
fn hostile_descriptors_do_not_affect_others() {
    const NEXT: u16 = 1;
    const WRITE: u16 = 2;
    const INDIRECT: u16 = 4;
    let mut bench = Bench::new(|options| options.memory = 64 << 10);
    let mut good = bench.client();
    good.write(0, &[7; 4096]).unwrap();
    type Chain<'a> = &'a [(u64, u32, u16, u16)];
    // An invalid chain without a place for a status ends the connection.
    let broken: [Chain; 5] = [
        &[(0, 16, NEXT, 1), (0, 512, NEXT | WRITE, 0)],
        &[(0, 16, 0, 0)],
        &[(0, 16, NEXT, 500)],
        &[(1 << 60, 16, INDIRECT, 0)],
        &[(0, 16, NEXT, 1), (u64::MAX - 2, 100, WRITE, 0)],
    ];
    for chain in broken {
        let mut hostile = bench.client();
        for (index, (at, bytes, flags, next)) in chain.iter().enumerate() {
            let at = if *at == 0 { hostile.slot(0, 0) } else { *at };
            hostile.describe(0, index as u16, at, *bytes, *flags, *next).unwrap();
        }
        hostile.offer(0, 0).unwrap();
        hostile.send(0).unwrap();
        let error = hostile.wait(0).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "{chain:?}");
    }
    // Heads outside the table, and an index far beyond the capacity of the ring.
    let mut hostile = bench.client();
    hostile.offer(0, 40_000).unwrap();
    hostile.send(0).unwrap();
    assert!(hostile.wait(0).is_err());
    let mut hostile = bench.client();
    (0..200).for_each(|_| hostile.offer(0, 0).unwrap());
    hostile.send(0).unwrap();
    assert!(hostile.wait(0).is_err());
    // Other invalid requests get a status: payload outside the memory, no space for a payload, an unknown type.
    let mut odd = bench.client();
    let at = odd.slot(0, 0);
    odd.describe(0, 0, at, 16, NEXT, 1).unwrap();
    odd.describe(0, 1, 1 << 60, 512, NEXT | WRITE, 2).unwrap();
    odd.describe(0, 2, at + 16, 1, WRITE, 0).unwrap();
    odd.offer(0, 0).unwrap();
    odd.send(0).unwrap();
    odd.wait(0).unwrap();
    assert_eq!(odd.used(0).unwrap(), Some((0, 1)));
    assert_eq!(vm_memory::Bytes::read_obj::<u8>(odd.memory(), vm_memory::GuestAddress(at + 16)).unwrap(), 1);
    assert_eq!(odd.call(77, 0, &mut [], &[]).unwrap(), 2);
    assert_eq!(odd.call(1, 128, &mut [], &vec![1; 64 << 10]).unwrap(), 1, "no memory is left for it");
    let mut read = [0; 4096];
    good.read(0, &mut read).unwrap();
    assert_eq!(read, [7; 4096]);
    bench.stop();
}

/// Clients without rings keep others out only for a while. Clients with rings keep their slots.
#[test]
fn idle_clients_make_room() {
    /// Sends a request for the features.
    const WORD: [u8; 12] = [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    let ask = |mut socket: &UnixStream| socket.write_all(&WORD).and_then(|()| socket.read_exact(&mut [0; 20]));
    let silent = |bench: &Bench| {
        let sockets = (0..7).map(|_| UnixStream::connect(&bench.path).unwrap());
        sockets.inspect(|socket| ask(socket).unwrap()).collect::<Vec<UnixStream>>()
    };
    let mut bench = Bench::new(|_| {});
    let _good = bench.client();
    let _silent = silent(&bench);
    for _ in 0..2 {
        assert!(Client::connect(&bench.path, Shape::default()).is_err(), "all places are taken");
    }
    let warnings = Mutex::new(Vec::new());
    let server = bench.server.as_ref().unwrap();
    let has_warned = || !warnings.lock().unwrap().is_empty();
    server.wait(has_warned, |warning| warnings.lock().unwrap().push(warning.to_owned())).unwrap();
    let expected = "a vhost-user client was refused because 8 others are connected; disconnect one, or retry when one \
                    has had no running ring for 30 s";
    assert_eq!(*warnings.lock().unwrap(), [expected]);
    bench.stop();

    // Here all clients have been idle for longer than the limit when another one connects.
    let mut bench = Bench::new(|options| options.idle_limit = Wall(1));
    let mut good = bench.client();
    let silent = silent(&bench);
    ask(&silent[0]).unwrap();
    let mut late = bench.client();
    late.write(0, &[1; 4096]).unwrap();
    let mut read = [0; 4096];
    good.read(0, &mut read).unwrap();
    assert_eq!(read, [1; 4096]);
    let lost: Vec<usize> = (0..7).filter(|index| ask(&silent[*index]).is_err()).collect();
    assert_eq!(lost, [1], "the one that has been idle longest gave up its place");
    bench.stop();
}

#[test]
fn hostile_messages_end_only_their_connection() {
    let mut bench = Bench::new(|_| {});
    let mut good = bench.client();
    good.write(0, &[7; 4096]).unwrap();
    let message = |code: u32, flags: u32, size: u32, body: &[u8]| {
        [&code.to_ne_bytes()[..], &flags.to_ne_bytes(), &size.to_ne_bytes(), body].concat()
    };
    for bytes in [
        vec![0xff; 64],
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        message(9999, 1, 0, &[]),
        // Messages that are too long or have a wrong length, nonexistent rings, and memory without a descriptor.
        message(1, 1, u32::MAX, &[]),
        message(8, 1, 3, &[1, 2, 3]),
        message(8, 1, 8, &[200, 0, 0, 0, 8, 0, 0, 0]),
        message(9, 1, 40, &[0; 40]),
        message(5, 1, 40, &[1; 40]),
        message(12, 1, 8, &[0; 8]),
        message(31, 1, 24, &[1; 24]),
        // Features that were not offered.
        message(2, 1, 8, &[0xff; 8]),
        // Half of a message, for which the server does not wait.
        message(8, 1, 8, &[1, 2, 3]),
        message(8, 1, 8, &[])[..7].to_vec(),
    ] {
        let mut socket = UnixStream::connect(&bench.path).unwrap();
        socket.write_all(&bytes).unwrap();
        let mut received = Vec::new();
        // The other end is closed, in any way.
        let _ = socket.read_to_end(&mut received);
        assert!(received.is_empty(), "{bytes:?}");
        good.read(0, &mut [0; 512]).unwrap();
    }
    // A client that does not read its replies does not block others.
    let mut deaf = UnixStream::connect(&bench.path).unwrap();
    deaf.set_nonblocking(true).unwrap();
    while deaf.write(&message(1, 1, 0, &[])).is_ok_and(|count| count == 12) {}
    let many: Vec<UnixStream> = (0..20).map(|_| UnixStream::connect(&bench.path).unwrap()).collect();
    let mut read = [0; 4096];
    good.read(0, &mut read).unwrap();
    assert_eq!(read, [7; 4096]);
    drop((many, deaf));
    // There are free slots again, once the server has noticed the disconnections.
    let again = (0..2000).find_map(|_| {
        pause(Wall::from_us(10_000));
        Client::connect(&bench.path, Shape::default()).ok()
    });
    again.unwrap().read(0, &mut read).unwrap();
    bench.stop();
}
