//! Guest system: builds the kernel and the initramfs from packages.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::GuestError;
use crate::archive::{Archive, Entry};
use crate::modules::Modules;
use crate::packages::{self, Cache};
use crate::programs;

/// First program of the guest, which runs the command.
const INIT: &str = include_str!("../assets/init.sh");

/// Program that the kernel calls to load the modules of a file system.
const MODPROBE: &str = include_str!("../assets/modprobe.sh");

/// Packages of every guest.
const ALWAYS: &[&str] = &["busybox-static", "e2fsprogs", "nbd-client"];

/// Kernel modules for every guest, for each interface of the disk, and for file systems, which are loaded on the first
/// mount. Modules that are built into the kernel are skipped.
const MODULES: &[(&str, &[&str])] = &[
    ("common", &["virtio_pci", "virtio_console", "crc32c_intel", "crc32c_generic", "ext4"]),
    ("fs-xfs", &["xfs"]),
    ("fs-btrfs", &["xxhash_generic", "sha256_generic", "blake2b_generic", "btrfs"]),
    ("fs-f2fs", &["f2fs"]),
    ("virtio", &["virtio_blk"]),
    ("vhost-user", &["virtio_blk"]),
    ("nvme", &["nvme"]),
    ("ide", &["ata_piix", "sd_mod"]),
    ("nbd", &["virtio_net", "nbd"]),
];

/// Kernel and its initramfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Path of the kernel.
    pub kernel: PathBuf,
    /// Path of the archive that the kernel unpacks.
    pub initrd: PathBuf,
}

impl Guest {
    /// Returns Debian's newest kernel and the programs of `packages`, from the cache if it has them. Calls `say` before
    /// steps that take time.
    ///
    /// The kernel is at `KERNEL/vmlinuz` in the cache, and the archive at `guest-DIGEST/initrd`.
    pub fn of_debian(cache: &Cache, packages: &[String], say: impl Fn(&str)) -> Result<Guest, GuestError> {
        let always = ALWAYS.iter().map(|name| (*name).to_owned());
        let mut wanted: Vec<String> = always.chain(packages.iter().cloned()).collect();
        wanted.sort();
        wanted.dedup();
        let kernel = packages::kernel()?;
        say(&format!(
            "guest: {kernel} with {}, by apt; downloads are kept in {}",
            wanted.join(", "),
            cache.path().display()
        ));
        let dependencies = packages::dependencies(&wanted)?;
        let program_archives = cache.fetch(&wanted)?;
        let further_archives = cache.fetch(&dependencies)?;
        let kernel_archive = cache.fetch(std::slice::from_ref(&kernel))?;
        let place = cache.once(&kernel_name(&kernel_archive), |at| unpack_kernel(&kernel_archive, at))?;
        let all = [&kernel_archive[..], &program_archives, &further_archives].concat();
        let made = cache.once(&format!("guest-{:016x}", digest(&all)), |at| {
            say("guest: building the system once");
            let (programs, further) = (unpacked(&program_archives, at)?, unpacked(&further_archives, at)?);
            let (archive, missing) = contents(programs.path(), further.path(), &place)?;
            if !missing.is_empty() {
                let missing: Vec<String> = missing.into_iter().collect();
                say(&format!("guest: warning: no package provides the libraries {}", missing.join(", ")));
            }
            let initrd = at.join("initrd");
            let file = fs::File::create(&initrd).map_err(GuestError::at(&initrd))?;
            let mut out = io::BufWriter::new(file);
            archive.write(&mut out).and_then(|()| out.flush()).map_err(GuestError::at(&initrd))
        })?;
        Ok(Guest { kernel: place.join("vmlinuz"), initrd: made.join("initrd") })
    }

    /// Returns a digest of the kernel's path and size, and of the scripts and modules of the guest.
    pub fn digest(&self) -> u64 {
        digest(std::slice::from_ref(&self.kernel))
    }
}

/// Returns a digest of the paths and sizes of files, and of the scripts and modules of the guest.
fn digest(files: &[PathBuf]) -> u64 {
    let about = |path: &PathBuf| {
        let size = fs::metadata(path).map_or(0, |about| about.len());
        format!("{} {size}\n", path.display())
    };
    let described: String = files.iter().map(about).collect();
    xxhash_rust::xxh3::xxh3_64((described + INIT + MODPROBE + &format!("{MODULES:?}")).as_bytes())
}

fn kernel_name(archives: &[PathBuf]) -> String {
    let name = archives.first().and_then(|archive| archive.file_stem()).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn unpacked(archives: &[PathBuf], below: &Path) -> Result<tempfile::TempDir, GuestError> {
    let directory = tempfile::tempdir_in(below).map_err(GuestError::at(below))?;
    archives.iter().try_for_each(|archive| packages::unpack(archive, directory.path()))?;
    Ok(directory)
}

/// Unpacks `vmlinuz` and `modules` from the package of a kernel.
fn unpack_kernel(archives: &[PathBuf], at: &Path) -> Result<(), GuestError> {
    let whole = unpacked(archives, at)?;
    let keep = |from: PathBuf, to: &str| fs::rename(&from, at.join(to)).map_err(GuestError::at(&from));
    let only = |directory: PathBuf, begin: &str| {
        let mut inside = fs::read_dir(&directory).map_err(GuestError::at(&directory))?.flatten();
        let found = inside.find(|entry| entry.file_name().to_string_lossy().starts_with(begin));
        found.map(|entry| entry.path()).ok_or_else(|| {
            GuestError::Unusable(format!("the package of the kernel does not contain {}/{begin}*", directory.display()))
        })
    };
    let modules = [whole.path().join("lib/modules"), whole.path().join("usr/lib/modules")];
    let modules = modules.into_iter().find(|path| path.exists()).unwrap_or_else(|| whole.path().join("lib/modules"));
    keep(only(whole.path().join("boot"), "vmlinuz")?, "vmlinuz")?;
    keep(only(modules, "")?, "modules")
}

/// Returns the archive of the guest, and the names of missing libraries.
fn contents(programs: &Path, dependencies: &Path, kernel: &Path) -> Result<(Archive, BTreeSet<String>), GuestError> {
    let mut archive = Archive::default();
    for name in ["bin", "sbin", "lib", "lib64"] {
        archive.add(name, Entry::Link(format!("usr/{name}")));
    }
    archive.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n");
    archive.text("etc/group", "root:x:0:\nnogroup:x:65534:\n");
    archive.text("etc/hosts", "127.0.0.1 localhost\n");
    let missing = programs::add(&mut archive, programs, dependencies)?;
    let modules = Modules::find(&kernel.join("modules"))?;
    for (front, names) in MODULES {
        let loaded = modules.in_order(names)?;
        let list: Vec<&str> = loaded.iter().map(|module| &module.name[..]).collect();
        archive.text(&format!("floatgate/modules/{front}"), &(list.join("\n") + "\n"));
        for module in loaded {
            archive.add(
                &format!("floatgate/modules/{}.ko", module.name),
                Entry::File { bytes: module.bytes, runs: false },
            );
        }
    }
    // `/dev` must exist, because the kernel uses it before the first program mounts devtmpfs.
    archive.add("init", Entry::File { bytes: INIT.as_bytes().to_vec(), runs: true });
    archive.add("dev", Entry::Directory);
    archive.add("usr/sbin/modprobe", Entry::File { bytes: MODPROBE.as_bytes().to_vec(), runs: true });
    // `mount` without -t tries these file systems in this order.
    archive.text("etc/filesystems", "ext4\nxfs\nbtrfs\nf2fs\n*\n");
    Ok((archive, missing))
}
