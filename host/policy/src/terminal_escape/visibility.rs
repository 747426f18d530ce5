//! Detection of characters that a reader can see.
//!
//! The tables come from the Unicode Character Database, in the crate `icu_properties` of the
//! Unicode Consortium. This module lists only the characters that no property distinguishes.

use icu_properties::props::{DefaultIgnorableCodePoint, Emoji, GeneralCategory, Script};
use icu_properties::script::ScriptWithExtensions;
use icu_properties::{CodePointMapData, CodePointSetData};
use unicode_width::UnicodeWidthChar as _;

/// Joins two emoji into one, such as the members of a family.
const ZERO_WIDTH_JOINER: char = '\u{200D}';
/// Selects the emoji form of a character that is also a letter or a digit.
const EMOJI_SELECTOR: char = '\u{FE0F}';
/// Draws a keycap around a digit.
const KEYCAP: char = '\u{20E3}';

/// The maximum number of marks on one letter that a reader can distinguish. Vowelled and
/// cantillated Hebrew has four.
const MAX_MARKS: usize = 4;

/// Symbols and letters by category whose glyph is empty or stands for a missing object: those that
/// UnicodeData.txt names BLANK, NULL NOTEHEAD, FILL SPACE, OBJECT REPLACEMENT or LOCATION SPACE.
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

/// The effect of a character on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CharacterKind {
    /// A character with its own position and glyph.
    Plain,
    /// A mark that changes the glyph of the character before it.
    Mark,
    /// An invisible character: empty, a blank other than the space, or a control character.
    Hidden,
}

/// The characters shown so far that decide whether the next one is visible.
#[derive(Clone, Debug, Default)]
pub(super) struct VisibleContext {
    last: Option<char>,
    /// The character that the marks are attached to.
    base: Option<char>,
    marks: usize,
}

impl VisibleContext {
    /// Returns whether a character is visible after the ones before it and before `after`. The
    /// caller escapes an invisible character, so no later character attaches to it.
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

    /// Starts a new context, for example after a line break.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Returns whether a joiner is between two emoji. Anywhere else it could hide text.
    fn joins_emoji(&self, after: Option<char>) -> bool {
        self.last.is_some_and(|c| is_emoji(c) || c == EMOJI_SELECTOR) && after.is_some_and(is_emoji)
    }

    /// Returns whether a selector follows a character with an emoji form. Anywhere else it is
    /// invisible.
    fn selects_emoji(&self, after: Option<char>) -> bool {
        self.last.is_some_and(|c| is_emoji(c) || (is_keycap_base(c) && after == Some(KEYCAP)))
    }

    /// Returns whether a mark is visible: it needs a letter or a digit of a matching script, with
    /// fewer than [`MAX_MARKS`] marks.
    fn can_carry_mark(&self, mark: char) -> bool {
        self.marks < MAX_MARKS
            && self.base.is_some_and(|base| base.is_alphanumeric() && matches_script(base, mark))
    }
}

/// Returns whether the visibility of this character depends on the next one.
pub(super) fn needs_next_char(c: char) -> bool {
    matches!(c, ZERO_WIDTH_JOINER | EMOJI_SELECTOR)
}

/// Returns whether a character is a blank other than the ASCII space.
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
        // Vowels of Hangul syllables, and other letters that a terminal draws onto the previous
        // character.
        _ if c.width() == Some(0) => CharacterKind::Mark,
        _ => CharacterKind::Plain,
    }
}

fn category(c: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(c)
}

/// Returns whether a character has an emoji form of its own. Digits and the other keycap bases have
/// one only in a keycap.
fn is_emoji(c: char) -> bool {
    !c.is_ascii()
        && CodePointSetData::new::<Emoji>().contains(c)
        && character_kind(c) == CharacterKind::Plain
}

fn is_keycap_base(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '*')
}

/// Returns whether a mark is used with the script of a letter. A terminal may not draw a mark of
/// another script at all.
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

    /// Compares each code point after a letter with the tables of another crate. Every visible
    /// character has to be a letter, a number, a sign or a matching mark. It must be neither a
    /// blank nor a character that a program may leave out when it draws.
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
                // A newer table knows letters that are unassigned in the older one.
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
        let all = "\
            \r\u{7}\u{85}\u{A0}\u{AD}\u{34F}\u{61C}\u{70F}\u{115F}\u{1160}\u{1680}\u{17B4}\u{180B}\
            \u{180E}\u{2000}\u{2003}\u{200B}\u{200C}\u{200D}\u{200E}\u{200F}\u{2028}\u{2029}\
            \u{202A}\u{202E}\u{202F}\u{205F}\u{2060}\u{2064}\u{2066}\u{2069}\u{206F}\u{2800}\
            \u{3000}\u{3164}\u{E000}\u{FDD0}\u{FE00}\u{FE0F}\u{FEFF}\u{FFA0}\u{FFF9}\u{FFFE}\
            \u{1BCA0}\u{1BCA1}\u{1BCA2}\u{1BCA3}\u{1D159}\u{1D173}\u{E0001}\u{E0041}\u{E0100}\
            \u{F0000}\u{10FFFF}";
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

    /// Returns the invisible characters of a text.
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

    #[test]
    fn a_selector_is_shown_only_behind_an_emoji_or_within_a_keycap() {
        let selector = '\u{fe0f}';
        assert_eq!(hidden_characters("1\u{fe0f}\u{20e3}"), [' '; 0], "a keycap");
        assert_eq!(hidden_characters("1\u{fe0f}a"), [selector], "a digit");
        assert!(hidden_characters("a\u{fe0f}\u{20e3}").contains(&selector), "a letter");
    }

    #[test]
    fn a_mark_with_a_width_needs_a_letter_too() {
        assert_eq!(hidden_characters("\u{903}"), ['\u{903}']);
        assert_eq!(hidden_characters("\u{915}\u{903}"), [' '; 0]);
    }

    #[test]
    fn a_mark_or_its_letter_can_be_in_use_with_several_scripts() {
        assert_eq!(hidden_characters("\u{640}\u{610}"), [' '; 0], "an Arabic mark on a tatweel");
        assert_eq!(
            hidden_characters("\u{2c30}\u{a66f}"),
            [' '; 0],
            "a Cyrillic mark in Glagolitic"
        );
        assert_eq!(hidden_characters("a\u{a66f}"), ['\u{a66f}'], "a Cyrillic mark in Latin");
    }
}
