//! Traces in `key=value` syntax: `trace=PATH offset=10GiB start=5s name=db`. Allows several traces to run on one
//! device, each with its own options.

use std::path::PathBuf;

use super::Trace;
use super::options::{FormatChoice, TraceOptions};
use crate::placed::{Place, Placed};
use crate::quantity;
use crate::quantity::readable;
use crate::sim::request::SECTOR;
use crate::sim::source::SourceError;
use crate::sim::time::Time;

/// A trace with its options, its position on the device, and its start.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceWords {
    /// Path of the file.
    pub path: PathBuf,
    /// Options for reading and replaying.
    pub options: TraceOptions,
    /// Offset on the device, unparsed.
    pub offset: Option<String>,
    /// Size of the part of the device that the trace may use, unparsed. `None` for everything after the offset.
    pub size: Option<String>,
    /// Start time.
    pub start: Time,
    /// Name of the stream.
    pub name: Option<String>,
}

/// Keys, in the order of the reference.
const KEYS: [&str; 16] = [
    "trace",
    "offset",
    "size",
    "start",
    "name",
    "format",
    "action",
    "time_unit",
    "time_scale",
    "max_gap",
    "replay",
    "fit",
    "devices",
    "limit",
    "sort_window",
    "skip_bad_lines",
];

/// Returns `true` if `text` is a trace in this syntax: its first word starts with `trace=`.
pub fn are_words(text: &str) -> bool {
    text.trim_start().starts_with("trace=")
}

impl TraceWords {
    /// Creates the options for a trace at a path, without further keys.
    pub fn plain(path: impl Into<PathBuf>, options: &TraceOptions) -> TraceWords {
        let path = path.into();
        TraceWords { path, options: options.clone(), offset: None, size: None, start: Time::ZERO, name: None }
    }

    /// Parses the keys. Options without a key are taken from `defaults`. A value with blanks is enclosed in double
    /// quotes: `trace="my trace.csv"`.
    pub fn read(text: &str, defaults: &TraceOptions) -> Result<TraceWords, SourceError> {
        let mut words = TraceWords::plain("", defaults);
        let mut seen: Vec<&str> = Vec::new();
        for (key, value) in split(text).map_err(SourceError)? {
            let error = |what: String| SourceError(format!("`{key}={value}`: {what}"));
            let known = KEYS.iter().find(|known| **known == key);
            let known = known.ok_or_else(|| SourceError(unknown(&key)))?;
            if seen.contains(known) {
                return Err(error(format!("`{key}` is given twice; leave one out")));
            }
            seen.push(known);
            if value.is_empty() {
                return Err(error(format!("`{key}` needs a value")));
            }
            words.set(known, &value).map_err(error)?;
        }
        Ok(words)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let whole = || value.parse::<u64>().map_err(|_| "must be a whole number".to_owned());
        let options = &mut self.options;
        match key {
            "trace" => self.path = PathBuf::from(value),
            "offset" => self.offset = Some(value.to_owned()),
            "size" => self.size = Some(value.to_owned()),
            "start" => self.start = Time(quantity::time(value)?),
            "name" => self.name = Some(value.to_owned()),
            "format" => {
                let FormatChoice { format, columns } = value.parse()?;
                (options.format, options.columns) = (Some(format), columns);
            }
            "action" => options.action = Some(value.parse()?),
            "time_unit" => options.time_unit = Some(value.parse()?),
            "time_scale" => options.time_scale = value.parse()?,
            "max_gap" => options.max_gap = Some(max_gap(value)?),
            "replay" => options.replay = value.parse()?,
            "fit" => options.fit = value.parse()?,
            "devices" => options.devices = value.parse()?,
            "limit" => {
                options.limit =
                    Some(whole().and_then(|n| if n > 0 { Ok(n) } else { Err("must be at least 1".into()) })?)
            }
            "sort_window" => {
                options.sort_window = u32::try_from(whole()?).map_err(|_| "must be below 2^32".to_owned())?;
            }
            _ => options.skip_bad_lines = whole()?,
        }
        Ok(())
    }

    /// Returns the name of the file without extensions: `fin1` for `dir/fin1.csv.xz`.
    pub fn stem(&self) -> String {
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or("trace");
        stem.to_owned()
    }

    /// Opens the trace for a device of `device_sectors`. `name` overrides the name of the stream.
    pub fn open(&self, device_sectors: u64, name: Option<&str>) -> Result<Placed, SourceError> {
        let (offset, space) = self.space(device_sectors).map_err(SourceError)?;
        let text = (space < device_sectors).then(|| {
            let [space, offset] = [space, offset].map(|sectors| readable(u128::from(sectors) * u128::from(SECTOR)));
            format!("the trace was given {space} of the device, from {offset} on")
        });
        let trace =
            Trace::open(&self.path, &self.options, space).map_err(|error| Placed::explain(text.as_deref(), error))?;
        let place = Place { offset, start: self.start, name: name.map(str::to_owned), space: text };
        Ok(Placed::new(Box::new(trace), place))
    }

    /// Returns the first sector and the number of sectors of the part of the device that the trace may use.
    fn space(&self, device_sectors: u64) -> Result<(u64, u64), String> {
        let read = |key: &str, text: &Option<String>| {
            text.as_deref()
                .map(|text| quantity::sectors(text, device_sectors).map_err(|why| format!("`{key}={text}`: {why}")))
                .transpose()
        };
        let size = |sectors: u64| readable(u128::from(sectors) * u128::from(SECTOR));
        let offset = read("offset", &self.offset)?.unwrap_or(0);
        if offset >= device_sectors {
            let device = size(device_sectors);
            return Err(format!("an offset of {} leaves nothing of the device of {device}", size(offset)));
        }
        let left = device_sectors - offset;
        match read("size", &self.size)? {
            Some(0) => Err("a size of 0 leaves nothing of the device".to_owned()),
            Some(requested) if requested > left => Err(format!(
                "a size of {} is more than the device has behind the offset, {}",
                size(requested),
                size(left)
            )),
            requested => Ok((offset, requested.unwrap_or(left))),
        }
    }
}

