//! Debian packages: downloads them with `apt-get` to a cache of the user, and unpacks them, without root.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::GuestError;
use crate::scratch::Scratch;
use crate::tool::output;

/// Package whose only dependency is the newest kernel for virtual machines.
const KERNEL: &str = "linux-image-cloud-amd64";

/// Purpose of `apt-get`, for the error if it is missing.
const FETCHES: &str = "fetches a kernel and programs for the guest";

/// Prefix of unfinished directories in the cache.
const DRAFT: &str = "draft-";

/// Directory with packages, and with guests built from them.
#[derive(Clone, Debug)]
pub struct Cache(PathBuf);

impl Cache {
    /// Returns the cache `floatgate/vm` in `$XDG_CACHE_HOME`, or in `~/.cache`.
    pub fn of_user() -> Result<Cache, GuestError> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let caches = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
        let none = || GuestError::Unusable("there is no directory for the cache: set XDG_CACHE_HOME".to_owned());
        Cache::at(&caches.ok_or_else(none)?.join("floatgate/vm"))
    }

    /// Creates the cache in this directory.
    pub fn at(path: &Path) -> Result<Cache, GuestError> {
        fs::create_dir_all(path).map_err(GuestError::at(path))?;
        Ok(Cache(std::path::absolute(path).map_err(GuestError::at(path))?))
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns a directory in the cache, which `make` fills the first time. If two processes do so at once, the first
    /// result is kept.
    pub fn once(&self, name: &str, make: impl FnOnce(&Path) -> Result<(), GuestError>) -> Result<PathBuf, GuestError> {
        let place = self.0.join(name);
        if !place.exists() {
            let draft = Scratch::below(&self.0, DRAFT)?;
            let made = draft.path().join("made");
            fs::create_dir(&made).map_err(GuestError::at(&made))?;
            make(&made)?;
            if let Err(error) = fs::rename(&made, &place)
                && !place.exists()
            {
                return Err(GuestError::at(&place)(error));
            }
        }
        Ok(place)
    }

    /// Returns the archives of packages, and downloads those that the cache does not have.
    pub fn fetch(&self, packages: &[String]) -> Result<Vec<PathBuf>, GuestError> {
        let names = archives(packages)?;
        let store = self.0.join("packages");
        fs::create_dir_all(&store).map_err(GuestError::at(&store))?;
        let absent = |(_, archive): &(&String, &String)| !store.join(archive).exists();
        let wanted: Vec<&String> = packages.iter().zip(&names).filter(absent).map(|(package, _)| package).collect();
        if !wanted.is_empty() {
            // An interrupted download must not leave files in the store.
            let draft = Scratch::below(&self.0, DRAFT)?;
            let mut command = Command::new("apt-get");
            command.arg("download").args(&wanted).current_dir(draft.path());
            output(command, FETCHES)?;
            for archive in &names {
                let from = draft.path().join(archive);
                if from.exists() {
                    fs::rename(&from, store.join(archive)).map_err(GuestError::at(&from))?;
                }
            }
        }
        Ok(names.iter().map(|name| store.join(name)).collect())
    }
}

/// Returns the file name of the newest archive of each package, in the order of `packages`.
fn archives(packages: &[String]) -> Result<Vec<String>, GuestError> {
    let mut command = Command::new("apt-get");
    command.args(["download", "--print-uris"]).args(packages);
    let reported = output(command, FETCHES).map_err(|error| match error {
        GuestError::Failed { said, .. } if said.contains("Unable to locate package") => {
            let name = said.rsplit("Unable to locate package").next().unwrap_or_default();
            GuestError::UnknownPackage(name.trim().to_owned())
        }
        GuestError::Failed { said, .. } if said.contains("find a source to download") => {
            GuestError::UnknownPackage(packages.join("`, `"))
        }
        other => other,
    })?;
    let mut named: Vec<&str> = reported.lines().filter_map(archive_of).collect();
    let find = |package: &String| {
        let begins = format!("{package}_");
        let at = named.iter().position(|name| name.starts_with(&begins))?;
        Some(named.swap_remove(at).to_owned())
    };
    let found: Option<Vec<String>> = packages.iter().map(find).collect();
    found.ok_or_else(|| GuestError::Unusable(format!("apt-get does not print the locations of packages: {reported}")))
}

/// Returns the file name in a line of `--print-uris`: 'URI' NAME SIZE HASH.
fn archive_of(line: &str) -> Option<&str> {
    line.strip_prefix('\'')?.split_once("' ")?.1.split_whitespace().next()
}

/// Returns the package of the newest kernel.
pub fn kernel() -> Result<String, GuestError> {
    let mut command = Command::new("apt-cache");
    command.args(["depends", "--important", KERNEL]);
    let reported = output(command, FETCHES).map_err(|error| match error {
        GuestError::Failed { .. } => GuestError::UnknownPackage(KERNEL.to_owned()),
        other => other,
    })?;
    let depends = reported.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let mut kernels = depends.filter(|name| name.starts_with("linux-image-"));
    kernels.next().map(str::to_owned).ok_or_else(|| GuestError::UnknownPackage(KERNEL.to_owned()))
}

