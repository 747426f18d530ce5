//! The token of the requests of one connection.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use cofferdam::model::ApiKey;
use cofferdam::sandbox::HttpReach;
use http::header::HeaderValue;

use crate::login::LoginTokens;

/// The number of earlier tokens that are taken out of texts.
const MAX_KNOWN_TOKENS: usize = 4;

/// The token of the requests of one connection, if the user has logged in.
pub(super) struct RequestAuthorization {
    tokens: Option<LoginTokens>,
    reach: HttpReach,
    known: Mutex<VecDeque<ApiKey>>,
}

impl RequestAuthorization {
    pub(super) fn new(tokens: Option<LoginTokens>, reach: HttpReach) -> Self {
        Self { tokens, reach, known: Mutex::default() }
    }

    /// Returns the token for a request. Errors are ends of sentences about the server.
    pub(super) async fn current(&self) -> Result<Option<ApiKey>, String> {
        let Some(tokens) = &self.tokens else { return Ok(None) };
        let token = tokens.current(&self.reach).await.map_err(|error| error.to_string())?;
        Ok(self.remember(token))
    }

    /// Returns another token than the one that the server rejected, if there is one.
    pub(super) async fn replace(&self, rejected: &ApiKey) -> Result<Option<ApiKey>, String> {
        let Some(tokens) = &self.tokens else { return Ok(None) };
        let replaced = tokens.replace(&self.reach, rejected).await;
        Ok(self.remember(replaced.map_err(|error| error.to_string())?))
    }

    fn remember(&self, token: Option<ApiKey>) -> Option<ApiKey> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(new) = token.as_ref().filter(|token| !known.contains(token)) {
            known.push_back(new.clone());
            if known.len() > MAX_KNOWN_TOKENS {
                known.pop_front();
            }
        }
        token
    }

    /// Takes the tokens out of a text.
    pub(super) fn redact(&self, text: String) -> String {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().fold(text, |text, token| token.redact(&text))
    }
}

/// Returns the header of a token.
pub(super) fn bearer(token: &ApiKey) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.to_header())).ok()?;
    value.set_sensitive(true);
    Some(value)
}
