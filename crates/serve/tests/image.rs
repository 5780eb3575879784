//! Tests of flash images: contents after power cuts, shutdowns and file errors.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use floatgate_core::device_file::{self, DeviceConfig};
use floatgate_core::flash::{BlockState, FlashEvent, Record, RecordKind};
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::sim::id::{BlockId, Lpn, Ppn};
use floatgate_core::simulation::{Device, Options as DeviceOptions};
use floatgate_serve::client::Client;
use floatgate_serve::clock::Wall;
use floatgate_serve::image::disk::Disk;
use floatgate_serve::image::flash::{Content, Flash};
use floatgate_serve::image::inspect::Ending;
use floatgate_serve::image::layout::{Layout, SLOT};
use floatgate_serve::image::{ImageAt, ImageError, Opened, Recovered, Store};
use floatgate_serve::nbd::wire::export;
use floatgate_serve::vhost::client::{Client as VhostClient, Shape};
use floatgate_serve::{Finished, Options, Server};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::common::disk::{GRAIN, TestDisk};
use crate::common::options::{options, sockets};
use crate::common::truth::{self, Truth};

/// 2 x 2 chips with 2 planes of 8 blocks of 16 mapping units: 4 MiB, of which 1.8 MiB are visible to the host.
const SMALL: [&str; 4] =
    ["geometry.blocks=8", "geometry.pages=16", "capacity.spare=0.55", "durability.trim_journal=true"];

pub fn load(overrides: &[&str]) -> DeviceConfig {
    let all: Vec<String> = SMALL.iter().chain(overrides).map(|text| (*text).to_owned()).collect();
    device_file::load("tiny", &all).unwrap()
}

fn made_with() -> DeviceOptions {
    DeviceOptions { seed: 3, attribution: true, ..DeviceOptions::default() }
}

/// Creates or recovers a device with its image.
pub fn begin(disk: &TestDisk, config: &DeviceConfig) -> Result<(Device, Store, Option<Recovered>), ImageError> {
    begin_with(disk, config, false)
}

fn begin_with(
    disk: &TestDisk,
    config: &DeviceConfig,
    syncs: bool,
) -> Result<(Device, Store, Option<Recovered>), ImageError> {
    if disk.size().unwrap() == 0 {
        let opened = Opened::create_on(Box::new(disk.clone()), config, syncs)?;
        let mut device = Device::new(config.clone(), made_with()).unwrap();
        let store = opened.begin(&mut device)?;
        return Ok((device, store, None));
    }
    let opened = Opened::on(Box::new(disk.clone()), config, syncs)?;
    let (device, store, recovered) = opened.recover(config.clone(), made_with(), false)?;
    Ok((device, store, Some(recovered)))
}

/// A device that is served from its image.
pub struct Bench {
    server: Server,
    folder: TempDir,
    recovered: Option<Recovered>,
}

impl Bench {
    pub fn new(disk: &TestDisk, config: &DeviceConfig) -> Bench {
        let (device, store, recovered) = begin(disk, config).unwrap();
        Bench::over(device, store, recovered)
    }

    /// Serves a device whose flushes wait for the disk if `syncs`.
    pub fn with(disk: &TestDisk, config: &DeviceConfig, syncs: bool) -> Result<Bench, ImageError> {
        let (device, store, recovered) = begin_with(disk, config, syncs)?;
        Ok(Bench::over(device, store, recovered))
    }

    fn over(device: Device, store: Store, recovered: Option<Recovered>) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("ssd.sock");
        let options = Options { memory: 0, image: Some((store, made_with())), ..options() };
        Bench { server: Server::start(device, sockets(Some(&socket), None), options).unwrap(), folder, recovered }
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.server.nbd()[0]).unwrap()
    }

    pub fn end(self) -> Finished {
        let finished = self.server.stop(true).unwrap();
        drop(self.folder);
        finished.device.check_invariants().unwrap();
        finished
    }
}

