//! Areas of the device: each file of the jobs has one, in the order of the jobs.
//!
//! In a job file, each job and each clone without `filename` has a file of its own, as in fio. In a text of jobs, all
//! jobs without `filename` access the whole device.

use std::collections::{BTreeMap, BTreeSet};

use super::SECTOR;
use super::options::{Amount, Options};
use super::place::Area;
use super::section::Section;
use super::texts::bytes_text;
use crate::sim::source::SourceError;

/// Alignment of the start of areas.
const ALIGNMENT: u64 = 1 << 20;

/// Name of the files of jobs without `filename`, fio's default for `filename_format`.
const OWN: &str = "$jobname.$jobnum.$filenum";

/// Areas by name. Empty if all jobs use the whole device.
pub(super) struct Areas {
    by_name: BTreeMap<String, Area>,
    device: Area,
}

impl Areas {
    /// Places the areas one after the other.
    pub(super) fn new(sections: &[Section], device_bytes: u64) -> Result<Areas, SourceError> {
        let device = Area { start: 0, bytes: device_bytes, named: false, own: false };
        let clones = || {
            let jobs = sections.iter().filter(|section| section.options.read_iolog.is_none());
            jobs.flat_map(|section| (0..section.options.numjobs.unwrap_or(1)).map(move |clone| (section, clone)))
        };
        let names: BTreeSet<Option<String>> = clones().map(|(section, clone)| name_of(section, clone)).collect();
        if names.len() < 2 {
            return Ok(Areas { by_name: BTreeMap::new(), device });
        }
        let mut order: Vec<(String, &Section)> = Vec::new();
        let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
        for (section, clone) in clones() {
            let Some(name) = name_of(section, clone) else {
                return Err(section.error(
                    "no `filename`, where other jobs have one: give all jobs one, or none to work on the whole device",
                ));
            };
            let size = extent(&section.options, clone).map_err(|why| error(section, &why))?;
            if !sizes.contains_key(&name) {
                order.push((name.clone(), section));
            }
            let largest = sizes.entry(name).or_default();
            *largest = size.max(*largest);
        }
        let mut by_name = BTreeMap::new();
        let mut start = 0u64;
        for (name, section) in order {
            let bytes = sizes[&name];
            let end = start.checked_add(bytes).filter(|end| *end <= device_bytes).ok_or_else(|| {
                let (bytes, start, device) = (bytes_text(bytes), bytes_text(start), bytes_text(device_bytes));
                error(
                    section,
                    &format!(
                        "the areas lie side by side, and {bytes} from {start} on do not fit the device of {device}"
                    ),
                )
            })?;
            by_name.insert(name, Area { start, bytes, named: true, own: false });
            start = end.checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
        }
        Ok(Areas { by_name, device })
    }

    /// Returns the area of a clone.
    pub(super) fn of(&self, section: &Section, clone: u32) -> Area {
        let own = section.follows_fio() && section.options.filename.is_none();
        let area = name_of(section, clone).and_then(|name| self.by_name.get(&name)).copied().unwrap_or(self.device);
        Area { own, ..area }
    }
}

/// Returns the name of the file that a clone accesses, with its directory. `None` for the whole device.
fn name_of(section: &Section, clone: u32) -> Option<String> {
    let options = &section.options;
    let file = match &options.filename {
        Some(name) => name.clone(),
        None if section.follows_fio() => options
            .filename_format
            .as_deref()
            .unwrap_or(OWN)
            .replace("$jobname", options.name.as_ref().unwrap_or(&section.name))
            .replace("$jobnum", &clone.to_string())
            .replace("$filenum", "0")
            .replace("$clientuid", ""),
        None => return None,
    };
    Some(match &options.directory {
        None => file,
        // As in fio, the clones are distributed over a list of directories.
        Some(list) => {
            let directories: Vec<&str> = list.split(':').collect();
            format!("{}/{file}", directories[clone as usize % directories.len()])
        }
    })
}

/// Returns an error about the area of a job.
fn error(section: &Section, why: &str) -> SourceError {
    match &section.options.filename {
        Some(name) => section.error(format!("`filename={name}`: {why}")),
        None => section.error(format!(
            "no `filename`, so that the job and each of its clones has a file of its own, as in fio: {why}; to let all \
             jobs work on the whole device, give [global] a filename such as /dev/nvme0n1"
        )),
    }
}

/// Returns the size of a clone's file according to its options.
fn extent(options: &Options, clone: u32) -> Result<u64, String> {
    if let Some(bytes) = options.filesize {
        return Ok(bytes);
    }
    let bytes = |amount: Option<Amount>, key: &str| match amount {
        None => Ok(0),
        Some(Amount::Bytes(bytes)) => Ok(bytes),
        Some(Amount::Share(..)) => Err(format!("`{key}` in percent needs `filesize`")),
    };
    let size = match options.size {
        None => Err("areas of several names need a size; give filesize, or size in bytes".to_owned()),
        size => bytes(size, "size"),
    }?;
    bytes(options.offset_increment, "offset_increment")?
        .checked_mul(u64::from(clone))
        .and_then(|steps| steps.checked_add(bytes(options.offset, "offset").ok()?))
        .and_then(|offset| offset.checked_add(size))
        .filter(|end| end.is_multiple_of(SECTOR))
        .ok_or_else(|| "`offset` and `size` are beyond 64 bits".to_owned())
}
