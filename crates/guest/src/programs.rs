//! Programs of the guest: adds packages with their dependencies and the libraries that they load.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::GuestError;
use crate::archive::{Archive, Entry};
use crate::tool::output;

/// Directories of packages that a guest does not need.
const LEFT_OUT: &[&str] = &[
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/bug",
    "usr/lib/x86_64-linux-gnu/gconv",
    "boot",
    "lib/modules",
];

/// Directories that the loader searches, after packages of the old and new layout are merged.
const LIBRARIES: &[&str] = &["usr/lib/x86_64-linux-gnu", "usr/lib"];

/// Adds the unpacked packages `programs`, and `dependencies` without the libraries that no program needs. Returns the
/// needed libraries that are missing.
pub fn add(archive: &mut Archive, programs: &Path, dependencies: &Path) -> Result<BTreeSet<String>, GuestError> {
    let mut needing = Vec::new();
    for root in [dependencies, programs] {
        for path in files(root)? {
            let inner = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            let place = merged(&inner);
            let is_library = root == dependencies && is_library(&place);
            if is_library || LEFT_OUT.iter().any(|left| inner.starts_with(left)) {
                continue;
            }
            if is_dynamic(&path) {
                needing.push(path.clone());
            }
            archive.add(&place, entry(&path)?);
        }
    }
    let shelf = Shelf::new(&[programs, dependencies])?;
    let (needed, missing) = shelf.needed(&needing)?;
    for path in needed {
        let bytes = fs::read(&path).map_err(GuestError::at(&path))?;
        archive.add(&shelf.inner(&path), Entry::File { bytes, runs: true });
    }
    Ok(missing)
}

/// Returns `true` if a file is a library in a directory of the loader.
fn is_library(place: &str) -> bool {
    let (folder, name) = place.rsplit_once('/').unwrap_or(("", place));
    LIBRARIES.contains(&folder) && name.contains(".so")
}

/// Returns the path of a file in a system where `/bin`, `/sbin` and `/lib` are links into `/usr`, as in Debian.
fn merged(path: &str) -> String {
    let first = path.split('/').next().unwrap_or_default();
    if ["bin", "sbin", "lib", "lib64"].contains(&first) { format!("usr/{path}") } else { path.to_owned() }
}

/// Returns all files and links below a directory, sorted by name.
fn files(directory: &Path) -> Result<Vec<PathBuf>, GuestError> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(place) = open.pop() {
        for item in fs::read_dir(&place).map_err(GuestError::at(&place))? {
            let item = item.map_err(GuestError::at(&place))?;
            match item.file_type() {
                Ok(kind) if kind.is_dir() => open.push(item.path()),
                _ => found.push(item.path()),
            }
        }
    }
    found.sort();
    Ok(found)
}

fn entry(path: &Path) -> Result<Entry, GuestError> {
    use std::os::unix::fs::PermissionsExt;
    let about = fs::symlink_metadata(path).map_err(GuestError::at(path))?;
    if about.is_symlink() {
        let target = fs::read_link(path).map_err(GuestError::at(path))?;
        return Ok(Entry::Link(target.to_string_lossy().into_owned()));
    }
    let bytes = fs::read(path).map_err(GuestError::at(path))?;
    Ok(Entry::File { bytes, runs: about.permissions().mode() & 0o100 != 0 })
}

/// Returns `true` if a file is an ELF program, not a script or a link.
fn is_dynamic(path: &Path) -> bool {
    let is_file = fs::symlink_metadata(path).is_ok_and(|about| about.is_file());
    let mut first = [0; 4];
    is_file && fs::File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == *b"\x7fELF"
}

/// Libraries that the loader can find.
struct Shelf<'a> {
    roots: Vec<&'a Path>,
    /// Directories with libraries, in the search order of the guest's loader.
    folders: Vec<PathBuf>,
    loader: Option<PathBuf>,
}

