//! Mapping of a trace's addresses to the simulated device.

use std::collections::BTreeMap;

use super::footprint::{PAGE, Packed, Touched};
use super::options::{Devices, Fit, TraceOptions};
use super::record::MAX_DEVICES;
use super::record::Record;
use super::records::{Entry, Records};
use crate::quantity::readable;
use crate::sim::request::SECTOR;
use crate::sim::source::SourceError;

/// Alignment of devices that are placed side by side, in sectors (1 MiB). Preserves the alignment to pages.
const BOUNDARY: u64 = 2048;

/// Part of a device that a trace uses.
#[derive(Clone, Copy)]
struct Extent {
    /// End in sectors.
    end: u64,
    /// Line of the request that ends there.
    line: u64,
}

/// Results of a first pass over a trace.
#[derive(Default)]
struct Survey {
    extents: BTreeMap<u32, Extent>,
    touched: Touched,
}

impl Survey {
    /// Reads the part of the trace that will be replayed.
    fn run(mut records: Records, options: &TraceOptions) -> Result<(Survey, Records), SourceError> {
        let mut survey = Survey::default();
        while let Some(Entry { line, record, .. }) = records.next()? {
            let device = if options.devices == Devices::Merge { 0 } else { record.device };
            let end = record.lba + u64::from(record.sectors);
            let extent = survey.extents.entry(device).or_insert(Extent { end, line });
            if end > extent.end {
                *extent = Extent { end, line };
            }
            if survey.extents.len() > MAX_DEVICES {
                return Err(records.error(line, "more than 65536 devices; `--devices merge` treats them as one"));
            }
            if options.fit == Fit::Compact {
                survey.touched.touch(device, record.lba, record.sectors);
            }
        }
        Ok((survey, records))
    }
}

/// Position of a device of the trace.
struct Base {
    device: u32,
    /// Rank of the device.
    slot: u32,
    /// Position of its first sector.
    start: u64,
}

/// Maps addresses of the trace to addresses of the device.
pub(super) struct Placement {
    fit: Fit,
    device_sectors: u64,
    /// Sorted by device. Empty if addresses are not changed.
    bases: Vec<Base>,
    packed: Option<Packed>,
    wrapped: u64,
}

impl Placement {
    /// Returns `true` if the trace has to be read once before its requests can be placed.
    pub(super) fn needs_survey(options: &TraceOptions) -> bool {
        let several = match &options.devices {
            Devices::SideBySide => true,
            Devices::Select(names) => names.len() > 1,
            Devices::Merge => false,
        };
        several || options.fit == Fit::Compact
    }

    /// Creates a mapping that does not depend on the contents of the trace.
    pub(super) fn as_is(options: &TraceOptions, device_sectors: u64) -> Placement {
        Placement { fit: options.fit, device_sectors, bases: Vec::new(), packed: None, wrapped: 0 }
    }

    /// Reads the trace, and creates a mapping that places its devices side by side, and compacts their pages if
    /// requested.
    pub(super) fn survey(
        records: Records,
        options: &TraceOptions,
        device_sectors: u64,
    ) -> Result<Placement, SourceError> {
        let (survey, records) = Survey::run(records, options)?;
        let mut placement = Placement::as_is(options, device_sectors);
        let mut devices: Vec<(u32, Extent)> = survey.extents.into_iter().collect();
        if options.devices != Devices::Merge {
            devices.sort_by_cached_key(|(device, _)| records.device(*device));
        }
        let mut start = 0_u64;
        for (slot, (device, extent)) in devices.iter().enumerate() {
            let end = start.saturating_add(extent.end);
            if options.fit == Fit::Refuse && end > device_sectors {
                let laid = match slot {
                    0 => String::new(),
                    1 => ", laid behind the one before it,".to_owned(),
                    _ => format!(", laid behind the {slot} before it,"),
                };
                let what = format!("device {} of the trace{laid} ends at sector {end}, and", records.device(*device));
                return Err(records.misplaced(extent.line, &placement.too_small(&what)));
            }
            placement.bases.push(Base { device: *device, slot: slot as u32, start });
            start = end.checked_next_multiple_of(BOUNDARY).unwrap_or(u64::MAX);
        }
        placement.bases.sort_unstable_by_key(|base| base.device);
        if options.fit == Fit::Compact {
            let packed = survey.touched.pack(|device| placement.base(device).map_or(0, |base| base.slot));
            placement.packed =
                Some(placement.checked(packed, records.name()).map_err(|error| with_doubt(error, &records))?);
        }
        Ok(placement)
    }

