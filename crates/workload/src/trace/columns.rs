//! Columns of a text format that the user describes.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use super::time_unit::TimeUnit;
use crate::sim::request::{Operation, SECTOR};
use crate::sim::text::read_text;

/// Contents of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Time,
    Operation,
    Offset,
    Size,
    Device,
    /// Time from the arrival to `time`, which is the completion.
    Latency,
    /// Filter value, which decides if the line is a request: see `keep`.
    Filter,
    /// Second filter value: see `keep2`.
    Filter2,
    /// Unused.
    Other,
}

const COLUMNS: [(&str, Column); 9] = [
    ("time", Column::Time),
    ("op", Column::Operation),
    ("offset", Column::Offset),
    ("size", Column::Size),
    ("device", Column::Device),
    ("latency", Column::Latency),
    ("filter", Column::Filter),
    ("filter2", Column::Filter2),
    ("_", Column::Other),
];

/// Separator of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delimiter {
    Byte(u8),
    /// Any number of spaces and tabs.
    Blanks,
}

/// The columns of a text format: their order, units and operation codes.
///
/// Written in one line as `key=value;key=value`, or as a TOML file with the same keys:
///
/// | key | value |
/// |---|---|
/// | `columns` | in order: `time`, `op`, `offset`, `size`, `device`, `latency`, `filter`, `filter2`, or `_` (unused) |
/// | `delimiter` | `comma` (the default), `tab`, `semicolon`, `pipe`, `space` (any number of blanks), or a character |
/// | `time` | unit of the time: `ps`, `ns`, `100ns`, `us`, `ms`, `s` |
/// | `offset`, `size` | unit: `bytes`, `sectors`, `KiB`, `MiB`, or a number of bytes, such as `4096` |
/// | `read`, `write`, `trim`, `flush` | codes of the operation, several separated by commas |
/// | `skip` | codes of lines that contain no request |
/// | `latency` | unit of the column `latency`; `time` is then the completion, and requests arrive this much earlier |
/// | `keep`, `keep2` | values of `filter` and `filter2` of lines with a request; other lines are skipped |
/// | `all` | `read` or `write`: the operation of all requests, if there is no column `op` |
/// | `length` | the length of all requests, in the unit of `size`, if there is no column `size` |
/// | `header` | number of lines to skip at the start (default 0) |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    pub(super) columns: Vec<Column>,
    pub(super) delimiter: Delimiter,
    pub(super) time: Option<TimeUnit>,
    pub(super) offset: u64,
    pub(super) size: u64,
    /// Codes with their operation. `None` for lines that are skipped.
    pub(super) codes: Vec<(String, Option<Operation>)>,
    /// Filter values of lines that are not skipped.
    pub(super) keep: Vec<String>,
    /// Values of the second filter of lines that are not skipped.
    pub(super) keep2: Vec<String>,
    /// Unit of the latency.
    pub(super) latency: Option<TimeUnit>,
    pub(super) all: Option<Operation>,
    pub(super) length: Option<u64>,
    pub(super) header: u64,
}

const KEYS: [&str; 16] = [
    "columns",
    "delimiter",
    "time",
    "offset",
    "size",
    "read",
    "write",
    "trim",
    "flush",
    "skip",
    "keep",
    "keep2",
    "latency",
    "all",
    "length",
    "header",
];

/// Values of the keys.
type Values = BTreeMap<String, Vec<String>>;

impl FromStr for Columns {
    type Err = String;
    fn from_str(text: &str) -> Result<Columns, String> {
        let mut values = Values::new();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| {
                format!("`{part}` has no value; columns are written as key=value;key=value, like columns=time,op,offset,size")
            })?;
            let list = value.split(',').map(|value| value.trim().to_owned()).collect();
            if values.insert(key.trim().to_owned(), list).is_some() {
                return Err(format!("`{}` is given twice", key.trim()));
            }
        }
        Columns::from_values(&values)
    }
}

