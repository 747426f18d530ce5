//! Which characters a reader can see where they stand. The tables are those of the Unicode
//! Character Database, as the crate `icu_properties` of the Unicode Consortium carries them; only
//! what no property of it tells apart is listed here.

use icu_properties::props::{DefaultIgnorableCodePoint, Emoji, GeneralCategory, Script};
use icu_properties::script::ScriptWithExtensions;
use icu_properties::{CodePointMapData, CodePointSetData};
use unicode_width::UnicodeWidthChar as _;

/// Makes one picture of two, such as a family of its members.
const ZERO_WIDTH_JOINER: char = '\u{200D}';
/// Asks for the picture of a character that can be a letter or a digit too.
const EMOJI_SELECTOR: char = '\u{FE0F}';
/// Draws a key around a digit.
const KEYCAP: char = '\u{20E3}';

/// Marks on one letter that can still be told apart: vowelled and cantillated Hebrew has four.
const MAX_MARKS: usize = 4;

/// Signs whose glyph is empty, or stands for something that is not there, although they are symbols
/// and letters by category: those that UnicodeData.txt names BLANK, NULL NOTEHEAD, FILL SPACE,
/// OBJECT REPLACEMENT or LOCATION SPACE.
const BLANK_SYMBOLS: [char; 9] = [
    '\u{2800}',
    '\u{303F}',
    '\u{FFFC}',
    '\u{13441}',
    '\u{13442}',
    '\u{16FE4}',
    '\u{1D159}',
    '\u{1DA7F}',
    '\u{1DA80}',
];

/// What a character does on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CharacterKind {
    /// It has a place and a look of its own.
    Plain,
    /// It changes the look of the character before it.
    Mark,
    /// Nobody sees it: it is empty, a blank that is no space, or it does something else than to be
    /// seen.
    Hidden,
}

/// What was shown last, which decides whether the next character can be seen.
#[derive(Clone, Debug, Default)]
pub(super) struct VisibleContext {
    last: Option<char>,
    /// The character that marks stand on.
    base: Option<char>,
    marks: usize,
}

impl VisibleContext {
    /// Whether a character can be seen behind those before it, and in front of the one after it.
    /// One that cannot is taken to be written out: nothing that follows stands on it.
    pub(super) fn is_visible(&mut self, c: char, after: Option<char>) -> bool {
        let kind = if matches!(c, ' '..='~') { CharacterKind::Plain } else { character_kind(c) };
        let is_shown = match (c, kind) {
            (ZERO_WIDTH_JOINER, _) => self.joins_emoji(after),
            (EMOJI_SELECTOR, _) => self.selects_emoji(after),
            (KEYCAP, _) => {
                self.last == Some(EMOJI_SELECTOR) || self.last.is_some_and(is_keycap_base)
            }
            (_, CharacterKind::Plain) => true,
            (_, CharacterKind::Mark) => self.can_carry_mark(c),
            (_, CharacterKind::Hidden) => false,
        };
        match (is_shown, c, kind) {
            (false, _, _) => self.reset(),
            (true, ZERO_WIDTH_JOINER | EMOJI_SELECTOR | KEYCAP, _) => self.last = Some(c),
            (true, _, CharacterKind::Mark) => (self.last, self.marks) = (Some(c), self.marks + 1),
            (true, _, _) => *self = Self { last: Some(c), base: Some(c), marks: 0 },
        }
        is_shown
    }

    /// Something else was shown instead, such as a new line.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Between two pictures a joiner hides nothing; anywhere else it could.
    fn joins_emoji(&self, after: Option<char>) -> bool {
        self.last.is_some_and(|c| is_emoji(c) || c == EMOJI_SELECTOR) && after.is_some_and(is_emoji)
    }

    /// Behind anything that has no picture nobody sees that one is asked for.
    fn selects_emoji(&self, after: Option<char>) -> bool {
        self.last.is_some_and(|c| is_emoji(c) || (is_keycap_base(c) && after == Some(KEYCAP)))
    }

