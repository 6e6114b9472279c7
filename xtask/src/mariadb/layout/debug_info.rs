//! Layouts of C++ classes, read from a file's debug information (DWARF).
//!
//! A part of a class is a member, a base or a virtual function. As in C++, members of an unnamed
//! struct or union are members of the class that contains the struct or union.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, LittleEndian, Unit};
use object::{Object, ObjectSection};

use crate::Result;

pub(super) type Reader<'a> = EndianSlice<'a, LittleEndian>;
pub(super) type Entry<'a> = DebuggingInformationEntry<Reader<'a>>;

/// The classes and constants that a file's debug information describes.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Layouts {
    /// The classes by their qualified names.
    pub(super) classes: BTreeMap<String, Class>,
    /// The values of enumerators by their qualified names.
    pub(super) constants: BTreeMap<String, i64>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Class {
    pub(super) bytes: u64,
    pub(super) parts: BTreeMap<PartName, Part>,
}

/// The name of a part. The linkage name of a virtual function tells its overloads apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PartName {
    Base(String),
    Member(String),
    Virtual { linkage: String, name: String },
}

/// The place of a part. For a member or base, `at` is its first bit in the class and `bits` its
/// size. For a virtual function, `at` is its number in the class's table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) at: u64,
    pub(super) bits: Option<u64>,
}

/// Calls `each` with every compilation unit of `file` whose language is C++.
pub(super) fn each_unit(
    file: &Path,
    mut each: impl for<'d> FnMut(
        &Dwarf<Reader<'d>>,
        &Unit<Reader<'d>>,
        &[Entry<'d>],
    ) -> gimli::Result<()>,
) -> Result {
    let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
    let bytes = fs::read(file).map_err(|e| failed(&e))?;
    let object = object::File::parse(&*bytes).map_err(|e| failed(&e))?;
    let dwarf = Dwarf::load(|section| {
        let data = object.section_by_name(section.name()).and_then(|section| section.data().ok());
        gimli::Result::Ok(Reader::new(data.unwrap_or_default(), LittleEndian))
    });
    let dwarf = dwarf.map_err(|e| failed(&e))?;
    let mut units = dwarf.units();
    while let Some(header) = units.next().map_err(|e| failed(&e))? {
        let mut unit = || -> gimli::Result<()> {
            let unit = dwarf.unit(header)?;
            let mut entries = Vec::new();
            let mut cursor = unit.entries();
            while let Some(entry) = cursor.next_dfs()? {
                entries.push(entry.clone());
                if !is_cpp(&entries[0]) {
                    return Ok(());
                }
            }
            each(&dwarf, &unit, &entries)
        };
        unit().map_err(|e| failed(&e))?;
    }
    Ok(())
}

fn is_cpp(unit: &Entry<'_>) -> bool {
    use gimli::{DW_LANG_C_plus_plus, DW_LANG_C_plus_plus_11, DW_LANG_C_plus_plus_14};
    let known = [DW_LANG_C_plus_plus, DW_LANG_C_plus_plus_11, DW_LANG_C_plus_plus_14];
    let language = unit.attr_value(gimli::DW_AT_language);
    language
        .is_some_and(|found| known.iter().any(|known| found == AttributeValue::Language(*known)))
}

/// Reads the layouts that all units of a file define.
pub(super) fn read(file: &Path) -> Result<Layouts> {
    let mut layouts = Layouts::default();
    each_unit(file, |dwarf, unit, entries| {
        let at = entries.iter().enumerate().map(|(at, entry)| (entry.offset().0, at)).collect();
        Reading { dwarf, unit, entries, at }.read(&mut layouts)
    })?;
    Ok(layouts)
}

/// Returns the text of an attribute.
pub(super) fn text(
    dwarf: &Dwarf<Reader<'_>>,
    unit: &Unit<Reader<'_>>,
    entry: &Entry<'_>,
    attribute: gimli::DwAt,
) -> gimli::Result<Option<String>> {
    let Some(value) = entry.attr_value(attribute) else { return Ok(None) };
    Ok(Some(dwarf.attr_string(unit, value)?.to_string_lossy().into_owned()))
}

/// The state while one unit is read.
struct Reading<'a, 'd> {
    dwarf: &'a Dwarf<Reader<'d>>,
    unit: &'a Unit<Reader<'d>>,
    entries: &'a [Entry<'d>],
    /// Positions of entries in `entries` by their offsets.
    at: BTreeMap<usize, usize>,
}

