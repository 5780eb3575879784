//! Text formats with columns that the user describes: see [`Columns`].

use super::biosnoop::SORT_WINDOW;
use super::columns::{Column, Columns, Delimiter};
use super::fields::Expected;
use super::fields::{Decimal, Fields, number};
use super::format::{Format, Framing, Parser};
use super::names::Names;
use super::options::TraceOptions;
use super::record::{DeviceName, Record};
use super::time_unit::TimeUnit;
use crate::sim::request::Operation;

pub(super) static FORMAT: Format = Format {
    name: "delimited",
    title: "columns that the user describes",
    columns: "as given",
    unit: TimeUnit::S,
    framing: Framing::Lines,
    has_events: false,
    looks: |_| false,
    parser: |options| Box::new(Delimited::new(options)),
    writer: None,
};

/// Checks that columns are given for `delimited`, and for no other format.
pub(super) fn check(format: &Format, options: &TraceOptions) -> Result<(), String> {
    match (*format == FORMAT, options.columns.is_some()) {
        (true, false) => {
            Err("the format `delimited` needs its columns: write them as `--format delimited:columns=...` \
                              or into a file for `--columns FILE`"
                .to_owned())
        }
        (false, true) => Err(format!("columns are for the format `delimited`, and not for `{}`", format.name)),
        _ => Ok(()),
    }
}

/// Parser for the lines of a trace.
struct Delimited {
    columns: Option<Columns>,
    lines: u64,
    names: Names,
}

impl Delimited {
    fn new(options: &TraceOptions) -> Delimited {
        Delimited { columns: options.columns.clone(), lines: 0, names: Names::default() }
    }
}

/// Used fields of a line.
#[derive(Default)]
struct Placed<'a> {
    time: Option<&'a [u8]>,
    code: Option<&'a [u8]>,
    offset: Option<&'a [u8]>,
    size: Option<&'a [u8]>,
    device: Option<&'a [u8]>,
    latency: Option<&'a [u8]>,
    filter: Option<&'a [u8]>,
    filter2: Option<&'a [u8]>,
}

/// Parsed values of a line.
struct Found<'a> {
    time: Decimal,
    operation: Operation,
    offset: u64,
    size: u64,
    device: Option<&'a [u8]>,
}

impl Columns {
    /// Parses a line. Returns `None` if it is skipped.
    fn read<'a>(&self, line: &'a [u8]) -> Result<Option<Found<'a>>, Expected> {
        let mut fields = Placed::default();
        let is_whole = self.place(line, &mut fields);
        let is_kept = |keep: &[String], field: Option<&[u8]>| {
            keep.is_empty() || field.is_some_and(|field| keep.iter().any(|value| value.as_bytes() == field))
        };
        // The other columns of a skipped line may contain anything, or be missing.
        if !is_kept(&self.keep, fields.filter) || !is_kept(&self.keep2, fields.filter2) {
            return Ok(None);
        }
        let code = fields.code.map(|field| self.codes.iter().find(|(code, _)| code.as_bytes() == field));
        if let Some(Some((_, None))) = code {
            return Ok(None);
        }
        if !is_whole {
            return Err(Expected("as many columns as were described"));
        }
        let operation = match code {
            Some(Some((_, operation))) => operation.unwrap_or(Operation::Read),
            Some(None) => return Err(Expected("one of the codes that were given for operations")),
            None => self.all.unwrap_or(Operation::Read),
        };
        let mut time = fields.time.map_or(Ok(Decimal::whole(0)), decimal)?;
        if let (Some(latency), Some(unit), Some(time_unit)) = (fields.latency, self.latency, self.time) {
            let ps = time.scaled(time_unit.exponent()).saturating_sub(decimal(latency)?.scaled(unit.exponent()));
            time = Decimal::of_ps(ps);
        }
        let (mut offset, mut size) = (0, 0);
        if operation != Operation::Flush {
            let number = |field: Option<&[u8]>, else_, what| field.map_or(Ok(else_), |field| number(field, what));
            offset = number(fields.offset, 0, "the offset, a whole number")?;
            size = number(fields.size, self.length.unwrap_or(0), "the size, a whole number")?;
        }
        Ok(Some(Found { time, operation, offset, size, device: fields.device }))
    }

    /// Finds the fields of a line. Returns `true` if it has all columns.
    fn place<'a>(&self, line: &'a [u8], fields: &mut Placed<'a>) -> bool {
        let mut rest = Some(line);
        for column in &self.columns {
            let field = self.field(&mut rest);
            if field.is_none() {
                return false;
            }
            match column {
                Column::Time => fields.time = field,
                Column::Operation => fields.code = field,
                Column::Offset => fields.offset = field,
                Column::Size => fields.size = field,
                Column::Device => fields.device = field,
                Column::Latency => fields.latency = field,
                Column::Filter => fields.filter = field,
                Column::Filter2 => fields.filter2 = field,
                Column::Other => {}
            }
        }
        true
    }

    /// Returns the next field, without surrounding blanks and quotes.
    fn field<'a>(&self, rest: &mut Option<&'a [u8]>) -> Option<&'a [u8]> {
        let text = (*rest)?;
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let (text, end) = match self.delimiter {
            Delimiter::Byte(delimiter) => (text, text.iter().position(|byte| *byte == delimiter)),
            Delimiter::Blanks => {
                let start = text.iter().position(|byte| !is_blank(byte))?;
                let text = &text[start..];
                (text, text.iter().position(is_blank))
            }
        };
        *rest = end.map(|end| &text[end + 1..]);
        let field = text[..end.unwrap_or(text.len())].trim_ascii();
        let unquoted = field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\""));
        Some(unquoted.unwrap_or(field))
    }
}

