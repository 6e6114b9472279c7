//! Numbers that a test takes from the environment.

/// The number in an environment variable; none if it is not set.
///
/// # Panics
/// If the variable is not a number: a test must not silently run with another seed.
pub fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}
