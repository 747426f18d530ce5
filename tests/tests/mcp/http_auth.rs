//! Who may use a server over HTTP: bearer tokens, access tokens of OAuth, and their confusions.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cofferdam_tests::program::TestHome;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::client::{new_home, ok_text};
use crate::http_client::{HttpReply, HttpServer};

const ANN: &str = "ann-token-0123456789abcdef";
const BOB: &str = "bob-token-fedcba9876543210";

/// Writes a file that only its owner can read.
fn write_secret(home: &TestHome, path: &str, text: &str) {
    home.write_file(path, text);
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(home.path().join(path), mode).expect("it can be changed");
}

/// A server with the tokens of Ann and Bob.
fn start_with_tokens(home: &TestHome, args: &[&str]) -> HttpServer {
    write_secret(home, "tokens", &format!("# tokens\nann {ANN}\nbob {BOB}\n"));
    let file = home.path().join("tokens").display().to_string();
    HttpServer::start(home, &[&["--token-file", &file], args].concat())
}

#[track_caller]
fn assert_challenged(reply: &HttpReply) -> String {
    assert_eq!(reply.status, 401, "{reply:?}");
    let challenge = reply.header("www-authenticate").expect("a challenge").to_owned();
    assert!(challenge.starts_with("Bearer"), "{challenge}");
    assert!(reply.message()["error"]["message"].is_string(), "{reply:?}");
    challenge
}

#[test]
fn only_a_known_token_opens_the_server() {
    let home = new_home().with_file("a.txt", "one\n");
    let server = start_with_tokens(&home, &[]);
    assert!(server.log().contains("(authentication: bearer token (2 known))"), "{}", server.log());
    assert_eq!(assert_challenged(&server.client().try_initialize(json!({}))), "Bearer");
    for header in [
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Basic {ANN}"),
        format!("Bearer {ANN}x"),
        format!("Bearer {}", &ANN[..ANN.len() - 1]),
        format!("Bearer {}", ANN.to_uppercase()),
        format!("Bearer  {ANN}"),
        format!("Bearer {ANN} {BOB}"),
        format!("Bearer {ANN},{BOB}"),
        format!("Bearer \"{ANN}\""),
        format!("Bearer={ANN}"),
        ANN.to_owned(),
        format!("Bearer {}", "a".repeat(17 << 10)),
    ] {
        let mut client = server.client().with_header("authorization", &header);
        assert_challenged(&client.try_initialize(json!({})));
    }
    // Two headers are not one, and a token in the query is none.
    let mut twice = server.client().with_token(ANN).with_token(ANN);
    assert_eq!(twice.try_initialize(json!({})).status, 400);
    let head = server.client().head("GET", "");
    let head = head.replace("/mcp ", &format!("/mcp?access_token={ANN} "));
    assert_eq!(server.exchange(head.as_bytes()).status, 404);
    for header in [format!("Bearer {ANN}"), format!("bearer {BOB}")] {
        let mut client = server.client().with_header("authorization", &header);
        client.initialize(json!({}));
        ok_text(&client.call("read_file", json!({"path": "a.txt"})));
        // Each request needs the token, also in a session.
        client.headers.clear();
        let request = client.request("ping", json!({}));
        assert_challenged(&client.post(&request));
    }
    assert!(!server.log().contains("token-0123"), "{}", server.log());
}

#[test]
fn a_session_belongs_to_the_principal_that_began_it() {
    let home = new_home();
    let server = start_with_tokens(&home, &[]);
    let mut ann = server.client().with_token(ANN);
    ann.initialize(json!({"elicitation": {}}));
    let (_, mut stream) = ann.start_call("write_file", json!({"path": "a", "content": "a"}));
    let first = stream.next_event().expect("an event").id.expect("a name");
    let question = stream.next_message().expect("a question");
    // Bob has the ID of the session, and everything else.
    let mut bob = server.client().with_token(BOB);
    bob.session.clone_from(&ann.session);
    let yes = json!({"action": "accept", "content": {"decision": "once"}});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": yes});
    let ping = bob.request("ping", json!({}));
    for message in [&answer, &ping] {
        assert_eq!(bob.post(message).status, 404);
    }
    for head in [bob.head("GET", ""), bob.head("GET", &format!("last-event-id: {first}\r\n"))] {
        assert_eq!(server.exchange(head.as_bytes()).status, 404);
    }
    assert_eq!(bob.end(), 404);
    assert!(!home.has_file("a"));
    ann.answer(&question, json!({"decision": "once"}));
    ok_text(&stream.answer()["result"]);
    assert!(home.has_file("a"));
}

