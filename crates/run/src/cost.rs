//! What a run costs the machine.

use std::time::Instant;

/// Measures a span of time: by the clock on the wall, and of the processor.
#[derive(Debug)]
pub struct Stopwatch {
    wall: Instant,
    cpu_s: Option<f64>,
}

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "what a run costs is reported, and goes into nothing else")]
    pub fn start() -> Stopwatch {
        Stopwatch { wall: Instant::now(), cpu_s: cpu_s() }
    }

    /// Seconds since the start: by the clock, and of the processor where the system tells.
    #[expect(clippy::disallowed_methods, reason = "what a run costs is reported, and goes into nothing else")]
    pub fn read(&self) -> (f64, Option<f64>) {
        let cpu_s = self.cpu_s.and_then(|start| Some(cpu_s()? - start));
        (self.wall.elapsed().as_secs_f64(), cpu_s)
    }
}

/// Seconds of processor time that the program has used.
#[cfg(unix)]
fn cpu_s() -> Option<f64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

/// Seconds of processor time that the program has used.
#[cfg(not(unix))]
fn cpu_s() -> Option<f64> {
    None
}

/// The most memory that the program has used, in bytes; Linux tells.
pub fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
