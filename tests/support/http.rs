//! A plain HTTP client: one request, one answer.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Status, head and body of what is answered.
pub(crate) async fn get(address: SocketAddr, path: &str) -> io::Result<(u16, String, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::InvalidData)?;
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok());
    Ok((
        status.ok_or(io::ErrorKind::InvalidData)?,
        head.to_owned(),
        body.to_owned(),
    ))
}
