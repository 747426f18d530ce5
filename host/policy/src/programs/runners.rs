//! Programs that run commands that do not appear in the line, or that do the work of another
//! program.
//!
//! A program in the line is found at any position. Therefore options such as `tar --to-command=rm`
//! and programs such as `env`, `nice` and `sudo` need no entry. Scripts in files have no entry
//! either, because a rule about a line cannot see their content.

use super::code_values::has_code_value;
use super::{WordList, base_name, contains_word};

/// A program that may run anything.
struct RunnerProgram {
    names: WordList,
    /// The options that make the program run code; `*` for every use. A letter is also found among
    /// others.
    options: WordList,
    /// Letters of options whose value is the rest of the word. The search for other letters ends
    /// there.
    valued: WordList,
    #[cfg_attr(
        not(test),
        expect(
            dead_code,
            reason = "it documents the table, and a test requires one for each entry"
        )
    )]
    why: WordList,
}

const CODE: &str =
    "the option takes code in the language of the program, which can build a command from parts";
const INPUT: &str = "the program reads commands from standard input or a file";
const ENCODED: &str = "the option takes a command in an encoded form";
const KEYS: &str = "the program sends keys, which can form a command";
const EDITOR: &str = "the option takes editor commands, which can run programs";

const RUNNERS: &[RunnerProgram] = &[
    RunnerProgram { names: "xargs gxargs parallel", options: "*", valued: "", why: INPUT },
    RunnerProgram { names: "perl", options: "-e -E", valued: "ImMVxDCi", why: CODE },
    RunnerProgram {
        names: "python pypy python-config ipython",
        options: "-c",
        valued: "mWXQ",
        why: CODE,
    },
    RunnerProgram { names: "ruby jruby", options: "-e", valued: "IrCEK", why: CODE },
    RunnerProgram {
        names: "node nodejs",
        options: "-e -p --eval --print",
        valued: "rC",
        why: CODE,
    },
    RunnerProgram { names: "bun", options: "-e -p --eval --print", valued: "r", why: CODE },
    RunnerProgram { names: "deno", options: "eval repl --eval", valued: "", why: CODE },
    RunnerProgram {
        names: "php",
        options: "-r -B -R -E --run --process-begin --process-code --process-end",
        valued: "dfctzS",
        why: CODE,
    },
    RunnerProgram { names: "lua luajit", options: "-e", valued: "lj", why: CODE },
    RunnerProgram { names: "julia", options: "-e -E --eval --print", valued: "LJtp", why: CODE },
    RunnerProgram { names: "rscript r", options: "-e", valued: "", why: CODE },
    RunnerProgram { names: "ghc runghc", options: "-e", valued: "", why: CODE },
    RunnerProgram {
        names: "elixir erl iex",
        options: "-e -s --eval -eval -run --rpc-eval",
        valued: "",
        why: CODE,
    },
    RunnerProgram { names: "scala clojure clj bb", options: "-e --eval", valued: "", why: CODE },
    RunnerProgram { names: "guile", options: "-c", valued: "", why: CODE },
    RunnerProgram { names: "racket", options: "-e --eval", valued: "", why: CODE },
    RunnerProgram {
        names: "sbcl swipl gprolog",
        options: "-g -t --eval --goal --load",
        valued: "",
        why: CODE,
    },
    RunnerProgram { names: "octave octave-cli", options: "--eval", valued: "", why: CODE },
    RunnerProgram { names: "osascript", options: "-e", valued: "", why: CODE },
    RunnerProgram { names: "expect tclsh", options: "-c", valued: "", why: CODE },
    RunnerProgram { names: "gawk awk mawk", options: "-e --source", valued: "Fvf", why: CODE },
    RunnerProgram {
        names: "make gmake remake",
        options: "-E --eval",
        valued: "CfIjloW",
        why: CODE,
    },
    RunnerProgram {
        names: "gdb cgdb",
        options: "-e* -i* --e* --i* -x --command",
        valued: "",
        why: CODE,
    },
    RunnerProgram {
        names: "lldb",
        options: "-o -O -k --one-line --one-line-before-file --one-line-on-crash",
        valued: "",
        why: CODE,
    },
    RunnerProgram {
        names: "rake",
        options: "-e -E -p --execute --execute-continue --execute-print",
        valued: "fICR",
        why: CODE,
    },
    RunnerProgram { names: "pry", options: "-e --exec", valued: "rI", why: CODE },
    RunnerProgram { names: "raku", options: "-e", valued: "IM", why: CODE },
    RunnerProgram { names: "wp", options: "eval --exec --require", valued: "", why: CODE },
    RunnerProgram { names: "drush", options: "ev eval php-eval php:eval", valued: "", why: CODE },
    RunnerProgram { names: "artisan", options: "--execute", valued: "", why: CODE },
    RunnerProgram {
        names: "manage.py django-admin",
        options: "-c --command",
        valued: "",
        why: CODE,
    },
    RunnerProgram { names: "mix", options: "-e --eval eval", valued: "", why: CODE },
    RunnerProgram {
        names: "tsx ts-node babel-node coffee qjs zx mongo mongosh",
        options: "-e -p --eval --print",
        valued: "r",
        why: CODE,
    },
    RunnerProgram {
        names: "groovy kotlin kotlinc jshell",
        options: "-e -expression -script",
        valued: "",
        why: CODE,
    },
    RunnerProgram { names: "swift crystal nim", options: "-e eval --eval", valued: "", why: CODE },
    RunnerProgram { names: "dotnet fsi", options: "--exec --use", valued: "", why: CODE },
    RunnerProgram { names: "ghci ocaml", options: "-e", valued: "", why: CODE },
    RunnerProgram {
        names: "csi ecl ccl abcl clisp poly gosh mit-scheme janet fennel",
        options: "-e -p -x -eval --eval",
        valued: "",
        why: CODE,
    },
    RunnerProgram { names: "hy nu elvish xonsh", options: "-c --commands", valued: "", why: CODE },
    RunnerProgram { names: "gnuplot dc", options: "-e --expression", valued: "", why: CODE },
    RunnerProgram { names: "gs", options: "-c", valued: "", why: CODE },
    RunnerProgram {
        names: "nix nix-build nix-instantiate nix-shell",
        options: "-E --expr",
        valued: "",
        why: CODE,
    },
    RunnerProgram {
        names: "fd fdfind",
        options: "-x -X --exec --exec-batch",
        valued: "dtegE",
        why: INPUT,
    },
    RunnerProgram { names: "tmux", options: "send*", valued: "", why: KEYS },
    RunnerProgram { names: "screen", options: "-X stuff", valued: "", why: KEYS },
    RunnerProgram { names: "xdotool ydotool wtype", options: "*", valued: "", why: KEYS },
    RunnerProgram { names: "sqlite", options: "-cmd --cmd .shell .system", valued: "", why: CODE },
    RunnerProgram {
        names: "psql mysql mariadb",
        options: "-c -e --command --execute",
        valued: "hUdpfu",
        why: CODE,
    },
    RunnerProgram {
        names: "pwsh powershell",
        options: "-e -ec -enc -encodedcommand -encodedarguments",
        valued: "",
        why: ENCODED,
    },
    RunnerProgram {
        names: "vi vim nvim gvim ex view vimdiff rvim evim eview vimx nvi gview rgvim rview kak",
        options: "-c -e --cmd -S -es +* --remote-expr --remote-send",
        valued: "uiTwW",
        why: EDITOR,
    },
    RunnerProgram {
        names: "emacs emacsclient emacs-nox emacs-gtk xemacs zile jed",
        options: "-e --eval --execute -eval -execute -f --funcall -funcall -l --load -load",
        valued: "",
        why: EDITOR,
    },
    RunnerProgram { names: "ed red", options: "*", valued: "", why: EDITOR },
    RunnerProgram {
        names: "less more most",
        options: "+* --cmd --lesskey-content",
        valued: "",
        why: EDITOR,
    },
];

