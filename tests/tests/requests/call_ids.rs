//! Ids of calls: one for each call of the whole conversation, whatever the models make of them.
//! That they are distinct, and no longer than a provider takes, is checked in every request of
//! every test; here models do their worst.

use cofferdam_tests::program::TestHome;
use cofferdam_tests::wire::{Provider, ScriptedReply, all_providers, empty_reply, text_reply};

use super::new_home;

fn home_for(provider: Provider) -> TestHome {
    let home = new_home().with_file("a.txt", "hay\n");
    home.write_file("config/cofferdam/config.toml", provider.config(""));
    home
}

fn read_call(id: &str) -> ScriptedReply {
    empty_reply().with_raw_call(id, "read_file", "{\"path\": \"a.txt\"}")
}

#[test]
fn r021_an_id_that_comes_again_belongs_to_the_newest_call_alone() {
    let long = format!("call_{}", "x".repeat(100));
    for provider in all_providers() {
        for id in ["call_0", "functions.read_file:0", "", &long] {
            let home = home_for(provider);
            let server = provider.serve([
                read_call(id),
                read_call(id),
                read_call(id).with_raw_call(id, "grep", "{}"),
                text_reply("Done."),
            ]);
            home.run_task(&server, &[]).expect_answer("Done.");
            let results: Vec<String> = server
                .requests()
                .iter()
                .flat_map(|request| request.tool_results())
                .map(|seen| seen.id)
                .collect();
            let distinct: std::collections::BTreeSet<_> = results.iter().collect();
            assert_eq!(
                (results.len(), distinct.len()),
                (4, 4),
                "{provider:?}, {id:?}: {results:?}"
            );
            // And in a later request of the same session, of which the file has to know what was
            // sent.
            let server = provider.serve([read_call(id), text_reply("Again.")]);
            home.run_task(&server, &["--continue"]).expect_answer("Again.");
            let again = server.last_request().tool_results().remove(0).id;
            assert!(!results.contains(&again), "{provider:?}, {id:?}: {again} of {results:?}");
            assert!(
                results.iter().all(|id| server.last_request().count_occurrences(id) >= 2),
                "{provider:?}, {id:?}: {results:?}"
            );
        }
    }
}

#[test]
fn r021_ids_stay_distinct_when_a_session_goes_over_to_a_stricter_provider() {
    let awkward =
        ["functions.read_file:0", "functions.read_file.0", "functions_read_file_0", "é", "a b"];
    for (first, second) in
        all_providers().into_iter().flat_map(|first| all_providers().map(|second| (first, second)))
    {
        let home = home_for(first);
        let replies = awkward.iter().map(|id| read_call(id)).chain([text_reply("Done.")]);
        home.run_task(&first.serve(replies), &[]).expect_answer("Done.");
        home.write_file("config/cofferdam/config.toml", second.config(""));
        let server = second.serve([text_reply("Again.")]);
        home.run_task(&server, &["--continue"]).expect_answer("Again.");
    }
}

#[test]
fn r021_a_session_with_one_id_for_many_calls_is_mended_when_it_goes_on() {
    let home = home_for(Provider::OpenAi);
    let server =
        Provider::OpenAi.serve([read_call("call_0"), read_call("call_0"), text_reply("Done.")]);
    home.run_task(&server, &[]).expect_answer("Done.");
    // As an earlier version wrote it down.
    let sessions = home.path().join("state/cofferdam/sessions");
    let mended = edit_files(&sessions, &|text| text.replace("call_0_2", "call_0"));
    assert!(mended > 0, "the file holds the second id");
    let server = Provider::OpenAi.serve([text_reply("Again.")]);
    home.run_task(&server, &["--continue"]).expect_answer("Again.");
    assert_eq!(
        (
            server.request().count_occurrences("call_0"),
            server.request().count_occurrences("call_0_2")
        ),
        (4, 2),
        "{:#}",
        server.request().body
    );
}

/// Changes files; says how many of them changed.
fn edit_files(folder: &std::path::Path, change: &dyn Fn(&str) -> String) -> usize {
    let mut changed = 0;
    for entry in std::fs::read_dir(folder).expect("it is there").flatten() {
        if entry.path().is_dir() {
            changed += edit_files(&entry.path(), change);
        } else if let Ok(text) = std::fs::read_to_string(entry.path()) {
            let new = change(&text);
            changed += usize::from(new != text);
            std::fs::write(entry.path(), new).expect("it can be written");
        }
    }
    changed
}
