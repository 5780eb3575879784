//! The dashboard, over HTTP.
//!
//! All input from clients is bounded: connections, headers, bodies, and the time to send them.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::commands::Command;
use super::control::{carry_out, failed};
use super::guard;
use super::news::first;
use super::reply::{self, Events, Reply};
use super::shared::Shared;
use super::slots::{Slot, Slots};
use super::slow_client::{Patient, Timer};

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
    let places = Slots::new(MAX_CLIENTS);
    let (streams, refusals) = (Arc::new(Semaphore::new(MAX_STREAMS)), Arc::new(Semaphore::new(MAX_REFUSALS)));
    let mut http = http1::Builder::new();
    // A connection serves one request, because an idle connection would hold a slot.
    http.timer(Timer).header_read_timeout(PATIENCE).max_buf_size(LONGEST_HEAD).keep_alive(false);
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
        let shared = Arc::clone(&shared);
        let admitted = service_fn(move |request: Request<Incoming>| {
            // A client that has just lost its slot still gets a response.
            admission.place.keep();
            let (shared, admission) = (Arc::clone(&shared), admission.clone());
            async move { Ok::<_, Infallible>(respond(&shared, &admission, request).await) }
        });
        let connection = http.serve_connection(Patient::new(stream, STALL), admitted);
        tokio::spawn(async move {
            // The library replies to malformed requests, or closes the connection.
            first(connection, place.lost()).await;
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

/// Responds to a request. Rejects requests that are not meant for this server, and sets the security headers.
async fn respond(shared: &Arc<Shared>, admission: &Admission, request: Request<Incoming>) -> Response<Reply> {
    let mut response = if shared.hosts.allow(request.uri(), request.headers()) {
        route(shared, admission, request).await
    } else {
        let reported = "requests must name the address of this server, and come from its own page\n";
        reply::sentence(StatusCode::FORBIDDEN, reported)
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

/// Returns the response of a path.
async fn route(shared: &Arc<Shared>, admission: &Admission, request: Request<Incoming>) -> Response<Reply> {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let text = |kind, text: &'static str| reply::text(StatusCode::OK, kind, text);
    let response = match request.uri().path() {
        "/" => text("text/html; charset=utf-8", PAGE),
        "/monitor.css" => text("text/css; charset=utf-8", STYLE),
        "/monitor.js" => text("text/javascript; charset=utf-8", SCRIPT),
        "/plotly.js" => plotting_library(shared),
        "/metrics" => reply::text(StatusCode::OK, OPEN_METRICS, shared.metrics()),
        "/api/status" => status(shared),
        "/api/history" => reply::json(StatusCode::OK, shared.history()),
        "/api/events" if is_read => events(shared, admission),
        "/api/events" => only("GET,HEAD"),
        "/api/control" if request.method() == Method::POST => {
            let (head, body) = request.into_parts();
            return control(shared, &head.headers, body).await;
        }
        "/api/control" => return only("POST"),
        _ => return reply::sentence(StatusCode::NOT_FOUND, "not found\n"),
    };
    if is_read { response } else { only("GET,HEAD") }
}

/// Refuses the method of a request.
fn only(methods: &'static str) -> Response<Reply> {
    let mut response = Response::new(Reply::Text(Bytes::new()));
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    response
}

fn plotting_library(shared: &Shared) -> Response<Reply> {
    let mut response = reply::text(StatusCode::OK, "text/javascript; charset=utf-8", shared.plotting_library);
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response
}

fn status(shared: &Shared) -> Response<Reply> {
    let controls = shared.token.is_some();
    let status = json!({ "info": shared.info(), "frame": &*shared.frame(), "controls": controls });
    reply::json(StatusCode::OK, status.to_string())
}

fn events(shared: &Shared, admission: &Admission) -> Response<Reply> {
    let Ok(one) = Arc::clone(&admission.streams).try_acquire_owned() else {
        let reported = format!("{MAX_STREAMS} pages are already open for this server; close one\n");
        return reply::sentence(StatusCode::SERVICE_UNAVAILABLE, reported);
    };
    admission.place.leave();
    reply::events(Events::new(shared.news(true), one))
}

/// Receives a body of at most [`LONGEST_BODY`] bytes. The error has the status, and a sentence.
async fn received(mut body: Incoming) -> Result<Vec<u8>, (StatusCode, &'static str)> {
    let mut bytes = Vec::new();
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|_| (StatusCode::BAD_REQUEST, "the body of the request is damaged or cut off"))?;
        let data = frame.into_data().unwrap_or_default();
        if bytes.len() + data.len() > LONGEST_BODY {
            return Err((StatusCode::PAYLOAD_TOO_LARGE, "a command has at most 4096 bytes"));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// Performs a command if the client has the token.
async fn control(shared: &Arc<Shared>, headers: &HeaderMap, body: Incoming) -> Response<Reply> {
    let refuse = |status: StatusCode, error: &str| reply::json(status, failed(error).to_string());
    let Some(token) = &shared.token else {
        return refuse(StatusCode::FORBIDDEN, "the dashboard is read-only; start the server with --dashboard-token");
    };
    if !guard::has_token(headers, token) {
        // Slow down guesses of the token.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut response = refuse(StatusCode::UNAUTHORIZED, "wrong token");
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return response;
    }
    let body = match tokio::time::timeout(PATIENCE, received(body)).await {
        Ok(Ok(body)) => body,
        Ok(Err((status, error))) => return refuse(status, error),
        Err(_) => return refuse(StatusCode::REQUEST_TIMEOUT, "timeout while receiving the command"),
    };
    match serde_json::from_slice::<Command>(&body) {
        Ok(command) => {
            let done = carry_out(shared, command).await;
            let status = if done["ok"] == true { StatusCode::OK } else { StatusCode::CONFLICT };
            reply::json(status, done.to_string())
        }
        Err(error) => refuse(StatusCode::BAD_REQUEST, &format!("invalid command: {error}")),
    }
}
