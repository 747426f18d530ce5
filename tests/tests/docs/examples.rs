//! Running the examples of the pages, each page in a home of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use cofferdam::policy::Capability;
use cofferdam_tests::guests::{GuestTool, TestGuest};
use cofferdam_tests::program::TestHome;

use super::markdown::{Block, Part, parts};
use super::output::matches;
use super::{PROGRAM, name, pages, read, root};

/// Runs a line where the one before it ended, with both of its streams in one.
const RUN: &str = "exec 2>&1\ncd \"$(cat \"$2\")\" || exit 99\neval \"$1\"\nended=$?\n\
                   pwd > \"$2\"\nexit $ended";
/// Pages that are run at the same time.
const AT_ONCE: usize = 2;
/// Directories whose pages have to say why a block is not run.
const GUIDES: [&str; 2] = ["host/docs", "sdk/docs"];
/// The languages of blocks that are not run if a comment says why.
const NOT_RUN: [&str; 9] = ["sh", "text", "toml", "python", "rust", "javascript", "c", "go", "wit"];

#[test]
fn every_example_does_what_its_page_says() {
    let (queue, problems) = (Mutex::new(pages()), Mutex::new(Vec::new()));
    let next = || queue.lock().expect("nobody panics with it").pop();
    let work = || {
        while let Some(page) = next() {
            let found = Examples::of(&page).run(parts(&read(&page)));
            problems.lock().expect("nobody panics with it").extend(found);
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let problems = problems.into_inner().expect("nobody panics with it");
    assert!(problems.is_empty(), "{} examples fail:\n\n{}", problems.len(), problems.join("\n\n"));
}

/// The examples of one page.
struct Examples {
    page: String,
    home: TestHome,
    /// A recording, once a comment has named one.
    model: Option<PathBuf>,
    /// A file that the next block is written to.
    file: Option<String>,
    /// A file of the repository that contains the next block.
    source: Option<String>,
    is_guide: bool,
}

impl Examples {
    fn of(page: &Path) -> Self {
        let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
        let link = |target: &Path, path: &str| {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
            std::os::unix::fs::symlink(target, path).expect("a link");
        };
        link(Path::new(PROGRAM), "bin/cofferdam");
        link(&home.path().join("state"), ".local/state");
        let is_guide = GUIDES.iter().any(|guide| page.starts_with(root().join(guide)));
        home.write_file("directory", home.workspace().display().to_string());
        Self { page: name(page), home, model: None, file: None, source: None, is_guide }
    }

    /// Runs all of them, and returns what is wrong.
    fn run(mut self, parts: Vec<Part>) -> Vec<String> {
        let mut problems = Vec::new();
        for part in parts {
            match part {
                Part::Comment(text) => self.prepare(&text),
                Part::Block(block) => {
                    if let Some(path) = self.file.take() {
                        self.write(&path, &block.body);
                    }
                    let found = match self.source.take() {
                        Some(path) => missing_lines(&path, &block.body).into_iter().collect(),
                        None => self.block(&block),
                    };
                    let at = |problem| format!("{}:{}: {problem}", self.page, block.line);
                    problems.extend(found.into_iter().map(at));
                }
            }
        }
        problems
    }

    /// Does what a comment says, if it is for this test.
    fn prepare(&mut self, comment: &str) {
        let Some(words) = comment.strip_prefix("test: ") else { return };
        let (what, value) = words.split_once(' ').unwrap_or((words, ""));
        match what {
            "file" => self.file = Some(value.to_owned()),
            "source" => self.source = Some(value.to_owned()),
            "model" => {
                let recordings = root().join("tests/tests/docs/recordings");
                self.model = Some(recordings.join(format!("{value}.jsonl")));
            }
            "plugin" => {
                let tool = GuestTool::new(value.trim_end_matches(".wasm"));
                let tool =
                    tool.with_description("Counts lines.").with_requested(&[Capability::ReadFiles]);
                let component = TestGuest::from_file("good").with_tools([tool]).component();
                fs::write(self.home.workspace().join(value), component).expect("it can be written");
            }
            "sample" => copy(&root().join("host/demo/project"), &self.home.workspace()),
            _ => panic!("{}: nothing is known of `test: {words}`", self.page),
        }
    }

    /// Writes a file of the project, or of the home directory.
    fn write(&self, path: &str, body: &[String]) {
        let path = match path.strip_prefix("~/") {
            Some(path) => path.to_owned(),
            None => format!("workspace/{path}"),
        };
        self.home.write_file(&path, body.join("\n") + "\n");
    }

    fn block(&self, block: &Block) -> Vec<String> {
        let words: Vec<&str> = block.info.split_whitespace().collect();
        match *words.as_slice() {
            ["console"] => self.console(block),
            ["toml", "policy"] => self.check(block, &["policy", "check"], "policy.toml"),
            ["toml", "config"] => self.check(block, &["policy", "show", "--config"], "config.toml"),
            ["json"] => {
                let parsed = serde_json::from_str::<serde_json::Value>(&block.body.join("\n"));
                parsed.err().map(|error| format!("not JSON: {error}")).into_iter().collect()
            }
            _ if !self.is_guide => Vec::new(),
            [language] if block.has_comment && NOT_RUN.contains(&language) => Vec::new(),
            _ => vec![format!("a comment has to say why `{}` is not run", block.info)],
        }
    }

    /// Has the program read a file of its own, away from the project.
    fn check(&self, block: &Block, args: &[&str], file: &str) -> Vec<String> {
        let path = format!("checked/{file}");
        self.home.write_file(&path, block.body.join("\n") + "\n");
        let path = self.home.path().join(path).display().to_string();
        let ran = self.home.run(&[args, &[path.as_str()]].concat());
        let problem = || format!("exit code {}: {}{}", ran.exit_code, ran.stdout, ran.stderr);
        (ran.exit_code != 0).then(problem).into_iter().collect()
    }

    fn console(&self, block: &Block) -> Vec<String> {
        let commands = commands(&block.body);
        if commands.is_empty() {
            return vec!["a `console` block without a command".to_owned()];
        }
        commands.iter().filter_map(|command| self.command(command)).collect()
    }

    /// Runs a command, and returns what is wrong.
    fn command(&self, example: &Example) -> Option<String> {
        let mut shell = Command::new("sh");
        self.home.configure(&mut shell);
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.home.path().join("bin");
        shell.env("PATH", format!("{}:{path}", bin.display())).env_remove("XDG_CONFIG_HOME");
        if let Some(model) = &self.model {
            shell.env("COFFERDAM_MODEL", format!("replay:{}", model.display()));
        }
        shell.args(["-c", RUN, "sh", &example.command]).arg(self.home.path().join("directory"));
        let ran = self.home.start(shell).wait_for_exit();
        let fits = example.output.is_empty() || matches(&example.output, &ran.stdout);
        (ran.exit_code != example.code || !fits).then(|| {
            let expected = example.output.join("\n");
            let Example { command, code, .. } = example;
            let (got, output) = (ran.exit_code, ran.stdout + &ran.stderr);
            let head = format!("$ {command}\nexit code {got}, expected {code}");
            format!("{head}\n{output}--- expected\n{expected}")
        })
    }
}

/// A command with what it is expected to do.
#[derive(Debug, Default, PartialEq, Eq)]
struct Example {
    command: String,
    code: i32,
    output: Vec<String>,
}

fn commands(body: &[String]) -> Vec<Example> {
    let mut commands: Vec<Example> = Vec::new();
    for line in body {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push(Example { command: command.to_owned(), ..Example::default() });
            continue;
        }
        let Some(last) = commands.last_mut() else { continue };
        let code = line.strip_prefix("# exit ").and_then(|code| code.parse().ok());
        match (line.strip_prefix("> "), code) {
            (Some(more), _) if last.output.is_empty() => {
                last.command = format!("{}\n{more}", last.command);
            }
            (_, Some(code)) if last.output.is_empty() => last.code = code,
            _ => last.output.push(line.clone()),
        }
    }
    for command in &mut commands {
        while command.output.last().is_some_and(|line| line.trim().is_empty()) {
            command.output.pop();
        }
    }
    commands
}

/// What is wrong with a block that should be a part of a file of the repository. Indentation does
/// not count.
fn missing_lines(path: &str, body: &[String]) -> Option<String> {
    let text = match fs::read_to_string(root().join(path)) {
        Ok(text) => text,
        Err(error) => return Some(format!("{path}: {error}")),
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let body: Vec<&str> = body.iter().map(|line| line.trim()).collect();
    let is_part = !body.is_empty() && lines.windows(body.len()).any(|part| part == body);
    (!is_part).then(|| format!("{path} does not contain these lines"))
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a directory").map(|entry| entry.expect("an entry")) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir_all(&target).expect("a directory");
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("it can be copied");
        }
    }
}

#[test]
fn a_console_block_is_commands_with_their_outputs() {
    let body = ["$ a \\", "> b", "# exit 3", "out", "", "$ c"].map(str::to_owned);
    let first = Example { command: "a \\\nb".into(), code: 3, output: vec!["out".into()] };
    let second = Example { command: "c".into(), ..Example::default() };
    assert_eq!(commands(&body), [first, second]);
}
