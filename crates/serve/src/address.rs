//! Addresses at which clients connect.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// TCP.
    Tcp(SocketAddr),
}

impl FromStr for Address {
    type Err = String;

    /// Parses `unix:PATH` or `HOST:PORT`.
    fn from_str(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            /// Maximum length of a socket path in bytes, without the terminating zero.
            const LONGEST: usize = 107;
            return match path.len() {
                0 => Err("`unix:` needs the path of a socket, like unix:/tmp/ssd.sock".to_owned()),
                length if length > LONGEST => {
                    Err(format!("the path of a socket has at most {LONGEST} bytes; `{path}` has {length}"))
                }
                _ => Ok(Address::Unix(PathBuf::from(path))),
            };
        }
        if !text.contains(':') {
            return Err(format!("invalid address `{text}`: expected unix:PATH (such as unix:{text}) or HOST:PORT"));
        }
        match text.to_socket_addrs().map(|mut addresses| addresses.next()) {
            Ok(Some(address)) => Ok(Address::Tcp(address)),
            Ok(None) => Err(format!("`{text}`: the host has no address")),
            Err(error) => Err(format!("invalid address `{text}`: expected unix:PATH or HOST:PORT ({error})")),
        }
    }
}

impl Address {
    /// Returns `true` if the address is local to this machine or equals `allowed`.
    pub fn is_allowed(&self, allowed: Option<IpAddr>) -> bool {
        match self {
            Address::Unix(_) => true,
            Address::Tcp(address) => address.ip().is_loopback() || Some(address.ip()) == allowed,
        }
    }

    /// Returns the address with an absolute path, so that it does not depend on the working directory.
    pub fn absolute(&self) -> Address {
        match self {
            Address::Unix(path) => Address::Unix(std::path::absolute(path).unwrap_or_else(|_| path.clone())),
            Address::Tcp(address) => Address::Tcp(*address),
        }
    }

    /// Returns the address as an NBD URI.
    pub fn nbd_uri(&self) -> String {
        match self {
            Address::Unix(path) => format!("nbd+unix:///?socket={}", escaped(&path.to_string_lossy())),
            Address::Tcp(address) => format!("nbd://{address}"),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(address) => address.fmt(f),
        }
    }
}

/// Escapes a path for the query of a URI.
fn escaped(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        let address = |text: &str| text.parse::<Address>();
        assert_eq!(address("unix:/tmp/a b"), Ok(Address::Unix("/tmp/a b".into())));
        assert_eq!(address("127.0.0.1:10809"), Ok(Address::Tcp("127.0.0.1:10809".parse().unwrap())));
        assert_eq!(address("[::1]:1"), Ok(Address::Tcp("[::1]:1".parse().unwrap())));
        assert!(address("/tmp/ssd.sock").is_err_and(|text| text.contains("as unix:/tmp/ssd.sock")));
        assert!(address("unix:").is_err_and(|text| text.contains("needs the path")));
        assert!(address(&format!("unix:/{}", "a".repeat(200))).is_err_and(|text| text.contains("at most 107")));
        assert!(address("127.0.0.1:x").is_err());
        assert_eq!(address("unix:/tmp/a b").unwrap().nbd_uri(), "nbd+unix:///?socket=/tmp/a%20b");
    }

    #[test]
    fn only_local_addresses_unless_one_is_allowed() {
        let is_allowed = |text: &str, ip: Option<&str>| {
            text.parse::<Address>().unwrap().is_allowed(ip.map(|ip| ip.parse().unwrap()))
        };
        assert!(is_allowed("unix:/tmp/x", None) && is_allowed("127.0.0.1:1", None) && is_allowed("[::1]:1", None));
        assert!(!is_allowed("0.0.0.0:1", None) && !is_allowed("192.0.2.1:1", Some("192.0.2.2")));
        assert!(is_allowed("192.0.2.1:1", Some("192.0.2.1")) && is_allowed("0.0.0.0:1", Some("0.0.0.0")));
    }
}
