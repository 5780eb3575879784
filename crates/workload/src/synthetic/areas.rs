//! Areas of the device: each file of the jobs has one, in the order of the jobs.
//!
//! In a job file, each job and each clone without `filename` has a file of its own, as in fio. In a text of jobs, all
//! jobs without `filename` access the whole device.

use std::collections::{BTreeMap, BTreeSet};

use super::SECTOR;
use super::directions::smallest_block;
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
        let many = |section: &Section| {
            let own = section.options.filename.is_none().then_some(section.options.nrfiles).flatten();
            u64::from(own.unwrap_or(1)) * u64::from(section.options.numjobs.unwrap_or(1))
        };
        let count: u64 = sections.iter().map(many).sum();
        if count > MAX_FILES as u64 {
            return Err(SourceError(format!("the jobs have {count} files, more than {MAX_FILES}")));
        }
        let names: BTreeSet<Option<String>> = clones().flat_map(|(section, clone)| names_of(section, clone)).collect();
        if names.len() < 2 {
            return Ok(Areas { by_name: BTreeMap::new(), device });
        }
        let mut order: Vec<(String, &Section)> = Vec::new();
        let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
        for (section, clone) in clones() {
            let names = names_of(section, clone);
            let count = names.len();
            for (index, name) in names.into_iter().enumerate() {
                let Some(name) = name else {
                    return Err(section.error(
                        "no `filename`, where other jobs have one: give all jobs one, or none to work on the whole \
                         device",
                    ));
                };
                let size = extent(&section.options, clone, index, count).map_err(|why| error(section, &why))?;
                if !sizes.contains_key(&name) {
                    order.push((name.clone(), section));
                }
                let largest = sizes.entry(name).or_default();
                *largest = size.max(*largest);
            }
        }
        let mut by_name = BTreeMap::new();
        let mut start = 0u64;
        for (name, section) in order {
            let bytes = sizes[&name];
            let first = start;
            let end = start.checked_add(bytes).filter(|end| *end <= device_bytes).ok_or_else(|| {
                let (bytes, start, device) = (bytes_text(bytes), bytes_text(start), bytes_text(device_bytes));
                error(
                    section,
                    &format!(
                        "the areas lie side by side, and {bytes} from {start} on do not fit the device of {device}"
                    ),
                )
            })?;
            start = end.checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
            // A device does not end where its jobs end, so that their last block may extend beyond their size.
            let bytes = if name.starts_with("/dev/") { start.min(device_bytes) - first } else { bytes };
            by_name.insert(name, Area { start: first, bytes, named: true, own: false });
        }
        Ok(Areas { by_name, device })
    }

    /// Returns the areas of a clone, one for each of its files.
    pub(super) fn of(&self, section: &Section, clone: u32) -> Vec<Area> {
        let own = section.follows_fio() && section.options.filename.is_none();
        let area = |name: Option<String>| {
            let area = name.and_then(|name| self.by_name.get(&name)).copied().unwrap_or(self.device);
            Area { own, ..area }
        };
        names_of(section, clone).into_iter().map(area).collect()
    }
}

/// Maximum number of files of all jobs.
const MAX_FILES: usize = 65_536;

/// Returns the names of the files that a clone accesses, with their directory. A single `None` is the whole device.
fn names_of(section: &Section, clone: u32) -> Vec<Option<String>> {
    let options = &section.options;
    let files: Vec<String> = match &options.filename {
        Some(names) => {
            let names = split_names(names);
            let count = options.nrfiles.map_or(names.len(), |count| names.len().min(count as usize));
            names.into_iter().take(count).collect()
        }
        None if section.follows_fio() => {
            let own = |file: u32| {
                let format = options.filename_format.as_deref().unwrap_or(OWN);
                let job = options.name.as_ref().unwrap_or(&section.name);
                let name = format.replace("$jobname", job).replace("$jobnum", &clone.to_string());
                name.replace("$filenum", &file.to_string()).replace("$clientuid", "")
            };
            (0..options.nrfiles.unwrap_or(1).min(MAX_FILES as u32 + 1)).map(own).collect()
        }
        None => return vec![None],
    };
    let directories: Vec<&str> = options.directory.iter().flat_map(|list| list.split(':')).collect();
    let place = |file: String| match &directories[..] {
        [] => file,
        // As in fio, the clones are distributed over a list of directories.
        list => format!("{}/{file}", list[clone as usize % list.len()]),
    };
    files.into_iter().map(|file| Some(place(file))).collect()
}

/// Splits a list of names at its colons. As in fio, a backslash before a colon makes it a part of the name.
fn split_names(list: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut rest = list.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\\' if rest.peek() == Some(&':') => {
                names[..].last_mut().into_iter().for_each(|name| name.push(':'));
                rest.next();
            }
            ':' => names.push(String::new()),
            other => names[..].last_mut().into_iter().for_each(|name| name.push(other)),
        }
    }
    names.retain(|name| !name.is_empty());
    if names.is_empty() { vec![list.to_owned()] } else { names }
}

/// Returns the part of `size` that is in one of `count` files. As in fio, the first files are a block larger if the
/// size cannot be divided.
pub(super) fn share_of_file(size: u64, index: usize, count: usize, block: u64) -> u64 {
    let (index, count) = (index as u64, count as u64);
    let each = size / count;
    let larger = (size - each * count) / block.max(1);
    each + if index < larger { block } else { 0 }
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

/// Returns the size of one of `count` files of a clone according to its options.
fn extent(options: &Options, clone: u32, index: usize, count: usize) -> Result<u64, String> {
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
    let size = share_of_file(size, index, count, smallest_block(options));
    bytes(options.offset_increment, "offset_increment")?
        .checked_mul(u64::from(clone))
        .and_then(|steps| steps.checked_add(bytes(options.offset, "offset").ok()?))
        .and_then(|offset| offset.checked_add(size))
        .and_then(|end| end.checked_next_multiple_of(SECTOR))
        .ok_or_else(|| "`offset` and `size` are beyond 64 bits".to_owned())
}