    /// Marks are seen on a letter or a digit that they can stand on, a few of them.
    fn can_carry_mark(&self, mark: char) -> bool {
        self.marks < MAX_MARKS
            && self.base.is_some_and(|base| base.is_alphanumeric() && matches_script(base, mark))
    }
}

/// Whether the next character decides if this one can be seen.
pub(super) fn needs_next_char(c: char) -> bool {
    matches!(c, ZERO_WIDTH_JOINER | EMOJI_SELECTOR)
}

/// A blank as wide as a letter or less, and not the one of the keyboard.
pub(super) fn is_other_space(c: char) -> bool {
    !c.is_ascii() && category(c) == GeneralCategory::SpaceSeparator
}

fn character_kind(c: char) -> CharacterKind {
    use GeneralCategory as C;
    if BLANK_SYMBOLS.contains(&c)
        || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
    {
        return CharacterKind::Hidden;
    }
    match category(c) {
        C::Control
        | C::Format
        | C::Surrogate
        | C::PrivateUse
        | C::Unassigned
        | C::LineSeparator
        | C::ParagraphSeparator
        | C::SpaceSeparator => CharacterKind::Hidden,
        C::NonspacingMark | C::SpacingMark | C::EnclosingMark => CharacterKind::Mark,
        // Vowels of Hangul syllables, and other letters that a terminal puts upon the one before.
        _ if c.width() == Some(0) => CharacterKind::Mark,
        _ => CharacterKind::Plain,
    }
}

fn category(c: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(c)
}

/// A character with a picture, and no key of a telephone, which has one only in a keycap.
fn is_emoji(c: char) -> bool {
    !c.is_ascii()
        && CodePointSetData::new::<Emoji>().contains(c)
        && character_kind(c) == CharacterKind::Plain
}

fn is_keycap_base(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '*')
}

