//! Payload that waits in the controller's memory, from the acceptance of a write until its program has ended.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A unit as of an accepted write.
#[derive(Clone, Debug)]
pub struct Version {
    /// The number of the write.
    pub sequence: u64,
    /// All of the unit; none where a part of it was written over what cannot be read.
    pub bytes: Option<Arc<[u8]>>,
    /// Where it is saved, in a memory that outlives a power cut.
    pub saved: Option<u32>,
}

/// Units that were accepted, by their logical number.
#[derive(Debug, Default)]
pub struct Waiting {
    /// In the order of their writes.
    units: BTreeMap<u32, Vec<Version>>,
    count: usize,
}

impl Waiting {
    /// How many versions there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether none would be lost in a power cut: what is left is saved.
    pub fn is_safe(&self) -> bool {
        self.units.values().flatten().all(|version| version.saved.is_some())
    }

    /// The newest version of a unit.
    pub fn newest(&self, lpn: u32) -> Option<&Version> {
        self.units.get(&lpn)?.last()
    }

    /// The version of a unit as of a write.
    pub fn get(&self, lpn: u32, sequence: u64) -> Option<&Version> {
        self.units.get(&lpn)?.iter().find(|version| version.sequence == sequence)
    }

    /// Takes out a version that will not be programmed.
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

    /// Forgets the versions of a unit up to a write; tells of each where it is saved.
    pub fn forget(&mut self, lpn: u32, up_to: u64, mut saved: impl FnMut(u32)) {
        let Some(versions) = self.units.get_mut(&lpn) else { return };
        let older = versions.partition_point(|version| version.sequence <= up_to);
        versions.drain(..older).filter_map(|version| version.saved).for_each(&mut saved);
        self.count -= older;
        if versions.is_empty() {
            self.units.remove(&lpn);
        }
    }

    /// Forgets all.
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
    fn the_newest_is_read_and_the_oldest_forgotten() {
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
        waiting.clear();
        assert_eq!(waiting.count(), 0);
        assert!(waiting.is_safe());
        waiting.add(7, Version { saved: None, ..version(1) });
        assert!(!waiting.is_safe());
    }
}
