//! Tests of a server with NBD clients, over real sockets.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;

use floatgate_core::device_file;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::sim::request::Operation;
use floatgate_core::simulation::{Device, Options as DeviceOptions};
use floatgate_serve::client::Client;
use floatgate_serve::clock::Wall;
use floatgate_serve::nbd::wire::{command, export, flag};
use floatgate_serve::record::{Recorder, Sink};
use floatgate_serve::{Address, Cost, Costs, Options, ServeError, Server, SocketAddresses, Sockets};
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
    server: Server,
    _folder: TempDir,
}

impl Bench {
    fn new(change: impl FnOnce(&mut Options)) -> Bench {
        Bench::over(device(&[]), change)
    }

    fn over(device: Device, change: impl FnOnce(&mut Options)) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let sockets = sockets(Some(&folder.path().join("ssd.sock")), None);
        let mut options = options();
        change(&mut options);
        Bench { server: Server::start(device, sockets, options).unwrap(), _folder: folder }
    }

    fn client(&self) -> Client {
        Client::connect(&self.server.nbd()[0]).unwrap()
    }

    fn socket(&self) -> UnixStream {
        let Address::Unix(path) = &self.server.nbd()[0] else { unreachable!() };
        UnixStream::connect(path).unwrap()
    }
}

fn code(result: std::io::Result<()>) -> i32 {
    result.unwrap_err().raw_os_error().unwrap()
}

#[test]
fn data_are_readable_on_every_connection() {
    let bench = Bench::new(|_| {});
    let simple = Client::connect_simple(&bench.server.nbd()[0]).unwrap();
    let mut clients = [bench.client(), bench.client(), simple];
    let bytes = 1 << 20;
    let mut model = vec![0u8; bytes];
    let step = (0..3usize, 0..6, 0..(bytes as u64 / 512), 1..200u64, proptest::num::u8::ANY);
    let mut runner = TestRunner::new(Config { cases: 1, ..Config::default() });
    let clients = Mutex::new((&mut clients, &mut model));
    let run = |steps: Vec<(usize, i32, u64, u64, u8)>| {
        let mut held = clients.lock().unwrap();
        let (clients, model) = &mut *held;
        for (client, operation, sector, sectors, byte) in steps {
            let client = &mut clients[client];
            let start = (sector * 512) as usize;
            let end = (start + sectors as usize * 512).min(bytes);
            let length = (end - start) as u32;
            match operation {
                0 | 1 => {
                    client.write(start as u64, &vec![byte; end - start], operation == 1).unwrap();
                    model[start..end].fill(byte);
                }
                2 => {
                    client.trim(start as u64, length).unwrap();
                    model[trimmed(start..end)].fill(0);
                }
                3 => {
                    client.write_zeroes(start as u64, length, if byte % 2 == 0 { flag::NO_HOLE } else { 0 }).unwrap();
                    model[start..end].fill(0);
                }
                4 => client.flush().unwrap(),
                _ => {
                    let mut read = vec![0xee; end - start];
                    client.read(start as u64, &mut read).unwrap();
                    assert!(read == model[start..end], "{start}..{end}");
                }
            }
        }
        Ok(())
    };
    runner.run(&proptest::collection::vec(step, 600), run).unwrap();
    let finished = bench.server.stop(true).unwrap();
    assert!(finished.outcome.results.all().count() >= 500);
    finished.device.check_invariants().unwrap();
}

/// Returns the part of a range of bytes that a trim makes zero: whole mapping units in its whole sectors.
fn trimmed_within(range: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let start = range.start.next_multiple_of(512);
    trimmed(start..(range.end / 512 * 512).max(start))
}

