//! Every policy of each family obeys the laws of the family. A new policy is tested without a change of this file.

use std::collections::BTreeSet;

use crate::common::device_config;
use floatgate_core::device_file::DeviceConfig;
use floatgate_core::flash::Role;
use floatgate_core::internals::{
    self, AllocationConfig, ArbitrationConfig, EvictionConfig, Level, LevelOrder, MappingConfig, SchedulerConfig,
    TemperatureConfig, TriggerConfig, VictimConfig,
};
use floatgate_core::laws::{self, close};
use floatgate_core::mapping::Space;
use floatgate_core::policies::{Order, PlaneSet};
use floatgate_core::sim::id::{BlockId, PlaneId};

/// Returns a device of 3 channels, 2 chips, 5 dies and 4 planes. No two are equal, so a mistaken level is noticed.
fn uneven() -> DeviceConfig {
    device_config(&["geometry.channels=3", "geometry.chips=2", "geometry.dies=5", "geometry.planes=4"])
}

#[test]
fn eviction_policies_choose_units_of_the_buffer_once() {
    for config in EvictionConfig::all() {
        let eviction = format!("buffer.eviction={}", config.name());
        internals::eviction(
            &device_config(&["geometry.pages=8", "buffer.capacity=256KiB", &eviction]),
            &Default::default(),
        );
    }
}

/// Devices on which each mapping scheme is tested: one, several and many units per program, multi-plane programs, and
/// summaries.
const MAPPED: &[&[&str]] = &[
    &[],
    &["geometry.page_size=16KiB", "geometry.pages=16"],
    &["geometry.page_size=2KiB", "geometry.mapping_unit=4KiB"],
    &["geometry.pages_per_program=2", "mapping.block_summary.last_page=2KiB"],
    &["geometry.planes=2", "nand.concurrency=die", "nand.advanced.multi_plane_program=wise"],
];

#[test]
fn mapping_schemes_lose_no_data() {
    for scheme in MappingConfig::all() {
        for overrides in MAPPED {
            let small = ["geometry.blocks=16", "capacity={spare=0.6}"];
            let mut device = device_config(&[&small[..], overrides].concat());
            device.mapping.scheme = scheme.clone();
            device.check().unwrap_or_else(|error| panic!("{}, {overrides:?}: {error}", scheme.name()));
            laws::mapping(&device, &Default::default());
        }
    }
}

/// Queues get one turn each time that they become ready, with at least one command, and all get turns.
#[test]
fn arbitration_gives_each_ready_queue_a_turn() {
    let device = device_config(&["host.queues.count=5"]);
    for config in ArbitrationConfig::all() {
        let mut policy = config.build(&device, 1, &Default::default()).unwrap();
        assert_eq!(policy.take(), None, "{}", config.name());
        let mut turns = [0; 5];
        (0..5).for_each(|queue| policy.ready(queue));
        for _ in 0..100 {
            let turn = policy.take().unwrap();
            assert!(turn.most > 0);
            turns[usize::from(turn.queue)] += 1;
            policy.ended(turn, 1);
            policy.ready(turn.queue);
        }
        assert!(turns.iter().all(|&turns| turns == 20), "{}: {turns:?}", config.name());
        let last: BTreeSet<u16> = (0..5).map(|_| policy.take().unwrap().queue).collect();
        assert_eq!((last.len(), policy.take()), (5, None), "{}", config.name());
    }
}

#[test]
fn victims_are_candidates_of_the_plane_and_taken_once() {
    assert_eq!(VictimConfig::all().len(), VictimConfig::NAMES.len());
    let small = ["geometry.blocks=16", "capacity={spare=0.5}"];
    for victim in VictimConfig::all() {
        let mut device = device_config(&small);
        device.gc.victim = victim;
        internals::victim(&device, &Default::default());
    }
    for policy in ["greedy", "cost-benefit", "d-choices"] {
        for tie in ["oldest", "newest", "index", "fewest-erases"] {
            let tie = format!("gc.victim.{policy}.tie={tie}");
            internals::victim(&device_config(&[&small[..], &[&tie]].concat()), &Default::default());
        }
    }
}