/// Returns the number of repetitions: the value of `FLOATGATE_KILLS`, which `make soak` sets, or else `usual`.
pub fn times(usual: u64) -> u64 {
    std::env::var("FLOATGATE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Mapping schemes that merge blocks.
pub const MERGING: [&str; 4] = [
    "mapping.scheme=block",
    "mapping.scheme={ bast = { logs = 4 } }",
    "mapping.scheme={ fast = { logs = { sequential = 2, random = 4 } } }",
    "mapping.scheme={ last = { logs = { sequential = 2, hot = 3, cold = 2 } } }",
];

#[test]
fn data_survive_a_restart() {
    // The checkpoint option may change between starts.
    let checkpoints = [&[][..], &["durability.checkpoint=16KiB"], &[], &["durability.checkpoint=8KiB"]];
    assert_survives_restarts(&checkpoints.map(load));
}

#[test]
fn data_of_merged_blocks_survive_a_restart() {
    for scheme in MERGING {
        println!("{scheme}");
        let options = [scheme, "gc.soft_threshold=2", "capacity.spare=0.7"];
        assert_survives_restarts(&[(); 4].map(|()| load(&options)));
    }
}

fn assert_survives_restarts(configs: &[DeviceConfig; 4]) {
    let disk = TestDisk::default();
    let mut truth = Truth::new(configs[0].logical_bytes(), 4096, 1);
    for (round, config) in configs.iter().enumerate() {
        let bench = Bench::new(&disk, config);
        assert_eq!(bench.recovered.as_ref().map(|found| found.after_shutdown), (round > 0).then_some(true));
        let mut client = bench.client();
        truth.check_newest(&mut client);
        for _ in 0..60 {
            truth.step(&mut client).unwrap();
        }
        truth.check_newest(&mut client);
        assert_eq!(bench.end().image, Some(Ok(())));
    }
}

/// Devices for power-cut tests.
const CUT: [&[&str]; 16] = [
    &[],
    &["buffer.capacity=128KiB"],
    &["buffer.capacity=128KiB", "buffer.power_loss_protection=true"],
    &[
        "geometry.page_size=16KiB",
        "buffer.capacity=256KiB",
        "mapping.block_summary.last_page=512B",
        "capacity.spare=0.6",
    ],
    &["geometry.mapping_unit=8KiB"],
    &["nand.advanced.multi_plane_program=blind", "nand.advanced.copy_back=wise"],
    &["mapping.scheme.dftl.cache=8KiB", "geometry.blocks=32", "capacity.spare=0.7"],
    &["durability.checkpoint=32KiB", "capacity.spare=0.6"],
    &[
        "durability.checkpoint=8KiB",
        "geometry.page_size=16KiB",
        "buffer.capacity=256KiB",
        "mapping.block_summary.last_page=512B",
        "capacity.spare=0.65",
    ],
    &["geometry.blocks=32", "faults={ factory_bad = 1, program_rate = 0.002, erase_rate = 0.005 }"],
    &["mapping.scheme=block", "gc.soft_threshold=2", "durability.checkpoint=32KiB", "capacity.spare=0.7"],
    &["mapping.scheme={ bast = { logs = 4 } }", "buffer.capacity=128KiB"],
    &["mapping.scheme={ fast = { logs = { sequential = 2, random = 4 } } }", "mapping.block_summary.last_page=512B"],
    &["mapping.scheme={ last = { logs = { sequential = 2, hot = 3, cold = 2 } } }"],
    &[
        "mapping.scheme=block",
        "gc.soft_threshold=2",
        "geometry.blocks=32",
        "capacity.spare=0.8",
        "faults={ factory_bad = 1, program_rate = 0.002, erase_rate = 0.005 }",
    ],
    &[
        "mapping.scheme={ fast = { logs = { sequential = 2, random = 4 } } }",
        "geometry.blocks=32",
        "capacity.spare=0.8",
        "faults={ factory_bad = 1, program_rate = 0.002, erase_rate = 0.005 }",
    ],
];

#[test]
fn after_a_power_cut_each_unit_is_flushed_or_newer() {
    for (index, overrides) in CUT.into_iter().enumerate() {
        println!("{overrides:?}");
        let disk = TestDisk::default();
        let config = load(overrides);
        let mut truth = Truth::new(config.logical_bytes(), config.unit_bytes() as usize, index as u64);
        truth.protected = overrides.iter().any(|option| option.contains("power_loss_protection"));
        let bench = Bench::new(&disk, &config);
        let mut client = bench.client();
        let mut accounted = 0;
        // Failing blocks are used up in the end. Then the device no longer accepts writes.
        let cuts = if config.faults.is_some() { times(8).min(40) } else { times(8) };
        for round in 0..cuts {
            for _ in 0..truth.luck.below(40) {
                truth
                    .step(&mut client)
                    .unwrap_or_else(|error| panic!("{overrides:?}: {error} {:?}", bench.server.wait(|| true, |_| ())));
            }
            let cut = bench.server.power_cut().unwrap();
            assert!(!cut.recovered.after_shutdown, "round {round}");
            accounted += cut.recovered.device.blocks_skipped;
            assert!(client.flush().is_err(), "connections are closed by a power cut");
            client = bench.client();
            truth.check(&mut client);
        }
        truth.check_newest(&mut client);
        assert_eq!(accounted > 0, config.durability.checkpoint.is_some(), "{overrides:?}: blocks that were not read");
        let finished = bench.end();
        assert_eq!((finished.image, finished.power_cuts, finished.unreadable), (Some(Ok(())), cuts, 0));
        let bench = Bench::new(&disk, &config);
        truth.check_newest(&mut bench.client());
    }
}

#[test]
fn a_full_disk_gives_errors_and_loses_nothing() {
    let disk = TestDisk::default();
    let config = load(&["buffer.capacity=64KiB"]);
    let bench = Bench::new(&disk, &config);
    let mut client = bench.client();
    client.write(0, &[1; 65536], true).unwrap();
    client.flush().unwrap();
    disk.set(|platter| platter.room = Some(platter.grains.len() + 3));
    let mut errors = Vec::new();
    for at in 1..64u64 {
        let written = client.write(at % 28 * 65536, &[2; 65536], false).and_then(|()| client.flush());
        errors.extend(written.err().and_then(|error| error.raw_os_error()));
    }
    assert!(errors.iter().all(|error| *error == 28) && errors.len() > 50, "{errors:?}");
    let warnings = bench.server.engine().lock().unwrap().warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("cannot write the image file"), "{warnings:?}");
    let mut read = vec![0; 65536];
    client.read(0, &mut read).unwrap();
    assert!(read.iter().all(|byte| *byte == 1));
    // After a kill at this point, everything that was flushed is available.
    let killed = Bench::new(&disk.copy(), &config);
    killed.client().read(0, &mut read).unwrap();
    assert!(read.iter().all(|byte| *byte == 1));
    // Writes succeed again when there is space.
    disk.set(|platter| platter.room = None);
    pause();
    client.write(0, &[3; 65536], true).unwrap();
    client.flush().unwrap();
    let finished = bench.end();
    assert_eq!((finished.image, finished.unreadable, finished.damaged), (Some(Ok(())), 0, 0));
    assert_eq!(finished.live.payload_errors, errors.len() as u64, "each that a client saw, as a write or as its flush");
    Bench::new(&disk, &config).client().read(0, &mut read).unwrap();
    assert!(read.iter().all(|byte| *byte == 3));
}

#[test]
fn a_broken_disk_gives_errors_and_a_warning() {
    let disk = TestDisk::default();
    let config = load(&[]);
    let bench = Bench::new(&disk, &config);
    let mut client = bench.client();
    client.write(0, &[1; 8192], true).unwrap();
    disk.set(|platter| platter.error = Some(io::ErrorKind::Other));
    assert_eq!(client.write(4096, &[2; 4096], true).unwrap_err().raw_os_error(), Some(5));
    assert_eq!(client.flush().unwrap_err().raw_os_error(), Some(5));
    let mut read = [0; 4096];
    client.read(4096, &mut read).unwrap();
    assert_eq!(read, [2; 4096], "it is read from memory");
    assert!(matches!(bench.end().image, Some(Err(_))));
    disk.set(|platter| platter.error = None);
    let bench = Bench::new(&disk, &config);
    bench.client().read(4096, &mut read).unwrap();
    assert_eq!(read, [1; 4096], "the file is as it was when its disk broke");
}

/// A flush waits for the machine's own disk only if this was requested.
#[test]
fn a_flush_waits_for_the_machines_disk_if_requested() {
    for syncs in [true, false] {
        let disk = TestDisk::default();
        let config = load(&["buffer.capacity=64KiB"]);
        let mut device = Device::new(config.clone(), made_with()).unwrap();
        let store = Opened::create_on(Box::new(disk.clone()), &config, syncs).unwrap().begin(&mut device).unwrap();
        let bench = Bench::over(device, store, None);
        let mut client = bench.client();
        let seen = || disk.0.lock().unwrap().syncs.len();
        let before = seen();
        client.write(0, &[1; 8192], false).unwrap();
        client.flush().unwrap();
        assert_eq!(seen(), before + usize::from(syncs), "a flush");
        client.write(8192, &[2; 4096], true).unwrap();
        assert_eq!(seen(), before + 2 * usize::from(syncs), "a FUA write");
        bench.end();
    }
}

/// After a failed sync, the kernel may have dropped data. Only reopening the file shows the contents of the disk.
#[test]
fn after_a_failed_sync_the_image_accepts_nothing() {
    let disk = TestDisk::default();
    let config = load(&["buffer.capacity=64KiB"]);
    let mut device = Device::new(config.clone(), made_with()).unwrap();
    let store = Opened::create_on(Box::new(disk.clone()), &config, true).unwrap().begin(&mut device).unwrap();
    let bench = Bench::over(device, store, None);
    let mut client = bench.client();
    client.write(0, &[1; 4096], true).unwrap();
    disk.set(|platter| platter.sync_error = Some(io::ErrorKind::Other));
    assert_eq!(client.write(4096, &[2; 4096], true).unwrap_err().raw_os_error(), Some(5));
    disk.set(|platter| platter.sync_error = None);
    for power_is_cut in [false, true] {
        pause();
        if power_is_cut {
            bench.server.power_cut().unwrap();
            client = bench.client();
        }
        assert_eq!(client.flush().unwrap_err().raw_os_error(), Some(5), "{power_is_cut}");
        assert_eq!(client.write(8192, &[3; 4096], false).unwrap_err().raw_os_error(), Some(5), "{power_is_cut}");
    }
    assert!(matches!(bench.end().image, Some(Err(_))));
    let bench = Bench::new(&disk, &config);
    let mut client = bench.client();
    client.write(8192, &[3; 4096], true).unwrap();
    let mut read = [0; 4096];
    client.read(0, &mut read).unwrap();
    assert_eq!(read, [1; 4096]);
}

/// Limits how late waits end. By default, the kernel may end them 50 us late. The serving threads, which also sync the
/// disk, disable that.
#[test]
fn serving_threads_have_no_timer_slack() {
    let disk = TestDisk::default();
    let config = load(&[]);
    let mut device = Device::new(config.clone(), made_with()).unwrap();
    let store = Opened::create_on(Box::new(disk.clone()), &config, true).unwrap().begin(&mut device).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (nbd, vhost_user) = (folder.path().join("nbd.sock"), folder.path().join("vhost.sock"));
    let options = Options { image: Some((store, made_with())), ..options() };
    let server = Server::start(device, sockets(Some(&nbd), Some(&vhost_user)), options).unwrap();
    disk.set(|platter| platter.syncs.clear());
    Client::connect(&server.nbd()[0]).unwrap().write(0, &[1; 4096], true).unwrap();
    let mut client = VhostClient::connect(&vhost_user, Shape::default()).unwrap();
    client.write(0, &[2; 4096]).unwrap();
    client.flush().unwrap();
    assert_eq!(disk.0.lock().unwrap().syncs, [1, 1], "timer slack of the NBD and vhost-user threads, in ns");
    server.stop(true).unwrap();
}

/// Rotten payload in the file is detected by its digest, and is not returned as valid data.
#[test]
fn damaged_payload_is_an_error() {
    let disk = TestDisk::default();
    let config = load(&[]);
    let bench = Bench::new(&disk, &config);
    let mut client = bench.client();
    client.write(0, &[0x77; 4096], true).unwrap();
    disk.set(|platter| {
        let grain = platter.grains.values_mut().find(|grain| grain.iter().all(|byte| *byte == 0x77)).unwrap();
        grain[100] = 0x76;
    });
    let mut read = [0; 4096];
    assert_eq!(client.read(0, &mut read).unwrap_err().raw_os_error(), Some(5));
    client.write(512, &[1; 512], true).unwrap();
    assert_eq!(client.read(0, &mut read).unwrap_err().raw_os_error(), Some(5), "a part does not make it good");
    client.write(0, &[2; 4096], true).unwrap();
    client.read(0, &mut read).unwrap();
    assert_eq!(read, [2; 4096]);
    let finished = bench.end();
    assert!(finished.unreadable >= 2);
    assert_eq!((finished.live.payload_errors, finished.damaged), (2, 2), "the disk itself did not fail");
}

/// Devices whose files contain every kind of record.
const ROTTEN: [&[&str]; 4] = [
    &[],
    &["buffer.capacity=64KiB", "buffer.power_loss_protection=true"],
    &["durability.checkpoint=32KiB", "capacity.spare=0.6"],
    &[
        "geometry.page_size=16KiB",
        "buffer.capacity=256KiB",
        "mapping.block_summary.last_page=512B",
        "capacity.spare=0.6",
    ],
];

/// Writes, overwrites and trims. Returns the final contents of each unit, all flushed.
fn aged(client: &mut Client, units: u64) -> Vec<u8> {
    let mut held = vec![0; units as usize];
    for round in 1..4u8 {
        for unit in 0..units / u64::from(round) {
            let byte = round * 64 + (unit % 61) as u8;
            client.write(unit * 4096, &[byte; 4096], false).unwrap();
            held[unit as usize] = byte;
        }
        client.flush().unwrap();
    }
    client.trim(8 * 4096, 16 * 4096).unwrap();
    held[8..24].fill(0);
    client.flush().unwrap();
    held
}

/// If any bit of a file rots, each unit reads as it was flushed, or with an error.
#[test]
fn bit_errors_never_return_old_data() {
    for (index, overrides) in ROTTEN.into_iter().enumerate() {
        let disk = TestDisk::default();
        let config = load(overrides);
        let units = config.logical_units().min(160);
        let bench = Bench::new(&disk, &config);
        let held = aged(&mut bench.client(), units);
        let killed = disk.copy();
        bench.end();
        for (ending, disk) in [("shutdown", &disk), ("kill", &killed)] {
            let mut luck = truth::Luck(index as u64);
            let grains: Vec<u64> = disk.0.lock().unwrap().grains.keys().copied().filter(|grain| *grain > 1).collect();
            for case in 0..times(60) {
                let damaged = disk.copy();
                let grain = grains[luck.below(grains.len() as u64) as usize];
                let bits = luck.below(3);
                damaged.set(|platter| {
                    let bytes = platter.grains.get_mut(&grain).unwrap();
                    // Half of the time, choose a position with data.
                    let written = bytes.iter().rposition(|byte| *byte != 0).map_or(GRAIN, |last| last as u64 + 1);
                    let within = if case % 2 == 0 { written } else { GRAIN };
                    let first = luck.below(within * 8);
                    for bit in first..=(first + bits / 2).min(within * 8 - 1) {
                        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
                    }
                });
                let what = format!("{overrides:?} after a {ending}, case {case}, grain {grain}");
                let (device, store, recovered) = match begin(&damaged, &config) {
                    Ok(begun) => begun,
                    // In an erase count and in the payload of the journal, only one bit can be restored.
                    Err(ImageError::Damaged(_) | ImageError::Lost(1)) if bits == 2 => continue,
                    Err(error) => panic!("{what}: {error}"),
                };
                let bench = Bench::over(device, store, recovered);
                check_or_error(&bench, &held, &what);
            }
        }
    }
}

/// Checks that each unit reads correctly or with an error, and that the device still accepts writes.
fn check_or_error(bench: &Bench, held: &[u8], what: &str) {
    let mut client = bench.client();
    let mut bytes = [0; 4096];
    let mut errors = 0;
    for (unit, byte) in held.iter().enumerate() {
        match client.read(unit as u64 * 4096, &mut bytes) {
            Ok(()) => assert!(bytes.iter().all(|read| read == byte), "{what}: unit {unit} reads as {}", bytes[0]),
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(5), "{what}: {error}");
                errors += 1;
            }
        }
    }
    let warnings = bench.server.engine().lock().unwrap().warnings();
    assert_eq!(errors > 0, warnings.iter().any(|text| text.contains("I/O error")), "{what}: {warnings:?}");
    for unit in 0..held.len() as u64 {
        client.write(unit * 4096, &[1; 4096], false).unwrap();
    }
    client.flush().unwrap();
    assert_eq!(bench.server.engine().lock().unwrap().fatal_error(), None, "{what}");
}

