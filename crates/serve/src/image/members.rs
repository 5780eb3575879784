//! Images of the members of an array: one file for each in a folder, and a note about the array.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use floatgate_array::config::ArrayConfig;
use floatgate_array::layout::Layout;
use floatgate_array::{self as array, MemberPayload, SsdArray};
use floatgate_core::device_file::DeviceConfig;
use floatgate_core::flash::Outbox;
use floatgate_core::sim::request::SECTOR;
use floatgate_core::simulation::{Device, Options, Ssd};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::disk::{folder_of, sync_folder};
use super::store::Arriving;
use super::{ImageAt, ImageError, Opened, Recovered, Store};
use crate::identity;
use crate::payload::{Extent, PayloadError};

/// Name of the note in the folder.
const NOTE: &str = "array.json";

/// Version of the format of the note.
const FORMAT: u32 = 3;

/// State of an array that its next start needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    /// [`FORMAT`].
    format: u32,
    /// Identity of the array as a drive, in 32 hexadecimal digits.
    identity: String,
    /// RAID level.
    level: u32,
    /// Bytes of a stripe on one member.
    stripe: u64,
    /// Number of members.
    members: u32,
    /// Stripes.
    stripes: u64,
    /// True if copies and parity agree with the data.
    is_synced: bool,
    /// Members whose images have old data, because they had failed.
    outdated: Vec<u32>,
    /// Number of uses of each member's image, to detect images from another time.
    uses: Vec<u64>,
    /// True while a start opens the images for their next use. Until it ends, each may have one use less.
    is_starting: bool,
}

/// The field of a note that all formats have.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

impl Note {
    fn of(config: &ArrayConfig, identity: String) -> Note {
        let layout = config.layout();
        let (level, members) = (layout.level().number(), layout.members());
        let stripe = u64::from(layout.chunk()) * SECTOR;
        let stripes = layout.rows();
        let outdated = config.options.failed.clone();
        let (uses, is_synced, is_starting) = (Vec::new(), false, false);
        Note { format: FORMAT, identity, level, stripe, members, stripes, is_synced, outdated, uses, is_starting }
    }

    fn read(folder: &Path) -> Result<Option<Note>, ImageError> {
        let text = match fs::read_to_string(folder.join(NOTE)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let damaged = |error| ImageError::Damaged(format!("{NOTE}: {error}"));
        let Version { format } = serde_json::from_str(&text).map_err(damaged)?;
        if format != FORMAT {
            let text = format!(
                "unsupported version {format} of {NOTE} (expected {FORMAT}); use the Floatgate version that created \
                 the array"
            );
            return Err(ImageError::Array(text));
        }
        serde_json::from_str(&text).map(Some).map_err(damaged)
    }

    /// Replaces the file, so that it is complete at any instant.
    fn write(&self, folder: &Path) -> Result<(), ImageError> {
        let text = serde_json::to_string(self).map_err(|error| ImageError::Damaged(error.to_string()))?;
        let (partial, path) = (folder.join(format!("{NOTE}.partial")), folder.join(NOTE));
        let mut file = fs::File::create(&partial)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(partial, path)?;
        Ok(sync_folder(folder)?)
    }

    /// Checks that the array is the one that wrote the images.
    fn check(&self, config: &ArrayConfig) -> Result<(), ImageError> {
        let here = Note::of(config, String::new());
        let pairs = [
            ("array.level", u64::from(self.level), u64::from(here.level)),
            ("array.stripe", self.stripe, here.stripe),
            ("array.count", u64::from(self.members), u64::from(here.members)),
            ("stripes (array.write_hole)", self.stripes, here.stripes),
        ];
        if let Some((what, saved, requested)) = pairs.into_iter().find(|(_, saved, requested)| saved != requested) {
            let text = format!("the images belong to another array: {what} is {saved} in them and {requested} here");
            return Err(ImageError::Array(text));
        }
        match self.outdated.iter().find(|member| !here.outdated.contains(member)) {
            Some(member) => Err(ImageError::Array(format!(
                "member {member} had failed when the array was last used, so its image has old data; {}",
                rebuild(&self.outdated)
            ))),
            None => Ok(()),
        }
    }

    /// Checks that the image of a member is from the last use of the array.
    fn check_uses(&self, member: usize, uses: u64) -> Result<(), ImageError> {
        let expected = self.uses.get(member).copied().unwrap_or_default();
        if uses == expected || (self.is_starting && uses + 1 == expected) {
            return Ok(());
        }
        let text = if uses < expected {
            format!(
                "member-{member} is older than the other members ({uses} of {expected} uses); restore the newer file, \
                 or {}",
                rebuild(&[member as u32])
            )
        } else {
            format!("{NOTE} is older than member-{member} ({expected} of {uses} uses); restore the newer file")
        };
        Err(ImageError::Array(text))
    }
}

/// Returns the options that serve an array without some of its members, and rebuild them.
fn rebuild(members: &[u32]) -> String {
    format!("add --set 'array.failed={members:?}', and --set 'array.rebuild={{ rate = \"100MB/s\" }}' to rebuild it")
}

/// Open images of the members of an array.
pub struct OpenedArray {
    members: Vec<Opened>,
    folder: Option<PathBuf>,
    /// Folder of new images. It gets its name when all of them are complete, and is removed otherwise.
    partial: Option<TempDir>,
    note: Option<Note>,
}

impl OpenedArray {
    /// Opens the images of an array, or creates them if the folder does not exist or is empty. Changes nothing in a
    /// folder that holds anything else.
    pub fn open(at: &ImageAt, config: &ArrayConfig, syncs: bool) -> Result<OpenedArray, ImageError> {
        let folder = match at {
            ImageAt::Memory => None,
            // A link to an empty folder stays.
            ImageAt::File(folder) => Some(fs::canonicalize(folder).unwrap_or_else(|_| folder.clone())),
        };
        let is_new = folder.as_deref().map_or(Ok(true), is_missing_or_empty)?;
        let note = match &folder {
            Some(folder) if !is_new => Some(Note::read(folder)?.ok_or_else(|| without_note(folder))?),
            _ => None,
        };
        note.iter().try_for_each(|note| note.check(config))?;
        let partial = folder.as_deref().filter(|_| is_new).map(partial_folder).transpose()?;
        let in_folder = partial.as_ref().map(TempDir::path).or(folder.as_deref());
        let open = |(number, member): (usize, &DeviceConfig)| {
            let at = in_folder.map_or(ImageAt::Memory, |folder| ImageAt::File(folder.join(name(number))));
            Opened::open(&at, member, syncs).map_err(|error| without_member(error, number))
        };
        let members = config.members.iter().enumerate().map(open).collect::<Result<_, _>>()?;
        let opened = OpenedArray { members, folder, partial, note };
        opened.check_members(config)?;
        Ok(opened)
    }

