//! `floatgate vm`: boots a small Linux guest with the SSD as its disk.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use floatgate_core::device_file::{Bytes, DeviceConfig};
use floatgate_guest::qemu::check_qemu;
use floatgate_guest::scratch::PREFIX;
use floatgate_guest::{Accelerator, Cache, Disk, Ended, Guest, GuestError, Machine, Running, Scratch};
use floatgate_serve::monitor::Monitor;
use floatgate_serve::{Address, Server};

use crate::failure::{Failure, say, warn};
use crate::run::interrupt::Interrupt;
use crate::serve::{ServeArgs, session, signals, size};

/// Text at the end of `--help`.
pub const HELP: &str = "\
Examples:
  floatgate vm tlc-nvme                                                     a shell; leave with exit
  floatgate vm tlc-nvme --run 'mkfs.ext4 -q $SSD && mount $SSD /mnt && df -h /mnt'
  floatgate vm tlc-nvme --interface nvme --run 'fio --name=a --filename=$SSD --rw=randread --bs=4k --direct=1 --size=8m'
  floatgate vm tlc-nvme --package xfsprogs --run 'mkfs.xfs -q $SSD && mount $SSD /mnt && df -h /mnt'
  floatgate vm tlc-nvme --package sqlite3 --copy shop.sql --record shop.csv.xz \\
      --run 'mkfs.ext4 -q $SSD && mount $SSD /mnt && sqlite3 /mnt/shop.db <shop.sql'";

/// Time limit for the boot of an emulated guest, in polls of 50 ms. With KVM, a boot takes 2 s.
const POLLS: u32 = 180 * 20;

/// Interface through which the guest accesses the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Interface {
    /// /dev/vda: QEMU's virtio-blk, as an NBD client of the server
    Virtio,
    /// /dev/nvme0n1: QEMU's NVMe controller, as an NBD client of the server
    Nvme,
    /// /dev/sda: QEMU's IDE disk, with one request at a time
    Ide,
    /// /dev/vda: virtio-blk, served directly through shared memory
    VhostUser,
    /// /dev/nbd0: the guest kernel's NBD client, over QEMU's network
    Nbd,
}

/// Processor of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Accel {
    /// KVM if it boots the kernel (tested once), otherwise emulation
    Auto,
    /// Hardware virtualization
    Kvm,
    /// Emulation by QEMU: for functional tests, not for measurements
    Tcg,
}

/// `floatgate vm`.
#[derive(Clone, clap::Args)]
pub struct VmArgs {
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    /// Run COMMAND in the guest and exit with its status [default: a shell]
    ///
    /// $SSD is the path of the disk in the guest.
    #[arg(long, value_name = "COMMAND", help_heading = "Guest")]
    run: Option<String>,
    /// Interface of the disk
    #[arg(long, value_enum, default_value = "virtio", help_heading = "Guest")]
    interface: Interface,
    /// Install this Debian package and its dependencies in the guest; can be repeated
    ///
    /// busybox, e2fsprogs and nbd-client are always installed. The guest can mount ext2, ext3, ext4, xfs and btrfs. The
    /// packages xfsprogs and btrfs-progs create the latter two.
    #[arg(long, value_name = "PACKAGE", default_value = "fio", help_heading = "Guest", value_parser = package)]
    package: Vec<String>,
    /// Copy a file to the guest's /root, where the command starts; can be repeated
    #[arg(long, value_name = "FILE", help_heading = "Guest")]
    copy: Vec<PathBuf>,
    /// Processor of the guest
    #[arg(long, value_enum, default_value = "auto", help_heading = "Guest")]
    accel: Accel,
    /// Memory of the guest
    #[arg(long, value_name = "SIZE", default_value = "1GiB", help_heading = "Guest", value_parser = size)]
    guest_memory: Bytes,
    /// Number of processors of the guest
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Guest")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    cpus: u32,
    /// Boot this kernel with --initrd, without downloading packages
    #[arg(long, value_name = "FILE", requires = "initrd", help_heading = "Guest")]
    kernel: Option<PathBuf>,
    /// Boot with this initial file system
    ///
    /// The file can be from the cache of another machine, or your own. It must run the command in /floatgate/command.
    #[arg(long, value_name = "FILE", requires = "kernel", help_heading = "Guest")]
    initrd: Option<PathBuf>,
}

/// Checks the name of a Debian package, so that it cannot be parsed as an option or a file.
fn package(text: &str) -> Result<String, String> {
    let begins = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    let goes_on = |character: char| begins(character) || "+-.".contains(character);
    if text.starts_with(begins) && text.chars().all(goes_on) {
        Ok(text.to_owned())
    } else {
        Err(format!("invalid package name `{text}`: expected lowercase letters, digits, `+`, `-` and `.`"))
    }
}

impl From<GuestError> for Failure {
    fn from(error: GuestError) -> Failure {
        match error {
            GuestError::UnknownPackage(_) => Failure::mistake(error),
            _ => Failure::fault(error),
        }
    }
}

