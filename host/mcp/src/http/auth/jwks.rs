//! The public keys that sign access tokens.

use std::collections::HashMap;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;

use super::TokenSetupError;

/// The number of keys.
const MAX_KEYS: usize = 100;

/// The keys, by their IDs. Each key has exactly one algorithm.
#[derive(Debug)]
pub(super) struct KeySet(HashMap<String, (Algorithm, DecodingKey)>);

impl KeySet {
    /// Parses a JSON Web Key Set. Keys for other purposes and other algorithms are left out.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no key that can be used, if an ID is missing or occurs twice,
    /// or if the set contains a secret.
    pub(super) fn parse(text: &str) -> Result<Self, TokenSetupError> {
        let problem = |problem: String| TokenSetupError(problem);
        let set: Value = serde_json::from_str(text)
            .map_err(|error| problem(format!("the key set is not valid JSON: {error}")))?;
        let keys = set.get("keys").and_then(Value::as_array);
        let keys = keys.ok_or_else(|| problem("the key set has no list `keys`".to_owned()))?;
        if keys.len() > MAX_KEYS {
            return Err(problem(format!("the key set has more than {MAX_KEYS} keys")));
        }
        let mut known = HashMap::new();
        for (number, key) in keys.iter().enumerate() {
            let at = |what: &str| problem(format!("key {} of the key set {what}", number + 1));
            if key.get("kty").and_then(Value::as_str) == Some("oct") {
                return Err(at(
                    "is a secret (`oct`), which anybody who can check tokens could use \
                    to sign them",
                ));
            }
            if key.get("d").is_some() {
                return Err(at("is a private key"));
            }
            let Ok(parsed) = serde_json::from_value::<Jwk>(key.clone()) else { continue };
            let Some(algorithm) = algorithm_of(&parsed) else { continue };
            let Some(id) = parsed.common.key_id.clone() else {
                return Err(at("has no `kid`"));
            };
            let decoding = DecodingKey::from_jwk(&parsed).map_err(|_| at("is not valid"))?;
            if known.insert(id, (algorithm, decoding)).is_some() {
                return Err(at("has the `kid` of another key"));
            }
        }
        if known.is_empty() {
            let algorithms = "RS256, ES256 or EdDSA";
            return Err(problem(format!("the key set has no key for {algorithms}")));
        }
        Ok(Self(known))
    }

    /// Returns a key with its algorithm.
    pub(super) fn find(&self, id: &str) -> Option<&(Algorithm, DecodingKey)> {
        self.0.get(id)
    }
}

/// Returns the algorithm of a key for signatures, if it is known here.
fn algorithm_of(key: &Jwk) -> Option<Algorithm> {
    if !matches!(key.common.public_key_use, None | Some(PublicKeyUse::Signature)) {
        return None;
    }
    let by_type = match &key.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(curve) if curve.curve == EllipticCurve::P256 => {
            Algorithm::ES256
        }
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
            Algorithm::EdDSA
        }
        _ => return None,
    };
    let declared = match key.common.key_algorithm {
        None => return Some(by_type),
        Some(KeyAlgorithm::RS256) => Algorithm::RS256,
        Some(KeyAlgorithm::ES256) => Algorithm::ES256,
        Some(KeyAlgorithm::EdDSA) => Algorithm::EdDSA,
        Some(_) => return None,
    };
    (declared == by_type).then_some(by_type)
}
