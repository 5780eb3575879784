//! Monitor of a served device: its options, and the text about it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use floatgate_core::sim::text::read_text;
use floatgate_serve::Address;
use floatgate_serve::monitor::client::{PREFIX, SUFFIX, remove_dead};
use floatgate_serve::monitor::{Doors, Monitor, Options};

use super::clients::word;
use crate::failure::Failure;

/// Environment variable for the token, which `ps` does not show.
const VARIABLE: &str = "FLOATGATE_DASHBOARD_TOKEN";

/// Options of the monitor.
#[derive(Clone, clap::Args)]
pub struct MonitorArgs {
    /// Serve a web page, and metrics for Prometheus, at ADDR: HOST:PORT or PORT
    ///
    /// Without ADDR, a free port of the loopback interface is used. The page is read-only unless there is a token.
    /// --allow-remote permits a HOST that other machines can reach.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:0", value_parser = dashboard)]
    dashboard: Option<SocketAddr>,
    /// Allow control from the page with TOKEN, of 8 characters or more
    ///
    /// Control means to change the speed, trim the device, cut its power, and make operations fail. All users of this
    /// machine can see the token with `ps`. It is safer to set FLOATGATE_DASHBOARD_TOKEN, or to use
    /// --dashboard-token-file.
    #[arg(long, value_name = "TOKEN", requires = "dashboard", conflicts_with = "dashboard_token_file")]
    dashboard_token: Option<String>,
    /// Read the token from the first line of FILE
    #[arg(long, value_name = "FILE", requires = "dashboard")]
    dashboard_token_file: Option<PathBuf>,
    /// Control socket for `floatgate ctl` and `floatgate top`
    ///
    /// Default: a name that ends in .ctl, next to the NBD socket, or in XDG_RUNTIME_DIR or the directory for temporary
    /// files.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

/// Parses the address of the dashboard.
fn dashboard(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    match text.parse::<Address>() {
        Ok(Address::Tcp(address)) => Ok(address),
        _ => Err(format!("invalid dashboard address `{text}`: expected HOST:PORT or PORT, such as 127.0.0.1:8080")),
    }
}

impl MonitorArgs {
    /// Opens the control socket and the dashboard of a server with these addresses for clients. `token` is the result
    /// of [`MonitorArgs::token`].
    pub fn open(
        &self,
        addresses: &[Address],
        allow_remote: Option<IpAddr>,
        token: Option<String>,
    ) -> Result<Doors, Failure> {
        let control = Some(self.control.clone().unwrap_or_else(|| default_control(addresses)));
        let options = Options {
            control,
            dashboard: self.dashboard,
            allow_remote,
            token,
            plotting_library: floatgate_report::PLOTLY,
        };
        Doors::open(options).map_err(Failure::from)
    }

    /// Returns the token for control from the page, if there is one. Reading it from a pipe waits for the writer.
    pub fn token(&self) -> Result<Option<String>, Failure> {
        let reported =
            |path: &PathBuf, error| Failure::mistake(format!("--dashboard-token-file {}: {error}", path.display()));
        let from_file = |path: &PathBuf| read_text(path, 1 << 12).map_err(|error| reported(path, error));
        let of_variable = || std::env::var(VARIABLE).ok().filter(|token| self.dashboard.is_some() && !token.is_empty());
        let token = match (&self.dashboard_token, &self.dashboard_token_file) {
            (Some(token), _) => Some(token.clone()),
            (None, Some(path)) => Some(from_file(path)?.lines().next().unwrap_or_default().trim().to_owned()),
            (None, None) => of_variable(),
        };
        let is_fit =
            |token: &String| (8..=256).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
        match token {
            Some(token) if !is_fit(&token) => {
                Err(Failure::mistake("invalid dashboard token: expected 8 to 256 ASCII characters without spaces"))
            }
            token => Ok(token),
        }
    }
}

/// Returns the default path of the control socket: next to the first Unix socket. Without a Unix socket, it is in
/// `XDG_RUNTIME_DIR`, or in the directory for temporary files.
fn default_control(addresses: &[Address]) -> PathBuf {
    let unix = addresses.iter().find_map(|address| match address {
        Address::Unix(path) => Some(path.with_extension(SUFFIX)),
        Address::Tcp(_) => None,
    });
    let runtime = || std::env::var_os("XDG_RUNTIME_DIR").filter(|place| !place.is_empty()).map(PathBuf::from);
    let own = || {
        let place = runtime().unwrap_or_else(std::env::temp_dir);
        remove_dead(&place);
        place.join(format!("{PREFIX}{}.{SUFFIX}", std::process::id()))
    };
    unix.unwrap_or_else(own)
}

/// Returns the text about the monitor that is printed when clients are served.
pub fn welcome(monitor: &Monitor) -> String {
    let mut text = String::new();
    if let Some(address) = monitor.dashboard() {
        text += &format!("\nDashboard at http://{address}/, metrics at http://{address}/metrics\n");
    }
    if let Some(path) = monitor.control() {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        text += &format!("\nControl at {}\n", path.display());
        text += &format!("  watch    floatgate top {}\n", word(&path));
        text += &format!("  query    floatgate ctl --socket {} status\n", word(&path));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_without_a_host_is_on_loopback() {
        assert_eq!(dashboard("8080"), Ok("127.0.0.1:8080".parse().unwrap()));
        assert_eq!(dashboard("[::1]:1"), Ok("[::1]:1".parse().unwrap()));
        for wrong in ["tlc-nvme", "unix:/tmp/x", "70000", ""] {
            assert!(dashboard(wrong).is_err_and(|text| text.contains("HOST:PORT")), "{wrong}");
        }
    }
}
