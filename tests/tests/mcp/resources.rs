//! Files as resources: what `read_file` may read, and nothing else.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::client::{McpClient, new_home};

fn read(client: &mut McpClient, uri: &str) -> Value {
    client.ask("resources/read", json!({"uri": uri}))
}

#[test]
fn files_are_listed_in_pages_and_read_whole() {
    let home = new_home().with_file("src/a b.md", "# ä\n").with_file(".env", "KEY=1");
    for n in 0..450 {
        home.write_file(&format!("workspace/many/{n:03}.txt"), n.to_string());
    }
    let mut client = McpClient::begin(&home, &[]);
    let (mut found, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        let page = client.ask("resources/list", params)["result"].clone();
        found.extend(page["resources"].as_array().expect("a list").clone());
        pages += 1;
        match page.get("nextCursor") {
            Some(next) => cursor = next.clone(),
            None => break,
        }
    }
    assert_eq!((found.len(), pages), (451, 3));
    let titles: Vec<&str> = found.iter().filter_map(|file| file["title"].as_str()).collect();
    assert!(titles.is_sorted() && !titles.contains(&".env"), "{titles:?}");
    let file = found.iter().find(|file| file["title"] == "src/a b.md").expect("it is listed");
    let uri = file["uri"].as_str().expect("a text");
    assert!(uri.ends_with("/src/a%20b.md"), "{uri}");
    assert_eq!((&file["mimeType"], &file["size"]), (&json!("text/markdown"), &json!(5)));
    let contents = read(&mut client, uri)["result"]["contents"].clone();
    assert_eq!(contents, json!([{"uri": uri, "mimeType": "text/markdown", "text": "# ä\n"}]));
    let templates = client.ask("resources/templates/list", json!({}))["result"].clone();
    let template = templates["resourceTemplates"][0]["uriTemplate"].as_str().expect("a text");
    let uri = template.replace("{+path}", "many/007.txt");
    assert_eq!(read(&mut client, &uri)["result"]["contents"][0]["text"], "7", "{uri}");
}

#[test]
fn nothing_outside_and_nothing_hidden_is_a_resource() {
    let home = new_home().with_file("a.txt", "in\n").with_file(".env", "SECRET-1");
    home.write_file("outside.txt", "SECRET-2");
    let workspace = home.workspace();
    symlink("../outside.txt", workspace.join("out.txt")).expect("link it");
    symlink(".env", workspace.join("harmless.txt")).expect("link it");
    symlink("/etc", workspace.join("etc")).expect("link it");
    home.write_file("workspace/big.txt", "x".repeat((1 << 20) + 1));
    home.write_file("workspace/.git/config", "[remote \"o\"]\n\turl = https://a:SECRET-3@b/c\n");
    home.write_file("config/cofferdam/policy.toml", "[read]\ndeny = [\"private/**\"]\n");
    home.write_file("workspace/private/x.txt", "SECRET-4");
    let mut client = McpClient::begin(&home, &[]);
    let root = format!("file://{}", workspace.display());
    let above = format!("file://{}", home.path().display());
    let uris = [
        format!("{root}/.env"),
        format!("{root}/harmless.txt"),
        format!("{root}/out.txt"),
        format!("{root}/etc/hostname"),
        format!("{root}/private/x.txt"),
        format!("{root}/../outside.txt"),
        format!("{root}/%2e%2e/outside.txt"),
        format!("{root}/..%2foutside.txt"),
        format!("{root}//..//outside.txt"),
        format!("{above}/outside.txt"),
        format!("{root}/a.txt%00.env"),
        format!("{root}/a.txt?x=../.env"),
        format!("{root}/a.txt#.env"),
        format!("{root}/big.txt"),
        format!("{root}/"),
        root.clone(),
        format!("{root}/missing.txt"),
        format!("file://evil.org{}/a.txt", workspace.display()),
        "file:///etc/passwd".into(),
        "file:///proc/self/environ".into(),
        "file:///dev/zero".into(),
        "https://example.org/".into(),
        "a.txt".into(),
        String::new(),
    ];
    for uri in uris {
        let answer = read(&mut client, &uri);
        assert_eq!(answer["error"]["code"], -32002, "{uri}: {answer}");
        assert!(!answer.to_string().contains("SECRET"), "{uri}: {answer}");
    }
    let settings = read(&mut client, &format!("{root}/.git/config")).to_string();
    assert!(!settings.contains("SECRET"), "{settings}");
    assert_eq!(
        read(&mut client, &format!("{root}/a.txt"))["result"]["contents"][0]["text"],
        "in\n"
    );
    let listed = client.ask("resources/list", json!({})).to_string();
    for hidden in [".env", "out.txt", "harmless", "private/x.txt", "etc/"] {
        assert!(!listed.contains(hidden), "{hidden}: {listed}");
    }
}

#[test]
fn without_the_tool_there_are_no_resources() {
    let home = new_home().with_file("a.txt", "in\n");
    home.write_file("config/cofferdam/policy.toml", "[tools.read_file]\nuse = \"deny\"\n");
    let mut client = McpClient::begin(&home, &[]);
    assert_eq!(client.ask("resources/list", json!({}))["result"]["resources"], json!([]));
    let uri = format!("file://{}/a.txt", home.workspace().display());
    let answer = read(&mut client, &uri);
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("policy")));
    let called =
        client.ask("tools/call", json!({"name": "read_file", "arguments": {"path": "a.txt"}}));
    assert!(called["result"].is_null(), "{called}");
}