#[test]
fn the_audit_log_names_the_principal() {
    let home = new_home().with_file("a.txt", "one\n");
    let server = start_with_tokens(&home, &[]);
    for token in [ANN, BOB] {
        let mut client = server.client().with_token(token);
        client.initialize(json!({}));
        ok_text(&client.call("read_file", json!({"path": "a.txt"})));
        client.end();
    }
    drop(server);
    let exported = home.run(&["audit", "export", "--all"]);
    let shown = format!("{}{}", exported.stdout, exported.stderr);
    let logs = fs::read_dir(home.path().join("state/cofferdam/audit")).expect("logs");
    let texts: Vec<String> = logs
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path()).ok())
        .filter(|text| text.contains("\"kind\":\"log\""))
        .collect();
    for name in ["ann", "bob"] {
        let with = texts.iter().filter(|text| text.contains(&format!("\"client\":\"{name}\"")));
        assert_eq!(with.count(), 1, "{name}: {texts:?} {shown}");
    }
    assert!(texts.iter().all(|text| !text.contains("token-0123")));
    assert_eq!(home.run(&["audit", "verify"]).exit_code, 0);
}

#[test]
fn a_token_file_that_others_can_read_is_refused() {
    let home = new_home();
    let serve = |file: &str| {
        home.run(&["mcp", "serve", "-C", ".", "--http", "127.0.0.1:0", "--token-file", file])
    };
    home.write_file("open", ANN);
    let file = home.path().join("open").display().to_string();
    let ran = serve(&file);
    assert_eq!(ran.exit_code, 78, "{ran:?}");
    assert!(ran.stderr.contains("other users can read") && ran.stderr.contains("chmod 600"));
    write_secret(&home, "short", "abc");
    let ran = serve(&home.path().join("short").display().to_string());
    assert!(ran.exit_code == 78 && ran.stderr.contains("at least 16 characters"), "{ran:?}");
    let ran = serve("/dev/zero");
    assert!(ran.exit_code == 78 && ran.stderr.contains("not a file"), "{ran:?}");
    assert_eq!(serve("missing").exit_code, 78);
    // Both at once say nothing about which one counts.
    let both = ["--token-file", file.as_str(), "--token-env", "TOKEN"];
    let ran = home.run(&[&["mcp", "serve", "--http", "127.0.0.1:0"], &both[..]].concat());
    assert_eq!(ran.exit_code, 2, "{ran:?}");
}

#[test]
fn a_token_of_the_environment_is_hidden_from_commands() {
    let home = new_home();
    let args = ["mcp", "serve", "-C", ".", "--http", "127.0.0.1:0", "--mode", "auto"];
    let mut command = home.command(&[&args[..], &["--token-env", "MCP_TOKEN"]].concat());
    command.env("MCP_TOKEN", ANN);
    let server = HttpServer::start_command(command);
    let mut client = server.client().with_token(ANN);
    client.initialize(json!({}));
    let seen = ok_text(&client.call("bash", json!({"command": "env; cat /proc/self/environ"})));
    assert!(!seen.contains(ANN), "{seen}");
    let missing = home.run(&[&args[..], &["--token-env", "NO_SUCH"]].concat());
    assert!(missing.exit_code == 78 && missing.stderr.contains("not set"), "{missing:?}");
}

