//! The files of a result: written beside their place, and moved there when all of them are whole.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use floatgate_core::metrics::summary::Summary;
use floatgate_core::sim::time::Time;
use floatgate_core::workload::request::{Completion, Request};
use floatgate_report::html;

/// The result.
pub const SUMMARY: &str = "summary.json";
/// The result as a page.
pub const REPORT: &str = "report.html";
const REQUESTS: &str = "requests.csv";

/// Where a result goes.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Begun before the run, so that a directory that cannot be written to is found out then.
    summary: PathBuf,
}

impl Directory {
    /// Makes the directory where there is none, and sees whether it can be written to.
    pub fn open(path: &Path) -> Result<Directory> {
        fs::create_dir_all(path).with_context(|| format!("cannot make the directory {}", path.display()))?;
        let directory = Directory { path: path.to_owned(), summary: path.join(SUMMARY) };
        Draft::new(&directory.summary)?;
        Ok(directory)
    }

    /// A file for all requests of streams with these names.
    pub fn log(&self, streams: &[String]) -> Result<RequestLog> {
        RequestLog::new(&self.path.join(REQUESTS), streams)
    }

    /// Writes the result, and moves all files to their places.
    pub fn write(&self, summary: &Summary, log: Option<RequestLog>) -> Result<()> {
        let result = Draft::whole(&self.summary, summary.to_json().as_bytes())?;
        let report = Draft::whole(&self.path.join(REPORT), html::report(summary, &[]).as_bytes())?;
        match log {
            Some(log) => {
                let mut requests = log.draft;
                requests.complete()?;
                requests.publish()?;
            }
            // Requests of an earlier run would be taken for those of this one.
            None => remove(&self.path.join(REQUESTS))?,
        }
        report.publish()?;
        result.publish()
    }
}

/// Writes a file: all of it, or nothing.
pub fn write_whole(place: &Path, bytes: &[u8]) -> Result<()> {
    Draft::whole(place, bytes)?.publish()
}

/// Removes a file, if there is one.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// A file in the making, beside its place and with `.partial` behind its name; goes when it is not published.
#[derive(Debug)]
pub struct Draft {
    file: BufWriter<File>,
    place: PathBuf,
    partial: PathBuf,
    published: bool,
}

/// Bytes that are written at once.
const BUFFER: usize = 1 << 18;

impl Draft {
    /// Begins a file; that it can be written to is found out here.
    pub fn new(place: &Path) -> Result<Draft> {
        let mut partial = place.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial).with_context(|| format!("cannot write {}", partial.display()))?;
        let file = BufWriter::with_capacity(BUFFER, file);
        Ok(Draft { file, place: place.to_owned(), partial, published: false })
    }

    /// A file that is complete with these bytes.
    fn whole(place: &Path, bytes: &[u8]) -> Result<Draft> {
        let mut draft = Draft::new(place)?;
        draft.write(bytes)?;
        draft.complete()?;
        Ok(draft)
    }

    /// Where its content goes.
    pub fn writer(&mut self) -> &mut impl Write {
        &mut self.file
    }

    /// Adds to it.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).with_context(|| format!("cannot write {}", self.place.display()))
    }

    /// Brings all of it to the disk.
    pub fn complete(&mut self) -> Result<()> {
        let done = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        done.with_context(|| format!("cannot write {}", self.place.display()))
    }

    /// Puts the file in its place; it must be complete.
    pub fn publish(mut self) -> Result<()> {
        fs::rename(&self.partial, &self.place).with_context(|| format!("cannot write {}", self.place.display()))?;
        self.published = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.published {
            // A failure to tidy up must not hide the failure that led here.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// Every request of a run, a line each, in the order in which they were completed.
#[derive(Debug)]
pub struct RequestLog {
    draft: Draft,
    /// The names of the streams, as they are written.
    streams: Vec<String>,
    line: Vec<u8>,
}

const HEADER: &[u8] = b"stream,operation,lba,sectors,arrival_ns,start_ns,finish_ns,waiting_us,service_us,latency_us\n";

impl RequestLog {
    fn new(place: &Path, streams: &[String]) -> Result<RequestLog> {
        let mut draft = Draft::new(place)?;
        draft.write(HEADER)?;
        Ok(RequestLog { draft, streams: streams.iter().map(|name| quoted(name)).collect(), line: Vec::new() })
    }

    /// Adds a request.
    pub fn write(&mut self, completion: &Completion) -> Result<()> {
        let Completion { request, start, finish, .. } = *completion;
        let Request { stream, operation, lba, sectors, arrival, .. } = request;
        let line = &mut self.line;
        line.clear();
        line.extend_from_slice(self.streams[usize::from(stream)].as_bytes());
        line.push(b',');
        line.extend_from_slice(operation.name().as_bytes());
        for number in [lba, u64::from(sectors)] {
            line.push(b',');
            push_decimal(line, number, 0);
        }
        for time in [arrival, start, finish] {
            line.push(b',');
            push_decimal(line, time.ps(), PS_IN_NS);
        }
        let spans: [Time; 3] = [start.since(arrival), finish.since(start), finish.since(arrival)];
        for span in spans {
            line.push(b',');
            push_decimal(line, span.ps(), PS_IN_US);
        }
        line.push(b'\n');
        self.draft.write(&self.line)
    }
}

/// Digits behind the point that hold picoseconds exactly, in nanoseconds and in microseconds.
const PS_IN_NS: usize = 3;
const PS_IN_US: usize = 6;

/// Writes `value` / 10^`digits`. By hand, since there are ten of them for each request.
fn push_decimal(line: &mut Vec<u8>, value: u64, digits: usize) {
    // 20 digits of a u64, and the point.
    let mut text = [b'0'; 21];
    let mut at = text.len();
    let mut rest = value;
    let mut written = 0;
    while rest > 0 || written <= digits {
        if written == digits && digits > 0 {
            at -= 1;
            text[at] = b'.';
        }
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        written += 1;
    }
    line.extend_from_slice(&text[at..]);
}

/// A field of a CSV file.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        let decimal = |value, digits| {
            let mut line = Vec::new();
            push_decimal(&mut line, value, digits);
            String::from_utf8(line).unwrap()
        };
        assert_eq!(decimal(0, 0), "0");
        assert_eq!(decimal(0, 3), "0.000");
        assert_eq!(decimal(7, 3), "0.007");
        assert_eq!(decimal(12_345, 3), "12.345");
        assert_eq!(decimal(u64::MAX, 0), "18446744073709551615");
        assert_eq!(decimal(u64::MAX, 6), "18446744073709.551615");
    }

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(quoted("job1"), "job1");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }

    #[test]
    fn what_is_not_published_goes() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("file");
        let mut draft = Draft::new(&place).unwrap();
        draft.write(b"half").unwrap();
        drop(draft);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let mut draft = Draft::new(&place).unwrap();
        draft.write(b"whole").unwrap();
        draft.complete().unwrap();
        assert!(!place.exists());
        draft.publish().unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"whole");
    }
}
