//! A name server that changes its answers between two look-ups (DNS rebinding).
//!
//! The program runs in a network of its own with one public address, on which an attacker's server
//! listens, and with the loopback address, on which a server of the user listens. The attacker's
//! name stands for one of them, then for the other.

use super::listed_hosts::{home, request};

/// Sets the network up, runs the command line of each argument, and prints a list of the outputs,
/// with the number of look-ups of each.
const NETWORK: &str = r#"
import ctypes, fcntl, json, os, socket, struct, subprocess, sys, threading

PUBLIC, NAME = "93.184.216.34", b"\x06rebind\x07example\x00"
control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def interface(name, request, value):
    fcntl.ioctl(control, request, struct.pack("16s", name) + value.ljust(24, b"\0"))
interface(b"lo", 0x8914, struct.pack("H", 0x41))           # SIOCSIFFLAGS: up and running
address = struct.pack("HH4s", socket.AF_INET, 0, socket.inet_aton(PUBLIC))
interface(b"lo:1", 0x8916, address)                        # SIOCSIFADDR

resolver = os.path.join(os.environ["TMPDIR"], "resolv.conf")
with open(resolver, "w") as file:
    file.write("nameserver 127.0.0.1\n")
mount = ctypes.CDLL(None, use_errno=True).mount
target = os.path.realpath("/etc/resolv.conf").encode()
if mount(resolver.encode(), target, None, 4096, None) != 0: # MS_BIND
    sys.exit(f"cannot mount {target}: {os.strerror(ctypes.get_errno())}")

# A look-up gets the next of these lists.
ANSWERS = [["127.0.0.1"], [PUBLIC], ["127.0.0.1"], [PUBLIC], [PUBLIC, "127.0.0.1"]]
lookups = []
def answer_names():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    ready.set()
    while True:
        query, client = server.recvfrom(512)
        question = query[12:query.index(b"\0", 12) + 5]
        addresses = []
        if question == NAME + b"\0\1\0\1":
            addresses = ANSWERS[(len(lookups) + 1) % len(ANSWERS)]
            lookups.append(addresses)
        found = 0 if question.startswith(NAME) else 3
        head = query[:2] + struct.pack(">HHHHH", 0x8180 | found, 1, len(addresses), 0, 0)
        records = b"".join(b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(a) for a in addresses)
        server.sendto(head + question + records, client)
ready = threading.Event()
threading.Thread(target=answer_names, daemon=True).start()
ready.wait()

def serve(host, text):
    server = socket.create_server((host, 80))
    def run():
        while True:
            client, _ = server.accept()
            client.recv(4096)
            head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(text)}\r\nconnection: close\r\n\r\n"
            client.sendall((head + text).encode())
            client.close()
    threading.Thread(target=run, daemon=True).start()
serve(PUBLIC, "public-answer")
serve("127.0.0.1", "internal-answer")

ran = []
for command in sys.argv[1:]:
    before = len(lookups)
    done = subprocess.run(json.loads(command), capture_output=True, text=True, timeout=120)
    ran.append({"text": done.stdout + done.stderr, "lookups": len(lookups) - before})
print(json.dumps(ran))
"#;

/// The rules that open the attacker's host, for commands and for tools.
const POLICY: &str = "[commands.network]\nallow = [\"rebind.example:80\"]\n[fetch]\nallow = \
    [\"rebind.example:80\"]\n";

#[test]
fn a_name_that_changes_its_address_leads_nowhere_else() {
    cofferdam_tests::prerequisites::require();
    let home = home("");
    home.write_file("config/cofferdam/policy.toml", POLICY);
    let program = |args: &[&str]| {
        let command = home.command(args);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        serde_json::to_string(&words).expect("it is JSON")
    };
    let url = "http://rebind.example/";
    let line = (0..6).map(|_| request(url)).collect::<Vec<_>>().join("\n");
    let input = serde_json::json!({"command": line}).to_string();
    let commands = program(&["tools", "call", "bash", &input, "--mode", "auto"]);
    let input = serde_json::json!({"url": url}).to_string();
    let fetch = program(&["tools", "call", "web_fetch", &input, "--mode", "auto"]);
    let mut unshared = std::process::Command::new("unshare");
    home.configure(&mut unshared);
    unshared
        .args(["--user", "--map-root-user", "--net", "--mount", "python3", "-c", NETWORK])
        .arg(commands)
        .args(std::iter::repeat_n(fetch, 6));
    let ran = home.start(unshared).wait_for_exit();
    let results: Vec<serde_json::Value> =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let said = |result: &serde_json::Value| result["text"].as_str().unwrap_or_default().to_owned();
    let [commands, fetched @ ..] = results.as_slice() else { panic!("{ran:?}") };
    assert!(!ran.stdout.contains("internal-answer"), "{ran:?}");
    // Each connection looks the name up once, and connects to what was checked.
    assert_eq!(commands["lookups"], 6, "{commands}");
    let text = said(commands);
    assert!(text.matches("public-answer").count() >= 3, "{text}");
    assert!(text.matches("failed:").count() >= 2, "{text}");
    let texts: Vec<String> = fetched.iter().map(said).collect();
    assert!(texts.iter().any(|text| text.contains("public-answer")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("127.0.0.1")), "{texts:?}");
    for result in fetched {
        assert_eq!(result["lookups"], 1, "{result}");
    }
}