fn decimal(field: &[u8]) -> Result<Decimal, Expected> {
    const WHAT: &str = "the time, a decimal number";
    // Times end in a colon in the output of ftrace and perf.
    let mut fields = Fields(field.strip_suffix(b":").unwrap_or(field));
    let value = fields.decimal(WHAT)?;
    if fields.0.is_empty() { Ok(value) } else { Err(Expected(WHAT)) }
}

impl Parser for Delimited {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, Expected> {
        let Some(columns) = &self.columns else {
            return Err(Expected("columns, which were not described"));
        };
        self.lines += 1;
        if self.lines <= columns.header || line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let Some(found) = columns.read(line)? else { return Ok(None) };
        let in_bytes = |value: u64, unit: u64| value.checked_mul(unit);
        let (Some(offset), Some(bytes)) = (in_bytes(found.offset, columns.offset), in_bytes(found.size, columns.size))
        else {
            return Err(Expected("an address range that ends below 16 EiB"));
        };
        let record = Record::in_bytes(found.time, 0, found.operation, offset, bytes)?;
        let device = found.device.map_or(Ok(0), |name| self.names.device(name, 0))?;
        Ok(Some(Record { device, ..record }))
    }

    fn unit(&self) -> Option<TimeUnit> {
        // With a latency, arrivals are computed in seconds.
        self.columns.as_ref().and_then(|columns| columns.latency.map_or(columns.time, |_| Some(TimeUnit::S)))
    }

    fn sort_window(&self) -> u32 {
        match &self.columns {
            Some(Columns { latency: Some(_), .. }) => SORT_WINDOW,
            _ => 0,
        }
    }