impl<'a> Shelf<'a> {
    fn new(roots: &[&'a Path]) -> Result<Shelf<'a>, GuestError> {
        let mut shelf = Shelf { roots: roots.to_vec(), folders: Vec::new(), loader: None };
        let mut found = BTreeSet::new();
        for path in roots.iter().map(|root| files(root)).collect::<Result<Vec<_>, _>>()?.concat() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // Development packages have dangling links, which are not libraries.
            if name.contains(".so") && path.is_file() {
                found.extend(path.parent().map(Path::to_owned));
                if name.starts_with("ld-linux") {
                    shelf.loader.get_or_insert(path);
                }
            }
        }
        let order = |folder: &PathBuf| LIBRARIES.iter().position(|usual| shelf.inner(folder) == *usual);
        let mut folders: Vec<PathBuf> = found.into_iter().collect();
        folders.sort_by_cached_key(|folder| order(folder).unwrap_or(LIBRARIES.len()));
        shelf.folders = folders;
        Ok(shelf)
    }

    /// Returns the path in the guest of a file below one of the roots.
    fn inner(&self, path: &Path) -> String {
        let inner = self.roots.iter().find_map(|root| path.strip_prefix(root).ok());
        merged(&inner.unwrap_or(path).to_string_lossy())
    }

    /// Returns the files that the loader finds for the libraries of these programs, including indirect ones, and the
    /// names of libraries that it does not find.
    fn needed(&self, programs: &[PathBuf]) -> Result<(BTreeSet<PathBuf>, BTreeSet<String>), GuestError> {
        let (mut needed, mut missing) = (BTreeSet::new(), BTreeSet::new());
        let Some(loader) = &self.loader else { return Ok((needed, missing)) };
        let folders: Vec<String> = self.folders.iter().map(|folder| folder.display().to_string()).collect();
        for program in programs {
            let mut command = Command::new(loader);
            command.args(["--inhibit-cache", "--library-path", &folders.join(":"), "--list"]).arg(program);
            let reported = match output(command, "lists the libraries that a program needs") {
                Ok(reported) => reported,
                // The loader refuses programs that need no library.
                Err(GuestError::Failed { .. }) => continue,
                Err(other) => return Err(other),
            };
            needed.insert(loader.clone());
            for (name, found) in resolved(&reported) {
                let is_ours = |path: &&Path| self.roots.iter().any(|root| path.starts_with(root));
                // A library that the loader found on the host is not in the guest.
                match found.map(Path::new).filter(is_ours) {
                    Some(path) => _ = needed.insert(path.to_owned()),
                    None => _ = missing.insert(name.to_owned()),
                }
            }
        }
        Ok((needed, missing))
    }
}

/// Parses the output of the loader: returns each library, and its file if it was found. Each line is `NAME => PATH
/// (ADDRESS)` or `NAME => not found`. Lines for the library that the kernel provides and for the loader itself have no
/// arrow.
fn resolved(reported: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    reported.lines().filter_map(|line| {
        let (name, place) = line.trim().split_once(" => ")?;
        let path = place.rsplit_once(" (").map(|(path, _)| path);
        (!name.contains("ld-linux")).then_some((name, path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_the_loader_names_libraries() {
        let reported = "\tlinux-vdso.so.1 (0x7ff)\n\tlibz.so.1 => /a/libz.so.1 (0x7f)\n\tlibx.so.2 => not found\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x7f)\n";
        let expected = [("libz.so.1", Some("/a/libz.so.1")), ("libx.so.2", None)];
        assert_eq!(resolved(reported).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn packages_of_old_and_new_layout_have_the_same_paths() {
        assert_eq!(merged("lib/x86_64-linux-gnu/libc.so.6"), "usr/lib/x86_64-linux-gnu/libc.so.6");
        assert_eq!(merged("usr/lib/x86_64-linux-gnu/libc.so.6"), "usr/lib/x86_64-linux-gnu/libc.so.6");
        assert_eq!(merged("libexec/a"), "libexec/a");
    }
}