/// Dependencies that are skipped unless they are requested. They install packages, set up a system, or interpret
/// scripts that few users of the package call.
const NOT_FOLLOWED: &[&str] = &[
    "adduser",
    "cdebconf",
    "dbus",
    "debconf",
    "dpkg",
    "init-system-helpers",
    "locales",
    "lsb-base",
    "passwd",
    "perl",
    "python3",
    "sensible-utils",
    "ssl-cert",
    "systemd",
    "sysvinit-utils",
    "ucf",
    "usr-is-merged",
    "usrmerge",
];

/// Returns the packages that `packages` depend on, sorted by name, without `packages`. The first of several
/// alternatives is chosen.
pub fn dependencies(packages: &[String]) -> Result<Vec<String>, GuestError> {
    let mut command = Command::new("apt-cache");
    command.args(["depends", "--recurse", "--important", "--no-conflicts", "--no-breaks", "--no-replaces"]);
    command.args(packages);
    let reported = output(command, FETCHES)?;
    Ok(closure(packages, &direct(&reported)))
}

/// Returns the direct and indirect dependencies of `packages`.
fn closure(packages: &[String], direct: &BTreeMap<&str, Vec<&str>>) -> Vec<String> {
    let mut found: BTreeSet<&str> = packages.iter().map(|name| &name[..]).collect();
    let mut open: Vec<&str> = found.iter().copied().collect();
    while let Some(package) = open.pop() {
        for needed in direct.get(package).into_iter().flatten() {
            // Python packages need Python itself.
            let is_followed =
                !NOT_FOLLOWED.contains(needed) || (*needed == "python3" && package.starts_with("python3"));
            if is_followed && found.insert(needed) {
                open.push(needed);
            }
        }
    }
    found.into_iter().filter(|name| !packages.iter().any(|package| package == name)).map(str::to_owned).collect()
}

/// Parses the output of `apt-cache depends --recurse`: returns the direct dependencies of each package. A line with the
/// package is followed by a line for each dependency, which begins with `|` if the next line is an alternative.
/// Packages that provide a dependency follow it, further indented.
fn direct(reported: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut package = "";
    let mut is_settled = true;
    let mut alternative_follows = false;
    for line in reported.lines() {
        let Some(indented) = line.strip_prefix(' ') else {
            package = line;
            (is_settled, alternative_follows) = (true, false);
            continue;
        };
        let name = match indented.split_once("Depends: ") {
            Some((before, name)) => {
                is_settled &= alternative_follows;
                alternative_follows = before.starts_with('|');
                name
            }
            None => indented.trim(),
        };
        // A name in angle brackets is a virtual package, and a package that provides it follows.
        if !is_settled && !name.starts_with('<') {
            found.entry(package).or_default().push(name);
            is_settled = true;
        }
    }
    found
}

/// Unpacks an archive to a directory.
pub fn unpack(archive: &Path, directory: &Path) -> Result<(), GuestError> {
    let mut command = Command::new("dpkg-deb");
    command.arg("--extract").arg(archive).arg(directory);
    output(command, "unpacks packages for the guest").map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_print_uris_names_archives() {
        let line = "'http://mirror/debian/pool/f/fio/fio_3.33-3_amd64.deb' fio_3.33-3_amd64.deb 537684 SHA256:ab";
        assert_eq!(archive_of(line), Some("fio_3.33-3_amd64.deb"));
        assert_eq!(archive_of("W: something else"), None);
    }

    #[test]
    fn one_alternative_is_chosen_and_installers_are_skipped() {
        let reported = "nvme-cli\n  Depends: uuid-runtime\n  Depends: libnvme1\n\
                    uuid-runtime\n  PreDepends: init-system-helpers\n  Depends: libsystemd0\n    libelogind0\n\
                    libsystemd0\n  Depends: libgcrypt20\n\
                    libelogind0\n  Depends: libcap2\n\
                    init-system-helpers\n |Depends: usrmerge\n  Depends: usr-is-merged\n    usrmerge\n\
                    libnvme1\n |Depends: <debconf-2.0>\n    cdebconf\n    debconf\n  Depends: debconf\n\
                    \x20 Depends: <perl:any>\n    perl\n |Depends: a\n |Depends: b\n  Depends: c\n  Depends: d\n";
        let direct = direct(reported);
        assert_eq!(direct["uuid-runtime"], ["init-system-helpers", "libsystemd0"]);
        assert_eq!(direct["init-system-helpers"], ["usrmerge"]);
        assert_eq!(direct["libnvme1"], ["cdebconf", "perl", "a", "d"]);
        let closed = |name: &str| closure(&[name.to_owned()], &direct);
        assert_eq!(closed("nvme-cli"), ["a", "d", "libgcrypt20", "libnvme1", "libsystemd0", "uuid-runtime"]);
        assert_eq!(closed("libelogind0"), ["libcap2"]);
    }

    #[test]
    fn a_directory_of_the_cache_is_complete_or_absent() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path()).unwrap();
        let fails = cache.once("a", |at| {
            fs::write(at.join("half"), "x").unwrap();
            Err(GuestError::Unusable("no".to_owned()))
        });
        assert!(fails.is_err() && fs::read_dir(directory.path()).unwrap().next().is_none());
        let made = cache.once("a", |at| fs::write(at.join("file"), "x").map_err(GuestError::at(at))).unwrap();
        assert_eq!(fs::read_to_string(made.join("file")).unwrap(), "x");
        cache.once("a", |_| panic!("the directory exists already")).unwrap();
    }
}
