//! Damage to image files: each kind that docs/reference/image.md lists gives the data as flushed, an I/O error or a
//! refusal.

use std::collections::{BTreeMap, BTreeSet};

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::flash::Bad;
use floatgate_core::sim::id::BlockId;
use floatgate_serve::image::disk::Disk;
use floatgate_serve::image::flash::Flash;
use floatgate_serve::image::inspect::{Ending, Inspection};
use floatgate_serve::image::layout::Layout;
use floatgate_serve::image::state::State;
use floatgate_serve::image::{ImageAt, ImageError, Opened};
use floatgate_serve::payload::PayloadError;

use crate::common::disk::{GRAIN, TestDisk};
use crate::common::truth::{Luck, Truth, stamp};
use crate::image::{Bench, begin, load, times};

const SECTOR: u64 = 512;

/// Devices whose images together have every kind of record.
const DEVICES: [&[&str]; 8] = [
    &[],
    &["buffer.capacity=64KiB", "buffer.power_loss_protection=true"],
    &["mapping.scheme.dftl.cache=8KiB", "geometry.blocks=32", "capacity.spare=0.7"],
    &["mapping.scheme={ fast = { logs = { sequential = 2, random = 4 } } }"],
    &[
        "durability.checkpoint=8KiB",
        "geometry.page_size=16KiB",
        "buffer.capacity=256KiB",
        "mapping.block_summary.last_page=512B",
        "capacity.spare=0.65",
    ],
    &["mapping.scheme=block", "gc.soft_threshold=2", "capacity.spare=0.7"],
    &[
        "geometry.blocks=32",
        "capacity.spare=0.8",
        "faults={ factory_bad = 1, program_rate = 0.002, erase_rate = 0.005 }",
    ],
    &[
        "geometry.mapping_unit=1KiB",
        "geometry.page_size=4KiB",
        "buffer.capacity=64KiB",
        "buffer.power_loss_protection=true",
    ],
];

/// A kind of damage.
#[derive(Clone, Copy, Debug)]
enum Kind {
    ZeroSector,
    OldSector,
    FlippedBits,
    ZeroPage,
    OldPage,
    SwappedPages,
    Truncated,
}

const KINDS: [Kind; 7] = [
    Kind::ZeroSector,
    Kind::OldSector,
    Kind::FlippedBits,
    Kind::ZeroPage,
    Kind::OldPage,
    Kind::SwappedPages,
    Kind::Truncated,
];

/// An image, and what is known about it.
struct Specimen {
    config: DeviceConfig,
    disk: TestDisk,
    /// Contents at earlier times.
    older: Vec<TestDisk>,
    truth: Truth,
}

/// Runs a workload on a new image. Returns the image after a kill and after a shutdown.
fn specimens(overrides: &[&str], seed: u64) -> [Specimen; 2] {
    let disk = TestDisk::default();
    let config = load(overrides);
    let bench = Bench::new(&disk, &config);
    let mut truth = Truth::new(config.logical_bytes(), config.unit_bytes() as usize, seed);
    truth.protected = overrides.contains(&"buffer.power_loss_protection=true");
    let mut client = bench.client();
    // Large devices need more to fill up.
    let steps = (30 * config.physical_bytes()) >> 22;
    let mut older = vec![disk.copy()];
    for round in 0..6 {
        for _ in 0..steps {
            truth.step(&mut client).unwrap();
        }
        if round < 4 {
            client.flush().unwrap();
            truth.flushed();
        }
        older.push(disk.copy());
    }
    older.pop();
    let killed = Specimen { config: config.clone(), disk: disk.copy(), older: copies(&older), truth: truth.clone() };
    drop(client);
    assert_eq!(bench.end().image, Some(Ok(())));
    truth.flushed();
    [killed, Specimen { config, disk, older, truth }]
}

fn copies(disks: &[TestDisk]) -> Vec<TestDisk> {
    disks.iter().map(TestDisk::copy).collect()
}

