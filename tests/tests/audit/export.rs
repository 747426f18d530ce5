//! Exports of logs that somebody changed.

use std::fs;

use serde_json::json;

use super::TestUser;

#[test]
fn an_export_holds_the_records_in_front_of_a_broken_one() {
    let user = TestUser::new();
    user.call_tool("bash", &json!({"command": "echo a"}));
    user.call_tool("bash", &json!({"command": "echo b"}));
    let whole = user.run(&["audit", "export"]).json_lines();
    let [first, _] = user.log_files().try_into().expect("two logs");
    let text = fs::read_to_string(&first).expect("readable");
    fs::write(&first, text.replacen("echo a", "echo c", 1)).expect("writable");
    let ran = user.run(&["audit", "export"]);
    assert!(ran.exit_code == 1 && ran.stderr.contains("line 3 was changed"), "{ran:?}");
    assert_eq!(ran.json_lines()[..2], whole[..2]);
    assert_eq!(ran.json_lines()[2..], whole[4..], "the other log is whole");
    let ocsf = user.run(&["audit", "export", "--format", "ocsf"]);
    assert!(ocsf.exit_code == 1 && ocsf.json_lines().len() == 2, "{ocsf:?}");
}
