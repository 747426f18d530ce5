//! What `cofferdam policy explain` advises.

use super::new_home;

const USER_POLICY: &str = "config/cofferdam/policy.toml";
const PROJECT_POLICY: &str = "workspace/.cofferdam/policy.toml";

#[test]
fn explain_advises_only_what_is_allowed_and_says_what_is_not() {
    let home = new_home();
    home.write_file(USER_POLICY, "modes = [\"plan\", \"ask\"]\n");
    home.write_file(PROJECT_POLICY, "[commands]\nallow = [\"make *\"]\n");
    let explain = |args: &[&str]| {
        home.run(&[&["policy", "explain", "bash", "--command", "make test"], args].concat())
    };
    let ran = explain(&[]);
    assert!(!ran.stdout.contains("--mode auto") && ran.stdout.contains("terminal"), "{ran:?}");
    assert!(ran.stdout.contains("`cofferdam trust`"), "{ran:?}");
    let ran = explain(&["--mode", "auto"]);
    assert!(
        ran.exit_code == 1
            && ran.stdout.contains("mode `auto` is not allowed by")
            && ran.stdout.contains("(allowed: plan, ask), so mode `ask` applies"),
        "{ran:?}"
    );
    assert!(!ran.stdout.contains("note"), "{ran:?}");
    home.write_file(USER_POLICY, "[write]\ndeny = [\"x/**\"]\n[limits]\nseconds = 5\n");
    let note = "rules under [write] apply to changes by commands";
    assert!(explain(&[]).stdout.contains(note));
    let shown = home.run(&["policy", "show"]).stdout;
    assert!(shown.contains(note) && shown.contains("policy.toml:4:11)"), "{shown}");
}
