//! Header of an image: file type, version and device.

use floatgate_core::config::{DeviceConfig, Shape, from_toml};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::ImageError;
use super::layout::{GRAIN, ROOM, VERSION};

/// Magic bytes at the start of the file.
pub const MAGIC: [u8; 8] = *b"FGIMAGE\n";

/// Bytes before the text of the header: magic, version, length.
const FIXED: usize = 16;

/// Description of an image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Version of Floatgate that created the image.
    pub floatgate: String,
    /// Name of the device.
    pub device: String,
    /// Digest of the options that determine the contents of flash.
    pub media_digest: String,
    /// Device file, with all defaults filled in.
    pub config: String,
}

impl Header {
    /// Creates the header of a new image.
    pub fn of(config: &DeviceConfig) -> Result<Header, ImageError> {
        let text = toml::to_string(&config.resolved()).map_err(|error| ImageError::Damaged(error.to_string()))?;
        Ok(Header {
            floatgate: env!("CARGO_PKG_VERSION").to_owned(),
            device: config.name.clone(),
            media_digest: digest(config),
            config: text,
        })
    }

    /// Returns the header in the file's format.
    pub fn bytes(&self) -> Result<Vec<u8>, ImageError> {
        let text = serde_json::to_string(self).map_err(|error| ImageError::Damaged(error.to_string()))?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        if bytes.len() as u64 > ROOM - GRAIN {
            return Err(ImageError::Damaged("the device file is too long for its header".to_owned()));
        }
        Ok(bytes)
    }

    /// Parses the start of a file. `bytes` holds at most [`ROOM`] bytes.
    pub fn parse(bytes: &[u8]) -> Result<Header, ImageError> {
        let ends = || ImageError::Damaged("the file ends within its header".to_owned());
        if !bytes.starts_with(&MAGIC) {
            return Err(ImageError::NoImage);
        }
        let number = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let version = number(8).ok_or_else(ends)?;
        if version != VERSION {
            return Err(ImageError::Version(version));
        }
        let end = FIXED.saturating_add(number(12).ok_or_else(ends)? as usize);
        let reported =
            bytes.get(end..end.saturating_add(8)).and_then(|reported| reported.try_into().ok()).ok_or_else(ends)?;
        if u64::from_le_bytes(reported) != xxh3_64(&bytes[..end]) {
            return Err(ImageError::Damaged("wrong digest of the header".to_owned()));
        }
        serde_json::from_slice(&bytes[FIXED..end])
            .map_err(|error| ImageError::Damaged(format!("invalid JSON in the header: {error}")))
    }

    /// Checks that a device can use the image: the options that determine the contents of flash must be the same.
    pub fn check(&self, config: &DeviceConfig) -> Result<(), ImageError> {
        if self.media_digest == digest(config) {
            return Ok(());
        }
        let made = from_toml(&self.config, "the device in the image", &[])
            .map_err(|error| ImageError::Damaged(format!("invalid device in the header: {error}")))?;
        let differences = media(&made).differences(&media(config));
        match differences.is_empty() {
            false => Err(ImageError::Differs(differences)),
            true => Err(ImageError::Damaged("the digest in the header does not match the device".to_owned())),
        }
    }
}

/// Returns the options that determine the contents of flash. Policies are not among them, so they may change.
fn media(config: &DeviceConfig) -> Shape {
    Shape { policy: Value::Null, ..config.shape() }
}

fn digest(config: &DeviceConfig) -> String {
    let [media, _] = config.shape().digests();
    media
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::config::load;

    fn tiny(overrides: &[&str]) -> DeviceConfig {
        load("tiny", &overrides.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn headers_round_trip() {
        let header = Header::of(&tiny(&[])).unwrap();
        let mut bytes = header.bytes().unwrap();
        assert_eq!(Header::parse(&bytes).unwrap(), header);
        bytes.resize(bytes.len() + 1000, 0);
        assert_eq!(Header::parse(&bytes).unwrap(), header);
        header.check(&tiny(&["name=other", "nand.read=10us", "host.queue_depth=3", "gc.victim=fifo"])).unwrap();
    }

    #[test]
    fn another_device_is_refused_with_the_differences() {
        let header = Header::of(&tiny(&[])).unwrap();
        for (option, path) in [
            ("geometry.blocks=70", "geometry.blocks"),
            ("geometry.channels=4", "geometry.channels"),
            ("capacity={ spare = 0.3 }", "capacity.logical"),
            ("geometry.mapping_unit=2KiB", "geometry.mapping_unit"),
        ] {
            let Err(ImageError::Differs(differences)) = header.check(&tiny(&[option])) else { panic!("{option}") };
            assert!(differences.iter().any(|difference| difference.path == path), "{option}: {differences:?}");
        }
    }

    #[test]
    fn any_damage_is_detected() {
        let bytes = Header::of(&tiny(&[])).unwrap().bytes().unwrap();
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1 << (at % 8);
            assert!(Header::parse(&wrong).is_err(), "byte {at}");
            assert!(Header::parse(&bytes[..at]).is_err(), "{at} bytes");
        }
        assert!(matches!(Header::parse(b"FGSTATE\n0000"), Err(ImageError::NoImage)));
        assert!(matches!(Header::parse(b"FGIMAGE\n\x01\0\0\0"), Err(ImageError::Version(1))));
        let huge = [&MAGIC[..], &VERSION.to_le_bytes(), &u32::MAX.to_le_bytes(), &[0; 100]].concat();
        assert!(matches!(Header::parse(&huge), Err(ImageError::Damaged(_))));
    }
}