#[test]
fn requests_without_a_session_share_nothing_between_principals() {
    let home = new_home();
    let server = start_with_tokens(&home, &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let ask = |token: &str, more: Value| {
        let mut client = server.client().with_token(token);
        let mut params = json!({"name": "bash", "arguments": {"command": "touch x"}});
        params["_meta"] = meta.clone();
        for (name, value) in more.as_object().expect("an object") {
            params[name] = value.clone();
        }
        let request = client.request("tools/call", params);
        let headers =
            "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: bash\r\n";
        let bytes = client.post_bytes(&request.to_string(), headers);
        client.post_raw(&bytes).message()
    };
    let asked = ask(ANN, json!({}));
    let state = asked["result"]["requestState"].clone();
    assert!(state.is_string(), "{asked}");
    let yes = json!({"action": "accept", "content": {"decision": "once"}});
    let answer = json!({"requestState": state, "inputResponses": {"approval": yes}});
    let stolen = ask(BOB, answer.clone());
    assert_eq!(stolen["error"]["code"], -32602, "{stolen}");
    assert!(!home.has_file("x"));
    ok_text(&ask(ANN, answer)["result"]);
    assert!(home.has_file("x"));
}

/// The keys of an authorization server.
struct SigningKey {
    id: &'static str,
    algorithm: Algorithm,
    key: EncodingKey,
    /// The public key, without its ID.
    public: Value,
}

impl SigningKey {
    fn new(id: &'static str, algorithm: Algorithm, key: EncodingKey) -> Self {
        let public = Jwk::from_encoding_key(&key, algorithm).expect("a public key");
        let public = serde_json::to_value(public).expect("JSON");
        Self { id, algorithm, key, public }
    }

    fn rsa(id: &'static str) -> Self {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).expect("a key");
        let der = AsDer::<Pkcs8V1Der<'_>>::as_der(&pair).expect("a form");
        let inner = pkcs1_of(der.as_ref());
        Self::new(id, Algorithm::RS256, EncodingKey::from_rsa_der(inner))
    }

    fn ec(id: &'static str) -> Self {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let key = EncodingKey::from_ec_der(der.expect("a key").as_ref());
        Self::new(id, Algorithm::ES256, key)
    }

    fn ed(id: &'static str) -> Self {
        let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        let pair = Ed25519KeyPair::from_pkcs8(der.as_ref()).expect("a key");
        let point = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        let public = json!({"kty": "OKP", "crv": "Ed25519", "x": point});
        let key = EncodingKey::from_ed_der(der.as_ref());
        Self { id, algorithm: Algorithm::EdDSA, key, public }
    }

    /// The public key as clients of the authorization server see it.
    fn public(&self) -> Value {
        let mut key = self.public.clone();
        key["kid"] = json!(self.id);
        key
    }

    fn sign(&self, claims: &Value) -> String {
        let mut header = Header::new(self.algorithm);
        header.kid = Some(self.id.to_owned());
        encode(&header, claims, &self.key).expect("a token")
    }

    fn sign_as(&self, header: &Header, claims: &Value) -> String {
        encode(header, claims, &self.key).expect("a token")
    }
}

/// The RSA key inside its PKCS #8 envelope: the last OCTET STRING.
fn pkcs1_of(pkcs8: &[u8]) -> &[u8] {
    // SEQUENCE, version, algorithm identifier with the OID of RSA and NULL, OCTET STRING.
    let at = pkcs8.windows(2).position(|pair| pair == [0x05, 0x00]).expect("NULL") + 2;
    assert_eq!(pkcs8[at..at + 2], [0x04, 0x82]);
    &pkcs8[at + 4..]
}

const ISSUER: &str = "https://login.example.com";
const RESOURCE: &str = "https://tools.example.com/mcp";

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

/// The claims of a good token, with changes.
fn claims(changes: Value) -> Value {
    let mut claims = json!({
        "iss": ISSUER, "aud": RESOURCE, "sub": "ann", "client_id": "editor",
        "iat": now(), "exp": now() + 300, "scope": "tools:call files",
    });
    for (name, value) in changes.as_object().expect("an object") {
        match value {
            Value::Null => drop(claims.as_object_mut().expect("an object").remove(name)),
            value => claims[name] = value.clone(),
        }
    }
    claims
}

fn start_with_oauth(home: &TestHome, keys: &Value, more: &str) -> HttpServer {
    home.write_file("keys.json", keys.to_string());
    let config = format!(
        "issuer = \"{ISSUER}\"\nresource = \"{RESOURCE}\"\njwks_file = \"keys.json\"\n{more}"
    );
    home.write_file("oauth.toml", config);
    let file = home.path().join("oauth.toml").display().to_string();
    HttpServer::start(home, &["--oauth", &file])
}

fn initialize_with(server: &HttpServer, token: &str) -> HttpReply {
    server.client().with_token(token).try_initialize(json!({}))
}

#[test]
fn the_metadata_lead_to_the_authorization_server() {
    let home = new_home();
    let key = SigningKey::ed("k");
    let keys = json!({"keys": [key.public()]});
    let server = start_with_oauth(&home, &keys, "scopes = [\"tools:call\"]\n");
    assert!(server.log().contains(ISSUER), "{}", server.log());
    let challenge = assert_challenged(&server.client().try_initialize(json!({})));
    let url = "https://tools.example.com/.well-known/oauth-protected-resource/mcp";
    assert!(challenge.contains(&format!("resource_metadata=\"{url}\"")), "{challenge}");
    assert!(challenge.contains("scope=\"tools:call\""), "{challenge}");
    for path in
        ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]
    {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
        let reply = server.exchange(request.as_bytes());
        assert_eq!(reply.status, 200, "{reply:?}");
        let metadata = reply.message();
        assert_eq!(metadata["resource"], RESOURCE);
        assert_eq!(metadata["authorization_servers"], json!([ISSUER]));
        assert_eq!(metadata["scopes_supported"], json!(["tools:call"]));
        assert_eq!(metadata["bearer_methods_supported"], json!(["header"]));
    }
    let other = format!(
        "GET /.well-known/oauth-protected-resource/x HTTP/1.1\r\nhost: {}\r\n\r\n",
        server.address
    );
    assert_eq!(server.exchange(other.as_bytes()).status, 404);
    // A server without OAuth has no metadata.
    let plain = HttpServer::start(&home, &[]);
    let request = format!(
        "GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\nhost: {}\r\n\r\n",
        plain.address
    );
    assert_eq!(plain.exchange(request.as_bytes()).status, 404);
}

