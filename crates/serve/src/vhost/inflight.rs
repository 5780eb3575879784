//! What outlives a server that is killed: which requests it had taken and not answered.
//!
//! The client keeps this memory and hands it to the next server, which does those requests again. Without it they
//! would be lost: answers come out of order, so the rings alone do not tell which are missing. The layout is that of
//! the vhost-user protocol, "Inflight I/O tracking", for split rings:
//! a head (features, version, length, last, used) and for each descriptor whether it is in progress, and since when.

use std::fs::File;
use std::sync::atomic::Ordering;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory, VolatileSlice};

/// Bytes of the head of a ring.
const HEAD: usize = 16;

/// Bytes for each descriptor.
const ENTRY: usize = 16;

/// The parts of rings begin at multiples of this.
const ALIGNMENT: usize = 64;

/// The version of the layout.
const VERSION: u16 = 1;

/// Bytes for rings of so many descriptors.
pub fn bytes(rings: u16, size: u16) -> usize {
    usize::from(rings) * stride(size)
}

fn stride(size: u16) -> usize {
    (HEAD + ENTRY * usize::from(size)).next_multiple_of(ALIGNMENT)
}

/// Memory of so many bytes that both sides can map.
pub fn memory(bytes: usize) -> std::io::Result<File> {
    let file = memfd_create("floatgate-inflight", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, bytes as u64)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(File::from(file))
}

/// That memory, mapped.
#[derive(Debug)]
pub struct Inflight {
    region: MmapRegion<()>,
    rings: u16,
    size: u16,
    /// The number of the next request, by which they are put in order.
    next: u64,
}

/// The memory is not what it should be.
#[derive(Debug)]
pub struct Unfit;

impl Inflight {
    /// Maps what a client has handed over, new or from an earlier server.
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

    /// Whether it has room for that ring.
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

    /// A request has been taken.
    pub fn begin(&mut self, ring: u16, head: u16) -> Result<(), Unfit> {
        self.slice(ring)?.store(self.next, Inflight::entry(head) + 8, Ordering::Release).map_err(|_| Unfit)?;
        self.next += 1;
        self.mark(ring, head, 1)
    }

    /// A request is about to be put into the ring of answers.
    pub fn ending(&self, ring: u16, head: u16) -> Result<(), Unfit> {
        self.store16(ring, 12, head)
    }

    /// It is there.
    pub fn ended(&self, ring: u16, head: u16, used: u16) -> Result<(), Unfit> {
        self.mark(ring, head, 0)?;
        self.store16(ring, 14, used)
    }

    /// The requests that an earlier server has left, in the order in which it took them; its ring of answers is at
    /// `used`.
    pub fn left(&self, ring: u16, size: u16, used: u16) -> Result<Vec<u16>, Unfit> {
        // It ended between the answer and the mark: the last one is answered.
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
    fn what_was_taken_and_not_answered_is_left_in_its_order() {
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
        // Killed between the answer and its mark: the ring of answers is one further.
        second.ending(1, 5).unwrap();
        assert_eq!(open(&file).left(1, 8, 2).unwrap(), [7, 2]);
    }

    #[test]
    fn memory_that_is_too_small_or_another_ones_is_refused() {
        let file = memory(bytes(2, 8)).unwrap();
        let open = |offset, bytes, rings, size| Inflight::open(file.try_clone().unwrap(), offset, bytes, rings, size);
        assert!(open(0, bytes(2, 8) as u64, 3, 8).is_err());
        assert!(open(4096, bytes(2, 8) as u64, 2, 8).is_err());
        assert!(open(0, 1 << 40, 2, 8).is_err() && open(u64::MAX - 4095, 1 << 40, 2, 8).is_err());
        assert!(open(0, bytes(2, 8) as u64, 2, 8).is_ok());
        assert!(open(0, bytes(2, 8) as u64, 2, 4).is_err(), "the rings had another size");
    }
}
