//! Arrays served live: contents after power cuts, shutdowns, failures of members and rebuilds, through a real client.

use std::collections::BTreeMap;
use std::path::Path;

use floatgate_array::AnySsd;
use floatgate_array::config::{ArrayConfig, from_toml};
use floatgate_array::{Options as ArrayOptions, SsdArray};
use floatgate_serve::client::Client;
use floatgate_serve::image::layout::Layout as ImageLayout;
use floatgate_serve::image::{ImageAt, ImageError, OpenedArray, Recovered};
use floatgate_serve::vhost::client::{Client as VhostClient, Shape};
use floatgate_serve::{Finished, Server, SocketAddresses, Sockets};
use tempfile::TempDir;

use crate::common::options::{options, sockets};
use crate::common::truth::{Luck, Truth};

/// Options of members: 4 MiB of flash, with 1.6 MiB visible.
const MEMBER: [&str; 4] = [
    "member.geometry.blocks=8",
    "member.geometry.pages=16",
    "member.capacity.spare=0.6",
    "member.durability.trim_journal=true",
];

/// Levels, with a number of members.
const LEVELS: [(u32, u32); 5] = [(0, 3), (1, 2), (5, 4), (6, 5), (10, 4)];

fn config(level: u32, members: u32, set: &[&str]) -> ArrayConfig {
    let text = format!("[array]\nlevel = {level}\nstripe = \"8KiB\"\ndevice = \"tiny\"\ncount = {members}\n");
    let set: Vec<String> = MEMBER.iter().chain(set).map(|text| (*text).to_owned()).collect();
    from_toml(&[], &text, "array.toml", &set).unwrap()
}

fn array_options() -> ArrayOptions {
    ArrayOptions { seed: 5, attribution: true, ..ArrayOptions::default() }
}

/// Creates an array at an image, or recovers it.
fn opened(at: &ImageAt, config: &ArrayConfig) -> Result<(SsdArray, Option<Recovered>), ImageError> {
    let opened = OpenedArray::open(at, config, false)?;
    if opened.is_new() {
        let array = SsdArray::new(config.clone(), array_options()).unwrap();
        Ok((opened.begin(array, array_options())?, None))
    } else {
        let (array, recovered) = opened.recover(config.clone(), array_options(), false)?;
        Ok((array, Some(recovered)))
    }
}

struct Bench {
    server: Server,
    folder: TempDir,
    recovered: Option<Recovered>,
}

impl Bench {
    fn new(at: &ImageAt, config: &ArrayConfig) -> Result<Bench, ImageError> {
        let (array, recovered) = opened(at, config)?;
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("ssd.sock");
        let server = Server::start(array, sockets(Some(&socket), None), options()).unwrap();
        Ok(Bench { server, folder, recovered })
    }

    fn in_folder(folder: &Path, config: &ArrayConfig) -> Bench {
        Bench::new(&ImageAt::File(folder.to_owned()), config).unwrap()
    }

    fn client(&self) -> Client {
        Client::connect(&self.server.nbd()[0]).unwrap()
    }

    /// Returns what `of` returns for the array.
    fn array<T>(&self, of: impl Fn(&SsdArray) -> T) -> T {
        let engine = self.server.engine();
        let engine = engine.lock().unwrap();
        match engine.device() {
            AnySsd::Array(array, _) => of(array),
            AnySsd::Device(_) => panic!("it is an array"),
        }
    }

    fn end(self) -> Finished {
        let finished = self.server.stop(true).unwrap();
        drop(self.folder);
        finished.device.check_invariants().unwrap();
        assert_eq!(finished.image, Some(Ok(())));
        finished
    }
}

fn truth(config: &ArrayConfig, seed: u64) -> Truth {
    let mut truth = Truth::new(config.logical_bytes(), 4096, seed);
    truth.trims = (config.trim_bytes() / 512) as usize;
    truth
}

/// Sends requests until the background work of the array has ended.
fn settle(bench: &Bench, truth: &mut Truth) {
    let mut client = bench.client();
    for _ in 0..2000 {
        let is_busy = bench.array(|array| array.stripes_to_resync() > 0 || array.has_failed(1));
        if !is_busy {
            return;
        }
        truth.step(&mut client).unwrap();
    }
    panic!("the background work does not end");
}

