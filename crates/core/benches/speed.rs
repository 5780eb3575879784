//! draft
use floatgate_core::config::DeviceConfig;
use floatgate_core::device::{Device, Options};
use floatgate_core::precondition::{Precondition, precondition};
use floatgate_core::run::{NoWatcher, run};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::workload::request::{Operation, Request};
use floatgate_core::workload::{Pace, Source, SourceError};

struct Rand {
    rng: Rng,
    left: u64,
    units: u64,
    op: Operation,
    depth: u32,
}
impl Source for Rand {
    fn next_request(&mut self) -> Result<Option<Request>, SourceError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        Ok(Some(Request::new(Time::ZERO, self.op, self.rng.below(self.units) * 8, 8)))
    }
    fn pace(&self) -> Pace {
        Pace::Depth { depth: self.depth, think: Time::ZERO }
    }
}

const B32: &str = r#"
name = "bench-32g"
[geometry]
channels = 8
chips = 4
dies = 2
planes = 2
blocks = 256
pages = 256
page_size = "4KiB"
[capacity]
spare = 0.209375
[nand]
read = "50us"
program = "500us"
erase = "3ms"
[bus]
protocol = { nv-ddr = "800MT/s" }
command_cycles = { read = 7, program = 7, erase = 5 }
[gc]
soft_threshold = 3
hard_threshold = 2
"#;

fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    s.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

fn main() {
    let config: DeviceConfig = toml::from_str(B32).unwrap();
    let mut device = Device::new(config.clone(), Options::default()).unwrap();
    let args: Vec<String> = std::env::args().collect();
    let only = args.get(1).cloned().unwrap_or_default();
    let scale: u64 = args.get(2).and_then(|s| s.parse().ok()).unwrap_or(1_000_000);
    let t = cpu();
    let c0 = device.ftl().counters;
    let reached = precondition(
        &mut device,
        if only == "read" { Precondition::Fill } else { Precondition::Steady },
        1,
        &mut |_| true,
    )
    .unwrap();
    let c = device.ftl().counters.since(&c0);
    let dt = cpu() - t;
    println!("steady {reached:?} {dt:.2} s, {:.1} M page programs/s", c.units_programmed as f64 / dt / 1e6);
    if only.is_empty() {
        device.ftl().recount().unwrap();
    }
    let units = config.logical_units();
    for (op, n) in [(Operation::Write, scale), (Operation::Read, 4 * scale)] {
        if (only == "read") != (op == Operation::Read) && !only.is_empty() {
            continue;
        }
        let c0 = device.ftl().counters;
        let mut sources: Vec<Box<dyn Source>> =
            vec![Box::new(Rand { rng: Rng::new(5, "x"), left: n, units, op, depth: 32 })];
        let t = cpu();
        let out = run(&mut device, &mut sources, &mut NoWatcher).unwrap();
        let dt = cpu() - t;
        let c = device.ftl().counters.since(&c0);
        let ops = c.pages_programmed_total() + c.pages_read_total() + c.blocks_erased;
        let all = out.results.all();
        println!(
            "{op:?}: {dt:.3} s, {:.2} M req/s, {:.2} M flash ops/s, WA {:.3}, mean {:.1} us p99 {:.1}, IOPS {:.0}, stock {:.2}",
            n as f64 / dt / 1e6,
            ops as f64 / dt / 1e6,
            (c.units_programmed + c.units_padded) as f64 / c.host_units.max(1) as f64,
            all.latency.mean_us(),
            all.latency.quantile_us(0.99),
            n as f64 / out.measured.as_s(),
            c.stock_at_choice as f64 / c.victims.max(1) as f64
        );
    }
    println!("{:?}", device.check_invariants());
}
