//! Virtual machine: runs QEMU with a guest, a disk and a command.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};

use serde_json::json;

use crate::GuestError;
use crate::archive::{Archive, Entry};
use crate::qemu::{Accelerator, QEMU, boot, bound_to_us, missing};
use crate::scratch::{PREFIX, Scratch};
use crate::system::Guest;
use crate::tool::tail;

/// Disk of a machine, and its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disk {
    /// `/dev/vda`, which QEMU connects to the NBD server at this socket.
    Virtio(PathBuf),
    /// `/dev/nvme0n1`, which QEMU's model of an NVMe controller connects to the NBD server at this socket.
    Nvme(PathBuf),
    /// `/dev/sda`, which QEMU's model of an IDE disk connects to the NBD server at this socket.
    Ide(PathBuf),
    /// `/dev/vda`, served by another program at this socket without involving QEMU.
    VhostUser(PathBuf),
    /// `/dev/nbd0`, which the guest's NBD client connects to the server at this port of the host's loopback address.
    Nbd(u16),
}

impl Disk {
    /// Returns the name of the interface, as the guest knows it.
    fn front(&self) -> &'static str {
        match self {
            Disk::Virtio(_) => "virtio",
            Disk::Nvme(_) => "nvme",
            Disk::Ide(_) => "ide",
            Disk::VhostUser(_) => "vhost-user",
            Disk::Nbd(_) => "nbd",
        }
    }

    /// Returns the path of the disk in the guest.
    pub fn device(&self) -> &'static str {
        match self {
            Disk::Virtio(_) | Disk::VhostUser(_) => "/dev/vda",
            Disk::Nvme(_) => "/dev/nvme0n1",
            Disk::Ide(_) => "/dev/sda",
            Disk::Nbd(_) => "/dev/nbd0",
        }
    }

    /// Returns the arguments of QEMU for the disk. With vhost-user, the server reports the size of logical blocks.
    fn arguments(&self, sector: u32) -> Vec<String> {
        let sizes = format!(",logical_block_size={sector},physical_block_size={}", sector.max(4096));
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        match self {
            Disk::Virtio(socket) => {
                let device = words(&["-device", &format!("virtio-blk-pci,drive=ssd{sizes}")]);
                [words(&["-blockdev"]), vec![over_nbd(socket)], device].concat()
            }
            Disk::Nvme(socket) => {
                let device = words(&["-device", &format!("nvme,drive=ssd,serial=floatgate{sizes}")]);
                [words(&["-blockdev"]), vec![over_nbd(socket)], device].concat()
            }
            Disk::Ide(socket) => {
                [words(&["-blockdev"]), vec![over_nbd(socket)], words(&["-device", "ide-hd,drive=ssd"])].concat()
            }
            Disk::VhostUser(socket) => {
                let path = socket.display().to_string().replace(',', ",,");
                let chardev = format!("socket,id=ssd,path={path},reconnect=1");
                [words(&["-chardev"]), vec![chardev], words(&["-device", "vhost-user-blk-pci,chardev=ssd"])].concat()
            }
            Disk::Nbd(_) => words(&["-netdev", "user,id=host", "-device", "virtio-net-pci,netdev=host,romfile="]),
        }
    }
}

/// Returns the block device of QEMU for an NBD server, without caching by the host.
fn over_nbd(socket: &Path) -> String {
    let server = json!({ "type": "unix", "path": socket.to_string_lossy() });
    let nbd = json!({ "driver": "nbd", "server": server });
    let cache = json!({ "direct": true, "no-flush": false });
    json!({ "driver": "raw", "node-name": "ssd", "discard": "unmap", "cache": cache, "file": nbd }).to_string()
}

/// Configuration of a virtual machine.
#[derive(Debug)]
pub struct Machine<'a> {
    /// Kernel and initramfs.
    pub guest: &'a Guest,
    /// Accelerator.
    pub accelerator: Accelerator,
    /// Disk.
    pub disk: Disk,
    /// Bytes of a logical block of the disk.
    pub sector: u32,
    /// Memory size, in MiB.
    pub memory_mib: u32,
    /// Number of processors.
    pub processors: u32,
    /// Command for the shell. `None` for an interactive shell.
    pub command: Option<&'a str>,
    /// Files that are copied to `/root`.
    pub files: &'a [PathBuf],
}

/// End of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Exit status of the command or of the user's shell.
    Status(u8),
    /// The machine ended without a status: the user has cut the power or ended QEMU.
    Unplugged,
}

/// Running machine, which is killed when this value is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    directory: Scratch,
    interactive: bool,
}

