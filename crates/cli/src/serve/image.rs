//! Flash image of a served device: creates or opens it, and describes it in the result.

use std::path::Path;

use floatgate_core::device::{Device, Options};
use floatgate_core::metrics::summary::{LiveImage, LiveRecovery, Precondition, Reached};
use floatgate_core::sim::time::Time;
use floatgate_run::chosen::Chosen;
use floatgate_run::memory::{self, Use};
use floatgate_run::session::{device_options, new_device, prepare};
use floatgate_serve::Finished;
use floatgate_serve::image::{ImageAt, ImageError, Opened, Recovered, Store};

use super::ServeArgs;
use super::preparation::Preparation;
use crate::failure::Failure;

/// Option that is enabled by default for a device with an image, so that flushed trims survive a power cut.
pub const TRIM_JOURNAL: &str = "durability.trim_journal";

/// An image, and the options of its device.
pub type Kept = (Store, Options);

/// A device that is ready to be served.
pub struct Begun {
    /// The device.
    pub device: Device,
    /// State of the device, for the result.
    pub state: Precondition,
    /// Image of the device, if it has one.
    pub image: Option<Kept>,
    /// Results of the recovery, if the image existed.
    pub recovered: Option<Recovered>,
}

/// Creates a new device, or recovers the device of an existing image.
pub fn begin(args: &ServeArgs, chosen: &Chosen, preparation: &Preparation) -> Result<Begun, Failure> {
    let new = || -> Result<(Device, Precondition), Failure> {
        let mut device = new_device(chosen, args.seed, true, args.precondition())?;
        let state = prepare(args.precondition(), args.seed, &mut device, preparation)?;
        Ok((device, state))
    };
    let Some(path) = &args.image else {
        let (device, state) = new()?;
        return Ok(Begun { device, state, image: None, recovered: None });
    };
    let options = device_options(args.seed, true);
    let at = if path == Path::new("memory") { ImageAt::Memory } else { ImageAt::File(path.clone()) };
    let failure = |error: ImageError| failure(path, error);
    let was_empty = at != ImageAt::Memory && std::fs::metadata(path).is_ok_and(|found| found.len() == 0);
    let opened = Opened::open(&at, &chosen.config, args.image_sync).map_err(failure)?;
    if opened.is_new() {
        if was_empty {
            super::warn(&format!("{} was empty; it becomes the image of a new device", path.display()));
        }
        let (mut device, state) = new()?;
        let store = opened.begin(&mut device).map_err(failure)?;
        return Ok(Begun { device, state, image: Some((store, options)), recovered: None });
    }
    if args.precondition.is_some() {
        return Err(Failure::mistake(format!(
            "--precondition is for a new device, but {} holds one already; omit it, or give another file",
            path.display()
        )));
    }
    memory::check(&chosen.config, &options, Use::Sparse)?;
    preparation.tell("recovering the device from its image", None);
    let (device, store, recovered) =
        opened.recover(chosen.config.clone(), options, args.image_salvage).map_err(failure)?;
    let mapped = recovered.device.units_mapped as f64 / chosen.config.logical_units().max(1) as f64;
    let state = Precondition { requested: "image".to_owned(), reached: Reached { mapped, ..Reached::default() } };
    Ok(Begun { device, state, image: Some((store, options)), recovered: Some(recovered) })
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
