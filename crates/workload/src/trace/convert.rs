//! Conversion of a trace to another format.
//!
//! Losses are counted and reported. Operations that the format does not have are omitted. Times are rounded to its
//! resolution. Ranges are widened if it counts in pages. Addresses beyond the limit of the format's own reader are
//! written nevertheless. Times are counted from the first request, because no simulator reads absolute ones.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use super::format::Format;
use super::gaps::Gaps;
use super::options::{Devices, TraceOptions};
use super::record::{DeviceName, Record, counted};
use super::records::{Entry, Records};
use super::writer::{Outgoing, WriteRequest, Writer};
use crate::sim::request::Operation;
use crate::sim::source::SourceError;
use crate::sim::time::Time;

/// Result of a conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Number of written requests.
    pub requests: u64,
    /// Description of how the trace was read.
    pub description: String,
    /// Warnings about losses, and warnings from reading.
    pub warnings: Vec<String>,
}

/// Reason why a conversion failed.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The trace cannot be read, or cannot be written in this format.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The new file cannot be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
}

/// Number of requests between two calls of `on_progress`.
const BATCH: u64 = 1 << 16;

/// Writes the trace at `path` to `out`, in the format `to`. Calls `on_progress` with the completed share.
///
/// The placement on a device (`fit`) and the replay in `options` are not used. Devices are preserved unless they are
/// merged. Memory is independent of the length of the trace.
pub fn convert(
    path: &Path,
    options: &TraceOptions,
    to: &'static Format,
    out: &mut dyn Write,
    on_progress: &mut dyn FnMut(f64),
) -> Result<Converted, ConvertError> {
    let Some(writer) = &to.writer else {
        return Err(SourceError(format!("traces are not written as `{}`", to.name)).into());
    };
    let mut records = Records::open(path, options)?;
    let mut conversion = Conversion::new(to, writer, options.max_gap);
    let mut requests = (writer.start)();
    let mut text = writer.header.as_bytes().to_vec();
    while let Some(entry) = records.next()? {
        let scaled = conversion.time(&entry, options).ok_or_else(|| {
            records.error(entry.line, "its time is over 213 days after scaling; `--time-scale` changes that")
        })?;
        if options.devices == Devices::Merge {
            conversion.write(&mut *requests, &mut text, scaled, &entry.record, || DeviceName::Number(0));
        } else {
            let device = entry.record.device;
            conversion.write(&mut *requests, &mut text, scaled, &entry.record, || records.device(device));
        }
        if text.len() >= BATCH as usize {
            out.write_all(&text)?;
            text.clear();
        }
        if conversion.read.is_multiple_of(BATCH) {
            records.input().progress().into_iter().for_each(&mut *on_progress);
        }
    }
    out.write_all(&text)?;
    let description = format!("format {}, times in {}", records.detected(), records.unit());
    let mut warnings = conversion.warnings();
    warnings.extend(records.warnings());
    let gaps = conversion.gaps.warning(records.frame_word());
    warnings.extend(gaps.map(|warning| format!("{}: {warning}", records.name())));
    Ok(Converted { requests: conversion.written, description, warnings })
}

/// State of a conversion: devices so far, and losses.
struct Conversion {
    format: &'static Format,
    writer: &'static Writer,
    base: Option<u128>,
    gaps: Gaps,
    /// Number and name of each device, by device of the trace.
    devices: BTreeMap<u32, (u64, DeviceName)>,
    read: u64,
    written: u64,
    left_out: [u64; Operation::ALL.len()],
    rounded: u64,
    widened: u64,
    beyond: u64,
}

impl Conversion {
    fn new(format: &'static Format, writer: &'static Writer, max_gap: Option<Time>) -> Conversion {
        Conversion {
            format,
            writer,
            base: None,
            gaps: Gaps::new(max_gap),
            devices: BTreeMap::new(),
            read: 0,
            written: 0,
            left_out: [0; Operation::ALL.len()],
            rounded: 0,
            widened: 0,
            beyond: 0,
        }
    }

