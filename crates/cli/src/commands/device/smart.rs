//! Reads the wear of a device from the JSON of `smartctl -a -j` (SATA and NVMe) or of `nvme
//! smart-log -o json`.
//!
//! | figure | NVMe | SATA |
//! |---|---|---|
//! | written | `data_units_written`, in 512,000 bytes | see below |
//! | used | `percentage_used`, `percent_used` | see below |
//! | powered | `power_on_hours` | `power_on_time` |
//!
//! SATA, written: the statistic "Logical Sectors Written", else an attribute, whose name contains
//! its unit. SATA, used: `endurance_used`, else the statistic "Percentage Used ...", else the
//! attribute that counts down from 100.
//!
//! In this JSON numbers of more than 64 bits are strings; in some versions all counters are.

use frondb::device::Wear;
use serde_json::Value;

use crate::failure::Failure;

/// Bytes of a data unit of NVMe: 1,000 sectors of 512 bytes.
const DATA_UNIT_BYTES: f64 = 512_000.0;
const HOUR: f64 = 3600.0;
/// Attributes whose normalized value is the remaining life: 100 is new, and 0 is worn out.
const REMAINING: [&str; 6] = [
    "SSD_Life_Left",
    "Percent_Lifetime_Remain",
    "Remaining_Lifetime_Perc",
    "Percent_Life_Remaining",
    "Media_Wearout_Indicator",
    "Wear_Leveling_Count",
];
/// Parts of the names of attributes that count written data.
const WRITTEN: [&str; 4] = ["LBAs_Written", "Host_Writes", "Lifetime_Writes", "Total_Writes"];
/// Units that these names contain, in bytes.
const UNITS: [(&str, f64); 4] =
    [("32MiB", 33_554_432.0), ("GiB", 1_073_741_824.0), ("GB", 1e9), ("MiB", 1_048_576.0)];

/// Reads the wear from the JSON `text`.
pub(super) fn wear(text: &str) -> Result<Wear, Failure> {
    let all: Value = serde_json::from_str(text)
        .map_err(|error| Failure::input(error.to_string()).with_hint(HINT))?;
    let nvme = &all["nvme_smart_health_information_log"];
    let nvme = if nvme.is_object() { nvme } else { &all };
    let wear = Wear {
        written_bytes: number(&nvme["data_units_written"])
            .map(|units| units * DATA_UNIT_BYTES)
            .or_else(|| sata_written(&all)),
        used: number(&nvme["percentage_used"])
            .or_else(|| number(&nvme["percent_used"]))
            .or_else(|| number(&all["endurance_used"]["current_percent"]))
            .map(|percent| percent / 100.0)
            .or_else(|| sata_used(&all)),
        rated_bytes: None,
        powered_seconds: number(&nvme["power_on_hours"])
            .or_else(|| number(&all["power_on_time"]["hours"]))
            .map(|hours| hours * HOUR),
    };
    if wear.written_bytes.is_none() && wear.used.is_none() {
        return Err(Failure::input("no counters of wear in this JSON").with_hint(HINT));
    }
    Ok(wear)
}

const HINT: &str = "give the output of `smartctl -a -j DEVICE` or `nvme smart-log -o json DEVICE`";

