//! Opening an image: starts a new one, or recovers the device from an existing one.

use std::fmt::{self, Display, Formatter};
use std::io::ErrorKind;
use std::path::PathBuf;

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::flash::{Bad, FlashEvent, FlashImage, Keep, Outbox, Place, RecordKind, Saved, UnitState};
use floatgate_core::sim::id::{BlockId, Lpn, Ppn};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::ImageError;
use super::damage::Damage;
use super::disk::{Disk, NewFile, SystemFile};
use super::flash::Flash;
use super::inspect::{Ending, Inspection};
use super::layout::{COPIES, GRAIN, HEAD, SLOT};
use super::record::{Slot, SlotState, decode};
use super::saved::{Entry, Head, SavedSlots};
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
    kind: Kind,
}

/// Kind of an open image.
enum Kind {
    /// The file was created by this program, and does not hold a device yet. It gets its name once it does.
    New(Option<NewFile>),
    /// The file holds a device.
    Existing,
}

/// Result of a recovery, and the time that it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    /// Result of the device's recovery.
    pub device: floatgate_core::flash::Recovery,
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
            all.damage.unsynced += damage.unsynced;
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
    /// Opens the image of a device, or creates one if there is no file. With `syncs`, flushes wait for the machine's
    /// disk.
    pub fn open(at: &ImageAt, config: &DeviceConfig, syncs: bool) -> Result<Opened, ImageError> {
        check(config)?; // Otherwise, the file would be created for a device that is refused.
        let ImageAt::File(path) = at else {
            return Opened::create_on(Box::new(SystemFile::in_memory()?), config, syncs);
        };
        match SystemFile::open(path) {
            Ok(file) => Opened::on(Box::new(file.ok_or(ImageError::InUse)?), config, syncs),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let (file, new) = SystemFile::create(path)?;
                let opened = Opened::create_on(Box::new(file), config, syncs)?;
                Ok(Opened { kind: Kind::New(Some(new)), ..opened })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the image on any kind of disk.
    pub fn on(disk: Box<dyn Disk>, config: &DeviceConfig, syncs: bool) -> Result<Opened, ImageError> {
        check(config)?;
        Ok(Opened {
            store: Store::over(Flash::open(disk, config)?, protected_units(config), syncs),
            kind: Kind::Existing,
        })
    }

    /// Creates an image on any kind of disk.
    pub fn create_on(disk: Box<dyn Disk>, config: &DeviceConfig, syncs: bool) -> Result<Opened, ImageError> {
        check(config)?;
        Ok(Opened {
            store: Store::over(Flash::create(disk, config)?, protected_units(config), syncs),
            kind: Kind::New(None),
        })
    }

    /// Returns `true` if the image has never held a device.
    pub fn is_new(&self) -> bool {
        matches!(self.kind, Kind::New(_))
    }

    /// Returns the number of times that the image was opened for use.
    pub fn uses(&self) -> u64 {
        self.store.uses()
    }

    /// Starts the image with a new device, and writes the contents of its flash after preconditioning. Then the file
    /// gets its name.
    pub fn begin(self, device: &mut Device) -> Result<Store, ImageError> {
        let mut store = self.store;
        let mut report = |event: &FlashEvent, own: &[u8]| store.event(*event, own, None);
        device.make_durable(Keep::Outbox, Some(&mut report)).map_err(ImageError::Device)?;
        store.flash.count();
        store.use_file(false)?;
        match (store.failure_text(), store.breach()) {
            (Some(failure), _) => return Err(ImageError::Io(std::io::Error::other(failure))),
            (None, Some(breach)) => return Err(ImageError::Damaged(breach.to_owned())),
            (None, None) => {}
        }
        if let Kind::New(Some(file)) = self.kind {
            file.publish()?;
        }
        Ok(store)
    }

    /// Recovers the device from the image. With `salvages`, gives up records that are lost, although it is unknown
    /// which data they held.
    pub fn recover(
        self,
        config: DeviceConfig,
        options: Options,
        salvages: bool,
    ) -> Result<(Device, Store, Recovered), ImageError> {
        let mut store = self.store;
        store.salvages = salvages;
        let state = *store.flash.state();
        let is_same_boot = boot() == Some(state.boot);
        let ending = if state.is_clean {
            Ending::Shutdown
        } else if is_same_boot {
            Ending::Kill
        } else {
            Ending::Crash
        };
        let (device, recovered) = store.recover(config, options, ending, !is_same_boot)?;
        store.use_file(false)?;
        Ok((device, store, recovered))
    }
}

/// Returns the number of units of the buffer if it has power-loss protection, or else 0.
fn protected_units(config: &DeviceConfig) -> usize {
    let protects = config.active_buffer().is_some_and(|buffer| buffer.power_loss_protection);
    if protects { config.buffer_units() as usize } else { 0 }
}

impl Store {
    /// Writes the state of the file: in use, or closed with all accepted data (`is_clean`).
    fn use_file(&mut self, is_clean: bool) -> Result<(), ImageError> {
        Ok(self.flash.note(boot().unwrap_or_default(), is_clean, self.syncs)?)
    }

    /// Closes the image. On success, all accepted data are in flash or saved by the power-loss protection.
    pub fn close(&mut self) -> Result<(), String> {
        self.flash.retry();
        self.flash.count();
        self.flash.complete_entries();
        self.flash.write_freed();
        self.flash.sync();
        if let Some(failure) = self.failure_text().or_else(|| self.breach().map(str::to_owned)) {
            return Err(failure);
        }
        let is_clean = self.waiting.is_safe();
        self.use_file(is_clean).map_err(|error| error.to_string())
    }

    /// Returns the number of times that the image was opened for use.
    pub fn uses(&self) -> u64 {
        self.flash.state().uses
    }

    /// Cuts the power and restores it. Returns the device that was recovered from the file.
    pub fn power_cycle(
        &mut self,
        config: DeviceConfig,
        options: Options,
        seed: u64,
    ) -> Result<(Device, Recovered), ImageError> {
        self.cut(seed);
        self.recover(config, options, Ending::Kill, false)
    }

    fn recover(
        &mut self,
        config: DeviceConfig,
        options: Options,
        ending: Ending,
        payload_checked: bool,
    ) -> Result<(Device, Recovered), ImageError> {
        let start = Wall::now();
        let mut found = self.flash.inspect(ending, payload_checked, self.salvages)?;
        let saved = self.load_saved(ending, &mut found)?;
        if found.lost > 0 && !self.salvages {
            return Err(ImageError::Lost(found.lost));
        }
        let trusts_copies = ending != Ending::Crash && found.lost == 0;
        let mut reading = Reading { store: self, saved, window: Window::default(), trusts_copies, journal_lost: 0 };
        let recovered = Device::recover(config, options, &mut reading);
        let records_lost = found.lost + reading.journal_lost;
        if records_lost > 0 && !self.salvages {
            return Err(ImageError::Lost(records_lost));
        }
        let (mut device, recovery) = recovered.map_err(|error| ImageError::Damaged(error.to_string()))?;
        let Inspection { payload_lost, unsynced, .. } = found;
        let damage = Damage { repaired: self.flash.take_repaired(), records_lost, payload_lost, unsynced };
        self.damage.update(damage);
        let mut outbox = Outbox::default();
        device.take_flash(&mut outbox);
        self.apply(&outbox, None);
        // A kill can leave entries that a newer write, or a trim, has replaced.
        let freed = self.waiting.keep_newest(|lpn| device.place_of(Lpn(lpn)) == Place::Pending);
        freed.into_iter().for_each(|number| self.release(number));
        self.flash.count();
        let wall = Wall::now().since(start);
        let after_shutdown = ending == Ending::Shutdown;
        Ok((device, Recovered { device: recovery, wall, after_shutdown, payload_checked, damage, stripes: 0 }))
    }

    /// Reads the entries saved by power-loss protection, and adds the damage to `found`.
    fn load_saved(&mut self, ending: Ending, found: &mut Inspection) -> Result<Vec<Saved>, ImageError> {
        let layout = *self.flash.layout();
        let count = self.flash.state().saved;
        let (mut saved, mut taken, mut trims) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..count {
            let head = self.flash.saved_head(number)?;
            // After a crash of the machine, a head that is not whole belongs to a write that had no reply.
            found.lost += u64::from(head.is_none() && ending != Ending::Crash);
            match head.and_then(|head| head.entry) {
                Some(Entry::Write { lpn, sequence, digest }) => {
                    let mut bytes = digest.map(|_| vec![0; layout.unit as usize]);
                    if let Some(bytes) = &mut bytes {
                        self.flash.disk().read(layout.saved_payload(number), bytes)?;
                    }
                    if digest != bytes.as_deref().map(xxh3_64) && ending != Ending::Crash {
                        // The payload is written before the head, so it was complete once and is now damaged: reads of
                        // it get an error.
                        found.payload_lost += u64::from(bytes.take().is_some());
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
        self.slots = SavedSlots::found(count, &taken, trims);
        Ok(saved)
    }
}

impl Flash {
    /// Returns the newer copy of the head of a saved entry, and restores the other one. `None` if none is whole.
    fn saved_head(&mut self, number: u32) -> Result<Option<Head>, ImageError> {
        let mut copies = [[0; HEAD]; COPIES];
        for (copy, bytes) in copies.iter_mut().enumerate() {
            self.disk.read(self.layout.saved_head(number, copy), bytes)?;
        }
        let decode =
            |copy: usize, bytes: &[u8]| bytes.try_into().ok().and_then(|bytes| Head::decode(number, copy, bytes));
        let found = [decode(0, &copies[0]), decode(1, &copies[1])];
        let Some(head) = found.into_iter().flatten().max_by_key(|head| head.generation) else { return Ok(None) };
        // A head without contents cannot be the newest if the other copy had any.
        if head.generation == 0 && found.contains(&None) {
            return Ok(None);
        }
        for (copy, found) in found.into_iter().enumerate() {
            if found != Some(head) {
                self.disk.write(self.layout.saved_head(number, copy), &head.encode(number, copy))?;
                self.repaired += u64::from(found.is_none());
            }
        }
        self.generation = self.generation.max(head.generation);
        Ok(Some(head))
    }
}

/// A cached range of adjacent records.
#[derive(Default)]
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

/// Access of a recovery to the file, after its inspection.
struct Reading<'a> {
    store: &'a mut Store,
    saved: Vec<Saved>,
    window: Window,
    /// False if records that are not in the file any more may be in summaries and in the checkpoint.
    trusts_copies: bool,
    /// Number of trim journal units with damaged payload.
    journal_lost: u64,
}

impl Reading<'_> {
    fn state(&mut self, ppn: Ppn) -> Result<SlotState, String> {
        let flash = &self.store.flash;
        let at = flash.layout().slot(ppn.0);
        let start = at / GRAIN * GRAIN;
        if self.window.bytes.is_empty() || self.window.start != start {
            self.window.start = start;
            self.window.bytes.resize(GRAIN as usize, 0);
            flash.disk().read(start, &mut self.window.bytes).map_err(|error| format!("the image: {error}"))?;
        }
        let skipped = (at - start) as usize;
        let erases = flash.erases(flash.layout().block_of(ppn));
        Ok(decode(ppn.0, erases, &self.window.bytes[skipped..skipped + SLOT]))
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
        Ok(match self.state(ppn)? {
            SlotState::Holds(slot) => UnitState::Holds(slot.record),
            SlotState::Erased | SlotState::Skipped => UnitState::Erased,
            SlotState::Torn | SlotState::Damaged => UnitState::Torn,
        })
    }

    fn own(&mut self, ppn: Ppn, into: &mut Vec<u8>) -> Result<(), String> {
        let SlotState::Holds(Slot { record, .. }) = self.state(ppn)? else {
            return Err(format!("the image: unit {} holds nothing", ppn.0));
        };
        if !self.trusts_copies && matches!(record.kind, RecordKind::Summary | RecordKind::Checkpoint) {
            return Err("copies of records may be out of date".to_owned());
        }
        match self.store.flash.read_repaired(ppn) {
            Ok(bytes) => into.extend_from_slice(&bytes),
            Err(_) if record.kind == RecordKind::Journal => {
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
