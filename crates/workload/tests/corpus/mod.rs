//! Small samples of every trace format, made for these tests: `corpus/trace/FORMAT.*`.

use std::fs;
use std::path::Path;

use floatgate_workload::trace::{Format, TraceOptions};

/// A sample, and the options needed to read it.
pub struct Sample {
    /// Name of its file.
    pub name: String,
    /// Contents.
    pub bytes: Vec<u8>,
    /// Columns or format of samples whose format cannot be detected.
    pub options: TraceOptions,
}

/// Columns of `delimited.txt`.
const COLUMNS: &str = "columns=time,op,offset,size,device;delimiter=semicolon;time=us;offset=bytes;size=sectors;\
                       read=Read;write=Write;header=1";

/// Returns all samples, in order of their names.
pub fn samples() -> Vec<Sample> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/trace");
    let mut samples: Vec<Sample> = fs::read_dir(folder)
        .expect("the folder of samples")
        .map(|entry| {
            let path = entry.expect("a sample").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let mut options = TraceOptions::default();
            match name.split('.').next() {
                Some("delimited") => options.columns = Some(COLUMNS.parse().expect("columns")),
                Some("flashsim") => options.format = Some(Format::named("flashsim").expect("a format")),
                _ => {}
            }
            Sample { bytes: fs::read(path).expect("a sample"), name, options }
        })
        .collect();
    samples.sort_by(|a, b| a.name.cmp(&b.name));
    samples
}
