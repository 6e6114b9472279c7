//! Tree options that the database could not read back later are refused before anything is written.

use frondb::{Codec, Db, ErrorKind, Options, TreeOptions};
use frondb_testkit::TempDir;

#[test]
fn a_codec_level_that_does_not_exist_is_refused() {
    let dir = TempDir::new("tree_options");
    let options = || Options::new().memory_bytes(8 << 20).background_threads(0);
    let wrong = [
        TreeOptions::new().codec(Codec::Zstd(0)),
        TreeOptions::new().codec(Codec::Zstd(20)),
        TreeOptions::new().codec(Codec::Zlib(0)),
        TreeOptions::new().codec(Codec::Zlib(10)),
        TreeOptions::new().codec(Codec::Lzma(10)),
        TreeOptions::new().shape(|shape| shape.run_codec = Codec::Zstd(255)),
    ];
    let db = Db::open(dir.path(), options()).unwrap();
    for options in wrong {
        let error = db.create_tree("t", options.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{options:?}");
    }
    let tree = db.create_tree("t", TreeOptions::new().codec(Codec::Zstd(19))).unwrap();
    tree.put(b"k", b"v").unwrap();
    db.close().unwrap();
    drop((tree, db));
    let db = Db::open(dir.path(), options()).unwrap();
    assert_eq!(db.open_tree("t").unwrap().get(b"k").unwrap(), Some(b"v".to_vec()));
}