/// Runs the command.
pub fn run(args: &VmArgs) -> Result<(), Failure> {
    check_qemu()?;
    let size = args.guest_memory.0 >> 20;
    let memory_mib = u32::try_from(size).ok().filter(|size| (64..=1 << 20).contains(size));
    let memory_mib = memory_mib.ok_or_else(|| {
        Failure::mistake(format!("--guest-memory {}: must be from 64 MiB to 1 TiB", args.guest_memory))
    })?;
    let cache = Cache::of_user()?;
    args.copy.iter().try_for_each(|file| regular("--copy", file))?;
    let guest = args.guest(&cache)?;
    let accelerator = args.accelerator(&cache, &guest)?;
    let directory = Scratch::new(PREFIX)?;
    let serve = args.served(&directory, accelerator)?;
    let mut ended = Ok(None);
    let silent = |_: &Server, _: &DeviceConfig, _: &Monitor| ();
    session(&serve, signals, &mut std::io::stderr(), silent, |server, config, interrupt| {
        let disk = args.disk(&directory, server, &serve);
        say(&welcome(config, &disk, accelerator, &serve));
        let command = args.run.as_deref();
        let files = &args.copy[..];
        let processors = args.cpus;
        let sector = config.host.sector_size.0 as u32;
        let machine = Machine { guest: &guest, accelerator, disk, sector, memory_mib, processors, command, files };
        let running = machine.start()?;
        let (trouble, end) = hold(server, running, interrupt);
        ended = end;
        Ok(trouble)
    })?;
    match ended? {
        Some(Ended::Status(0) | Ended::Unplugged) => Ok(()),
        Some(Ended::Status(status)) => Err(Failure::Status(status)),
        None => Err(Failure::Ended),
    }
}

/// Waits until the guest ends, does not boot in time, or is ended by the user or a fault of the server. Returns that
/// fault, and how the guest ended, unless the user or the fault ended it.
fn hold(
    server: &Server,
    running: Running,
    interrupt: &Interrupt,
) -> (Option<String>, Result<Option<Ended>, GuestError>) {
    let state = RefCell::new((running, 0));
    let is_over = || {
        let (running, polls) = &mut *state.borrow_mut();
        *polls += 1;
        running.has_ended() || (*polls > POLLS && !running.is_up())
    };
    let trouble = server.wait(|| interrupt.requested() || is_over(), warn).err();
    let (mut running, _) = state.into_inner();
    if !running.has_ended() {
        running.pull_plug();
    }
    if trouble.is_some() || interrupt.requested() {
        return (trouble, Ok(None));
    }
    (None, running.finish().map(Some))
}

/// Refuses a file that is not a regular file: reading a pipe may wait forever, and the files may be read twice.
fn regular(option: &str, path: &Path) -> Result<(), Failure> {
    let reason = match path.metadata() {
        Ok(found) if found.is_file() => return Ok(()),
        Ok(_) => "it is not a regular file; copy its contents to a file".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Failure::mistake(format!("{option} {}: {reason}", path.display())))
}

impl VmArgs {
    fn guest(&self, cache: &Cache) -> Result<Guest, Failure> {
        match (&self.kernel, &self.initrd) {
            (Some(kernel), Some(initrd)) => {
                regular("--kernel", kernel)?;
                regular("--initrd", initrd)?;
                Ok(Guest { kernel: kernel.clone(), initrd: initrd.clone() })
            }
            _ if cfg!(not(target_arch = "x86_64")) => {
                let only = "guests can be built from Debian packages on x86-64 only";
                Err(Failure::mistake(format!("{only}; give a guest with --kernel and --initrd")))
            }
            _ => Ok(Guest::of_debian(cache, &self.package, say)?),
        }
    }

    fn accelerator(&self, cache: &Cache, guest: &Guest) -> Result<Accelerator, Failure> {
        Ok(match self.accel {
            Accel::Kvm => Accelerator::Kvm,
            Accel::Tcg => Accelerator::Tcg,
            Accel::Auto => {
                let (accelerator, reason) = Accelerator::best(cache, guest, say)?;
                if accelerator == Accelerator::Tcg {
                    say(&format!("guest: KVM is not available: {reason}"));
                }
                accelerator
            }
        })
    }

    /// Returns the options of the server, with a socket for the guest and the speed for an emulated guest.
    fn served(&self, directory: &Scratch, accelerator: Accelerator) -> Result<ServeArgs, Failure> {
        let mut serve = self.serve.clone();
        let socket = directory.path().join("ssd.sock");
        match self.interface {
            Interface::Nbd => serve.nbd.insert(0, "127.0.0.1:0".parse().map_err(Failure::mistake)?),
            Interface::Virtio | Interface::Nvme | Interface::Ide => serve.nbd.insert(0, Address::Unix(socket)),
            Interface::VhostUser if serve.vhost_user.is_some() => {}
            Interface::VhostUser => serve.vhost_user = Some(socket),
        }
        if accelerator == Accelerator::Tcg && serve.speed.is_none() && !serve.no_delay {
            serve.speed = Some("0.1".parse().map_err(Failure::mistake)?);
        }
        Ok(serve)
    }

    fn disk(&self, directory: &Scratch, server: &Server, serve: &ServeArgs) -> Disk {
        let socket = directory.path().join("ssd.sock");
        match (self.interface, server.nbd().first()) {
            (Interface::VhostUser, _) => Disk::VhostUser(serve.vhost_user.clone().unwrap_or(socket)),
            (Interface::Nvme, _) => Disk::Nvme(socket),
            (Interface::Ide, _) => Disk::Ide(socket),
            (Interface::Nbd, Some(Address::Tcp(address))) => Disk::Nbd(address.port()),
            _ => Disk::Virtio(socket),
        }
    }
}

fn welcome(config: &DeviceConfig, disk: &Disk, accelerator: Accelerator, serve: &ServeArgs) -> String {
    let name = &config.name;
    let device = disk.device();
    match accelerator {
        Accelerator::Kvm => format!("guest: booting with KVM, {name} is {device}"),
        Accelerator::Tcg => {
            let time = match (serve.no_delay, serve.speed) {
                (true, _) | (_, None) => String::new(),
                (false, Some(speed)) => format!("; simulated time runs at {speed} times real time (--speed)"),
            };
            format!(
                "guest: booting an emulated machine, {name} is {device}. Its performance is not realistic, because the \
                 emulated processor is far slower than the SSD{time}"
            )
        }
    }
}
