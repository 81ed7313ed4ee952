//! Seals the API keys of tenants of a fleet: the database and its backups contain none in plain text.
//!
//! A key is sealed for one tenant and one provider, so the entry of another tenant cannot be put in
//! its place.

use crate::setup::LoadedProject;
use anyhow::{Context, bail};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use secrecy::{ExposeSecret, SecretString};
use std::path::Path;
use windlass_storage::postgres::TenantId;

const MAX_FILE_BYTES: u64 = 4096;

/// The keys of a file, one in each line. The first one seals, and all of them open.
pub(crate) struct SealingKeys {
    keys: Vec<LessSafeKey>,
}

impl SealingKeys {
    /// Reads a file that only its owner can read.
    pub(crate) fn read(file: &Path) -> anyhow::Result<SealingKeys> {
        LoadedProject::check_private(file)?;
        let bytes = LoadedProject::read_file(&file.to_string_lossy(), MAX_FILE_BYTES)?;
        let text = String::from_utf8(bytes).unwrap_or_default();
        SealingKeys::parse(&text).with_context(|| {
            let name = file.display();
            format!("{name} has no key. Create it with `openssl rand -base64 32 > {name}`")
        })
    }

    fn parse(text: &str) -> Option<SealingKeys> {
        let key = |line: &str| {
            let bytes = BASE64_STANDARD.decode(line.trim()).ok()?;
            Some(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &bytes).ok()?))
        };
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let keys: Vec<LessSafeKey> = lines.map(key).collect::<Option<_>>()?;
        (!keys.is_empty()).then_some(SealingKeys { keys })
    }

    /// Seals the key of a tenant for a provider.
    pub(crate) fn seal(
        &self,
        (tenant, provider): (TenantId, &str),
        key: &SecretString,
    ) -> anyhow::Result<Vec<u8>> {
        let sealing = self.keys.first().context("there is no key")?;
        let random = LoadedProject::random_bytes()?;
        let nonce: [u8; NONCE_LEN] = *random.first_chunk().context("there is no nonce")?;
        let mut sealed = key.expose_secret().as_bytes().to_vec();
        let owner = owner(tenant, provider);
        sealing
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), owner, &mut sealed)
            .map_err(|_| anyhow::anyhow!("the key could not be sealed"))?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Opens a key that was sealed for this tenant and provider.
    pub(crate) fn open(
        &self,
        (tenant, provider): (TenantId, &str),
        sealed: &[u8],
    ) -> anyhow::Result<SecretString> {
        if let Some((nonce, sealed)) = sealed.split_first_chunk::<NONCE_LEN>() {
            for key in &self.keys {
                let nonce = Nonce::assume_unique_for_key(*nonce);
                let mut bytes = sealed.to_vec();
                if let Ok(opened) = key.open_in_place(nonce, owner(tenant, provider), &mut bytes) {
                    return Ok(String::from_utf8(opened.to_vec())?.into());
                }
            }
        }
        bail!("the API key for {provider} was sealed with a key that is not in the key file")
    }
}

fn owner(tenant: TenantId, provider: &str) -> Aad<Vec<u8>> {
    Aad::from([tenant.0.as_bytes(), provider.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> String {
        BASE64_STANDARD.encode([byte; 32])
    }

    #[test]
    fn a_sealed_key_opens_for_its_tenant_and_provider_only() {
        let keys = SealingKeys::parse(&key(1)).unwrap();
        let (red, blue) = (TenantId(uuid::Uuid::from_u128(1)), TenantId(uuid::Uuid::from_u128(2)));
        let secret = SecretString::from("sk-red");
        let sealed = keys.seal((red, "openai"), &secret).unwrap();
        assert_eq!(keys.open((red, "openai"), &sealed).unwrap().expose_secret(), "sk-red");
        assert!(keys.open((blue, "openai"), &sealed).is_err());
        assert!(keys.open((red, "anthropic"), &sealed).is_err());
        assert_ne!(sealed, keys.seal((red, "openai"), &secret).unwrap(), "a nonce is used once");
        for byte in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[byte] ^= 1;
            assert!(keys.open((red, "openai"), &changed).is_err(), "{byte}");
            assert!(keys.open((red, "openai"), &sealed[..byte]).is_err(), "{byte}");
        }
    }

    #[test]
    fn a_new_key_seals_and_the_one_before_still_opens() {
        let tenant = TenantId(uuid::Uuid::from_u128(1));
        let old = SealingKeys::parse(&format!("{}\n", key(1))).unwrap();
        let both = SealingKeys::parse(&format!("{}\n{}\n", key(2), key(1))).unwrap();
        let new = SealingKeys::parse(&key(2)).unwrap();
        let sealed = old.seal((tenant, "a"), &"sk".into()).unwrap();
        assert!(
            both.open((tenant, "a"), &sealed).is_ok() && new.open((tenant, "a"), &sealed).is_err()
        );
        let again = both.seal((tenant, "a"), &"sk".into()).unwrap();
        assert!(
            new.open((tenant, "a"), &again).is_ok() && old.open((tenant, "a"), &again).is_err()
        );
    }

    #[test]
    fn a_file_without_a_key_is_refused() {
        for text in ["", "\n", "short", &BASE64_STANDARD.encode([1; 31]), &format!("{}\nx", key(1))]
        {
            assert!(SealingKeys::parse(text).is_none(), "{text}");
        }
    }
}
