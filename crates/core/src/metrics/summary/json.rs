//! Results as text: written for files and people, and read again.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use super::{SCHEMA, Summary};

/// Why a text is not a result that can be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no JSON.
    #[error("it is no JSON: {0}")]
    Json(serde_json::Error),
    /// It does not say that it is a result.
    #[error("it is no result of Floatgate: it has no `schema`")]
    NoResult,
    /// It has a form that this version does not know.
    #[error(
        "its form is `{schema}`, written by version {version}; this is version {VERSION}, which reads `{SCHEMA}`: run it \
         again with this one, or use version {version}"
    )]
    Schema {
        /// What it says.
        schema: String,
        /// The version that wrote it, as it says.
        version: String,
    },
    /// It has the right form by name, and something is missing in it or is not as it should be.
    #[error("{what}; it was written by version {version}, this is version {VERSION}: run it again with this one")]
    Content {
        /// What is missing or wrong.
        what: serde_json::Error,
        /// The version that wrote it, as it says.
        version: String,
    },
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Largest file of a result that is read. With thousands of streams it has tens of megabytes.
pub const LARGEST: u64 = 256 << 20;

impl Summary {
    /// The result as JSON, for files and for people: indented, lists of numbers on one line, with a line feed at the
    /// end.
    pub fn to_json(&self) -> String {
        let mut text = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut text, Lines::default());
        let written = self.serialize(&mut serializer).map_err(|error| error.to_string());
        let text = written.and_then(|()| String::from_utf8(text).map_err(|error| error.to_string()));
        text.unwrap_or_else(|error| unreachable!("a tree of strings and numbers: {error}")) + "\n"
    }

    /// Reads a result that [`to_json`](Self::to_json) wrote. Keys that this version does not know are passed over; one
    /// that it needs and does not find is an error.
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

/// Objects over several lines, lists on one.
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
