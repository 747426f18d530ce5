//! The token of the requests to one server, which is refreshed before it expires.

use std::sync::Arc;

use cofferdam::model::ApiKey;
use cofferdam::policy::HttpUrl;
use cofferdam::sandbox::HttpReach;
use tokio::sync::Mutex;

use super::LoginError;
use super::registration::RegisteredClient;
use super::store::{LoginStore, StoredLogin};
use super::token::{TokenFailure, TokenSource, now};

/// How long before its end a token is refreshed, in seconds.
const REFRESH_BEFORE: u64 = 30;

/// The token of the requests to one server. Clones share it.
#[derive(Clone)]
pub struct LoginTokens {
    store: LoginStore,
    /// The name of the server.
    name: String,
    server: HttpUrl,
    current: Arc<Mutex<Option<StoredLogin>>>,
}

impl LoginTokens {
    /// Creates the token of a server, which is read when it is needed.
    pub fn new(store: LoginStore, name: &str, server: &HttpUrl) -> Self {
        let (name, server) = (name.to_owned(), server.clone());
        Self { store, name, server, current: Arc::default() }
    }

    /// Returns the token for a request, refreshed if it ends soon. `None` without a login.
    pub(crate) async fn current(&self, reach: &HttpReach) -> Result<Option<ApiKey>, LoginError> {
        let mut current = self.current.lock().await;
        if current.is_none() {
            *current = self.read()?;
        }
        let Some(login) = current.as_ref() else { return Ok(None) };
        let is_old =
            login.expires_at.is_some_and(|end| end <= now().saturating_add(REFRESH_BEFORE));
        if is_old && login.refresh_token.is_some() {
            let old = login.access_token.clone();
            *current = Some(self.refresh(reach, &old).await?);
        }
        Ok(current.as_ref().and_then(|login| ApiKey::new(&login.access_token)))
    }

    /// Returns another token than the one that the server rejected. `None` if there is none.
    pub(crate) async fn replace(
        &self,
        reach: &HttpReach,
        rejected: &ApiKey,
    ) -> Result<Option<ApiKey>, LoginError> {
        let mut current = self.current.lock().await;
        let rejected = rejected.to_header();
        let can_refresh = current
            .as_ref()
            .is_some_and(|login| login.access_token != rejected || login.refresh_token.is_some());
        if !can_refresh {
            return Ok(None);
        }
        let login = self.refresh(reach, &rejected).await?;
        let token = ApiKey::new(&login.access_token);
        *current = Some(login);
        Ok(token)
    }

    fn read(&self) -> Result<Option<StoredLogin>, LoginError> {
        let read = self.store.read(&self.name, &self.server);
        read.map_err(|error| LoginError::new(error.to_string()))
    }

    /// Refreshes a token, unless another program has done so.
    async fn refresh(&self, reach: &HttpReach, old: &str) -> Result<StoredLogin, LoginError> {
        let (store, name) = (self.store.clone(), self.name.clone());
        let locked = tokio::task::spawn_blocking(move || store.lock(&name)).await;
        let locked = locked.map_err(|error| LoginError::new(error.to_string()))?;
        let _lock = locked.map_err(|error| LoginError::new(error.to_string()))?;
        let again = format!("run `cofferdam mcp login {}`", self.name);
        let Some(login) = self.read()? else {
            return Err(LoginError::new(format!("there is no login any more\nhint: {again}")));
        };
        if login.access_token != old {
            return Ok(login);
        }
        let Some(refresh_token) = &login.refresh_token else {
            return Err(LoginError::new(format!("the login has expired\nhint: {again}")));
        };
        let endpoint = HttpUrl::parse(&login.token_endpoint)
            .map_err(|error| LoginError::new(error.to_string()))?;
        let client =
            RegisteredClient { id: login.client_id.clone(), secret: login.client_secret.clone() };
        let source = TokenSource {
            endpoint: &endpoint,
            client: &client,
            resource: &login.resource,
            password_in_form: login.password_in_form,
        };
        let grant = [("grant_type", "refresh_token"), ("refresh_token", refresh_token.as_str())];
        let tokens = source.request(reach, &grant).await.map_err(|failure| match failure {
            TokenFailure::Refused(problem) => {
                LoginError::new(format!("the login has ended: {problem}\nhint: {again}"))
            }
            TokenFailure::Failed(error) => error,
        })?;
        let refreshed = StoredLogin {
            access_token: tokens.access_token,
            expires_at: tokens.expires_at,
            refresh_token: tokens.refresh_token.or_else(|| login.refresh_token.clone()),
            ..login
        };
        let written = self.store.write(&self.name, &refreshed);
        written.map_err(|error| LoginError::new(error.to_string()))?;
        Ok(refreshed)
    }
}
