//! Collections of blocks: their number and duration in each package.

use crate::sim::id::PlaneId;
use crate::sim::time::Time;

/// Collections in a package since the device was created. Only differences of the time are meaningful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackageCollections {
    /// Number of victims whose erase has ended.
    pub ended: u64,
    /// Number of victims that are being collected, integrated over time, in blocks times picoseconds.
    pub time: i64,
}

impl PackageCollections {
    /// Returns the collections since `earlier`.
    pub fn since(&self, earlier: &PackageCollections) -> PackageCollections {
        PackageCollections { ended: self.ended - earlier.ended, time: self.time.wrapping_sub(earlier.time) }
    }
}

/// Counters of a package. The order in which victims end does not matter, because the sum of their durations is the sum
/// of their ends less that of their starts.
#[derive(Clone, Copy, Debug, Default)]
struct Package {
    ended: u64,
    started: u64,
    ends_less_starts: i64,
}

/// Counters of all packages.
#[derive(Clone, Debug)]
pub struct Collections {
    packages: Vec<Package>,
    planes_per_package: u32,
}

impl Collections {
    /// Creates the counters of `planes` planes.
    pub fn new(planes: u32, planes_per_package: u32) -> Collections {
        Collections {
            packages: vec![Package::default(); planes.div_ceil(planes_per_package) as usize],
            planes_per_package,
        }
    }

    fn of(&mut self, plane: PlaneId) -> &mut Package {
        &mut self.packages[(plane.0 / self.planes_per_package) as usize]
    }

    /// Notes that a victim of a plane was chosen.
    pub fn start(&mut self, plane: PlaneId, now: Time) {
        let package = self.of(plane);
        package.started += 1;
        package.ends_less_starts = package.ends_less_starts.wrapping_sub(now.0 as i64);
    }

    /// Notes that the erase of a victim has ended.
    pub fn end(&mut self, plane: PlaneId, now: Time) {
        let package = self.of(plane);
        package.ended += 1;
        package.ends_less_starts = package.ends_less_starts.wrapping_add(now.0 as i64);
    }

    /// Writes the collections of each package up to `at` into `packages`.
    pub fn until(&self, at: Time, packages: &mut Vec<PackageCollections>) {
        packages.clear();
        packages.extend(self.packages.iter().map(|package| {
            let running = package.started.wrapping_sub(package.ended) as i64;
            let time = package.ends_less_starts.wrapping_add(running.wrapping_mul(at.0 as i64));
            PackageCollections { ended: package.ended, time }
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_are_integrated_over_time() {
        let mut collections = Collections::new(4, 2);
        let mut seen = Vec::new();
        collections.start(PlaneId(0), Time(10));
        collections.start(PlaneId(1), Time(20));
        collections.start(PlaneId(2), Time(20));
        collections.until(Time(30), &mut seen);
        let earlier = seen[0];
        assert_eq!(seen, [(0, 20 + 10), (0, 10)].map(|(ended, time)| PackageCollections { ended, time }));
        collections.end(PlaneId(1), Time(50));
        collections.end(PlaneId(0), Time(60));
        collections.until(Time(100), &mut seen);
        assert_eq!(seen, [(2, 50 + 30), (0, 80)].map(|(ended, time)| PackageCollections { ended, time }));
        assert_eq!(seen[0].since(&earlier), PackageCollections { ended: 2, time: 50 });
    }
}