impl Columns {
    /// Parses a TOML file with the same keys.
    pub fn from_file(path: &Path) -> Result<Columns, String> {
        /// Sufficient for a few keys and names of operations.
        const LONGEST: u64 = 1 << 20;
        let name = path.display();
        let text = read_text(path, LONGEST).map_err(|error| format!("{name}: cannot read the columns: {error}"))?;
        let table: toml::Table = text.parse().map_err(|error| format!("{name}: {error}"))?;
        let mut values = Values::new();
        for (key, value) in table {
            let list = match value {
                toml::Value::Array(items) => items.into_iter().map(scalar).collect(),
                value => scalar(value).map(|text| vec![text]),
            };
            let list =
                list.ok_or_else(|| format!("{name}: `{key}` must be a text, a whole number, or a list of them"))?;
            values.insert(key, list);
        }
        Columns::from_values(&values).map_err(|error| format!("{name}: {error}"))
    }

    fn from_values(values: &Values) -> Result<Columns, String> {
        if let Some(key) = values.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("unknown key `{key}` of columns; choose one of {}", KEYS.join(", ")));
        }
        let one = |key: &str| match values.get(key).map(Vec::as_slice) {
            None => Ok(None),
            Some([value]) => Ok(Some(value.as_str())),
            Some(_) => Err(format!("`{key}` takes one value")),
        };
        let number = |key: &str| match one(key)? {
            None => Ok(None),
            Some(text) => text.parse::<u64>().map(Some).map_err(|_| format!("`{key}` takes a whole number")),
        };
        let columns = Columns {
            columns: columns(values.get("columns").map_or(&[][..], Vec::as_slice))?,
            delimiter: one("delimiter")?.map_or(Ok(Delimiter::Byte(b',')), delimiter)?,
            time: one("time")?.map(str::parse).transpose()?,
            offset: unit("offset", one("offset")?)?,
            size: unit("size", one("size")?)?,
            codes: codes(values)?,
            keep: values.get("keep").cloned().unwrap_or_default(),
            keep2: values.get("keep2").cloned().unwrap_or_default(),
            latency: one("latency")?.map(str::parse).transpose()?,
            all: one("all")?.map(all).transpose()?,
            length: number("length")?,
            header: number("header")?.unwrap_or(0),
        };
        columns.checked()
    }

    /// Checks that the keys are consistent.
    fn checked(self) -> Result<Columns, String> {
        let has = |column| self.columns.contains(&column);
        if !has(Column::Offset) {
            return Err("the columns have no `offset`".to_owned());
        }
        match (has(Column::Operation), self.codes.is_empty(), self.all) {
            (true, true, _) => return Err("`op` needs the codes of its operations, like read=R;write=W".to_owned()),
            (true, false, Some(_)) => return Err("`all` is for traces without a column `op`".to_owned()),
            (false, _, None) => {
                return Err("without a column `op`, all=read or all=write says what requests do".to_owned());
            }
            (false, false, _) => return Err("codes of operations need a column `op`".to_owned()),
            _ => {}
        }
        match (has(Column::Size), self.length) {
            (true, Some(_)) => return Err("`length` is for traces without a column `size`".to_owned()),
            (false, None | Some(0)) => {
                return Err("without a column `size`, length=N (at least 1) says how long requests are".to_owned());
            }
            _ => {}
        }
        match (has(Column::Filter), self.keep.is_empty()) {
            (true, true) => return Err("`filter` needs the values of lines that are requests, like keep=D".to_owned()),
            (false, false) => return Err("`keep` needs a column `filter`".to_owned()),
            _ => {}
        }
        match (has(Column::Filter2), self.keep2.is_empty()) {
            (true, true) => {
                return Err("`filter2` needs the values of lines that are requests, like keep2=D".to_owned());
            }
            (false, false) => return Err("`keep2` needs a column `filter2`".to_owned()),
            _ => {}
        }
        match (has(Column::Latency), self.latency) {
            (true, None) => return Err("`latency` needs a unit, like latency=ms".to_owned()),
            (false, Some(_)) => return Err("a unit of `latency` needs a column `latency`".to_owned()),
            (true, Some(_)) if !has(Column::Time) => return Err("`latency` needs a column `time`".to_owned()),
            _ => {}
        }
        match (has(Column::Time), self.time) {
            (true, None) => Err("`time` needs a unit, like time=us".to_owned()),
            (false, Some(_)) => Err("a unit of `time` needs a column `time`".to_owned()),
            _ => Ok(self),
        }
    }
}