    /// Returns the time since the first request, scaled.
    fn time(&mut self, entry: &Entry, options: &TraceOptions) -> Option<u128> {
        let since = entry.ps.saturating_sub(*self.base.get_or_insert(entry.ps));
        let since = self.gaps.shorten(since, entry.line);
        if options.time_scale == Default::default() {
            return Some(since);
        }
        options.time_scale.apply(since).map(u128::from)
    }

    fn write(
        &mut self,
        requests: &mut dyn WriteRequest,
        out: &mut Vec<u8>,
        ps: u128,
        record: &Record,
        name: impl FnOnce() -> DeviceName,
    ) {
        self.read += 1;
        if !self.writer.operations.contains(&record.operation) {
            self.left_out[record.operation.index()] += 1;
            return;
        }
        let rank = self.devices.len() as u64;
        let (number, name) = self.devices.entry(record.device).or_insert_with(|| {
            let name = name();
            (if let DeviceName::Number(number) = name { number } else { rank }, name)
        });
        let tick = 10_u128.pow(self.writer.resolution.exponent());
        let rounded = (ps + tick / 2) / tick * tick;
        self.rounded += u64::from(rounded != ps);
        let granule = self.writer.granule;
        let end = record.lba + u64::from(record.sectors);
        let lba = record.lba / granule * granule;
        let wide_end = end.next_multiple_of(granule);
        self.widened += u64::from(lba != record.lba || wide_end != end);
        self.beyond += u64::from(self.writer.address_bits < 64 && wide_end >> self.writer.address_bits.min(63) != 0);
        let operation = record.operation;
        let sectors = wide_end - lba;
        requests.write(out, &Outgoing { ps: rounded, number: *number, name, operation, lba, sectors });
        self.written += 1;
    }

