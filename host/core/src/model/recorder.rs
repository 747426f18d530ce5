//! Records the responses of another model to a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::api_key::ApiKey;
use super::recording::{PlayedResponse, RecordingEntry, RecordingHeader, VERSION};
use crate::agent::ports::{
    LanguageModel, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ResponseDelta,
};
use crate::conversation::ModelResponse;

/// An error when creating a recording.
#[derive(Debug, thiserror::Error)]
#[error("cannot record to `{}`: {source}{}", path.display(), hint(source))]
pub struct RecordError {
    path: PathBuf,
    source: io::Error,
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            "\nhint: an existing recording is never overwritten; \
            choose another file"
        }
        _ => "",
    }
}

/// A model that forwards to another model and records each response.
///
/// Each response is synced to disk before it is passed on. The file is new, and only its owner can
/// read it. The recording has a digest and some counts of each request, and the complete response
/// without the given secrets.
///
/// A failed write does not lose the response. Instead, the *next* request is refused, so that an
/// incomplete recording is never mistaken for a complete one.
pub struct RecordingModel {
    inner: Box<dyn LanguageModel>,
    path: PathBuf,
    secrets: Vec<ApiKey>,
    file: Arc<Mutex<File>>,
    write_error: Mutex<Option<String>>,
}

impl RecordingModel {
    /// Starts a recording in a new file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file exists or cannot be written.
    pub fn create(
        inner: Box<dyn LanguageModel>,
        path: &Path,
        secrets: Vec<ApiKey>,
    ) -> Result<Self, RecordError> {
        let failed = |source| RecordError { path: path.to_owned(), source };
        let mut file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let info = inner.info();
        let header = RecordingHeader {
            cofferdam_recording: VERSION,
            provider: Some(info.provider.clone()),
            model: Some(info.model.clone()),
            context_window: Some(info.context_window),
        };
        let line = serde_json::to_string(&header).map_err(|error| failed(error.into()))? + "\n";
        file.write_all(line.as_bytes()).and_then(|()| file.sync_data()).map_err(failed)?;
        Ok(Self {
            inner,
            path: path.to_owned(),
            secrets,
            file: Arc::new(Mutex::new(file)),
            write_error: Mutex::new(None),
        })
    }

    async fn write_entry(&self, request: Value, played: &PlayedResponse) -> io::Result<()> {
        let mut line = serde_json::to_string(&RecordingEntry::new(request, played))?;
        for secret in &self.secrets {
            line = secret.redact(&line);
        }
        line.push('\n');
        let file = Arc::clone(&self.file);
        let written = tokio::task::spawn_blocking(move || {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.write_all(line.as_bytes())?;
            file.sync_data()
        });
        written.await.unwrap_or_else(|panic| Err(io::Error::other(panic)))
    }

    fn write_error(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.write_error.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LanguageModel for RecordingModel {
    fn info(&self) -> &ModelInfo {
        self.inner.info()
    }

    fn respond<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ResponseDelta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            if let Some(problem) = self.write_error().clone() {
                return Err(ModelError::new(ModelErrorKind::Rejected, problem));
            }
            let summary = request_digest(&request);
            let played = self.inner.respond(request, on_delta, cancel).await;
            // A cancelled response is not recorded, so that a replay continues with the next one.
            if !matches!(&played, Err(error) if error.kind == ModelErrorKind::Aborted)
                && let Err(error) = self.write_entry(summary, &played).await
            {
                let problem = format!(
                    "cannot write the recording `{}`: {error}\nhint: run without a recording, or \
                        record to another file",
                    self.path.display()
                );
                *self.write_error() = Some(problem);
            }
            played
        })
    }
}

