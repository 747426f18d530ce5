//! Contract 0.2: the bindings that are generated from `wit/`, and their conversions.

use wasmtime::component::{HasSelf, Linker};

use super::{Annotation, ParameterizedName};
use crate::policy::Denial;
use crate::sandbox::agents::AgentsHost;
use crate::sandbox::call_state::CallState;
use crate::sandbox::commands::CommandsHost;
use crate::sandbox::declaration::ListedTool;
use crate::sandbox::failure::CallFailure;
use crate::sandbox::jobs::JobsHost;
use crate::sandbox::output::{ContentBody, ReturnedContent, ReturnedOutput};
use crate::sandbox::plans::PlansHost;
use crate::sandbox::progress::ProgressHost;
use crate::sandbox::tool_state::ToolStateHost;
use crate::sandbox::walk::{FileBatch, WalkEntry, WalkEntryKind, WalkError, WalkOptions};
use crate::sandbox::workspace::{HasWorkspaceView, WorkspaceView};

use self::generated::cofferdam::plugin;
use self::generated::exports::cofferdam::plugin::tools;

pub(in crate::sandbox) use self::generated::PluginFullPre;
pub(in crate::sandbox) use self::generated::cofferdam::plugin::{
    agents, commands, jobs, plans, progress, state, workspace,
};

mod generated {
    #![allow(
        missing_docs,
        unreachable_pub,
        clippy::cast_possible_truncation,
        reason = "generated code"
    )]

    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "plugin-full",
        imports: {
            "cofferdam:plugin/agents.delegate": async,
            "cofferdam:plugin/commands.run": async,
            "cofferdam:plugin/jobs": async,
            "cofferdam:plugin/plans.present": async,
            "cofferdam:plugin/workspace.open-walk": trappable,
            "cofferdam:plugin/workspace.[method]walk.next-entries": async | trappable,
            "cofferdam:plugin/workspace.[method]walk.next-files": async | trappable,
            "cofferdam:plugin/workspace.[method]walk.problems": trappable,
        },
        exports: { default: async },
        with: {
            // Wasmtime links the clocks of WASI. The contract only uses their types.
            "wasi:clocks": wasmtime_wasi::p2::bindings::clocks,
            "cofferdam:plugin/workspace.walk": crate::sandbox::walk::TreeWalkHandle,
        },
    });
}

/// A component that is linked and can be instantiated.
pub(in crate::sandbox) type PluginPre = PluginFullPre<CallState>;

/// Links the interfaces of this version. Each one sees its own part of the state of a call.
pub(in crate::sandbox) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    plugin::types::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)?;
    workspace::add_to_linker::<_, HasWorkspaceView>(linker, WorkspaceView::of)?;
    commands::add_to_linker::<_, HasSelf<CommandsHost>>(linker, |state| &mut state.commands)?;
    jobs::add_to_linker::<_, HasSelf<JobsHost>>(linker, |state| &mut state.jobs)?;
    plans::add_to_linker::<_, HasSelf<PlansHost>>(linker, |state| &mut state.plans)?;
    agents::add_to_linker::<_, HasSelf<AgentsHost>>(linker, |state| &mut state.agents)?;
    state::add_to_linker::<_, HasSelf<ToolStateHost>>(linker, |state| &mut state.tool_state)?;
    progress::add_to_linker::<_, HasSelf<ProgressHost>>(linker, |state| &mut state.progress)
}

// The interface has only types and no functions.
impl plugin::types::Host for CallState {}

impl From<Denial> for plugin::types::Denial {
    fn from(denial: Denial) -> Self {
        Self { code: denial.code.name().to_owned(), reason: denial.reason, remedy: denial.remedy }
    }
}

impl From<tools::Tool> for ListedTool {
    fn from(tool: tools::Tool) -> Self {
        Self {
            name: tool.name,
            title: tool.title,
            description: tool.description,
            input_schema: tool.input_schema,
            output_schema: tool.output_schema,
            capabilities: tool.capabilities.into_iter().map(Into::into).collect(),
            hints: tool.hints.into_iter().map(Into::into).collect(),
            annotations: convert_annotations(tool.annotations),
        }
    }
}

