//! The results of calls, on their way from a thread of the pool to JavaScript.
//!
//! An answer holds only memory of Rust until the thread of JavaScript takes it, so that any thread
//! can make or drop one.

use napi::bindgen_prelude::{Array, BigInt, BufferSlice, Null, Object, Uint32ArraySlice};
use napi::{Env, Result};

use crate::columns::Column;
use crate::failure;

/// What a thread of the pool has opened, and JavaScript gets as an object of a class of the addon.
pub(crate) trait Instance: Send {
    /// Puts the object at an index of an array.
    fn put(self: Box<Self>, env: &Env, array: &mut Array<'_>, index: u32) -> Result<()>;
}

/// The result of a call.
pub(crate) enum Answer {
    Done,
    Bool(bool),
    Counter(i64),
    Value(Option<Vec<u8>>),
    Entry(Option<(Vec<u8>, Vec<u8>)>),
    /// The strings of a column; absent ones are marked.
    Column(Column),
    /// Keys and values of the next rows of a scan, and whether the scan has ended.
    Rows(Column, Column, bool),
    /// Numbers by name, and a list of texts.
    Report(Vec<(&'static str, u64)>, Vec<String>),
    /// The writes of a group that failed, each by its number, with its error.
    Failures(Vec<(u32, String)>),
    Instance(Box<dyn Instance>),
}

impl Answer {
    pub(crate) fn instance(instance: impl Instance + 'static) -> Self {
        Self::Instance(Box::new(instance))
    }

    /// Puts the answer at an index of an array.
    pub(crate) fn put(self, env: &Env, array: &mut Array<'_>, index: u32) -> Result<()> {
        match self {
            Self::Done => array.set(index, ()),
            Self::Bool(is_true) => array.set(index, is_true),
            Self::Counter(number) => array.set(index, BigInt::from(number)),
            Self::Value(None) | Self::Entry(None) => array.set(index, Null),
            Self::Value(Some(value)) => array.set(index, &buffer(env, value)?),
            Self::Entry(Some((key, value))) => {
                let mut entry = env.create_array(2)?;
                entry.set(0, &buffer(env, key)?)?;
                entry.set(1, &buffer(env, value)?)?;
                array.set(index, entry)
            }
            Self::Column(column) => array.set(index, strings(env, column)?),
            Self::Rows(keys, values, has_ended) => {
                let mut rows = env.create_array(3)?;
                rows.set(0, strings(env, keys)?)?;
                rows.set(1, strings(env, values)?)?;
                rows.set(2, has_ended)?;
                array.set(index, rows)
            }
            Self::Report(numbers, texts) => {
                let mut report = env.create_array(2)?;
                let mut pairs = env.create_array(0)?;
                for (name, number) in numbers {
                    pairs.insert(name)?;
                    pairs.insert(number as f64)?;
                }
                report.set(0, pairs)?;
                report.set(1, texts)?;
                array.set(index, report)
            }
            Self::Failures(failures) => {
                let mut list = env.create_array(0)?;
                for (number, text) in failures {
                    list.insert(number)?;
                    list.insert(text)?;
                }
                array.set(index, list)
            }
            Self::Instance(instance) => instance.put(env, array, index),
        }
    }
}

/// Makes a buffer with a copy of bytes. A buffer that refers to memory of Rust would be freed by a
/// finalizer, which node runs only when a program returns to the event loop: a loop over the rows of
/// a large tree would keep all of them.
pub(crate) fn buffer(env: &Env, bytes: Vec<u8>) -> Result<BufferSlice<'_>> {
    BufferSlice::copy_from(env, bytes)
}

/// Makes an array of a column: the bytes, and the end of each string in them.
fn strings(env: &Env, column: Column) -> Result<Array<'_>> {
    let (bytes, ends) = column.into_parts();
    let mut array = env.create_array(2)?;
    array.set(0, &buffer(env, bytes)?)?;
    array.set(1, &Uint32ArraySlice::copy_from(env, ends)?)?;
    Ok(array)
}

/// Makes an object of numbers by name.
pub(crate) fn numbers<'env>(
    env: &'env Env,
    values: Vec<(&'static str, u64)>,
) -> failure::Result<Object<'env>> {
    let made = (|| {
        let mut object = Object::new(env)?;
        for (name, value) in values {
            object.set(name, value as f64)?;
        }
        Ok(object)
    })();
    made.map_err(|error: napi::Error| {
        napi::Error::new(failure::Origin::Argument, error.reason.clone())
    })
}
