//! JSON of summaries: written for files and people, and read back.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use super::{SCHEMA, Summary};

/// Reason why a text cannot be read as a summary.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The text is not JSON.
    #[error("not JSON: {0}")]
    Json(serde_json::Error),
    /// The text is not a summary: it has no `schema`.
    #[error("not a result of Floatgate: it has no `schema`")]
    NoResult,
    /// This version does not know the format.
    #[error(
        "unsupported format `{schema}`, written by version {version}; this is version {VERSION}, which reads \
         `{SCHEMA}`: run it again with this version, or use version {version}"
    )]
    Schema {
        /// Format that the text names.
        schema: String,
        /// Version that wrote the text, as the text says.
        version: String,
    },
    /// A field is missing or has an invalid value.
    #[error("{what}; it was written by version {version}, this is version {VERSION}: run it again with this version")]
    Content {
        /// Error with the field.
        what: serde_json::Error,
        /// Version that wrote the text, as the text says.
        version: String,
    },
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Summary {
    /// Maximum size in bytes of a result file that is read. With thousands of streams, a file has tens of megabytes.
    pub const LARGEST: u64 = 256 << 20;

    /// Returns the result as JSON for files and people: indented, with lists of numbers on one line and a line feed at
    /// the end.
    pub fn to_json(&self) -> String {
        let mut text = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut text, Lines::default());
        let written = self.serialize(&mut serializer).map_err(|error| error.to_string());
        let text = written.and_then(|()| String::from_utf8(text).map_err(|error| error.to_string()));
        text.unwrap_or_else(|error| unreachable!("a tree of strings and numbers: {error}")) + "\n"
    }

    /// Reads a result that [`to_json`](Self::to_json) wrote. Unknown keys are ignored. A missing key is an error,
    /// unless it has a default.
    pub fn from_json(text: &str) -> Result<Summary, ReadError> {
        let json: Value = serde_json::from_str(text).map_err(ReadError::Json)?;
        let schema = json["schema"].as_str().ok_or(ReadError::NoResult)?;
        let version = json["version"].as_str().unwrap_or("?").to_owned();
        if schema != SCHEMA {
            return Err(ReadError::Schema { schema: schema.to_owned(), version });
        }
        serde_json::from_value(json).map_err(|what| ReadError::Content { what, version })
    }
}

/// JSON format with objects on several lines, and lists on one.
#[derive(Default)]
struct Lines<'a>(PrettyFormatter<'a>);

impl Formatter for Lines<'_> {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}
