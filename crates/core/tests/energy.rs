//! Energy by operation: equal to what a count of the operations by hand gives, to the last femtojoule.

use floatgate_core::internals::{EnergyServed as Served, EnergyWork as Work, EraseCause, ReadCause};
use floatgate_core::results::{Interval, Part, ProgramCause, Sample, Statistics};
use floatgate_core::sim::request::Operation;
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};
use floatgate_core::summary::{EnergyCauses, EnergyUse};
use floatgate_core::timeline::{Kind, Phase, Probe};

use crate::common::history::summary_of;
use crate::common::{self, Load, device, drain, submit, units};

/// Energies that cannot be confused: in femtojoules 7e9, 31e9, 211e9, and 1e5 per byte.
const ENERGY: &str = "energy={ read = \"7uJ\", program = \"31uJ\", erase = \"211uJ\", transfer = \"100pJ\" }";
const STATIC: [&str; 2] = ["energy.die=2mW", "energy.controller=1.5W"];
const PAGE: u64 = 4096;

/// Returns a number of femtojoules in joules.
fn joules(femto: u64) -> f64 {
    femto as f64 / 1e15
}

/// Returns the energy that an idle device has used since time 0.
fn energy_of(device: &Device) -> EnergyUse {
    let data = device.array().channel_time.iter().map(|time| time.data.ps() as i64).sum();
    let work = Work { counters: &device.ftl().counters, data, span: device.now() };
    EnergyUse::new(device.config(), &work, Served::default()).expect("energies are stated")
}

#[test]
fn a_run_of_a_few_requests_has_the_energy_of_a_count_by_hand() {
    let mut device = device(&[ENERGY, STATIC[0], STATIC[1]]);
    let mut next = 0;
    let written = units(&device, Operation::Write, 0, 1);
    let outcome = Load::closed(1, 13, move || {
        next += 1;
        // Ten pages are written, and three of them are read.
        let per_unit = u64::from(written.sectors);
        let operation = if next <= 10 { Operation::Write } else { Operation::Read };
        floatgate_core::sim::request::Request { operation, lba: next % 10 * per_unit, ..written }
    });
    let outcome = outcome.run(&mut device);
    let energy = summary_of(&outcome, &device).energy.expect("energies are stated");
    // Each request waits for the one before it, and arrives 1 ns after its end.
    let program_ns = 10 * (102_400 + 200_000);
    let span_ns = program_ns + 3 * (25_000 + 102_400) + 12;
    assert_eq!(outcome.elapsed, Time::from_ns(span_ns));
    assert_eq!(energy.read_j, joules(3 * 7_000_000_000));
    assert_eq!(energy.program_j, joules(10 * 31_000_000_000));
    assert_eq!(energy.erase_j, 0.0);
    assert_eq!(energy.transfer_j, joules(13 * PAGE * 100_000));
    // Four dies of 2 mW and 1.5 W. A milliwatt for a nanosecond is 1,000 fJ.
    assert_eq!(energy.static_j, joules((4 * 2 + 1_500) * 1_000 * span_ns));
    let total = 3 * 7_000_000_000 + 310_000_000_000 + 13 * PAGE * 100_000 + 1_508_000 * span_ns;
    assert_eq!(energy.total_j, joules(total));
    assert_eq!(energy.mean_w, Some(joules(total) / (span_ns as f64 / 1e9)));
    assert_eq!(energy.per_host_byte_j, Some(joules(total) / (13 * PAGE) as f64));
    assert_eq!(energy.per_request_j, Some(joules(total) / 13.0));
    let cells = joules(3 * 7_000_000_000 + 310_000_000_000);
    assert_eq!(energy.by_cause, EnergyCauses { host_j: cells, ..EnergyCauses::default() });
}

/// Returns the sum of the energies of all causes.
fn sum_of(causes: EnergyCauses) -> f64 {
    let EnergyCauses { host_j, gc_j, wear_j, merge_j, fold_j, refresh_j, rebuild_j, map_j, own_j, padding_j } = causes;
    host_j + gc_j + wear_j + merge_j + fold_j + refresh_j + rebuild_j + map_j + own_j + padding_j
}

