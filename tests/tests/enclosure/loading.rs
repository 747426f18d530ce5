//! What is no component, fits no host, or changes on disk; the compiler and its cache.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cofferdam::policy::Capability;
use cofferdam::sandbox::{
    ArtifactCache, CompilerKind, ComponentBytes, ComponentDigest, InstanceAllocation, LoadedPlugin,
    SandboxOptions, WasmSandbox,
};
use cofferdam::tools::{PluginProvenance, builtin_components};
use cofferdam_tests::guests::{GuestTool, TestGuest, TestHost, TestHostBuilder};

use crate::assert_contains;

fn load_host(bytes: impl Into<Arc<[u8]>>) -> TestHost {
    TestHostBuilder::default()
        .with_component(PluginProvenance::File("given.wasm".into()), bytes)
        .build()
}

fn new_sandbox(compiler: CompilerKind, cache: Option<ArtifactCache>) -> Arc<WasmSandbox> {
    Arc::new(
        WasmSandbox::new(SandboxOptions {
            allocation: InstanceAllocation::OnDemand,
            compiler,
            cache,
        })
        .expect("it can be made"),
    )
}

fn other_guest() -> TestGuest {
    TestGuest::from_file("good").with_tools([GuestTool::new("other")])
}

#[test]
fn bytes_that_are_no_component_are_not_offered() {
    let component = other_guest().component();
    let mut flipped = component.clone();
    for place in (40..flipped.len()).step_by(97) {
        flipped[place] ^= 0x55;
    }
    const UNUSABLE: &str = "it is not a supported component";
    let table: [(&str, Vec<u8>, &str); 6] = [
        ("nothing", Vec::new(), "it is not WebAssembly; it is empty"),
        (
            "garbage",
            b"\x7fELF this is no component".to_vec(),
            "it is not WebAssembly (it begins with `",
        ),
        ("half", component[..component.len() / 2].to_vec(), UNUSABLE),
        ("all but the last byte", component[..component.len() - 1].to_vec(), UNUSABLE),
        ("flipped", flipped, UNUSABLE),
        ("a core module", other_guest().module(), "it is a core WebAssembly module"),
    ];
    for (what, bytes, words) in table {
        let test_host = load_host(bytes);
        assert_contains(test_host.refusal_reason(), words);
        assert_eq!(test_host.catalog().tools().len(), 1, "{what}");
        test_host.assert_healthy();
    }
}

#[test]
fn a_component_for_another_version_of_the_contract_is_not_offered() {
    for version in ["0.1.0", "0.3.0"] {
        let test_host = load_host(other_guest().with_version(version).component());
        assert_contains(
            test_host.refusal_reason(),
            "it does not match the interfaces of this host",
        );
        assert_contains(test_host.refusal_reason(), "cofferdam:plugin/");
        test_host.assert_healthy();
    }
    // A later version that only adds is fine.
    let test_host = load_host(other_guest().with_version("0.2.7").component());
    assert!(test_host.refusal_reasons().is_empty(), "{:?}", test_host.refusal_reasons());
    assert_eq!(test_host.call_ok("other", r#"{"text":"x"}"#), "x");
}

#[test]
fn an_import_that_this_host_does_not_have_is_named() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("unknown-import"));
    assert_contains(test_host.refusal_reason(), "it does not match the interfaces of this host");
    assert_contains(test_host.refusal_reason(), "nobody:knows/this@1.0.0");
    test_host.assert_healthy();
}

#[test]
fn a_component_of_nothing_is_not_offered() {
    let test_host = load_host(wat::parse_str("(component)").expect("it is one"));
    assert_contains(test_host.refusal_reason(), "cofferdam:plugin/tools");
    test_host.assert_healthy();
}

#[test]
fn a_large_function_is_compiled_in_time() {
    // Small enough for a test, and large enough that an algorithm of the square of it would show.
    let body = "(local.set $x (i64.add (i64.mul (local.get $x) (local.get $x)) (i64.const 7)))\n"
        .repeat(8_000);
    let source = format!(
        "(func $call (result i32) (local $x i64)\n(if (i64.eq (local.get $x) (i64.const 1)) \
            (then\n{body}))\n(call $text @\"compiled\"))"
    );
    let started = Instant::now();
    let test_host = TestHost::with_guest(&TestGuest::from_source("large-function", &source));
    assert_eq!(test_host.call_ok("large_function", "{}"), "compiled");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    test_host.assert_healthy();
}