/// Checks the choices of each policy among three closed blocks with 5, 2 and 9 valid units, closed in this order.
#[test]
fn victims_follow_the_rule_of_each_policy() {
    let choose = |name: &str| {
        let victim = format!("gc.victim={name}");
        let device = device_config(&["geometry.blocks=16", "capacity={spare=0.5}", &victim]);
        let mut space = Space::new(&device, 1, false, &Default::default()).expect("defaults are valid");
        for valid in [5, 2, 9] {
            close(&mut space, PlaneId(0), valid);
        }
        let region = space.region(PlaneId(0), Role::Data);
        std::iter::from_fn(|| space.take_victim(region, 0)).map(|block| block.0).collect::<Vec<u32>>()
    };
    assert_eq!(choose("greedy"), [1, 0, 2]);
    assert_eq!(choose("fifo"), [0, 1, 2]);
    assert_eq!(choose("cost-benefit"), [1, 0, 2], "at equal age, the cheapest first");
    assert_eq!(BTreeSet::from_iter(choose("random")), BTreeSet::from([0, 1, 2]));
    assert_eq!(choose("d-choices").len(), 3);
}

/// Blocks 1, 5, 12 and 0 lose their only valid unit in this order. Blocks 0 and 1 were erased once before.
#[test]
fn ties_of_victims_follow_their_option() {
    let order = |victim: &str| {
        let victim = format!("gc.victim={victim}");
        let device = device_config(&["geometry.blocks=16", "capacity={spare=0.5}", &victim]);
        let mut space = Space::new(&device, 1, false, &Default::default()).expect("defaults are valid");
        let region = space.region(PlaneId(0), Role::Data);
        for _ in 0..2 {
            close(&mut space, PlaneId(0), 0);
            let erased = space.take_victim(region, 0).expect("a block without valid units");
            space.await_erase(erased);
            space.erased(erased);
        }
        (0..16).for_each(|_| _ = close(&mut space, PlaneId(0), 1));
        for block in [1, 5, 12, 0].map(BlockId) {
            space.clock += 1;
            space.invalidate(space.first_unit(block));
        }
        [(); 4].map(|()| space.take_victim(region, 0).expect("blocks without valid units").0)
    };
    for (tie, blocks) in [
        ("oldest", [1, 5, 12, 0]),
        ("newest", [0, 12, 5, 1]),
        ("index", [12, 5, 1, 0]),
        ("fewest-erases", [5, 12, 1, 0]),
    ] {
        // 1,000 draws of 16 blocks miss one of them with a probability of 1e-28.
        for policy in ["greedy = {", "cost-benefit = {", "d-choices = { d = 1000,"] {
            assert_eq!(order(&format!("{{ {policy} tie = \"{tie}\" }} }}")), blocks, "{policy} {tie}");
        }
    }
    assert_eq!([order("greedy"), order("cost-benefit")], [[1, 5, 12, 0]; 2]);
}

/// Kawaguchi et al. 1995: age * (1 - u) / 2u. A block with 32 of 64 units valid that is 100 writes old has a value of
/// 100 * 32 / 64 = 50. A block with 16 valid units gains 48 / 32 = 1.5 per write of its age, so it wins from age 34.
#[test]
fn cost_benefit_weighs_age() {
    let device = device_config(&["geometry.blocks=16", "capacity={spare=0.5}", "gc.victim=cost-benefit"]);
    let first = |age_of_second: u64| {
        let mut space = Space::new(&device, 1, false, &Default::default()).expect("valid");
        let now = 1_000;
        space.clock = now - 99;
        close(&mut space, PlaneId(0), 32);
        space.clock = now - (age_of_second - 1);
        close(&mut space, PlaneId(0), 16);
        space.clock = now;
        space.take_victim(space.region(PlaneId(0), Role::Data), 0).expect("two candidates").0
    };
    assert_eq!(first(33), 0, "33 * 1.5 = 49.5 is below 50");
    assert_eq!(first(34), 1, "34 * 1.5 = 51 is over 50");
}

#[test]
fn static_orders_are_permutations_of_the_planes() {
    let device = uneven();
    assert_eq!(LevelOrder::all().iter().map(ToString::to_string).collect::<BTreeSet<_>>().len(), 24);
    for order in LevelOrder::all() {
        let planes = Order::new(&device, order);
        let seen: BTreeSet<u32> = (0..planes.len()).map(|position| planes.plane(position).0).collect();
        assert_eq!(seen.len(), device.total_planes() as usize, "{order}");
        (0..planes.len()).for_each(|position| assert_eq!(planes.position(planes.plane(position)), position));
    }
}