/// All causes together have the energy of all reads, programs and erases, each counted in femtojoules.
#[test]
fn the_energy_of_the_causes_is_that_of_the_operations() {
    let tight = ["capacity.spare=0.45", "geometry.blocks=16"];
    for options in [
        &["mapping.block_summary.last_page=1KiB"][..],
        &["mapping.scheme.dftl={ cache = \"2KiB\", entry = \"256B\" }", "geometry.blocks=24", "capacity.spare=0.5"],
        &["gc.wear=static-threshold", "geometry.mapping_unit=2KiB"],
    ] {
        let mut device = device(&[&[ENERGY], &tight[..], options].concat());
        serve(&mut device, 4_000, 20);
        let (energy, causes) = (energy_of(&device), energy_of(&device).by_cause);
        let cells = energy.read_j + energy.program_j + energy.erase_j;
        assert!((sum_of(causes) / cells - 1.0).abs() < 1e-12, "{options:?}: {} {cells}", sum_of(causes));
        let counters = device.ftl().counters;
        let erases = counters.blocks_erased - counters.erases[EraseCause::Map as usize];
        let of_wear = counters.erases[EraseCause::Wear as usize];
        assert_eq!(counters.erases.iter().sum::<u64>(), counters.blocks_erased);
        let [reads, programs] =
            [counters.pages_read[ReadCause::Gc as usize], counters.pages_programmed[ProgramCause::Gc as usize]];
        let gc = reads * 7_000_000_000 + programs * 31_000_000_000 + (erases - of_wear) * 211_000_000_000;
        assert!(gc > 0);
        assert_eq!(causes.gc_j, joules(gc), "{options:?}");
        let host = counters.pages_read[ReadCause::Host as usize] + counters.pages_read[ReadCause::Rmw as usize];
        let host = host * 7_000_000_000 + counters.pages_programmed[ProgramCause::Host as usize] * 31_000_000_000;
        assert_eq!(causes.host_j, joules(host), "{options:?}");
    }
}

/// Serves random requests and returns the phases of the cells by kind: reads, programs, erases and copy-backs.
fn serve(device: &mut Device, requests: u32, share_of_reads: u64) -> [u64; 4] {
    let total = device.ftl().map.len();
    common::fill(device, total);
    // The energy of the fill is not counted: it takes no time.
    device.ftl_mut().counters = Default::default();
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
    let mut rng = Rng::new(3, "energy");
    let mut at = Time::ZERO;
    for _ in 0..requests {
        let operation = if rng.below(100) < share_of_reads { Operation::Read } else { Operation::Write };
        let request = units(device, operation, rng.below(u64::from(total)), 1);
        submit(device, at, request);
        at += Time::from_us(130);
    }
    drain(device);
    let slices = device.array().probe().expect("it was switched on").slices().iter();
    let of =
        |kind: Kind| slices.clone().filter(|slice| slice.phase == Phase::Cell && slice.kind == kind).count() as u64;
    [of(Kind::Read), of(Kind::Program), of(Kind::Erase), of(Kind::CopyBack)]
}

#[test]
fn garbage_collection_and_copy_backs_count_and_skipped_pages_do_not() {
    for (copy_back, transfers_of_copies) in [("off", true), ("blind", false)] {
        let copy_back = format!("nand.advanced.copy_back={copy_back}");
        let mut device =
            device(&[ENERGY, &copy_back, "capacity.spare=0.35", "geometry.blocks=16", "gc.frontiers=separate"]);
        let [reads, programs, erases, copy_backs] = serve(&mut device, 4_000, 20);
        assert!(erases > 20 && (copy_backs > 0) != transfers_of_copies, "{erases} erases, {copy_backs} copy-backs");
        let skipped = device.ftl().counters.pages_programmed_total() - programs - copy_backs / 2;
        assert!((skipped > 0) != transfers_of_copies, "{skipped} skipped pages");
        // The cells work twice for a copy-back: they read a page, then they program it.
        let moved = copy_backs / 2;
        let energy = energy_of(&device);
        assert_eq!(energy.read_j, joules((reads + moved) * 7_000_000_000), "{copy_back}");
        assert_eq!(energy.program_j, joules((programs + moved) * 31_000_000_000), "{copy_back}");
        assert_eq!(energy.erase_j, joules(erases * 211_000_000_000), "{copy_back}");
        assert_eq!(energy.transfer_j, joules((reads + programs) * PAGE * 100_000), "{copy_back}");
        assert_eq!(energy.static_j, 0.0);
    }
}

