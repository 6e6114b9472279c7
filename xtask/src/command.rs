//! Parts that all commands share: the result, the report of findings, and the parser of arguments.

/// A command's result. An error is a sentence for the user at the terminal.
pub(crate) type Result<T = ()> = std::result::Result<T, String>;

/// Prints the findings of a check, one per line. Returns an error if there are any.
pub(crate) fn report(check: &str, findings: Result<Vec<String>>) -> Result {
    let findings = findings?;
    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        n => Err(format!("{check}: {n} finding(s)")),
    }
}

/// Splits `NAME=VALUE` arguments, accepting only the names in `known`.
pub(crate) fn variables<'a>(args: &'a [String], known: &[&str]) -> Result<Vec<(&'a str, &'a str)>> {
    args.iter()
        .map(|arg| {
            let (name, value) =
                arg.split_once('=').ok_or_else(|| format!("`{arg}` is not NAME=VALUE"))?;
            if !known.contains(&name) {
                return Err(format!("unknown variable {name}; known are {}", known.join(", ")));
            }
            Ok((name, value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_split_and_unknown_ones_refused() {
        let args = ["ROWS=10".to_owned(), "JSON=a=b".to_owned()];
        assert_eq!(variables(&args, &["ROWS", "JSON"]), Ok(vec![("ROWS", "10"), ("JSON", "a=b")]));
        assert!(variables(&args, &["ROWS"]).is_err_and(|e| e.contains("unknown variable JSON")));
        assert!(variables(&["ROWS".to_owned()], &["ROWS"]).is_err());
    }
}
