//! Disk I/O table of the Windows Performance Analyzer, exported as comma-separated values (`wpaexporter`, or *Export
//! Table*).
//!
//! The first line names the columns, in any order: `IO Type`, `Size (B)`, `Min Offset`, `Init Time (s)` or
//! `Complete Time (s)` with `IO Time (µs)`, and possibly `Disk`. Other columns are not used. A request is issued at its
//! `Init Time`, or at `Complete Time - IO Time`. Numbers may be in quotes with commas between the thousands, or
//! hexadecimal after `0x`. Rows are in the order of completion, or as the table was sorted.

use super::biosnoop::{SORT_WINDOW, decimal};
use super::fields::{Decimal, Expected, number};
use super::format::{Format, Framing, Parser};
use super::names::Names;
use super::record::{DeviceName, Record};
use super::time_unit::TimeUnit;
use crate::sim::request::Operation;

pub(super) static FORMAT: Format = Format {
    name: "wpa",
    title: "disk I/O table of the Windows Performance Analyzer",
    columns: "IO Type, Size (B), Min Offset, Init Time (s) or Complete Time (s) and IO Time (us)[, Disk], named in the \
              first line",
    unit: TimeUnit::S,
    framing: Framing::Lines,
    has_events: false,
    looks: |_| true,
    parser: |_| Box::<Wpa>::default(),
    writer: None,
};

/// Positions of the columns.
#[derive(Clone, Copy)]
struct Layout {
    kind: usize,
    size: usize,
    offset: usize,
    init: Option<usize>,
    /// Completion and duration, with the exponent of its unit in picoseconds.
    complete: Option<(usize, usize, u32)>,
    disk: Option<usize>,
}

impl Layout {
    /// Reads the names of the columns. `None` if columns are missing.
    fn read(line: &[u8]) -> Option<Layout> {
        let names: Vec<String> = fields(line).map(|field| String::from_utf8_lossy(&field).to_lowercase()).collect();
        let place = |start: &str| names.iter().position(|name| name.starts_with(start));
        let complete = place("complete time").zip(place("io time")).map(|(complete, duration)| {
            let name = &names[duration];
            let exponent = if name.contains("(ms") || name.contains("(m") { 9 } else { 6 };
            (complete, duration, if name.contains("(s)") { 12 } else { exponent })
        });
        let layout = Layout {
            kind: place("io type")?,
            size: place("size")?,
            offset: place("min offset").or_else(|| place("offset"))?,
            init: place("init time"),
            complete,
            disk: names.iter().position(|name| name == "disk"),
        };
        (layout.init.is_some() || complete.is_some()).then_some(layout)
    }
}

/// Parser for the lines of a table.
#[derive(Default)]
struct Wpa {
    layout: Option<Layout>,
    names: Names,
}

/// Returns the fields of a line without quotes.
fn fields(line: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut quoted = false;
        let end = text.iter().position(|byte| {
            quoted ^= *byte == b'"';
            *byte == b',' && !quoted
        });
        rest = end.map(|end| &text[end + 1..]);
        let field = text[..end.unwrap_or(text.len())].trim_ascii();
        Some(field.iter().copied().filter(|byte| *byte != b'"').collect())
    })
}

/// Removes the commas between thousands.
fn plain(field: &[u8]) -> Vec<u8> {
    field.iter().copied().filter(|byte| *byte != b',').collect()
}

impl Parser for Wpa {
    fn begin(&mut self, head: &[u8]) {
        let first = head.split(|byte| *byte == b'\n').find_map(|line| Layout::read(line.trim_ascii()));
        self.layout = first;
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, Expected> {
        let layout = self.layout.ok_or(Expected("a first line with IO Type, Size, Min Offset and Init Time"))?;
        if Layout::read(line).is_some() {
            return Ok(None);
        }
        let fields: Vec<Vec<u8>> = fields(line).collect();
        let field =
            |at: usize| fields.get(at).map(|field| plain(field)).ok_or(Expected("as many columns as are named"));
        let kind = field(layout.kind)?;
        let operation = match kind.to_ascii_lowercase().as_slice() {
            b"read" => Operation::Read,
            b"write" => Operation::Write,
            b"flush" => Operation::Flush,
            _ => return Err(Expected("the type Read, Write or Flush")),
        };
        let time = |at: usize| decimal(&field(at)?, "a time, a decimal number");
        let stamp = match (layout.init, layout.complete) {
            (Some(init), _) => time(init)?,
            (None, Some((complete, duration, exponent))) => {
                let (complete, duration) = (time(complete)?.scaled(12), time(duration)?.scaled(exponent));
                Decimal::of_ps(complete.saturating_sub(duration))
            }
            (None, None) => return Err(Expected("a column Init Time or Complete Time")),
        };
        let device = match layout.disk {
            Some(disk) => self.names.device(&field(disk)?, 0)?,
            None => self.names.device(b"0", 0)?,
        };
        if operation == Operation::Flush {
            return Record::in_sectors(stamp, device, operation, 0, 0).map(Some);
        }
        let offset = number(&field(layout.offset)?, "the offset in bytes, a whole number")?;
        let bytes = number(&field(layout.size)?, "the size in bytes, a whole number")?;
        Record::in_bytes(stamp, device, operation, offset, bytes).map(Some)
    }

    fn device(&self, device: u32) -> DeviceName {
        let name = self.names.name(device).0;
        name.parse().map_or(DeviceName::Named(name), DeviceName::Number)
    }

    fn sort_window(&self) -> u32 {
        SORT_WINDOW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_their_names() {
        let mut parser = Wpa::default();
        let header = "Line #,Process,IO Type,Complete Time (s),IO Time (\u{b5}s),Size (B),Min Offset,Disk\n";
        parser.begin(header.as_bytes());
        let line = r#"1,"System (4)",Read,0.001000000,"900.000","4,096","1,048,576",0"#;
        let record = parser.parse(line.as_bytes()).unwrap().unwrap();
        assert_eq!((record.stamp.scaled(12), record.lba, record.sectors), (100_000_000, 2048, 8));
        assert_eq!(record.operation, Operation::Read);
        parser.begin(b"Init Time (s),IO Type,Size (B),Min Offset\n");
        let record = parser.parse(b"0.5,Write,4096,0x1000").unwrap().unwrap();
        assert_eq!((record.stamp.scaled(3), record.lba, record.operation), (500, 8, Operation::Write));
        assert_eq!(parser.parse(b"0.5,Flush,0,0").unwrap().unwrap().operation, Operation::Flush);
        assert!(parser.parse(b"0.5,Erase,0,0").is_err());
        assert!(Wpa::default().parse(b"0.5,Read,0,0").is_err());
    }
}
