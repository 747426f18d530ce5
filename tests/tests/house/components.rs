//! The embedded components come from the sources beside them.

use super::sources::root;

#[test]
fn embedded_components_agree_with_their_sources_and_their_record() {
    if let Err(mismatches) = cofferdam_build_plugins::check(&root()) {
        let all: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
        panic!("{}\nRun `cargo plugins build`.", all.join("\n"));
    }
}
