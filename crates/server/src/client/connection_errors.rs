//! Errors of connections, in words for people.

use std::error::Error;
use std::io::ErrorKind;
use tokio_rustls::rustls::Error as TlsError;
use windlass_protocol::RequestError;

/// Returns the error of a request that was not answered.
pub(super) fn connection_error(error: reqwest::Error) -> RequestError {
    let text = format!("The server cannot be reached: {}.", describe_failure(&error));
    RequestError::Unavailable { text }
}

/// Returns why a connection failed. The URL, which names the session, is left out.
pub(super) fn describe_failure(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it does not answer".to_owned();
    }
    let known = causes(error).find_map(describe_cause);
    match known {
        Some(text) => text,
        None if error.is_body() || error.is_decode() => "the connection was closed".to_owned(),
        None => error_chain(error),
    }
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let mut next = error.source();
    std::iter::from_fn(move || {
        let cause = next?;
        next = cause.source();
        Some(cause)
    })
}

fn describe_cause(cause: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = cause.downcast_ref::<TlsError>() {
        return Some(describe_tls(error));
    }
    let Some(error) = cause.downcast_ref::<std::io::Error>() else {
        // An answer that is no HTTP/1, such as the one of a TLS server.
        let is_other = cause.to_string().contains("invalid HTTP version");
        return is_other.then(|| "it does not speak plain HTTP; try `https://`".to_owned());
    };
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()) {
        return Some(describe_tls(tls));
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => Some("nothing listens at this address".to_owned()),
        ErrorKind::NotFound => Some("the socket does not exist".to_owned()),
        ErrorKind::PermissionDenied => Some("the socket belongs to another user".to_owned()),
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => Some("the connection was closed".to_owned()),
        _ => None,
    }
}

fn describe_tls(error: &TlsError) -> String {
    match error {
        TlsError::InvalidMessage(_) => "it does not speak TLS; try `http://`".to_owned(),
        TlsError::InvalidCertificate(reason) => format!(
            "its certificate is not trusted ({reason}). For one of your own, set SSL_CERT_FILE to \
             the file with it"
        ),
        error => error.to_string(),
    }
}

/// Returns an error with its causes.
pub(super) fn error_chain(error: &reqwest::Error) -> String {
    let causes: Vec<String> = causes(error).map(ToString::to_string).collect();
    match causes.is_empty() {
        true => "the request failed".to_owned(),
        false => causes.join(": "),
    }
}