#[test]
fn a_token_of_each_algorithm_opens_the_server_and_its_subject_is_the_principal() {
    let home = new_home();
    let keys = [SigningKey::rsa("r"), SigningKey::ec("e"), SigningKey::ed("d")];
    let public: Vec<Value> = keys.iter().map(SigningKey::public).collect();
    let server = start_with_oauth(&home, &json!({"keys": public}), "scopes = [\"tools:call\"]\n");
    for key in &keys {
        for changes in [
            json!({}),
            json!({"aud": ["https://other.example.com", RESOURCE]}),
            json!({"nbf": now() - 5}),
            json!({"scope": null, "scp": ["files", "tools:call"]}),
            json!({"scope": null, "scp": "tools:call"}),
        ] {
            let reply = initialize_with(&server, &key.sign(&claims(changes.clone())));
            assert_eq!(reply.status, 200, "{:?} {changes}: {reply:?}", key.algorithm);
        }
    }
    // Another token of the same subject continues a session; another subject or client does not.
    let key = &keys[1];
    let mut client = server.client().with_token(&key.sign(&claims(json!({}))));
    client.initialize(json!({}));
    let mut continue_with = |changes: Value| {
        client.headers.clear();
        let token = key.sign(&claims(changes));
        client.headers.push(("authorization".to_owned(), format!("Bearer {token}")));
        let request = client.request("ping", json!({}));
        client.post(&request).status
    };
    assert_eq!(continue_with(json!({"exp": now() + 1000, "jti": "2"})), 200);
    assert_eq!(continue_with(json!({"sub": "bob"})), 404);
    assert_eq!(continue_with(json!({"client_id": "other"})), 404);
    assert_eq!(continue_with(json!({"client_id": null})), 404);
    assert_eq!(continue_with(json!({"sub": "ann (client editor)", "client_id": null})), 404);
}

