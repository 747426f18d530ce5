//! The versions of the plugin contract.
//!
//! Each version has one module with the generated bindings and the conversions into the host's own
//! types. Permissions, approval, limits and scheduling use the host's own types only, so a rule
//! holds for all versions alike. Besides the version's module, only the implementations of its
//! interfaces name generated types.

pub(super) mod v0_2;

/// A name with parameters: a capability or a hint that a plugin declares.
#[derive(Clone, Debug)]
pub(super) struct ParameterizedName {
    pub(super) name: String,
    pub(super) parameters: Vec<String>,
}

/// A named value of a tool, an output or a piece of content. No name has a meaning yet.
#[derive(Clone, Debug)]
pub(super) struct Annotation {
    pub(super) name: String,
    pub(super) value: String,
}

/// The limits of a list of annotations in the WIT contract.
const MAX_ANNOTATIONS: usize = 64;
const MAX_ANNOTATION_BYTES: usize = 16 << 10;

/// Checks the size of a list of annotations, or returns what is wrong with it, as the end of a
/// sentence.
pub(super) fn check_annotations(annotations: &[Annotation]) -> Result<(), String> {
    let bytes: usize = annotations.iter().map(|one| one.name.len() + one.value.len()).sum();
    if annotations.len() > MAX_ANNOTATIONS || bytes > MAX_ANNOTATION_BYTES {
        return Err(format!(
            "has {} annotations with {bytes} bytes; the limit is {MAX_ANNOTATIONS} with \
                {MAX_ANNOTATION_BYTES} bytes in total",
            annotations.len()
        ));
    }
    Ok(())
}
