//! Timeline of a served device: the newest part of it, in a ring of segments.
//!
//! The segments are files in a folder next to the timeline, with a file for its start and one for its end. Segments
//! consist of whole compressed members, so that the files in order of their names are a timeline at any time, also if
//! the server is killed. When the server ends, they are joined.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use floatgate_array::AnySsd;
use floatgate_array::config::ArrayConfig;
use floatgate_core::device_file::DeviceConfig;
use floatgate_core::sim::time::Time;
use floatgate_report::timeline::TimelineWriter;
use floatgate_run::output::{Draft, Wait};
use floatgate_serve::timeline::{Batch, Sink, Timeline};

use crate::failure::Failure;

/// Number of segments. The oldest one is removed when all of them are larger than the limit.
const SEGMENTS: u64 = 16;

/// Smallest limit: a segment holds some requests.
const MIN_LIMIT: u64 = 1 << 20;

/// Number of phases after which the size of a member is checked.
const CHUNK: usize = 128;

/// Size before compression at which a member ends.
const MEMBER: u64 = 1 << 20;

/// A file of the ring.
struct Segment {
    path: PathBuf,
    /// Start of the part of the timeline that it holds.
    from: Time,
    /// Size before compression.
    bytes: u64,
}

/// A timeline that is being written.
struct Ring {
    config: DeviceConfig,
    luns: Vec<u32>,
    place: PathBuf,
    folder: PathBuf,
    writer: TimelineWriter<Vec<u8>>,
    /// Segments, the oldest first. The last one is being written.
    segments: VecDeque<Segment>,
    file: File,
    number: u64,
    limit: u64,
    /// Latest time in the timeline.
    latest: Time,
}

/// Returns the folder of the segments.
fn folder_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".parts");
    PathBuf::from(name)
}

/// Refuses a timeline whose files exist, because it would replace an earlier one, possibly that of a killed server.
pub fn check(path: &Path, limit: u64, array: Option<&ArrayConfig>) -> Result<(), Failure> {
    let found = [path.to_owned(), folder_of(path)].into_iter().find(|path| path.exists());
    if let Some(found) = found {
        let (path, found) = (path.display(), found.display());
        return Err(Failure::mistake(format!(
            "--timeline {path}: it would replace {found}; remove or rename {found}, or give another name"
        )));
    }
    if limit < MIN_LIMIT {
        return Err(Failure::mistake(format!("--timeline-limit: {limit} bytes is too small; give at least 1MiB")));
    }
    if array.is_none_or(ArrayConfig::is_uniform) {
        Ok(())
    } else {
        Err(Failure::mistake(
            "--timeline is not supported for an array whose members have different geometries; serve one of them alone",
        ))
    }
}

/// Starts a timeline of a device.
pub fn begin(path: &Path, limit: u64, device: &AnySsd) -> Result<Timeline, Failure> {
    let reported = |error: io::Error| Failure::fault(format!("--timeline {}: {error}", path.display()));
    let ring = Ring::new(path, limit, device).map_err(reported)?;
    Timeline::begin(Box::new(ring)).map_err(reported)
}

/// Returns the start of a timeline, compressed.
fn head(config: &DeviceConfig, luns: &[u32], from: Time) -> io::Result<Vec<u8>> {
    let mut writer = TimelineWriter::new(Vec::new(), config, luns.to_owned(), &[], (from, Time::NEVER), u64::MAX)?;
    Ok(writer.take_member()?.0)
}

/// Returns the end of a timeline, compressed.
fn end(config: &DeviceConfig, luns: &[u32]) -> io::Result<Vec<u8>> {
    let span = (Time::ZERO, Time::NEVER);
    let mut writer = TimelineWriter::new(Vec::new(), config, luns.to_owned(), &[], span, u64::MAX)?;
    writer.take_member()?;
    writer.finish(None)
}

