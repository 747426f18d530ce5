//! Options and variables whose values some programs execute as code.
//!
//! The table is data. Options that always take code are in the table of [runners](super::runners).

use super::{WordList, base_name, contains_word};

/// An option that takes code in some of its values.
struct CodeOption {
    names: WordList,
    /// The options; empty for any word of the line. The value is the rest of the word, or the next
    /// word.
    options: &'static [&'static str],
    /// Letters of options whose value is the rest of the word. The search for other letters ends
    /// there.
    valued: &'static str,
    value: CodeValueKind,
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "it documents the table, and a test requires it")
    )]
    why: &'static str,
}

/// The values of an option that are code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CodeValueKind {
    /// More than a module name before the first `=`: `-Mstrict+exec+…`.
    PerlModule,
    /// A pattern between slashes or quotes with further text after it: `-F/x/,exec+…`.
    PerlPattern,
    /// A URL that contains its content, such as `data:text/javascript,…`.
    DataUrl,
    /// One of these words, completely or up to its `=`.
    OneOf(WordList),
}

const SCRIPT_ENGINES: WordList = "node nodejs bun deno tsx ts-node electron php php-cgi";

const OPTIONS: &[CodeOption] = &[
    CodeOption {
        names: "perl raku",
        options: &["-M", "-m", "-d:", "-dt:", "-d=", "-dt="],
        valued: "ImMVxCiFD",
        value: CodeValueKind::PerlModule,
        why: "perl compiles `use VALUE;`",
    },
    CodeOption {
        names: "perl",
        options: &["-F"],
        valued: "ImMVxCiD",
        value: CodeValueKind::PerlPattern,
        why: "perl compiles `split(VALUE)`",
    },
    CodeOption {
        names: SCRIPT_ENGINES,
        options: &[],
        valued: "",
        value: CodeValueKind::DataUrl,
        why: "the program runs the module in the URL",
    },
    CodeOption {
        names: "php php-cgi php-fpm",
        options: &["-d", "--define"],
        valued: "fcrtzS",
        value: CodeValueKind::OneOf("auto_prepend_file auto_append_file"),
        why: "php runs the file or URL in the value, and the URL can contain code",
    },
    CodeOption {
        names: "python pypy",
        options: &["-m"],
        valued: "cWXQ",
        value: CodeValueKind::OneOf("timeit"),
        why: "the operands of the module are code",
    },
    CodeOption {
        names: "rails",
        options: &[],
        valued: "",
        value: CodeValueKind::OneOf("runner r"),
        why: "the operand of the subcommand can be code",
    },
];

/// Variables from which a program takes options or code.
const VARIABLES: &[&str] = &[
    "PERL5OPT",
    "PERL5DB",
    "RUBYOPT",
    "NODE_OPTIONS",
    "BUN_OPTIONS",
    "VIMINIT",
    "EXINIT",
    "GVIMINIT",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
    "LESS",
    "MORE",
    "RSYNC_RSH",
    "PROMPT_COMMAND",
    "TAR_OPTIONS",
    "ERL_FLAGS",
    "ERL_AFLAGS",
    "ERL_ZFLAGS",
    "ELIXIR_ERL_OPTIONS",
    "LUA_INIT",
];

/// Returns whether one of the words after a program contains code for the program.
pub(super) fn has_code_value(called: &str, behind: &[&str]) -> bool {
    let name = base_name(called);
    OPTIONS.iter().filter(|entry| contains_word(entry.names, &name)).any(|entry| {
        behind.iter().enumerate().any(|(at, word)| {
            if entry.options.is_empty() {
                return entry.value.is_code(word);
            }
            entry.options.iter().any(|option| {
                option_value(option, word, entry.valued).is_some_and(|value| match value {
                    "" => behind.get(at + 1).is_some_and(|next| entry.value.is_code(next)),
                    value => entry.value.is_code(value),
                })
            })
        })
    })
}

/// Returns whether a word sets a variable from which a program takes options or code: `NAME=VALUE`,
/// also after an option.
pub(crate) fn sets_code_variable(word: &str) -> bool {
    let Some((before, value)) = word.split_once('=') else { return false };
    let sets = |name: &str| {
        let rest = before.strip_suffix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-') || rest.contains(' '))
            // `--setenv=NAME=VALUE`
            || value.split_once('=').is_some_and(|(second, _)| second == name)
    };
    VARIABLES
        .iter()
        .any(|name| sets(name) || name.starts_with("LUA_INIT") && before.starts_with("LUA_INIT_"))
}

