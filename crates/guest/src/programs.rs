//! Programs with the libraries that they need, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::GuestError;
use crate::archive::{Archive, Entry};
use crate::tool::output;

/// Parts of packages that nobody reads in a guest.
const LEFT_OUT: &[&str] =
    &["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "boot", "lib/modules"];

/// Adds all of `programs`, unpacked packages, with what they need of `libraries`.
pub fn add(archive: &mut Archive, programs: &Path, libraries: &Path) -> Result<(), GuestError> {
    let mut needing = Vec::new();
    for path in files(programs)? {
        let inner = path.strip_prefix(programs).unwrap_or(&path).to_string_lossy().into_owned();
        if LEFT_OUT.iter().any(|left| inner.starts_with(left)) {
            continue;
        }
        if is_dynamic(&path) {
            needing.push(path.clone());
        }
        archive.add(&merged(&inner), entry(&path)?);
    }
    let shelf = Shelf::new(&[libraries, programs])?;
    for library in shelf.needed(&needing)? {
        let (root, path) = &shelf.at[&library];
        let inner = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
        let bytes = fs::read(path).map_err(GuestError::at(path))?;
        archive.add(&merged(&inner), Entry::File { bytes, runs: true });
    }
    Ok(())
}

/// Where a file is once `/bin`, `/sbin` and `/lib` are links into `/usr`, as Debian has them.
fn merged(path: &str) -> String {
    let first = path.split('/').next().unwrap_or_default();
    if ["bin", "sbin", "lib", "lib64"].contains(&first) { format!("usr/{path}") } else { path.to_owned() }
}

/// All files and links below a directory, in order of name.
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

/// Whether a file is a program that the loader takes: ELF, and not a script or a link.
fn is_dynamic(path: &Path) -> bool {
    let is_file = fs::symlink_metadata(path).is_ok_and(|about| about.is_file());
    let mut first = [0; 4];
    is_file && fs::File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == *b"\x7fELF"
}

/// Libraries by the name by which programs ask for them.
struct Shelf {
    at: BTreeMap<String, (PathBuf, PathBuf)>,
}

impl Shelf {
    fn new(roots: &[&Path]) -> Result<Shelf, GuestError> {
        let mut at = BTreeMap::new();
        for root in roots {
            for path in files(root)? {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                // A link whose target is not there, as packages for developers have them, is no library.
                if name.contains(".so") && path.is_file() {
                    at.insert(name, (root.to_path_buf(), path));
                }
            }
        }
        Ok(Shelf { at })
    }

    /// The libraries that programs need, and that those need: the loader itself says which.
    fn needed(&self, programs: &[PathBuf]) -> Result<BTreeSet<String>, GuestError> {
        let mut needed = BTreeSet::new();
        let Some((loader, (_, path))) = self.at.iter().find(|(name, _)| name.starts_with("ld-linux")) else {
            return Ok(needed);
        };
        let folders: BTreeSet<&Path> = self.at.values().filter_map(|(_, path)| path.parent()).collect();
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        for program in programs {
            let mut command = Command::new(path);
            command.args(["--inhibit-cache", "--library-path", &folders.join(":"), "--list"]).arg(program);
            let told = match output(command, "says which libraries a program needs") {
                Ok(told) => told,
                // It takes no program that needs no library.
                Err(GuestError::Failed { .. }) => continue,
                Err(other) => return Err(other),
            };
            needed.insert(loader.clone());
            needed.extend(names(&told).filter(|name| self.at.contains_key(*name)).map(str::to_owned));
        }
        Ok(needed)
    }
}

/// The libraries in what the loader prints: a line each, `NAME => PATH (ADDRESS)`.
fn names(told: &str) -> impl Iterator<Item = &str> {
    told.lines().filter_map(|line| line.split_whitespace().next()?.rsplit('/').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_names_libraries() {
        let told = "\tlinux-vdso.so.1 (0x7ff)\n\tlibz.so.1 => /a/libz.so.1 (0x7f)\n\tlibx.so.2 => not found\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x7f)\n";
        let expected = ["linux-vdso.so.1", "libz.so.1", "libx.so.2", "ld-linux-x86-64.so.2"];
        assert_eq!(names(told).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn packages_of_old_and_new_layout_come_to_the_same_place() {
        assert_eq!(merged("lib/x86_64-linux-gnu/libc.so.6"), "usr/lib/x86_64-linux-gnu/libc.so.6");
        assert_eq!(merged("usr/lib/x86_64-linux-gnu/libc.so.6"), "usr/lib/x86_64-linux-gnu/libc.so.6");
        assert_eq!(merged("libexec/a"), "libexec/a");
    }
}
