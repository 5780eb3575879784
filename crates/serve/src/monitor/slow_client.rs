//! A connection whose client has to receive what is sent to it within a bounded time.
//!
//! An event stream never ends by itself. Without a limit, clients that read nothing would keep their slots forever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A connection that fails if nothing can be written for too long.
pub struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Expires when the client has to be disconnected. Started by a write that has to wait.
    deadline: Pin<Box<Sleep>>,
    waits: bool,
}

impl<S> Patient<S> {
    /// Wraps `stream`, which fails after a write has waited for `patience`.
    pub fn new(stream: S, patience: Duration) -> Patient<S> {
        Patient { stream, patience, deadline: Box::pin(sleep(patience)), waits: false }
    }

    fn judge<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = false;
            return written;
        }
        if !std::mem::replace(&mut self.waits, true) {
            let until = Instant::now() + self.patience;
            self.deadline.as_mut().reset(until);
        }
        match self.deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.judge(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    #[test]
    fn a_client_that_reads_nothing_is_disconnected() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (near, _far) = tokio::io::duplex(16);
            let mut near = Patient::new(near, Duration::from_millis(20));
            near.write_all(&[1; 16]).await.unwrap();
            assert_eq!(near.write_all(&[1]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        });
    }
}