impl Specimen {
    /// Returns the pages with anything but payload, and the ones with payload.
    fn pages(&self) -> [Vec<u64>; 2] {
        let layout = Layout::of(&self.config);
        let is_payload = |page: &u64| {
            let at = page * GRAIN;
            let block = (0..layout.blocks).find(|block| {
                let (start, bytes) = layout.block(*block);
                (start..start + bytes).contains(&at)
            });
            match block {
                Some(block) => at >= layout.payload(block * layout.units),
                None => (0..64).any(|slot| (layout.saved_payload(slot)..layout.saved_head(slot, 1)).contains(&at)),
            }
        };
        let mut pages = BTreeSet::new();
        for disk in self.older.iter().chain([&self.disk]) {
            pages.extend(disk.0.lock().unwrap().grains.keys().copied());
        }
        let (payload, rest) = pages.into_iter().partition(is_payload);
        [rest, payload]
    }

    /// Returns the image with a damage at a sector. `None` if the damage would change nothing.
    fn damaged(&self, kind: Kind, sector: u64, luck: &mut Luck) -> Option<TestDisk> {
        let disk = self.disk.copy();
        let (page, within) = (sector * SECTOR / GRAIN, (sector * SECTOR % GRAIN) as usize..);
        let within = within.start..within.start + SECTOR as usize;
        let older = &self.older[luck.below(self.older.len() as u64) as usize];
        let page_of = |disk: &TestDisk, page: u64| {
            disk.0.lock().unwrap().grains.get(&page).cloned().unwrap_or_else(|| vec![0; GRAIN as usize])
        };
        let (before, old) = (page_of(&self.disk, page), page_of(older, page));
        let mut after = before.clone();
        let mut other = None;
        match kind {
            Kind::ZeroSector => after[within].fill(0),
            Kind::OldSector => after[within.clone()].copy_from_slice(&old[within]),
            Kind::FlippedBits => {
                for _ in 0..1 + luck.below(5) {
                    after[within.start + luck.below(SECTOR) as usize] ^= 1 << luck.below(8);
                }
            }
            Kind::ZeroPage => after.fill(0),
            Kind::OldPage => after = old,
            Kind::SwappedPages => {
                let pages = self.pages().concat();
                let chosen = pages[luck.below(pages.len() as u64) as usize];
                after = page_of(&self.disk, chosen);
                other = Some((chosen, before.clone()));
            }
            Kind::Truncated => {
                let size = self.disk.size().unwrap();
                let tail = sector * SECTOR;
                // Only a tail with contents.
                if tail >= size || tail < size / 2 {
                    return None;
                }
                disk.set(|platter| {
                    platter.size = tail;
                    platter.grains.retain(|page, _| page * GRAIN < tail);
                });
                return Some(disk);
            }
        }
        let changes = [Some((page, after)), other].into_iter().flatten();
        let mut has_changed = false;
        for (page, bytes) in changes {
            has_changed |= page_of(&self.disk, page) != bytes;
            disk.set(|platter| {
                platter.grains.insert(page, bytes);
            });
        }
        has_changed.then_some(disk)
    }

    /// Returns the erase counts and bad blocks of the undamaged image.
    fn blocks(&self) -> Blocks {
        let mut flash = Flash::open(Box::new(self.disk.copy()), &self.config).unwrap();
        let ending = if flash.state().is_clean { Ending::Shutdown } else { Ending::Kill };
        assert_eq!(flash.inspect(ending, true, false).unwrap(), Inspection::default());
        blocks(&flash, &self.config)
    }

