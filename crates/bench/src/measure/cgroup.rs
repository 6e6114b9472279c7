//! A memory cgroup for a child process, of version 1 or 2, so that no engine can use the page
//! cache of the whole machine as a second cache of its own.
//!
//! The parent creates and removes the group. The child enters the group by writing to
//! `cgroup.procs` before it does anything else. In version 2 the parent also enables the io
//! controller, so that the kernel charges writes by its flusher threads to the group, and throttles
//! those writes with the group.
//!
//! ```text
//!  v1: /sys/fs/cgroup/memory/<own path>/frondb-bench-<pid>-<n>/memory.limit_in_bytes
//!  v2: /sys/fs/cgroup/[<own path>/]frondb-bench-<pid>-<n>/memory.max
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

const PREFIX: &str = "frondb-bench-";

/// A group with a limit. Dropping it removes the group, which must be empty by then.
#[derive(Debug)]
pub struct Cgroup {
    dir: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Cgroup {
    /// Creates a group whose processes together may hold at most `limit` bytes, page cache
    /// included.
    pub fn create(limit: u64) -> Result<Self> {
        let mounts = fs::read_to_string("/proc/mounts").map_err(Error::io("read /proc/mounts"))?;
        let own =
            fs::read_to_string("/proc/self/cgroup").map_err(Error::io("read /proc/self/cgroup"))?;
        let mut refusals = Vec::new();
        for (version, parent) in parents(&mounts, &own) {
            match Self::create_below(&parent, version, limit) {
                Ok(group) => return Ok(group),
                Err(error) => refusals.push(format!("{}: {error}", parent.display())),
            }
        }
        if refusals.is_empty() {
            refusals.push("no cgroup file system with a memory controller is mounted".to_owned());
        }
        Err(Error::Usage(format!(
            "cannot create a memory cgroup, without which engines may use the whole machine's page \
             cache; run as root (or in `systemd-run --user --scope -p Delegate=yes`), or accept that \
             with --no-cgroup. Tried:\n  {}",
            refusals.join("\n  ")
        )))
    }

    fn create_below(parent: &Path, version: Version, limit: u64) -> std::io::Result<Self> {
        remove_stale(parent);
        if version == Version::Two {
            // These writes may fail because the controller is already enabled, or because this
            // process is not allowed to enable it. In the second case the write to the limit file
            // below fails.
            let _ = fs::write(parent.join("cgroup.subtree_control"), "+memory");
            let _ = fs::write(parent.join("cgroup.subtree_control"), "+io");
        }
        let dir = (0..)
            .map(|n| parent.join(format!("{PREFIX}{}-{n}", std::process::id())))
            .find(|dir| !dir.exists())
            .unwrap_or_default();
        fs::create_dir(&dir)?;
        // If a later step fails, the drop of `group` removes the directory.
        let group = Self { dir, version };
        let bytes = limit.to_string();
        match version {
            Version::One => {
                fs::write(group.dir.join("memory.limit_in_bytes"), &bytes)?;
                // Without swap accounting the file is missing; without swap it has no effect.
                let _ = fs::write(group.dir.join("memory.memsw.limit_in_bytes"), &bytes);
            }
            Version::Two => {
                fs::write(group.dir.join("memory.max"), &bytes)?;
                let _ = fs::write(group.dir.join("memory.swap.max"), "0");
            }
        }
        Ok(group)
    }

    /// Returns the path of the file to give to [`join`].
    #[must_use]
    pub fn procs(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }

    /// Returns how many processes of the group the kernel has killed because the group was full.
    #[must_use]
    pub fn kills(&self) -> u64 {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        let text = fs::read_to_string(self.dir.join(file)).unwrap_or_default();
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("oom_kill "));
        lines.next().and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The removal fails only while a process is in the group. `remove_stale` of the next run
        // then removes the group.
        let _ = fs::remove_dir(&self.dir);
    }
}

/// Moves the calling process with all its threads into the group of this `cgroup.procs` file.
pub fn join(procs: &Path) -> Result<()> {
    fs::write(procs, "0").map_err(Error::io(format!("enter the cgroup {}", procs.display())))
}

/// Removes the groups of interrupted runs.
fn remove_stale(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Returns the directories in which to create a group, the best first: below the group of this
/// process, whose limits then still apply, or below the root of the hierarchy.
fn parents(mounts: &str, own: &str) -> Vec<(Version, PathBuf)> {
    let mut found = Vec::new();
    for line in mounts.lines() {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (Some(mount), Some(kind), Some(options)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (version, path) = match kind {
            "cgroup" if options.split(',').any(|option| option == "memory") => {
                let path = own.lines().find_map(|line| {
                    let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                    controllers.split(',').any(|name| name == "memory").then_some(path)
                });
                (Version::One, path)
            }
            "cgroup2" => (Version::Two, own.lines().find_map(|line| line.strip_prefix("0::"))),
            _ => continue,
        };
        let mount = PathBuf::from(mount);
        if let Some(path) = path.map(|path| path.trim_start_matches('/')).filter(|p| !p.is_empty())
        {
            found.push((version, mount.join(path)));
        }
        found.push((version, mount));
    }
    // A hybrid machine has the memory controller in version 1 and an empty version 2.
    found.sort_by_key(|(version, _)| *version == Version::Two);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_comes_first_and_version_one_before_an_empty_two() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n";
        let own = "8:pids:/\n4:memory:/a/b\n0::/\n";
        let expected = [
            (Version::One, PathBuf::from("/sys/fs/cgroup/memory/a/b")),
            (Version::One, PathBuf::from("/sys/fs/cgroup/memory")),
            (Version::Two, PathBuf::from("/sys/fs/cgroup/unified")),
        ];
        assert_eq!(parents(mounts, own), expected);
    }

    #[test]
    fn a_unified_machine_has_one_hierarchy() {
        let mounts = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        let expected = [
            (Version::Two, PathBuf::from("/sys/fs/cgroup/user.slice/x.scope")),
            (Version::Two, PathBuf::from("/sys/fs/cgroup")),
        ];
        assert_eq!(parents(mounts, "0::/user.slice/x.scope\n"), expected);
        assert!(parents("proc /proc proc rw 0 0\n", "").is_empty());
    }
}
