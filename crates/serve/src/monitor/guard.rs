//! Access control for the dashboard: checks of the host name and of the token.
//!
//! A page of another site may make a browser send requests to this server, through a host name of its own that resolves
//! to this machine (DNS rebinding), or without seeing the response (CSRF). The check of the `Host` header prevents the
//! first. The second is prevented by the token, which is sent in a header that no browser adds by itself, and by a
//! check of `Origin`.

use std::net::SocketAddr;

use hyper::header::{AUTHORIZATION, HOST, ORIGIN};
use hyper::{HeaderMap, Uri};

/// Host names of the dashboard.
pub struct Hosts(Vec<String>);

impl Hosts {
    /// Returns the host names of an address.
    pub fn new(at: Option<SocketAddr>) -> Hosts {
        let Some(at) = at else { return Hosts(Vec::new()) };
        let mut names = vec![at.to_string()];
        if at.ip().is_loopback() {
            names.push(format!("localhost:{}", at.port()));
        }
        if at.port() == 80 {
            names.extend(names.clone().iter().filter_map(|name| name.strip_suffix(":80").map(str::to_owned)));
        }
        Hosts(names)
    }

    /// Returns `true` if the host name of a request belongs to this server. If the server listens on all addresses of
    /// the machine, accepts any IP address, but no name.
    fn has(&self, host: &str) -> bool {
        let by_address = |name: &String| {
            let (ours, requested) = (name.parse::<SocketAddr>(), host.parse::<SocketAddr>());
            match (ours, requested) {
                (Ok(ours), Ok(requested)) => ours.ip().is_unspecified() && ours.port() == requested.port(),
                _ => false,
            }
        };
        self.0.iter().any(|name| name.eq_ignore_ascii_case(host) || by_address(name))
    }

    /// Checks that a request names this server as the host, and no other origin. A target in absolute form, such as
    /// `http://localhost:8080/`, has its own host, and the header is ignored (RFC 9112, section 3.2.2).
    pub fn allow(&self, target: &Uri, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let header = hosts.next().and_then(|host| host.to_str().ok());
        let host = target.authority().map(|authority| authority.as_str()).or(header);
        let origin =
            headers.get(ORIGIN).map(|origin| origin.to_str().ok().and_then(|text| text.strip_prefix("http://")));
        host.is_some_and(|host| self.has(host)) && hosts.next().is_none() && origin.is_none_or(|origin| origin == host)
    }
}

/// Checks the token of a request, in constant time for tokens of the right length.
pub fn has_token(headers: &HeaderMap, token: &str) -> bool {
    const SCHEME: &[u8] = b"Bearer ";
    let given = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().split_at_checked(SCHEME.len()));
    // Names of schemes are not case-sensitive (RFC 9110, section 11.1).
    let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(SCHEME)).map(|(_, given)| given);
    let Some(given) = given.filter(|given| given.len() == token.len()) else { return false };
    given.iter().zip(token.as_bytes()).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in all {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    fn allows(hosts: &Hosts, headers: &HeaderMap) -> bool {
        hosts.allow(&Uri::from_static("/"), headers)
    }

    #[test]
    fn the_host_of_an_absolute_target_counts() {
        let hosts = Hosts::new(Some("127.0.0.1:8080".parse().unwrap()));
        let by = |target: &'static str, host: &str| hosts.allow(&Uri::from_static(target), &headers(&[("host", host)]));
        assert!(by("http://localhost:8080/api/status", "localhost:8080"));
        assert!(by("http://localhost:8080/api/status", "evil.example"));
        for target in ["http://evil.example/", "http://localhost:8080@evil.example/", "http://localhost:8080.evil/"] {
            assert!(!by(target, "localhost:8080"), "{target}");
        }
    }

    #[test]
    fn only_host_names_of_this_server_are_accepted() {
        let hosts = Hosts::new(Some("127.0.0.1:8080".parse().unwrap()));
        for host in ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080"] {
            assert!(allows(&hosts, &headers(&[("host", host)])), "{host}");
        }
        for host in ["evil.example:8080", "127.0.0.1", "127.0.0.1:80", "localhost", "", "localhost:8080.evil.example"] {
            assert!(!allows(&hosts, &headers(&[("host", host)])), "{host}");
        }
        assert!(!allows(&hosts, &headers(&[])));
        assert!(!allows(&hosts, &headers(&[("host", "localhost:8080"), ("host", "evil.example")])));
        let all = Hosts::new(Some("0.0.0.0:8080".parse().unwrap()));
        assert!(allows(&all, &headers(&[("host", "192.0.2.7:8080")])));
        assert!(
            !allows(&all, &headers(&[("host", "192.0.2.7:81")])) && !allows(&all, &headers(&[("host", "evil:8080")]))
        );
        assert!(allows(&Hosts::new(Some("127.0.0.1:80".parse().unwrap())), &headers(&[("host", "localhost")])));
    }

    #[test]
    fn other_origins_are_refused() {
        let hosts = Hosts::new(Some("[::1]:8080".parse().unwrap()));
        let from = |origin| allows(&hosts, &headers(&[("host", "[::1]:8080"), ("origin", origin)]));
        assert!(from("http://[::1]:8080"));
        assert!(!from("http://evil.example") && !from("null") && !from("https://[::1]:8080") && !from(""));
    }

    #[test]
    fn the_token_must_match_completely() {
        let given = |value: &str| has_token(&headers(&[("authorization", value)]), "0123456789");
        for scheme in ["Bearer", "bearer", "BEARER"] {
            assert!(given(&format!("{scheme} 0123456789")), "{scheme}");
        }
        for wrong in [
            "Bearer 012345678",
            "Bearer 01234567890",
            "Bearer 0123456788",
            "0123456789",
            "Basic 0123456789",
            "Bearer0123456789",
            "",
        ] {
            assert!(!given(wrong), "{wrong}");
        }
        assert!(!has_token(&HeaderMap::new(), "0123456789"));
    }
}
