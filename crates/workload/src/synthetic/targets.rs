//! Files of a job with their regions and addresses.

use super::SECTOR;
use super::address::{Addresses, Order};
use super::directions::directions;
use super::draw::{check_sprandom, follow, mapped_order, random_order, run, skip};
use super::files::{File, Files};
use super::limits::once_over;
use super::options::{Amount, Distribution, FileOrder, FileService, Modifier, Options, Rw};
use super::place::Place;
use super::region::{Region, check_fit, whole_file, window};
use super::size::Sizes;
use crate::sim::rng::Rng;

/// Files of a job.
pub(super) struct Targets {
    /// Region in the first file.
    pub(super) region: Region,
    /// Addresses in the first file.
    pub(super) addresses: Addresses,
    /// All files, if there are several.
    pub(super) files: Option<Box<Files>>,
    /// Size of all regions in bytes.
    pub(super) size: u64,
    /// Bytes that a pass over all regions requests.
    pub(super) once: u64,
    /// True if requests may overlap in a pass.
    pub(super) overlaps: bool,
}

/// Creates the files of a job. `rng` returns the random numbers of a name.
pub(super) fn targets(
    options: &Options,
    place: &Place,
    sizes: &[Sizes; 3],
    rw: Rw,
    rng: &dyn Fn(&str) -> Rng,
) -> Result<Targets, String> {
    let mut files = Vec::new();
    let mut regions = Vec::new();
    for index in 0..place.areas.len() {
        let (region, file) = file(options, place, index, sizes, rw, rng)?;
        regions.push(region);
        files.push(file);
    }
    let total: u64 = regions.iter().map(|region| region.size).sum();
    let once: u64 = files.iter().map(|file| file.once).sum();
    // With `filesize`, `size` limits the transfer from all files.
    let (size, once) = match options.size {
        Some(Amount::Bytes(bytes)) if !options.sprandom && (files.len() > 1 || whole_file(options, place)) => {
            (total.min(bytes), once.min(bytes))
        }
        _ => (total, once),
    };
    let region = regions.remove(0);
    let addresses = files[0].addresses.clone();
    let several = files.len() > 1;
    let service = options.file_service_type.unwrap_or(FileService { order: FileOrder::RoundRobin, requests: 1 });
    let files = several.then(|| Box::new(Files::new(files, service, rng("file"))));
    let draws = !matches!(options.random_distribution, None | Some(Distribution::Uniform));
    let random =
        rw.pattern.random && (options.norandommap || options.sprandom || draws || options.blockalign.is_some());
    let overlaps = random || rw.modifier != Modifier::None || options.norandommap;
    Ok(Targets { region, addresses, files, size, once, overlaps })
}

/// Creates a file of a job.
fn file(
    options: &Options,
    place: &Place,
    index: usize,
    sizes: &[Sizes; 3],
    Rw { pattern, modifier }: Rw,
    rng: &dyn Fn(&str) -> Rng,
) -> Result<(Region, File), String> {
    // The first file has the random numbers of a job with one file.
    let rng = |part: &str| if index == 0 { rng(part) } else { rng(&format!("{part}/{index}")) };
    let directions = directions(pattern.kind);
    let unit = directions.iter().map(|&d| u64::from(sizes[d].min())).min().unwrap_or(1) * SECTOR;
    let region = Region::new(options, place, index, unit)?;
    let window = window(options, &region)?;
    check_sprandom(options, pattern, &sizes[directions[0]], region.size)?;
    check_fit(directions, sizes, &window)?;
    let mut address_rng = rng("address");
    let (order, follow) = if pattern.random {
        let follow = follow(options, modifier, rng("follow"));
        let mapped = (place.follows_fio && follow.is_none()).then(|| mapped_order(options, directions, sizes, &window));
        let order = match mapped.flatten() {
            Some(order) => order,
            None => random_order(options, directions, sizes, &window, &mut address_rng)?,
        };
        (order, follow)
    } else {
        (Order::Sequential(run(sizes, &window, &region, skip(modifier))), None)
    };
    let fixed = directions.iter().all(|&d| sizes[d].min() == sizes[d].max());
    let once = once_over(&region, unit, &order, directions, fixed);
    let addresses = Addresses::new(window, order, follow, address_rng);
    Ok((region, File { addresses, once, done: 0 }))
}