    fn device(&self, device: u32) -> DeviceName {
        let has_devices = self.columns.as_ref().is_some_and(|columns| columns.columns.contains(&Column::Device));
        if !has_devices {
            return DeviceName::Number(u64::from(device));
        }
        let name = self.names.name(device).0;
        name.parse().map_or(DeviceName::Named(name), DeviceName::Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "columns=time,op,offset,size,device;delimiter=comma;time=us;offset=bytes;size=sectors;\
                        read=R,Read;write=W,Write;trim=D;flush=F;skip=X;header=1";

    /// Returns time, operation, first sector, sectors and device.
    type Read = (u64, Operation, u64, u32, String);

    fn read(spec: &str, line: &str) -> Result<Option<Read>, &'static str> {
        let columns: Columns = spec.parse().unwrap();
        let mut parser = Delimited::new(&TraceOptions { columns: Some(columns.clone()), ..TraceOptions::default() });
        for _ in 0..columns.header {
            assert_eq!(parser.parse(b"anything"), Ok(None));
        }
        let record = parser.parse(line.as_bytes()).map_err(|expected| expected.0)?;
        Ok(record.map(|record| {
            let device = parser.device(record.device).to_string();
            (record.stamp.scaled(0) as u64, record.operation, record.lba, record.sectors, device)
        }))
    }

    #[test]
    fn columns_are_parsed_as_described() {
        assert_eq!(read(SPEC, "5,R,1024,8,sda"), Ok(Some((5, Operation::Read, 2, 8, "sda".to_owned()))));
        assert_eq!(
            read(SPEC, " 5 , \"Write\" , 0x400 , 8 , 7 , more"),
            Ok(Some((5, Operation::Write, 2, 8, "7".into())))
        );
        assert_eq!(read(SPEC, "5,D,1024,8,1").unwrap().unwrap().1, Operation::Trim);
        assert_eq!(read(SPEC, "5,F,,,1"), Ok(Some((5, Operation::Flush, 0, 0, "1".to_owned()))));
        assert_eq!(read(SPEC, "5,X,,,1"), Ok(None));
        let ufliptrace =
            "columns=_,op,offset,_,time;delimiter=semicolon;time=us;offset=4096;size=4096;length=1;read=R;write=W";
        assert_eq!(read(ufliptrace, "S; W; 3; 9; 7.0"), Ok(Some((7, Operation::Write, 24, 8, "0".to_owned()))));
        let timeless = "columns=offset,size;delimiter=space;offset=KiB;size=MiB;all=write";
        assert_eq!(read(timeless, "  2 \t 1"), Ok(Some((0, Operation::Write, 4, 2048, "0".to_owned()))));
    }

    #[test]
    fn a_second_column_filters_lines() {
        let spec = "columns=time,filter,op,_,offset,size;delimiter=space;time=s;offset=sectors;size=sectors;keep=D,I;\
                    read=R;write=W";
        let request = |operation, lba| Ok(Some((1, operation, lba, 8, "0".to_owned())));
        assert_eq!(read(spec, "1 D R x 16 8"), request(Operation::Read, 16));
        assert_eq!(read(spec, "1 I W x 16 8"), request(Operation::Write, 16));
        // The rest of such lines may differ from other lines, or be missing.
        for other in ["1 C R x 16 8", "1 P N [fio]", "? U none", "CPU0", "1 C W x 16"] {
            assert_eq!(read(spec, other), Ok(None), "{other}");
        }
        assert!(read(spec, "1 D Q x 16 8").unwrap_err().contains("codes"));
        assert!(read(spec, "1 D R x 16").unwrap_err().contains("as many columns"));
        // The filter may follow the operation.
        let behind = "columns=op,offset,size,filter;offset=bytes;size=bytes;keep=D;read=R";
        assert_eq!(read(behind, "X,?,?,C"), Ok(None));
        assert_eq!(read(behind, "R,512,512,D"), Ok(Some((0, Operation::Read, 1, 1, "0".to_owned()))));
    }

    #[test]
    fn arrivals_precede_completions_by_the_latency() {
        let spec = "columns=time,latency,op,offset,size;time=s;latency=ms;offset=sectors;size=bytes;read=R";
        let columns: Columns = spec.parse().unwrap();
        let mut parser = Delimited::new(&TraceOptions { columns: Some(columns), ..TraceOptions::default() });
        let mut arrival = |line: &str| parser.parse(line.as_bytes()).unwrap().unwrap().stamp.scaled(6);
        assert_eq!([arrival("0.0010,0.9,R,0,4096"), arrival("0.0011:,0.1,R,8,4096")], [100, 1000]);
        assert_eq!((parser.unit(), parser.sort_window()), (Some(TimeUnit::S), SORT_WINDOW));
    }

    #[test]
    fn two_columns_filter_lines() {
        let spec = "columns=filter,filter2,offset;offset=sectors;size=sectors;length=1;all=read;keep=D;keep2=x,y";
        assert!(read(spec, "D,x,5").unwrap().is_some());
        assert_eq!([read(spec, "C,x,5"), read(spec, "D,z,5")], [Ok(None), Ok(None)]);
        let error = |spec: &str| spec.parse::<Columns>().unwrap_err();
        let rest = "offset=bytes;size=bytes;all=read;length=1";
        assert!(error(&format!("columns=offset,filter2;{rest}")).contains("keep2=D"));
        assert!(error(&format!("columns=offset;keep2=D;{rest}")).contains("needs a column `filter2`"));
        assert!(error(&format!("columns=offset,time,latency;time=s;{rest}")).contains("latency=ms"));
        assert!(error(&format!("columns=offset,latency;latency=ms;{rest}")).contains("needs a column `time`"));
    }

    #[test]
    fn lines_that_do_not_match_are_reported() {
        assert!(read(SPEC, "5,R,1024,8").unwrap_err().contains("as many columns"));
        assert!(read(SPEC, "5,Q,1024,8,1").unwrap_err().contains("codes"));
        assert!(read(SPEC, "5x,R,1024,8,1").unwrap_err().contains("time"));
        assert!(read(SPEC, "5,R,10 24,8,1").unwrap_err().contains("offset"));
        assert!(read(SPEC, "5,R,1024,-8,1").unwrap_err().contains("size"));
        assert!(read(SPEC, "5,R,0,18446744073709551615,1").unwrap_err().contains("16 EiB"));
    }

    #[test]
    fn a_file_describes_columns_like_the_option() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("columns.toml");
        let text = "columns = [\"time\", \"op\", \"offset\", \"size\", \"device\"]\ndelimiter = \"comma\"\ntime = \"us\"\n\
                    offset = \"bytes\"\nsize = \"sectors\"\nread = [\"R\", \"Read\"]\nwrite = [\"W\", \"Write\"]\ntrim = \"D\"\n\
                    flush = \"F\"\nskip = \"X\"\nheader = 1\n";
        std::fs::write(&path, text).unwrap();
        assert_eq!(Columns::from_file(&path), SPEC.parse());
        std::fs::write(&path, "columns = [true]\n").unwrap();
        assert!(Columns::from_file(&path).unwrap_err().contains("columns.toml: `columns` must be a text"));
        assert!(Columns::from_file(&directory.path().join("none")).unwrap_err().contains("cannot read"));
    }

