//! Detail files of a run: every request, series of windows, and the timeline.

use std::io;

use anyhow::{Context, Error, Result};
use floatgate_array::AnySsd;
use floatgate_core::device_file::{DeviceConfig, Duration};
use floatgate_core::results::{Breakdown, Sample, Series, Width};
use floatgate_core::sim::request::Completion;
use floatgate_core::sim::time::Time;
use floatgate_core::timeline::{CoreWork, Probe, Slice};
use floatgate_report::columns::Origin;
use floatgate_report::columns::requests::{CsvRequests, ParquetRequests};
use floatgate_report::columns::series::{Row, SeriesWriter};
use floatgate_report::number::grouped;
use floatgate_report::timeline::{SIZE_LIMIT, TimelineWriter};

use crate::frontend::Observer;
use crate::output::{Directory, Draft, TIMELINE};
use crate::span::Span;
use crate::spec::{DetailSpec, Extent, RequestFormat};

/// Rounds up to the next number that is 1, 2 or 5 times a power of ten.
fn round(min: u64) -> u64 {
    let rounds = (0..20).flat_map(|zeros| [1, 2, 5].map(|digit| 10_u64.checked_pow(zeros)?.checked_mul(digit)));
    rounds.flatten().find(|round| *round >= min).unwrap_or(min)
}

/// Writer of the requests of a run, in one of two formats.
enum Requests {
    Parquet(Box<ParquetRequests<Draft>>),
    Csv(Box<CsvRequests<Draft>>),
}

/// Windows of a run, and their writer.
struct Windows {
    series: Series,
    writer: SeriesWriter<Draft>,
    config: DeviceConfig,
}

impl Windows {
    /// Writes the windows that are closed.
    fn write(&mut self) -> io::Result<()> {
        self.series.take_closed().iter().try_for_each(|window| self.writer.write(Row::new(window, &self.config)))
    }
}

/// Detail files that are being written.
#[derive(Default)]
pub struct Detail {
    requests: Option<Requests>,
    windows: Option<Windows>,
    timeline: Option<TimelineWriter<Draft>>,
    span: Option<Span>,
}

impl Detail {
    /// Creates the requested files.
    pub fn open(
        directory: Option<&Directory>,
        spec: &DetailSpec,
        device: &AnySsd,
        streams: &[String],
        origin: &Origin,
    ) -> Result<Detail> {
        let Some(directory) = directory else { return Ok(Detail::default()) };
        let config = device.config();
        let planes = device.luns();
        let requests = match spec.requests {
            None => None,
            Some(RequestFormat::Parquet) => {
                let draft = directory.draft("requests.parquet")?;
                let requests =
                    ParquetRequests::new(draft, directory.path(), streams, origin).context("cannot write")?;
                Some(Requests::Parquet(Box::new(requests)))
            }
            Some(RequestFormat::Csv) => {
                let draft = directory.draft("requests.csv")?;
                Some(Requests::Csv(Box::new(CsvRequests::new(draft, streams).context("cannot write")?)))
            }
        };
        let width = spec.series.unwrap_or_default().width().map_err(Error::msg)?;
        let draft = directory.draft("series.parquet")?;
        let writer = SeriesWriter::new(draft, directory.path(), origin).context("cannot write")?;
        let windows = Some(Windows { series: Series::new(width), writer, config: config.clone() });
        let mut timeline = None;
        let mut span = None;
        if let Some(extent) = spec.timeline {
            let (limit, Span { from, to }) = match extent {
                Extent::Limited => (SIZE_LIMIT, Span::WHOLE),
                Extent::Within(span) => (u64::MAX, span),
            };
            let draft = directory.draft(TIMELINE)?;
            let writer = TimelineWriter::new(draft, config, planes, streams, (from, to), limit);
            timeline = Some(writer.context("cannot write")?);
            span = Some(Span { from, to });
        }
        Ok(Detail { requests, windows, timeline, span })
    }

