//! No guest is without a test.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_guest_has_a_test() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = |folder: &str, extension: &str| -> Vec<_> {
        let folder = std::fs::read_dir(package.join(folder)).expect("the folder is there");
        let paths = folder.map(|file| file.expect("it is there").path());
        paths.filter(|path| path.extension().is_some_and(|e| e == extension)).collect()
    };
    let tests: String = files("tests/enclosure", "rs")
        .iter()
        .map(|path| std::fs::read_to_string(path).expect("it is text"))
        .collect();
    let guests: BTreeSet<String> = files("guests", "wat")
        .iter()
        .map(|path| path.file_stem().expect("it has one").to_string_lossy().into_owned())
        .collect();
    // `good` is in every test host.
    let forgotten: Vec<_> = guests
        .iter()
        .filter(|name| *name != "good" && !tests.contains(&format!("\"{name}\"")))
        .collect();
    assert!(forgotten.is_empty(), "guests without a test: {forgotten:?}");
    assert!(guests.len() > 45, "only {} guests", guests.len());
}
