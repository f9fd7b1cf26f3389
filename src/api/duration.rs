//! Spans of time as people write them: Gateway API's form (GEP-2257).
//!
//! One to four whole numbers of at most five digits, each with a unit: `h`, `m`, `s` or `ms`. `500ms`, `2s`, `1m30s`,
//! `1h`. No fractions, no sign, no spaces, no days: what can be written can be written back exactly.
//!
//! [`DurationString`] keeps the text as it was stored, valid or not; [`DurationString::parse`] says what it means. An
//! object with a mistake in it can thus still be read, and its mistake be told with the field's name.

use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The grammar, as a regular expression of the common subset of ECMA, RE2 and Rust.
pub const PATTERN: &str = "^([0-9]{1,5}(h|m|s|ms)){1,4}$";
/// The longest text that matches [`PATTERN`]: four times five digits and two letters.
pub const MAX_LENGTH: usize = 28;
/// What to write instead, for error messages.
pub const REMEDY: &str = "write whole numbers with units, such as 500ms, 2s or 1m30s";

/// A span of time as it was written.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DurationString(String);

/// The text is not a duration of this form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotADuration;

impl DurationString {
    /// Keeps `text` as it is.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the text means; [`NotADuration`] when it does not follow the grammar. Parts add up in any order.
    pub fn parse(&self) -> Result<Duration, NotADuration> {
        let mut rest = self.0.as_str();
        let mut sum = Duration::ZERO;
        for part in 0..=4 {
            if rest.is_empty() {
                return if part == 0 { Err(NotADuration) } else { Ok(sum) };
            }
            let (span, after) = leading_part(rest).ok_or(NotADuration)?;
            sum += span;
            rest = after;
        }
        Err(NotADuration)
    }
}

/// The first number and unit of `text`, and what follows them.
fn leading_part(text: &str) -> Option<(Duration, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > 5 {
        return None;
    }
    let (number, rest) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    // `ms` before `m`: the longer unit wins, as in the regular expression.
    [("ms", 1), ("h", 3_600_000), ("m", 60_000), ("s", 1000)]
        .into_iter()
        .find_map(|(unit, millis)| Some((Duration::from_millis(number * millis), rest.strip_prefix(unit)?)))
}

impl From<Duration> for DurationString {
    /// The shortest text that means `span`, cut to whole milliseconds and to at most 99999 hours.
    fn from(span: Duration) -> Self {
        let millis = span.as_millis().min(99_999 * 3_600_000);
        let parts = [
            (millis / 3_600_000, "h"),
            (millis / 60_000 % 60, "m"),
            (millis / 1000 % 60, "s"),
            (millis % 1000, "ms"),
        ];
        let stated = parts.into_iter().filter(|(number, _)| *number > 0);
        let text = stated.fold(String::new(), |text, (number, unit)| format!("{text}{number}{unit}"));
        Self(if text.is_empty() { "0s".into() } else { text })
    }
}

impl fmt::Display for DurationString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for DurationString {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": PATTERN, "maxLength": MAX_LENGTH })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Duration, NotADuration> {
        DurationString::new(text).parse()
    }

    #[test]
    fn it_means_what_it_says() {
        for (text, millis) in [
            ("0s", 0),
            ("0ms", 0),
            ("1ms", 1),
            ("500ms", 500),
            ("2s", 2000),
            ("00002s", 2000),
            ("1m30s", 90_000),
            ("1h", 3_600_000),
            ("1h2m3s4ms", 3_723_004),
            ("1ms1s", 1001),
            ("1s1s1s1s", 4000),
            ("99999h", 359_996_400_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    /// PG-64: no unit is supplied, and nothing is cut off.
    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "2",
            "s",
            "2 s",
            " 2s",
            "2s ",
            "2s\n",
            "-2s",
            "+2s",
            "0.5s",
            "1.5h",
            "2S",
            "2sec",
            "1d",
            "100us",
            "123456s",
            "1s1s1s1s1s",
            "1m30",
            "٢s",
            "2m s",
        ] {
            assert_eq!(parse(text), Err(NotADuration), "{text:?}");
        }
    }

    #[test]
    fn it_is_written_in_the_shortest_form() {
        for (millis, text) in [
            (0, "0s"),
            (1, "1ms"),
            (1500, "1s500ms"),
            (60_000, "1m"),
            (90_000, "1m30s"),
            (86_400_000, "24h"),
            (u64::MAX, "99999h"),
        ] {
            assert_eq!(DurationString::from(Duration::from_millis(millis)).as_str(), text);
        }
        assert_eq!(DurationString::from(Duration::from_micros(999)).as_str(), "0s");
    }

    #[test]
    fn the_longest_text_fits() {
        let longest = "99999ms".repeat(4);
        assert_eq!(longest.len(), MAX_LENGTH);
        assert_eq!(parse(&longest), Ok(Duration::from_millis(4 * 99_999)));
    }

    proptest! {
        /// What is written is read back, to the millisecond.
        #[test]
        fn written_and_read_back(millis in 0_u64..=359_996_400_000) {
            let span = Duration::from_millis(millis);
            prop_assert_eq!(DurationString::from(span).parse(), Ok(span));
        }

        /// What follows the grammar is understood.
        #[test]
        fn the_grammar_is_understood(text in "([0-9]{1,5}(h|m|s|ms)){1,4}") {
            prop_assert!(parse(&text).is_ok());
        }
    }
}
