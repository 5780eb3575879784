//! Opening an image: starts a new one, or recovers the device from an existing one.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use floatgate_core::config::DeviceConfig;
use floatgate_core::device::{Device, Options};
use floatgate_core::durability::flash::{Bad, FlashImage, Outbox, RecordKind, Saved, UnitState};
use floatgate_core::sim::id::{BlockId, Lpn, Ppn};
use floatgate_core::sim::time::Time;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::ImageError;
use super::damage::Damage;
use super::disk::{Disk, SystemFile};
use super::flash::{Flash, State};
use super::layout::{GRAIN, SAVED_HEAD, SLOT, Slot, SlotState, Stored, is_erased};
use super::saved::{Entry, SocketAddresses};
use super::store::Store;
use super::waiting::Version;
use crate::clock::Wall;

/// Location of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageAt {
    /// In memory: the image survives power cuts of the device, but not the end of the program.
    Memory,
    /// In a file.
    File(PathBuf),
}

/// An open image.
pub struct Opened {
    store: Store,
    state: Option<State>,
}

/// Result of a recovery, and the time that it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    /// Result of the device's recovery.
    pub device: floatgate_core::durability::Recovery,
    /// Real time of the recovery.
    pub wall: Wall,
    /// True after a shutdown, which leaves all accepted data in flash.
    pub after_shutdown: bool,
    /// True if the payload of each unit was checked, because the machine may have stopped since the last use.
    pub payload_checked: bool,
    /// Damage found in the file.
    pub damage: Damage,
    /// Stripes of an array whose copies or parity are compared with the data, in the background.
    pub stripes: usize,
}

impl Recovered {
    /// Returns the result of the recovery of the members of an array, which work at the same time.
    pub(super) fn of_members(members: Vec<Recovered>) -> Recovered {
        let mut members = members.into_iter();
        let mut all = members.next().expect("a member was recovered");
        for Recovered { device, wall, after_shutdown, payload_checked, damage, .. } in members {
            let sum = &mut all.device;
            sum.time_ps = sum.time_ps.max(device.time_ps);
            sum.pages_read += device.pages_read;
            sum.units_mapped += device.units_mapped;
            sum.torn_units += device.torn_units;
            sum.journal_records += device.journal_records;
            sum.blocks_skipped += device.blocks_skipped;
            sum.blocks_erased += device.blocks_erased;
            all.wall = all.wall.later(wall);
            all.after_shutdown &= after_shutdown;
            all.payload_checked |= payload_checked;
            all.damage.repaired += damage.repaired;
            all.damage.records_lost += damage.records_lost;
            all.damage.payload_lost += damage.payload_lost;
        }
        all
    }
}

impl Display for Recovered {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Recovered { device, wall, after_shutdown, payload_checked, .. } = self;
        let after = if *after_shutdown { "a shutdown" } else { "a power cut" };
        let checked = if *payload_checked { ", and all payload checked since the machine was restarted" } else { "" };
        let (simulated, real) = (Time(device.time_ps).as_us() / 1e3, wall.as_us() / 1e3);
        write!(f, "recovered after {after} in {simulated:.1} ms of simulated time, {real:.1} ms real time: ")?;
        write!(f, "{} units mapped, {} torn{checked}", device.units_mapped, device.torn_units)?;
        if device.blocks_skipped > 0 {
            write!(f, ", {} blocks not read", device.blocks_skipped)?;
        }
        match self.stripes {
            0 => Ok(()),
            stripes => write!(f, "; {stripes} stripes are compared in the background"),
        }
    }
}

/// Returns an identifier of this boot of the machine. `None` if the system does not provide one.
fn boot() -> Option<u128> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(xxh3_128(text.trim().as_bytes()))
}

/// Refuses a device that cannot recover.
fn check(config: &DeviceConfig) -> Result<(), ImageError> {
    let why = config.mapping.scheme.needs(config).no_power_loss;
    why.map_or(Ok(()), |why| Err(ImageError::Device(why.to_owned())))
}