    /// Opens a damaged image. Returns what happened, or panics if it gave a wrong answer.
    fn examine(&self, disk: &TestDisk, expected: &Blocks, what: &dyn Fn() -> String) -> &'static str {
        let size = disk.size().unwrap();
        let (device, mut store, _) = match begin(disk, &self.config) {
            Ok(begun) => begun,
            Err(error) => {
                let is_refusal = matches!(error, ImageError::Damaged(_) | ImageError::Lost(_) | ImageError::NoImage);
                assert!(is_refusal, "{}: {error}", what());
                assert_eq!(disk.size().unwrap(), size, "{}: a refused image keeps its size", what());
                return "refused";
            }
        };
        let unit = self.config.unit_bytes() as usize;
        let mut bytes = vec![0; unit];
        let mut errors = 0;
        for lpn in 0..self.config.logical_units() as usize {
            match store.read((lpn * unit) as u64, &mut bytes, |lpn| device.place_of(lpn)) {
                Ok(()) => assert!(self.truth.version(lpn, &bytes).is_some(), "{}: unit {lpn} is wrong", what()),
                Err(PayloadError::Damaged) => errors += 1,
                Err(error) => panic!("{}: unit {lpn}: {error}", what()),
            }
        }
        // The recovery itself may erase blocks.
        let is_at_least =
            |(found, least): (&Block, &Block)| (least.0..=least.0 + 1).contains(&found.0) && found.1 == least.1;
        let found = blocks(store.flash(), &self.config);
        assert!(found.iter().zip(expected).all(is_at_least), "{}: erase counts and bad blocks", what());
        if errors > 0 { "I/O errors" } else { "right" }
    }
}

/// Erase count of each block, and how it is bad.
type Blocks = Vec<Block>;

type Block = (u32, Option<Bad>);

fn blocks(flash: &Flash, config: &DeviceConfig) -> Blocks {
    (0..config.total_blocks()).map(BlockId).map(|block| (flash.erases(block), flash.bad(block))).collect()
}

/// Damages drawn per image, or `None` for every sector of everything but payload: `FLOATGATE_DAMAGES`.
fn draws() -> Option<u64> {
    match std::env::var("FLOATGATE_DAMAGES") {
        Ok(text) if text == "every" => None,
        text => Some(text.ok().and_then(|text| text.parse().ok()).unwrap_or(125)),
    }
}

#[test]
fn no_damage_gives_a_wrong_answer() {
    let mut outcomes = BTreeMap::new();
    for (index, overrides) in DEVICES.into_iter().enumerate() {
        let both = specimens(overrides, index as u64);
        for (ending, specimen) in ["kill", "shutdown"].into_iter().zip(&both) {
            let expected = specimen.blocks();
            println!("{overrides:?} after a {ending}: {} erases", expected.iter().map(|block| block.0).sum::<u32>());
            let mut luck = Luck(index as u64);
            let [rest, payload] = specimen.pages();
            assert!(expected.iter().any(|block| block.0 > 0), "{overrides:?}: nothing was erased");
            let mut examine = |kind: Kind, sector: u64, luck: &mut Luck| {
                let what = || format!("{overrides:?} after a {ending}, {kind:?} at byte {}", sector * SECTOR);
                let Some(disk) = specimen.damaged(kind, sector, luck) else { return };
                let outcome = specimen.examine(&disk, &expected, &what);
                *outcomes.entry((format!("{kind:?}"), ending, outcome)).or_insert(0) += 1;
            };
            match draws() {
                Some(draws) => {
                    for draw in 0..draws {
                        let pages = if draw % 4 == 3 { &payload } else { &rest };
                        let sector = pages[luck.below(pages.len() as u64) as usize] * 8 + luck.below(8);
                        let kind = KINDS[luck.below(KINDS.len() as u64) as usize];
                        examine(kind, sector, &mut luck);
                    }
                }
                None => {
                    for sector in rest.iter().flat_map(|page| page * 8..page * 8 + 8) {
                        KINDS.iter().for_each(|kind| examine(*kind, sector, &mut luck));
                    }
                }
            }
        }
    }
    println!("{outcomes:#?}");
    let count =
        |outcome: &str| outcomes.iter().filter(|((_, _, what), _)| *what == outcome).map(|(_, n)| n).sum::<i32>();
    assert!(["right", "refused", "I/O errors"].map(count).iter().all(|count| *count > 20), "{outcomes:?}");
}

/// Marks an image as last used before the machine was started.
fn with_another_boot(mut disk: TestDisk) -> TestDisk {
    let (state, _) = State::read(&mut disk).unwrap();
    State { boot: 1, generation: state.generation + 1, ..state }.write(&mut disk).unwrap();
    disk
}