#[test]
fn a_component_that_is_replaced_on_disk_is_not_the_one_that_was_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plugin.wasm");
    let before =
        TestGuest::from_source("plugin", r#"(func $call (result i32) (call $text @"before"))"#)
            .component();
    let after =
        TestGuest::from_source("plugin", r#"(func $call (result i32) (call $text @"after"))"#)
            .component();
    let cache = crate::open_cache(folder.path());
    for cache in [None, Some(cache)] {
        std::fs::write(&path, &before).expect("it can be written");
        let sandbox = new_sandbox(CompilerKind::InProcess, cache);
        let bytes = ComponentBytes::read(&path).expect("it can be read");
        let test_host = TestHostBuilder::default()
            .with_component(PluginProvenance::File(path.clone()), bytes.as_ref())
            .with_sandbox(Arc::clone(&sandbox))
            .build();
        std::fs::write(&path, &after).expect("it can be written");
        assert_eq!(test_host.call_ok("plugin", "{}"), "before");
        let bytes = ComponentBytes::read(&path).expect("it can be read");
        let test_host = TestHostBuilder::default()
            .with_component(PluginProvenance::File(path.clone()), bytes.as_ref())
            .with_sandbox(sandbox)
            .build();
        assert_eq!(test_host.call_ok("plugin", "{}"), "after");
        test_host.assert_healthy();
    }
}

#[test]
fn only_plain_files_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_contains(
        &ComponentBytes::read(folder.path()).expect_err("a folder").to_string(),
        "a plugin must be a regular file",
    );
    assert_contains(
        &ComponentBytes::read(std::path::Path::new("/dev/zero")).expect_err("a device").to_string(),
        "a plugin must be a regular file",
    );
    let fifo = folder.path().join("fifo");
    crate::create_fifo(&fifo);
    assert_contains(
        &ComponentBytes::read(&fifo).expect_err("a FIFO").to_string(),
        "a plugin must be a regular file",
    );
    assert!(ComponentBytes::read(&folder.path().join("none")).is_err());
}

#[test]
fn a_damaged_cache_is_made_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("cache");
    let load = || -> LoadedPlugin {
        new_sandbox(CompilerKind::InProcess, Some(crate::open_cache(folder.path())))
            .load(other_guest().component(), &|| {})
            .expect("it loads")
    };
    assert_eq!(load().declaration().tools[0].name, "other");
    for damage in [&b""[..], b"garbage", b"{}"] {
        let files: Vec<PathBuf> = std::fs::read_dir(&place)
            .expect("it is there")
            .map(|file| file.expect("it is").path())
            .collect();
        assert_eq!(files.len(), 2, "{files:?}");
        for file in files {
            std::fs::write(file, damage).expect("it can be written");
        }
        assert_eq!(load().declaration().tools[0].name, "other");
    }
}

/// The files of a cache whose names end so.
fn cached_files(folder: &Path, kind: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder.join("cache"))
        .expect("it is there")
        .map(|file| file.expect("it is").path());
    files.filter(|file| file.to_string_lossy().contains(kind)).collect()
}

#[test]
fn a_declaration_that_was_changed_is_asked_for_anew() {
    static MISMATCHES: AtomicUsize = AtomicUsize::new(0);
    let folder = tempfile::tempdir().expect("a folder");
    let component = TestGuest::from_file("good")
        .with_tools([GuestTool::new("other").with_requested(&[Capability::ReadFiles])])
        .component();
    let load = || -> Vec<Capability> {
        let cache = crate::open_cache(folder.path()).with_mismatch_handler(|_| {
            MISMATCHES.fetch_add(1, Ordering::Relaxed);
        });
        let plugin = new_sandbox(CompilerKind::InProcess, Some(cache))
            .load(component.clone(), &|| {})
            .expect("it loads");
        plugin.declaration().tools[0].asks.clone()
    };
    assert_eq!(load(), [Capability::ReadFiles]);
    assert_eq!((load(), MISMATCHES.load(Ordering::Relaxed)), (vec![Capability::ReadFiles], 0));
    let [file] = cached_files(folder.path(), ".tools-").try_into().expect("one declaration");
    let kept = std::fs::read(&file).expect("it is there");
    let from = kept
        .windows(4)
        .position(|part| part == b"Read")
        .or_else(|| kept.windows(4).position(|part| part == b"read"));
    let from = from.expect("it is in the clear");
    let word: &[u8] = if kept[from] == b'R' { b"Write" } else { b"write" };
    std::fs::write(&file, [&kept[..from], word, &kept[from + 4..]].concat())
        .expect("it can be written");
    assert_eq!((load(), MISMATCHES.load(Ordering::Relaxed)), (vec![Capability::ReadFiles], 1));
    assert_eq!(std::fs::read(&file).expect("it is there"), kept, "it is made anew");
    assert_eq!((load(), MISMATCHES.load(Ordering::Relaxed)), (vec![Capability::ReadFiles], 1));
}

