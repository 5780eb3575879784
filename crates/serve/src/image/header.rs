//! Header of an image: file type, version and device. Stored in two copies.

use floatgate_core::device_file::{DeviceConfig, Shape, from_toml};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::ImageError;
use super::disk::Disk;
use super::layout::{COPIES, HEADER_ROOM, Layout, VERSION};
use crate::identity;

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
    /// Identity of the drive, in 32 hexadecimal digits.
    pub identity: String,
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
            identity: identity::text(identity::random()?),
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
        if bytes.len() as u64 > HEADER_ROOM {
            return Err(ImageError::Damaged("the device file is too long for its header".to_owned()));
        }
        Ok(bytes)
    }

    /// Writes both copies.
    pub fn write(&self, disk: &mut dyn Disk) -> Result<(), ImageError> {
        let bytes = self.bytes()?;
        Ok((0..COPIES).try_for_each(|copy| disk.write(Layout::header(copy), &bytes))?)
    }

    /// Reads both copies. Returns the header, and `true` if a copy is damaged.
    pub fn read(disk: &dyn Disk) -> Result<(Header, bool), ImageError> {
        let size = disk.size()?;
        let copy = |copy: usize| {
            let start = Layout::header(copy);
            let mut bytes = vec![0; size.saturating_sub(start).min(HEADER_ROOM) as usize];
            if !bytes.is_empty() {
                disk.read(start, &mut bytes)?;
            }
            Header::parse(&bytes)
        };
        match (copy(0), copy(1)) {
            (Ok(header), second) => Ok((header, second.is_err())),
            (Err(ImageError::Version(version)), _) => Err(ImageError::Version(version)),
            (Err(_), Ok(header)) => Ok((header, true)),
            (Err(ImageError::NoImage), Err(second)) => Err(second),
            (Err(first), Err(_)) => Err(first),
        }
    }

    /// Parses a copy of the header.
    pub fn parse(bytes: &[u8]) -> Result<Header, ImageError> {
        let ends = || ImageError::Damaged("the file ends within its header".to_owned());
        if !bytes.starts_with(&MAGIC) {
            return Err(ImageError::NoImage);
        }
        let number = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let version = number(8).ok_or_else(ends)?;
        let end = FIXED.saturating_add(number(12).ok_or_else(ends)? as usize);
        let reported =
            bytes.get(end..end.saturating_add(8)).and_then(|reported| reported.try_into().ok()).ok_or_else(ends)?;
        if u64::from_le_bytes(reported) != xxh3_64(&bytes[..end]) {
            return Err(ImageError::Damaged("wrong digest of the header".to_owned()));
        }
        if version != VERSION {
            return Err(ImageError::Version(version));
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
        if differences.is_empty() {
            Err(ImageError::Damaged("the digest in the header does not match the device".to_owned()))
        } else {
            Err(ImageError::Differs(differences))
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
    use crate::image::disk::SystemFile;
    use crate::image::layout::ROOM;
    use floatgate_core::device_file::load;

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
    fn one_damaged_copy_is_enough() {
        let header = Header::of(&tiny(&[])).unwrap();
        for copy in 0..COPIES {
            let mut disk = SystemFile::in_memory().unwrap();
            disk.resize(ROOM).unwrap();
            header.write(&mut disk).unwrap();
            assert_eq!(Header::read(&disk).unwrap(), (header.clone(), false));
            disk.write(Layout::header(copy), &[0; 512]).unwrap();
            assert_eq!(Header::read(&disk).unwrap(), (header.clone(), true));
            disk.write(Layout::header(1 - copy) + 100, b"x").unwrap();
            assert!(matches!(Header::read(&disk), Err(ImageError::Damaged(_) | ImageError::NoImage)));
        }
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
        let mut old = bytes[..bytes.len() - 8].to_vec();
        old[8] = 3;
        let digest = xxh3_64(&old).to_le_bytes();
        assert!(matches!(Header::parse(&[&old[..], &digest].concat()), Err(ImageError::Version(3))));
        let huge = [&MAGIC[..], &VERSION.to_le_bytes(), &u32::MAX.to_le_bytes(), &[0; 100]].concat();
        assert!(matches!(Header::parse(&huge), Err(ImageError::Damaged(_))));
    }
}