    /// Checks that the footprint fits into the device.
    fn checked(&self, packed: Packed, name: &str) -> Result<Packed, SourceError> {
        let needed = packed.pages().saturating_mul(PAGE);
        if needed <= self.device_sectors {
            return Ok(packed);
        }
        let (needed, size) = (size(needed), size(self.device_sectors));
        Err(SourceError(format!(
            "{name}: the trace touches {needed}, more than the device has, {size}; take a larger device, `--limit N` \
             or `--fit wrap`"
        )))
    }

    fn base(&self, device: u32) -> Option<&Base> {
        self.bases.binary_search_by_key(&device, |base| base.device).ok().map(|place| &self.bases[place])
    }

    /// Returns the address of a request on the device, or an error.
    #[inline]
    pub(super) fn place(&mut self, record: &Record, merge: bool) -> Result<u64, String> {
        let device = if merge { 0 } else { record.device };
        let (slot, start) = match self.bases.as_slice() {
            [] => (0, 0),
            _ => self.base(device).map(|base| (base.slot, base.start)).ok_or_else(changed)?,
        };
        if let Some(packed) = &mut self.packed {
            // A flush has no address.
            return if record.sectors == 0 { Ok(0) } else { packed.place(slot, record.lba).ok_or_else(changed) };
        }
        let lba = start.saturating_add(record.lba);
        let sectors = u64::from(record.sectors);
        if lba <= self.device_sectors && sectors <= self.device_sectors - lba {
            return Ok(lba);
        }
        self.outside(lba, sectors)
    }

    /// Handles a request that ends beyond the device.
    #[cold]
    fn outside(&mut self, lba: u64, sectors: u64) -> Result<u64, String> {
        let what = format!("the request at sector {lba}, {sectors} sectors long, ends behind the device:");
        if self.fit != Fit::Wrap {
            return Err(self.too_small(&what));
        }
        if sectors > self.device_sectors {
            return Err(format!("{what} it is longer than the whole device, {}", size(self.device_sectors)));
        }
        self.wrapped += 1;
        // A device without sectors only gets flushes.
        let lba = lba % self.device_sectors.max(1);
        Ok(if sectors <= self.device_sectors - lba { lba } else { 0 })
    }

    fn too_small(&self, what: &str) -> String {
        format!(
            "{what} the device has {} sectors ({}); `--fit wrap` takes addresses modulo its size, `--fit compact` lays \
             what the trace touches densely",
            self.device_sectors,
            size(self.device_sectors)
        )
    }

    /// Returns the number of requests that were wrapped into the device.
    pub(super) fn wrapped(&self) -> u64 {
        self.wrapped
    }
}

/// Adds a note to an error about the size of a trace, if its addresses or lengths may have another unit.
#[cold]
fn with_doubt(error: SourceError, records: &Records) -> SourceError {
    match records.doubt() {
        Some(doubt) => SourceError(format!("{}; {doubt}", error.0)),
        None => error,
    }
}

#[cold]
fn changed() -> String {
    "was not there in the first pass: the file changed while it was being read".to_owned()
}

/// Formats a number of sectors.
fn size(sectors: u64) -> String {
    let bytes = u128::from(sectors) * u128::from(SECTOR);
    readable(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::fields::Decimal;
    use super::super::fields::Expected;
    use super::*;
    use crate::sim::request::Operation;

    fn record(lba: u64, sectors: u64) -> Record {
        let record: Result<Record, Expected> = Record::in_sectors(Decimal::whole(0), 0, Operation::Read, lba, sectors);
        record.unwrap()
    }

    #[test]
    fn wrapping_keeps_requests_whole() {
        let options = TraceOptions { fit: Fit::Wrap, ..TraceOptions::default() };
        let mut placement = Placement::as_is(&options, 1000);
        let mut place = |lba, sectors| placement.place(&record(lba, sectors), false);
        assert_eq!(place(992, 8), Ok(992));
        assert_eq!(place(993, 8), Ok(0));
        assert_eq!(place(5008, 8), Ok(8));
        assert_eq!(place(1000, 1000), Ok(0));
        assert!(place(0, 1001).unwrap_err().contains("longer than the whole device"));
        assert_eq!(placement.wrapped(), 3);
    }

    #[test]
    fn refusal_names_size_address_and_remedies() {
        let mut placement = Placement::as_is(&TraceOptions::default(), 2048);
        assert_eq!(placement.place(&record(2040, 8), false), Ok(2040));
        let error = placement.place(&record(2041, 8), false).unwrap_err();
        for part in ["sector 2041", "8 sectors long", "2048 sectors (1 MiB)", "--fit wrap", "--fit compact"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(placement.place(&record(u64::MAX / 512, 1), false).is_err());
    }
}
