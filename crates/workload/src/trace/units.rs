//! Detection of addresses and lengths in bytes in formats that count sectors, and advice on reading such files.

use super::format::{Format, Framing};
use super::record::Record;
use super::time_unit::TimeUnit;

/// Number of requests below which regularities are not meaningful.
const FEW: u64 = 16;
/// Bits that are 0 in a number of bytes that is a multiple of 512 B.
const WITHIN_SECTOR: u64 = 511;
/// Mean length in sectors from which lengths are assumed to be bytes: 512 KiB, or 1 KiB if they are bytes.
const LARGE: u64 = 1024;

/// Columns of the formats that count in sectors, in the syntax of `delimited`, without the units of time, offset and
/// size.
///
/// A test reads each format's sample with these columns, and checks that it gets the same requests.
const COLUMNS: [(&str, Counted, &str); 8] = [
    ("spc", Counted::Addresses, "columns=device,offset,size,op,time;read=R,r;write=W,w"),
    ("ssdsim", Counted::Both, "columns=time,device,offset,size,op;delimiter=space;read=1;write=0"),
    ("mqsim", Counted::Both, "columns=time,device,offset,size,op;delimiter=space;read=1;write=0"),
    ("disksim", Counted::Both, "columns=time,device,offset,size,op;delimiter=space;read=1;write=0"),
    (
        "blkparse",
        Counted::Both,
        "columns=device,_,_,time,_,filter,op,offset,_,size;delimiter=space;keep=D;read=R,RA,RM,RS,RSM;\
         write=W,WS,WM,WSM,WFS,FWS,FWFS;trim=D,DS;skip=F,FF,FN,N",
    ),
    ("fiu", Counted::Both, "columns=time,_,_,offset,size,op,_,device;delimiter=space;read=R,r;write=W,w"),
    ("tencent", Counted::Both, "columns=time,offset,size,op,device;read=0;write=1"),
    ("biotracer", Counted::Both, "columns=offset,size,_,op,time;delimiter=space;read=0,2,4,6;write=1,3,5,7"),
];

/// Fields that a format counts in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Addresses,
    Both,
}

/// Checks the requests of a trace one by one.
#[derive(Clone, Debug, Default)]
pub(super) struct UnitCheck {
    requests: u64,
    /// Bitwise OR of all first sectors, and of all lengths. A bit that is 0 here is 0 in all of them.
    lbas: u64,
    lengths: u64,
    sectors: u64,
}

/// Fields that look like bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InBytes {
    addresses: bool,
    lengths: bool,
}

impl UnitCheck {
    /// Adds a request.
    #[inline]
    pub(super) fn note(&mut self, record: &Record) {
        if record.sectors > 0 {
            self.requests += 1;
            self.lbas |= record.lba;
            self.lengths |= u64::from(record.sectors);
            self.sectors = self.sectors.saturating_add(u64::from(record.sectors));
        }
    }

    /// Returns the fields that look like bytes because all their values are multiples of 512.
    pub(super) fn in_bytes(&self, format: &Format) -> Option<InBytes> {
        let (_, counted, _) = COLUMNS.iter().find(|(name, ..)| *name == format.name)?;
        let is_bytes = |bits: u64| bits != 0 && bits & WITHIN_SECTOR == 0;
        let lengths =
            *counted == Counted::Both && is_bytes(self.lengths) && self.sectors / self.requests.max(1) >= LARGE;
        // Large and round lengths cause round addresses.
        let addresses = is_bytes(self.lbas) && (lengths || !is_bytes(self.lengths));
        (self.requests >= FEW && (lengths || addresses)).then_some(InBytes { addresses, lengths })
    }

    /// Returns a warning with a command that reads the file correctly. `name` is the name of the file, `unit` the unit
    /// of its times.
    pub(super) fn warning(&self, format: &Format, unit: TimeUnit, name: &str) -> Option<String> {
        let found = self.in_bytes(format)?;
        let what = match (found.addresses, found.lengths) {
            (true, true) => "addresses and lengths",
            (true, false) => "addresses",
            _ => "lengths",
        };
        let columns = found.columns(format, unit);
        let quoted = quoted(name);
        Some(format!(
            "all {what} are multiples of 512, and format {} counts them in sectors: they look like bytes. If they are, \
             `floatgate trace info {quoted} --format '{columns}'` reads them so, as `--format` does in other commands",
            format.name
        ))
    }
}