#[test]
fn each_unit_survives_power_cuts() {
    for (level, members) in LEVELS {
        for set in [&[][..], &["member.buffer.capacity=128KiB"], &["array.xor=100MB/s"]] {
            let config = config(level, members, set);
            let bench = Bench::new(&ImageAt::Memory, &config).unwrap();
            let mut truth = truth(&config, u64::from(level) + 7);
            for round in 0..6 {
                let mut client = bench.client();
                for _ in 0..40 {
                    truth.step(&mut client).unwrap();
                }
                let cut = bench.server.power_cut().unwrap();
                assert!(cut.recovered.device.units_mapped > 0, "round {round}");
                let redundant = level != 0;
                assert_eq!(cut.recovered.stripes > 0, redundant, "{cut}");
                truth.check(&mut bench.client());
            }
            let finished = bench.end();
            assert_eq!(finished.power_cuts, 6);
        }
    }
}

/// Clients of a degraded array wait until its journal was read, also after a restart.
#[test]
fn a_degraded_array_is_served_after_its_journal_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let set = ["array.write_hole=journal", "array.failed=[1]", "member.buffer.capacity=128KiB"];
    let config = config(5, 4, &set);
    let mut truth = truth(&config, 31);
    truth.only_whole = true;
    for _ in 0..2 {
        let bench = Bench::in_folder(folder.path(), &config);
        for _ in 0..3 {
            let mut client = bench.client();
            for _ in 0..60 {
                truth.step(&mut client).unwrap();
            }
            bench.server.power_cut().unwrap();
            truth.check(&mut bench.client());
        }
        bench.end();
        truth.flushed();
    }
    truth.check_newest(&mut Bench::in_folder(folder.path(), &config).client());
}

/// After a power cut, parity and copies agree with the data again, so that each member may fail.
#[test]
fn members_may_fail_after_a_power_cut() {
    for (level, members) in LEVELS.into_iter().filter(|(level, _)| *level != 0) {
        let folder = tempfile::tempdir().unwrap();
        let images = folder.path().join("images");
        let healthy = config(level, members, &["member.buffer.capacity=128KiB"]);
        let mut truth = truth(&healthy, u64::from(level) + 99);
        let bench = Bench::in_folder(&images, &healthy);
        for _ in 0..3 {
            let mut client = bench.client();
            for _ in 0..60 {
                truth.step(&mut client).unwrap();
            }
            bench.server.power_cut().unwrap();
            truth.check(&mut bench.client());
        }
        settle(&bench, &mut truth);
        bench.end();
        for failed in 0..members {
            // The image of the failed member is not used: each member may fail in a copy of the folder.
            let copy = folder.path().join(format!("copy-{failed}"));
            std::fs::create_dir(&copy).unwrap();
            for file in std::fs::read_dir(&images).unwrap().map(Result::unwrap) {
                if file.file_name() != format!("member-{failed}").as_str() {
                    std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
                }
            }
            let failed = format!("array.failed=[{failed}]");
            let bench = Bench::in_folder(&copy, &config(level, members, &["member.buffer.capacity=128KiB", &failed]));
            truth.check_newest(&mut bench.client());
            bench.end();
        }
    }
}