    /// Checks that all members of an existing array that have not failed have an image from its last use.
    fn check_members(&self, config: &ArrayConfig) -> Result<(), ImageError> {
        let Some(note) = &self.note else { return Ok(()) };
        for (number, member) in self.members.iter().enumerate() {
            if config.options.failed.contains(&(number as u32)) {
                continue;
            }
            if member.is_new() {
                let text = format!("member-{number} is missing; restore the file, or {}", rebuild(&[number as u32]));
                return Err(ImageError::Array(text));
            }
            note.check_uses(number, member.uses())?;
        }
        Ok(())
    }

    /// Returns `true` if the images have never held an array.
    pub fn is_new(&self) -> bool {
        self.members.iter().all(Opened::is_new)
    }

    /// Starts the images with a new array, and writes the contents of its flash after preconditioning.
    pub fn begin(self, mut array: SsdArray, options: array::Options) -> Result<SsdArray, ImageError> {
        let config = array.config().clone();
        let begun =
            self.members.into_iter().enumerate().map(|(number, opened)| {
                opened.begin(array.member_mut(number)).map_err(|error| error.of_member(number))
            });
        let stores = begun.collect::<Result<_, _>>()?;
        let layout = config.layout();
        let note = Note::of(&config, identity::text(identity::random()?));
        let folder = self.partial.as_ref().map(|partial| partial.path().to_owned());
        let mut members = Members { stores, options, layout, folder, note };
        members.write_note(false)?;
        if let (Some(partial), Some(folder)) = (self.partial, self.folder) {
            // Replaces an empty folder, and fails if it has got contents.
            fs::rename(partial.path(), &folder).map_err(|error| unnamed(&folder, error))?;
            let _ = partial.keep();
            sync_folder(folder_of(&folder))?;
            members.folder = Some(folder);
        }
        array.attach(Box::new(members));
        Ok(array)
    }

