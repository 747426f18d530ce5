//! Plugins of every released version of the contract, one for each language with an SDK. They load
//! and answer for ever.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use cofferdam_tests::program::TestHome;
use ruzstd::decoding::StreamingDecoder;
use serde_json::{Value, json};

use super::{PROGRAM, new_home};

const LANGUAGES: [&str; 5] = ["c", "go", "javascript", "python", "rust"];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Decompresses a fixture into the home directory, and returns its path.
fn decompress(home: &TestHome, path: &Path) -> String {
    let target = home.path().join(path.with_extension("").file_name().expect("it has a name"));
    let mut decoder = StreamingDecoder::new(File::open(path).expect("a fixture can be opened"))
        .expect("a fixture is compressed");
    let mut file = File::create(&target).expect("a file can be created");
    std::io::copy(&mut decoder, &mut file).expect("a fixture can be decompressed");
    target.display().to_string()
}

/// Runs the program without a time limit, because the first use compiles the component.
fn run(home: &TestHome, args: &[&str]) -> String {
    let mut command = Command::new(PROGRAM);
    home.configure(&mut command);
    let ran = command.args(args).output().expect("the program starts");
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{args:?}: {errors}");
    String::from_utf8(ran.stdout).expect("the output is text")
}

#[test]
fn plugins_of_every_released_version_load_and_answer() {
    let versions = fs::read_dir(fixtures()).expect("the fixtures can be listed");
    let versions = versions.map(|version| version.expect("an entry can be read").path());
    let versions: Vec<PathBuf> = versions.filter(|path| path.is_dir()).collect();
    assert!(versions.contains(&fixtures().join("0.2.0")), "{versions:?}");
    for version in versions {
        for language in LANGUAGES {
            let home = new_home().with_file("a.txt", "one\ntwo\nthree\n");
            let component = decompress(&home, &version.join(format!("{language}.wasm.zst")));
            let inspected = run(&home, &["plugin", "inspect", &component, "--json"]);
            let inspected: Value = serde_json::from_str(&inspected).expect("it is JSON");
            let tool = &inspected["tools"][0];
            assert_eq!(
                (&tool["name"], &tool["title"], &tool["tier"]),
                (&json!("count_lines"), &json!("Count lines"), &json!("read-only")),
                "{component}"
            );
            run(&home, &["lock", "--yes", "--plugin", &component]);
            let input = r#"{"path":"a.txt"}"#;
            let plugin = ["--plugin", &component];
            let result =
                run(&home, &[&["tools", "call", "count_lines", input], &plugin[..]].concat());
            assert_eq!(result.trim(), "3", "{component}");
        }
    }
}