impl From<tools::Capability> for ParameterizedName {
    fn from(tools::Capability { name, parameters }: tools::Capability) -> Self {
        Self { name, parameters }
    }
}

impl From<tools::Hint> for ParameterizedName {
    fn from(tools::Hint { name, parameters }: tools::Hint) -> Self {
        Self { name, parameters }
    }
}

fn convert_annotations(annotations: Vec<tools::Annotation>) -> Vec<Annotation> {
    annotations
        .into_iter()
        .map(|tools::Annotation { name, value }| Annotation { name, value })
        .collect()
}

impl From<tools::Output> for ReturnedOutput {
    fn from(output: tools::Output) -> Self {
        Self {
            content: output.content.into_iter().map(Into::into).collect(),
            structured: output.structured,
            view: output.view.map(Into::into),
            truncated: output.truncated,
            annotations: convert_annotations(output.annotations),
        }
    }
}

impl From<tools::Content> for ReturnedContent {
    fn from(content: tools::Content) -> Self {
        Self {
            media_type: content.media_type,
            body: match content.body {
                tools::Body::Text(text) => ContentBody::Text(text),
                tools::Body::Bytes(bytes) => ContentBody::Bytes(bytes),
            },
            uri: content.uri,
            annotations: convert_annotations(content.annotations),
        }
    }
}

impl From<tools::ToolError> for CallFailure {
    fn from(error: tools::ToolError) -> Self {
        match error {
            tools::ToolError::InvalidInput(problem) => {
                Self::InvalidInput { pointer: problem.pointer, message: problem.message }
            }
            tools::ToolError::NotFound(what) => Self::NotFound(what),
            tools::ToolError::Denied(denial) => Self::Denied {
                code: denial.code,
                reason: denial.reason,
                remedy: denial.remedy.map(|remedy| format!(" {remedy}")).unwrap_or_default(),
            },
            tools::ToolError::TimedOut(what) => Self::ToolTimedOut(what),
            tools::ToolError::Failed(what) => Self::ToolFailed(what),
        }
    }
}

impl From<workspace::WalkOptions> for WalkOptions {
    fn from(options: workspace::WalkOptions) -> Self {
        Self {
            root: options.root,
            globs: options.globs,
            hidden: options.hidden,
            respect_ignore: options.respect_ignore,
            max_depth: options.max_depth,
            required: options.required,
            required_ignore_case: options.required_ignore_case,
        }
    }
}

impl From<WalkEntry> for workspace::Entry {
    fn from(entry: WalkEntry) -> Self {
        let kind = match entry.kind {
            WalkEntryKind::File => workspace::EntryKind::File,
            WalkEntryKind::Directory => workspace::EntryKind::Directory,
            WalkEntryKind::Symlink => workspace::EntryKind::Symlink,
            WalkEntryKind::Other => workspace::EntryKind::Other,
        };
        let modified = entry.modified.map(|since_1970| workspace::Datetime {
            seconds: since_1970.as_secs(),
            nanoseconds: since_1970.subsec_nanos(),
        });
        Self { path: entry.path, kind, size: entry.size, modified }
    }
}

impl From<FileBatch> for workspace::Batch {
    fn from(batch: FileBatch) -> Self {
        let pieces = batch.pieces.into_iter().map(|piece| workspace::FilePiece {
            path: piece.path,
            length: piece.length,
            more: piece.more,
        });
        Self { pieces: pieces.collect(), data: batch.data }
    }
}

impl From<WalkError> for workspace::WorkspaceError {
    fn from(error: WalkError) -> Self {
        match error {
            WalkError::NotFound(message) => Self::NotFound(message),
            WalkError::InvalidGlob(message) => Self::InvalidGlob(message),
            WalkError::InvalidOption(message) => Self::InvalidOption(message),
            WalkError::Denied(denial) => Self::Denied(denial.into()),
            WalkError::Failed(message) => Self::Failed(message),
        }
    }
}
