//! Language models behind the agent's [`LanguageModel`](crate::agent::ports::LanguageModel) port.
//!
//! [`choose`] decides which model to use, and [`connect`] makes it ready:
//!
//! - `providers` has the clients of model providers over HTTP. The feature `providers` enables it.
//! - [`ReplayModel`] plays a recording. [`RecordingModel`] makes one while another model responds.
//! - [`cost`] computes the price of a response.

mod api_key;
mod choice;
mod connect;
mod escaped_key;
mod pricing;
#[cfg(not(feature = "providers"))]
#[path = "no_providers.rs"]
mod providers;
#[cfg(feature = "providers")]
mod providers;
mod recorder;
mod recording;
mod replay;
#[cfg(test)]
mod test_server;
mod timing;

pub use api_key::ApiKey;
pub use choice::{
    ModelChoice, ModelChoiceError, ModelSettings, ModelSpec, OpenAiApi, ProviderKind, choose,
};
pub(crate) use connect::default_base_url;
pub use connect::{base_url, connect};
pub use pricing::cost;
#[cfg(feature = "providers")]
#[doc(hidden)]
pub use providers::fuzzing;
pub use recorder::{RecordError, RecordingModel};
pub use recording::RecordingError;
pub use replay::ReplayModel;
pub use timing::RetryTiming;
