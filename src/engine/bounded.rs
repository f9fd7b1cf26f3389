//! A connection that reads only so much for one question.
//!
//! Drivers buffer an answer until it is complete and believe the length that the server announces. A hostile or broken
//! server could so make us keep gigabytes. Here each question has an allowance; an answer beyond it is an error, which ends
//! the connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that one answer may have, TLS included. The largest honest one, 256 standbys, has some 40 kB.
pub(super) const ALLOWANCE: usize = 256 * 1024;

/// What is left of the allowance. Renewed by whoever asks.
#[derive(Clone, Debug)]
pub(super) struct Allowance(Arc<AtomicUsize>);

impl Allowance {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(ALLOWANCE)))
    }

    /// A new question may read anew.
    pub(super) fn renew(&self) {
        self.0.store(ALLOWANCE, Ordering::Relaxed);
    }
}

/// A stream that reads no more than its allowance.
#[derive(Debug)]
pub(super) struct Bounded<S> {
    inner: S,
    allowance: Allowance,
}

impl<S> Bounded<S> {
    pub(super) fn new(inner: S, allowance: Allowance) -> Self {
        Self { inner, allowance }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let read = buf.filled().len() - before;
        let left = self.allowance.0.load(Ordering::Relaxed);
        if read > left {
            let why = format!("the server's answer is longer than {ALLOWANCE} bytes");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        self.allowance.0.store(left - read, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn an_answer_beyond_the_allowance_is_an_error() {
        let (ours, mut theirs) = duplex(2 * ALLOWANCE);
        let allowance = Allowance::new();
        let mut bounded = Bounded::new(ours, allowance.clone());
        theirs.write_all(&vec![1; ALLOWANCE]).await.unwrap();
        let mut answer = vec![0; ALLOWANCE];
        bounded.read_exact(&mut answer).await.unwrap();
        allowance.renew();
        theirs.write_all(&vec![1; ALLOWANCE + 1]).await.unwrap();
        bounded.read_exact(&mut answer).await.unwrap();
        let error = bounded.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
