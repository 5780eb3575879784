//! Beginning: a new image, or what a power cut has left of one.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use floatgate_core::config::DeviceConfig;
use floatgate_core::device::{Device, Options};
use floatgate_core::ftl::flash::{Bad, FlashImage, Outbox, Saved, UnitState};
use floatgate_core::sim::id::{BlockId, Lpn, Ppn};
use floatgate_core::sim::time::Time;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::ImageError;
use super::disk::{Disk, SystemFile};
use super::flash::{Flash, State};
use super::layout::{GRAIN, SAVED_HEAD, SLOT, Slot, Stored, is_erased};
use super::saved::{Entry, Places};
use super::store::Store;
use super::waiting::Version;
use crate::clock::Wall;

/// Where an image is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageAt {
    /// In memory: it goes with the program, and outlives power cuts.
    Memory,
    /// In a file.
    File(PathBuf),
}

/// An image that was opened.
pub struct Opened {
    store: Store,
    state: Option<State>,
}

/// What a recovery found, and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    /// As the device has it.
    pub device: floatgate_core::ftl::Recovery,
    /// What it took here.
    pub wall: Wall,
    /// The device had been shut down: all that was accepted was in flash.
    pub after_shutdown: bool,
    /// The payload of each unit was checked, because the machine itself may have stopped meanwhile.
    pub payload_checked: bool,
}

impl Display for Recovered {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Recovered { device, wall, after_shutdown, payload_checked } = self;
        let after = if *after_shutdown { "a shutdown" } else { "a power cut" };
        let checked = if *payload_checked { ", and all payload checked since the machine was restarted" } else { "" };
        let (simulated, real) = (Time(device.time_ps).as_us() / 1e3, wall.as_us() / 1e3);
        write!(f, "recovered after {after} in {simulated:.1} ms of simulated time, {real:.1} ms here: ")?;
        write!(f, "{} units mapped, {} torn{checked}", device.units_mapped, device.torn_units)?;
        match device.blocks_accounted {
            0 => Ok(()),
            blocks => write!(f, ", {blocks} blocks by the checkpoint"),
        }
    }
}

/// Which run of the machine this is. None where the system does not tell.
fn boot() -> Option<u128> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(xxh3_128(text.trim().as_bytes()))
}

impl Opened {
    /// Opens an image of a device, or makes one. With `syncs` what is flushed is brought to the machine's own disk.
    pub fn open(at: &ImageAt, config: &DeviceConfig, syncs: bool) -> Result<Opened, ImageError> {
        let disk = match at {
            ImageAt::Memory => SystemFile::in_memory()?,
            ImageAt::File(path) => SystemFile::open(path)?.ok_or(ImageError::InUse)?,
        };
        Opened::on(Box::new(disk), config, syncs)
    }

    /// The same on a disk of any kind.
    pub fn on(disk: Box<dyn Disk>, config: &DeviceConfig, syncs: bool) -> Result<Opened, ImageError> {
        let protects = config.active_buffer().is_some_and(|buffer| buffer.power_loss_protection);
        let (flash, state) = Flash::open(disk, config)?;
        Ok(Opened { store: Store::over(flash, protects, syncs), state })
    }

    /// Whether nothing was ever in it: it begins with a new device.
    pub fn is_new(&self) -> bool {
        self.state.is_none()
    }

    /// Begins with a new device: what preconditioning has left in flash is written down.
    pub fn begin(self, device: &mut Device) -> Result<Store, ImageError> {
        let mut store = self.store;
        let told = device.make_durable_with(|event, own| store.event(*event, own, None));
        told.map_err(ImageError::Device)?;
        store.use_file(false)?;
        match (store.failure_text(), store.breach()) {
            (Some(failure), _) => Err(ImageError::Io(std::io::Error::other(failure))),
            (None, Some(breach)) => Err(ImageError::Damaged(breach.to_owned())),
            (None, None) => Ok(store),
        }
    }

    /// Goes on with the device that the file holds.
    pub fn recover(self, config: DeviceConfig, options: Options) -> Result<(Device, Store, Recovered), ImageError> {
        let mut store = self.store;
        let same_boot = self.state.is_some_and(|state| boot() == Some(state.boot));
        let after_shutdown = self.state.is_some_and(|state| state.clean);
        let (device, mut recovered) = store.recover(config, options, !same_boot)?;
        recovered.after_shutdown = after_shutdown;
        store.use_file(false)?;
        Ok((device, store, recovered))
    }
}

impl Store {
    /// Notes that the file is in use, or that it is left with all that was accepted.
    fn use_file(&mut self, clean: bool) -> Result<(), ImageError> {
        self.flash.note(State { boot: boot().unwrap_or_default(), clean })
    }

    /// Ends: all that was accepted is in flash, or saved by the power-loss protection, unless there is a failure.
    pub fn close(mut self) -> Result<(), String> {
        self.flash.retry();
        self.flash.sync();
        if let Some(failure) = self.failure_text() {
            return Err(failure);
        }
        let is_clean = self.waiting.is_safe();
        self.use_file(is_clean).map_err(|error| error.to_string())
    }

