//! The machine: QEMU with a guest, a disk, and a command.

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

/// The disk of a machine, and how it comes to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disk {
    /// `/dev/vda`, which QEMU serves from an NBD server at this socket.
    Virtio(PathBuf),
    /// `/dev/nvme0n1`, QEMU's model of an NVMe controller, from an NBD server at this socket.
    Nvme(PathBuf),
    /// `/dev/vda`, served by another program at this socket; QEMU has no part in it.
    VhostUser(PathBuf),
    /// `/dev/nbd0`, the guest's own client of an NBD server at this port of the host's loopback address.
    Nbd(u16),
}

impl Disk {
    /// The name of the way in, as the guest has it.
    fn front(&self) -> &'static str {
        match self {
            Disk::Virtio(_) => "virtio",
            Disk::Nvme(_) => "nvme",
            Disk::VhostUser(_) => "vhost-user",
            Disk::Nbd(_) => "nbd",
        }
    }

    /// What the guest calls it.
    pub fn device(&self) -> &'static str {
        match self {
            Disk::Virtio(_) | Disk::VhostUser(_) => "/dev/vda",
            Disk::Nvme(_) => "/dev/nvme0n1",
            Disk::Nbd(_) => "/dev/nbd0",
        }
    }

    /// What QEMU is told of it.
    fn arguments(&self) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        match self {
            Disk::Virtio(socket) => {
                [words(&["-blockdev"]), vec![over_nbd(socket)], words(&["-device", "virtio-blk-pci,drive=ssd"])]
                    .concat()
            }
            Disk::Nvme(socket) => {
                let device = words(&["-device", "nvme,drive=ssd,serial=floatgate"]);
                [words(&["-blockdev"]), vec![over_nbd(socket)], device].concat()
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

/// QEMU's client of an NBD server, past the memory of the host.
fn over_nbd(socket: &Path) -> String {
    let server = json!({ "type": "unix", "path": socket.to_string_lossy() });
    let nbd = json!({ "driver": "nbd", "server": server });
    let cache = json!({ "direct": true, "no-flush": false });
    json!({ "driver": "raw", "node-name": "ssd", "discard": "unmap", "cache": cache, "file": nbd }).to_string()
}

/// What to run.
#[derive(Debug)]
pub struct Machine<'a> {
    /// Kernel and first file system.
    pub guest: &'a Guest,
    /// What runs its instructions.
    pub accelerator: Accelerator,
    /// Its disk.
    pub disk: Disk,
    /// Its memory.
    pub memory_mib: u32,
    /// Its processors.
    pub processors: u32,
    /// A command for its shell; without one, the shell is the user's.
    pub command: Option<&'a str>,
    /// Files that it finds in `/root`.
    pub files: &'a [PathBuf],
}

/// How a machine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The command, or the user's shell, has this exit status.
    Status(u8),
    /// It ended without a word: the user has pulled the plug, or ended QEMU.
    Unplugged,
}

/// A machine that runs, and is ended when this goes.
#[derive(Debug)]
pub struct Running {
    child: Child,
    directory: Scratch,
    interactive: bool,
}

impl Machine<'_> {
    /// Starts it.
    pub fn start(&self) -> Result<Running, GuestError> {
        let directory = Scratch::new(PREFIX)?;
        let initrd = directory.path().join("initrd");
        self.write_initrd(&initrd)?;
        fs::write(directory.path().join("status"), "").map_err(GuestError::at(directory.path()))?;
        let mut command = bound_to_us();
        command.args(self.arguments(&initrd, directory.path()));
        // Where its standard input ends, QEMU takes it that nobody is there to hear what the command prints.
        command.stdin(if self.command.is_some() { Stdio::piped() } else { Stdio::inherit() });
        let child = command.spawn().map_err(missing)?;
        Ok(Running { child, directory, interactive: self.command.is_none() })
    }

    /// The guest's archive, and one with what it is told after it.
    fn write_initrd(&self, path: &Path) -> Result<(), GuestError> {
        let mut told = Archive::default();
        told.text("floatgate/front", self.disk.front());
        told.text("floatgate/device", self.disk.device());
        if let Disk::Nbd(port) = self.disk {
            told.text("floatgate/port", &port.to_string());
        }
        if let Some(command) = self.command {
            told.text("floatgate/command", &format!("{command}\n"));
        }
        for file in self.files {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let bytes = fs::read(file).map_err(GuestError::at(file))?;
            told.add(&format!("root/{name}"), Entry::File { bytes, runs: true });
        }
        let copied = || -> io::Result<()> {
            let mut out = fs::File::create(path)?;
            let length = io::copy(&mut fs::File::open(&self.guest.initrd)?, &mut out)?;
            out.write_all(&[0; 3][..(length.next_multiple_of(4) - length) as usize])?;
            let mut out = io::BufWriter::new(out);
            told.write(&mut out)?;
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
        all.extend(self.disk.arguments());
        all
    }
}

impl Running {
    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Whether its first program has said that it runs.
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

    /// Pulls the plug: what the guest has not flushed is lost.
    pub fn pull_plug(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for its end; says how it came.
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
        // QEMU's own mistakes have a status; a kernel that panics ends it well, and one that hangs is killed.
        if ended.code().is_none_or(|code| code == 0) { GuestError::NeverUp(self.console()) } else { failed(ended) }
    }
}

fn failed(ended: ExitStatus) -> GuestError {
    GuestError::Failed { program: QEMU.to_owned(), said: format!("{ended}; what it said is above") }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.pull_plug();
    }
}
