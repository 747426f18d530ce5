//! The names of copies that editors and other programs keep beside a file. A copy of a hidden file
//! is hidden too.

/// The maximum number of names that one name can be derived from.
const MAX_ORIGINALS: usize = 8;

/// Returns the names of the files that a file with this name may be a copy of: `.env` for `.env~`,
/// `#.env#`, `.#.env`, `.env.swp`, `..env.un~`, `.env.1` and `.env (copy)`. The name is in
/// lowercase.
///
/// A copy can have a copy, as in `.env.bak~`.
pub(super) fn originals_of(name: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    push_originals(name, &mut found);
    let mut at = 0;
    while at < found.len() && found.len() < MAX_ORIGINALS {
        push_originals(found[at], &mut found);
        at += 1;
    }
    found
}

fn push_originals<'a>(name: &'a str, found: &mut Vec<&'a str>) {
    if let Some(rest) = name.strip_suffix('~') {
        match (rest.strip_suffix(".un"), rest.rsplit_once(".~")) {
            // Vim
            (Some(stem), _) => push_undotted(stem, found),
            // Emacs numbers them, or names the revision: `.env.~1~`, `.env.~HEAD~`.
            (None, Some((stem, _))) => found.push(stem),
            (None, None) => found.push(rest),
        }
    } else if let Some(rest) = name.strip_prefix(".#") {
        found.push(rest);
    } else if let Some(rest) = name.strip_prefix('#').and_then(|rest| rest.strip_suffix('#')) {
        found.push(rest);
    } else if let Some(stem) = cut_affix(name) {
        found.push(stem);
    } else if let Some((stem, ending)) = name.rsplit_once('.') {
        match ending {
            "backup" | "bak" | "bck" | "bkp" | "cfgsaved" | "copy" | "crswap" | "dpkg-bak"
            | "dpkg-dist" | "dpkg-new" | "dpkg-old" | "dpkg-tmp" | "lock" | "new" | "old"
            | "orig" | "pacnew" | "pacorig" | "pacsave" | "part" | "prev" | "rpmnew"
            | "rpmorig" | "rpmsave" | "save" | "saved" | "swap" | "temp" | "tmp" | "ucf-dist"
            | "ucf-new" | "ucf-old" => found.push(stem),
            "kate-swp" => push_undotted(stem, found),
            _ if is_number(ending) => found.push(stem),
            _ if is_vim_swap(name, ending) => push_undotted(stem, found),
            // rsync writes `..env.Xy12Ab` until the file is whole.
            _ if ending.len() == 6 && ending.bytes().all(|c| c.is_ascii_alphanumeric()) => {
                found.extend(stem.strip_prefix('.'));
            }
            _ => {}
        }
    }
}

/// Some editors add a dot to the name and others do not.
fn push_undotted<'a>(stem: &'a str, found: &mut Vec<&'a str>) {
    found.extend(stem.strip_prefix('.').into_iter().chain([stem]));
}

/// Returns the name without what programs append to it, or put before it, with no dot between.
fn cut_affix(name: &str) -> Option<&str> {
    // JetBrains IDEs, `sed -i -e` of BSD, RCS
    for suffix in ["___jb_old___", "___jb_tmp___", "-e", ",v", " copy"] {
        if let Some(stem) = name.strip_suffix(suffix) {
            return Some(stem);
        }
    }
    if let Some(stem) = name.strip_prefix("copy of ") {
        return Some(stem);
    }
    // File managers and browsers: `id_rsa (1)`, `id_rsa (3rd copy)`.
    if let Some((stem, note)) = name.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
        return (is_number(note) || note.ends_with("copy")).then_some(stem);
    }
    let (stem, number) = name.rsplit_once(['-', '_', ' '])?;
    if !is_number(number) {
        return None;
    }
    // `git mergetool`: `.env_BASE_1234`
    let merged = ["_backup", "_base", "_local", "_remote"];
    let copied = merged.iter().chain(&[" copy"]).find_map(|suffix| stem.strip_suffix(suffix));
    // logrotate: `.env-20260101`
    copied.or_else(|| name.ends_with(&format!("-{number}")).then_some(stem))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}

/// Vim tries `.swp`, `.swo` and so on down to `.swa`, then `.svz`, down to `.saa`. Beyond the first
/// it does so only for a name with a dot before it, so that `key.sql` is not one.
fn is_vim_swap(name: &str, ending: &str) -> bool {
    match ending.as_bytes() {
        [b's', b'w', _] => true,
        [b's', b'a'..=b'v', b'a'..=b'z'] => name.starts_with('.'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_name_of_its_original_in_its_own() {
        for (name, expected) in [
            (".env~", &[".env"][..]),
            (".env.~12~", &[".env"]),
            ("#id_rsa#", &["id_rsa"]),
            (".#id_rsa", &["id_rsa"]),
            (".env.swp", &["env", ".env"]),
            ("..env.swo", &[".env", "..env"]),
            ("..env.un~", &[".env", "..env"]),
            ("x.pem.bak~", &["x.pem.bak", "x.pem"]),
            (".netrc.lock", &[".netrc"]),
            (".env___jb_old___", &[".env"]),
            (".env-e", &[".env"]),
            ("id_rsa,v", &["id_rsa"]),
            (".env.~head~", &[".env"]),
            (".netrc.save.1", &[".netrc.save", ".netrc"]),
            (".netrc.new", &[".netrc"]),
            (".netrc.crswap", &[".netrc"]),
            (".id_rsa.svz", &["id_rsa", ".id_rsa"]),
            ("..netrc.saa", &[".netrc", "..netrc"]),
            ("id_rsa.sql", &[]),
            ("..netrc.xy12ab", &[".netrc"]),
            ("id_rsa.public", &[]),
            ("id_rsa (1)", &["id_rsa"]),
            ("id_rsa (another copy)", &["id_rsa"]),
            ("id_rsa (main)", &[]),
            ("id_rsa copy", &["id_rsa"]),
            ("id_rsa copy 2", &["id_rsa"]),
            ("copy of id_rsa", &["id_rsa"]),
            (".netrc_local_4711", &[".netrc"]),
            (".netrc-20260101", &[".netrc"]),
            ("id_2", &[]),
            ("~", &[""]),
            ("main.rs", &[]),
            ("swp", &[]),
            ("a.sway", &[]),
        ] {
            assert_eq!(originals_of(name), expected, "{name}");
        }
        assert!(originals_of(&"~".repeat(4000)).len() <= MAX_ORIGINALS + 1);
    }
}
