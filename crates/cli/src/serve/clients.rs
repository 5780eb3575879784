//! Commands that connect clients to a server.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use floatgate_core::device_file::DeviceConfig;
use floatgate_report::command::quoted;
use floatgate_serve::engine::Cost;
use floatgate_serve::monitor::client::{Requester, running, usual_places};
use floatgate_serve::monitor::commands::Command;
use floatgate_serve::monitor::frame::Info;
use floatgate_serve::{Address, Server};
use floatgate_workload::quantity::readable;
use serde::Deserialize;

use floatgate_run::text::harmless;

/// Text about clients at the end of `--help`. The text of [`of_running`] follows it.
pub const HELP: &str = "\
Commands for clients of a server with --nbd unix:/tmp/ssd.sock. The commands for your server are printed when it is
ready, and, while it runs, at the end of this help and by `floatgate ctl clients`:
  nbdinfo 'nbd+unix:///?socket=/tmp/ssd.sock'
  fio --name=live --ioengine=nbd --uri='nbd+unix:///?socket=/tmp/ssd.sock' --rw=randread --bs=4k
  qemu-img bench -f raw -t none -c 10000 -d 16 'nbd+unix:///?socket=/tmp/ssd.sock'
  qemu-system-x86_64 ... -drive 'file=nbd+unix:///?socket=/tmp/ssd.sock,format=raw,if=virtio,cache=none'
  nbd-client -unix /tmp/ssd.sock /dev/nbd0
With --vhost-user /tmp/vhost.sock:
  qemu-system-x86_64 ... -m 1G -object memory-backend-memfd,id=m,size=1G,share=on -machine memory-backend=m \
    -chardev socket,id=c,path=/tmp/vhost.sock,reconnect=1 -device vhost-user-blk-pci,chardev=c
With --nvme tcp://127.0.0.1:4420, as root:
  nvme connect-all -t tcp -a 127.0.0.1 -s 4420

To watch a server, and to change its speed:
  floatgate serve tlc-nvme --nbd unix:/tmp/ssd.sock --dashboard   prints the address of a web page
  floatgate top /tmp/ssd.ctl                                      shows the same in a terminal
  floatgate ctl --socket /tmp/ssd.ctl speed 0.1";

/// Returns the text that is printed when clients are served. `monitor` is the text about the monitor.
pub fn welcome(config: &DeviceConfig, server: &Server, no_delay: bool, monitor: &str) -> String {
    let time = if no_delay {
        "as fast as possible, not in real time".to_owned()
    } else {
        format!("in real time{}", deducted(server))
    };
    let size = readable(u128::from(config.logical_bytes()));
    let mut text = format!("{}: {size}, {time}\n", config.name);
    let info = Info::new(config, server.addresses(), false);
    text += &commands(&Info { nqn: server.nqn().map(ToOwned::to_owned), ..info });
    text + monitor + "\nCtrl-C ends the server and prints the result."
}

/// Returns the commands for clients of this server.
pub fn commands(info: &Info) -> String {
    let nbd = info.addresses.iter().filter_map(|address| address.parse().ok());
    let nbd: String = nbd.map(|address| of_address(&address)).collect();
    let nvme = info.nvme.iter().filter_map(|address| address.parse().ok());
    let nvme: String = nvme.map(|address| of_nvme(&address, info.nqn.as_deref())).collect();
    nbd + &info.vhost_user.as_deref().map(of_vhost_user).unwrap_or_default() + &nvme
}

/// Returns the commands for clients of all running servers. Servers that do not respond are omitted.
pub fn of_running() -> String {
    /// Time limit for a response. A server responds at once, and help should not wait for a server that hangs.
    const PATIENCE: Duration = Duration::from_secs(3);
    let ask = |path: &Path| -> io::Result<Info> {
        let mut requester = Requester::connect(path)?;
        requester.set_patience(Some(PATIENCE))?;
        let mut answer = requester.ask(&Command::Watch { blocks: false })?;
        Ok(Info::deserialize(harmless(answer["info"].take()))?)
    };
    let infos = running(&usual_places()).into_iter().filter_map(|path| ask(&path).ok());
    infos.map(|info| format!("\nRunning now: {}\n{}", info.device, commands(&info))).collect()
}

/// Returns the text about the overhead that is deducted, for each frontend.
fn deducted(server: &Server) -> String {
    let of = |what: &str, cost: &Cost| {
        let [read, write] = cost.us();
        let waking = match cost.waking_us() {
            waking if waking > 0.0 => format!(" ({waking:.1} us less for polling clients)"),
            _ => String::new(),
        };
        format!(
            "; the overhead of the host is deducted{what}: {read:.1} us for a read and {write:.1} us for a write of \
             4 KiB{waking}"
        )
    };
    let (costs, addresses) = (server.costs(), server.addresses());
    let frontends = [
        (!addresses.nbd.is_empty(), " over NBD", &costs.nbd),
        (addresses.vhost_user.is_some(), " over vhost-user", &costs.vhost_user),
        (!addresses.nvme.is_empty(), " over NVMe/TCP", &costs.nvme),
    ];
    let used: Vec<_> = frontends.into_iter().filter(|(is_used, ..)| *is_used).collect();
    match used[..] {
        [(_, _, cost)] => of("", cost),
        _ => used.iter().map(|(_, what, cost)| of(what, cost)).collect(),
    }
}