#[test]
fn suspended_operations_count_once() {
    let options = ["nand.advanced.suspend.program=true", "nand.advanced.suspend.erase=true", "scheduler=read-first"];
    let mut device = device(&[&[ENERGY, "capacity.spare=0.35", "geometry.blocks=16"], &options[..]].concat());
    serve(&mut device, 4_000, 50);
    let counters = device.ftl().counters;
    let programs = counters.pages_programmed_total();
    let energy = energy_of(&device);
    assert_eq!(energy.program_j, joules(programs * 31_000_000_000));
    assert_eq!(energy.erase_j, joules(counters.blocks_erased * 211_000_000_000));
    // A suspended operation shows as several phases of the cells.
    let slices = device.array().probe().expect("it was switched on").slices().iter();
    let phases = slices.filter(|slice| slice.phase == Phase::Cell && slice.kind == Kind::Program).count() as u64;
    assert!(phases > programs, "{phases} phases of {programs} programs");
}

/// Options of a chip with three bits per cell, whose translation pages are in SLC mode.
const SLC: [&str; 7] = [
    "geometry.pages=66",
    "nand.cell=tlc",
    "nand.slc_mode={ read = \"20us\", program = \"75us\" }",
    "mapping.scheme.dftl={ cache = \"2KiB\", entry = \"256B\", cells = \"slc\" }",
    "capacity.spare=0.4",
    "energy.slc_read=1uJ",
    "energy.slc_program=3uJ",
];

#[test]
fn pages_in_slc_mode_have_energies_of_their_own() {
    for wordline in [1, 3] {
        let pages = format!("geometry.pages_per_program={wordline}");
        let mut device = device(&[&[ENERGY, &pages, "mapping.block_summary.last_page=1KiB"], &SLC[..]].concat());
        serve(&mut device, 3_000, 20);
        // By their times, which tell the modes apart.
        let slices = device.array().probe().expect("it was switched on").slices().iter();
        let of = |kind: Kind, us: u64| {
            let is_it = |slice: &&floatgate_core::timeline::Slice| {
                slice.phase == Phase::Cell && slice.kind == kind && slice.end - slice.start == Time::from_us(us)
            };
            slices.clone().filter(is_it).count() as u64
        };
        let [native_reads, slc_reads] = [25, 20].map(|us| of(Kind::Read, us));
        let [native_programs, slc_programs] = [200, 75].map(|us| of(Kind::Program, us));
        assert!(
            slc_reads.min(slc_programs).min(device.ftl().counters.slc.pages_programmed.iter().sum()) > 0,
            "no page in SLC mode"
        );
        let energy = energy_of(&device);
        let (read, program) = ([7_000_000_000, 1_000_000_000], [31_000_000_000, 3_000_000_000]);
        assert_eq!(energy.read_j, joules(native_reads * read[0] + slc_reads * read[1]), "{pages}");
        assert_eq!(energy.program_j, joules(native_programs * program[0] + slc_programs * program[1]), "{pages}");
    }
}

#[test]
fn a_page_of_a_synchronous_gang_is_a_page_of_each_package() {
    let gang = ["nand.concurrency=chip", "gang={ width = 2, mode = \"synchronous\" }"];
    let mut device = device(&[&[ENERGY, STATIC[0], "capacity.spare=0.35", "geometry.blocks=16"], &gang[..]].concat());
    let [reads, programs, erases, _] = serve(&mut device, 1_000, 20);
    let energy = energy_of(&device);
    let packages = 2;
    assert_eq!(energy.read_j, joules(packages * reads * 7_000_000_000));
    assert_eq!(energy.program_j, joules(packages * programs * 31_000_000_000));
    assert_eq!(energy.erase_j, joules(packages * erases * 211_000_000_000));
    assert_eq!(energy.static_j, joules(4 * 2 * device.now().ps()));
}

