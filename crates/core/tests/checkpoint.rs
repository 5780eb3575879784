//! Checkpoints: the pages that they save a recovery from reading, the time of the recovery, and their cost. `power/`
//! shows that the recovered device is the same at any instant. Here the device is idle, and times are computed by hand.
//!
//! `FLOATGATE_DEVICES=tiny,x25m` measures the recoveries of the named devices, and `FLOATGATE_BLOCKS=256,512` those of
//! `agrawal2008` with these numbers of blocks in a plane; see docs/model/durability.md.

use std::collections::BTreeMap;

use crate::common::{build, device_config, drain};
use floatgate_core::device_file::{DeviceConfig, load};
use floatgate_core::flash::{Bad, BlockState, FlashEvent, FlashImage, Keep, Recovery, Role, Source, UnitState};
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::results::ProgramCause;
use floatgate_core::sim::id::{BlockId, Lpn, Ppn};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};

/// Flash without the payload of the host. Only the contents of the device's own units are stored.
#[derive(Clone, Default)]
struct Kept {
    units: Vec<UnitState>,
    own: BTreeMap<u32, Vec<u8>>,
    erases: BTreeMap<u32, u32>,
    anchors: BTreeMap<u32, Ppn>,
    units_per_block: u32,
    /// Damage of the checkpoint parts.
    trouble: Trouble,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Trouble {
    #[default]
    None,
    /// The medium returns no anchors.
    NoAnchors,
    /// Each anchor refers to the next part.
    OtherAnchors,
    /// Anchors refer to addresses beyond the device.
    WildAnchors,
    /// Parts are torn.
    Torn,
    /// Parts end early.
    Short,
    /// Parts hold noise.
    Noise,
    /// Parts cannot be read.
    Unreadable,
}

impl Kept {
    fn new(config: &DeviceConfig) -> Kept {
        let units = config.total_blocks() as usize * config.units_per_block() as usize;
        let units_per_block = config.units_per_block();
        Kept { units: vec![UnitState::Erased; units], units_per_block, ..Kept::default() }
    }

    fn apply(&mut self, event: &FlashEvent, own: &[u8]) {
        match *event {
            FlashEvent::Unit { ppn, record, source } => {
                self.units[ppn.index()] = UnitState::Holds(record);
                let bytes = match source {
                    Source::Own { start, len } => Some(own[start..start + len].to_vec()),
                    Source::Copy(from) => self.own.get(&from.0).cloned(),
                    _ => None,
                };
                bytes.map(|bytes| self.own.insert(ppn.0, bytes));
            }
            FlashEvent::EraseEnded { block, erases } => {
                self.erases.insert(block.0, erases);
                for ppn in block.0 * self.units_per_block..(block.0 + 1) * self.units_per_block {
                    self.units[ppn as usize] = UnitState::Erased;
                    self.own.remove(&ppn);
                }
            }
            FlashEvent::Anchored { part, ppn } => {
                self.anchors.insert(part, ppn);
            }
            _ => {}
        }
    }

    fn is_part(&self, ppn: Ppn) -> bool {
        self.anchors.values().any(|part| *part == ppn)
    }
}

impl FlashImage for Kept {
    fn bad(&mut self, _: BlockId) -> Result<Option<Bad>, String> {
        Ok(None)
    }

    fn erases(&mut self, block: BlockId) -> Result<u32, String> {
        Ok(self.erases.get(&block.0).copied().unwrap_or(0))
    }

    fn anchor(&mut self, part: u32) -> Result<Option<Ppn>, String> {
        Ok(match self.trouble {
            Trouble::NoAnchors => None,
            Trouble::OtherAnchors => self.anchors.get(&(part + 1)).copied(),
            Trouble::WildAnchors => Some(Ppn(u32::MAX - part)),
            _ => self.anchors.get(&part).copied(),
        })
    }

    fn unit(&mut self, ppn: Ppn) -> Result<UnitState, String> {
        match self.trouble {
            Trouble::Torn if self.is_part(ppn) => Ok(UnitState::Torn),
            _ => Ok(self.units[ppn.index()]),
        }
    }

