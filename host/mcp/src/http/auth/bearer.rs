//! Tokens that the user has chosen and given to clients.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

use super::{AuthFailure, ClientPrincipal, TokenSetupError};

/// The shortest token, in characters. A shorter one can be guessed.
const MIN_TOKEN_LEN: usize = 16;
/// The number of tokens. Each request is compared with all of them.
const MAX_TOKENS: usize = 1000;

/// The known tokens. Only their digests are kept.
pub struct BearerTokens {
    tokens: Vec<KnownToken>,
}

struct KnownToken {
    digest: [u8; 32],
    principal: ClientPrincipal,
}

impl fmt::Debug for BearerTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BearerTokens").field("len", &self.tokens.len()).finish()
    }
}

impl BearerTokens {
    /// Parses tokens, one on each line: `TOKEN`, or `NAME TOKEN`. Clients with the same name are
    /// the same principal; a token without a name has the name `token`. Empty lines and lines that
    /// begin with `#` are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no token, or if one is too short, is used twice, or contains
    /// characters that a header cannot contain. The error does not contain the token.
    pub fn parse(text: &str) -> Result<Self, TokenSetupError> {
        let mut tokens: Vec<KnownToken> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let problem =
                |problem: &str| TokenSetupError(format!("line {}: {problem}", number + 1));
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let (name, token) = match words.as_slice() {
                [] => continue,
                [first, ..] if first.starts_with('#') => continue,
                [token] => ("token", *token),
                [name, token] => (*name, *token),
                _ => return Err(problem("a line has one token, or a name and a token")),
            };
            if token.len() < MIN_TOKEN_LEN {
                return Err(problem("a token needs at least 16 characters"));
            }
            let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
            if !token.bytes().all(is_token) {
                return Err(problem("a token has only letters, digits and `-._~+/=`"));
            }
            let digest = Sha256::digest(token).into();
            if tokens.iter().any(|known| known.digest == digest) {
                return Err(problem("the token is used twice"));
            }
            tokens.push(KnownToken { digest, principal: ClientPrincipal::new([name.to_owned()]) });
        }
        match tokens.len() {
            0 => Err(TokenSetupError("there is no token".to_owned())),
            count if count > MAX_TOKENS => {
                Err(TokenSetupError(format!("there are more than {MAX_TOKENS} tokens")))
            }
            _ => Ok(Self { tokens }),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns the principal of a token, in a time that does not depend on the token.
    pub(super) fn find(&self, token: &str) -> Result<ClientPrincipal, AuthFailure> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let (mut is_known, mut at) = (Choice::from(0), 0_u32);
        for (number, known) in (0_u32..).zip(&self.tokens) {
            let is_this = known.digest.ct_eq(&digest);
            at.conditional_assign(&number, is_this);
            is_known |= is_this;
        }
        let known = self.tokens.get(at as usize).filter(|_| bool::from(is_known));
        known
            .map(|known| known.principal.clone())
            .ok_or(AuthFailure::Invalid("the token is not known"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_to_its_name() {
        let text = "# comment\n\n0123456789abcdef\nann  fedcba9876543210\nann abcdef0123456789\n";
        let tokens = BearerTokens::parse(text).expect("tokens");
        let find = |token: &str| tokens.find(token).map(|principal| principal.to_string());
        assert_eq!(find("0123456789abcdef").as_deref(), Ok("token"));
        assert_eq!(find("fedcba9876543210").as_deref(), Ok("ann"));
        assert_eq!(tokens.find("fedcba9876543210"), tokens.find("abcdef0123456789"));
        for unknown in ["", "ann", "0123456789abcde", "0123456789abcdef ", "0123456789ABCDEF"] {
            assert!(find(unknown).is_err(), "{unknown}");
        }
        assert!(!format!("{tokens:?}").contains("0123"));
    }

    #[test]
    fn a_file_that_does_not_protect_is_an_error_that_hides_the_token() {
        for text in [
            "",
            "# 0123456789abcdef",
            "short",
            "ann short",
            "a b 0123456789abcdef",
            "0123456789abcdef\n0123456789abcdef",
            "0123456789abcd\u{e9}f0",
            "\"0123456789abcdef\"",
        ] {
            let problem = BearerTokens::parse(text).expect_err(text).to_string();
            assert!(!problem.contains("0123"), "{problem}");
        }
    }
}