#[test]
fn a_built_in_tool_asks_for_what_the_program_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, component) =
        builtin_components().find(|(name, _)| *name == "read_file").expect("it is built in");
    let sandbox = new_sandbox(CompilerKind::InProcess, Some(crate::open_cache(folder.path())));
    // As a file of a stranger it is asked, and its answer is kept.
    let asked = sandbox.load(component.as_ref().to_vec(), &|| {}).expect("it loads");
    assert_eq!(component.declaration(), Some(asked.declaration()));
    let [file] = cached_files(folder.path(), ".tools-").try_into().expect("one declaration");
    for planted in [&b"garbage"[..], br#"{"tools":[],"imports":{"interfaces":[],"lent":[]}}"#] {
        std::fs::write(&file, planted).expect("it can be written");
        let (_, component) =
            builtin_components().find(|(name, _)| *name == "read_file").expect("it is built in");
        let loaded = sandbox.load(component, &|| {}).expect("it loads");
        assert_eq!(loaded.declaration(), asked.declaration());
        assert_eq!(std::fs::read(&file).expect("it is there"), planted, "the cache has no say");
    }
}

#[test]
fn no_component_runs_the_code_of_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let saying = |word: &str| {
        TestGuest::from_source(
            "plugin",
            &format!(r#"(func $call (result i32) (call $text @"{word}"))"#),
        )
        .component()
    };
    let run = |component: &[u8]| {
        let sandbox = new_sandbox(CompilerKind::InProcess, Some(crate::open_cache(folder.path())));
        TestHostBuilder::default()
            .with_component(PluginProvenance::File("plugin.wasm".into()), component)
            .with_sandbox(sandbox)
            .build()
            .call_ok("plugin", "{}")
    };
    let (ours, theirs) = (saying("ours"), saying("theirs"));
    assert_eq!((run(&ours).as_str(), run(&theirs).as_str()), ("ours", "theirs"));
    let of = |component: &[u8]| -> PathBuf {
        let digest = ComponentDigest::compute(component);
        let files = cached_files(folder.path(), ".code-");
        files
            .into_iter()
            .find(|file| file.to_string_lossy().contains(digest.as_str()))
            .expect("its code")
    };
    std::fs::copy(of(&theirs), of(&ours)).expect("it can be copied");
    assert_eq!(run(&ours), "ours");
    std::fs::remove_file(of(&ours)).expect("it is there");
    std::os::unix::fs::symlink(of(&theirs), of(&theirs).with_file_name("link")).expect("a link");
    std::fs::rename(
        folder.path().join("cache/link"),
        folder.path().join(format!("cache/{}", cache_file_name(&of(&theirs), &theirs, &ours))),
    )
    .expect("renamed");
    assert_eq!(run(&ours), "ours");
}

/// The name that the code of one component has, for another.
fn cache_file_name(path: &Path, of: &[u8], instead: &[u8]) -> String {
    let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
    name.replace(ComponentDigest::compute(of).as_str(), ComponentDigest::compute(instead).as_str())
}

#[test]
fn a_compiler_that_fails_is_a_plugin_that_is_not_offered() {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_cofferdam-under-test"));
    let sandbox_of = |program: &str| new_sandbox(CompilerKind::ChildProcess(program.into()), None);
    let good = new_sandbox(CompilerKind::ChildProcess(program), None);
    let test_host = TestHostBuilder::default()
        .with_guest(&other_guest())
        .with_sandbox(Arc::clone(&good))
        .build();
    assert_eq!(
        test_host.call_ok("other", r#"{"text":"compiled elsewhere"}"#),
        "compiled elsewhere"
    );
    let test_host = TestHostBuilder::default()
        .with_component(PluginProvenance::File("bad.wasm".into()), *b"\0asm\x0d\0\x01\0garbage")
        .with_sandbox(good)
        .build();
    assert_contains(test_host.refusal_reason(), "it is not a supported component");
    test_host.assert_healthy();
    for (program, says) in [
        ("/bin/false", "the compiler failed with exit status: 1"),
        ("/nowhere", "cannot run the compiler"),
    ] {
        let test_host = TestHostBuilder::default()
            .with_guest(&other_guest())
            .with_sandbox(sandbox_of(program))
            .build();
        assert_contains(test_host.refusal_reasons()[0], says);
    }
    let test_host = TestHostBuilder::default()
        .with_guest(&other_guest())
        .with_sandbox(sandbox_of("/bin/true"))
        .build();
    assert_eq!(test_host.refusal_reasons().len(), 2, "nothing compiled is nothing loaded");
}
