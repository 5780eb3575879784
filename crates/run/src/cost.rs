//! Cost of a run: real time, CPU time and memory.

use std::time::Instant;

/// Stopwatch for real time and CPU time.
#[derive(Debug)]
pub struct Stopwatch {
    wall: Instant,
    cpu_s: Option<f64>,
}

impl Stopwatch {
    /// Starts a stopwatch.
    #[expect(clippy::disallowed_methods, reason = "what a run costs is reported, and goes into nothing else")]
    pub fn start() -> Stopwatch {
        Stopwatch { wall: Instant::now(), cpu_s: cpu_s() }
    }

    /// Returns the seconds of real time since the start, and of CPU time if the system reports it.
    #[expect(clippy::disallowed_methods, reason = "what a run costs is reported, and goes into nothing else")]
    pub fn read(&self) -> (f64, Option<f64>) {
        let cpu_s = self.cpu_s.and_then(|start| Some(cpu_s()? - start));
        (self.wall.elapsed().as_secs_f64(), cpu_s)
    }
}

/// Returns the CPU time that the program has used, in seconds.
#[cfg(unix)]
fn cpu_s() -> Option<f64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

/// Returns `None`: CPU time is not available on this system.
#[cfg(not(unix))]
fn cpu_s() -> Option<f64> {
    None
}

/// Returns the peak memory of the program in bytes. `None` on systems other than Linux.
pub fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