    /// Recovers the array from the images. Failed members without an image become empty spares.
    pub fn recover(
        self,
        config: ArrayConfig,
        options: array::Options,
        salvages: bool,
    ) -> Result<(SsdArray, Recovered), ImageError> {
        let (mut devices, mut stores, mut all) = (Vec::new(), Vec::new(), Vec::<Recovered>::new());
        if let (Some(folder), Some(note)) = (&self.folder, &self.note) {
            let uses = self.members.iter().map(|member| member.uses() + 1).collect();
            Note { uses, is_starting: true, is_synced: false, ..note.clone() }.write(folder)?;
        }
        for (number, opened) in self.members.into_iter().enumerate() {
            let of_member = |error: ImageError| without_member(error, number);
            let (device, options) = (config.members[number].clone(), member_options(&options, number));
            if opened.is_new() {
                let mut spare = Device::new(device, options).map_err(|error| ImageError::Device(error.to_string()))?;
                stores.push(opened.begin(&mut spare).map_err(of_member)?);
                devices.push(spare);
            } else {
                let (device, store, recovered) = opened.recover(device, options, salvages).map_err(of_member)?;
                devices.push(device);
                stores.push(store);
                all.push(recovered);
            }
        }
        let was_synced = self.note.as_ref().is_some_and(|note| note.is_synced);
        let new_identity = || identity::random().map(identity::text);
        let identity = self.note.map_or_else(new_identity, |note| Ok(note.identity))?;
        let note = Note::of(&config, identity);
        let layout = config.layout();
        let mut members = Members { stores, options: options.clone(), layout, folder: self.folder, note };
        members.write_note(false)?;
        let mut array = SsdArray::of_members(config, options, devices);
        array.attach(Box::new(members));
        let mut recovered = Recovered::of_members(all);
        array.read_journal(!was_synced);
        if !was_synced {
            recovered.stripes = resync(&mut array);
        }
        Ok((array, recovered))
    }
}

/// Returns the name of the image of a member in the folder.
fn name(member: usize) -> String {
    format!("member-{member}")
}

/// Returns `true` if images of a new array can be created in a folder: it does not exist, or is empty.
fn is_missing_or_empty(folder: &Path) -> Result<bool, ImageError> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            let text = "an array has an image for each member, in a folder; give the path of a folder";
            Err(ImageError::Array(text.to_owned()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Creates a folder next to the one of the array, with another name.
fn partial_folder(folder: &Path) -> std::io::Result<TempDir> {
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(folder.file_name().unwrap_or_default());
    prefix.push(".");
    tempfile::Builder::new().prefix(&prefix).suffix(".partial").tempdir_in(folder_of(folder))
}

fn unnamed(folder: &Path, error: std::io::Error) -> ImageError {
    let folder = folder.display();
    ImageError::Array(format!(
        "cannot create the folder {folder}: {error}; give the path of a folder that does not exist"
    ))
}

fn without_note(folder: &Path) -> ImageError {
    ImageError::Array(format!(
        "the folder {} is not empty, but has no {NOTE}; restore that file, or give the path of a new folder",
        folder.display()
    ))
}

/// Adds the number of the member to an error, and how to serve the array without it.
fn without_member(error: ImageError, number: usize) -> ImageError {
    match error {
        ImageError::Damaged(_) | ImageError::Lost(_) | ImageError::NoImage => {
            let text = format!(
                "{}: {error}. To serve the array without it, move the file away, and {}",
                name(number),
                rebuild(&[number as u32])
            );
            ImageError::Array(text)
        }
        error => error.of_member(number),
    }
}

/// Starts to compare the stripes of a redundant array. Returns their number.
fn resync(array: &mut SsdArray) -> usize {
    let layout = array.config().layout();
    if layout.level().parities() > 0 || layout.copies() > 1 {
        array.resync(array.used_rows());
    }
    array.stripes_to_resync()
}

/// Returns the options of a member. They do not affect its contents.
fn member_options(options: &array::Options, number: usize) -> Options {
    options.of_member(options.seed.wrapping_add(number as u64))
}

/// Payload of an array whose members are stored in flash images.
pub struct Members {
    stores: Vec<Store>,
    options: array::Options,
    layout: Layout,
    folder: Option<PathBuf>,
    note: Note,
}

impl MemberPayload for Members {
    fn stage_payload(&mut self, member: u32, tag: u64, bytes: &[u8]) {
        let sectors = (bytes.len() as u64 / SECTOR) as u32;
        self.stores[member as usize].keep(&Arriving { tag, data: Some(bytes), sectors }, 0);
    }

    fn apply(&mut self, member: u32, events: &Outbox) {
        self.stores[member as usize].apply(events, None);
    }

    fn settle(&mut self, member: u32, tag: u64) {
        self.stores[member as usize].settle(tag);
    }

    fn read(&mut self, member: u32, device: &Device, lba: u64, into: &mut [u8]) -> bool {
        self.stores[member as usize].read(lba * SECTOR, into, |lpn| device.place_of(lpn)).is_ok()
    }
}

impl Members {
    /// Returns the stores of the members.
    pub fn stores(&self) -> &[Store] {
        &self.stores
    }

    /// Returns the stores of the members.
    pub fn stores_mut(&mut self) -> &mut [Store] {
        &mut self.stores
    }

    /// Returns the identity of the array as a drive.
    pub fn identity(&self) -> u128 {
        identity::of_text(&self.note.identity)
    }

    fn write_note(&mut self, is_synced: bool) -> Result<(), ImageError> {
        self.note.is_synced = is_synced;
        self.note.uses = self.stores.iter().map(Store::uses).collect();
        self.folder.as_deref().map_or(Ok(()), |folder| self.note.write(folder))
    }

    /// Closes the images of an array that has completed all requests.
    pub fn close(array: &mut SsdArray) -> Result<(), String> {
        let failed = (0..array.config().members.len()).filter(|number| array.has_failed(*number));
        let (outdated, is_synced) = (failed.map(|number| number as u32).collect(), array.stripes_to_resync() == 0);
        let Some(mut members) = array.detach::<Members>() else { return Ok(()) };
        let stores = members.stores.iter_mut().enumerate();
        let closed = stores.map(|(number, store)| store.close().map_err(|error| format!("member {number}: {error}")));
        closed.collect::<Result<Vec<()>, String>>()?;
        members.note.outdated = outdated;
        members.write_note(is_synced).map_err(|error| error.to_string())
    }

    /// Cuts the power of all members and restores it. The array continues when the recovery of all members has ended,
    /// and compares its stripes.
    pub fn power_cycle(array: &mut SsdArray, seed: u64) -> Result<Recovered, ImageError> {
        let at = floatgate_core::simulation::Ssd::now(array);
        let configs = array.config().members.clone();
        let Some(members) = array.payload_mut::<Members>() else {
            return Err(ImageError::Array("the array has no images".to_owned()));
        };
        let (mut devices, mut all) = (Vec::new(), Vec::new());
        let options = members.options.clone();
        for (number, (store, config)) in members.stores.iter_mut().zip(configs).enumerate() {
            let seed = seed.wrapping_add((number as u64) << 32);
            let cycled = store.power_cycle(config, member_options(&options, number), seed);
            let (device, recovered) = cycled.map_err(|error| error.of_member(number))?;
            devices.push(device);
            all.push(recovered);
        }
        let mut recovered = Recovered::of_members(all);
        let ready = at.later(floatgate_core::sim::time::Time(recovered.device.time_ps));
        devices.iter_mut().for_each(|device| device.advance(ready));
        array.restart(devices);
        array.read_journal(true);
        recovered.stripes = resync(array);
        Ok(recovered)
    }

    /// Returns the kind of payload at the start of a range of bytes of the host, and the end of the extent.
    pub fn extent(array: &SsdArray, range: std::ops::Range<u64>) -> (Extent, u64) {
        let Some(members) = array.payload::<Members>() else { return (Extent::Data, range.end) };
        let piece = |at: u64| {
            let (row, index, offset) = members.layout.place(at / SECTOR);
            let start = members.layout.address(row, offset) * SECTOR + at % SECTOR;
            let length = u64::from(members.layout.chunk() - offset) * SECTOR - at % SECTOR;
            let length = length.min(range.end - at);
            let copies = (0..members.layout.copies()).map(|copy| members.layout.data_member(row, index, copy) as usize);
            match copies.into_iter().find(|member| !array.has_failed(*member)) {
                // The data have to be computed to know whether they are zeros.
                None => (Extent::Data, at + length),
                Some(member) => {
                    let place_of = |lpn| array.member(member).place_of(lpn);
                    let (what, end) = members.stores[member].extent(start..start + length, place_of);
                    (what, at + (end - start))
                }
            }
        };
        let (what, mut end) = piece(range.start);
        while end < range.end {
            let (next, until) = piece(end);
            if next != what {
                break;
            }
            end = until;
        }
        (what, end)
    }
}

/// Returns the first error of stores that cannot write their files.
pub fn failure(stores: &[Store]) -> Result<(), PayloadError> {
    stores.iter().find_map(Store::failure).map_or(Ok(()), Err)
}