#[test]
fn requests_of_any_alignment_are_served() {
    let bench = Bench::new(|_| {});
    let mut client = bench.client();
    let bytes = 64 << 10;
    let mut model = vec![0u8; bytes];
    client.write(0, &model, false).unwrap();
    let step = (0..5, 0..bytes, 1..3000usize, proptest::num::u8::ANY);
    let mut runner = TestRunner::new(Config { cases: 1, ..Config::default() });
    let held = Mutex::new((&mut client, &mut model));
    let run = |steps: Vec<(i32, usize, usize, u8)>| {
        let mut held = held.lock().unwrap();
        let (client, model) = &mut *held;
        for (operation, start, length, byte) in steps {
            let end = (start + length).min(bytes);
            let (at, length) = (start as u64, (end - start) as u32);
            match operation {
                0 => {
                    client.write(at, &vec![byte; end - start], byte % 4 == 0).unwrap();
                    model[start..end].fill(byte);
                }
                1 => {
                    client.write_zeroes(at, length, if byte % 2 == 0 { flag::NO_HOLE } else { 0 }).unwrap();
                    model[start..end].fill(0);
                }
                2 => {
                    client.trim(at, length).unwrap();
                    model[trimmed_within(start..end)].fill(0);
                }
                3 => {
                    let extents = client.status(at, length, false).unwrap();
                    assert_eq!(extents.iter().map(|(length, _)| length).sum::<u32>(), length);
                }
                _ => {
                    let mut read = vec![0xee; end - start];
                    client.read(at, &mut read).unwrap();
                    assert!(read == model[start..end], "{start}..{end}");
                }
            }
        }
        Ok(())
    };
    runner.run(&proptest::collection::vec(step, 600), run).unwrap();
    let finished = bench.server.stop(true).unwrap();
    assert!(finished.outcome.results.all().count() > 600, "reads that complete writes are counted");
    assert!(finished.warnings.iter().any(|text| text.contains("were not whole sectors of 512 B")));
}

#[test]
fn changes_of_one_sector_do_not_overwrite_one_another() {
    for simple in [false, true] {
        let bench = Bench::new(|_| {});
        let address = &bench.server.nbd()[0];
        let connect = || if simple { Client::connect_simple(address) } else { Client::connect(address) };
        let mut clients = [connect().unwrap(), connect().unwrap()];
        // Single bytes of two sectors, and whole sectors next to them, all outstanding at once.
        for at in 0..600usize {
            let client = &mut clients[at % 2];
            client.ask(command::WRITE, 0, 100 + at as u64, 1, &[at as u8]);
            if at % 25 == 0 {
                client.ask(command::WRITE, 0, 1024, 512, &[7; 512]);
            }
        }
        for client in &mut clients {
            client.send().unwrap();
        }
        for client in &mut clients {
            for _ in 0..300 + 12 {
                assert_eq!(client.reply(|_| 0).unwrap().error, 0);
            }
        }
        let mut read = vec![0; 600];
        clients[0].read(100, &mut read).unwrap();
        assert!(read.iter().enumerate().all(|(at, byte)| *byte == at as u8), "{read:?}");
        let mut read = vec![0; 510];
        clients[1].read(1025, &mut read).unwrap();
        assert_eq!(read, [7; 510]);
    }
}

#[test]
fn long_requests_and_many_at_once_are_served() {
    let bench = Bench::new(|_| {});
    let mut client = bench.client();
    let data: Vec<u8> = (0..32 << 20).map(|index: u32| (index / 509) as u8).collect();
    client.write(0, &data, false).unwrap();
    let mut read = vec![0; data.len()];
    client.read(0, &mut read).unwrap();
    assert!(read == data);
    // More requests than the server keeps outstanding for one client, and more bytes than it allows at a time.
    let bytes = 128 << 10;
    for index in 0..1500u64 {
        client.ask(command::READ, 0, index % 200 * bytes, bytes as u32, &[]);
    }
    client.send().unwrap();
    for _ in 0..1500 {
        let reply = client.reply(|_| bytes as usize).unwrap();
        assert_eq!((reply.error, reply.data.len()), (0, bytes as usize));
    }
    client.disconnect().unwrap();
    bench.server.stop(true).unwrap();
}

#[test]
fn block_status_reports_allocation() {
    let bench = Bench::new(|_| {});
    let mut client = bench.client();
    let size = client.bytes() as u32;
    assert_eq!(client.status(0, size, false).unwrap(), [(size, 3)]);
    client.write(8192, &[1; 4096], false).unwrap();
    client.write(12288, &[1; 512], false).unwrap();
    client.write_zeroes(65536, 8192, flag::NO_HOLE).unwrap();
    let expected = [(8192, 3), (8192, 0), (65536 - 16384, 3), (8192, 0), (size - 65536 - 8192, 3)];
    assert_eq!(client.status(0, size, false).unwrap(), expected);
    assert_eq!(client.status(0, size, true).unwrap(), expected[..1]);
    client.trim(8192, 4096).unwrap();
    client.write_zeroes(65536, 8192, 0).unwrap();
    assert_eq!(client.status(4096, 32768, false).unwrap(), [(8192, 3), (4096, 0), (20480, 3)]);
    let flags = export::MULTI_CONN | export::FAST_ZERO | export::FUA | export::TRIM | export::FLUSH;
    assert_eq!(client.flags() & flags, flags);
}

