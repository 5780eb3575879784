//! A server and its vhost-user clients, over real sockets and shared memory.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use floatgate_core::config;
use floatgate_core::device::{Device, Options as DeviceOptions};
use floatgate_core::precondition::{Precondition, precondition};
use floatgate_serve::clock::Wall;
use floatgate_serve::vhost::client::{Client, Shape};
use floatgate_serve::{Options, Server};
use proptest::test_runner::{Config, TestRunner};
use tempfile::TempDir;

fn device() -> Device {
    let config = config::load("tiny", &[]).unwrap();
    let mut device = Device::new(config, DeviceOptions { attribution: true, ..DeviceOptions::default() }).unwrap();
    precondition(&mut device, Precondition::Fill, 1, &mut |_| true).unwrap();
    device
}

/// A server, and the folder of its socket.
struct Bench {
    server: Option<Server>,
    path: PathBuf,
    _folder: TempDir,
}

impl Bench {
    fn new(change: impl FnOnce(&mut Options)) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vhost.sock");
        let mut bench = Bench { server: None, path, _folder: folder };
        bench.start(change);
        bench
    }

    fn start(&mut self, change: impl FnOnce(&mut Options)) {
        let mut options = Options {
            nbd: Vec::new(),
            vhost_user: Some(self.path.clone()),
            vhost_queues: 4,
            allow_remote: None,
            no_delay: true,
            speed: Default::default(),
            no_spin: true,
            memory: u64::MAX,
            recorder: None,
        };
        change(&mut options);
        self.server = Some(Server::start(device(), options).unwrap());
    }

    fn client(&self) -> Client {
        Client::connect(&self.path, Shape::default()).unwrap()
    }

    fn stop(&mut self) -> floatgate_serve::Finished {
        self.server.take().unwrap().stop(true).unwrap()
    }
}

#[test]
fn what_is_written_is_read() {
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
                2 | 3 => model[start..end].fill(0),
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
fn the_disk_says_what_it_is() {
    let bench = Bench::new(|_| {});
    let mut client = bench.client();
    let config = client.config().to_vec();
    let number = |at: usize| u32::from_le_bytes(config[at..at + 4].try_into().unwrap());
    let bytes = bench.server.as_ref().unwrap().vhost_user().map(|_| client.bytes()).unwrap();
    assert_eq!(bytes, device().config().logical_bytes());
    // Sectors of 512 B in units of 4 KiB: 2^3 of them.
    assert_eq!((number(20), config[24], number(28)), (512, 3, 8));
    assert_eq!(u16::from_le_bytes([config[34], config[35]]), 4, "queues");
    assert_eq!([36, 40, 44].map(number), [(bytes / 512) as u32, 1, 8], "discard: longest, ranges, alignment");
    assert_eq!((number(48), number(52), config[56]), (65536, 1, 1), "zeroes: longest, ranges, by unmapping");
    assert_eq!(client.id().unwrap(), "tiny");
    assert!(client.write(bytes, &[1; 512]).is_err() && client.discard(bytes - 512, 1024).is_err());
    client.write(bytes - 512, &[1; 512]).unwrap();
}

#[test]
fn answers_take_the_device_its_time() {
    // A hundredth of the clock's speed: a read of 45.48 us takes 4.548 ms, whatever the host is busy with.
    let mut bench = Bench::new(|options| {
        options.no_delay = false;
        options.speed = "0.01".parse().unwrap();
    });
    let deducted = bench.server.as_ref().unwrap().costs().vhost_user.us();
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
    let model = finished.outcome.results.all().latency.quantile_us(0.5);
    assert!((45.0..46.0).contains(&model), "{model}");
    assert!(least >= 100.0 * model - deducted[0] - 1.0, "{least} us for 100 times {model} us");
    let front = &finished.live.fronts[0];
    assert_eq!((front.name.as_str(), front.answers, finished.live.answers), ("vhost-user", 20, 20));
}