/// If an older version of a unit might replace the lost one, recovery is refused unless salvage is requested.
#[test]
fn images_with_unreadable_records_are_refused() {
    let disk = TestDisk::default();
    let config = load(&[]);
    let bench = Bench::new(&disk, &config);
    let held = aged(&mut bench.client(), 100);
    bench.end();
    disk.set(|platter| {
        let is_records = |grain: &&mut Vec<u8>| grain[0] == 1 && grain[63] != 1 && grain[4090..] == [0; 6];
        platter.grains.range_mut(257..).map(|(_, grain)| grain).find(is_records).unwrap()[64..128].fill(0x5a);
    });
    let error = begin(&disk, &config).err().unwrap().to_string();
    assert!(error.contains("1 records are damaged or missing") && error.contains("--image-salvage"), "{error}");
    let opened = Opened::on(Box::new(disk.clone()), &config, false).unwrap();
    let (device, store, recovered) = opened.recover(config.clone(), made_with(), true).unwrap();
    assert_eq!(recovered.damage.records_lost, 1);
    let bench = Bench::over(device, store, Some(recovered));
    assert_eq!(bench.server.engine().lock().unwrap().warnings().len(), 1);
    let mut client = bench.client();
    let mut bytes = [0; 4096];
    let wrong = held.iter().enumerate().filter(|(unit, byte)| {
        client.read(*unit as u64 * 4096, &mut bytes).unwrap();
        bytes[0] != **byte
    });
    assert!(wrong.count() <= 1);
}

