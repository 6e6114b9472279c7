//! A real text that Debian ships: the dictionary WordNet, package `wordnet-base`. A row is a line
//! of its data files: links between words, and an explanation in English.
//!
//! ```text
//!  00001930 03 n 01 physical_entity 0 007 @ 00001740 n 0000 ~ 00002452 n 0000 ...
//!  ... | an entity that has physical existence
//! ```

use std::fs;
use std::path::Path;

use super::source::Source;
use crate::error::{Error, Result};

/// Where the package has its files.
const FOLDER: &str = "/usr/share/wordnet";
const FILES: [&str; 4] = ["data.adj", "data.adv", "data.noun", "data.verb"];

/// The lines of the dictionary, over and over.
pub(super) struct WordNet {
    text: Vec<u8>,
    /// Where the next line begins.
    at: usize,
}

impl WordNet {
    pub(super) fn new() -> Result<Self> {
        Self::from(Path::new(FOLDER))
    }

    fn from(folder: &Path) -> Result<Self> {
        let mut text = Vec::new();
        for name in FILES {
            let path = folder.join(name);
            match fs::read(&path) {
                Ok(lines) => text.extend_from_slice(&lines),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Err(Error::Usage(format!(
                        "{} is missing: install the text of the kind wordnet with `apt-get install \
                         wordnet-base`, or leave the kind out with --kinds",
                        path.display()
                    )));
                }
                Err(error) => return Err(Error::io(format!("read {}", path.display()))(error)),
            }
        }
        if text.is_empty() {
            return Err(Error::Usage(format!("the files of {} are empty", folder.display())));
        }
        Ok(Self { text, at: 0 })
    }
}

impl Source for WordNet {
    fn rows(&self) -> Option<u64> {
        let ends = self.text.iter().filter(|byte| **byte == b'\n').count();
        Some(ends as u64 + u64::from(!self.text.ends_with(b"\n")))
    }

    fn restart(&mut self) {
        self.at = 0;
    }

    fn next(&mut self, line: &mut Vec<u8>) {
        if self.at >= self.text.len() {
            self.at = 0;
        }
        let rest = &self.text[self.at..];
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        line.extend_from_slice(&rest[..end]);
        self.at += end + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scratch(std::path::PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn scratch(name: &str) -> Scratch {
        let name = format!("frondb-bench-wordnet-{}-{name}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    #[test]
    fn rows_are_the_lines_of_all_files_and_begin_again() {
        let dir = scratch("lines");
        for (name, text) in FILES.iter().zip(["one\ntwo\n", "", "\n", "four"]) {
            fs::write(dir.0.join(name), text).unwrap();
        }
        let mut text = WordNet::from(&dir.0).unwrap();
        assert_eq!(text.rows(), Some(4));
        let mut next = || {
            let mut line = Vec::new();
            text.next(&mut line);
            String::from_utf8(line).unwrap()
        };
        assert_eq!([(); 5].map(|()| next()), ["one", "two", "", "four", "one"]);
    }

    #[test]
    fn a_missing_package_is_named() {
        let dir = scratch("missing");
        let Err(error) = WordNet::from(&dir.0) else { panic!("the text is not missing") };
        let error = error.to_string();
        assert!(error.contains("apt-get install wordnet-base"), "{error}");
    }
}
