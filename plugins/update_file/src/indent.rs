//! How the indentation of some lines differs from that of the same lines in a file, and doing the
//! same to other lines.

/// What leads from the model's indentation to the file's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shift<'t> {
    /// This goes in front, which may be nothing.
    Deeper(&'t str),
    /// This goes away.
    Shallower(&'t str),
    /// Each run of `from` characters becomes `to` times the other one, as tabs become spaces.
    Scaled { from: (char, usize), to: (char, usize) },
    /// No rule, but each line's own indentation.
    Each(Vec<(&'t str, &'t str)>),
}

pub(crate) fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// The shift between lines that are equal but for the whitespace around them: the model's, and the
/// file's.
pub(crate) fn between<'t>(pairs: impl Iterator<Item = (&'t str, &'t str)>) -> Shift<'t> {
    let all: Vec<_> = pairs
        .map(|(old, line)| (old.trim().is_empty(), (indentation(old), indentation(line))))
        .collect();
    // Blank lines have no indentation to speak of.
    let pairs: Vec<_> = all.iter().filter(|(blank, _)| !blank).map(|(_, pair)| *pair).collect();
    let Some(&(old, line)) = pairs.first() else { return Shift::Deeper("") };
    if let Some(front) = line.strip_suffix(old)
        && pairs.iter().all(|(old, line)| line.strip_suffix(old) == Some(front))
    {
        return Shift::Deeper(front);
    }
    if let Some(front) = old.strip_suffix(line)
        && pairs.iter().all(|(old, line)| old.strip_suffix(line) == Some(front))
    {
        return Shift::Shallower(front);
    }
    scaled(&pairs).unwrap_or_else(|| Shift::Each(all.into_iter().map(|(_, pair)| pair).collect()))
}

fn scaled<'t>(pairs: &[(&'t str, &'t str)]) -> Option<Shift<'t>> {
    let runs = |text: &str| {
        let first = text.chars().next()?;
        text.chars().all(|c| c == first).then(|| (first, text.chars().count()))
    };
    let mut indented = pairs.iter().filter(|(old, line)| !(old.is_empty() && line.is_empty()));
    let (old, line) = indented.next()?;
    let (from, to) = (runs(old)?, runs(line)?);
    let fits = |(old, line): &(&str, &str)| {
        matches!(
            (runs(old), runs(line)),
            (Some(f), Some(t))
                if f.0 == from.0 && t.0 == to.0 && f.1 * to.1 == t.1 * from.1
        )
    };
    indented.all(fits).then_some(Shift::Scaled { from, to })
}

impl Shift<'_> {
    /// `text` with its lines shifted; `None` if the shift does not say how.
    pub(crate) fn apply(&self, text: &str) -> Option<String> {
        let count = text.split('\n').count();
        let mut shifted = Vec::with_capacity(count);
        for (index, line) in text.split('\n').enumerate() {
            let (indent, rest) = line.split_at(indentation(line).len());
            if rest.is_empty() {
                shifted.push(line.to_owned());
                continue;
            }
            let indent = match self {
                Self::Deeper(front) => format!("{front}{indent}"),
                Self::Shallower(front) => match indent.strip_prefix(front) {
                    Some(left) => left.to_owned(),
                    // It stands further out than the lines that were shifted by more than it has.
                    None if front.starts_with(indent) => String::new(),
                    None => return None,
                },
                Self::Scaled { from, to } => {
                    let length = indent.chars().count() * to.1;
                    if indent.chars().any(|c| c != from.0) || !length.is_multiple_of(from.1) {
                        return None;
                    }
                    String::from(to.0).repeat(length / from.1)
                }
                Self::Each(pairs) if pairs.len() == count => {
                    let (old, line) = pairs.get(index)?;
                    format!("{line}{}", indent.strip_prefix(old)?)
                }
                Self::Each(_) => return None,
            };
            shifted.push(format!("{indent}{rest}"));
        }
        Some(shifted.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shifted(old: &str, lines: &str, new: &str) -> Option<String> {
        between(old.split('\n').zip(lines.split('\n'))).apply(new)
    }

    #[test]
    fn r118_new_text_is_shifted_as_old_text_was() {
        for (old, lines, new, expected) in [
            ("a\n  b", "    a\n      b", "c\n\n  d", "    c\n\n      d"),
            ("    a\n      b", "a\n  b", "    c\n    d", "c\nd"),
            ("    a", "  a", "    c\n  d\ne", "  c\nd\ne"),
            ("  a\n    b", "\ta\n\t\tb", "    c\n      d\ne", "\t\tc\n\t\t\td\ne"),
            ("\ta\n\t\tb", "  a\n    b", "\t\tc", "    c"),
            ("  a\n    b", "    a\n        b", "      c", "            c"),
            ("a \nb", "a\nb  ", "  c", "  c"),
            ("a\nb\nc", "x\n  b\n y", "a\n  d\nc", "a\n    d\n c"),
        ] {
            assert_eq!(shifted(old, lines, new).as_deref(), Some(expected), "{old:?} {lines:?}");
        }
    }

    #[test]
    fn what_no_rule_says_is_not_guessed() {
        for (old, lines, new) in [
            ("a\nb\nc", "a\n  b\n c", "one\ntwo"),
            ("  a\n    b", "\ta\n\t\tb", "   odd"),
            ("  a\n    b", "\ta\n\t\tb", " \tmixed"),
        ] {
            assert_eq!(shifted(old, lines, new), None, "{old:?} {lines:?}");
        }
    }
}
