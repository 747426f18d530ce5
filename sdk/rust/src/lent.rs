//! What the host lends: in a component it is the host itself, in a native test the one of
//! [`crate::test`].

#[cfg(target_family = "wasm")]
pub(crate) use crate::bindings::cofferdam::plugin::{
    agents, commands, plans, progress, state, workspace,
};
#[cfg(target_family = "wasm")]
pub(crate) use crate::http::wasi as http;

#[cfg(not(target_family = "wasm"))]
pub(crate) use crate::test::lent::{agents, commands, http, plans, progress, state, workspace};