/// Name of standard input in messages. In commands it is `-`.
const STANDARD_INPUT: &str = "standard input";

/// Quotes the name of a file for a shell.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    match name {
        STANDARD_INPUT => "-".to_owned(),
        _ if name.chars().all(is_plain) => name.to_owned(),
        _ => format!("'{}'", name.replace('\'', "'\\''")),
    }
}

impl InBytes {
    /// Returns the value of `--format` that reads a file of `format` with these fields in bytes.
    fn columns(self, format: &Format, unit: TimeUnit) -> String {
        debug_assert_eq!(format.framing, Framing::Lines);
        let (_, counted, columns) = COLUMNS.iter().find(|(name, ..)| *name == format.name).unwrap_or(&COLUMNS[0]);
        let named = |is_bytes: bool| if is_bytes { "bytes" } else { "sectors" };
        let offset = named(self.addresses);
        let size = if *counted == Counted::Addresses { "bytes" } else { named(self.lengths) };
        format!("delimited:{columns};time={unit};offset={offset};size={size}")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::Reader;
    use super::super::columns::Columns;
    use super::super::options::TraceOptions;
    use super::*;
    use crate::sim::request::Operation;

    fn requests(path: &Path, options: &TraceOptions) -> Vec<(i128, Operation, u64, u32)> {
        let mut reader = Reader::open(path, options).unwrap();
        let items = std::iter::from_fn(|| reader.next_item().unwrap());
        items.map(|item| (item.ps, item.operation, item.lba, item.sectors)).collect()
    }

    /// Returns a line that columns can express, with 1 or 0 for a flag bit or a value other than 0.
    fn simple(format: &str, line: &str) -> String {
        let (columns, last) = line.rsplit_once([' ', '\t']).unwrap_or((line, ""));
        match format {
            "disksim" => format!("{columns} {}", u32::from_str_radix(last, 16).unwrap() & 1),
            "mqsim" => format!("{columns} {}", u8::from(last != "0")),
            _ => line.to_owned(),
        }
    }

    #[test]
    fn names_are_quoted_for_the_shell() {
        let names = ["standard input", "dir/fin-1.csv.xz", "my trace", "it's $1"];
        assert_eq!(names.map(quoted), ["-", "dir/fin-1.csv.xz", "'my trace'", "'it'\\''s $1'"]);
    }

    #[test]
    fn columns_read_each_format_as_its_own_reader_does() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/trace");
        for (name, counted, _) in COLUMNS {
            let format = Format::named(name).unwrap();
            let ending = if name == "tencent" { "csv" } else { "txt" };
            let text = fs::read_to_string(folder.join(format!("{name}.{ending}"))).unwrap();
            // Omit process names with blanks, and commands that are passed through.
            let plain = text.lines().filter(|line| !line.contains("my app") && !line.contains("(12 00 00 00)"));
            let lines: Vec<String> = plain.map(|line| simple(name, line)).collect();
            let mut file = tempfile::NamedTempFile::new().unwrap();
            std::io::Write::write_all(&mut file, (lines.join("\n") + "\n").as_bytes()).unwrap();
            let own = TraceOptions { format: Some(format), ..TraceOptions::default() };
            let found = InBytes { addresses: false, lengths: false };
            let columns: Columns =
                found.columns(format, format.unit).strip_prefix("delimited:").unwrap().parse().unwrap();
            let described = TraceOptions { columns: Some(columns), ..TraceOptions::default() };
            let mut expected = requests(file.path(), &own);
            // A flush in blkparse has no address.
            expected.retain(|(_, operation, ..)| *operation != Operation::Flush);
            assert!(expected.len() >= 10, "{name}: {} requests", expected.len());
            assert_eq!(requests(file.path(), &described), expected, "{name} ({counted:?})");
        }
    }
}
