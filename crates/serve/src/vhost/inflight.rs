//! Record of the requests that were taken but not replied to, which survives the death of the server.
//!
//! The client keeps this memory and passes it to the next server, which performs these requests again. Without it the
//! requests would be lost: replies are sent out of order, so the rings alone do not show which ones are missing. The
//! layout follows the vhost-user protocol, "Inflight I/O tracking", for split rings. It consists of a header (features,
//! version, length, last, used) and, for each descriptor, an in-flight flag and a sequence number.

use std::fs::File;
use std::sync::atomic::Ordering;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory, VolatileSlice};

/// Bytes of the header of a ring.
const HEAD: usize = 16;

/// Bytes per descriptor.
const ENTRY: usize = 16;

/// Alignment of the parts of rings.
const ALIGNMENT: usize = 64;

/// Version of the layout.
const VERSION: u16 = 1;

/// Returns the number of bytes for `rings` rings with `size` descriptors each.
pub fn bytes(rings: u16, size: u16) -> usize {
    usize::from(rings) * stride(size)
}

fn stride(size: u16) -> usize {
    (HEAD + ENTRY * usize::from(size)).next_multiple_of(ALIGNMENT)
}

/// Creates shared memory that both sides can map.
pub fn memory(bytes: usize) -> std::io::Result<File> {
    let file = memfd_create("floatgate-inflight", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, bytes as u64)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(File::from(file))
}

/// The mapped record.
#[derive(Debug)]
pub struct Inflight {
    region: MmapRegion<()>,
    rings: u16,
    size: u16,
    /// Sequence number of the next request, which preserves their order.
    next: u64,
}

/// Error: the memory does not have the expected contents.
#[derive(Debug)]
pub struct Unfit;

impl Inflight {
    /// Maps memory from a client. It may be new, or come from an earlier server.
    pub fn open(file: File, offset: u64, bytes: u64, rings: u16, size: u16) -> Result<Inflight, Unfit> {
        let length = file.metadata().map_err(|_| Unfit)?.len();
        let is_there = offset.checked_add(bytes).is_some_and(|end| end <= length);
        if !is_there || bytes < self::bytes(rings, size) as u64 || !offset.is_multiple_of(4096) {
            return Err(Unfit);
        }
        let length = self::bytes(rings, size);
        let region = MmapRegion::from_file(FileOffset::new(file, offset), length).map_err(|_| Unfit)?;
        let mut inflight = Inflight { region, rings, size, next: 1 };
        for ring in 0..rings {
            match (inflight.load16(ring, 8)?, inflight.load16(ring, 10)?) {
                (0, _) => {
                    inflight.store16(ring, 8, VERSION)?;
                    inflight.store16(ring, 10, size)?;
                }
                (VERSION, length) if length == size => {}
                _ => return Err(Unfit),
            }
            for entry in 0..size {
                inflight.next = inflight.next.max(inflight.number(ring, entry)?.saturating_add(1));
            }
        }
        Ok(inflight)
    }

    /// Returns `true` if the record has space for a ring.
    pub fn fits(&self, ring: u16, size: u16) -> bool {
        ring < self.rings && size <= self.size
    }

    fn slice(&self, ring: u16) -> Result<VolatileSlice<'_>, Unfit> {
        self.region.get_slice(usize::from(ring) * stride(self.size), stride(self.size)).map_err(|_| Unfit)
    }

    fn load16(&self, ring: u16, at: usize) -> Result<u16, Unfit> {
        self.slice(ring)?.load(at, Ordering::Acquire).map_err(|_| Unfit)
    }

    fn store16(&self, ring: u16, at: usize, value: u16) -> Result<(), Unfit> {
        self.slice(ring)?.store(value, at, Ordering::Release).map_err(|_| Unfit)
    }

    fn entry(head: u16) -> usize {
        HEAD + ENTRY * usize::from(head)
    }

    fn number(&self, ring: u16, head: u16) -> Result<u64, Unfit> {
        self.slice(ring)?.load(Inflight::entry(head) + 8, Ordering::Acquire).map_err(|_| Unfit)
    }

    fn mark(&self, ring: u16, head: u16, value: u8) -> Result<(), Unfit> {
        self.slice(ring)?.store(value, Inflight::entry(head), Ordering::Release).map_err(|_| Unfit)
    }

    /// Records that a request was taken.
    pub fn begin(&mut self, ring: u16, head: u16) -> Result<(), Unfit> {
        self.slice(ring)?.store(self.next, Inflight::entry(head) + 8, Ordering::Release).map_err(|_| Unfit)?;
        self.next += 1;
        self.mark(ring, head, 1)
    }

    /// Records that a request is about to be added to the used ring.
    pub fn ending(&self, ring: u16, head: u16) -> Result<(), Unfit> {
        self.store16(ring, 12, head)
    }

    /// Records that a request was added to the used ring.
    pub fn ended(&self, ring: u16, head: u16, used: u16) -> Result<(), Unfit> {
        self.mark(ring, head, 0)?;
        self.store16(ring, 14, used)
    }

    /// Returns the requests that an earlier server has left, in the order in which it took them. `used` is the index of
    /// the used ring.
    pub fn left(&self, ring: u16, size: u16, used: u16) -> Result<Vec<u16>, Unfit> {
        // The server died after adding the last reply and before clearing its flag.
        if self.load16(ring, 14)? != used {
            let last = self.load16(ring, 12)?;
            if last < size {
                self.mark(ring, last, 0)?;
            }
            self.store16(ring, 14, used)?;
        }
        let mut left = Vec::new();
        for head in 0..size {
            let marked: u8 = self.slice(ring)?.load(Inflight::entry(head), Ordering::Acquire).map_err(|_| Unfit)?;
            if marked == 1 {
                left.push((self.number(ring, head)?, head));
            }
        }
        left.sort_unstable();
        Ok(left.into_iter().map(|(_, head)| head).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(file: &File) -> Inflight {
        Inflight::open(file.try_clone().unwrap(), 0, bytes(2, 8) as u64, 2, 8).unwrap()
    }

    #[test]
    fn outstanding_requests_are_left_in_order() {
        let file = memory(bytes(2, 8)).unwrap();
        let mut first = open(&file);
        for head in [5, 2, 7] {
            first.begin(1, head).unwrap();
        }
        first.ending(1, 2).unwrap();
        first.ended(1, 2, 1).unwrap();
        drop(first);
        let mut second = open(&file);
        assert_eq!(second.left(1, 8, 1).unwrap(), [5, 7]);
        assert_eq!(second.left(0, 8, 0).unwrap(), [0; 0]);
        second.begin(1, 2).unwrap();
        // The server dies after adding the reply and before clearing its flag: the used ring is one entry ahead.
        second.ending(1, 5).unwrap();
        assert_eq!(open(&file).left(1, 8, 2).unwrap(), [7, 2]);
    }

    #[test]
    fn memory_of_the_wrong_size_is_refused() {
        let file = memory(bytes(2, 8)).unwrap();
        let open = |offset, bytes, rings, size| Inflight::open(file.try_clone().unwrap(), offset, bytes, rings, size);
        assert!(open(0, bytes(2, 8) as u64, 3, 8).is_err());
        assert!(open(4096, bytes(2, 8) as u64, 2, 8).is_err());
        assert!(open(0, 1 << 40, 2, 8).is_err() && open(u64::MAX - 4095, 1 << 40, 2, 8).is_err());
        assert!(open(0, bytes(2, 8) as u64, 2, 8).is_ok());
        assert!(open(0, bytes(2, 8) as u64, 2, 4).is_err(), "the size of the rings differs");
    }
}
