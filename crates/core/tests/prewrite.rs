//! States before a run: data that a workload reads and never wrote, and used devices without valid data.

use crate::common::{self, Load, device};
use floatgate_core::flash::BlockState;
use floatgate_core::mapping::Location;
use floatgate_core::preparation::{Precondition, Prewrite, precondition, prewrite};
use floatgate_core::sim::id::Lpn;
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::source::Source;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::Device;
use floatgate_core::summary::Reached;

use Operation::{Read, Trim, Write};

/// Number of sectors in a unit.
const UNIT: u64 = 8;

/// Returns a source of operations on units: operation, first unit, number of units.
fn source(script: &[(Operation, u64, u64)]) -> Box<dyn Source> {
    let script = script.to_vec();
    let mut done = 0;
    let count = script.len() as u64;
    let next = move || {
        let (operation, first, units) = script[done];
        done += 1;
        Request::new(Time::ZERO, operation, first * UNIT, (units * UNIT) as u32)
    };
    Box::new(Load::open(count, next))
}

fn prewrite_now(device: &mut Device, how: Prewrite, scripts: &[&[(Operation, u64, u64)]]) -> Result<u64, String> {
    let mut sources: Vec<Box<dyn Source>> = scripts.iter().map(|script| source(script)).collect();
    let mut reached = Reached::default();
    let units = prewrite(device, &mut sources, how, &mut reached, &mut |_| true).map_err(|error| error.to_string())?;
    let mapped = units as f64 / f64::from(device.ftl().map.len());
    assert!((reached.mapped - mapped).abs() < 1e-12);
    device.check_invariants()?;
    Ok(units)
}

/// Returns the units that are in flash, with their planes.
fn held(device: &Device) -> Vec<(u32, u32)> {
    let ftl = device.ftl();
    let place = |lpn| match ftl.map.get(Lpn(lpn)) {
        Location::Flash(ppn) => Some((lpn, ftl.blocks.plane_of(ftl.blocks.block_of(ppn)).0)),
        _ => None,
    };
    (0..ftl.map.len()).filter_map(place).collect()
}

/// Static allocation: channel 0 has planes 0 and 1, channel 1 has planes 2 and 3, one for each chip.
const STATIC: &str = "allocation={ static = { order = \"s2\" } }";

#[test]
fn units_that_are_read_before_they_are_written_are_prewritten() {
    let script = [
        (Write, 8, 2),
        // Units 8 and 9 are written at this point, 10 and 11 are not.
        (Read, 8, 4),
        (Trim, 20, 1),
        (Read, 20, 1),
        (Write, 10, 1),
        (Read, 40, 1),
        // Outside the device.
        (Read, 1 << 40, 1),
    ];
    let mut device = device(&[STATIC]);
    assert_eq!(prewrite_now(&mut device, Prewrite::None, &[&script]), Ok(0));
    assert_eq!(held(&device), []);
    assert_eq!(prewrite_now(&mut device, Prewrite::Allocation, &[&script]), Ok(3));
    // Positions by address: unit 10 is on channel 0, chip 1, and so on.
    assert_eq!(held(&device), [(10, 1), (11, 3), (40, 0)]);
    // Units that are in flash are not prewritten again.
    assert_eq!(prewrite_now(&mut device, Prewrite::Allocation, &[&script]), Ok(0));
}

#[test]
fn even_prewriting_does_not_depend_on_addresses() {
    // Every fourth unit: by address, all of them are in one plane.
    let script: Vec<_> = (0..8).map(|index| (Read, index * 4, 1)).collect();
    for (allocation, even) in [(STATIC, true), ("allocation=dynamic", true), (STATIC, false)] {
        let mut device = device(&[allocation]);
        let how = if even { Prewrite::Even } else { Prewrite::Allocation };
        assert_eq!(prewrite_now(&mut device, how, &[&script]), Ok(8));
        let planes: Vec<u32> = held(&device).into_iter().map(|(_, plane)| plane).collect();
        // Channels first, then chips.
        assert_eq!(planes, if even { [0, 2, 1, 3, 0, 2, 1, 3] } else { [0; 8] }, "{allocation}");
    }
}