/// A program that does the work of another one if this word is present.
struct ReplacementProgram {
    names: WordList,
    word: WordList,
    /// The other program, whose options are in `options`.
    program: WordList,
    options: WordList,
}

const TERRAFORM: WordList = "terraform tofu terragrunt";

const REPLACEMENTS: &[ReplacementProgram] = &[
    ReplacementProgram {
        names: "find gfind bfs",
        word: "-delete",
        program: "rm",
        options: "-r -f",
    },
    ReplacementProgram { names: "cmake", word: "remove", program: "rm", options: "-f" },
    ReplacementProgram {
        names: "cmake",
        word: "remove_directory",
        program: "rm",
        options: "-r -f",
    },
    ReplacementProgram {
        names: TERRAFORM,
        word: "-destroy",
        program: "terraform",
        options: "destroy",
    },
    ReplacementProgram {
        names: TERRAFORM,
        word: "--destroy",
        program: "terraform",
        options: "destroy",
    },
    ReplacementProgram {
        names: TERRAFORM,
        word: "destroy",
        program: "terraform",
        options: "apply -destroy",
    },
];

/// Programs whose options with one hyphen are whole words, not groups of letters.
const WHOLE_WORD_OPTIONS: &str = "find gfind bfs go java javac terraform tofu";

/// The number of words after a program that are checked. A listed program with more words counts as
/// running code.
const MOST_WORDS: usize = 64;

