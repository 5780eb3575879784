//! State of an image: how its last use ended, and what must be in the file. Stored in two copies.

use std::io;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::ImageError;
use super::disk::Disk;
use super::layout::{COPIES, Layout};

/// State of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Identifies the boot of the machine in which the image was last used.
    pub boot: u128,
    /// True if all accepted data are in flash or saved.
    pub is_clean: bool,
    /// True if flushes waited for the machine's disk.
    pub syncs: bool,
    /// Number of slots for saved entries in the file.
    pub saved: u32,
    /// Number of times that the image was opened for use.
    pub uses: u64,
    /// Number of times that this record was written. The copy with the higher number is valid.
    pub generation: u64,
    /// Digest of the table of blocks. Only of a clean image.
    pub root: u64,
}

/// A copy of the state in the file's format.
type Encoded = [u8; 64];

impl State {
    fn encode(&self, copy: usize) -> Encoded {
        let mut bytes = [0; 64];
        bytes[..16].copy_from_slice(&self.boot.to_le_bytes());
        bytes[16] = 1 + u8::from(self.is_clean);
        bytes[17] = u8::from(self.syncs);
        bytes[20..24].copy_from_slice(&self.saved.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.uses.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.generation.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.root.to_le_bytes());
        let check = xxh3_64_with_seed(&bytes[..56], copy as u64).to_le_bytes();
        bytes[56..].copy_from_slice(&check);
        bytes
    }

    fn decode(copy: usize, bytes: &Encoded) -> Option<State> {
        let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let state = State {
            boot: u128::from_le_bytes(bytes[..16].try_into().ok()?),
            is_clean: bytes[16] == 2,
            syncs: bytes[17] == 1,
            saved: u32::from_le_bytes(bytes[20..24].try_into().ok()?),
            uses: long(24)?,
            generation: long(32)?,
            root: long(40)?,
        };
        (state.encode(copy) == *bytes).then_some(state)
    }

    /// Writes both copies.
    pub fn write(&self, disk: &mut dyn Disk) -> io::Result<()> {
        (0..COPIES).try_for_each(|copy| disk.write(Layout::state(copy), &self.encode(copy)))
    }

    /// Reads the newer copy, and restores the other one. Returns the number of damaged copies, too.
    pub fn read(disk: &mut dyn Disk) -> Result<(State, u64), ImageError> {
        let mut found = [None; COPIES];
        for (copy, found) in found.iter_mut().enumerate() {
            let mut bytes = [0; 64];
            disk.read(Layout::state(copy), &mut bytes)?;
            *found = State::decode(copy, &bytes);
        }
        let newest = found.into_iter().flatten().max_by_key(|state| state.generation);
        let wrong = || ImageError::Damaged("both records of its last use are damaged".to_owned());
        let newest = newest.ok_or_else(wrong)?;
        for (copy, found) in found.into_iter().enumerate() {
            if found != Some(newest) {
                disk.write(Layout::state(copy), &newest.encode(copy))?;
            }
        }
        Ok((newest, found.iter().filter(|found| found.is_none()).count() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::disk::SystemFile;
    use crate::image::layout::ROOM;

    #[test]
    fn the_newer_valid_copy_counts() {
        let mut disk = SystemFile::in_memory().unwrap();
        disk.resize(ROOM).unwrap();
        let old = State { boot: 7, uses: 3, generation: 8, ..State::default() };
        let new = State { is_clean: true, syncs: true, saved: 64, generation: 9, root: 5, ..old };
        for copy in 0..COPIES {
            new.write(&mut disk).unwrap();
            assert_eq!(State::read(&mut disk).unwrap(), (new, 0));
            disk.write(Layout::state(copy), &old.encode(copy)).unwrap();
            assert_eq!(State::read(&mut disk).unwrap(), (new, 0), "an older copy");
            for damage in [[0; 64], new.encode(1 - copy), [0xff; 64]] {
                disk.write(Layout::state(copy), &damage).unwrap();
                assert_eq!(State::read(&mut disk).unwrap(), (new, 1));
                assert_eq!(State::read(&mut disk).unwrap(), (new, 0), "it was restored");
            }
        }
        (0..COPIES).for_each(|copy| disk.write(Layout::state(copy), &[0; 64]).unwrap());
        assert!(State::read(&mut disk).is_err());
    }
}
