//! QEMU: how it is called.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::GuestError;
use crate::system::Guest;

/// What runs instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// The processor itself.
    Kvm,
    /// QEMU, some 10 to 30 times slower. Time in the guest has little to do with that of a real machine.
    Tcg,
}

impl Accelerator {
    /// As QEMU has it.
    pub fn name(self) -> &'static str {
        match self {
            Accelerator::Kvm => "kvm",
            Accelerator::Tcg => "tcg",
        }
    }
}

/// The program.
pub const QEMU: &str = "qemu-system-x86_64";

/// What every machine is told: a kernel whose panic ends QEMU, no devices of its own, no window.
pub(crate) fn boot(guest: &Guest, initrd: &Path, accelerator: Accelerator) -> Vec<String> {
    let (kernel, initrd) = (guest.kernel.to_string_lossy(), initrd.to_string_lossy());
    let cpu = if accelerator == Accelerator::Kvm { "host" } else { "max" };
    // Where the host is busy, a kernel that counts ticks while QEMU does not run takes the timer for broken, and
    // panics.
    let console = "console=ttyS0 quiet panic=-1 no_timer_check rdinit=/init";
    ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-accel", accelerator.name(), "-cpu", cpu]
        .into_iter()
        .chain(["-kernel", &kernel, "-initrd", &initrd, "-append", console])
        .map(str::to_owned)
        .collect()
}

/// QEMU, which the kernel ends when this program is killed, where util-linux is there to arrange it.
pub(crate) fn bound_to_us() -> Command {
    let dies_with_us =
        Command::new("setpriv").args(["--pdeathsig", "KILL", "--", "true"]).stderr(Stdio::null()).status();
    if dies_with_us.is_ok_and(|status| status.success()) {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", QEMU]);
        command
    } else {
        Command::new(QEMU)
    }
}

/// Whether QEMU is there at all.
pub fn check_qemu() -> Result<(), GuestError> {
    Command::new(QEMU).arg("--version").stdout(Stdio::null()).status().map(|_| ()).map_err(missing)
}

pub(crate) fn missing(error: io::Error) -> GuestError {
    match error.kind() {
        io::ErrorKind::NotFound => GuestError::Missing {
            program: QEMU.to_owned(),
            purpose: "runs the guest",
            remedy: "Debian has it in the package qemu-system-x86",
        },
        _ => GuestError::Failed { program: QEMU.to_owned(), said: error.to_string() },
    }
}