#[test]
fn faults_reach_the_client_and_persist() {
    let disk = TestDisk::default();
    let config = load(&["geometry.blocks=16", "faults={}"]);
    let bench = Bench::new(&disk, &config);
    let mut client = bench.client();
    let engine = bench.server.engine();
    let fail = |what: &str| engine.lock().unwrap().fail_next(what.parse().unwrap()).unwrap();
    let mut read = [0; 4096];
    client.write(0, &[1; 4096], true).unwrap();
    fail("read");
    assert_eq!(client.read(0, &mut read).unwrap_err().raw_os_error(), Some(5));
    assert_eq!(client.read(0, &mut read).unwrap_err().raw_os_error(), Some(5), "it stays so");
    client.write(0, &[2; 4096], true).unwrap();
    fail("program");
    client.write(4096, &[3; 4096], true).unwrap();
    drop((engine, client));
    assert_eq!(bench.end().device.devices().next().unwrap().ftl().fault_state().unwrap().bad.iter().sum::<u32>(), 1);

    let bench = Bench::new(&disk, &config);
    assert_eq!(bench.recovered.as_ref().unwrap().device.blocks_bad, 1);
    let (mut client, engine) = (bench.client(), bench.server.engine());
    for (offset, byte) in [(0, 2), (4096, 3)] {
        client.read(offset, &mut read).unwrap();
        assert_eq!(read, [byte; 4096]);
    }
    let refused = (0..200).find_map(|_| {
        engine.lock().unwrap().fail_next("program".parse().unwrap()).unwrap();
        client.write(0, &[2; 4096], true).err()
    });
    assert_eq!(refused.and_then(|error| error.raw_os_error()), Some(1), "it takes no writes");
    assert_eq!(client.trim(0, 4096).unwrap_err().raw_os_error(), Some(1));
    client.write(4096, &[9; 4096], false).unwrap_err();
    assert!(bench.client().flags() & export::READ_ONLY != 0, "new clients must see the flag");
    let is_told = |warnings: &[String]| warnings.iter().any(|text| text.contains("the device is read-only since"));
    assert!(is_told(&engine.lock().unwrap().warnings()));
    for (offset, byte) in [(0, 2), (4096, 3)] {
        client.read(offset, &mut read).unwrap();
        assert_eq!(read, [byte; 4096], "what was there before is read");
    }
    drop((engine, client));
    assert!(is_told(&bench.end().warnings));
    assert!(Bench::new(&disk, &config).client().flags() & export::READ_ONLY != 0, "after a restart, too");
}

