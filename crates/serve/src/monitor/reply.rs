//! Responses of the dashboard: texts and event streams.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::sync::OwnedSemaphorePermit;

use super::news::News;

/// Body of a response.
pub enum Reply {
    /// A text. Empty after it was sent.
    Text(Bytes),
    /// An event stream.
    Events(Events),
}

/// Future of an event, and of the source of the events after it.
type Next = Pin<Box<dyn Future<Output = Option<(Bytes, News)>> + Send>>;

/// Server-sent events: <https://html.spec.whatwg.org/multipage/server-sent-events.html>.
pub struct Events {
    next: Next,
    _held: OwnedSemaphorePermit,
}

impl Events {
    /// Creates a stream, which holds a permit until its end.
    pub fn new(news: News, held: OwnedSemaphorePermit) -> Events {
        Events { next: Box::pin(event(news)), _held: held }
    }
}

/// Waits for the next event. Its data is JSON on one line.
async fn event(mut news: News) -> Option<(Bytes, News)> {
    let (name, data) = news.next().await?;
    Some((format!("event: {name}\ndata: {data}\n\n").into(), news))
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Reply::Text(text) if text.is_empty() => Poll::Ready(None),
            Reply::Text(text) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(text))))),
            Reply::Events(events) => events.next.as_mut().poll(cx).map(|next| {
                let (bytes, news) = next?;
                events.next = Box::pin(event(news));
                Some(Ok(Frame::data(bytes)))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Reply::Text(text) if text.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Reply::Text(text) => SizeHint::with_exact(text.len() as u64),
            Reply::Events(_) => SizeHint::default(),
        }
    }
}

/// Returns a text as a response.
pub fn text(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Reply> {
    let mut response = Response::new(Reply::Text(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Returns a sentence for the user as a response.
pub fn sentence(status: StatusCode, sentence: impl Into<Bytes>) -> Response<Reply> {
    text(status, "text/plain; charset=utf-8", sentence)
}

/// Returns JSON as a response.
pub fn json(status: StatusCode, json: String) -> Response<Reply> {
    text(status, "application/json", json)
}

/// Returns an event stream as a response.
pub fn events(events: Events) -> Response<Reply> {
    let mut response = Response::new(Reply::Events(events));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}