    /// The power is cut and comes again: the device is what recovery makes of the file.
    pub fn power_cycle(
        &mut self,
        config: DeviceConfig,
        options: Options,
        seed: u64,
    ) -> Result<(Device, Recovered), ImageError> {
        self.cut(seed)?;
        self.recover(config, options, false)
    }

    fn recover(
        &mut self,
        config: DeviceConfig,
        options: Options,
        payload_checked: bool,
    ) -> Result<(Device, Recovered), ImageError> {
        let start = Wall::now();
        let saved = self.load_saved()?;
        let mut reading = Reading { store: self, saved, window: Window::default(), payload_checked };
        let recovered = Device::recover(config, options, &mut reading);
        let (mut device, recovery) = recovered.map_err(|error| ImageError::Damaged(error.to_string()))?;
        let mut outbox = Outbox::default();
        device.take_flash(&mut outbox);
        self.apply(&outbox, None);
        let wall = Wall::now().since(start);
        Ok((device, Recovered { device: recovery, wall, after_shutdown: false, payload_checked }))
    }

    /// What a memory with power-loss protection held.
    fn load_saved(&mut self) -> Result<Vec<Saved>, ImageError> {
        let layout = *self.flash.layout();
        let size = self.flash.disk().size()?;
        let count = layout.places_saved(size);
        let (mut saved, mut taken, mut trims) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..count {
            let mut head = [0; SLOT];
            let there = size.saturating_sub(layout.saved(number)).min(SLOT as u64) as usize;
            self.flash.disk().read(layout.saved(number), &mut head[..there])?;
            match Entry::parse(number, &head) {
                Some(Entry::Write { lpn, sequence, digest }) => {
                    let mut bytes = digest.map(|_| vec![0; layout.unit as usize]);
                    if let Some(bytes) = &mut bytes {
                        self.flash.disk().read(layout.saved(number) + SAVED_HEAD as u64, bytes)?;
                    }
                    if digest == bytes.as_deref().map(xxh3_64) {
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
        self.places = Places::found(count, &taken, trims);
        Ok(saved)
    }
}

/// Records that lie together and were read at once.
#[derive(Default)]
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

/// The file as a recovery reads it.
struct Reading<'a> {
    store: &'a mut Store,
    saved: Vec<Saved>,
    window: Window,
    payload_checked: bool,
}

impl Reading<'_> {
    fn slot(&mut self, place: u32) -> Result<&[u8], String> {
        let flash = &self.store.flash;
        let at = flash.layout().slot(place);
        let start = at / GRAIN * GRAIN;
        if self.window.bytes.is_empty() || self.window.start != start {
            self.window.start = start;
            self.window.bytes.resize(GRAIN as usize, 0);
            flash.disk().read(start, &mut self.window.bytes).map_err(|error| format!("the image: {error}"))?;
        }
        let skipped = (at - start) as usize;
        Ok(&self.window.bytes[skipped..skipped + SLOT])
    }

    fn state(&mut self, place: u32) -> Result<Result<Slot, UnitState>, String> {
        let bytes = self.slot(place)?;
        if is_erased(bytes) {
            return Ok(Err(UnitState::Erased));
        }
        Ok(Slot::parse(place, bytes).ok_or(UnitState::Torn))
    }

    /// Whether the payload is what was programmed.
    fn is_right(&mut self, place: u32, slot: &Slot) -> Result<bool, String> {
        let Stored::Bytes(digest) = slot.payload else { return Ok(true) };
        let layout = *self.store.flash.layout();
        let mut bytes = vec![0; layout.unit as usize];
        let read = self.store.flash.disk().read(layout.payload(place), &mut bytes);
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

    fn unit(&mut self, place: Ppn) -> Result<UnitState, String> {
        let slot = match self.state(place.0)? {
            Ok(slot) => slot,
            Err(state) => return Ok(state),
        };
        if self.payload_checked && !self.is_right(place.0, &slot)? {
            return Ok(UnitState::Torn);
        }
        // A program is one: where the kernel was stopped between its records, none of its units counts.
        let (part, parts) = slot.part;
        let within = place.0 % self.store.flash.layout().units;
        if parts > 1 && (part > within || within - part + parts > self.store.flash.layout().units) {
            return Ok(UnitState::Torn);
        }
        for index in (0..parts).filter(|index| *index != part) {
            let other = self.state(place.0 - part + index)?;
            if !other.is_ok_and(|other| other.part == (index, parts)) {
                return Ok(UnitState::Torn);
            }
        }
        Ok(UnitState::Holds(slot.record))
    }

    fn own(&mut self, place: Ppn, into: &mut Vec<u8>) -> Result<(), String> {
        let mut bytes = vec![0; self.store.flash.layout().unit as usize];
        self.store.flash.read(place, None, &mut bytes).map_err(|error| format!("the image: {error}"))?;
        into.extend_from_slice(&bytes);
        Ok(())
    }

    fn saved(&mut self) -> Result<Vec<Saved>, String> {
        Ok(std::mem::take(&mut self.saved))
    }
}
