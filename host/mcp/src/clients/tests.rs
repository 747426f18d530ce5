//! Tests of the edits: everything else stays as it is, and what is not understood is refused.

use proptest::prelude::*;

use super::*;

fn entry() -> ServerEntry {
    ServerEntry {
        name: "cofferdam".into(),
        command: "/opt/my programs/cofferdam".into(),
        args: vec!["mcp".into(), "serve".into(), "-C".into(), "/home/ann/\"x\"".into()],
    }
}

/// Texts that users have, by client.
fn texts(client: KnownClient) -> Vec<&'static str> {
    match client.format() {
        FileFormat::Json("servers") => vec![
            "",
            "{}",
            "{\n  // mine\n  \"inputs\": [],\n}\n",
            "{\n\t\"servers\": {\n\t\t\"a\": {\"command\": \"x\"}, // last\n\t}\n}\n",
            "{\"servers\":{\"a\":{\"command\":\"//x\"}},\"b\":[1,{\"c\":\"}\"}]}",
        ],
        FileFormat::Json(_) => vec![
            "",
            "{}\n",
            "{ /* nothing yet */ }\n",
            "{\n  \"theme\": \"dark\" // a comment, with \"mcpServers\": {}\n}\n",
            "{\n  \"mcpServers\": {},\n  \"n\": 1.50\n}\n",
            "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }\n}\n",
            concat!(
                "{\n    \"mcpServers\": {\n        \"a\": {},\n        /* b */\n",
                "        \"b\": [[]],\n    },\n    \"z\": null,\n}"
            ),
        ],
        FileFormat::Toml => vec![
            "",
            "# mine\nmodel = \"o5\"   # with a comment\n",
            concat!(
                "model = \"o5\"\n\n[mcp_servers.a]\ncommand = \"x\"\n\n",
                "[mcp_servers.a.env]\nK = \"1\"\n\n# for b\n[profiles.b]\nx = 1\n"
            ),
        ],
        FileFormat::Yaml => vec![
            "",
            "GOOSE_MODEL: x # a comment\n",
            concat!(
                "GOOSE_MODEL: x\nextensions:\n  developer:\n    enabled: true\n",
                "    type: builtin\n\n  other:\n    cmd: y\nafter: 1\n"
            ),
            "extensions: {}\nafter: |\n  extensions:\n    cofferdam:\n",
            "extensions: # all\n    a:\n        enabled: false\n",
        ],
    }
}

#[test]
fn a_server_is_added_once_and_removed_without_a_trace() {
    for client in KnownClient::ALL {
        for text in texts(client) {
            let added =
                client.add(&entry(), text).unwrap_or_else(|e| panic!("{client} {text}: {e}"));
            assert!(added.contains("my programs"), "{client}: {added}");
            let again = client.add(&entry(), &added).expect("it is understood");
            let other = ServerEntry { command: "/other".into(), ..entry() };
            let replaced = client.add(&other, &added).expect("it is understood");
            assert!(replaced.contains("/other") && !replaced.contains("my programs"), "{replaced}");
            for added in [added, again, replaced] {
                let removed = client.remove("cofferdam", &added).expect("it is understood");
                let removed = removed.unwrap_or_else(|| panic!("{client} {text:?}: not found"));
                assert!(!removed.contains("\"serve\""), "{client}: {removed}");
                // Every line of the user is still there, but for commas.
                let without_commas = |line: &str| line.replace(',', "");
                for line in text.lines() {
                    let own = without_commas(line);
                    let is_kept = removed.lines().any(|kept| without_commas(kept) == own)
                        || ["{}", "{ /* nothing yet */ }"].contains(&line)
                        || line.starts_with("extensions")
                        || line.contains("mcpServers\": {}")
                        || line.contains("\"servers\":{\"a\"");
                    assert!(is_kept, "{client}: {line:?} is lost in:\n{removed}");
                }
                assert_eq!(client.remove("cofferdam", &removed), Ok(None), "{client}: {removed}");
            }
            assert_eq!(client.remove("cofferdam", text), Ok(None), "{client}: {text}");
        }
    }
}

