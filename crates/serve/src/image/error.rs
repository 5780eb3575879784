//! Errors of opening and recovering an image.

use std::io;

use floatgate_core::saved_state::Difference;

use super::layout::VERSION;

/// Reason why an image cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is not an image.
    #[error("not a flash image: no FGIMAGE header; to create an image, give a path that does not exist")]
    NoImage,
    /// The image has another format version.
    #[error(
        "unsupported image version {0} (expected {version}); use the Floatgate version that created the image",
        version = VERSION
    )]
    Version(u32),
    /// The image is damaged, or was not written by this program.
    #[error("the image is damaged: {0}")]
    Damaged(String),
    /// Records of the image cannot be read.
    #[error(
        "the image is damaged: {0} records are damaged or missing, so it is unknown which data are lost; restore a \
         backup, or add --image-salvage to serve the rest, with lost data read as older data or zeros"
    )]
    Lost(u64),
    /// The image belongs to another device.
    #[error("the image belongs to another device: {}", listed(.0))]
    Differs(Vec<Difference>),
    /// The device cannot survive a power cut.
    #[error("{0}")]
    Device(String),
    /// The images do not form the array.
    #[error("{0}")]
    Array(String),
    /// The image of a member of an array cannot be used.
    #[error("member-{0}: {1}")]
    Member(usize, Box<ImageError>),
    /// Another server is using the image.
    #[error("the image is in use by another server; stop that server first")]
    InUse,
}

impl ImageError {
    /// Adds the number of the member.
    pub(super) fn of_member(self, number: usize) -> ImageError {
        ImageError::Member(number, Box::new(self))
    }
}

fn listed(differences: &[Difference]) -> String {
    let one = |d: &Difference| format!("`{}` is {} in the image and {} here", d.path, d.saved, d.requested);
    differences.iter().map(one).collect::<Vec<_>>().join("; ")
}
