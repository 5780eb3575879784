//! A connection whose client has to receive what is sent to it within a bounded time, for the HTTP library hyper.
//!
//! An event stream never ends by itself. Without a limit, clients that read nothing would keep their slots forever.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{self, ReadBufCursor};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep, sleep_until};

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
            let until = tokio::time::Instant::now() + self.patience;
            self.deadline.as_mut().reset(until);
        }
        match self.deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> rt::Read for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, mut into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        // Requests are small, so copying them costs nothing.
        let mut bytes = [0; 4096];
        let room = into.remaining().min(bytes.len());
        let mut read = ReadBuf::new(&mut bytes[..room]);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
        into.put_slice(read.filled());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> rt::Write for Patient<S> {
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

/// Timers of tokio.
pub struct Timer;

/// A timer that expires once.
struct Deadline(Pin<Box<Sleep>>);

impl Future for Deadline {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl rt::Sleep for Deadline {}

impl rt::Timer for Timer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(Deadline(Box::pin(sleep(duration))))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(Deadline(Box::pin(sleep_until(deadline.into()))))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use rt::Write;

    use super::*;

    #[test]
    fn a_client_that_reads_nothing_is_disconnected() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (near, _far) = tokio::io::duplex(16);
            let mut near = Patient::new(near, Duration::from_millis(20));
            let mut write = async |bytes: &[u8]| poll_fn(|cx| Pin::new(&mut near).poll_write(cx, bytes)).await;
            assert_eq!(write(&[1; 16]).await.unwrap(), 16);
            assert_eq!(write(&[1]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        });
    }
}
