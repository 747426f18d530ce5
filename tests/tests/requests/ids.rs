//! Ids of calls: one for each call of the whole conversation, whatever the models make of them. That they are distinct, and no
//! longer than a provider takes, is checked in every request of every test; here models do their worst.

use cofferdam_tests::program::Home;
use cofferdam_tests::wire::{Provider, Reply, all, nothing, says};

use super::home;

fn home_for(provider: Provider) -> Home {
    let home = home().with("a.txt", "hay\n");
    home.write("config/cofferdam/config.toml", provider.config(""));
    home
}

fn reads(id: &str) -> Reply {
    nothing().raw_call(id, "read_file", "{\"path\": \"a.txt\"}")
}

#[test]
fn r021_an_id_that_comes_again_belongs_to_the_newest_call_alone() {
    let long = format!("call_{}", "x".repeat(100));
    for provider in all() {
        for id in ["call_0", "functions.read_file:0", "", &long] {
            let home = home_for(provider);
            let server = provider.serve([reads(id), reads(id), reads(id).raw_call(id, "grep", "{}"), says("Done.")]);
            home.ask(&server, &[]).answered("Done.");
            let results: Vec<String> = server.requests().iter().flat_map(|request| request.results()).map(|seen| seen.id).collect();
            let distinct: std::collections::BTreeSet<_> = results.iter().collect();
            assert_eq!((results.len(), distinct.len()), (4, 4), "{provider:?}, {id:?}: {results:?}");
            // And in a later request of the same session, of which the file has to know what was sent.
            let server = provider.serve([reads(id), says("Again.")]);
            home.ask(&server, &["--continue"]).answered("Again.");
            let again = server.last_request().results().remove(0).id;
            assert!(!results.contains(&again), "{provider:?}, {id:?}: {again} of {results:?}");
            assert!(results.iter().all(|id| server.last_request().count(id) >= 2), "{provider:?}, {id:?}: {results:?}");
        }
    }
}

#[test]
fn r021_ids_stay_distinct_when_a_session_goes_over_to_a_stricter_provider() {
    let awkward = ["functions.read_file:0", "functions.read_file.0", "functions_read_file_0", "é", "a b"];
    for (first, second) in all().into_iter().flat_map(|first| all().map(|second| (first, second))) {
        let home = home_for(first);
        let replies = awkward.iter().map(|id| reads(id)).chain([says("Done.")]);
        home.ask(&first.serve(replies), &[]).answered("Done.");
        home.write("config/cofferdam/config.toml", second.config(""));
        let server = second.serve([says("Again.")]);
        home.ask(&server, &["--continue"]).answered("Again.");
    }
}

#[test]
fn r021_a_session_with_one_id_for_many_calls_is_mended_when_it_goes_on() {
    let home = home_for(Provider::OpenAi);
    let server = Provider::OpenAi.serve([reads("call_0"), reads("call_0"), says("Done.")]);
    home.ask(&server, &[]).answered("Done.");
    // As an earlier version wrote it down.
    let sessions = home.path().join("state/cofferdam/sessions");
    let mended = with_each_file(&sessions, &|text| text.replace("call_0_2", "call_0"));
    assert!(mended > 0, "the file holds the second id");
    let server = Provider::OpenAi.serve([says("Again.")]);
    home.ask(&server, &["--continue"]).answered("Again.");
    assert_eq!((server.request().count("call_0"), server.request().count("call_0_2")), (4, 2), "{:#}", server.request().body);
}

/// Changes files; says how many of them changed.
fn with_each_file(folder: &std::path::Path, change: &dyn Fn(&str) -> String) -> usize {
    let mut changed = 0;
    for entry in std::fs::read_dir(folder).expect("it is there").flatten() {
        if entry.path().is_dir() {
            changed += with_each_file(&entry.path(), change);
        } else if let Ok(text) = std::fs::read_to_string(entry.path()) {
            let new = change(&text);
            changed += usize::from(new != text);
            std::fs::write(entry.path(), new).expect("it can be written");
        }
    }
    changed
}
