//! Numbers that a test reads from the environment.

/// The number in an environment variable; none if it is not set.
///
/// # Panics
/// If the variable is not a number, since a test must not silently run with another seed.
pub fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}
