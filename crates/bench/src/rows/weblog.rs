//! Lines of a web server's log in the combined log format, with the response time at the end:
//!
//! ```text
//!  92.14.200.31 - - [14/Nov/2023:22:13:26 +0000] "GET /blog/new-best-tag HTTP/1.1" 200 31277
//!  "https://www.example.com/home/sale-press" "Mozilla/5.0 (...) ..." 0.041
//! ```
//!
//! Parts of lines repeat as on a real site. There are 3,000 pages and assets with Zipf popularity,
//! each with its own size. 400 visitors are active at a time, some busier than others, each with
//! one address and one of 120 agents, until the visitor has made its 1 to 39 requests. The referrer
//! is the last page that the visitor has read.
//!
//! Random data limits every codec: addresses of new visitors, the choice of the next visitor and
//! page, times, and variations of the sizes of pages. On 4 MiB zlib reaches a ratio of 9.6, xz 16.

use std::io::Write;

use frondb_core::prng::Prng;

use super::skew::{Skew, any, exponential, lognormal};
use super::source::Source;
use super::words::{word, words};

/// 2023-11-14 22:13:20 UTC, the time before the first line.
const EPOCH_S: f64 = 1_700_000_000.0;
const LINES_PER_S: f64 = 150.0;
const PAGES: usize = 3_000;
const AGENTS: usize = 120;
const VISITORS: usize = 400;

/// The networks that most visitors come from.
const NETWORKS: [u8; 10] = [81, 92, 188, 5, 176, 77, 95, 151, 213, 62];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The lines, one after the other.
pub(super) struct WebLog {
    seed: u64,
    prng: Prng,
    pages: Vec<Page>,
    page: Skew,
    agents: Vec<String>,
    agent: Skew,
    visitors: Vec<Visitor>,
    now_s: f64,
    /// The second since 1970 of which `date` is the text.
    second: i64,
    date: String,
}

struct Page {
    path: String,
    bytes: u64,
    kind: PageKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PageKind {
    Asset,
    Text,
    Call,
}

struct Visitor {
    address: String,
    agent: usize,
    /// The page that was read last.
    referrer: Option<usize>,
    requests_left: u64,
}

impl WebLog {
    pub(super) fn new(seed: u64) -> Self {
        let mut prng = Prng::new(seed ^ 0x3EB1_0900_0000_0001);
        let pages = (0..PAGES).map(|_| new_page(&mut prng)).collect();
        let agents = (0..AGENTS).map(|_| new_agent(&mut prng)).collect();
        let agent = Skew::zipf(AGENTS, 1.0);
        let visitors = (0..VISITORS).map(|_| new_visitor(&mut prng, &agent)).collect();
        Self {
            seed,
            prng,
            pages,
            page: Skew::zipf(PAGES, 0.9),
            agents,
            agent,
            visitors,
            now_s: EPOCH_S,
            second: 0,
            date: String::new(),
        }
    }

    /// Draws status and size of the answer to a request for `page`.
    fn answer(&mut self, page: usize) -> (u16, u64) {
        let Page { bytes, kind, .. } = self.pages[page];
        let is_asset = kind == PageKind::Asset;
        match self.prng.below(1_000) {
            // The visitor's browser has the asset already.
            0..300 if is_asset => (304, 0),
            985.. => (404, 1_234),
            983.. => (500, 612),
            950.. if !is_asset => (302, 0),
            _ if is_asset => (200, bytes),
            _ => (200, bytes - 200 + self.prng.below(400)),
        }
    }
}

impl Source for WebLog {
    fn restart(&mut self) {
        *self = Self::new(self.seed);
    }

