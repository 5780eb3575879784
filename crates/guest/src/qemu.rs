//! QEMU: builds its command line and finds the program.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::GuestError;
use crate::system::Guest;

/// Method by which the guest's instructions are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// Execution by the processor.
    Kvm,
    /// Emulation by QEMU, about 10 to 30 times slower. Times in the guest differ greatly from those of a real machine.
    Tcg,
}

impl Accelerator {
    /// Returns the name of the accelerator in QEMU.
    pub fn name(self) -> &'static str {
        match self {
            Accelerator::Kvm => "kvm",
            Accelerator::Tcg => "tcg",
        }
    }
}

/// Name of the QEMU program.
pub const QEMU: &str = "qemu-system-x86_64";

/// Returns the arguments of every machine: a kernel whose panic ends QEMU, no default devices, and no window.
pub(crate) fn boot(guest: &Guest, initrd: &Path, accelerator: Accelerator) -> Vec<String> {
    let (kernel, initrd) = (guest.kernel.to_string_lossy(), initrd.to_string_lossy());
    let cpu = if accelerator == Accelerator::Kvm { "host" } else { "max" };
    // On a busy host, QEMU may not run while the kernel counts timer ticks. The kernel would then consider the timer
    // broken and panic, so the check is off.
    let console = "console=ttyS0 quiet panic=-1 no_timer_check rdinit=/init";
    ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-accel", accelerator.name(), "-cpu", cpu]
        .into_iter()
        .chain(["-kernel", &kernel, "-initrd", &initrd, "-append", console])
        .map(str::to_owned)
        .collect()
}

/// Returns the command that starts QEMU. If `setpriv` of util-linux is installed, the kernel kills QEMU when this
/// program is killed.
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

/// Fails if QEMU is not installed.
pub fn check_qemu() -> Result<(), GuestError> {
    Command::new(QEMU).arg("--version").stdout(Stdio::null()).status().map(|_| ()).map_err(missing)
}

pub(crate) fn missing(error: io::Error) -> GuestError {
    match error.kind() {
        io::ErrorKind::NotFound => GuestError::Missing {
            program: QEMU.to_owned(),
            purpose: "runs the guest",
            remedy: "install it, on Debian with the package qemu-system-x86",
        },
        _ => GuestError::Failed { program: QEMU.to_owned(), said: error.to_string() },
    }
}
