//! The clients of requests without sessions: one for each principal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::auth::ClientPrincipal;
use crate::client_kind::ClientKind;
use crate::handler::ClientState;
use crate::server::ToolServer;

/// The clients without sessions.
pub(crate) struct StatelessClients {
    server: ToolServer,
    clients: Mutex<HashMap<ClientPrincipal, StatelessClient>>,
    max_clients: usize,
    idle_timeout: Duration,
}

struct StatelessClient {
    state: Arc<ClientState>,
    last_active: Instant,
}

impl StatelessClients {
    pub(crate) fn new(server: ToolServer, max_clients: usize, idle_timeout: Duration) -> Self {
        Self { server, clients: Mutex::default(), max_clients, idle_timeout }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClientPrincipal, StatelessClient>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the client of a principal. It stays while the caller holds it. Returns `None` if
    /// there are too many principals.
    pub(crate) fn client_of(&self, principal: &ClientPrincipal) -> Option<Arc<ClientState>> {
        let mut clients = self.lock();
        if let Some(client) = clients.get_mut(principal) {
            client.last_active = Instant::now();
            return Some(Arc::clone(&client.state));
        }
        if clients.len() >= self.max_clients {
            return None;
        }
        let kind = ClientKind::Stateless(principal.clone());
        let state = Arc::new(ClientState::new(self.server.clone(), kind));
        let client = StatelessClient { state: Arc::clone(&state), last_active: Instant::now() };
        clients.insert(principal.clone(), client);
        Some(state)
    }

    /// Ends the clients that have sent nothing for some time.
    pub(crate) async fn sweep(&self) {
        let mut over = Vec::new();
        self.lock().retain(|_, client| {
            if Arc::strong_count(&client.state) > 1 {
                client.last_active = Instant::now();
            }
            let is_over = client.last_active.elapsed() >= self.idle_timeout;
            if is_over {
                over.push(Arc::clone(&client.state));
            }
            !is_over
        });
        join_all(over.iter().map(|state| state.end())).await;
    }

    /// Ends all clients.
    pub(crate) async fn end_all(&self) {
        let all: Vec<_> = self.lock().drain().map(|(_, client)| client.state).collect();
        join_all(all.iter().map(|state| state.end())).await;
    }
}