/// Whether a mark is used with the script of a letter: a mark of another script may not be drawn at
/// all.
fn matches_script(base: char, mark: char) -> bool {
    let (scripts, all) = (CodePointMapData::<Script>::new(), ScriptWithExtensions::new());
    let of_mark = scripts.get(mark);
    matches!(of_mark, Script::Inherited | Script::Common)
        || all.has_script(base, of_mark)
        || all.has_script(mark, scripts.get(base))
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    /// By the tables of another crate, of each code point behind a letter: what can be seen is a
    /// letter, a number, a sign or a mark that fits, and neither a blank nor anything that a
    /// program may leave out when it draws.
    #[test]
    fn what_is_shown_of_all_code_points_is_what_other_tables_call_visible() {
        let visible = Regex::new(r"^[\p{L}\p{N}\p{P}\p{S}\p{M} ]$").expect("a pattern");
        let ignorable = Regex::new(r"^[\p{Default_Ignorable_Code_Point}]$").expect("a pattern");
        let mark = Regex::new(r"^\p{M}$").expect("a pattern");
        let assigned = Regex::new(r"^\P{Cn}$").expect("a pattern");
        let (mut shown, mut hidden) = (0, 0);
        for c in (0..=0x10FFFF).filter_map(char::from_u32) {
            let (mut sight, text) = (VisibleContext::default(), c.to_string());
            sight.is_visible('a', Some(c));
            let is_shown = sight.is_visible(c, Some('b'));
            if is_shown {
                shown += 1;
                // A newer table knows letters that the older one does not.
                assert!(visible.is_match(&text) || !assigned.is_match(&text), "{c:?} is shown");
                assert!(
                    !ignorable.is_match(&text) && !BLANK_SYMBOLS.contains(&c),
                    "{c:?} is shown"
                );
                assert!(c.width().is_some(), "{c:?} has no width");
                assert!(
                    c.width() != Some(0) || mark.is_match(&text) || !assigned.is_match(&text),
                    "{c:?} has no width and is no mark"
                );
            } else {
                hidden += 1;
                let is_rightly = !visible.is_match(&text)
                    || ignorable.is_match(&text)
                    || BLANK_SYMBOLS.contains(&c)
                    || mark.is_match(&text)
                    || c.width() == Some(0);
                assert!(is_rightly, "{c:?} is not shown");
            }
        }
        assert!(shown > 140_000 && hidden > 900_000, "{shown} are shown, {hidden} are not");
    }

    #[test]
    fn none_of_these_is_shown_wherever_it_stands() {
        let all = "\r\u{7}\u{85}\u{A0}\u{AD}\u{34F}\u{61C}\u{70F}\u{115F}\u{1160}\u{1680}\u{17B4}\u{180B}\u{180E}\u{2000}\u{2003}\
            \u{200B}\u{200C}\u{200D}\u{200E}\u{200F}\u{2028}\u{2029}\u{202A}\u{202E}\u{202F}\u{205F}\u{2060}\u{2064}\u{2066}\u{2069}\u{206F}\
            \u{2800}\u{3000}\u{3164}\u{E000}\u{FDD0}\u{FE00}\u{FE0F}\u{FEFF}\u{FFA0}\u{FFF9}\u{FFFE}\u{1BCA0}\u{1BCA1}\u{1BCA2}\u{1BCA3}\
            \u{1D159}\u{1D173}\u{E0001}\u{E0041}\u{E0100}\u{F0000}\u{10FFFF}";
        for c in all.chars() {
            for before in [None, Some('a'), Some(' '), Some('/'), Some('ක'), Some('한'), Some('ᄀ')]
            {
                let mut sight = VisibleContext::default();
                if let Some(before) = before {
                    sight.is_visible(before, Some(c));
                }
                let is_syllable = matches!((before, c), (Some('ᄀ'), '\u{1160}'));
                assert!(!sight.is_visible(c, Some('b')) || is_syllable, "{c:?} after {before:?}");
            }
        }
    }

    /// The characters of a text that cannot be seen.
    fn hidden_characters(text: &str) -> Vec<char> {
        let (mut sight, mut chars, mut hidden) =
            (VisibleContext::default(), text.chars().peekable(), Vec::new());
        while let Some(c) = chars.next() {
            if !sight.is_visible(c, chars.peek().copied()) {
                hidden.push(c);
            }
        }
        hidden
    }

    #[test]
    fn the_writing_of_people_is_shown() {
        let texts = [
            "Grüße, naïve cafe\u{301}, Việt Nam Vie\u{302}\u{323}t",
            "日本語 한국어 \u{1112}\u{1161}\u{11ab} ไทยที่นี้ עִבְרִית عَرَبِيّ हिन्दी தமிழ் ქართული \
                བོད་ཡིག ខ្មែរ",
            "→ ≠ ∑ €5 ½ ① ✓ ⠿ ▓ ─ 👩🏽\u{200d}💻 1\u{fe0f}\u{20e3} 🇩🇪 ❤\u{fe0f}\u{200d}🔥",
        ];
        for text in texts {
            assert_eq!(hidden_characters(text), Vec::<char>::new(), "{text}");
        }
    }

    #[test]
    fn marks_are_shown_on_letters_of_their_script_and_only_a_few() {
        assert_eq!(hidden_characters("\u{301}"), ['\u{301}'], "on nothing");
        assert_eq!(
            hidden_characters(" \u{301}/\u{338}"),
            ['\u{301}', '\u{338}'],
            "on a blank and on a slash"
        );
        assert_eq!(
            hidden_characters("a\u{5b0}b\u{17d2}"),
            ['\u{5b0}', '\u{17d2}'],
            "of another script"
        );
        assert_eq!(hidden_characters(&format!("a{}", "\u{301}".repeat(9))).len(), 5, "too many");
        assert_eq!(
            hidden_characters("a\u{200b}\u{301}"),
            ['\u{200b}', '\u{301}'],
            "on what is written out"
        );
    }
}
