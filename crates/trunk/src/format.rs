//! The encoding of a node in the manifest.
//!
//! ```text
//! id, flags (u8: bit 0 inner, bit 1 has hi), lo (bytes), hi (bytes, if flagged)
//! run count, then each view, newest first
//! range delete count, then each: lo (bytes), hi (optional bytes), seq
//! leaf:  base count, then each view
//! inner: child count, then each child's id
//! view:  run id, flags (u8: bit 0 lo follows, bit 1 hi follows, bit 2 hi is none, bit 3 shares
//!        follow), lo (bytes), hi (bytes), shares; bounds that do not follow are the node's
//! ```
//!
//! Numbers are varints. `bytes` is a varint length followed by the bytes. Unknown flags are
//! rejected.

use frondb_core::codec::{Reader, Truncated, put_bytes, put_bytes_opt, put_varint};
use frondb_core::sync::Arc;
use frondb_core::{NodeId, RangeDelete, RunId, SeqNo};

use crate::node::{Body, Key, Node};
use crate::view::View;

const FLAG_INNER: u8 = 1;
const FLAG_HI: u8 = 2;

const VIEW_LO: u8 = 1;
const VIEW_HI: u8 = 2;
const VIEW_HI_NONE: u8 = 4;
const VIEW_SHARES: u8 = 8;

/// A view in the form that the manifest stores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ViewImage {
    /// Id of the run.
    pub run: RunId,
    /// First key that the view shows.
    pub lo: Key,
    /// First key after the view; `None` for no bound.
    pub hi: Option<Key>,
    /// Estimated number of equal parts into which the run is divided; see [`View::shares`].
    pub shares: u32,
}

/// The base of a leaf, or the children of an inner node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BodyImage {
    /// A leaf's base.
    Leaf(Vec<ViewImage>),
    /// An inner node's children.
    Inner(Vec<NodeId>),
}

/// A node in the form that the manifest stores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeImage {
    /// Id of the node.
    pub id: NodeId,
    /// First key of the node's range.
    pub lo: Key,
    /// First key after the range; `None` for no bound.
    pub hi: Option<Key>,
    /// Views of the node's runs, newest first.
    pub runs: Vec<ViewImage>,
    /// Range deletes that may still hide messages in the node or below.
    pub range_deletes: Vec<RangeDelete>,
    /// The base of a leaf, or the children of an inner node.
    pub body: BodyImage,
}

impl NodeImage {
    /// Returns the image of `node`.
    #[must_use]
    pub fn of(node: &Node) -> Self {
        let views = |views: &[View]| views.iter().map(ViewImage::of).collect();
        Self {
            id: node.id,
            lo: Arc::clone(&node.lo),
            hi: node.hi.clone(),
            runs: views(&node.runs),
            range_deletes: node.range_deletes.iter().cloned().collect(),
            body: match &node.body {
                Body::Leaf { base } => BodyImage::Leaf(views(base)),
                Body::Inner { children } => {
                    BodyImage::Inner(children.iter().map(|child| child.id).collect())
                }
            },
        }
    }

