//! Memory check: refuses a device that needs more memory than is available, before it is built.

use std::path::{Path, PathBuf};

use floatgate_core::device_file::{DeviceConfig, Scale};
use floatgate_core::sim::text::read_text;
use floatgate_core::simulation::Options;
use floatgate_workload::quantity::readable;

use crate::device::LoadedDevice;
use crate::failure::Failure;

/// Part of the mapping tables that a run will access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// All units, as after preconditioning.
    Filled,
    /// An unknown part, as for a new device.
    Sparse,
}

/// Fails if a device needs more memory than is available. Limits that the system does not report are not checked.
pub fn check(chosen: &LoadedDevice, options: &Options, usage: Use) -> Result<(), Failure> {
    let config = &chosen.config;
    let limits = Limits::of_system();
    let lacking = |config: &DeviceConfig| {
        let needed = options.memory(config);
        let touched = if usage == Use::Filled { needed.total() } else { needed.tables };
        limits.lacking(touched, needed.total())
    };
    let Some((limit, bytes)) = lacking(config) else { return Ok(()) };
    let [bytes, there] = [bytes, limit.bytes].map(|bytes| readable(u128::from(bytes)));
    let fits = |scale: &Scale| config.scaled(*scale).is_ok_and(|scaled| lacking(&scaled.device).is_none());
    let scale = (1..16).map(|power| Scale::one_of(1 << power)).find(fits);
    let scale = match scale {
        Some(scale) if chosen.array.is_none() => {
            format!("simulate a share of its blocks (--scale {scale}, or `floatgate device scale`), or ")
        }
        Some(scale) => format!("scale the device files of its members by {scale} (`floatgate device scale`), or "),
        None => String::new(),
    };
    Err(Failure::fault(format!(
        "{}: simulating this device takes {bytes} of memory, and {there} is available ({}); {scale}use fewer or larger \
         mapping units (geometry.blocks, geometry.pages, geometry.mapping_unit)",
        config.name, limit.what
    )))
}

/// Limit in bytes, and its source.
#[derive(Clone, Copy, Debug)]
struct Limit {
    bytes: u64,
    what: &'static str,
}

/// Available memory and address space. `None` if the system does not report it.
#[derive(Clone, Copy, Debug)]
struct Limits {
    memory: Option<Limit>,
    addresses: Option<Limit>,
}

impl Limits {
    fn of_system() -> Limits {
        let memory = [of_machine(), of_group()].into_iter().flatten().min_by_key(|limit| limit.bytes);
        Limits { memory, addresses: of_process() }
    }

    /// Returns the limit that a device exceeds with these bytes of memory or of address space, and the bytes.
    fn lacking(self, memory: u64, addresses: u64) -> Option<(Limit, u64)> {
        let lacks = [(memory, self.memory), (addresses, self.addresses)];
        lacks.into_iter().find_map(|(bytes, limit)| limit.filter(|limit| bytes > limit.bytes).zip(Some(bytes)))
    }
}

/// Reads a file of the kernel.
fn text(path: impl AsRef<Path>) -> Option<String> {
    read_text(path.as_ref(), 1 << 20).ok()
}

/// Returns the bytes of a line such as `MemAvailable:  1024 kB`.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the memory of the machine in bytes.
pub fn of_whole_machine() -> Option<u64> {
    kilobytes(&text("/proc/meminfo")?, "MemTotal")
}

fn of_machine() -> Option<Limit> {
    let text = text("/proc/meminfo")?;
    let swap = kilobytes(&text, "SwapFree").unwrap_or(0);
    Some(Limit { bytes: kilobytes(&text, "MemAvailable")? + swap, what: "MemAvailable and SwapFree of /proc/meminfo" })
}

/// Returns the memory that is left in the control groups of this process and their ancestors: the smallest value.
fn of_group() -> Option<Limit> {
    let groups = text("/proc/self/cgroup")?;
    let left = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        match controllers {
            "" => left_of_group("/sys/fs/cgroup", path, ["memory.max", "memory.current"]),
            list if list.split(',').any(|name| name == "memory") => {
                let names = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
                left_of_group("/sys/fs/cgroup/memory", path, names)
            }
            _ => None,
        }
    });
    left.min().map(|bytes| Limit { bytes, what: "the memory limit of the control group" })
}

/// Returns the bytes left in a control group and its ancestors. In a container the path may be the one on the host,
/// which does not exist: then the closest ancestor that exists counts.
fn left_of_group(root: &str, path: &str, [limit, usage]: [&str; 2]) -> Option<u64> {
    let root = Path::new(root);
    let number = |place: &PathBuf, name: &str| text(place.join(name))?.trim().parse::<u64>().ok();
    let mut place = root.join(path);
    let mut least = None;
    loop {
        if let (Some(limit), Some(usage)) = (number(&place, limit), number(&place, usage)) {
            // The kernel evicts inactive file pages when memory is short, so they count as available.
            let statistics = text(place.join("memory.stat")).unwrap_or_default();
            let files = statistics.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse::<u64>().ok());
            let left = limit.saturating_sub(usage.saturating_sub(files.unwrap_or(0)));
            least = Some(least.map_or(left, |least: u64| least.min(left)));
        }
        if place == root || !place.pop() || !place.starts_with(root) {
            return least;
        }
    }
}

#[cfg(target_os = "linux")]
fn of_process() -> Option<Limit> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    let taken = kilobytes(&text("/proc/self/status")?, "VmSize")?;
    Some(Limit { bytes: limit.saturating_sub(taken), what: "the address space limit of the process, ulimit -v" })
}

#[cfg(not(target_os = "linux"))]
fn of_process() -> Option<Limit> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_control_group_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(root.path().join(name).parent().unwrap()).unwrap();
            std::fs::write(root.path().join(name), text).unwrap();
        };
        let left = |path| left_of_group(root.path().to_str().unwrap(), path, ["memory.max", "memory.current"]);
        assert_eq!(left("a/b"), None);
        write("a/b/memory.max", "max\n");
        write("a/b/memory.current", "100\n");
        assert_eq!(left("a/b"), None);
        write("a/memory.max", "1000\n");
        write("a/memory.current", "400\n");
        assert_eq!(left("a/b"), Some(600));
        write("a/memory.stat", "anon 300\ninactive_file 100\n");
        assert_eq!(left("a/b"), Some(700));
        write("a/b/memory.max", "150\n");
        assert_eq!(left("a/b"), Some(50));
        assert_eq!(left("not/there"), None);
    }

    #[test]
    fn sizes_are_parsed_from_kernel_files() {
        let text = "MemTotal:       16 kB\nMemAvailable:    7 kB\n";
        assert_eq!(kilobytes(text, "MemAvailable"), Some(7 << 10));
        assert_eq!(kilobytes(text, "SwapFree"), None);
    }
}
