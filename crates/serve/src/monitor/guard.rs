//! Access control for the dashboard: checks of the host name and of the token.
//!
//! A page of another site may make a browser send requests to this server, through a host name of its own that resolves
//! to this machine (DNS rebinding), or without seeing the response (CSRF). The check of the `Host` header prevents the
//! first. The second is prevented by the token, which is sent in a header that no browser adds by itself, and by a
//! check of `Origin`.

use std::net::SocketAddr;

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};

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

    /// Checks that the headers of a request name this server as the host, and name no other origin.
    pub fn allow(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        let origin =
            headers.get(ORIGIN).map(|origin| origin.to_str().ok().and_then(|text| text.strip_prefix("http://")));
        host.is_some_and(|host| self.has(host)) && hosts.next().is_none() && origin.is_none_or(|origin| origin == host)
    }
}

/// Checks the token of a request, in constant time for tokens of the right length.
pub fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
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

    #[test]
    fn only_host_names_of_this_server_are_accepted() {
        let hosts = Hosts::new(Some("127.0.0.1:8080".parse().unwrap()));
        for host in ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080"] {
            assert!(hosts.allow(&headers(&[("host", host)])), "{host}");
        }
        for host in ["evil.example:8080", "127.0.0.1", "127.0.0.1:80", "localhost", "", "localhost:8080.evil.example"] {
            assert!(!hosts.allow(&headers(&[("host", host)])), "{host}");
        }
        assert!(!hosts.allow(&headers(&[])));
        assert!(!hosts.allow(&headers(&[("host", "localhost:8080"), ("host", "evil.example")])));
        let all = Hosts::new(Some("0.0.0.0:8080".parse().unwrap()));
        assert!(all.allow(&headers(&[("host", "192.0.2.7:8080")])));
        assert!(!all.allow(&headers(&[("host", "192.0.2.7:81")])) && !all.allow(&headers(&[("host", "evil:8080")])));
        assert!(Hosts::new(Some("127.0.0.1:80".parse().unwrap())).allow(&headers(&[("host", "localhost")])));
    }

    #[test]
    fn other_origins_are_refused() {
        let hosts = Hosts::new(Some("[::1]:8080".parse().unwrap()));
        let from = |origin| hosts.allow(&headers(&[("host", "[::1]:8080"), ("origin", origin)]));
        assert!(from("http://[::1]:8080"));
        assert!(!from("http://evil.example") && !from("null") && !from("https://[::1]:8080") && !from(""));
    }

    #[test]
    fn the_token_must_match_completely() {
        let given = |value: &str| has_token(&headers(&[("authorization", value)]), "0123456789");
        assert!(given("Bearer 0123456789"));
        for wrong in ["Bearer 012345678", "Bearer 01234567890", "Bearer 0123456788", "0123456789", "Basic 0123456789"] {
            assert!(!given(wrong), "{wrong}");
        }
        assert!(!has_token(&HeaderMap::new(), "0123456789"));
    }
}
