//! The loopback interface of a new network namespace, which starts switched off.

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// `RTM_NEWLINK` of `linux/rtnetlink.h`: change an interface.
const NEW_LINK: u16 = 16;
/// `NLM_F_REQUEST | NLM_F_ACK` of `linux/netlink.h`.
const REQUEST_WITH_REPLY: u16 = 1 | 4;
/// `NLMSG_ERROR` of `linux/netlink.h`, which also reports success.
const RESULT: u16 = 2;
/// The index of the loopback interface, the first of each network namespace.
const LOOPBACK: i32 = 1;
/// `IFF_UP` of `linux/if.h`.
const UP: u32 = 1;
/// The length of a message header, in bytes.
const HEADER_LEN: usize = 16;

/// Switches the loopback interface on.
///
/// # Errors
/// This process does not own its network namespace.
pub(super) fn switch_on() -> std::io::Result<()> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // The family of routes and interfaces, `NETLINK_ROUTE`, is 0.
        None,
    )?;
    rustix::net::send(&socket, &request(), SendFlags::empty())?;
    let mut reply = [0; 512];
    let (length, _) = rustix::net::recv(&socket, &mut reply, RecvFlags::empty())?;
    match result(&reply[..length.min(512)]) {
        Some(0) => Ok(()),
        Some(error) => Err(std::io::Error::from_raw_os_error(error)),
        None => Err(std::io::ErrorKind::InvalidData.into()),
    }
}

/// The message: a `nlmsghdr` and an `ifinfomsg`, in the byte order of this machine.
fn request() -> Vec<u8> {
    let mut message = Vec::with_capacity(2 * HEADER_LEN);
    message.extend(u32::try_from(2 * HEADER_LEN).unwrap_or_default().to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_WITH_REPLY.to_ne_bytes());
    // Sequence number and sender.
    message.extend([0; 8]);
    // Address family, padding, and type of the device: any.
    message.extend([0; 4]);
    message.extend(LOOPBACK.to_ne_bytes());
    // The flags, and which of them change.
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message
}

/// Returns the error number of a reply, which is 0 for success.
fn result(reply: &[u8]) -> Option<i32> {
    let kind = u16::from_ne_bytes(reply.get(4..6)?.try_into().ok()?);
    let error = i32::from_ne_bytes(reply.get(HEADER_LEN..HEADER_LEN + 4)?.try_into().ok()?);
    (kind == RESULT).then_some(error.saturating_neg())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_a_result_with_an_error_number() {
        let reply = |kind: u16, error: i32| {
            let mut bytes = vec![0; 36];
            bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
            bytes[16..20].copy_from_slice(&error.to_ne_bytes());
            bytes
        };
        assert_eq!(result(&reply(RESULT, 0)), Some(0));
        assert_eq!(result(&reply(RESULT, -libc::EPERM)), Some(libc::EPERM));
        assert_eq!(result(&reply(NEW_LINK, 0)), None);
        assert_eq!(result(&[0; 7]), None);
    }
}
