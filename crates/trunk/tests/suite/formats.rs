//! The encoding of a node in the manifest: golden bytes, damaged bytes, and trees restored from
//! images.

use std::collections::HashMap;

use frondb_core::codec::{Reader, Truncated};
use frondb_core::{ErrorKind, NodeId, RangeDelete, RunId, SeqNo, TreeId};
use frondb_trunk::format::{BodyImage, ViewImage};
use frondb_trunk::{Key, NodeImage, fuzz, restore};

fn key(text: &str) -> Key {
    text.as_bytes().into()
}

fn leaf() -> NodeImage {
    let view = |run, lo: &str, hi: Option<&str>, shares| ViewImage {
        run: RunId(run),
        lo: key(lo),
        hi: hi.map(key),
        shares,
    };
    NodeImage {
        id: NodeId(300),
        lo: key("d"),
        hi: Some(key("m")),
        runs: vec![view(9, "d", Some("m"), 1), view(7, "f", Some("k"), 3)],
        range_deletes: vec![
            RangeDelete { lo: b"d"[..].into(), hi: Some(b"e"[..].into()), seq: SeqNo(1000) },
            RangeDelete { lo: b"x"[..].into(), hi: None, seq: SeqNo(5) },
        ],
        body: BodyImage::Leaf(vec![view(1, "d", None, 1)]),
    }
}

fn inner() -> NodeImage {
    NodeImage {
        id: NodeId(5),
        lo: key(""),
        hi: None,
        runs: Vec::new(),
        range_deletes: Vec::new(),
        body: BodyImage::Inner(vec![NodeId(2), NodeId(130)]),
    }
}

fn encode(image: &NodeImage) -> Vec<u8> {
    let mut out = Vec::new();
    image.encode(&mut out);
    out
}

#[test]
fn node_images_have_these_bytes() {
    let expected = b"\xac\x02\x02\x01d\x01m\
        \x02\x09\x00\x07\x0b\x01f\x01k\x03\
        \x02\x01d\x02e\xe8\x07\x01x\x00\x05\
        \x01\x01\x04";
    assert_eq!(encode(&leaf()), expected);
    assert_eq!(encode(&inner()), b"\x05\x01\x00\x00\x00\x02\x02\x82\x01");
    for image in [leaf(), inner()] {
        let bytes = encode(&image);
        assert!(bytes.len() as u64 <= image.bytes_max());
        assert_eq!(NodeImage::decode(&mut Reader::new(&bytes)), Ok(image));
        for cut in 0..bytes.len() {
            assert_eq!(NodeImage::decode(&mut Reader::new(&bytes[..cut])), Err(Truncated));
        }
    }
}

#[test]
fn unknown_flags_and_impossible_views_are_refused() {
    for (at, byte, what) in [
        (2, 0x06, "a flag of the node"),
        (9, 0x10, "a flag of a view"),
        (11, 0x0f, "an end that follows and is none"),
        (16, 0, "no share at all"),
    ] {
        let mut bytes = encode(&leaf());
        bytes[at] = byte;
        assert_eq!(NodeImage::decode(&mut Reader::new(&bytes)), Err(Truncated), "{what}");
    }
}

#[test]
fn damaged_node_images_are_refused_or_survive_a_round_trip() {
    let samples = [encode(&leaf()), encode(&inner())];
    frondb_testkit::fuzz::smoke(4, 30_000, &samples, fuzz::node_image);
}

/// Restoring a tree of two leaves that `damage` changed must fail.
fn refused(damage: fn(&mut HashMap<NodeId, NodeImage>), message: &str) {
    let empty = |id, lo: &str, hi: Option<&str>, body| {
        let (lo, hi) = (key(lo), hi.map(key));
        let image = NodeImage { id: NodeId(id), lo, hi, runs: vec![], range_deletes: vec![], body };
        (NodeId(id), image)
    };
    let leaf = || BodyImage::Leaf(Vec::new());
    let children = BodyImage::Inner(vec![NodeId(1), NodeId(2)]);
    let mut images = HashMap::from([
        empty(0, "", None, children),
        empty(1, "", Some("m"), leaf()),
        empty(2, "m", None, leaf()),
    ]);
    let restored = restore(TreeId(1), NodeId(0), &images, &mut |_| None).unwrap();
    assert_eq!(restored.trunk.height(), 2);
    damage(&mut images);
    let error = restore(TreeId(1), NodeId(0), &images, &mut |_| None).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.message().contains(message), "{error}");
    assert_eq!(error.place().unwrap().what, "trunk");
}

#[test]
fn images_that_do_not_fit_together_are_refused() {
    refused(|images| drop(images.remove(&NodeId(2))), "node 2 is missing");
    refused(|images| children(images, &[1, 1]), "node 1 is reached twice");
    refused(|images| children(images, &[1, 0]), "node 0 is reached twice");
    refused(|images| children(images, &[]), "has no children");
    refused(|images| children(images, &[2]), "do not make up");
    refused(|images| children(images, &[2, 1]), "do not make up");
    refused(|images| images.get_mut(&NodeId(1)).unwrap().hi = Some(key("l")), "do not make up");
    refused(|images| images.get_mut(&NodeId(0)).unwrap().lo = key("a"), "does not span");
    refused(
        |images| {
            let lo = key("");
            let view = ViewImage { run: RunId(1), lo, hi: None, shares: 1 };
            images.get_mut(&NodeId(1)).unwrap().runs.push(view);
        },
        "run 1 is missing",
    );
    refused(
        |images| {
            let delete = RangeDelete { lo: b"a"[..].into(), hi: None, seq: SeqNo(3) };
            images.get_mut(&NodeId(1)).unwrap().range_deletes.push(delete);
        },
        "a range delete reaches outside",
    );
}

fn children(images: &mut HashMap<NodeId, NodeImage>, ids: &[u64]) {
    let ids = ids.iter().map(|id| NodeId(*id)).collect();
    images.get_mut(&NodeId(0)).unwrap().body = BodyImage::Inner(ids);
}