    fn next(&mut self, line: &mut Vec<u8>) {
        self.now_s += exponential(&mut self.prng, 1.0 / LINES_PER_S);
        if self.now_s as i64 != self.second {
            self.second = self.now_s as i64;
            self.date = date(self.second);
        }
        // The square makes some visitors busier than others.
        let busy = self.prng.unit() * self.prng.unit();
        let place = (VISITORS as f64 * busy) as usize;
        let number = self.page.draw(&mut self.prng);
        let (status, bytes) = self.answer(number);
        let page = &self.pages[number];
        let visitor = &mut self.visitors[place];
        let is_call = page.kind == PageKind::Call;
        let method = if is_call && self.prng.chance(3, 10) { "POST" } else { "GET" };
        // Writing to a vector cannot fail.
        let _ = write!(line, "{} - - [{} +0000] \"{method} ", visitor.address, self.date);
        line.extend_from_slice(page.path.as_bytes());
        if is_call && self.prng.chance(1, 2) {
            let _ = write!(line, "?id={}", self.prng.below(100_000));
        }
        let _ = write!(line, " HTTP/1.1\" {status} {bytes} \"");
        match visitor.referrer {
            Some(page) => {
                line.extend_from_slice(b"https://www.example.com");
                line.extend_from_slice(self.pages[page].path.as_bytes());
            }
            None => line.push(b'-'),
        }
        let seconds = lognormal(&mut self.prng, 0.041, 1.0);
        let _ = write!(line, "\" \"{}\" {seconds:.3}", self.agents[visitor.agent]);
        if page.kind == PageKind::Text {
            visitor.referrer = Some(number);
        }
        visitor.requests_left -= 1;
        if visitor.requests_left == 0 {
            *visitor = new_visitor(&mut self.prng, &self.agent);
        }
    }
}

fn new_page(prng: &mut Prng) -> Page {
    let (path, kind) = match prng.below(100) {
        0..35 => {
            let folder = any(prng, &["js", "css", "img"]);
            let name = words(prng, 2, "-");
            let (hash, ending) =
                (prng.next_u32(), any(prng, &["js", "css", "png", "jpg", "woff2"]));
            (format!("/static/{folder}/{name}-{hash:08x}.{ending}"), PageKind::Asset)
        }
        35..70 => (format!("/{}/{}", word(prng), words(prng, 3, "-")), PageKind::Text),
        70..90 => {
            let product = prng.below(100_000);
            (format!("/product/{product}/{}", words(prng, 2, "-")), PageKind::Text)
        }
        _ => (format!("/api/v2/{}", word(prng)), PageKind::Call),
    };
    Page { path, bytes: prng.range(300..90_000), kind }
}

fn new_agent(prng: &mut Prng) -> String {
    let (kind, version) = (prng.below(100), prng.range(90..131));
    match kind {
        0..50 => format!(
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
             Chrome/{version}.0.0.0 Safari/537.36"
        ),
        50..70 => {
            let [system, system_minor] = [prng.range(14..18), prng.below(7)];
            let [browser, browser_minor] = [prng.range(14..18), prng.below(7)];
            format!(
                "Mozilla/5.0 (iPhone; CPU iPhone OS {system}_{system_minor} like Mac OS X) \
                 AppleWebKit/605.1.15 (KHTML, like Gecko) Version/{browser}.{browser_minor} \
                 Mobile/15E148 Safari/604.1"
            )
        }
        70..85 => format!(
            "Mozilla/5.0 (X11; Linux x86_64; rv:{version}.0) Gecko/20100101 Firefox/{version}.0"
        ),
        _ => {
            let robot = any(prng, &["Googlebot", "bingbot", "YandexBot", "AhrefsBot"]);
            let (minor, host) = (prng.below(9), any(prng, &["google", "bing", "yandex", "ahrefs"]));
            format!("Mozilla/5.0 (compatible; {robot}/2.{minor}; +http://www.{host}.com/bot.html)")
        }
    }
}

fn new_visitor(prng: &mut Prng, agent: &Skew) -> Visitor {
    let network = NETWORKS[prng.index(NETWORKS.len())];
    let [a, b, c] = [(); 3].map(|()| prng.below(256));
    Visitor {
        address: format!("{network}.{a}.{b}.{c}"),
        agent: agent.draw(prng),
        referrer: None,
        requests_left: prng.range(1..40),
    }
}

/// Formats a second since 1970 as logs do. The method is from H. Hinnant's "chrono-compatible
/// low-level date algorithms": years begin in March, so that the leap day is the last of its year.
fn date(second: i64) -> String {
    let (days, of_day) = (second.div_euclid(86_400), second.rem_euclid(86_400));
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let name = MONTHS[(month as usize + 2) % 12];
    let year = year + era * 400 + i64::from(month >= 10);
    let (hour, minute) = (of_day / 3_600, of_day / 60 % 60);
    format!("{day:02}/{name}/{year}:{hour:02}:{minute:02}:{:02}", of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "01/Jan/1970:00:00:00");
        assert_eq!(date(951_782_400), "29/Feb/2000:00:00:00");
        assert_eq!(date(951_868_799), "29/Feb/2000:23:59:59");
        assert_eq!(date(1_700_000_000), "14/Nov/2023:22:13:20");
        assert_eq!(date(1_709_251_200), "01/Mar/2024:00:00:00");
    }

    #[test]
    fn lines_have_the_combined_format_and_visitors_come_and_go() {
        let mut log = WebLog::new(1);
        let (mut addresses, mut referred) = (std::collections::HashSet::new(), 0);
        for _ in 0..20_000 {
            let mut line = Vec::new();
            log.next(&mut line);
            let line = String::from_utf8(line).unwrap();
            let quoted: Vec<&str> = line.split('"').collect();
            assert_eq!(quoted.len(), 7, "{line}");
            let (address, time) = quoted[0].split_once(" - - [").unwrap();
            assert!(address.parse::<std::net::Ipv4Addr>().is_ok(), "{line}");
            assert!(time.starts_with("14/Nov/2023:22:1") && time.ends_with(" +0000] "), "{line}");
            assert!(quoted[1].ends_with(" HTTP/1.1"), "{line}");
            assert!(quoted[5].starts_with("Mozilla/5.0 ("), "{line}");
            assert!(quoted[6].trim().parse::<f64>().is_ok(), "{line}");
            referred += usize::from(quoted[3] != "-");
            addresses.insert(address.to_owned());
        }
        assert!((1_000..2_000).contains(&addresses.len()), "{}", addresses.len());
        assert!((14_000..19_000).contains(&referred), "{referred}");
    }
}