/// A block takes the place of one whose program fails, and the failed one does not count any more.
#[test]
fn failed_blocks_of_schemes_that_merge_blocks_persist() {
    for scheme in MERGING {
        let config = load(&[scheme, "gc.soft_threshold=2", "capacity.spare=0.8", "geometry.blocks=32", "faults={}"]);
        let disk = TestDisk::default();
        let bench = Bench::new(&disk, &config);
        let mut truth = Truth::new(config.logical_bytes(), 4096, 5);
        let mut client = bench.client();
        for failures in 1..=3 {
            bench.server.engine().lock().unwrap().fail_next("program".parse().unwrap()).unwrap();
            for _ in 0..40 {
                truth.step(&mut client).unwrap();
            }
            let cut = bench.server.power_cut().unwrap();
            assert_eq!(cut.recovered.device.blocks_bad, failures, "{scheme}");
            client = bench.client();
            truth.check(&mut client);
        }
        truth.check_newest(&mut client);
        assert_eq!(bench.end().image, Some(Ok(())));
        let bench = Bench::new(&disk, &config);
        assert_eq!(bench.recovered.as_ref().unwrap().device.blocks_bad, 3, "{scheme}");
        truth.check_newest(&mut bench.client());
    }
}

#[test]
fn foreign_and_damaged_images_are_refused() {
    let disk = TestDisk::default();
    let config = load(&[]);
    Bench::new(&disk, &config).end();
    let refused = |disk: &TestDisk, config: &DeviceConfig| begin(disk, config).err().unwrap().to_string();
    assert!(refused(&disk, &load(&["geometry.blocks=9"])).contains("`geometry.blocks` is 8 in the image and 9"));
    let cut = disk.copy();
    cut.set(|platter| platter.size /= 2);
    assert!(refused(&cut, &config).contains("the file is truncated"));
    let other = TestDisk::default();
    other.set(|platter| {
        platter.size = 10_000;
        platter.grains.insert(0, vec![b'x'; GRAIN as usize]);
    });
    assert!(refused(&other, &config).contains("not a flash image"));
    assert!(other.copy().0.lock().unwrap().grains[&0][0] == b'x', "and it is left as it was");
    let table = disk.copy();
    for copy in 0..2 {
        table.set(|platter| {
            platter.grains.insert(Layout::of(&config).block_table(copy) / GRAIN, vec![9; GRAIN as usize]);
        });
        if copy == 0 {
            begin(&table.copy(), &config).unwrap();
        }
    }
    assert!(refused(&table, &config).contains("both entries of block 0"));
    // The recovered device may differ in options that do not affect the contents of flash.
    begin(&disk, &load(&["nand.read=1us", "host.queue_depth=7", "gc.victim=fifo"])).unwrap();
}