#[test]
fn invalid_requests_do_not_affect_others() {
    let bench = Bench::new(|options| options.memory = 64 << 10);
    let mut client = bench.client();
    let size = client.bytes();
    let mut sector = [0; 512];
    assert_eq!(code(client.read(size, &mut sector)), 22);
    assert_eq!(code(client.read(size - 100, &mut sector)), 22);
    assert_eq!(code(client.write(size - 512, &[1; 1024], false)), 28);
    client.write(0, &vec![7; 64 << 10], false).unwrap();
    assert_eq!(code(client.write(1 << 20, &sector, false)), 28, "no memory is left for it");
    client.trim(0, 4096).unwrap();
    client.write(1 << 20, &[9; 512], false).unwrap();
    client.read(1 << 20, &mut sector).unwrap();
    assert_eq!(sector, [9; 512]);
    // A payload that is too long is skipped, whatever it contains.
    let long = vec![0x25; 40 << 20];
    let reply = client.call(command::WRITE, 0, 0, long.len() as u32, &long).unwrap();
    assert_eq!(reply.error, 22);
    client.read(1 << 20, &mut sector).unwrap();
    assert_eq!(sector, [9; 512]);
}

#[test]
fn hostile_clients_lose_only_their_own_connection() {
    let bench = Bench::new(|_| {});
    let mut good = bench.client();
    good.write(0, &[1; 4096], false).unwrap();
    for garbage in [vec![0xff; 4096], vec![0; 100], b"GET / HTTP/1.1\r\n\r\n".to_vec()] {
        let mut socket = bench.socket();
        socket.write_all(&garbage).unwrap();
        let mut received = Vec::new();
        // The other end is closed, in any way.
        let _ = socket.read_to_end(&mut received);
    }
    // A client that disconnects in the middle of a request, or does not read its replies, does no harm.
    let mut rude = bench.client();
    for index in 0..64 {
        rude.ask(command::READ, 0, index * 4096, 128 << 10, &[]);
    }
    rude.send().unwrap();
    drop(rude);
    let mut silent = bench.client();
    for index in 0..64 {
        silent.ask(command::READ, 0, index * 4096, 128 << 10, &[]);
    }
    silent.send().unwrap();
    let many: Vec<UnixStream> = (0..100).map(|_| bench.socket()).collect();
    let mut read = [0; 4096];
    good.read(0, &mut read).unwrap();
    assert_eq!(read, [1; 4096]);
    drop((many, silent));
    assert!(bench.client().bytes() > 0, "there is room again");
    bench.server.stop(true).unwrap();
}

#[test]
fn tcp_is_limited_to_this_machine() {
    let at = |address: &str| {
        Sockets::open(&SocketAddresses { nbd: vec![address.parse().unwrap()], ..SocketAddresses::default() })
    };
    let error = at("0.0.0.0:0").err().unwrap();
    assert!(matches!(error, ServeError::Remote { .. }));
    assert!(error.to_string().contains("--allow-remote 0.0.0.0"), "{error}");
    let server = Server::start(device(&[]), at("127.0.0.1:0").unwrap(), options()).unwrap();
    let mut client = Client::connect(&server.nbd()[0]).unwrap();
    client.write(4096, &[3; 4096], true).unwrap();
    let mut read = [0; 4096];
    client.read(4096, &mut read).unwrap();
    assert_eq!(read, [3; 4096]);
    let Address::Tcp(address) = server.nbd()[0] else { unreachable!() };
    server.stop(true).unwrap();
    assert!(TcpStream::connect(address).is_err());
}

