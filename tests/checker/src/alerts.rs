//! The alerts: what receivers heard, and the deliveries as the API told them.

use std::collections::BTreeMap;

use serde_json::Value;

/// `alerts.json`: routes that are told of one job each, what they heard, and their deliveries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alerts {
    /// The job of each route.
    pub routes: BTreeMap<String, String>,
    /// Calls that receivers took, in their order; nobody says that the caller learned of that.
    pub heard: Vec<Alert>,
    /// The deliveries, oldest first.
    pub deliveries: Vec<Delivery>,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// The same on each repeat.
    pub id: String,
    /// The route.
    pub route: String,
    /// The kind, such as `failed`.
    pub when: String,
    /// `open` or `recovered`.
    pub state: String,
    /// The run that it is about, if it is about one.
    pub run: Option<String>,
    /// The whole content, but for the link, which is that of the node that sends.
    pub content: String,
}

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The message, as far as the API tells it.
    pub alert: Alert,
    /// `waiting`, `sending`, `sent` or `dead`.
    pub state: String,
}

/// How many alerts came out how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that arrived.
    pub sent: usize,
    /// Calls that brought one again.
    pub repeated: usize,
    /// Messages that a lease or a wait still held when the run ended.
    pub on_their_way: usize,
}

impl Alerts {
    /// From the content of the file.
    ///
    /// # Errors
    /// Says what in it cannot be read.
    pub fn from_json(value: &Value) -> Result<Self, String> {
        let list = |name: &str| value[name].as_array().ok_or(format!("there is no list {name:?}"));
        let routes = value["routes"].as_object().ok_or("there are no routes")?;
        let route = |(name, job): (&String, &Value)| Some((name.clone(), job.as_str()?.to_owned()));
        Ok(Self {
            routes: routes.iter().map(route).collect::<Option<_>>().ok_or("a route has no job")?,
            heard: list("heard")?
                .iter()
                .map(|one| read(one, one).ok_or(format!("this is no alert: {one}")))
                .collect::<Result<_, _>>()?,
            deliveries: list("deliveries")?
                .iter()
                .map(|one| delivery(one).ok_or(format!("this is no delivery: {one}")))
                .collect::<Result<_, _>>()?,
        })
    }
}

fn read(of_route: &Value, message: &Value) -> Option<Alert> {
    let text = |field: &str| message[field].as_str().map(str::to_owned);
    let mut content = message.clone();
    content.as_object_mut()?.remove("url");
    Some(Alert {
        id: text("id")?,
        route: of_route["route"].as_str()?.to_owned(),
        when: text("when")?,
        state: text("state")?,
        run: text("run"),
        content: content.to_string(),
    })
}

fn delivery(item: &Value) -> Option<Delivery> {
    Some(Delivery { alert: read(item, &item["notice"])?, state: item["state"].as_str()?.to_owned() })
}
