//! `create`, `trees`, `rename`, `alter`, `drop`.

use frondb::limits::TREE_NAME_BYTES_MAX;
use serde_json::json;

use super::session::{Session, tree_options, with_codec};
use crate::args::{Alter, Common, Create, Database, Rename, Tree};
use crate::encoding::shown_name;
use crate::failure::Failure;
use crate::output::Output;

/// Creates the database if it does not exist, and trees in it.
pub(crate) fn create(common: &Common, args: &Create) -> Result<(), Failure> {
    // Check all names first, so that the command creates all trees or none, and no database if a
    // name is invalid.
    if let Some(name) =
        args.trees.iter().find(|name| !(1..=TREE_NAME_BYTES_MAX).contains(&name.len()))
    {
        return Err(Failure::usage(format!(
            "a tree name has 1 to {TREE_NAME_BYTES_MAX} bytes, not {}",
            name.len()
        )));
    }
    if let Some(twice) =
        args.trees.iter().enumerate().find(|(i, name)| args.trees[..*i].contains(name))
    {
        return Err(Failure::usage(format!("tree {} is named twice", twice.1)));
    }
    let session = Session::open_or_create(common, &args.dir)?;
    if let Some(there) = session.db.list_trees().into_iter().find(|name| args.trees.contains(name))
    {
        return Err(Failure::exists(format!("tree {there} exists already")));
    }
    let created = session.db.recovery().created;
    let options = tree_options(&args.options)?;
    for (made, name) in args.trees.iter().enumerate() {
        if let Err(error) = session.db.create_tree(name, options.clone()) {
            let left: Vec<&str> = args.trees[..made]
                .iter()
                .map(String::as_str)
                .filter(|name| session.db.drop_tree(name).is_err())
                .collect();
            let failure = Failure::from(error).context(format!("tree {name}"));
            return Err(match left.is_empty() {
                true => failure,
                false => failure.context(format!("created {}, then failed", left.join(", "))),
            });
        }
    }
    session.close()?;
    let mut out = Output::new(common);
    let dir = args.dir.display().to_string();
    let result = json!({ "database": dir, "created": created, "trees": args.trees });
    out.done(&result, |_| {
        let made = if created { "created" } else { "opened" };
        match args.trees.len() {
            0 => format!("{made} {dir}"),
            _ => format!("{made} {dir}, created {}", args.trees.join(", ")),
        }
    })?;
    out.finish()
}

/// Prints the names of the trees.
pub(crate) fn list(common: &Common, args: &Database) -> Result<(), Failure> {
    let session = Session::open(common, &args.dir)?;
    let mut out = Output::new(common);
    for name in session.db.list_trees() {
        out.line(&json!({ "tree": name }), |_| shown_name(&name))?;
    }
    session.close()?;
    out.finish()
}

pub(crate) fn rename(common: &Common, args: &Rename) -> Result<(), Failure> {
    let session = Session::open(common, &args.tree.dir)?;
    session.db.rename_tree(&args.tree.tree, &args.name)?;
    session.close()?;
    let mut out = Output::new(common);
    out.result(&json!({ "tree": args.name, "was": args.tree.tree }))?;
    out.finish()
}

/// Changes the codec and other changeable options of a tree.
pub(crate) fn alter(common: &Common, args: &Alter) -> Result<(), Failure> {
    let session = Session::open(common, &args.tree.dir)?;
    let tree = session.db.open_tree(&args.tree.tree)?;
    let was = tree.options();
    let options = args.named.set(with_codec(was.clone(), args.codec))?;
    tree.set_options(options.clone())?;
    std::mem::drop(tree);
    session.close()?;
    let mut out = Output::new(common);
    let has_others = options != was;
    let (codec, was) = (options.base_codec().to_string(), was.base_codec().to_string());
    out.done(&json!({ "tree": args.tree.tree, "codec": codec, "was": was }), |_| {
        let tree = &args.tree.tree;
        match (codec == was, has_others) {
            (true, false) => format!("{tree} has codec {codec}, as before"),
            (true, true) => {
                format!("{tree} has other options; `frondb optimize` packs its rows now")
            }
            (false, _) => format!(
                "{tree} has codec {codec} in place of {was}; `frondb optimize` packs its rows now"
            ),
        }
    })?;
    out.finish()
}

/// Removes a tree and all its data.
pub(crate) fn drop(common: &Common, args: &Tree) -> Result<(), Failure> {
    let session = Session::open(common, &args.dir)?;
    session.db.drop_tree(&args.tree)?;
    session.close()?;
    let mut out = Output::new(common);
    out.result(&json!({ "dropped": args.tree }))?;
    out.finish()
}
