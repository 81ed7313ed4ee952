//! Detects model servers on this machine and lists their models (`GET /models`).

use crate::model_list;
use std::time::Duration;

/// Lists the models of a server on this machine, if it responds in time at a base URL such as
/// `http://127.0.0.1:11434/v1`. Contacts no other machine and uses no proxy.
pub async fn list_local_models(base_url: &str, timeout: Duration) -> Option<Vec<String>> {
    if !crate::is_local_url(base_url) {
        return None;
    }
    let http = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .redirect(reqwest::redirect::Policy::none())
        .timeout(timeout)
        .build()
        .ok()?;
    let response =
        http.get(format!("{}/models", base_url.trim_end_matches('/'))).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    model_list::read_model_names(response).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn remote_servers_are_not_queried() {
        let timeout = Duration::from_millis(200);
        assert_eq!(list_local_models("http://192.0.2.1:11434/v1", timeout).await, None);
        assert_eq!(list_local_models("http://127.0.0.1:9/v1", timeout).await, None);
    }
}