impl Ring {
    fn new(path: &Path, limit: u64, device: &AnySsd) -> io::Result<Ring> {
        let (config, luns, folder) = (device.config().clone(), device.luns(), folder_of(path));
        fs::create_dir(&folder)?;
        fs::write(folder.join("00000000.gz"), head(&config, &luns, device.now())?)?;
        let mut writer =
            TimelineWriter::new(Vec::new(), &config, luns.clone(), &[], (Time::ZERO, Time::NEVER), u64::MAX)?;
        writer.take_member()?;
        fs::write(folder.join("end.gz"), end(&config, &luns)?)?;
        let (first, file) = Ring::segment(&folder, 1, device.now())?;
        let segments = VecDeque::from([first]);
        let latest = device.now();
        let place = path.to_owned();
        Ok(Ring { config, luns, place, folder, writer, segments, file, number: 1, limit, latest })
    }

    /// Creates a segment.
    fn segment(folder: &Path, number: u64, from: Time) -> io::Result<(Segment, File)> {
        let path = folder.join(format!("{number:08}.gz"));
        let file = OpenOptions::new().append(true).create_new(true).open(&path)?;
        Ok((Segment { path, from, bytes: 0 }, file))
    }

    /// Writes the pending member if it is large enough.
    fn end_full_member(&mut self) -> io::Result<()> {
        if self.writer.pending() >= MEMBER.min(self.limit / SEGMENTS) { self.end_member() } else { Ok(()) }
    }

    /// Writes the pending member. Starts a new segment if the current one is full, and removes the oldest ones.
    fn end_member(&mut self) -> io::Result<()> {
        if self.writer.pending() == 0 {
            return Ok(());
        }
        let (member, bytes) = self.writer.take_member()?;
        self.file.write_all(&member)?;
        let Some(current) = self.segments.back_mut() else { return Ok(()) };
        current.bytes += bytes;
        if current.bytes < self.limit / SEGMENTS {
            return Ok(());
        }
        self.number += 1;
        let (segment, file) = Ring::segment(&self.folder, self.number, self.latest)?;
        self.segments.push_back(segment);
        self.file = file;
        // The segment with the names of the tracks may be removed.
        self.writer.describe_tracks()?;
        while self.segments.iter().map(|segment| segment.bytes).sum::<u64>() > self.limit {
            let Some(oldest) = self.segments.pop_front() else { break };
            fs::remove_file(&oldest.path)?;
        }
        Ok(())
    }
}

impl Sink for Ring {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        batch.streams.iter().for_each(|name| self.writer.add_stream(name));
        for instant in batch.instants() {
            for slices in instant.slices.chunks(CHUNK) {
                self.writer.slices(slices)?;
                self.latest = slices.iter().map(|slice| slice.start).fold(self.latest, Time::max);
                self.end_full_member()?;
            }
            self.writer.works(instant.works)?;
            for (completion, breakdown) in instant.completions {
                self.writer.completed(completion, breakdown.as_ref())?;
                self.latest = self.latest.max(completion.finish);
            }
            self.end_full_member()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.end_member()
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.writer.describe_tracks()?;
        self.end_member()?;
        let Ring { config, luns, place, folder, segments, .. } = *self;
        let from = segments.front().map_or(Time::ZERO, |oldest| oldest.from);
        let reported = |error: anyhow::Error| io::Error::other(format!("{error:#}"));
        let mut draft = Draft::new(&place, &Wait::default()).map_err(reported)?;
        draft.write(&head(&config, &luns, from)?).map_err(reported)?;
        for segment in &segments {
            io::copy(&mut File::open(&segment.path)?, draft.writer())?;
        }
        draft.write(&end(&config, &luns)?).map_err(reported)?;
        draft.complete().map_err(reported)?;
        draft.publish().map_err(reported)?;
        fs::remove_dir_all(folder)
    }
}

/// Returns a note about the parts of a timeline that was not completed.
pub fn not_whole(path: &Path, error: &str) -> String {
    let folder = folder_of(path);
    format!("the timeline is incomplete: {error}; its parts are in {}, see docs/live-dashboard.md", folder.display())
}
