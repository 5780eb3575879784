//! A disk in memory, with faults.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};

use floatgate_serve::image::disk::Disk;

use super::truth::Luck;

/// A disk in memory that survives its users, and fails on request.
#[derive(Clone, Default)]
pub struct TestDisk(pub Arc<Mutex<Platter>>);

/// Contents of a [`TestDisk`], and its faults.
#[derive(Default)]
pub struct Platter {
    pub size: u64,
    /// Contents by number of the grain. Holes are missing.
    pub grains: BTreeMap<u64, Vec<u8>>,
    /// Number of grains that fit on the disk.
    pub room: Option<usize>,
    /// Error of all writes.
    pub error: Option<io::ErrorKind>,
    /// Error of syncs.
    pub sync_error: Option<io::ErrorKind>,
    /// Number of writes until the program is killed, in the middle of the next one.
    pub life: Option<u64>,
    /// Contents at the last sync, if they are kept.
    pub synced: Option<BTreeMap<u64, Vec<u8>>>,
    /// Timer slack in ns of the syncing thread at each sync.
    pub syncs: Vec<u64>,
}

/// Size of the pages that a test disk stores.
pub const GRAIN: u64 = 4096;

const SECTOR: usize = 512;

impl TestDisk {
    pub fn set(&self, change: impl FnOnce(&mut Platter)) {
        change(&mut self.0.lock().unwrap());
    }

    /// Returns a disk as it may be after a crash of the machine: each sector that was written since the last sync has
    /// its old or its new contents.
    pub fn crashed(&self, luck: &mut Luck) -> TestDisk {
        let platter = self.0.lock().unwrap();
        let synced = platter.synced.as_ref().expect("the contents at the last sync are kept");
        let pages: BTreeSet<u64> = synced.keys().chain(platter.grains.keys()).copied().collect();
        let zeros = vec![0; GRAIN as usize];
        let mut grains = BTreeMap::new();
        // Many sectors stay old, or few.
        let chance = luck.below(9);
        for page in pages {
            let (old, new) = (synced.get(&page), platter.grains.get(&page));
            let mut bytes = old.unwrap_or(&zeros).clone();
            for (index, sector) in new.unwrap_or(&zeros).chunks_exact(SECTOR).enumerate() {
                // A hole replaces whole pages.
                if luck.below(8) < chance && (new.is_some() || index == 0) {
                    let end = if new.is_some() { (index + 1) * SECTOR } else { bytes.len() };
                    let sector = if new.is_some() { sector } else { &zeros[..] };
                    bytes[index * SECTOR..end].copy_from_slice(sector);
                }
            }
            grains.insert(page, bytes);
        }
        let size = platter.size;
        TestDisk(Arc::new(Mutex::new(Platter { size, grains, ..Platter::default() })))
    }

    /// Returns a healthy disk with the same contents.
    pub fn copy(&self) -> TestDisk {
        let platter = self.0.lock().unwrap();
        let (size, grains) = (platter.size, platter.grains.clone());
        TestDisk(Arc::new(Mutex::new(Platter { size, grains, ..Platter::default() })))
    }
}

impl Disk for TestDisk {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let platter = self.0.lock().unwrap();
        if offset + into.len() as u64 > platter.size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut done = 0;
        while done < into.len() {
            let at = offset + done as u64;
            let within = (at % GRAIN) as usize;
            let length = (GRAIN as usize - within).min(into.len() - done);
            let piece = &mut into[done..done + length];
            match platter.grains.get(&(at / GRAIN)) {
                Some(grain) => piece.copy_from_slice(&grain[within..within + length]),
                None => piece.fill(0),
            }
            done += length;
        }
        Ok(())
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut platter = self.0.lock().unwrap();
        if let Some(error) = platter.error {
            return Err(error.into());
        }
        let mut done = 0;
        while done < bytes.len() {
            if let Some(life) = &mut platter.life {
                if *life == 0 {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                *life -= 1;
            }
            let at = offset + done as u64;
            let (grain, within) = (at / GRAIN, (at % GRAIN) as usize);
            let full = platter.room.is_some_and(|room| platter.grains.len() >= room);
            if full && !platter.grains.contains_key(&grain) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let length = (GRAIN as usize - within).min(bytes.len() - done);
            let place = platter.grains.entry(grain).or_insert_with(|| vec![0; GRAIN as usize]);
            place[within..within + length].copy_from_slice(&bytes[done..done + length]);
            done += length;
        }
        platter.size = platter.size.max(offset + bytes.len() as u64);
        Ok(())
    }

    fn punch(&mut self, offset: u64, length: u64) -> io::Result<()> {
        assert!(offset.is_multiple_of(GRAIN) && length.is_multiple_of(GRAIN), "holes are of whole grains");
        let mut platter = self.0.lock().unwrap();
        if let Some(error) = platter.error {
            return Err(error.into());
        }
        platter.grains.retain(|grain, _| !(offset..offset + length).contains(&(grain * GRAIN)));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut platter = self.0.lock().unwrap();
        if platter.synced.is_some() && platter.sync_error.is_none() {
            platter.synced = Some(platter.grains.clone());
        }
        platter.syncs.push(rustix::thread::current_timer_slack()?);
        platter.error.or(platter.sync_error).map_or(Ok(()), |error| Err(error.into()))
    }

    fn allocated(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().grains.len() as u64 * GRAIN)
    }

    fn data_after(&self, offset: u64) -> io::Result<u64> {
        let platter = self.0.lock().unwrap();
        let next = platter.grains.range(offset / GRAIN..).next();
        Ok(next.map_or(platter.size, |(grain, _)| (grain * GRAIN).max(offset)))
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().size)
    }

    fn resize(&mut self, bytes: u64) -> io::Result<()> {
        let mut platter = self.0.lock().unwrap();
        platter.size = bytes;
        platter.grains.retain(|grain, _| grain * GRAIN < bytes);
        Ok(())
    }
}
