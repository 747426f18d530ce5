//! Hidden paths that a command creates, and the audit records of denied changes.

use super::commits::{call, home};

#[test]
fn a_command_creates_no_hidden_file() {
    let policy = "[protected]\nhidden = [\"*.sqlite\", \"vault\"]\n";
    let home = home().with_file(".cofferdam/policy.toml", policy);
    let line = "mkdir -p vault sub node_modules/p; echo x > new.sqlite; echo x > vault/z
        echo x > .env; echo x > sub/.env; echo x > sub/y; echo x > node_modules/p/test.pem
        echo x > node_modules/p/test.sqlite; git init -q r; echo x > r/.git/id_rsa; echo x > z";
    let ran = home.start(call(&home, line)).wait_for_exit();
    let said = format!("{}{}", ran.stdout, ran.stderr);
    for hidden in ["new.sqlite", "vault", ".env", "sub/.env", "node_modules/p/test.sqlite"] {
        assert!(!home.has_file(hidden), "{hidden}: {said}");
        assert!(said.contains(hidden), "{hidden}: {said}");
    }
    assert!(said.contains("commands cannot change hidden files"), "{said}");
    // The built-in list does not cover packages and the data of repositories.
    for path in ["sub/y", "node_modules/p/test.pem", "r/.git/HEAD", "r/.git/id_rsa", "z"] {
        assert!(home.has_file(path), "{path}: {said}");
    }
}

#[test]
fn each_denied_change_of_a_command_is_a_decision_in_the_audit_log() {
    let policy = "[write]\ndeny = [\"gen/**\"]\n[protected]\nhidden = [\"*.sqlite\"]\n";
    let home = home()
        .with_file(".cofferdam/policy.toml", policy)
        .with_file("gen/old", "12345")
        .with_file("gen/gone", "1");
    let line = "echo hello > gen/new; echo hello > gen/old; rm gen/gone; echo x > a.sqlite
        i=0; while [ $i -lt 70 ]; do echo x > gen/n$i; i=$((i+1)); done; echo x > z";
    let ran = home.start(call(&home, line)).wait_for_exit();
    assert!(
        home.has_file("z") && home.has_file("gen/gone") && !home.has_file("gen/new"),
        "{ran:?}"
    );
    let records = home.run(&["audit", "show", "--json"]).json_lines();
    let denied: Vec<_> = records.iter().filter(|record| record["decision"] == "deny").collect();
    let [one, other] = denied.as_slice() else { panic!("two reasons: {denied:?}") };
    let (hidden, rule) =
        if one["effect"]["changes"][0]["path"] == "a.sqlite" { (one, other) } else { (other, one) };
    assert_eq!(hidden["by"]["code"], "protected", "{hidden}");
    let place = rule["by"]["place"].as_str().expect("a place");
    assert!(place.contains("policy.toml:2"), "{rule}");
    let listed = rule["effect"]["changes"].as_array().expect("a list");
    assert_eq!((listed.len(), &rule["effect"]["more"]), (50, &23.into()), "{rule}");
    let of =
        |path: &str| listed.iter().find(|change| change["path"] == path).expect("it is listed");
    assert_eq!((&of("gen/gone")["act"], &of("gen/gone")["before"]), (&"delete".into(), &1.into()));
    let ended = records.iter().find(|record| record["kind"] == "ended").expect("it ended");
    for record in [hidden, rule] {
        let number = &record["n"];
        let all = ended["decided"].as_array().expect("a list");
        assert!(all.contains(number), "{number}: {ended}");
    }
    let shown = home.run(&["audit", "show"]).stdout;
    let expected = "bash: deny writing: create a.sqlite (2 bytes)";
    assert!(shown.contains(expected) && shown.contains("delete gen/gone"), "{shown}");
}

#[test]
fn the_record_of_a_denied_write_says_that_nothing_was_written() {
    let home = home().with_file(".cofferdam/policy.toml", "[write]\ndeny = [\"gen/**\"]\n");
    for (path, is_written) in [("gen/b", false), ("src/b", true)] {
        let input = serde_json::json!({"path": path, "content": "x\n"}).to_string();
        home.run(&["tools", "call", "write_file", &input, "--mode", "auto"]);
        // The record of the call ends with the paths that it wrote.
        assert_eq!(home.has_file(path), is_written);
        let shown = home.run(&["audit", "show"]).stdout;
        assert_eq!(shown.contains(&format!(", {path}\n")), is_written, "{shown}");
    }
}
