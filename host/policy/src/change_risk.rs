//! The risks of changes that a reader may overlook among many lines.

use super::{ApprovalPaths, BuiltInList, ChangeKind, ChangeSet, FileChange};

/// A risk of a change, for the person who decides.
///
/// This enum is closed: a program that asks a user has to show every risk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeRisk {
    /// Something is deleted.
    Deletes,
    /// A symbolic link is created.
    CreatesLinks,
    /// A file that agents take as instructions is changed.
    ChangesInstructions,
    /// A file that programs run code from is changed.
    ChangesCode,
    /// The new content has no diff.
    HasNoDiff,
}

impl ChangeRisk {
    /// All risks, in the order in which they are shown.
    pub const ALL: [Self; 5] = [
        Self::Deletes,
        Self::CreatesLinks,
        Self::ChangesInstructions,
        Self::ChangesCode,
        Self::HasNoDiff,
    ];

    /// Returns the words that precede the paths.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Deletes => "deletes",
            Self::CreatesLinks => "creates links",
            Self::ChangesInstructions => "changes instructions for agents",
            Self::ChangesCode => "changes files that programs run code from",
            Self::HasNoDiff => "not text, or too large for a diff",
        }
    }

    fn is_of(self, change: &FileChange, lists: &ApprovalPaths) -> bool {
        let is_on = |list| lists.find(&change.path).is_some_and(|listed| listed.list == list);
        match self {
            Self::Deletes => matches!(
                change.kind,
                ChangeKind::Delete { .. } | ChangeKind::RemoveDirectory | ChangeKind::Unlink
            ),
            Self::CreatesLinks => matches!(change.kind, ChangeKind::Link { .. }),
            Self::ChangesInstructions => is_on(BuiltInList::Instructions),
            Self::ChangesCode => is_on(BuiltInList::RunsCode),
            Self::HasNoDiff => {
                change.diff.is_none()
                    && matches!(
                        change.kind,
                        ChangeKind::Create { .. }
                            | ChangeKind::Modify { .. }
                            | ChangeKind::Move { .. }
                    )
            }
        }
    }
}

impl ChangeSet {
    /// Returns the risks of the changes, each with the changes that have it.
    ///
    /// ```
    /// use cofferdam_policy::{ChangeKind, ChangeRisk, ChangeSet, FileChange, WorkspacePath};
    ///
    /// let path = WorkspacePath::parse("old.rs", None).expect("a path");
    /// let kind = ChangeKind::Delete { before: 1 };
    /// let changes = ChangeSet::new(vec![FileChange { path, kind, diff: None }]);
    /// let risks: Vec<_> = changes.risks().map(|(risk, of)| (risk, of.len())).collect();
    /// assert_eq!(risks, [(ChangeRisk::Deletes, 1)]);
    /// ```
    pub fn risks(&self) -> impl Iterator<Item = (ChangeRisk, Vec<&FileChange>)> {
        let lists = ApprovalPaths::default();
        ChangeRisk::ALL.into_iter().filter_map(move |risk| {
            let of: Vec<_> = self.iter().filter(|change| risk.is_of(change, &lists)).collect();
            (!of.is_empty()).then_some((risk, of))
        })
    }
}