/// Idle clients can fill all slots, but keep others out only for a while.
#[test]
fn idle_clients_make_room() {
    let silent = |bench: &Bench| (0..64).map(|_| bench.client()).collect::<Vec<Client>>();
    let bench = Bench::new(|_| {});
    let _silent = silent(&bench);
    let refused = Client::connect(&bench.server.nbd()[0]).err().unwrap().to_string();
    assert!(refused.contains("64 clients are connected"), "{refused}");

    // Here all clients have been idle for longer than the limit when another one connects.
    let bench = Bench::new(|options| options.idle_limit = Wall(1));
    let mut silent = silent(&bench);
    silent[0].flush().unwrap();
    let mut late = bench.client();
    late.write(0, &[1; 4096], true).unwrap();
    let lost: Vec<usize> = (0..64).filter(|index| silent[*index].flush().is_err()).collect();
    assert_eq!(lost, [1], "the one that has been idle longest gave up its place");
}

#[test]
fn replies_take_the_latency_of_the_device() {
    // At a hundredth of real time, a read of 45.48 us takes 4.548 ms, regardless of other load on the host.
    let bench = Bench::new(|options| {
        options.no_delay = false;
        options.speed = "0.01".parse().unwrap();
    });
    let cost = bench.server.costs().nbd;
    let deducted = cost.us();
    assert!(deducted.iter().all(|us| (0.5..5000.0).contains(us)), "{deducted:?}");
    let mut client = bench.client();
    let mut read = [0; 4096];
    let mut least = f64::MAX;
    for index in 0..20 {
        let start = Wall::now();
        client.read(index * 4096, &mut read).unwrap();
        least = least.min(Wall::now().since(start).as_us());
    }
    let finished = bench.server.stop(true).unwrap();
    let model = finished.outcome.results.all().latency.min_us();
    assert!((45.0..46.0).contains(&model), "{model}");
    // The deduction is that for a client which has slept equally long.
    let deducted = cost.of(Operation::Read, 4096, Wall((1e5 * model) as u64), false).as_us();
    assert!(least >= 100.0 * model - deducted - 1.0, "{least} us for 100 times {model} us less {deducted} us");
    assert_eq!(finished.live.replies, 20);
    assert_eq!((finished.live.pace.as_str(), finished.live.speed), ("timed", 0.01));
}

#[test]
fn the_deduction_adapts_to_the_client() {
    // At first, the cost from the self-test is deducted, and after 32 requests the measured turnarounds. Even on a busy
    // machine, they are shorter than 4 ms, so the client counts as one without work of its own.
    let cost = Cost { read: (4e6, 0.0), ..Cost::default() };
    let mean_us = |requests: u64| {
        let bench = Bench::new(|options| {
            options.no_delay = false;
            options.speed = "0.01".parse().unwrap();
            options.costs = Some(Costs { nbd: cost, ..Costs::default() });
        });
        let mut client = bench.client();
        (0..requests).for_each(|index| client.read(index % 256 * 4096, &mut [0; 4096]).unwrap());
        bench.server.stop(true).unwrap().live.frontends[0].deducted_mean_us.unwrap()
    };
    assert_eq!(mean_us(20), 4000.0);
    let many = mean_us(100);
    assert!((1.0..3990.0).contains(&many), "{many} us were deducted");
}

/// Reads of 220 us and of 5 ms, at a ten-thousandth of real time. The latter would take longer than a server waits at
/// shutdown.
#[test]
fn outstanding_requests_complete_at_shutdown() {
    for (read, least, most) in [("nand.read=200us", 2.0, 4.9), ("nand.read=5ms", 4.9, 45.0)] {
        let file = Shared::default();
        let recorder = Recorder::begin(Box::new(file.clone()), &[]).unwrap();
        let bench = Bench::over(device(&[read]), |options| {
            (options.no_delay, options.speed) = (false, "0.0001".parse().unwrap());
            options.recorder = Some(recorder);
        });
        let mut client = bench.client();
        let start = Wall::now();
        for index in 0..8 {
            client.ask(command::READ, 0, index * 4096, 4096, &[]);
        }
        client.send().unwrap();
        until_in_progress(&bench.server, 8);
        let finished = bench.server.stop(true).unwrap();
        let seconds = Wall::now().since(start).as_us() / 1e6;
        assert!((least..most).contains(&seconds), "{read}: {seconds} s");
        assert_eq!((finished.outcome.results.all().count(), finished.recorded), (8, Some(Ok(8))));
        for _ in 0..8 {
            assert_eq!(client.reply(|_| 4096).unwrap().error, 0);
        }
        assert!(client.reply(|_| 0).is_err(), "and then it is over");
        assert_replays(&file.text(), 8, finished.digest, &mut device(&[read]));
    }
}

