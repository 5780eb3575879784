//! Check that outputs do not overwrite an input or each other, before any file is written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::draft::resolved;
use crate::failure::Failure;

/// File of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Name in error messages, such as `--save-state s`.
    pub called: String,
    /// Path that the user gave.
    pub path: PathBuf,
}

impl Named {
    /// Creates a file that errors call by `kind` and its path.
    pub fn new(kind: &str, path: impl Into<PathBuf>) -> Named {
        let path = path.into();
        Named { called: format!("{kind} {}", path.display()), path }
    }
}

/// Identity of a file, independent of the path that names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identity {
    /// Device and inode of an existing file.
    File(u64, u64),
    /// Canonical path of a file that does not exist yet, or on a system without inodes.
    Name(PathBuf),
}

/// Refuses an output that is an input or another output. Links are followed. Character devices, such as `/dev/null`,
/// may be used several times.
pub fn refuse_overwrites(inputs: &[Named], outputs: &[Named]) -> Result<(), Failure> {
    let read: BTreeMap<Identity, &Named> =
        inputs.iter().filter_map(|input| Some((identity(&input.path)?, input))).collect();
    let mut written: BTreeMap<Identity, &Named> = BTreeMap::new();
    for output in outputs {
        let Some(place) = identity(&output.path) else { continue };
        if let Some(input) = read.get(&place) {
            return Err(overwrites(output, input));
        }
        if let Some(other) = written.insert(place, output) {
            let (one, other) = (&other.called, &output.called);
            return Err(Failure::mistake(format!("{one} and {other} are the same file; give each a name of its own")));
        }
    }
    Ok(())
}

fn overwrites(output: &Named, input: &Named) -> Failure {
    let (output, input) = (&output.called, &input.called);
    Failure::mistake(format!("{output} would overwrite {input}; give the output another name"))
}

/// Returns the identity of the file at a path. `None` for character devices, which may be used several times, and for
/// paths that cannot be resolved: opening them fails with the reason.
fn identity(path: &Path) -> Option<Identity> {
    match fs::metadata(path) {
        Ok(found) => of_found(path, &found),
        Err(_) => {
            let path = std::path::absolute(resolved(path).ok()?).ok()?;
            Some(Identity::Name(canonical(path.parent()?)?.join(path.file_name()?)))
        }
    }
}

/// Returns the canonical form of an absolute path to a directory. The directory need not exist, because a command may
/// create it for another output.
fn canonical(directory: &Path) -> Option<PathBuf> {
    if let Ok(found) = fs::canonicalize(directory) {
        return Some(found);
    }
    let parent = canonical(directory.parent()?)?;
    match directory.components().next_back()? {
        Component::ParentDir => parent.parent().map(Path::to_owned),
        last => Some(parent.join(last)),
    }
}

#[cfg(unix)]
fn of_found(_: &Path, found: &fs::Metadata) -> Option<Identity> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    (!found.file_type().is_char_device()).then(|| Identity::File(found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn of_found(path: &Path, _: &fs::Metadata) -> Option<Identity> {
    fs::canonicalize(path).ok().map(Identity::Name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(inputs: &[&Path], outputs: &[&Path]) -> Option<String> {
        let named = |paths: &[&Path]| paths.iter().map(|path| Named::new("file", *path)).collect::<Vec<_>>();
        match refuse_overwrites(&named(inputs), &named(outputs)) {
            Ok(()) => None,
            Err(Failure::Mistake(error)) => Some(error.to_string()),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "").unwrap();
        fs::hard_link(at("file"), at("hard")).unwrap();
        std::os::unix::fs::symlink("file", at("soft")).unwrap();
        std::os::unix::fs::symlink("new", at("dangling")).unwrap();
        let there = |name: &str| directory.path().join(".").join(name);
        for output in [at("file"), at("hard"), at("soft"), there("file")] {
            let error = said(&[&at("file")], &[&output]).unwrap();
            assert!(error.contains(&format!("file {} would overwrite file ", output.display())), "{error}");
        }
        assert!(said(&[], &[&at("new"), &there("new")]).unwrap().contains("are the same file"));
        assert!(said(&[], &[&at("new"), &at("dangling")]).unwrap().contains("are the same file"));
        assert!(said(&[], &[&at("soft"), &at("hard")]).unwrap().contains("are the same file"));
        assert_eq!(said(&[&at("file")], &[&at("new"), &at("other")]), None);
        let null = Path::new("/dev/null");
        assert_eq!(said(&[null], &[null, null]), None);
    }

    #[test]
    fn files_in_new_directories_are_compared_by_path() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for (one, other) in
            [("new/s", "new/s"), ("new/s", "./new/./s"), ("new/s", "new/old/../s"), ("a/b/c", "a/b/../b/c")]
        {
            let error = said(&[], &[&at(one), &at(other)]).unwrap();
            assert!(error.contains("are the same file"), "{one} {other}: {error}");
        }
        assert!(said(&[&at("new/s")], &[&at("new/s")]).unwrap().contains("would overwrite"));
        assert_eq!(said(&[&at("new/s")], &[&at("other/s"), &at("s"), &at("new/deeper/s")]), None);
        assert!(said(&[], &[Path::new("new-directory/s"), Path::new("./new-directory/s")]).is_some());
    }
}
