//! Flash image of a served device: creates or opens it, and describes it in the result.

use std::path::Path;

use floatgate_array::AnySsd;
use floatgate_array::config::ArrayConfig;
use floatgate_core::device_file::DeviceConfig;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options};
use floatgate_core::summary::{LiveImage, LiveRecovery, Precondition, Reached};
use floatgate_run::device::LoadedDevice;
use floatgate_run::memory::{self, Use};
use floatgate_run::session::{array_options, device_options, new_device, prepare};
use floatgate_run::simulated::prepare_array;
use floatgate_serve::Finished;
use floatgate_serve::image::{ImageAt, ImageError, Opened, OpenedArray, Recovered, Store};

use super::args::ServeArgs;
use super::preparation::Preparation;
use crate::failure::Failure;

/// Option that is enabled by default for a device with an image, so that flushed trims survive a power cut.
pub const TRIM_JOURNAL: &str = "durability.trim_journal";

/// An image, and the options of its device.
pub type Kept = (Store, Options);

/// A device that is ready to be served.
pub struct Begun {
    /// The device. An array has its images itself.
    pub device: AnySsd,
    /// State of the device, for the result.
    pub state: Precondition,
    /// Image of a single SSD, if it has one.
    pub image: Option<Kept>,
    /// Results of the recovery, if the image existed.
    pub recovered: Option<Recovered>,
}

/// Creates a new device, or recovers the device of an existing image.
pub fn begin(args: &ServeArgs, chosen: &LoadedDevice, preparation: &Preparation) -> Result<Begun, Failure> {
    let new = || -> Result<(Device, Precondition), Failure> {
        let mut device = new_device(chosen, args.seed, true, args.precondition())?;
        let state = prepare(args.precondition(), args.seed, &mut device, preparation)?;
        Ok((device, state))
    };
    if let Some(array) = &chosen.array {
        return begin_array(args, chosen, array, preparation);
    }
    let Some(path) = &args.image else {
        let (device, state) = new()?;
        return Ok(Begun { device: device.into(), state, image: None, recovered: None });
    };
    let options = device_options(chosen, args.seed, true);
    let at = if path == Path::new("memory") { ImageAt::Memory } else { ImageAt::File(path.clone()) };
    let failure = |error: ImageError| failure(path, error);
    let opened = Opened::open(&at, &chosen.config, args.image_sync).map_err(failure)?;
    if opened.is_new() {
        let (mut device, state) = new()?;
        let store = opened.begin(&mut device).map_err(failure)?;
        return Ok(Begun { device: device.into(), state, image: Some((store, options)), recovered: None });
    }
    check_state(args, path)?;
    memory::check(chosen, &options, Use::Sparse)?;
    preparation.report("recovering the device from its image", None);
    let (device, store, recovered) =
        opened.recover(chosen.config.clone(), options.clone(), args.image_salvage).map_err(failure)?;
    let state = state_of(&recovered, chosen.config.logical_units());
    Ok(Begun { device: device.into(), state, image: Some((store, options)), recovered: Some(recovered) })
}

/// Refuses a state for an existing image, which has a state of its own.
fn check_state(args: &ServeArgs, path: &Path) -> Result<(), Failure> {
    match args.precondition {
        None => Ok(()),
        Some(_) => Err(Failure::mistake(format!(
            "--precondition is for a new device, but {} holds one already; omit it, or give another file",
            path.display()
        ))),
    }
}

/// Returns the state of a device that was recovered from its image. `units` is its number of mapping units.
fn state_of(recovered: &Recovered, units: u64) -> Precondition {
    let mapped = recovered.device.units_mapped as f64 / units.max(1) as f64;
    Precondition { requested: "image".to_owned(), reached: Reached { mapped, ..Reached::default() } }
}

/// Creates a new array, or recovers the array of existing images.
fn begin_array(
    args: &ServeArgs,
    chosen: &LoadedDevice,
    config: &ArrayConfig,
    preparation: &Preparation,
) -> Result<Begun, Failure> {
    let options = array_options(chosen, args.seed, true);
    let new =
        || prepare_array(chosen, config, options.clone(), args.precondition(), preparation).map_err(Failure::from);
    let Some(path) = &args.image else {
        let (array, state) = new()?;
        return Ok(Begun { device: array.into(), state, image: None, recovered: None });
    };
    let at = if path == Path::new("memory") { ImageAt::Memory } else { ImageAt::File(path.clone()) };
    let failure = |error: ImageError| failure(path, error);
    let opened = OpenedArray::open(&at, config, args.image_sync).map_err(failure)?;
    if opened.is_new() {
        let (array, state) = new()?;
        let array = opened.begin(array, options).map_err(failure)?;
        return Ok(Begun { device: array.into(), state, image: None, recovered: None });
    }
    check_state(args, path)?;
    memory::check(chosen, &device_options(chosen, args.seed, true), Use::Sparse)?;
    preparation.report("recovering the members from their images", None);
    let (array, recovered) = opened.recover(config.clone(), options.clone(), args.image_salvage).map_err(failure)?;
    let units = config.members.iter().map(DeviceConfig::logical_units).sum();
    let state = state_of(&recovered, units);
    Ok(Begun { device: array.into(), state, image: None, recovered: Some(recovered) })
}

fn failure(path: &Path, error: ImageError) -> Failure {
    let text = format!("--image {}: {error}", path.display());
    match error {
        ImageError::Io(_) => Failure::fault(text),
        _ => Failure::mistake(text),
    }
}

/// Returns the section of the result about the image.
pub fn section(finished: &Finished, at_start: Option<&Recovered>) -> Option<LiveImage> {
    let closed = finished.image.as_ref()?;
    let recovery = finished.recovered.as_ref().or(at_start).map(|recovered| LiveRecovery {
        after_shutdown: recovered.after_shutdown,
        payload_checked: recovered.payload_checked,
        simulated_us: Time(recovered.device.time_ps).as_us(),
        real_us: recovered.wall.as_us(),
        pages_read: recovered.device.pages_read,
        units_mapped: recovered.device.units_mapped,
        torn_units: recovered.device.torn_units,
        records_repaired: recovered.damage.repaired,
        records_lost: recovered.damage.records_lost,
        payload_lost: recovered.damage.payload_lost,
        journal_records: recovered.device.journal_records,
        blocks_skipped: recovered.device.blocks_skipped,
        blocks_erased: recovered.device.blocks_erased,
    });
    Some(LiveImage {
        bytes: finished.payload_bytes,
        complete: closed.is_ok(),
        power_cuts: finished.power_cuts,
        unreadable: finished.unreadable,
        recovery,
    })
}