/// Serves a mix of requests on the device, and returns the recording.
fn recorded(overrides: &[&str], no_delay: bool) -> (Vec<u8>, u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let file = Shared::default();
    let recorder = Recorder::begin(Box::new(file.clone()), &["a test".to_owned()]).unwrap();
    let options = Options { no_delay, recorder: Some(recorder), ..options() };
    let server =
        Server::start(device(overrides), sockets(Some(&folder.path().join("ssd.sock")), None), options).unwrap();
    let mut client = Client::connect(&server.nbd()[0]).unwrap();
    let units = client.bytes() / 4096;
    let mut requests = 0;
    for round in 0..120u64 {
        // Never submit more at a time than the device accepts, so that only the device decides when each request
        // starts.
        let batch = 1 + round % 24;
        for index in 0..batch {
            let place = (round * 7919 + index * 104_729) % (units - 16);
            let offset = place * 4096;
            let data = vec![index as u8; 16384];
            match (round + index) % 8 {
                0 | 1 => client.ask(command::WRITE, 0, offset, 4096, &data[..4096]),
                2 => client.ask(command::WRITE, flag::FUA, offset + 512, 1024, &data[..1024]),
                3 => client.ask(command::WRITE, 0, offset, 16384, &data),
                4 if index == 0 => client.ask(command::FLUSH, 0, 0, 0, &[]),
                4 => client.ask(command::WRITE_ZEROES, 0, offset, 8192, &[]),
                5 => client.ask(command::TRIM, 0, offset, 8192, &[]),
                _ => client.ask(command::READ, 0, offset, 8192, &[]),
            };
        }
        client.send().unwrap();
        for _ in 0..batch {
            assert_eq!(client.reply(|_| 0).unwrap().error, 0);
        }
        requests += batch;
    }
    client.disconnect().unwrap();
    let finished = server.stop(true).unwrap();
    assert_eq!(finished.recorded, Some(Ok(requests)));
    (file.text(), requests, finished.digest)
}

/// A recording of a live run replays with the same latencies, to the picosecond.
#[test]
fn a_recording_replays_to_the_same_latencies() {
    let linked = ["host.link_bandwidth=300MB/s", "host.link_latency=5us"];
    for overrides in [&[][..], &linked, &["nand.concurrency=plane"], &["buffer.capacity=256KiB"]] {
        for no_delay in [false, true] {
            let (text, requests, digest) = recorded(overrides, no_delay);
            assert_replays(&text, requests, digest, &mut device(overrides));
        }
    }
}

/// A file on a disk with space for this number of bytes.
struct Narrow(usize);

impl Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Sink for Narrow {
    fn finish(self: Box<Self>) -> std::io::Result<()> {
        panic!("an incomplete file must not appear at its path")
    }
}

#[test]
fn a_failed_recording_does_not_stop_the_server() {
    let recorder = Recorder::begin(Box::new(Narrow(100_000)), &[]).unwrap();
    let bench = Bench::new(|options| options.recorder = Some(recorder));
    let mut client = bench.client();
    let mut page = [0; 4096];
    let began = Wall::now();
    let warned = |server: &Server| server.engine().lock().unwrap().warnings();
    while warned(&bench.server).is_empty() {
        client.read(0, &mut page).unwrap();
        assert!(Wall::now().since(began) < Wall::from_us(60_000_000), "100 kB are a few thousand requests");
    }
    let reported = Mutex::new(Vec::new());
    let trouble = bench
        .server
        .wait(|| !reported.lock().unwrap().is_empty(), |what| reported.lock().unwrap().push(what.to_owned()));
    assert_eq!((trouble, reported.into_inner().unwrap()), (Ok(()), warned(&bench.server)));
    assert!(warned(&bench.server)[0].starts_with("the recording has stopped"), "{:?}", warned(&bench.server));
    for _ in 0..3000 {
        client.read(0, &mut page).unwrap();
    }
    let finished = bench.server.stop(true).unwrap();
    assert!(matches!(finished.recorded, Some(Err(_))), "{:?}", finished.recorded);
}