/// Returns whether a program with these arguments may run a program that is not among them.
pub(crate) fn runs_code(called: &str, behind: &[&str]) -> bool {
    let name = base_name(called);
    if contains_word("sed gsed", &name) {
        return runs_sed_code(behind);
    }
    if has_code_value(called, &behind[..behind.len().min(MOST_WORDS)]) {
        return true;
    }
    RUNNERS.iter().filter(|runner| contains_word(runner.names, &name)).any(|runner| {
        let mut words = behind.iter().take(MOST_WORDS);
        runner.options == "*"
            || behind.len() > MOST_WORDS
            || words.any(|word| {
                runner.options.split(' ').any(|option| is_option(option, word, runner.valued))
            })
    })
}

/// Returns the program whose work another one does with these words, and the equivalent options.
pub(crate) fn does_the_work_of(
    called: &str,
    behind: &[&str],
) -> Option<(&'static str, &'static str)> {
    let name = base_name(called);
    let is_given = |wanted: &str| {
        behind.iter().any(|word| word.split_once('=').map_or(*word, |(name, _)| name) == wanted)
    };
    let given = |replacement: &&ReplacementProgram| {
        contains_word(replacement.names, &name) && is_given(replacement.word)
    };
    REPLACEMENTS.iter().find(given).map(|replacement| (replacement.program, replacement.options))
}

/// Returns whether the options of a program with one hyphen are whole words.
pub(crate) fn has_whole_word_options(called: &str) -> bool {
    contains_word(WHOLE_WORD_OPTIONS, &base_name(called))
}

fn is_option(option: &str, word: &str, valued: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    if option.eq_ignore_ascii_case(name) && option.len() > 2 || option == name {
        return true;
    }
    if let Some(beginning) = option.strip_suffix('*') {
        return word.starts_with(beginning);
    }
    if option.starts_with("--") {
        return name.len() > 2 && name.starts_with("--") && option.starts_with(name);
    }
    let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
    let cluster = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    letter.zip(cluster).is_some_and(|(letter, cluster)| {
        let end = cluster.find(|c| valued.contains(c)).unwrap_or(cluster.len());
        cluster[..end].contains(letter)
    })
}

