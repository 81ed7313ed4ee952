//! TLS of the listener, with the provider of cryptography that the HTTP client uses, too.

use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate with its key.
#[derive(Clone)]
pub struct TlsIdentity {
    config: Arc<ServerConfig>,
}

/// The reason why a certificate or key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificates are not PEM.
    #[error("the certificate is not readable: {0}")]
    Certificate(String),
    /// The key is not PEM.
    #[error("the key is not readable: {0}")]
    Key(String),
    /// Both do not fit together, or the provider does not support them.
    #[error("the certificate or key cannot be used: {0}")]
    Unusable(#[from] tokio_rustls::rustls::Error),
}

impl TlsIdentity {
    /// Reads a certificate chain and its key, both as PEM.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<TlsIdentity, TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
        let chain = chain.map_err(|error| TlsError::Certificate(error.to_string()))?;
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|error| TlsError::Key(error.to_string()))?;
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(TlsIdentity { config: Arc::new(config) })
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}