/// A crash of the machine loses nothing that was flushed with `--image-sync`, although the kernel writes the other
/// changes in any order.
#[test]
fn after_a_crash_of_the_machine_each_synced_unit_is_flushed_or_newer() {
    for (index, overrides) in DEVICES.into_iter().enumerate() {
        let mut disk = TestDisk::default();
        let config = load(overrides);
        let mut truth = Truth::new(config.logical_bytes(), config.unit_bytes() as usize, index as u64);
        let mut luck = Luck(index as u64);
        for crash in 0..times(5) {
            println!("{overrides:?}, crash {crash}");
            disk.set(|platter| platter.synced = Some(platter.grains.clone()));
            let bench = Bench::with(&disk, &config, true).unwrap();
            let mut client = bench.client();
            truth.check(&mut client);
            for _ in 0..luck.below((20 * config.physical_bytes()) >> 22) {
                truth.step(&mut client).unwrap();
            }
            let crashed = disk.crashed(&mut luck);
            bench.end();
            disk = with_another_boot(crashed);
        }
        truth.check(&mut Bench::with(&disk, &config, true).unwrap().client());
    }
}

/// After a crash of the machine without `--image-sync`, a unit may read as any of its versions, but never as anything
/// else.
#[test]
fn after_a_crash_of_the_machine_each_unit_has_one_of_its_versions() {
    for (index, overrides) in DEVICES.into_iter().enumerate() {
        let disk = TestDisk::default();
        let config = load(overrides);
        let mut truth = Truth::new(config.logical_bytes(), config.unit_bytes() as usize, index as u64);
        let mut luck = Luck(index as u64);
        disk.set(|platter| platter.synced = Some(BTreeMap::new()));
        let bench = Bench::new(&disk, &config);
        let mut client = bench.client();
        let unit = config.unit_bytes();
        for crash in 0..times(5) {
            for _ in 0..luck.below((20 * config.physical_bytes()) >> 22) {
                truth.step(&mut client).unwrap();
            }
            let disk = with_another_boot(disk.crashed(&mut luck));
            let (device, mut store, recovered) = begin(&disk, &config).unwrap();
            assert!(recovered.is_some_and(|recovered| recovered.payload_checked && !recovered.after_shutdown));
            let mut bytes = vec![0; unit as usize];
            for lpn in 0..config.logical_units() {
                store.read(lpn * unit, &mut bytes, |lpn| device.place_of(lpn)).unwrap();
                let is_written = bytes.chunks_exact(SECTOR as usize).all(|sector| stamp(sector).is_some());
                assert!(is_written, "{overrides:?}, crash {crash}: unit {lpn}");
            }
        }
        bench.end();
    }
}

/// Files that are not images are refused and not changed.
#[test]
fn whatever_exists_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let config = load(&[]);
    let path = folder.path().join("file");
    let large = vec![0; 2 << 20];
    for contents in [&b""[..], b"notes", &[0; 512], &[0; 8192], &large] {
        std::fs::write(&path, contents).unwrap();
        let error = Opened::open(&ImageAt::File(path.clone()), &config, false).err().unwrap();
        assert!(matches!(error, ImageError::NoImage), "{} bytes: {error}", contents.len());
        assert_eq!(std::fs::read(&path).unwrap(), contents);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A creation that fails, such as on a full disk, leaves no file behind.
#[test]
fn a_failed_creation_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let config = load(&["durability.trim_journal=true"]);
    let path = folder.path().join("file");
    let opened = Opened::open(&ImageAt::File(path.clone()), &config, false).unwrap();
    assert!(opened.is_new() && !path.exists());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "another name");
    drop(opened);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let missing = folder.path().join("missing").join("file");
    assert!(matches!(Opened::open(&ImageAt::File(missing), &config, false), Err(ImageError::Io(_))));
    let disk = TestDisk::default();
    disk.set(|platter| platter.room = Some(3));
    let created = Opened::create_on(Box::new(disk), &config, false).map(|_| ());
    assert!(matches!(created, Err(ImageError::Io(_))), "{created:?}");
}