/// Waits longer than the retry interval after a disk error.
fn pause() {
    let timeout = rustix::event::Timespec { tv_sec: 0, tv_nsec: 60_000_000 };
    rustix::event::poll(&mut [], Some(&timeout)).unwrap();
}

#[test]
fn garbage_in_an_image_never_panics() {
    let disk = TestDisk::default();
    let config = load(&[]);
    let bench = Bench::new(&disk, &config);
    let mut truth = Truth::new(config.logical_bytes(), 4096, 9);
    for _ in 0..50 {
        truth.step(&mut bench.client()).unwrap();
    }
    bench.end();
    let mut luck = truth::Luck(4);
    for _ in 0..times(40) {
        let damaged = disk.copy();
        damaged.set(|platter| {
            let places: Vec<u64> = platter.grains.keys().copied().filter(|grain| *grain > 1).collect();
            for _ in 0..1 + luck.below(4) {
                let grain = places[luck.below(places.len() as u64) as usize];
                let bytes = platter.grains.get_mut(&grain).unwrap();
                for _ in 0..1 + luck.below(300) {
                    bytes[luck.below(GRAIN) as usize] = luck.below(256) as u8;
                }
            }
        });
        // The image is refused, or the device serves, possibly with errors.
        if let Ok((device, store, recovered)) = begin(&damaged, &config) {
            let bench = Bench::over(device, store, recovered);
            let mut client = bench.client();
            let mut bytes = [0; 4096];
            for unit in 0..config.logical_units() {
                let _ = client.read(unit * 4096, &mut bytes);
            }
            client.write(0, &bytes, true).unwrap();
            client.read(0, &mut bytes).unwrap();
            bench.end();
        }
    }
}

/// Positions of three wrong bits in a record. Three wrong bits cannot be restored, and take the longest to try.
const TOO_MANY: [usize; 3] = [7, 77, 177];

/// An image of which 64 MiB are overwritten, with random bytes or with almost valid records, is refused or salvaged
/// within seconds. A salvaged device serves.
#[test]
fn garbage_in_an_image_takes_bounded_time() {
    const GARBAGE: usize = 64 << 20;
    let config = load(&["geometry.blocks=160"]);
    let layout = Layout::of(&config);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flash.img");
    let open = || Opened::open(&ImageAt::File(path.clone()), &config, false).unwrap();
    let mut device = Device::new(config.clone(), made_with()).unwrap();
    precondition(&mut device, Precondition::Fill, 1, &mut |_| true).unwrap();
    assert!(open().is_new());
    open().begin(&mut device).unwrap().close().unwrap();
    let whole = fs::read(&path).unwrap();
    let first = layout.block(0).0 as usize;
    let record = &whole[first..first + SLOT];
    let mut luck = truth::Luck(5);
    let random = (0..GARBAGE).map(|_| luck.below(256) as u8).collect::<Vec<u8>>();
    // Each record of a unit differs in slightly too many bits from the original one, and so does the repeated payload.
    let mut almost = whole[first..first + GARBAGE].to_vec();
    for bytes in almost.as_chunks_mut::<SLOT>().0 {
        if bytes.iter().all(|byte| *byte == 0) {
            bytes.copy_from_slice(record);
        }
        TOO_MANY.iter().for_each(|bit| bytes[bit / 8] ^= 1 << (bit % 8));
    }
    for (name, garbage) in [("random bytes", random), ("records that are almost right", almost)] {
        let mut bytes = whole.clone();
        bytes[first..first + GARBAGE].copy_from_slice(&garbage);
        fs::write(&path, &bytes).unwrap();
        let start = Wall::now();
        let refused = open().recover(config.clone(), made_with(), false).err().unwrap();
        assert!(matches!(refused, ImageError::Lost(1000..)), "{name}: {refused}");
        let (device, store, recovered) = open().recover(config.clone(), made_with(), true).unwrap();
        let took = Wall::now().since(start);
        assert!(took < Wall::from_us(30_000_000), "{name}: two recoveries took {} s", took.as_us() / 1e6);
        assert!(recovered.damage.records_lost > 1000, "{name}: {recovered:?}");
        let bench = Bench::over(device, store, Some(recovered));
        let mut bytes = [0; 4096];
        bench.client().write(0, &[7; 4096], true).unwrap();
        bench.client().read(0, &mut bytes).unwrap();
        assert_eq!(bytes, [7; 4096], "{name}");
        bench.end();
    }
}

#[test]
fn a_preconditioned_device_reads_as_zeros() {
    let disk = TestDisk::default();
    let config = load(&[]);
    let opened = Opened::create_on(Box::new(disk.clone()), &config, false).unwrap();
    let mut device = Device::new(config.clone(), made_with()).unwrap();
    precondition(&mut device, Precondition::Fill, 1, &mut |_| true).unwrap();
    let store = opened.begin(&mut device).unwrap();
    let bench = Bench::over(device, store, None);
    let mut truth = Truth::new(config.logical_bytes(), 4096, 5);
    truth.check_newest(&mut bench.client());
    for _ in 0..30 {
        truth.step(&mut bench.client()).unwrap();
    }
    bench.server.power_cut().unwrap();
    truth.check(&mut bench.client());
    let finished = bench.end();
    assert_eq!(finished.unreadable, 0);
    let bench = Bench::new(&disk, &config);
    truth.check_newest(&mut bench.client());
    assert!(bench.recovered.as_ref().unwrap().device.units_mapped > 300);
}