    fn full_timeline(&self) -> Option<String> {
        let full_at = self.timeline.as_ref()?.full_at()?;
        let mib = SIZE_LIMIT >> 20;
        let ms = full_at.as_s() * 1e3;
        Some(format!(
            "timeline.pftrace.gz ends at {ms:.3} ms of simulated time, where it reached its limit of {mib} MiB; to get \
             another part of the run, give its span, such as --timeline={:.0}ms..{:.0}ms",
            ms.floor(),
            ms.floor() + 10.0
        ))
    }

    /// Completes the files of the run with this digest.
    pub fn finish(self, run: &str) -> Result<Vec<Draft>> {
        let run = Some(run);
        let requests = self.requests.map(|requests| match requests {
            Requests::Parquet(requests) => requests.finish(run),
            Requests::Csv(requests) => requests.finish(),
        });
        let series = self.windows.map(|windows| windows.writer.finish(run));
        let timeline = self.timeline.map(|timeline| timeline.finish(run));
        let drafts: io::Result<Vec<Draft>> = [requests, series, timeline].into_iter().flatten().collect();
        drafts.context("cannot write")
    }
}

/// Returns a warning if the limit of windows of fixed length was reached before the end of the run.
pub fn windows_warning(series: &Series, elapsed: Time) -> Option<String> {
    let full_at = series.full_at()?;
    let ms = full_at.as_s() * 1e3;
    let width = Duration(round(elapsed.ps().div_ceil(Width::MAX_FIXED)));
    Some(format!(
        "series.parquet ends at {ms:.6} ms of simulated time, where it reached its limit of {} windows; for the whole \
         run, use longer windows, such as --series={width}, or --series without a length",
        grouped(Width::MAX_FIXED)
    ))
}

impl Observer for Detail {
    fn probe(&self) -> Option<Probe> {
        self.span.map(|span| Probe::new(span.from, span.to).with_waits())
    }

    fn warnings(&self, elapsed: Time) -> Vec<String> {
        let windows = self.windows.iter().filter_map(|windows| windows_warning(&windows.series, elapsed));
        windows.chain(self.full_timeline()).collect()
    }

    fn completed(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) -> io::Result<()> {
        match &mut self.requests {
            Some(Requests::Parquet(requests)) => requests.write(completion, breakdown)?,
            Some(Requests::Csv(requests)) => requests.write(completion, breakdown)?,
            None => {}
        }
        if let Some(windows) = &mut self.windows {
            windows.series.completed(completion, breakdown);
        }
        match &mut self.timeline {
            Some(timeline) => timeline.completed(completion, breakdown),
            None => Ok(()),
        }
    }

    fn next_sample(&self) -> Time {
        self.windows.as_ref().map_or(Time::NEVER, |windows| windows.series.next_sample())
    }

    fn record(&mut self, sample: &Sample) -> io::Result<()> {
        let Some(windows) = &mut self.windows else { return Ok(()) };
        windows.series.record(sample);
        if windows.series.is_streamed() { windows.write() } else { Ok(()) }
    }

    fn record_last(&mut self, sample: &Sample) -> io::Result<()> {
        let Some(windows) = &mut self.windows else { return Ok(()) };
        windows.series.record_last(sample);
        windows.write()
    }

    fn wants_slices(&self) -> bool {
        self.timeline.is_some()
    }

    fn slices(&mut self, slices: &[Slice]) -> io::Result<()> {
        self.timeline.as_mut().map_or(Ok(()), |timeline| timeline.slices(slices))
    }

    fn works(&mut self, works: &[CoreWork]) -> io::Result<()> {
        self.timeline.as_mut().map_or(Ok(()), |timeline| timeline.works(works))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposed_widths_are_round_numbers() {
        assert_eq!([0, 1, 3, 5, 6, 11, 500, 501].map(round), [1, 1, 5, 5, 10, 20, 500, 1000]);
        assert_eq!(round(u64::MAX), u64::MAX);
    }
}
