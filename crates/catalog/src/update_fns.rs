//! [`UpdateFns`]: the registry of update functions.

use std::collections::BTreeMap;

use frondb_core::message::{SharedUpdateFn, UpdateFn};
use frondb_core::sync::Arc;
use frondb_core::{Error, Result};

/// Update functions by name and version. The program registers them before it opens a database,
/// because replaying the log may need them (rule 16).
#[derive(Clone, Default)]
pub struct UpdateFns(BTreeMap<(String, u32), SharedUpdateFn>);

impl UpdateFns {
    /// Registers a function under its name and version. Other versions stay registered.
    pub fn register(&mut self, function: SharedUpdateFn) {
        self.0.insert((function.name().to_owned(), function.version()), function);
    }

    /// Finds the function of this name and version.
    ///
    /// # Errors
    /// `Invalid` if the function is not registered.
    pub fn find(&self, name: &str, version: u32) -> Result<SharedUpdateFn> {
        let found = self.0.get(&(name.to_owned(), version));
        found.map(Arc::clone).ok_or_else(|| Error::invalid(self.missing(name, version)))
    }

    /// Returns the function, or a stand-in if the function is not registered. The stand-in never
    /// combines operands, so merges keep the operands as they are. Its `apply` fails and names the
    /// missing function, so only reads of keys with operands fail.
    pub fn find_or_stand_in(&self, name: &str, version: u32) -> SharedUpdateFn {
        self.find(name, version).unwrap_or_else(|_| {
            Arc::new(StandIn { name: name.into(), version, why: self.missing(name, version) })
        })
    }

    fn missing(&self, name: &str, version: u32) -> String {
        let others: Vec<String> = self
            .0
            .keys()
            .filter(|(other, _)| other == name)
            .map(|(_, version)| version.to_string())
            .collect();
        match &others[..] {
            [] => format!("update function {name:?} is not registered"),
            others => format!(
                "update function {name:?} is registered as version {}, the tree needs {version}",
                others.join(", ")
            ),
        }
    }
}

/// Takes the place of an update function that is not registered.
struct StandIn {
    name: String,
    version: u32,
    why: String,
}

impl UpdateFn for StandIn {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn apply(&self, _: &[u8], _: Option<&[u8]>, _: &[u8]) -> Result<Vec<u8>, String> {
        Err(self.why.clone())
    }

    fn combine(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

impl std::fmt::Debug for UpdateFns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
