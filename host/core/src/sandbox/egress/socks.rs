//! SOCKS5, as in RFC 1928: `CONNECT` without authentication.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::connect::EgressRefusal;
use super::{EgressContext, REQUEST_TIMEOUT, SOCKS_VERSION, tunnel};
use crate::policy::HostAddress;

const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// The codes of a reply.
#[derive(Clone, Copy)]
enum SocksReply {
    Succeeded = 0,
    NotAllowed = 2,
    HostUnreachable = 4,
    UnknownCommand = 7,
    UnknownAddressType = 8,
}

/// Serves one connection.
pub(super) async fn serve(context: &Arc<EgressContext>, mut stream: TcpStream) -> io::Result<()> {
    let asked = tokio::time::timeout(REQUEST_TIMEOUT, read_request(&mut stream)).await;
    let host = match asked.map_err(|_| io::ErrorKind::TimedOut)?? {
        Ok(host) => host,
        Err(code) => return reply(&mut stream, code).await,
    };
    match context.connect(&host).await {
        Ok(server) => {
            reply(&mut stream, SocksReply::Succeeded).await?;
            tunnel::run(stream, server, &host).await
        }
        Err(EgressRefusal::Unreachable(_)) => reply(&mut stream, SocksReply::HostUnreachable).await,
        Err(EgressRefusal::Denied(_) | EgressRefusal::SpecialAddress(_)) => {
            reply(&mut stream, SocksReply::NotAllowed).await
        }
    }
}

/// Reads the greeting and the request. Returns the host, or the code of the reply.
async fn read_request(stream: &mut TcpStream) -> io::Result<Result<HostAddress, SocksReply>> {
    let [_, count] = read(stream).await?;
    let mut methods = vec![0; usize::from(count)];
    stream.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        stream.write_all(&[SOCKS_VERSION, NO_METHOD]).await?;
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    stream.write_all(&[SOCKS_VERSION, NO_AUTHENTICATION]).await?;
    let [version, command, _, kind] = read(stream).await?;
    if version != SOCKS_VERSION || command != CONNECT {
        return Ok(Err(SocksReply::UnknownCommand));
    }
    let host = match kind {
        IPV4 => Ok(Ipv4Addr::from(read::<4>(stream).await?).into()),
        IPV6 => Ok(Ipv6Addr::from(read::<16>(stream).await?).into()),
        NAME => {
            let [length] = read(stream).await?;
            let mut name = vec![0; usize::from(length)];
            stream.read_exact(&mut name).await?;
            Err(String::from_utf8(name).unwrap_or_default())
        }
        _ => return Ok(Err(SocksReply::UnknownAddressType)),
    };
    let port = u16::from_be_bytes(read(stream).await?);
    Ok(match host {
        Ok(address) => Ok(HostAddress::from_socket_addr(SocketAddr::new(address, port))),
        Err(name) => {
            HostAddress::parse(&format!("{name}:{port}")).map_err(|_| SocksReply::HostUnreachable)
        }
    })
}

async fn read<const COUNT: usize>(stream: &mut TcpStream) -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Sends a reply. The address in it has no meaning here.
async fn reply(stream: &mut TcpStream, code: SocksReply) -> io::Result<()> {
    stream.write_all(&[SOCKS_VERSION, code as u8, 0, IPV4, 0, 0, 0, 0, 0, 0]).await
}