#[test]
fn every_confused_token_is_refused() {
    let home = new_home();
    let (rsa, ec, ed) = (SigningKey::rsa("r"), SigningKey::ec("e"), SigningKey::ed("d"));
    let (foreign, twin) = (SigningKey::ec("e"), SigningKey::ed("x"));
    let keys = json!({"keys": [rsa.public(), ec.public(), ed.public()]});
    let server = start_with_oauth(&home, &keys, "");
    let good = ec.sign(&claims(json!({})));
    assert_eq!(initialize_with(&server, &good).status, 200);
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let parts: Vec<&str> = good.split('.').collect();
    let with_header = |header: &Value| format!("{}.{}.{}", encoded(header), parts[1], parts[2]);
    let header_of = |algorithm: Algorithm, id: Option<&str>| {
        let mut header = Header::new(algorithm);
        header.kid = id.map(str::to_owned);
        header
    };
    let hmac = |secret: &[u8], id: &str| {
        let key = EncodingKey::from_secret(secret);
        let header = header_of(Algorithm::HS256, Some(id));
        encode(&header, &claims(json!({})), &key).expect("a token")
    };
    let mut critical = header_of(Algorithm::ES256, Some("e"));
    critical.extras.insert("crit", json!(["b64"]));
    let mut other_type = header_of(Algorithm::ES256, Some("e"));
    other_type.typ = Some("id+jwt".to_owned());
    let modulus = rsa.public()["n"].as_str().expect("a modulus").to_owned();
    let point = ec.public()["x"].as_str().expect("a point").to_owned();
    let sign = |changes: Value| ec.sign(&claims(changes));
    let table = [
        ("alg none", with_header(&json!({"alg": "none", "kid": "e"}))),
        ("alg None", with_header(&json!({"alg": "None", "kid": "e"}))),
        ("alg none, no signature", {
            format!("{}.{}.", encoded(&json!({"alg": "none", "kid": "e"})), parts[1])
        }),
        ("no signature", format!("{}.{}.", parts[0], parts[1])),
        ("two parts", format!("{}.{}", parts[0], parts[1])),
        ("four parts", format!("{good}.{}", parts[2])),
        ("five parts", format!("{good}.a.b")),
        ("no alg", with_header(&json!({"kid": "e"}))),
        ("alg as a list", with_header(&json!({"alg": ["ES256"], "kid": "e"}))),
        ("alg in lower case", with_header(&json!({"alg": "es256", "kid": "e"}))),
        ("HMAC with the modulus", hmac(modulus.as_bytes(), "r")),
        ("HMAC with the point", hmac(point.as_bytes(), "e")),
        ("HMAC with the key set", hmac(keys.to_string().as_bytes(), "e")),
        ("HMAC with nothing", hmac(b"", "d")),
        ("no kid", ec.sign_as(&header_of(Algorithm::ES256, None), &claims(json!({})))),
        ("unknown kid", twin.sign(&claims(json!({})))),
        ("kid of another key", {
            ec.sign_as(&header_of(Algorithm::ES256, Some("r")), &claims(json!({})))
        }),
        ("kid as a path", with_header(&json!({"alg": "ES256", "kid": "../../dev/null"}))),
        ("a key of somebody else", foreign.sign(&claims(json!({})))),
        ("a key in the header", {
            let mut header = header_of(Algorithm::ES256, Some("e"));
            let jwk = Jwk::from_encoding_key(&foreign.key, Algorithm::ES256).expect("a key");
            header.jwk = Some(jwk);
            foreign.sign_as(&header, &claims(json!({})))
        }),
        ("critical extensions", ec.sign_as(&critical, &claims(json!({})))),
        ("an ID token", ec.sign_as(&other_type, &claims(json!({})))),
        ("a changed payload", {
            format!("{}.{}.{}", parts[0], encoded(&claims(json!({"sub": "root"}))), parts[2])
        }),
        ("another audience", sign(json!({"aud": "https://other.example.com/mcp"}))),
        ("an audience that begins alike", sign(json!({"aud": format!("{RESOURCE}/x")}))),
        ("an audience with a slash", sign(json!({"aud": format!("{RESOURCE}/")}))),
        ("no audience", sign(json!({"aud": null}))),
        ("an empty audience", sign(json!({"aud": []}))),
        ("an audience as a number", sign(json!({"aud": 7}))),
        ("another issuer", sign(json!({"iss": "https://evil.example.com"}))),
        ("several issuers", sign(json!({"iss": [ISSUER, "https://evil.example.com"]}))),
        ("no issuer", sign(json!({"iss": null}))),
        ("no subject", sign(json!({"sub": null}))),
        ("a subject as a number", sign(json!({"sub": 7}))),
        ("expired", sign(json!({"exp": now() - 60}))),
        ("expired at the beginning of time", sign(json!({"exp": 0}))),
        ("no expiry", sign(json!({"exp": null}))),
        ("expiry as text", sign(json!({"exp": "never"}))),
        ("not valid yet", sign(json!({"nbf": now() + 120}))),
        ("not valid yet, as text", sign(json!({"nbf": "tomorrow"}))),
        ("huge", sign(json!({"x": "y".repeat(20 << 10)}))),
        ("nonsense", "a.b.c".to_owned()),
        ("dots", "..".to_owned()),
        ("bytes that are no base64", format!("{}.{}.{}", parts[0], "%%%", parts[2])),
        ("padding", format!("{good}=")),
    ];
    for (what, token) in &table {
        let challenge = assert_challenged(&initialize_with(&server, token));
        assert!(challenge.contains("resource_metadata="), "{what}: {challenge}");
        assert!(!challenge.contains(parts[1]), "{what}: {challenge}");
    }
    // Members that occur twice, of which another reader could take the other one.
    let twice = r#"{"alg":"ES256","kid":"x","kid":"e"}"#;
    let token = format!("{}.{}.{}", URL_SAFE_NO_PAD.encode(twice), parts[1], parts[2]);
    assert_challenged(&initialize_with(&server, &token));
    assert_eq!(initialize_with(&server, &good).status, 200);
}

