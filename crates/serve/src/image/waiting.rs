//! Payload in the controller's memory, from the acceptance of a write until its program operation completes.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Contents of a mapping unit after an accepted write.
#[derive(Clone, Debug)]
pub struct Version {
    /// Sequence number of the write.
    pub sequence: u64,
    /// Contents of the whole unit. `None` if only a part was written and the rest could not be read.
    pub bytes: Option<Arc<[u8]>>,
    /// Slot in which the contents are saved, for a memory with power-loss protection.
    pub saved: Option<u32>,
}

/// Accepted versions of mapping units, by logical number.
#[derive(Debug, Default)]
pub struct Waiting {
    /// The versions of each unit are sorted by sequence number.
    units: BTreeMap<u32, Vec<Version>>,
    count: usize,
}

impl Waiting {
    /// Returns the number of versions.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns `true` if a power cut loses nothing, because all versions are saved.
    pub fn is_safe(&self) -> bool {
        self.units.values().flatten().all(|version| version.saved.is_some())
    }

    /// Returns the newest version of a unit.
    pub fn newest(&self, lpn: u32) -> Option<&Version> {
        self.units.get(&lpn)?.last()
    }

    /// Returns the version of a unit that a given write created.
    pub fn get(&self, lpn: u32, sequence: u64) -> Option<&Version> {
        self.units.get(&lpn)?.iter().find(|version| version.sequence == sequence)
    }

    /// Removes and returns a version that will not be programmed.
    pub fn take(&mut self, lpn: u32, sequence: u64) -> Option<Version> {
        let versions = self.units.get_mut(&lpn)?;
        let at = versions.iter().position(|version| version.sequence == sequence)?;
        let taken = versions.remove(at);
        if versions.is_empty() {
            self.units.remove(&lpn);
        }
        self.count -= 1;
        Some(taken)
    }

    /// Adds a version.
    pub fn add(&mut self, lpn: u32, version: Version) {
        let versions = self.units.entry(lpn).or_default();
        let at = versions.partition_point(|other| other.sequence < version.sequence);
        versions.insert(at, version);
        self.count += 1;
    }

    /// Removes the versions of a unit up to a sequence number. Calls `saved` with the slot of each saved version.
    pub fn forget(&mut self, lpn: u32, up_to: u64, mut saved: impl FnMut(u32)) {
        let Some(versions) = self.units.get_mut(&lpn) else { return };
        let older = versions.partition_point(|version| version.sequence <= up_to);
        versions.drain(..older).filter_map(|version| version.saved).for_each(&mut saved);
        self.count -= older;
        if versions.is_empty() {
            self.units.remove(&lpn);
        }
    }

    /// Removes all versions except for the newest of each unit that `is_pending`. Returns the slots that became
    /// unnecessary.
    pub fn keep_newest(&mut self, is_pending: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut freed = Vec::new();
        self.units.retain(|lpn, versions| {
            let kept = if is_pending(*lpn) { versions.pop() } else { None };
            freed.extend(versions.drain(..).filter_map(|version| version.saved));
            versions.extend(kept);
            !versions.is_empty()
        });
        self.count = self.units.len();
        freed
    }

    /// Removes all versions.
    pub fn clear(&mut self) {
        *self = Waiting::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(sequence: u64) -> Version {
        Version { sequence, bytes: Some(Arc::from([sequence as u8])), saved: Some(sequence as u32) }
    }

    #[test]
    fn the_newest_version_is_read_and_old_ones_are_removed() {
        let mut waiting = Waiting::default();
        [3, 9, 5].into_iter().for_each(|sequence| waiting.add(7, version(sequence)));
        waiting.add(8, version(4));
        assert_eq!(waiting.newest(7).map(|version| version.sequence), Some(9));
        assert!(waiting.newest(6).is_none() && waiting.get(7, 4).is_none() && waiting.get(8, 4).is_some());
        let mut freed = Vec::new();
        waiting.forget(7, 5, |saved| freed.push(saved));
        assert_eq!((freed, waiting.count()), (vec![3, 5], 2));
        assert_eq!(waiting.take(7, 9).and_then(|version| version.saved), Some(9));
        assert!(waiting.newest(7).is_none() && waiting.take(7, 9).is_none() && waiting.count() == 1);
        [5, 6].into_iter().for_each(|sequence| waiting.add(9, version(sequence)));
        assert_eq!((waiting.keep_newest(|lpn| lpn == 9), waiting.count()), (vec![4, 5], 1));
        assert_eq!(waiting.newest(9).map(|version| version.sequence), Some(6));
        waiting.clear();
        assert_eq!(waiting.count(), 0);
        assert!(waiting.is_safe());
        waiting.add(7, Version { saved: None, ..version(1) });
        assert!(!waiting.is_safe());
    }
}