impl Opened {
    /// Opens the image of a device, or creates one. With `syncs`, flushes wait for the machine's disk.
    pub fn open(at: &ImageAt, config: &DeviceConfig, syncs: bool) -> Result<Opened, ImageError> {
        check(config)?; // Otherwise, the file would be created for a device that is refused.
        let disk = match at {
            ImageAt::Memory => SystemFile::in_memory()?,
            ImageAt::File(path) => SystemFile::open(path)?.ok_or(ImageError::InUse)?,
        };
        Opened::on(Box::new(disk), config, syncs)
    }

    /// Opens an image on any kind of disk.
    pub fn on(disk: Box<dyn Disk>, config: &DeviceConfig, syncs: bool) -> Result<Opened, ImageError> {
        check(config)?;
        let protects = config.active_buffer().is_some_and(|buffer| buffer.power_loss_protection);
        let (flash, state) = Flash::open(disk, config)?;
        Ok(Opened { store: Store::over(flash, protects, syncs), state })
    }

    /// Returns `true` if the image has never held a device.
    pub fn is_new(&self) -> bool {
        self.state.is_none()
    }

    /// Starts the image with a new device, and writes the contents of its flash after preconditioning.
    pub fn begin(self, device: &mut Device) -> Result<Store, ImageError> {
        let mut store = self.store;
        let reported = device.make_durable_with(|event, own| store.event(*event, own, None));
        reported.map_err(ImageError::Device)?;
        store.use_file(false)?;
        match (store.failure_text(), store.breach()) {
            (Some(failure), _) => Err(ImageError::Io(std::io::Error::other(failure))),
            (None, Some(breach)) => Err(ImageError::Damaged(breach.to_owned())),
            (None, None) => Ok(store),
        }
    }

    /// Recovers the device from the image. With `salvages`, continues even if records cannot be read, although it is
    /// unknown which data are then lost.
    pub fn recover(
        self,
        config: DeviceConfig,
        options: Options,
        salvages: bool,
    ) -> Result<(Device, Store, Recovered), ImageError> {
        let mut store = self.store;
        store.salvages = salvages;
        let after = match self.state {
            Some(state) if state.clean => After::Shutdown,
            Some(state) if boot() == Some(state.boot) => After::Kill,
            _ => After::Crash,
        };
        let checks_payload = self.state.is_none_or(|state| boot() != Some(state.boot));
        let (device, recovered) = store.recover(config, options, after, checks_payload)?;
        store.use_file(false)?;
        Ok((device, store, recovered))
    }
}

impl Store {
    /// Writes the state of the file: in use, or closed with all accepted data (`clean`).
    fn use_file(&mut self, clean: bool) -> Result<(), ImageError> {
        self.flash.note(State { boot: boot().unwrap_or_default(), clean })
    }

    /// Closes the image. On success, all accepted data are in flash or saved by the power-loss protection.
    pub fn close(mut self) -> Result<(), String> {
        self.flash.retry();
        self.flash.sync();
        if let Some(failure) = self.failure_text() {
            return Err(failure);
        }
        let is_clean = self.waiting.is_safe();
        self.use_file(is_clean).map_err(|error| error.to_string())
    }

    /// Cuts the power and restores it. Returns the device that was recovered from the file.
    pub fn power_cycle(
        &mut self,
        config: DeviceConfig,
        options: Options,
        seed: u64,
    ) -> Result<(Device, Recovered), ImageError> {
        self.cut(seed)?;
        self.recover(config, options, After::Kill, false)
    }

    fn recover(
        &mut self,
        config: DeviceConfig,
        options: Options,
        after: After,
        payload_checked: bool,
    ) -> Result<(Device, Recovered), ImageError> {
        let start = Wall::now();
        let (saved, found) = self.load_saved(after)?;
        let salvages = self.salvages;
        let mut reading = Reading::of(self, saved, after, payload_checked);
        let recovered = Device::recover(config, options, &mut reading);
        let records_lost = found.records_lost + reading.damaged.len() as u64 + reading.journal_lost;
        let payload_lost = found.payload_lost + reading.payload_lost;
        if records_lost > 0 && !salvages {
            return Err(ImageError::Lost(records_lost));
        }
        let (mut device, recovery) = recovered.map_err(|error| ImageError::Damaged(error.to_string()))?;
        let damage = Damage { repaired: self.flash.take_repaired(), records_lost, payload_lost };
        self.damage.update(damage);
        let mut outbox = Outbox::default();
        device.take_flash(&mut outbox);
        self.apply(&outbox, None);
        let wall = Wall::now().since(start);
        let after_shutdown = after == After::Shutdown;
        Ok((device, Recovered { device: recovery, wall, after_shutdown, payload_checked, damage, stripes: 0 }))
    }

