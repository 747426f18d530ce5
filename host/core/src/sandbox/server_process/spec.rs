//! What a server runs, and its permissions.

use crate::policy::FileGrant;
use cofferdam_confine::ServerPermissions;

/// The command of a server, and its permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSpec {
    /// The program.
    pub command: String,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The access to the files of the workspace.
    pub files: FileGrant,
    /// All other permissions, and the limits.
    pub permissions: ServerPermissions,
}

impl ServerSpec {
    /// Returns the command as the shell runs it.
    pub fn line(&self) -> String {
        let words: Vec<String> =
            std::iter::once(&self.command).chain(&self.args).map(|word| quote(word)).collect();
        words.join(" ")
    }
}

/// Quotes a word for a shell, if it needs that.
fn quote(word: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_-./:@%+,".contains(&b);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_sees_each_word_as_it_is() {
        let words =
            ["node", "a b", "", "it's", "$HOME", "`id`", "--x=1", "a\nb", "*", "~", "#", "\\"];
        let spec = ServerSpec {
            command: "printf".to_owned(),
            args: std::iter::once("%s\\0").chain(words).map(str::to_owned).collect(),
            ..ServerSpec::default()
        };
        let output = std::process::Command::new("/bin/sh").arg("-c").arg(spec.line()).output();
        let output = output.expect("a shell runs").stdout;
        let seen = String::from_utf8(output).expect("UTF-8");
        assert_eq!(seen.split_terminator('\0').collect::<Vec<_>>(), words);
        assert_eq!(ServerSpec { args: vec!["./x".into()], ..spec }.line(), "printf ./x");
    }
}
