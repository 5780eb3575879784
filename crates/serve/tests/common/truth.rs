//! Model of the possible contents of a disk: the last flushed version of each unit, and all versions accepted later.

use std::io;

use floatgate_serve::client::Client;
use floatgate_serve::nbd::wire::{command, flag};

const SECTOR: usize = 512;

/// Stamp of each sector of a unit: the number of the request that wrote it, or 0.
type Unit = Vec<u64>;

/// Random numbers for tests.
#[derive(Clone)]
pub struct Luck(pub u64);

impl Luck {
    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

/// Known state of a disk.
#[derive(Clone)]
pub struct Truth {
    /// Sectors per unit.
    sectors: usize,
    /// Possible versions of each unit. The first is certain, the last is the newest.
    units: Vec<Vec<Unit>>,
    stamps: u64,
    pub luck: Luck,
    /// Sectors that a trim drops together: a unit, or a stripe of an array with parity.
    pub trims: usize,
    /// True if all requests are for whole units.
    pub only_whole: bool,
    /// True if completed writes count as flushed.
    pub protected: bool,
}

enum Step {
    Write { fua: bool },
    Trim { fua: bool },
    Zeroes { fua: bool },
    Read,
}

/// Fills the bytes of a sector with a stamp.
fn fill(bytes: &mut [u8], stamp: u64) {
    for (index, word) in bytes.chunks_exact_mut(8).enumerate() {
        let value = if stamp == 0 { 0 } else { stamp << 8 | index as u64 };
        word.copy_from_slice(&value.to_le_bytes());
    }
}

/// Returns the stamp of a sector, or `None` if it is mixed.
pub fn stamp(bytes: &[u8]) -> Option<u64> {
    let stamp = u64::from_le_bytes(bytes[..8].try_into().ok()?) >> 8;
    let mut expected = vec![0; bytes.len()];
    fill(&mut expected, stamp);
    (expected == bytes).then_some(stamp)
}

impl Truth {
    /// Creates the model of an empty disk.
    pub fn new(bytes: u64, unit: usize, seed: u64) -> Truth {
        let sectors = unit / SECTOR;
        let units = vec![vec![vec![0; sectors]]; (bytes as usize) / unit];
        Truth { sectors, units, stamps: 0, luck: Luck(seed), trims: sectors, only_whole: false, protected: false }
    }

    fn unit(&self) -> usize {
        self.sectors * SECTOR
    }

    /// Adds a version to each unit of the sectors that are being written.
    fn writes(&mut self, first: usize, end: usize, stamp: u64) {
        for unit in first / self.sectors..end.div_ceil(self.sectors) {
            let mut next = self.units[unit].last().unwrap().clone();
            let start = unit * self.sectors;
            next[first.max(start) - start..end.min(start + self.sectors) - start].fill(stamp);
            self.units[unit].push(next);
        }
    }

    /// Makes the accepted versions certain.
    fn settle(&mut self, units: std::ops::Range<usize>) {
        for versions in &mut self.units[units] {
            versions.drain(..versions.len() - 1);
        }
    }

    /// Sends some requests for distinct units at once, and sometimes a flush. Returns early if the server is gone.
    pub fn step(&mut self, client: &mut Client) -> io::Result<()> {
        let batch = 1 + self.luck.below(12);
        let mut taken: Vec<std::ops::Range<usize>> = Vec::new();
        let mut requested = Vec::new();
        for _ in 0..batch {
            let total = self.units.len() * self.sectors;
            let longest = if self.luck.below(4) == 0 { 64 } else { self.sectors as u64 };
            let whole = self.luck.below(2) == 0 || self.only_whole;
            let mut first = self.luck.below(total as u64) as usize;
            let mut length = 1 + self.luck.below(longest) as usize;
            if whole {
                first -= first % self.sectors;
                length = length.next_multiple_of(self.sectors);
            }
            let end = (first + length).min(total);
            let units = first / self.sectors..end.div_ceil(self.sectors);
            if taken.iter().any(|other| other.start < units.end && units.start < other.end) {
                continue;
            }
            taken.push(units.clone());
            let step = match self.luck.below(16) {
                0..=1 => Step::Trim { fua: self.luck.below(3) == 0 },
                2 => Step::Zeroes { fua: self.luck.below(3) == 0 },
                3..=5 => Step::Read,
                other => Step::Write { fua: other == 6 },
            };
            requested.push(self.ask(client, step, first, end));
        }
        client.send()?;
        while !requested.is_empty() {
            let reply = client.reply(|_| 0)?;
            let at = requested.iter().position(|(cookie, ..)| *cookie == reply.cookie);
            let (_, units, durable, first) = requested.swap_remove(at.unwrap());
            if reply.error != 0 {
                return Err(io::Error::from_raw_os_error(reply.error as i32));
            }
            if durable {
                self.settle(units);
            } else if !reply.data.is_empty() {
                self.check_read(first, &reply.data);
            }
        }
        if self.luck.below(8) == 0 {
            client.flush()?;
            self.settle(0..self.units.len());
        }
        Ok(())
    }