    fn own(&mut self, ppn: Ppn, into: &mut Vec<u8>) -> Result<(), String> {
        let bytes = self.own.get(&ppn.0).cloned().unwrap_or_default();
        if self.trouble != Trouble::None && self.is_part(ppn) {
            match self.trouble {
                Trouble::Unreadable => return Err("it cannot be read".to_owned()),
                Trouble::Short => into.extend(&bytes[..bytes.len() / 2]),
                _ => into.extend(bytes.iter().map(|byte| byte ^ 0x5a)),
            }
            return Ok(());
        }
        into.extend(bytes);
        Ok(())
    }
}

/// Returns a device that was filled and then overwritten at random with `writes` writes, and its flash.
fn used(config: &DeviceConfig, writes: u64) -> (Device, Kept) {
    let mut device = build(config.clone(), Options::default());
    precondition(&mut device, Precondition::Fill, 1, &mut |_| true).expect("the device is filled");
    let mut flash = Kept::new(config);
    device.make_durable(Keep::Outbox, Some(&mut |event, own| flash.apply(event, own))).expect("the device is idle");
    let mut rng = Rng::new(1, "checkpoint");
    let mut reported = floatgate_core::flash::Outbox::default();
    let (units, sectors) = (config.logical_units(), config.sectors_per_unit());
    for _ in 0..writes.div_ceil(32) {
        for _ in 0..32 {
            let lba = rng.below(units) * u64::from(sectors);
            let now = device.now();
            device.submit(now, Request::new(now, Operation::Write, lba, sectors));
        }
        drain(&mut device);
        device.take_flash(&mut reported);
        reported.events.iter().for_each(|event| flash.apply(event, &reported.own));
        reported.clear();
    }
    (device, flash)
}

fn recover(config: &DeviceConfig, flash: &Kept, trouble: Trouble) -> (Device, Recovery) {
    let mut flash = Kept { trouble, ..flash.clone() };
    Device::recover(config.clone(), Options::default(), &mut flash).expect("the device recovers")
}

/// A plane of 64 blocks of 64 units. The account of a block has 28 + 64 * 8 bytes; 7 fit into a part: 10 parts.
const PLANE: [&str; 4] =
    ["geometry.channels=1", "geometry.chips=1", "durability.checkpoint=8KiB", "capacity.spare=0.4"];

#[test]
fn blocks_with_accounts_are_not_read() {
    let config = device_config(&PLANE);
    assert_eq!(config.checkpoint_units(), 10);
    let (mut device, flash) = used(&config, 4000);
    let (_, with) = recover(&config, &flash, Trouble::None);
    let (_, without) = recover(&config, &flash, Trouble::NoAnchors);
    // A used block takes 64 page reads, an empty one takes one, and so does a part.
    assert_eq!(without.pages_read, 64 * without.blocks_scanned + without.blocks_empty);
    assert_eq!(with.blocks_skipped + with.blocks_scanned + with.blocks_empty, 64);
    assert_eq!(with.pages_read, with.checkpoint_parts + 64 * with.blocks_scanned + with.blocks_empty);
    assert!(with.checkpoint_parts == 10 && with.blocks_skipped > 50, "{with:?}");
    assert_eq!((with.blocks_erased, without.blocks_erased), (0, 0));
    // A read takes 25 us, its command, and 25 ns for each byte: 128 spare bytes, or the 4,096 bytes of a part.
    let command = device.array_mut().timing().read_command.0;
    let [spare, whole] = [128, 4096].map(|bytes| 25_000_000 + command + bytes * 25_000);
    assert_eq!(without.time_ps, without.pages_read * spare);
    assert_eq!(with.time_ps, with.checkpoint_parts * whole + (with.pages_read - with.checkpoint_parts) * spare);
}

#[test]
fn a_map_that_survives_saves_the_scan() {
    let plane = [PLANE[0], PLANE[1], PLANE[3]];
    let (_, flash) = used(&device_config(&plane), 4000);
    let recovery = |memory: &str| {
        let config = device_config(&[plane[0], plane[1], plane[2], &format!("durability.map={memory}")]);
        let (mut device, report) = recover(&config, &flash, Trouble::None);
        device.check_invariants().expect("the counters add up");
        let map: Vec<_> = (0..device.ftl().map.len()).map(|lpn| device.ftl().map.get(Lpn(lpn))).collect();
        (map, report, device.array_mut().timing().read_command.0)
    };
    let [(map, scan, command), (kept, none, _), (saved, read, _)] = ["volatile", "non-volatile", "saved"].map(recovery);
    assert!(kept == map && saved == map, "the map is the same");
    assert_eq!((none.pages_read, none.time_ps), (0, 0));
    assert_eq!(none.blocks_skipped, scan.blocks_scanned);
    // A unit of 4 KiB has room for the accounts of 7 of the 64 blocks.
    assert_eq!(read.pages_read, 10);
    assert_eq!(read.time_ps, 10 * (25_000_000 + command + 4096 * 25_000));
    assert_eq!(scan.time_ps, scan.pages_read * (25_000_000 + command + 128 * 25_000));
}

#[test]
fn the_time_of_a_summary_read_includes_its_data() {
    let config = device_config(&["geometry.channels=1", "geometry.chips=1", "mapping.block_summary.last_page=2KiB"]);
    let (mut device, flash) = used(&config, 200);
    let (_, found) = recover(&config, &flash, Trouble::None);
    assert_eq!(found.pages_read, 2 * found.summaries_used + 63 * found.blocks_scanned + found.blocks_empty);
    let command = device.array_mut().timing().read_command.0;
    let [spare, whole] = [128, 4096].map(|bytes| 25_000_000 + command + bytes * 25_000);
    assert!(found.summaries_used > 20, "{found:?}");
    assert_eq!(found.time_ps, found.summaries_used * whole + (found.pages_read - found.summaries_used) * spare);
}

#[test]
fn blocks_in_slc_mode_have_fewer_pages_and_are_read_faster() {
    let config = device_config(&[
        "geometry.channels=1",
        "geometry.chips=1",
        "geometry.pages=66",
        "nand.cell=tlc",
        "nand.slc_mode={ read = \"20us\", program = \"75us\" }",
        "mapping.scheme.dftl={ cache = \"64B\", entry = \"256B\", cells = \"slc\" }",
        "capacity.spare=0.4",
    ]);
    let (device, flash) = used(&config, 2000);
    let blocks = device.ftl().blocks.all();
    let in_use = |role: Role| {
        let used = blocks.iter().filter(|block| block.state != BlockState::Free && block.role == role);
        used.count() as u64
    };
    let (slc, native) = (in_use(Role::Map), in_use(Role::Data));
    let (recovered, found) = recover(&config, &flash, Trouble::None);
    assert_eq!((found.blocks_scanned, found.blocks_empty), (slc + native, blocks.len() as u64 - slc - native));
    assert!(slc > 5 && native > 20, "{slc} blocks of the map, {native} of data");
    assert_eq!(found.pages_read, 22 * slc + 66 * native + found.blocks_empty);
    // The blocks of the map are erased and the map is written again, all in one plane without command cycles.
    let [read, slc_read] = [25_000_000, 20_000_000].map(|cells| cells + 128 * 25_000);
    let program = 4096 * 25_000 + 75_000_000;
    let reads = 22 * slc * slc_read + (66 * native + found.blocks_empty) * read;
    let erases = found.blocks_erased * 1_500_000_000;
    assert_eq!(found.time_ps, reads + erases + found.map_pages_written * program);
    assert!(found.blocks_erased >= slc && found.map_pages_written > 100, "{found:?}");
    recovered.check_invariants().expect("the counters add up");
}

#[test]
fn an_unreadable_checkpoint_is_ignored() {
    let config = device_config(&PLANE);
    let (_, flash) = used(&config, 3000);
    let (scanned, _) = recover(&config, &flash, Trouble::NoAnchors);
    let map =
        |device: &Device| -> Vec<_> { (0..device.ftl().map.len()).map(|lpn| device.ftl().map.get(Lpn(lpn))).collect() };
    for trouble in [
        Trouble::None,
        Trouble::OtherAnchors,
        Trouble::WildAnchors,
        Trouble::Torn,
        Trouble::Short,
        Trouble::Noise,
        Trouble::Unreadable,
    ] {
        let (device, report) = recover(&config, &flash, trouble);
        // A part that ends early is ignored as a whole.
        assert_eq!(report.blocks_skipped > 0, trouble == Trouble::None, "{trouble:?}: {report:?}");
        assert_eq!(map(&device), map(&scanned), "{trouble:?}");
        device.check_invariants().expect("the counters add up");
    }
}

#[test]
fn parts_are_written_at_the_configured_interval() {
    for (interval, units) in [("8KiB", 2), ("64KiB", 16), ("1MiB", 256)] {
        let mut device = build(
            device_config(&[PLANE[0], PLANE[1], PLANE[3], &format!("durability.checkpoint={interval}")]),
            Options::default(),
        );
        let mut rng = Rng::new(2, "cost");
        let total = 8000;
        for _ in 0..total {
            let now = device.now();
            let lba = rng.below(device.config().logical_units()) * 8;
            device.submit(now, Request::new(now, Operation::Write, lba, 8));
            drain(&mut device);
        }
        let counters = &device.ftl().counters;
        let [host, parts] =
            [ProgramCause::Host, ProgramCause::Checkpoint].map(|c| counters.pages_programmed[c as usize]);
        assert_eq!(host, total);
        // At most one part per interval, and at least a third of that if enough blocks are closed.
        let closed = (host + counters.pages_programmed[ProgramCause::Gc as usize]) / 64;
        let least = (total / units).min(closed) / 3;
        assert!(parts <= total / units && parts >= least, "{interval}: {parts} parts, {closed} blocks closed");
        device.check_invariants().expect("the counters add up");
    }
}

/// Compares recoveries with and without the checkpoint. The devices are full and were overwritten until each part was
/// written.
#[test]
fn a_checkpoint_saves_page_reads_and_time() {
    let names = std::env::var("FLOATGATE_DEVICES").unwrap_or_else(|_| "tiny".to_owned());
    for name in names.split(',') {
        let config = load(name, &["durability.checkpoint=4KiB".to_owned()]).expect("a device");
        let (_, flash) = used(&config, config.checkpoint_units() * 11 / 10 + 4000);
        let [with, without] = [Trouble::None, Trouble::NoAnchors].map(|trouble| recover(&config, &flash, trouble).1);
        for (what, report) in [("without", &without), ("with", &with)] {
            println!(
                "{name} {what}: {} pages, {:.3} ms, {} parts; blocks: {} accounted, {} scanned, {} empty, {} erased",
                report.pages_read,
                Time(report.time_ps).as_us() / 1e3,
                report.checkpoint_parts,
                report.blocks_skipped,
                report.blocks_scanned,
                report.blocks_empty,
                report.blocks_erased,
            );
        }
        assert!(with.pages_read * 4 < without.pages_read, "{name}");
        assert!(with.time_ps * 2 < without.time_ps, "{name}");
    }
}

/// Options for the records that a recovery reads: all of them, summaries, a checkpoint, or a map that survived.
const WAYS: [(&str, &[&str]); 5] = [
    ("every page", &["mapping.block_summary=none"]),
    ("summaries", &["mapping.block_summary.last_page=528B"]),
    ("checkpoint", &["mapping.block_summary=none", "durability.checkpoint=4KiB"]),
    ("saved map", &["mapping.block_summary=none", "durability.map=saved"]),
    ("non-volatile map", &["mapping.block_summary=none", "durability.map=non-volatile"]),
];

#[test]
fn recovery_takes_time_in_proportion_to_the_capacity() {
    let given = std::env::var("FLOATGATE_BLOCKS");
    let (name, blocks) = match &given {
        Ok(blocks) => ("agrawal2008", blocks.as_str()),
        Err(_) => ("tiny", "64,128"),
    };
    let times = |blocks: u32| -> Vec<u64> {
        let time = |(way, options): &(&str, &[&str])| {
            let least = (blocks / 20).max(1);
            let plane =
                [("geometry.blocks", blocks), ("gc.hard_threshold", least), ("gc.soft_threshold", least.max(2))];
            let plane = plane.map(|(path, value)| format!("{path}={value}"));
            let options: Vec<String> = options.iter().map(|&option| option.to_owned()).chain(plane).collect();
            let config = load(name, &options).expect("a device");
            let (_, flash) = used(&config, config.checkpoint_units() * 11 / 10 + 4000);
            let report = recover(&config, &flash, Trouble::None).1;
            let time = Time(report.time_ps).as_us() / 1e3;
            println!("{name}, {blocks} blocks, {way}: {} pages read, {time:.3} ms", report.pages_read);
            report.time_ps
        };
        WAYS.iter().map(time).collect()
    };
    let found: Vec<Vec<u64>> = blocks.split(',').map(|blocks| times(blocks.parse().expect("a number"))).collect();
    for pair in found.windows(2) {
        let growth: Vec<f64> =
            pair[0].iter().zip(&pair[1]).map(|(small, large)| *large as f64 / *small as f64).collect();
        // Twice the blocks have a few more free ones. Summaries and a checkpoint leave open blocks to be read.
        assert!([growth[0], growth[3]].iter().all(|growth| (1.8..2.1).contains(growth)), "{growth:?}");
    }
    for times in found {
        let is_sorted = times[0] > 4 * times[1] && times[1] > times[3] && times[3] > times[4] && times[0] > times[2];
        assert!(is_sorted, "{times:?}");
        assert_eq!(times[4], 0);
    }
}