#[test]
fn a_failed_member_is_reconstructed_and_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let images = folder.path().join("images");
    let healthy = config(5, 4, &[]);
    let mut truth = truth(&healthy, 3);
    let run = |bench: Bench, truth: &mut Truth| {
        let mut client = bench.client();
        truth.check_newest(&mut client);
        for _ in 0..60 {
            truth.step(&mut client).unwrap();
        }
        drop(client);
        bench.end()
    };
    run(Bench::in_folder(&images, &healthy), &mut truth);
    let degraded = config(5, 4, &["array.failed=[1]"]);
    run(Bench::in_folder(&images, &degraded), &mut truth);
    let refused = |config: &ArrayConfig| match Bench::new(&ImageAt::File(images.clone()), config) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it is refused"),
    };
    let text = refused(&healthy);
    assert!(text.contains("member 1 had failed") && text.contains("--set 'array.failed=[1]'"), "{text}");
    std::fs::remove_file(images.join("member-1")).unwrap();
    let rebuilding = config(5, 4, &["array.failed=[1]", "array.rebuild={ rate = \"1GB/s\" }"]);
    let bench = Bench::in_folder(&images, &rebuilding);
    settle(&bench, &mut truth);
    run(bench, &mut truth);
    let bench = Bench::in_folder(&images, &healthy);
    assert!(bench.recovered.as_ref().is_some_and(|recovered| recovered.after_shutdown && recovered.stripes == 0));
    run(bench, &mut truth);
    let other = config(5, 4, &["array.failed=[3]"]);
    run(Bench::in_folder(&images, &other), &mut truth);
    let text = refused(&config(6, 4, &["array.failed=[3]"]));
    assert!(text.contains("array.level is 5 in them and 6 here"), "{text}");
    std::fs::remove_file(images.join("member-0")).unwrap();
    let text = refused(&other);
    assert!(text.contains("member-0 is missing") && !images.join("member-0").exists(), "{text}");
    std::fs::write(folder.path().join("file"), "x").unwrap();
    let error = OpenedArray::open(&ImageAt::File(folder.path().join("file")), &healthy, false).err().unwrap();
    assert!(error.to_string().contains("give the path of a folder"), "{error}");
}

/// Without images, the payload is that of the array, and no data are lost in degraded states.
#[test]
fn an_array_without_images_serves_its_data() {
    for (level, members) in LEVELS {
        let failed: &[&str] = if level == 0 { &[] } else { &["array.failed=[1]"] };
        let config = config(level, members, failed);
        let array = SsdArray::new(config.clone(), array_options()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("ssd.sock");
        let server = Server::start(array, sockets(Some(&socket), None), options()).unwrap();
        let mut truth = truth(&config, 11);
        let mut client = Client::connect(&server.nbd()[0]).unwrap();
        for _ in 0..100 {
            truth.step(&mut client).unwrap();
        }
        truth.check_newest(&mut client);
        assert!(server.power_cut().unwrap_err().contains("no flash image"));
        let finished = server.stop(true).unwrap();
        assert_eq!(finished.outcome.members.len(), members as usize);
        finished.device.check_invariants().unwrap();
    }
}

/// Clients over vhost-user and NBD see the same array. A TRIM drops whole stripes.
#[test]
fn vhost_user_clients_see_the_array() {
    let config = config(6, 5, &[]);
    let opened = OpenedArray::open(&ImageAt::Memory, &config, false).unwrap();
    let array = opened.begin(SsdArray::new(config.clone(), array_options()).unwrap(), array_options()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (nbd, vhost_user) = (folder.path().join("nbd.sock"), folder.path().join("vhost.sock"));
    let server = Server::start(array, sockets(Some(&nbd), Some(&vhost_user)), options()).unwrap();
    let mut client = VhostClient::connect(&vhost_user, Shape::default()).unwrap();
    assert_eq!(client.bytes(), config.logical_bytes());
    let row = config.trim_bytes();
    let data: Vec<u8> = (0..3 * row).map(|at| (at / 512) as u8 | 1).collect();
    client.write(0, &data).unwrap();
    client.discard(row / 2, 2 * row).unwrap();
    client.write_zeroes(2 * row + 512, 1024, true).unwrap();
    client.flush().unwrap();
    server.power_cut().unwrap();
    let mut expected = data;
    expected[row as usize..2 * row as usize].fill(0);
    expected[2 * row as usize + 512..2 * row as usize + 1536].fill(0);
    let mut read = vec![0; expected.len()];
    Client::connect(&server.nbd()[0]).unwrap().read(0, &mut read).unwrap();
    assert!(read == expected);
    client.reconnect(&vhost_user).unwrap();
    read.fill(1);
    client.read(0, &mut read).unwrap();
    assert!(read == expected);
    let finished = server.stop(true).unwrap();
    assert_eq!((finished.image, finished.power_cuts), (Some(Ok(())), 1));
}

/// Uncorrectable sectors of a member are computed from the others, in reads of the host and of the array.
#[test]
fn uncorrectable_sectors_are_repaired() {
    for (level, members) in LEVELS.into_iter().filter(|(level, _)| *level != 0) {
        // Only one member has faults, so that no range is uncorrectable on two.
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("bad.toml"), "base = \"tiny\"\n[faults]\nread_rate = 0.1\n").unwrap();
        let names = (1..members).map(|_| "\"tiny\"").collect::<Vec<_>>().join(", ");
        let text = format!("[array]\nlevel = {level}\nstripe = \"8KiB\"\nmembers = [\"bad.toml\", {names}]\n");
        let path = folder.path().join("array.toml");
        let config = from_toml(&[], &text, path.to_str().unwrap(), &MEMBER.map(str::to_owned));
        let config = config.unwrap();
        let bench = Bench::new(&ImageAt::Memory, &config).unwrap();
        let mut truth = truth(&config, 21);
        // A write to a part of an uncorrectable unit fails, as in a single SSD.
        truth.only_whole = true;
        let mut client = bench.client();
        for _ in 0..300 {
            truth.step(&mut client).unwrap();
        }
        truth.check_newest(&mut client);
        drop(client);
        let finished = bench.end();
        let AnySsd::Array(array, _) = &finished.device else { panic!("it is an array") };
        let repairs = array.usage().repairs;
        assert!(repairs > 10, "level {level}: {repairs}");
    }
}

/// Bytes of an array that were written, and the folder of its images after a shutdown.
fn written(folder: &Path, level: u32, members: u32) -> (ArrayConfig, Truth) {
    let config = config(level, members, &[]);
    let mut truth = truth(&config, 1);
    let bench = Bench::in_folder(folder, &config);
    let mut client = bench.client();
    for _ in 0..60 {
        truth.step(&mut client).unwrap();
    }
    drop(client);
    bench.end();
    truth.flushed();
    (config, truth)
}

/// Returns the names and contents of the files in a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())).collect()
}

