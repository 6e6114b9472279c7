//! apt with its own package lists, so that it neither uses nor changes the machine's package
//! sources.

use std::fs;
use std::path::Path;

use super::folder;
use super::servers::release_of;
use crate::Result;
use crate::step::Cmd;

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Returns the package sources of a release of Debian.
pub(super) fn lists(kind: &str, codename: &str) -> String {
    [("debian", ""), ("debian-security", "-security")]
        .map(|(archive, suffix)| {
            format!("{kind} [signed-by={KEYRING}] http://deb.debian.org/{archive} {codename}{suffix} main\n")
        })
        .concat()
}

/// The options of every command of apt.
pub(super) struct Apt {
    options: Vec<String>,
}

impl Apt {
    /// Fetches the package lists of this machine's release of Debian. `kind` is `deb-src` for
    /// source packages, `deb` for binary packages.
    pub(super) fn new(kind: &str) -> Result<Self> {
        let home = folder().join("apt").join(kind);
        let lists = home.join("lists/partial");
        fs::create_dir_all(&lists).map_err(|e| format!("{}: {e}", lists.display()))?;
        let sources = self::lists(kind, &release_of(Path::new("/"))?);
        let list = home.join("sources.list");
        fs::write(&list, sources).map_err(|e| format!("{}: {e}", list.display()))?;
        let options = [
            format!("Dir::Etc::SourceList={}", list.display()),
            "Dir::Etc::SourceParts=-".to_owned(),
            format!("Dir::State::Lists={}", home.join("lists").display()),
            // The folder belongs to the caller; apt's user cannot write to it.
            "APT::Sandbox::User=root".to_owned(),
        ];
        let apt = Self { options: options.to_vec() };
        apt.cmd("apt-get", "update -qq").run()?;
        Ok(apt)
    }

    /// Returns a command of apt with these options.
    pub(super) fn cmd(&self, program: &str, args: &str) -> Cmd {
        let mut cmd = Cmd::new(program, "");
        for option in &self.options {
            cmd = cmd.arg("-o").arg(option);
        }
        args.split_whitespace().fold(cmd, Cmd::arg)
    }
}