    /// Returns an upper bound on the bytes of the encoding.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        /// Most bytes of the numbers, flags and lengths of a view, a range delete, or the node
        /// itself.
        const REST: usize = 48;
        let keys = |lo: &[u8], hi: Option<&[u8]>| lo.len() + hi.map_or(0, <[u8]>::len) + REST;
        let views = |views: &[ViewImage]| -> usize {
            views.iter().map(|view| keys(&view.lo, view.hi.as_deref())).sum()
        };
        let deletes = self.range_deletes.iter().map(|rd| keys(&rd.lo, rd.hi.as_deref()));
        let body = match &self.body {
            BodyImage::Leaf(base) => views(base),
            BodyImage::Inner(children) => children.len() * 10,
        };
        let own = keys(&self.lo, self.hi.as_deref());
        (own + views(&self.runs) + deletes.sum::<usize>() + body) as u64
    }

    /// Appends the encoding to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.id.get());
        let inner = matches!(self.body, BodyImage::Inner(_));
        let flag = |set, flag| if set { flag } else { 0 };
        out.push(flag(inner, FLAG_INNER) | flag(self.hi.is_some(), FLAG_HI));
        put_bytes(out, &self.lo);
        if let Some(hi) = &self.hi {
            put_bytes(out, hi);
        }
        self.encode_views(out, &self.runs);
        put_varint(out, self.range_deletes.len() as u64);
        for delete in &self.range_deletes {
            put_bytes(out, &delete.lo);
            put_bytes_opt(out, delete.hi.as_deref());
            put_varint(out, delete.seq.get());
        }
        match &self.body {
            BodyImage::Leaf(base) => self.encode_views(out, base),
            BodyImage::Inner(children) => {
                put_varint(out, children.len() as u64);
                for child in children {
                    put_varint(out, child.get());
                }
            }
        }
    }

    fn encode_views(&self, out: &mut Vec<u8>, views: &[ViewImage]) {
        put_varint(out, views.len() as u64);
        for view in views {
            put_varint(out, view.run.get());
            let lo_differs = view.lo != self.lo;
            let hi_differs = view.hi != self.hi;
            let flag = |set, flag| if set { flag } else { 0 };
            let flags = flag(lo_differs, VIEW_LO)
                | flag(hi_differs && view.hi.is_some(), VIEW_HI)
                | flag(hi_differs && view.hi.is_none(), VIEW_HI_NONE)
                | flag(view.shares != 1, VIEW_SHARES);
            out.push(flags);
            if lo_differs {
                put_bytes(out, &view.lo);
            }
            if let (true, Some(hi)) = (hi_differs, &view.hi) {
                put_bytes(out, hi);
            }
            if view.shares != 1 {
                put_varint(out, u64::from(view.shares));
            }
        }
    }

    /// Decodes the result of [`encode`](Self::encode).
    ///
    /// # Errors
    /// [`Truncated`] if the bytes are cut short or malformed.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, Truncated> {
        let id = NodeId(input.varint()?);
        let flags = input.u8()?;
        if flags & !(FLAG_INNER | FLAG_HI) != 0 {
            return Err(Truncated);
        }
        let lo: Key = input.bytes()?.into();
        let hi: Option<Key> = if flags & FLAG_HI != 0 { Some(input.bytes()?.into()) } else { None };
        let runs = decode_views(input, &lo, hi.as_ref())?;
        let mut range_deletes = Vec::new();
        for _ in 0..input.varint()? {
            let lo = input.bytes()?.into();
            let hi = input.bytes_opt()?.map(Into::into);
            range_deletes.push(RangeDelete { lo, hi, seq: SeqNo(input.varint()?) });
        }
        let body = if flags & FLAG_INNER == 0 {
            BodyImage::Leaf(decode_views(input, &lo, hi.as_ref())?)
        } else {
            let mut children = Vec::new();
            for _ in 0..input.varint()? {
                children.push(NodeId(input.varint()?));
            }
            BodyImage::Inner(children)
        };
        Ok(Self { id, lo, hi, runs, range_deletes, body })
    }
}

fn decode_views(
    input: &mut Reader<'_>,
    lo: &Key,
    hi: Option<&Key>,
) -> Result<Vec<ViewImage>, Truncated> {
    let mut views = Vec::new();
    for _ in 0..input.varint()? {
        let run = RunId(input.varint()?);
        let flags = input.u8()?;
        if flags & !(VIEW_LO | VIEW_HI | VIEW_HI_NONE | VIEW_SHARES) != 0 {
            return Err(Truncated);
        }
        let view_lo = if flags & VIEW_LO != 0 { input.bytes()?.into() } else { Arc::clone(lo) };
        let view_hi = match (flags & VIEW_HI != 0, flags & VIEW_HI_NONE != 0) {
            (false, false) => hi.cloned(),
            (true, false) => Some(input.bytes()?.into()),
            (false, true) => None,
            (true, true) => return Err(Truncated),
        };
        let shares = if flags & VIEW_SHARES != 0 { input.varint_u32()? } else { 1 };
        if shares == 0 {
            return Err(Truncated);
        }
        views.push(ViewImage { run, lo: view_lo, hi: view_hi, shares });
    }
    Ok(views)
}

impl ViewImage {
    fn of(view: &View) -> Self {
        Self {
            run: view.run.meta().id,
            lo: Arc::clone(&view.lo),
            hi: view.hi.clone(),
            shares: view.shares,
        }
    }
}