/// A damaged member is refused by name, or gives the data as flushed. No file is removed or overwritten.
#[test]
fn damaged_members_are_named_and_kept() {
    let zero = |bytes: &mut [u8], at: usize, length: usize| bytes[at..at + length].fill(0);
    type Damage<'a> = (&'a str, &'a dyn Fn(&mut Vec<u8>), bool);
    let state = (1 << 20) - 4096;
    let damages: [Damage; 6] = [
        ("an empty file", &|bytes| bytes.clear(), true),
        ("zeros at both headers", &|bytes| (zero(bytes, 0, 512), zero(bytes, 512 << 10, 512)).0, true),
        ("zeros at both states", &|bytes| (zero(bytes, state, 32), zero(bytes, state - (512 << 10), 32)).0, true),
        ("zeros at a state", &|bytes| zero(bytes, state, 32), false),
        ("zeros at a header", &|bytes| zero(bytes, 0, 512), false),
        ("a missing half", &|bytes| bytes.truncate(bytes.len() / 2), true),
    ];
    for (level, members) in [(0, 2), (1, 2)] {
        let folder = tempfile::tempdir().unwrap();
        let images = folder.path().join("images");
        let (config, mut truth) = written(&images, level, members);
        for (what, damage, is_refused) in damages {
            let mut member = std::fs::read(images.join("member-0")).unwrap();
            let whole = member.clone();
            damage(&mut member);
            std::fs::write(images.join("member-0"), &member).unwrap();
            let before = files(&images);
            match Bench::new(&ImageAt::File(images.clone()), &config) {
                Err(error) => {
                    let text = error.to_string();
                    assert!(
                        is_refused && text.contains("member-0") && text.contains("array.failed=[0]"),
                        "{what}: {text}"
                    );
                    assert!(files(&images) == before, "{what}: the files are as they were");
                    std::fs::write(images.join("member-0"), &whole).unwrap();
                }
                Ok(bench) => {
                    assert!(!is_refused, "{what}");
                    truth.check_newest(&mut bench.client());
                    bench.end();
                }
            }
        }
    }
}

