//! Classifies servers by the host in their URL.

use std::net::IpAddr;

use reqwest::Url;

/// Returns whether a server is on this machine.
pub(in crate::model) fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

/// Returns whether a server is on this machine or in its private network.
///
/// Such servers often run on slow hardware.
pub(super) fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).trim_end_matches('.');
    match host.parse() {
        Ok(IpAddr::V4(address)) => {
            address.is_loopback() || address.is_private() || address.is_link_local()
        }
        Ok(IpAddr::V6(address)) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
        // A name without a dot is not a public name.
        Err(_) => {
            !host.contains('.')
                || [".localhost", ".local", ".lan", ".internal", ".home.arpa"]
                    .iter()
                    .any(|end| host.ends_with(end))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_servers_are_recognised() {
        let local = [
            "http://localhost:1",
            "http://127.0.0.1/v1",
            "http://[::1]:8000",
            "http://10.1.2.3",
            "http://192.168.0.7:11434",
        ];
        let named = [
            "http://gpu:8000",
            "http://gpu.local./v1",
            "https://ai.lan",
            "http://host.docker.internal:1",
            "http://[fd00::1]",
        ];
        for url in local.iter().chain(&named) {
            assert!(is_local(&url.parse().expect(url)), "{url}");
        }
        for url in [
            "https://api.openai.com/v1",
            "http://8.8.8.8",
            "https://local.example.com",
            "http://[2001:db8::1]",
            "http://172.32.0.1",
        ] {
            assert!(!is_local(&url.parse().expect(url)), "{url}");
        }
    }
}