impl Reading<'_, '_> {
    fn read(&self, layouts: &mut Layouts) -> gimli::Result<()> {
        // The names of the entries around the current one.
        let mut scope: Vec<String> = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            scope.truncate(usize::try_from(entry.depth()).unwrap_or(0));
            let named = is_class(entry)
                || matches!(entry.tag(), gimli::DW_TAG_namespace | gimli::DW_TAG_enumeration_type);
            let name = if named { self.name(entry)? } else { String::new() };
            scope.resize(usize::try_from(entry.depth()).unwrap_or(0), String::new());
            scope.push(name.clone());
            let qualified = || {
                let names = scope.iter().filter(|name| !name.is_empty());
                names.map(String::as_str).collect::<Vec<_>>().join("::")
            };
            match entry.tag() {
                _ if is_class(entry) && !name.is_empty() => {
                    let declared = entry.attr_value(gimli::DW_AT_declaration).is_some();
                    let bytes = number(entry, gimli::DW_AT_byte_size);
                    let (Some(bytes), false) = (bytes, declared) else { continue };
                    let mut class = Class { bytes, ..Class::default() };
                    self.add_parts(at, 0, &mut class)?;
                    layouts.classes.entry(qualified()).or_insert(class);
                }
                gimli::DW_TAG_enumerator => {
                    let value = entry.attr(gimli::DW_AT_const_value).and_then(|value| {
                        value.sdata_value().or_else(|| value.udata_value().map(u64::cast_signed))
                    });
                    let around = qualified();
                    let name = self.name(entry)?;
                    let name = if around.is_empty() { name } else { format!("{around}::{name}") };
                    if let Some(value) = value {
                        layouts.constants.entry(name).or_insert(value);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn name(&self, entry: &Entry<'_>) -> gimli::Result<String> {
        Ok(text(self.dwarf, self.unit, entry, gimli::DW_AT_name)?.unwrap_or_default())
    }

    /// Returns the position of the entry to which an attribute refers.
    fn referred(&self, entry: &Entry<'_>, attribute: gimli::DwAt) -> Option<usize> {
        match entry.attr_value(attribute)? {
            AttributeValue::UnitRef(offset) => self.at.get(&offset.0).copied(),
            _ => None,
        }
    }

    /// Adds the parts of the class at position `class` to `to`. The class begins at bit `base` of
    /// `to`.
    fn add_parts(&self, class: usize, base: u64, to: &mut Class) -> gimli::Result<()> {
        let depth = self.entries[class].depth();
        let below = self.entries[class + 1..].iter().take_while(|entry| entry.depth() > depth);
        for entry in below.filter(|entry| entry.depth() == depth + 1) {
            let name = self.name(entry)?;
            let of_type = self.referred(entry, gimli::DW_AT_type);
            let at = base + begin_bit(entry);
            let bits = number(entry, gimli::DW_AT_bit_size);
            let bits = bits.or_else(|| Some(self.bytes_of(of_type?, 0)? * 8));
            match entry.tag() {
                gimli::DW_TAG_inheritance => {
                    let Some(of_type) = of_type else { continue };
                    let name = self.name(&self.entries[of_type])?;
                    to.parts.insert(PartName::Base(name), Part { at, bits });
                }
                gimli::DW_TAG_member if entry.attr(gimli::DW_AT_external).is_some() => {}
                gimli::DW_TAG_member if name.is_empty() => {
                    if let Some(of_type) = of_type.filter(|at| is_class(&self.entries[*at])) {
                        self.add_parts(of_type, at, to)?;
                    }
                }
                gimli::DW_TAG_member => {
                    to.parts.insert(PartName::Member(name), Part { at, bits });
                }
                gimli::DW_TAG_subprogram => {
                    let Some(at) = self.slot(entry) else { continue };
                    let linkage = text(self.dwarf, self.unit, entry, gimli::DW_AT_linkage_name)?;
                    let linkage = linkage.unwrap_or_else(|| name.clone());
                    to.parts.insert(PartName::Virtual { linkage, name }, Part { at, bits: None });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the number of a virtual function in the class's table.
    fn slot(&self, entry: &Entry<'_>) -> Option<u64> {
        let value = entry.attr(gimli::DW_AT_vtable_elem_location)?;
        let mut operations = value.exprloc_value()?.operations(self.unit.encoding());
        match operations.next().ok()?? {
            gimli::Operation::UnsignedConstant { value } => Some(value),
            _ => None,
        }
    }

    /// Returns the size of a type, bytes. `depth` stops the recursion if types refer to each other.
    fn bytes_of(&self, at: usize, depth: u32) -> Option<u64> {
        let entry = &self.entries[at];
        if let Some(bytes) = number(entry, gimli::DW_AT_byte_size) {
            return Some(bytes);
        }
        if depth > 32 {
            return None;
        }
        let inner = self.bytes_of(self.referred(entry, gimli::DW_AT_type)?, depth + 1)?;
        if entry.tag() != gimli::DW_TAG_array_type {
            return Some(inner);
        }
        let dimensions = self.entries[at + 1..].iter();
        dimensions
            .take_while(|below| below.depth() > entry.depth())
            .try_fold(inner, |all, below| {
                all.checked_mul(number(below, gimli::DW_AT_upper_bound)?.checked_add(1)?)
            })
    }
}

fn is_class(entry: &Entry<'_>) -> bool {
    let classes =
        [gimli::DW_TAG_class_type, gimli::DW_TAG_structure_type, gimli::DW_TAG_union_type];
    classes.contains(&entry.tag())
}

fn number(entry: &Entry<'_>, attribute: gimli::DwAt) -> Option<u64> {
    entry.attr(attribute)?.udata_value()
}

/// Returns the bit at which a member or base begins in its class; 0 in a union.
fn begin_bit(entry: &Entry<'_>) -> u64 {
    let bytes = || number(entry, gimli::DW_AT_data_member_location).map(|bytes| bytes * 8);
    number(entry, gimli::DW_AT_data_bit_offset).or_else(bytes).unwrap_or(0)
}