    #[test]
    fn inconsistent_descriptions_are_rejected() {
        let error = |spec: &str| spec.parse::<Columns>().unwrap_err();
        assert!(error("").contains("columns are missing"));
        assert!(error("columns").contains("has no value"));
        assert!(error("columns=time;columns=time").contains("twice"));
        assert!(error("colums=time").contains("unknown key `colums`"));
        assert!(error("columns=time,when").contains("unknown column `when`"));
        assert!(error("columns=time,time").contains("given twice"));
        assert!(error("columns=offset,size;all=read;size=bytes").contains("unit of `offset` is missing"));
        assert!(error("columns=offset,size;offset=bytes;size=nibbles").contains("nibbles"));
        let rest = ";offset=bytes;size=bytes";
        assert!(error(&format!("columns=size;all=read{rest}")).contains("no `offset`"));
        assert!(error(&format!("columns=offset,size,op{rest}")).contains("read=R;write=W"));
        assert!(error(&format!("columns=offset,size{rest}")).contains("all=read"));
        assert!(error(&format!("columns=offset,size;all=erase{rest}")).contains("`erase`"));
        assert!(error(&format!("columns=offset,size;read=R;all=read{rest}")).contains("need a column `op`"));
        assert!(error(&format!("columns=offset;all=read{rest}")).contains("length=N"));
        assert!(error(&format!("columns=time,offset,size;all=read{rest}")).contains("time=us"));
        assert!(error(&format!("columns=offset,size;time=us;all=read{rest}")).contains("needs a column `time`"));
        assert!(error(&format!("columns=offset,size,op;read=R;write=R{rest}")).contains("two operations"));
        assert!(error(&format!("columns=offset,size;delimiter=ab;all=read{rest}")).contains("invalid delimiter `ab`"));
        assert!(error(&format!("columns=offset,size,filter;all=read{rest}")).contains("keep=D"));
        assert!(error(&format!("columns=offset,size;keep=D;all=read{rest}")).contains("needs a column `filter`"));
        assert!(error(&format!("columns=offset,size;header=x;all=read{rest}")).contains("whole number"));
    }
}
