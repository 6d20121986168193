//! A collector of traces: it takes OTLP over HTTP and reads the protobuf.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::ear::Ear;

/// A collector on a free port.
pub struct Collector {
    ear: Ear,
    came: Vec<Came>,
}

/// A span as it came.
#[derive(Debug, Clone)]
pub struct Came {
    /// The span.
    pub span: Span,
    /// Attributes of its source.
    pub resource: Vec<KeyValue>,
}

impl Collector {
    /// One that listens.
    pub fn open() -> Self {
        Self::of(Ear::open())
    }

    /// One that hears by this ear.
    pub fn of(ear: Ear) -> Self {
        Self { ear, came: Vec::new() }
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.ear.url
    }

    /// The next `count` spans, those that started first being first.
    pub fn spans(&mut self, count: usize) -> Vec<Came> {
        while self.came.len() < count {
            let call = self.ear.next();
            assert_eq!(
                (call.path.as_str(), call.headers["content-type"].as_str()),
                ("/v1/traces", "application/x-protobuf")
            );
            let message = ExportTraceServiceRequest::decode(call.bytes.as_slice()).expect("it is a message of OTLP");
            for of_source in message.resource_spans {
                let resource = of_source.resource.map(|resource| resource.attributes).unwrap_or_default();
                let spans = of_source.scope_spans.into_iter().flat_map(|scope| scope.spans);
                self.came.extend(spans.map(|span| Came { span, resource: resource.clone() }));
            }
        }
        let mut spans: Vec<_> = self.came.drain(..count).collect();
        spans.sort_by_key(|came| came.span.start_time_unix_nano);
        spans
    }

    /// Whether no span has come that was not asked for.
    pub fn is_silent(&self) -> bool {
        self.came.is_empty() && self.ear.is_silent()
    }
}

impl Came {
    /// The value of `TRACEPARENT` of its run.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", hex(&self.span.trace_id), hex(&self.span.span_id))
    }

    /// An attribute of it as text.
    pub fn attribute(&self, name: &str) -> Option<String> {
        attribute(&self.span.attributes, name)
    }

    /// The time of an event in milliseconds since 1970.
    pub fn event_ms(&self, name: &str) -> Option<u64> {
        let event = self.span.events.iter().find(|event| event.name == name)?;
        Some(event.time_unix_nano / 1_000_000)
    }
}

/// An attribute as text.
pub fn attribute(attributes: &[KeyValue], name: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        other => panic!("an attribute is a text or a number: {other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
