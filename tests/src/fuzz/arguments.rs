//! Checking the arguments of a call.

use cofferdam::tools::fuzzing::{FuzzedCheck, check_arguments};

use super::fields;

/// Letters that a refusal may have: a model reads it, and pays for it.
const MAX_ERROR_CHARS: usize = 8_000;

/// The fields: the schema of a tool, and the arguments of a call.
///
/// - Whatever the two are, checking ends soon and takes little memory (whoever runs this measures).
/// - A refusal is short, and the same each time.
pub fn arguments(data: &[u8]) {
    let Some([schema, arguments]) = fields(data) else { return };
    let checked = check_arguments(schema, arguments);
    match &checked {
        FuzzedCheck::InvalidSchema(problem) | FuzzedCheck::Invalid(problem) => {
            assert!(
                !problem.is_empty() && problem.chars().count() <= MAX_ERROR_CHARS,
                "{} letters",
                problem.chars().count()
            );
        }
        FuzzedCheck::Valid(paths) => assert!(*paths <= arguments.len()),
    }
    assert_eq!(check_arguments(schema, arguments), checked);
}
