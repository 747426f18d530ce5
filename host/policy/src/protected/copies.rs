//! The names of copies that editors and other programs keep beside a file. A copy of a hidden file
//! is hidden too.

/// The maximum number of names that one name can be derived from.
const MAX_ORIGINALS: usize = 8;

/// Returns the names of the files that a file with this name may be a copy of: `.env` for `.env~`,
/// `#.env#`, `.#.env`, `.env.swp` and `..env.un~`. The name is in lowercase.
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
    // Some editors add a dot to the name and others do not.
    let mut push_undotted =
        |stem: &'a str| found.extend(stem.strip_prefix('.').into_iter().chain([stem]));
    if let Some(rest) = name.strip_suffix('~') {
        match (rest.strip_suffix(".un"), rest.rsplit_once(".~")) {
            // Vim
            (Some(stem), _) => push_undotted(stem),
            // Emacs numbers them: `.env.~1~`.
            (None, Some((stem, number))) if number.bytes().all(|c| c.is_ascii_digit()) => {
                found.push(stem);
            }
            (None, _) => found.push(rest),
        }
    } else if let Some(rest) = name.strip_prefix(".#") {
        found.push(rest);
    } else if let Some(rest) = name.strip_prefix('#').and_then(|rest| rest.strip_suffix('#')) {
        found.push(rest);
    } else if let Some((stem, ending)) = name.rsplit_once('.') {
        match ending {
            "backup" | "bak" | "copy" | "dpkg-bak" | "dpkg-old" | "lock" | "old" | "orig"
            | "rpmorig" | "rpmsave" | "save" | "tmp" => found.push(stem),
            "kate-swp" => push_undotted(stem),
            // Vim uses `.swp`, `.swo` and so on.
            _ if ending.len() == 3 && ending.starts_with("sw") => push_undotted(stem),
            _ => {
                let stem = name.strip_suffix("___jb_old___");
                found.extend(stem.or_else(|| name.strip_suffix("___jb_tmp___")));
            }
        }
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
