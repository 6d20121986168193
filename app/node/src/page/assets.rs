//! The stylesheet, the script and the icons: compiled in, compressed once, and named by their content, so that browsers may keep
//! them for ever.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};
use warp::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, VARY};
use warp::reply::Response;

use crate::page::answer::{compress, takes_gzip};

/// A file that pages refer to.
pub(crate) struct Asset {
    /// `page.<hash>.css`
    pub name: String,
    content_type: &'static str,
    plain: &'static [u8],
    gzipped: Vec<u8>,
}

const STYLE: &str = concat!(
    include_str!("static/tokens.css"),
    include_str!("static/frame.css"),
    include_str!("static/parts.css"),
    include_str!("static/strip.css"),
    include_str!("static/screens.css")
);

/// The stylesheet.
pub(crate) static STYLESHEET: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("page", "css", "text/css; charset=utf-8", STYLE));
/// The script.
pub(crate) static SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("page", "js", "text/javascript; charset=utf-8", include_str!("static/page.js")));
/// The icon while all is well.
pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("static/icon.svg")));
/// The icon while something needs a person.
pub(crate) static ICON_ALERT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("alert", "svg", "image/svg+xml", include_str!("static/alert.svg")));

impl Asset {
    fn new(stem: &str, extension: &str, content_type: &'static str, text: &'static str) -> Self {
        let hash: String = Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{stem}.{hash}.{extension}");
        Self { name, content_type, plain: text.as_bytes(), gzipped: compress(text.as_bytes(), 9) }
    }

    /// Where it is.
    pub fn path(&self) -> String {
        format!("/static/{}", self.name)
    }

    fn response(&self, headers: &HeaderMap) -> Response {
        let gzip = takes_gzip(headers);
        let body = if gzip { self.gzipped.clone() } else { self.plain.to_vec() };
        let mut response = Response::new(body.into());
        let out = response.headers_mut();
        out.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        out.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
        out.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if gzip {
            out.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

/// A file by its name; anybody may have it, as it holds nothing of this server's.
pub(crate) fn response(name: &str, headers: &HeaderMap) -> Option<Response> {
    let all = [&*STYLESHEET, &*SCRIPT, &*ICON, &*ICON_ALERT];
    all.into_iter().find(|asset| asset.name == name).map(|asset| asset.response(headers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_and_stylesheet_stay_small() {
        let together = STYLESHEET.gzipped.len() + SCRIPT.gzipped.len();
        assert!(together <= 16 * 1024, "{together} bytes; 24 kB are the limit, and other screens come");
    }

    /// The tokens of a theme: names and colours.
    fn tokens(css: &str) -> std::collections::BTreeMap<&str, [f64; 3]> {
        let declarations = css.split([';', '{']).filter_map(|text| text.trim().split_once(": #"));
        let colour = |hex: &str| -> Option<[f64; 3]> {
            let part =
                |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok().map(|part| f64::from(part) / 255.0);
            Some([part(0)?, part(2)?, part(4)?])
        };
        declarations.filter_map(|(name, hex)| Some((name.strip_prefix("--")?, colour(hex)?))).collect()
    }

    /// WCAG 2.2, relative luminance.
    fn luminance(colour: [f64; 3]) -> f64 {
        let linear = colour.map(|part| if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn colours_keep_their_contrast() {
        let (light, dark) = include_str!("static/tokens.css").split_once("@media").unwrap();
        for (theme, css) in [("light", light), ("dark", dark)] {
            let tokens = tokens(css);
            for text in
                ["text", "muted", "accent", "ok", "failed", "timed-out", "lost", "cancelled", "skipped", "running"]
            {
                for ground in ["ground", "raised", "sunk", "wash", "fault-wash", "warn-wash"] {
                    let found = contrast(tokens[text], tokens[ground]);
                    assert!(found >= 4.5, "{theme}: {text} on {ground} is {found:.2}");
                }
            }
            assert!(contrast(tokens["on-accent"], tokens["accent"]) >= 4.5, "{theme}");
            for ground in ["ground", "raised", "sunk"] {
                assert!(contrast(tokens["edge"], tokens[ground]) >= 3.0, "{theme}: the edge of fields on {ground}");
            }
        }
    }
}