#[test]
fn what_is_not_understood_is_refused() {
    let table = [
        (KnownClient::Claude, "{"),
        (KnownClient::Claude, "[]"),
        (KnownClient::Claude, "{\"mcpServers\": []}"),
        (KnownClient::Claude, "{\"mcpServers\": {}, \"mcpServers\": {}}"),
        (KnownClient::Claude, "{\"a\": 1} trailing"),
        (KnownClient::Cursor, "{\"a\": \"no end}"),
        (KnownClient::Codex, "model = "),
        (KnownClient::Codex, "mcp_servers = { a = { command = \"x\" } }"),
        (KnownClient::Codex, "mcp_servers = 1"),
        (KnownClient::Goose, "extensions:\n  - type: stdio\n"),
        (KnownClient::Goose, "extensions: {a: {}}\n"),
        (KnownClient::Goose, "---\na: 1\n"),
        (KnownClient::Goose, "\ta: 1\n"),
        (KnownClient::Goose, "- a\n"),
        (KnownClient::Goose, "\"extensions\":\n  a: 1\n"),
    ];
    for (client, text) in table {
        let refused = client.add(&entry(), text);
        assert!(refused.is_err(), "{client} {text:?}: {refused:?}");
    }
}

#[test]
fn the_files_and_entries_are_those_of_the_clients() {
    let (home, config) = (Path::new("/h"), Path::new("/h/.config"));
    let files: Vec<String> = KnownClient::ALL
        .iter()
        .map(|client| client.config_file(home, config).display().to_string())
        .collect();
    if cfg!(target_os = "linux") {
        assert_eq!(
            files,
            [
                "/h/.claude.json",
                "/h/.codex/config.toml",
                "/h/.cursor/mcp.json",
                "/h/.config/Code/User/mcp.json",
                "/h/.config/goose/config.yaml",
                "/h/.gemini/settings.json",
            ]
        );
    }
    let shown = KnownClient::Vscode.snippet(&entry());
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(shown["servers"]["cofferdam"]["type"], "stdio");
    let shown: toml::Table = KnownClient::Codex.snippet(&entry()).parse().expect("TOML");
    assert_eq!(shown["mcp_servers"]["cofferdam"]["args"][3].as_str(), Some("/home/ann/\"x\""));
    let shown = KnownClient::Goose.snippet(&entry());
    assert!(shown.contains("    cmd: \"/opt/my programs/cofferdam\"\n"), "{shown}");
}

#[test]
fn a_line_of_a_text_is_no_table() {
    let text = "[tui]\ntext = \"\"\"\n[mcp_servers.cofferdam]\n\"\"\"\n";
    let added = KnownClient::Codex.add(&entry(), text).expect("it is understood");
    assert!(added.starts_with(text), "{added}");
    // Which of the two lines is the table is not told apart, so nothing is changed.
    assert!(matches!(
        KnownClient::Codex.remove("cofferdam", &added),
        Err(ClientFileError::Unknown(_))
    ));
}

fn any_json(depth: u32) -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i32>().prop_map(Value::from),
        "[ -~]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(depth, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ -~]{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
    .boxed()
}

proptest! {
    #[test]
    fn any_json_keeps_its_meaning(
        members in prop::collection::btree_map("[a-z/\"]{1,6}", any_json(3), 0..4),
        is_pretty in any::<bool>(),
    ) {
        let value = Value::Object(members.into_iter().collect());
        let text = if is_pretty { format!("{value:#}") } else { value.to_string() };
        let added = KnownClient::Claude.add(&entry(), &text).expect("it is understood");
        let parsed: Value = serde_json::from_str(&added).expect("JSON");
        let removed = KnownClient::Claude.remove("cofferdam", &added).expect("it is understood");
        let mut parsed_again: Value =
            serde_json::from_str(&removed.expect("it was there")).expect("JSON");
        prop_assert_eq!(&parsed["mcpServers"]["cofferdam"]["args"][0], "mcp");
        if let Some(root) = parsed_again.as_object_mut() {
            root.shift_remove("mcpServers");
        }
        prop_assert_eq!(parsed_again, value);
    }

    #[test]
    fn no_text_makes_an_edit_panic(text in "[{}\\[\\]\",:/* \n#a-c'\\\\=-]{0,60}") {
        for client in KnownClient::ALL {
            let _ = client.add(&entry(), &text);
            let _ = client.remove("cofferdam", &text);
        }
    }
}