#[test]
fn each_source_is_examined_separately() {
    let mut device = device(&[STATIC]);
    // A unit that one source writes may be read by another source before. The order is known only in the run.
    assert_eq!(
        prewrite_now(&mut device, Prewrite::Even, &[&[(Write, 5, 1), (Read, 5, 1)], &[(Read, 5, 1), (Read, 6, 1)]]),
        Ok(2)
    );
    assert_eq!(held(&device).len(), 2);
}

#[test]
fn an_even_layout_that_would_fill_a_plane_is_refused() {
    // All units of one plane are spread over four. The other three planes would hold them in addition to their own.
    let mut tight = device(&["capacity.spare=0.1", STATIC]);
    let units = u64::from(tight.ftl().map.len());
    let script: Vec<_> = (0..units / 4).map(|index| (Read, index * 4, 1)).collect();
    let refused = prewrite_now(&mut tight, Prewrite::Even, &[&script]).unwrap_err();
    assert!(refused.contains("give the device more over-provisioning, or use `allocation`"), "{refused}");
    assert_eq!(held(&tight), []);
    assert_eq!(prewrite_now(&mut tight, Prewrite::Allocation, &[&script]), Ok(units / 4));
}

#[test]
fn a_device_of_invalid_pages_is_empty_and_close_to_garbage_collection() {
    for allocation in [STATIC, "allocation=dynamic"] {
        for share in [0.5, 0.9] {
            let mut device = device(&[allocation, "gc.soft_threshold=3"]);
            let reached = precondition(&mut device, Precondition::Invalid(share), 1, &mut |_| true).unwrap();
            assert_eq!((reached.mapped, held(&device).len()), (0.0, 0));
            device.check_invariants().unwrap();
            // There are 64 blocks in each of 4 planes, and exactly that share of them is full of invalid pages.
            let blocks = device.ftl().blocks.all();
            let closed = blocks.iter().filter(|block| block.state == BlockState::Closed).count();
            assert_eq!(closed, 4 * (64.0 * share) as usize, "{allocation} {share}");
            assert!(blocks.iter().all(|block| block.valid == 0));
            // Writing the remaining free pages starts garbage collection, which moves no units.
            let rest = (256.0 * 64.0 * (1.0 - share)) as u64;
            let mut unit = 0;
            let write = move || {
                unit += 1;
                Request::new(Time::from_ns(unit * 60_000), Write, (unit - 1) % 4096 * UNIT, UNIT as u32)
            };
            let outcome = Load::open(rest, write).run(&mut device);
            assert!(outcome.counters.blocks_erased > 0, "{allocation} {share}");
            assert_eq!(outcome.counters.units_moved(), 0, "{allocation} {share}");
        }
    }
}

#[test]
fn more_invalid_pages_than_garbage_collection_allows_are_refused() {
    let mut device = device(&["gc.soft_threshold=3"]);
    // 3 + 2 of 64 blocks stay free. The other 59 are a share of 0.921.
    let refused = precondition(&mut device, Precondition::Invalid(0.93), 1, &mut |_| true).unwrap_err();
    assert!(refused.contains("at most invalid=0.921"), "{refused}");
    // Bad blocks and blocks of translation pages hold no invalid pages.
    for (more, most) in [("faults.factory_bad=10", 0.765), ("mapping.scheme={ dftl = { cache = \"64B\" } }", 0.875)] {
        let mut device = common::device(&["gc.soft_threshold=3", more]);
        let refused = precondition(&mut device, Precondition::Invalid(0.9), 1, &mut |_| true).unwrap_err();
        assert!(refused.contains(&format!("at most invalid={most}")), "{more}: {refused}");
        precondition(&mut device, Precondition::Invalid(most), 1, &mut |_| true).unwrap();
        assert_eq!(device.ftl().counters.blocks_erased, 0, "{more}: blocks were erased");
    }
    assert!("invalid=1".parse::<Precondition>().is_err());
}