/// Whatever happens to a sector or a page of a member, each unit of the array is as flushed, or gives an I/O error, or
/// the member is refused by name.
#[test]
fn no_damage_of_a_member_gives_a_wrong_answer() {
    let mut outcomes = [0; 3];
    for (level, members) in [(0, 2), (1, 2), (5, 3)] {
        let folder = tempfile::tempdir().unwrap();
        let (config, truth) = written(&folder.path().join("old"), level, members);
        let layout = ImageLayout::of(&config.members[0]);
        let images = files(&folder.path().join("old"));
        let mut luck = Luck(u64::from(level));
        for draw in 0..40 {
            let name = format!("member-{}", luck.below(u64::from(members)));
            let mut images = images.clone();
            let member = images.get_mut(&name).unwrap();
            let size = [512, 4096][luck.below(2) as usize];
            let pieces: Vec<usize> = (0..member.len() / size).collect();
            let used = |piece: &usize| member[piece * size..(piece + 1) * size].iter().any(|byte| *byte != 0);
            let is_record = |piece: &usize| {
                let starts =
                    (0..layout.blocks).map(|block| (layout.block(block).0, layout.payload(block * layout.units)));
                starts.into_iter().any(|(start, end)| (start..end).contains(&((piece * size) as u64)))
            };
            // Most pages are payload.
            let used = pieces.into_iter().filter(used).filter(|piece| draw % 2 == 0 || is_record(piece));
            let used: Vec<usize> = used.collect();
            let at = used[luck.below(used.len() as u64) as usize] * size;
            match luck.below(3) {
                0 => member[at..at + size].fill(0),
                1 => (0..9).for_each(|_| member[at + luck.below(size as u64) as usize] ^= 1 << luck.below(8)),
                _ => {
                    let other = used[luck.below(used.len() as u64) as usize] * size;
                    let piece = member[at..at + size].to_vec();
                    member.copy_within(other..other + size, at);
                    member[other..other + size].copy_from_slice(&piece);
                }
            }
            let damaged = folder.path().join(format!("{draw}"));
            std::fs::create_dir(&damaged).unwrap();
            images.iter().for_each(|(name, bytes)| std::fs::write(damaged.join(name), bytes).unwrap());
            let what = format!("level {level}, {name}, {size} bytes at {at}");
            let bench = match Bench::new(&ImageAt::File(damaged), &config) {
                Ok(bench) => bench,
                Err(error) => {
                    assert!(error.to_string().contains(&name), "{what}: {error}");
                    outcomes[0] += 1;
                    continue;
                }
            };
            let mut client = bench.client();
            let mut bytes = [0; 4096];
            let mut errors = 0;
            for unit in 0..config.logical_bytes() / 4096 {
                match client.read(unit * 4096, &mut bytes) {
                    Ok(()) => assert!(truth.version(unit as usize, &bytes).is_some(), "{what}: unit {unit}"),
                    Err(error) => {
                        assert_eq!(error.raw_os_error(), Some(5), "{what}: unit {unit}");
                        errors += 1;
                    }
                }
            }
            outcomes[if errors > 0 { 1 } else { 2 }] += 1;
        }
    }
    assert!(outcomes.iter().all(|count| *count > 5), "refused, errors, right: {outcomes:?}");
}

/// A member, or the note of the array, from an earlier time is refused.
#[test]
fn members_from_an_earlier_use_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let images = folder.path().join("images");
    let (config, mut truth) = written(&images, 1, 2);
    let old = files(&images);
    Bench::in_folder(&images, &config).end();
    let new = files(&images);
    let put = |name: &str, from: &BTreeMap<String, Vec<u8>>| std::fs::write(images.join(name), &from[name]).unwrap();
    for (name, expected) in [
        ("member-1", "member-1 is older than the other members (1 of 2 uses)"),
        ("array.json", "array.json is older than member-0 (1 of 2 uses)"),
    ] {
        put(name, &old);
        let text = Bench::new(&ImageAt::File(images.clone()), &config).err().unwrap().to_string();
        assert!(text.contains(expected), "{text}");
        put(name, &new);
    }
    std::fs::write(images.join("array.json"), &new["array.json"][..20]).unwrap();
    let text = Bench::new(&ImageAt::File(images.clone()), &config).err().unwrap().to_string();
    assert!(text.contains("array.json"), "{text}");
    for format in [2, 4] {
        let note = format!("{{\"format\":{format},\"level\":1}}");
        std::fs::write(images.join("array.json"), note).unwrap();
        let text = Bench::new(&ImageAt::File(images.clone()), &config).err().unwrap().to_string();
        assert!(text.contains(&format!("unsupported version {format} of array.json (expected 3)")), "{text}");
    }
    std::fs::remove_file(images.join("array.json")).unwrap();
    let text = Bench::new(&ImageAt::File(images.clone()), &config).err().unwrap().to_string();
    assert!(text.contains("is not empty, but has no array.json"), "{text}");
    put("array.json", &new);
    truth.check_newest(&mut Bench::in_folder(&images, &config).client());
}

