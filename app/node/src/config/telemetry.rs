//! `[telemetry]`: where spans of runs go, and how many.

use std::ffi::OsString;

use carillon_domain::run::trace::Sample;
use warp::http::Uri;

use super::section::Root;

/// The variable by which OpenTelemetry names the collector for every program of a machine.
const STANDARD: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// `[telemetry]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// The collector's address; `None` where runs are not traced.
    pub otlp: Option<String>,
    /// Which share of firings is traced.
    pub sample: Sample,
    /// The name of this cluster among all services.
    pub service: String,
}

/// The value of the standard variable, and the environment.
pub(super) fn standard_variable(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> (Option<String>, Vec<(OsString, OsString)>) {
    let environment: Vec<_> = environment.into_iter().collect();
    let named = environment.iter().find(|(name, value)| name == STANDARD && !value.is_empty());
    (named.map(|(_, value)| value.to_string_lossy().into_owned()), environment)
}

/// `standard`: the collector of the standard variable, which counts where the section names none.
pub(super) fn telemetry(root: &mut Root, standard: Option<String>) -> TelemetryConfig {
    let mut section = root.section("telemetry");
    let given = section.secret_text("otlp", |text| address(text).map(Some));
    let standard = standard.filter(|_| given.is_none()).and_then(|text| {
        address(&text)
            .map_err(|sentence| section.sentence(format!("the environment variable {STANDARD}: {sentence}")))
            .ok()
    });
    TelemetryConfig {
        otlp: given.unwrap_or(standard),
        sample: Sample::of(section.share("sample", 1.0)).unwrap_or(Sample::ALL),
        service: section.text("service", name).unwrap_or_else(|| "carillon".to_owned()),
    }
}

fn address(text: &str) -> Result<String, String> {
    let uri: Option<Uri> = text.parse().ok();
    let fits =
        |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some() && uri.query().is_none();
    match uri.filter(fits) {
        Some(_) => Ok(text.to_owned()),
        None => {
            Err("it must be the address of a collector that takes OTLP over HTTP, such as \"http://collector:4318\""
                .to_owned())
        }
    }
}

fn name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 63 {
        Err("a name of 1 to 63 characters".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Overrides};

    fn read(variables: &[(&str, &str)]) -> Result<TelemetryConfig, String> {
        let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let read = Config::load(None, variables, &Overrides::default());
        read.map(|config| config.telemetry).map_err(|error| error.to_string())
    }

    #[test]
    fn the_section_goes_before_the_standard_variable() {
        let none = TelemetryConfig { otlp: None, sample: Sample::ALL, service: "carillon".to_owned() };
        assert_eq!(read(&[]), Ok(none.clone()));
        assert_eq!(read(&[(STANDARD, "")]), Ok(none.clone()));
        let standard = (STANDARD, "http://there:4318");
        let found = TelemetryConfig { otlp: Some("http://there:4318".to_owned()), ..none.clone() };
        assert_eq!(read(&[standard]), Ok(found));
        let own = [standard, ("CARILLON__TELEMETRY__OTLP", "https://here"), ("CARILLON__TELEMETRY__SAMPLE", "0.25")];
        let expected =
            TelemetryConfig { otlp: Some("https://here".to_owned()), sample: Sample::of(0.25).unwrap(), ..none };
        assert_eq!(read(&own), Ok(expected));
    }

    #[test]
    fn values_that_cannot_be_are_told() {
        for (name, value, told) in [
            ("CARILLON__TELEMETRY__OTLP", "collector:4318", "telemetry.otlp"),
            ("CARILLON__TELEMETRY__OTLP", "ftp://collector", "such as \"http://collector:4318\""),
            (STANDARD, "collector", STANDARD),
            ("CARILLON__TELEMETRY__SAMPLE", "10", "a number from 0 to 1"),
            ("CARILLON__TELEMETRY__SAMPLE", "nan", "a number from 0 to 1"),
            ("CARILLON__TELEMETRY__SERVICE", "", "1 to 63 characters"),
        ] {
            let refused = read(&[(name, value)]).unwrap_err();
            assert!(refused.contains(told), "{refused}");
        }
    }
}