    /// Reads the entries saved by power-loss protection. Returns them with the damage that was found.
    fn load_saved(&mut self, after: After) -> Result<(Vec<Saved>, Damage), ImageError> {
        let layout = *self.flash.layout();
        let size = self.flash.disk().size()?;
        let count = layout.places_saved(size);
        let (mut saved, mut taken, mut trims, mut damage) = (Vec::new(), Vec::new(), Vec::new(), Damage::default());
        for number in 0..count {
            let mut head = [0; SLOT];
            let there = size.saturating_sub(layout.saved(number)).min(SLOT as u64) as usize;
            self.flash.disk().read(layout.saved(number), &mut head[..there])?;
            let is_valid = |head: &[u8]| is_erased(head) || Entry::parse(number, head).is_some();
            let is_whole = there == SLOT && !is_valid(&head);
            if is_whole && !self.flash.repair_saved(number, &mut head, is_valid)? && after != After::Crash {
                damage.records_lost += 1;
            }
            match Entry::parse(number, &head) {
                Some(Entry::Write { lpn, sequence, digest }) => {
                    let mut bytes = digest.map(|_| vec![0; layout.unit as usize]);
                    if let Some(bytes) = &mut bytes {
                        self.flash.disk().read(layout.saved(number) + SAVED_HEAD as u64, bytes)?;
                    }
                    if digest != bytes.as_deref().map(xxh3_64) && after != After::Crash {
                        // The payload is written before the head, so it was complete once and is now damaged: reads of
                        // it get an error.
                        damage.payload_lost += u64::from(bytes.take().is_some());
                    }
                    if bytes.is_none() || digest == bytes.as_deref().map(xxh3_64) {
                        taken.push(number);
                        saved.push(Saved::Write { lpn, sequence });
                        let bytes = bytes.map(Into::into);
                        self.waiting.add(lpn.0, Version { sequence, bytes, saved: Some(number) });
                    }
                }
                Some(Entry::Trims { lpn, count, sequence }) => {
                    taken.push(number);
                    trims.push((sequence + u64::from(count) - 1, number));
                    let each = |index| Saved::Trim { lpn: Lpn(lpn.0 + index), sequence: sequence + u64::from(index) };
                    saved.extend((0..count).map(each));
                }
                None => {}
            }
        }
        self.places = SocketAddresses::found(count, &taken, trims);
        Ok((saved, damage))
    }
}

/// A cached range of adjacent records.
#[derive(Default)]
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

/// End of the last use of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// A shutdown: everything is on the disk of the machine.
    Shutdown,
    /// A killed program, or a power cut of the device: the kernel has everything that was written.
    Kill,
    /// Possibly a crash of the machine: the kernel may have written records without their payload.
    Crash,
}

/// Access of a recovery to the file.
struct Reading<'a> {
    store: &'a mut Store,
    saved: Vec<Saved>,
    window: Window,
    after: After,
    payload_checked: bool,
    /// Physical addresses of damaged records.
    damaged: BTreeSet<u32>,
    /// Number of trim journal units with damaged payload.
    journal_lost: u64,
    /// Number of host data units with damaged payload.
    payload_lost: u64,
}

