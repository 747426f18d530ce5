//! The tools of a run: the catalog, the order of calls, their approval, and their results for the
//! model.
//!
//! A [`ToolCatalog`] maps names to tools, each with its permissions and the tier that follows from
//! them. The [`Dispatcher`] handles the calls of a turn:
//!
//! 1. It checks the arguments of each call.
//! 2. It orders the calls by the permissions of their tools.
//! 3. It runs each call in its own sandbox and asks for approval where needed.
//! 4. It returns one result per call.

mod approval;
mod arguments;
mod audit_sink;
mod builtin;
mod call_queue;
mod call_scheduler;
mod catalog;
mod confirmation;
mod delegation;
mod dispatcher;
mod dispatcher_settings;
#[doc(hidden)]
pub mod fuzzing;
mod input_cost;
mod instruction_record;
mod marked_paths;
mod output;
mod parallel;
mod path_checks;
mod refusal;
mod repetition;
mod schedule;
mod session_state;
mod settler;
mod structured;
mod summary;
mod tool_source;

pub use approval::{ApprovalAnswer, Approver, SessionApprovals, UserRuleFile};
pub use arguments::{ArgumentChecker, ArgumentsError};
pub use audit_sink::{
    AuditSink, AuthorityChange, CallIdentity, CommandChange, CommandChangeAction,
    CommandConnection, CommandEnding, DecisionBasis, DecisionRecord, FinishedCallRecord,
    HttpContact, HttpContacts, JobStage, LayerEntryKind, RanCommand, RecordFailure,
    RecordedOutcome, TouchedPaths,
};
pub use builtin::{BuiltInDeclaration, BuiltInDeclarations, builtin_components};
pub use call_scheduler::CallScheduler;
pub(crate) use call_scheduler::SchedulerClient;
pub use catalog::{
    CatalogTool, PluginProvenance, RefusedPlugin, ToolCatalog, UnknownTool, UnusableTool,
    load_error,
};
pub use confirmation::ConfirmationRule;
pub use delegation::SubAgentRunner;
pub use dispatcher::Dispatcher;
pub use dispatcher_settings::DispatcherSettings;
pub use instruction_record::{
    InstructionChange, InstructionChangeOrigin, InstructionRecord, InstructionRecordError,
};
pub use output::OutputFiles;
pub use parallel::ParallelCallSlots;
pub use session_state::SessionState;
pub use structured::StructuredResultChecker;
pub use tool_source::{
    SourceBackend, SourceCall, SourceDescription, SourceTool, ToolBackend, ToolSource,
};