    /// Sends a request. Returns its cookie, its units, whether the reply makes them certain, and its first sector.
    fn ask(
        &mut self,
        client: &mut Client,
        step: Step,
        first: usize,
        end: usize,
    ) -> (u64, std::ops::Range<usize>, bool, usize) {
        let (offset, length) = ((first * SECTOR) as u64, ((end - first) * SECTOR) as u32);
        let units = first / self.sectors..end.div_ceil(self.sectors);
        let flags = |fua| if fua { flag::FUA } else { 0 };
        match step {
            Step::Write { fua } => {
                self.stamps += 1;
                let mut data = vec![0; length as usize];
                data.chunks_exact_mut(SECTOR).for_each(|sector| fill(sector, self.stamps));
                self.writes(first, end, self.stamps);
                let cookie = client.ask(command::WRITE, flags(fua), offset, length, &data);
                (cookie, units, fua || self.protected, first)
            }
            Step::Trim { fua } => {
                // Partial writes keep the rest of a unit.
                let units = self.trims / self.sectors;
                let start = first.div_ceil(self.trims) * units;
                let whole = start..(end / self.trims * units).max(start);
                if !whole.is_empty() {
                    self.writes(whole.start * self.sectors, whole.end * self.sectors, 0);
                }
                let cookie = client.ask(command::TRIM, flags(fua), offset, length, &[]);
                (cookie, whole, fua || self.protected, first)
            }
            Step::Zeroes { fua } => {
                self.writes(first, end, 0);
                let cookie = client.ask(command::WRITE_ZEROES, flags(fua), offset, length, &[]);
                (cookie, units, fua || self.protected, first)
            }
            Step::Read => (client.ask(command::READ, 0, offset, length, &[]), units, false, first),
        }
    }

    /// Records that a flush of all previous writes has completed.
    pub fn flushed(&mut self) {
        self.settle(0..self.units.len());
    }

    /// Checks that data read from the running device are the newest.
    fn check_read(&self, first: usize, data: &[u8]) {
        for (sector, bytes) in (first..).zip(data.chunks_exact(SECTOR)) {
            let newest = self.units[sector / self.sectors].last().unwrap()[sector % self.sectors];
            assert_eq!(stamp(bytes), Some(newest), "sector {sector}");
        }
    }

    /// Returns the newest possible version of a unit that has these contents.
    pub fn version(&self, unit: usize, bytes: &[u8]) -> Option<usize> {
        let found = || bytes.chunks_exact(SECTOR).map(stamp);
        self.units[unit].iter().rposition(|version| version.iter().copied().map(Some).eq(found()))
    }

    /// Reads the whole disk, and checks that each unit is one of its possible versions. From then on, this version is
    /// certain.
    pub fn check(&mut self, client: &mut Client) {
        const TOGETHER: usize = 64;
        let unit = self.unit();
        let mut bytes = vec![0; TOGETHER * unit];
        for first in (0..self.units.len()).step_by(TOGETHER) {
            let count = TOGETHER.min(self.units.len() - first);
            client.read((first * unit) as u64, &mut bytes[..count * unit]).unwrap();
            for index in 0..count {
                let found = &bytes[index * unit..(index + 1) * unit];
                let version = self.version(first + index, found);
                let versions = &mut self.units[first + index];
                let Some(version) = version else {
                    let found: Vec<Option<u64>> = found.chunks_exact(SECTOR).map(stamp).collect();
                    panic!("unit {} holds {found:?}, and may hold {versions:?}", first + index);
                };
                *versions = vec![versions.swap_remove(version)];
            }
        }
    }

    /// Checks the disk, if no data may be lost.
    pub fn check_newest(&mut self, client: &mut Client) {
        self.flushed();
        self.check(client);
    }
}
