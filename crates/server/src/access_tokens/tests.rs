//! Tests of tokens and login codes.

use super::{
    AccessTokenStore, AccessTokens, LOGIN_CODE_VALIDITY_MS, PAGE_VALIDITY_MS, TOKEN_PREFIX,
    TokenError, TokenKind, TokenRegistry, is_token_name,
};
use std::sync::{Arc, Mutex};
use windlass_protocol::{AccessRight, Fault, RequestError, UnixMillis};

/// Keeps what a registry saves.
#[derive(Clone, Default)]
struct MemoryStore {
    saved: Arc<Mutex<Vec<String>>>,
    is_broken: Arc<Mutex<bool>>,
}

impl AccessTokenStore for MemoryStore {
    fn save(&self, tokens: &AccessTokens) -> Result<(), Fault> {
        if *self.is_broken.lock().unwrap() {
            return Err(Fault::Storage { message: "disk full".to_owned() });
        }
        self.saved.lock().unwrap().push(serde_json::to_string(tokens).unwrap());
        Ok(())
    }
}

fn registry() -> (TokenRegistry, MemoryStore) {
    let store = MemoryStore::default();
    (TokenRegistry::new(AccessTokens::default(), Box::new(store.clone())), store)
}

const NOW: UnixMillis = UnixMillis(1_000_000);

fn later(ms: u64) -> UnixMillis {
    UnixMillis(NOW.0 + ms)
}

#[test]
fn a_token_is_valid_until_it_expires_or_is_revoked_and_never_stored() {
    let (registry, store) = registry();
    let token =
        registry.add("laptop", AccessRight::Write, [7; 32], NOW, Some(later(5_000))).unwrap();
    assert!(token.starts_with(TOKEN_PREFIX) && token.len() > 40);
    let find = |text: &str, now| registry.authenticate(text, TokenKind::Bearer, now);
    let identity = find(&token, NOW).unwrap();
    assert_eq!((identity.name.as_str(), identity.right), ("laptop", AccessRight::Write));
    assert!(find(&token, later(4_999)).is_some());
    assert!(find(&token, later(5_000)).is_none());
    assert!(find(&format!("{token}x"), NOW).is_none());
    assert!(find(&token[..token.len() - 1], NOW).is_none());
    assert!(find("", NOW).is_none());
    assert!(registry.authenticate(&token, TokenKind::Page, NOW).is_none(), "it is no cookie");
    for saved in store.saved.lock().unwrap().iter() {
        assert!(!saved.contains(token.trim_start_matches(TOKEN_PREFIX)), "{saved}");
    }
    assert!(!identity.revoked.is_cancelled());
    registry.revoke("laptop").unwrap();
    assert!(identity.revoked.is_cancelled());
    assert!(find(&token, NOW).is_none());
    assert!(matches!(registry.revoke("laptop"), Err(RequestError::NotFound { .. })));
}

#[test]
fn the_stored_list_can_be_loaded_again() {
    let (registry, store) = registry();
    let token = registry.add("a", AccessRight::Read, [1; 32], NOW, None).unwrap();
    let saved = store.saved.lock().unwrap().last().unwrap().clone();
    let loaded: AccessTokens = serde_json::from_str(&saved).unwrap();
    let loaded = TokenRegistry::new(loaded, Box::new(MemoryStore::default()));
    assert!(loaded.authenticate(&token, TokenKind::Bearer, NOW).is_some());
    assert!(serde_json::from_str::<AccessTokens>(r#"{"tokens":[{"digest":"x"}]}"#).is_err());
}

#[test]
fn names_are_unique_and_plain() {
    let (registry, _) = registry();
    registry.add("a", AccessRight::Read, [1; 32], NOW, None).unwrap();
    let again = registry.add("a", AccessRight::Read, [2; 32], NOW, None);
    assert_eq!(again, Err(TokenError::NameTaken.into()));
    for name in ["", ".", "a b", "ä", "a/b", &"a".repeat(65)] {
        assert!(!is_token_name(name), "{name:?}");
    }
    for name in ["a", "my-laptop", "x.y_z", &"a".repeat(64)] {
        assert!(is_token_name(name), "{name:?}");
    }
}

#[test]
fn the_last_use_is_saved_once_a_minute() {
    let (registry, store) = registry();
    let token = registry.add("a", AccessRight::Read, [1; 32], NOW, None).unwrap();
    let saves = || store.saved.lock().unwrap().len();
    assert_eq!(saves(), 1);
    for ms in [0, 1, 59_999] {
        registry.authenticate(&token, TokenKind::Bearer, later(ms)).unwrap();
    }
    assert_eq!(saves(), 2);
    registry.authenticate(&token, TokenKind::Bearer, later(60_000)).unwrap();
    assert_eq!(saves(), 3);
    assert_eq!(registry.rows()[0].last_used_at, Some(later(60_000)));
}

#[test]
fn a_token_that_could_not_be_saved_is_not_valid_but_a_revoked_one_stays_revoked() {
    let (registry, store) = registry();
    let kept = registry.add("kept", AccessRight::Read, [1; 32], NOW, None).unwrap();
    *store.is_broken.lock().unwrap() = true;
    assert!(registry.add("lost", AccessRight::Read, [2; 32], NOW, None).is_err());
    assert_eq!(registry.rows().len(), 1);
    assert!(registry.revoke("kept").is_err());
    assert!(registry.authenticate(&kept, TokenKind::Bearer, NOW).is_none());
}

#[test]
fn a_login_code_works_once_and_for_a_minute() {
    let (registry, _) = registry();
    let code = registry.new_login_code(AccessRight::Write, [3; 32], NOW);
    let refused = registry.redeem_login_code("wlt_wrong", [4; 32], NOW);
    assert_eq!(refused, Err(RequestError::Unauthorized));
    let cookie = registry.redeem_login_code(&code, [4; 32], later(1)).unwrap();
    let again = registry.redeem_login_code(&code, [5; 32], later(2));
    assert_eq!(again, Err(RequestError::Unauthorized));
    let identity = registry.authenticate(&cookie, TokenKind::Page, later(3)).unwrap();
    assert_eq!((identity.name.as_str(), identity.right), ("page-1", AccessRight::Write));
    assert!(registry.authenticate(&cookie, TokenKind::Bearer, later(3)).is_none());

    let late = registry.new_login_code(AccessRight::Write, [6; 32], NOW);
    let refused = registry.redeem_login_code(&late, [7; 32], later(LOGIN_CODE_VALIDITY_MS));
    assert_eq!(refused, Err(RequestError::Unauthorized));
}

#[test]
fn the_cookie_of_a_page_stays_valid_while_it_is_used() {
    let (registry, _) = registry();
    let code = registry.new_login_code(AccessRight::Write, [3; 32], NOW);
    let cookie = registry.redeem_login_code(&code, [4; 32], NOW).unwrap();
    let is_valid = |now| registry.authenticate(&cookie, TokenKind::Page, now).is_some();
    assert!(is_valid(later(PAGE_VALIDITY_MS - 1)));
    assert!(is_valid(later(2 * PAGE_VALIDITY_MS - 2)));
    assert!(!is_valid(later(3 * PAGE_VALIDITY_MS)));
}