/// Returns whether a script of sed may contain the command `e` or the flag `e`, which run commands.
/// A script is the first operand or the value of an option.
fn runs_sed_code(behind: &[&str]) -> bool {
    if behind.len() > MOST_WORDS {
        return true;
    }
    let has_e = |script: &str| script.contains('e');
    let (mut is_script, mut operands) = (false, 0);
    for word in behind {
        let is_value = std::mem::take(&mut is_script);
        let found = match (word.strip_prefix("--"), word.strip_prefix('-')) {
            (Some(long), _) => {
                is_script = "expression".starts_with(long)
                    || "line-length".starts_with(long) && !long.is_empty();
                "expression".starts_with(long.split('=').next().unwrap_or(long))
                    && long.split_once('=').is_some_and(|(_, script)| has_e(script))
            }
            (None, Some(letters)) => {
                // The value of an option is the rest of the word, or the next word.
                is_script = letters.ends_with(['e', 'l']);
                letters.split_once('e').is_some_and(|(_, script)| has_e(script))
            }
            (None, None) => {
                operands += usize::from(!is_value);
                (is_value || operands == 1) && has_e(word)
            }
        };
        if found {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(line: &str) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        runs_code(words[0], &words[1..])
    }

    #[test]
    fn each_entry_has_its_reason() {
        for runner in RUNNERS {
            assert!(!runner.why.is_empty() && !runner.options.is_empty(), "{}", runner.names);
            assert!(
                runner.names.split(' ').all(|name| name == base_name(name)),
                "{}: a name in lower case, without a version",
                runner.names
            );
        }
    }

    #[test]
    fn code_on_a_line_is_found_and_ordinary_lines_pass() {
        let code = [
            "perl -e x",
            "perl -ne x",
            "perl -wE x",
            "python3 -c x",
            "python3.11 -Ic x",
            "ruby -e x",
            "node -pe x",
            "node --eva x",
            "php -r x",
            "lua5.4 -e x",
            "make --eval=x",
            "gdb -ex x",
            "vim -c x",
            "vim +x",
            "less +x",
            "pwsh -EncodedCommand x",
            "xargs -a x y",
            "rake -e x",
            "rake --execute=x",
            "lldb -O x",
            "gdb -eval-command x",
            "manage.py shell -c x",
            "mix eval x",
            "groovy -e x",
            "fd -x git",
            "tmux send-keys g i t",
            "perl -Mstrict+exec+q/git/",
            "sed 1erm",
            "sed -n 1erm x",
            "sed s,a,b,e x",
            "sed -e 1erm",
            "sed -ne1erm x",
            "sed --expression=1erm x",
            "sed --exp 1erm x",
            "sed -l 5 1erm x",
            "sed --line-length 5 1erm x",
            "sed --expression p --expression 1erm x",
            "xargs",
            "mix EVAL x",
        ];
        for line in code {
            assert!(runs(line), "{line}");
        }
        let none = [
            "perl x.pl",
            "python3 -m pytest",
            "python3 -mpytest.collect",
            "python3 src/code.py",
            "ruby -Ilib/code x.rb",
            "node x.js",
            "make test",
            "make -j4 check",
            "vim x",
            "php x.php",
            "sed -n 1,20p src/tree.rs",
            "sed -i s/a/b/ tree",
            "sed --posix -n 5p tree",
            "git log -e",
            "rake test",
            "mix test",
            "tmux new-session",
            "fd -e rs x",
            "dotnet test",
            "swift build",
            "sed --posix 5p tree",
            "sed --expression 5p x",
            "node -- x.js",
            "node --version",
            "php -b x",
        ];
        for line in none {
            assert!(!runs(line), "{line}");
        }
    }

    #[test]
    fn a_line_of_more_words_than_are_checked_counts_as_code() {
        let line = |begin: &str, count: usize| format!("{begin}{}", " x".repeat(count));
        for program in ["python3", "sed"] {
            assert!(!runs(&line(program, MOST_WORDS)), "{program}");
            assert!(runs(&line(program, MOST_WORDS + 1)), "{program}");
        }
        assert!(!runs(&line("ls", MOST_WORDS + 1)), "a program that is not listed");
    }
}