/// Returns a digest and counts that distinguish requests without revealing them.
fn request_digest(request: &ModelRequest<'_>) -> Value {
    let ModelRequest { system, conversation, note, tools, tool_choice: _, is_shown_live: _ } =
        request;
    let tools: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let mut exchanges = Vec::new();
    let mut turns = 0;
    for (prompt, said) in conversation.exchanges() {
        let said: Vec<Value> = said
            .map(|turn| {
                json!([turn.turn(), turn.results().map(|(_, result)| result).collect::<Vec<_>>()])
            })
            .collect();
        turns += said.len();
        exchanges.push(json!([prompt, said]));
    }
    let count = exchanges.len();
    let content = json!({
        "system": system, "summary": conversation.summary(), "said": exchanges, "note": note,
        "tools": tools,
    });
    let digest = Sha256::digest(content.to_string());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({"sha256": hex, "exchanges": count, "turns": turns, "tools": tools.len()})
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::conversation::Transcript;
    use crate::model::ReplayModel;
    use crate::model::test_server::{ModelProbe, empty_request};

    const RECORDING: &str = concat!(
        "{\"cofferdam_recording\": 1, \"model\": \"m\"}\n",
        "{\"blocks\": [{\"reasoning\": {\"text\": {\"text\": \"Hm.\", \"signature\": \"s\"}}}, \
            {\"text\": \"I see sk-secret.\"}, ",
        "{\"call\": {\"id\": \"c1\", \"name\": \"bash\", \"arguments\": \"{not json\"}}], \
            \"stop\": \"length\", \"usage\": {\"input\": 3, \"output\": 4}}\n",
        "{\"error\": {\"kind\": \"unavailable\", \"message\": \"busy\", \"partial_text\": \
            \"half\"}}\n",
    );

    /// Records the answers of [`RECORDING`] in a new file.
    fn new_recorder(path: &Path, secrets: Vec<ApiKey>) -> RecordingModel {
        let replay = ReplayModel::parse(RECORDING).expect("valid");
        RecordingModel::create(Box::new(replay), path, secrets).expect("created")
    }

    #[tokio::test]
    async fn a_recording_of_a_replay_plays_the_same() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("recording.jsonl");
        let recorder = new_recorder(&path, Vec::new());
        let transcript = Transcript::new();
        let mut probe = ModelProbe::default();
        let mut first = Vec::new();
        for _ in 0..2 {
            first.push(probe.respond(&recorder, empty_request(&transcript)).await);
        }
        let text = std::fs::read_to_string(&path).expect("readable");
        let replay = ReplayModel::parse(&text).expect("valid");
        assert_eq!(replay.info().model, "m");
        for expected in first {
            assert_eq!(probe.respond(&replay, empty_request(&transcript)).await, expected);
        }
        assert_eq!(std::fs::metadata(&path).expect("present").permissions().mode() & 0o777, 0o600);
        let again = RecordingModel::create(Box::new(replay), &path, Vec::new())
            .map(|_| ())
            .expect_err("file exists");
        assert!(again.to_string().contains("never overwritten"), "{again}");
    }

    #[tokio::test]
    async fn r114_a_secret_never_reaches_a_recording() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("recording.jsonl");
        let secrets = ApiKey::new("sk-secret").into_iter().collect();
        let recorder = new_recorder(&path, secrets);
        let mut transcript = Transcript::new();
        transcript.begin_exchange("my words");
        ModelProbe::default()
            .respond(&recorder, empty_request(&transcript))
            .await
            .expect("a response");
        let text = std::fs::read_to_string(&path).expect("readable");
        assert!(text.contains("I see [key redacted]."), "{text}");
        assert!(!text.contains("sk-secret") && !text.contains("my words"), "{text}");
    }

    #[tokio::test]
    async fn r103_a_failed_write_loses_no_response() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("recording.jsonl");
        let recorder = new_recorder(&path, Vec::new());
        *recorder.file.lock().expect("not poisoned") = File::open(&path).expect("read-only");
        let transcript = Transcript::new();
        let mut probe = ModelProbe::default();
        assert!(probe.respond(&recorder, empty_request(&transcript)).await.is_ok());
        let refused = probe
            .respond(&recorder, empty_request(&transcript))
            .await
            .expect_err("recording failed");
        assert!(refused.message.contains("cannot write the recording"), "{refused}");
    }
}
