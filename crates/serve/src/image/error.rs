//! Errors of opening and recovering an image.

use std::io;

use floatgate_core::state::Difference;

use super::layout::VERSION;

/// Reason why an image cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is not an image.
    #[error(
        "it is no image: it does not begin with FGIMAGE, and it is not empty; name a file that is not there to begin one"
    )]
    NoImage,
    /// The image has another format version.
    #[error(
        "it has version {0} of the form, and this program reads version {version}: use the Floatgate that made it",
        version = VERSION
    )]
    Version(u32),
    /// The image is damaged, or was not written by this program.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// Records of the image cannot be read.
    #[error(
        "it is damaged: {0} records cannot be read, so that it is not known whose data are lost; restore a copy of it, or \
         add --image-salvage to serve the rest: what is lost then reads as older data, or as zeros"
    )]
    Lost(u64),
    /// The image belongs to another device.
    #[error("it is the image of another device: {}", listed(.0))]
    Differs(Vec<Difference>),
    /// The device cannot survive a power cut.
    #[error("{0}")]
    Device(String),
    /// Another server is using the image.
    #[error("it is in use by another server: end that first")]
    InUse,
}

fn listed(differences: &[Difference]) -> String {
    let one = |d: &Difference| format!("`{}` was {} when it was made, and is {} here", d.path, d.saved, d.requested);
    differences.iter().map(one).collect::<Vec<_>>().join("; ")
}
