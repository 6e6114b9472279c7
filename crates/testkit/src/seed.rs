//! Numbers that a test takes from the environment, so that a failure in CI is replayed with one
//! variable.

use std::str::FromStr;

/// Returns the value of the environment variable `name`, or `default` if it is not set.
///
/// # Panics
/// If the variable's value cannot be parsed: a test must not silently run with another seed.
#[must_use]
pub fn from_env<T: FromStr>(name: &str, default: T) -> T {
    match std::env::var(name) {
        Ok(text) => match text.parse() {
            Ok(value) => value,
            Err(_) => panic!("{name}={text} is not a number of the right range"),
        },
        Err(_) => default,
    }
}

pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