/// A block with a summary costs two pages, its first one and the summary. Blocks without room for one are read whole.
#[test]
fn a_recovery_reads_the_summaries_of_full_blocks() {
    for (last_page, pages, has_room) in [("528B", 16, true), ("4KiB", 256, false)] {
        let overrides = ["capacity.spare=0.7", &format!("mapping.block_summary.last_page={last_page}")];
        let (disk, config) =
            (TestDisk::default(), load(&[overrides[0], overrides[1], &format!("geometry.pages={pages}")]));
        let opened = Opened::create_on(Box::new(disk.clone()), &config, false).unwrap();
        let mut device = Device::new(config.clone(), made_with()).unwrap();
        precondition(&mut device, Precondition::Fill, 1, &mut |_| true).unwrap();
        let count = |state| device.ftl().blocks.all().iter().filter(|block| block.state == state).count() as u64;
        let full = count(BlockState::Closed);
        assert!(full >= 8, "{full}");
        opened.begin(&mut device).unwrap();
        let (_, _, recovered) = begin(&disk, &config).unwrap();
        let found = recovered.unwrap().device;
        assert_eq!(found.summaries_used, if has_room { full } else { 0 }, "{found:?}");
        let scanned = (pages - 1) * found.blocks_scanned;
        assert_eq!(found.pages_read, 2 * found.summaries_used + scanned + found.blocks_empty, "{found:?}");
        assert_eq!(found.units_mapped, config.logical_units());
    }
}

/// An image of a terabyte starts immediately, and takes only the space of the written data.
#[test]
fn a_large_image_is_sparse() {
    let folder = tempfile::tempdir().unwrap();
    let size = ["geometry.blocks=4096", "geometry.pages=1024", "geometry.page_size=16KiB", "geometry.channels=4"];
    let config = load(&size);
    assert!(config.physical_bytes() >= 1 << 40);
    let at = ImageAt::File(folder.path().join("large.img"));
    let start = Wall::now();
    let mut device = Device::new(config.clone(), made_with()).unwrap();
    let store = Opened::open(&at, &config, false).unwrap().begin(&mut device).unwrap();
    assert!(matches!(Opened::open(&at, &config, false), Err(ImageError::InUse)));
    drop(store);
    Opened::open(&at, &config, false).unwrap().recover(config.clone(), made_with(), false).unwrap();
    let ImageAt::File(path) = &at else { unreachable!() };
    let taken = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(path).unwrap()) * 512;
    assert!(taken <= 128 << 10, "{taken}");
    assert!(Wall::now().since(start) < Wall::from_us(20_000_000), "to read or write all of it would take an hour");
}

#[derive(Clone, Debug)]
enum Change {
    Program {
        block: u32,
        units: Vec<Option<u8>>,
    },
    /// Starts or completes the erase of a block.
    Erase {
        block: u32,
    },
}

const BLOCKS: u32 = 4;

fn change() -> impl Strategy<Value = Change> {
    let units = prop::collection::vec(prop::option::weighted(0.8, any::<u8>()), 1..5);
    prop_oneof![
        4 => (0..BLOCKS, units).prop_map(|(block, units)| Change::Program { block, units }),
        2 => (0..BLOCKS).prop_map(|block| Change::Erase { block }),
    ]
}