/// Returns the value of an option in this word; empty if the value is the next word. A letter is
/// also found among others: `-wMstrict`.
fn option_value<'w>(option: &str, word: &'w str, valued: &str) -> Option<&'w str> {
    if let Some(long) = option.strip_prefix("--") {
        let given = word.strip_prefix("--")?;
        let (name, value) = given.split_once('=').unwrap_or((given, ""));
        return (!name.is_empty() && long.starts_with(name)).then_some(value);
    }
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    let wanted = option.strip_prefix('-')?;
    let at = letters.find(wanted)?;
    let is_letter = !letters.get(..at)?.contains(|c| valued.contains(c));
    is_letter.then(|| letters.get(at + wanted.len()..)).flatten()
}

impl CodeValueKind {
    fn is_code(self, value: &str) -> bool {
        match self {
            Self::PerlModule => {
                let module = value.split_once('=').map_or(value, |(module, _)| module);
                let module = module.strip_prefix('-').unwrap_or(module);
                !module.chars().all(|c| c.is_ascii_alphanumeric() || "_:.".contains(c))
            }
            Self::PerlPattern => {
                let mut letters = value.chars();
                letters.next().filter(|quote| "/'\"".contains(*quote)).is_some_and(|quote| {
                    value.rfind(quote).is_some_and(|at| {
                        value.matches(quote).count() > 2 || at > 0 && at + 1 < value.len()
                    })
                })
            }
            Self::DataUrl => {
                let value = value.to_ascii_lowercase();
                ["data:", "blob:", "php:"].iter().any(|scheme| value.contains(scheme))
            }
            Self::OneOf(words) => {
                contains_word(words, value.split_once('=').map_or(value, |(name, _)| name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_code(line: &str) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        has_code_value(words[0], &words[1..])
    }

    #[test]
    fn each_entry_has_its_reason() {
        for entry in OPTIONS {
            assert!(!entry.why.is_empty() && !entry.names.is_empty(), "{}", entry.names);
            assert!(entry.names.split(' ').all(|name| name == base_name(name)), "{}", entry.names);
        }
    }

    #[test]
    fn code_values_are_found_and_ordinary_values_are_not() {
        for line in [
            "perl -Mstrict+exec+q/git/,q/push/",
            "perl -Mstrict+exec+q/gi/.q/t/,q/push/ x",
            "perl -wmstrict+exec+q/x/",
            "perl -d:Trace+exec+q/x/ x.pl",
            "perl -anF/x/,exec+q/git/ x.pl",
            "perl -anF/x/,exec x.pl",
            "node --import data:text/javascript,x",
            "node --import=DATA:text/javascript,x",
            "node --require data:x y.js",
            "node -rdata:x y.js",
            "node --loader data:x y.js",
            "node --experimental-loader=data:x y.js",
            "deno run data:application/typescript,x",
            "bun --preload data:x",
            "php -d auto_prepend_file=x y.php",
            "php -dauto_append_file=data:x y.php",
            "php --define auto_prepend_file=x y.php",
            "python3 -m timeit x",
            "python3.11 -Imtimeit x",
            "rails runner x",
        ] {
            assert!(is_code(line), "{line}");
        }
        for line in [
            "perl -MData::Dumper x.pl",
            "perl -Mlib=src -w x.pl",
            "perl -Ilib/my-dir x.pl",
            "perl -M-warnings x.pl",
            "perl -M5.010 x.pl",
            "perl -F/,/ x.pl",
            "perl -F/x x.pl",
            "perl -d:NYTProf x.pl",
            "node --import ./register.mjs x.js",
            "node -r dotenv/config x.js",
            "deno run main.ts",
            "php -d memory_limit=1G x.php",
            "php --other auto_prepend_file=x y.php",
            "php -- auto_prepend_file=x",
            "python3 -m pytest",
            "rails server",
        ] {
            assert!(!is_code(line), "{line}");
        }
    }

    #[test]
    fn a_variable_that_programs_take_options_from_is_found() {
        for word in [
            "PERL5OPT=-Mx",
            "NODE_OPTIONS=--import=data:x",
            "-ENODE_OPTIONS=x",
            "--setenv=RUBYOPT=-rx",
            "LUA_INIT_5_4=x",
        ] {
            assert!(sets_code_variable(word), "{word}");
        }
        for word in ["CC=gcc", "--less=x", "RUBYOPT", "MY_LESS=x", "--x=y", "--setenv=CC=gcc"] {
            assert!(!sets_code_variable(word), "{word}");
        }
    }
}
