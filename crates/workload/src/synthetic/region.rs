//! Region of the device that a job uses.

use super::SECTOR;
use super::address::Window;
use super::areas::share_of_file;
use super::options::{Amount, Options, ZoneMode};
use super::place::Place;
use super::size::Sizes;
use super::texts::{bytes_text, two_texts};

/// Region of the job's area, in bytes.
pub(super) struct Region {
    /// Start of the area on the device.
    pub(super) area: u64,
    /// Start of the region in the area.
    pub(super) offset: u64,
    pub(super) size: u64,
    /// Bytes from the start of the region to the end of the area.
    pub(super) room: u64,
}

impl Region {
    /// Computes the region from `offset` and `size`. As in fio, an offset in percent is rounded up to the smallest
    /// block, `unit`. A size in percent refers to the whole area, is cut at its end, and is rounded down.
    ///
    /// `index` is the number of the file. `size` is divided among several files.
    pub(super) fn new(options: &Options, place: &Place, index: usize, unit: u64) -> Result<Region, String> {
        let area = place.areas[index];
        let all = options.filesize.unwrap_or(area.bytes);
        if all > area.bytes {
            let (size, left) = two_texts(all, area.bytes);
            return Err(format!("`filesize` of {size} does not fit the device, which has {left}"));
        }
        let whole = if options.filesize.is_some() || area.named { "area" } else { "device" };
        let all = all / SECTOR * SECTOR;
        let align = options.offset_align.unwrap_or(unit);
        let bytes_of = |amount: Option<Amount>| match amount {
            None => Some(0),
            Some(Amount::Bytes(bytes)) => Some(bytes),
            Some(share) => share.of(all).and_then(|bytes| bytes.checked_next_multiple_of(align)),
        };
        let offset = bytes_of(options.offset)
            .zip(bytes_of(options.offset_increment).and_then(|step| step.checked_mul(u64::from(place.clone))))
            .and_then(|(offset, steps)| offset.checked_add(steps))
            .filter(|&offset| offset < all)
            .ok_or_else(|| {
                let key = if place.clone > 0 { "`offset` and `offset_increment` leave" } else { "`offset` leaves" };
                format!("{key} nothing of the {whole} of {}", bytes_text(all))
            })?;
        let left = all - offset;
        let count = place.areas.len();
        let size = match options.size {
            None => left,
            // As in fio, a file of `filesize` is used as a whole, and `size` limits the transfer.
            Some(Amount::Bytes(_)) if whole_file(options, place) => left,
            Some(Amount::Bytes(bytes)) if count > 1 => share_of_file(bytes, index, count, unit).min(left),
            Some(Amount::Bytes(bytes)) if bytes <= left => bytes,
            Some(Amount::Bytes(bytes)) => {
                let (size, left) = two_texts(bytes, left);
                return Err(format!("`size` of {size} does not fit the {whole}, which has {left} after the offset"));
            }
            Some(share) => share.of(all).unwrap_or(left).min(left) / unit * unit,
        };
        let room = if area.own && options.filesize.is_none() { size } else { left };
        Ok(Region { area: area.start, offset, size, room })
    }
}

/// Returns `true` if the region is the whole file, and `size` limits the transfer.
pub(super) fn whole_file(options: &Options, place: &Place) -> bool {
    options.filesize.is_some() && (place.follows_fio || place.areas.len() > 1)
}

/// Returns the part of the region that requests use at a time: a zone of `zonemode=strided`, or else the whole region.
pub(super) fn window(options: &Options, region: &Region) -> Result<Window, String> {
    let first = (region.area + region.offset) / SECTOR;
    let sectors = region.size / SECTOR;
    // As in fio, zones follow each other to the end of the file, also beyond `size`.
    let end = first + region.room / SECTOR;
    let strided = match (options.zonemode, options.zonesize) {
        (Some(ZoneMode::Strided), None) => return Err("`zonemode=strided` needs zonesize".to_owned()),
        (Some(ZoneMode::None), Some(_)) => return Err("`zonemode=none` and `zonesize` exclude each other".to_owned()),
        (_, Some(size)) => Some(size),
        (_, None) => None,
    };
    let Some(size) = strided else {
        let extra = [("zonerange", options.zonerange), ("zoneskip", options.zoneskip)];
        if let Some((key, _)) = extra.iter().find(|(_, value)| value.is_some()) {
            return Err(format!("`{key}` needs zonemode=strided and zonesize"));
        }
        return Ok(Window { first, end, range: sectors, skip: 0, size: u64::MAX });
    };
    // A zone is as large as the amount transferred in it, unless `zonerange` is given, as in fio.
    let range = options.zonerange.unwrap_or(size);
    if range > region.size {
        return Err(format!("a zone of {} does not fit {}", bytes_text(range), region_text(region)));
    }
    let skip = options.zoneskip.unwrap_or(0) / SECTOR;
    Ok(Window { first, end, range: range / SECTOR, skip, size: size / SECTOR })
}

/// Checks that every block fits into the window.
pub(super) fn check_fit(directions: &[usize], sizes: &[Sizes; 3], window: &Window) -> Result<(), String> {
    let largest = directions.iter().map(|&d| u64::from(sizes[d].max())).max().unwrap_or(0);
    if largest <= window.range {
        return Ok(());
    }
    let what = if window.size == u64::MAX { "region" } else { "zone" };
    let (block, range) = two_texts(largest * SECTOR, window.range * SECTOR);
    Err(format!("a block of {block} does not fit the {what} of {range}; make bs smaller or the {what} larger"))
}

pub(super) fn region_text(region: &Region) -> String {
    match region.area + region.offset {
        0 => format!("the first {}", bytes_text(region.size)),
        offset => format!("{} from {} on", bytes_text(region.size), bytes_text(offset)),
    }
}
