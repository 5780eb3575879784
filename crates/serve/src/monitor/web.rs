//! The dashboard, over HTTP.
//!
//! All input from clients is bounded: connections, headers, bodies, and the time to send them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use futures_util::future::select;
use futures_util::{Stream, StreamExt};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::control::{Command, carry_out, failed};
use super::slots::{Slot, Slots};
use super::slow_client::Patient;
use super::{Shared, guard};

const PAGE: &str = include_str!("../../assets/monitor.html");
const STYLE: &str = include_str!("../../assets/monitor.css");
const SCRIPT: &str = include_str!("../../assets/monitor.js");

/// Maximum number of connections without event streams. A further client replaces the one that has been silent longest.
const MAX_CLIENTS: usize = 64;

/// Maximum number of event streams. Further ones are refused.
const MAX_STREAMS: usize = 64;

/// Maximum number of clients that are being refused with a message at the same time.
const MAX_REFUSALS: usize = 16;

/// Maximum length of a request's head in bytes.
const LONGEST_HEAD: usize = 16 << 10;

/// Maximum length of a command in bytes.
const LONGEST_BODY: usize = 4096;

/// Time limit for a client to send the head, and the body, of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time after which a client that reads nothing is disconnected.
const STALL: Duration = Duration::from_secs(60);

/// Content security policy of the page: it may run its own script and send requests to this server. The plotting
/// library sets styles by itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Serves browsers.
pub(super) async fn listen(shared: Arc<Shared>, listener: TcpListener) {
    let service = TowerToHyperService::new(router(shared));
    let places = Slots::new(MAX_CLIENTS);
    let (streams, refusals) = (Arc::new(Semaphore::new(MAX_STREAMS)), Arc::new(Semaphore::new(MAX_REFUSALS)));
    let mut http = http1::Builder::new();
    // A connection serves one request, because an idle connection would hold a slot.
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(LONGEST_HEAD).keep_alive(false);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // The process has no free file descriptor. Try again later.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Some(place) = places.take().map(Arc::new) else {
            if let Ok(one) = Arc::clone(&refusals).try_acquire_owned() {
                tokio::spawn(async move {
                    refuse(stream).await;
                    drop(one);
                });
            }
            continue;
        };
        let admission = Admission { place: Arc::clone(&place), streams: Arc::clone(&streams) };
        let service = service.clone();
        let admitted = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
            // A client that has just lost its slot still gets a response.
            admission.place.keep();
            request.extensions_mut().insert(admission.clone());
            hyper::service::Service::call(&service, request)
        });
        let connection = http.serve_connection(TokioIo::new(Patient::new(stream, STALL)), admitted);
        tokio::spawn(async move {
            // The library replies to malformed requests, or closes the connection.
            select(connection, std::pin::pin!(place.lost())).await;
        });
    }
}

/// Resources for turning a request into an event stream, which releases its slot and takes one for streams.
#[derive(Clone)]
struct Admission {
    place: Arc<Slot>,
    streams: Arc<Semaphore>,
}

/// Refuses a client because all slots are taken.
async fn refuse(mut stream: TcpStream) {
    let body = format!("the server already has {MAX_CLIENTS} requests in progress; try again\n");
    let head = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\nRetry-After: 1";
    let text = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let reported = async {
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await?;
        // Closing with unread input would reset the connection, and the client would lose the response.
        tokio::io::copy(&mut (&mut stream).take(LONGEST_HEAD as u64), &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), reported).await;
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(async || ([(CONTENT_TYPE, "text/html; charset=utf-8")], PAGE)))
        .route("/monitor.css", get(async || ([(CONTENT_TYPE, "text/css; charset=utf-8")], STYLE)))
        .route("/monitor.js", get(async || ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT)))
        .route("/plotly.js", get(plotting_library))
        .route("/metrics", get(metrics))
        .route("/api/status", get(status))
        .route("/api/history", get(history))
        .route("/api/events", get(events))
        .route("/api/control", post(control))
        .fallback(async || (StatusCode::NOT_FOUND, "not found\n"))
        .layer(from_fn_with_state(Arc::clone(&shared), guarded))
        .with_state(shared)
}

/// Rejects requests that are not meant for this server, and sets the security headers of the response.
async fn guarded(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let mut response = if shared.hosts.allow(request.uri(), request.headers()) {
        next.run(request).await
    } else {
        let reported = "requests must name the address of this server, and come from its own page\n";
        (StatusCode::FORBIDDEN, reported).into_response()
    };
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value| headers.insert(name, HeaderValue::from_static(value));
    set(CONTENT_SECURITY_POLICY, POLICY);
    set(X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(X_FRAME_OPTIONS, "DENY");
    set(REFERRER_POLICY, "no-referrer");
    set(CACHE_CONTROL, "no-store");
    set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    response
}

async fn plotting_library(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8"), (CONTENT_ENCODING, "gzip")], shared.plotting_library)
}

async fn metrics(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], shared.metrics())
}

fn as_json(text: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

async fn status(State(shared): State<Arc<Shared>>) -> Response {
    let controls = shared.token.is_some();
    as_json(json!({ "info": &shared.info, "frame": &*shared.frame(), "controls": controls }).to_string())
}

async fn history(State(shared): State<Arc<Shared>>) -> Response {
    as_json(shared.history())
}

async fn events(
    State(shared): State<Arc<Shared>>,
    Extension(admission): Extension<Admission>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, (StatusCode, String)> {
    let Ok(one) = Arc::clone(&admission.streams).try_acquire_owned() else {
        let reported = format!("{MAX_STREAMS} pages are already open for this server; close one\n");
        return Err((StatusCode::SERVICE_UNAVAILABLE, reported));
    };
    admission.place.leave();
    let event = move |(name, text): (&'static str, Arc<str>)| {
        let _held = &one;
        Ok(Event::default().event(name).data(&*text))
    };
    Ok(Sse::new(shared.news(true).map(event)))
}

/// Performs a command if the client has the token.
async fn control(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Body) -> Response {
    let refuse = |status: StatusCode, error: &str| {
        let mut response = as_json(failed(error).to_string());
        *response.status_mut() = status;
        response
    };
    let Some(token) = &shared.token else {
        return refuse(StatusCode::FORBIDDEN, "the dashboard is read-only; start the server with --dashboard-token");
    };
    if !guard::has_token(&headers, token) {
        // Slow down guesses of the token.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut response = refuse(StatusCode::UNAUTHORIZED, "wrong token");
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return response;
    }
    let body = match tokio::time::timeout(PATIENCE, to_bytes(body, LONGEST_BODY)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return refuse(StatusCode::PAYLOAD_TOO_LARGE, "a command has at most 4096 bytes"),
        Err(_) => return refuse(StatusCode::REQUEST_TIMEOUT, "timeout while receiving the command"),
    };
    match serde_json::from_slice::<Command>(&body) {
        Ok(command) => {
            let done = carry_out(&shared, command).await;
            let status = if done["ok"] == true { StatusCode::OK } else { StatusCode::CONFLICT };
            let mut response = as_json(done.to_string());
            *response.status_mut() = status;
            response
        }
        Err(error) => refuse(StatusCode::BAD_REQUEST, &format!("invalid command: {error}")),
    }
}