    /// Returns warnings about losses.
    fn warnings(&self) -> Vec<String> {
        let format = self.format.name;
        let mut warnings = Vec::new();
        for operation in Operation::ALL {
            let count = self.left_out[operation.index()];
            if count > 0 {
                let requests = counted(count, &format!("{} request", operation.name()));
                warnings.push(format!("{requests} left out: {format} has no such operation"));
            }
        }
        let resolution = self.writer.resolution;
        if self.rounded > 0 {
            let times = counted(self.rounded, "time");
            warnings.push(format!("{times} rounded: the finest that {format} holds is 1 {resolution}"));
        }
        if self.widened > 0 {
            let requests = counted(self.widened, "request");
            let kib = self.writer.granule / 2;
            warnings.push(format!("{requests} widened to whole pages of {kib} KiB, in which {format} counts"));
        }
        if self.beyond > 0 {
            let requests = counted(self.beyond, "request");
            let bits = self.writer.address_bits;
            warnings.push(format!(
                "{requests} written with an address beyond 2^{bits} sectors, which the program that {format} is made for \
                 does not read"
            ));
        }
        let named = |(number, name): &(u64, DeviceName)| match name {
            DeviceName::Number(_) => None,
            name => Some(format!("{number} is {name}")),
        };
        let named: Vec<String> = self.devices.values().filter_map(named).collect();
        if !named.is_empty() {
            /// Maximum number of devices to list.
            const LISTED: usize = 20;
            let more = if named.len() > LISTED { ", ..." } else { "" };
            let listed = named[..named.len().min(LISTED)].join(", ");
            warnings.push(format!("where {format} has numbers for devices: {listed}{more}"));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::super::FORMATS;
    use super::*;

    fn converted(text: &str, to: &str, options: &TraceOptions) -> (String, Converted) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut out = Vec::new();
        let to = Format::written(to).unwrap();
        let converted = convert(file.path(), options, to, &mut out, &mut |_| {}).unwrap();
        (String::from_utf8(out).unwrap(), converted)
    }

    const IOLOG: &str = "fio version 3 iolog\n5 /a write 512 1024\n6 /b read 0 512\n7 /a trim 0 4096\n8 /a sync 0 0\n";

    #[test]
    fn each_format_is_written_for_its_own_reader() {
        let written = |to| converted(IOLOG, to, &TraceOptions::default()).0;
        assert_eq!(written("spc"), "0,1,1024,W,0\n1,0,512,R,0.000001\n");
        assert_eq!(written("msr"), "0,trace,0,Write,512,1024,0\n10,trace,1,Read,0,512,0\n");
        assert_eq!(written("ssdsim"), "0 0 1 2 0\n1000 1 0 1 1\n");
        assert_eq!(written("mqsim"), "0 0 1 2 0\n1000 1 0 1 1\n");
        assert_eq!(written("disksim"), "0 0 1 2 0\n0.001 1 0 1 1\n");
        assert_eq!(written("flashsim"), "0 0 0 1 0\n1 1 0 1 1\n");
        assert_eq!(written("alibaba"), "0,W,512,1024,0\n1,R,0,512,1\n");
        assert_eq!(written("tencent"), "0,1,2,1,0\n0,0,1,0,1\n");
        let systor = "Timestamp,Response,IOType,LUN,Offset,Size\n0.000000000,,W,0,512,1024\n0.000001000,,R,1,0,512\n";
        assert_eq!(written("systor"), systor);
        let fio = "fio version 3 iolog\n0 /a add\n0 /a open\n0 /a write 512 1024\n1 /b add\n1 /b open\n1 /b read 0 512\n\
                   2 /a trim 0 4096\n3 /a sync 0 0\n";
        assert_eq!(written("fio"), fio);
        let blkparse = written("blkparse");
        assert!(blkparse.starts_with("  8,0   0        1    0.000000000 1 D   W 1 + 2 [floatgate]\n"), "{blkparse}");
        assert!(blkparse.ends_with("  8,0   0        4    0.000003000 1 D  FN [floatgate]\n"), "{blkparse}");
    }

    #[test]
    fn losses_are_reported() {
        let (_, spc) = converted(IOLOG, "spc", &TraceOptions::default());
        assert_eq!(spc.requests, 2);
        let warnings = spc.warnings.join("\n");
        for part in ["1 trim request left out", "1 flush request left out", "0 is /a, 1 is /b"] {
            assert!(warnings.contains(part), "{warnings}");
        }
        let (_, tencent) = converted("4,0,512,R,0\n4,0,512,R,0.4\n4,0,512,R,1\n", "tencent", &TraceOptions::default());
        assert_eq!(tencent.warnings, ["1 time rounded: the finest that tencent holds is 1 s"]);
        let (_, flashsim) = converted("0,1,512,R,0\n", "flashsim", &TraceOptions::default());
        assert!(flashsim.warnings[0].contains("widened to whole pages of 4 KiB"), "{:?}", flashsim.warnings);
        let (_, ssdsim) = converted("0,2147483648,512,R,0\n0,2147483646,512,R,0\n", "ssdsim", &TraceOptions::default());
        assert!(ssdsim.warnings[0].contains("1 request written with an address beyond 2^31"), "{:?}", ssdsim.warnings);
        let (text, exact) = converted("7,1,512,R,5\n7,1,512,W,5.000000000001\n", "spc", &TraceOptions::default());
        assert_eq!((text.as_str(), exact.warnings.len()), ("7,1,512,R,0\n7,1,512,W,0.000000000001\n", 0));
    }

    #[test]
    fn reading_options_apply() {
        let scaled = TraceOptions { time_scale: "0.5".parse().unwrap(), ..TraceOptions::default() };
        assert_eq!(converted("0,1,512,R,0\n0,1,512,R,4\n", "spc", &scaled).0, "0,1,512,R,0\n0,1,512,R,2\n");
        let merged = TraceOptions { devices: Devices::Merge, ..TraceOptions::default() };
        assert_eq!(converted("3,1,512,R,0\n4,1,512,R,4\n", "spc", &merged).0, "0,1,512,R,0\n0,1,512,R,4\n");
        let limited = TraceOptions { limit: Some(1), ..TraceOptions::default() };
        assert_eq!(converted("3,1,512,R,0\n4,1,512,R,4\n", "spc", &limited).0, "3,1,512,R,0\n");
    }

    #[test]
    fn formats_without_a_writer_are_rejected() {
        let error = Format::written("vscsi").unwrap_err();
        assert!(error.contains("choose one of spc, msr, ssdsim"), "{error}");
        assert!(FORMATS.iter().filter(|format| format.is_written()).count() >= 11);
    }
}