fn record(lpn: u32) -> Record {
    Record { kind: RecordKind::Data, lpn, sequence: u64::from(lpn), sectors: 0, opened: 1 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// The file matches a simple model up to the instant at which its disk failed or the program was killed, and units
    /// that are programmed later stay. The same holds for a power cut, after which the file is not reopened.
    #[test]
    fn flash_files_match_a_model(
        changes in prop::collection::vec(change(), 1..60),
        life in prop::option::of(0..300u64),
        power_is_cut: bool,
    ) {
        let disk = TestDisk::default();
        let config = load(&[]);
        let mut flash = Flash::create(Box::new(disk.clone()), &config).unwrap();
        flash.note(1, false, false).unwrap();
        disk.set(|platter| platter.life = life);
        let units = config.units_per_block();
        // Programmed units and erase counts by block. All instants, because the file may be at any of them.
        let mut model = vec![(Vec::<Option<u8>>::new(), 0); BLOCKS as usize];
        let mut instants = vec![model.clone()];
        let mut erasing = BTreeSet::new();
        for change in changes {
            match change {
                Change::Program { block, .. } if erasing.contains(&block) => continue,
                Change::Program { block, units: contents } => {
                    let (held, _) = &mut model[block as usize];
                    if held.len() + contents.len() > units as usize { continue }
                    let place = Ppn(block * units + held.len() as u32);
                    let bytes: Vec<Vec<u8>> = contents.iter().map(|byte| vec![byte.unwrap_or(0); 4096]).collect();
                    let units = (place.0..).zip(contents.iter().zip(&bytes));
                    let list: Vec<(Record, Content)> = units.map(|(at, (byte, bytes))| {
                        (record(at), if byte.is_some() { Content::Bytes(bytes) } else { Content::Zeros })
                    }).collect();
                    flash.program(place, &list).unwrap();
                    prop_assert!(flash.program(place, &list).is_err(), "programmed twice");
                    held.extend(contents);
                }
                Change::Erase { block } if erasing.insert(block) => {
                    model[block as usize].0.clear();
                    flash.erase(BlockId(block), false).unwrap();
                    prop_assert!(flash.program(Ppn(block * units), &[(record(0), Content::Zeros)]).is_err());
                }
                Change::Erase { block } => {
                    erasing.remove(&block);
                    model[block as usize].1 += 1;
                    flash.erased(BlockId(block), model[block as usize].1).unwrap();
                }
            }
            instants.push(model.clone());
            prop_assert_eq!(&contents(&flash, &config), &model, "what has failed is read from memory");
        }
        disk.set(|platter| platter.life = None);
        let open = || {
            let mut flash = Flash::open(Box::new(disk.clone()), &config).unwrap();
            assert_eq!((flash.state().boot, flash.state().is_clean), (1, false));
            assert_eq!(flash.inspect(Ending::Kill, false, false).unwrap().lost, 0);
            flash
        };
        if power_is_cut {
            flash.cut();
            assert_eq!(flash.inspect(Ending::Kill, false, false).unwrap().lost, 0);
        } else {
            drop(flash);
            flash = open();
        }
        let found = contents(&flash, &config);
        let is = |instant: &Vec<(Vec<Option<u8>>, u32)>| {
            // Interrupted erases need not be counted.
            instant.iter().zip(&found).all(|(a, b)| a.0 == b.0 && a.1.abs_diff(b.1) <= 1)
        };
        prop_assert!(instants.iter().any(is), "{found:?}");
        // Interrupted erases are completed now.
        erasing.iter().for_each(|block| model[*block as usize].1 += 1);
        if life.is_none() { prop_assert_eq!(&found, &model); }
        assert_goes_on(flash, units, open);
    }
}

/// The program that leaves units out is interrupted after each write to the file, or torn by a power cut.
#[test]
fn units_before_an_interrupted_program_can_be_programmed() {
    let config = load(&[]);
    let unit = |lpn| [(record(lpn), Content::Bytes(&[0x55; 4096]))];
    for life in (0..4).map(Some).chain([None]) {
        let disk = TestDisk::default();
        let mut flash = Flash::create(Box::new(disk.clone()), &config).unwrap();
        flash.note(1, false, false).unwrap();
        flash.program(Ppn(0), &unit(0)).unwrap();
        match life {
            Some(_) => {
                disk.set(|platter| platter.life = life);
                flash.program(Ppn(6), &unit(6)).unwrap();
                disk.set(|platter| platter.life = None);
                flash = Flash::open(Box::new(disk.clone()), &config).unwrap();
            }
            None => {
                flash.cut();
                flash.tear(Ppn(6), 1);
            }
        }
        assert_eq!(flash.inspect(Ending::Kill, false, false).unwrap().lost, 0, "{life:?}");
        let was_reached = life.is_none_or(|life| life >= 3);
        assert_eq!(flash.program(Ppn(1), &unit(1)).is_err(), was_reached, "{life:?}");
        let mut flash = Flash::open(Box::new(disk), &config).unwrap();
        assert_eq!(flash.inspect(Ending::Kill, false, false).unwrap().lost, 0, "{life:?}");
        assert_eq!(flash.read(Ppn(1), Some(Lpn(1)), &mut [0; 4096]).is_ok(), !was_reached, "{life:?}");
        flash.program(Ppn(7), &unit(7)).unwrap();
    }
}

#[test]
fn an_image_of_which_the_device_broke_the_rules_is_not_closed() {
    let (disk, config) = (TestDisk::default(), load(&[]));
    let (_, mut store, _) = begin(&disk, &config).unwrap();
    for _ in 0..2 {
        store.event(FlashEvent::ProgramFailed { ppn: Ppn(0), units: 1 }, &[], None);
    }
    assert!(store.close().unwrap_err().contains("breaks the rules of flash"));
    assert!(!Flash::open(Box::new(disk), &config).unwrap().state().is_clean);
}

/// Programs the next unit of each block, and checks that it is in the file after reopening.
fn assert_goes_on(mut flash: Flash, units: u32, open: impl Fn() -> Flash) {
    let mut more = Vec::new();
    for block in 0..BLOCKS {
        // A unit whose program operation was interrupted is not programmed again.
        let mut places = (block * units..(block + 1) * units).map(Ppn);
        let unit = |place: Ppn| [(record(place.0), Content::Bytes(&[0x77; 4096]))];
        more.extend(places.find(|place| flash.program(*place, &unit(*place)).is_ok()));
    }
    assert!(flash.failure().is_none());
    drop(flash);
    let flash = open();
    let mut bytes = [0; 4096];
    for place in more {
        assert!(matches!(flash.read(place, Some(Lpn(place.0)), &mut bytes), Ok(true)), "{place:?} is gone");
        assert_eq!(bytes, [0x77; 4096]);
    }
}

/// Returns the contents of each block, up to the first unit without valid contents.
fn contents(flash: &Flash, config: &DeviceConfig) -> Vec<(Vec<Option<u8>>, u32)> {
    let units = config.units_per_block();
    let mut bytes = vec![0; 4096];
    (0..BLOCKS)
        .map(|block| {
            let mut held = Vec::new();
            for place in block * units..(block + 1) * units {
                match flash.read(Ppn(place), Some(Lpn(place)), &mut bytes) {
                    Ok(any) => held.push(any.then_some(bytes[0])),
                    Err(_) => break,
                }
            }
            (held, flash.erases(BlockId(block)))
        })
        .collect()
}