/// A start that was killed between the images of its members can be repeated.
#[test]
fn an_interrupted_start_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let images = folder.path().join("images");
    let (config, mut truth) = written(&images, 1, 2);
    let old = files(&images);
    // The note and the first member are those of the next start, the second member is not.
    let opened = OpenedArray::open(&ImageAt::File(images.clone()), &config, false).unwrap();
    drop(opened.recover(config.clone(), array_options(), false).unwrap());
    std::fs::write(images.join("member-1"), &old["member-1"]).unwrap();
    let note = std::fs::read_to_string(images.join("array.json")).unwrap();
    std::fs::write(images.join("array.json"), note.replace("\"is_starting\":false", "\"is_starting\":true")).unwrap();
    for _ in 0..2 {
        let bench = Bench::in_folder(&images, &config);
        truth.check_newest(&mut bench.client());
        bench.end();
    }
}

/// The images of an array get their name together, and an empty folder may exist.
#[test]
fn images_of_an_array_are_created_together() {
    let folder = tempfile::tempdir().unwrap();
    let images = folder.path().join("images");
    let config = config(1, 2, &[]);
    std::fs::create_dir(&images).unwrap();
    let names = |folder: &Path| files(folder).into_keys().collect::<Vec<_>>();
    let opened = OpenedArray::open(&ImageAt::File(images.clone()), &config, false).unwrap();
    assert!(opened.is_new() && names(&images).is_empty());
    drop(opened);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    Bench::in_folder(&images, &config).end();
    assert_eq!(names(&images), ["array.json", "member-0", "member-1"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// An array keeps its NQN after a shutdown, a crash, and the loss of a member. Another array has another one.
#[test]
fn an_array_keeps_its_identity() {
    let folder = tempfile::tempdir().unwrap();
    let [images, killed, other] = ["images", "killed", "other"].map(|name| folder.path().join(name));
    let serve = |images: &Path, set: &[&str]| {
        let (array, recovered) = opened(&ImageAt::File(images.to_owned()), &config(1, 2, set)).unwrap();
        let nvme = vec!["127.0.0.1:0".parse().unwrap()];
        let sockets = Sockets::open(&SocketAddresses { nvme, ..SocketAddresses::default() }).unwrap();
        let server = Server::start(array, sockets, options()).unwrap();
        (server.nqn().unwrap().to_owned(), server, recovered.map(|recovered| recovered.after_shutdown))
    };
    let (nqn, server, recovered) = serve(&images, &[]);
    assert_eq!(recovered, None);
    // Copies of the files of a running server, which kill -9 leaves.
    std::fs::create_dir(&killed).unwrap();
    files(&images).iter().for_each(|(name, bytes)| std::fs::write(killed.join(name), bytes).unwrap());
    server.stop(true).unwrap();
    let rebuilding = ["array.failed=[1]", "array.rebuild={ rate = \"1GB/s\" }"];
    for (images, set, after_shutdown) in [(&images, &[][..], true), (&killed, &[], false), (&images, &rebuilding, true)]
    {
        if !set.is_empty() {
            std::fs::remove_file(images.join("member-1")).unwrap();
        }
        let (again, server, recovered) = serve(images, set);
        assert_eq!((again, recovered), (nqn.clone(), Some(after_shutdown)));
        server.stop(true).unwrap();
    }
    let (another, server, _) = serve(&other, &[]);
    assert_ne!(another, nqn);
    server.stop(true).unwrap();
}