/// Quotes a path for a shell.
pub fn word(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// Returns the commands for an NBD address.
fn of_address(address: &Address) -> String {
    let uri = address.nbd_uri();
    let kernel = match address {
        Address::Unix(path) => format!("nbd-client -unix {} /dev/nbd0", word(path)),
        Address::Tcp(address) => format!("nbd-client {} {} /dev/nbd0", address.ip(), address.port()),
    };
    let commands = [
        ("info", format!("nbdinfo '{uri}'")),
        (
            "fio",
            format!(
                "fio --name=live --ioengine=nbd --uri='{uri}' --rw=randread --bs=4k --iodepth=1 --time_based --runtime=10"
            ),
        ),
        ("copy", format!("nbdcopy disk.img '{uri}'")),
        ("QEMU", format!("qemu-img bench -f raw -t none -c 10000 -d 16 '{uri}'")),
        ("virtio", format!("qemu-system-x86_64 ... -drive 'file={uri},format=raw,if=virtio,cache=none,discard=unmap'")),
        (
            "NVMe",
            format!(
                "qemu-system-x86_64 ... -drive 'file={uri},format=raw,if=none,id=ssd,cache=none,discard=unmap' \
                 -device nvme,drive=ssd,serial=1"
            ),
        ),
        ("kernel", format!("{kernel}        (as root)")),
    ];
    listed(&format!("NBD at {address}"), &commands)
}

/// Returns the commands for NVMe hosts at an address. The NQN is unknown until the device is ready.
fn of_nvme(address: &SocketAddr, nqn: Option<&str>) -> String {
    let at = format!("-t tcp -a {} -s {}", address.ip(), address.port());
    let mut commands = vec![("find", format!("nvme discover {at}"))];
    match nqn.map(quoted) {
        Some(nqn) => commands.extend([
            ("attach", format!("nvme connect {at} -n {nqn}        (as root)")),
            ("detach", format!("nvme disconnect -n {nqn}        (as root)")),
        ]),
        None => commands.push(("attach", format!("nvme connect-all {at}        (as root)"))),
    }
    listed(&format!("NVMe at tcp://{address}"), &commands)
}

/// Returns a list of commands.
fn listed(title: &str, commands: &[(&str, String)]) -> String {
    let mut text = format!("\n{title}\n");
    for (name, command) in commands {
        text += &format!("  {name:<8} {command}\n");
    }
    text
}

/// Returns the commands for a vhost-user socket.
fn of_vhost_user(path: &str) -> String {
    // A comma in a value of a QEMU option must be doubled.
    let chardev = quoted(&format!("socket,id=c,path={},reconnect=1", path.replace(',', ",,")));
    let path = quoted(path);
    let commands = [
        (
            "QEMU",
            format!(
                "qemu-system-x86_64 ... -m 1G -object memory-backend-memfd,id=m,size=1G,share=on -machine \
                 memory-backend=m -chardev {chardev} -device vhost-user-blk-pci,chardev=c"
            ),
        ),
        (
            "libblkio",
            format!(
                "fio --name=live --ioengine=libblkio --libblkio_driver=virtio-blk-vhost-user --libblkio_path={path} \
                 --libblkio_wait_mode=block --thread --rw=randread --bs=4k --iodepth=1 --time_based --runtime=10"
            ),
        ),
    ];
    listed(&format!("vhost-user-blk at {path}"), &commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_commands() {
        let unix = of_address(&"unix:/tmp/ssd.sock".parse().unwrap());
        assert!(unix.contains("--uri='nbd+unix:///?socket=/tmp/ssd.sock'"), "{unix}");
        assert!(unix.contains("nbd-client -unix /tmp/ssd.sock /dev/nbd0"), "{unix}");
        let tcp = of_address(&"127.0.0.1:10809".parse().unwrap());
        assert!(tcp.contains("nbdinfo 'nbd://127.0.0.1:10809'"), "{tcp}");
        assert!(tcp.contains("nbd-client 127.0.0.1 10809 /dev/nbd0"), "{tcp}");
        let nvme = of_nvme(&"127.0.0.1:4420".parse().unwrap(), Some("nqn.2026-01.example:drive"));
        assert!(nvme.contains("connect -t tcp -a 127.0.0.1 -s 4420 -n nqn.2026-01.example:drive "), "{nvme}");
        let odd = of_nvme(&"[::1]:4420".parse().unwrap(), Some("nqn.2026-01.example:a'b"));
        assert!(odd.contains(r"connect -t tcp -a ::1 -s 4420 -n 'nqn.2026-01.example:a'\''b' "), "{odd}");
        let filling = of_nvme(&"127.0.0.1:4420".parse().unwrap(), None);
        assert!(filling.contains("connect-all -t tcp") && !filling.contains("-n "), "{filling}");
        let vhost_user = of_vhost_user("/tmp/vhost.sock");
        assert!(vhost_user.contains("-chardev socket,id=c,path=/tmp/vhost.sock,reconnect=1"), "{vhost_user}");
        assert!(vhost_user.contains("-device vhost-user-blk-pci,chardev=c"), "{vhost_user}");
        let odd = of_address(&"unix:/tmp/my disks/it's".parse().unwrap());
        assert!(
            odd.contains(r"socket=/tmp/my%20disks/it%27s'") && odd.contains(r"-unix '/tmp/my disks/it'\''s' "),
            "{odd}"
        );
        let odd = of_vhost_user("/tmp/my disks/a,b");
        assert!(odd.contains("-chardev 'socket,id=c,path=/tmp/my disks/a,,b,reconnect=1' "), "{odd}");
        assert!(odd.contains("--libblkio_path='/tmp/my disks/a,b' "), "{odd}");
    }
}