impl Machine<'_> {
    /// Starts the machine.
    pub fn start(&self) -> Result<Running, GuestError> {
        let directory = Scratch::new(PREFIX)?;
        let initrd = directory.path().join("initrd");
        self.write_initrd(&initrd)?;
        fs::write(directory.path().join("status"), "").map_err(GuestError::at(directory.path()))?;
        let mut command = bound_to_us();
        command.args(self.arguments(&initrd, directory.path()));
        // At the end of its standard input, QEMU would assume that the output of the command has no reader.
        command.stdin(if self.command.is_some() { Stdio::piped() } else { Stdio::inherit() });
        let child = command.spawn().map_err(missing)?;
        Ok(Running { child, directory, interactive: self.command.is_none() })
    }

    /// Writes the guest's archive, followed by an archive with the settings of this machine.
    fn write_initrd(&self, path: &Path) -> Result<(), GuestError> {
        let mut reported = Archive::default();
        reported.text("floatgate/front", self.disk.front());
        reported.text("floatgate/device", self.disk.device());
        if let Disk::Nbd(port) = self.disk {
            reported.text("floatgate/port", &port.to_string());
            if self.sector != 512 {
                reported.text("floatgate/sector", &self.sector.to_string());
            }
        }
        if let Some(command) = self.command {
            reported.text("floatgate/command", &format!("{command}\n"));
        }
        for file in self.files {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let bytes = fs::read(file).map_err(GuestError::at(file))?;
            reported.add(&format!("root/{name}"), Entry::File { bytes, runs: true });
        }
        let copied = || -> io::Result<()> {
            let mut out = fs::File::create(path)?;
            let length = io::copy(&mut fs::File::open(&self.guest.initrd)?, &mut out)?;
            out.write_all(&[0; 3][..(length.next_multiple_of(4) - length) as usize])?;
            let mut out = io::BufWriter::new(out);
            reported.write(&mut out)?;
            out.flush()
        };
        copied().map_err(GuestError::at(&self.guest.initrd))
    }

    fn arguments(&self, initrd: &Path, directory: &Path) -> Vec<String> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let escaped = |name: &str| path(&directory.join(name)).replace(',', ",,");
        let mut all = boot(self.guest, initrd, self.accelerator);
        let memory = format!("memory-backend-memfd,id=memory,size={}M,share=on", self.memory_mib);
        all.extend(["-m", &format!("{}M", self.memory_mib), "-object", &memory].map(str::to_owned));
        all.extend(["-machine", "memory-backend=memory", "-smp", &self.processors.to_string()].map(str::to_owned));
        all.extend(["-device", "virtio-serial-pci"].map(str::to_owned));
        let status = format!("file,id=status,path={}", escaped("status"));
        all.extend(["-chardev", &status, "-device", "virtserialport,chardev=status,name=status"].map(str::to_owned));
        if self.command.is_some() {
            let console = format!("file:{}", escaped("console"));
            all.extend(["-serial", &console, "-monitor", "none"].map(str::to_owned));
            all.extend(
                ["-chardev", "stdio,id=out", "-device", "virtserialport,chardev=out,name=out"].map(str::to_owned),
            );
        } else {
            all.extend(["-chardev", "stdio,id=user,mux=on,signal=off"].map(str::to_owned));
            all.extend(["-serial", "chardev:user", "-mon", "chardev=user"].map(str::to_owned));
        }
        all.extend(self.disk.arguments(self.sector));
        all
    }
}

impl Running {
    /// Returns `true` if the machine has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns `true` if the first program of the guest has reported that it runs.
    pub fn is_up(&self) -> bool {
        !self.status().is_empty()
    }

    fn status(&self) -> String {
        fs::read_to_string(self.directory.path().join("status")).unwrap_or_default()
    }

    fn console(&self) -> String {
        let bytes = fs::read(self.directory.path().join("console")).unwrap_or_default();
        tail(&String::from_utf8_lossy(&bytes), 12)
    }

    /// Cuts the power: data that the guest has not flushed is lost.
    pub fn pull_plug(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for the end of the machine, and returns its cause.
    pub fn finish(mut self) -> Result<Ended, GuestError> {
        let ended = self.child.wait().map_err(missing)?;
        let status = self.status();
        let result = status.lines().find_map(|line| line.strip_prefix("done ")?.trim().parse().ok());
        match result {
            Some(result) => Ok(Ended::Status(result)),
            None if self.interactive && ended.success() => Ok(Ended::Unplugged),
            None => Err(self.trouble(ended, &status)),
        }
    }

    fn trouble(&self, ended: ExitStatus, status: &str) -> GuestError {
        if !status.is_empty() {
            return GuestError::Ended(self.console());
        }
        // Errors of QEMU itself have an exit status. After a kernel panic, the status is 0, and a hanging kernel is
        // killed.
        if ended.code().is_none_or(|code| code == 0) { GuestError::NeverUp(self.console()) } else { failed(ended) }
    }
}

fn failed(ended: ExitStatus) -> GuestError {
    GuestError::Failed { program: QEMU.to_owned(), said: format!("{ended}; its output is above") }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.pull_plug();
    }
}
