//! Accelerator: chooses KVM if it can boot the guest's kernel, and emulation by QEMU otherwise.
//!
//! Some nested and paravirtual KVMs cannot boot Debian's kernels, although `/dev/kvm` can be opened. So a kernel is
//! booted once with a first program that exits, and the result is stored in the cache.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use crate::GuestError;
use crate::archive::{Archive, Entry};
use crate::packages::Cache;
pub use crate::qemu::Accelerator;
use crate::qemu::{QEMU, boot, bound_to_us};
use crate::scratch::{PREFIX, Scratch};
use crate::system::Guest;

/// Time limit for booting a kernel to its first program with KVM. It normally takes less than 2 s.
const PROBE: Duration = Duration::from_secs(8);

/// Stored result for a kernel that booted.
const BOOTS: &str = "boots\n";

impl Accelerator {
    /// Returns KVM if it boots the guest's kernel. Otherwise returns emulation, with the reason. Calls `say` before a
    /// test boot, which takes seconds.
    pub fn best(cache: &Cache, guest: &Guest, say: impl Fn(&str)) -> Result<(Accelerator, String), GuestError> {
        if let Err(error) = fs::OpenOptions::new().read(true).write(true).open("/dev/kvm") {
            return Ok((Accelerator::Tcg, format!("/dev/kvm: {error}")));
        }
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let memory = cache.path().join(format!("kvm-{}-{:016x}", release.trim().replace('/', "-"), guest.digest()));
        let remembered = fs::read_to_string(&memory).ok();
        let result = match remembered {
            Some(result) => result,
            None => {
                say(&format!("guest: testing KVM once, for at most {} s", PROBE.as_secs()));
                let result = probe(guest)?;
                fs::write(&memory, &result).map_err(GuestError::at(&memory))?;
                result
            }
        };
        if result == BOOTS {
            return Ok((Accelerator::Kvm, String::new()));
        }
        let reason = format!(
            "the KVM of this machine does not boot the guest ({}; stored in {})",
            result.trim(),
            memory.display()
        );
        Ok((Accelerator::Tcg, reason))
    }
}

/// Boots the kernel with KVM, with a first program that exits at once.
fn probe(guest: &Guest) -> Result<String, GuestError> {
    let directory = Scratch::new(PREFIX)?;
    let (initrd, console) = (directory.path().join("initrd"), directory.path().join("console"));
    let mut archive = Archive::default();
    archive.add("init", Entry::File { bytes: switches_off(), runs: true });
    archive.add("dev", Entry::Directory);
    let mut bytes = Vec::new();
    archive.write(&mut bytes).and_then(|()| fs::write(&initrd, bytes)).map_err(GuestError::at(&initrd))?;
    let mut command = bound_to_us();
    command.args(boot(guest, &initrd, Accelerator::Kvm)).args(["-m", "256M", "-serial"]);
    command.arg(format!("file:{}", console.display())).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child =
        command.spawn().map_err(|error| GuestError::Failed { program: QEMU.to_owned(), said: error.to_string() })?;
    for _ in 0..PROBE.as_millis() / 50 {
        if let Ok(Some(ended)) = child.try_wait() {
            let booted = fs::read_to_string(&console).unwrap_or_default().contains(PANIC);
            return Ok(if booted { BOOTS.to_owned() } else { format!("QEMU ended, {ended}\n") });
        }
        pause(Duration::from_millis(50));
    }
    let _ = child.kill();
    let _ = child.wait();
    Ok(format!("not up after {} s\n", PROBE.as_secs()))
}

/// Text that a kernel prints when its first program exits.
const PANIC: &str = "Attempted to kill init";

/// Returns a first program that exits at once. The kernel then panics, which ends QEMU because of `panic=-1`. The
/// program is `exit(0)` for x86-64 in the smallest ELF file that the kernel accepts: one header, and one segment with
/// the code.
fn switches_off() -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    let code = [0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05]; // mov eax, 60; xor edi, edi; syscall
    let size = 64 + 56 + code.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let halves = |file: &mut Vec<u8>, values: &[u16]| values.iter().for_each(|value| file.extend(value.to_le_bytes()));
    halves(&mut file, &[2, 62, 1, 0]); // a program, x86-64, version 1
    [BASE + 64 + 56, 64, 0].iter().for_each(|value: &u64| file.extend(value.to_le_bytes()));
    halves(&mut file, &[0, 0, 64, 56, 1, 0, 0, 0]); // sizes of headers, one segment, no sections
    halves(&mut file, &[1, 0, 5, 0]); // loadable, readable and executable
    [0, BASE, BASE, size, size, 0x1000].iter().for_each(|value| file.extend(value.to_le_bytes()));
    file.extend(code);
    file
}

fn pause(span: Duration) {
    #[expect(clippy::disallowed_methods, reason = "waits for a program, and decides nothing")]
    std::thread::sleep(span);
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_kernel_accepts_the_first_program() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("init");
        fs::write(&program, switches_off()).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(std::process::Command::new(&program).status().unwrap().success());
    }
}