#[test]
fn a_token_without_the_scopes_is_forbidden() {
    let home = new_home();
    let key = SigningKey::ec("e");
    let keys = json!({"keys": [key.public()]});
    let server = start_with_oauth(&home, &keys, "scopes = [\"tools:call\", \"files\"]\n");
    for scope in
        [json!("tools:call"), json!("tools:call file"), json!("tools:callfiles"), Value::Null]
    {
        let reply = initialize_with(&server, &key.sign(&claims(json!({"scope": scope}))));
        assert_eq!(reply.status, 403, "{scope}: {reply:?}");
        let challenge = reply.header("www-authenticate").expect("a challenge");
        assert!(challenge.contains("error=\"insufficient_scope\""), "{challenge}");
        assert!(challenge.contains("scope=\"tools:call files\""), "{challenge}");
    }
    let token = key.sign(&claims(json!({"scope": "files tools:call more"})));
    assert_eq!(initialize_with(&server, &token).status, 200);
}

#[test]
fn keys_that_cannot_protect_are_a_configuration_error() {
    let home = new_home();
    let key = SigningKey::ec("e").public();
    let with = |name: &str, value: Value| {
        let mut key = key.clone();
        key[name] = value;
        key
    };
    let secret = json!({"kty": "oct", "k": "c2VjcmV0", "kid": "s", "alg": "HS256"});
    for (keys, problem) in [
        (json!({"keys": [secret, key]}), "is a secret"),
        (json!({"keys": [with("d", json!("c2VjcmV0"))]}), "is a private key"),
        (json!({"keys": [key, key]}), "has the `kid` of another key"),
        (json!({"keys": [with("kid", Value::Null)]}), "has no `kid`"),
        (json!({"keys": [with("use", json!("enc"))]}), "no key for"),
        (json!({"keys": [with("alg", json!("RS256"))]}), "no key for"),
        (json!({"keys": []}), "no key for"),
        (json!([key]), "no list `keys`"),
        (json!("{"), "no list `keys`"),
    ] {
        home.write_file("keys.json", keys.to_string());
        let config = format!(
            "issuer = \"{ISSUER}\"\nresource = \"{RESOURCE}\"\njwks_file = \"keys.json\"\n"
        );
        home.write_file("oauth.toml", config);
        let file = home.path().join("oauth.toml").display().to_string();
        let ran = home.run(&["mcp", "serve", "-C", ".", "--http", "127.0.0.1:0", "--oauth", &file]);
        assert!(ran.exit_code == 78 && ran.stderr.contains(problem), "{problem}: {ran:?}");
    }
}