#[test]
fn a_device_without_energies_reports_none() {
    let run = |options: &[&str]| {
        let mut device = device(options);
        let written = units(&device, Operation::Write, 0, 1);
        let outcome = Load::closed(1, 10, move || written).run(&mut device);
        let summary = serde_json::to_value(summary_of(&outcome, &device)).unwrap();
        let mut sample = Sample::default();
        device.sample(device.now(), &mut sample);
        let interval = Interval {
            config: device.config(),
            counters: &sample.counters,
            channels: &sample.channels,
            span: sample.at,
            buffer: &sample.buffer,
            buffer_units: sample.buffer_units,
            free_blocks_min: sample.free_blocks_min,
            free_blocks_sum: sample.free_blocks_sum,
            bad_blocks: sample.bad_blocks,
        };
        (summary, Statistics::new(&interval).derived)
    };
    let (without, derived) = run(&[]);
    assert_eq!((derived.energy_joules, derived.power_watts), (None, None));
    assert!(without.get("energy").is_none());
    let (mut with, derived) = run(&[ENERGY]);
    assert_eq!(derived.energy_joules, Some(joules(10 * (31_000_000_000 + PAGE * 100_000))));
    assert_eq!(derived.power_watts, with["energy"]["mean_w"].as_f64());
    // Nothing else in the result differs.
    let object = with.as_object_mut().unwrap();
    object.remove("energy");
    for echo in ["config", "config_digest"] {
        object[echo] = without[echo].clone();
    }
    assert_eq!(with, without);
}

/// Returns a device of four dies, each with a channel of its own, and a limit of programs and erases.
fn capped(cap: u64, options: &[&str]) -> Device {
    let cap = format!("controller.power_cap={cap}");
    let shape = ["geometry.channels=4", "geometry.chips=1", "allocation.static.order=channel-chip-die-plane"];
    let options = [&shape[..], &[&cap], options].concat();
    common::build(common::device_config(&options), Options { attribution: true, ..Options::default() })
}

/// Programs that start on all dies at the same time take as many turns of tPROG as the cap needs.
#[test]
fn programs_above_the_power_cap_take_turns() {
    let (transfer, program) = (Time::from_ns(102_400), Time::from_us(200));
    for cap in 1..=5 {
        let mut device = capped(cap, &[]);
        for unit in 0..4 {
            let write = units(&device, Operation::Write, unit, 1);
            submit(&mut device, Time::ZERO, write);
        }
        let mut finished: Vec<Time> = drain(&mut device).iter().map(|completion| completion.finish).collect();
        finished.sort_unstable();
        let turn = |index: u64| transfer + Time(program.0 * (index / cap + 1));
        assert_eq!(finished, [0, 1, 2, 3].map(turn), "cap {cap}");
        let mut breakdowns = Vec::new();
        device.take_breakdowns(&mut breakdowns);
        let mut waits: Vec<Time> = breakdowns.iter().map(|breakdown| breakdown.of(Part::Die)).collect();
        waits.sort_unstable();
        assert_eq!(waits, [0, 1, 2, 3].map(|index: u64| Time(program.0 * (index / cap))), "cap {cap}");
        assert!(breakdowns.iter().all(|breakdown| breakdown.of(Part::Bus) == transfer));
    }
}

/// At no time do more dies program or erase than the cap allows.
#[test]
fn no_more_dies_program_or_erase_than_the_power_cap() {
    for (cap, options) in [(1, &[][..]), (2, &["geometry.planes=2"]), (3, &["gc.pace=proportional"])] {
        let mut device = capped(cap, &[options, &["capacity.spare=0.35", "geometry.blocks=16"]].concat());
        serve(&mut device, 4_000, 30);
        let slices = device.array().probe().expect("it was switched on").slices().iter();
        let powered = |kind| !matches!(kind, Kind::Read);
        let mut changes: Vec<(Time, i64)> = slices
            .filter(|slice| slice.phase == Phase::Cell && powered(slice.kind))
            .flat_map(|slice| [(slice.start, 1), (slice.end, -1)])
            .collect();
        changes.sort_unstable();
        let most = changes.iter().scan(0, |sum, (_, change)| {
            *sum += change;
            Some(*sum)
        });
        assert_eq!(most.max(), Some(cap as i64), "{options:?}");
    }
}

#[test]
fn a_power_cap_is_refused_with_operations_that_overlap() {
    for overlap in ["suspend.erase", "suspend.program", "cache_read", "cache_program"] {
        let refused = common::refusal(&["controller.power_cap=2", &format!("nand.advanced.{overlap}=true")]);
        assert!(refused.contains("needs programs and erases without interruption"), "{refused}");
    }
}