/// Reads a number, which may also be a string, with or without commas. `None` for a number that is
/// negative or not finite.
fn number(value: &Value) -> Option<f64> {
    let text = || value.as_str()?.replace(',', "").trim().parse().ok();
    value.as_f64().or_else(text).filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

fn sata_written(all: &Value) -> Option<f64> {
    let sector = number(&all["logical_block_size"]).unwrap_or(512.0);
    if let Some(sectors) = statistic(all, "Logical Sectors Written") {
        return Some(sectors * sector);
    }
    attributes(all).find_map(|attribute| {
        let name = attribute["name"].as_str()?;
        if !WRITTEN.iter().any(|part| name.contains(part)) {
            return None;
        }
        let unit = UNITS.iter().find(|(unit, _)| name.contains(unit)).map(|(_, bytes)| *bytes);
        let unit = unit.or_else(|| name.contains("LBAs").then_some(sector))?;
        Some(number(&attribute["raw"]["value"])? * unit)
    })
}

fn sata_used(all: &Value) -> Option<f64> {
    if let Some(percent) = statistic(all, "Percentage Used Endurance Indicator") {
        return Some(percent / 100.0);
    }
    let remaining = REMAINING.iter().find_map(|name| {
        let attribute = attributes(all).find(|attribute| attribute["name"] == *name)?;
        number(&attribute["value"])
    })?;
    Some((1.0 - remaining / 100.0).max(0.0))
}

fn attributes(all: &Value) -> impl Iterator<Item = &Value> {
    all["ata_smart_attributes"]["table"].as_array().into_iter().flatten()
}

/// Finds a value of the device statistics (`smartctl -x`).
fn statistic(all: &Value, name: &str) -> Option<f64> {
    let pages = all["ata_device_statistics"]["pages"].as_array()?;
    let mut rows = pages.iter().filter_map(|page| page["table"].as_array()).flatten();
    number(&rows.find(|row| row["name"] == name)?["value"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Wear {
        wear(text).unwrap_or_else(|failure| panic!("{failure:?}"))
    }

    #[test]
    fn wear_is_read_from_smartctl_of_a_sata_disk() {
        let wear = found(include_str!("../../../tests/testdata/smart/sata-smartctl.json"));
        assert_eq!(wear.written_bytes, Some(98_532_164_187.0 * 512.0));
        assert_eq!(wear.used, Some(0.030_000_000_000_000_027), "97 of 100 are left");
        assert_eq!(wear.powered_seconds, Some(14_213.0 * 3600.0));
    }

    #[test]
    fn wear_is_read_from_smartctl_of_an_nvme_disk() {
        let wear = found(include_str!("../../../tests/testdata/smart/nvme-smartctl.json"));
        assert_eq!(wear.written_bytes, Some(241_873_204.0 * 512_000.0));
        assert_eq!((wear.used, wear.powered_seconds), (Some(0.06), Some(9_127.0 * 3600.0)));
    }

    #[test]
    fn wear_is_read_from_nvme_cli_of_any_version() {
        let wear = found(include_str!("../../../tests/testdata/smart/nvme-cli.json"));
        assert_eq!(wear.written_bytes, Some(402_118_733.0 * 512_000.0));
        assert_eq!((wear.used, wear.powered_seconds), (Some(0.11), Some(17_544.0 * 3600.0)));
        // Newer versions write large counters as strings, and use another name.
        let newer = r#"{"percentage_used": 11, "data_units_written": "402,118,733"}"#;
        assert_eq!(found(newer).written_bytes, wear.written_bytes);
        assert_eq!(found(newer).used, wear.used);
    }

    #[test]
    fn statistics_count_before_attributes() {
        let text = r#"{"logical_block_size": 4096, "ata_device_statistics": {"pages": [{"table": [
            {"name": "Logical Sectors Written", "value": 1000},
            {"name": "Percentage Used Endurance Indicator", "value": 7}]}]},
            "ata_smart_attributes": {"table": [
            {"name": "Total_LBAs_Written", "value": 99, "raw": {"value": 5}}]}}"#;
        assert_eq!(found(text).written_bytes, Some(4_096_000.0));
        assert_eq!(found(text).used, Some(0.07));
    }

    #[test]
    fn attributes_have_the_unit_of_their_name() {
        for (name, unit) in [
            ("Host_Writes_32MiB", 33_554_432.0),
            ("Total_Writes_GB", 1e9),
            ("Host_Writes_MiB", 1_048_576.0),
        ] {
            let text = format!(
                r#"{{"ata_smart_attributes": {{"table": [{{"name": "{name}", "raw": {{"value": 3}}}}]}}}}"#
            );
            assert_eq!(found(&text).written_bytes, Some(3.0 * unit), "{name}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        for wrong in ["", "{", "[]", "3", "{}", r#"{"ata_smart_attributes": {"table": 4}}"#] {
            let failure = wear(wrong).err().unwrap_or_else(|| panic!("{wrong} has wear"));
            assert_eq!(failure.code(), 10, "{wrong}");
            assert!(failure.hint().is_some_and(|hint| hint.contains("smartctl")), "{wrong}");
        }
    }
}
