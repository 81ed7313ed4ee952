//! The log of servers: their messages and stderr.

/// Receiver for the log output of servers: their messages and stderr.
pub trait ServerLog: Send + Sync + 'static {
    /// Logs one line of `server`, for later diagnosis.
    fn log_line(&self, server: &str, line: &str);
}