/// Parses the value of `--max-gap`.
pub fn max_gap(text: &str) -> Result<Time, String> {
    match Time(quantity::time(text)?) {
        Time::ZERO => Err("must be longer than 0; to replay without gaps, use `--replay asap`".to_owned()),
        most => Ok(most),
    }
}

/// Returns the keys and values of a text.
pub(crate) fn split(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        let Some(after) = after.strip_prefix('=') else {
            return Err(format!(
                "`{key}` needs a value: write {key}=...; put a path with blanks in double quotes: trace=\"a b\""
            ));
        };
        let (value, behind) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or_else(|| format!("the quote of `{key}=` is not closed"))?,
            None => after.split_at(after.find(char::is_whitespace).unwrap_or(after.len())),
        };
        words.push((key.to_owned(), value.to_owned()));
        rest = behind.trim_start();
    }
    Ok(words)
}

fn unknown(key: &str) -> String {
    let near = KEYS
        .iter()
        .filter(|_| key.len() <= 32)
        .map(|known| (strsim::damerau_levenshtein(key, known), known))
        .min()
        .filter(|(distance, known)| *distance <= known.len() / 2)
        .map_or(".".to_owned(), |(_, known)| format!("; did you mean `{known}`?"));
    format!("unknown word `{key}` for a trace{near} The words are: {}", KEYS.join(", "))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::options::{Devices, Fit, Replay};
    use super::super::time_unit::TimeUnit;
    use super::*;
    use crate::sim::source::Source;

    #[test]
    fn words_override_the_defaults() {
        let defaults = TraceOptions { limit: Some(7), fit: Fit::Wrap, ..TraceOptions::default() };
        let text = "trace=\"a b.csv.xz\" offset=10GiB start=5s format=msr time_scale=0.5 max_gap=2s name=db devices=merge \
                    replay=depth=4 time_unit=ms sort_window=3 skip_bad_lines=2 size=50%";
        let words = TraceWords::read(text, &defaults).unwrap();
        assert_eq!((words.path.to_str(), words.stem().as_str()), (Some("a b.csv.xz"), "a b"));
        assert_eq!((words.start, words.name.as_deref()), (Time(5_000_000_000_000), Some("db")));
        let options = &words.options;
        assert_eq!((options.limit, options.fit, options.devices.clone()), (Some(7), Fit::Wrap, Devices::Merge));
        assert_eq!((options.replay, options.time_unit), (Replay::Depth(4), Some(TimeUnit::Ms)));
        assert_eq!(options.max_gap, Some(Time(2_000_000_000_000)));
        assert_eq!((options.sort_window, options.skip_bad_lines), (3, 2));
        assert_eq!(words.space(100 << 21), Ok((10 << 21, 50 << 21)));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| TraceWords::read(text, &TraceOptions::default()).unwrap_err().0;
        assert!(error("trace=a ofset=3").contains("did you mean `offset`"));
        assert!(error("trace=a trace=b").contains("given twice"));
        assert!(error("trace=a b").contains("double quotes"));
        assert!(error("trace=\"a").contains("not closed"));
        assert!(error("trace=a start=soon").contains("`start=soon`: invalid time `soon`"));
        assert!(error("trace=a format=xyz").contains("unknown trace format"));
        assert!(error("trace=a limit=0").contains("at least 1"));
        assert!(error("trace=a max_gap=0s").contains("--replay asap"));
        assert!(error("trace=").contains("needs a value"));
        let space = |text: &str| TraceWords::read(text, &TraceOptions::default()).unwrap().space(1 << 21).unwrap_err();
        assert!(space("trace=a offset=1GiB").contains("leaves nothing of the device of 1 GiB"));
        assert!(space("trace=a offset=512MiB size=600MiB").contains("behind the offset, 512 MiB"));
        assert!(space("trace=a offset=100").contains("multiple of the sector size"));
        let odd = |text: &str| TraceWords::read(text, &TraceOptions::default()).unwrap().space((3 << 20) + 8);
        assert!(odd("trace=a offset=100%").unwrap_err().contains("leaves nothing of the device"));
        assert_eq!(odd("trace=a size=100%"), Ok((0, (3 << 20) + 8)));
    }

    #[test]
    fn a_trace_fits_into_its_part_of_the_device() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"0,0,4096,R,1.0\n0,2048,4096,W,1.5\n0,5000,4096,R,2.0\n").unwrap();
        let words = |more: &str| {
            let text = format!("trace={} devices=merge offset=2MiB size=1MiB {more}", file.path().display());
            TraceWords::read(&text, &TraceOptions::default()).unwrap()
        };
        let mut wrapped = words("fit=wrap start=1").open(1 << 20, Some("db")).unwrap();
        let found: Vec<_> =
            std::iter::from_fn(|| wrapped.next_request().unwrap()).map(|r| (r.arrival, r.lba)).collect();
        let s = 1_000_000_000_000;
        assert_eq!(found, [(Time(s), 4096), (Time(s + s / 2), 4096), (Time(2 * s), 4096 + 5000 - 4096)]);
        let mut refused = words("").open(1 << 20, None).unwrap();
        assert!(refused.next_request().is_ok());
        let error = refused.next_request().unwrap_err().0;
        assert!(error.contains("line 2") && error.contains("given 1 MiB of the device, from 2 MiB on"), "{error}");
    }
}