impl<'a> Reading<'a> {
    fn of(store: &'a mut Store, saved: Vec<Saved>, after: After, payload_checked: bool) -> Reading<'a> {
        let (window, damaged) = (Window::default(), BTreeSet::new());
        Reading { store, saved, window, after, payload_checked, damaged, journal_lost: 0, payload_lost: 0 }
    }

    fn slot(&mut self, ppn: u32) -> Result<&[u8], String> {
        let flash = &self.store.flash;
        let at = flash.layout().slot(ppn);
        let start = at / GRAIN * GRAIN;
        if self.window.bytes.is_empty() || self.window.start != start {
            self.window.start = start;
            self.window.bytes.resize(GRAIN as usize, 0);
            flash.disk().read(start, &mut self.window.bytes).map_err(|error| format!("the image: {error}"))?;
        }
        let skipped = (at - start) as usize;
        Ok(&self.window.bytes[skipped..skipped + SLOT])
    }

    fn state(&mut self, ppn: u32) -> Result<SlotState, String> {
        let mut state = SlotState::parse(ppn, self.slot(ppn)?);
        if state == SlotState::Damaged && !self.damaged.contains(&ppn) {
            state = self.store.flash.repair_slot(ppn).map_err(|error| format!("the image: {error}"))?;
            self.window.bytes.clear();
            if state == SlotState::Damaged {
                self.damaged.insert(ppn);
            }
        }
        Ok(state)
    }

    /// Returns `true` if the payload matches its digest.
    fn is_right(&mut self, ppn: u32, slot: &Slot) -> Result<bool, String> {
        let Stored::Bytes(digest) = slot.payload else { return Ok(true) };
        let layout = *self.store.flash.layout();
        let mut bytes = vec![0; layout.unit as usize];
        let read = self.store.flash.disk().read(layout.payload(ppn), &mut bytes);
        read.map_err(|error| format!("the image: {error}"))?;
        Ok(xxh3_64(&bytes) == digest)
    }
}

impl FlashImage for Reading<'_> {
    fn erases(&mut self, block: BlockId) -> Result<u32, String> {
        Ok(self.store.flash.erases(block))
    }

    fn anchor(&mut self, part: u32) -> Result<Option<Ppn>, String> {
        self.store.flash.anchor(part).map_err(|error| format!("the image: {error}"))
    }

    fn bad(&mut self, block: BlockId) -> Result<Option<Bad>, String> {
        Ok(self.store.flash.bad(block))
    }

    fn unit(&mut self, ppn: Ppn) -> Result<UnitState, String> {
        let slot = match self.state(ppn.0)? {
            SlotState::Holds(slot) => slot,
            SlotState::Erased => return Ok(UnitState::Erased),
            SlotState::Torn | SlotState::Damaged => return Ok(UnitState::Torn),
        };
        if self.payload_checked && !self.is_right(ppn.0, &slot)? {
            if self.after == After::Crash {
                let discarded = self.store.flash.discard(ppn.0, &slot);
                discarded.map_err(|error| format!("the image: {error}"))?;
                self.window.bytes.clear();
                return Ok(UnitState::Torn);
            }
            self.payload_lost += u64::from(slot.record.kind == RecordKind::Data);
        }
        // A program operation is atomic: if the kernel stopped between its records, none of its units is valid.
        let (part, parts) = slot.part;
        let within = ppn.0 % self.store.flash.layout().units;
        if parts > 1 && (part > within || within - part + parts > self.store.flash.layout().units) {
            return Ok(UnitState::Torn);
        }
        for index in (0..parts).filter(|index| *index != part) {
            match self.state(ppn.0 - part + index)? {
                SlotState::Holds(other) if other.part == (index, parts) => {}
                // The damaged record was written together with the others.
                SlotState::Damaged => {}
                _ => return Ok(UnitState::Torn),
            }
        }
        Ok(UnitState::Holds(slot.record))
    }

    fn own(&mut self, ppn: Ppn, into: &mut Vec<u8>) -> Result<(), String> {
        let is_journal = |state| matches!(state, SlotState::Holds(slot) if slot.record.kind == RecordKind::Journal);
        match self.store.flash.read_repaired(ppn) {
            Ok(bytes) => into.extend_from_slice(&bytes),
            Err(_) if is_journal(self.state(ppn.0)?) => {
                self.journal_lost += 1;
                // Zeros contain no journal records.
                into.resize(into.len() + self.store.flash.layout().unit as usize, 0);
            }
            Err(error) => return Err(format!("the image: {error}")),
        }
        Ok(())
    }

    fn saved(&mut self) -> Result<Vec<Saved>, String> {
        Ok(std::mem::take(&mut self.saved))
    }
}
