//! Common parts of the programs that load servers: arguments, random offsets, and the report.

use std::num::ParseIntError;

/// Arguments of the program.
pub struct Arguments(Vec<String>);

impl Arguments {
    /// Returns the arguments of this process.
    pub fn of_process() -> Arguments {
        Arguments(std::env::args().skip(1).collect())
    }

    /// Returns an argument.
    pub fn text(&self, index: usize) -> Option<&str> {
        self.0.get(index).map(String::as_str)
    }

    /// Returns an argument that is a number.
    pub fn number(&self, index: usize, default: u64) -> Result<u64, ParseIntError> {
        self.text(index).map_or(Ok(default), str::parse)
    }
}

/// Returns a function that returns random multiples of `bytes`, below `size`.
pub fn random_offsets(size: u64, bytes: u32) -> impl FnMut() -> u64 {
    let slots = size / u64::from(bytes);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % slots * u64::from(bytes)
    }
}

/// Prints the performance, given the latencies of all requests in ns.
pub fn report(mut latencies: Vec<u64>, seconds: u64) {
    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    let mean = latencies.iter().sum::<u64>() as f64 / latencies.len() as f64 / 1e3;
    println!(
        "{:.0} IOPS, mean {mean:.1} us, p50 {:.1} us, p90 {:.1} us, p99 {:.1} us, max {:.1} us",
        latencies.len() as f64 / seconds as f64,
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
}