fn scalar(value: toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text),
        toml::Value::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

fn columns(names: &[String]) -> Result<Vec<Column>, String> {
    let names_known = || COLUMNS.map(|(name, _)| name).join(", ");
    if names.is_empty() {
        return Err(format!("the columns are missing: columns=... lists them, of {}", names_known()));
    }
    let mut columns = Vec::new();
    for name in names {
        let column = COLUMNS.iter().find(|(known, _)| known == name).map(|(_, column)| *column);
        let column = column.ok_or_else(|| format!("unknown column `{name}`; choose one of {}", names_known()))?;
        if column != Column::Other && columns.contains(&column) {
            return Err(format!("the column `{name}` is given twice"));
        }
        columns.push(column);
    }
    Ok(columns)
}

fn delimiter(text: &str) -> Result<Delimiter, String> {
    match (text, text.as_bytes()) {
        ("comma", _) => Ok(Delimiter::Byte(b',')),
        ("tab", _) => Ok(Delimiter::Byte(b'\t')),
        ("semicolon", _) => Ok(Delimiter::Byte(b';')),
        ("pipe", _) => Ok(Delimiter::Byte(b'|')),
        ("space", _) => Ok(Delimiter::Blanks),
        (_, [byte]) if !byte.is_ascii_alphanumeric() && byte.is_ascii() => Ok(Delimiter::Byte(*byte)),
        _ => Err(format!("invalid delimiter `{text}`: expected comma, tab, semicolon, pipe, space, or a character")),
    }
}

/// Returns the number of bytes of a unit of offset or size.
fn unit(key: &str, text: Option<&str>) -> Result<u64, String> {
    match text {
        Some("bytes") => Ok(1),
        Some("sectors") => Ok(SECTOR),
        Some("KiB") => Ok(1 << 10),
        Some("MiB") => Ok(1 << 20),
        Some(text) => text.parse().ok().filter(|bytes| *bytes > 0).ok_or_else(|| {
            format!("invalid unit `{text}` of `{key}`: expected bytes, sectors, KiB, MiB, or a number of bytes")
        }),
        None => Err(format!("the unit of `{key}` is missing: {key}=bytes, {key}=sectors, or a number of bytes")),
    }
}

fn codes(values: &Values) -> Result<Vec<(String, Option<Operation>)>, String> {
    let kinds = [
        ("read", Some(Operation::Read)),
        ("write", Some(Operation::Write)),
        ("trim", Some(Operation::Trim)),
        ("flush", Some(Operation::Flush)),
        ("skip", None),
    ];
    let mut codes: Vec<(String, Option<Operation>)> = Vec::new();
    for (key, operation) in kinds {
        for code in values.get(key).map_or(&[][..], Vec::as_slice) {
            if codes.iter().any(|(known, _)| known == code) {
                return Err(format!("the code `{code}` is given for two operations"));
            }
            codes.push((code.clone(), operation));
        }
    }
    Ok(codes)
}

fn all(text: &str) -> Result<Operation, String> {
    match text {
        "read" => Ok(Operation::Read),
        "write" => Ok(Operation::Write),
        _ => Err(format!("`{text}` is nothing that `all` requests do; choose one of read, write")),
    }
}