/// Channels, chips, dies and planes of [`uneven`].
const C: u32 = 3;
const W: u32 = 2;
const D: u32 = 5;
const P: u32 = 4;

/// Hu et al. 2013, Section 4.2: channel, chip, die and plane of logical page `l` in each of the six schemes, derived by
/// hand from the priority orders, without the loop of the implementation.
fn by_the_paper(scheme: &str, l: u32) -> [u32; 4] {
    match scheme {
        "s1" => [l / (W * D * P) % C, l % W, l / W % D, l / (W * D) % P],
        "s2" => [l % C, l / C % W, l / (C * W) % D, l / (C * W * D) % P],
        "s3" => [l % C, l / (C * P) % W, l / (C * P * W) % D, l / C % P],
        "s4" => [l % C, l / (C * D) % W, l / C % D, l / (C * D * W) % P],
        "s5" => [l % C, l / (C * P * D) % W, l / (C * P) % D, l / C % P],
        _ => [l % C, l / (C * D * P) % W, l / C % D, l / (C * D) % P],
    }
}

#[test]
fn schemes_of_the_papers_follow_their_formulas() {
    use Level::{Channel, Chip, Die, Plane};
    let device = uneven();
    let schemes = [
        ("s1", [Chip, Die, Plane, Channel]),
        ("s2", [Channel, Chip, Die, Plane]),
        ("s3", [Channel, Plane, Chip, Die]),
        ("s4", [Channel, Die, Chip, Plane]),
        ("s5", [Channel, Plane, Die, Chip]),
        ("s6", [Channel, Die, Plane, Chip]),
    ];
    for (name, levels) in schemes {
        let order: LevelOrder = name.parse().expect("a name from the papers");
        assert_eq!(order, LevelOrder(levels), "{name}");
        let placed = Order::new(&device, order);
        for lpn in 0..3 * device.total_planes() {
            let [channel, chip, die, plane] = by_the_paper(name, lpn);
            let expected = ((channel * W + chip) * D + die) * P + plane;
            assert_eq!(placed.plane(lpn).0, expected, "{name}, page {lpn}");
        }
    }
}

#[test]
fn a_scheme_has_a_home_for_all_pages_or_for_none() {
    for allocation in AllocationConfig::all() {
        internals::allocation(&DeviceConfig { allocation, ..uneven() }, &Default::default());
    }
}

#[test]
fn dynamic_allocation_takes_idle_planes_in_turn() {
    let device = uneven();
    let planes = device.total_planes();
    for order in LevelOrder::all() {
        let text = format!("allocation.dynamic.order={order}");
        let device =
            device_config(&["geometry.channels=3", "geometry.chips=2", "geometry.dies=5", "geometry.planes=4", &text]);
        let mut scheme = device.allocation.build(&device, 1, &Default::default()).expect("valid");
        let mut idle = PlaneSet::new(planes);
        (0..planes).for_each(|position| idle.set(position, true));
        let round: Vec<u32> = (0..planes).map(|_| scheme.choose(0, &idle).expect("all are idle").0).collect();
        let expected: Vec<u32> = (0..planes).map(|position| scheme.order().plane(position).0).collect();
        assert_eq!(round, expected, "{order}: least recently used first, in the order");
        // Only idle planes are chosen.
        idle.clear();
        idle.set(17, true);
        assert_eq!(scheme.choose(0, &idle), Some(scheme.order().plane(17)));
        idle.clear();
        assert_eq!(scheme.choose(0, &idle), None);
    }
}

#[test]
fn schedulers_rank_every_class() {
    for scheduler in SchedulerConfig::all() {
        internals::scheduler(&DeviceConfig { scheduler, ..uneven() }, &Default::default());
    }
}

#[test]
fn triggers_decide_like_their_copies() {
    for trigger in TriggerConfig::all() {
        let mut device = device_config(&["geometry.blocks=16", "capacity={spare=0.5}"]);
        device.gc.trigger = trigger;
        internals::trigger(&device, &Default::default());
    }
}

#[test]
fn temperature_policies_classify_every_write() {
    for temperature in TemperatureConfig::all() {
        let mut device = device_config(&["geometry.blocks=16", "capacity={spare=0.5}"]);
        device.temperature = temperature;
        internals::temperature(&device, &Default::default());
    }
}
