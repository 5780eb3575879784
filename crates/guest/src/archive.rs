//! Initramfs archives: cpio files in the "newc" format, which a kernel unpacks into its first file system.
//!
//! Source: Documentation/driver-api/early-userspace/buffer-format.rst of Linux. A file can contain several archives,
//! each aligned to four bytes. Files of later archives replace those of earlier ones.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// Entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A file.
    File {
        /// Contents of the file.
        bytes: Vec<u8>,
        /// True if the file is executable.
        runs: bool,
    },
    /// A symbolic link to this path.
    Link(String),
    /// A directory.
    Directory,
}

/// Entries of an archive, indexed by path without a leading slash.
#[derive(Debug, Default)]
pub struct Archive(BTreeMap<String, Entry>);

impl Archive {
    /// Adds an entry at a path, and its parent directories.
    pub fn add(&mut self, path: &str, entry: Entry) {
        let path = path.trim_matches('/');
        for (at, _) in path.match_indices('/') {
            self.0.entry(path[..at].to_owned()).or_insert(Entry::Directory);
        }
        self.0.insert(path.to_owned(), entry);
    }

    /// Adds a text file at a path.
    pub fn text(&mut self, path: &str, text: &str) {
        self.add(path, Entry::File { bytes: text.as_bytes().to_vec(), runs: false });
    }

    /// Returns `true` if there is an entry at a path.
    pub fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// Writes the archive.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        // A `BTreeMap` has directories before their contents.
        for (number, (path, entry)) in self.0.iter().enumerate() {
            let (mode, bytes): (u32, &[u8]) = match entry {
                Entry::File { bytes, runs: true } => (0o100_755, bytes),
                Entry::File { bytes, runs: false } => (0o100_644, bytes),
                Entry::Link(target) => (0o120_777, target.as_bytes()),
                Entry::Directory => (0o040_755, &[]),
            };
            write_entry(out, number as u32 + 1, mode, path, bytes)?;
        }
        write_entry(out, 0, 0, "TRAILER!!!", &[])
    }
}

/// Writes one entry: 6 bytes of magic, 13 numbers of 8 hexadecimal digits, the name and the contents. Name and contents
/// are padded to multiples of four bytes.
fn write_entry(out: &mut impl Write, number: u32, mode: u32, path: &str, bytes: &[u8]) -> io::Result<()> {
    let size = u32::try_from(bytes.len())
        .map_err(|_| io::Error::other(format!("{path}: files must be smaller than 4 GiB")))?;
    let links = 1;
    let named = path.len() as u32 + 1;
    write!(out, "070701{number:08x}{mode:08x}{0:08x}{0:08x}{links:08x}{0:08x}{size:08x}", 0)?;
    write!(out, "{0:08x}{0:08x}{0:08x}{0:08x}{named:08x}{0:08x}{path}\0", 0)?;
    out.write_all(&[0; 3][..filling(110 + path.len() + 1)])?;
    out.write_all(bytes)?;
    out.write_all(&[0; 3][..filling(bytes.len())])
}

fn filling(length: usize) -> usize {
    length.next_multiple_of(4) - length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_its_directories_first_and_ends_with_the_trailer() {
        let mut archive = Archive::default();
        archive.add("usr/bin/sh", Entry::Link("busybox".to_owned()));
        archive.add("/usr/bin/busybox", Entry::File { bytes: b"12345".to_vec(), runs: true });
        let mut bytes = Vec::new();
        archive.write(&mut bytes).unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        let places: Vec<usize> = ["usr\0", "usr/bin\0", "usr/bin/busybox\0", "usr/bin/sh\0", "TRAILER!!!\0"]
            .iter()
            .map(|name| text.find(name).unwrap())
            .collect();
        assert!(places.is_sorted(), "{places:?}");
        // The first header, number by number: inode 1, a directory, owned by root, one link, no time, empty, a name of
        // four.
        let zeros = "00000000";
        let expected = format!(
            "07070100000001000041ed{zeros}{zeros}00000001{zeros}{zeros}{zeros}{zeros}{zeros}{zeros}00000004{zeros}usr\0"
        );
        assert!(text.starts_with(&expected), "{}", &text[..120]);
        // 110 and 16 bytes are padded to 128, 5 bytes to 8.
        assert!(text.contains("busybox\0\0\x0012345\0\0\x00070701"), "{text:?}");
    }
}
