//! New data for the clients of the monitor: frames and block maps.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::watch;

/// New data for a follower. Slow followers miss some.
pub struct News {
    frames: watch::Receiver<Arc<str>>,
    pictures: Option<watch::Receiver<Arc<str>>>,
}

impl News {
    /// Follows a channel of frames, and optionally one of block maps.
    pub fn new(frames: watch::Receiver<Arc<str>>, pictures: Option<watch::Receiver<Arc<str>>>) -> News {
        News { frames, pictures }
    }

    /// Waits for new data, and returns it with its name. `None` after the end of the server.
    pub async fn next(&mut self) -> Option<(&'static str, Arc<str>)> {
        let pictures = async {
            match &mut self.pictures {
                Some(pictures) => changed(pictures).await,
                None => std::future::pending().await,
            }
        };
        match first(changed(&mut self.frames), pictures).await {
            Either::One(frame) => Some(("frame", frame?)),
            Either::Other(picture) => Some(("blocks", picture?)),
        }
    }
}

/// Waits for a new value of a channel. `None` if there will not be another one.
async fn changed(receiver: &mut watch::Receiver<Arc<str>>) -> Option<Arc<str>> {
    receiver.changed().await.ok()?;
    Some(Arc::clone(&receiver.borrow_and_update()))
}

/// Result of the future that completed first.
pub enum Either<A, B> {
    One(A),
    Other(B),
}

/// Waits until one of two futures completes, and drops the other one.
pub async fn first<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> Either<A, B> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| {
        if let Poll::Ready(one) = one.as_mut().poll(cx) {
            return Poll::Ready(Either::One(one));
        }
        other.as_mut().poll(cx).map(Either::Other)
    })
    .await
}
